//! Regressions of values, classes and counts.

use super::report;
use crate::settings::{RegressionSettings, mean, rule, scale};
use crate::work::{Job, Seen};
use latentgp::data::{Scale, Scaling};
use latentgp::expectation::Gaussians;
use latentgp::file::TrainedRegression;
use latentgp::kernel::Kernel;
use latentgp::likelihood::{Link, Observations};
use latentgp::model::{
    Fitted, Laplace, OnProgress, Regression, RegressionOptions, Regressor, Restarts, SparseOptions,
    SparseRegression, SpgpDrTraining, Svgp, VARIANCE_PRIOR, VdmgpTraining,
};
use latentgp::{Mat, Result};
use std::time::Instant;

/// A regression of Y on X.
pub struct RegressionJob {
    x: Mat,
    /// Standard deviations of X, where it is known up to errors.
    std: Option<Mat>,
    y: Mat,
    kernel: Box<dyn Kernel>,
    settings: RegressionSettings,
    start: Start,
    began: Instant,
}

/// What a fit starts from.
enum Start {
    Gp(Regression),
    Sparse(SparseRegression),
    SpgpDr(SpgpDrTraining),
    Vdmgp(VdmgpTraining),
    Laplace(Laplace, Scaling),
    Svgp(Svgp, Scaling),
}

impl RegressionJob {
    pub fn new(
        x: Mat,
        std: Option<Mat>,
        y: Mat,
        kernel: Box<dyn Kernel>,
        settings: RegressionSettings,
    ) -> Result<Self> {
        let start = match settings.likelihood.as_str() {
            "gaussian" => of_values(&x, std.as_ref(), &y, &kernel, &settings)?,
            _ => of_classes_or_counts(&x, std.as_ref(), &y, &kernel, &settings)?,
        };
        Ok(RegressionJob { x, std, y, kernel, settings, start, began: Instant::now() })
    }

    fn restarts(&self) -> Restarts {
        let s = &self.settings;
        Restarts { runs: s.restarts, max_iterations: s.max_iter, seed: s.seed, ..Restarts::default() }
    }

    fn trained(&self, fitted: Fitted<Regressor>) -> Result<TrainedRegression> {
        let s = &self.settings;
        let scale = if s.likelihood == "gaussian" { Some(scale(&s.scale)?) } else { None };
        Ok(TrainedRegression {
            report: report(&fitted, &s.kernel, scale, s.seed, self.began),
            model: fitted.model,
            inputs: s.inputs.clone(),
            input_std: s.input_std.clone(),
            targets: s.targets.clone(),
            classes: s.classes.clone(),
        })
    }
}

impl Job for RegressionJob {
    type Trained = TrainedRegression;

    fn fit(&self, watch: &OnProgress<'_>) -> Result<TrainedRegression> {
        let (how, kernel, std) = (self.restarts(), &*self.kernel, self.std.as_ref());
        self.trained(match &self.start {
            Start::Gp(m) => wrap(how.fit(m, watch)?, Regressor::Gp),
            Start::Sparse(m) => wrap(m.fit(&how, watch)?, Regressor::Sparse),
            Start::SpgpDr(t) => {
                wrap(t.fit_uncertain(&self.x, std, &self.y, kernel, watch)?, Regressor::SpgpDr)
            }
            Start::Vdmgp(t) => wrap(t.fit_uncertain(&self.x, std, &self.y, kernel, watch)?, Regressor::Vdmgp),
            Start::Laplace(m, s) => wrap(how.fit(m, watch)?, |m| Regressor::Laplace(m, s.clone())),
            Start::Svgp(m, s) => wrap(how.fit(m, watch)?, |m| Regressor::Svgp(m, s.clone())),
        })
    }

    fn at(&self, seen: &Seen) -> Result<TrainedRegression> {
        let (restart, kernel, std) = (seen.progress.restart, &*self.kernel, self.std.as_ref());
        let mut model = match &self.start {
            Start::Gp(m) => Regressor::Gp(Box::new(m.clone())),
            Start::Sparse(m) => Regressor::Sparse(Box::new(m.clone())),
            Start::SpgpDr(t) => {
                Regressor::SpgpDr(Box::new(t.start_uncertain(&self.x, std, &self.y, kernel, restart)?))
            }
            Start::Vdmgp(t) => {
                Regressor::Vdmgp(Box::new(t.start_uncertain(&self.x, std, &self.y, kernel, restart)?))
            }
            Start::Laplace(m, s) => Regressor::Laplace(Box::new(m.clone()), s.clone()),
            Start::Svgp(m, s) => Regressor::Svgp(Box::new(m.clone()), s.clone()),
        };
        seen.progress.place_in(model.parameters_mut());
        self.trained(seen.fitted(model))
    }
}

/// Gaussian noise.
fn of_values(
    x: &Mat,
    std: Option<&Mat>,
    y: &Mat,
    kernel: &dyn Kernel,
    s: &RegressionSettings,
) -> Result<Start> {
    let (expectation, scale) = (rule(&s.expectation)?, scale(&s.scale)?);
    Ok(match s.model.as_str() {
        "spgp-dr" => Start::SpgpDr(SpgpDrTraining {
            latent_dim: s.latent_dim,
            inducing: s.inducing,
            scale_outputs: scale,
            max_iterations: s.max_iter,
            restarts: s.restarts,
            seed: s.seed,
            ..SpgpDrTraining::default()
        }),
        "vdmgp" => Start::Vdmgp(VdmgpTraining {
            latent_dim: s.latent_dim,
            inducing: s.inducing,
            expectation,
            scale_outputs: scale,
            max_iterations: s.max_iter,
            restarts: s.restarts,
            seed: s.seed,
            ..VdmgpTraining::default()
        }),
        "sparse" => {
            let options = SparseOptions {
                inducing: s.inducing,
                scale,
                scale_inputs: Scale::Standardize,
                expectation,
                seed: s.seed,
                ..SparseOptions::default()
            };
            Start::Sparse(SparseRegression::new(
                x.clone(),
                std.cloned(),
                y.clone(),
                kernel.boxed(),
                &options,
            )?)
        }
        _ => {
            let options = RegressionOptions {
                scale,
                scale_inputs: Scale::Standardize,
                mean: mean(&s.mean),
                expectation,
                ..RegressionOptions::default()
            };
            Start::Gp(Regression::with(x.clone(), y.clone(), kernel.boxed(), &options)?)
        }
    })
}

/// Classes, by their numbers, and counts.
fn of_classes_or_counts(
    x: &Mat,
    std: Option<&Mat>,
    y: &Mat,
    kernel: &dyn Kernel,
    s: &RegressionSettings,
) -> Result<Start> {
    let labels: Vec<usize> = y.as_slice().iter().map(|c| *c as usize).collect();
    let observations = match s.likelihood.as_str() {
        "bernoulli" => Observations::bernoulli(&labels, Link::Logit)?,
        "categorical" => Observations::categorical(&labels, s.classes.len())?,
        _ => Observations::intensities(y.as_slice())?,
    };
    let inputs = Scaling::fit(x, Scale::Standardize)?;
    let x = inputs.apply(x)?;
    if s.model != "sparse" {
        let mut start = Laplace::new(x, observations, kernel.boxed())?;
        if s.likelihood != "poisson" {
            start = start.with_variance_prior(VARIANCE_PRIOR);
        }
        if s.wide {
            start.wide_start();
        }
        return Ok(Start::Laplace(start, inputs));
    }
    let mut model = match std {
        None => Svgp::new(x, observations, kernel.boxed(), s.inducing, s.seed)?,
        Some(std) => {
            let var = Mat::from_fn(std.rows(), std.cols(), |i, j| (std[(i, j)] / inputs.scale[j]).powi(2));
            Svgp::uncertain(&Gaussians::new(x, var)?, &observations, kernel.boxed(), s.inducing, s.seed)?
        }
    };
    if s.wide {
        model.wide_start();
    }
    Ok(Start::Svgp(model, inputs))
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
