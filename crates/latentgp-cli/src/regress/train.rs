//! Fits any of the regressions, once or for every fold.

use super::job::Job;
use super::rows::Rows;
use super::{ModelName, Noise};
use crate::failure::{Failure, Outcome};
use crate::fit::Progress;
use crate::given::gives_values;
use crate::{interrupt, words};
use latentgp::Mat;
use latentgp::data::{Scale, Scaling};
use latentgp::file::{RegressionReport, TrainedRegression};
use latentgp::kernel;
use latentgp::likelihood::Observations;
use latentgp::model::{
    Fitted, Laplace, OnProgress, ProjectionStart, Regression, RegressionOptions, Regressor, Restarts,
    SparseOptions, SparseRegression, SpgpDrTraining, Svgp, VARIANCE_PRIOR, VdmgpTraining,
};
use std::ops::ControlFlow;
use std::time::Instant;

/// Fits the model to the rows; tells of its progress unless `quiet`.
pub fn fit(job: &Job, rows: &Rows, quiet: bool) -> Outcome<TrainedRegression> {
    let began = Instant::now();
    let progress = Progress::new(quiet, job.restarts, job.max_iterations);
    let watch = |p: &latentgp::model::Progress| {
        progress.see(p.restart, p.iteration, p.bound);
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let fitted = regressor(job, rows, &watch)?;
    let report = RegressionReport {
        log_evidence: fitted.evidence,
        iterations: fitted.iterations,
        evaluations: fitted.evaluations,
        converged: fitted.converged,
        stop_reason: fitted.stop_reason,
        seconds: began.elapsed().as_secs_f64(),
        restarts: fitted.runs,
        kernel: job.kernel.clone(),
        scale: (job.likelihood == Noise::Gaussian).then_some(job.scale),
        seed: job.seed,
        scores: Vec::new(),
        trace: fitted.trace,
    };
    progress.finish(&format!(
        "{}, log evidence {}, {:.1} s: {}",
        words::count(report.iterations, "iteration"),
        words::short(report.log_evidence),
        report.seconds,
        report.stop_reason
    ));
    Ok(TrainedRegression {
        model: fitted.model,
        inputs: rows.inputs.clone(),
        input_std: rows.input_std.clone(),
        targets: rows.targets.clone(),
        classes: rows.classes.clone(),
        report,
    })
}

fn wrap<M>(fitted: Fitted<M>, of: impl Fn(Box<M>) -> Regressor) -> Fitted<Regressor> {
    Fitted {
        model: of(Box::new(fitted.model)),
        evidence: fitted.evidence,
        iterations: fitted.iterations,
        evaluations: fitted.evaluations,
        converged: fitted.converged,
        stop_reason: fitted.stop_reason,
        trace: fitted.trace,
        runs: fitted.runs,
    }
}

fn regressor(job: &Job, rows: &Rows, watch: &OnProgress<'_>) -> Outcome<Fitted<Regressor>> {
    let projected = matches!(job.model, ModelName::SpgpDr | ModelName::Vdmgp);
    let dim = if projected { job.latent_dim } else { rows.inputs.len() };
    let kernel = kernel::parse(&job.kernel, dim)?;
    let how = Restarts {
        runs: job.restarts,
        max_iterations: job.max_iterations,
        seed: job.seed,
        ..Restarts::default()
    };
    if job.likelihood != Noise::Gaussian {
        return other_noise(job, rows, kernel, &how, watch);
    }
    let (x, y, std) = (&rows.x, &rows.y, rows.std.as_ref());
    Ok(match job.model {
        ModelName::Gp => {
            let options = RegressionOptions {
                scale: job.scale,
                scale_inputs: Scale::Standardize,
                mean: job.mean,
                ..RegressionOptions::default()
            };
            let start = Regression::with(x.clone(), y.clone(), kernel, &options)?;
            wrap(how.fit(&start, watch)?, Regressor::Gp)
        }
        ModelName::Sparse if !job.fitc => {
            let options = SparseOptions {
                inducing: job.inducing,
                scale: job.scale,
                scale_inputs: Scale::Standardize,
                expectation: job.expectation.clone(),
                seed: job.seed,
                ..SparseOptions::default()
            };
            let start = SparseRegression::new(x.clone(), rows.std.clone(), y.clone(), kernel, &options)?;
            wrap(start.fit(&how, watch)?, Regressor::Sparse)
        }
        ModelName::Sparse | ModelName::SpgpDr => {
            wrap(projected_fitc(job).fit_uncertain(x, std, y, &*kernel, watch)?, Regressor::SpgpDr)
        }
        ModelName::Vdmgp => {
            let training = VdmgpTraining {
                latent_dim: job.latent_dim,
                inducing: job.inducing,
                prior: job.prior.clone(),
                expectation: job.expectation.clone(),
                scale_outputs: job.scale,
                max_iterations: job.max_iterations,
                restarts: job.restarts,
                seed: job.seed,
                ..VdmgpTraining::default()
            };
            wrap(training.fit_uncertain(x, std, y, &*kernel, watch)?, Regressor::Vdmgp)
        }
    })
}

/// FITC on a projection, which is the identity where plain FITC is asked for.
fn projected_fitc(job: &Job) -> SpgpDrTraining {
    SpgpDrTraining {
        latent_dim: job.latent_dim,
        inducing: job.inducing,
        projection: if job.fitc { ProjectionStart::Identity } else { ProjectionStart::Pca },
        scale_outputs: job.scale,
        max_iterations: job.max_iterations,
        restarts: job.restarts,
        seed: job.seed,
        ..SpgpDrTraining::default()
    }
}

/// Classes and counts.
fn other_noise(
    job: &Job,
    rows: &Rows,
    kernel: Box<dyn kernel::Kernel>,
    how: &Restarts,
    watch: &OnProgress<'_>,
) -> Outcome<Fitted<Regressor>> {
    let inputs = Scaling::fit(&rows.x, Scale::Standardize)?;
    let (x, observations) = (inputs.apply(&rows.x)?, observations(job, rows)?);
    let wide = !gives_values(&job.kernel, &*kernel);
    Ok(match job.model {
        ModelName::Gp => {
            let mut start = Laplace::new(x, observations, kernel)?;
            if wide {
                start.wide_start();
            }
            if job.classes() {
                start = start.with_variance_prior(VARIANCE_PRIOR);
            }
            wrap(how.fit(&start, watch)?, |m| Regressor::Laplace(m, inputs.clone()))
        }
        _ => {
            let mut start = Svgp::new(x, observations, kernel, job.inducing, job.seed)?;
            if wide {
                start.wide_start();
            }
            wrap(how.fit(&start, watch)?, |m| Regressor::Svgp(m, inputs.clone()))
        }
    })
}

fn observations(job: &Job, rows: &Rows) -> Outcome<Observations> {
    let y: Mat = rows.y.clone();
    let labels = || y.as_slice().iter().map(|c| *c as usize).collect::<Vec<usize>>();
    Ok(match job.likelihood {
        Noise::Bernoulli => Observations::bernoulli(&labels(), job.link).map_err(Failure::data)?,
        Noise::Categorical => {
            Observations::categorical(&labels(), rows.classes.len()).map_err(Failure::data)?
        }
        _ => Observations::poisson(y.as_slice()).map_err(Failure::data)?,
    })
}
