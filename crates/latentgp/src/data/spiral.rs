//! A spiral in the plane, mapped linearly to more dimensions, with noise: what PPCA recovers exactly up to
//! a rotation.
//!
//! x_i = (t sin t, t cos t) with t evenly spaced in [0, 3π], y_i = W x_i + σ ε_i with W (`dim` × 2) and ε
//! standard normal.

use crate::error::{Error, Result};
use crate::mat::Mat;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::PI;

/// The usual number of dimensions.
pub const DIM: usize = 10;
/// The usual standard deviation of the noise.
pub const NOISE_STD: f64 = 1.0;

/// A sample and what made it.
#[derive(Clone, Debug, PartialEq)]
pub struct Spiral {
    /// Positions on the spiral, N × 2.
    pub x: Mat,
    /// The linear map W, `dim` × 2.
    pub map: Mat,
    /// Observations, N × `dim`.
    pub y: Mat,
}

/// Draws `n` points in `dim` dimensions; errs when `dim` is 0 or `noise_std` negative or not finite.
///
/// ```
/// let sample = latentgp::data::spiral::simulate(100, 10, 1.0, 0)?;
/// assert_eq!(sample.y.shape(), "100 × 10");
/// # Ok::<(), latentgp::Error>(())
/// ```
pub fn simulate(n: usize, dim: usize, noise_std: f64, seed: u64) -> Result<Spiral> {
    if dim == 0 {
        return Err(Error::invalid("the spiral's dimensions", "at least 1", dim));
    }
    if !(noise_std.is_finite() && noise_std >= 0.0) {
        return Err(Error::invalid(
            "the spiral's noise standard deviation",
            "a number of at least 0",
            noise_std,
        ));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let map = Mat::from_fn(dim, 2, |_, _| normal());
    let last = n.saturating_sub(1).max(1) as f64;
    let x = Mat::from_fn(n, 2, |i, j| {
        let t = 3.0 * PI * i as f64 / last;
        t * if j == 0 { t.sin() } else { t.cos() }
    });
    let y =
        Mat::from_fn(n, dim, |i, d| x[(i, 0)] * map[(d, 0)] + x[(i, 1)] * map[(d, 1)] + noise_std * normal());
    Ok(Spiral { x, map, y })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::mul_nt;

    #[test]
    fn noise_is_what_separates_the_observations_from_the_plane() {
        let clean = simulate(200, 5, 0.0, 3).unwrap();
        let exact = mul_nt(&clean.x, &clean.map);
        assert!(clean.y.as_slice().iter().zip(exact.as_slice()).all(|(a, b)| (a - b).abs() < 1e-12));
        let noisy = simulate(200, 5, 0.5, 3).unwrap();
        assert_eq!(noisy.map, clean.map);
        let squares: f64 =
            noisy.y.as_slice().iter().zip(clean.y.as_slice()).map(|(a, b)| (a - b).powi(2)).sum();
        // A thousand draws: the standard error of the standard deviation is 0.011.
        assert!(((squares / 1000.0).sqrt() - 0.5).abs() < 0.05);
    }

    #[test]
    fn a_seed_fixes_the_sample_and_the_ends_are_reached() {
        let one = simulate(50, DIM, NOISE_STD, 1).unwrap();
        assert_eq!(one, simulate(50, DIM, NOISE_STD, 1).unwrap());
        assert_ne!(one.y, simulate(50, DIM, NOISE_STD, 2).unwrap().y);
        assert_eq!(one.x.row(0), &[0.0, 0.0]);
        assert!((one.x[(49, 1)] - -3.0 * PI).abs() < 1e-12);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(simulate(3, 0, 1.0, 0).is_err());
        for std in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(simulate(3, 2, std, 0).is_err());
        }
        assert!(simulate(0, 2, 1.0, 0).unwrap().y.is_empty());
        assert!(simulate(1, 2, 1.0, 0).unwrap().y.is_finite());
    }
}
