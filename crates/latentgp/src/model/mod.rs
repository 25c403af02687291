//! Models: they name the parameters, call kernels, expectations and evidence, and chain gradients back.

pub(crate) mod latent;
pub(crate) mod regression;
pub(crate) mod series;
pub(crate) mod shared;

pub use crate::fit::{Fitted, Restarts, fit};
pub use latent::bayesian_gplvm::{
    BayesianGplvm, BayesianSpace, Certificate, Collapse, Imputed, Latent, PapersTraining, Training,
    TrainingPlan,
};
pub use latent::gplvm::{Gplvm, GplvmPlan, GplvmTraining, LatentPrior, Positions};
pub use latent::ppca::{Ppca, PpcaFit, PpcaGrad, PpcaLatent, PpcaOptions, PpcaPlan, PpcaSpace};
pub(crate) use latent::restore as restore_space;
pub use latent::space::{LatentSpace, Placed};
pub(crate) use regression::restore as restore_regression;
pub use regression::*;
pub use series::narx::{self, Narx, NarxOptions};
pub use series::{SeriesModel, Windows};
pub use shared::init::{InducingInit, Init};
pub use shared::noise::{NOISE_FLOOR, NoiseKind, noise_at_floor};
pub use shared::outputs::Outputs;
pub use shared::prior;
pub use shared::sparse_bound::Jitter;
pub(crate) use shared::supervised::check_range;
pub use shared::supervised::{LARGEST, Supervised, beyond_range};
pub use shared::uncertain_inputs::{ErrorEvidence, InputOptions, ReadCells, Treatment, UncertainInputs};

use crate::error::Result;
use crate::param::Parameterized;
use crate::posterior::Posterior;
use rand_chacha::ChaCha8Rng;

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

    /// Moves to where a restart after the first had better start, if the model knows; returns whether it does. The
    /// others are shaken.
    fn another_start(&mut self, _restart: usize) -> bool {
        false
    }

    /// Whether two evaluations at the same point may differ, since the expectation draws afresh.
    fn is_stochastic(&self) -> bool {
        false
    }

    /// Chooses inducing inputs anew, for a restart, where the model places them itself.
    fn choose_inducing(&mut self, _rng: &mut ChaCha8Rng) -> Result<()> {
        Ok(())
    }

    /// Draws new nodes for the given step, where the expectation draws afresh.
    fn renew(&mut self, _step: u64) {}

    /// In how many parts threads share the evidence and its gradient, if these are short: between the steps of a fit as many
    /// threads stay awake. One where the evidence asks for threads in its own ways.
    fn parts(&self) -> usize {
        1
    }
}
