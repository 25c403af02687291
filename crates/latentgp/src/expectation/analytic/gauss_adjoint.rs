//! Backward through pairs of pure Gaussian terms.
//!
//! With T = F̄ ∘ value and √∏D before it, the gradient needs the row and column sums of T and the products Tδ' and Tᵀδ:
//! a matrix product of Q features a row each.

use super::gauss::{ROWS, place};
use super::pair::{Pair, Slopes};
use super::tile::{Chunk, LANES, Lanes, Tile};
use crate::expectation::Gaussians;
use crate::mat::Mat;
use crate::vmath::{Vectorized, exp, fma, vectorize};
use std::ops::Range;

/// Sums over a row run in this many places.
const SUMS: usize = LANES / 2;

/// Where the gradients of some points are added: their rows of μ̄ and S̄.
pub(super) struct Bars<'g> {
    pub mean: &'g mut [f64],
    pub var: &'g mut [f64],
}

/// Backward of a pair with one row, where `weigh(n, out)` writes F̄ of the values of point n.
pub(super) fn pull_rows(
    pair: &Pair<'_>,
    q: &Gaussians,
    z: &Mat,
    points: Range<usize>,
    weigh: &dyn Fn(usize, &mut [f64]),
    bars: Bars<'_>,
    slopes: &mut Slopes,
) {
    let tile = Tile::<1>::new(z, 1, pair.cols, false);
    let mut weigh = |n: usize, out: &mut [Chunk<1>]| {
        weigh(n, &mut out.as_flattened_mut().as_flattened_mut()[..pair.cols]);
    };
    vectorize(Pull {
        sums: Sums::new(&tile),
        weights: tile.pairs(),
        tile,
        pair,
        q,
        points,
        weigh: &mut weigh,
        bars,
        slopes,
    });
}

/// Backward of a pair whose F̄, rows × cols, is the same at every point.
pub(super) fn pull(
    pair: &Pair<'_>,
    q: &Gaussians,
    z: &Mat,
    points: Range<usize>,
    weights: &[f64],
    bars: Bars<'_>,
    slopes: &mut Slopes,
) {
    let tile = Tile::<ROWS>::new(z, pair.rows, pair.cols, pair.same);
    let mut all = tile.pairs();
    tile.each_pair(|i, j, chunk, r, k| all[chunk][r][k] = weights[i * pair.cols + j]);
    let weigh = &mut |_: usize, _: &mut [Chunk<ROWS>]| {};
    vectorize(Pull { sums: Sums::new(&tile), weights: all, tile, pair, q, points, weigh, bars, slopes });
}

struct Pull<'t, const R: usize> {
    tile: Tile<R>,
    sums: Sums<R>,
    weights: Vec<Chunk<R>>,
    pair: &'t Pair<'t>,
    q: &'t Gaussians,
    points: Range<usize>,
    weigh: &'t mut dyn FnMut(usize, &mut [Chunk<R>]),
    bars: Bars<'t>,
    slopes: &'t mut Slopes,
}

/// Products of T with (δ', 1) and of Tᵀ with (δ, 1) at one point, and gradients of z over all of them.
struct Sums<const R: usize> {
    /// Q + 1 numbers for each block of rows, and for each chunk of columns.
    left: Vec<[f64; R]>,
    right: Vec<Lanes>,
    /// Q + 1 sums that run along a block.
    running: Vec<[[f64; SUMS]; R]>,
    left_z: Vec<[f64; R]>,
    right_z: Vec<Lanes>,
}

impl<const R: usize> Sums<R> {
    fn new(tile: &Tile<R>) -> Self {
        let (left, right) = (tile.left_delta.len(), tile.delta.len());
        Sums {
            left: vec![[0.0; R]; left],
            right: vec![[0.0; LANES]; right],
            running: vec![[[0.0; SUMS]; R]; tile.dim + 1],
            left_z: vec![[0.0; R]; left],
            right_z: vec![[0.0; LANES]; right],
        }
    }

    /// Takes in block `b` of T, `count` chunks of the tile's line.
    #[inline(always)]
    fn add_block<const FMA: bool>(&mut self, tile: &Tile<R>, b: usize, count: usize) {
        let features = tile.dim + 1;
        let own = &tile.left_delta[b * features..(b + 1) * features];
        self.running.fill([[0.0; SUMS]; R]);
        let columns = tile.delta.chunks_exact(features).zip(self.right.chunks_exact_mut(features));
        for (t, (delta, right)) in tile.line[..count].iter().zip(columns) {
            let t = *t;
            let sums = right.iter_mut().zip(&mut self.running);
            for ((delta, own), (right, running)) in delta.iter().zip(own).zip(sums) {
                let (mut down, mut along) = (*right, *running);
                for r in 0..R {
                    for k in 0..LANES {
                        down[k] = fma::<FMA>(t[r][k], own[r], down[k]);
                    }
                    for k in 0..SUMS {
                        along[r][k] = fma::<FMA>(t[r][k], delta[k], along[r][k]);
                    }
                    for k in 0..SUMS {
                        along[r][k] = fma::<FMA>(t[r][k + SUMS], delta[k + SUMS], along[r][k]);
                    }
                }
                (*right, *running) = (down, along);
            }
        }
        for (left, running) in self.left[b * features..].iter_mut().zip(&self.running) {
            *left = running.map(|sums| sums.iter().sum());
        }
    }
}

/// One side of a pair in one dimension: its own precision, D and S ab, with the factor before T.
struct Side {
    q: usize,
    dim: usize,
    precision: f64,
    sab: f64,
    scale: f64,
}

impl Side {
    /// Σ rδ², Σ vδ and Σ rδ, for the products v of T with the other side's δ and r with 1; adds to z̄.
    #[inline(always)]
    fn gather<const FMA: bool, const W: usize>(
        &self,
        sums: &[[f64; W]],
        deltas: &[[f64; W]],
        z_bar: &mut [[f64; W]],
    ) -> [f64; 3] {
        let mut all = [[0.0; W]; 3];
        for at in (self.q..sums.len()).step_by(self.dim + 1) {
            let (v, r) = (sums[at], sums[at + self.dim - self.q]);
            let (delta, mut z) = (deltas[at], z_bar[at]);
            for k in 0..W {
                let first = r[k] * delta[k];
                all[0][k] = fma::<FMA>(first, delta[k], all[0][k]);
                all[1][k] = fma::<FMA>(v[k], delta[k], all[1][k]);
                all[2][k] += first;
                z[k] -= self.scale * ((self.precision + self.sab) * first - self.sab * v[k]);
            }
            z_bar[at] = z;
        }
        all.map(|lanes| lanes.iter().sum())
    }
}

impl<const R: usize> Vectorized for Pull<'_, R> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Pull { mut tile, mut sums, mut weights, pair, q, points, weigh, bars, slopes } = self;
        let dim = tile.dim;
        for (i, n) in points.enumerate() {
            let var = q.var.row(n);
            weigh(n, &mut weights);
            let factor = place::<FMA, R>(&mut tile, pair, q.mean.row(n), var);
            sums.right.fill([0.0; LANES]);
            let mut rest = &weights[..];
            for b in 0..tile.blocks() {
                let (own, others) = rest.split_at(tile.reach(b));
                tile.exponents::<FMA>(b, 0.0);
                tile.map_line(own.len(), exp::<FMA>);
                let line = tile.line.as_flattened_mut().as_flattened_mut().iter_mut();
                line.zip(own.as_flattened().as_flattened()).for_each(|(v, weight)| *v *= weight);
                sums.add_block::<FMA>(&tile, b, own.len());
                rest = others;
            }
            let rows = sums.left.iter().skip(dim).step_by(dim + 1);
            let total = factor * rows.map(|r| r.iter().sum::<f64>()).sum::<f64>();
            slopes.total += total;
            for k in 0..dim {
                let (a, b, s) = (pair.t.precision[k], pair.u.precision[k], var[k]);
                if a == 0.0 && b == 0.0 {
                    continue;
                }
                let (d, sab) = (1.0 / (1.0 + (a + b) * s), s * a * b);
                let side = |precision: f64| Side { q: k, dim, precision, sab, scale: factor * d };
                let left = side(a).gather::<FMA, R>(&sums.left, &tile.left_delta, &mut sums.left_z);
                let right = side(b).gather::<FMA, LANES>(&sums.right, &tile.delta, &mut sums.right_z);
                let [aa, cc, first] = left.map(|v| factor * v);
                let [bb, _, second] = right.map(|v| factor * v);
                let apart = aa + bb - 2.0 * cc;
                let quadratic = a * aa + b * bb + sab * apart;
                bars.mean[i * dim + k] += d * (a * first + b * second);
                bars.var[i * dim + k] +=
                    -0.5 * d * (a + b) * total + 0.5 * d * d * (a + b) * quadratic - 0.5 * d * a * b * apart;
                let shared = -0.5 * d * s * total + 0.5 * d * d * s * quadratic;
                slopes.t_precision[k] += shared - 0.5 * d * (aa + s * b * apart);
                slopes.u_precision[k] += shared - 0.5 * d * (bb + s * a * apart);
            }
        }
        for q in 0..dim {
            for i in 0..tile.rows {
                slopes.t_z[q * tile.rows + i] += sums.left_z[i / R * (dim + 1) + q][i % R];
            }
            for j in 0..tile.cols {
                slopes.u_z[q * tile.cols + j] += sums.right_z[j / LANES * (dim + 1) + q][j % LANES];
            }
        }
    }
}
