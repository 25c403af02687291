//! Backward through pairs of pure Gaussian terms.
//!
//! With T = F̄ ∘ value and √∏D before it, the gradient needs the row and column sums of T and the products Tδ' and Tᵀδ:
//! a product of Q features a row each.

use super::gauss::{Single, place};
use super::pair::{Pair, Slopes};
use super::tile::{BLOCK, Group, HALF, Rows, Tile};
use crate::expectation::Gaussians;
use crate::mat::Mat;
use crate::scratch::Room;
use crate::vmath::{CACHE_LINE, Laned, fma, groups, in_lanes, prefetch};
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

/// Backward of a pair whose F̄, rows × cols, is the same at every point, with its values, if they were kept; and of the
/// term by itself, where both terms are the same.
pub(super) fn pull(
    pair: &Pair<'_>,
    q: &Gaussians,
    z: &Mat,
    points: Range<usize>,
    weights: &[f64],
    kept: Option<&[f64]>,
    bars: Bars<'_>,
    slopes: &mut Slopes,
    single: Option<SingleBar<'_>>,
) {
    in_lanes(Pull { pair, q, z, points, weights, kept, bars, slopes, single });
}

/// What the sums of one side of a pair give in one dimension: Σ rδ², Σ vδ and Σ rδ, of the products v of T with the
/// other side's δ and r with 1.
type Gathered<const L: usize> = [[f64; L]; 3];

/// Gathers one side in dimension `q`, and takes w_r rδ − w_v v from its z̄. Sums, δ and z̄ have Q + 1 for each block.
#[inline(always)]
fn gather<const FMA: bool, const L: usize>(
    (q, dim): (usize, usize),
    sums: &[Rows<L>],
    deltas: &[Rows<L>],
    z_bar: &mut [Rows<L>],
    (w_r, w_v): ([f64; L], [f64; L]),
) -> Gathered<L> {
    let mut all = [[0.0; L]; 3];
    let features = sums.chunks_exact(dim + 1).zip(deltas.chunks_exact(dim + 1));
    for ((sums, deltas), z_bar) in features.zip(z_bar.chunks_exact_mut(dim + 1)) {
        let (v, r, delta, mut z) = (sums[q], sums[dim], deltas[q], z_bar[q]);
        for i in 0..BLOCK {
            for l in 0..L {
                let first = r[i][l] * delta[i][l];
                all[0][l] = fma::<FMA>(first, delta[i][l], all[0][l]);
                all[1][l] = fma::<FMA>(v[i][l], delta[i][l], all[1][l]);
                all[2][l] += first;
                z[i][l] = fma::<FMA>(w_v[l], v[i][l], fma::<FMA>(-w_r[l], first, z[i][l]));
            }
        }
        z_bar[q] = z;
    }
    all
}

/// What a term gives in one dimension, in its pair with itself and by itself: Σ rδ², Σ vδ, Σ tδ², and the sum of what z̄ gets,
/// of which μ̄ is the opposite: what v and r give there cancels but for its part in D.
struct Joined<const L: usize> {
    square: [f64; L],
    linked: [f64; L],
    single: [f64; L],
    moved: [f64; L],
}

/// Gathers a term in dimension `q`: both sides of its pair with itself, whose r are joined already, and its T by itself, one
/// for each block. z̄ gets w_v v − (w_r r + w_t t) δ. All but T have Q + 1 for each block.
#[inline(always)]
fn gather_joined<const FMA: bool, const L: usize>(
    (q, dim): (usize, usize),
    (left, right): (&[Rows<L>], &[Rows<L>]),
    single: &[Rows<L>],
    deltas: &[Rows<L>],
    z_bar: &mut [Rows<L>],
    [w_r, w_v, w_t]: [[f64; L]; 3],
) -> Joined<L> {
    let (mut square, mut linked, mut alone, mut moved) = ([0.0; L], [0.0; L], [0.0; L], [0.0; L]);
    let sums = left.chunks_exact(dim + 1).zip(right.chunks_exact(dim + 1)).zip(single);
    let places = deltas.chunks_exact(dim + 1).zip(z_bar.chunks_exact_mut(dim + 1));
    for (((left, right), t), (deltas, z_bar)) in sums.zip(places) {
        let (one, other, r, delta, mut z) = (left[q], right[q], right[dim], deltas[q], z_bar[q]);
        for i in 0..BLOCK {
            for l in 0..L {
                let v = one[i][l] + other[i][l];
                let (first, second) = (r[i][l] * delta[i][l], t[i][l] * delta[i][l]);
                square[l] = fma::<FMA>(first, delta[i][l], square[l]);
                linked[l] = fma::<FMA>(v, delta[i][l], linked[l]);
                alone[l] = fma::<FMA>(second, delta[i][l], alone[l]);
                let own = fma::<FMA>(-w_t[l], second, fma::<FMA>(-w_r[l], first, w_v[l] * v));
                moved[l] += own;
                z[i][l] += own;
            }
        }
        z_bar[q] = z;
    }
    Joined { square, linked, single: alone, moved }
}

/// μ̄ and S̄ of the points where a group is, of each dimension.
struct LaneBars<const L: usize> {
    mean: Room<[f64; L]>,
    var: Room<[f64; L]>,
}

impl<const L: usize> LaneBars<L> {
    fn new(dim: usize) -> Self {
        LaneBars { mean: Room::filled([0.0; L], dim), var: Room::filled([0.0; L], dim) }
    }

    /// Adds them to the rows of so many points, and forgets them.
    #[inline(always)]
    fn hand_out(&mut self, from: usize, count: usize, bars: &mut Bars<'_>) {
        let dim = self.mean.len();
        for (lanes, to) in [(&mut self.mean, &mut bars.mean), (&mut self.var, &mut bars.var)] {
            for l in 0..count {
                let row = &mut to[(from + l) * dim..(from + l + 1) * dim];
                row.iter_mut().zip(&*lanes).for_each(|(to, lanes)| *to += lanes[l]);
            }
            lanes.fill([0.0; L]);
        }
    }
}

/// Gradients over all points so far, lane by lane.
struct LaneSlopes<const L: usize> {
    total: [f64; L],
    t_precision: Room<[f64; L]>,
    u_precision: Room<[f64; L]>,
}

impl<const L: usize> LaneSlopes<L> {
    fn new(dim: usize) -> Self {
        let [t_precision, u_precision] = [(); 2].map(|()| Room::filled([0.0; L], dim));
        LaneSlopes { total: [0.0; L], t_precision, u_precision }
    }

    /// Takes in dimension k of some points: S and D, √∏D and Σ T with it, and what both sides gathered, √∏D not in it yet.
    #[inline(always)]
    fn take(
        &mut self,
        k: usize,
        pair: &Pair<'_>,
        (var, d): (&[f64; L], &[f64; L]),
        (factor, total): (&[f64; L], &[f64; L]),
        (left, right): (Gathered<L>, Gathered<L>),
        bars: &mut LaneBars<L>,
    ) {
        let (a, b) = (pair.t.precision[k], pair.u.precision[k]);
        let [aa, cc, first] = left;
        let [bb, _, second] = right;
        let apart: [f64; L] = std::array::from_fn(|l| factor[l] * (aa[l] + bb[l] - 2.0 * cc[l]));
        let quadratic: [f64; L] =
            std::array::from_fn(|l| factor[l] * (a * aa[l] + b * bb[l]) + var[l] * a * b * apart[l]);
        let mean_bar: [f64; L] = std::array::from_fn(|l| factor[l] * d[l] * (a * first[l] + b * second[l]));
        // ∂F/∂S is (a + b) of this and −½ d ab of what is apart.
        let shared: [f64; L] = std::array::from_fn(|l| 0.5 * d[l] * (d[l] * quadratic[l] - total[l]));
        let var_bar: [f64; L] = std::array::from_fn(|l| (a + b) * shared[l] - 0.5 * d[l] * a * b * apart[l]);
        for l in 0..L {
            self.t_precision[k][l] +=
                var[l] * shared[l] - 0.5 * d[l] * (factor[l] * aa[l] + var[l] * b * apart[l]);
        }
        for l in 0..L {
            self.u_precision[k][l] +=
                var[l] * shared[l] - 0.5 * d[l] * (factor[l] * bb[l] + var[l] * a * apart[l]);
        }
        for l in 0..L {
            bars.mean[k][l] += mean_bar[l];
        }
        for l in 0..L {
            bars.var[k][l] += var_bar[l];
        }
    }

    /// Takes in dimension k of a term in its pair with itself and by itself, `own`: S, D, √∏D and Σ T with it, of both. What
    /// belongs to either place of the term in its pair is in one of them.
    #[inline(always)]
    fn take_joined(
        &mut self,
        own: &mut Self,
        (k, a): (usize, f64),
        var: &[f64; L],
        ([d, factor, total], [own_d, own_factor, own_total]): ([&[f64; L]; 3], [&[f64; L]; 3]),
        sums: &Joined<L>,
        bars: &mut LaneBars<L>,
    ) {
        for l in 0..L {
            let square = factor[l] * sums.square[l];
            let apart = square - factor[l] * sums.linked[l];
            let quadratic = a * square + var[l] * a * a * apart;
            let shared = 0.5 * d[l] * (d[l] * quadratic - total[l]);
            let own_square = own_factor[l] * sums.single[l];
            let own_shared = 0.5 * own_d[l] * (own_d[l] * a * own_square - own_total[l]);
            self.u_precision[k][l] += 2.0 * var[l] * shared - d[l] * (0.5 * square + var[l] * a * apart);
            own.u_precision[k][l] += var[l] * own_shared - 0.5 * own_d[l] * own_square;
            bars.mean[k][l] -= sums.moved[l];
            bars.var[k][l] += a * (2.0 * shared - 0.5 * d[l] * a * apart + own_shared);
        }
    }

    fn add_to(self, slopes: &mut Slopes) {
        let add = |to: &mut [f64], from: &[[f64; L]]| {
            to.iter_mut().zip(from).for_each(|(to, lanes)| *to += lanes.iter().sum::<f64>());
        };
        slopes.total += self.total.iter().sum::<f64>();
        add(&mut slopes.t_precision, &self.t_precision);
        add(&mut slopes.u_precision, &self.u_precision);
    }
}

/// a + b. By value, it is a vector's work.
#[inline(always)]
fn sum_rows<const L: usize>(a: &Rows<L>, b: &Rows<L>) -> Rows<L> {
    std::array::from_fn(|r| std::array::from_fn(|l| a[r][l] + b[r][l]))
}

/// Adds lanes of z̄, Q + 1 for each block, to Q×count numbers.
fn add_z<const L: usize>(dim: usize, lanes: &[Rows<L>], count: usize, to: &mut [f64]) {
    for q in 0..dim {
        for i in 0..count {
            to[q * count + i] += lanes[i / BLOCK * (dim + 1) + q][i % BLOCK].iter().sum::<f64>();
        }
    }
}

struct Pull<'t> {
    pair: &'t Pair<'t>,
    q: &'t Gaussians,
    z: &'t Mat,
    points: Range<usize>,
    weights: &'t [f64],
    kept: Option<&'t [f64]>,
    bars: Bars<'t>,
    slopes: &'t mut Slopes,
    single: Option<SingleBar<'t>>,
}

/// Adds T(δ', 1) to the rows' sums and Tᵀ(δ, 1) to those of half `h` of a block of columns; T, the values weighed, begins
/// with row `TOP`, and sums that are the first of their kind begin at 0.
#[inline(always)]
fn add_tile<const FMA: bool, const TOP: usize, const L: usize>(
    mut t: Tile<L>,
    weights: &[[f64; HALF]; BLOCK],
    h: usize,
    (delta, sums, first): (&[Rows<L>], &mut [Rows<L>], bool),
    (other_delta, other_sums, other_first): (&[Rows<L>], &mut [Rows<L>], bool),
) {
    for r in TOP..BLOCK {
        for w in 0..HALF {
            t[r][w] = t[r][w].map(|v| v * weights[r][w]);
        }
    }
    let begin = |sum: &Rows<L>| if first { [[0.0; L]; BLOCK] } else { *sum };
    let begin_other = |sum: &Rows<L>| -> [[f64; L]; HALF] {
        std::array::from_fn(|w| if other_first { [0.0; L] } else { sum[h * HALF + w] })
    };
    let dim = delta.len() - 1;
    let columns = other_delta.iter().zip(&mut *other_sums);
    for ((delta, sum), (other_delta, other_sum)) in delta.iter().zip(&mut *sums).zip(columns).take(dim) {
        let other: [[f64; L]; HALF] = std::array::from_fn(|w| other_delta[h * HALF + w]);
        let mut new = begin(sum);
        for r in TOP..BLOCK {
            for w in 0..HALF {
                for l in 0..L {
                    new[r][l] = fma::<FMA>(t[r][w][l], other[w][l], new[r][l]);
                }
            }
        }
        *sum = new;
        let mut new = begin_other(other_sum);
        for w in 0..HALF {
            for r in TOP..BLOCK {
                for l in 0..L {
                    new[w][l] = fma::<FMA>(t[r][w][l], delta[r][l], new[w][l]);
                }
            }
        }
        (0..HALF).for_each(|w| other_sum[h * HALF + w] = new[w]);
    }
    // What meets 1 is added, beside the products.
    let (sum, other_sum) = (&mut sums[dim], &mut other_sums[dim]);
    let (mut new, mut other) = (begin(sum), begin_other(other_sum));
    for r in TOP..BLOCK {
        for w in 0..HALF {
            for l in 0..L {
                new[r][l] += t[r][w][l];
                other[w][l] += t[r][w][l];
            }
        }
    }
    *sum = new;
    (0..HALF).for_each(|w| other_sum[h * HALF + w] = other[w]);
}

/// Fetches a tile to come. What was kept is read once, and what lies a page of memory ahead is there when it is needed.
#[inline(always)]
fn fetch_ahead<const L: usize>(tiles: &[Tile<L>]) {
    const AHEAD: usize = 16;
    let numbers = tiles.as_flattened().as_flattened().as_flattened();
    let size = BLOCK * HALF * L;
    (0..size).step_by(CACHE_LINE).for_each(|line| prefetch(numbers, AHEAD * size + line));
}

impl Laned for Pull<'_> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool, const L: usize>(self) {
        let Pull { pair, q, z, points, weights, kept, mut bars, slopes, single } = self;
        let shape = pair.shape();
        debug_assert!(kept.is_none_or(|kept| kept.len() >= shape.numbers(points.len())));
        debug_assert!(single.is_none() || shape.same);
        let mut kept = kept.map(|kept| kept.chunks_exact(shape.kept::<L>()));
        let mut group = Group::<L>::new(z, shape);
        let (dim, features) = (group.dim, group.dim + 1);
        let mut all = Room::filled([[0.0; HALF]; BLOCK], shape.tiles());
        shape.each_pair(|i, j, tile, r, w| all[tile][r][w] = weights[i * shape.cols + j]);
        // Sums of the rows and of the columns, and their z̄; where the terms are the same, both are gathered as one.
        let lengths = [shape.row_blocks(), group.right.len()].map(|blocks| blocks * features);
        let mut room = [lengths, lengths].map(|of| of.map(|count| Room::filled([[0.0; L]; BLOCK], count)));
        let [[left, right], [left_z, right_z]] =
            room.each_mut().map(|pair| pair.each_mut().map(|room| &mut **room));
        let (mut lanes, mut lane_bars) = (LaneSlopes::<L>::new(dim), LaneBars::<L>::new(dim));
        let mut back = single.as_ref().map(|bar| SingleBack::<L>::new(bar.pair, &group));
        let start = points.start;
        for points in groups(points, L) {
            let factor = match kept {
                Some(_) => place::<FMA, false, L>(&mut group, pair, q, points.clone()),
                None => place::<FMA, true, L>(&mut group, pair, q, points.clone()),
            };
            let kept = kept.as_mut().and_then(Iterator::next).unwrap_or_default();
            let (blocks, tiles) = shape.split_kept::<L>(kept);
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
                        // The first tile of a row or a column of blocks begins its sums.
                        let rows = (delta, &mut *sums, c + h == 0);
                        let columns =
                            (other_delta, &mut *other_sums, if shape.same { b == c } else { b == 0 });
                        match shape.top(b, c, h) {
                            0 => {
                                let values = kept.copied().unwrap_or_else(|| group.values::<FMA, 0>(b, c, h));
                                add_tile::<FMA, 0, L>(values, weights, h, rows, columns);
                            }
                            _ => {
                                let values =
                                    kept.copied().unwrap_or_else(|| group.values::<FMA, HALF>(b, c, h));
                                add_tile::<FMA, HALF, L>(values, weights, h, rows, columns);
                            }
                        }
                    }
                }
            }
            let mut total = [0.0; L];
            for rows in left.iter().skip(dim).step_by(features) {
                for r in 0..BLOCK {
                    (0..L).for_each(|l| total[l] += factor[l] * rows[r][l]);
                }
            }
            (0..L).for_each(|l| lanes.total[l] += total[l]);
            let scales = |k: usize, precision: f64, factor: &[f64; L]| -> [[f64; L]; 2] {
                let d = std::array::from_fn(|l| 1.0 / (1.0 + precision * group.var[k][l]));
                [d, std::array::from_fn(|l| factor[l] * d[l])]
            };
            if let (Some(bar), Some(back)) = (&single, &mut back) {
                let own = back.weigh::<FMA>(bar, &group, points.clone(), blocks);
                for (right, left) in right.chunks_exact_mut(features).zip(left.chunks_exact(features)) {
                    right[dim] = sum_rows(&right[dim], &left[dim]);
                }
                for k in (0..dim).filter(|k| pair.u.precision[*k] != 0.0) {
                    let (a, var) = (pair.u.precision[k], group.var[k]);
                    let ([d, scale], [own_d, own_scale]) =
                        (scales(k, 2.0 * a, &factor), scales(k, a, &own.0));
                    let cross: [f64; L] = std::array::from_fn(|l| scale[l] * var[l] * a * a);
                    let weights =
                        [std::array::from_fn(|l| scale[l] * a + cross[l]), cross, own_scale.map(|s| s * a)];
                    let (sides, at) = ((&*left, &*right), (k, dim));
                    let sums = gather_joined::<FMA, L>(at, sides, &back.t, &group.delta, right_z, weights);
                    let both = ([&d, &factor, &total], [&own_d, &own.0, &own.1]);
                    lanes.take_joined(&mut back.lanes, (k, a), &var, both, &sums, &mut lane_bars);
                }
            } else {
                for k in 0..dim {
                    let (a, b, var) = (pair.t.precision[k], pair.u.precision[k], group.var[k]);
                    if a == 0.0 && b == 0.0 {
                        continue;
                    }
                    let [d, scale] = scales(k, a + b, &factor);
                    let cross: [f64; L] = std::array::from_fn(|l| scale[l] * var[l] * a * b);
                    let weigh = |p: f64| (std::array::from_fn(|l| scale[l] * p + cross[l]), cross);
                    let sides = (
                        gather::<FMA, L>((k, dim), left, &group.delta, left_z, weigh(a)),
                        gather::<FMA, L>((k, dim), right, &group.delta, right_z, weigh(b)),
                    );
                    lanes.take(k, pair, (&var, &d), (&factor, &total), sides, &mut lane_bars);
                }
            }
            lane_bars.hand_out(points.start - start, points.len(), &mut bars);
        }
        lanes.add_to(slopes);
        if let (Some(bar), Some(back)) = (single, back) {
            back.lanes.add_to(bar.slopes);
        }
        add_z(dim, left_z, shape.rows, &mut slopes.t_z);
        add_z(dim, right_z, shape.cols, &mut slopes.u_z);
    }
}

/// Room for the way back of a term by itself.
struct SingleBack<'t, const L: usize> {
    single: Single<'t, L>,
    /// T of each block.
    t: Room<Rows<L>>,
    lanes: LaneSlopes<L>,
}

impl<'t, const L: usize> SingleBack<'t, L> {
    fn new(pair: &'t Pair<'t>, group: &Group<L>) -> Self {
        SingleBack {
            single: Single::new(&pair.u.precision, group),
            t: Room::filled([[0.0; L]; BLOCK], group.right.len()),
            lanes: LaneSlopes::new(group.dim),
        }
    }

    /// T at the points where the group is, from the values of each block, if they were kept; √∏D, and Σ T with it.
    #[inline(always)]
    fn weigh<const FMA: bool>(
        &mut self,
        bar: &SingleBar<'_>,
        group: &Group<L>,
        points: Range<usize>,
        kept: &[Rows<L>],
    ) -> ([f64; L], [f64; L]) {
        let width = self.single.lines.len() / L;
        let factor = self.single.place(group, points.len());
        // Places beyond the last column, and lanes beyond the last point, count nothing.
        for (line, n) in self.single.lines.chunks_exact_mut(width).zip(points) {
            (bar.weigh)(n, &mut line[..bar.pair.cols]);
        }
        let mut total = [0.0; L];
        for (c, to) in self.t.iter_mut().enumerate() {
            let values = kept.get(c).copied().unwrap_or_else(|| self.single.values::<FMA>(group, c));
            let mut t: Rows<L> = std::array::from_fn(|r| {
                std::array::from_fn(|l| self.single.lines[l * width + c * BLOCK + r])
            });
            for r in 0..BLOCK {
                (0..L).for_each(|l| t[r][l] *= values[r][l]);
                (0..L).for_each(|l| total[l] = fma::<FMA>(factor[l], t[r][l], total[l]));
            }
            *to = t;
        }
        (0..L).for_each(|l| self.lanes.total[l] += total[l]);
        (factor, total)
    }
}
