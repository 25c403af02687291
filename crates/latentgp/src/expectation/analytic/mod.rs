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
mod tile;

use super::{
    Back, BackY, Cost, Expectation, Gaussians, Psi, PsiGrad, PsiY, check_outputs, project, project_and_back,
};
use crate::blocks::{self, part_rows};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, Term};
use crate::linalg::tall::{self, Packed};
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;
use crate::scratch::{self, Scratch};
use pair::{Factor, Pair};
use plan::{Kept, PartBar, Plan};
use std::ops::Range;

/// Ψ-statistics in closed form: rbf, linear, constant, white, all sums of them (cross terms included) and
/// products of them on separate columns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Analytic;

/// Operations a point, roughly: a pair's exponential and the product before it.
fn cost(dim: usize, m: usize) -> usize {
    m * (m + 1) / 2 * (8 + dim)
}

/// So many exponentials, 16 MB, are kept for the way back: what fits the last cache is sooner read than computed again, and
/// memory stays O(NM + M²) where there are more.
const MOST_KEPT: usize = 1 << 21;

/// Ψ of all points, and what each part kept.
fn forward(plan: &Plan<'_>, keep: bool) -> (Psi, Vec<Kept>) {
    let (n, m, dim) = (plan.q.n(), plan.z.rows(), plan.q.dim());
    if n == 0 || m == 0 {
        return (Psi::zeros(n, m), Vec::new());
    }
    let mut psi = Psi { psi0: 0.0, psi1: scratch::any(n, m), psi2: Mat::zeros(m, m) };
    let parts = blocks::each_part(n, cost(dim, m), [&mut psi.psi1], |points, [psi1]| {
        psi1.fill(0.0);
        plan.forward(points, psi1, keep)
    });
    let mut all = Vec::with_capacity(parts.len());
    for (psi0, psi2, kept) in parts {
        psi.psi0 += psi0;
        psi.psi2.add_scaled(1.0, &psi2);
        all.push(kept);
    }
    linalg::mirror_lower(&mut psi.psi2);
    (psi, all)
}

/// Adds the gradient, from what each part kept. `psi1_bar` writes the rows of Ψ̄1 of some points.
fn backward(
    plan: &Plan<'_>,
    kept: &[Kept],
    (psi0, psi2): (f64, &Mat),
    psi1_bar: impl Fn(Range<usize>, &mut [f64]) + Sync,
    grad: PsiGrad<'_>,
) {
    let (n, m, dim) = (plan.q.n(), plan.z.rows(), plan.q.dim());
    if n == 0 || m == 0 || dim == 0 {
        return;
    }
    let (rows, weights) = (part_rows(n), plan.weights(psi2));
    let parts = blocks::each_part(n, 3 * cost(dim, m), [grad.mean, grad.var], |points, [mean, var]| {
        let mut psi1 = Scratch::take(points.len() * m);
        psi1_bar(points.clone(), &mut psi1);
        let bar = PartBar { psi0, psi1: &psi1, psi2, weights: &weights };
        let kept = kept.get(points.start / rows);
        plan.backward(points, bar, mean, var, kept)
    });
    for part in &parts {
        grad.theta.iter_mut().zip(&part.theta).for_each(|(a, b)| *a += b);
        grad.z.add_scaled(1.0, &part.z);
    }
}

/// The same, with Ψ̄1 as a whole.
fn backward_whole(plan: &Plan<'_>, kept: &[Kept], bar: &Psi, grad: PsiGrad<'_>) {
    let m = plan.z.rows();
    let rows = |points: Range<usize>, out: &mut [f64]| {
        out.copy_from_slice(&bar.psi1.as_slice()[points.start * m..points.end * m]);
    };
    backward(plan, kept, (bar.psi0, &bar.psi2), rows, grad);
}

/// So many numbers of P, 128 KB, stay in a cache near each core while they are summed.
const MOST_P: usize = 1 << 14;

/// Whether rows of Y meet those of Ψ1 part by part.
fn is_narrow(q: &Gaussians, z: &Mat, y: &Mat) -> bool {
    q.n() > 0 && (1..=MOST_P).contains(&(z.rows() * y.cols()))
}

/// Ψ0, P = Ψ1ᵀY and Ψ2 of all points, and what each part kept: rows of Y meet those of Ψ1 part by part.
fn psi_y(plan: &Plan<'_>, y: &Mat, keep: bool) -> (PsiY, Vec<Kept>) {
    let (n, m, dim, d) = (plan.q.n(), plan.z.rows(), plan.q.dim(), y.cols());
    let one = |points: Range<usize>| {
        let mut psi1 = Scratch::take(points.len() * m);
        psi1.fill(0.0);
        let (psi0, psi2, kept) = plan.forward(points.clone(), &mut psi1, keep);
        let p = tall::mul_tn(&psi1, m, &y.as_slice()[points.start * d..points.end * d], d, 0..d);
        (PsiY { psi0, p, psi2 }, vec![kept])
    };
    let add = |(sum, kept): &mut (PsiY, Vec<Kept>), (mut other, mut more): (PsiY, Vec<Kept>)| {
        sum.psi0 += other.psi0;
        sum.p.add_scaled(1.0, &other.p);
        sum.psi2.add_scaled(1.0, &other.psi2);
        scratch::give(&mut other.p);
        kept.append(&mut more);
    };
    let (mut sum, kept) = blocks::sum_parts(n, cost(dim, m) + m * d / 4, one, add);
    linalg::mirror_lower(&mut sum.psi2);
    (sum, kept)
}

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
            debug_assert_eq!((bar.p.rows(), bar.p.cols()), (plan.z.rows(), y.cols()));
            let (packed, d) = (Packed::new(&bar.p), y.cols());
            let rows = |points: Range<usize>, out: &mut [f64]| {
                packed.mul(1.0, &y.as_slice()[points.start * d..points.end * d], out);
            };
            backward(&plan, &kept, (bar.psi0, &bar.psi2), rows, grad);
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
