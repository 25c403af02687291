//! Quasi-Monte Carlo: scrambled Sobol points, pushed through the normal quantile.

use super::rule::{DEFAULT_MAX_NODES, Rule};
use super::sobol;
use crate::error::{Error, Result};
use crate::mat::Mat;
use crate::scratch::Pooled;
use crate::special::normal_quantile;

/// `samples` scrambled Sobol points, the same for every point and at every step: deterministic, so that
/// L-BFGS works, and with an error that falls nearly as 1/samples for smooth kernels.
///
/// Each column is centred and scaled to mean 0 and variance 1. A power of two serves best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuasiMonteCarlo {
    /// Number of nodes.
    pub samples: usize,
    /// Seed of the scrambling.
    pub seed: u64,
    /// More nodes than this are refused.
    pub max_nodes: usize,
}

impl Default for QuasiMonteCarlo {
    fn default() -> Self {
        QuasiMonteCarlo::new(256, 0)
    }
}

impl QuasiMonteCarlo {
    /// `samples` nodes.
    pub fn new(samples: usize, seed: u64) -> Self {
        QuasiMonteCarlo { samples, seed, max_nodes: DEFAULT_MAX_NODES }
    }
}

impl Rule for QuasiMonteCarlo {
    fn expression(&self) -> String {
        format!("quasi_monte_carlo(samples={}, seed={})", self.samples, self.seed)
    }
    fn count(&self, _: usize) -> f64 {
        self.samples as f64
    }
    fn weights(&self, _: usize) -> Vec<f64> {
        Pooled::filled(self.samples, 1.0 / self.samples as f64).into_vec()
    }
    fn nodes(&self, dim: usize) -> Mat {
        let uniform = sobol::points(self.samples, dim, Some(self.seed));
        let normal = uniform.into_iter().map(normal_quantile).collect();
        let mut xi = Mat::from_vec(self.samples, dim, normal).expect("samples × dim numbers");
        let count = self.samples as f64;
        for q in 0..dim {
            let mean = (0..self.samples).map(|s| xi[(s, q)]).sum::<f64>() / count;
            let var = (0..self.samples).map(|s| (xi[(s, q)] - mean).powi(2)).sum::<f64>() / count;
            let std = if var > 0.0 { var.sqrt() } else { 1.0 };
            (0..self.samples).for_each(|s| xi[(s, q)] = (xi[(s, q)] - mean) / std);
        }
        xi
    }
    fn max_nodes(&self) -> usize {
        self.max_nodes
    }
    fn set_max_nodes(&mut self, limit: usize) {
        self.max_nodes = limit;
    }
    fn check_rule(&self, dim: usize) -> Result<()> {
        if self.samples == 0 {
            return Err(Error::invalid("quasi_monte_carlo", "samples of at least 1", 0));
        }
        if dim > sobol::MAX_DIM {
            let expected = format!("at most {} input columns (try monte_carlo)", sobol::MAX_DIM);
            return Err(Error::invalid("quasi_monte_carlo", expected, dim));
        }
        Ok(())
    }
}
