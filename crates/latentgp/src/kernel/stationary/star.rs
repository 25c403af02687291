//! Stationary kernels at stars: r² of a sigma point is that of its centre with one term exchanged.
//!
//! ```text
//! e_q = (μ_q − z_q)/ℓ_q     h = ξ√S_q/ℓ_q     r² = (Σ e² − e_q²) + (e_q + h)²
//! ```
//!
//! Backward, with g_s = K̄_s σ_f² ∂κ/∂r², everything that a coordinate at rest receives depends on G = Σ_s g_s alone, and a
//! pair adds one product for the coordinate that moves.

use super::{LANES, Shape, Stationary};
use crate::kernel::{Star, StarBlocks, StarGrad, StarKernel};
use crate::mat::Mat;
use crate::vmath::{Vectorized, fma, vectorize};

type Lanes = [f64; LANES];

impl<S: Shape> StarKernel for Stationary<S> {
    fn at<'a>(&'a self, z: &'a Mat) -> Box<dyn StarBlocks + 'a> {
        let centre = Centre::new(z);
        let zeros = |each: usize| vec![[0.0; LANES]; each * centre.line.len()];
        Box::new(Blocks {
            kernel: self,
            m: z.rows(),
            inverse: self.inverse_lengthscales(),
            bar: zeros(1),
            slope: zeros(1),
            sum: zeros(1),
            moved: zeros(z.cols()),
            z_bar: zeros(z.cols()),
            l_bar: vec![0.0; z.cols()],
            centre,
        })
    }
}

struct Blocks<'a, S: Shape> {
    kernel: &'a Stationary<S>,
    m: usize,
    inverse: Vec<f64>,
    centre: Centre,
    /// One row of K̄, ∂κ/∂r² of an arm, and G.
    bar: Vec<Lanes>,
    slope: Vec<Lanes>,
    sum: Vec<Lanes>,
    /// g·h of the arms along each axis, and Z̄, Q numbers for each chunk.
    moved: Vec<Lanes>,
    z_bar: Vec<Lanes>,
    l_bar: Vec<f64>,
}

impl<S: Shape> StarBlocks for Blocks<'_, S> {
    fn cross(&mut self, at: &Star<'_>, out: &mut Mat) {
        if self.m > 0 {
            vectorize(Cross { blocks: self, at, out });
        }
    }

    fn cross_adjoint(&mut self, at: &Star<'_>, bar: &Mat, grad: StarGrad<'_>) {
        if self.m > 0 {
            vectorize(Adjoint { blocks: self, at, bar, grad });
        }
    }
}

/// One row's centre against all of Z, Q numbers for each chunk of [`LANES`] columns.
struct Centre {
    dim: usize,
    z: Vec<Lanes>,
    /// e.
    e: Vec<Lanes>,
    /// Σ_q e².
    square: Vec<Lanes>,
    /// r² of an arm.
    line: Vec<Lanes>,
}

impl Centre {
    fn new(z: &Mat) -> Self {
        let (m, dim) = (z.rows(), z.cols());
        let chunks = m.div_ceil(LANES);
        let at = |c: usize, q: usize| std::array::from_fn(|k| z[((c * LANES + k).min(m - 1), q)]);
        let z: Vec<Lanes> = (0..chunks).flat_map(|c| (0..dim).map(move |q| at(c, q))).collect();
        Centre { dim, e: z.clone(), z, square: vec![[0.0; LANES]; chunks], line: vec![[0.0; LANES]; chunks] }
    }

    #[inline(always)]
    fn place<const FMA: bool>(&mut self, mean: &[f64], inverse: &[f64]) {
        let chunks = self.z.chunks_exact(self.dim).zip(self.e.chunks_exact_mut(self.dim));
        for (square, (z, e)) in self.square.iter_mut().zip(chunks) {
            let mut sum = [0.0; LANES];
            for ((z, e), (mean, inverse)) in z.iter().zip(e).zip(mean.iter().zip(inverse)) {
                let new = z.map(|z| (mean - z) * inverse);
                for k in 0..LANES {
                    sum[k] = fma::<FMA>(new[k], new[k], sum[k]);
                }
                *e = new;
            }
            *square = sum;
        }
    }

    /// Sets `line` to r² with coordinate q moved by h.
    #[inline(always)]
    fn arm<const FMA: bool>(&mut self, q: usize, h: f64) {
        let columns = self.square.iter().zip(self.e.chunks_exact(self.dim));
        for (line, (square, e)) in self.line.iter_mut().zip(columns) {
            let (e, mut r2) = (e[q], [0.0; LANES]);
            for k in 0..LANES {
                let rest = fma::<FMA>(-e[k], e[k], square[k]);
                let moved = e[k] + h;
                r2[k] = fma::<FMA>(moved, moved, if rest > 0.0 { rest } else { 0.0 });
            }
            *line = r2;
        }
    }
}

struct Cross<'t, 'a, S: Shape> {
    blocks: &'t mut Blocks<'a, S>,
    at: &'t Star<'t>,
    out: &'t mut Mat,
}

impl<S: Shape> Vectorized for Cross<'_, '_, S> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Star { mean, std, points, arms } = self.at;
        let Blocks { kernel, m, inverse, centre, .. } = self.blocks;
        let (variance, alpha) = (kernel.variance.get(), kernel.alpha());
        for (i, n) in points.clone().enumerate() {
            centre.place::<FMA>(mean.row(n), inverse);
            for (s, arm) in arms.iter().enumerate() {
                centre.arm::<FMA>(arm.axis, arm.xi * std[(n, arm.axis)] * inverse[arm.axis]);
                let line = centre.line.as_flattened_mut();
                for v in line.iter_mut() {
                    *v = variance * S::kappa::<FMA>(*v, alpha).0;
                }
                self.out.row_mut(s * points.len() + i).copy_from_slice(&line[..*m]);
            }
        }
    }
}

struct Adjoint<'t, 'a, S: Shape> {
    blocks: &'t mut Blocks<'a, S>,
    at: &'t Star<'t>,
    bar: &'t Mat,
    grad: StarGrad<'t>,
}

impl<S: Shape> Vectorized for Adjoint<'_, '_, S> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Star { mean, std, points, arms } = self.at;
        let Blocks { kernel, m, inverse, centre, bar, slope, sum, moved, z_bar, l_bar } = self.blocks;
        let (rows, dim, chunks) = (points.len(), centre.dim, centre.line.len());
        let (variance, alpha) = (kernel.variance.get(), kernel.alpha());
        z_bar.fill([0.0; LANES]);
        l_bar.fill(0.0);
        let (mut variance_bar, mut alpha_bar) = (0.0, 0.0);
        for (i, n) in points.clone().enumerate() {
            centre.place::<FMA>(mean.row(n), inverse);
            sum.fill([0.0; LANES]);
            moved.fill([0.0; LANES]);
            for (s, arm) in arms.iter().enumerate() {
                let q = arm.axis;
                let h = arm.xi * std[(n, q)] * inverse[q];
                centre.arm::<FMA>(q, h);
                bar.as_flattened_mut()[..*m].copy_from_slice(self.bar.row(s * rows + i));
                if S::HAS_ALPHA {
                    for (bar, r2) in bar.as_flattened().iter().zip(centre.line.as_flattened()) {
                        alpha_bar += bar * variance * S::kappa_alpha(*r2, alpha);
                    }
                }
                let line = centre.line.as_flattened_mut().iter_mut();
                for (line, slope) in line.zip(slope.as_flattened_mut()) {
                    (*line, *slope) = S::kappa::<FMA>(*line, alpha);
                }
                // Σ K̄κ, Σ g(e + h) and Σ g((e + h)² − e²).
                let mut sums = [[0.0; LANES]; 3];
                for c in 0..chunks {
                    let (e, bar, kappa, slope) = (centre.e[c * dim + q], bar[c], centre.line[c], slope[c]);
                    let (mut all, mut along) = (sum[c], moved[c * dim + q]);
                    for k in 0..LANES {
                        let g = bar[k] * variance * slope[k];
                        all[k] += g;
                        along[k] = fma::<FMA>(g, h, along[k]);
                        sums[0][k] = fma::<FMA>(bar[k], kappa[k], sums[0][k]);
                        sums[1][k] = fma::<FMA>(g, e[k] + h, sums[1][k]);
                        sums[2][k] = fma::<FMA>(g * h, (e[k] + h) + e[k], sums[2][k]);
                    }
                    (sum[c], moved[c * dim + q]) = (all, along);
                }
                let [kappa, reach, stretch] = sums.map(|lanes| lanes.iter().sum::<f64>());
                variance_bar += kappa;
                l_bar[q] -= 2.0 * inverse[q] * stretch;
                if std[(n, q)] > 0.0 {
                    self.grad.var[i * dim + q] += inverse[q] * reach * arm.xi / std[(n, q)];
                }
            }
            for q in 0..dim {
                // Σ (Ge + Σ gh) and Σ Ge².
                let mut sums = [[0.0; LANES]; 2];
                for c in 0..chunks {
                    let (e, all, along) = (centre.e[c * dim + q], sum[c], moved[c * dim + q]);
                    let mut z = z_bar[c * dim + q];
                    for k in 0..LANES {
                        let both = fma::<FMA>(all[k], e[k], along[k]);
                        sums[0][k] += both;
                        sums[1][k] = fma::<FMA>(all[k] * e[k], e[k], sums[1][k]);
                        z[k] -= both;
                    }
                    z_bar[c * dim + q] = z;
                }
                let [shift, stretch] = sums.map(|lanes| lanes.iter().sum::<f64>());
                self.grad.mean[i * dim + q] += 2.0 * inverse[q] * shift;
                l_bar[q] -= 2.0 * inverse[q] * stretch;
            }
        }
        for j in 0..*m {
            for q in 0..dim {
                self.grad.z[(j, q)] += 2.0 * inverse[q] * z_bar[j / LANES * dim + q][j % LANES];
            }
        }
        kernel.add_theta(self.grad.theta, variance_bar, l_bar, alpha_bar);
    }
}
