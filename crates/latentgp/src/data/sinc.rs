//! A function of one hidden direction among 25 inputs, for models that reduce dimensions.
//!
//! x uniform in [0, 1]²⁵, y = sinc(wᵀx) + 0.1 ε with sinc t = sin(πt)/(πt), ε standard normal and
//! w = 1.25 · (1, −1, 1, −1, 1, 0, …, 0). The setting is that of Titsias and Lázaro-Gredilla, "Variational
//! Inference for Mahalanobis Distance Metrics in Gaussian Process Regression" (2013), supplement, which
//! does not print w; this one gives var(y) ≈ 0.20, which its figures imply.

use super::row_rng;
use crate::mat::Mat;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::PI;

/// Number of inputs.
pub const INPUTS: usize = 25;
/// The non-zero weights: those of the first five inputs.
pub const WEIGHTS: [f64; 5] = [1.25, -1.25, 1.25, -1.25, 1.25];
/// Standard deviation of the noise.
pub const NOISE_STD: f64 = 0.1;

/// A sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Sinc {
    /// Inputs, N × 25.
    pub x: Mat,
    /// Observations, N × 1.
    pub y: Mat,
}

/// sin(πt)/(πt), 1 at 0.
pub fn sinc(t: f64) -> f64 {
    if t == 0.0 { 1.0 } else { (PI * t).sin() / (PI * t) }
}

/// Draws `n` points; the first rows of a larger sample are those of a smaller one.
pub fn simulate(n: usize, seed: u64) -> Sinc {
    let (mut x, mut y) = (Mat::zeros(n, INPUTS), Mat::zeros(n, 1));
    for i in 0..n {
        let mut rng = row_rng(seed, i);
        x.row_mut(i).fill_with(|| rng.random());
        let along: f64 = WEIGHTS.iter().zip(x.row(i)).map(|(w, x)| w * x).sum();
        let noise: f64 = StandardNormal.sample(&mut rng);
        y[(i, 0)] = sinc(along) + NOISE_STD * noise;
    }
    Sinc { x, y }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variance_is_that_of_the_paper() {
        let y = simulate(20_000, 0).y;
        let mean = y.as_slice().iter().sum::<f64>() / 20_000.0;
        let var = y.as_slice().iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!((var - 0.201).abs() < 0.01, "{var}");
    }

    #[test]
    fn prefixes_agree_and_seeds_differ() {
        let (small, large) = (simulate(7, 5), simulate(20, 5));
        assert_eq!(small.x, large.x.slice_rows(0, 7));
        assert_eq!(small.y, large.y.slice_rows(0, 7));
        assert_ne!(small.y, simulate(7, 6).y);
        assert!(large.x.as_slice().iter().all(|v| (0.0..1.0).contains(v)));
    }

    #[test]
    fn sinc_at_the_integers() {
        assert_eq!(sinc(0.0), 1.0);
        assert!(sinc(2.0).abs() < 1e-15 && (sinc(0.5) - 2.0 / PI).abs() < 1e-15);
    }
}
