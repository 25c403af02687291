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
mod sums;
mod terms;
mod tile;

use super::{AdjointFn, Cost, Expectation, Gaussians, Psi, PsiGrad, PsiInputs, PsiY, project};
use crate::blocks::part_rows;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, Term};
use crate::linalg::Cholesky;
use crate::mat::Mat;
use sums::{MAX_KEPT, backward_whole, backward_y, forward, is_narrow, psi_y, whitened};
use terms::Terms;

/// The term of a kernel that has no other, but white ones, if it is Gaussian.
fn only_gaussian<'t>(terms: impl Iterator<Item = &'t Term>) -> Option<&'t Term> {
    let mut correlated = terms.filter(|term| !term.white);
    let first = correlated.next().filter(|term| !term.gauss.is_empty() && term.powers.is_empty());
    first.filter(|_| correlated.next().is_none())
}

/// Ψ-statistics in closed form: rbf, linear, constant, white, all sums of them (cross terms included) and
/// products of them on separate columns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Analytic;

impl Expectation for Analytic {
    fn psi(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat) -> Result<Psi> {
        Ok(forward(&Terms::new(&PsiInputs::new(kernel, q, z))?, false).0)
    }

    fn psi_and_back<'g>(&self, of: &PsiInputs<'_>, adjoint: &mut AdjointFn<'_, 'g, Psi>) -> Result<()> {
        of.check_factor()?;
        let terms = Terms::new(of)?;
        let keep = terms.values(of.q.n()) <= MAX_KEPT;
        let (psi, kept) = match of.whiten {
            Some(l) => whitened(&terms, l, keep),
            None => forward(&terms, keep),
        };
        let (bar, grad) = adjoint(psi)?;
        backward_whole(&terms, &kept, &bar, grad);
        Ok(())
    }

    fn psi_y(&self, of: &PsiInputs<'_>, y: &Mat) -> Result<PsiY> {
        of.check_outputs(y)?;
        match of.whiten.is_none() && is_narrow(of, y) {
            true => Ok(psi_y(&Terms::new(of)?, y, false).0),
            false => Ok(project(of.psi(self)?, y)),
        }
    }

    fn psi_y_and_back<'g>(
        &self,
        of: &PsiInputs<'_>,
        y: &Mat,
        adjoint: &mut AdjointFn<'_, 'g, PsiY>,
    ) -> Result<()> {
        of.check_outputs(y)?;
        if of.whiten.is_some() || !is_narrow(of, y) {
            return of.project_and_back(self, y, adjoint);
        }
        let terms = Terms::new(of)?;
        let (found, kept) = psi_y(&terms, y, terms.values(of.q.n()) <= MAX_KEPT);
        let (bar, grad) = adjoint(found)?;
        backward_y(&terms, &kept, y, &bar, grad);
        Ok(())
    }

    fn psi_whitened(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat, l: &Cholesky) -> Result<Psi> {
        let of = PsiInputs { kernel, q, z, whiten: Some(l) };
        of.check_factor()?;
        Ok(whitened(&Terms::new(&of)?, l, false).0)
    }

    fn keeps_digits(&self, kernel: &dyn Kernel, _: &Gaussians) -> bool {
        kernel.closed_form().is_some_and(|form| only_gaussian(form.terms.iter()).is_some())
    }

    fn psi_adjoint(
        &self,
        kernel: &dyn Kernel,
        q: &Gaussians,
        z: &Mat,
        bar: &Psi,
        grad: PsiGrad<'_>,
    ) -> Result<()> {
        backward_whole(&Terms::new(&PsiInputs::new(kernel, q, z))?, &[], bar, grad);
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
    use super::super::{Unscented, forward_and_backward, gradient};
    use super::*;
    use crate::kernel::{self, Rbf};

    /// Points in several parts, the last of which fills no register.
    fn inputs() -> (Gaussians, Mat) {
        let at = |i: usize, j: usize| ((3 * i + 5 * j) as f64 * 0.37).sin();
        let q = Gaussians {
            mean: Mat::from_fn(151, 3, at),
            var: Mat::from_fn(151, 3, |i, j| 0.1 + at(j, i).powi(2)),
        };
        (q, Mat::from_fn(6, 3, |i, j| at(i + 11, j + 2)))
    }

    #[test]
    fn the_way_back_is_that_of_the_adjoint_to_the_bit() {
        let (q, z) = inputs();
        for kernel in ["rbf", "rbf + linear", "rbf + constant", "rbf(dims=[0,1]) * linear(dims=[2])"] {
            let kernel = kernel::parse(kernel, 3).unwrap();
            let psi = Analytic.psi(&*kernel, &q, &z).unwrap();
            let of = PsiInputs::new(&*kernel, &q, &z);
            let (found, kept) =
                forward_and_backward(&of, &psi, |adjoint| Analytic.psi_and_back(&of, adjoint));
            assert_eq!(found, psi);
            let again = gradient(&*kernel, &q, &z, |grad| {
                Analytic.psi_adjoint(&*kernel, &q, &z, &psi, grad).unwrap();
            });
            assert_eq!(kept, again);
        }
        let values = Terms::new(&PsiInputs::new(&Rbf::new(3), &q, &z)).unwrap().values(q.n());
        assert!(0 < values && values <= MAX_KEPT, "{values}: these were not kept");
    }

    #[test]
    fn outputs_that_meet_rows_of_psi1_part_by_part_give_what_the_whole_gives() {
        let (q, z) = inputs();
        let near = |a: &[f64], b: &[f64]| crate::check::relative_error(a, b, 1e-3) < 1e-11;
        for (kernel, d) in
            ["rbf", "rbf + linear", "constant", "rbf + white", "rbf(dims=[0,1]) * linear(dims=[2])"]
                .into_iter()
                .flat_map(|kernel| [1, 5, 40].map(|d| (kernel, d)))
        {
            let kernel = kernel::parse(kernel, 3).unwrap();
            let y = Mat::from_fn(q.n(), d, |i, j| ((i + 7 * j) as f64).cos());
            let of = PsiInputs::new(&*kernel, &q, &z);
            let found = Analytic.psi_y(&of, &y).unwrap();
            let (fast, fast_back) =
                forward_and_backward(&of, &found, |adjoint| Analytic.psi_y_and_back(&of, &y, adjoint));
            let (slow, slow_back) =
                forward_and_backward(&of, &found, |adjoint| of.project_and_back(&Analytic, &y, adjoint));
            assert_eq!(found, fast);
            assert!(near(&[fast.psi0], &[slow.psi0]));
            assert!(near(fast.p.as_slice(), slow.p.as_slice()));
            assert!(near(fast.psi2.as_slice(), slow.psi2.as_slice()));
            let (fast, slow) = (fast_back, slow_back);
            assert!(near(&fast.0, &slow.0), "{:?} {:?}", fast.0, slow.0);
            for (fast, slow) in [(fast.1, slow.1), (fast.2, slow.2), (fast.3, slow.3)] {
                assert!(near(fast.as_slice(), slow.as_slice()));
            }
        }
        let (few, kernel) = (Mat::zeros(q.n() - 1, 2), Rbf::new(3));
        let of = PsiInputs::new(&kernel, &q, &z);
        assert!(Analytic.psi_y(&of, &few).is_err());
        let mut never = |_| unreachable!("there is no Ψ");
        assert!(Unscented.psi_y_and_back(&of, &few, &mut never).is_err());
    }

    #[test]
    fn whitening_is_right_for_any_variance_of_the_kernel_and_leads_back() {
        let (q, z) = inputs();
        let near = |a: &[f64], b: &[f64]| crate::check::relative_error(a, b, 1e-3) < 1e-11;
        for (expression, variance) in
            [("rbf", 0.01), ("rbf", 1.0), ("rbf", 300.0), ("rbf + white", 2.0), ("rbf + linear", 0.5)]
        {
            let text = expression.replace("rbf", &format!("rbf(variance={variance})"));
            let kernel = kernel::parse(&text, 3).unwrap();
            let mut kzz = Mat::zeros(6, 6);
            kernel.gram(&z, &mut kzz);
            let l = Cholesky::new(&kzz, "Kzz").unwrap();
            let plain = Analytic.psi(&*kernel, &q, &z).unwrap();
            let white = Analytic.psi_whitened(&*kernel, &q, &z, &l).unwrap();
            let whole = l.whiten(&plain.psi2);
            let error = crate::check::relative_error(white.psi2.as_slice(), whole.as_slice(), 0.0);
            assert!(error < 1e-9, "{text}: {error:e}");
            assert!(near(white.psi1.as_slice(), plain.psi1.as_slice()), "{text}");
            let of = PsiInputs { whiten: Some(&l), ..PsiInputs::new(&*kernel, &q, &z) };
            let (found, kept) =
                forward_and_backward(&of, &plain, |adjoint| Analytic.psi_and_back(&of, adjoint));
            assert_eq!(found, white);
            let again = gradient(&*kernel, &q, &z, |grad| {
                Analytic.psi_adjoint(&*kernel, &q, &z, &plain, grad).unwrap();
            });
            assert!(near(&kept.0, &again.0), "{text}: {:?} {:?}", kept.0, again.0);
            for (kept, again) in [(kept.1, again.1), (kept.2, again.2), (kept.3, again.3)] {
                assert!(near(kept.as_slice(), again.as_slice()), "{text}");
            }
        }
    }

    #[test]
    fn far_points_and_tiny_kernels_are_as_right_as_near_ones() {
        let far = [40.0, 80.0, 200.0, -1e4];
        let mean = Mat::from_fn(9, 1, |i, _| far.get(i).copied().unwrap_or(0.1 * i as f64));
        let q = Gaussians::new(mean, Mat::filled(9, 1, 0.3)).unwrap();
        let z = Mat::from_fn(3, 1, |i, _| 0.4 * i as f64);
        for variance in [1.0, 1e-140] {
            let mut kernel = Rbf::new(1);
            kernel.variance.set(variance);
            let mut kzz = Mat::zeros(3, 3);
            kernel.gram(&z, &mut kzz);
            let l = Cholesky::new(&kzz, "Kzz").unwrap();
            let plain = Analytic.psi(&kernel, &q, &z).unwrap();
            let of = PsiInputs { whiten: Some(&l), ..PsiInputs::new(&kernel, &q, &z) };
            let (psi, got) = forward_and_backward(&of, &plain, |adjoint| Analytic.psi_and_back(&of, adjoint));
            let near = |a: &[f64], b: &[f64]| crate::check::relative_error(a, b, 0.0) < 1e-9;
            assert!(near(psi.psi2.as_slice(), l.whiten(&plain.psi2).as_slice()), "{variance}");
            let again = gradient(&kernel, &q, &z, |grad| {
                Analytic.psi_adjoint(&kernel, &q, &z, &plain, grad).unwrap();
            });
            assert!(near(&got.0, &again.0) && near(got.1.as_slice(), again.1.as_slice()), "{variance}");
            assert!(near(got.2.as_slice(), again.2.as_slice()) && near(got.3.as_slice(), again.3.as_slice()));
        }
    }

    #[test]
    fn a_factor_of_another_size_is_refused() {
        let (q, z) = inputs();
        let l = Cholesky::new(&Mat::eye(5), "Kzz").unwrap();
        for rule in [&Analytic as &dyn Expectation, &Unscented, &super::super::GaussHermite::new(2)] {
            let kernel = Rbf::new(3);
            assert!(rule.psi_whitened(&kernel, &q, &z, &l).is_err());
            let of = PsiInputs { whiten: Some(&l), ..PsiInputs::new(&kernel, &q, &z) };
            let mut never = |_| unreachable!("there is no Ψ");
            assert!(rule.psi_and_back(&of, &mut never).is_err());
        }
    }
}
