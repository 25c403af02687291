//! Pairs (z_i, z'_j) at several points at once: each number of a register belongs to another point.
//!
//! With δ = z − μ and δ' = z' − μ every exponent here is Σ_q (left δ_i² + right δ'_j² + link δ_i δ'_j): a product of Q
//! features a row. Everything is relative to μ, so that no large numbers cancel. Inducing inputs come in blocks of
//! [`BLOCK`]; a [`Tile`], a block of rows by half a block of columns, fits the registers. Pairs of a term with itself are
//! symmetric: a row of blocks ends at the diagonal.

use crate::expectation::Gaussians;
use crate::fast::vmath::Numbers;
use crate::fast::vmath::{Instructions, Lanes, exp2_decay_lanes};
use crate::mat::Mat;
use crate::scratch::Buffer;
use std::ops::Range;

pub(super) const BLOCK: usize = 4;
pub(super) const HALF: usize = BLOCK / 2;
/// A block of inducing inputs at L points.
pub(super) type Rows<I, const L: usize> = [Lanes<I, L>; BLOCK];
/// Pairs at L points.
pub(super) type Tile<I, const L: usize> = [[Lanes<I, L>; HALF]; BLOCK];

/// The numbers in the widest register of any machine.
const MAX_LANES: usize = 8;

/// Which pairs there are. Entries of a block beyond the last row or column repeat it.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub rows: usize,
    pub cols: usize,
    /// Whether the lower triangle is enough.
    pub same: bool,
}

impl Shape {
    pub fn row_blocks(self) -> usize {
        self.rows.div_ceil(BLOCK)
    }

    /// How many blocks of columns block `b` of rows is paired with.
    #[inline(always)]
    pub fn reach(self, b: usize) -> usize {
        if self.same { b + 1 } else { self.cols.div_ceil(BLOCK) }
    }

    /// How many halves of block `c` of columns have any column.
    #[inline(always)]
    pub fn halves(self, c: usize) -> usize {
        (self.cols - c * BLOCK).div_ceil(HALF).min(2)
    }

    /// The first row of a tile that is needed: on the diagonal, the right half has fewer rows below it.
    #[inline(always)]
    pub fn top(self, b: usize, c: usize, h: usize) -> usize {
        if self.same && b == c { h * HALF } else { 0 }
    }

    /// The number of tiles; they go row of blocks by row of blocks.
    pub fn tiles(self) -> usize {
        (0..self.row_blocks()).flat_map(|b| 0..self.reach(b)).map(|c| self.halves(c)).sum()
    }

    /// How many numbers L points keep: the tiles, and before them, for a term with itself, the blocks of the term by itself.
    pub fn kept<const L: usize>(self) -> usize {
        self.kept_blocks() * BLOCK * L + self.tiles() * BLOCK * HALF * L
    }

    fn kept_blocks(self) -> usize {
        if self.same { self.row_blocks() } else { 0 }
    }

    /// What L points keep, or nothing, as blocks and tiles.
    #[inline(always)]
    pub fn split_kept<I: Instructions, const L: usize>(self, kept: &[f64]) -> (&[Rows<I, L>], &[Tile<I, L>]) {
        let (blocks, tiles) = kept.split_at(kept.len().min(self.kept_blocks() * BLOCK * L));
        (Numbers::read(blocks), Numbers::read(tiles))
    }

    /// [`split_kept`](Self::split_kept), to write to.
    #[inline(always)]
    pub fn split_kept_mut<I: Instructions, const L: usize>(
        self,
        kept: &mut [f64],
    ) -> (&mut [Rows<I, L>], &mut [Tile<I, L>]) {
        let (blocks, tiles) = kept.split_at_mut(kept.len().min(self.kept_blocks() * BLOCK * L));
        (Numbers::read_mut(blocks), Numbers::read_mut(tiles))
    }

    /// How many numbers `points` points keep at the most, on any machine.
    pub fn numbers(self, points: usize) -> usize {
        self.kept::<1>() * points.next_multiple_of(MAX_LANES)
    }

    /// Calls `visit(i, j, tile, row of the tile, column of the tile)` for every pair that is needed.
    pub fn each_pair(self, mut visit: impl FnMut(usize, usize, usize, usize, usize)) {
        let mut tile = 0;
        for b in 0..self.row_blocks() {
            for (c, h) in (0..self.reach(b)).flat_map(|c| (0..self.halves(c)).map(move |h| (c, h))) {
                for (r, w) in (0..BLOCK).flat_map(|r| (0..HALF).map(move |w| (r, w))) {
                    let (i, j) = (b * BLOCK + r, c * BLOCK + h * HALF + w);
                    if i < self.rows && j < self.cols && (!self.same || j <= i) {
                        visit(i, j, tile, r, w);
                    }
                }
                tile += 1;
            }
        }
    }
}

/// Exponents of 2 in one dimension, left δ² + right δ'² + link δδ', at L points: left, right, link.
pub(super) type Quadratic<I, const L: usize> = [Lanes<I, L>; 3];

/// All inducing inputs at L points.
pub(super) struct Group<I: Instructions, const L: usize> {
    pub shape: Shape,
    pub dim: usize,
    /// Q of z for each block.
    z: Buffer<[f64; BLOCK]>,
    /// (δ, 1) and link·δ: Q + 1 and Q for each block.
    pub delta: Buffer<Rows<I, L>>,
    linked: Buffer<Rows<I, L>>,
    /// The terms of the exponent that depend on the row alone, and on the column alone.
    left: Buffer<Rows<I, L>>,
    pub right: Buffer<Rows<I, L>>,
    /// μ, S and the exponents of each dimension.
    pub mean: Buffer<Lanes<I, L>>,
    pub var: Buffer<Lanes<I, L>>,
    pub exponents: Buffer<Quadratic<I, L>>,
}

/// sum + weight δ².
#[inline(always)]
pub(super) fn add_squares<I: Instructions, const L: usize>(
    sum: &mut Rows<I, L>,
    weight: Lanes<I, L>,
    delta: &Rows<I, L>,
) {
    for r in 0..BLOCK {
        sum[r] = (weight * delta[r]).mul_add(delta[r], sum[r]);
    }
}

impl<I: Instructions, const L: usize> Group<I, L> {
    pub fn new(z: &Mat, shape: Shape) -> Self {
        let (dim, count) = (z.cols(), shape.rows.max(shape.cols));
        let blocks = count.div_ceil(BLOCK);
        let at = |b: usize, q: usize| std::array::from_fn(|r| z[((b * BLOCK + r).min(count - 1), q)]);
        let (zero, one) = (Lanes::ZERO, Lanes::ONE);
        Group {
            shape,
            dim,
            z: Buffer::of((0..blocks * dim).map(|i| at(i / dim, i % dim))),
            delta: Buffer::filled([one; BLOCK], blocks * (dim + 1)),
            linked: Buffer::filled([zero; BLOCK], shape.row_blocks() * dim),
            left: Buffer::filled([zero; BLOCK], shape.row_blocks()),
            right: Buffer::filled([zero; BLOCK], blocks),
            mean: Buffer::filled(zero, dim),
            var: Buffer::filled(zero, dim),
            exponents: Buffer::filled([zero; 3], dim),
        }
    }

    /// Loads μ and S of at most L points; the last is repeated.
    #[inline(always)]
    pub fn load(&mut self, at: &Gaussians, points: Range<usize>) {
        let last = points.end - 1;
        let rows: [usize; L] = std::array::from_fn(|l| (points.start + l).min(last));
        // A register at a time: reading one whose numbers were written one by one would stall.
        for (of, to) in [(&at.mean, &mut self.mean), (&at.var, &mut self.var)] {
            let rows = rows.map(|n| &of.row(n)[..to.len()]);
            for (q, to) in to.iter_mut().enumerate() {
                *to = Lanes::of(std::array::from_fn(|l| rows[l][q]));
            }
        }
    }

    /// Computes δ; with `EXPONENTS`, also the terms of rows and columns, which are equal where both terms are the same.
    #[inline(always)]
    pub fn compute_deltas<const EXPONENTS: bool>(&mut self) {
        let (dim, row_blocks) = (self.dim, self.shape.row_blocks());
        for c in 0..self.right.len() {
            let (z, delta) =
                (&self.z[c * dim..(c + 1) * dim], &mut self.delta[c * (dim + 1)..(c + 1) * (dim + 1)]);
            let (mut left, mut right) = ([Lanes::ZERO; BLOCK], [Lanes::ZERO; BLOCK]);
            for (q, (z, delta)) in z.iter().zip(delta).enumerate() {
                let mut new = [Lanes::ZERO; BLOCK];
                for r in 0..BLOCK {
                    new[r] = Lanes::all(z[r]) - self.mean[q];
                }
                *delta = new;
                if !EXPONENTS {
                    continue;
                }
                let [own_left, own_right, link] = self.exponents[q];
                add_squares(&mut right, own_right, &new);
                if c < row_blocks {
                    let linked = &mut self.linked[c * dim + q];
                    for r in 0..BLOCK {
                        linked[r] = link * new[r];
                    }
                    if !self.shape.same {
                        add_squares(&mut left, own_left, &new);
                    }
                }
            }
            if EXPONENTS {
                self.right[c] = right;
                if c < row_blocks {
                    self.left[c] = if self.shape.same { right } else { left };
                }
            }
        }
    }

    /// Adds a constant to every exponent.
    #[inline(always)]
    pub fn add_to_exponents(&mut self, constant: Lanes<I, L>) {
        for row in self.left.as_flattened_mut() {
            *row += constant;
        }
    }

    /// 2 to the exponents of block `b` of rows, from row `TOP`, with half `h` of block `c` of columns.
    #[inline(always)]
    pub fn values<const TOP: usize>(&self, b: usize, c: usize, h: usize) -> Tile<I, L> {
        let mut values = self.exponents::<TOP>(b, c, h);
        exp2_decay_lanes(values[TOP..].as_flattened_mut());
        values
    }

    /// The exponents of block `b` of rows, from row `TOP`, with half `h` of block `c` of columns.
    #[inline(always)]
    pub fn exponents<const TOP: usize>(&self, b: usize, c: usize, h: usize) -> Tile<I, L> {
        let (dim, left, right) = (self.dim, &self.left[b], &self.right[c]);
        let mut out = [[Lanes::ZERO; HALF]; BLOCK];
        for r in TOP..BLOCK {
            for w in 0..HALF {
                out[r][w] = left[r] + right[h * HALF + w];
            }
        }
        let features = self.linked[b * dim..(b + 1) * dim].iter().zip(&self.delta[c * (dim + 1)..]);
        for (own, other) in features {
            for r in TOP..BLOCK {
                for w in 0..HALF {
                    out[r][w] = own[r].mul_add(other[h * HALF + w], out[r][w]);
                }
            }
        }
        out
    }
}
