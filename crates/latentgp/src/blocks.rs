//! Work over blocks of rows, on all threads, with the same digits on any number of them.
//!
//! The blocks follow from the number of rows alone, and sums over them are taken in their order.

use crate::linalg::tall::{self, Packed};
use crate::mat::Mat;
use crate::scratch;
use rayon::prelude::*;
use std::ops::Range;

/// Rows go in this many parts at the most.
const PARTS: usize = 32;
/// A part has so many rows at the most, as long as there are not more parts than that.
const PART_ROWS: usize = 64;
/// All parts but the last have a multiple of so many rows: what a register of most machines holds.
const ROWS_TOGETHER: usize = 4;

/// The rows of each part but the last.
pub(crate) fn part_rows(n: usize) -> usize {
    n.div_ceil(n.div_ceil(PART_ROWS).clamp(1, PARTS)).next_multiple_of(ROWS_TOGETHER).max(ROWS_TOGETHER)
}

/// Below so many operations, some ten microseconds, waking other threads costs more than they save.
const WORTH: usize = 1 << 17;

/// Does so many operations, roughly, on a thread of the pool, so that the parallel steps among them hand nothing over: each
/// would wake and wait.
pub(crate) fn together<T: Send>(cost: usize, work: impl FnOnce() -> T + Send) -> T {
    if cost < WORTH { work() } else { rayon::scope(|_| work()) }
}

/// Calls `work` for every part of the rows of `out`, which are N of each matrix, with the part's own rows; returns what it
/// returns, in order. `cost` is the number of operations a row, roughly.
pub(crate) fn each_part<T: Send, const K: usize>(
    n: usize,
    cost: usize,
    out: [&mut Mat; K],
    work: impl Fn(Range<usize>, [&mut [f64]; K]) -> T + Sync,
) -> Vec<T> {
    let rows = part_rows(n);
    let mut rest = out.map(|m| {
        debug_assert_eq!(m.rows(), n);
        let cols = m.cols();
        (m.as_mut_slice(), cols)
    });
    let mut parts = Vec::with_capacity(n.div_ceil(rows));
    for from in (0..n).step_by(rows) {
        let points = from..(from + rows).min(n);
        let own = rest.each_mut().map(|(slice, cols)| {
            let (own, others) = std::mem::take(slice).split_at_mut(points.len() * *cols);
            *slice = others;
            own
        });
        parts.push((points, own));
    }
    let one = |(points, own)| work(points, own);
    match n.saturating_mul(cost) < WORTH || rayon::current_num_threads() == 1 {
        true => parts.into_iter().map(one).collect(),
        false => parts.into_par_iter().map(one).collect(),
    }
}

/// aᵀ · b.
pub(crate) fn mul_tn(a: &Mat, b: &Mat) -> Mat {
    let cost = a.cols() * b.cols() / 4;
    let parts = each_part(a.rows(), cost, [], |rows, []| tall::mul_tn(a, b, rows));
    let mut parts = parts.into_iter();
    let mut sum = parts.next().unwrap_or_else(|| Mat::zeros(a.cols(), b.cols()));
    parts.for_each(|part| sum.add_scaled(1.0, &part));
    sum
}

/// scale · a · bᵀ, where a has many rows.
pub(crate) fn mul_nt(scale: f64, a: &Mat, b: &Mat) -> Mat {
    let mut out = Mat::default();
    scratch::shape(&mut out, a.rows(), b.rows());
    if a.cols() == 0 {
        out.fill(0.0);
    } else if !out.is_empty() {
        let (packed, d) = (Packed::new(b), a.cols());
        let cost = b.rows() * d / 4;
        each_part(a.rows(), cost, [&mut out], |rows, [out]| {
            packed.mul(scale, &a.as_slice()[rows.start * d..rows.end * d], out);
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg;

    #[test]
    fn parts_make_the_whole() {
        let a = Mat::from_fn(1000, 3, |i, j| ((i * 3 + j) as f64).sin());
        let b = Mat::from_fn(1000, 2, |i, j| ((i + 5 * j) as f64).cos());
        let (fast, slow) = (mul_tn(&a, &b), linalg::mul_tn(&a, &b));
        assert!(fast.as_slice().iter().zip(slow.as_slice()).all(|(x, y)| (x - y).abs() < 1e-11));
        let c = Mat::from_fn(4, 3, |i, j| (i + j) as f64);
        let (fast, slow) = (mul_nt(2.0, &a, &c), linalg::mul_nt(&a, &c));
        assert!(fast.as_slice().iter().zip(slow.as_slice()).all(|(x, y)| (x - 2.0 * y).abs() < 1e-13));
    }
}
