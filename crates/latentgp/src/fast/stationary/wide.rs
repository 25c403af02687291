//! The adjoint of a stationary block for inputs of many columns, such as the features of a network, by products of matrices
//! instead of a loop over pairs and columns.
//!
//! ```text
//! H = K̄ ∘ σ²κ'(r²), M×L     s = Hᵀ1     t = H1
//! x̄ = 2(s x − ZᵀH)/ℓ     z̄ = 2(t z − HXᵀ)/ℓ     ℓ̄ = −Σ x x̄ − Σ z z̄
//! ```
//!
//! Here x, Q×L, and z are shifted by the mean of Z and divided by ℓ, so that an offset common to all points costs no digits.

use super::tile::Tile;
use crate::fast::cross_blocks::{BLOCK_POINTS, BlockBar, CrossBlocks, Mats, NOT_ITS_OWN};
use crate::fast::vmath::{Instructions, Vectorized, fma, vectorize};
use crate::kernel::{KernelGrad, Shape, Stationary};
use crate::linalg::{self, Op};
use crate::mat::Mat;
use crate::scratch::{self, Buffer};
use smallvec::smallvec;

/// Inputs of at least this many columns are faster by products.
pub(super) const WIDE: usize = 24;
/// Sums run in this many independent accumulators.
const LANES: usize = 8;
/// Points of a block.
const POINTS: usize = 128;

/// Zeros for HXᵀ, t, and Σ x ∘ (s x − ZᵀH), of some blocks.
pub(super) fn gather(m: usize, dim: usize) -> Mats {
    smallvec![Mat::zeros(m, dim), Mat::zeros(1, m), Mat::zeros(1, dim)]
}

/// Adds x̄ of a block, and the sums of its other gradients to what is gathered.
pub(super) fn pull<S: Shape>(of: &Tile<'_, S>, x: &Mat, h: &Mat, x_bar: &mut Mat, gathered: &mut [Mat]) {
    let [hx, t, l_bar] = gathered else { panic!("{NOT_ITS_OWN}") };
    let mut zh = scratch::any(x.rows(), x.cols());
    zh.fill(0.0);
    linalg::gemm(1.0, &of.z, Op::T, h, Op::N, &mut zh);
    linalg::gemm(1.0, h, Op::N, x, Op::T, hx);
    let mut s = Buffer::filled(0.0, x.cols());
    let (t, l_bar) = (t.as_mut_slice(), l_bar.as_mut_slice());
    vectorize(Gather { x, h, zh: &zh, inverse: &of.inverse, s: &mut s, t, l_bar, x_bar });
}

/// Adds ℓ̄ and Z̄ of what was gathered.
pub(super) fn finish<S: Shape>(of: &Tile<'_, S>, gathered: &[Mat], l_bar: &mut [f64], z_bar: &mut Mat) {
    let [hx, t, sums] = gathered else { panic!("{NOT_ITS_OWN}") };
    let mut sums = sums.clone();
    for (m, t) in t.as_slice().iter().enumerate() {
        let own = hx.row(m).iter().zip(of.z.row(m)).zip(sums.as_mut_slice());
        for (((hx, z), l), (bar, i)) in own.zip(z_bar.row_mut(m).iter_mut().zip(&of.inverse)) {
            let own = t * z - hx;
            *l += z * own;
            *bar += 2.0 * i * own;
        }
    }
    for ((to, l), i) in l_bar.iter_mut().zip(sums.as_slice()).zip(&of.inverse) {
        *to -= 2.0 * i * l;
    }
}

/// The sums of a block, from its products.
struct Gather<'t> {
    x: &'t Mat,
    h: &'t Mat,
    zh: &'t Mat,
    inverse: &'t [f64],
    /// s, from zeros.
    s: &'t mut [f64],
    t: &'t mut [f64],
    l_bar: &'t mut [f64],
    x_bar: &'t mut Mat,
}

impl Vectorized for Gather<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions>(self) {
        let (width, s) = (self.x.cols(), self.s);
        for (h, t) in self.h.as_slice().chunks_exact(width).zip(self.t) {
            let mut sum = [0.0; LANES];
            for (h, s) in h.as_chunks::<LANES>().0.iter().zip(s.as_chunks_mut::<LANES>().0) {
                for k in 0..LANES {
                    sum[k] += h[k];
                    s[k] += h[k];
                }
            }
            *t += sum.iter().sum::<f64>();
        }
        let rows = self.zh.as_slice().chunks_exact(width).zip(self.x.as_slice().chunks_exact(width));
        let bars = self.x_bar.as_mut_slice().chunks_exact_mut(width);
        for (((zh, x), bar), (l_bar, inverse)) in rows.zip(bars).zip(self.l_bar.iter_mut().zip(self.inverse))
        {
            let mut sum = [0.0; LANES];
            let (zh, x) = (zh.as_chunks::<LANES>().0, x.as_chunks::<LANES>().0);
            for (((zh, x), s), bar) in
                zh.iter().zip(x).zip(s.as_chunks::<LANES>().0).zip(bar.as_chunks_mut::<LANES>().0)
            {
                for k in 0..LANES {
                    let own = fma::<I>(s[k], x[k], -zh[k]);
                    sum[k] = fma::<I>(x[k], own, sum[k]);
                    bar[k] = fma::<I>(2.0 * inverse, own, bar[k]);
                }
            }
            *l_bar += sum.iter().sum::<f64>();
        }
    }
}

/// Adds the gradient of Σ bar ∘ k(x, z).
pub(super) fn cross_adjoint<S: Shape>(
    kernel: &Stationary<S>,
    x: &Mat,
    z: &Mat,
    bar: &Mat,
    grad: KernelGrad<'_>,
) {
    let tile = Tile::new(kernel, z);
    let (mut kept, mut gathered) = (Mats::new(), tile.gather());
    let (mut k, mut own, mut x_bar) = (Mat::default(), Mat::default(), Mat::default());
    let mut to = grad.x;
    for from in (0..x.rows()).step_by(POINTS) {
        let points = from..(from + POINTS).min(x.rows());
        let (width, last) = (points.len().next_multiple_of(BLOCK_POINTS), points.end - 1);
        let at = Mat::from_fn(x.cols(), width, |q, i| x[((from + i).min(last), q)]);
        // Columns without a point repeat the last one, with an adjoint of 0.
        own.resize(z.rows(), width);
        own.fill(0.0);
        for (i, n) in points.clone().enumerate() {
            bar.row(n).iter().enumerate().for_each(|(j, bar)| own[(j, i)] = *bar);
        }
        k.resize(z.rows(), width);
        x_bar.resize(x.cols(), width);
        x_bar.fill(0.0);
        tile.cross(&at, &mut kept, &mut k);
        tile.pull(BlockBar { x: &at, kept: &kept, k: &k, bar: &own }, &mut x_bar, &mut gathered);
        if let Some(to) = to.as_deref_mut() {
            for (i, n) in points.enumerate() {
                to.row_mut(n).iter_mut().enumerate().for_each(|(q, to)| *to += x_bar[(q, i)]);
            }
        }
    }
    let mut z_bar = Mat::zeros(z.rows(), z.cols());
    tile.finish(&gathered, grad.theta, &mut z_bar);
    if let Some(to) = grad.z {
        to.add_scaled(1.0, &z_bar);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Kernel, Matern32, PointGrad, RationalQuadratic, Rbf};
    use crate::param;

    const TOLERANCE: f64 = 1e-11;

    /// The gradient pair by pair beside that of the block.
    fn compare(kernel: &dyn Kernel, offset: f64) {
        let dim = kernel.input_dim().unwrap();
        let point = |k: f64| move |i: usize, j: usize| offset + (k * (i * dim + j) as f64).sin();
        let (x, z) = (Mat::from_fn(7, dim, point(0.7)), Mat::from_fn(5, dim, point(1.3)));
        let bar = Mat::from_fn(7, 5, |i, j| ((3 * i + j) as f64).cos());
        let count = param::count(kernel);
        let (mut theta, mut gx, mut gz) = (vec![0.0; count], Mat::zeros(7, dim), Mat::zeros(5, dim));
        let grad = KernelGrad { theta: &mut theta, x: Some(&mut gx), z: Some(&mut gz) };
        kernel.cross_adjoint(&x, &z, &bar, grad);
        let (mut theta2, mut gx2, mut gz2) = (vec![0.0; count], Mat::zeros(7, dim), Mat::zeros(5, dim));
        for n in 0..7 {
            for m in 0..5 {
                let point = PointGrad { theta: &mut theta2, x: gx2.row_mut(n), z: gz2.row_mut(m) };
                kernel.eval_adjoint(x.row(n), z.row(m), bar[(n, m)], point);
            }
        }
        let near =
            |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < TOLERANCE * (1.0 + b.abs()));
        assert!(near(&theta, &theta2) && near(gx.as_slice(), gx2.as_slice()), "{theta:?} {theta2:?}");
        assert!(near(gz.as_slice(), gz2.as_slice()));
    }

    #[test]
    fn products_are_the_loop_over_pairs() {
        for offset in [0.0, 1000.0] {
            let mut rbf = Rbf::new(WIDE);
            rbf.lengthscale.value = Mat::from_fn(1, WIDE, |_, q| 2.0 + 0.3 * q as f64);
            compare(&rbf, offset);
            let mut shared = Matern32::isotropic(WIDE + 5);
            shared.lengthscale.set(6.0);
            compare(&shared, offset);
            let mut quadratic = RationalQuadratic::new(WIDE);
            quadratic.lengthscale.set(4.0);
            compare(&quadratic, offset);
        }
    }
}
