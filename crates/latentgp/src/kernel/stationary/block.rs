//! Blocks of stationary kernels and their adjoints, with Z packed as Q×M so that the inner loop runs along m.

use super::{Shape, Stationary};
use crate::kernel::KernelGrad;
use crate::mat::Mat;
use crate::scratch::Room;
use crate::vmath::{Vectorized, fma};

/// Lanes of the inner loops: sums run in this many independent accumulators, in a fixed order.
pub(crate) const LANES: usize = 8;

/// Z as Q×M', M' the next multiple of [`LANES`]; the columns beyond M repeat the last point.
pub(crate) fn pack(z: &Mat) -> (Room<f64>, usize) {
    let padded = z.rows().next_multiple_of(LANES);
    let mut zt = Room::filled(0.0, z.cols() * padded);
    for q in 0..z.cols() {
        for m in 0..padded {
            zt[q * padded + m] = z[(m.min(z.rows() - 1), q)];
        }
    }
    (zt, padded)
}

/// r2[m] = Σ_q ((x_q − z_qm)/ℓ_q)².
#[inline(always)]
pub(super) fn distances<const FMA: bool>(x: &[f64], zt: &[f64], inverse: &[f64], r2: &mut [f64]) {
    r2.fill(0.0);
    for (q, z) in zt.chunks_exact(r2.len()).enumerate() {
        let (x, inverse) = (x[q], inverse[q]);
        for (r2, z) in r2.iter_mut().zip(z) {
            let e = (x - z) * inverse;
            *r2 = fma::<FMA>(e, e, *r2);
        }
    }
}

pub(super) struct Cross<'a, S: Shape> {
    pub kernel: &'a Stationary<S>,
    pub x: &'a Mat,
    pub z: &'a Mat,
    pub out: &'a mut Mat,
}

impl<S: Shape> Vectorized for Cross<'_, S> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let (zt, padded) = pack(self.z);
        let inverse = self.kernel.inverse_lengthscales();
        let (variance, alpha) = (self.kernel.variance.get(), self.kernel.alpha());
        let mut r2 = Room::filled(0.0, padded);
        for n in 0..self.x.rows() {
            distances::<FMA>(self.x.row(n), &zt, &inverse, &mut r2);
            for r2 in &mut r2 {
                *r2 = variance * S::kappa::<FMA>(*r2, alpha).0;
            }
            self.out.row_mut(n).copy_from_slice(&r2[..self.z.rows()]);
        }
    }
}

pub(super) struct CrossAdjoint<'a, 'g, S: Shape> {
    pub kernel: &'a Stationary<S>,
    pub x: &'a Mat,
    pub z: &'a Mat,
    pub bar: &'a Mat,
    pub grad: KernelGrad<'g>,
}

impl<S: Shape> Vectorized for CrossAdjoint<'_, '_, S> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(mut self) {
        let (m, dim) = (self.z.rows(), self.kernel.dim);
        let (zt, padded) = pack(self.z);
        let inverse = self.kernel.inverse_lengthscales();
        let (variance, alpha) = (self.kernel.variance.get(), self.kernel.alpha());
        let (mut r2, mut h) = (Room::filled(0.0, padded), Room::filled(0.0, padded));
        let mut z_bar = Room::filled(0.0, dim * padded);
        let mut l_bar = Room::filled(0.0, dim);
        let (mut variance_bar, mut alpha_bar) = (0.0, 0.0);
        for n in 0..self.x.rows() {
            let x = self.x.row(n);
            distances::<FMA>(x, &zt, &inverse, &mut r2);
            h[..m].copy_from_slice(self.bar.row(n));
            let mut kappa_sum = [0.0; LANES];
            for (h, r2) in h.chunks_exact_mut(LANES).zip(r2.chunks_exact(LANES)) {
                for i in 0..LANES {
                    let (kappa, slope) = S::kappa::<FMA>(r2[i], alpha);
                    kappa_sum[i] = fma::<FMA>(h[i], kappa, kappa_sum[i]);
                    if S::HAS_ALPHA {
                        alpha_bar += h[i] * variance * S::kappa_alpha(r2[i], alpha);
                    }
                    h[i] *= variance * slope;
                }
            }
            variance_bar += kappa_sum.iter().sum::<f64>();
            if self.grad.x.is_none() && self.grad.z.is_none() {
                for (q, z) in zt.chunks_exact(padded).enumerate() {
                    let (xq, inverse) = (x[q], inverse[q]);
                    let mut sum = [0.0; LANES];
                    for (h, z) in h.chunks_exact(LANES).zip(z.chunks_exact(LANES)) {
                        for i in 0..LANES {
                            let e = (xq - z[i]) * inverse;
                            sum[i] = fma::<FMA>(h[i] * e, e, sum[i]);
                        }
                    }
                    l_bar[q] -= 2.0 * inverse * sum.iter().sum::<f64>();
                }
                continue;
            }
            for q in 0..dim {
                let (xq, inverse) = (x[q], inverse[q]);
                let z = zt[q * padded..(q + 1) * padded].chunks_exact(LANES);
                let z_bar = z_bar[q * padded..(q + 1) * padded].chunks_exact_mut(LANES);
                let (mut x_sum, mut l_sum) = ([0.0; LANES], [0.0; LANES]);
                for ((h, z), z_bar) in h.chunks_exact(LANES).zip(z).zip(z_bar) {
                    for i in 0..LANES {
                        let e = (xq - z[i]) * inverse;
                        let he = h[i] * e;
                        x_sum[i] += he;
                        z_bar[i] -= he;
                        l_sum[i] = fma::<FMA>(he, e, l_sum[i]);
                    }
                }
                if let Some(gx) = self.grad.x.as_deref_mut() {
                    gx[(n, q)] += 2.0 * inverse * x_sum.iter().sum::<f64>();
                }
                l_bar[q] -= 2.0 * inverse * l_sum.iter().sum::<f64>();
            }
        }
        if let Some(gz) = self.grad.z {
            for q in 0..dim {
                for m in 0..m {
                    gz[(m, q)] += 2.0 * inverse[q] * z_bar[q * padded + m];
                }
            }
        }
        self.kernel.add_theta(self.grad.theta, variance_bar, &l_bar, alpha_bar);
    }
}
