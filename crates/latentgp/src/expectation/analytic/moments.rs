//! Pairs with monomials: the same expectations, times moments of the tilted Gaussian, in a plain loop.

use super::gauss_adjoint::Bars;
use super::pair::{Pair, PairAt, Slopes};
use crate::scratch::Buffer;
use smallvec::SmallVec;

/// One for each dimension, where they stand unless there are more.
type Dimensions<T> = SmallVec<[T; 32]>;

/// One dimension of a pair at one point: the Gaussian part's exponent and the tilted moments.
struct Dimension {
    q: usize,
    a: f64,
    b: f64,
    degree: usize,
}

/// The dimensions in which a pair has any factor.
fn dimensions(pair: &Pair<'_>, dim: usize) -> Dimensions<Dimension> {
    let degree = |q: usize| {
        usize::from(pair.t.term.powers.contains(&q)) + usize::from(pair.u.term.powers.contains(&q))
    };
    (0..dim)
        .map(|q| Dimension { q, a: pair.t.precision[q], b: pair.u.precision[q], degree: degree(q) })
        .filter(|d| d.a != 0.0 || d.b != 0.0 || d.degree > 0)
        .collect()
}

struct Moment {
    /// √D exp(…), and the tilted moment.
    gauss: f64,
    value: f64,
    tilted: f64,
    d: f64,
}

impl Dimension {
    fn at(&self, mean: f64, s: f64, z: f64, zp: f64) -> Moment {
        let (a, b) = (self.a, self.b);
        let d = 1.0 / (1.0 + (a + b) * s);
        let (delta, other) = (z - mean, zp - mean);
        let quadratic = a * delta * delta + b * other * other + s * a * b * (z - zp).powi(2);
        let tilted = mean + d * s * (a * delta + b * other);
        let value = match self.degree {
            0 => 1.0,
            1 => tilted,
            _ => tilted * tilted + d * s,
        };
        Moment { gauss: d.sqrt() * (-0.5 * d * quadratic).exp(), value, tilted, d }
    }
}

/// Calls `visit(n, values)` for each point.
pub(super) fn each(at: &PairAt<'_>, visit: &mut dyn FnMut(usize, &[f64])) {
    let PairAt { pair, q, z, .. } = *at;
    let dims = dimensions(pair, q.dim());
    let mut values = Buffer::filled(0.0, pair.rows * pair.cols);
    for n in at.points.clone() {
        let (mean, var) = (q.mean.row(n), q.var.row(n));
        for i in 0..pair.rows {
            for j in 0..pair.cols {
                let (z, zp) = (z.row(i), z.row(j));
                let one = |d: &Dimension| {
                    let m = d.at(mean[d.q], var[d.q], z[d.q], zp[d.q]);
                    m.gauss * m.value
                };
                values[i * pair.cols + j] = dims.iter().map(one).product();
            }
        }
        visit(n, &values);
    }
}

/// The values of a pair, summed over points.
pub(super) fn sum(at: &PairAt<'_>) -> Buffer<f64> {
    let mut sum = Buffer::filled(0.0, at.pair.rows * at.pair.cols);
    each(at, &mut |_, values| sum.iter_mut().zip(values).for_each(|(a, b)| *a += b));
    sum
}

/// Backward, as in [`super::gauss_adjoint`]; returns the values of every point, for the monomials of z.
pub(super) fn pull(
    at: &PairAt<'_>,
    weigh: &dyn Fn(usize, &mut [f64]),
    bars: &mut Bars<'_>,
    slopes: &mut Slopes,
) -> Buffer<f64> {
    let PairAt { pair, q, z, ref points } = *at;
    let (dims, dim) = (dimensions(pair, q.dim()), q.dim());
    let size = pair.rows * pair.cols;
    let mut weights = Buffer::filled(0.0, size);
    let single = pair.t.term == Default::default();
    let mut kept = Buffer::filled(0.0, if single { points.len() * size } else { size });
    let mut moments: Dimensions<Moment> = Dimensions::new();
    for (k, n) in points.clone().enumerate() {
        weigh(n, &mut weights);
        let (mean, var) = (q.mean.row(n), q.var.row(n));
        for i in 0..pair.rows {
            for j in 0..pair.cols {
                let (zi, zj) = (z.row(i), z.row(j));
                moments.clear();
                moments.extend(dims.iter().map(|d| d.at(mean[d.q], var[d.q], zi[d.q], zj[d.q])));
                let gauss: f64 = moments.iter().map(|m| m.gauss).product();
                let value = gauss * moments.iter().map(|m| m.value).product::<f64>();
                let first = if single { k * size } else { 0 };
                kept[first + i * pair.cols + j] += value;
                let weight = weights[i * pair.cols + j];
                if weight == 0.0 {
                    continue;
                }
                slopes.total += weight * value;
                for (at, dimension) in dims.iter().enumerate() {
                    let others: f64 =
                        moments.iter().enumerate().filter(|(o, _)| *o != at).map(|(_, m)| m.value).product();
                    let (log_bar, moment_bar) = (weight * value, weight * gauss * others);
                    let bar = dimension.slopes(
                        &moments[at],
                        [mean[dimension.q], var[dimension.q], zi[dimension.q], zj[dimension.q]],
                        log_bar,
                        moment_bar,
                    );
                    let q = dimension.q;
                    bars.mean[k * dim + q] += bar.mean;
                    bars.var[k * dim + q] += bar.var;
                    slopes.t_precision[q] += bar.a;
                    slopes.u_precision[q] += bar.b;
                    slopes.t_z[q * pair.rows + i] += bar.z;
                    slopes.u_z[q * pair.cols + j] += bar.zp;
                }
            }
        }
    }
    kept
}

struct Bar {
    mean: f64,
    var: f64,
    a: f64,
    b: f64,
    z: f64,
    zp: f64,
}

impl Dimension {
    /// `log_bar` times the gradient of ln √D exp(…), plus `moment_bar` times that of the moment.
    fn slopes(&self, m: &Moment, [mean, s, z, zp]: [f64; 4], log_bar: f64, moment_bar: f64) -> Bar {
        let (a, b, d) = (self.a, self.b, m.d);
        let (delta, other, apart) = (z - mean, zp - mean, z - zp);
        let quadratic = a * delta * delta + b * other * other + s * a * b * apart * apart;
        let lean = a * delta + b * other;
        // ∂D/∂S = −D²(a+b), ∂D/∂a = ∂D/∂b = −D²S.
        let d_log = 0.5 / d - 0.5 * quadratic;
        let (tilted_bar, spread_bar) = match self.degree {
            0 => (0.0, 0.0),
            1 => (moment_bar, 0.0),
            _ => (2.0 * m.tilted * moment_bar, moment_bar),
        };
        let d_bar = log_bar * d_log + tilted_bar * s * lean + spread_bar * s;
        Bar {
            mean: log_bar * d * lean + tilted_bar * (1.0 - d * s * (a + b)),
            var: -d_bar * d * d * (a + b) - 0.5 * log_bar * d * a * b * apart * apart
                + tilted_bar * d * lean
                + spread_bar * d,
            a: -d_bar * d * d * s - 0.5 * log_bar * d * (delta * delta + s * b * apart * apart)
                + tilted_bar * d * s * delta,
            b: -d_bar * d * d * s - 0.5 * log_bar * d * (other * other + s * a * apart * apart)
                + tilted_bar * d * s * other,
            z: -log_bar * d * (a * delta + s * a * b * apart) + tilted_bar * d * s * a,
            zp: -log_bar * d * (b * other - s * a * b * apart) + tilted_bar * d * s * b,
        }
    }
}
