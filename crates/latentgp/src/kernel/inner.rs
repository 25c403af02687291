//! Weighted inner products X diag(w) Zᵀ and their adjoints, as matrix products.
//!
//! `w` has one entry a column, or one for all.

use super::place;
use crate::linalg::{Op, gemm, mul, mul_tn};
use crate::mat::Mat;

/// Σ_q w_q x_q z_q.
pub(super) fn dot(w: &[f64], x: &[f64], z: &[f64]) -> f64 {
    x.iter().zip(z).enumerate().map(|(q, (x, z))| w[place(w.len(), q)] * x * z).sum()
}

fn weighted(w: &[f64], mut x: Mat) -> Mat {
    for n in 0..x.rows() {
        x.row_mut(n).iter_mut().enumerate().for_each(|(q, x)| *x *= w[place(w.len(), q)]);
    }
    x
}

/// out = X diag(w) Zᵀ.
pub(super) fn cross(w: &[f64], x: &Mat, z: &Mat, out: &mut Mat) {
    out.fill(0.0);
    gemm(1.0, &weighted(w, x.clone()), Op::N, z, Op::T, out);
}

/// Adds the adjoint of [`cross`].
pub(super) fn cross_adjoint(
    w: &[f64],
    x: &Mat,
    z: &Mat,
    bar: &Mat,
    w_bar: &mut [f64],
    x_bar: Option<&mut Mat>,
    z_bar: Option<&mut Mat>,
) {
    let bar_z = mul(bar, z);
    for n in 0..x.rows() {
        for (q, (x, bz)) in x.row(n).iter().zip(bar_z.row(n)).enumerate() {
            w_bar[place(w.len(), q)] += x * bz;
        }
    }
    if let Some(x_bar) = x_bar {
        x_bar.add_scaled(1.0, &weighted(w, bar_z));
    }
    if let Some(z_bar) = z_bar {
        z_bar.add_scaled(1.0, &weighted(w, mul_tn(bar, x)));
    }
}

/// Adds `bar` times the gradient of [`dot`].
pub(super) fn dot_adjoint(
    w: &[f64],
    x: &[f64],
    z: &[f64],
    bar: f64,
    w_bar: &mut [f64],
    x_bar: &mut [f64],
    z_bar: &mut [f64],
) {
    for q in 0..x.len() {
        let at = place(w.len(), q);
        w_bar[at] += bar * x[q] * z[q];
        x_bar[q] += bar * w[at] * z[q];
        z_bar[q] += bar * w[at] * x[q];
    }
}
