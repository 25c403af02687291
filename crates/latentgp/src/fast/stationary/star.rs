//! Stationary kernels at stars: r² of a sigma point is that of its centre with one term exchanged.
//!
//! ```text
//! e_q = (μ_q − z_q)/ℓ_q     t_q = √S_q/ℓ_q     r² = (Σ e² − e_q²) + (e_q + ξt_q)²
//! ```
//!
//! Backward, with g_s = w_s K̄_s σ_f² ∂κ/∂r², G = Σ_s g_s over all arms and A_p = Σ g_s ξ_sᵖ over the arms along axis q:
//!
//! ```text
//! half of   ∂F/∂μ_q ℓ_q = −∂F/∂z_q ℓ_q = G e + t A_1     ∂F/∂√S_q ℓ_q = e A_1 + t A_2
//!           −∂F/∂ℓ_q ℓ_q = G e² + 2 e t A_1 + t² A_2
//! ```

use super::shapes::{advance, arguments};
use crate::fast::star::{LANES, Star, StarBar, StarGrad, StarKernel};
use crate::fast::vmath::{Instructions, Laned, Lanes, Numbers, in_lanes};
use crate::kernel::{Shape, Stationary};
use crate::mat::Mat;
use crate::scratch::Buffer;

/// [`LANES`] centres, V registers of L numbers.
type Centres<I, const L: usize, const V: usize> = [Lanes<I, L>; V];

/// Of one axis, [`LANES`] centres and one z: e, t A_1, and half of ∂F/∂z ℓ summed over the centres of a star.
type Axis<I, const L: usize, const V: usize> = [Centres<I, L, V>; 3];
/// How many numbers an [`Axis`] has.
const AXIS: usize = 3 * LANES;

impl<S: Shape> StarKernel for Stationary<S> {
    /// Keeps σ_f² ∂κ/∂r².
    fn star_kept(&self) -> usize {
        1
    }

    /// [`LANES`] partial sums each of: half of ∂F/∂z ℓ, M×Q; half of −∂F/∂ℓ ℓ; Σ K̄ ∘ K; ᾱ, all of it in the first.
    fn star_gathered(&self, m: usize) -> usize {
        (m * self.dim + self.dim + 2) * LANES
    }

    fn star_cross(&self, z: &Mat, at: &Star<'_>, kept: &mut [f64], out: &mut [f64]) {
        if out.is_empty() {
            return;
        }
        let (inverse, mut axes) = (self.inverse_lengthscales(), Buffer::filled(0.0, AXIS * self.dim));
        in_lanes(Cross { kernel: self, z, at, inverse: &inverse, axes: &mut axes, kept, out });
    }

    fn star_pull(&self, of: StarBar<'_>, grad: StarGrad<'_>) {
        if of.k.is_empty() {
            return;
        }
        let (inverse, mut axes) = (self.inverse_lengthscales(), Buffer::filled(0.0, AXIS * self.dim));
        in_lanes(Pull { kernel: self, of, inverse: &inverse, axes: &mut axes, grad });
    }

    fn star_finish(&self, gathered: &[f64], theta: &mut [f64], z: &mut Mat) {
        let (z_bar, rest) = <[f64; LANES]>::read(gathered).split_at(z.rows() * self.dim);
        let (l_bar, others) = rest.split_at(self.dim);
        let inverse = self.inverse_lengthscales();
        let sum = |lanes: &[f64; LANES]| lanes.iter().sum::<f64>();
        for (at, (to, lanes)) in z.as_mut_slice().iter_mut().zip(z_bar).enumerate() {
            *to += 2.0 * inverse[at % self.dim] * sum(lanes);
        }
        let l_bar =
            Buffer::of(l_bar.iter().zip(&inverse).map(|(lanes, inverse)| -2.0 * inverse * sum(lanes)));
        let variance_bar = sum(&others[0]) / self.variance.get();
        self.add_theta(theta, variance_bar, &l_bar, others[1][0]);
    }
}

/// Sets e of every axis for chunk c of the centres; returns Σ e².
#[inline(always)]
fn set_differences<I: Instructions, const L: usize, const V: usize>(
    axes: &mut [Axis<I, L, V>],
    inverse: &[f64],
    mean: &[Centres<I, L, V>],
    c: usize,
    z: &[f64],
) -> Centres<I, L, V> {
    let (chunks, mut sum) = (mean.len() / axes.len(), [Lanes::ZERO; V]);
    for ((axis, mean), (inverse, z)) in
        axes.iter_mut().zip(mean.chunks_exact(chunks)).zip(inverse.iter().zip(z))
    {
        for v in 0..V {
            let e = (mean[c][v] - Lanes::all(*z)) * *inverse;
            sum[v] = e.mul_add(e, sum[v]);
            axis[0][v] = e;
        }
    }
    sum
}

/// Σ e² − e², the sum over the other axes.
#[inline(always)]
fn rest<I: Instructions, const L: usize, const V: usize>(
    sum: &Centres<I, L, V>,
    e: &Centres<I, L, V>,
) -> Centres<I, L, V> {
    let mut rest = [Lanes::ZERO; V];
    for v in 0..V {
        rest[v] = e[v].neg_mul_add(e[v], sum[v]).max(rest[v]);
    }
    rest
}

struct Cross<'t, S: Shape> {
    kernel: &'t Stationary<S>,
    z: &'t Mat,
    at: &'t Star<'t>,
    inverse: &'t [f64],
    axes: &'t mut [f64],
    kept: &'t mut [f64],
    out: &'t mut [f64],
}

/// r² of one z.
#[inline(always)]
fn distances<I: Instructions, const L: usize, const V: usize>(
    axes: &mut [Axis<I, L, V>],
    inverse: &[f64],
    at: &Star<'_>,
    z: &[f64],
    row: &mut [f64],
) {
    let (mean, std) = (Numbers::read(at.mean.as_slice()), <Centres<I, L, V>>::read(at.std.as_slice()));
    let (arms, chunks) = (at.arms.all(), at.mean.cols() / LANES);
    let row: &mut [Centres<I, L, V>] = Numbers::read_mut(row);
    for (c, row) in row.chunks_exact_mut(arms.len()).enumerate() {
        let sum = set_differences(axes, inverse, mean, c, z);
        for (q, ([e, ..], inverse)) in axes.iter().zip(inverse).enumerate() {
            let (std, rest, own) = (&std[q * chunks + c], rest(&sum, e), at.arms.along(q));
            for (arm, to) in arms[own.clone()].iter().zip(&mut row[own]) {
                let reach = Lanes::all(arm.xi * inverse);
                for v in 0..V {
                    let moved = reach.mul_add(std[v], e[v]);
                    to[v] = moved.mul_add(moved, rest[v]);
                }
            }
        }
    }
}

impl<S: Shape> Laned for Cross<'_, S> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions, const L: usize>(self) {
        match L {
            LANES => self.rows::<I, L, 1>(),
            _ => self.rows::<I, L, 2>(),
        }
    }
}

impl<S: Shape> Cross<'_, S> {
    #[inline(always)]
    fn rows<I: Instructions, const L: usize, const V: usize>(self) {
        let (variance, alpha, width) = (self.kernel.variance.get(), self.kernel.alpha(), self.at.nodes());
        let axes: &mut [Axis<I, L, V>] = Numbers::read_mut(self.axes);
        // The powers of a row are taken beside the roots of the next.
        let (mut slopes, scales) = (self.kept.chunks_exact_mut(width), (variance, alpha));
        let mut before: &mut [f64] = &mut [];
        for (j, row) in self.out.chunks_exact_mut(width).enumerate() {
            distances(axes, self.inverse, self.at, self.z.row(j), row);
            if j == 0 {
                arguments::<S, I, L>(row);
            } else {
                advance::<S, I, L>(before, row, slopes.next().unwrap_or_default(), scales);
            }
            before = row;
        }
        advance::<S, I, L>(before, &mut [], slopes.next().unwrap_or_default(), scales);
    }
}

struct Pull<'t, S: Shape> {
    kernel: &'t Stationary<S>,
    of: StarBar<'t>,
    inverse: &'t [f64],
    axes: &'t mut [f64],
    grad: StarGrad<'t>,
}

impl<S: Shape> Laned for Pull<'_, S> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions, const L: usize>(self) {
        match L {
            LANES => self.rows::<I, L, 1>(),
            _ => self.rows::<I, L, 2>(),
        }
    }
}

impl<S: Shape> Pull<'_, S> {
    #[inline(always)]
    fn rows<I: Instructions, const L: usize, const V: usize>(self) {
        let Pull { kernel, of, inverse, grad, .. } = self;
        let (z, Star { mean, std, arms }) = (of.z, of.at);
        let axes: &mut [Axis<I, L, V>] = Numbers::read_mut(self.axes);
        let (variance, alpha) = (kernel.variance.get(), kernel.alpha());
        let (chunks, dim) = (mean.cols() / LANES, axes.len());
        let read = <Centres<I, L, V>>::read;
        let (mean, std, all) = (read(mean.as_slice()), read(std.as_slice()), arms.all());
        let mean_bar: &mut [Centres<I, L, V>] = Numbers::read_mut(grad.mean.as_mut_slice());
        let std_bar: &mut [Centres<I, L, V>] = Numbers::read_mut(grad.std.as_mut_slice());
        let gathered: &mut [Centres<I, L, V>] = Numbers::read_mut(grad.gathered);
        let (z_bar, rest_bar) = gathered.split_at_mut(z.rows() * dim);
        let (l_bar, others) = rest_bar.split_at_mut(dim);
        let (mut total, mut alpha_bar) = (others[0], others[1][0].0[0]);
        let width = all.len() * chunks;
        let bars = read(of.bar).chunks_exact(width).zip(read(of.shared_bar).chunks_exact(chunks));
        let rows = read(of.k).chunks_exact(width).zip(read(of.kept).chunks_exact(width));
        for (j, ((bar, shared), (k, slope))) in bars.zip(rows).enumerate() {
            axes.iter_mut().for_each(|[.., z_sum]| *z_sum = [Lanes::ZERO; V]);
            let own = k.chunks_exact(all.len()).zip(bar.chunks_exact(all.len()));
            let own = own.zip(slope.chunks_exact(all.len())).zip(shared);
            for (c, (((k, bar), slope), shared)) in own.enumerate() {
                let sum = set_differences(axes, inverse, mean, c, z.row(j));
                let mut g_all = [Lanes::ZERO; V];
                for (q, (axis, &inverse)) in axes.iter_mut().zip(inverse).enumerate() {
                    let (at, [e, along, _]) = (q * chunks + c, axis);
                    let (mut a, mut along_total) = ([[Lanes::ZERO; V]; 3], [Lanes::ZERO; V]);
                    let own = arms.along(q);
                    let values = k[own.clone()].iter().zip(&bar[own.clone()]).zip(&slope[own.clone()]);
                    for (arm, ((k, bar), slope)) in all[own].iter().zip(values) {
                        let (one, two) = (Lanes::all(arm.xi), Lanes::all(arm.xi * arm.xi));
                        for v in 0..V {
                            let bar = (bar[v] + shared[v]) * arm.weight;
                            let g = bar * slope[v];
                            along_total[v] = bar.mul_add(k[v], along_total[v]);
                            a[0][v] += g;
                            a[1][v] = g.mul_add(one, a[1][v]);
                            a[2][v] = g.mul_add(two, a[2][v]);
                        }
                        if S::HAS_ALPHA {
                            let rest = rest(&sum, e);
                            for v in 0..V {
                                let moved = e[v] + std[at][v] * (arm.xi * inverse);
                                let r2 = moved.mul_add(moved, rest[v]);
                                for l in 0..L {
                                    let slope = variance * S::kappa_alpha(r2.0[l], alpha);
                                    let bar = bar[v].0[l] + shared[v].0[l];
                                    alpha_bar += arm.weight * bar * slope;
                                }
                            }
                        }
                    }
                    for v in 0..V {
                        let t = std[at][v] * inverse;
                        along[v] = t * a[1][v];
                        let reach = e[v].mul_add(a[1][v], t * a[2][v]);
                        g_all[v] += a[0][v];
                        total[v] += along_total[v];
                        std_bar[at][v] = reach.mul_add(Lanes::all(2.0 * inverse), std_bar[at][v]);
                        l_bar[q][v] = t.mul_add(reach, e[v].mul_add(along[v], l_bar[q][v]));
                    }
                }
                for (q, ([e, along, z_sum], &inverse)) in axes.iter_mut().zip(inverse).enumerate() {
                    let at = q * chunks + c;
                    for v in 0..V {
                        let ge = g_all[v] * e[v];
                        let both = ge + along[v];
                        mean_bar[at][v] = both.mul_add(Lanes::all(2.0 * inverse), mean_bar[at][v]);
                        z_sum[v] -= both;
                        l_bar[q][v] = ge.mul_add(e[v], l_bar[q][v]);
                    }
                }
            }
            for (to, [.., z_sum]) in z_bar[j * dim..(j + 1) * dim].iter_mut().zip(&*axes) {
                for v in 0..V {
                    to[v] += z_sum[v];
                }
            }
        }
        others[0] = total;
        others[1][0].0[0] = alpha_bar;
    }
}
