//! Expectations of functions of one Gaussian number, E[h(f)] ≈ Σ_s w_s h(m + √v ξ_s), by Gauss-Hermite.

use super::{Derivatives, Expected};
use crate::error::Result;
use crate::expectation::{GaussHermite, Rule};

/// Below this variance the node-wise derivative in it would drown in rounding; its limit takes over.
const SMALL_VARIANCE: f64 = 1e-16;

/// Points of the rule behind predictions.
const FINE: usize = 64;

/// Nodes and weights for N(0, 1).
#[derive(Clone, Debug, PartialEq)]
pub struct Quadrature {
    nodes: Vec<f64>,
    weights: Vec<f64>,
}

impl Quadrature {
    /// The rule of so many points, exact for polynomials of degree 2·points − 1; errs unless 1 to 64.
    pub fn new(points: usize) -> Result<Self> {
        let rule = GaussHermite::new(points);
        rule.check_rule(1)?;
        Ok(Quadrature { nodes: rule.nodes(1).into_vec(), weights: rule.weights(1) })
    }

    /// The rule of the most points, for predictions.
    pub fn fine() -> Self {
        Self::new(FINE).expect("a number of points that exists")
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        self.nodes.len()
    }

    /// The values f_s and weights w_s under N(mean, var).
    fn at(&self, mean: f64, var: f64) -> impl Iterator<Item = (f64, f64)> {
        let std = var.max(0.0).sqrt();
        self.nodes.iter().zip(&self.weights).map(move |(x, w)| (mean + std * x, *w))
    }

    /// Calls h with every value f_s and its weight w_s.
    pub fn each(&self, mean: f64, var: f64, mut h: impl FnMut(f64, f64)) {
        self.at(mean, var).for_each(|(f, w)| h(f, w));
    }

    /// E[h(f)] under N(mean, var).
    pub fn mean(&self, mean: f64, var: f64, h: impl Fn(f64) -> f64) -> f64 {
        self.at(mean, var).map(|(f, w)| w * h(f)).sum()
    }

    /// ln E[exp h(f)], without overflow.
    pub fn log_mean_exp(&self, mean: f64, var: f64, h: impl Fn(f64) -> f64) -> f64 {
        let terms: Vec<f64> = self.at(mean, var).map(|(f, w)| h(f) + w.ln()).collect();
        let top = terms.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
        if !top.is_finite() {
            return top;
        }
        top + terms.iter().map(|t| (t - top).exp()).sum::<f64>().ln()
    }

    /// E[h(f)] of a log density, and the derivatives of that sum in mean and variance.
    pub fn expected(&self, mean: f64, var: f64, h: impl Fn(f64) -> Derivatives) -> Expected {
        let std = var.max(0.0).sqrt();
        let mut sum = Expected::default();
        for ((f, w), x) in self.at(mean, var).zip(&self.nodes) {
            let at = h(f);
            sum.value += w * at.value;
            sum.mean += w * at.first;
            sum.var +=
                if var > SMALL_VARIANCE { w * at.first * x / (2.0 * std) } else { 0.5 * w * at.second };
        }
        sum
    }
}
