//! Weighted nodes: E[f(x)] ≈ Σ_s w_s f(μ + √S ∘ ξ_s), the one loop behind every method but the closed forms.
//!
//! ```text
//! forward    x_s = μ + √S ∘ ξ_s     K_s = k(x_s, Z)     Ψ0 = Σ w_s Σ_n k(x_ns, x_ns)
//!            Ψ1 = Σ w_s K_s         Ψ2 = Σ w_s K_sᵀK_s
//! backward   K̄_s = w_s (Ψ̄1 + K_s (Ψ̄2 + Ψ̄2ᵀ))  ──cross_adjoint──▶  x̄_s, Z̄, θ̄
//!            μ̄ += x̄_s               S̄ += x̄_s ∘ ξ_s / (2√S)
//! ```
//!
//! Points and nodes go in tiles of some hundred rows; a tile's K is computed again on the way back, so
//! that memory stays O(NM + M²) for any number of nodes.

use super::{Cost, Expectation, Gaussians, Psi, PsiGrad, check_shapes};
use crate::blocks::part_rows;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, KernelGrad};
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;
use crate::param;
use rayon::prelude::*;

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

/// The limit of nodes unless the caller sets another.
pub const DEFAULT_MAX_NODES: usize = 100_000;

/// Rows of a tile.
const TILE: usize = 128;

/// The part of the work that all tiles share.
struct Plan<'a, R: Rule> {
    rule: &'a R,
    kernel: &'a dyn Kernel,
    q: &'a Gaussians,
    z: &'a Mat,
    weights: Vec<f64>,
    shared: Option<Mat>,
    /// Where given, Ψ2 is whitened by this factor of Kzz.
    whiten: Option<&'a Cholesky>,
}

/// One tile: `rows` points times `count` nodes, node by node.
struct Tile {
    x: Mat,
    xi: Mat,
    weights: Vec<f64>,
    rows: usize,
}

impl<'a, R: Rule> Plan<'a, R> {
    fn new(rule: &'a R, kernel: &'a dyn Kernel, q: &'a Gaussians, z: &'a Mat) -> Result<Self> {
        check_shapes(kernel, q, z)?;
        rule.check(kernel, q.dim())?;
        let per_point = rule.draws(q.dim(), 0).is_some();
        Ok(Plan {
            rule,
            kernel,
            q,
            z,
            weights: rule.weights(q.dim()),
            shared: (!per_point).then(|| rule.nodes(q.dim())),
            whiten: None,
        })
    }

    /// Calls `visit` for every tile of the points `from..to`: the first point of the tile, and the tile.
    fn tiles(&self, from: usize, to: usize, mut visit: impl FnMut(usize, &Tile)) {
        let dim = self.q.dim();
        let mut start = from;
        while start < to {
            let rows = (to - start).min(TILE);
            let batch = (TILE / rows).max(1);
            let mut streams: Vec<Draws<'_>> =
                (start..start + rows).filter_map(|n| self.rule.draws(dim, n)).collect();
            let mut s = 0;
            while s < self.weights.len() {
                let count = batch.min(self.weights.len() - s);
                let mut tile = Tile {
                    x: Mat::zeros(count * rows, dim),
                    xi: Mat::zeros(count * rows, dim),
                    weights: Vec::with_capacity(count * rows),
                    rows,
                };
                for k in 0..count {
                    for b in 0..rows {
                        let at = k * rows + b;
                        match &self.shared {
                            Some(nodes) => tile.xi.row_mut(at).copy_from_slice(nodes.row(s + k)),
                            None => streams[b](tile.xi.row_mut(at)),
                        }
                        let (mean, var) = (self.q.mean.row(start + b), self.q.var.row(start + b));
                        for d in 0..dim {
                            tile.x[(at, d)] = mean[d] + var[d].sqrt() * tile.xi[(at, d)];
                        }
                        tile.weights.push(self.weights[s + k]);
                    }
                }
                visit(start, &tile);
                s += count;
            }
            start += rows;
        }
    }

    /// K of a tile and w ∘ K.
    fn kernel_of(&self, tile: &Tile) -> (Mat, Mat) {
        let mut k = Mat::zeros(tile.x.rows(), self.z.rows());
        self.kernel.cross(&tile.x, self.z, &mut k);
        let mut weighted = k.clone();
        for (i, w) in tile.weights.iter().enumerate() {
            weighted.row_mut(i).iter_mut().for_each(|v| *v *= w);
        }
        (k, weighted)
    }

    /// Adds the lower triangle of Σ w k kᵀ, or of Σ w L⁻¹k (L⁻¹k)ᵀ.
    fn add_square(&self, mut k: Mat, mut weighted: Mat, weights: &[f64], psi2: &mut Mat) {
        if let Some(l) = self.whiten {
            l.solve_rows(&mut k);
            for (i, w) in weights.iter().enumerate() {
                weighted.row_mut(i).iter_mut().zip(k.row(i)).for_each(|(a, b)| *a = w * b);
            }
        }
        linalg::add_atb_lower(&k, &weighted, psi2);
    }

    /// Ψ0 and the lower triangle of Ψ2 of the points `from..to`; adds their rows of Ψ1.
    fn forward(&self, from: usize, to: usize, psi1: &mut [f64]) -> (f64, Mat) {
        let m = self.z.rows();
        let (mut psi0, mut psi2) = (0.0, Mat::zeros(m, m));
        let mut diag = Vec::new();
        self.tiles(from, to, |start, tile| {
            let (k, weighted) = self.kernel_of(tile);
            for i in 0..k.rows() {
                let n = start - from + i % tile.rows;
                let row = &mut psi1[n * m..(n + 1) * m];
                row.iter_mut().zip(weighted.row(i)).for_each(|(a, b)| *a += b);
            }
            self.add_square(k, weighted, &tile.weights, &mut psi2);
            diag.resize(tile.x.rows(), 0.0);
            self.kernel.diag(&tile.x, &mut diag);
            psi0 += diag.iter().zip(&tile.weights).map(|(d, w)| d * w).sum::<f64>();
        });
        (psi0, psi2)
    }

    /// θ̄ and Z̄ of the points `from..to`; adds their rows of μ̄ and S̄.
    fn backward(
        &self,
        from: usize,
        to: usize,
        bar: &Psi,
        doubled: &Mat,
        mean_bar: &mut [f64],
        var_bar: &mut [f64],
    ) -> (Vec<f64>, Mat) {
        let (m, dim) = (self.z.rows(), self.q.dim());
        let mut theta = vec![0.0; param::count(self.kernel)];
        let mut z_bar = Mat::zeros(m, dim);
        self.tiles(from, to, |start, tile| {
            let (_, weighted) = self.kernel_of(tile);
            let mut k_bar = linalg::mul(&weighted, doubled);
            for (i, &w) in tile.weights.iter().enumerate() {
                let psi1_bar = bar.psi1.row(start + i % tile.rows);
                k_bar.row_mut(i).iter_mut().zip(psi1_bar).for_each(|(a, b)| *a += w * b);
            }
            let mut x_bar = Mat::zeros(tile.x.rows(), dim);
            let grad = KernelGrad { theta: &mut theta, x: Some(&mut x_bar), z: Some(&mut z_bar) };
            self.kernel.cross_adjoint(&tile.x, self.z, &k_bar, grad);
            let diag_bar: Vec<f64> = tile.weights.iter().map(|w| w * bar.psi0).collect();
            let grad = KernelGrad { theta: &mut theta, x: Some(&mut x_bar), z: None };
            self.kernel.diag_adjoint(&tile.x, &diag_bar, grad);
            for i in 0..x_bar.rows() {
                let n = start + i % tile.rows;
                let at = (n - from) * dim;
                for d in 0..dim {
                    mean_bar[at + d] += x_bar[(i, d)];
                    let std = self.q.var[(n, d)].sqrt();
                    if std > 0.0 {
                        var_bar[at + d] += x_bar[(i, d)] * tile.xi[(i, d)] / (2.0 * std);
                    }
                }
            }
        });
        (theta, z_bar)
    }
}

impl<R: Rule> Plan<'_, R> {
    fn psi(&self) -> Psi {
        let (n, m) = (self.q.n(), self.z.rows());
        let mut psi = Psi::zeros(n, m);
        if n == 0 || m == 0 {
            return psi;
        }
        let rows = part_rows(n);
        let parts: Vec<(f64, Mat)> = psi
            .psi1
            .as_mut_slice()
            .par_chunks_mut(rows * m)
            .enumerate()
            .map(|(i, psi1)| self.forward(i * rows, (i * rows + rows).min(n), psi1))
            .collect();
        for (psi0, psi2) in &parts {
            psi.psi0 += psi0;
            psi.psi2.add_scaled(1.0, psi2);
        }
        linalg::mirror_lower(&mut psi.psi2);
        psi
    }
}

impl<R: Rule> Expectation for R {
    fn psi(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat) -> Result<Psi> {
        Ok(Plan::new(self, kernel, q, z)?.psi())
    }

    fn psi_whitened(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat, l: &Cholesky) -> Result<Psi> {
        Ok(Plan { whiten: Some(l), ..Plan::new(self, kernel, q, z)? }.psi())
    }

    fn psi_adjoint(
        &self,
        kernel: &dyn Kernel,
        q: &Gaussians,
        z: &Mat,
        bar: &Psi,
        grad: PsiGrad<'_>,
    ) -> Result<()> {
        let plan = Plan::new(self, kernel, q, z)?;
        let (n, m, dim) = (q.n(), z.rows(), q.dim());
        if n == 0 || m == 0 || dim == 0 {
            return Ok(());
        }
        let mut doubled = bar.psi2.t();
        doubled.add_scaled(1.0, &bar.psi2);
        let rows = part_rows(n);
        let parts: Vec<(Vec<f64>, Mat)> = grad
            .mean
            .as_mut_slice()
            .par_chunks_mut(rows * dim)
            .zip(grad.var.as_mut_slice().par_chunks_mut(rows * dim))
            .enumerate()
            .map(|(i, (mean, var))| {
                plan.backward(i * rows, (i * rows + rows).min(n), bar, &doubled, mean, var)
            })
            .collect();
        for (theta, z_bar) in &parts {
            grad.theta.iter_mut().zip(theta).for_each(|(a, b)| *a += b);
            grad.z.add_scaled(1.0, z_bar);
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
