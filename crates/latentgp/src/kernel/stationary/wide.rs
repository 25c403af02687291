//! The adjoint of a stationary block for inputs of many columns, such as the features of a network: products of
//! matrices in the place of a loop over pairs and columns.
//!
//! ```text
//! H = K̄ ∘ σ²κ'(r²)     s = H1     t = Hᵀ1
//! x̄ = 2(s x − HZ)/ℓ²     z̄ = 2(t z − HᵀX)/ℓ²     ℓ̄ = −2(Σ s x² − 2 Σ x ∘ HZ + Σ t z²)/ℓ³
//! ```
//!
//! Points are shifted by the mean of Z first: differences then lose no more digits than the spread of the points
//! costs them.

use super::block::{distances, pack};
use super::{Shape, Stationary};
use crate::kernel::KernelGrad;
use crate::linalg;
use crate::mat::Mat;
use crate::vmath::{Vectorized, vectorize};

/// From so many columns on the products are faster.
pub(super) const WIDE: usize = 24;

/// Turns `h` from K̄ into H; returns σ̄² and ᾱ.
struct Slopes<'a, S: Shape> {
    kernel: &'a Stationary<S>,
    x: &'a Mat,
    z: &'a Mat,
    h: &'a mut Mat,
}

impl<S: Shape> Vectorized for Slopes<'_, S> {
    type Out = (f64, f64);
    #[inline(always)]
    fn run<const FMA: bool>(self) -> (f64, f64) {
        let (zt, padded) = pack(self.z);
        let inverse = self.kernel.inverse_lengthscales();
        let (variance, alpha) = (self.kernel.variance.get(), self.kernel.alpha());
        let mut r2 = vec![0.0; padded];
        let (mut variance_bar, mut alpha_bar) = (0.0, 0.0);
        for n in 0..self.x.rows() {
            distances::<FMA>(self.x.row(n), &zt, &inverse, &mut r2);
            for (h, &r2) in self.h.row_mut(n).iter_mut().zip(&r2) {
                let (kappa, slope) = S::kappa::<FMA>(r2, alpha);
                variance_bar += *h * kappa;
                if S::HAS_ALPHA {
                    alpha_bar += *h * variance * S::kappa_alpha(r2, alpha);
                }
                *h *= variance * slope;
            }
        }
        (variance_bar, alpha_bar)
    }
}

/// Adds the gradient of Σ bar ∘ k(x, z).
pub(super) fn cross_adjoint<S: Shape>(
    kernel: &Stationary<S>,
    x: &Mat,
    z: &Mat,
    bar: &Mat,
    grad: KernelGrad<'_>,
) {
    let mut h = bar.clone();
    let (variance_bar, alpha_bar) = vectorize(Slopes { kernel, x, z, h: &mut h });
    let inverse = kernel.inverse_lengthscales();
    let (x, z) = shifted(x, z);
    let (mut hz, mut htx) = (linalg::mul(&h, &z), linalg::mul_tn(&h, &x));
    let mut columns = vec![0.0; h.cols()];
    let mut l_bar = vec![0.0; inverse.len()];
    for n in 0..h.rows() {
        columns.iter_mut().zip(h.row(n)).for_each(|(t, h)| *t += h);
        let s: f64 = h.row(n).iter().sum();
        for ((hz, x), l) in hz.row_mut(n).iter_mut().zip(x.row(n)).zip(&mut l_bar) {
            *l += x * (s * x - 2.0 * *hz);
            *hz = s * x - *hz;
        }
    }
    for (m, t) in columns.iter().enumerate() {
        for ((htx, z), l) in htx.row_mut(m).iter_mut().zip(z.row(m)).zip(&mut l_bar) {
            *l += t * z * z;
            *htx = t * z - *htx;
        }
    }
    for (to, from) in [(grad.x, &hz), (grad.z, &htx)] {
        let Some(to) = to else { continue };
        for n in 0..from.rows() {
            let row = to.row_mut(n).iter_mut().zip(from.row(n)).zip(&inverse);
            row.for_each(|((a, b), i)| *a += 2.0 * i * i * b);
        }
    }
    l_bar.iter_mut().zip(&inverse).for_each(|(l, i)| *l *= -2.0 * i * i * i);
    kernel.add_theta(grad.theta, variance_bar, &l_bar, alpha_bar);
}

/// Both less the mean of z.
fn shifted(x: &Mat, z: &Mat) -> (Mat, Mat) {
    let mut mean = vec![0.0; z.cols()];
    let part = 1.0 / z.rows() as f64;
    for m in 0..z.rows() {
        mean.iter_mut().zip(z.row(m)).for_each(|(mean, z)| *mean += part * z);
    }
    let less = |of: &Mat| {
        let mut out = of.clone();
        for n in 0..of.rows() {
            out.row_mut(n).iter_mut().zip(&mean).for_each(|(a, mean)| *a -= mean);
        }
        out
    };
    (less(x), less(z))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Kernel, Matern32, PointGrad, RationalQuadratic, Rbf};
    use crate::param;

    const TOLERANCE: f64 = 1e-11;

    /// The gradient pair by pair beside that of the block.
    fn compare(kernel: &dyn Kernel, offset: f64) {
        let dim = kernel.input_dim().unwrap();
        let point = |k: f64| move |i: usize, j: usize| offset + (k * (i * dim + j) as f64).sin();
        let (x, z) = (Mat::from_fn(7, dim, point(0.7)), Mat::from_fn(5, dim, point(1.3)));
        let bar = Mat::from_fn(7, 5, |i, j| ((3 * i + j) as f64).cos());
        let count = param::count(kernel);
        let (mut theta, mut gx, mut gz) = (vec![0.0; count], Mat::zeros(7, dim), Mat::zeros(5, dim));
        let grad = KernelGrad { theta: &mut theta, x: Some(&mut gx), z: Some(&mut gz) };
        kernel.cross_adjoint(&x, &z, &bar, grad);
        let (mut theta2, mut gx2, mut gz2) = (vec![0.0; count], Mat::zeros(7, dim), Mat::zeros(5, dim));
        for n in 0..7 {
            for m in 0..5 {
                let point = PointGrad { theta: &mut theta2, x: gx2.row_mut(n), z: gz2.row_mut(m) };
                kernel.eval_adjoint(x.row(n), z.row(m), bar[(n, m)], point);
            }
        }
        let near =
            |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < TOLERANCE * (1.0 + b.abs()));
        assert!(near(&theta, &theta2) && near(gx.as_slice(), gx2.as_slice()), "{theta:?} {theta2:?}");
        assert!(near(gz.as_slice(), gz2.as_slice()));
    }

    #[test]
    fn products_are_the_loop_over_pairs() {
        for offset in [0.0, 1000.0] {
            let mut rbf = Rbf::new(WIDE);
            rbf.lengthscale.value = Mat::from_fn(1, WIDE, |_, q| 2.0 + 0.3 * q as f64);
            compare(&rbf, offset);
            let mut shared = Matern32::isotropic(WIDE + 5);
            shared.lengthscale.set(6.0);
            compare(&shared, offset);
            let mut quadratic = RationalQuadratic::new(WIDE);
            quadratic.lengthscale.set(4.0);
            compare(&quadratic, offset);
        }
    }
}
