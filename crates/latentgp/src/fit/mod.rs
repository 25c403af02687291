//! Fits: stages, restarts and the best of them.

pub(crate) mod restarts;
pub(crate) mod run;
pub(crate) mod stages;

pub use crate::model::latent::bayesian_gplvm::training::{OnProgress, OnRun, Progress};
pub use restarts::{Fitted, Restarts};
pub use run::{Place, Run, Stage};

use crate::blocks;
use crate::error::Result;
use crate::model::Model;
use crate::optim::{Optimizer, Report, Step, Watch};
use crate::param;

/// Maximises F + Σ log p(θ) over the free parameters; the model is left at the best point found.
pub fn fit<M: Model + ?Sized>(model: &mut M, how: &dyn Optimizer, watch: &mut Watch<'_>) -> Result<Report> {
    let mut u = param::flatten(model);
    let mut grad = vec![0.0; param::count(model)];
    let mut step = 0;
    let (constant, parts) = (model.constant(), model.parts());
    let mut objective = |u: &[f64], out: &mut [f64]| -> Result<f64> {
        step += 1;
        negative_evidence(model, step - 1, u, &mut grad, out)
    };
    let mut with_constant = |step: &Step<'_>| watch(&Step { value: step.value - constant, ..*step });
    let report = blocks::steps(parts, || how.minimize(&mut u, &mut objective, &mut with_constant));
    param::unflatten(model, &u);
    report.map(|r| Report { value: r.value - constant, ..r })
}

/// −F − Σ log p(θ) at u, less the [`constant`](Model::constant), and its gradient in u; `grad` is room for that in θ.
fn negative_evidence<M: Model + ?Sized>(
    model: &mut M,
    step: u64,
    u: &[f64],
    grad: &mut [f64],
    out: &mut [f64],
) -> Result<f64> {
    param::unflatten(model, u);
    model.renew(step);
    let value = model.varying_evidence(Some(grad))? + param::log_prior(model, Some(grad));
    param::chain(model, grad, out);
    out.iter_mut().for_each(|g| *g = -*g);
    Ok(-value)
}
