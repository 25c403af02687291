//! Monte Carlo: independent draws for every point, reparametrised as x = μ + √S ∘ ξ.

use super::normals::Normals;
use super::rule::{DEFAULT_MAX_NODES, Rule};
use crate::error::{Error, Result};
use crate::mat::Mat;
use crate::scratch::Pooled;
use std::sync::Arc;

/// `samples` standard normal draws a point.
///
/// The draws of a point follow from the seed and its row among those that it is computed with. They stay the same at every step of a fit,
/// so that L-BFGS works, unless `fresh`: then every step has new ones, and the fit is by Adam.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MonteCarlo {
    /// Draws a point.
    pub samples: usize,
    /// Their seed.
    pub seed: u64,
    /// Whether every step of a fit draws anew.
    pub fresh: bool,
    /// More draws than this are refused.
    pub max_nodes: usize,
    step: u64,
}

impl Default for MonteCarlo {
    fn default() -> Self {
        MonteCarlo::new(200, 0)
    }
}

impl MonteCarlo {
    /// Fixed draws.
    pub fn new(samples: usize, seed: u64) -> Self {
        MonteCarlo { samples, seed, fresh: false, max_nodes: DEFAULT_MAX_NODES, step: 0 }
    }

    /// What the draws of a point are made of.
    fn normals(&self, row: usize) -> Normals {
        Normals::new(self.seed ^ self.step.wrapping_mul(0x9E37_79B9_7F4A_7C15), row as u64)
    }
}

impl Rule for MonteCarlo {
    fn expression(&self) -> String {
        let fresh = if self.fresh { ", fresh=true" } else { "" };
        format!("monte_carlo(samples={}, seed={}{fresh})", self.samples, self.seed)
    }
    fn count(&self, _: usize) -> f64 {
        self.samples as f64
    }
    fn weights(&self, _: usize) -> Vec<f64> {
        Pooled::filled(self.samples, 1.0 / self.samples as f64).into_vec()
    }
    fn nodes(&self, dim: usize) -> Mat {
        let mut nodes = Mat::zeros(self.samples, dim);
        self.normals(0).fill(nodes.as_mut_slice());
        nodes
    }
    fn has_own_nodes(&self) -> bool {
        true
    }
    fn draw(&self, dim: usize, row: usize, from: usize, out: &mut [f64]) {
        let mut normals = self.normals(row);
        normals.skip_to(from * dim);
        normals.fill(out);
    }
    fn max_nodes(&self) -> usize {
        self.max_nodes
    }
    fn set_max_nodes(&mut self, limit: usize) {
        self.max_nodes = limit;
    }
    fn check_rule(&self, _: usize) -> Result<()> {
        match self.samples {
            0 => Err(Error::invalid("monte_carlo", "samples of at least 1", 0)),
            _ => Ok(()),
        }
    }
    fn renew(&mut self, step: u64) {
        if self.fresh {
            self.step = step;
        }
    }
    fn step(&self) -> u64 {
        self.step
    }
    fn is_stochastic(&self) -> bool {
        self.fresh
    }
}

/// Monte Carlo with draws that the caller lists: `draws[n]` is T×Q for point n, weights 1/T.
#[derive(Clone, Debug)]
pub struct GivenDraws {
    draws: Arc<Vec<Mat>>,
}

impl GivenDraws {
    /// Errs when there are none, or when the points' draws differ in shape.
    pub fn new(draws: Vec<Mat>) -> Result<Self> {
        let first = draws.first().map(Mat::shape).unwrap_or_default();
        match draws.iter().find(|d| d.shape() != first || d.is_empty()) {
            None if !draws.is_empty() => Ok(GivenDraws { draws: Arc::new(draws) }),
            other => {
                let found = other.map_or("none".into(), Mat::shape);
                Err(Error::shape("draws of a point", "the same T × Q for every point", found))
            }
        }
    }
}

impl Rule for GivenDraws {
    fn expression(&self) -> String {
        "given_draws".into()
    }
    fn count(&self, _: usize) -> f64 {
        self.draws[0].rows() as f64
    }
    fn weights(&self, _: usize) -> Vec<f64> {
        let count = self.draws[0].rows();
        Pooled::filled(count, 1.0 / count as f64).into_vec()
    }
    fn nodes(&self, _: usize) -> Mat {
        self.draws[0].clone()
    }
    fn has_own_nodes(&self) -> bool {
        true
    }
    fn draw(&self, dim: usize, row: usize, from: usize, out: &mut [f64]) {
        let own = self.draws[row.min(self.draws.len() - 1)].as_slice();
        out.copy_from_slice(&own[from * dim..from * dim + out.len()]);
    }
    fn check_rule(&self, dim: usize) -> Result<()> {
        match self.draws[0].cols() {
            found if found != dim => Err(Error::shape("columns of the given draws", dim, found)),
            _ => Ok(()),
        }
    }
}
