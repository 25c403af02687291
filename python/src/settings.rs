//! What estimators tell a fit, by name: dictionaries with exactly these keys.

use latentgp::Result;
use latentgp::data::Scale;
use latentgp::expectation::{self, Expectation};
use latentgp::model::MeanKind;
use latentgp::model::narx::{Draws, Propagation, Simulation};
use pyo3::FromPyObject;

/// Of a latent space.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct LatentSettings {
    pub latent_dim: usize,
    pub inducing: usize,
    pub expectation: String,
    pub scale: String,
    pub kernel: String,
    pub max_iter: usize,
    pub restarts: usize,
    pub seed: u64,
    pub columns: Vec<String>,
}

/// Of a regression.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct RegressionSettings {
    /// `gp`, `sparse`, `spgp-dr` or `vdmgp`.
    pub model: String,
    /// `gaussian`, `bernoulli`, `categorical` or `poisson`.
    pub likelihood: String,
    pub latent_dim: usize,
    pub inducing: usize,
    pub mean: String,
    pub expectation: String,
    pub scale: String,
    pub kernel: String,
    /// Whether hyperparameters start wide, as where the kernel is given without values.
    pub wide: bool,
    pub max_iter: usize,
    pub restarts: usize,
    pub seed: u64,
    pub inputs: Vec<String>,
    pub input_std: Vec<Option<String>>,
    pub targets: Vec<String>,
    pub classes: Vec<String>,
}

/// The expectation of an expression.
pub fn rule(expression: &str) -> Result<Box<dyn Expectation>> {
    expectation::parse(expression)
}

/// The scaling of a name.
pub fn scale(name: &str) -> Result<Scale> {
    name.parse()
}

/// The mean function of a name; estimators let no other through.
pub fn mean(name: &str) -> MeanKind {
    match name {
        "constant" => MeanKind::Constant,
        "linear" => MeanKind::Linear,
        _ => MeanKind::Zero,
    }
}

/// Of a GP-NARX.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct NarxSettings {
    pub lags: usize,
    pub delays: Vec<usize>,
    pub inducing: Option<usize>,
    pub scale: String,
    pub kernel: String,
    /// Whether hyperparameters start wide, as where the kernel is given without values.
    pub wide: bool,
    pub max_iter: usize,
    pub restarts: usize,
    pub seed: u64,
    pub names: Vec<String>,
    pub exogenous_names: Vec<String>,
}

/// Of a simulation.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct SimulationSettings {
    /// `independent`, `correlated`, `none` or `trajectories`.
    pub propagation: String,
    pub expectation: String,
    pub trajectories: usize,
    pub seed: u64,
}

impl SimulationSettings {
    /// As the library has it.
    pub fn simulation(&self) -> Result<Simulation> {
        let by = rule(&self.expectation)?;
        let propagation = match self.propagation.as_str() {
            "none" => Propagation::Certain,
            "correlated" => Propagation::Correlated(by),
            "trajectories" => {
                let (count, seed) = (self.trajectories, self.seed);
                Propagation::Trajectories { count, seed, draws: Draws::Function }
            }
            _ => Propagation::Independent(by),
        };
        Ok(Simulation { propagation, ..Simulation::default() })
    }
}
