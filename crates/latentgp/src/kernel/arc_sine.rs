//! k(x, z) = σ_f² (2/π) asin(2a/√((1 + 2p)(1 + 2r))), a = x̃ᵀΣz̃, p = x̃ᵀΣx̃, r = z̃ᵀΣz̃, x̃ = (1, x),
//! Σ = diag(b, w): a network of infinitely many erf units (Williams 1998, eq. 11).
//!
//! The arc sine is taken as an arc tangent of 2a over √((1 + 2p)(1 + 2r) − 4a²), whose radicand is at least
//! 1 + 2p + 2r: values and slopes keep their digits where the quotient rounds to 1.

use super::{Kernel, KernelGrad, PointGrad, expression, inner, parameters};
use crate::mat::Mat;
use crate::param::{Param, Transform};
use crate::scratch::Buffer;
use std::f64::consts::FRAC_2_PI;

/// The arc-sine kernel, with one weight variance a column (ARD) or one for all.
#[derive(Clone, Debug)]
pub struct ArcSine {
    /// σ_f².
    pub variance: Param,
    /// b, the variance of the units' biases.
    pub bias_variance: Param,
    /// w, the variance of the units' input weights: 1×Q with ARD, 1×1 without.
    pub weight_variance: Param,
    dim: usize,
}

/// asin of the quotient and its derivatives in a, p and r.
fn angle(a: f64, p: f64, r: f64) -> (f64, f64, f64, f64) {
    let root = (1.0 + 2.0 * (p + r) + 4.0 * (p * r - a * a).max(0.0)).sqrt();
    let slope = 2.0 / root;
    let (dp, dr) = (-slope * a / (1.0 + 2.0 * p), -slope * a / (1.0 + 2.0 * r));
    ((2.0 * a).atan2(root), slope, dp, dr)
}

impl ArcSine {
    /// Variances 1, one weight variance for each of `dim` input columns.
    pub fn new(dim: usize) -> Self {
        Self::with_weights(dim, dim)
    }

    /// Variances 1, one weight variance shared by all `dim` input columns.
    pub fn isotropic(dim: usize) -> Self {
        Self::with_weights(dim, 1)
    }

    fn with_weights(dim: usize, weights: usize) -> Self {
        ArcSine {
            variance: Param::scalar(1.0),
            bias_variance: Param::scalar(1.0),
            weight_variance: Param::row(weights, 1.0),
            dim,
        }
    }

    /// Whether each column has its own weight variance.
    pub fn is_ard(&self) -> bool {
        self.weight_variance.len() == self.dim
    }

    fn weights(&self) -> &[f64] {
        self.weight_variance.as_slice()
    }

    fn inner(&self, x: &[f64], z: &[f64]) -> f64 {
        self.bias_variance.get() + inner::dot(self.weights(), x, z)
    }

    fn squares(&self, x: &Mat) -> Buffer<f64> {
        Buffer::of((0..x.rows()).map(|n| self.inner(x.row(n), x.row(n))))
    }

    fn products(&self, x: &Mat, z: &Mat) -> Mat {
        let mut a = Mat::zeros(x.rows(), z.rows());
        inner::cross(self.weights(), x, z, &mut a);
        a.as_mut_slice().iter_mut().for_each(|a| *a += self.bias_variance.get());
        a
    }

    /// Adds `bar` times the gradient of p = x̃ᵀΣx̃.
    fn square_adjoint(&self, x: &[f64], bar: f64, theta: &mut [f64], x_bar: Option<&mut [f64]>) {
        theta[1] += bar;
        let (mut twice, mut other) = (Buffer::filled(0.0, x.len()), Buffer::filled(0.0, x.len()));
        inner::dot_adjoint(self.weights(), x, x, bar, &mut theta[2..], &mut twice, &mut other);
        if let Some(to) = x_bar {
            to.iter_mut().zip(&twice).for_each(|(a, b)| *a += 2.0 * b);
        }
    }
}

parameters!(ArcSine: variance, bias_variance, weight_variance);

impl Kernel for ArcSine {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        let (value, ..) = angle(self.inner(x, z), self.inner(x, x), self.inner(z, z));
        self.variance.get() * FRAC_2_PI * value
    }

    fn eval_adjoint(&self, x: &[f64], z: &[f64], bar: f64, grad: PointGrad<'_>) {
        let (value, da, dp, dr) = angle(self.inner(x, z), self.inner(x, x), self.inner(z, z));
        let bar = bar * FRAC_2_PI;
        grad.theta[0] += bar * value;
        let bar = bar * self.variance.get();
        grad.theta[1] += bar * da;
        inner::dot_adjoint(self.weights(), x, z, bar * da, &mut grad.theta[2..], grad.x, grad.z);
        self.square_adjoint(x, bar * dp, grad.theta, Some(grad.x));
        self.square_adjoint(z, bar * dr, grad.theta, Some(grad.z));
    }

    fn expression(&self) -> String {
        let options = if self.is_ard() { vec![] } else { vec!["ard=false".to_string()] };
        let params = [
            ("variance", &self.variance, Transform::Exp),
            ("bias_variance", &self.bias_variance, Transform::Exp),
            ("weight_variance", &self.weight_variance, Transform::Exp),
        ];
        expression::call("arc_sine", &options, &params)
    }

    fn input_dim(&self) -> Option<usize> {
        Some(self.dim)
    }

    fn cross(&self, x: &Mat, z: &Mat, out: &mut Mat) {
        let (a, p, r) = (self.products(x, z), self.squares(x), self.squares(z));
        let scale = self.variance.get() * FRAC_2_PI;
        for n in 0..x.rows() {
            for m in 0..z.rows() {
                out[(n, m)] = scale * angle(a[(n, m)], p[n], r[m]).0;
            }
        }
    }

    fn cross_adjoint(&self, x: &Mat, z: &Mat, bar: &Mat, mut grad: KernelGrad<'_>) {
        let (mut a, p, r) = (self.products(x, z), self.squares(x), self.squares(z));
        let (mut p_bar, mut r_bar) = (Buffer::filled(0.0, p.len()), Buffer::filled(0.0, r.len()));
        let variance = self.variance.get();
        for n in 0..x.rows() {
            for m in 0..z.rows() {
                let (value, da, dp, dr) = angle(a[(n, m)], p[n], r[m]);
                let bar = FRAC_2_PI * bar[(n, m)];
                grad.theta[0] += bar * value;
                let bar = bar * variance;
                a[(n, m)] = bar * da;
                grad.theta[1] += bar * da;
                p_bar[n] += bar * dp;
                r_bar[m] += bar * dr;
            }
        }
        for (n, &bar) in p_bar.iter().enumerate() {
            self.square_adjoint(x.row(n), bar, grad.theta, grad.x.as_deref_mut().map(|g| g.row_mut(n)));
        }
        for (m, &bar) in r_bar.iter().enumerate() {
            self.square_adjoint(z.row(m), bar, grad.theta, grad.z.as_deref_mut().map(|g| g.row_mut(m)));
        }
        inner::cross_adjoint(self.weights(), x, z, &a, &mut grad.theta[2..], grad.x, grad.z);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_printed_formula_and_finite_far_out() {
        let k = ArcSine::new(1);
        let (x, z): (f64, f64) = (0.7, -1.3);
        let quotient = 2.0 * (1.0 + x * z) / ((3.0 + 2.0 * x * x) * (3.0 + 2.0 * z * z)).sqrt();
        assert!((k.eval(&[x], &[z]) - FRAC_2_PI * quotient.asin()).abs() < 1e-14);
        let (mut theta, mut gx, mut gz) = ([0.0; 3], [0.0], [0.0]);
        let grad = PointGrad { theta: &mut theta, x: &mut gx, z: &mut gz };
        k.eval_adjoint(&[1e9], &[1e9], 1.0, grad);
        assert!((k.eval(&[1e9], &[1e9]) - 1.0).abs() < 1e-8);
        assert!(theta.iter().chain(&gx).chain(&gz).all(|g| g.is_finite()));
    }
}
