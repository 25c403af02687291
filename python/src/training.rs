//! From data and settings to trained models: the same steps as those of the command line.

use crate::settings::{LatentSettings, RegressionSettings, mean, rule, scale};
use latentgp::data::{Scale, Scaling};
use latentgp::file::{LatentReport, RegressionReport, Report, Trained, TrainedRegression, TrainedSpace};
use latentgp::kernel::Kernel;
use latentgp::likelihood::{Link, Observations};
use latentgp::model::{
    Fitted, GplvmTraining, Laplace, LatentSpace, OnProgress, Ppca, PpcaOptions, Regression,
    RegressionOptions, Regressor, Restarts, SparseOptions, SparseRegression, SpgpDrTraining, Svgp, Training,
    VARIANCE_PRIOR, VdmgpTraining,
};
use latentgp::optim::StopReason;
use latentgp::{Mat, Result};
use std::time::Instant;

/// A Bayesian GPLVM of Y.
pub fn bayesian_gplvm(
    y: &Mat,
    kernel: &dyn Kernel,
    s: &LatentSettings,
    watch: &OnProgress<'_>,
) -> Result<Trained> {
    let began = Instant::now();
    let training = Training {
        latent_dim: s.latent_dim,
        inducing: s.inducing,
        expectation: rule(&s.expectation)?,
        scale: scale(&s.scale)?,
        max_iterations: s.max_iter,
        restarts: s.restarts,
        seed: s.seed,
        ..Training::default()
    };
    training.expectation.check(kernel, s.latent_dim)?;
    let fit = training.fit(y, kernel, watch)?;
    Ok(Trained {
        report: Report::new(&fit, &training, &s.kernel, began.elapsed().as_secs_f64()),
        model: fit.model,
        columns: s.columns.clone(),
        labels: None,
        id: None,
        unfinished: None,
    })
}

/// A GPLVM of Y.
pub fn gplvm(
    y: &Mat,
    kernel: &dyn Kernel,
    s: &LatentSettings,
    watch: &OnProgress<'_>,
) -> Result<TrainedSpace> {
    let began = Instant::now();
    let training = GplvmTraining {
        latent_dim: s.latent_dim,
        scale: scale(&s.scale)?,
        max_iterations: s.max_iter,
        restarts: s.restarts,
        seed: s.seed,
        ..GplvmTraining::default()
    };
    let mut fitted = training.fit(y, kernel, watch)?;
    fitted.model.expectation = rule(&s.expectation)?;
    Ok(TrainedSpace {
        report: LatentReport {
            bound: fitted.evidence,
            iterations: fitted.iterations,
            evaluations: fitted.evaluations,
            converged: fitted.converged,
            stop_reason: fitted.stop_reason.to_string(),
            seconds: began.elapsed().as_secs_f64(),
            restarts: fitted.runs,
            kernel: s.kernel.clone(),
            scale: training.scale,
            seed: s.seed,
            trace: fitted.trace,
        },
        model: LatentSpace::Gplvm(Box::new(fitted.model)),
        columns: s.columns.clone(),
        labels: None,
    })
}

/// A probabilistic PCA of Y.
pub fn ppca(y: &Mat, s: &LatentSettings) -> Result<TrainedSpace> {
    let began = Instant::now();
    let options = PpcaOptions {
        latent_dim: s.latent_dim,
        scale: scale(&s.scale)?,
        max_iterations: s.max_iter,
        ..PpcaOptions::default()
    };
    let model = Ppca::fit(y, &options)?;
    let stop_reason = match (model.trace.is_empty(), model.converged) {
        (true, _) => "closed form".to_string(),
        (_, true) => StopReason::Value.to_string(),
        (_, false) => StopReason::MaxIterations.to_string(),
    };
    let bound = model.log_likelihood(y)?;
    Ok(TrainedSpace {
        report: LatentReport {
            bound,
            iterations: model.trace.len(),
            evaluations: model.trace.len(),
            converged: model.converged,
            stop_reason,
            seconds: began.elapsed().as_secs_f64(),
            restarts: vec![Some(bound)],
            kernel: s.kernel.clone(),
            scale: options.scale,
            seed: s.seed,
            trace: model.trace.clone(),
        },
        model: LatentSpace::Ppca(Box::new(model), y.clone()),
        columns: s.columns.clone(),
        labels: None,
    })
}

/// A regression of Y on X, whose standard deviations are `std` where they are uncertain.
pub fn regression(
    x: &Mat,
    std: Option<&Mat>,
    y: &Mat,
    kernel: Box<dyn Kernel>,
    s: &RegressionSettings,
    watch: &OnProgress<'_>,
) -> Result<TrainedRegression> {
    let began = Instant::now();
    let gaussian = s.likelihood == "gaussian";
    let fitted = match gaussian {
        true => values(x, std, y, kernel, s, watch)?,
        false => classes_or_counts(x, y, kernel, s, watch)?,
    };
    Ok(TrainedRegression {
        report: RegressionReport {
            log_evidence: fitted.evidence,
            iterations: fitted.iterations,
            evaluations: fitted.evaluations,
            converged: fitted.converged,
            stop_reason: fitted.stop_reason,
            seconds: began.elapsed().as_secs_f64(),
            restarts: fitted.runs,
            kernel: s.kernel.clone(),
            scale: if gaussian { Some(scale(&s.scale)?) } else { None },
            seed: s.seed,
            scores: Vec::new(),
            trace: fitted.trace,
        },
        model: fitted.model,
        inputs: s.inputs.clone(),
        input_std: s.input_std.clone(),
        targets: s.targets.clone(),
        classes: s.classes.clone(),
    })
}

fn restarts(s: &RegressionSettings) -> Restarts {
    Restarts { runs: s.restarts, max_iterations: s.max_iter, seed: s.seed, ..Restarts::default() }
}

/// Gaussian noise.
fn values(
    x: &Mat,
    std: Option<&Mat>,
    y: &Mat,
    kernel: Box<dyn Kernel>,
    s: &RegressionSettings,
    watch: &OnProgress<'_>,
) -> Result<Fitted<Regressor>> {
    let (expectation, scale) = (rule(&s.expectation)?, scale(&s.scale)?);
    Ok(match s.model.as_str() {
        "spgp-dr" => {
            let training = SpgpDrTraining {
                latent_dim: s.latent_dim,
                inducing: s.inducing,
                scale_outputs: scale,
                max_iterations: s.max_iter,
                restarts: s.restarts,
                seed: s.seed,
                ..SpgpDrTraining::default()
            };
            wrap(training.fit(x, y, &*kernel, watch)?, Regressor::SpgpDr)
        }
        "vdmgp" => {
            let training = VdmgpTraining {
                latent_dim: s.latent_dim,
                inducing: s.inducing,
                expectation,
                scale_outputs: scale,
                max_iterations: s.max_iter,
                restarts: s.restarts,
                seed: s.seed,
                ..VdmgpTraining::default()
            };
            wrap(training.fit(x, y, &*kernel, watch)?, Regressor::Vdmgp)
        }
        "sparse" => {
            let options = SparseOptions {
                inducing: s.inducing,
                scale,
                scale_inputs: Scale::Standardize,
                expectation,
                seed: s.seed,
                ..SparseOptions::default()
            };
            let start = SparseRegression::new(x.clone(), std.cloned(), y.clone(), kernel, &options)?;
            wrap(start.fit(&restarts(s), watch)?, Regressor::Sparse)
        }
        _ => {
            let options = RegressionOptions {
                scale,
                scale_inputs: Scale::Standardize,
                mean: mean(&s.mean),
                expectation,
                ..RegressionOptions::default()
            };
            let start = Regression::with(x.clone(), y.clone(), kernel, &options)?;
            wrap(restarts(s).fit(&start, watch)?, Regressor::Gp)
        }
    })
}

/// Classes, by their numbers, and counts.
fn classes_or_counts(
    x: &Mat,
    y: &Mat,
    kernel: Box<dyn Kernel>,
    s: &RegressionSettings,
    watch: &OnProgress<'_>,
) -> Result<Fitted<Regressor>> {
    let labels: Vec<usize> = y.as_slice().iter().map(|c| *c as usize).collect();
    let observations = match s.likelihood.as_str() {
        "bernoulli" => Observations::bernoulli(&labels, Link::Logit)?,
        "categorical" => Observations::categorical(&labels, s.classes.len())?,
        _ => Observations::poisson(y.as_slice())?,
    };
    let inputs = Scaling::fit(x, Scale::Standardize)?;
    let x = inputs.apply(x)?;
    Ok(match s.model.as_str() {
        "sparse" => {
            let start = Svgp::new(x, observations, kernel, s.inducing, s.seed)?;
            wrap(restarts(s).fit(&start, watch)?, |m| Regressor::Svgp(m, inputs.clone()))
        }
        _ => {
            let mut start = Laplace::new(x, observations, kernel)?;
            if s.likelihood != "poisson" {
                start = start.with_variance_prior(VARIANCE_PRIOR);
            }
            wrap(restarts(s).fit(&start, watch)?, |m| Regressor::Laplace(m, inputs.clone()))
        }
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
