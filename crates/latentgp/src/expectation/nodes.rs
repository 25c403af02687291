//! Tiles of nodes: some points times some nodes, where the kernel is evaluated as one block.
//!
//! Place s·R + i of a tile is node s at point i of its R points, x = μ + √S ∘ ξ.

use super::Gaussians;
use super::rule::{Draws, Rule};
use crate::kernel::{CrossBlocks, Kernel, KernelGrad};
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
    /// Whether k(x, x) is the same everywhere.
    constant: bool,
    /// Any point, for a kernel whose k(x, x) is the same everywhere.
    somewhere: Mat,
}

/// Some points and some nodes; x and ξ of each place, and K there.
#[derive(Default)]
pub(super) struct Tile {
    pub points: Range<usize>,
    pub nodes: Range<usize>,
    pub k: Mat,
    x: Mat,
    xi: Mat,
    /// Which of the kept blocks is its own.
    place: usize,
}

/// Tiles, as many as are kept, and the kernel's blocks there.
pub(super) struct Tiles<'a> {
    pub tiles: Vec<Tile>,
    pub blocks: Blocks<'a>,
}

/// A kernel with Z, and room to work in.
pub(super) struct Blocks<'a> {
    own: Option<Box<dyn CrossBlocks + 'a>>,
    x_bar: Mat,
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
        Nodes {
            rule,
            kernel,
            q,
            z,
            std: q.var.map(f64::sqrt),
            constant: kernel.constant_diag(),
            layout,
            count,
            somewhere: Mat::zeros(1, q.dim()),
        }
    }

    /// Calls `visit` for every tile of some points, with K computed. All tiles are returned if they are to be kept, the
    /// last one otherwise.
    pub fn each_tile(
        &self,
        points: Range<usize>,
        keep: bool,
        mut visit: impl FnMut(&mut Tile, &mut Blocks<'a>),
    ) -> Tiles<'a> {
        let dim = self.q.dim();
        let together = TILE / 2;
        let mut blocks = Blocks { own: self.kernel.blocks(self.z), x_bar: Mat::default() };
        let mut tiles: Vec<Tile> = Vec::new();
        for start in points.clone().step_by(together) {
            let points = start..(start + together).min(points.end);
            let rows = points.len();
            let batch = (TILE / 2 / rows).max(1);
            let mut streams: Vec<Draws<'_>> =
                points.clone().filter_map(|n| self.rule.draws(dim, n)).collect();
            for s in (0..self.count).step_by(batch) {
                if keep || tiles.is_empty() {
                    tiles.push(Tile { place: tiles.len(), ..Tile::default() });
                }
                let tile = tiles.last_mut().expect("one was pushed");
                (tile.points, tile.nodes) = (points.clone(), s..(s + batch).min(self.count));
                tile.x.resize(tile.nodes.len() * rows, dim);
                tile.xi.resize(tile.nodes.len() * rows, dim);
                self.write(tile, &mut streams);
                self.cross(tile, &mut blocks);
                visit(tile, &mut blocks);
            }
        }
        Tiles { tiles, blocks }
    }

    /// How many numbers all tiles keep for the way back.
    pub fn kept(&self) -> f64 {
        let own = self.kernel.blocks(self.z).map_or(0, |blocks| blocks.kept());
        self.count as f64 * self.q.n() as f64 * (own + self.z.rows() + 2 * self.q.dim()) as f64
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
    fn cross(&self, tile: &mut Tile, blocks: &mut Blocks<'_>) {
        tile.k.resize(tile.x.rows(), self.z.rows());
        match &mut blocks.own {
            Some(blocks) => blocks.cross(tile.place, &tile.x, &mut tile.k),
            None => self.kernel.cross(&tile.x, self.z, &mut tile.k),
        }
    }

    /// Σ w k(x, x).
    pub fn diag(&self, tile: &Tile, weights: &[f64]) -> f64 {
        let rows = tile.points.len();
        if self.constant {
            let mut one = [0.0];
            self.kernel.diag(&self.somewhere, &mut one);
            return one[0] * rows as f64 * weights.iter().sum::<f64>();
        }
        let mut diag = vec![0.0; tile.x.rows()];
        self.kernel.diag(&tile.x, &mut diag);
        diag.chunks_exact(rows).zip(weights).map(|(d, w)| w * d.iter().sum::<f64>()).sum()
    }

    /// Adds the gradient of Σ K̄ ∘ K of a tile; some of it at [`finish`](Blocks::finish).
    pub fn pull(&self, tile: &Tile, blocks: &mut Blocks<'_>, k_bar: &Mat, bars: &mut Bars<'_>) {
        let Blocks { own, x_bar } = blocks;
        x_bar.resize(tile.x.rows(), tile.x.cols());
        x_bar.fill(0.0);
        match own {
            Some(blocks) => blocks.cross_adjoint(tile.place, &tile.x, k_bar, x_bar),
            None => {
                let grad = KernelGrad { theta: bars.theta, x: Some(x_bar), z: Some(bars.z) };
                self.kernel.cross_adjoint(&tile.x, self.z, k_bar, grad);
            }
        }
        self.pull_points(tile, x_bar, bars);
    }

    /// Adds the gradient of bar·Σ w k(x, x).
    pub fn pull_diag(&self, tile: &Tile, weights: &[f64], bar: f64, bars: &mut Bars<'_>) {
        let rows = tile.points.len();
        if self.constant {
            let bar = bar * rows as f64 * weights.iter().sum::<f64>();
            return self.kernel.diag_adjoint(
                &self.somewhere,
                &[bar],
                KernelGrad { theta: bars.theta, x: None, z: None },
            );
        }
        let bar: Vec<f64> = weights.iter().flat_map(|w| std::iter::repeat_n(w * bar, rows)).collect();
        let mut x_bar = Mat::zeros(tile.x.rows(), tile.x.cols());
        let grad = KernelGrad { theta: bars.theta, x: Some(&mut x_bar), z: None };
        self.kernel.diag_adjoint(&tile.x, &bar, grad);
        self.pull_points(tile, &x_bar, bars);
    }

    /// From x̄ to μ̄ and S̄.
    fn pull_points(&self, tile: &Tile, x_bar: &Mat, bars: &mut Bars<'_>) {
        let (rows, dim) = (tile.points.len(), x_bar.cols());
        let places = x_bar.as_slice().chunks_exact(dim).zip(tile.xi.as_slice().chunks_exact(dim));
        for (at, (x_bar, xi)) in places.enumerate() {
            let own = at % rows * dim..(at % rows + 1) * dim;
            let std = self.std.row(tile.points.start + at % rows);
            let to = bars.mean[own.clone()].iter_mut().zip(&mut bars.var[own]);
            for (((mean, var), (x_bar, xi)), std) in to.zip(x_bar.iter().zip(xi)).zip(std) {
                *mean += x_bar;
                *var += if *std > 0.0 { x_bar * xi / (2.0 * std) } else { 0.0 };
            }
        }
    }
}

impl Blocks<'_> {
    /// Adds what the blocks kept back.
    pub fn finish(&mut self, theta: &mut [f64], z: &mut Mat) {
        if let Some(blocks) = &mut self.own {
            blocks.finish(theta, z);
        }
    }
}
