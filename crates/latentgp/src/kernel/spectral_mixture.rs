//! k(x, z) = Σ_c w_c exp(−2π² Σ_q τ_q² v_cq) cos(2π Σ_q τ_q μ_cq), τ = x − z: the spectral mixture
//! (Wilson & Adams 2013).
//!
//! This is the multivariate form, the transform of Gaussians at ±μ_c with variances v_c, and so positive
//! semi-definite for any weights w ≥ 0. The cosine is that of the summed phase, not a product of cosines a
//! column: the signs of a component's frequencies matter against each other.

use super::{Kernel, KernelGrad, PointGrad, expression, parameters};
use crate::error::{Error, Result};
use crate::fast::stationary::{LANES, pack};
use crate::fast::vmath::{Instructions, Portable, Vectorized, exp, fma, sin_cos_pi, vectorize};
use crate::mat::Mat;
use crate::param::{Param, Transform};
use crate::scratch::Buffer;
use std::f64::consts::PI;

/// A mixture of C Gaussians as the spectral density of a stationary kernel.
#[derive(Clone, Debug)]
pub struct SpectralMixture {
    /// w: 1×C.
    pub weight: Param,
    /// μ, in cycles per unit of the input: C×Q, of either sign.
    pub frequency: Param,
    /// v, the variances of the frequencies: C×Q.
    pub frequency_variance: Param,
    dim: usize,
}

impl SpectralMixture {
    /// The largest number of components that is taken.
    pub const MAX_COMPONENTS: usize = 1000;

    /// Weights 1/C; frequencies spread over (0, 1) by multiples of irrational numbers, a different one a
    /// column; variances (1/2C)². Errs unless 1 ≤ C ≤ [`MAX_COMPONENTS`](Self::MAX_COMPONENTS).
    pub fn new(dim: usize, components: usize) -> Result<Self> {
        if !(1..=Self::MAX_COMPONENTS).contains(&components) {
            let allowed = format!("an integer from 1 to {}", Self::MAX_COMPONENTS);
            return Err(Error::invalid("components of a spectral mixture", allowed, components));
        }
        // 4q + 2 is never a square.
        let spread = |c: usize, q: usize| ((c + 1) as f64 * ((4 * q + 2) as f64).sqrt()).fract();
        let share = 1.0 / components as f64;
        Ok(SpectralMixture {
            weight: Param::row(components, share),
            frequency: Param::free(Mat::from_fn(components, dim, spread)),
            frequency_variance: Param::positive(Mat::filled(components, dim, 0.25 * share * share)),
            dim,
        })
    }

    /// C.
    pub fn components(&self) -> usize {
        self.weight.len()
    }

    fn component(&self, c: usize) -> (f64, &[f64], &[f64]) {
        (self.weight.as_slice()[c], self.frequency.value.row(c), self.frequency_variance.value.row(c))
    }
}

parameters!(SpectralMixture: weight, frequency, frequency_variance);

/// The envelope exp(−2π² Σ τ²v) and (sin, cos) of the phase, for every m.
struct Waves {
    envelope: Buffer<f64>,
    sin: Buffer<f64>,
    cos: Buffer<f64>,
}

impl Waves {
    fn new(len: usize) -> Self {
        let [envelope, sin, cos] = std::array::from_fn(|_| Buffer::filled(0.0, len));
        Waves { envelope, sin, cos }
    }

    #[inline(always)]
    fn fill<I: Instructions>(&mut self, x: &[f64], zt: &[f64], mu: &[f64], v: &[f64]) {
        let Waves { envelope, sin, cos } = self;
        envelope.fill(0.0);
        sin.fill(0.0);
        for (q, z) in zt.chunks_exact(envelope.len()).enumerate() {
            let (x, mu, v) = (x[q], 2.0 * mu[q], -2.0 * PI * PI * v[q]);
            for ((e, half_turns), z) in envelope.iter_mut().zip(sin.iter_mut()).zip(z) {
                let tau = x - z;
                *e = fma::<I>(tau * tau, v, *e);
                *half_turns = fma::<I>(tau, mu, *half_turns);
            }
        }
        for ((e, s), c) in envelope.iter_mut().zip(sin).zip(cos) {
            *e = exp::<I>(*e);
            (*s, *c) = sin_cos_pi::<I>(*s);
        }
    }
}

struct Cross<'a> {
    kernel: &'a SpectralMixture,
    x: &'a Mat,
    z: &'a Mat,
    out: &'a mut Mat,
}

impl Vectorized for Cross<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions>(self) {
        let (zt, padded) = pack(self.z);
        let mut waves = Waves::new(padded);
        self.out.fill(0.0);
        for n in 0..self.x.rows() {
            for c in 0..self.kernel.components() {
                let (w, mu, v) = self.kernel.component(c);
                waves.fill::<I>(self.x.row(n), &zt, mu, v);
                let terms = waves.envelope.iter().zip(&waves.cos);
                self.out.row_mut(n).iter_mut().zip(terms).for_each(|(out, (e, cos))| *out += w * e * cos);
            }
        }
    }
}

struct CrossAdjoint<'a, 'g> {
    kernel: &'a SpectralMixture,
    x: &'a Mat,
    z: &'a Mat,
    bar: &'a Mat,
    grad: KernelGrad<'g>,
}

impl Vectorized for CrossAdjoint<'_, '_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions>(mut self) {
        let (m, dim, components) = (self.z.rows(), self.kernel.dim, self.kernel.components());
        let (zt, padded) = pack(self.z);
        let mut waves = Waves::new(padded);
        let (mut z_bar, mut bar) = (Buffer::filled(0.0, dim * padded), Buffer::filled(0.0, padded));
        for n in 0..self.x.rows() {
            let x = self.x.row(n);
            bar[..m].copy_from_slice(self.bar.row(n));
            for c in 0..components {
                let (w, mu, v) = self.kernel.component(c);
                waves.fill::<I>(x, &zt, mu, v);
                let mut w_sum = 0.0;
                // From here on cos and sin carry bar · w · envelope.
                for i in 0..padded {
                    let h = bar[i] * waves.envelope[i];
                    w_sum += h * waves.cos[i];
                    waves.cos[i] *= h * w;
                    waves.sin[i] *= h * w;
                }
                self.grad.theta[c] += w_sum;
                for q in 0..dim {
                    let (tau_scale, phase_scale) = (-4.0 * PI * PI * v[q], -2.0 * PI * mu[q]);
                    let (mut x_sum, mut mu_sum, mut v_sum) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
                    let at = q * padded..(q + 1) * padded;
                    let lanes = waves.cos.chunks_exact(LANES).zip(waves.sin.chunks_exact(LANES));
                    let places = zt[at.clone()].chunks_exact(LANES).zip(z_bar[at].chunks_exact_mut(LANES));
                    for ((cos, sin), (z, z_bar)) in lanes.zip(places) {
                        for i in 0..LANES {
                            let tau = x[q] - z[i];
                            let slope = fma::<I>(tau * tau_scale, cos[i], phase_scale * sin[i]);
                            x_sum[i] += slope;
                            z_bar[i] -= slope;
                            mu_sum[i] = fma::<I>(tau, sin[i], mu_sum[i]);
                            v_sum[i] = fma::<I>(tau * tau, cos[i], v_sum[i]);
                        }
                    }
                    if let Some(gx) = self.grad.x.as_deref_mut() {
                        gx[(n, q)] += x_sum.iter().sum::<f64>();
                    }
                    let place = components + c * dim + q;
                    self.grad.theta[place] -= 2.0 * PI * mu_sum.iter().sum::<f64>();
                    self.grad.theta[place + components * dim] -= 2.0 * PI * PI * v_sum.iter().sum::<f64>();
                }
            }
        }
        if let Some(gz) = self.grad.z {
            for q in 0..dim {
                for m in 0..m {
                    gz[(m, q)] += z_bar[q * padded + m];
                }
            }
        }
    }
}

impl Kernel for SpectralMixture {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        let mut waves = Waves::new(1);
        (0..self.components())
            .map(|c| {
                let (w, mu, v) = self.component(c);
                waves.fill::<Portable>(x, z, mu, v);
                w * waves.envelope[0] * waves.cos[0]
            })
            .sum()
    }

    fn eval_adjoint(&self, x: &[f64], z: &[f64], bar: f64, grad: PointGrad<'_>) {
        let (components, dim) = (self.components(), self.dim);
        let mut waves = Waves::new(1);
        for c in 0..components {
            let (w, mu, v) = self.component(c);
            waves.fill::<Portable>(x, z, mu, v);
            let (e, sin, cos) = (bar * waves.envelope[0], waves.sin[0], waves.cos[0]);
            grad.theta[c] += e * cos;
            for q in 0..dim {
                let tau = x[q] - z[q];
                let slope = -2.0 * PI * w * e * (2.0 * PI * tau * v[q] * cos + mu[q] * sin);
                grad.x[q] += slope;
                grad.z[q] -= slope;
                let place = components + c * dim + q;
                grad.theta[place] -= 2.0 * PI * w * e * tau * sin;
                grad.theta[place + components * dim] -= 2.0 * PI * PI * w * e * tau * tau * cos;
            }
        }
    }

    fn expression(&self) -> String {
        let options = [format!("components={}", self.components())];
        let params = [
            ("weight", &self.weight, Transform::Exp),
            ("frequency", &self.frequency, Transform::Identity),
            ("frequency_variance", &self.frequency_variance, Transform::Exp),
        ];
        expression::call("spectral_mixture", &options, &params)
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
        out.fill(self.weight.as_slice().iter().sum());
    }

    fn diag_adjoint(&self, _: &Mat, bar: &[f64], grad: KernelGrad<'_>) {
        let sum: f64 = bar.iter().sum();
        grad.theta[..self.components()].iter_mut().for_each(|g| *g += sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_printed_formula_and_starts_spread_out() {
        let k = SpectralMixture::new(2, 3).unwrap();
        let (x, z): ([f64; 2], [f64; 2]) = ([0.3, -0.2], [1.0, 0.5]);
        let slow: f64 = (0..3)
            .map(|c| {
                let (w, mu, v) = k.component(c);
                let (mut power, mut phase) = (0.0, 0.0);
                for q in 0..2 {
                    power += (x[q] - z[q]).powi(2) * v[q];
                    phase += (x[q] - z[q]) * mu[q];
                }
                w * (-2.0 * PI * PI * power).exp() * (2.0 * PI * phase).cos()
            })
            .sum();
        assert!((k.eval(&x, &z) - slow).abs() < 1e-14);
        for q in 0..2 {
            let mut column = k.frequency.value.col(q);
            column.sort_by(f64::total_cmp);
            assert!(column[0] > 0.0 && column[2] < 1.0);
            assert!(column.windows(2).all(|w| w[1] - w[0] > 0.05), "{column:?}");
        }
        assert!(SpectralMixture::new(2, 0).is_err());
    }
}
