//! R = (K + W⁻¹)⁻¹ for a W that may be singular, by factors that are always well conditioned.
//!
//! With D the diagonal part of W, for every latent function
//!
//! ```text
//! B_c = I + D_c^½ K D_c^½ = L_cL_cᵀ      E_c = D_c^½ B_c⁻¹ D_c^½ = (K + D_c⁻¹)⁻¹
//! ```
//!
//! One function has R = E and |I + KW| = |B|. Classes have, with Rasmussen & Williams (2006), section 3.5,
//!
//! ```text
//! R_cd = δ_cd E_c − E_c (Σ_k E_k)⁻¹ E_d      ln|I + KW| = Σ_c ln|B_c| + ln|Σ_k E_k|
//! ```

use super::local::Local;
use crate::error::{Error, Result};
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;
use rayon::prelude::*;

/// D_c^½ and the factor of B_c.
#[derive(Clone, Debug)]
struct Half {
    root: Vec<f64>,
    b: Cholesky,
}

/// R in factors.
#[derive(Clone, Debug)]
pub(super) struct Curvature {
    halves: Vec<Half>,
    /// The factor of Σ E_c, where functions are coupled.
    sum: Option<Cholesky>,
}

impl Half {
    fn new(k: &Mat, weight: &[f64]) -> Result<Self> {
        let root: Vec<f64> = weight.iter().map(|w| w.sqrt()).collect();
        let b = Mat::from_fn(k.rows(), k.rows(), |i, j| f64::from(i == j) + root[i] * k[(i, j)] * root[j]);
        if !b.is_finite() {
            return Err(Error::not_finite("I + W½KW½"));
        }
        Ok(Half { root, b: Cholesky::with_jitter(&b, "I + W½KW½")? })
    }

    /// L⁻¹D^½ t, of columns.
    fn whiten(&self, t: &Mat) -> Mat {
        let mut out = Mat::from_fn(t.rows(), t.cols(), |i, j| self.root[i] * t[(i, j)]);
        self.b.solve_l(&mut out);
        out
    }

    /// E t, of columns.
    fn apply(&self, t: &Mat) -> Mat {
        let mut out = self.whiten(t);
        self.b.solve_lt(&mut out);
        (0..out.rows()).for_each(|i| out.row_mut(i).iter_mut().for_each(|v| *v *= self.root[i]));
        out
    }

    fn e(&self) -> Mat {
        let mut e = self.b.inverse();
        for i in 0..e.rows() {
            for j in 0..e.cols() {
                e[(i, j)] *= self.root[i] * self.root[j];
            }
        }
        e
    }
}

impl Curvature {
    pub(super) fn new(k: &Mat, local: &Local) -> Result<Self> {
        let latents = local.weight.rows();
        let halves: Vec<Half> =
            (0..latents).into_par_iter().map(|c| Half::new(k, local.weight.row(c))).collect::<Result<_>>()?;
        if !local.coupled() {
            return Ok(Curvature { halves, sum: None });
        }
        let mut sum = Mat::zeros(k.rows(), k.rows());
        halves.par_iter().map(Half::e).collect::<Vec<_>>().iter().for_each(|e| sum.add_scaled(1.0, e));
        Ok(Curvature {
            halves, sum: Some(Cholesky::with_jitter(&sum, "Σ (K + D⁻¹)⁻¹ over the classes")?)
        })
    }

    /// ln|I + KW|.
    pub(super) fn log_det(&self) -> f64 {
        let own: f64 = self.halves.iter().map(|h| h.b.log_det()).sum();
        own + self.sum.as_ref().map_or(0.0, Cholesky::log_det)
    }

    /// R t, with t and the result C×N.
    pub(super) fn apply(&self, t: &Mat) -> Mat {
        let mut out = Mat::zeros(t.rows(), t.cols());
        for (c, half) in self.halves.iter().enumerate() {
            out.row_mut(c).copy_from_slice(half.apply(&Mat::column(t.row(c))).as_slice());
        }
        let Some(sum) = &self.sum else { return out };
        let total: Vec<f64> = (0..t.cols()).map(|i| (0..t.rows()).map(|c| out[(c, i)]).sum()).collect();
        let shared = sum.solve(&Mat::column(&total));
        for (c, half) in self.halves.iter().enumerate() {
            let back = half.apply(&shared);
            out.row_mut(c).iter_mut().zip(back.as_slice()).for_each(|(o, b)| *o -= b);
        }
        out
    }

    /// R_cc, the block of one function.
    pub(super) fn block(&self, c: usize) -> Mat {
        let mut r = self.halves[c].e();
        if let Some(sum) = &self.sum {
            let mut f = r.clone();
            sum.solve_l(&mut f);
            let mut square = Mat::zeros(r.rows(), r.rows());
            linalg::add_ata(1.0, &f, &mut square);
            linalg::mirror_lower(&mut square);
            r.add_scaled(-1.0, &square);
        }
        r
    }

    /// The covariance of the latent values at each of the points whose covariances with the data are the
    /// columns of `cross` (N×P), and whose own variances are `prior`: k∗∗ − k∗ᵀRk∗, C×C.
    pub(super) fn covariances(&self, cross: &Mat, prior: &[f64]) -> Vec<Mat> {
        let latents = self.halves.len();
        let mut own: Vec<Vec<f64>> = Vec::with_capacity(latents);
        let mut shared: Vec<Mat> = Vec::new();
        for half in &self.halves {
            let mut white = half.whiten(cross);
            let mut explained = vec![0.0; cross.cols()];
            for i in 0..white.rows() {
                explained.iter_mut().zip(white.row(i)).for_each(|(e, w)| *e += w * w);
            }
            own.push(prior.iter().zip(explained).map(|(p, e)| p - e).collect());
            if let Some(sum) = &self.sum {
                half.b.solve_lt(&mut white);
                (0..white.rows()).for_each(|i| white.row_mut(i).iter_mut().for_each(|v| *v *= half.root[i]));
                sum.solve_l(&mut white);
                shared.push(white);
            }
        }
        let mut all: Vec<Mat> = (0..cross.cols())
            .map(|p| Mat::from_fn(latents, latents, |c, d| if c == d { own[c][p] } else { 0.0 }))
            .collect();
        for (c, a) in shared.iter().enumerate() {
            for (d, b) in shared[..=c].iter().enumerate() {
                let mut sum = vec![0.0; cross.cols()];
                for i in 0..cross.rows() {
                    let both = a.row(i).iter().zip(b.row(i));
                    sum.iter_mut().zip(both).for_each(|(s, (a, b))| *s += a * b);
                }
                for (cov, s) in all.iter_mut().zip(sum) {
                    cov[(c, d)] += s;
                    cov[(d, c)] = cov[(c, d)];
                }
            }
        }
        // What rounding takes below 0 at points that are known exactly.
        for cov in &mut all {
            (0..latents).for_each(|c| cov[(c, c)] = cov[(c, c)].max(0.0));
        }
        all
    }
}
