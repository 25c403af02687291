//! Pairs of pure Gaussian terms: one tile a point.
//!
//! The exponent is bilinear in the pair (m, m'): L_m + R_m' + Σ_q w_q δ_mq δ_m'q, with
//! L_m = −½ Σ_q D(a + Sab) δ², R_m' = −½ Σ_q D(b + Sab) δ'², w_q = D S ab. Everything is taken relative
//! to μ_n, so that nothing large cancels. The gradient needs only row and column sums of T = F̄ ∘ value
//! and the products Tδ' and Tᵀδ.

use super::{Pair, Slopes};
use crate::expectation::Gaussians;
use crate::mat::Mat;
use crate::vmath::{Vectorized, exp, exp_m1, fma, vectorize};
use std::ops::Range;

const LANES: usize = 8;
/// Products of ψ1 below this count as 0.
const NOTHING: f64 = 1e-290;

/// Calls `visit(n, values)` for each point: values is rows × cols, its upper triangle unset where the
/// terms are the same.
pub(super) fn each(
    pair: &Pair<'_>,
    q: &Gaussians,
    z: &Mat,
    points: Range<usize>,
    visit: &mut dyn FnMut(usize, &[f64]),
) {
    let mut tile = Tile::new(pair, z);
    for n in points {
        vectorize(Forward { tile: &mut tile, mean: q.mean.row(n), var: q.var.row(n) });
        visit(n, &tile.values);
    }
}

/// Backward: `weigh(n, out)` writes F̄ of the values; adds to μ̄, S̄ (rows of `points`) and the slopes.
pub(super) fn pull(
    pair: &Pair<'_>,
    q: &Gaussians,
    z: &Mat,
    points: Range<usize>,
    weigh: &dyn Fn(usize, &mut [f64]),
    mean_bar: &mut [f64],
    var_bar: &mut [f64],
    slopes: &mut Slopes,
) {
    let dim = q.dim();
    let mut tile = Tile::new(pair, z);
    let mut weights = vec![0.0; pair.rows * pair.cols];
    for (i, n) in points.enumerate() {
        weigh(n, &mut weights);
        let (mean, var) = (q.mean.row(n), q.var.row(n));
        vectorize(Forward { tile: &mut tile, mean, var });
        let at = i * dim..(i + 1) * dim;
        vectorize(Backward {
            tile: &mut tile,
            var,
            weights: &weights,
            mean_bar: &mut mean_bar[at.clone()],
            var_bar: &mut var_bar[at],
            slopes,
        });
    }
}

/// Adds the lower triangle of Σ_n E[k kᵀ] − ψ1ψ1ᵀ of one Gaussian term, given its rows of Ψ1.
///
/// E[k_m k_m'] = ψ1_m ψ1_m' exp(δ), with D₁ = 1/(1 + aS), D₂ = 1/(1 + 2aS) and
/// δ = Σ_q ½ ln(1 + a²S²D₂) − ½ a³S²D₁D₂ (δ_m² + δ_m'²) + a²S D₂ δ_m δ_m'.
pub(super) fn covariances(
    pair: &Pair<'_>,
    q: &Gaussians,
    z: &Mat,
    points: Range<usize>,
    psi1: &[f64],
    out: &mut Mat,
) {
    let m = pair.rows;
    for (i, n) in points.enumerate() {
        let (mean, var) = (q.mean.row(n), q.var.row(n));
        vectorize(Covariance { a: &pair.t.precision, mean, var, z, psi1: &psi1[i * m..(i + 1) * m], out });
    }
}

struct Covariance<'t> {
    a: &'t [f64],
    mean: &'t [f64],
    var: &'t [f64],
    z: &'t Mat,
    psi1: &'t [f64],
    out: &'t mut Mat,
}

impl Vectorized for Covariance<'_> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let (m, dim) = (self.psi1.len(), self.mean.len());
        let mut constant = 0.0;
        let (mut side, mut weight) = (vec![0.0; m], vec![0.0; dim]);
        let mut delta = vec![0.0; dim * m];
        for q in 0..dim {
            let (a, s) = (self.a[q], self.var[q]);
            let (first, second) = (1.0 / (1.0 + a * s), 1.0 / (1.0 + 2.0 * a * s));
            constant += 0.5 * (a * a * s * s * second).ln_1p();
            weight[q] = a * a * s * second;
            for j in 0..m {
                let d = self.z[(j, q)] - self.mean[q];
                delta[q * m + j] = d;
                side[j] -= 0.5 * a * weight[q] * s * first * d * d;
            }
        }
        let mut line = vec![0.0; m];
        for i in 0..m {
            let line = &mut line[..=i];
            for (line, side_j) in line.iter_mut().zip(&side) {
                *line = constant + side[i] + side_j;
            }
            for q in 0..dim {
                let w = weight[q] * delta[q * m + i];
                for (line, d) in line.iter_mut().zip(&delta[q * m..]) {
                    *line = fma::<FMA>(w, *d, *line);
                }
            }
            let own = self.psi1[i];
            let out = &mut self.out.row_mut(i)[..=i];
            for ((out, line), other) in out.iter_mut().zip(line).zip(self.psi1) {
                // E[kk'] ≤ min(ψ1, ψ1'): where the product underflows the covariance is nothing, though the
                // exponential may overflow.
                let both = own * other;
                *out += if both > NOTHING { both * exp_m1::<FMA>(*line) } else { 0.0 };
            }
        }
    }
}

/// Scratch of one point.
struct Tile<'a> {
    a: &'a [f64],
    b: &'a [f64],
    rows: usize,
    cols: usize,
    padded: usize,
    same: bool,
    /// Q×padded: z' and then δ' = z' − μ.
    zt: Vec<f64>,
    right: Vec<f64>,
    /// Q×rows, δ of the left term.
    left_z: Vec<f64>,
    left: Vec<f64>,
    line: Vec<f64>,
    values: Vec<f64>,
    /// Q×padded, Tᵀδ.
    u_sum: Vec<f64>,
    column: Vec<f64>,
    row_sum: Vec<f64>,
    /// Q×rows, Tδ'.
    v_sum: Vec<f64>,
    z_left: Vec<f64>,
    z_right: Vec<f64>,
}

/// The first `count` rows of z as Q×padded.
fn transposed(z: &Mat, count: usize, padded: usize) -> Vec<f64> {
    let mut zt = vec![0.0; z.cols() * padded];
    for q in 0..z.cols() {
        for j in 0..padded {
            zt[q * padded + j] = z[(j.min(count - 1), q)];
        }
    }
    zt
}

impl<'a> Tile<'a> {
    fn new(pair: &'a Pair<'_>, z: &Mat) -> Self {
        let (rows, cols, dim) = (pair.rows, pair.cols, z.cols());
        let padded = cols.next_multiple_of(LANES);
        let z_right = transposed(z, cols, padded);
        let z_left = transposed(z, rows, rows);
        Tile {
            a: &pair.t.precision,
            b: &pair.u.precision,
            rows,
            cols,
            padded,
            same: pair.same,
            zt: z_right.clone(),
            right: vec![0.0; padded],
            left_z: z_left.clone(),
            left: vec![0.0; rows],
            line: vec![0.0; padded],
            values: vec![0.0; rows * cols],
            u_sum: vec![0.0; dim * padded],
            column: vec![0.0; padded],
            row_sum: vec![0.0; rows],
            v_sum: vec![0.0; dim * rows],
            z_left,
            z_right,
        }
    }

    /// How many columns of row i are needed.
    #[inline(always)]
    fn width(&self, i: usize) -> usize {
        if self.same { i + 1 } else { self.cols }
    }
}

struct Forward<'t, 'a> {
    tile: &'t mut Tile<'a>,
    mean: &'t [f64],
    var: &'t [f64],
}

impl Vectorized for Forward<'_, '_> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let t = self.tile;
        let (rows, cols, padded) = (t.rows, t.cols, t.padded);
        t.right.fill(0.0);
        t.left.fill(0.0);
        let mut factor = 1.0;
        for q in 0..self.mean.len() {
            let (a, b, s, mean) = (t.a[q], t.b[q], self.var[q], self.mean[q]);
            let d = 1.0 / (1.0 + (a + b) * s);
            factor *= d;
            let (cl, cr) = (-0.5 * d * (a + s * a * b), -0.5 * d * (b + s * a * b));
            let source = &t.z_right[q * padded..(q + 1) * padded];
            let delta = &mut t.zt[q * padded..(q + 1) * padded];
            for ((delta, right), z) in delta.iter_mut().zip(&mut t.right).zip(source) {
                *delta = z - mean;
                *right = fma::<FMA>(cr * *delta, *delta, *right);
            }
            let source = &t.z_left[q * rows..(q + 1) * rows];
            let delta = &mut t.left_z[q * rows..(q + 1) * rows];
            for ((delta, left), z) in delta.iter_mut().zip(&mut t.left).zip(source) {
                *delta = z - mean;
                *left = fma::<FMA>(cl * *delta, *delta, *left);
            }
        }
        let factor = factor.sqrt();
        for i in 0..rows {
            let width = t.width(i);
            let reach = width.next_multiple_of(LANES);
            for (line, right) in t.line[..reach].iter_mut().zip(&t.right) {
                *line = right + t.left[i];
            }
            for q in 0..self.mean.len() {
                let (a, b, s) = (t.a[q], t.b[q], self.var[q]);
                let w = s * a * b / (1.0 + (a + b) * s) * t.left_z[q * rows + i];
                if w != 0.0 {
                    let delta = &t.zt[q * padded..q * padded + reach];
                    for (line, delta) in t.line[..reach].iter_mut().zip(delta) {
                        *line = fma::<FMA>(w, *delta, *line);
                    }
                }
            }
            for line in &mut t.line[..reach] {
                *line = factor * exp::<FMA>(*line);
            }
            t.values[i * cols..i * cols + width].copy_from_slice(&t.line[..width]);
        }
    }
}

struct Backward<'t, 'a> {
    tile: &'t mut Tile<'a>,
    var: &'t [f64],
    weights: &'t [f64],
    mean_bar: &'t mut [f64],
    var_bar: &'t mut [f64],
    slopes: &'t mut Slopes,
}

impl Vectorized for Backward<'_, '_> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let t = self.tile;
        let (rows, cols, padded, dim) = (t.rows, t.cols, t.padded, self.var.len());
        t.u_sum.fill(0.0);
        t.column.fill(0.0);
        for i in 0..rows {
            let width = t.width(i);
            let reach = width.next_multiple_of(LANES);
            t.line[width..reach].fill(0.0);
            let values = &t.values[i * cols..i * cols + width];
            let weights = &self.weights[i * cols..i * cols + width];
            for ((line, value), weight) in t.line[..width].iter_mut().zip(values).zip(weights) {
                *line = value * weight;
            }
            let line = &t.line[..reach];
            let mut sum = [0.0; LANES];
            for (line, column) in line.chunks_exact(LANES).zip(t.column.chunks_exact_mut(LANES)) {
                for k in 0..LANES {
                    sum[k] += line[k];
                    column[k] += line[k];
                }
            }
            t.row_sum[i] = sum.iter().sum();
            for q in 0..dim {
                let own = t.left_z[q * rows + i];
                let delta = t.zt[q * padded..q * padded + reach].chunks_exact(LANES);
                let u_sum = t.u_sum[q * padded..q * padded + reach].chunks_exact_mut(LANES);
                let mut sum = [0.0; LANES];
                for ((line, delta), u_sum) in line.chunks_exact(LANES).zip(delta).zip(u_sum) {
                    for k in 0..LANES {
                        sum[k] = fma::<FMA>(line[k], delta[k], sum[k]);
                        u_sum[k] = fma::<FMA>(line[k], own, u_sum[k]);
                    }
                }
                t.v_sum[q * rows + i] = sum.iter().sum();
            }
        }
        let total: f64 = t.row_sum.iter().sum();
        self.slopes.total += total;
        for q in 0..dim {
            let (a, b, s) = (t.a[q], t.b[q], self.var[q]);
            if a == 0.0 && b == 0.0 {
                continue;
            }
            let d = 1.0 / (1.0 + (a + b) * s);
            let sab = s * a * b;
            let (mut aa, mut bb, mut cc, mut first, mut second) = (0.0, 0.0, 0.0, 0.0, 0.0);
            for i in 0..rows {
                let (delta, r, v) = (t.left_z[q * rows + i], t.row_sum[i], t.v_sum[q * rows + i]);
                aa += r * delta * delta;
                cc += v * delta;
                first += r * delta;
                self.slopes.t_z[q * rows + i] -= d * ((a + sab) * delta * r - sab * v);
            }
            for j in 0..cols {
                let (delta, c, u) = (t.zt[q * padded + j], t.column[j], t.u_sum[q * padded + j]);
                bb += c * delta * delta;
                second += c * delta;
                self.slopes.u_z[q * cols + j] -= d * ((b + sab) * delta * c - sab * u);
            }
            let apart = aa + bb - 2.0 * cc;
            let quadratic = a * aa + b * bb + sab * apart;
            self.mean_bar[q] += d * (a * first + b * second);
            self.var_bar[q] +=
                -0.5 * d * (a + b) * total + 0.5 * d * d * (a + b) * quadratic - 0.5 * d * a * b * apart;
            let shared = -0.5 * d * s * total + 0.5 * d * d * s * quadratic;
            self.slopes.t_precision[q] += shared - 0.5 * d * (aa + s * b * apart);
            self.slopes.u_precision[q] += shared - 0.5 * d * (bb + s * a * apart);
        }
    }
}
