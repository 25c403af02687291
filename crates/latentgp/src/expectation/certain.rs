//! Inputs without uncertainty, and tables of which some rows have it.
//!
//! At S = 0 the Ψ-statistics are Ψ0 = Σ_n k(x_n, x_n), Ψ1 = Kxz and Ψ2 = KzxKxz: one node at the mean.

use super::{AdjointFn, Cost, Expectation, Gaussians, Psi, PsiGrad, PsiInputs, Rule};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::linalg::Cholesky;
use crate::mat::Mat;
use crate::scratch::Pooled;

/// One node at the mean: S is taken for zero, whatever it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Certain;

impl Rule for Certain {
    fn expression(&self) -> String {
        "certain".into()
    }
    fn count(&self, _: usize) -> f64 {
        1.0
    }
    fn weights(&self, _: usize) -> Vec<f64> {
        Pooled::filled(1, 1.0).into_vec()
    }
    fn nodes(&self, dim: usize) -> Mat {
        Mat::zeros(1, dim)
    }
}

/// [`Certain`] for the rows whose variances are all zero, another expectation for the rest.
#[derive(Clone, Debug)]
pub struct Mixed(pub Box<dyn Expectation>);

fn is_certain(q: &Gaussians, n: usize) -> bool {
    q.var.row(n).iter().all(|v| *v == 0.0)
}

/// The rows without uncertainty, and the others.
fn split(q: &Gaussians) -> [Vec<usize>; 2] {
    let (certain, rest) = (0..q.n()).partition(|&n| is_certain(q, n));
    [certain, rest]
}

impl Mixed {
    fn of(&self, part: usize) -> &dyn Expectation {
        if part == 0 { &Certain } else { &*self.0 }
    }

    /// The expectation of all rows, where one serves them all.
    fn whole(&self, q: &Gaussians) -> Option<&dyn Expectation> {
        let alike = |certain: bool| (0..q.n()).all(|n| is_certain(q, n) == certain);
        [true, false].into_iter().position(alike).map(|part| self.of(part))
    }

    /// Ψ of both parts together, each by `one`.
    fn gather(
        &self,
        q: &Gaussians,
        m: usize,
        one: impl Fn(&dyn Expectation, &Gaussians) -> Result<Psi>,
    ) -> Result<Psi> {
        if let Some(whole) = self.whole(q) {
            return one(whole, q);
        }
        let parts = split(q);
        let mut all = Psi::zeros(q.n(), m);
        for (i, rows) in parts.iter().enumerate() {
            let own = one(self.of(i), &q.select_rows(rows))?;
            all.psi0 += own.psi0;
            all.psi2.add_scaled(1.0, &own.psi2);
            rows.iter()
                .enumerate()
                .for_each(|(at, &n)| all.psi1.row_mut(n).copy_from_slice(own.psi1.row(at)));
        }
        Ok(all)
    }
}

impl Expectation for Mixed {
    fn psi(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat) -> Result<Psi> {
        self.gather(q, z.rows(), |by, q| by.psi(kernel, q, z))
    }

    fn psi_whitened(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat, l: &Cholesky) -> Result<Psi> {
        self.gather(q, z.rows(), |by, q| by.psi_whitened(kernel, q, z, l))
    }

    fn keeps_digits(&self, kernel: &dyn Kernel, q: &Gaussians) -> bool {
        (0..q.n()).all(|n| is_certain(q, n)) || self.0.keeps_digits(kernel, q)
    }

    fn psi_and_back<'g>(&self, of: &PsiInputs<'_>, adjoint: &mut AdjointFn<'_, 'g, Psi>) -> Result<()> {
        match self.whole(of.q) {
            Some(whole) => whole.psi_and_back(of, adjoint),
            None => of.psi_and_back_anew(self, adjoint),
        }
    }

    fn psi_adjoint(
        &self,
        kernel: &dyn Kernel,
        q: &Gaussians,
        z: &Mat,
        bar: &Psi,
        grad: PsiGrad<'_>,
    ) -> Result<()> {
        if let Some(whole) = self.whole(q) {
            return whole.psi_adjoint(kernel, q, z, bar, grad);
        }
        let parts = split(q);
        for (i, rows) in parts.iter().enumerate() {
            let own = Psi { psi0: bar.psi0, psi1: bar.psi1.select_rows(rows), psi2: bar.psi2.clone() };
            let (mut mean, mut var) = (Mat::zeros(rows.len(), q.dim()), Mat::zeros(rows.len(), q.dim()));
            let to = PsiGrad { theta: grad.theta, z: grad.z, mean: &mut mean, var: &mut var };
            self.of(i).psi_adjoint(kernel, &q.select_rows(rows), z, &own, to)?;
            for (at, &n) in rows.iter().enumerate() {
                let add = |to: &mut [f64], from: &[f64]| to.iter_mut().zip(from).for_each(|(a, b)| *a += b);
                add(grad.mean.row_mut(n), mean.row(at));
                add(grad.var.row_mut(n), var.row(at));
            }
        }
        Ok(())
    }

    fn expression(&self) -> String {
        self.0.expression()
    }
    fn cost(&self, n: usize, q: usize, m: usize) -> Cost {
        self.0.cost(n, q, m)
    }
    fn check(&self, kernel: &dyn Kernel, dim: usize) -> Result<()> {
        self.0.check(kernel, dim)
    }
    fn nonnegative(&self, dim: usize) -> bool {
        self.0.nonnegative(dim)
    }
    fn set_max_nodes(&mut self, limit: usize) {
        self.0.set_max_nodes(limit);
    }
    fn max_nodes(&self) -> Option<usize> {
        self.0.max_nodes()
    }
    fn renew(&mut self, step: u64) {
        self.0.renew(step);
    }
    fn step(&self) -> u64 {
        self.0.step()
    }
    fn is_stochastic(&self) -> bool {
        self.0.is_stochastic()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{psi_adjoint, relative_error};
    use crate::expectation::{Analytic, Unscented};
    use crate::kernel::{Linear, Matern32, Rbf};
    use crate::linalg;

    fn points() -> (Mat, Mat) {
        let x = Mat::from_fn(7, 2, |i, j| (2.3 * i as f64 + 1.1 * j as f64).sin());
        (x, Mat::from_fn(4, 2, |i, j| (1.3 * i as f64 - 0.7 * j as f64).cos()))
    }

    #[test]
    fn certain_points_have_the_kernel_matrices() {
        let (x, z) = points();
        let kernel = Matern32::new(2) + Linear::new(2);
        let psi = Certain.psi(&kernel, &Gaussians::certain(x.clone()), &z).unwrap();
        let mut kxz = Mat::zeros(7, 4);
        kernel.cross(&x, &z, &mut kxz);
        assert!(relative_error(psi.psi1.as_slice(), kxz.as_slice(), 0.0) < 1e-15);
        assert!(relative_error(psi.psi2.as_slice(), linalg::mul_tn(&kxz, &kxz).as_slice(), 0.0) < 1e-14);
        let narrow = Gaussians::new(x.clone(), Mat::filled(7, 2, 1e-14)).unwrap();
        let exact = Analytic.psi(&Rbf::new(2), &narrow, &z).unwrap();
        let limit = Certain.psi(&Rbf::new(2), &narrow, &z).unwrap();
        assert!(relative_error(exact.psi2.as_slice(), limit.psi2.as_slice(), 0.0) < 1e-12);
    }

    #[test]
    fn a_mixed_table_is_the_sum_of_its_parts() {
        let (x, z) = points();
        let var = Mat::from_fn(7, 2, |i, j| if i % 3 == 0 { 0.0 } else { 0.1 + 0.05 * (i + j) as f64 });
        let q = Gaussians::new(x, var).unwrap();
        let kernel = Rbf::new(2);
        let mixed = Mixed(Box::new(Analytic)).psi(&kernel, &q, &z).unwrap();
        let whole = Analytic.psi(&kernel, &q, &z).unwrap();
        assert!((mixed.psi0 - whole.psi0).abs() < 1e-12);
        assert!(relative_error(mixed.psi1.as_slice(), whole.psi1.as_slice(), 0.0) < 1e-12);
        assert!(relative_error(mixed.psi2.as_slice(), whole.psi2.as_slice(), 0.0) < 1e-12);
        let positive = Gaussians::new(q.mean.clone(), q.var.map(|v| v + 0.1)).unwrap();
        psi_adjoint(&Mixed(Box::new(Unscented)), &kernel, &positive, &z, 1e-7).unwrap();
    }
}
