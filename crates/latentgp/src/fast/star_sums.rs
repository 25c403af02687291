//! Ψ-statistics by rules whose nodes move one coordinate each, with kernels that are cheap at [`Star`]s: the sums of
//! [`rule`](crate::expectation::rule), for less.
//!
//! ```text
//! forward    K = k(Z, x), M×SB     Ψ1 = Σ w_s K_sᵀ     Ψ2 = K W Kᵀ
//! backward   K̄ = (Ψ̄1ᵀ + (Ψ̄2 + Ψ̄2ᵀ) K) W  ──pull──▶  μ̄, S̄, Z̄, θ̄
//! ```
//!
//! A tile has B points and all arms, and so few points that its K stays in the cache. Where B is more than there are points, the
//! last is repeated, and K has zeros there.

use super::points::Points;
use super::star::{Arms, LANES, Star, StarBar, StarGrad, StarKernel};
use crate::blocks::{self, Parts, part_rows};
use crate::error::Result;
use crate::expectation::node_sums::{common, doubled};
use crate::expectation::rule::{Rule, weights};
use crate::expectation::{AdjointFn, Psi, PsiGrad, PsiInputs};
use crate::fast::vmath::{Instructions, Vectorized, fma, vectorize};
use crate::kernel::KernelGrad;
use crate::linalg::{self, Whitener};
use crate::mat::Mat;
use crate::param;
use crate::scratch::{self, Buffer};
use smallvec::SmallVec;
use std::ops::Range;

/// A tile has at most about this many numbers of K: in the backward pass K, its slopes and K̄ fit the second-level cache together.
const TILE_NUMBERS: usize = 1 << 14;
/// A tile has at most this many points.
const TILE_POINTS: usize = 64;
/// K is kept for the backward pass if it has at most this many numbers in all. More would leave the cache, and computing them
/// again is as fast as reading them.
const MAX_KEPT: usize = 1 << 18;

/// Inputs and inducing inputs, with the arms of a rule.
pub(crate) struct Stars<'a> {
    kernel: &'a dyn StarKernel,
    of: &'a PsiInputs<'a>,
    /// In several lists where there are more arms than fit a tile.
    arms: SmallVec<[Arms; 1]>,
    /// The weight of every node, where all have the same.
    common: Option<f64>,
    /// Σ w.
    weight: f64,
}

/// K of a tile, and what the kernel keeps of it for the backward pass.
#[derive(Default)]
struct Block {
    k: Mat,
    kept: Buffer<f64>,
}

impl<'a> Stars<'a> {
    /// `None` where a node moves several coordinates, or the kernel is not cheap at stars.
    pub fn new(rule: &impl Rule, of: &'a PsiInputs<'a>) -> Option<Self> {
        let (kernel, dim) = (super::star(of.kernel)?, of.q.dim());
        if rule.has_own_nodes() {
            return None;
        }
        let all = weights(rule, dim);
        let weights = all.as_slice();
        let together = (TILE_NUMBERS / (LANES * of.z.rows().max(1))).max(2 * dim + 1);
        let arms = Arms::of(&rule.nodes(dim), weights, together)?;
        let common = common(weights);
        Some(Stars { kernel, of, arms, common, weight: weights.iter().sum() })
    }

    /// Operations a point, roughly.
    fn cost(&self) -> usize {
        let (m, arms) = (self.of.z.rows(), self.arms.iter().map(|arms| arms.all().len()).sum::<usize>());
        arms.saturating_mul(m * (16 + m / 4))
    }

    /// The most points that a tile of `numbers` numbers of K has.
    fn tile_points(&self, numbers: usize) -> usize {
        let wide = self.arms[0].all().len() * self.of.z.rows();
        (numbers / wide / LANES * LANES).clamp(LANES, TILE_POINTS)
    }

    /// Tiles of at most `numbers` numbers of K, with about as many points each.
    fn tiles(&self, points: Range<usize>, numbers: usize) -> impl Iterator<Item = Range<usize>> {
        let tiles = points.len().div_ceil(self.tile_points(numbers)).max(1);
        let each = points.len().div_ceil(tiles).next_multiple_of(LANES);
        let end = points.end;
        points.step_by(each).map(move |start| start..(start + each).min(end))
    }

    /// K of a tile and some arms.
    fn cross(&self, tile: &Points, arms: &Arms, keep: bool, block: &mut Block) {
        let star = Star { mean: &tile.mean, std: &tile.std, arms };
        scratch::shape(&mut block.k, self.of.z.rows(), star.nodes());
        let kept = if keep { block.k.len() * self.kernel.star_kept() } else { 0 };
        if block.kept.len() < kept {
            block.kept = Buffer::any(kept);
        }
        self.kernel.star_cross(self.of.z, &star, &mut block.kept[..kept], block.k.as_mut_slice());
        clear_padding(tile, arms, &mut block.k);
    }

    /// The lower triangle of Ψ2 of some points, and the block of their last tile; adds their rows of Ψ1.
    fn forward(
        &self,
        points: Range<usize>,
        whiten: Option<&Whitener<'_>>,
        keep: bool,
        psi1: &mut [f64],
    ) -> (Mat, Block) {
        let (m, from) = (self.of.z.rows(), points.start);
        let (mut tile, mut block) = (Points::default(), Block::default());
        let (mut psi2, mut weighted, mut white) = (Mat::zeros(m, m), Mat::default(), Mat::default());
        for points in self.tiles(points, 2 * TILE_NUMBERS) {
            let psi1 = &mut psi1[(points.start - from) * m..(points.end - from) * m];
            tile.load(points, self.of.q, LANES);
            for arms in &self.arms {
                self.cross(&tile, arms, keep, &mut block);
                let mut k = &block.k;
                vectorize(AddPsi1 { arms, k, psi1: &mut *psi1 });
                if let Some(by) = whiten {
                    by.apply(k, &mut white);
                    k = &white;
                }
                match self.common {
                    Some(w) => linalg::add_abt_lower(w, k, k, &mut psi2),
                    None => {
                        weigh(arms, k, &mut weighted);
                        linalg::add_abt_lower(1.0, k, &weighted, &mut psi2);
                    }
                }
            }
        }
        (psi2, block)
    }

    /// θ̄ and Z̄ of some points; adds their rows of μ̄ and S̄. `doubled` is Ψ̄2 + Ψ̄2ᵀ. Points that have a block kept are one tile.
    fn backward(
        &self,
        points: Range<usize>,
        kept: Option<&Block>,
        psi1_bar: &Mat,
        doubled: &Mat,
        [mean, var]: [&mut [f64]; 2],
    ) -> (Buffer<f64>, Mat) {
        let (m, dim, from) = (self.of.z.rows(), self.of.q.dim(), points.start);
        let mut gathered = Buffer::filled(0.0, self.kernel.star_gathered(m));
        let (mut tile, mut block) = (Points::default(), Block::default());
        let (mut k_bar, mut shared) = (Mat::default(), Mat::default());
        for points in self.tiles(points, if kept.is_some() { 2 * TILE_NUMBERS } else { TILE_NUMBERS }) {
            let own = (points.start - from) * dim..(points.end - from) * dim;
            tile.load(points, self.of.q, LANES);
            tile.clear_bars();
            transpose_psi1_bar(psi1_bar, &tile, &mut shared);
            for arms in &self.arms {
                if kept.is_none() {
                    self.cross(&tile, arms, true, &mut block);
                }
                let Block { k, kept } = kept.unwrap_or(&block);
                scratch::shape(&mut k_bar, m, k.cols());
                linalg::set_product(doubled, k, &mut k_bar);
                let Points { mean, std, mean_bar, std_bar, .. } = &mut tile;
                let grad = StarGrad { mean: mean_bar, std: std_bar, gathered: &mut gathered };
                let of = StarBar {
                    z: self.of.z,
                    at: Star { mean, std, arms },
                    kept: &kept[..k.len() * self.kernel.star_kept()],
                    k: k.as_slice(),
                    bar: k_bar.as_slice(),
                    shared_bar: shared.as_slice(),
                };
                self.kernel.star_pull(of, grad);
            }
            tile.add_bars_to(&mut mean[own.clone()], &mut var[own]);
        }
        let mut bars = (Buffer::filled(0.0, param::count(self.kernel)), Mat::zeros(m, dim));
        self.kernel.star_finish(&gathered, &mut bars.0, &mut bars.1);
        bars
    }

    /// Ψ, and the block of each part.
    fn psi_and_blocks(&self, keep: bool) -> (Psi, Parts<Block>) {
        let (n, m) = (self.of.q.n(), self.of.z.rows());
        let mut psi = Psi::zeros(n, m);
        if n == 0 || m == 0 {
            return (psi, Parts::new());
        }
        let whiten = self.of.whiten.map(Whitener::new);
        let parts = blocks::each_part(n, self.cost(), [&mut psi.psi1], |points, [psi1]| {
            let (psi2, block) = self.forward(points, whiten.as_ref(), keep, psi1);
            (psi2, keep.then_some(block))
        });
        let add = |(psi2, block)| {
            psi.psi2.add_scaled(1.0, &psi2);
            block
        };
        let blocks = parts.into_iter().filter_map(add).collect();
        linalg::mirror_lower(&mut psi.psi2);
        // k(x, x) is the same everywhere.
        let mut one = [0.0];
        self.kernel.diag(&Mat::zeros(1, self.of.q.dim()), &mut one);
        psi.psi0 = one[0] * n as f64 * self.weight;
        (psi, blocks)
    }

    /// Ψ.
    pub fn psi(&self) -> Psi {
        self.psi_and_blocks(false).0
    }

    /// Both passes. Blocks are kept where each part is one tile and all of them stay in the cache.
    pub fn psi_and_back<'g>(&self, adjoint: &mut AdjointFn<'_, 'g, Psi>) -> Result<()> {
        let (n, arms) = (self.of.q.n(), self.arms[0].all().len());
        let keep = self.arms.len() == 1
            && n * arms * self.of.z.rows() <= MAX_KEPT
            && n > 0
            && !self.of.z.is_empty()
            && part_rows(n) <= self.tile_points(2 * TILE_NUMBERS);
        let (psi, kept) = self.psi_and_blocks(keep);
        let (bar, grad) = adjoint(psi)?;
        self.backward_all(&bar, grad, &kept);
        Ok(())
    }

    /// Adds the gradient.
    pub fn psi_adjoint(&self, bar: &Psi, grad: PsiGrad<'_>) {
        self.backward_all(bar, grad, &[]);
    }

    /// Adds the gradient, with the block that was kept of each part, if any was.
    fn backward_all(&self, bar: &Psi, grad: PsiGrad<'_>, kept: &[Block]) {
        let n = self.of.q.n();
        if n == 0 || self.of.z.rows() == 0 {
            return;
        }
        let doubled = doubled(&bar.psi2, 1.0);
        let rows = part_rows(n);
        let parts = blocks::each_part(n, 2 * self.cost(), [grad.mean, grad.var], |points, out| {
            let kept = kept.get(points.start / rows);
            self.backward(points, kept, &bar.psi1, &doubled, out)
        });
        for (theta, z_bar) in &parts {
            grad.theta.iter_mut().zip(theta).for_each(|(a, b)| *a += b);
            grad.z.add_scaled(1.0, z_bar);
        }
        let theta = KernelGrad { theta: grad.theta, x: None, z: None };
        let psi0_bar = bar.psi0 * n as f64 * self.weight;
        self.kernel.diag_adjoint(&Mat::zeros(1, self.of.q.dim()), &[psi0_bar], theta);
    }
}

/// Sets K to 0 where a column has no point of its own.
fn clear_padding(tile: &Points, arms: &Arms, k: &mut Mat) {
    let own = tile.points.len() % LANES;
    if own > 0 {
        let last = arms.all().len() * LANES;
        for j in 0..k.rows() {
            let row = k.row_mut(j);
            let from = row.len() - last;
            row[from..].as_chunks_mut::<LANES>().0.iter_mut().for_each(|node| node[own..].fill(0.0));
        }
    }
}

/// Adds Σ w_s K_sᵀ of B points to rows of Ψ1.
struct AddPsi1<'a> {
    arms: &'a Arms,
    k: &'a Mat,
    psi1: &'a mut [f64],
}

impl Vectorized for AddPsi1<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions>(self) {
        let (m, arms) = (self.k.rows(), self.arms.all());
        for j in 0..m {
            let chunks = self.k.row(j).as_chunks::<LANES>().0.chunks_exact(arms.len());
            for (k, rows) in chunks.zip(self.psi1.chunks_mut(LANES * m)) {
                let mut sum = [0.0; LANES];
                for (arm, k) in arms.iter().zip(k) {
                    for i in 0..LANES {
                        sum[i] = fma::<I>(arm.weight, k[i], sum[i]);
                    }
                }
                rows.chunks_exact_mut(m).zip(sum).for_each(|(row, sum)| row[j] += sum);
            }
        }
    }
}

/// out ← K W.
fn weigh(arms: &Arms, k: &Mat, out: &mut Mat) {
    scratch::shape(out, k.rows(), k.cols());
    let nodes =
        out.as_mut_slice().as_chunks_mut::<LANES>().0.iter_mut().zip(k.as_slice().as_chunks::<LANES>().0);
    for ((out, k), arm) in nodes.zip(arms.all().iter().cycle()) {
        out.iter_mut().zip(k).for_each(|(out, k)| *out = arm.weight * k);
    }
}

/// out ← Ψ̄1ᵀ of a tile's points, with 0 where a column has no point of its own.
fn transpose_psi1_bar(psi1_bar: &Mat, tile: &Points, out: &mut Mat) {
    let (m, width) = (psi1_bar.cols(), tile.width());
    scratch::shape(out, m, width);
    let rows = psi1_bar.as_slice()[tile.points.start * m..tile.points.end * m].chunks(LANES * m);
    for (c, rows) in rows.enumerate() {
        for (j, out) in out.as_mut_slice().chunks_exact_mut(width).enumerate() {
            let mut own = [0.0; LANES];
            own.iter_mut().zip(rows.chunks_exact(m)).for_each(|(own, row)| *own = row[j]);
            out[c * LANES..(c + 1) * LANES].copy_from_slice(&own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expectation::{Expectation, GaussHermite, Gaussians, ScaledUnscented, Unscented};
    use crate::kernel::{self, Kernel};
    use crate::linalg::Cholesky;

    /// Sums are taken in another order, and Σ e² − e² loses a digit.
    const TOLERANCE: f64 = 1e-12;
    const KERNELS: [&str; 7] = [
        "rbf(variance=1.3)",
        "matern12",
        "matern32(lengthscale=1.7)",
        "matern52",
        "rational_quadratic(alpha=0.7)",
        "matern32(ard=false) + rbf(lengthscale=0.6)",
        "matern52 + rational_quadratic + matern12(variance=0.2)",
    ];

    fn some(rows: usize, cols: usize, step: f64) -> Mat {
        Mat::from_fn(rows, cols, |i, j| 2.0 * (step * (i * cols + j) as f64 + 0.3).sin())
    }

    /// Points, one of them certain in one coordinate, and inducing inputs.
    fn inputs(n: usize, dim: usize, m: usize) -> (Gaussians, Mat) {
        let mut var = some(n, dim, 1.9).map(|v| 0.1 + 0.05 * v);
        var[(n / 2, 0)] = 0.0;
        (Gaussians::new(some(n, dim, 0.7), var).unwrap(), some(m, dim, 1.3))
    }

    struct Grads {
        theta: Vec<f64>,
        z: Mat,
        mean: Mat,
        var: Mat,
    }

    fn adjoint(rule: &dyn Expectation, kernel: &dyn Kernel, q: &Gaussians, z: &Mat) -> Grads {
        adjoint_by(kernel, q, z, |bar, grad| rule.psi_adjoint(kernel, q, z, bar, grad).unwrap())
    }

    fn adjoint_by(
        kernel: &dyn Kernel,
        q: &Gaussians,
        z: &Mat,
        chain: impl FnOnce(&Psi, PsiGrad<'_>),
    ) -> Grads {
        let (n, dim, m) = (q.n(), q.dim(), z.rows());
        let bar = Psi { psi0: 0.4, psi1: some(n, m, 0.9), psi2: some(m, m, 0.31) };
        let mut grads = Grads {
            theta: vec![0.5; param::count(kernel)],
            z: Mat::filled(m, dim, 0.5),
            mean: Mat::filled(n, dim, 0.5),
            var: Mat::filled(n, dim, 0.5),
        };
        let Grads { theta, z: z_bar, mean, var } = &mut grads;
        chain(&bar, PsiGrad { theta, z: z_bar, mean, var });
        grads
    }

    fn close(what: &str, found: &[f64], expected: &[f64]) {
        let size = expected.iter().fold(1e-3, |size: f64, v| size.max(v.abs()));
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() <= TOLERANCE * size, "{what}: {a} against {b}, of {size}");
        }
    }

    /// Psi and gradients beside those by way of all nodes, which a factor of one leads to.
    fn compare(rule: &impl Rule, expression: &str, (n, dim, m): (usize, usize, usize)) {
        let what = format!("{} {expression} at {n}, {dim}, {m}", Rule::expression(rule));
        let kernel = kernel::parse(expression, dim).unwrap();
        let plain = kernel::parse(&format!("({expression}) * constant"), dim).unwrap();
        let (q, z) = inputs(n, dim, m);
        let of = PsiInputs::new(&*kernel, &q, &z);
        assert!(Stars::new(rule, &of).is_some() && crate::fast::star(&*plain).is_none(), "{what}");
        let mut kzz = Mat::zeros(m, m);
        kernel.gram(&z, &mut kzz);
        (0..m).for_each(|i| kzz[(i, i)] += 0.1);
        let l = Cholesky::new(&kzz, "Kzz").unwrap();
        for (found, expected) in [
            (rule.psi(&*kernel, &q, &z), rule.psi(&*plain, &q, &z)),
            (rule.psi_whitened(&*kernel, &q, &z, &l), rule.psi_whitened(&*plain, &q, &z, &l)),
        ] {
            let (found, expected) = (found.unwrap(), expected.unwrap());
            close(&what, &[found.psi0], &[expected.psi0]);
            close(&what, found.psi1.as_slice(), expected.psi1.as_slice());
            close(&what, found.psi2.as_slice(), expected.psi2.as_slice());
        }
        let expected = adjoint(rule, &*plain, &q, &z);
        let kept = |whiten: Option<&Cholesky>, psi2: Mat| {
            adjoint_by(&*kernel, &q, &z, |bar, grad| {
                let mut grad = Some(grad);
                let mut between = |psi: Psi| {
                    assert_eq!(psi.psi2, psi2, "{what}");
                    Ok((bar.clone(), grad.take().unwrap()))
                };
                rule.psi_and_back(&PsiInputs { whiten, ..of }, &mut between).unwrap();
            })
        };
        let there = kept(None, rule.psi(&*kernel, &q, &z).unwrap().psi2);
        let white = kept(Some(&l), rule.psi_whitened(&*kernel, &q, &z, &l).unwrap().psi2);
        for found in [adjoint(rule, &*kernel, &q, &z), there, white] {
            close(&what, &found.theta, &expected.theta);
            close(&what, found.z.as_slice(), expected.z.as_slice());
            close(&what, found.mean.as_slice(), expected.mean.as_slice());
            close(&what, found.var.as_slice(), expected.var.as_slice());
        }
    }

    #[test]
    fn stars_say_what_all_nodes_say() {
        let centred = ScaledUnscented { alpha: 1.0, kappa: 0.5 };
        for kernel in KERNELS {
            for size in [(1, 1, 1), (37, 3, 5), (151, 2, 9)] {
                compare(&Unscented, kernel, size);
                compare(&centred, kernel, size);
            }
            compare(&GaussHermite::new(31), kernel, (19, 1, 100));
        }
    }

    #[test]
    fn nothing_meets_nothing() {
        let kernel = kernel::parse("matern32", 2).unwrap();
        for (n, m) in [(0, 3), (3, 0)] {
            let q = Gaussians::new(Mat::zeros(n, 2), Mat::filled(n, 2, 0.1)).unwrap();
            let psi = Unscented.psi(&*kernel, &q, &Mat::zeros(m, 2)).unwrap();
            assert_eq!(psi, Psi::zeros(n, m));
        }
    }

    #[test]
    fn a_variance_of_zero_takes_the_other_way() {
        let mut kernel = kernel::Matern32::new(2);
        kernel.variance.set(0.0);
        let (q, z) = inputs(5, 2, 3);
        assert!(Stars::new(&Unscented, &PsiInputs::new(&kernel, &q, &z)).is_none());
        let grads = adjoint(&Unscented, &kernel, &q, &z);
        assert!(grads.theta[0] != 0.5 && grads.theta.iter().all(|v| v.is_finite()));
    }

    #[test]
    fn threads_do_not_change_the_bits() {
        let kernel = kernel::parse("matern32 + rbf", 3).unwrap();
        let (q, z) = inputs(1003, 3, 21);
        let mut kzz = Mat::zeros(21, 21);
        kernel.gram(&z, &mut kzz);
        (0..21).for_each(|i| kzz[(i, i)] += 0.1);
        let l = Cholesky::new(&kzz, "Kzz").unwrap();
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let grads = adjoint(&Unscented, &*kernel, &q, &z);
                let white = Unscented.psi_whitened(&*kernel, &q, &z, &l).unwrap();
                (Unscented.psi(&*kernel, &q, &z).unwrap(), white, grads.theta, grads.z, grads.mean, grads.var)
            })
        };
        assert_eq!(run(1), run(2));
    }
}
