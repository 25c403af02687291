//! Weighted nodes: E[f(x)] ≈ Σ_s w_s f(μ + √S ∘ ξ_s), the one loop behind every method but the closed forms.
//!
//! ```text
//! forward    x_s = μ + √S ∘ ξ_s     K_s = k(x_s, Z)     Ψ0 = Σ w_s Σ_n k(x_ns, x_ns)
//!            Ψ1 = Σ w_s K_s         Ψ2 = Σ w_s K_sᵀK_s
//! backward   K̄_s = w_s (Ψ̄1 + K_s (Ψ̄2 + Ψ̄2ᵀ))  ──cross_adjoint──▶  x̄_s, Z̄, θ̄
//!            μ̄ += x̄_s               S̄ += x̄_s ∘ ξ_s / (2√S)
//! ```
//!
//! Points and nodes go in [`tiles`](super::nodes) of some hundred rows; few are kept for the way back, many
//! are computed again, so that memory beyond some 40 MB stays O(NM + M²) for any number of nodes. Nodes that move one coordinate each have a way of their own
//! with kernels that are cheap there: [`star`](super::star).

use super::nodes::{Bars, Blocks, Nodes, TILE, Tile, Tiles};
use super::star::Stars;
use super::{Back, Cost, Expectation, Gaussians, Psi, PsiGrad, check_shapes};
use crate::blocks::{self, part_rows};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::linalg::{self, Cholesky, Op};
use crate::mat::Mat;
use crate::param;
use std::ops::Range;
use std::sync::Mutex;

/// A stream of nodes for one point: each call writes the next ξ.
pub type Draws<'a> = Box<dyn FnMut(&mut [f64]) + Send + 'a>;

/// Nodes ξ_s and weights w_s for N(0, I).
pub trait Rule: Clone + Send + Sync + 'static {
    /// The rule as an expression.
    fn expression(&self) -> String;

    /// How many nodes in `dim` dimensions; a float, as it may be beyond any integer.
    fn count(&self, dim: usize) -> f64;

    /// w_s, as many as nodes; they sum to 1.
    fn weights(&self, dim: usize) -> Vec<f64>;

    /// ξ_s, one a row, the same for every point.
    fn nodes(&self, dim: usize) -> Mat;

    /// The nodes of point `row` alone, where each point has its own.
    fn draws(&self, _dim: usize, _row: usize) -> Option<Draws<'_>> {
        None
    }

    /// Above so many nodes the rule refuses to run.
    fn max_nodes(&self) -> usize {
        DEFAULT_MAX_NODES
    }

    /// Sets [`max_nodes`](Self::max_nodes), where it can be reached.
    fn set_max_nodes(&mut self, _limit: usize) {}

    /// Errs where there is no such rule in `dim` dimensions.
    fn check_rule(&self, _dim: usize) -> Result<()> {
        Ok(())
    }

    /// New nodes for each step; see [`Expectation::renew`].
    fn renew(&mut self, _step: u64) {}

    /// See [`Expectation::step`].
    fn step(&self) -> u64 {
        0
    }

    /// See [`Expectation::is_stochastic`].
    fn is_stochastic(&self) -> bool {
        false
    }
}

/// So many numbers, 40 MB, are kept for the way back: the kernel's values, and what they are made of.
const MOST_KEPT: f64 = 5e6;

/// The limit of nodes unless the caller sets another.
pub const DEFAULT_MAX_NODES: usize = 100_000;

/// The nodes of all points, their weights, and what they meet.
struct Plan<'a, R: Rule> {
    nodes: Nodes<'a, R>,
    weights: Vec<f64>,
    /// Where given, Ψ2 is whitened by this factor of Kzz.
    whiten: Option<&'a Cholesky>,
}

/// The weight that all nodes have, where they have one.
fn common(weights: &[f64]) -> Option<f64> {
    weights.iter().all(|w| *w == weights[0]).then_some(weights[0])
}

/// Multiplies the rows of each node by its weight.
fn weigh(k: &mut Mat, rows: usize, weights: &[f64]) {
    let node = rows * k.cols();
    for (node, w) in k.as_mut_slice().chunks_exact_mut(node).zip(weights) {
        node.iter_mut().for_each(|v| *v *= w);
    }
}

impl<'a, R: Rule> Plan<'a, R> {
    fn new(
        rule: &'a R,
        kernel: &'a dyn Kernel,
        q: &'a Gaussians,
        z: &'a Mat,
        whiten: Option<&'a Cholesky>,
    ) -> Self {
        let weights = rule.weights(q.dim());
        Plan { nodes: Nodes::new(rule, kernel, q, z, weights.len()), weights, whiten }
    }

    /// Operations a point, roughly.
    fn cost(&self) -> usize {
        let m = self.nodes.z.rows();
        self.weights.len().saturating_mul(m * (16 + m / 4))
    }

    /// Whether tiles are kept for the way back.
    fn keeps(&self) -> bool {
        self.whiten.is_none() && self.nodes.kept() <= MOST_KEPT
    }

    /// Ψ0, the lower triangle of Ψ2, and the tiles of some points; adds their rows of Ψ1.
    fn forward(&self, points: Range<usize>, psi1: &mut [f64], keep: bool) -> (f64, Mat, Tiles<'a>) {
        let (m, from) = (self.nodes.z.rows(), points.start);
        let (mut psi0, mut psi2) = (0.0, Mat::zeros(m, m));
        let tiles = self.nodes.each_tile(points, keep, |tile, _| {
            let (rows, weights) = (tile.points.len(), &self.weights[tile.nodes.clone()]);
            psi0 += self.nodes.diag(tile, weights);
            for (k, w) in tile.k.as_slice().chunks_exact(rows * m).zip(weights) {
                let psi1 = &mut psi1[(tile.points.start - from) * m..(tile.points.end - from) * m];
                psi1.iter_mut().zip(k).for_each(|(a, b)| *a += w * b);
            }
            if let Some(l) = self.whiten {
                l.solve_rows(&mut tile.k);
            }
            match common(weights) {
                Some(w) => linalg::add_ata(w, &tile.k, &mut psi2),
                None => {
                    let mut weighted = tile.k.clone();
                    weigh(&mut weighted, rows, weights);
                    linalg::add_atb_lower(&tile.k, &weighted, &mut psi2);
                }
            }
        });
        (psi0, psi2, tiles)
    }

    /// Ψ, and the tiles of each part where they are kept.
    fn psi(&self, keep: bool) -> (Psi, Vec<Mutex<Option<Tiles<'a>>>>) {
        let (n, m) = (self.nodes.q.n(), self.nodes.z.rows());
        let (mut psi, mut kept) = (Psi::zeros(n, m), Vec::new());
        if n == 0 || m == 0 {
            return (psi, kept);
        }
        let parts = blocks::each_part(n, self.cost(), [&mut psi.psi1], |points, [psi1]| {
            self.forward(points, psi1, keep)
        });
        for (psi0, psi2, tiles) in parts {
            psi.psi0 += psi0;
            psi.psi2.add_scaled(1.0, &psi2);
            kept.push(Mutex::new(keep.then_some(tiles)));
        }
        linalg::mirror_lower(&mut psi.psi2);
        (psi, kept)
    }

    /// θ̄ and Z̄ of some points; adds their rows of μ̄ and S̄. `doubled` is Ψ̄2 + Ψ̄2ᵀ.
    fn backward(
        &self,
        points: Range<usize>,
        kept: Option<Tiles<'a>>,
        bar: &Psi,
        doubled: &Mat,
        mean: &mut [f64],
        var: &mut [f64],
    ) -> (Vec<f64>, Mat) {
        let (m, dim, from) = (self.nodes.z.rows(), self.nodes.q.dim(), points.start);
        let mut theta = vec![0.0; param::count(self.nodes.kernel)];
        let mut z_bar = Mat::zeros(m, dim);
        let mut k_bar = Mat::default();
        let mut pull = |tile: &mut Tile, blocks: &mut Blocks<'a>| {
            let (rows, weights) = (tile.points.len(), &self.weights[tile.nodes.clone()]);
            k_bar.resize(tile.k.rows(), m);
            let psi1_bar = &bar.psi1.as_slice()[tile.points.start * m..tile.points.end * m];
            for (k_bar, w) in k_bar.as_mut_slice().chunks_exact_mut(rows * m).zip(weights) {
                k_bar.iter_mut().zip(psi1_bar).for_each(|(a, b)| *a = w * b);
            }
            let alpha = common(weights).unwrap_or_else(|| {
                weigh(&mut tile.k, rows, weights);
                1.0
            });
            linalg::gemm(alpha, &tile.k, Op::N, doubled, Op::N, &mut k_bar);
            let own = (tile.points.start - from) * dim..(tile.points.end - from) * dim;
            let (mean, var) = (&mut mean[own.clone()], &mut var[own]);
            let mut bars = Bars { theta: &mut theta, z: &mut z_bar, mean, var };
            self.nodes.pull(tile, blocks, &k_bar, &mut bars);
            self.nodes.pull_diag(tile, weights, bar.psi0, &mut bars);
        };
        let mut blocks = match kept {
            Some(Tiles { mut tiles, mut blocks }) => {
                tiles.iter_mut().for_each(|tile| pull(tile, &mut blocks));
                blocks
            }
            None => self.nodes.each_tile(points, false, pull).blocks,
        };
        blocks.finish(&mut theta, &mut z_bar);
        (theta, z_bar)
    }

    /// Adds the gradient, from what each part kept.
    fn psi_adjoint(&self, kept: &[Mutex<Option<Tiles<'a>>>], bar: &Psi, grad: PsiGrad<'_>) {
        let n = self.nodes.q.n();
        if n == 0 || self.nodes.z.rows() == 0 || self.nodes.q.dim() == 0 {
            return;
        }
        let mut doubled = bar.psi2.t();
        doubled.add_scaled(1.0, &bar.psi2);
        let rows = part_rows(n);
        let parts = blocks::each_part(n, 2 * self.cost(), [grad.mean, grad.var], |points, [mean, var]| {
            let kept = kept.get(points.start / rows).and_then(|k| k.lock().ok()?.take());
            self.backward(points, kept, bar, &doubled, mean, var)
        });
        for (theta, z_bar) in &parts {
            grad.theta.iter_mut().zip(theta).for_each(|(a, b)| *a += b);
            grad.z.add_scaled(1.0, z_bar);
        }
    }
}

fn check_all(rule: &impl Rule, kernel: &dyn Kernel, q: &Gaussians, z: &Mat) -> Result<()> {
    check_shapes(kernel, q, z)?;
    rule.check(kernel, q.dim())
}

/// Ψ, by the cheaper way where it is open.
fn psi(
    rule: &impl Rule,
    kernel: &dyn Kernel,
    q: &Gaussians,
    z: &Mat,
    whiten: Option<&Cholesky>,
) -> Result<Psi> {
    check_all(rule, kernel, q, z)?;
    Ok(match Stars::new(rule, kernel, q, z) {
        Some(stars) => stars.psi(whiten),
        None => Plan::new(rule, kernel, q, z, whiten).psi(false).0,
    })
}

impl<R: Rule> Expectation for R {
    fn psi(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat) -> Result<Psi> {
        psi(self, kernel, q, z, None)
    }

    fn psi_whitened(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat, l: &Cholesky) -> Result<Psi> {
        psi(self, kernel, q, z, Some(l))
    }

    fn psi_and_back<'a>(
        &'a self,
        kernel: &'a dyn Kernel,
        q: &'a Gaussians,
        z: &'a Mat,
    ) -> Result<(Psi, Back<'a>)> {
        check_all(self, kernel, q, z)?;
        if let Some(stars) = Stars::new(self, kernel, q, z) {
            return Ok(stars.psi_and_back());
        }
        let plan = Plan::new(self, kernel, q, z, None);
        let (psi, kept) = plan.psi(plan.keeps());
        let back = move |bar: &Psi, grad: PsiGrad<'_>| {
            plan.psi_adjoint(&kept, bar, grad);
            Ok(())
        };
        Ok((psi, Box::new(back)))
    }

    fn psi_adjoint(
        &self,
        kernel: &dyn Kernel,
        q: &Gaussians,
        z: &Mat,
        bar: &Psi,
        grad: PsiGrad<'_>,
    ) -> Result<()> {
        check_all(self, kernel, q, z)?;
        match Stars::new(self, kernel, q, z) {
            Some(stars) => stars.psi_adjoint(bar, grad),
            None => Plan::new(self, kernel, q, z, None).psi_adjoint(&[], bar, grad),
        }
        Ok(())
    }

    fn expression(&self) -> String {
        Rule::expression(self)
    }

    fn cost(&self, n: usize, q: usize, m: usize) -> Cost {
        let nodes = self.count(q);
        let shared = if self.draws(q, 0).is_some() { 0.0 } else { nodes * q as f64 };
        let parts = n.div_ceil(part_rows(n.max(1))) as f64;
        let tile = (TILE * (3 * m + 3 * q)) as f64;
        let numbers = shared + (n * m + m * m) as f64 + parts * ((m * m + m * q) as f64 + tile);
        Cost { nodes, evaluations: nodes * n as f64 * m as f64, bytes: 8.0 * numbers }
    }

    fn check(&self, _: &dyn Kernel, dim: usize) -> Result<()> {
        self.check_rule(dim)?;
        let (nodes, limit) = (self.count(dim), self.max_nodes());
        if nodes <= limit as f64 {
            return Ok(());
        }
        let rules = [("cubature5", 2 * dim * dim + 1), ("unscented", 2 * dim), ("minimal_skew", dim + 2)];
        let fits: Vec<String> = rules
            .iter()
            .filter(|(_, count)| *count <= limit)
            .map(|(name, count)| format!("`{name}` ({count} nodes)"))
            .collect();
        let cheaper = if fits.is_empty() { "fewer dimensions".to_string() } else { fits.join(" or ") };
        let megabytes = (nodes * dim as f64 * 8e-6).ceil();
        Err(Error::TooManyNodes { rule: Rule::expression(self), nodes, dim, megabytes, limit, cheaper })
    }

    fn nonnegative(&self, dim: usize) -> bool {
        self.weights(dim).iter().all(|w| *w >= 0.0)
    }

    fn set_max_nodes(&mut self, limit: usize) {
        Rule::set_max_nodes(self, limit);
    }

    fn max_nodes(&self) -> Option<usize> {
        Some(Rule::max_nodes(self))
    }

    fn step(&self) -> u64 {
        Rule::step(self)
    }

    fn renew(&mut self, step: u64) {
        Rule::renew(self, step);
    }

    fn is_stochastic(&self) -> bool {
        Rule::is_stochastic(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cubature5, GaussHermite, MonteCarlo, gradient};
    use super::*;
    use crate::kernel;

    /// Ψ with what was kept of it beside Ψ and its adjoint, each by itself.
    fn compare<R: Rule>(rule: &R, kernel: &dyn Kernel, n: usize, keeps: bool) {
        let at = |i: usize, j: usize| ((3 * i + 5 * j) as f64 * 0.37).sin();
        let q = Gaussians {
            mean: Mat::from_fn(n, 2, at),
            var: Mat::from_fn(n, 2, |i, j| 0.1 + at(j, i).powi(2)),
        };
        let z = Mat::from_fn(5, 2, |i, j| at(i + 11, j + 2));
        assert_eq!(Plan::new(rule, kernel, &q, &z, None).keeps(), keeps);
        let (psi, back) = rule.psi_and_back(kernel, &q, &z).unwrap();
        assert_eq!(psi, Expectation::psi(rule, kernel, &q, &z).unwrap());
        let kept = gradient(kernel, &q, &z, |grad| back(&psi, grad).unwrap());
        let again = gradient(kernel, &q, &z, |grad| rule.psi_adjoint(kernel, &q, &z, &psi, grad).unwrap());
        assert_eq!(kept, again);
    }

    #[test]
    fn tiles_that_were_kept_give_the_gradient_of_those_computed_again() {
        let kernels =
            ["rational_quadratic", "mlp(hidden=[4, 3], base=rbf)", "periodic(dims=[0]) * linear + matern32"];
        for kernel in kernels.map(|k| kernel::parse(k, 2).unwrap()) {
            compare(&MonteCarlo::new(7, 1), &*kernel, 150, true);
            compare(&GaussHermite::new(3), &*kernel, 150, true);
            compare(&Cubature5::default(), &*kernel, 150, true);
            compare(&MonteCarlo::new(7, 1), &*kernel, MOST_KEPT as usize / 63 + 1, false);
        }
    }
}
