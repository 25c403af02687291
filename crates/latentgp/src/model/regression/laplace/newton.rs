//! The mode of p(f | y): Newton's method with step halving.
//!
//! ```text
//! ψ(a) = ln p(y | f) − ½ aᵀKa,   f = m + Ka
//! r = ∇ ln p − a                a ← a + t(I − (K + W⁻¹)⁻¹K)r
//! ```
//!
//! This equals the usual a ← (I + WK)⁻¹(W(f − m) + ∇ ln p) without its cancellation: the step is computed
//! from the residual r, so that its rounding error shrinks with it.
//!
//! ψ is concave, so that the direction always ascends. t is halved until ψ rises by a part of what its slope
//! predicts; a step that overflows is halved too.

use super::curvature::Curvature;
use super::local::Local;
use crate::error::{Error, Result};
use crate::likelihood::Observations;
use crate::linalg;
use crate::mat::Mat;

const MAX_STEPS: usize = 200;
const MAX_HALVINGS: i32 = 80;
/// The part of the predicted rise that a step must reach.
const RISE: f64 = 1e-4;
/// A step whose predicted rise of ψ is below this is the last: the next rise would be about its square.
const PROMISE: f64 = 1e-18;
/// The rounding error of ψ, relative.
const ROUNDING: f64 = 1e-13;
/// Where rounding stops the ascent, a predicted rise below this still counts as a mode.
const ACCEPTABLE: f64 = 1e-7;

/// The mode of ψ.
pub(super) struct Mode {
    /// K⁻¹(f − m), C×N.
    pub(super) a: Mat,
    /// f, C×N.
    pub(super) f: Mat,
    /// The likelihood at the mode.
    pub(super) local: Local,
    /// The curvature of the likelihood at the mode.
    pub(super) curvature: Curvature,
    /// ψ at the mode.
    pub(super) value: f64,
}

pub(super) fn mode(of: &Observations, k: &Mat, mean: &[f64]) -> Result<Mode> {
    let (latents, n) = (mean.len(), k.rows());
    let mut a = Mat::zeros(latents, n);
    let mut f = Mat::from_fn(latents, n, |c, _| mean[c]);
    let mut local = Local::new(of, &f)?;
    let mut value = local.value;
    if !value.is_finite() {
        return Err(Error::not_finite("the log likelihood at the prior mean"));
    }
    let mut last_promise = f64::INFINITY;
    for _ in 0..MAX_STEPS {
        let curvature = Curvature::new(k, &local)?;
        let mut residual = local.first.clone();
        residual.add_scaled(-1.0, &a);
        let mut step = residual.clone();
        step.add_scaled(-1.0, &curvature.apply(&linalg::mul(&residual, k)));
        let moved = linalg::mul(&step, k);
        let promise = moved.dot(&residual);
        if !promise.is_finite() {
            return Err(Error::not_finite("a Newton step to the mode of the latent values"));
        }
        let scale = 1.0 + value.abs();
        let small = promise <= PROMISE * scale;
        // Predicted rises shrink at every step of a converging ascent, until they are rounding error alone.
        let stalled = promise <= ACCEPTABLE * scale && promise >= 0.25 * last_promise;
        last_promise = promise;
        let taken = (0..MAX_HALVINGS).find_map(|halvings| {
            let t = 0.5f64.powi(halvings);
            let mut tried = f.clone();
            tried.add_scaled(t, &moved);
            let mut weights = a.clone();
            weights.add_scaled(t, &step);
            let at = Local::new(of, &tried).ok()?;
            let quadratic: f64 = (0..latents)
                .map(|c| (0..n).map(|i| weights[(c, i)] * (tried[(c, i)] - mean[c])).sum::<f64>())
                .sum();
            let found = at.value - 0.5 * quadratic;
            let rises = found.is_finite() && found >= value + RISE * t * promise - ROUNDING * scale;
            rises.then_some((weights, tried, at, found))
        });
        match taken {
            Some(next) => (a, f, local, value) = next,
            None if promise <= ACCEPTABLE * scale => {
                return Ok(Mode { a, f, local, curvature, value });
            }
            None => break,
        }
        if small || stalled {
            let curvature = Curvature::new(k, &local)?;
            return Ok(Mode { a, f, local, curvature, value });
        }
    }
    Err(Error::not_finite("the mode of the latent values (Newton's method found none)"))
}
