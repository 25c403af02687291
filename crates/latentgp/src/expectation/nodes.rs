//! Tiles of nodes: some points times some nodes, where the kernel is evaluated as one block.
//!
//! Place s·R + i of a tile is node s at point i of its R points, x = μ + √S ∘ ξ.

use super::Gaussians;
use super::rule::{Draws, Rule};
use crate::kernel::{Kernel, KernelGrad};
use crate::mat::Mat;
use std::ops::Range;

/// Rows of a tile, about.
pub(super) const TILE: usize = 256;

/// Where the nodes are.
enum Layout {
    /// The same for all points.
    Shared(Mat),
    /// Each point has its own.
    Own,
}

/// The nodes of all points.
pub(super) struct Nodes<'a, R: Rule> {
    rule: &'a R,
    pub kernel: &'a dyn Kernel,
    pub q: &'a Gaussians,
    pub z: &'a Mat,
    /// √S.
    std: Mat,
    layout: Layout,
    count: usize,
}

/// Some points and some nodes; x and ξ of each place.
pub(super) struct Tile {
    pub points: Range<usize>,
    pub nodes: Range<usize>,
    x: Mat,
    xi: Mat,
}

/// Where gradients of a tile are added; `mean` and `var` have the rows of its points.
pub(super) struct Bars<'g> {
    pub theta: &'g mut [f64],
    pub z: &'g mut Mat,
    pub mean: &'g mut [f64],
    pub var: &'g mut [f64],
}

impl<'a, R: Rule> Nodes<'a, R> {
    pub fn new(rule: &'a R, kernel: &'a dyn Kernel, q: &'a Gaussians, z: &'a Mat, count: usize) -> Self {
        let layout = match rule.draws(q.dim(), 0) {
            Some(_) => Layout::Own,
            None => Layout::Shared(rule.nodes(q.dim())),
        };
        Nodes { rule, kernel, q, z, std: q.var.map(f64::sqrt), layout, count }
    }

    /// Calls `visit` for every tile of some points.
    pub fn each_tile(&self, points: Range<usize>, mut visit: impl FnMut(&mut Tile)) {
        let dim = self.q.dim();
        let together = TILE / 2;
        let mut tile = Tile { points: 0..0, nodes: 0..0, x: Mat::default(), xi: Mat::default() };
        for start in points.clone().step_by(together) {
            tile.points = start..(start + together).min(points.end);
            let rows = tile.points.len();
            let batch = (TILE / 2 / rows).max(1);
            let mut streams: Vec<Draws<'_>> =
                tile.points.clone().filter_map(|n| self.rule.draws(dim, n)).collect();
            for s in (0..self.count).step_by(batch) {
                tile.nodes = s..(s + batch).min(self.count);
                tile.x.resize(tile.nodes.len() * rows, dim);
                tile.xi.resize(tile.nodes.len() * rows, dim);
                self.write(&mut tile, &mut streams);
                visit(&mut tile);
            }
        }
    }

    /// x and ξ of every place.
    fn write(&self, tile: &mut Tile, streams: &mut [Draws<'_>]) {
        let rows = tile.points.len();
        for (k, s) in tile.nodes.clone().enumerate() {
            for (i, n) in tile.points.clone().enumerate() {
                let at = k * rows + i;
                match &self.layout {
                    Layout::Shared(nodes) => tile.xi.row_mut(at).copy_from_slice(nodes.row(s)),
                    _ => streams[i](tile.xi.row_mut(at)),
                }
                let (mean, std, xi) = (self.q.mean.row(n), self.std.row(n), tile.xi.row(at));
                let moved = mean.iter().zip(std).zip(xi).map(|((mean, std), xi)| mean + std * xi);
                tile.x.row_mut(at).iter_mut().zip(moved).for_each(|(x, moved)| *x = moved);
            }
        }
    }

    /// K of a tile.
    pub fn cross(&self, tile: &mut Tile, k: &mut Mat) {
        k.resize(tile.nodes.len() * tile.points.len(), self.z.rows());
        self.kernel.cross(&tile.x, self.z, k);
    }

    /// Σ w k(x, x).
    pub fn diag(&self, tile: &Tile, weights: &[f64]) -> f64 {
        let rows = tile.points.len();
        let mut diag = vec![0.0; tile.x.rows()];
        self.kernel.diag(&tile.x, &mut diag);
        diag.chunks_exact(rows).zip(weights).map(|(d, w)| w * d.iter().sum::<f64>()).sum()
    }

    /// Adds the gradient of Σ K̄ ∘ K.
    pub fn pull(&self, tile: &mut Tile, k_bar: &Mat, bars: &mut Bars<'_>) {
        let mut x_bar = Mat::zeros(tile.x.rows(), tile.x.cols());
        let grad = KernelGrad { theta: bars.theta, x: Some(&mut x_bar), z: Some(bars.z) };
        self.kernel.cross_adjoint(&tile.x, self.z, k_bar, grad);
        self.pull_points(tile, &x_bar, bars);
    }

    /// Adds the gradient of bar·Σ w k(x, x).
    pub fn pull_diag(&self, tile: &Tile, weights: &[f64], bar: f64, bars: &mut Bars<'_>) {
        let rows = tile.points.len();
        let bar: Vec<f64> = weights.iter().flat_map(|w| std::iter::repeat_n(w * bar, rows)).collect();
        let mut x_bar = Mat::zeros(tile.x.rows(), tile.x.cols());
        let grad = KernelGrad { theta: bars.theta, x: Some(&mut x_bar), z: None };
        self.kernel.diag_adjoint(&tile.x, &bar, grad);
        self.pull_points(tile, &x_bar, bars);
    }

    /// From x̄ to μ̄ and S̄.
    fn pull_points(&self, tile: &Tile, x_bar: &Mat, bars: &mut Bars<'_>) {
        let (rows, dim) = (tile.points.len(), x_bar.cols());
        for at in 0..x_bar.rows() {
            let i = at % rows;
            let std = self.std.row(tile.points.start + i);
            for d in 0..dim {
                bars.mean[i * dim + d] += x_bar[(at, d)];
                if std[d] > 0.0 {
                    bars.var[i * dim + d] += x_bar[(at, d)] * tile.xi[(at, d)] / (2.0 * std[d]);
                }
            }
        }
    }
}
