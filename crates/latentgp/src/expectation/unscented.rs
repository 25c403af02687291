//! Sigma points: the unscented transformation and its variants.

use super::rule::{Rule, weights};
use crate::error::{Error, Result};
use crate::mat::Mat;
use crate::scratch::Pooled;

/// The unscented transformation of de Souza et al. (AISTATS 2021): 2Q nodes ±√Q e_q, weights 1/2Q.
///
/// Exact for polynomials of degree 3. Excellent for narrow inputs (variance ≤ 0.1 ℓ²), poor for wide
/// ones. Its weights are positive: Ψ2 stays positive and Ψ0 ≥ tr Kzz⁻¹Ψ2.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Unscented;

/// 0 and ±r e_q.
fn star(dim: usize, radius: f64, centre: bool) -> Mat {
    let skip = usize::from(centre);
    Mat::from_fn(2 * dim + skip, dim, |s, q| match s.checked_sub(skip) {
        Some(s) if s % dim == q => radius * if s < dim { 1.0 } else { -1.0 },
        _ => 0.0,
    })
}

impl Rule for Unscented {
    fn expression(&self) -> String {
        "unscented".into()
    }
    fn count(&self, dim: usize) -> f64 {
        2.0 * dim as f64
    }
    fn weights(&self, dim: usize) -> Vec<f64> {
        Pooled::filled(2 * dim, 0.5 / dim as f64).into_vec()
    }
    fn nodes(&self, dim: usize) -> Mat {
        star(dim, (dim as f64).sqrt(), false)
    }
}

/// The scaled unscented transformation: 2Q + 1 nodes 0 and ±√c e_q with c = α²(Q + κ), weights 1 − Q/c
/// and 1/2c.
///
/// For c < Q the centre weight is negative: Ψ2 may then fail to be positive, Ψ0 < tr Kzz⁻¹Ψ2 can happen,
/// and a fit may end early on a Cholesky factor that does not exist.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaledUnscented {
    /// Spread α > 0.
    pub alpha: f64,
    /// κ > −Q.
    pub kappa: f64,
}

impl Default for ScaledUnscented {
    fn default() -> Self {
        ScaledUnscented { alpha: 1.0, kappa: 0.0 }
    }
}

impl ScaledUnscented {
    fn c(&self, dim: usize) -> f64 {
        self.alpha * self.alpha * (dim as f64 + self.kappa)
    }
}

impl Rule for ScaledUnscented {
    fn expression(&self) -> String {
        format!("scaled_unscented(alpha={:?}, kappa={:?})", self.alpha, self.kappa)
    }
    fn count(&self, dim: usize) -> f64 {
        2.0 * dim as f64 + 1.0
    }
    fn weights(&self, dim: usize) -> Vec<f64> {
        let c = self.c(dim);
        let mut weights = Pooled::filled(2 * dim + 1, 0.5 / c);
        weights[0] = 1.0 - dim as f64 / c;
        weights.into_vec()
    }
    fn nodes(&self, dim: usize) -> Mat {
        star(dim, self.c(dim).sqrt(), true)
    }
    fn check_rule(&self, dim: usize) -> Result<()> {
        let c = self.c(dim);
        if c.is_finite() && c > 0.0 && self.alpha > 0.0 {
            return Ok(());
        }
        let found = format!("alpha = {}, kappa = {} in {dim} dimensions", self.alpha, self.kappa);
        Err(Error::invalid("scaled_unscented", "alpha > 0 and kappa > −(number of dimensions)", found))
    }
}

/// The minimal-skew simplex of Julier & Uhlmann: Q + 2 nodes, the fewest that match mean and covariance.
///
/// w_1 = w_2 = (1 − w_0)/2^Q, w_i = 2^(i−2) w_1. The nodes move out as 2^(Q/2), and third moments do not
/// vanish: for Q ≥ 4 it is far less accurate than [`Unscented`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinimalSkew {
    /// Weight of the centre, 0 ≤ w0 < 1.
    pub w0: f64,
}

impl Default for MinimalSkew {
    fn default() -> Self {
        MinimalSkew { w0: 0.25 }
    }
}

impl Rule for MinimalSkew {
    fn expression(&self) -> String {
        format!("minimal_skew(w0={:?})", self.w0)
    }
    fn count(&self, dim: usize) -> f64 {
        dim as f64 + 2.0
    }
    fn weights(&self, dim: usize) -> Vec<f64> {
        let first = (1.0 - self.w0) / 2f64.powi(dim as i32);
        let mut weights = Pooled::with_capacity(dim + 2);
        weights.extend([self.w0, first, first]);
        weights.extend((3..dim + 2).map(|i| first * 2f64.powi(i as i32 - 2)));
        weights.into_vec()
    }
    fn nodes(&self, dim: usize) -> Mat {
        let weights = weights(self, dim);
        let weights = weights.as_slice();
        // Coordinate q (from 0) sits at −1/√(2w) for nodes 1..=q+1 and at +1/√(2w) for node q+2, w that node's.
        Mat::from_fn(dim + 2, dim, |s, q| {
            let at = 1.0 / (2.0 * weights[q + 2]).sqrt();
            match s {
                0 => 0.0,
                s if s <= q + 1 => -at,
                s if s == q + 2 => at,
                _ => 0.0,
            }
        })
    }
    fn check_rule(&self, dim: usize) -> Result<()> {
        if (0.0..1.0).contains(&self.w0) && dim < 1000 {
            return Ok(());
        }
        let expected = "0 ≤ w0 < 1 and fewer than 1000 dimensions";
        Err(Error::invalid("minimal_skew", expected, format!("w0 = {} in {dim} dimensions", self.w0)))
    }
}
