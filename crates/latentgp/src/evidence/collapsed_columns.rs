//! The collapsed bound of outputs that have a noise of their own each.
//!
//! Outputs observed at the same rows share A = L⁻¹Ψ2L⁻ᵀ = UΛUᵀ, of which one eigendecomposition serves all of them. With
//! B_d = I + β_dA, b_id = 1 + β_dλ_i, W = UᵀL⁻¹P, v_d = B_d⁻¹L⁻¹p_d = Uṽ_d, ṽ_id = w_id/b_id and α_d = β_dL⁻ᵀv_d:
//!
//! ```text
//! F   = Σ_d [N/2·log(β_d/2π) − ½Σ_i log b_id − β_d/2·y_dᵀy_d + β_d²/2·Σ_i w_id²/b_id − β_d/2·(Ψ0 − tr A)]
//! Ψ̄0 = −½Σ_d β_d     p̄_d = β_dα_d     Ψ̄2 = L⁻ᵀU(½diag Σ_d β_d(1 − 1/b_id) − ½Σ_d β_d³ṽ_dṽ_dᵀ)UᵀL⁻¹
//! K̄zz = L⁻ᵀU(½diag Σ_d (1 − 1/b_id) − ½Σ_d β_d²ṽ_dṽ_dᵀ − ½Σ_d β_d·Λ)UᵀL⁻¹
//! β̄_d = N/2β_d − y_dᵀy_d/2 − ½(Ψ0 − tr A + Σ_i λ_i/b_id) + β_d·Σ_i b_idṽ_id² − β_d²/2·Σ_i λ_iṽ_id²
//! ```
//!
//! A column costs O(M) in determinants and solves, besides the products that it costs with one noise for all. Equal β_d give
//! [`collapsed`](super::collapsed()).

use super::collapsed::check_digits;
use crate::error::{Error, Result};
use crate::linalg::{self, Cholesky, Op};
use crate::mat::Mat;

/// What the bound is made of, for outputs that were observed at the same rows.
#[derive(Clone, Copy, Debug)]
pub struct CollapseColumns<'a> {
    /// N, the rows observed.
    pub rows: usize,
    /// y_dᵀy_d of every output, or Σ(μ² + λ) of uncertain ones.
    pub yy: &'a [f64],
    /// P = Ψ1ᵀY, M×D.
    pub p: &'a Mat,
    /// Ψ0.
    pub psi0: f64,
    /// A = L⁻¹Ψ2L⁻ᵀ.
    pub a: &'a Mat,
    /// The factor of Kzz.
    pub kzz: &'a Cholesky,
    /// β_d = 1/σ_d².
    pub beta: &'a [f64],
    /// Added to the diagonals of all B_d.
    pub jitter: f64,
}

/// The bound, its adjoints, and the posterior of the inducing values.
#[derive(Clone, Debug)]
pub struct CollapsedColumns {
    /// F.
    pub value: f64,
    /// α, M×D: the posterior mean at z is k(z, Z)α, and p̄_d = β_dα_d.
    pub alpha: Mat,
    lambda: Vec<f64>,
    u: Mat,
    /// Ṽ, M×D.
    v: Mat,
}

/// ∂F; p̄_d = β_dα_d is [`CollapsedColumns::alpha`].
#[derive(Clone, Debug)]
pub struct CollapsedColumnsBar {
    /// Ψ̄0.
    pub psi0: f64,
    /// Ψ̄2.
    pub psi2: Mat,
    /// K̄zz.
    pub kzz: Mat,
    /// β̄_d at constant P.
    pub beta: Vec<f64>,
    /// ∂F/∂ln v of a factor v of the kernel, as in [`CollapsedBar`](super::CollapsedBar).
    pub factor: f64,
}

impl CollapseColumns<'_> {
    /// Errs when rounding has taken the digits of the bound, as [`Collapse::check_digits`](super::Collapse::check_digits)
    /// does.
    pub fn check_digits(&self, nonnegative: impl FnOnce() -> bool) -> Result<()> {
        let beta = self.beta.iter().copied().fold(0.0, f64::max);
        check_digits(beta * (self.a.trace() - self.psi0), self.rows, self.kzz, nonnegative)
    }
}

/// The bound. Errs when shapes disagree, a B_d is not positive definite, which negative weights in Ψ2 or a huge β bring
/// about, or the value is not finite.
pub fn collapsed_columns(of: &CollapseColumns<'_>) -> Result<CollapsedColumns> {
    let d = of.p.cols();
    for (what, found) in [("precisions of the noise", of.beta.len()), ("squares of the outputs", of.yy.len())]
    {
        if found != d {
            return Err(Error::shape(what, d, found));
        }
    }
    let (lambda, u) = linalg::eigh(of.a)?;
    let mut white = of.p.clone();
    of.kzz.solve_l(&mut white);
    let mut v = linalg::mul_tn(&u, &white);
    let (mut value, trace) = (0.0, of.a.trace());
    for (j, (&beta, &yy)) in of.beta.iter().zip(of.yy).enumerate() {
        let (mut log_det, mut fit) = (0.0, 0.0);
        for (i, lambda) in lambda.iter().enumerate() {
            let (b, w) = (1.0 + of.jitter + beta * lambda, v[(i, j)]);
            if b <= 0.0 {
                return Err(Error::NotPositiveDefinite {
                    what: "I + βL⁻¹Ψ2L⁻ᵀ".into(), jitter: of.jitter
                });
            }
            log_det += b.ln();
            fit += w * w / b;
            v[(i, j)] = w / b;
        }
        value += 0.5 * of.rows as f64 * (beta / std::f64::consts::TAU).ln() - 0.5 * log_det - 0.5 * beta * yy
            + 0.5 * beta * beta * fit
            - 0.5 * beta * (of.psi0 - trace);
    }
    if !value.is_finite() {
        return Err(Error::not_finite("the evidence bound"));
    }
    let mut alpha = linalg::mul(&u, &v);
    of.kzz.solve_lt(&mut alpha);
    (0..alpha.rows()).for_each(|i| alpha.row_mut(i).iter_mut().zip(of.beta).for_each(|(a, beta)| *a *= beta));
    Ok(CollapsedColumns { value, alpha, lambda, u, v })
}

impl CollapsedColumns {
    /// The adjoints.
    pub fn bar(&self, of: &CollapseColumns<'_>) -> CollapsedColumnsBar {
        let (m, t, trace) = (self.lambda.len(), 1.0 + of.jitter, of.a.trace());
        let total: f64 = of.beta.iter().sum();
        let weighted = |power: i32| {
            let scale: Vec<f64> = of.beta.iter().map(|beta| beta.powi(power)).collect();
            let scaled = Mat::from_fn(m, scale.len(), |i, j| scale[j] * self.v[(i, j)]);
            let mut sum = linalg::mul_nt(&scaled, &self.v);
            sum.scale(-0.5);
            sum
        };
        let (mut psi2, mut kzz) = (weighted(3), weighted(2));
        kzz.scale(t);
        let mut beta_bar = Vec::with_capacity(of.beta.len());
        for (j, (&beta, &yy)) in of.beta.iter().zip(of.yy).enumerate() {
            let (mut shrunk, mut vbv, mut vav) = (0.0, 0.0, 0.0);
            for (i, &lambda) in self.lambda.iter().enumerate() {
                let (b, v) = (t + beta * lambda, self.v[(i, j)]);
                psi2[(i, i)] += 0.5 * beta * (of.jitter + beta * lambda) / b;
                kzz[(i, i)] += 0.5 * beta * lambda / b;
                shrunk += lambda / b;
                vbv += b * v * v;
                vav += lambda * v * v;
            }
            let own = 0.5 * of.rows as f64 / beta - 0.5 * yy - 0.5 * (of.psi0 - trace + shrunk);
            beta_bar.push(own + beta * vbv - 0.5 * beta * beta * vav);
        }
        (0..m).for_each(|i| kzz[(i, i)] -= 0.5 * total * self.lambda[i]);
        let psi0 = -0.5 * total;
        let mut factor = psi0 * of.psi0 + kzz.trace();
        for (i, &lambda) in self.lambda.iter().enumerate() {
            factor += 2.0 * lambda * psi2[(i, i)];
            for (j, &beta) in of.beta.iter().enumerate() {
                factor += (beta * self.v[(i, j)]).powi(2) * (t + beta * lambda);
            }
        }
        let turned = |inner: &Mat| {
            let mut out = linalg::product(&linalg::mul(&self.u, inner), Op::N, &self.u, Op::T);
            linalg::symmetrize(&mut out);
            of.kzz.unwhiten(&out)
        };
        CollapsedColumnsBar { psi0, psi2: turned(&psi2), kzz: turned(&kzz), beta: beta_bar, factor }
    }

    /// U and the c_id of C_d = I − B_d⁻¹ = U diag(c_d) Uᵀ, M×D, of the predictive variance k∗∗ − k∗ L⁻ᵀC_dL⁻¹ k∗ᵀ.
    pub fn into_c(self, of: &CollapseColumns<'_>) -> (Mat, Mat, Mat) {
        let c = Mat::from_fn(self.lambda.len(), of.beta.len(), |i, j| {
            let above = of.jitter + of.beta[j] * self.lambda[i];
            above / (1.0 + above)
        });
        (self.alpha, self.u, c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{differences, relative_error};
    use crate::evidence::{Collapse, collapsed};

    const N: usize = 7;
    const M: usize = 4;
    const D: usize = 3;

    struct Problem {
        y: Mat,
        psi0: f64,
        psi1: Mat,
        psi2: Mat,
        kzz: Mat,
        beta: Vec<f64>,
        jitter: f64,
    }

    fn problem() -> Problem {
        let wave = |i: usize, j: usize| (1.7 * i as f64 + 0.9 * j as f64 + 0.3).sin();
        let psi1 = Mat::from_fn(N, M, wave);
        let mut psi2 = linalg::mul_tn(&psi1, &psi1);
        (0..M).for_each(|i| psi2[(i, i)] += 0.3);
        let root = Mat::from_fn(5, M, |i, j| wave(j, i));
        let mut kzz = linalg::mul_tn(&root, &root);
        (0..M).for_each(|i| kzz[(i, i)] += 1.0);
        let y = Mat::from_fn(N, D, |i, j| (2.1 * i as f64 - 0.8 * j as f64).cos());
        Problem { y, psi0: 9.0, psi1, psi2, kzz, beta: vec![7.0, 0.4, 31.0], jitter: 1e-3 }
    }

    impl Problem {
        fn with<T>(&self, work: impl FnOnce(&CollapseColumns<'_>) -> T) -> T {
            let kzz = Cholesky::new(&self.kzz, "Kzz").unwrap();
            let (a, p) = (kzz.whiten(&self.psi2), linalg::mul_tn(&self.psi1, &self.y));
            let yy: Vec<f64> = (0..D).map(|j| self.y.col(j).iter().map(|v| v * v).sum()).collect();
            work(&CollapseColumns {
                rows: N,
                yy: &yy,
                p: &p,
                psi0: self.psi0,
                a: &a,
                kzz: &kzz,
                beta: &self.beta,
                jitter: self.jitter,
            })
        }

        fn value(&self) -> f64 {
            self.with(|of| collapsed_columns(of).unwrap().value)
        }

        /// The bound of some outputs with one noise: that of the first.
        fn shared<T>(&self, columns: &[usize], then: impl FnOnce(&Collapse<'_>) -> T) -> T {
            self.with(|of| {
                let p = of.p.select_cols(columns);
                then(&Collapse {
                    rows: N,
                    outputs: columns.len(),
                    yy: columns.iter().map(|&j| of.yy[j]).sum(),
                    p: &p,
                    psi0: of.psi0,
                    a: of.a,
                    kzz: of.kzz,
                    beta: of.beta[columns[0]],
                    jitter: of.jitter,
                })
            })
        }
    }

    fn close(ours: &Mat, theirs: &Mat) {
        assert!(relative_error(ours.as_slice(), theirs.as_slice(), 1e-3) < 1e-10);
    }

    #[test]
    fn adjoints_agree_with_differences() {
        let of = problem();
        let ours = of.with(|c| {
            let found = collapsed_columns(c).unwrap();
            let bar = found.bar(c);
            // P̄ pulled to Ψ1, and what β has of P none.
            let p_bar = Mat::from_fn(M, D, |i, j| of.beta[j] * found.alpha[(i, j)]);
            let psi1 = linalg::product(&of.y, Op::N, &p_bar, Op::T);
            [&[bar.psi0], psi1.as_slice(), bar.psi2.as_slice(), bar.kzz.as_slice(), &bar.beta[..]].concat()
        });
        let u =
            [&[of.psi0], of.psi1.as_slice(), of.psi2.as_slice(), of.kzz.as_slice(), &of.beta[..]].concat();
        let slow = differences(&u, |u| {
            let mut moved = problem();
            moved.psi0 = u[0];
            let mut at = 1;
            for to in [&mut moved.psi1, &mut moved.psi2, &mut moved.kzz] {
                let len = to.len();
                to.as_mut_slice().copy_from_slice(&u[at..at + len]);
                at += len;
            }
            linalg::symmetrize(&mut moved.psi2);
            linalg::symmetrize(&mut moved.kzz);
            moved.beta.copy_from_slice(&u[at..]);
            moved.value()
        });
        assert!(relative_error(&ours, &slow, 1e-3) < 1e-8);
    }

    #[test]
    fn a_factor_of_the_kernel_has_its_slope() {
        let at = |v: f64| {
            let mut of = problem();
            of.psi0 *= v;
            of.psi1.scale(v);
            of.psi2.scale(v * v);
            of.kzz.scale(v);
            of
        };
        let ours = at(1.0).with(|c| collapsed_columns(c).unwrap().bar(c).factor);
        let slow = differences(&[0.0], |u| at(u[0].exp()).value());
        assert!((ours - slow[0]).abs() < 1e-8 * ours.abs(), "{ours} against {slow:?}");
        let alone: f64 = (0..D).map(|j| at(1.0).shared(&[j], |c| collapsed(c).unwrap().bar(c).factor)).sum();
        assert!((ours - alone).abs() < 1e-10 * ours.abs(), "{ours} against {alone}");
    }

    #[test]
    fn equal_precisions_give_the_bound_of_one_noise() {
        let mut of = problem();
        of.beta.fill(5.0);
        let (value, alpha, bar) = of.shared(&[0, 1, 2], |c| {
            let found = collapsed(c).unwrap();
            (found.value, found.alpha.clone(), found.bar(c))
        });
        of.with(|c| {
            let found = collapsed_columns(c).unwrap();
            let own = found.bar(c);
            assert!((found.value - value).abs() < 1e-10 * value.abs());
            assert!((own.psi0 - bar.psi0).abs() < 1e-10 * bar.psi0.abs());
            assert!((own.beta.iter().sum::<f64>() - bar.beta).abs() < 1e-10 * bar.beta.abs());
            close(&found.alpha, &alpha);
            close(&own.psi2, &bar.psi2);
            close(&own.kzz, &bar.kzz);
        });
    }

    #[test]
    fn each_output_is_a_model_of_its_own() {
        let of = problem();
        let alone: f64 = (0..D).map(|j| of.shared(&[j], |c| collapsed(c).unwrap().value)).sum();
        assert!((alone - of.value()).abs() < 1e-11 * alone.abs());
        of.with(|c| {
            let (alpha, u, weights) = collapsed_columns(c).unwrap().into_c(c);
            for j in 0..D {
                let (own, whole) = of.shared(&[j], |c| {
                    let found = collapsed(c).unwrap();
                    (found.alpha.clone(), found.c())
                });
                close(&alpha.select_cols(&[j]), &own);
                let scaled = Mat::from_fn(M, M, |i, k| u[(i, k)] * weights[(k, j)]);
                close(&linalg::mul_nt(&scaled, &u), &whole);
            }
        });
    }

    #[test]
    fn what_is_not_positive_definite_is_an_error() {
        let mut of = problem();
        (0..M).for_each(|i| of.psi2[(i, i)] -= 40.0);
        let message = of.with(|c| collapsed_columns(c).err().unwrap().to_string());
        assert!(message.contains("I + βL⁻¹Ψ2L⁻ᵀ"), "{message}");
        of.beta.pop();
        assert!(of.with(|c| collapsed_columns(c).is_err()));
    }
}
