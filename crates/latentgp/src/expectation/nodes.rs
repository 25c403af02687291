//! Tiles: some nodes of some points, at which the kernel is evaluated as one block.
//!
//! Column s·B + i of a tile is node s of point i of its B points, x = μ + √S ∘ ξ. The columns that fill a block up repeat the last
//! one, and have zeros in K.

use super::PsiInputs;
use super::rule::Rule;
use crate::fast::cross_blocks::{BLOCK_POINTS, BlockBar, CrossBlocks, Mats};
use crate::fast::points::Points;
use crate::fast::vmath::even_groups;
use crate::kernel::KernelGrad;
use crate::mat::Mat;
use crate::scratch::{self, Buffer};
use std::ops::Range;

/// A tile has about this many columns.
pub(super) const TILE: usize = 256;

/// About this many numbers are drawn at a time.
const DRAWN: usize = 1 << 15;

/// The nodes ξ.
enum Layout {
    /// The same for all points, one a row.
    Shared(Mat),
    /// Each point has its own, which are drawn.
    Own,
}

/// The nodes of all points.
pub(super) struct Nodes<'a, R: Rule> {
    rule: &'a R,
    pub of: &'a PsiInputs<'a>,
    pub blocks: &'a dyn CrossBlocks,
    layout: Layout,
    pub count: usize,
    /// An arbitrary point, for a kernel whose k(x, x) is the same everywhere.
    anywhere: Option<Mat>,
}

/// Nodes that were drawn for some points. A row has one coordinate of one node of all points.
#[derive(Default)]
pub(super) struct Drawn {
    nodes: Range<usize>,
    lines: Mat,
}

/// Some nodes of some points: ξ and x of each column, Q×L, and K there, M×L.
#[derive(Default)]
pub(super) struct Tile {
    pub nodes: Range<usize>,
    pub k: Mat,
    xi: Mat,
    x: Mat,
    /// What the kernel keeps for its adjoint.
    kept: Mats,
}

impl Tile {
    /// Moves its nodes to a tile without K.
    pub fn take_nodes(&mut self) -> Tile {
        Tile { nodes: self.nodes.clone(), xi: std::mem::take(&mut self.xi), ..Tile::default() }
    }

    /// Copies the nodes of another tile.
    pub fn copy_nodes(&mut self, other: &Tile) {
        self.nodes = other.nodes.clone();
        scratch::copy(&other.xi, &mut self.xi);
    }

    /// Whether it has K.
    pub fn has_values(&self) -> bool {
        !self.k.is_empty()
    }

    /// The number of columns that are nodes.
    fn columns(&self, points: &Points) -> usize {
        self.nodes.len() * points.width()
    }
}

/// L, the number of columns filled up to a block. Rows whose length is a multiple of 64 numbers would compete for a few sets of
/// the cache, so these get one more block.
pub(super) fn padded(columns: usize) -> usize {
    const CACHE_SETS: usize = 64;
    let padded = columns.next_multiple_of(BLOCK_POINTS);
    if padded.is_multiple_of(CACHE_SETS) { padded + BLOCK_POINTS } else { padded }
}

impl<'a, R: Rule> Nodes<'a, R> {
    pub fn new(rule: &'a R, of: &'a PsiInputs<'a>, blocks: &'a dyn CrossBlocks, count: usize) -> Self {
        let dim = of.q.dim();
        let layout = match rule.has_own_nodes() {
            true => Layout::Own,
            false => Layout::Shared(rule.nodes(dim)),
        };
        let anywhere = of.kernel.constant_diag().then(|| Mat::zeros(1, dim));
        Nodes { rule, of, blocks, layout, count, anywhere }
    }

    /// Whether each point has its own nodes.
    pub fn are_drawn(&self) -> bool {
        matches!(self.layout, Layout::Own)
    }

    /// Which nodes each tile of `points` points has.
    pub fn batches(&self, points: usize) -> impl Iterator<Item = Range<usize>> {
        even_groups(0..self.count, (TILE / points).max(1))
    }

    /// Draws nodes of some points from number `from` on, as many as are worth a call.
    fn draw_some(&self, points: &Points, from: usize, drawn: &mut Drawn) {
        let (dim, rows) = (self.of.q.dim(), points.width());
        // Numbers are drawn 64 at a time: this many nodes use them all.
        let even = 64 >> dim.trailing_zeros().min(6);
        drawn.nodes = from..(from + (DRAWN / (rows * dim).max(1)).clamp(1, even)).min(self.count);
        let mut own = scratch::any(rows, drawn.nodes.len() * dim);
        for (i, n) in points.points.clone().enumerate() {
            self.rule.draw(dim, n, from, own.row_mut(i));
        }
        scratch::shape(&mut drawn.lines, own.cols(), rows);
        own.transpose_into(&mut drawn.lines);
    }

    /// Sets the nodes of a tile.
    pub fn draw(&self, points: &Points, nodes: Range<usize>, drawn: &mut Drawn, tile: &mut Tile) {
        let (dim, rows) = (self.of.q.dim(), points.width());
        tile.nodes = nodes;
        let columns = tile.columns(points);
        scratch::shape(&mut tile.xi, dim, padded(columns));
        match &self.layout {
            Layout::Shared(nodes) => {
                for (k, s) in tile.nodes.clone().enumerate() {
                    for (q, xi) in nodes.row(s).iter().enumerate() {
                        tile.xi.row_mut(q)[k * rows..(k + 1) * rows].fill(*xi);
                    }
                }
            }
            Layout::Own => {
                for (k, s) in tile.nodes.clone().enumerate() {
                    if !drawn.nodes.contains(&s) {
                        self.draw_some(points, s, drawn);
                    }
                    for q in 0..dim {
                        let line = drawn.lines.row((s - drawn.nodes.start) * dim + q);
                        tile.xi.row_mut(q)[k * rows..(k + 1) * rows].copy_from_slice(line);
                    }
                }
            }
        }
        (0..dim).for_each(|q| tile.xi.row_mut(q)[columns..].fill(0.0));
    }

    /// Computes K of a tile whose nodes are set.
    pub fn cross(&self, points: &Points, tile: &mut Tile) {
        let (rows, columns) = (points.width(), tile.columns(points));
        scratch::shape(&mut tile.x, tile.xi.rows(), tile.xi.cols());
        for q in 0..tile.x.rows() {
            let (mean, std, xi, x) =
                (points.mean.row(q), points.std.row(q), tile.xi.row(q), tile.x.row_mut(q));
            for (x, xi) in x[..columns].chunks_exact_mut(rows).zip(xi.chunks_exact(rows)) {
                let moved = mean.iter().zip(std).zip(xi).map(|((mean, std), xi)| mean + std * xi);
                x.iter_mut().zip(moved).for_each(|(x, moved)| *x = moved);
            }
            let last = x[columns - 1];
            x[columns..].fill(last);
        }
        scratch::shape(&mut tile.k, self.of.z.rows(), tile.xi.cols());
        self.blocks.cross(&tile.x, &mut tile.kept, &mut tile.k);
        for j in 0..tile.k.rows() {
            tile.k.row_mut(j)[columns..].fill(0.0);
        }
    }

    /// Σ w k(x, x).
    pub fn diag(&self, points: &Points, tile: &Tile, weights: &[f64]) -> f64 {
        let rows = points.width();
        if let Some(anywhere) = &self.anywhere {
            let mut one = [0.0];
            self.of.kernel.diag(anywhere, &mut one);
            return one[0] * rows as f64 * weights.iter().sum::<f64>();
        }
        let mut diag = Buffer::filled(0.0, tile.x.cols());
        self.of.kernel.diag(&tile.x.t(), &mut diag);
        diag.chunks_exact(rows).zip(weights).map(|(d, w)| w * d.iter().sum::<f64>()).sum()
    }

    /// Adds the gradient of Σ K̄ ∘ K of a tile to that of its points, and the rest to what is gathered.
    pub fn pull(&self, points: &mut Points, tile: &Tile, k_bar: &Mat, x_bar: &mut Mat, gathered: &mut Mats) {
        scratch::shape(x_bar, tile.x.rows(), tile.x.cols());
        x_bar.fill(0.0);
        let block = BlockBar { x: &tile.x, kept: &tile.kept, k: &tile.k, bar: k_bar };
        self.blocks.pull(block, x_bar, gathered);
        pull_points(points, tile, x_bar);
    }

    /// Adds the gradient of bar·Σ w k(x, x).
    pub fn pull_diag(&self, points: &mut Points, tile: &Tile, weights: &[f64], bar: f64, theta: &mut [f64]) {
        let rows = points.width();
        if let Some(anywhere) = &self.anywhere {
            let bar = bar * rows as f64 * weights.iter().sum::<f64>();
            return self.of.kernel.diag_adjoint(anywhere, &[bar], KernelGrad { theta, x: None, z: None });
        }
        let mut own = Buffer::filled(0.0, tile.x.cols());
        own.chunks_exact_mut(rows).zip(weights).for_each(|(own, w)| own.fill(w * bar));
        let mut x_bar = Mat::zeros(tile.x.cols(), tile.x.rows());
        let grad = KernelGrad { theta, x: Some(&mut x_bar), z: None };
        self.of.kernel.diag_adjoint(&tile.x.t(), &own, grad);
        pull_points(points, tile, &x_bar.t());
    }
}

/// Adds x̄ to the gradients of μ and √S.
fn pull_points(points: &mut Points, tile: &Tile, x_bar: &Mat) {
    let rows = points.width();
    let columns = tile.columns(points);
    for q in 0..x_bar.rows() {
        let (mean, std) = (points.mean_bar.row_mut(q), points.std_bar.row_mut(q));
        let both = x_bar.row(q)[..columns].chunks_exact(rows).zip(tile.xi.row(q).chunks_exact(rows));
        for (x_bar, xi) in both {
            mean.iter_mut().zip(x_bar).for_each(|(mean, bar)| *mean += bar);
            std.iter_mut().zip(x_bar.iter().zip(xi)).for_each(|(std, (bar, xi))| *std += bar * xi);
        }
    }
}
