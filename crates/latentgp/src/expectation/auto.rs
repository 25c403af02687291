//! The default choice, and the rule to judge it by.

use super::{
    AdjointFn, Analytic, Cost, Expectation, GaussHermite, Gaussians, Psi, PsiGrad, PsiInputs, PsiY,
    QuasiMonteCarlo, Unscented,
};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::linalg::Cholesky;
use crate::mat::Mat;

/// [`Analytic`] where the kernel has a closed form, [`Unscented`] elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Auto;

impl Auto {
    /// What it comes to for this kernel.
    pub fn choice(kernel: &dyn Kernel) -> &'static dyn Expectation {
        match kernel.closed_form() {
            Some(_) => &Analytic,
            None => &Unscented,
        }
    }
}

impl Expectation for Auto {
    fn psi(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat) -> Result<Psi> {
        Auto::choice(kernel).psi(kernel, q, z)
    }
    fn psi_whitened(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat, l: &Cholesky) -> Result<Psi> {
        Auto::choice(kernel).psi_whitened(kernel, q, z, l)
    }

    fn keeps_digits(&self, kernel: &dyn Kernel, q: &Gaussians) -> bool {
        Auto::choice(kernel).keeps_digits(kernel, q)
    }
    fn psi_and_back<'g>(&self, of: &PsiInputs<'_>, adjoint: &mut AdjointFn<'_, 'g, Psi>) -> Result<()> {
        Auto::choice(of.kernel).psi_and_back(of, adjoint)
    }
    fn psi_y(&self, of: &PsiInputs<'_>, y: &Mat) -> Result<PsiY> {
        Auto::choice(of.kernel).psi_y(of, y)
    }
    fn psi_y_and_back<'g>(
        &self,
        of: &PsiInputs<'_>,
        y: &Mat,
        adjoint: &mut AdjointFn<'_, 'g, PsiY>,
    ) -> Result<()> {
        Auto::choice(of.kernel).psi_y_and_back(of, y, adjoint)
    }
    fn psi_adjoint(
        &self,
        kernel: &dyn Kernel,
        q: &Gaussians,
        z: &Mat,
        bar: &Psi,
        grad: PsiGrad<'_>,
    ) -> Result<()> {
        Auto::choice(kernel).psi_adjoint(kernel, q, z, bar, grad)
    }
    fn expression(&self) -> String {
        "auto".into()
    }
    fn cost(&self, n: usize, q: usize, m: usize) -> Cost {
        let (closed, nodes) = (Analytic.cost(n, q, m), Unscented.cost(n, q, m));
        if closed.bytes > nodes.bytes { closed } else { nodes }
    }
    fn check(&self, kernel: &dyn Kernel, dim: usize) -> Result<()> {
        Auto::choice(kernel).check(kernel, dim)
    }
    fn nonnegative(&self, _: usize) -> bool {
        true
    }
}

/// A rule that is far more accurate than the usual ones in `dim` dimensions: Gauss-Hermite with as many
/// points as some 20,000 nodes allow, or 8192 Sobol points where that would be fewer than five a dimension.
pub fn stronger(dim: usize) -> Box<dyn Expectation> {
    const NODES: f64 = 20_000.0;
    let points = NODES.powf(1.0 / dim.max(1) as f64 + 1e-9).floor().min(20.0) as usize;
    match points {
        5.. => Box::new(GaussHermite::new(points)),
        _ => Box::new(QuasiMonteCarlo::new(8192, 0)),
    }
}
