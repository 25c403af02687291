//! Blocks of stationary kernels at many points, one point a column: a register has the same number of several points, and sums
//! over points are taken across a register at the very end.
//!
//! ```text
//! e = x − z     r² = Σ_q e²     H = K̄ ∘ σ²κ'(r²)     X = Σ_m H e     Y = Σ_n H e
//! x̄ = 2X/ℓ     z̄ = −2Y/ℓ     ℓ̄ = −2 (Σ_n x X − Σ_m z Y)/ℓ
//! ```
//!
//! Here x and z are shifted by the mean of Z and divided by ℓ, so that an offset common to all points costs no digits. A block
//! keeps the slope of κ for its adjoint. Inputs of many columns have their adjoint by products of matrices, see [`wide`].

use super::shapes::{advance, arguments};
use super::wide::{self, WIDE};
use crate::fast::cross_blocks::{BLOCK_POINTS as WIDTH, BlockBar, CrossBlocks, Mats, NOT_ITS_OWN};
use crate::fast::vmath::{Instructions, Laned, Vectorized, fma, in_lanes, vectorize};
use crate::kernel::{Shape, Stationary};
use crate::mat::Mat;
use crate::scratch::{self, Buffer};
use smallvec::smallvec;

/// A number of each of `WIDTH` points.
type Points = [f64; WIDTH];
/// Sums over points run in this many independent accumulators: a register of most machines.
const SUMS: usize = 4;
type Sums = [f64; SUMS];

/// The blocks of a kernel with some Z.
pub(super) struct Tile<'a, S: Shape> {
    pub kernel: &'a Stationary<S>,
    pub inverse: Buffer<f64>,
    /// The mean of Z.
    mean: Buffer<f64>,
    /// (Z less its mean)/ℓ, M×Q.
    pub z: Mat,
}

impl<'a, S: Shape> Tile<'a, S> {
    pub fn new(kernel: &'a Stationary<S>, z: &Mat) -> Self {
        let (m, inverse) = (z.rows(), kernel.inverse_lengthscales());
        let mean = Buffer::of((0..kernel.dim).map(|q| (0..m).map(|j| z[(j, q)]).sum::<f64>() / m as f64));
        let z = Mat::from_fn(m, kernel.dim, |j, q| (z[(j, q)] - mean[q]) * inverse[q]);
        Tile { kernel, inverse, mean, z }
    }

    /// (x less the mean of Z)/ℓ, Q×L.
    fn scaled(&self, x: &Mat) -> Mat {
        debug_assert!(x.cols().is_multiple_of(WIDTH), "{} points", x.cols());
        let mut scaled = scratch::any(x.rows(), x.cols());
        let rows = scaled.as_mut_slice().chunks_exact_mut(x.cols()).zip(x.as_slice().chunks_exact(x.cols()));
        for ((to, x), (mean, inverse)) in rows.zip(self.mean.iter().zip(&self.inverse)) {
            to.iter_mut().zip(x).for_each(|(to, x)| *to = (x - mean) * inverse);
        }
        scaled
    }

    fn is_wide(&self) -> bool {
        self.kernel.dim >= WIDE
    }
}

/// Keeps σ²∂κ/∂r², M×L. Gathers, as partial sums, Y, M for each column, and Σ x X of each column, or else what [`wide`] says;
/// then `WIDTH` partial sums of Σ K̄ ∘ K, and ᾱ.
impl<S: Shape> CrossBlocks for Tile<'_, S> {
    fn cross(&self, x: &Mat, kept: &mut Mats, out: &mut Mat) {
        if x.is_empty() {
            return;
        }
        kept.resize(1, Mat::default());
        scratch::shape(&mut kept[0], out.rows(), out.cols());
        let x = self.scaled(x);
        in_lanes(Cross { tile: self, x: &x, slopes: kept[0].as_mut_slice(), out });
    }

    fn pull(&self, block: BlockBar<'_>, x_bar: &mut Mat, gathered: &mut [Mat]) {
        if block.x.is_empty() {
            return;
        }
        let x = self.scaled(block.x);
        let Some((sums, rest)) = gathered.split_last_mut() else { panic!("{NOT_ITS_OWN}") };
        let slopes = Slopes { tile: self, block: BlockBar { x: &x, ..block }, sums: sums.as_mut_slice() };
        match self.is_wide() {
            true => {
                let mut h = scratch::any(block.k.rows(), block.k.cols());
                vectorize(Whole { slopes, h: &mut h });
                wide::pull(self, &x, &h, x_bar, rest);
            }
            false => {
                let mut h = Buffer::filled([0.0; WIDTH], block.k.rows());
                vectorize(Adjoint { slopes, h: &mut h, x_bar, gathered: rest });
            }
        }
    }

    fn kept(&self) -> usize {
        self.z.rows()
    }

    fn is_cheap(&self) -> bool {
        !S::HAS_ALPHA && !self.is_wide()
    }

    fn gather(&self) -> Mats {
        let (m, dim) = (self.z.rows(), self.kernel.dim);
        let mut all = match self.is_wide() {
            true => wide::gather(m, dim),
            false => smallvec![Mat::zeros(dim * m, SUMS), Mat::zeros(dim, SUMS)],
        };
        all.push(Mat::zeros(1, WIDTH + 1));
        all
    }

    fn finish(&self, gathered: &[Mat], theta: &mut [f64], z_bar: &mut Mat) {
        let (m, dim) = (self.z.rows(), self.kernel.dim);
        let Some((sums, rest)) = gathered.split_last() else { panic!("{NOT_ITS_OWN}") };
        let mut l_bar = Buffer::filled(0.0, dim);
        if self.is_wide() {
            wide::finish(self, rest, &mut l_bar, z_bar);
        } else {
            for q in 0..dim {
                let (twice, mut sum) = (2.0 * self.inverse[q], rest[1].row(q).iter().sum::<f64>());
                for j in 0..m {
                    let own: f64 = rest[0].row(q * m + j).iter().sum();
                    z_bar[(j, q)] -= twice * own;
                    sum -= self.z[(j, q)] * own;
                }
                l_bar[q] = -twice * sum;
            }
        }
        let (k_bar, alpha_bar) = sums.as_slice().split_at(WIDTH);
        let variance_bar = k_bar.iter().sum::<f64>() / self.kernel.variance.get();
        self.kernel.add_theta(theta, variance_bar, &l_bar, alpha_bar[0]);
    }
}

struct Cross<'t, 'a, S: Shape> {
    tile: &'t Tile<'a, S>,
    x: &'t Mat,
    slopes: &'t mut [f64],
    out: &'t mut Mat,
}

impl<S: Shape> Laned for Cross<'_, '_, S> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions, const L: usize>(self) {
        let (Tile { kernel, z, .. }, x) = (self.tile, self.x);
        let (width, dim) = (x.cols(), kernel.dim);
        let (variance, alpha) = (kernel.variance.get(), kernel.alpha());
        // The powers of a row are taken beside the roots of the next.
        let (mut slopes, scales) = (self.slopes.chunks_exact_mut(width), (variance, alpha));
        let mut before: &mut [f64] = &mut [];
        for (z, row) in z.as_slice().chunks_exact(dim).zip(self.out.as_mut_slice().chunks_exact_mut(width)) {
            distances::<I>(z, x.as_slice(), row);
            if before.is_empty() {
                arguments::<S, I, L>(row);
            } else {
                advance::<S, I, L>(before, row, slopes.next().unwrap_or_default(), scales);
            }
            before = row;
        }
        advance::<S, I, L>(before, &mut [], slopes.next().unwrap_or_default(), scales);
    }
}

/// r² of one z and all points.
#[inline(always)]
fn distances<I: Instructions>(z: &[f64], x: &[f64], r2: &mut [f64]) {
    let chunks = r2.len() / WIDTH;
    let x: &[Points] = x.as_chunks().0;
    for (c, r2) in r2.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
        *r2 = distance::<I>(z, x.iter().skip(c).step_by(chunks));
    }
}

/// r² of one z and `WIDTH` points.
#[inline(always)]
fn distance<'x, I: Instructions>(z: &[f64], x: impl Iterator<Item = &'x Points>) -> Points {
    let mut sum = [0.0; WIDTH];
    for (z, x) in z.iter().zip(x) {
        for k in 0..WIDTH {
            let e = x[k] - z;
            sum[k] = fma::<I>(e, e, sum[k]);
        }
    }
    sum
}

/// Computes H.
struct Slopes<'t, 'a, S: Shape> {
    tile: &'t Tile<'a, S>,
    /// The block, with x scaled.
    block: BlockBar<'t>,
    /// Where Σ K̄ ∘ K and ᾱ are added.
    sums: &'t mut [f64],
}

impl<S: Shape> Slopes<'_, '_, S> {
    fn chunks(&self) -> usize {
        self.block.bar.cols() / WIDTH
    }

    /// Writes H of chunk c of the points; adds their Σ K̄ ∘ K and ᾱ.
    #[inline(always)]
    fn chunk<I: Instructions>(&mut self, c: usize, to: &mut [Points]) {
        let Tile { kernel, z, .. } = self.tile;
        let (dim, chunks) = (kernel.dim, self.chunks());
        let chunk = |of: &Mat, j: usize| -> Points { of.as_slice().as_chunks().0[j * chunks + c] };
        let BlockBar { x, kept, k, bar } = self.block;
        let Some((total, alpha_bar)) = self.sums.split_first_chunk_mut::<WIDTH>() else {
            panic!("{NOT_ITS_OWN}")
        };
        let mut sum = *total;
        for (j, h) in to.iter_mut().enumerate() {
            let (k, bar, slope) = (chunk(k, j), chunk(bar, j), chunk(&kept[0], j));
            let mut new = [0.0; WIDTH];
            for i in 0..WIDTH {
                sum[i] = fma::<I>(bar[i], k[i], sum[i]);
                new[i] = bar[i] * slope[i];
            }
            *h = new;
            if S::HAS_ALPHA {
                let (variance, alpha) = (kernel.variance.get(), kernel.alpha());
                let x = x.as_slice().as_chunks().0.iter().skip(c).step_by(chunks);
                let r2 = distance::<I>(&z.as_slice()[j * dim..(j + 1) * dim], x);
                let slope = |i: usize| bar[i] * variance * S::kappa_alpha(r2[i], alpha);
                alpha_bar[0] += (0..WIDTH).map(slope).sum::<f64>();
            }
        }
        *total = sum;
    }
}

/// Writes H of a whole block, M×L.
struct Whole<'t, 'a, S: Shape> {
    slopes: Slopes<'t, 'a, S>,
    h: &'t mut Mat,
}

impl<S: Shape> Vectorized for Whole<'_, '_, S> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions>(mut self) {
        let chunks = self.slopes.chunks();
        let mut own = Buffer::filled([0.0; WIDTH], self.h.rows());
        let h: &mut [Points] = self.h.as_mut_slice().as_chunks_mut().0;
        for c in 0..chunks {
            self.slopes.chunk::<I>(c, &mut own);
            h.iter_mut().skip(c).step_by(chunks).zip(&own).for_each(|(to, h)| *to = *h);
        }
    }
}

struct Adjoint<'t, 'a, S: Shape> {
    slopes: Slopes<'t, 'a, S>,
    /// Working memory: H of `WIDTH` points.
    h: &'t mut [Points],
    x_bar: &'t mut Mat,
    gathered: &'t mut [Mat],
}

impl<S: Shape> Vectorized for Adjoint<'_, '_, S> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions>(mut self) {
        let (Tile { kernel, inverse, z, .. }, x) = (self.slopes.tile, self.slopes.block.x);
        let (m, dim, chunks) = (z.rows(), kernel.dim, self.slopes.chunks());
        let to: &mut [Points] = self.x_bar.as_mut_slice().as_chunks_mut().0;
        let [z_bar, l_bar] = self.gathered else { panic!("{NOT_ITS_OWN}") };
        let z_bar: &mut [Sums] = z_bar.as_mut_slice().as_chunks_mut().0;
        let l_bar: &mut [Sums] = l_bar.as_mut_slice().as_chunks_mut().0;
        let x: &[Points] = x.as_slice().as_chunks().0;
        for c in 0..chunks {
            self.slopes.chunk::<I>(c, self.h);
            for q in 0..dim {
                let (x, mut x_sum) = (registers(&x[q * chunks + c]), [[0.0; SUMS]; WIDTH / SUMS]);
                let z = z.as_slice().iter().skip(q).step_by(dim);
                for ((h, z), z_bar) in self.h.iter().zip(z).zip(&mut z_bar[q * m..(q + 1) * m]) {
                    let (h, mut z_sum) = (registers(h), *z_bar);
                    for v in 0..WIDTH / SUMS {
                        for k in 0..SUMS {
                            let e = x[v][k] - z;
                            x_sum[v][k] = fma::<I>(h[v][k], e, x_sum[v][k]);
                            z_sum[k] = fma::<I>(h[v][k], e, z_sum[k]);
                        }
                    }
                    *z_bar = z_sum;
                }
                let (twice, mut l_sum) = (2.0 * inverse[q], l_bar[q]);
                for v in 0..WIDTH / SUMS {
                    for k in 0..SUMS {
                        l_sum[k] = fma::<I>(x[v][k], x_sum[v][k], l_sum[k]);
                    }
                }
                l_bar[q] = l_sum;
                let to = &mut to[q * chunks + c];
                to.iter_mut().zip(x_sum.as_flattened()).for_each(|(to, sum)| *to += twice * sum);
            }
        }
    }
}

#[inline(always)]
fn registers(of: &Points) -> [Sums; WIDTH / SUMS] {
    std::array::from_fn(|v| std::array::from_fn(|k| of[v * SUMS + k]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast;
    use crate::kernel::{Kernel, KernelGrad, Matern32, Mlp, Periodic, RationalQuadratic, Rbf};
    use crate::param;

    const TOLERANCE: f64 = 1e-12;

    /// Points as columns, the last repeated.
    fn columns_of(x: &Mat) -> Mat {
        Mat::from_fn(x.cols(), x.rows().next_multiple_of(WIDTH), |q, n| x[(n.min(x.rows() - 1), q)])
    }

    /// Blocks of two sets of points beside `cross` and `cross_adjoint` of both together.
    fn compare(kernel: &dyn Kernel, rows: [usize; 2], offset: f64) {
        let dim = kernel.input_dim().unwrap();
        let (n, m) = (rows[0] + rows[1], 5);
        let point = |by: f64| move |i: usize, j: usize| offset + (by * (i * dim + j) as f64).sin();
        let (x, z) = (Mat::from_fn(n, dim, point(0.7)), Mat::from_fn(m, dim, point(1.3)));
        let bar = Mat::from_fn(n, m, |i, j| ((3 * i + j) as f64).cos());
        let count = param::count(kernel);
        let (mut k, mut theta) = (Mat::zeros(n, m), vec![0.0; count]);
        let (mut gx, mut gz) = (Mat::zeros(n, dim), Mat::zeros(m, dim));
        kernel.cross(&x, &z, &mut k);
        kernel.cross_adjoint(
            &x,
            &z,
            &bar,
            KernelGrad { theta: &mut theta, x: Some(&mut gx), z: Some(&mut gz) },
        );
        let near = |a: &[f64], b: &[f64], what: &str| {
            let close = |(a, b): (&f64, &f64)| (a - b).abs() < TOLERANCE * (1.0 + b.abs());
            assert!(a.len() == b.len() && a.iter().zip(b).all(close), "{what}: {a:?} {b:?}");
        };
        let ranges = [0..rows[0], rows[0]..n];
        fast::with_blocks(kernel, &z, &mut |blocks| {
            let (mut values, mut kept) = ([Mat::default(), Mat::default()], [Mats::new(), Mats::new()]);
            for _twice in 0..2 {
                for (place, range) in ranges.iter().enumerate() {
                    let points = columns_of(&x.slice_rows(range.start, range.end));
                    let own = &mut values[place];
                    own.resize(m, points.cols());
                    blocks.cross(&points, &mut kept[place], own);
                    let rows = own.t().slice_rows(0, range.len());
                    near(rows.as_slice(), k.slice_rows(range.start, range.end).as_slice(), "k");
                }
                let mut gathered = blocks.gather();
                for (place, range) in ranges.iter().enumerate() {
                    let points = columns_of(&x.slice_rows(range.start, range.end));
                    let (mut x_bar, mut own) = (Mat::zeros(dim, points.cols()), Mat::zeros(m, points.cols()));
                    for (n, j) in range.clone().flat_map(|n| (0..m).map(move |j| (n, j))) {
                        own[(j, n - range.start)] = bar[(n, j)];
                    }
                    let block = BlockBar { x: &points, kept: &kept[place], k: &values[place], bar: &own };
                    blocks.pull(block, &mut x_bar, &mut gathered);
                    let rows = x_bar.t().slice_rows(0, range.len());
                    near(rows.as_slice(), gx.slice_rows(range.start, range.end).as_slice(), "x");
                }
                let (mut own, mut z_bar) = (vec![0.0; count], Mat::zeros(m, dim));
                blocks.finish(&gathered, &mut own, &mut z_bar);
                near(&own, &theta, "theta");
                near(z_bar.as_slice(), gz.as_slice(), "z");
            }
        });
    }

    #[test]
    fn blocks_are_those_of_the_kernel() {
        let mut rbf = Rbf::new(3);
        rbf.lengthscale.value = Mat::from_fn(1, 3, |_, q| 0.5 + 0.3 * q as f64);
        rbf.variance.set(1.7);
        let mut wide = Matern32::new(WIDE);
        wide.lengthscale.set(4.0);
        let network = Mlp::new(2, &[7, WIDE + 1], Rbf::new(WIDE + 1)).unwrap();
        for rows in [[1, 40], [16, 17], [129, 3]] {
            compare(&rbf, rows, 0.0);
            compare(&rbf, rows, 100.0);
            compare(&Matern32::isotropic(2), rows, 0.0);
            compare(&RationalQuadratic::new(4), rows, 0.0);
            compare(&wide, rows, 0.0);
            compare(&network, rows, 0.0);
            compare(&Mlp::new(2, &[6, 3], Rbf::new(3)).unwrap(), rows, 0.0);
            compare(&Periodic::new(2), rows, 0.0);
        }
    }
}
