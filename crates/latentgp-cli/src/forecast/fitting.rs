//! Fits the model to the training part, of the series or of its logarithm.

use super::TransformName;
use super::job::Job;
use super::series::Series;
use super::units::Units;
use crate::failure::{Failure, Outcome};
use crate::progress::Progress;
use crate::train::{Task, train};
use crate::{interrupt, out, words};
use latentgp::Mat;
use latentgp::fit::{Fitted, Search};
use latentgp::kernel;
use latentgp::model::SeriesModel;
use latentgp::model::narx::Narx;
use latentgp::optim::StopReason;
use latentgp::recipe::{Data, Learnt};
use std::ops::ControlFlow;

/// A fitted model and the units it was fitted in.
pub struct Chosen {
    pub units: Units,
    pub model: Box<dyn SeriesModel>,
    pub iterations: usize,
    pub converged: bool,
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
    // Windows begin at the first value.
    let first = (0..job.known()).find(|&t| known.row(t).iter().any(|v| !v.is_nan())).unwrap_or(0);
    let targets = known.slice_rows((first + job.lags.longest()).min(job.known()), job.known());
    let jacobian = -units.jacobian(&targets);
    let fitted = match job.papers {
        true => by_papers(job, &units.apply(&known), inputs.as_ref(), quiet)?.map(|m| m.boxed()),
        false => {
            let data = Data::Series { series: units.apply(&known), exogenous: inputs };
            let task = Task { jacobian, ..Task::new(job.recipe(), data) };
            let done = train(task, "log evidence", quiet, None)?;
            if done.interrupted() {
                return Err(stopped());
            }
            match &done.fitted.model {
                Learnt::Series(model) => {
                    let model = model.clone();
                    done.fitted.map(|_| model)
                }
                _ => return Err(Failure::work("the model is none of series; this is a fault of latentgp")),
            }
        }
    };
    let evidence = fitted.evidence + jacobian;
    let (iterations, converged) = (fitted.iterations, fitted.converged);
    Ok(Chosen { units, model: fitted.model, iterations, converged, evidence })
}

fn stopped() -> Failure {
    Failure::interrupted("interrupted before the fit ended; nothing is kept")
}

/// The papers' protocol, which has a start and an optimiser of its own.
fn by_papers(job: &Job, known: &Mat, inputs: Option<&Mat>, quiet: bool) -> Outcome<Fitted<Narx>> {
    let kernel = kernel::parse(&job.kernel, job.lags.width())?;
    let start = Narx::new(known, inputs, job.lags.clone(), kernel, &job.options)?;
    let progress = Progress::new(quiet, Search::runs(start.papers_starts()), job.fitting.max_iterations);
    let fitted = start.papers_fit(&|run| {
        progress.see(run);
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if fitted.stop_reason == StopReason::Asked {
        return Err(stopped());
    }
    progress.finish(&format!(
        "{}, log evidence {}: {}",
        words::count(fitted.iterations, "iteration"),
        words::short(fitted.evidence),
        fitted.stop_reason
    ));
    Ok(fitted)
}
