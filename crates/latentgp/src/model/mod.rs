//! Models: they name the parameters, call kernels, expectations and evidence, and chain gradients back.

pub(crate) mod latent;
pub(crate) mod regression;
mod series;
pub(crate) mod shared;

pub use crate::fit::{Fitted, OnProgress, OnRun, Place, Progress, Restarts, Run, Stage, fit};
pub use latent::bayesian_gplvm::{
    BayesianGplvm, Certificate, Fit, Imputed, Latent, PapersTraining, Training,
};
pub use latent::gplvm::{Gplvm, GplvmTraining, LatentPrior, Positions};
pub use latent::ppca::{Ppca, PpcaGrad, PpcaLatent, PpcaOptions};
pub use latent::space::{LatentSpace, Placed};
pub use regression::answers::{Answers, LEVELS, Scores, count_nlpd};
pub use regression::exact::{MeanKind, Regression, RegressionOptions};
pub use regression::laplace::{Approximation, Laplace, VARIANCE_PRIOR};
pub use regression::regressor::Regressor;
pub use regression::sparse::{SparseOptions, SparseRegression};
pub use regression::spgp_dr::{ProjectionStart, SpgpDr, SpgpDrTraining};
pub use regression::svgp::{MiniBatch, Svgp};
pub use regression::vdmgp::{
    Direction, InputShare, Terms, USEFUL, Vdmgp, VdmgpTraining, WeightPrior, WeightRelevance,
};
pub use series::narx::{self, Narx, NarxOptions};
pub use shared::noise::{NOISE_FLOOR, noise_at_floor};
pub use shared::outputs::Outputs;
pub use shared::prior;
pub use shared::sparse_bound::Jitter;
pub use shared::supervised::{LARGEST, Supervised, beyond_range};
pub use shared::uncertain_inputs::UncertainInputs;

use crate::error::Result;
use crate::param::Parameterized;
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
