//! Products with a matrix of many rows and few columns, as Ψ1ᵀY and Y αᵀ are.
//!
//! One factor is copied to panels, a few registers wide, that stay in the first-level cache. A line of a panel is multiplied by a
//! few numbers of the other factor at a time, with the sums of such a tile in registers. Meanwhile the next rows of the long
//! matrix are prefetched.

use crate::fast::vmath::Numbers;
use crate::fast::vmath::{CACHE_LINE, Instructions, Laned, Lanes, even_groups, groups, in_lanes, prefetch};
use crate::mat::Mat;
use crate::scratch::{self, Buffer};
use std::ops::Range;

/// The rows of a tile: as many sums as keep the machine busy and fit its registers.
const TILE_ROWS: usize = 5;
/// The rows of a tile where a line is one register, or the machine has 32 registers.
const TALL_TILE_ROWS: usize = 8;
/// A panel of products a bᵀ has at most this many lines: 16 KB of two registers of four numbers, 48 KB of three of eight.
const NT_LINES: usize = 256;
/// This many rows are multiplied by all panels before the next rows are. It is a multiple of the rows of both tiles.
const ROWS: usize = 40;
/// A panel of products aᵀb has this many lines.
const TN_LINES: usize = 80;

/// The most registers of a line, in products aᵀb and a bᵀ: a machine of eight lanes has 32 registers, others 16.
const fn widest(lanes: usize) -> (usize, usize) {
    if lanes == 8 { (4, 3) } else { (2, 2) }
}

/// sums + a bᵀ.
#[inline(always)]
fn add_line<I: Instructions, const L: usize, const V: usize, const R: usize>(
    a: [f64; R],
    b: &[Lanes<I, L>; V],
    sums: &mut [[Lanes<I, L>; V]; R],
) {
    for r in 0..R {
        let a = Lanes::all(a[r]);
        for v in 0..V {
            sums[r][v] = a.mul_add(b[v], sums[r][v]);
        }
    }
}

/// aᵀb of consecutive rows, with M numbers of a and `stride` of b in each, for some columns of b.
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
    /// The number of columns of b.
    stride: usize,
    /// The columns that are wanted.
    columns: Range<usize>,
    out: &'a mut Mat,
}

impl Laned for Tn<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions, const L: usize>(self) {
        let (m, d) = (self.out.rows(), self.out.cols());
        let (tiles, width) = (m.div_ceil(TILE_ROWS), widest(L).0 * L);
        let mut packed = Buffer::filled([0.0; TILE_ROWS], tiles * TN_LINES);
        let mut panel = Buffer::<f64>::any(TN_LINES * width);
        let mut sums = Buffer::<f64>::any(tiles * TILE_ROWS * d.next_multiple_of(L));
        let chunks = self.a.chunks(TN_LINES * m).zip(self.b.chunks(TN_LINES * self.stride));
        for (c, (a, b)) in chunks.enumerate() {
            for (k, row) in a.chunks_exact(m).enumerate() {
                let (whole, rest) = row.as_chunks();
                whole.iter().enumerate().for_each(|(t, own)| packed[t * TN_LINES + k] = *own);
                if !rest.is_empty() {
                    packed[whole.len() * TN_LINES + k][..rest.len()].copy_from_slice(rest);
                }
            }
            let panels = (0..d).step_by(width).zip(sums.chunks_mut(tiles * TILE_ROWS * width));
            for (left, sums) in panels {
                let rows = Rows { b, left, first: c == 0, of: &self };
                match (d - left).div_ceil(L).min(widest(L).0) {
                    1 => rows.along::<I, L, 1>(&packed, &mut panel, sums),
                    3 if L == 8 => rows.along::<I, L, 3>(&packed, &mut panel, sums),
                    4 if L == 8 => rows.along::<I, L, 4>(&packed, &mut panel, sums),
                    _ => rows.along::<I, L, 2>(&packed, &mut panel, sums),
                }
            }
        }
        for (left, sums) in (0..d).step_by(width).zip(sums.chunks(tiles * TILE_ROWS * width)) {
            let own = left..(left + width).min(d);
            for (r, sums) in (0..m).zip(sums.chunks_exact(own.len().next_multiple_of(L))) {
                self.out.row_mut(r)[own.clone()].copy_from_slice(&sums[..own.len()]);
            }
        }
    }
}

/// A tile copies the lines of b to the panel as it uses them.
const COPY: u8 = 0;
/// A tile only reads the panel.
const READ: u8 = 1;
/// A tile copies lines to the panel and prefetches others.
const COPY_AND_FETCH: u8 = 2;
/// A tile reads the panel and prefetches lines of b.
const FETCH: u8 = 3;

/// Some rows of b, and the first column of a panel of them.
struct Rows<'r, 'a> {
    b: &'r [f64],
    left: usize,
    /// Whether they are the first rows of the product.
    first: bool,
    of: &'r Tn<'a>,
}

impl Rows<'_, '_> {
    /// Writes the part of the product that the rows give to the columns of a panel; adds it unless they are the first rows. The
    /// first tile copies lines to the panel as it uses them. The second prefetches those of the next panel, as does the first
    /// where there is no second. Where all columns are wanted, the third prefetches part of the rows that follow.
    #[inline(always)]
    fn along<I: Instructions, const L: usize, const V: usize>(
        &self,
        packed: &[[f64; TILE_ROWS]],
        panel: &mut [f64],
        sums: &mut [f64],
    ) {
        let (b, d, stride) = (self.b, self.of.columns.len(), self.of.stride);
        let width = (d - self.left).min(V * L);
        let from = self.of.columns.start + self.left;
        let next = if self.left + width < d { from + width } else { b.len() + self.of.columns.start };
        let panel: &mut [[Lanes<I, L>; V]] = &mut Numbers::read_mut(panel)[..b.len() / stride];
        let whole = width == V * L;
        if !whole {
            // Beyond the last column the numbers are arbitrary, and their sums are not used.
            for (line, row) in panel.iter_mut().zip(b.chunks_exact(stride)) {
                for (to, own) in line.iter_mut().zip(row[from..from + width].chunks(L)) {
                    to.0[..own.len()].copy_from_slice(own);
                }
            }
        }
        let sums: &mut [[[Lanes<I, L>; V]; TILE_ROWS]] = Numbers::read_mut(sums);
        let only = sums.len() == 1;
        for (t, (packed, sums)) in packed.chunks_exact(TN_LINES).zip(sums).enumerate() {
            let new = match t {
                0 if whole && only => {
                    self.tile::<I, L, V, COPY_AND_FETCH>(packed, panel, from, (next, stride))
                }
                0 if whole => self.tile::<I, L, V, COPY>(packed, panel, from, (0, 0)),
                1 => self.tile::<I, L, V, FETCH>(packed, panel, from, (next, stride)),
                2 if d == stride => {
                    let ahead = (b.len() + self.left * TN_LINES, V * L);
                    self.tile::<I, L, V, FETCH>(packed, panel, from, ahead)
                }
                _ => self.tile::<I, L, V, READ>(packed, panel, from, (0, 0)),
            };
            for r in 0..TILE_ROWS {
                for v in 0..V {
                    sums[r][v] = if self.first { new[r][v] } else { sums[r][v] + new[r][v] };
                }
            }
        }
    }

    /// The sums of a tile over the lines of a panel. With each line it prefetches a line of b, `step` numbers after the last.
    #[inline(always)]
    fn tile<I: Instructions, const L: usize, const V: usize, const KIND: u8>(
        &self,
        packed: &[[f64; TILE_ROWS]],
        panel: &mut [[Lanes<I, L>; V]],
        from: usize,
        (mut ahead, step): (usize, usize),
    ) -> [[Lanes<I, L>; V]; TILE_ROWS] {
        let mut sums = [[Lanes::ZERO; V]; TILE_ROWS];
        for ((group, line), row) in packed.iter().zip(panel).zip(self.b.chunks_exact(self.of.stride)) {
            if KIND == COPY || KIND == COPY_AND_FETCH {
                let own: &[[Lanes<I, L>; V]] = Numbers::read(&row[from..from + V * L]);
                *line = own[0];
            }
            if KIND == FETCH || KIND == COPY_AND_FETCH {
                for more in (0..V * L).step_by(CACHE_LINE) {
                    prefetch(self.b, ahead + more);
                }
                ahead += step;
            }
            add_line(*group, line, &mut sums);
        }
        sums
    }
}

/// bᵀ in panels, for products a bᵀ of many rows.
pub(crate) struct Packed {
    /// Rows and columns of b.
    shape: (usize, usize),
    lanes: usize,
    /// Panel after panel. A line of a panel has some rows of one column of b.
    numbers: Buffer<f64>,
}

/// Which registers of `rows` rows of b each panel has: about as many each.
fn panels(rows: usize, lanes: usize) -> impl Iterator<Item = Range<usize>> {
    even_groups(0..rows.div_ceil(lanes), widest(lanes).1)
}

impl Packed {
    pub fn new(b: &Mat) -> Self {
        in_lanes(Pack(b))
    }

    /// out ← scale · a bᵀ for consecutive rows of a.
    pub fn mul(&self, scale: f64, a: &[f64], out: &mut [f64]) {
        in_lanes(Nt { scale, a, b: self, out });
    }
}

struct Pack<'a>(&'a Mat);

impl Laned for Pack<'_> {
    type Out = Packed;
    #[inline(always)]
    fn run<I: Instructions, const L: usize>(self) -> Packed {
        let (m, d) = (self.0.rows(), self.0.cols());
        let mut numbers = Buffer::filled(0.0, m.div_ceil(L) * L * d);
        let mut rest = &mut numbers[..];
        for lines in groups(0..d, NT_LINES) {
            for registers in panels(m, L) {
                let (top, width) = (registers.start * L, registers.len() * L);
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
    fn run<I: Instructions, const L: usize>(self) {
        let (m, d) = self.b.shape;
        debug_assert_eq!(self.b.lanes, L);
        for (a, out) in self.a.chunks(ROWS * d).zip(self.out.chunks_mut(ROWS * m)) {
            let mut rest = &self.b.numbers[..];
            for lines in groups(0..d, NT_LINES) {
                for registers in panels(m, L) {
                    let (panel, others) = rest.split_at(registers.len() * L * lines.len());
                    rest = others;
                    let own = (lines.clone(), registers.start * L..(registers.end * L).min(m));
                    match registers.len() {
                        1 => self.b.along::<I, L, 1, TALL_TILE_ROWS>(self.scale, a, panel, own, out),
                        2 if L == 8 => {
                            self.b.along::<I, L, 2, TALL_TILE_ROWS>(self.scale, a, panel, own, out)
                        }
                        3 if L == 8 => {
                            self.b.along::<I, L, 3, TALL_TILE_ROWS>(self.scale, a, panel, own, out)
                        }
                        _ => self.b.along::<I, L, 2, TILE_ROWS>(self.scale, a, panel, own, out),
                    }
                }
            }
        }
    }
}

impl Packed {
    /// Writes the columns of the product that belong to a panel; adds to them unless its lines are the first. With the first
    /// panel, the next rows are prefetched.
    #[inline(always)]
    fn along<I: Instructions, const L: usize, const V: usize, const R: usize>(
        &self,
        scale: f64,
        a: &[f64],
        panel: &[f64],
        (lines, columns): (Range<usize>, Range<usize>),
        out: &mut [f64],
    ) {
        let (m, d) = self.shape;
        let panel: &[[Lanes<I, L>; V]] = Numbers::read(panel);
        let (parts, last) = panel.as_chunks::<CACHE_LINE>();
        for (a, out) in a.chunks(R * d).zip(out.chunks_mut(R * m)) {
            let rows: [&[f64]; R] = std::array::from_fn(|r| {
                let from = (r * d).min(a.len() - d);
                &a[from..from + d][lines.clone()]
            });
            let rows = rows.map(|row| row.as_chunks::<CACHE_LINE>());
            let mut sums = [[Lanes::ZERO; V]; R];
            for (p, part) in parts.iter().enumerate() {
                let rows = rows.map(|(parts, _)| &parts[p]);
                if columns.start == 0 {
                    rows.iter().for_each(|row| prefetch(*row, R * d));
                }
                for k in 0..CACHE_LINE {
                    add_line(rows.map(|row| row[k]), &part[k], &mut sums);
                }
            }
            for (k, line) in last.iter().enumerate() {
                add_line(rows.map(|(_, last)| last[k]), line, &mut sums);
            }
            // Forces the sums to memory once, here: compilers would otherwise move them there and back in the loop.
            for (out, sums) in out.chunks_exact_mut(m).zip(&std::hint::black_box(sums)) {
                for (out, sums) in out[columns.clone()].chunks_mut(L).zip(sums) {
                    let (mut new, count) = (*sums * scale, out.len());
                    if lines.start > 0 {
                        let mut old = Lanes::ZERO;
                        old.0[..count].copy_from_slice(out);
                        new += old;
                    }
                    match Numbers::read_mut(out) {
                        [whole] => *whole = new,
                        _ => out.copy_from_slice(&new.0[..count]),
                    }
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
        drop(Mat::filled(3, 2, f64::NAN));
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
