//! Products a bᵀ, and triangular solves, for matrices of a few dozen long rows.
//!
//! Rows are contiguous along the sum, so that tiles of dot products read them in place, without packing, and a symmetric product
//! costs little more than half a full one. A factor that solves for many matrices is packed once.

use crate::fast::vmath::Numbers;
use crate::fast::vmath::{Instructions, Laned, Lanes, in_lanes};
use crate::mat::Mat;
use crate::scratch::Buffer;

/// The length of a row is a multiple of this: the numbers in a register of most machines.
const LENGTH_MULTIPLE: usize = 4;
/// A tile has this many rows of `a`, and three of `b`, or four on machines of more registers: its sums stay in registers, and each
/// number that is read is used in several.
const ROWS: usize = 4;

/// For matrices of more rows the backend is faster.
const MAX_ROWS: usize = 128;

/// Whether products of this matrix are faster here than by the backend.
pub(super) fn suits(a: &Mat) -> bool {
    !a.is_empty() && a.rows() <= MAX_ROWS && a.cols().is_multiple_of(LENGTH_MULTIPLE)
}

/// The lower triangle of out += alpha · a bᵀ.
pub(super) fn add_abt_lower(alpha: f64, a: &Mat, b: &Mat, out: &mut Mat) {
    in_lanes(AbtLower { alpha, a, b, out });
}

struct AbtLower<'a> {
    alpha: f64,
    a: &'a Mat,
    b: &'a Mat,
    out: &'a mut Mat,
}

impl Laned for AbtLower<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions, const L: usize>(self) {
        match L {
            8 => self.tiles::<I, L, 4>(),
            _ => self.tiles::<I, L, 3>(),
        }
    }
}

impl AbtLower<'_> {
    #[inline(always)]
    fn tiles<I: Instructions, const L: usize, const COLS: usize>(self) {
        let m = self.a.rows();
        for top in (0..m).step_by(ROWS) {
            let a: [&[f64]; ROWS] = std::array::from_fn(|r| self.a.row((top + r).min(m - 1)));
            let below = (top + ROWS).min(m);
            for left in (0..below).step_by(COLS) {
                let b: [&[f64]; COLS] = std::array::from_fn(|c| self.b.row((left + c).min(m - 1)));
                let tile = dots::<I, L, COLS>(a, b);
                for (i, tile) in (top..below).zip(&tile) {
                    for (j, dot) in (left..=i).zip(tile) {
                        self.out[(i, j)] += self.alpha * dot;
                    }
                }
            }
        }
    }
}

/// All dot products of rows of `a` with rows of `b`.
#[inline(always)]
fn dots<I: Instructions, const L: usize, const COLS: usize>(
    a: [&[f64]; ROWS],
    b: [&[f64]; COLS],
) -> [[f64; COLS]; ROWS] {
    let n = a[0].len() / L;
    let whole = a.map(|row| &<Lanes<I, L> as Numbers>::read(row)[..n]);
    let others = b.map(|row| &<Lanes<I, L> as Numbers>::read(row)[..n]);
    let mut sums = [[Lanes::ZERO; COLS]; ROWS];
    for k in 0..n {
        let other = others.map(|row| row[k]);
        for r in 0..ROWS {
            let one = whole[r][k];
            for c in 0..COLS {
                sums[r][c] = one.mul_add(other[c], sums[r][c]);
            }
        }
    }
    // The numbers beyond the last whole register.
    let rest = n * L..a[0].len();
    let mut dots = [[0.0; COLS]; ROWS];
    for r in 0..ROWS {
        for c in 0..COLS {
            let rest: f64 = a[r][rest.clone()].iter().zip(&b[c][rest.clone()]).map(|(a, b)| a * b).sum();
            dots[r][c] = sums[r][c].fold() + rest;
        }
    }
    dots
}

/// A matrix that is solved for has a multiple of this many columns: two registers on most machines.
const COLUMNS: usize = 8;
/// Rows of the factor that are solved together: with two registers of columns, ten sums keep the machine busy and fit its
/// registers.
const SOLVE_ROWS: usize = 5;

/// A lower triangular matrix that solves for many others.
pub(super) struct Solver {
    m: usize,
    /// The rows of L in groups, each group column after column up to the diagonal. Rows beyond the last are zeros.
    groups: Buffer<[f64; SOLVE_ROWS]>,
    /// 1/L_ii.
    inverse: Buffer<f64>,
}

impl Solver {
    /// `None` where the backend is faster.
    pub fn new(l: &Mat) -> Option<Self> {
        let m = l.rows();
        let at = |i: usize, j: usize| if i < m { l[(i, j)] } else { 0.0 };
        let group = |top: usize, j: usize| std::array::from_fn(|r| at(top + r, j));
        let columns = |top: usize| 0..(top + SOLVE_ROWS).min(m);
        let tops = || (0..m).step_by(SOLVE_ROWS);
        (1..=MAX_ROWS).contains(&m).then(|| {
            let mut groups = Buffer::filled([0.0; SOLVE_ROWS], tops().map(|top| columns(top).len()).sum());
            let all = tops().flat_map(|top| columns(top).map(move |j| group(top, j)));
            groups.iter_mut().zip(all).for_each(|(to, group)| *to = group);
            Solver { m, groups, inverse: Buffer::of((0..m).map(|i| 1.0 / l[(i, i)])) }
        })
    }

    /// Whether it solves for this matrix.
    pub fn suits(&self, b: &Mat) -> bool {
        b.rows() == self.m && b.cols() > 0 && b.cols().is_multiple_of(COLUMNS)
    }

    /// out ← L⁻¹ b, of the same shape.
    pub fn solve(&self, b: &Mat, out: &mut Mat) {
        debug_assert!(self.suits(b) && b.len() == out.len());
        in_lanes(Solve { l: self, b, out });
    }
}

struct Solve<'a> {
    l: &'a Solver,
    b: &'a Mat,
    out: &'a mut Mat,
}

impl Laned for Solve<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions, const L: usize>(mut self) {
        let registers = self.b.cols() / L;
        for at in (0..registers - registers % 2).step_by(2) {
            self.columns::<I, L, 2>(at);
        }
        if !registers.is_multiple_of(2) {
            self.columns::<I, L, 1>(registers - 1);
        }
    }
}

impl Solve<'_> {
    /// Solves for V registers of columns, from register `at` on.
    #[inline(always)]
    fn columns<I: Instructions, const L: usize, const V: usize>(&mut self, at: usize) {
        let Solver { m, groups, inverse } = self.l;
        let registers = self.b.cols() / L;
        let b: &[Lanes<I, L>] = Numbers::read(self.b.as_slice());
        let out: &mut [Lanes<I, L>] = Numbers::read_mut(self.out.as_mut_slice());
        let mut rest = &groups[..];
        for top in (0..*m).step_by(SOLVE_ROWS) {
            let rows = SOLVE_ROWS.min(m - top);
            let (panel, others) = rest.split_at(top + rows);
            let (above, own) = panel.split_at(top);
            rest = others;
            let mut sums: [[Lanes<I, L>; V]; SOLVE_ROWS] = std::array::from_fn(|r| {
                let from = (top + r).min(m - 1) * registers + at;
                std::array::from_fn(|v| b[from + v])
            });
            for (group, line) in above.iter().zip(out.chunks_exact(registers)) {
                subtract(&mut sums, group, &std::array::from_fn(|v| line[at + v]), 0);
            }
            for r in 0..SOLVE_ROWS {
                let Some(group) = own.get(r) else { break };
                let (by, to) = (inverse[top + r], &mut out[(top + r) * registers + at..]);
                let mut line = sums[r];
                for v in 0..V {
                    line[v] = line[v] * by;
                    to[v] = line[v];
                }
                subtract(&mut sums, group, &line, r + 1);
            }
        }
    }
}

/// sums ← sums − group · lineᵀ, from row `from` of the group on.
#[inline(always)]
fn subtract<I: Instructions, const L: usize, const V: usize>(
    sums: &mut [[Lanes<I, L>; V]; SOLVE_ROWS],
    group: &[f64; SOLVE_ROWS],
    line: &[Lanes<I, L>; V],
    from: usize,
) {
    for r in from..SOLVE_ROWS {
        let by = Lanes::all(group[r]);
        for v in 0..V {
            sums[r][v] = by.neg_mul_add(line[v], sums[r][v]);
        }
    }
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

    #[test]
    fn solves_are_those_of_the_factor() {
        for (m, n) in [(1, 8), (3, 16), (5, 8), (7, 5), (20, 64), (33, 24), (128, 16), (130, 8)] {
            let some = Mat::from_fn(m, m + 2, |i, j| ((i * m + 3 * j) as f64 * 0.3).cos());
            let mut square = linalg::mul_nt(&some, &some);
            (0..m).for_each(|i| square[(i, i)] += 1.0);
            let factor = linalg::Cholesky::new(&square, "a").unwrap();
            let b = Mat::from_fn(m, n, |i, j| ((i * n + j) as f64 * 0.7).sin());
            let (mut fast, mut slow) = (Mat::default(), b.clone());
            linalg::Whitener::new(&factor).apply(&b, &mut fast);
            factor.solve_l(&mut slow);
            let near = |(fast, slow): (&f64, &f64)| (fast - slow).abs() < 1e-12 * (1.0 + slow.abs());
            assert!(fast.as_slice().iter().zip(slow.as_slice()).all(near), "{m} {n}");
        }
    }
}
