//! Models: they name the parameters, call kernels, expectations and evidence, and chain gradients back.

mod answers;
mod bayesian_gplvm;
mod certificate;
mod exact_process;
mod expected_rows;
mod gplvm;
mod gplvm_density;
mod gplvm_rows;
mod joint;
mod kzz;
mod laplace;
mod latent;
mod latent_space;
mod missing_inputs;
pub mod narx;
mod noise;
mod outputs;
mod papers;
mod pca;
mod ppca;
mod ppca_rows;
mod regression;
mod regressor;
mod relevance;
mod restarts;
mod row_density;
mod run;
mod sparse_bound;
mod sparse_regression;
mod spgp_dr;
mod spgp_dr_training;
mod stages;
mod supervised;
mod svgp;
mod training;
mod using;
mod vdmgp;
mod vdmgp_training;
mod weight_prior;

pub use answers::{Answers, LEVELS, Scores, count_nlpd};
pub use bayesian_gplvm::BayesianGplvm;
pub use certificate::Certificate;
pub use gplvm::{Gplvm, GplvmTraining, LatentPrior};
pub use gplvm_rows::Positions;
pub use laplace::{Approximation, Laplace, VARIANCE_PRIOR};
pub use latent::Latent;
pub use latent_space::{LatentSpace, Placed};
pub use missing_inputs::UncertainInputs;
pub use narx::{Narx, NarxOptions};
pub use noise::{NOISE_FLOOR, noise_at_floor};
pub use outputs::Outputs;
pub use papers::PapersTraining;
pub use ppca::{Ppca, PpcaGrad, PpcaLatent, PpcaOptions};
pub use regression::{MeanKind, Regression, RegressionOptions};
pub use regressor::Regressor;
pub use relevance::{Direction, InputShare, USEFUL, WeightRelevance};
pub use restarts::{Fitted, Restarts};
pub use run::{Place, Run, Stage};
pub use sparse_bound::Jitter;
pub use sparse_regression::{SparseOptions, SparseRegression};
pub use spgp_dr::SpgpDr;
pub use spgp_dr_training::{ProjectionStart, SpgpDrTraining};
pub use supervised::{LARGEST, Supervised, beyond_range};
pub use svgp::{MiniBatch, Svgp};
pub use training::{Fit, OnProgress, OnRun, Progress, Training};
pub use using::Imputed;
pub use vdmgp::{Terms, Vdmgp};
pub use vdmgp_training::VdmgpTraining;
pub use weight_prior::WeightPrior;

use crate::blocks;
use crate::error::Result;
use crate::optim::{Optimizer, Report, Step, Watch};
use crate::param::{self, Parameterized};
use crate::posterior::Posterior;

/// A model with a log evidence, or a lower bound of it.
pub trait Model: Parameterized {
    /// F without its [`constant`](Self::constant); *sets* `grad` to ∂F/∂θ in the order of `params()`.
    ///
    /// This is what optimisers see: neither their steps nor their stopping depend on the units of the data.
    fn varying_evidence(&self, grad: Option<&mut [f64]>) -> Result<f64>;

    /// The part of F that no parameter changes, such as the Jacobian of the scaling.
    fn constant(&self) -> f64 {
        0.0
    }

    /// F, for the data as given; *sets* `grad` to ∂F/∂θ in the order of `params()`.
    fn log_evidence(&self, grad: Option<&mut [f64]>) -> Result<f64> {
        Ok(self.varying_evidence(grad)? + self.constant())
    }

    /// What predictions are made from.
    fn posterior(&self) -> Result<Posterior>;

    /// Draws new nodes for the given step, where the expectation draws afresh.
    fn renew(&mut self, _step: u64) {}

    /// In how many parts threads share the evidence and its gradient, if these are short: between the steps of a fit as many
    /// threads stay awake. One where the evidence asks for threads in its own ways.
    fn parts(&self) -> usize {
        1
    }
}

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
