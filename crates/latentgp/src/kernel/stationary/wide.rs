//! The adjoint of a stationary block for inputs of many columns, such as the features of a network: products of
//! matrices in the place of a loop over pairs and columns.
//!
//! ```text
//! H = K̄ ∘ σ²κ'(r²)     s = H1     t = Hᵀ1
//! x̄ = 2(s x − HZ)/ℓ²     z̄ = 2(t z − HᵀX)/ℓ²     ℓ̄ = −2(Σ s x² − 2 Σ x ∘ HZ + Σ t z²)/ℓ³
//! ```
//!
//! Points are shifted by the mean of Z first: differences then lose no more digits than the spread of the points
//! costs them.

use super::tile::Tile;
use super::{Shape, Stationary};
use crate::kernel::{CrossBlocks, KernelGrad};
use crate::linalg::{self, Op};
use crate::mat::Mat;

/// From so many columns on the products are faster.
pub(super) const WIDE: usize = 24;
/// Rows of a block.
const ROWS: usize = 128;

/// Z, and what the blocks have in common.
pub(super) struct Wide {
    /// The mean of Z, and Z less the mean.
    mean: Vec<f64>,
    z: Mat,
    /// Room for H, the shifted points, and HZ.
    h: Mat,
    x: Mat,
    hz: Mat,
    /// HᵀX, t, and Σ s x² − 2 Σ x ∘ HZ, of all blocks.
    htx: Mat,
    t: Vec<f64>,
    l_bar: Vec<f64>,
}

impl Wide {
    pub fn new(z: &Mat) -> Self {
        let mut mean = vec![0.0; z.cols()];
        let part = 1.0 / z.rows() as f64;
        for m in 0..z.rows() {
            mean.iter_mut().zip(z.row(m)).for_each(|(mean, z)| *mean += part * z);
        }
        let mut shifted = Mat::default();
        shift(z, &mean, &mut shifted);
        Wide {
            h: Mat::default(),
            x: Mat::default(),
            hz: Mat::default(),
            htx: Mat::zeros(z.rows(), z.cols()),
            t: vec![0.0; z.rows()],
            l_bar: vec![0.0; z.cols()],
            z: shifted,
            mean,
        }
    }

    /// Where H of a block goes.
    pub fn room(&mut self, rows: usize) -> &mut Mat {
        self.h.resize(rows, self.z.rows());
        &mut self.h
    }

    /// Adds x̄ of the block whose H is in the room.
    pub fn adjoint(&mut self, x: &Mat, inverse: &[f64], x_bar: &mut Mat) {
        shift(x, &self.mean, &mut self.x);
        self.hz.resize(x.rows(), x.cols());
        self.hz.fill(0.0);
        linalg::gemm(1.0, &self.h, Op::N, &self.z, Op::N, &mut self.hz);
        linalg::gemm(1.0, &self.h, Op::T, &self.x, Op::N, &mut self.htx);
        let square: Vec<f64> = inverse.iter().map(|i| 2.0 * i * i).collect();
        for n in 0..x.rows() {
            let h = self.h.row(n);
            self.t.iter_mut().zip(h).for_each(|(t, h)| *t += h);
            let s: f64 = h.iter().sum();
            let own = self.hz.row(n).iter().zip(self.x.row(n)).zip(self.l_bar.iter_mut());
            for (((hz, x), l), (bar, square)) in own.zip(x_bar.row_mut(n).iter_mut().zip(&square)) {
                let rest = s * x - hz;
                *l += x * (rest - hz);
                *bar += square * rest;
            }
        }
    }

    /// Adds ℓ̄ and Z̄ of all blocks, and forgets them.
    pub fn finish(&mut self, inverse: &[f64], l_bar: &mut [f64], z_bar: &mut Mat) {
        for (m, t) in self.t.iter().enumerate() {
            let own = self.htx.row(m).iter().zip(self.z.row(m)).zip(self.l_bar.iter_mut());
            for (((htx, z), l), (bar, i)) in own.zip(z_bar.row_mut(m).iter_mut().zip(inverse)) {
                *l += t * z * z;
                *bar += 2.0 * i * i * (t * z - htx);
            }
        }
        for ((to, l), i) in l_bar.iter_mut().zip(&self.l_bar).zip(inverse) {
            *to -= 2.0 * i * i * i * l;
        }
        self.htx.fill(0.0);
        self.t.fill(0.0);
        self.l_bar.fill(0.0);
    }
}

/// `out` ← x less the mean in every row.
fn shift(x: &Mat, mean: &[f64], out: &mut Mat) {
    out.resize(x.rows(), x.cols());
    for n in 0..x.rows() {
        let row = out.row_mut(n).iter_mut().zip(x.row(n)).zip(mean);
        row.for_each(|((out, x), mean)| *out = x - mean);
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
    let mut tile = Tile::new(kernel, z);
    let (mut k, mut x_bar) = (Mat::default(), Mat::default());
    let mut to = grad.x;
    for from in (0..x.rows()).step_by(ROWS) {
        let end = (from + ROWS).min(x.rows());
        let points = x.slice_rows(from, end);
        k.resize(end - from, z.rows());
        x_bar.resize(end - from, x.cols());
        x_bar.fill(0.0);
        tile.cross(0, &points, &mut k);
        tile.cross_adjoint(0, &points, &bar.slice_rows(from, end), &mut x_bar);
        if let Some(to) = to.as_deref_mut() {
            let rows = &mut to.as_mut_slice()[from * x.cols()..end * x.cols()];
            rows.iter_mut().zip(x_bar.as_slice()).for_each(|(a, b)| *a += b);
        }
    }
    let mut z_bar = Mat::zeros(z.rows(), z.cols());
    tile.finish(grad.theta, &mut z_bar);
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
