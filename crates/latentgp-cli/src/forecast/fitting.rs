//! Fits the model to the training part, of the series or of its logarithm.

use super::TransformName;
use super::job::Job;
use super::series::Series;
use super::units::Units;
use crate::failure::{Failure, Outcome};
use crate::progress::Progress;
use crate::{interrupt, out, words};
use latentgp::fit::Fitted;
use latentgp::kernel;
use latentgp::model::narx::Narx;
use latentgp::optim::StopReason;
use std::ops::ControlFlow;

/// A fitted model and the units it was fitted in.
pub struct Chosen {
    pub units: Units,
    pub fitted: Fitted<Narx>,
    /// The log evidence of the data as given.
    pub evidence: f64,
}

/// The units that were asked for, or those that suit the rows that the model knows.
pub fn units(job: &Job, series: &Series, quiet: bool) -> Outcome<Units> {
    let lowest = series.values.as_slice().iter().copied().fold(f64::INFINITY, f64::min);
    match job.transform {
        TransformName::None => Ok(Units::Plain),
        TransformName::Log if lowest <= 0.0 => Err(Failure::data(format!(
            "{}: --transform log expected positive values, found {lowest}; leave the option out",
            series.source
        ))),
        TransformName::Log => Ok(Units::Log),
        TransformName::Auto => {
            let chosen = Units::suitable(&series.values, job.known(), job.lags.longest());
            if chosen == Units::Log {
                out::note(
                    quiet,
                    "the ups and downs of the series grow with its level: forecasting its logarithm (--transform)",
                );
            }
            Ok(chosen)
        }
    }
}

/// Fits the model to the rows it may know.
pub fn fit(job: &Job, series: &Series, quiet: bool) -> Outcome<Chosen> {
    let units = units(job, series, quiet)?;
    let known = series.values.slice_rows(0, job.known());
    let inputs = series.exogenous.as_ref().map(|u| u.slice_rows(0, job.known()));
    let kernel = kernel::parse(&job.kernel, job.lags.width())?;
    let mut start = Narx::new(&units.apply(&known), inputs.as_ref(), job.lags.clone(), kernel, &job.options)?;
    let runs = if job.papers { start.papers_starts() } else { job.fitting.runs };
    let progress = Progress::new(quiet, runs, job.fitting.max_iterations);
    let watch = |run: &latentgp::fit::Run| {
        progress.see(run);
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    if job.wide {
        start.wide_start();
    }
    let fitted = if job.papers { start.papers_fit(&watch)? } else { start.fit(&job.fitting, &watch)? };
    if fitted.stop_reason == StopReason::Asked {
        return Err(Failure::interrupted("interrupted before the fit ended; nothing is kept"));
    }
    let targets = known.slice_rows(job.lags.longest(), job.known());
    let evidence = fitted.evidence - units.jacobian(&targets);
    progress.finish(&format!(
        "{}, log evidence {}: {}",
        words::count(fitted.iterations, "iteration"),
        words::short(evidence),
        fitted.stop_reason
    ));
    Ok(Chosen { units, fitted, evidence })
}
