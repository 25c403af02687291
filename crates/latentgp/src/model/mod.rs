//! Models: they name the parameters, call kernels, expectations and evidence, and chain gradients back.

mod bayesian_gplvm;
mod certificate;
mod laplace;
mod latent;
mod outputs;
mod pca;
mod restarts;
mod svgp;
mod training;

pub use bayesian_gplvm::{BayesianGplvm, Jitter};
pub use certificate::Certificate;
pub use laplace::{Approximation, Laplace, VARIANCE_PRIOR};
pub use latent::Latent;
pub use outputs::Outputs;
pub use restarts::fit_best;
pub use svgp::{MiniBatch, Svgp};
pub use training::{Fit, Progress, Training};

use crate::error::Result;
use crate::optim::{Optimizer, Report, Watch};
use crate::param::{self, Parameterized};
use crate::posterior::Posterior;

/// A model with a log evidence, or a lower bound of it.
pub trait Model: Parameterized {
    /// F, for the data as given; adds nothing but *sets* `grad` to ∂F/∂θ in the order of `params()`.
    fn log_evidence(&self, grad: Option<&mut [f64]>) -> Result<f64>;

    /// What predictions are made from.
    fn posterior(&self) -> Result<Posterior>;

    /// Draws new nodes for the given step, where the expectation draws afresh.
    fn renew(&mut self, _step: u64) {}
}

/// Maximises F + Σ log p(θ) over the free parameters; the model is left at the best point found.
pub fn fit<M: Model + ?Sized>(model: &mut M, how: &dyn Optimizer, watch: &mut Watch<'_>) -> Result<Report> {
    let mut u = param::flatten(model);
    let mut grad = vec![0.0; param::count(model)];
    let mut step = 0;
    let mut objective = |u: &[f64], out: &mut [f64]| -> Result<f64> {
        param::unflatten(model, u);
        model.renew(step);
        step += 1;
        let value = model.log_evidence(Some(&mut grad))? + param::log_prior(model, Some(&mut grad));
        param::chain(model, &grad, out);
        out.iter_mut().for_each(|g| *g = -*g);
        Ok(-value)
    };
    let report = how.minimize(&mut u, &mut objective, watch);
    param::unflatten(model, &u);
    report
}
