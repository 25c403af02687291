//! Stationary kernels at stars: r² of a sigma point is that of its centre with one term exchanged.
//!
//! ```text
//! e_q = (μ_q − z_q)/ℓ_q     t_q = √S_q/ℓ_q     r² = (Σ e² − e_q²) + (e_q + ξt_q)²
//! ```
//!
//! Backward, with g_s = w_s K̄_s σ_f² ∂κ/∂r² and A_p = Σ g_s ξ_sᵖ over the arms along an axis, everything that a coordinate
//! at rest receives depends on G = Σ_s g_s alone:
//!
//! ```text
//! half of   ∂F/∂μ_q ℓ_q = −∂F/∂z_q ℓ_q = G e + t A_1     ∂F/∂√S_q ℓ_q = e A_1 + t A_2
//!           −∂F/∂ℓ_q ℓ_q = G e² + 2 e t A_1 + t² A_2
//! ```

use super::shapes::advance;
use super::{Shape, Stationary};
use crate::kernel::star::{LANES, Star, StarGrad, StarKernel};
use crate::mat::Mat;
use crate::scratch::Room;
use crate::vmath::{Laned, Vectorized, fma, in_lanes, vectorize};

type Lanes = [f64; LANES];
const ZERO: Lanes = [0.0; LANES];

/// What one axis has of [`LANES`] centres and one z: e, t A_1, and half of ∂F/∂z ℓ of all centres of a star.
type Axis = [Lanes; 3];

impl<S: Shape> StarKernel for Stationary<S> {
    /// σ_f² ∂κ/∂r².
    fn star_kept(&self) -> usize {
        1
    }

    /// In lanes: half of ∂F/∂z ℓ, M×Q; half of −∂F/∂ℓ ℓ; Σ K̄ ∘ K; ᾱ, in the first lane.
    fn star_gathered(&self, m: usize) -> usize {
        (m * self.dim + self.dim + 2) * LANES
    }

    fn star_cross(&self, z: &Mat, at: &Star<'_>, kept: &mut [f64], out: &mut [f64]) {
        if out.is_empty() {
            return;
        }
        let (inverse, mut axes) = (self.inverse_lengthscales(), Room::filled([ZERO; 3], self.dim));
        in_lanes(Cross { kernel: self, z, at, inverse: &inverse, axes: &mut axes, kept, out });
    }

    fn star_pull(&self, z: &Mat, at: &Star<'_>, kept: &[f64], k: &[f64], bar: &[f64], grad: StarGrad<'_>) {
        if k.is_empty() {
            return;
        }
        let (inverse, mut axes) = (self.inverse_lengthscales(), Room::filled([ZERO; 3], self.dim));
        vectorize(Pull {
            kernel: self,
            z,
            at,
            inverse: &inverse,
            axes: &mut axes,
            slope: kept,
            k,
            bar,
            grad,
        });
    }

    fn star_finish(&self, gathered: &[f64], theta: &mut [f64], z: &mut Mat) {
        let (z_bar, rest) = lanes(gathered).split_at(z.rows() * self.dim);
        let (l_bar, others) = rest.split_at(self.dim);
        let inverse = self.inverse_lengthscales();
        let sum = |lanes: &Lanes| lanes.iter().sum::<f64>();
        for (at, (to, lanes)) in z.as_mut_slice().iter_mut().zip(z_bar).enumerate() {
            *to += 2.0 * inverse[at % self.dim] * sum(lanes);
        }
        let l_bar = Room::of(l_bar.iter().zip(&inverse).map(|(lanes, inverse)| -2.0 * inverse * sum(lanes)));
        let variance_bar = sum(&others[0]) / self.variance.get();
        self.add_theta(theta, variance_bar, &l_bar, others[1][0]);
    }
}

#[inline(always)]
fn lanes(of: &[f64]) -> &[Lanes] {
    of.as_chunks().0
}

#[inline(always)]
fn lanes_mut(of: &mut [f64]) -> &mut [Lanes] {
    of.as_chunks_mut().0
}

/// Sets e of every axis to that of chunk c of the centres; returns Σ e².
#[inline(always)]
fn place<const FMA: bool>(axes: &mut [Axis], inverse: &[f64], mean: &[Lanes], c: usize, z: &[f64]) -> Lanes {
    let (chunks, mut sum) = (mean.len() / axes.len(), ZERO);
    for ((q, axis), (inverse, z)) in axes.iter_mut().enumerate().zip(inverse.iter().zip(z)) {
        let (mean, mut e) = (mean[q * chunks + c], ZERO);
        for k in 0..LANES {
            e[k] = (mean[k] - z) * inverse;
            sum[k] = fma::<FMA>(e[k], e[k], sum[k]);
        }
        axis[0] = e;
    }
    sum
}

/// Σ e² − e², of the axes at rest.
#[inline(always)]
fn rest<const FMA: bool>(sum: &Lanes, e: &Lanes) -> Lanes {
    let mut rest = ZERO;
    for k in 0..LANES {
        let less = fma::<FMA>(-e[k], e[k], sum[k]);
        rest[k] = if less > 0.0 { less } else { 0.0 };
    }
    rest
}

struct Cross<'t, S: Shape> {
    kernel: &'t Stationary<S>,
    z: &'t Mat,
    at: &'t Star<'t>,
    inverse: &'t [f64],
    axes: &'t mut [Axis],
    kept: &'t mut [f64],
    out: &'t mut [f64],
}

/// r² of one z.
#[inline(always)]
fn distances<const FMA: bool>(axes: &mut [Axis], inverse: &[f64], at: &Star<'_>, z: &[f64], row: &mut [f64]) {
    let (mean, std) = (lanes(at.mean.as_slice()), lanes(at.std.as_slice()));
    let (row, arms, chunks) = (lanes_mut(row), at.arms.all(), at.mean.cols() / LANES);
    for c in 0..chunks {
        let sum = place::<FMA>(axes, inverse, mean, c, z);
        for (q, ([e, ..], inverse)) in axes.iter().zip(inverse).enumerate() {
            let (std, e, rest) = (std[q * chunks + c], *e, rest::<FMA>(&sum, e));
            for s in at.arms.along(q) {
                let (reach, mut r2) = (arms[s].xi * inverse, ZERO);
                for k in 0..LANES {
                    let moved = fma::<FMA>(reach, std[k], e[k]);
                    r2[k] = fma::<FMA>(moved, moved, rest[k]);
                }
                row[s * chunks + c] = r2;
            }
        }
    }
}

impl<S: Shape> Laned for Cross<'_, S> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool, const L: usize>(self) {
        let (variance, alpha, width) = (self.kernel.variance.get(), self.kernel.alpha(), self.at.places());
        // A row waits with its arguments for the next one, whose roots are taken beside its powers.
        let (mut slopes, scales) = (self.kept.chunks_exact_mut(width), (variance, alpha));
        let mut before: &mut [f64] = &mut [];
        for (j, row) in self.out.chunks_exact_mut(width).enumerate() {
            distances::<FMA>(self.axes, self.inverse, self.at, self.z.row(j), row);
            if j == 0 {
                row.iter_mut().for_each(|v| *v = S::argument(*v));
            } else {
                advance::<S, FMA, L>(before, row, slopes.next().unwrap_or_default(), scales);
            }
            before = row;
        }
        advance::<S, FMA, L>(before, &mut [], slopes.next().unwrap_or_default(), scales);
    }
}

struct Pull<'t, S: Shape> {
    kernel: &'t Stationary<S>,
    z: &'t Mat,
    at: &'t Star<'t>,
    inverse: &'t [f64],
    axes: &'t mut [Axis],
    slope: &'t [f64],
    k: &'t [f64],
    bar: &'t [f64],
    grad: StarGrad<'t>,
}

impl<S: Shape> Vectorized for Pull<'_, S> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Star { mean, std, arms } = *self.at;
        let Pull { kernel, z, inverse, axes, grad, .. } = self;
        let (variance, alpha) = (kernel.variance.get(), kernel.alpha());
        let (chunks, dim) = (mean.cols() / LANES, axes.len());
        let (mean, std, all) = (lanes(mean.as_slice()), lanes(std.as_slice()), arms.all());
        let (mean_bar, std_bar) = (lanes_mut(grad.mean.as_mut_slice()), lanes_mut(grad.std.as_mut_slice()));
        let (z_bar, rest_bar) = lanes_mut(grad.gathered).split_at_mut(z.rows() * dim);
        let (l_bar, others) = rest_bar.split_at_mut(dim);
        let (mut total, mut alpha_bar) = (others[0], others[1][0]);
        let width = all.len() * chunks;
        let rows = lanes(self.k).chunks_exact(width).zip(lanes(self.bar).chunks_exact(width));
        for (j, ((k, bar), slope)) in rows.zip(lanes(self.slope).chunks_exact(width)).enumerate() {
            axes.iter_mut().for_each(|[.., z_sum]| *z_sum = ZERO);
            for c in 0..chunks {
                let sum = place::<FMA>(axes, inverse, mean, c, z.row(j));
                let mut g_all = ZERO;
                for (q, (axis, &inverse)) in axes.iter_mut().zip(inverse).enumerate() {
                    let (mut a, e) = ([ZERO; 3], axis[0]);
                    for s in arms.along(q) {
                        let (xi, weight, at) = (all[s].xi, all[s].weight, s * chunks + c);
                        let (k, slope, bar, xi2) = (k[at], slope[at], bar[at], xi * xi);
                        for i in 0..LANES {
                            let bar = weight * bar[i];
                            let g = bar * slope[i];
                            total[i] = fma::<FMA>(bar, k[i], total[i]);
                            a[0][i] += g;
                            a[1][i] = fma::<FMA>(g, xi, a[1][i]);
                            a[2][i] = fma::<FMA>(g, xi2, a[2][i]);
                        }
                        if S::HAS_ALPHA {
                            let rest = rest::<FMA>(&sum, &e);
                            for i in 0..LANES {
                                let moved = e[i] + xi * inverse * std[q * chunks + c][i];
                                let r2 = fma::<FMA>(moved, moved, rest[i]);
                                alpha_bar += weight * bar[i] * variance * S::kappa_alpha(r2, alpha);
                            }
                        }
                    }
                    let at = q * chunks + c;
                    let (std, mut std_sum, mut l_sum) = (std[at], std_bar[at], l_bar[q]);
                    for i in 0..LANES {
                        let t = inverse * std[i];
                        let along = t * a[1][i];
                        let reach = fma::<FMA>(e[i], a[1][i], t * a[2][i]);
                        g_all[i] += a[0][i];
                        std_sum[i] = fma::<FMA>(2.0 * inverse, reach, std_sum[i]);
                        l_sum[i] = fma::<FMA>(t, reach, fma::<FMA>(e[i], along, l_sum[i]));
                        a[1][i] = along;
                    }
                    (std_bar[at], l_bar[q], axis[1]) = (std_sum, l_sum, a[1]);
                }
                for (q, ([e, along, z_sum], &inverse)) in axes.iter_mut().zip(inverse).enumerate() {
                    let (at, e, along) = (q * chunks + c, *e, *along);
                    let (mut mean_sum, mut sum, mut l_sum) = (mean_bar[at], *z_sum, l_bar[q]);
                    for i in 0..LANES {
                        let ge = g_all[i] * e[i];
                        let both = ge + along[i];
                        mean_sum[i] = fma::<FMA>(2.0 * inverse, both, mean_sum[i]);
                        sum[i] -= both;
                        l_sum[i] = fma::<FMA>(ge, e[i], l_sum[i]);
                    }
                    (mean_bar[at], *z_sum, l_bar[q]) = (mean_sum, sum, l_sum);
                }
            }
            for (to, [.., z_sum]) in z_bar[j * dim..(j + 1) * dim].iter_mut().zip(&*axes) {
                for i in 0..LANES {
                    to[i] += z_sum[i];
                }
            }
        }
        (others[0], others[1][0]) = (total, alpha_bar);
    }
}
