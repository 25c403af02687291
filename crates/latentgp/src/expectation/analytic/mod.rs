//! Closed forms, for kernels that are sums of products of Gaussian factors and monomials.
//!
//! With one-dimensional factors and independent Gaussian inputs every expectation of a term, or of a pair
//! of terms t (at z) and u (at z'), is a product over the dimensions. With a = 1/ℓ_t² and b = 1/ℓ_u² (0
//! where a term has no Gaussian factor in that dimension), D = 1/(1 + (a+b)S), δ = z − μ, δ' = z' − μ:
//!
//! ```text
//! E[exp(−a(x−z)²/2 − b(x−z')²/2) xᵏ] = √D exp(−½ D (aδ² + bδ'² + S ab (δ−δ')²)) · mₖ
//! m₀ = 1     m₁ = m̃ = μ + DS(aδ + bδ')     m₂ = m̃² + DS
//! ```
//!
//! Pairs of pure Gaussians ([`gauss`]), which an rbf kernel needs, go one M×M [`tile`] a point, a matrix
//! product and a vectorised exp; what has monomials ([`moments`]) takes a plain loop.

pub(super) mod correlated;
mod gauss;
mod gauss_adjoint;
mod moments;
mod pair;
mod plan;
mod sums;
mod tile;

use super::{
    Back, BackY, Cost, Expectation, Gaussians, Psi, PsiGrad, PsiY, check_outputs, project, project_and_back,
};
use crate::blocks::{self, part_rows};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, Term};
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;
use pair::{Factor, Pair};
use plan::Plan;
use sums::{MOST_KEPT, backward_whole, backward_y, cost, forward, is_narrow, psi_y};

/// Ψ-statistics in closed form: rbf, linear, constant, white, all sums of them (cross terms included) and
/// products of them on separate columns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Analytic;

impl Expectation for Analytic {
    fn psi(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat) -> Result<Psi> {
        Ok(forward(&Plan::new(kernel, q, z)?, false).0)
    }

    fn psi_and_back<'a>(
        &'a self,
        kernel: &'a dyn Kernel,
        q: &'a Gaussians,
        z: &'a Mat,
    ) -> Result<(Psi, Back<'a>)> {
        let plan = Plan::new(kernel, q, z)?;
        let (psi, kept) = forward(&plan, plan.values(q.n()) <= MOST_KEPT);
        let back = move |bar: &Psi, grad: PsiGrad<'_>| {
            backward_whole(&plan, &kept, bar, grad);
            Ok(())
        };
        Ok((psi, Box::new(back)))
    }

    fn psi_y(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat, y: &Mat) -> Result<PsiY> {
        check_outputs(q, y)?;
        match is_narrow(q, z, y) {
            true => Ok(psi_y(&Plan::new(kernel, q, z)?, y, false).0),
            false => Ok(project(self.psi(kernel, q, z)?, y)),
        }
    }

    fn psi_y_and_back<'a>(
        &'a self,
        kernel: &'a dyn Kernel,
        q: &'a Gaussians,
        z: &'a Mat,
        y: &'a Mat,
    ) -> Result<(PsiY, BackY<'a>)> {
        check_outputs(q, y)?;
        if !is_narrow(q, z, y) {
            return Ok(project_and_back(self.psi_and_back(kernel, q, z)?, y));
        }
        let plan = Plan::new(kernel, q, z)?;
        let (found, kept) = psi_y(&plan, y, plan.values(q.n()) <= MOST_KEPT);
        let back = move |bar: &PsiY, grad: PsiGrad<'_>| {
            backward_y(&plan, &kept, y, bar, grad);
            Ok(())
        };
        Ok((found, Box::new(back)))
    }

    /// For a single Gaussian term, Ψ2 = Σ_n ψ1ψ1ᵀ + cov, with the covariance from an exp(δ) − 1 that loses
    /// nothing where q(x) is narrow: the large first part is whitened before it is squared.
    fn psi_whitened(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat, l: &Cholesky) -> Result<Psi> {
        let plan = Plan::new(kernel, q, z)?;
        let all: Vec<&Factor> = plan.correlated().collect();
        if !self.keeps_digits(kernel, q) || q.n() == 0 {
            let mut psi = self.psi(kernel, q, z)?;
            psi.psi2 = l.whiten(&psi.psi2);
            return Ok(psi);
        }
        let (n, m) = (q.n(), z.rows());
        let mut psi = Psi::zeros(n, m);
        let parts = blocks::each_part(n, cost(q.dim(), m), [&mut psi.psi1], |points, [psi1]| {
            let from = points.start;
            gauss::each_row(&all[0].precision, q, z, points.clone(), &mut |n, values| {
                let row = &mut psi1[(n - from) * m..(n - from + 1) * m];
                row.iter_mut().zip(values).for_each(|(out, v)| *out = all[0].scale * v);
            });
            let (mut covariance, mut square) = (Mat::zeros(m, m), Mat::zeros(m, m));
            gauss::covariances(&all[0].precision, q, z, points.clone(), psi1, &mut covariance);
            let mut white = Mat::from_vec(points.len(), m, psi1.to_vec()).expect("rows × m numbers");
            l.solve_rows(&mut white);
            linalg::add_ata(1.0, &white, &mut square);
            (plan.psi0_of(points), covariance, square)
        });
        let mut covariance = Mat::zeros(m, m);
        for (psi0, cov, square) in &parts {
            psi.psi0 += psi0;
            covariance.add_scaled(1.0, cov);
            psi.psi2.add_scaled(1.0, square);
        }
        linalg::mirror_lower(&mut covariance);
        linalg::mirror_lower(&mut psi.psi2);
        psi.psi2.add_scaled(1.0, &l.whiten(&covariance));
        Ok(psi)
    }

    fn keeps_digits(&self, kernel: &dyn Kernel, _: &Gaussians) -> bool {
        let terms = kernel.closed_form().map(|form| form.terms).unwrap_or_default();
        let mut correlated = terms.iter().filter(|term| !term.white);
        let single = |term: &Term| !term.gauss.is_empty() && term.powers.is_empty();
        correlated.next().is_some_and(single) && correlated.next().is_none()
    }

    fn psi_adjoint(
        &self,
        kernel: &dyn Kernel,
        q: &Gaussians,
        z: &Mat,
        bar: &Psi,
        grad: PsiGrad<'_>,
    ) -> Result<()> {
        backward_whole(&Plan::new(kernel, q, z)?, &[], bar, grad);
        Ok(())
    }

    fn expression(&self) -> String {
        "analytic".into()
    }

    fn cost(&self, n: usize, q: usize, m: usize) -> Cost {
        let parts = n.div_ceil(part_rows(n.max(1))) as f64;
        let numbers = (n * m + m * m) as f64 + parts * (2 * m * m + 4 * m * q) as f64;
        Cost { nodes: 0.0, evaluations: n as f64 * (m * (m + 1) / 2) as f64, bytes: 8.0 * numbers }
    }

    fn check(&self, kernel: &dyn Kernel, _: usize) -> Result<()> {
        match kernel.closed_form() {
            Some(_) => Ok(()),
            None => Err(Error::NoClosedForm { kernel: kernel.expression() }),
        }
    }

    fn nonnegative(&self, _: usize) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Unscented, gradient};
    use super::*;
    use crate::kernel::{self, Rbf};

    /// Points in several parts, the last of which fills no register.
    fn place() -> (Gaussians, Mat) {
        let at = |i: usize, j: usize| ((3 * i + 5 * j) as f64 * 0.37).sin();
        let q = Gaussians {
            mean: Mat::from_fn(151, 3, at),
            var: Mat::from_fn(151, 3, |i, j| 0.1 + at(j, i).powi(2)),
        };
        (q, Mat::from_fn(6, 3, |i, j| at(i + 11, j + 2)))
    }

    #[test]
    fn the_way_back_is_that_of_the_adjoint_to_the_bit() {
        let (q, z) = place();
        for kernel in ["rbf", "rbf + linear", "rbf + constant", "rbf(dims=[0,1]) * linear(dims=[2])"] {
            let kernel = kernel::parse(kernel, 3).unwrap();
            let (psi, back) = Analytic.psi_and_back(&*kernel, &q, &z).unwrap();
            assert_eq!(psi, Analytic.psi(&*kernel, &q, &z).unwrap());
            let kept = gradient(&*kernel, &q, &z, |grad| back(&psi, grad).unwrap());
            let again = gradient(&*kernel, &q, &z, |grad| {
                Analytic.psi_adjoint(&*kernel, &q, &z, &psi, grad).unwrap();
            });
            assert_eq!(kept, again);
        }
        let values = Plan::new(&Rbf::new(3), &q, &z).unwrap().values(q.n());
        assert!(0 < values && values <= MOST_KEPT, "{values}: these were not kept");
    }

    #[test]
    fn outputs_that_meet_rows_of_psi1_part_by_part_give_what_the_whole_gives() {
        let (q, z) = place();
        let near = |a: &[f64], b: &[f64]| crate::check::relative_error(a, b, 1e-3) < 1e-11;
        for (kernel, d) in
            ["rbf", "rbf + linear", "constant", "rbf + white", "rbf(dims=[0,1]) * linear(dims=[2])"]
                .into_iter()
                .flat_map(|kernel| [1, 5, 40].map(|d| (kernel, d)))
        {
            let kernel = kernel::parse(kernel, 3).unwrap();
            let y = Mat::from_fn(q.n(), d, |i, j| ((i + 7 * j) as f64).cos());
            let (fast, there) = Analytic.psi_y_and_back(&*kernel, &q, &z, &y).unwrap();
            let (slow, back) = project_and_back(Analytic.psi_and_back(&*kernel, &q, &z).unwrap(), &y);
            assert_eq!(Analytic.psi_y(&*kernel, &q, &z, &y).unwrap(), fast);
            assert!(near(&[fast.psi0], &[slow.psi0]));
            assert!(near(fast.p.as_slice(), slow.p.as_slice()));
            assert!(near(fast.psi2.as_slice(), slow.psi2.as_slice()));
            let fast = gradient(&*kernel, &q, &z, |grad| there(&slow, grad).unwrap());
            let slow = gradient(&*kernel, &q, &z, |grad| back(&slow, grad).unwrap());
            assert!(near(&fast.0, &slow.0), "{:?} {:?}", fast.0, slow.0);
            for (fast, slow) in [(fast.1, slow.1), (fast.2, slow.2), (fast.3, slow.3)] {
                assert!(near(fast.as_slice(), slow.as_slice()));
            }
        }
        let few = Mat::zeros(q.n() - 1, 2);
        assert!(Analytic.psi_y(&Rbf::new(3), &q, &z, &few).is_err());
        assert!(Unscented.psi_y_and_back(&Rbf::new(3), &q, &z, &few).is_err());
    }

    #[test]
    fn whitening_is_right_for_any_variance_of_the_kernel() {
        let (q, z) = place();
        for variance in [0.01, 1.0, 300.0] {
            let mut kernel = Rbf::new(3);
            kernel.variance.set(variance);
            let mut kzz = Mat::zeros(6, 6);
            kernel.gram(&z, &mut kzz);
            let l = Cholesky::new(&kzz, "Kzz").unwrap();
            let plain = l.whiten(&Analytic.psi(&kernel, &q, &z).unwrap().psi2);
            let white = Analytic.psi_whitened(&kernel, &q, &z, &l).unwrap().psi2;
            let error = crate::check::relative_error(white.as_slice(), plain.as_slice(), 0.0);
            assert!(error < 1e-9, "{variance}: {error:e}");
        }
    }
}
