//! k(x, z) = σ_f² cos(2π (t_x − t_z)), t_x = Σ_q x_q/p_q: one plane wave.
//!
//! The cosine of the *summed* phase is positive semi-definite in any dimension, because
//! cos(a − b) = cos a cos b + sin a sin b: two features a point, and the blocks are products of them.

use super::{Kernel, KernelGrad, PointGrad, expression, parameters, place};
use crate::fast::vmath::{Portable, sin_cos_pi};
use crate::linalg::{Op, gemm, mul, mul_tn};
use crate::mat::Mat;
use crate::param::{Param, Transform};
use std::f64::consts::TAU;

/// The cosine kernel, with one period a column (ARD) or one for all.
#[derive(Clone, Debug)]
pub struct Cosine {
    /// σ_f².
    pub variance: Param,
    /// p: 1×Q with ARD, 1×1 without.
    pub period: Param,
    dim: usize,
}

impl Cosine {
    /// Variance 1 and one period of 1 for each of `dim` input columns.
    pub fn new(dim: usize) -> Self {
        Cosine { variance: Param::scalar(1.0), period: Param::row(dim, 1.0), dim }
    }

    /// Variance 1 and one period of 1 shared by all `dim` input columns.
    pub fn isotropic(dim: usize) -> Self {
        Cosine { variance: Param::scalar(1.0), period: Param::scalar(1.0), dim }
    }

    /// Whether each column has its own period.
    pub fn is_ard(&self) -> bool {
        self.period.len() == self.dim
    }

    fn period(&self, q: usize) -> f64 {
        self.period.as_slice()[place(self.period.len(), q)]
    }

    /// (sin, cos) of 2πt_x; each quotient loses its whole turns first, which is exact.
    fn wave(&self, x: &[f64]) -> (f64, f64) {
        let turns: f64 = x.iter().enumerate().map(|(q, x)| (x / self.period(q)) % 1.0).sum();
        sin_cos_pi::<Portable>(2.0 * turns)
    }

    /// Rows (cos, sin).
    fn features(&self, x: &Mat) -> Mat {
        let mut out = Mat::zeros(x.rows(), 2);
        for n in 0..x.rows() {
            let (sin, cos) = self.wave(x.row(n));
            out.row_mut(n).copy_from_slice(&[cos, sin]);
        }
        out
    }

    /// From ∂F/∂(2πt) of a point to its ∂F/∂x, and to ∂F/∂p.
    fn phase_adjoint(&self, x: &[f64], bar: f64, period_bar: &mut [f64], mut x_bar: Option<&mut [f64]>) {
        for (q, x) in x.iter().enumerate() {
            let p = self.period(q);
            period_bar[place(self.period.len(), q)] -= bar * TAU * x / (p * p);
            if let Some(x_bar) = x_bar.as_deref_mut() {
                x_bar[q] += bar * TAU / p;
            }
        }
    }
}

parameters!(Cosine: variance, period);

impl Kernel for Cosine {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        let ((sx, cx), (sz, cz)) = (self.wave(x), self.wave(z));
        self.variance.get() * (cx * cz + sx * sz)
    }

    fn eval_adjoint(&self, x: &[f64], z: &[f64], bar: f64, grad: PointGrad<'_>) {
        let ((sx, cx), (sz, cz)) = (self.wave(x), self.wave(z));
        let phase_bar = bar * self.variance.get() * (cx * sz - sx * cz);
        let (variance_bar, period_bar) = grad.theta.split_at_mut(1);
        variance_bar[0] += bar * (cx * cz + sx * sz);
        self.phase_adjoint(x, phase_bar, period_bar, Some(grad.x));
        self.phase_adjoint(z, -phase_bar, period_bar, Some(grad.z));
    }

    fn expression(&self) -> String {
        let options = if self.is_ard() { vec![] } else { vec!["ard=false".to_string()] };
        let params = [("variance", &self.variance, Transform::Exp), ("period", &self.period, Transform::Exp)];
        expression::call("cosine", &options, &params)
    }

    fn input_dim(&self) -> Option<usize> {
        Some(self.dim)
    }

    fn cross(&self, x: &Mat, z: &Mat, out: &mut Mat) {
        out.fill(0.0);
        gemm(self.variance.get(), &self.features(x), Op::N, &self.features(z), Op::T, out);
    }

    fn cross_adjoint(&self, x: &Mat, z: &Mat, bar: &Mat, mut grad: KernelGrad<'_>) {
        let (fx, fz) = (self.features(x), self.features(z));
        let (bx, bz) = (mul(bar, &fz), mul_tn(bar, &fx));
        let (variance_bar, period_bar) = grad.theta.split_at_mut(1);
        variance_bar[0] += fx.dot(&bx);
        // ∂cos/∂phase = −sin and ∂sin/∂phase = cos.
        let phase_bar = |f: &[f64], b: &[f64]| self.variance.get() * (f[0] * b[1] - f[1] * b[0]);
        for n in 0..x.rows() {
            let to = grad.x.as_deref_mut().map(|g| g.row_mut(n));
            self.phase_adjoint(x.row(n), phase_bar(fx.row(n), bx.row(n)), period_bar, to);
        }
        for m in 0..z.rows() {
            let to = grad.z.as_deref_mut().map(|g| g.row_mut(m));
            self.phase_adjoint(z.row(m), phase_bar(fz.row(m), bz.row(m)), period_bar, to);
        }
    }

    fn diag(&self, _: &Mat, out: &mut [f64]) {
        out.fill(self.variance.get());
    }

    fn diag_adjoint(&self, _: &Mat, bar: &[f64], grad: KernelGrad<'_>) {
        grad.theta[0] += bar.iter().sum::<f64>();
    }

    fn relevance(&self) -> Option<Vec<f64>> {
        let variance = self.variance.get();
        self.is_ard()
            .then(|| self.period.as_slice().iter().map(|p| variance * (TAU / p) * (TAU / p)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_cosine_of_the_summed_phase() {
        let mut k = Cosine::new(2);
        k.period.value.as_mut_slice().copy_from_slice(&[4.0, 2.0]);
        let phase = TAU * ((0.3 - 1.1) / 4.0 + (0.9 - 0.2) / 2.0);
        assert!((k.eval(&[0.3, 0.9], &[1.1, 0.2]) - phase.cos()).abs() < 1e-14);
        assert!((k.eval(&[4e6, 0.0], &[0.0, 0.0]) - 1.0).abs() < 1e-14);
    }
}
