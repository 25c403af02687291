//! Expectations of a kernel over Gaussian inputs, row by row, for evidences in which each row has its own
//! variance.
//!
//! ```text
//! ψ1_n = E[k(x_n, Z)]     ψ0_n = E[k(x_n, x_n)]     x_n ~ N(μ_n, diag S_n)
//! ```

use crate::blocks;
use crate::error::Result;
use crate::expectation::{Auto, Expectation, Gaussians, Psi, PsiGrad};
use crate::kernel::Kernel;
use crate::mat::Mat;
use crate::param;
use crate::scratch::Buffer;

/// Ψ1, N×M, and ψ0 of each row, N×1.
pub(crate) fn expected_rows(kernel: &dyn Kernel, q: &Gaussians, z: &Mat) -> Result<(Mat, Mat)> {
    let (n, m) = (q.n(), z.rows());
    let (mut psi1, mut psi0) = (Mat::zeros(n, m), Mat::zeros(n, 1));
    blocks::each_part(n, cost(z), [&mut psi1, &mut psi0], |rows, [psi1, psi0]| {
        rows.zip(psi1.chunks_exact_mut(m)).zip(psi0).try_for_each(|((i, psi1), psi0)| {
            let psi = Auto.psi(kernel, &q.select_rows(&[i]), z)?;
            psi1.copy_from_slice(psi.psi1.row(0));
            *psi0 = psi.psi0;
            Ok(())
        })
    })
    .into_iter()
    .collect::<Result<()>>()?;
    Ok((psi1, psi0))
}

/// Adds the gradient of Σ psi1 ∘ Ψ1 + Σ psi0 ψ0, for given adjoints, in the parameters and Z; returns the
/// gradient in the means and variances.
pub(crate) fn expected_rows_adjoint(
    kernel: &dyn Kernel,
    q: &Gaussians,
    z: &Mat,
    (psi1, psi0): (&Mat, &[f64]),
    theta: &mut [f64],
    z_bar: &mut Mat,
) -> Result<Gaussians> {
    let (n, m, dim) = (q.n(), z.rows(), q.dim());
    let mut bar = Gaussians { mean: Mat::zeros(n, dim), var: Mat::zeros(n, dim) };
    let parts = blocks::each_part(n, cost(z), [&mut bar.mean, &mut bar.var], |rows, [mean, var]| {
        let (mut theta, mut z_bar) = (Buffer::filled(0.0, param::count(kernel)), Mat::zeros(m, dim));
        for ((i, mean), var) in rows.zip(mean.chunks_exact_mut(dim)).zip(var.chunks_exact_mut(dim)) {
            let of = Psi { psi0: psi0[i], psi1: psi1.slice_rows(i, i + 1), psi2: Mat::zeros(m, m) };
            let (mut own_mean, mut own_var) = (Mat::zeros(1, dim), Mat::zeros(1, dim));
            let at = PsiGrad { theta: &mut theta, z: &mut z_bar, mean: &mut own_mean, var: &mut own_var };
            Auto.psi_adjoint(kernel, &q.select_rows(&[i]), z, &of, at)?;
            mean.copy_from_slice(own_mean.as_slice());
            var.copy_from_slice(own_var.as_slice());
        }
        Ok((theta, z_bar))
    });
    for part in parts {
        let (own, own_z) = part?;
        theta.iter_mut().zip(&own).for_each(|(t, o)| *t += o);
        z_bar.add_scaled(1.0, &own_z);
    }
    Ok(bar)
}

/// Operations for each row; Ψ2 is computed along with Ψ0 and Ψ1.
fn cost(z: &Mat) -> usize {
    8 * z.rows() * z.rows() * z.cols()
}
