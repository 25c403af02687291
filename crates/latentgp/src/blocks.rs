//! Work over blocks of rows, on all threads, with the same digits on any number of them.
//!
//! The blocks follow from the number of rows alone, and sums over them are taken in their order.

use crate::linalg;
use crate::mat::Mat;
use rayon::prelude::*;

/// Rows go in this many parts at the most.
const PARTS: usize = 32;
/// A part has at least this many rows.
const PART_ROWS: usize = 32;

/// The rows of each part but the last.
pub(crate) fn part_rows(n: usize) -> usize {
    n.div_ceil(PARTS).max(PART_ROWS)
}

/// aᵀ · b.
pub(crate) fn mul_tn(a: &Mat, b: &Mat) -> Mat {
    let (n, rows) = (a.rows(), part_rows(a.rows()));
    if n <= 8 * PART_ROWS {
        return linalg::mul_tn(a, b);
    }
    let part = |i: usize| {
        let (from, to) = (i * rows, (i * rows + rows).min(n));
        linalg::mul_tn(&a.slice_rows(from, to), &b.slice_rows(from, to))
    };
    let parts: Vec<Mat> = (0..n.div_ceil(rows)).into_par_iter().map(part).collect();
    let mut sum = Mat::zeros(a.cols(), b.cols());
    parts.iter().for_each(|p| sum.add_scaled(1.0, p));
    sum
}

/// scale · a · bᵀ, where a has many rows.
pub(crate) fn mul_nt(scale: f64, a: &Mat, b: &Mat) -> Mat {
    let (n, rows) = (a.rows(), part_rows(a.rows()));
    let mut out = Mat::zeros(n, b.rows());
    if out.is_empty() {
        return out;
    }
    out.as_mut_slice().par_chunks_mut(rows * b.rows()).enumerate().for_each(|(i, out)| {
        let mut part = linalg::mul_nt(&a.slice_rows(i * rows, (i * rows + rows).min(n)), b);
        part.scale(scale);
        out.copy_from_slice(part.as_slice());
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

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
