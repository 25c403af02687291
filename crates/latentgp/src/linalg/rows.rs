//! Products of rows with rows, for matrices of a few dozen rows that are much longer.
//!
//! Long rows are contiguous along the sum, so that tiles of dot products run from where the numbers are: nothing is packed,
//! and a symmetric product costs little more than its half.

use crate::mat::Mat;
use crate::vmath::{Vectorized, fma, vectorize};

/// Partial sums of a dot product.
const LANES: usize = 4;
type Lanes = [f64; LANES];
/// Rows of `a` and of `b` in a tile: twelve sums stay in registers, and each number read serves three or four.
const ROWS: usize = 4;
const COLS: usize = 3;

/// Whether this is the way for a matrix: with more rows, or rows that leave a rest, the backend's is.
pub(super) fn suits(a: &Mat) -> bool {
    const FEW: usize = 128;
    !a.is_empty() && a.rows() <= FEW && a.cols().is_multiple_of(LANES)
}

/// The lower triangle of out += alpha · a bᵀ.
pub(super) fn add_abt_lower(alpha: f64, a: &Mat, b: &Mat, out: &mut Mat) {
    vectorize(AbtLower { alpha, a, b, out });
}

struct AbtLower<'a> {
    alpha: f64,
    a: &'a Mat,
    b: &'a Mat,
    out: &'a mut Mat,
}

impl Vectorized for AbtLower<'_> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let m = self.a.rows();
        for top in (0..m).step_by(ROWS) {
            let a: [&[f64]; ROWS] = std::array::from_fn(|r| self.a.row((top + r).min(m - 1)));
            let below = (top + ROWS).min(m);
            for left in (0..below).step_by(COLS) {
                let b: [&[f64]; COLS] = std::array::from_fn(|c| self.b.row((left + c).min(m - 1)));
                let tile = dots::<FMA>(a, b);
                for (i, tile) in (top..below).zip(&tile) {
                    for (j, dot) in (left..=i).zip(tile) {
                        self.out[(i, j)] += self.alpha * dot;
                    }
                }
            }
        }
    }
}

/// The dot products of some rows with some others.
#[inline(always)]
fn dots<const FMA: bool>(a: [&[f64]; ROWS], b: [&[f64]; COLS]) -> [[f64; COLS]; ROWS] {
    let n = a[0].len() / LANES;
    let whole = a.map(|row| &row.as_chunks::<LANES>().0[..n]);
    let others = b.map(|row| &row.as_chunks::<LANES>().0[..n]);
    let mut sums = [[[0.0; LANES]; COLS]; ROWS];
    for k in 0..n {
        let other: [Lanes; COLS] = std::array::from_fn(|c| others[c][k]);
        for r in 0..ROWS {
            let one = whole[r][k];
            for c in 0..COLS {
                for i in 0..LANES {
                    sums[r][c][i] = fma::<FMA>(one[i], other[c][i], sums[r][c][i]);
                }
            }
        }
    }
    // Seen through memory, four sums stay one register: folded at once, the compiler takes them apart.
    std::hint::black_box(sums).map(|sums| sums.map(|s| (s[0] + s[1]) + (s[2] + s[3])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg;

    #[test]
    fn rows_with_rows_of_any_number_and_length() {
        for (m, n) in [(1, 1), (3, 4), (4, 7), (5, 8), (13, 32), (20, 64), (130, 8)] {
            let a = Mat::from_fn(m, n, |i, j| ((i * n + j) as f64 * 0.7).sin());
            // W is diagonal, so that A W Aᵀ is symmetric.
            let b = Mat::from_fn(m, n, |i, j| a[(i, j)] * (1.0 + 0.1 * j as f64));
            let mut fast = Mat::filled(m, m, 0.5);
            linalg::add_abt_lower(2.0, &a, &b, &mut fast);
            let slow = linalg::mul_nt(&a, &b);
            for i in 0..m {
                for j in 0..m {
                    let expected = if j <= i { 0.5 + 2.0 * slow[(i, j)] } else { 0.5 };
                    assert!((fast[(i, j)] - expected).abs() < 1e-12 * (1.0 + expected.abs()), "{m} {n}");
                }
            }
        }
    }
}
