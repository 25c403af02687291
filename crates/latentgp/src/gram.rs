//! k(x, x) of many points and its adjoint, over blocks of rows on all threads.
//!
//! Off the diagonal k(x, x) is k(x, z), on it `diag`: so a block of rows needs the columns up to its own
//! end alone, and half of the matrix is computed. Blocks follow from the number of rows, and sums are
//! taken in their order: the digits do not depend on the threads.

use crate::blocks;
use crate::fast::vmath::groups;
use crate::kernel::{Kernel, KernelGrad};
use crate::linalg;
use crate::mat::Mat;
use crate::param;
use crate::scratch::{self, Buffer};
use rayon::prelude::*;

/// Rows of a block.
const ROWS: usize = 64;
/// So many blocks at a time have partial sums: they stay few.
const BLOCKS: usize = 32;

/// K = k(x, x), N×N, both triangles.
pub(crate) fn gram(kernel: &dyn Kernel, x: &Mat) -> Mat {
    let mut out = gram_lower(kernel, x);
    linalg::mirror_lower(&mut out);
    out
}

/// The lower triangle of k(x, x); there are numbers of no meaning above it.
pub(crate) fn gram_lower(kernel: &dyn Kernel, x: &Mat) -> Mat {
    let n = x.rows();
    let mut out = scratch::any(n, n);
    // The longest first, so that threads finish together.
    out.as_mut_slice().par_chunks_mut(ROWS * n.max(1)).enumerate().rev().for_each(|(i, rows)| {
        let (from, to) = (i * ROWS, i * ROWS + rows.len() / n);
        let mut part = Mat::zeros(to - from, to);
        kernel.cross(&x.slice_rows(from, to), &x.slice_rows(0, to), &mut part);
        for (i, row) in rows.chunks_exact_mut(n).enumerate() {
            row[..to].copy_from_slice(part.row(i));
        }
    });
    let mut diag = Buffer::filled(0.0, n);
    kernel.diag(x, &mut diag);
    (0..n).for_each(|i| out[(i, i)] = diag[i]);
    out
}

/// Adds the gradient of Σ bar ∘ k(x, x), for a symmetric `bar`, whose lower triangle is read.
pub(crate) fn gram_adjoint(
    kernel: &dyn Kernel,
    x: &Mat,
    bar: &Mat,
    theta: &mut [f64],
    mut x_bar: Option<&mut Mat>,
) {
    let (n, q, wants_x) = (x.rows(), x.cols(), x_bar.is_some());
    let one = |(from, to): (usize, usize)| {
        let mut twice = Mat::zeros(to - from, to);
        for i in from..to {
            let pairs = twice.row_mut(i - from).iter_mut().zip(&bar.row(i)[..i]);
            pairs.for_each(|(twice, bar)| *twice = 2.0 * bar);
        }
        let mut theta = Buffer::filled(0.0, param::count(kernel));
        let (mut rows_bar, mut cols_bar) = (Mat::zeros(to - from, q), Mat::zeros(to, q));
        let grad = match wants_x {
            true => KernelGrad { theta: &mut theta, x: Some(&mut rows_bar), z: Some(&mut cols_bar) },
            false => KernelGrad { theta: &mut theta, x: None, z: None },
        };
        kernel.cross_adjoint(&x.slice_rows(from, to), &x.slice_rows(0, to), &twice, grad);
        (from, theta, rows_bar, cols_bar)
    };
    let count = n.div_ceil(ROWS);
    for some in groups(0..count, BLOCKS) {
        let longest_first = some.map(|i| count - 1 - i).map(|i| (i * ROWS, (i * ROWS + ROWS).min(n)));
        for (from, own, rows_bar, cols_bar) in &blocks::each_of(longest_first, n <= ROWS, one) {
            theta.iter_mut().zip(own).for_each(|(a, b)| *a += b);
            if let Some(x_bar) = x_bar.as_deref_mut() {
                let add = |to: &mut [f64], from: &Mat| {
                    to.iter_mut().zip(from.as_slice()).for_each(|(a, b)| *a += b)
                };
                add(x_bar.as_mut_slice(), cols_bar);
                add(&mut x_bar.as_mut_slice()[from * q..], rows_bar);
            }
        }
    }
    let diag = Buffer::of((0..n).map(|i| bar[(i, i)]));
    kernel.diag_adjoint(x, &diag, KernelGrad { theta, x: x_bar, z: None });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::relative_error;
    use crate::kernel::{Linear, Periodic, Rbf, White};

    #[test]
    fn blocks_agree_with_the_kernel_itself() {
        let kernel = Rbf::new(2) * Periodic::new(2) + Linear::new(2) + White::new();
        for n in [1, 63, 64, 65, 150] {
            let x = Mat::from_fn(n, 2, |i, j| (1.3 * i as f64 + 0.4 * j as f64).sin());
            let mut slow = Mat::zeros(n, n);
            kernel.gram(&x, &mut slow);
            assert!(relative_error(gram(&kernel, &x).as_slice(), slow.as_slice(), 1.0) < 1e-14);

            let bar = Mat::from_fn(n, n, |i, j| ((i + j) as f64).cos() + f64::from(i == j));
            let count = param::count(&kernel);
            let (mut fast, mut fast_x) = (vec![0.0; count], Mat::zeros(n, 2));
            gram_adjoint(&kernel, &x, &bar, &mut fast, Some(&mut fast_x));
            let (mut theta, mut x_bar) = (vec![0.0; count], Mat::zeros(n, 2));
            kernel.gram_adjoint(&x, &bar, KernelGrad { theta: &mut theta, x: Some(&mut x_bar), z: None });
            assert!(relative_error(&fast, &theta, 1.0) < 1e-11);
            assert!(relative_error(fast_x.as_slice(), x_bar.as_slice(), 1.0) < 1e-11);
            let mut alone = vec![0.0; count];
            gram_adjoint(&kernel, &x, &bar, &mut alone, None);
            assert_eq!(alone, fast);
        }
    }
}
