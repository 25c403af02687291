//! Tiles of nodes: some points times some nodes, where the kernel is evaluated as one block.
//!
//! Place s·B + i of a tile is node s at point i of its B points, x = μ + √S ∘ ξ. Places lie in lanes; those beyond the last
//! repeat it, and count nothing.

use super::PsiInputs;
use super::rule::Rule;
use crate::fast::cross_blocks::{BLOCK_POINTS, BlockBar, CrossBlocks, Mats};
use crate::fast::points::Points;
use crate::fast::vmath::even_groups;
use crate::kernel::KernelGrad;
use crate::mat::Mat;
use crate::scratch::{self, Buffer};
use std::ops::Range;

/// Places of a tile, about.
pub(super) const TILE: usize = 256;

/// Numbers that are drawn at once, about.
const DRAWN: usize = 1 << 15;

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
    pub of: &'a PsiInputs<'a>,
    pub blocks: &'a dyn CrossBlocks,
    layout: Layout,
    pub count: usize,
    /// Any point, for a kernel whose k(x, x) is the same everywhere.
    somewhere: Option<Mat>,
}

/// Some nodes that were drawn for some points, a coordinate of all points a row.
#[derive(Default)]
pub(super) struct Drawn {
    nodes: Range<usize>,
    lines: Mat,
}

/// Some nodes of some points: ξ and x of each place, Q×L, and K there, M×L.
#[derive(Default)]
pub(super) struct Tile {
    pub nodes: Range<usize>,
    pub k: Mat,
    xi: Mat,
    x: Mat,
    /// What the kernel keeps of it.
    kept: Mats,
}

impl Tile {
    /// Its nodes alone, and what is left has none.
    pub fn take_nodes(&mut self) -> Tile {
        Tile { nodes: self.nodes.clone(), xi: std::mem::take(&mut self.xi), ..Tile::default() }
    }

    /// The nodes of another.
    pub fn copy_nodes(&mut self, other: &Tile) {
        self.nodes = other.nodes.clone();
        scratch::copy(&other.xi, &mut self.xi);
    }

    /// Whether K is there.
    pub fn has_values(&self) -> bool {
        !self.k.is_empty()
    }

    /// Places, without those beyond the last.
    fn places(&self, points: &Points) -> usize {
        self.nodes.len() * points.width()
    }
}

/// Lanes of so many places. Columns of a power of two would share a few places of the cache.
pub(super) fn lanes(places: usize) -> usize {
    const CACHE: usize = 64;
    let lanes = places.next_multiple_of(BLOCK_POINTS);
    if lanes.is_multiple_of(CACHE) { lanes + BLOCK_POINTS } else { lanes }
}

impl<'a, R: Rule> Nodes<'a, R> {
    pub fn new(rule: &'a R, of: &'a PsiInputs<'a>, blocks: &'a dyn CrossBlocks, count: usize) -> Self {
        let dim = of.q.dim();
        let layout = match rule.has_own_nodes() {
            true => Layout::Own,
            false => Layout::Shared(rule.nodes(dim)),
        };
        let somewhere = of.kernel.constant_diag().then(|| Mat::zeros(1, dim));
        Nodes { rule, of, blocks, layout, count, somewhere }
    }

    /// Whether each point has its own nodes.
    pub fn are_drawn(&self) -> bool {
        matches!(self.layout, Layout::Own)
    }

    /// The nodes of each tile of so many points.
    pub fn batches(&self, points: usize) -> impl Iterator<Item = Range<usize>> {
        even_groups(0..self.count, (TILE / points).max(1))
    }

    /// Draws nodes of some points, as many as are worth it.
    fn draw_some(&self, points: &Points, from: usize, drawn: &mut Drawn) {
        let (dim, rows) = (self.of.q.dim(), points.width());
        // Draws are made 64 at a time: so many nodes leave none over.
        let even = 64 >> dim.trailing_zeros().min(6);
        drawn.nodes = from..(from + (DRAWN / (rows * dim).max(1)).clamp(1, even)).min(self.count);
        let mut own = scratch::any(rows, drawn.nodes.len() * dim);
        for (i, n) in points.points.clone().enumerate() {
            self.rule.draw(dim, n, from, own.row_mut(i));
        }
        scratch::shape(&mut drawn.lines, own.cols(), rows);
        own.transpose_into(&mut drawn.lines);
    }

    /// Takes some nodes.
    pub fn draw(&self, points: &Points, nodes: Range<usize>, drawn: &mut Drawn, tile: &mut Tile) {
        let (dim, rows) = (self.of.q.dim(), points.width());
        tile.nodes = nodes;
        let places = tile.places(points);
        scratch::shape(&mut tile.xi, dim, lanes(places));
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
        (0..dim).for_each(|q| tile.xi.row_mut(q)[places..].fill(0.0));
    }

    /// K of a tile whose nodes were taken.
    pub fn cross(&self, points: &Points, tile: &mut Tile) {
        let (rows, places) = (points.width(), tile.places(points));
        scratch::shape(&mut tile.x, tile.xi.rows(), tile.xi.cols());
        for q in 0..tile.x.rows() {
            let (mean, std, xi, x) =
                (points.mean.row(q), points.std.row(q), tile.xi.row(q), tile.x.row_mut(q));
            for (x, xi) in x[..places].chunks_exact_mut(rows).zip(xi.chunks_exact(rows)) {
                let moved = mean.iter().zip(std).zip(xi).map(|((mean, std), xi)| mean + std * xi);
                x.iter_mut().zip(moved).for_each(|(x, moved)| *x = moved);
            }
            let last = x[places - 1];
            x[places..].fill(last);
        }
        scratch::shape(&mut tile.k, self.of.z.rows(), tile.xi.cols());
        self.blocks.cross(&tile.x, &mut tile.kept, &mut tile.k);
        for j in 0..tile.k.rows() {
            tile.k.row_mut(j)[places..].fill(0.0);
        }
    }

    /// Σ w k(x, x).
    pub fn diag(&self, points: &Points, tile: &Tile, weights: &[f64]) -> f64 {
        let rows = points.width();
        if let Some(somewhere) = &self.somewhere {
            let mut one = [0.0];
            self.of.kernel.diag(somewhere, &mut one);
            return one[0] * rows as f64 * weights.iter().sum::<f64>();
        }
        let mut diag = Buffer::filled(0.0, tile.x.cols());
        self.of.kernel.diag(&tile.x.t(), &mut diag);
        diag.chunks_exact(rows).zip(weights).map(|(d, w)| w * d.iter().sum::<f64>()).sum()
    }

    /// Adds the gradient of Σ K̄ ∘ K of a tile to that of its points; what is left is gathered.
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
        if let Some(somewhere) = &self.somewhere {
            let bar = bar * rows as f64 * weights.iter().sum::<f64>();
            return self.of.kernel.diag_adjoint(somewhere, &[bar], KernelGrad { theta, x: None, z: None });
        }
        let mut own = Buffer::filled(0.0, tile.x.cols());
        own.chunks_exact_mut(rows).zip(weights).for_each(|(own, w)| own.fill(w * bar));
        let mut x_bar = Mat::zeros(tile.x.cols(), tile.x.rows());
        let grad = KernelGrad { theta, x: Some(&mut x_bar), z: None };
        self.of.kernel.diag_adjoint(&tile.x.t(), &own, grad);
        pull_points(points, tile, &x_bar.t());
    }
}

/// From x̄ to μ̄ and the gradient of √S.
fn pull_points(points: &mut Points, tile: &Tile, x_bar: &Mat) {
    let rows = points.width();
    let places = tile.places(points);
    for q in 0..x_bar.rows() {
        let (mean, std) = (points.mean_bar.row_mut(q), points.std_bar.row_mut(q));
        let both = x_bar.row(q)[..places].chunks_exact(rows).zip(tile.xi.row(q).chunks_exact(rows));
        for (x_bar, xi) in both {
            mean.iter_mut().zip(x_bar).for_each(|(mean, bar)| *mean += bar);
            std.iter_mut().zip(x_bar.iter().zip(xi)).for_each(|(std, (bar, xi))| *std += bar * xi);
        }
    }
}
