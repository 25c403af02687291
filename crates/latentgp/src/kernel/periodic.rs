//! k(x, z) = σ_f² exp(−½ Σ_q (sin(π(x_q − z_q)/p)/ℓ_q)²) (MacKay 1998, eq. 47).
//!
//! Z is packed as Q×M, so that the inner loops run along m. Phases are counted in half turns, whose
//! reduction is exact: far apart points lose no more digits than their difference does.

use super::{Kernel, KernelGrad, PointGrad, expression, parameters, place};
use crate::fast::stationary::{LANES, pack};
use crate::fast::vmath::{Instructions, Portable, Vectorized, exp, fma, sin_cos_pi, vectorize};
use crate::mat::Mat;
use crate::param::{Param, Transform};
use crate::scratch::Buffer;
use std::f64::consts::PI;

/// The periodic kernel: one period, and one lengthscale for all columns or, with ARD, one a column.
#[derive(Clone, Debug)]
pub struct Periodic {
    /// σ_f².
    pub variance: Param,
    /// ℓ: 1×1, or 1×Q with ARD.
    pub lengthscale: Param,
    /// p, shared by all columns.
    pub period: Param,
    dim: usize,
}

impl Periodic {
    /// Variance, period and the one lengthscale 1, on `dim` input columns.
    pub fn new(dim: usize) -> Self {
        Self::with_lengthscales(dim, 1)
    }

    /// Variance and period 1, and one lengthscale of 1 for each of `dim` input columns.
    pub fn ard(dim: usize) -> Self {
        Self::with_lengthscales(dim, dim)
    }

    fn with_lengthscales(dim: usize, lengthscales: usize) -> Self {
        Periodic {
            variance: Param::scalar(1.0),
            lengthscale: Param::row(lengthscales, 1.0),
            period: Param::scalar(1.0),
            dim,
        }
    }

    /// Whether each column has its own lengthscale.
    pub fn is_ard(&self) -> bool {
        self.lengthscale.len() == self.dim
    }

    fn inverse_lengthscales(&self) -> Buffer<f64> {
        let l = self.lengthscale.as_slice();
        Buffer::of((0..self.dim).map(|q| 1.0 / l[place(l.len(), q)]))
    }
}

parameters!(Periodic: variance, lengthscale, period);

/// r2[m] = Σ_q (sin(π(x_q − z_qm)/p)/ℓ_q)².
#[inline(always)]
fn distances<I: Instructions>(x: &[f64], zt: &[f64], inverse: &[f64], inverse_p: f64, r2: &mut [f64]) {
    r2.fill(0.0);
    for (q, z) in zt.chunks_exact(r2.len()).enumerate() {
        let (x, inverse) = (x[q], inverse[q]);
        for (r2, z) in r2.iter_mut().zip(z) {
            let e = sin_cos_pi::<I>((x - z) * inverse_p).0 * inverse;
            *r2 = fma::<I>(e, e, *r2);
        }
    }
}

struct Cross<'a> {
    kernel: &'a Periodic,
    x: &'a Mat,
    z: &'a Mat,
    out: &'a mut Mat,
}

impl Vectorized for Cross<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions>(self) {
        let (zt, padded) = pack(self.z);
        let inverse = self.kernel.inverse_lengthscales();
        let (variance, inverse_p) = (self.kernel.variance.get(), 1.0 / self.kernel.period.get());
        let mut r2 = Buffer::filled(0.0, padded);
        for n in 0..self.x.rows() {
            distances::<I>(self.x.row(n), &zt, &inverse, inverse_p, &mut r2);
            for (out, r2) in self.out.row_mut(n).iter_mut().zip(&r2) {
                *out = variance * exp::<I>(-0.5 * r2);
            }
        }
    }
}

struct CrossAdjoint<'a, 'g> {
    kernel: &'a Periodic,
    x: &'a Mat,
    z: &'a Mat,
    bar: &'a Mat,
    grad: KernelGrad<'g>,
}

impl Vectorized for CrossAdjoint<'_, '_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions>(mut self) {
        let (m, dim, lengthscales) = (self.z.rows(), self.kernel.dim, self.kernel.lengthscale.len());
        let (zt, padded) = pack(self.z);
        let inverse = self.kernel.inverse_lengthscales();
        let (variance, inverse_p) = (self.kernel.variance.get(), 1.0 / self.kernel.period.get());
        let (mut r2, mut h) = (Buffer::filled(0.0, padded), Buffer::filled(0.0, padded));
        let [mut sines, mut cosines, mut z_bar] = std::array::from_fn(|_| Buffer::filled(0.0, dim * padded));
        let (mut kappa_sum, mut period_sum) = ([0.0; LANES], [0.0; LANES]);
        for n in 0..self.x.rows() {
            let x = self.x.row(n);
            r2.fill(0.0);
            for q in 0..dim {
                let at = q * padded..(q + 1) * padded;
                let (xq, inverse) = (x[q], inverse[q]);
                let to = sines[at.clone()].iter_mut().zip(&mut cosines[at.clone()]).zip(&mut r2);
                for (((sin, cos), r2), z) in to.zip(&zt[at]) {
                    (*sin, *cos) = sin_cos_pi::<I>((xq - z) * inverse_p);
                    let e = *sin * inverse;
                    *r2 = fma::<I>(e, e, *r2);
                }
            }
            h[..m].copy_from_slice(self.bar.row(n));
            for (h, r2) in h.chunks_exact_mut(LANES).zip(r2.chunks_exact(LANES)) {
                for i in 0..LANES {
                    let kappa = exp::<I>(-0.5 * r2[i]);
                    kappa_sum[i] = fma::<I>(h[i], kappa, kappa_sum[i]);
                    h[i] *= variance * kappa;
                }
            }
            for q in 0..dim {
                let (xq, inverse) = (x[q], inverse[q]);
                let scale = -PI * inverse_p * inverse * inverse;
                let at = q * padded..(q + 1) * padded;
                let waves =
                    sines[at.clone()].chunks_exact(LANES).zip(cosines[at.clone()].chunks_exact(LANES));
                let places = zt[at.clone()].chunks_exact(LANES).zip(z_bar[at].chunks_exact_mut(LANES));
                let (mut x_sum, mut l_sum) = ([0.0; LANES], [0.0; LANES]);
                for ((h, (sin, cos)), (z, z_bar)) in h.chunks_exact(LANES).zip(waves).zip(places) {
                    for i in 0..LANES {
                        let slope = h[i] * scale * sin[i] * cos[i];
                        x_sum[i] += slope;
                        z_bar[i] -= slope;
                        period_sum[i] = fma::<I>(slope, (xq - z[i]) * inverse_p, period_sum[i]);
                        l_sum[i] = fma::<I>(h[i] * sin[i], sin[i], l_sum[i]);
                    }
                }
                if let Some(gx) = self.grad.x.as_deref_mut() {
                    gx[(n, q)] += x_sum.iter().sum::<f64>();
                }
                let cube = inverse * inverse * inverse;
                self.grad.theta[1 + place(lengthscales, q)] += cube * l_sum.iter().sum::<f64>();
            }
        }
        if let Some(gz) = self.grad.z {
            for q in 0..dim {
                for m in 0..m {
                    gz[(m, q)] += z_bar[q * padded + m];
                }
            }
        }
        self.grad.theta[0] += kappa_sum.iter().sum::<f64>();
        // ∂u/∂p = −u/p, and slope is already ∂F/∂x = ∂F/∂u / p.
        self.grad.theta[1 + lengthscales] -= period_sum.iter().sum::<f64>();
    }
}

impl Kernel for Periodic {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        let mut r2 = [0.0];
        let inverse = self.inverse_lengthscales();
        distances::<Portable>(x, z, &inverse, 1.0 / self.period.get(), &mut r2);
        self.variance.get() * exp::<Portable>(-0.5 * r2[0])
    }

    fn eval_adjoint(&self, x: &[f64], z: &[f64], bar: f64, grad: PointGrad<'_>) {
        let (inverse, inverse_p) = (self.inverse_lengthscales(), 1.0 / self.period.get());
        let lengthscales = self.lengthscale.len();
        let h = bar * self.eval(x, z);
        grad.theta[0] += h / self.variance.get();
        for (q, inverse) in inverse.into_iter().enumerate() {
            let u = (x[q] - z[q]) * inverse_p;
            let (sin, cos) = sin_cos_pi::<Portable>(u);
            let slope = -h * PI * inverse_p * inverse * inverse * sin * cos;
            grad.x[q] += slope;
            grad.z[q] -= slope;
            grad.theta[1 + place(lengthscales, q)] += h * sin * sin * inverse * inverse * inverse;
            grad.theta[1 + lengthscales] -= slope * u;
        }
    }

    fn expression(&self) -> String {
        let ard = self.is_ard() && self.dim > 1;
        let options = if ard { vec!["ard=true".to_string()] } else { vec![] };
        let params = [
            ("variance", &self.variance, Transform::Exp),
            ("lengthscale", &self.lengthscale, Transform::Exp),
            ("period", &self.period, Transform::Exp),
        ];
        expression::call("periodic", &options, &params)
    }

    fn input_dim(&self) -> Option<usize> {
        Some(self.dim)
    }

    fn cross(&self, x: &Mat, z: &Mat, out: &mut Mat) {
        if !z.is_empty() {
            vectorize(Cross { kernel: self, x, z, out });
        }
    }

    fn cross_adjoint(&self, x: &Mat, z: &Mat, bar: &Mat, grad: KernelGrad<'_>) {
        if !z.is_empty() {
            vectorize(CrossAdjoint { kernel: self, x, z, bar, grad });
        }
    }

    fn diag(&self, _: &Mat, out: &mut [f64]) {
        out.fill(self.variance.get());
    }

    fn diag_adjoint(&self, _: &Mat, bar: &[f64], grad: KernelGrad<'_>) {
        grad.theta[0] += bar.iter().sum::<f64>();
    }

    fn relevance(&self) -> Option<Vec<f64>> {
        let (variance, periods) = (self.variance.get(), self.period.as_slice());
        let inverse = self.inverse_lengthscales();
        let slope = |q: usize| PI * inverse[q] / periods[place(periods.len(), q)];
        self.is_ard().then(|| (0..inverse.len()).map(|q| variance * slope(q) * slope(q)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_printed_formula_and_repeats() {
        let mut k = Periodic::ard(2);
        k.lengthscale.value.as_mut_slice().copy_from_slice(&[0.7, 1.9]);
        k.period.set(1.5);
        let s = |d: f64, l: f64| (PI * d / 1.5).sin() / l;
        let exponent = s(0.3 - 1.1, 0.7).powi(2) + s(0.9 + 0.4, 1.9).powi(2);
        assert!((k.eval(&[0.3, 0.9], &[1.1, -0.4]) - (-0.5 * exponent).exp()).abs() < 1e-14);
        assert!((k.eval(&[0.25 + 1.5 * 1024.0, 0.0], &[0.25, -3.0]) - 1.0).abs() < 1e-14);
    }
}
