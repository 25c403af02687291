//! What estimators tell the library: recipes as JSON, simulations as dictionaries with exactly these keys.

use crate::error::Outcome;
use latentgp::model::narx::{Draws, Propagation, Simulation};
use latentgp::model::prior;
use latentgp::recipe::Recipe;
use latentgp::{Error, Result, expectation};
use pyo3::prelude::*;

/// A recipe in the words of its fields.
pub fn recipe(text: &str) -> Result<Recipe> {
    serde_json::from_str(text).map_err(|e| Error::invalid("recipe", "the options of a model", e))
}

/// The inverse of [`recipe`].
pub fn text(recipe: &Recipe) -> Result<String> {
    serde_json::to_string(recipe).map_err(|e| Error::invalid("recipe", "the options of a model", e))
}

/// The columns that a prior of latent positions asks for.
#[pyfunction]
pub fn prior_columns(expression: &str) -> Outcome<Vec<String>> {
    Ok(prior::parse(expression)?.columns())
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
        let by = expectation::parse(&self.expectation)?;
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
