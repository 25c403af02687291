//! Ψ-statistics by themselves.

use crate::convert::{Array, Given, to_array, to_mat};
use crate::error::Outcome;
use crate::kernel::Kernel;
use crate::work;
use latentgp::expectation::{self, Gaussians};
use pyo3::prelude::*;

type Statistics<'py> = (f64, Given<'py>, Given<'py>);

/// Ψ0, Ψ1 and Ψ2 of Gaussian inputs with these means and variances.
#[pyfunction]
pub fn psi_statistics<'py>(
    py: Python<'py>,
    kernel: &Kernel,
    mean: Array<'py>,
    var: Array<'py>,
    z: Array<'py>,
    expectation: &str,
) -> Outcome<Statistics<'py>> {
    let rule = expectation::parse(expectation)?;
    let (q, z) = (Gaussians::new(to_mat(&mean)?, to_mat(&var)?)?, to_mat(&z)?);
    let kernel = kernel.0.clone();
    rule.check(&*kernel, q.dim())?;
    let psi = work::run(py, move || rule.psi(&*kernel, &q, &z))?;
    Ok((psi.psi0, to_array(py, psi.psi1)?, to_array(py, psi.psi2)?))
}
