//! The Cholesky factor of a positive definite matrix, and what it solves.

use super::{add_ata, blocked, clear_registers, mirror_lower, symmetrize, view, view_mut};
use crate::error::{Error, Result};
use crate::mat::Mat;
use crate::scratch;
use faer::Par;
use faer::linalg::{triangular_inverse, triangular_solve};

/// A = L Lᵀ with L lower triangular.
///
/// Large matrices are factored and inverted by all threads, to the same bits on any number of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Cholesky {
    l: Mat,
    jitter: f64,
}

impl Cholesky {
    /// Factors a symmetric matrix, whose lower triangle is read; errs when it is not positive definite.
    pub fn new(a: &Mat, what: &str) -> Result<Self> {
        Self::try_with(scratch::copied(a), 0.0)
            .ok_or_else(|| Error::NotPositiveDefinite { what: what.to_string(), jitter: 0.0 })
    }

    /// Factors A + jitter·I, with no jitter first, then 1e-10 of the mean diagonal and ten times as much
    /// each time, up to 1e-4 of it. [`jitter`](Self::jitter) tells what was added.
    pub fn with_jitter(a: &Mat, what: &str) -> Result<Self> {
        Self::in_place(scratch::copied(a), || scratch::copied(a), what)
    }

    /// [`with_jitter`](Self::with_jitter) in the memory of `a`. `again` computes A once more for each jitter that is tried.
    pub(crate) fn in_place(a: Mat, again: impl Fn() -> Mat, what: &str) -> Result<Self> {
        let diagonal = a.trace() / a.rows() as f64;
        if let Some(done) = Self::try_with(a, 0.0) {
            return Ok(done);
        }
        if !diagonal.is_finite() {
            return Err(Error::not_finite(what));
        }
        let ladder = (-10..=-4).map(|e| diagonal.abs().max(f64::MIN_POSITIVE) * 10f64.powi(e));
        let mut last = 0.0;
        for jitter in ladder {
            if let Some(done) = Self::try_with(again(), jitter) {
                return Ok(done);
            }
            last = jitter;
        }
        Err(Error::NotPositiveDefinite { what: what.to_string(), jitter: last })
    }

    fn try_with(mut l: Mat, jitter: f64) -> Option<Self> {
        let n = l.rows();
        for i in 0..n {
            l[(i, i)] += jitter;
            l.row_mut(i)[i + 1..].fill(0.0);
        }
        blocked::factor(&mut l).then_some(())?;
        (0..n).all(|i| l[(i, i)].is_finite() && l[(i, i)] > 0.0).then(|| Cholesky { l, jitter })
    }

    /// What was added to the diagonal.
    pub fn jitter(&self) -> f64 {
        self.jitter
    }

    /// L; above the diagonal are zeros.
    pub fn l(&self) -> &Mat {
        &self.l
    }

    /// log |A|.
    pub fn log_det(&self) -> f64 {
        2.0 * (0..self.l.rows()).map(|i| self.l[(i, i)].ln()).sum::<f64>()
    }

    /// b ← L⁻¹ b.
    pub fn solve_l(&self, b: &mut Mat) {
        triangular_solve::solve_lower_triangular_in_place(view(&self.l), view_mut(b), Par::Seq);
        clear_registers();
    }

    /// k ← k L⁻ᵀ: L⁻¹ applied to every row.
    pub fn solve_rows(&self, k: &mut Mat) {
        let rows = view_mut(k).transpose_mut();
        triangular_solve::solve_lower_triangular_in_place(view(&self.l), rows, Par::Seq);
        clear_registers();
    }

    /// An estimate of the condition number of A: (max L_ii / min L_ii)².
    pub fn condition(&self) -> f64 {
        let diagonal = (0..self.l.rows()).map(|i| self.l[(i, i)]);
        let (lo, hi) = diagonal.fold((f64::INFINITY, 0.0f64), |(lo, hi), v| (lo.min(v), hi.max(v)));
        (hi / lo).powi(2)
    }

    /// b ← L⁻ᵀ b.
    pub fn solve_lt(&self, b: &mut Mat) {
        triangular_solve::solve_upper_triangular_in_place(view(&self.l).transpose(), view_mut(b), Par::Seq);
        clear_registers();
    }

    /// A⁻¹ b.
    pub fn solve(&self, b: &Mat) -> Mat {
        let mut x = b.clone();
        self.solve_l(&mut x);
        self.solve_lt(&mut x);
        x
    }

    /// L⁻¹.
    pub fn inverse_l(&self) -> Mat {
        let mut out = Mat::zeros(self.l.rows(), self.l.rows());
        triangular_inverse::invert_lower_triangular(view_mut(&mut out), view(&self.l), Par::Seq);
        clear_registers();
        out
    }

    /// A⁻¹, both triangles.
    pub fn inverse(&self) -> Mat {
        self.clone().into_inverse()
    }

    /// A⁻¹, both triangles, in the memory of L.
    pub(crate) fn into_inverse(self) -> Mat {
        let mut out = self.into_inverse_lower();
        mirror_lower(&mut out);
        out
    }

    /// The lower triangle of A⁻¹, in the memory of L; the numbers above it are arbitrary.
    pub(crate) fn into_inverse_lower(mut self) -> Mat {
        if self.l.rows() > blocked::SMALL {
            blocked::invert(&mut self.l);
        } else {
            let root = self.inverse_l();
            self.l.fill(0.0);
            add_ata(1.0, &root, &mut self.l);
        }
        self.l
    }

    /// L⁻¹ S L⁻ᵀ of a symmetric S.
    pub fn whiten(&self, s: &Mat) -> Mat {
        let mut half = s.clone();
        self.solve_l(&mut half);
        let mut out = half.t();
        self.solve_l(&mut out);
        symmetrize(&mut out);
        out
    }

    /// L⁻ᵀ S L⁻¹ of a symmetric S.
    pub fn unwhiten(&self, s: &Mat) -> Mat {
        let mut half = s.clone();
        self.solve_lt(&mut half);
        let mut out = half.t();
        self.solve_lt(&mut out);
        symmetrize(&mut out);
        out
    }
}
