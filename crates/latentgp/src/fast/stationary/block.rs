//! Blocks of stationary kernels and their adjoints, with Z packed as Q×M so that the inner loop runs along m.

use super::shapes::kappa;
use crate::fast::vmath::{Instructions, Laned, Lanes, Numbers, Vectorized, fma};
use crate::kernel::{KernelGrad, Shape, Stationary};
use crate::mat::Mat;
use crate::scratch::Buffer;

/// Sums of the inner loops run in this many independent accumulators, in a fixed order.
pub(crate) const LANES: usize = 8;

/// Z transposed and padded, Q×M', and M', the next multiple of [`LANES`]; the columns beyond M repeat the last point.
pub(crate) fn pack(z: &Mat) -> (Buffer<f64>, usize) {
    let padded = z.rows().next_multiple_of(LANES);
    let mut zt = Buffer::filled(0.0, z.cols() * padded);
    for q in 0..z.cols() {
        for m in 0..padded {
            zt[q * padded + m] = z[(m.min(z.rows() - 1), q)];
        }
    }
    (zt, padded)
}

/// r2[m] = Σ_q ((x_q − z_qm)/ℓ_q)².
#[inline(always)]
pub(super) fn distances<I: Instructions>(x: &[f64], zt: &[f64], inverse: &[f64], r2: &mut [f64]) {
    r2.fill(0.0);
    for (q, z) in zt.chunks_exact(r2.len()).enumerate() {
        let (x, inverse) = (x[q], inverse[q]);
        for (r2, z) in r2.iter_mut().zip(z) {
            let e = (x - z) * inverse;
            *r2 = fma::<I>(e, e, *r2);
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
    fn run<I: Instructions>(self) {
        let (zt, padded) = pack(self.z);
        let inverse = self.kernel.inverse_lengthscales();
        let (variance, alpha) = (self.kernel.variance.get(), self.kernel.alpha());
        let mut r2 = Buffer::filled(0.0, padded);
        for n in 0..self.x.rows() {
            distances::<I>(self.x.row(n), &zt, &inverse, &mut r2);
            for r2 in &mut r2 {
                *r2 = variance * kappa::<S, I>(*r2, alpha).0;
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

impl<S: Shape> Laned for CrossAdjoint<'_, '_, S> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions, const L: usize>(self) {
        match L {
            LANES => self.rows::<I, L, 1>(),
            _ => self.rows::<I, L, 2>(),
        }
    }
}

/// [`LANES`] numbers, V registers of L.
type Group<I, const L: usize, const V: usize> = [Lanes<I, L>; V];

/// Their sum, in order.
#[inline(always)]
fn total<I: Instructions, const L: usize, const V: usize>(sums: Group<I, L, V>) -> f64 {
    sums.iter().flat_map(|sums| sums.0).sum()
}

impl<S: Shape> CrossAdjoint<'_, '_, S> {
    #[inline(always)]
    fn rows<I: Instructions, const L: usize, const V: usize>(mut self) {
        let read = <Group<I, L, V>>::read;
        let (m, dim) = (self.z.rows(), self.kernel.dim);
        let (zt, padded) = pack(self.z);
        let inverse = self.kernel.inverse_lengthscales();
        let (variance, alpha) = (self.kernel.variance.get(), self.kernel.alpha());
        let [mut r2, mut value, mut slope, mut h] = std::array::from_fn(|_| Buffer::filled(0.0, padded));
        let mut z_bar = Buffer::filled(0.0, dim * padded);
        let mut l_bar = Buffer::filled(0.0, dim);
        let (mut variance_bar, mut alpha_bar) = (0.0, 0.0);
        for n in 0..self.x.rows() {
            let x = self.x.row(n);
            distances::<I>(x, &zt, &inverse, &mut r2);
            for ((r2, value), slope) in r2.iter().zip(&mut value).zip(&mut slope) {
                (*value, *slope) = kappa::<S, I>(*r2, alpha);
            }
            if S::HAS_ALPHA {
                for (bar, r2) in self.bar.row(n).iter().zip(&r2) {
                    alpha_bar += bar * variance * S::kappa_alpha(*r2, alpha);
                }
            }
            h[..m].copy_from_slice(self.bar.row(n));
            let (mut kappa_sum, h) = ([Lanes::ZERO; V], <Group<I, L, V>>::read_mut(&mut h));
            for ((h, value), slope) in h.iter_mut().zip(read(&value)).zip(read(&slope)) {
                for v in 0..V {
                    kappa_sum[v] = h[v].mul_add(value[v], kappa_sum[v]);
                    h[v] = h[v] * (slope[v] * variance);
                }
            }
            variance_bar += total(kappa_sum);
            if self.grad.x.is_none() && self.grad.z.is_none() {
                for (q, z) in zt.chunks_exact(padded).enumerate() {
                    let (xq, inverse, mut sum) = (Lanes::all(x[q]), inverse[q], [Lanes::ZERO; V]);
                    for (h, z) in h.iter().zip(read(z)) {
                        for v in 0..V {
                            let e = (xq - z[v]) * inverse;
                            sum[v] = (h[v] * e).mul_add(e, sum[v]);
                        }
                    }
                    l_bar[q] -= 2.0 * inverse * total(sum);
                }
                continue;
            }
            for (q, (z, z_bar)) in zt.chunks_exact(padded).zip(z_bar.chunks_exact_mut(padded)).enumerate() {
                let (xq, inverse) = (Lanes::all(x[q]), inverse[q]);
                let (mut x_sum, mut l_sum) = ([Lanes::ZERO; V], [Lanes::ZERO; V]);
                let z_bar = <Group<I, L, V>>::read_mut(z_bar);
                for ((h, z), z_bar) in h.iter().zip(read(z)).zip(z_bar) {
                    for v in 0..V {
                        let e = (xq - z[v]) * inverse;
                        let he = h[v] * e;
                        x_sum[v] += he;
                        z_bar[v] -= he;
                        l_sum[v] = he.mul_add(e, l_sum[v]);
                    }
                }
                if let Some(gx) = self.grad.x.as_deref_mut() {
                    gx[(n, q)] += 2.0 * inverse * total(x_sum);
                }
                l_bar[q] -= 2.0 * inverse * total(l_sum);
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
