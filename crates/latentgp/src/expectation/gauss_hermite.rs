//! Gauss-Hermite quadrature on a full tensor grid.

use super::rule::{DEFAULT_MAX_NODES, Rule};
use crate::error::{Error, Result};
use crate::linalg;
use crate::mat::Mat;
use crate::scratch::Pooled;
use std::borrow::Cow;
use std::sync::OnceLock;

/// The most nodes a dimension.
const MAX_POINTS: usize = 64;

/// H^Q nodes: H a dimension, exact for polynomials of degree 2H − 1 in each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussHermite {
    /// H, nodes a dimension, from 1 to 64.
    pub points: usize,
    /// More nodes in all than this are refused.
    pub max_nodes: usize,
}

impl Default for GaussHermite {
    fn default() -> Self {
        GaussHermite::new(2)
    }
}

impl GaussHermite {
    /// H nodes a dimension.
    pub fn new(points: usize) -> Self {
        GaussHermite { points, max_nodes: DEFAULT_MAX_NODES }
    }

    /// Digit `q` of node `s`, written in base H.
    fn digit(&self, s: usize, q: usize) -> usize {
        s / self.points.pow(q as u32) % self.points
    }
}

/// Nodes and weights.
type NormalRule = (Vec<f64>, Vec<f64>);

/// Nodes and weights of the H-point rule for N(0, 1).
///
/// The nodes are the eigenvalues of the Jacobi matrix of the Hermite polynomials (Golub & Welsch), √1, √2, …
/// beside the diagonal, polished by a Newton step; the weights are 1/Σ_k h_k(x)² over the orthonormal
/// polynomials of degree below H, which keeps the tiny ones accurate to the last digits.
fn normal_rule(points: usize) -> NormalRule {
    let jacobi =
        Mat::from_fn(points, points, |i, j| if i.abs_diff(j) == 1 { (i.max(j) as f64).sqrt() } else { 0.0 });
    let (values, _) = linalg::eigh(&jacobi).expect("the Jacobi matrix is finite and symmetric");
    // h_0 … h_H at x.
    let polynomials = |x: f64| {
        let mut h = vec![1.0, x];
        for k in 1..points {
            h.push((x * h[k] - (k as f64).sqrt() * h[k - 1]) / ((k + 1) as f64).sqrt());
        }
        h
    };
    let polished = |x: f64| {
        let h = polynomials(x);
        x - h[points] / ((points as f64).sqrt() * h[points - 1])
    };
    let nodes: Vec<f64> =
        (0..points).map(|j| 0.5 * (polished(values[j]) - polished(values[points - 1 - j]))).collect();
    let weight = |x: f64| 1.0 / polynomials(x)[..points].iter().map(|h| h * h).sum::<f64>();
    let weights = nodes.iter().map(|x| weight(*x)).collect();
    (nodes, weights)
}

/// [`normal_rule`], computed once for each allowed H and kept.
fn kept_rule(points: usize) -> Cow<'static, NormalRule> {
    static RULES: [OnceLock<NormalRule>; MAX_POINTS + 1] = [const { OnceLock::new() }; MAX_POINTS + 1];
    match RULES.get(points) {
        Some(rule) => Cow::Borrowed(rule.get_or_init(|| normal_rule(points))),
        None => Cow::Owned(normal_rule(points)),
    }
}

impl Rule for GaussHermite {
    fn expression(&self) -> String {
        format!("gauss_hermite(points={})", self.points)
    }
    fn count(&self, dim: usize) -> f64 {
        (self.points as f64).powf(dim as f64)
    }
    fn weights(&self, dim: usize) -> Vec<f64> {
        let rule = kept_rule(self.points);
        let nodes = self.points.pow(dim as u32);
        let mut all = Pooled::with_capacity(nodes);
        all.extend((0..nodes).map(|s| (0..dim).map(|q| rule.1[self.digit(s, q)]).product::<f64>()));
        all.into_vec()
    }
    fn nodes(&self, dim: usize) -> Mat {
        let rule = kept_rule(self.points);
        Mat::from_fn(self.points.pow(dim as u32), dim, |s, q| rule.0[self.digit(s, q)])
    }
    fn max_nodes(&self) -> usize {
        self.max_nodes
    }
    fn set_max_nodes(&mut self, limit: usize) {
        self.max_nodes = limit;
    }
    fn check_rule(&self, _: usize) -> Result<()> {
        match self.points {
            1..=MAX_POINTS => Ok(()),
            found => Err(Error::invalid("gauss_hermite", format!("points from 1 to {MAX_POINTS}"), found)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::normal_rule;

    #[test]
    fn moments_up_to_degree_2h_minus_1_are_exact() {
        for points in 1..=32 {
            let (nodes, weights) = normal_rule(points);
            let mut moment = 1.0;
            for degree in (0..2 * points as i32).step_by(2) {
                if degree > 0 {
                    moment *= (degree - 1) as f64;
                }
                let found: f64 = nodes.iter().zip(&weights).map(|(x, w)| w * x.powi(degree)).sum();
                assert!((found / moment - 1.0).abs() < 1e-10, "{points} points, degree {degree}: {found}");
            }
        }
    }
}
