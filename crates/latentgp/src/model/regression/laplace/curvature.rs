//! R = (K + W⁻¹)⁻¹ for a W that may be singular, from factors that are always well conditioned.
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
use crate::blocks;
use crate::error::{Error, Result};
use crate::kernel::InlineVec;
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;
use crate::scratch::Buffer;

/// D_c^½ and the factor of B_c.
#[derive(Clone, Debug)]
struct Half {
    /// N×1.
    root: Mat,
    b: Cholesky,
}

/// R in factored form.
#[derive(Clone, Debug)]
pub(super) struct Curvature {
    halves: InlineVec<Half>,
    /// The Cholesky factor of Σ E_c, where the functions are coupled.
    sum: Option<Cholesky>,
}

impl Half {
    fn new(k: &Mat, weight: &[f64]) -> Result<Self> {
        let root = Mat::from_fn(weight.len(), 1, |i, _| weight[i].sqrt());
        let of = root.as_slice();
        let sum = || Mat::from_fn(k.rows(), k.rows(), |i, j| f64::from(i == j) + of[i] * k[(i, j)] * of[j]);
        let b = sum();
        if !b.is_finite() {
            return Err(Error::not_finite("I + W½KW½"));
        }
        let b = Cholesky::in_place(b, sum, "I + W½KW½")?;
        Ok(Half { root, b })
    }

    /// L⁻¹D^½ t, column by column.
    fn whiten(&self, t: &Mat) -> Mat {
        let mut out = t.clone();
        self.scale_rows(&mut out);
        self.b.solve_l(&mut out);
        out
    }

    /// t ← D^½ t.
    fn scale_rows(&self, t: &mut Mat) {
        for (i, root) in self.root.as_slice().iter().enumerate() {
            t.row_mut(i).iter_mut().for_each(|v| *v *= root);
        }
    }

    /// E t, column by column.
    fn apply(&self, t: &Mat) -> Mat {
        let mut out = self.whiten(t);
        self.b.solve_lt(&mut out);
        self.scale_rows(&mut out);
        out
    }

    fn e(&self) -> Mat {
        let (mut e, root) = (self.b.inverse(), self.root.as_slice());
        for i in 0..e.rows() {
            for j in 0..e.cols() {
                e[(i, j)] *= root[i] * root[j];
            }
        }
        e
    }
}

impl Curvature {
    pub(super) fn new(k: &Mat, local: &Local) -> Result<Self> {
        let latents = local.weight.rows();
        let halves = blocks::each_of(0..latents, latents == 1, |c| Half::new(k, local.weight.row(c)));
        let halves: InlineVec<Half> = halves.into_iter().collect::<Result<_>>()?;
        if !local.coupled() {
            return Ok(Curvature { halves, sum: None });
        }
        let mut sum = Mat::zeros(k.rows(), k.rows());
        blocks::each_of(halves.iter(), false, Half::e).iter().for_each(|e| sum.add_scaled(1.0, e));
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
        let total = Mat::from_fn(t.cols(), 1, |i, _| (0..t.rows()).map(|c| out[(c, i)]).sum());
        let shared = sum.solve(&total);
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

    /// The covariance of the latent values at each of P points: k∗∗ − k∗ᵀRk∗, C×C, one row for each point.
    /// The columns of `cross` (N×P) are the covariances of the points with the data, and `prior` has their
    /// variances.
    pub(super) fn covariances(&self, cross: &Mat, prior: &[f64]) -> Mat {
        let (points, latents) = (cross.cols(), self.halves.len());
        let place = |c: usize, d: usize| c * latents + d;
        let mut all = Mat::zeros(points, latents * latents);
        let mut shared: InlineVec<Mat> = InlineVec::new();
        for (c, half) in self.halves.iter().enumerate() {
            let mut white = half.whiten(cross);
            let mut explained = Buffer::filled(0.0, points);
            for i in 0..white.rows() {
                explained.iter_mut().zip(white.row(i)).for_each(|(e, w)| *e += w * w);
            }
            (0..points).for_each(|p| all[(p, place(c, c))] = prior[p] - explained[p]);
            if let Some(sum) = &self.sum {
                half.b.solve_lt(&mut white);
                half.scale_rows(&mut white);
                sum.solve_l(&mut white);
                shared.push(white);
            }
        }
        for (c, a) in shared.iter().enumerate() {
            for (d, b) in shared[..=c].iter().enumerate() {
                let mut sum = Buffer::filled(0.0, points);
                for i in 0..cross.rows() {
                    let both = a.row(i).iter().zip(b.row(i));
                    sum.iter_mut().zip(both).for_each(|(s, (a, b))| *s += a * b);
                }
                for (p, s) in sum.iter().enumerate() {
                    all[(p, place(c, d))] += s;
                    all[(p, place(d, c))] = all[(p, place(c, d))];
                }
            }
        }
        // Rounding may make variances negative at points that are known exactly.
        for p in 0..points {
            (0..latents).for_each(|c| all[(p, place(c, c))] = all[(p, place(c, c))].max(0.0));
        }
        all
    }
}
