//! Pairs of pure Gaussian terms: a [`Tile`] a point.
//!
//! The exponent has left = −½D(a + Sab), right = −½D(b + Sab) and link = D S ab, and √∏D stands before it.

use super::pair::Pair;
use super::tile::{Chunk, LANES, Quadratic, Tile};
use crate::expectation::Gaussians;
use crate::mat::Mat;
use crate::vmath::{Vectorized, exp, exp_m1, fma, vectorize};
use std::ops::Range;

/// Rows of a block: with two registers each, eight sums run at a time.
pub(super) const ROWS: usize = 4;
/// Products of ψ1 below this count as 0.
const NOTHING: f64 = 1e-290;

/// Moves the tile to a point and returns √∏D.
#[inline(always)]
pub(super) fn place<const FMA: bool, const R: usize>(
    tile: &mut Tile<R>,
    pair: &Pair<'_>,
    mean: &[f64],
    var: &[f64],
) -> f64 {
    let (a, b) = (&pair.t.precision, &pair.u.precision);
    let d = |q: usize| 1.0 / (1.0 + (a[q] + b[q]) * var[q]);
    tile.place::<FMA>(mean, |q| {
        let (d, sab) = (d(q), var[q] * a[q] * b[q]);
        Quadratic { left: -0.5 * d * (a[q] + sab), right: -0.5 * d * (b[q] + sab), link: d * sab }
    });
    (0..mean.len()).map(d).product::<f64>().sqrt()
}

/// Calls `visit(n, values)` for each point, of a pair with one row.
pub(super) fn each_row(
    pair: &Pair<'_>,
    q: &Gaussians,
    z: &Mat,
    points: Range<usize>,
    visit: &mut dyn FnMut(usize, &[f64]),
) {
    vectorize(EachRow { tile: Tile::new(z, 1, pair.cols, false), pair, q, points, visit });
}

struct EachRow<'t> {
    tile: Tile<1>,
    pair: &'t Pair<'t>,
    q: &'t Gaussians,
    points: Range<usize>,
    visit: &'t mut dyn FnMut(usize, &[f64]),
}

impl Vectorized for EachRow<'_> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(mut self) {
        for n in self.points {
            let factor = place::<FMA, 1>(&mut self.tile, self.pair, self.q.mean.row(n), self.q.var.row(n));
            self.tile.exponents::<FMA>(0, 0.0);
            self.tile.map_line(self.tile.reach(0), |x| factor * exp::<FMA>(x));
            (self.visit)(n, &self.tile.line.as_flattened().as_flattened()[..self.pair.cols]);
        }
    }
}

/// The values of a pair, summed over points: rows × cols, the upper triangle unset where the terms are the same.
pub(super) fn sum(pair: &Pair<'_>, q: &Gaussians, z: &Mat, points: Range<usize>) -> Vec<f64> {
    let tile = Tile::new(z, pair.rows, pair.cols, pair.same);
    let sums = vectorize(Sum { sums: tile.pairs(), tile, pair, q, points });
    let mut out = vec![0.0; pair.rows * pair.cols];
    Tile::<ROWS>::new(z, pair.rows, pair.cols, pair.same)
        .each_pair(|i, j, chunk, r, k| out[i * pair.cols + j] = sums[chunk][r][k]);
    out
}

struct Sum<'t> {
    tile: Tile<ROWS>,
    sums: Vec<Chunk<ROWS>>,
    pair: &'t Pair<'t>,
    q: &'t Gaussians,
    points: Range<usize>,
}

impl Vectorized for Sum<'_> {
    type Out = Vec<Chunk<ROWS>>;
    #[inline(always)]
    fn run<const FMA: bool>(mut self) -> Self::Out {
        for n in self.points {
            let (mean, var) = (self.q.mean.row(n), self.q.var.row(n));
            let factor = place::<FMA, ROWS>(&mut self.tile, self.pair, mean, var);
            let mut sums = self.sums.iter_mut();
            for b in 0..self.tile.blocks() {
                let reach = self.tile.reach(b);
                self.tile.exponents::<FMA>(b, 0.0);
                self.tile.map_line(reach, exp::<FMA>);
                // Copies of fixed size stay in registers; so here and below.
                for (sum, value) in sums.by_ref().take(reach).zip(&self.tile.line) {
                    let mut new = *sum;
                    for r in 0..ROWS {
                        for k in 0..LANES {
                            new[r][k] = fma::<FMA>(factor, value[r][k], new[r][k]);
                        }
                    }
                    *sum = new;
                }
            }
        }
        self.sums
    }
}

/// The lower triangle of Σ_n E[k kᵀ] − ψ1ψ1ᵀ of one Gaussian term, given its rows of Ψ1.
///
/// E[k_m k_m'] = ψ1_m ψ1_m' exp(δ), with D₁ = 1/(1 + aS), D₂ = 1/(1 + 2aS) and
/// δ = Σ_q ½ ln(1 + a²S²D₂) − ½ a³S²D₁D₂ (δ_m² + δ_m'²) + a²S D₂ δ_m δ_m'.
pub(super) fn covariances(
    a: &[f64],
    q: &Gaussians,
    z: &Mat,
    points: Range<usize>,
    psi1: &[f64],
    out: &mut Mat,
) {
    let m = z.rows();
    let tile = Tile::new(z, m, m, true);
    let sums = vectorize(Covariance { sums: tile.pairs(), tile, a, q, points, psi1 });
    Tile::<ROWS>::new(z, m, m, true).each_pair(|i, j, chunk, r, k| out[(i, j)] += sums[chunk][r][k]);
}

struct Covariance<'t> {
    tile: Tile<ROWS>,
    sums: Vec<Chunk<ROWS>>,
    a: &'t [f64],
    q: &'t Gaussians,
    points: Range<usize>,
    psi1: &'t [f64],
}

impl Vectorized for Covariance<'_> {
    type Out = Vec<Chunk<ROWS>>;
    #[inline(always)]
    fn run<const FMA: bool>(mut self) -> Self::Out {
        let tile = &mut self.tile;
        let m = tile.rows;
        let mut right = vec![[0.0; LANES]; m.div_ceil(LANES)];
        for (n, psi1) in self.points.zip(self.psi1.chunks_exact(m)) {
            let (mean, var) = (self.q.mean.row(n), self.q.var.row(n));
            // ∏(1 + a²S²D₂) − 1, which keeps its digits where S is small.
            let mut grown = 0.0;
            for (a, s) in self.a.iter().zip(var) {
                let own = a * a * s * s / (1.0 + 2.0 * a * s);
                grown += own + grown * own;
            }
            tile.place::<FMA>(mean, |q| {
                let (a, s) = (self.a[q], var[q]);
                let link = a * a * s / (1.0 + 2.0 * a * s);
                let side = -0.5 * a * link * s / (1.0 + a * s);
                Quadratic { left: side, right: side, link }
            });
            right.as_flattened_mut()[..m].copy_from_slice(psi1);
            let mut sums = self.sums.iter_mut();
            for b in 0..tile.blocks() {
                let reach = tile.reach(b);
                tile.exponents::<FMA>(b, 0.5 * grown.ln_1p());
                tile.map_line(reach, exp_m1::<FMA>);
                let left: [f64; ROWS] = std::array::from_fn(|r| psi1[(b * ROWS + r).min(m - 1)]);
                for ((sum, value), right) in sums.by_ref().take(reach).zip(&tile.line).zip(&right) {
                    let mut new = *sum;
                    for r in 0..ROWS {
                        for k in 0..LANES {
                            // E[kk'] ≤ min(ψ1, ψ1'): where the product underflows the covariance is nothing, though
                            // the exponential may overflow.
                            let both = left[r] * right[k];
                            new[r][k] += if both > NOTHING { both * value[r][k] } else { 0.0 };
                        }
                    }
                    *sum = new;
                }
            }
        }
        self.sums
    }
}
