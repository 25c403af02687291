//! All pairs (z_i, z'_j) at one point, in the shape of the machine's registers.
//!
//! With δ = z − μ and δ' = z' − μ every exponent here is Σ_q (left δ_i² + right δ'_j² + link δ_i δ'_j): a matrix product
//! of Q features a row, whose result meets exp while it is in the nearest cache. Everything is taken relative to μ, so
//! that nothing large cancels. Rows go in blocks of R, columns in chunks of [`LANES`]; of the pairs of a term with
//! itself the lower triangle is enough, and a block stops at the chunk that holds its diagonal.

use crate::mat::Mat;
use crate::vmath::fma;

pub(super) const LANES: usize = 8;
pub(super) type Lanes = [f64; LANES];
/// A chunk of R rows.
pub(super) type Chunk<const R: usize> = [Lanes; R];

/// An exponent in one dimension: left δ² + right δ'² + link δδ'.
pub(super) struct Quadratic {
    pub left: f64,
    pub right: f64,
    pub link: f64,
}

/// The pairs of one point; places beyond the last row or column repeat it.
pub(super) struct Tile<const R: usize> {
    pub rows: usize,
    pub cols: usize,
    pub dim: usize,
    same: bool,
    chunks: usize,
    /// Q of z for each block of rows, and of z' for each chunk of columns.
    z_left: Vec<[f64; R]>,
    z_right: Vec<Lanes>,
    /// (δ, 1), link·δ and (δ', 1): the features of T's products, and of the exponents.
    pub left_delta: Vec<[f64; R]>,
    linked: Vec<[f64; R]>,
    pub delta: Vec<Lanes>,
    /// What a row and a column add to the exponent.
    left: Vec<[f64; R]>,
    right: Vec<Lanes>,
    /// μ and the exponent of each dimension.
    exponent: Vec<(f64, Quadratic)>,
    /// Exponents of one block, or what was made of them.
    pub line: Vec<Chunk<R>>,
}

/// Q numbers for each group of `W` rows of z, the last row repeated.
fn grouped<const W: usize>(z: &Mat, count: usize) -> Vec<[f64; W]> {
    let groups = count.div_ceil(W);
    let at = |g: usize, q: usize| std::array::from_fn(|k| z[((g * W + k).min(count - 1), q)]);
    (0..groups).flat_map(|g| (0..z.cols()).map(move |q| at(g, q))).collect()
}

/// sum + weight δ².
#[inline(always)]
fn add_squares<const FMA: bool, const W: usize>(mut sum: [f64; W], weight: f64, delta: [f64; W]) -> [f64; W] {
    for k in 0..W {
        sum[k] = fma::<FMA>(weight * delta[k], delta[k], sum[k]);
    }
    sum
}

impl<const R: usize> Tile<R> {
    /// Pairs of the first `rows` of z with the first `cols`; the lower triangle alone where they are the `same`.
    pub fn new(z: &Mat, rows: usize, cols: usize, same: bool) -> Self {
        let (z_left, z_right) = (grouped(z, rows), grouped(z, cols));
        let (blocks, chunks) = (rows.div_ceil(R), cols.div_ceil(LANES));
        Tile {
            rows,
            cols,
            dim: z.cols(),
            same,
            chunks,
            left_delta: vec![[1.0; R]; blocks * (z.cols() + 1)],
            linked: z_left.clone(),
            delta: vec![[1.0; LANES]; chunks * (z.cols() + 1)],
            exponent: Vec::with_capacity(z.cols()),
            left: vec![[0.0; R]; blocks],
            right: vec![[0.0; LANES]; chunks],
            line: vec![[[0.0; LANES]; R]; chunks],
            z_left,
            z_right,
        }
    }

    pub fn blocks(&self) -> usize {
        self.left.len()
    }

    /// The chunks that block `b` needs.
    #[inline(always)]
    pub fn reach(&self, b: usize) -> usize {
        if self.same { ((b + 1) * R).div_ceil(LANES) } else { self.chunks }
    }

    /// Numbers for every pair, zero; a block's chunks are one after the other, as `reach` tells.
    pub fn pairs(&self) -> Vec<Chunk<R>> {
        vec![[[0.0; LANES]; R]; (0..self.blocks()).map(|b| self.reach(b)).sum()]
    }

    /// Visits the place in [`pairs`](Self::pairs) of every (i, j) that is needed.
    pub fn each_pair(&self, mut visit: impl FnMut(usize, usize, usize, usize, usize)) {
        let mut start = 0;
        for b in 0..self.blocks() {
            for i in b * R..(b * R + R).min(self.rows) {
                let width = if self.same { i + 1 } else { self.cols };
                (0..width).for_each(|j| visit(i, j, start + j / LANES, i - b * R, j % LANES));
            }
            start += self.reach(b);
        }
    }

    /// Moves to the point μ, with the exponent given for each dimension.
    #[inline(always)]
    pub fn place<const FMA: bool>(&mut self, mean: &[f64], exponent: impl Fn(usize) -> Quadratic) {
        self.exponent.clear();
        self.exponent.extend(mean.iter().enumerate().map(|(q, mean)| (*mean, exponent(q))));
        let dim = self.dim;
        let deltas = self.left_delta.chunks_exact_mut(dim + 1).zip(self.linked.chunks_exact_mut(dim));
        for ((sum, z), (delta, linked)) in self.left.iter_mut().zip(self.z_left.chunks_exact(dim)).zip(deltas)
        {
            *sum = [0.0; R];
            for (((mean, e), z), (delta, linked)) in
                self.exponent.iter().zip(z).zip(delta.iter_mut().zip(linked))
            {
                *delta = z.map(|z| z - mean);
                *linked = delta.map(|d| e.link * d);
                *sum = add_squares::<FMA, R>(*sum, e.left, *delta);
            }
        }
        let deltas = self.delta.chunks_exact_mut(dim + 1);
        for ((sum, z), delta) in self.right.iter_mut().zip(self.z_right.chunks_exact(dim)).zip(deltas) {
            *sum = [0.0; LANES];
            for (((mean, e), z), delta) in self.exponent.iter().zip(z).zip(delta.iter_mut()) {
                *delta = z.map(|z| z - mean);
                *sum = add_squares::<FMA, LANES>(*sum, e.right, *delta);
            }
        }
    }

    /// Sets `line` to the exponents of block `b`, plus a constant.
    #[inline(always)]
    pub fn exponents<const FMA: bool>(&mut self, b: usize, constant: f64) {
        let (dim, left, reach) = (self.dim, self.left[b], self.reach(b));
        let linked = &self.linked[b * dim..(b + 1) * dim];
        let columns = self.right.iter().zip(self.delta.chunks_exact(dim + 1));
        for (out, (right, delta)) in self.line[..reach].iter_mut().zip(columns) {
            let mut sum = [[0.0; LANES]; R];
            for r in 0..R {
                for k in 0..LANES {
                    sum[r][k] = constant + left[r] + right[k];
                }
            }
            for (own, other) in linked.iter().zip(delta) {
                for r in 0..R {
                    for k in 0..LANES {
                        sum[r][k] = fma::<FMA>(own[r], other[k], sum[r][k]);
                    }
                }
            }
            *out = sum;
        }
    }

    /// Applies `f` to the first `count` chunks of `line`.
    #[inline(always)]
    pub fn map_line(&mut self, count: usize, f: impl Fn(f64) -> f64) {
        for v in self.line[..count].as_flattened_mut().as_flattened_mut() {
            *v = f(*v);
        }
    }
}
