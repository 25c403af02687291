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
use crate::kernel::star::{LANES, Star, StarBlocks, StarKernel};
use crate::mat::Mat;
use crate::scratch::{Room, Scratch};
use crate::vmath::{Laned, Vectorized, fma, in_lanes, vectorize};
use smallvec::SmallVec;

type Lanes = [f64; LANES];
const ZERO: Lanes = [0.0; LANES];

impl<S: Shape> StarKernel for Stationary<S> {
    fn at<'a>(&'a self, z: &'a Mat) -> Box<dyn StarBlocks + 'a> {
        let axis = |inverse: f64| Axis { inverse, e: ZERO, along: ZERO, z_bar: ZERO, l_bar: ZERO };
        Box::new(Blocks {
            kernel: self,
            z,
            axes: self.inverse_lengthscales().iter().map(|i| axis(*i)).collect(),
            slope: Scratch::default(),
            z_bar: Room::filled(ZERO, z.len()),
            k_bar: ZERO,
            alpha_bar: 0.0,
        })
    }
}

/// So many axes lie beside the rest.
const FEW: usize = 12;

/// What one axis has of [`LANES`] centres and one z.
struct Axis {
    /// 1/ℓ.
    inverse: f64,
    e: Lanes,
    /// t A_1.
    along: Lanes,
    /// Half of ∂F/∂z ℓ, of one z and all centres of a star.
    z_bar: Lanes,
    /// Half of −∂F/∂ℓ ℓ, of everything so far.
    l_bar: Lanes,
}

struct Blocks<'a, S: Shape> {
    kernel: &'a Stationary<S>,
    z: &'a Mat,
    axes: SmallVec<[Axis; FEW]>,
    /// σ_f² ∂κ/∂r², where the last star was kept.
    slope: Scratch,
    /// Half of ∂F/∂z ℓ, M×Q.
    z_bar: Room<Lanes>,
    /// Σ K̄ ∘ K.
    k_bar: Lanes,
    alpha_bar: f64,
}

impl<S: Shape> StarBlocks for Blocks<'_, S> {
    fn cross(&mut self, at: &Star<'_>, keep: bool, out: &mut Mat) {
        if out.is_empty() {
            return;
        }
        if keep && self.slope.len() < out.len() {
            self.slope = Scratch::take(out.len());
        }
        in_lanes(Cross { blocks: self, at, keep, out });
    }

    fn pull(&mut self, at: &Star<'_>, k: &Mat, bar: &Mat, mean: &mut Mat, std: &mut Mat) {
        if k.is_empty() {
            return;
        }
        vectorize(Pull { blocks: self, at, k, bar, mean, std });
    }

    fn finish(&mut self, theta: &mut [f64], z: &mut Mat) {
        let sum = |lanes: &mut Lanes| std::mem::replace(lanes, ZERO).iter().sum::<f64>();
        let dim = self.axes.len();
        for (at, lanes) in self.z_bar.iter_mut().enumerate() {
            z.as_mut_slice()[at] += 2.0 * self.axes[at % dim].inverse * sum(lanes);
        }
        let l_bar = Room::of(self.axes.iter_mut().map(|a| -2.0 * a.inverse * sum(&mut a.l_bar)));
        let variance_bar = sum(&mut self.k_bar) / self.kernel.variance.get();
        self.kernel.add_theta(theta, variance_bar, &l_bar, std::mem::take(&mut self.alpha_bar));
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
fn place<const FMA: bool>(axes: &mut [Axis], mean: &[Lanes], c: usize, z: &[f64]) -> Lanes {
    let (chunks, mut sum) = (mean.len() / axes.len(), ZERO);
    for ((q, axis), z) in axes.iter_mut().enumerate().zip(z) {
        let (mean, inverse, mut e) = (mean[q * chunks + c], axis.inverse, ZERO);
        for k in 0..LANES {
            e[k] = (mean[k] - z) * inverse;
            sum[k] = fma::<FMA>(e[k], e[k], sum[k]);
        }
        axis.e = e;
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

struct Cross<'t, 'a, S: Shape> {
    blocks: &'t mut Blocks<'a, S>,
    at: &'t Star<'t>,
    keep: bool,
    out: &'t mut Mat,
}

impl<S: Shape> Cross<'_, '_, S> {
    /// r² of one z.
    #[inline(always)]
    fn distances<const FMA: bool>(axes: &mut [Axis], at: &Star<'_>, z: &[f64], row: &mut [f64]) {
        let (mean, std) = (lanes(at.mean.as_slice()), lanes(at.std.as_slice()));
        let (row, arms, chunks) = (lanes_mut(row), at.arms.all(), at.mean.cols() / LANES);
        for c in 0..chunks {
            let sum = place::<FMA>(axes, mean, c, z);
            for (q, axis) in axes.iter().enumerate() {
                let (std, e, rest) = (std[q * chunks + c], axis.e, rest::<FMA>(&sum, &axis.e));
                for s in at.arms.along(q) {
                    let (reach, mut r2) = (arms[s].xi * axis.inverse, ZERO);
                    for k in 0..LANES {
                        let moved = fma::<FMA>(reach, std[k], e[k]);
                        r2[k] = fma::<FMA>(moved, moved, rest[k]);
                    }
                    row[s * chunks + c] = r2;
                }
            }
        }
    }
}

impl<S: Shape> Laned for Cross<'_, '_, S> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool, const L: usize>(self) {
        let Blocks { kernel, z, axes, slope, .. } = self.blocks;
        let (variance, alpha, width) = (kernel.variance.get(), kernel.alpha(), self.out.cols());
        // A row waits with its arguments for the next one, whose roots are taken beside its powers.
        let kept = if self.keep { &mut slope[..] } else { &mut [] };
        let (mut slopes, scales) = (kept.chunks_exact_mut(width), (variance, alpha));
        let mut before: &mut [f64] = &mut [];
        for (j, row) in self.out.as_mut_slice().chunks_exact_mut(width).enumerate() {
            Self::distances::<FMA>(axes, self.at, z.row(j), row);
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

struct Pull<'t, 'a, S: Shape> {
    blocks: &'t mut Blocks<'a, S>,
    at: &'t Star<'t>,
    k: &'t Mat,
    bar: &'t Mat,
    mean: &'t mut Mat,
    std: &'t mut Mat,
}

impl<S: Shape> Vectorized for Pull<'_, '_, S> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Star { mean, std, arms } = *self.at;
        let Blocks { kernel, z, axes, slope, z_bar, k_bar, alpha_bar } = self.blocks;
        let (variance, alpha) = (kernel.variance.get(), kernel.alpha());
        let (width, chunks, dim) = (self.k.cols(), mean.cols() / LANES, axes.len());
        let (mean, std, all) = (lanes(mean.as_slice()), lanes(std.as_slice()), arms.all());
        let (mean_bar, std_bar) = (lanes_mut(self.mean.as_mut_slice()), lanes_mut(self.std.as_mut_slice()));
        let mut total = *k_bar;
        for j in 0..z.rows() {
            let (k, bar) = (lanes(self.k.row(j)), lanes(self.bar.row(j)));
            let slope = lanes(&slope[j * width..(j + 1) * width]);
            axes.iter_mut().for_each(|axis| axis.z_bar = ZERO);
            for c in 0..chunks {
                let sum = place::<FMA>(axes, mean, c, z.row(j));
                let mut g_all = ZERO;
                for (q, axis) in axes.iter_mut().enumerate() {
                    let mut a = [ZERO; 3];
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
                            let rest = rest::<FMA>(&sum, &axis.e);
                            for i in 0..LANES {
                                let moved = axis.e[i] + xi * axis.inverse * std[q * chunks + c][i];
                                let r2 = fma::<FMA>(moved, moved, rest[i]);
                                *alpha_bar += weight * bar[i] * variance * S::kappa_alpha(r2, alpha);
                            }
                        }
                    }
                    let at = q * chunks + c;
                    let (inverse, e, std, mut std_sum, mut l_bar) =
                        (axis.inverse, axis.e, std[at], std_bar[at], axis.l_bar);
                    for i in 0..LANES {
                        let t = inverse * std[i];
                        let along = t * a[1][i];
                        let reach = fma::<FMA>(e[i], a[1][i], t * a[2][i]);
                        g_all[i] += a[0][i];
                        std_sum[i] = fma::<FMA>(2.0 * inverse, reach, std_sum[i]);
                        l_bar[i] = fma::<FMA>(t, reach, fma::<FMA>(e[i], along, l_bar[i]));
                        a[1][i] = along;
                    }
                    (std_bar[at], axis.l_bar, axis.along) = (std_sum, l_bar, a[1]);
                }
                for (q, axis) in axes.iter_mut().enumerate() {
                    let (at, inverse, e, along) = (q * chunks + c, axis.inverse, axis.e, axis.along);
                    let (mut mean_sum, mut z_sum, mut l_bar) = (mean_bar[at], axis.z_bar, axis.l_bar);
                    for i in 0..LANES {
                        let ge = g_all[i] * e[i];
                        let both = ge + along[i];
                        mean_sum[i] = fma::<FMA>(2.0 * inverse, both, mean_sum[i]);
                        z_sum[i] -= both;
                        l_bar[i] = fma::<FMA>(ge, e[i], l_bar[i]);
                    }
                    (mean_bar[at], axis.z_bar, axis.l_bar) = (mean_sum, z_sum, l_bar);
                }
            }
            for (sum, axis) in z_bar[j * dim..(j + 1) * dim].iter_mut().zip(&*axes) {
                for i in 0..LANES {
                    sum[i] += axis.z_bar[i];
                }
            }
        }
        *k_bar = total;
    }
}
