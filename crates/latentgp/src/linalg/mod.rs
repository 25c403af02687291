//! Dense linear algebra: the only door to the backend.
//!
//! Products run on the calling thread; parallelism is over blocks of rows, outside. Large factors are an exception: see
//! [`Cholesky`].

mod blocked;
mod cholesky;
mod rows;
pub(crate) mod tall;

pub(crate) use blocked::SMALL;
pub use cholesky::Cholesky;

use crate::error::{Error, Result};
use crate::mat::Mat;
use crate::scratch;
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, MatMut, MatRef, Par, Side};
use std::ops::Range;

/// Clears the upper halves of the vector registers, which the backend may leave dirty: scalar code that
/// follows would run many times slower.
#[inline]
fn clear_registers() {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx") {
        // SAFETY: the instruction is there, as detected, and touches nothing that the ABI preserves.
        unsafe { std::arch::x86_64::_mm256_zeroupper() };
    }
}

fn view(a: &Mat) -> MatRef<'_, f64> {
    MatRef::from_row_major_slice(a.as_slice(), a.rows(), a.cols())
}

fn view_mut(a: &mut Mat) -> MatMut<'_, f64> {
    let (rows, cols) = (a.rows(), a.cols());
    MatMut::from_row_major_slice_mut(a.as_mut_slice(), rows, cols)
}

/// Whether a product reads a factor as it is or transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// As it is.
    N,
    /// Transposed.
    T,
}

/// out += alpha · op(a) · op(b).
pub fn gemm(alpha: f64, a: &Mat, op_a: Op, b: &Mat, op_b: Op, out: &mut Mat) {
    let a = if op_a == Op::T { view(a).transpose() } else { view(a) };
    let b = if op_b == Op::T { view(b).transpose() } else { view(b) };
    matmul(view_mut(out), Accum::Add, a, b, alpha, Par::Seq);
    clear_registers();
}

/// out = a · b, whatever was there.
pub(crate) fn set_product(a: &Mat, b: &Mat, out: &mut Mat) {
    matmul(view_mut(out), Accum::Replace, view(a), view(b), 1.0, Par::Seq);
    clear_registers();
}

/// op(a) · op(b).
pub fn product(a: &Mat, op_a: Op, b: &Mat, op_b: Op) -> Mat {
    let rows = if op_a == Op::T { a.cols() } else { a.rows() };
    let cols = if op_b == Op::T { b.rows() } else { b.cols() };
    let mut out = Mat::zeros(rows, cols);
    gemm(1.0, a, op_a, b, op_b, &mut out);
    out
}

/// a · b.
pub fn mul(a: &Mat, b: &Mat) -> Mat {
    product(a, Op::N, b, Op::N)
}

/// aᵀ · b.
pub fn mul_tn(a: &Mat, b: &Mat) -> Mat {
    product(a, Op::T, b, Op::N)
}

/// a · bᵀ.
pub fn mul_nt(a: &Mat, b: &Mat) -> Mat {
    product(a, Op::N, b, Op::T)
}

/// Some rows of a · aᵀ, up to the last of them.
pub(crate) fn outer_rows(a: &Mat, rows: Range<usize>) -> Mat {
    let mut out = Mat::zeros(rows.len(), rows.end);
    let (own, before) = (view(a).subrows(rows.start, rows.len()), view(a).subrows(0, rows.end));
    matmul(view_mut(&mut out), Accum::Add, own, before.transpose(), 1.0, Par::Seq);
    clear_registers();
    out
}

/// The lower triangle of out += alpha · aᵀa; the upper one is left alone, see [`mirror_lower`].
pub fn add_ata(alpha: f64, a: &Mat, out: &mut Mat) {
    add_lower(alpha, view(a).transpose(), view(a), out);
}

/// The lower triangle of out += alpha · a bᵀ, for a product that is symmetric; see [`mirror_lower`].
pub(crate) fn add_abt_lower(alpha: f64, a: &Mat, b: &Mat, out: &mut Mat) {
    match rows::suits(a) {
        true => rows::add_abt_lower(alpha, a, b, out),
        false => add_lower(alpha, view(a), view(b).transpose(), out),
    }
}

fn add_lower(alpha: f64, a: MatRef<'_, f64>, b: MatRef<'_, f64>, out: &mut Mat) {
    triangular::matmul(
        view_mut(out),
        BlockStructure::TriangularLower,
        Accum::Add,
        a,
        BlockStructure::Rectangular,
        b,
        BlockStructure::Rectangular,
        alpha,
        Par::Seq,
    );
    clear_registers();
}

/// L⁻¹, prepared for many products.
pub(crate) struct Whitener<'l> {
    of: &'l Cholesky,
    solver: Option<rows::Solver>,
}

impl<'l> Whitener<'l> {
    pub fn new(of: &'l Cholesky) -> Self {
        Whitener { of, solver: rows::Solver::new(of.l()) }
    }

    /// out ← L⁻¹ b.
    pub fn apply(&self, b: &Mat, out: &mut Mat) {
        match self.solver.as_ref().filter(|solver| solver.suits(b)) {
            Some(solver) => {
                scratch::shape(out, b.rows(), b.cols());
                solver.solve(b, out);
            }
            None => {
                scratch::copy(b, out);
                self.of.solve_l(out);
            }
        }
    }
}

/// Copies the lower triangle to the upper one.
pub fn mirror_lower(a: &mut Mat) {
    for_each_below(a.rows(), |i, j| a[(j, i)] = a[(i, j)]);
}

/// A ← (A + Aᵀ)/2.
pub fn symmetrize(a: &mut Mat) {
    for_each_below(a.rows(), |i, j| {
        let mid = 0.5 * (a[(i, j)] + a[(j, i)]);
        a[(i, j)] = mid;
        a[(j, i)] = mid;
    });
}

/// Visits (i, j), j < i, tile by tile, so that rows and columns both stay in the cache.
fn for_each_below(n: usize, mut visit: impl FnMut(usize, usize)) {
    const TILE: usize = 32;
    for top in (0..n).step_by(TILE) {
        for left in (0..=top).step_by(TILE) {
            for i in top..(top + TILE).min(n) {
                (left..(left + TILE).min(i)).for_each(|j| visit(i, j));
            }
        }
    }
}

/// Eigenvalues, ascending, and eigenvectors (columns) of a symmetric matrix; its lower triangle is read.
pub fn eigh(a: &Mat) -> Result<(Vec<f64>, Mat)> {
    if !a.is_finite() {
        return Err(Error::not_finite("a symmetric matrix to decompose"));
    }
    let found = view(a)
        .self_adjoint_eigen(Side::Lower)
        .map_err(|_| Error::not_finite("the eigenvalues of a symmetric matrix"))?;
    let values = (0..a.rows()).map(|i| found.S()[i]).collect();
    let vectors = Mat::from_fn(a.rows(), a.rows(), |i, j| found.U()[(i, j)]);
    Ok((values, vectors))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(rows: usize, cols: usize, seed: f64) -> Mat {
        Mat::from_fn(rows, cols, |i, j| ((i * 7 + j * 3) as f64 * 0.7 + seed).sin())
    }

    fn close(a: &Mat, b: &Mat, tolerance: f64) {
        assert_eq!(a.shape(), b.shape());
        for (x, y) in a.as_slice().iter().zip(b.as_slice()) {
            assert!((x - y).abs() <= tolerance * (1.0 + y.abs()), "{x} against {y}");
        }
    }

    fn spd(n: usize) -> Mat {
        let a = some(n + 3, n, 0.2);
        let mut s = mul_tn(&a, &a);
        (0..n).for_each(|i| s[(i, i)] += 0.5);
        s
    }

    #[test]
    fn products_agree_with_the_definition() {
        let (a, b) = (some(5, 4, 0.1), some(5, 3, 0.9));
        let slow = Mat::from_fn(4, 3, |i, j| (0..5).map(|k| a[(k, i)] * b[(k, j)]).sum());
        close(&mul_tn(&a, &b), &slow, 1e-14);
        close(&mul(&a.t(), &b), &slow, 1e-14);
        close(&mul_nt(&a.t(), &b.t()), &slow, 1e-14);
        let mut lower = Mat::zeros(4, 4);
        add_ata(2.0, &a, &mut lower);
        mirror_lower(&mut lower);
        let mut twice = mul_tn(&a, &a);
        twice.scale(2.0);
        close(&lower, &twice, 1e-14);
    }

    #[test]
    fn a_factor_solves_inverts_and_whitens() {
        let a = spd(6);
        let chol = Cholesky::new(&a, "a").unwrap();
        close(&mul_nt(chol.l(), chol.l()), &a, 1e-13);
        close(&mul(&a, &chol.inverse()), &Mat::eye(6), 1e-12);
        close(&mul(&a, &chol.solve(&some(6, 2, 0.3))), &some(6, 2, 0.3), 1e-12);
        close(&chol.whiten(&a), &Mat::eye(6), 1e-12);
        close(&chol.unwhiten(&Mat::eye(6)), &chol.inverse(), 1e-12);
        let (values, vectors) = eigh(&a).unwrap();
        let log_det: f64 = values.iter().map(|v| v.ln()).sum();
        assert!((chol.log_det() - log_det).abs() < 1e-12);
        let scaled = Mat::from_fn(6, 6, |i, j| vectors[(i, j)] * values[j]);
        close(&mul_nt(&scaled, &vectors), &a, 1e-12);
    }

    #[test]
    fn jitter_is_added_only_where_needed_and_reported() {
        assert_eq!(Cholesky::with_jitter(&spd(4), "a").unwrap().jitter(), 0.0);
        let singular = Mat::filled(4, 4, 1.0);
        assert!(Cholesky::new(&singular, "a").is_err());
        let jitter = Cholesky::with_jitter(&singular, "a").unwrap().jitter();
        assert!(jitter > 0.0 && jitter <= 1e-8, "{jitter}");
        let negative = Mat::from_fn(2, 2, |i, j| if i == j { -1.0 } else { 0.0 });
        assert!(matches!(Cholesky::with_jitter(&negative, "a"), Err(Error::NotPositiveDefinite { .. })));
        assert!(Cholesky::with_jitter(&Mat::filled(2, 2, f64::NAN), "a").is_err());
    }
}
