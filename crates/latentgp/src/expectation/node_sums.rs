//! The sums of a rule over its nodes, and their adjoint; see [`rule`](super::rule) for the formulas.
//!
//! The sums go over [`tiles`](super::nodes) of some hundred columns. What is expensive to compute is kept for the backward pass
//! where that takes at most 40 MB, and computed again otherwise: apart from these, memory is O(NM + M²) for any number of
//! nodes.

use super::nodes::{Drawn, Nodes, Tile};
use super::rule::{Rule, weights};
use super::{Psi, PsiGrad, PsiInputs};
use crate::blocks::{self, Parts, part_rows};
use crate::fast;
use crate::fast::points::Points;
use crate::fast::vmath::even_groups;
use crate::linalg::{self, Op, Whitener};
use crate::mat::Mat;
use crate::param;
use crate::scratch::{self, Buffer};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// At most this many numbers, 40 MB, are kept for the backward pass: the kernel's values, and what its adjoint needs.
const MAX_KEPT: f64 = 5e6;
/// At most this many, 2 MB, of kernels that are cheap to compute again.
const MAX_KEPT_CHEAP: f64 = 2.5e5;

/// A tile has at most this many points.
const MAX_POINTS: usize = 208;

/// The nodes of all points and their weights.
pub(super) struct NodeSums<'a, R: Rule> {
    nodes: Nodes<'a, R>,
    weights: Mat,
    /// The weight of every node, where all have the same.
    common: Option<f64>,
    /// L⁻¹, where Ψ2 is to be whitened.
    whiten: Option<Whitener<'a>>,
}

/// The weight of every node, where all have the same.
pub(crate) fn common(weights: &[f64]) -> Option<f64> {
    weights.first().copied().filter(|first| weights.iter().all(|w| w == first))
}

/// by · (Ψ̄2 + Ψ̄2ᵀ).
pub(crate) fn doubled(psi2_bar: &Mat, by: f64) -> Mat {
    let mut sum = psi2_bar.t();
    sum.add_scaled(1.0, psi2_bar);
    sum.scale(by);
    sum
}

/// Multiplies the columns of K of each node by its weight.
fn weigh(k: &mut Mat, points: usize, weights: &[f64]) {
    for j in 0..k.rows() {
        for (node, w) in k.row_mut(j).chunks_exact_mut(points).zip(weights) {
            node.iter_mut().for_each(|v| *v *= w);
        }
    }
}

/// What the forward pass keeps of its tiles.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Keep {
    /// Nothing at all.
    Nothing,
    /// ξ, where it was drawn.
    Nodes,
    /// K, and what its adjoint needs.
    All,
}

/// Tiles that are kept, in a list whose memory is used again.
#[derive(Default)]
pub(super) struct Tiles(Vec<Tile>);

/// Empty lists.
static LISTS: Mutex<Vec<Vec<Tile>>> = Mutex::new(Vec::new());
/// At most this many empty lists are kept.
const MAX_LISTS: usize = 64;

impl Tiles {
    fn take() -> Self {
        Tiles(LISTS.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default())
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        self.0.clear();
        if self.0.capacity() > 0 {
            let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
            if lists.len() < MAX_LISTS {
                lists.push(std::mem::take(&mut self.0));
            }
        }
    }
}

/// Working memory for one tile of some points, and what all tiles of them share: Ψ1ᵀ or its gradient.
#[derive(Default)]
struct Work {
    points: Points,
    tile: Tile,
    shared: Mat,
}

impl<R: Rule> NodeSums<'_, R> {
    /// Calls `work` with the sums.
    pub fn make(rule: &R, of: &PsiInputs<'_>, work: &mut dyn FnMut(&NodeSums<'_, R>)) {
        fast::with_blocks(of.kernel, of.z, &mut |blocks| {
            let weights = weights(rule, of.q.dim());
            let common = common(weights.as_slice());
            work(&NodeSums {
                nodes: Nodes::new(rule, of, blocks, weights.len()),
                weights,
                common,
                whiten: of.whiten.map(Whitener::new),
            });
        });
    }

    /// Operations a point, roughly.
    fn cost(&self) -> usize {
        let m = self.nodes.of.z.rows();
        self.weights.len().saturating_mul(m * (16 + m / 4))
    }

    /// What is worth keeping for the backward pass.
    pub fn keeps(&self) -> Keep {
        let columns = self.nodes.count as f64 * self.nodes.of.q.n() as f64;
        let (m, dim) = (self.nodes.of.z.rows(), self.nodes.of.q.dim());
        let blocks = self.nodes.blocks;
        let max = if blocks.is_cheap() { MAX_KEPT_CHEAP } else { MAX_KEPT };
        if columns * (blocks.kept() + m + 2 * dim) as f64 <= max {
            Keep::All
        } else if self.nodes.are_drawn() && columns * dim as f64 <= MAX_KEPT {
            Keep::Nodes
        } else {
            Keep::Nothing
        }
    }

    /// Ψ0, the lower triangle of Ψ2 and the kept tiles of some points; adds their rows of Ψ1.
    fn forward(&self, points: Range<usize>, psi1: &mut [f64], keep: Keep) -> (f64, Mat, Tiles) {
        let (m, from) = (self.nodes.of.z.rows(), points.start);
        let (mut psi0, mut psi2, mut work) = (0.0, Mat::zeros(m, m), Work::default());
        let (mut white, mut weighted) = (Mat::default(), Mat::default());
        let mut kept = if keep == Keep::Nothing { Tiles::default() } else { Tiles::take() };
        for points in even_groups(points, MAX_POINTS) {
            let (rows, mut drawn) = (points.len(), Drawn::default());
            let psi1 = &mut psi1[(points.start - from) * m..(points.end - from) * m];
            scratch::shape(&mut work.shared, m, rows);
            work.shared.fill(0.0);
            work.points.load(points, self.nodes.of.q, 1);
            for nodes in self.nodes.batches(rows) {
                let Work { points, tile, shared } = &mut work;
                self.nodes.draw(points, nodes, &mut drawn, tile);
                self.nodes.cross(points, tile);
                let weights = &self.weights.as_slice()[tile.nodes.clone()];
                psi0 += self.nodes.diag(points, tile, weights);
                for j in 0..m {
                    let sums = shared.row_mut(j);
                    for (k, w) in tile.k.row(j).chunks_exact(rows).zip(weights) {
                        sums.iter_mut().zip(k).for_each(|(sum, k)| *sum += w * k);
                    }
                }
                let k = match &self.whiten {
                    Some(by) => {
                        by.apply(&tile.k, &mut white);
                        &white
                    }
                    None => &tile.k,
                };
                match self.common {
                    Some(w) => linalg::add_abt_lower(w, k, k, &mut psi2),
                    None => {
                        scratch::copy(k, &mut weighted);
                        weigh(&mut weighted, rows, weights);
                        linalg::add_abt_lower(1.0, k, &weighted, &mut psi2);
                    }
                }
                match keep {
                    Keep::Nothing => {}
                    Keep::Nodes => kept.0.push(tile.take_nodes()),
                    Keep::All => kept.0.push(std::mem::take(tile)),
                }
            }
            psi1.chunks_exact_mut(m).enumerate().for_each(|(i, row)| {
                row.iter_mut().enumerate().for_each(|(j, out)| *out += work.shared[(j, i)]);
            });
        }
        (psi0, psi2, kept)
    }

    /// Ψ, and the kept tiles of each part.
    pub fn psi(&self, keep: Keep) -> (Psi, Parts<Tiles>) {
        let (n, m) = (self.nodes.of.q.n(), self.nodes.of.z.rows());
        let mut psi = Psi::zeros(n, m);
        if n == 0 || m == 0 {
            return (psi, Parts::new());
        }
        let parts = blocks::each_part(n, self.cost(), [&mut psi.psi1], |points, [psi1]| {
            self.forward(points, psi1, keep)
        });
        let add = |(psi0, psi2, kept)| {
            psi.psi0 += psi0;
            psi.psi2.add_scaled(1.0, &psi2);
            kept
        };
        let kept = parts.into_iter().map(add).collect();
        linalg::mirror_lower(&mut psi.psi2);
        (psi, kept)
    }

    /// θ̄ and Z̄ of some points; adds their rows of μ̄ and S̄. `doubled` is Ψ̄2 + Ψ̄2ᵀ, times the weight of every node where all have the same.
    fn backward(
        &self,
        points: Range<usize>,
        kept: &[Tile],
        bar: &Psi,
        doubled: &Mat,
        [mean, var]: [&mut [f64]; 2],
    ) -> (Buffer<f64>, Mat) {
        let (m, dim, from) = (self.nodes.of.z.rows(), self.nodes.of.q.dim(), points.start);
        let mut theta = Buffer::filled(0.0, param::count(self.nodes.of.kernel));
        let mut z_bar = Mat::zeros(m, dim);
        let weight = self.common.unwrap_or(1.0);
        let (mut work, mut kept) = (Work::default(), kept.iter());
        let (mut k_bar, mut x_bar) = (Mat::default(), Mat::default());
        let mut gathered = self.nodes.blocks.gather();
        for points in even_groups(points, MAX_POINTS) {
            let (rows, own) = (points.len(), (points.start - from) * dim..(points.end - from) * dim);
            scratch::shape(&mut work.shared, m, rows);
            for (i, n) in points.clone().enumerate() {
                bar.psi1.row(n).iter().enumerate().for_each(|(j, bar)| work.shared[(j, i)] = weight * bar);
            }
            let mut drawn = Drawn::default();
            work.points.load(points, self.nodes.of.q, 1);
            work.points.clear_bars();
            for nodes in self.nodes.batches(rows) {
                let Work { points, tile, shared } = &mut work;
                let tile = match kept.next() {
                    Some(kept) if kept.has_values() => kept,
                    some => {
                        match some {
                            Some(kept) => tile.copy_nodes(kept),
                            None => self.nodes.draw(points, nodes, &mut drawn, tile),
                        }
                        self.nodes.cross(points, tile);
                        tile
                    }
                };
                let weights = &self.weights.as_slice()[tile.nodes.clone()];
                scratch::shape(&mut k_bar, m, tile.k.cols());
                for j in 0..m {
                    let row = k_bar.row_mut(j);
                    row[rows * weights.len()..].fill(0.0);
                    row.chunks_exact_mut(rows)
                        .take(weights.len())
                        .for_each(|node| node.copy_from_slice(shared.row(j)));
                }
                linalg::gemm(1.0, doubled, Op::N, &tile.k, Op::N, &mut k_bar);
                if self.common.is_none() {
                    weigh(&mut k_bar, rows, weights);
                }
                self.nodes.pull(points, tile, &k_bar, &mut x_bar, &mut gathered);
                self.nodes.pull_diag(points, tile, weights, bar.psi0, &mut theta);
            }
            work.points.add_bars_to(&mut mean[own.clone()], &mut var[own]);
        }
        self.nodes.blocks.finish(&gathered, &mut theta, &mut z_bar);
        (theta, z_bar)
    }

    /// Adds the gradient; `kept` has the tiles of each part, or nothing.
    pub fn psi_adjoint(&self, kept: &[Tiles], bar: &Psi, grad: PsiGrad<'_>) {
        let n = self.nodes.of.q.n();
        if n == 0 || self.nodes.of.z.rows() == 0 || self.nodes.of.q.dim() == 0 {
            return;
        }
        let doubled = doubled(&bar.psi2, self.common.unwrap_or(1.0));
        let rows = part_rows(n);
        let parts = blocks::each_part(n, 2 * self.cost(), [grad.mean, grad.var], |points, out| {
            let kept = kept.get(points.start / rows).map_or(&[][..], |tiles| &tiles.0);
            self.backward(points, kept, bar, &doubled, out)
        });
        for (theta, z_bar) in &parts {
            grad.theta.iter_mut().zip(theta).for_each(|(a, b)| *a += b);
            grad.z.add_scaled(1.0, z_bar);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Cubature5, Expectation, GaussHermite, Gaussians, MonteCarlo, forward_and_backward, gradient,
    };
    use super::*;
    use crate::kernel::{self, Kernel, Matern32};
    use crate::linalg::Cholesky;

    /// Ψ with what was kept of it beside Ψ and its adjoint, each by itself.
    fn compare<R: Rule>(rule: &R, kernel: &dyn Kernel, n: usize, keeps: Keep) {
        let at = |i: usize, j: usize| ((3 * i + 5 * j) as f64 * 0.37).sin();
        let q = Gaussians {
            mean: Mat::from_fn(n, 2, at),
            var: Mat::from_fn(n, 2, |i, j| 0.1 + at(j, i).powi(2)),
        };
        let z = Mat::from_fn(5, 2, |i, j| at(i + 11, j + 2));
        let of = PsiInputs::new(kernel, &q, &z);
        NodeSums::make(rule, &of, &mut |sums| assert!(sums.keeps() == keeps));
        let mut kzz = Mat::eye(5);
        kernel.gram(&z, &mut kzz);
        (0..5).for_each(|i| kzz[(i, i)] += 0.1);
        let l = Cholesky::new(&kzz, "Kzz").unwrap();
        let plain = Expectation::psi(rule, kernel, &q, &z).unwrap();
        let white = rule.psi_whitened(kernel, &q, &z, &l).unwrap();
        let whole = l.whiten(&plain.psi2);
        assert!(
            white
                .psi2
                .as_slice()
                .iter()
                .zip(whole.as_slice())
                .all(|(a, b)| (a - b).abs() < 1e-10 * b.abs().max(1.0))
        );
        let again = gradient(kernel, &q, &z, |grad| rule.psi_adjoint(kernel, &q, &z, &plain, grad).unwrap());
        for (whiten, expected) in [(None, &plain), (Some(&l), &white)] {
            let of = PsiInputs { whiten, ..of };
            let (psi, back) = forward_and_backward(&of, &plain, |adjoint| rule.psi_and_back(&of, adjoint));
            assert_eq!((&psi, &back), (expected, &again));
        }
    }

    #[test]
    fn a_rule_is_its_sum_node_by_node() {
        let kernel = kernel::parse("linear(variance=0.7) + matern32(lengthscale=1.3)", 2).unwrap();
        let at = |i: usize, j: usize| ((3 * i + 5 * j) as f64 * 0.37).sin();
        let (n, m, rule) = (5, 3, MonteCarlo::new(7, 1));
        let q = Gaussians {
            mean: Mat::from_fn(n, 2, at),
            var: Mat::from_fn(n, 2, |i, j| 0.1 + at(j, i).powi(2)),
        };
        let z = Mat::from_fn(m, 2, |i, j| at(i + 11, j + 2));
        let mut slow = Psi::zeros(n, m);
        for i in 0..n {
            for (s, w) in rule.weights(2).into_iter().enumerate() {
                let mut x = [0.0; 2];
                rule.draw(2, i, s, &mut x);
                (0..2).for_each(|d| x[d] = q.mean[(i, d)] + q.var[(i, d)].sqrt() * x[d]);
                let k: Vec<f64> = (0..m).map(|j| kernel.eval(&x, z.row(j))).collect();
                slow.psi0 += w * kernel.eval(&x, &x);
                for j in 0..m {
                    slow.psi1[(i, j)] += w * k[j];
                    (0..m).for_each(|l| slow.psi2[(j, l)] += w * k[j] * k[l]);
                }
            }
        }
        let fast = Expectation::psi(&rule, &*kernel, &q, &z).unwrap();
        let near =
            |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12 * (1.0 + b.abs()));
        assert!(near(&[fast.psi0], &[slow.psi0]), "{} {}", fast.psi0, slow.psi0);
        assert!(near(fast.psi1.as_slice(), slow.psi1.as_slice()));
        assert!(near(fast.psi2.as_slice(), slow.psi2.as_slice()));
    }

    #[test]
    fn tiles_that_were_kept_give_the_gradient_of_those_computed_again() {
        const MANY: usize = MAX_KEPT as usize / 63 + 1;
        let kernels =
            ["rational_quadratic", "mlp(hidden=[4, 3], base=rbf)", "periodic(dims=[0]) * linear + matern32"];
        for kernel in kernels.map(|k| kernel::parse(k, 2).unwrap()) {
            compare(&MonteCarlo::new(7, 1), &*kernel, 150, Keep::All);
            compare(&GaussHermite::new(3), &*kernel, 150, Keep::All);
            compare(&Cubature5, &*kernel, 150, Keep::All);
            compare(&MonteCarlo::new(7, 1), &*kernel, MANY, Keep::Nodes);
        }
        compare(&MonteCarlo::new(30, 1), &Matern32::new(2), 150, Keep::All);
        compare(&MonteCarlo::new(300, 1), &Matern32::new(2), 150, Keep::Nodes);
        compare(&GaussHermite::new(12), &Matern32::new(2), 150, Keep::Nothing);
    }
}
