//! What estimators tell a fit, by name: dictionaries with exactly these keys.

use latentgp::Result;
use latentgp::data::Scale;
use latentgp::expectation::{self, Expectation};
use latentgp::model::MeanKind;
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
