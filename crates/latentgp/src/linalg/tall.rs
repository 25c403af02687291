//! Products with a matrix of many rows and few columns, as Ψ1ᵀY and Y αᵀ are.
//!
//! One factor goes through a panel of a few registers' width that stays in the nearest cache; of the other a few numbers at
//! a time meet a line of the panel. The sums of a tile stay in registers. What comes next of the long matrix is fetched
//! meanwhile.

use crate::mat::Mat;
use crate::scratch::{self, Room, Scratch};
use crate::vmath::{CACHE_LINE, Laned, fma, groups, in_lanes, prefetch};
use std::ops::Range;

/// Numbers that meet a line of a panel at once, and that do so in products a bᵀ where a line is one register: ten sums or
/// eight keep the machine busy, and fit its registers.
const FIVE: usize = 5;
const EIGHT: usize = 8;
/// The registers of a line at the most.
const WIDEST: usize = 2;
/// Lines of a panel at the most: 16 KB on a machine of four lanes.
const LINES: usize = 256;
/// Rows that go along all panels before the next ones do: whole groups of either.
const ROWS: usize = 40;
/// Lines of a panel of products aᵀb.
const FEW: usize = 80;

/// sums + a bᵀ.
#[inline(always)]
fn add_line<const FMA: bool, const L: usize, const V: usize, const R: usize>(
    a: [f64; R],
    b: &[[f64; L]; V],
    sums: &mut [[[f64; L]; V]; R],
) {
    for r in 0..R {
        for v in 0..V {
            for l in 0..L {
                sums[r][v][l] = fma::<FMA>(a[r], b[v][l], sums[r][v][l]);
            }
        }
    }
}

/// What some lines of a panel give to a tile.
#[inline(always)]
fn add_lines<const FMA: bool, const L: usize>(
    fives: &[[f64; FIVE]],
    lines: impl Iterator<Item = [[f64; L]; WIDEST]>,
) -> Sums<L> {
    let mut sums = [[[0.0; L]; WIDEST]; FIVE];
    for (five, line) in fives.iter().zip(lines) {
        add_line::<FMA, L, WIDEST, FIVE>(*five, &line, &mut sums);
    }
    sums
}

/// Some lines; with each, numbers of b from `from` on, `step` apart, are fetched.
#[inline(always)]
fn fetching<const L: usize>(
    lines: impl Iterator<Item = [[f64; L]; WIDEST]>,
    b: &[f64],
    from: usize,
    step: usize,
) -> impl Iterator<Item = [[f64; L]; WIDEST]> {
    lines.enumerate().map(move |(k, line)| {
        let numbers = (0..WIDEST * L).step_by(CACHE_LINE);
        numbers.for_each(|more| prefetch(b, from + k * step + more));
        line
    })
}

/// Where each panel of `cols` columns begins, and its registers.
fn panels(cols: usize, lanes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..cols).step_by(WIDEST * lanes).map(move |left| (left, (cols - left).div_ceil(lanes).min(WIDEST)))
}

/// aᵀb of rows that follow one another, M numbers of a and `stride` of b in each, and some columns of b.
pub(crate) fn mul_tn(a: &[f64], m: usize, b: &[f64], stride: usize, columns: Range<usize>) -> Mat {
    debug_assert_eq!(a.len() * stride, b.len() * m);
    let mut out = scratch::any(m, columns.len());
    match a.is_empty() || columns.is_empty() {
        true => out.fill(0.0),
        false => in_lanes(Tn { a, b, stride, columns, out: &mut out }),
    }
    out
}

struct Tn<'a> {
    a: &'a [f64],
    b: &'a [f64],
    /// All columns of b, and those that are wanted.
    stride: usize,
    columns: Range<usize>,
    out: &'a mut Mat,
}

/// The sums of a tile: some columns of a by those of a panel.
type Sums<const L: usize> = [[[f64; L]; WIDEST]; FIVE];

impl Laned for Tn<'_> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool, const L: usize>(self) {
        let (m, d) = (self.out.rows(), self.out.cols());
        let (tiles, count) = (m.div_ceil(FIVE), d.div_ceil(WIDEST * L));
        let mut fives = Room::filled([0.0; FIVE], tiles * FEW);
        let mut panel = Scratch::take(FEW * WIDEST * L);
        let panel = panel.as_chunks_mut().0.as_chunks_mut().0;
        let mut sums = Scratch::take(tiles * count * FIVE * WIDEST * L);
        let sums: &mut [Sums<L>] = sums.as_chunks_mut().0.as_chunks_mut().0.as_chunks_mut().0;
        let chunks = self.a.chunks(FEW * m).zip(self.b.chunks(FEW * self.stride));
        for (c, (a, b)) in chunks.enumerate() {
            for (k, row) in a.chunks_exact(m).enumerate() {
                let (whole, rest) = row.as_chunks();
                whole.iter().enumerate().for_each(|(t, own)| fives[t * FEW + k] = *own);
                if !rest.is_empty() {
                    fives[whole.len() * FEW + k][..rest.len()].copy_from_slice(rest);
                }
            }
            for (p, sums) in sums.chunks_exact_mut(tiles).enumerate() {
                self.along::<FMA, L>(&fives, b, p * WIDEST * L, panel, sums, c == 0);
            }
        }
        for (p, sums) in sums.chunks_exact(tiles).enumerate() {
            let own = p * WIDEST * L..((p + 1) * WIDEST * L).min(d);
            for (r, sums) in (0..m).zip(sums.as_flattened()) {
                let to = &mut self.out.row_mut(r)[own.clone()];
                match to.as_chunks_mut().0.as_chunks_mut().0 {
                    [whole] => *whole = *sums,
                    _ => to.copy_from_slice(&sums.as_flattened()[..own.len()]),
                }
            }
        }
    }
}

impl Tn<'_> {
    /// What some rows give to the columns of a panel, or, if they are not the `first` ones, add to them. The first tile copies
    /// lines as it meets them, unless it is the only one. During the second those of the next panel are fetched, and during
    /// the third, where all columns are wanted, part of the rows that follow, which take longer to come.
    #[inline(always)]
    fn along<const FMA: bool, const L: usize>(
        &self,
        fives: &[[f64; FIVE]],
        b: &[f64],
        left: usize,
        panel: &mut [[[f64; L]; WIDEST]],
        sums: &mut [Sums<L>],
        first: bool,
    ) {
        let (d, stride) = (self.columns.len(), self.stride);
        let width = (d - left).min(WIDEST * L);
        let from = self.columns.start + left;
        let next = if left + width < d { from + width } else { b.len() + self.columns.start };
        let panel = &mut panel[..b.len() / stride];
        let whole = width == WIDEST * L;
        if !whole {
            let rows = panel.iter_mut().zip(b.chunks_exact(stride));
            // Places beyond the last column have arbitrary numbers, and their sums are left.
            rows.for_each(|(line, row)| {
                line.as_flattened_mut()[..width].copy_from_slice(&row[from..from + width])
            });
        }
        let rows = b.chunks_exact(stride);
        let own = |row: &[f64]| row[from..from + WIDEST * L].as_chunks().0.as_chunks().0[0];
        let tiles = sums.len();
        for (t, (fives, sums)) in fives.chunks_exact(FEW).zip(sums).enumerate() {
            let new = if t == 0 && tiles == 1 && whole {
                add_lines::<FMA, L>(fives, fetching(rows.clone().map(own), b, next, stride))
            } else if t == 0 && whole {
                let copied = panel.iter_mut().zip(rows.clone()).map(|(line, row)| {
                    *line = own(row);
                    *line
                });
                add_lines::<FMA, L>(fives, copied)
            } else if t == 1 {
                add_lines::<FMA, L>(fives, fetching(panel.iter().copied(), b, next, stride))
            } else if t == 2 && d == stride {
                add_lines::<FMA, L>(
                    fives,
                    fetching(panel.iter().copied(), b, b.len() + left * FEW, WIDEST * L),
                )
            } else {
                add_lines::<FMA, L>(fives, panel.iter().copied())
            };
            // Copies of fixed size stay in registers.
            let old = if first { [[[0.0; L]; WIDEST]; FIVE] } else { *sums };
            *sums = std::array::from_fn(|r| {
                std::array::from_fn(|v| std::array::from_fn(|l| old[r][v][l] + new[r][v][l]))
            });
        }
    }
}

/// bᵀ in panels, for products a bᵀ of many rows.
pub(crate) struct Packed {
    /// Rows and columns of b.
    shape: (usize, usize),
    lanes: usize,
    /// Panel by panel, each of part of the columns of b by some of its rows.
    numbers: Room<f64>,
}

impl Packed {
    pub fn new(b: &Mat) -> Self {
        in_lanes(Pack(b))
    }

    /// out ← scale · a bᵀ, of rows of a that follow one another.
    pub fn mul(&self, scale: f64, a: &[f64], out: &mut [f64]) {
        in_lanes(Nt { scale, a, b: self, out });
    }
}

struct Pack<'a>(&'a Mat);

impl Laned for Pack<'_> {
    type Out = Packed;
    #[inline(always)]
    fn run<const FMA: bool, const L: usize>(self) -> Packed {
        let (m, d) = (self.0.rows(), self.0.cols());
        let mut numbers = Room::filled(0.0, m.div_ceil(L) * L * d);
        let mut rest = &mut numbers[..];
        for lines in groups(0..d, LINES) {
            for (top, registers) in panels(m, L) {
                let width = registers * L;
                let (panel, others) = std::mem::take(&mut rest).split_at_mut(width * lines.len());
                for (r, i) in (top..(top + width).min(m)).enumerate() {
                    let row = &self.0.row(i)[lines.clone()];
                    row.iter().zip(panel.chunks_exact_mut(width)).for_each(|(v, line)| line[r] = *v);
                }
                rest = others;
            }
        }
        Packed { shape: (m, d), lanes: L, numbers }
    }
}

struct Nt<'a> {
    scale: f64,
    a: &'a [f64],
    b: &'a Packed,
    out: &'a mut [f64],
}

impl Laned for Nt<'_> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool, const L: usize>(self) {
        let (m, d) = self.b.shape;
        debug_assert_eq!(self.b.lanes, L);
        for (a, out) in self.a.chunks(ROWS * d).zip(self.out.chunks_mut(ROWS * m)) {
            let mut rest = &self.b.numbers[..];
            for lines in groups(0..d, LINES) {
                for (left, registers) in panels(m, L) {
                    let (panel, others) = rest.split_at(registers * L * lines.len());
                    rest = others;
                    let own = (lines.clone(), left..(left + registers * L).min(m));
                    match registers {
                        1 => self.b.along::<FMA, L, 1, EIGHT>(self.scale, a, panel, own, out),
                        _ => self.b.along::<FMA, L, WIDEST, FIVE>(self.scale, a, panel, own, out),
                    }
                }
            }
        }
    }
}

impl Packed {
    /// The columns of the product that belong to a panel, or what some lines of it add to them. Meanwhile the rows to come
    /// are fetched, for the first panel.
    #[inline(always)]
    fn along<const FMA: bool, const L: usize, const V: usize, const R: usize>(
        &self,
        scale: f64,
        a: &[f64],
        panel: &[f64],
        (lines, columns): (Range<usize>, Range<usize>),
        out: &mut [f64],
    ) {
        let (m, d) = self.shape;
        let panel: &[[[f64; L]; V]] = panel.as_chunks().0.as_chunks().0;
        let (parts, last) = panel.as_chunks::<CACHE_LINE>();
        for (a, out) in a.chunks(R * d).zip(out.chunks_mut(R * m)) {
            let rows: [&[f64]; R] = std::array::from_fn(|r| {
                let from = (r * d).min(a.len() - d);
                &a[from..from + d][lines.clone()]
            });
            let rows = rows.map(|row| row.as_chunks::<CACHE_LINE>());
            let mut sums = [[[0.0; L]; V]; R];
            for (p, part) in parts.iter().enumerate() {
                let rows = rows.map(|(parts, _)| &parts[p]);
                if columns.start == 0 {
                    rows.iter().for_each(|row| prefetch(*row, R * d));
                }
                for k in 0..CACHE_LINE {
                    add_line::<FMA, L, V, R>(rows.map(|row| row[k]), &part[k], &mut sums);
                }
            }
            for (k, line) in last.iter().enumerate() {
                add_line::<FMA, L, V, R>(rows.map(|(_, last)| last[k]), line, &mut sums);
            }
            // Seen through memory, the sums of a line stay in registers: the compiler would take them apart.
            for (out, sums) in out.chunks_exact_mut(m).zip(&std::hint::black_box(sums)) {
                let both = out[columns.clone()].iter_mut().zip(sums.as_flattened());
                match lines.start {
                    0 => both.for_each(|(out, sum)| *out = scale * sum),
                    _ => both.for_each(|(out, sum)| *out += scale * sum),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg;

    #[test]
    fn products_of_any_shape_are_those_of_the_backend() {
        let some =
            |rows: usize, cols: usize| Mat::from_fn(rows, cols, |i, j| ((7 * i + 3 * j) as f64 * 0.7).sin());
        for (n, m, d) in [
            (1, 1, 1),
            (5, 3, 2),
            (9, 4, 12),
            (40, 20, 33),
            (50, 3, 270),
            (300, 7, 270),
            (300, 17, 40),
            (600, 25, 5),
        ] {
            let (a, b, c) = (some(n, m), some(n, d), some(m, d));
            let close = |fast: &Mat, slow: &Mat| {
                assert_eq!(fast.shape(), slow.shape());
                let near = |(x, y): (&f64, &f64)| (x - y).abs() < 1e-12 * n.max(d) as f64;
                assert!(fast.as_slice().iter().zip(slow.as_slice()).all(near), "{n} {m} {d}");
            };
            for columns in [0..d, d / 3..d, d / 3..2 * d / 3] {
                let own = b.select_cols(&columns.clone().collect::<Vec<_>>());
                close(&mul_tn(a.as_slice(), m, b.as_slice(), d, columns), &linalg::mul_tn(&a, &own));
            }
            let mut out = Mat::filled(n, m, f64::NAN);
            Packed::new(&c).mul(2.0, b.as_slice(), out.as_mut_slice());
            let mut slow = linalg::mul_nt(&b, &c);
            slow.scale(2.0);
            close(&out, &slow);
        }
        assert_eq!(mul_tn(&[], 0, some(3, 2).as_slice(), 2, 0..2), Mat::zeros(0, 2));
        scratch::give(&mut Mat::filled(3, 2, f64::NAN));
        assert_eq!(mul_tn(&[], 3, &[], 2, 0..2), Mat::zeros(3, 2));
    }

    #[test]
    fn what_is_not_a_number_stays_in_its_column() {
        let some = |cols: usize| Mat::from_fn(100, cols, |i, j| ((7 * i + 3 * j) as f64 * 0.7).sin());
        let (a, b) = (some(7), some(19));
        let mut holed = b.clone();
        (0..100).for_each(|n| holed[(n, 0)] = f64::NAN);
        let [whole, found] = [&b, &holed].map(|b| mul_tn(a.as_slice(), 7, b.as_slice(), 19, 0..19));
        for i in 0..7 {
            assert!(found[(i, 0)].is_nan());
            assert_eq!(found.row(i)[1..], whole.row(i)[1..]);
        }
    }
}
