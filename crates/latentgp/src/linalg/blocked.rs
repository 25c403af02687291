//! Cholesky factor and inverse of large matrices, by blocks of rows on all threads.
//!
//! ```text
//! factor     for each block k:  L_kk = chol(A_kk)     L_ik = A_ik L_kk⁻ᵀ     A_ij −= L_ik L_jkᵀ,  i ≥ j > k
//! inverse    U = L⁻ᵀ, the rows of a block by one solve     A⁻¹ = U Uᵀ
//! ```
//!
//! A task writes whole rows of its own, and what it computes follows from the size of the matrix alone: the bits are the
//! same on any number of threads.

use super::{clear_registers, view};
use crate::mat::Mat;
use crate::scratch;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::{cholesky::llt, matmul::matmul, triangular_solve};
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Matrices up to this size are factored faster by one thread.
pub(crate) const SMALL: usize = 256;
/// Rows of a block.
const ROWS: usize = 96;
/// Factors that need at most this many bytes of working memory take it from the stack.
const STACK_BYTES: usize = 1024;

/// Rows as a matrix to write to.
fn rows_mut(rows: &mut [f64], cols: usize) -> MatMut<'_, f64> {
    MatMut::from_row_major_slice_mut(rows, rows.len() / cols, cols)
}

/// Factors one block in place; false where it is not positive definite.
fn factor_block(block: MatMut<'_, f64>) -> bool {
    let scratch = llt::factor::cholesky_in_place_scratch::<f64>(block.nrows(), Par::Seq, Default::default());
    let (mut few, mut many) = ([MaybeUninit::uninit(); STACK_BYTES], None);
    let stack = match scratch.unaligned_bytes_required() <= STACK_BYTES {
        true => MemStack::new(&mut few),
        false => MemStack::new(many.insert(MemBuffer::new(scratch))),
    };
    let done = llt::factor::cholesky_in_place(block, Default::default(), Par::Seq, stack, Default::default());
    clear_registers();
    done.is_ok()
}

/// A ← L, reading and writing the lower triangle; false where A is not positive definite.
pub(super) fn factor(a: &mut Mat) -> bool {
    let n = a.rows();
    if n <= SMALL {
        return factor_block(super::view_mut(a));
    }
    let mut panel = Mat::default();
    for from in (0..n).step_by(ROWS) {
        let to = (from + ROWS).min(n);
        let (above, below) = a.as_mut_slice().split_at_mut(to * n);
        let own = &mut above[from * n..];
        if !factor_block(rows_mut(own, n).subcols_mut(from, to - from)) {
            return false;
        }
        // The updates of earlier blocks also wrote above the diagonal.
        for (i, row) in own.chunks_exact_mut(n).enumerate() {
            row[from + i + 1..to].fill(0.0);
        }
        let own = MatRef::from_row_major_slice(own, to - from, n).subcols(from, to - from);
        below.par_chunks_mut(ROWS * n).for_each(|rows| {
            let block = rows_mut(rows, n).subcols_mut(from, to - from);
            triangular_solve::solve_lower_triangular_in_place(own, block.transpose_mut(), Par::Seq);
            clear_registers();
        });
        // Tasks read each other's rows of the panel, so they read a copy that nobody writes.
        panel.resize(n - to, to - from);
        for (i, row) in below.chunks_exact(n).enumerate() {
            panel.row_mut(i).copy_from_slice(&row[from..to]);
        }
        below.par_chunks_mut(ROWS * n).enumerate().rev().for_each(|(i, rows)| {
            let count = rows.len() / n;
            let (start, end) = (i * ROWS, i * ROWS + count);
            let left = view(&panel).subrows(start, count);
            let right = view(&panel).subrows(0, end);
            let block = rows_mut(rows, n).subcols_mut(to, end);
            matmul(block, Accum::Add, left, right.transpose(), -1.0, Par::Seq);
            clear_registers();
        });
    }
    true
}

/// L ← the lower triangle of (LLᵀ)⁻¹.
pub(super) fn invert(l: &mut Mat) {
    let n = l.rows();
    let mut u = scratch::any(n, n);
    u.as_mut_slice().par_chunks_mut(ROWS * n).enumerate().for_each(|(i, rows)| {
        let from = i * ROWS;
        for (r, row) in rows.chunks_exact_mut(n).enumerate() {
            row[from..].fill(0.0);
            row[from + r] = 1.0;
        }
        let block = rows_mut(rows, n).subcols_mut(from, n - from);
        let rest = view(l).submatrix(from, from, n - from, n - from);
        triangular_solve::solve_lower_triangular_in_place(rest, block.transpose_mut(), Par::Seq);
        clear_registers();
    });
    l.as_mut_slice().par_chunks_mut(ROWS * n).enumerate().for_each(|(i, rows)| {
        let (from, count) = (i * ROWS, rows.len() / n);
        let left = view(&u).submatrix(from, from, count, n - from);
        let right = view(&u).submatrix(0, from, from + count, n - from);
        let block = rows_mut(rows, n).subcols_mut(0, from + count);
        matmul(block, Accum::Replace, left, right.transpose(), 1.0, Par::Seq);
        clear_registers();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{self, Cholesky};

    /// A well-conditioned matrix with some structure.
    fn spd(n: usize) -> Mat {
        let x = |i: usize| 0.37 * i as f64;
        Mat::from_fn(n, n, |i, j| (-0.5 * (x(i) - x(j)).powi(2)).exp() + 0.3 * f64::from(i == j))
    }

    #[test]
    fn large_factors_and_inverses_are_what_they_say() {
        for n in [SMALL + 1, 3 * ROWS, 3 * ROWS + 17] {
            let a = spd(n);
            let factor = Cholesky::new(&a, "a").unwrap();
            let close = |found: &Mat, expected: &Mat| {
                let worst = found.as_slice().iter().zip(expected.as_slice()).map(|(x, y)| (x - y).abs());
                worst.fold(0.0, f64::max)
            };
            assert!(close(&linalg::mul_nt(factor.l(), factor.l()), &a) < 1e-13, "n = {n}");
            assert!(close(&linalg::mul(&a, &factor.inverse()), &Mat::eye(n)) < 1e-12, "n = {n}");
        }
        let mut bad = spd(SMALL + 50);
        bad[(SMALL + 20, SMALL + 20)] = -1.0;
        assert!(Cholesky::new(&bad, "bad").is_err());
    }

    #[test]
    fn threads_do_not_change_the_bits() {
        let a = spd(4 * ROWS + 5);
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| Cholesky::new(&a, "a").unwrap().inverse())
        };
        assert_eq!(run(1), run(3));
    }
}
