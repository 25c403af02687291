//! Backward through pairs of pure Gaussian terms.
//!
//! With T = F̄ ∘ value, the gradient is √∏D times sums of T over rows and columns and products Tδ' and Tᵀδ, with Q features a
//! row each.

use super::gauss::{Single, load};
use super::pair::{Pair, PairAt, Slopes};
use super::tile::{BLOCK, Group, HALF, Rows, Tile};
use crate::fast::vmath::{CACHE_LINE, Instructions, Laned, Lanes, groups, prefetch};
use crate::scratch::Buffer;
use std::ops::Range;

/// Where the gradients of some points are added: their rows of μ̄ and S̄.
pub(super) struct Bars<'g> {
    pub mean: &'g mut [f64],
    pub var: &'g mut [f64],
}

/// The term of a pair with itself, by itself, as Ψ1 has it: `weigh(n, out)` writes F̄ of its values at point n. Its z̄ goes to the
/// slopes of the pair, and stays 0 in its own.
pub(super) struct SingleBar<'g> {
    pub pair: &'g Pair<'g>,
    pub weigh: &'g dyn Fn(usize, &mut [f64]),
    pub slopes: &'g mut Slopes,
}

/// What the sums of one side of a pair give in one dimension: Σ rδ², Σ vδ and Σ rδ, of the products v of T with the
/// other side's δ and r with 1.
type Gathered<I, const L: usize> = [Lanes<I, L>; 3];

/// Gathers one side in dimension `q`, and takes w_r rδ − w_v v from its z̄. Sums, δ and z̄ have Q + 1 for each block.
#[inline(always)]
fn gather<I: Instructions, const L: usize>(
    (q, dim): (usize, usize),
    sums: &[Rows<I, L>],
    deltas: &[Rows<I, L>],
    z_bar: &mut [Rows<I, L>],
    (w_r, w_v): (Lanes<I, L>, Lanes<I, L>),
) -> Gathered<I, L> {
    let mut all = [Lanes::ZERO; 3];
    let features = sums.chunks_exact(dim + 1).zip(deltas.chunks_exact(dim + 1));
    for ((sums, deltas), z_bar) in features.zip(z_bar.chunks_exact_mut(dim + 1)) {
        let (v, r, delta, z) = (&sums[q], &sums[dim], &deltas[q], &mut z_bar[q]);
        for i in 0..BLOCK {
            let first = r[i] * delta[i];
            all[0] = first.mul_add(delta[i], all[0]);
            all[1] = v[i].mul_add(delta[i], all[1]);
            all[2] += first;
            z[i] = w_v.mul_add(v[i], w_r.neg_mul_add(first, z[i]));
        }
    }
    all
}

/// What a term gives in one dimension, in its pair with itself and by itself: Σ rδ², Σ vδ, Σ tδ², and the sum of what z̄ gets,
/// of which μ̄ is the opposite: what v and r give there cancels but for its part in D.
struct Joined<I: Instructions, const L: usize> {
    square: Lanes<I, L>,
    linked: Lanes<I, L>,
    single: Lanes<I, L>,
    moved: Lanes<I, L>,
}

/// Gathers a term in dimension `q`: both sides of its pair with itself, whose r are joined already, and its T by itself, one
/// for each block. z̄ gets w_v v − (w_r r + w_t t) δ. All but T have Q + 1 for each block.
#[inline(always)]
fn gather_joined<I: Instructions, const L: usize>(
    (q, dim): (usize, usize),
    (left, right): (&[Rows<I, L>], &[Rows<I, L>]),
    single: &[Rows<I, L>],
    deltas: &[Rows<I, L>],
    z_bar: &mut [Rows<I, L>],
    [w_r, w_v, w_t]: [Lanes<I, L>; 3],
) -> Joined<I, L> {
    let [mut square, mut linked, mut alone, mut moved] = [Lanes::ZERO; 4];
    let sums = left.chunks_exact(dim + 1).zip(right.chunks_exact(dim + 1)).zip(single);
    let inputs = deltas.chunks_exact(dim + 1).zip(z_bar.chunks_exact_mut(dim + 1));
    for (((left, right), t), (deltas, z_bar)) in sums.zip(inputs) {
        let (one, other, r, delta, z) = (&left[q], &right[q], &right[dim], &deltas[q], &mut z_bar[q]);
        for i in 0..BLOCK {
            let v = one[i] + other[i];
            let (first, second) = (r[i] * delta[i], t[i] * delta[i]);
            square = first.mul_add(delta[i], square);
            linked = v.mul_add(delta[i], linked);
            alone = second.mul_add(delta[i], alone);
            let own = w_t.neg_mul_add(second, w_r.neg_mul_add(first, w_v * v));
            moved += own;
            z[i] += own;
        }
    }
    Joined { square, linked, single: alone, moved }
}

/// μ̄ and S̄ of the points of a group, for each dimension.
struct LaneBars<I: Instructions, const L: usize> {
    mean: Buffer<Lanes<I, L>>,
    var: Buffer<Lanes<I, L>>,
}

impl<I: Instructions, const L: usize> LaneBars<I, L> {
    fn new(dim: usize) -> Self {
        LaneBars { mean: Buffer::filled(Lanes::ZERO, dim), var: Buffer::filled(Lanes::ZERO, dim) }
    }

    /// Adds them to the rows of `count` points, and sets them to 0.
    #[inline(always)]
    fn flush(&mut self, from: usize, count: usize, bars: &mut Bars<'_>) {
        let dim = self.mean.len();
        for (lanes, to) in [(&mut self.mean, &mut bars.mean), (&mut self.var, &mut bars.var)] {
            for l in 0..count {
                let row = &mut to[(from + l) * dim..(from + l + 1) * dim];
                row.iter_mut().zip(&*lanes).for_each(|(to, lanes)| *to += lanes.0[l]);
            }
            lanes.fill(Lanes::ZERO);
        }
    }
}

/// Partial sums of gradients, one for each lane.
struct LaneSlopes<I: Instructions, const L: usize> {
    total: Lanes<I, L>,
    t_precision: Buffer<Lanes<I, L>>,
    u_precision: Buffer<Lanes<I, L>>,
}

impl<I: Instructions, const L: usize> LaneSlopes<I, L> {
    fn new(dim: usize) -> Self {
        let [t_precision, u_precision] = [(); 2].map(|()| Buffer::filled(Lanes::ZERO, dim));
        LaneSlopes { total: Lanes::ZERO, t_precision, u_precision }
    }

    /// Adds dimension k of some points, from S and D, √∏D and Σ T with it, and the sums of both sides without it.
    #[inline(always)]
    fn add(
        &mut self,
        k: usize,
        pair: &Pair<'_>,
        (var, d): (Lanes<I, L>, Lanes<I, L>),
        (factor, total): (Lanes<I, L>, Lanes<I, L>),
        (left, right): (Gathered<I, L>, Gathered<I, L>),
        bars: &mut LaneBars<I, L>,
    ) {
        let (a, b) = (pair.t.precision[k], pair.u.precision[k]);
        let [aa, cc, first] = left;
        let [bb, _, second] = right;
        let apart = factor * (aa + bb - cc * 2.0);
        let quadratic = factor * (aa * a + bb * b) + var * (a * b) * apart;
        // ∂F/∂S is (a + b) of this and −½ d ab of what is apart.
        let shared = d * 0.5 * (d * quadratic - total);
        self.t_precision[k] += var * shared - d * 0.5 * (factor * aa + var * b * apart);
        self.u_precision[k] += var * shared - d * 0.5 * (factor * bb + var * a * apart);
        bars.mean[k] += factor * d * (first * a + second * b);
        bars.var[k] += shared * (a + b) - d * (0.5 * a * b) * apart;
    }

    /// Adds dimension k of a term in its pair with itself, and of the term by itself to `own`, from S, and D, √∏D and Σ T with it
    /// of both. Both sides of the pair are added to `u_precision`.
    #[inline(always)]
    fn add_joined(
        &mut self,
        own: &mut Self,
        (k, a): (usize, f64),
        var: Lanes<I, L>,
        ([d, factor, total], [own_d, own_factor, own_total]): ([Lanes<I, L>; 3], [Lanes<I, L>; 3]),
        sums: &Joined<I, L>,
        bars: &mut LaneBars<I, L>,
    ) {
        let square = factor * sums.square;
        let apart = square - factor * sums.linked;
        let quadratic = square * a + var * (a * a) * apart;
        let shared = d * 0.5 * (d * quadratic - total);
        let own_square = own_factor * sums.single;
        let own_shared = own_d * 0.5 * (own_d * a * own_square - own_total);
        self.u_precision[k] += var * shared * 2.0 - d * (square * 0.5 + var * a * apart);
        own.u_precision[k] += var * own_shared - own_d * 0.5 * own_square;
        bars.mean[k] -= sums.moved;
        bars.var[k] += (shared * 2.0 - d * (0.5 * a) * apart + own_shared) * a;
    }

    fn add_to(self, slopes: &mut Slopes) {
        let add = |to: &mut [f64], from: &[Lanes<I, L>]| {
            to.iter_mut().zip(from).for_each(|(to, lanes)| *to += lanes.sum());
        };
        slopes.total += self.total.sum();
        add(&mut slopes.t_precision, &self.t_precision);
        add(&mut slopes.u_precision, &self.u_precision);
    }
}

/// Adds lanes of z̄, Q + 1 for each block, to Q×count numbers.
fn add_z<I: Instructions, const L: usize>(dim: usize, lanes: &[Rows<I, L>], count: usize, to: &mut [f64]) {
    for q in 0..dim {
        for i in 0..count {
            to[q * count + i] += lanes[i / BLOCK * (dim + 1) + q][i % BLOCK].sum();
        }
    }
}

/// D = 1/(1 + pS).
#[inline(always)]
fn shrunk<I: Instructions, const L: usize>(var: Lanes<I, L>, precision: f64) -> Lanes<I, L> {
    Lanes::ONE / (Lanes::ONE + var * precision)
}

/// Backward of a pair whose F̄ is the same at every point.
pub(super) struct Pull<'t> {
    pub at: PairAt<'t>,
    /// F̄, rows × cols.
    pub weights: &'t [f64],
    /// The values, if the forward pass kept them.
    pub kept: Option<&'t [f64]>,
    pub bars: Bars<'t>,
    pub slopes: &'t mut Slopes,
    /// The term by itself, where both terms are the same.
    pub single: Option<SingleBar<'t>>,
}

/// Adds T(δ', 1) to the sums of rows and Tᵀ(δ, 1) to those of half `h` of a block of columns. T, the values times their weights,
/// begins with row `TOP`; `first` sums start from 0.
#[inline(always)]
fn add_tile<I: Instructions, const TOP: usize, const L: usize>(
    mut t: Tile<I, L>,
    weights: &[[f64; HALF]; BLOCK],
    h: usize,
    (delta, sums, first): (&[Rows<I, L>], &mut [Rows<I, L>], bool),
    (other_delta, other_sums, other_first): (&[Rows<I, L>], &mut [Rows<I, L>], bool),
) {
    for r in TOP..BLOCK {
        for w in 0..HALF {
            t[r][w] = t[r][w] * weights[r][w];
        }
    }
    let dim = delta.len() - 1;
    let columns = other_delta.iter().zip(&mut *other_sums);
    for ((delta, sum), (other_delta, other_sum)) in delta.iter().zip(&mut *sums).zip(columns).take(dim) {
        let mut new = if first { [Lanes::ZERO; BLOCK] } else { *sum };
        let mut other = [Lanes::ZERO; HALF];
        if !other_first {
            (0..HALF).for_each(|w| other[w] = other_sum[h * HALF + w]);
        }
        for r in TOP..BLOCK {
            for w in 0..HALF {
                new[r] = t[r][w].mul_add(other_delta[h * HALF + w], new[r]);
                other[w] = t[r][w].mul_add(delta[r], other[w]);
            }
        }
        *sum = new;
        (0..HALF).for_each(|w| other_sum[h * HALF + w] = other[w]);
    }
    // The feature 1 needs no product.
    let (sum, other_sum) = (&mut sums[dim], &mut other_sums[dim]);
    for r in 0..BLOCK {
        let mut new = if first { Lanes::ZERO } else { sum[r] };
        if r >= TOP {
            (0..HALF).for_each(|w| new += t[r][w]);
        }
        sum[r] = new;
    }
    for w in 0..HALF {
        let mut new = if other_first { Lanes::ZERO } else { other_sum[h * HALF + w] };
        (TOP..BLOCK).for_each(|r| new += t[r][w]);
        other_sum[h * HALF + w] = new;
    }
}

/// Prefetches a later tile: kept tiles are read once, in order.
#[inline(always)]
fn fetch_ahead<I: Instructions, const L: usize>(tiles: &[Tile<I, L>]) {
    const AHEAD: usize = 16;
    let size = BLOCK * HALF * L;
    (0..size).step_by(CACHE_LINE).for_each(|line| prefetch(tiles, AHEAD * size + line));
}

impl Laned for Pull<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions, const L: usize>(self) {
        let Pull { at, weights, kept, mut bars, slopes, single } = self;
        let PairAt { pair, z, ref points, .. } = at;
        let shape = pair.shape();
        debug_assert!(kept.is_none_or(|kept| kept.len() >= shape.numbers(points.len())));
        debug_assert!(single.is_none() || shape.same);
        let mut kept = kept.map(|kept| kept.chunks_exact(shape.kept::<L>()));
        let mut group = Group::<I, L>::new(z, shape);
        let (dim, features) = (group.dim, group.dim + 1);
        let mut all = Buffer::filled([[0.0; HALF]; BLOCK], shape.tiles());
        shape.each_pair(|i, j, tile, r, w| all[tile][r][w] = weights[i * shape.cols + j]);
        // Sums of rows and of columns, and their z̄; where the terms are the same, z̄ is all in that of the columns.
        let lengths = [shape.row_blocks(), group.right.len()].map(|blocks| blocks * features);
        let mut buffers =
            [lengths, lengths].map(|of| of.map(|count| Buffer::filled([Lanes::<I, L>::ZERO; BLOCK], count)));
        let [[left, right], [left_z, right_z]] =
            buffers.each_mut().map(|pair| pair.each_mut().map(|buffer| &mut **buffer));
        let (mut lanes, mut lane_bars) = (LaneSlopes::<I, L>::new(dim), LaneBars::<I, L>::new(dim));
        let mut back = single.as_ref().map(|bar| SingleBack::<I, L>::new(bar.pair, &group));
        let start = points.start;
        for points in groups(points.clone(), L) {
            let factor = match kept {
                Some(_) => load::<I, false, L>(&mut group, &at, points.clone()),
                None => load::<I, true, L>(&mut group, &at, points.clone()),
            };
            let kept = kept.as_mut().and_then(Iterator::next).unwrap_or_default();
            let (blocks, tiles) = shape.split_kept::<I, L>(kept);
            let mut tiles = tiles.iter();
            let mut weights = all.iter();
            for (b, sums) in left.chunks_exact_mut(features).enumerate() {
                let delta = &group.delta[b * features..(b + 1) * features];
                for c in 0..shape.reach(b) {
                    let own = c * features..(c + 1) * features;
                    let (other_delta, other_sums) = (&group.delta[own.clone()], &mut right[own]);
                    for (h, weights) in (0..shape.halves(c)).zip(&mut weights) {
                        if !tiles.as_slice().is_empty() {
                            fetch_ahead(tiles.as_slice());
                        }
                        let kept = tiles.next();
                        // The first tile of a row or a column of blocks starts its sums.
                        let rows = (delta, &mut *sums, c + h == 0);
                        let columns =
                            (other_delta, &mut *other_sums, if shape.same { b == c } else { b == 0 });
                        match shape.top(b, c, h) {
                            0 => {
                                let values = kept.copied().unwrap_or_else(|| group.values::<0>(b, c, h));
                                add_tile::<I, 0, L>(values, weights, h, rows, columns);
                            }
                            _ => {
                                let values = kept.copied().unwrap_or_else(|| group.values::<HALF>(b, c, h));
                                add_tile::<I, HALF, L>(values, weights, h, rows, columns);
                            }
                        }
                    }
                }
            }
            let mut total = Lanes::ZERO;
            for rows in left.iter().skip(dim).step_by(features) {
                for r in 0..BLOCK {
                    total = factor.mul_add(rows[r], total);
                }
            }
            lanes.total += total;
            if let (Some(bar), Some(back)) = (&single, &mut back) {
                let (own_factor, own_total) = back.weigh(bar, &group, points.clone(), blocks);
                for (right, left) in right.chunks_exact_mut(features).zip(left.chunks_exact(features)) {
                    (0..BLOCK).for_each(|r| right[dim][r] += left[dim][r]);
                }
                for k in (0..dim).filter(|k| pair.u.precision[*k] != 0.0) {
                    let (a, var) = (pair.u.precision[k], group.var[k]);
                    let (d, own_d) = (shrunk(var, 2.0 * a), shrunk(var, a));
                    let (scale, own_scale) = (factor * d, own_factor * own_d);
                    let cross = scale * var * (a * a);
                    let weights = [scale * a + cross, cross, own_scale * a];
                    let (sides, at) = ((&*left, &*right), (k, dim));
                    let sums = gather_joined(at, sides, &back.t, &group.delta, right_z, weights);
                    let both = ([d, factor, total], [own_d, own_factor, own_total]);
                    lanes.add_joined(&mut back.lanes, (k, a), var, both, &sums, &mut lane_bars);
                }
            } else {
                for k in 0..dim {
                    let (a, b, var) = (pair.t.precision[k], pair.u.precision[k], group.var[k]);
                    if a == 0.0 && b == 0.0 {
                        continue;
                    }
                    let d = shrunk(var, a + b);
                    let scale = factor * d;
                    let cross = scale * var * (a * b);
                    let sides = (
                        gather((k, dim), left, &group.delta, left_z, (scale * a + cross, cross)),
                        gather((k, dim), right, &group.delta, right_z, (scale * b + cross, cross)),
                    );
                    lanes.add(k, pair, (var, d), (factor, total), sides, &mut lane_bars);
                }
            }
            lane_bars.flush(points.start - start, points.len(), &mut bars);
        }
        lanes.add_to(slopes);
        if let (Some(bar), Some(back)) = (single, back) {
            back.lanes.add_to(bar.slopes);
        }
        add_z(dim, left_z, shape.rows, &mut slopes.t_z);
        add_z(dim, right_z, shape.cols, &mut slopes.u_z);
    }
}

/// Working memory for the backward pass of a term by itself.
struct SingleBack<'t, I: Instructions, const L: usize> {
    single: Single<'t, I, L>,
    /// T of each block.
    t: Buffer<Rows<I, L>>,
    lanes: LaneSlopes<I, L>,
}

impl<'t, I: Instructions, const L: usize> SingleBack<'t, I, L> {
    fn new(pair: &'t Pair<'t>, group: &Group<I, L>) -> Self {
        SingleBack {
            single: Single::new(&pair.u.precision, group),
            t: Buffer::filled([Lanes::ZERO; BLOCK], group.right.len()),
            lanes: LaneSlopes::new(group.dim),
        }
    }

    /// Computes T at the points of the group, from the kept values of each block where there are any; returns √∏D, and Σ T with
    /// it.
    #[inline(always)]
    fn weigh(
        &mut self,
        bar: &SingleBar<'_>,
        group: &Group<I, L>,
        points: Range<usize>,
        kept: &[Rows<I, L>],
    ) -> (Lanes<I, L>, Lanes<I, L>) {
        let width = self.single.lines.len() / L;
        let factor = self.single.load(group, points.len());
        // F̄ is 0 beyond the last column, and √∏D in lanes without a point.
        for (line, n) in self.single.lines.chunks_exact_mut(width).zip(points) {
            (bar.weigh)(n, &mut line[..bar.pair.cols]);
        }
        let mut total = Lanes::ZERO;
        for (c, to) in self.t.iter_mut().enumerate() {
            let values = kept.get(c).copied().unwrap_or_else(|| self.single.values(group, c));
            for r in 0..BLOCK {
                let bar = Lanes::of(std::array::from_fn(|l| self.single.lines[l * width + c * BLOCK + r]));
                to[r] = bar * values[r];
                total = factor.mul_add(to[r], total);
            }
        }
        self.lanes.total += total;
        (factor, total)
    }
}
