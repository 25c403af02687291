//! The collapsed variational bound of Titsias (2009) and Titsias & Lawrence (2010).
//!
//! With Kzz = LLᵀ, A = L⁻¹Ψ2L⁻ᵀ, B = I + βA, P = Ψ1ᵀY, V = B⁻¹L⁻¹P and α = βL⁻ᵀV:
//!
//! ```text
//! F   = ND/2·log(β/2π) − D/2·log|B| − β/2·tr YᵀY + β/2·tr Pᵀα − βD/2·(Ψ0 − tr A)
//! Ψ̄0 = −βD/2     P̄ = βα     Ψ̄2 = L⁻ᵀ(βD/2·(I − B⁻¹) − β³/2·VVᵀ)L⁻¹
//! K̄zz = L⁻ᵀ(D/2·(I − B⁻¹) − β²/2·VVᵀ − βD/2·A)L⁻¹
//! β̄  = ND/2β − tr YᵀY/2 − D/2·(Ψ0 − tr A + tr B⁻¹A) + β·tr VᵀBV − β²/2·tr VᵀAV
//! ```
//!
//! log|Kzz| − log|Kzz + βΨ2| of the usual writing is −log|B|: no small difference of large numbers, and
//! no Kzz⁻¹. Y enters through P and tr YᵀY only, so that a missing cell is a zero in Y and a row less in
//! that output's Ψ0, Ψ2 and N. Outputs with a noise of their own each: [`collapsed_columns`](super::collapsed_columns()).
//!
//! Outputs may themselves be uncertain, q(y_nd) = N(μ_nd, λ_nd), as those of a layer whose outputs are the next one's
//! inputs. With inducing values that do not depend on Y, F is the bound of E[log p(Y)] over q(Y): μ takes the place of Y and
//! Σ(μ² + λ) that of tr YᵀY. It is E[F(Y)] less ½β² Σ λ_nd (Ψ1L⁻ᵀB⁻¹L⁻¹Ψ1ᵀ)_nn, what inducing values of each Y's own
//! would gain.
//!
//! ```text
//! μ̄ = Ψ1P̄ − βμ = β(Ψ1α − μ)     λ̄ = −β/2
//! ```

use crate::error::{Error, Result};
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;

/// What the bound is made of, for outputs that were observed at the same rows.
#[derive(Clone, Copy, Debug)]
pub struct Collapse<'a> {
    /// N, the rows observed.
    pub rows: usize,
    /// D, the outputs.
    pub outputs: usize,
    /// tr YᵀY, or Σ(μ² + λ) of uncertain outputs.
    pub yy: f64,
    /// P = Ψ1ᵀY, or Ψ1ᵀμ. It may have other columns than Y, as long as PPᵀ is the same.
    pub p: &'a Mat,
    /// Ψ0.
    pub psi0: f64,
    /// A = L⁻¹Ψ2L⁻ᵀ.
    pub a: &'a Mat,
    /// The factor of Kzz.
    pub kzz: &'a Cholesky,
    /// β = 1/σ².
    pub beta: f64,
    /// Added to the diagonal of B.
    pub jitter: f64,
}

/// The bound, its adjoints, and the posterior of the inducing values.
#[derive(Clone, Debug)]
pub struct Collapsed {
    /// F.
    pub value: f64,
    /// α = βL⁻ᵀV: the posterior mean at z is k(z, Z)α, and P̄ = βα.
    pub alpha: Mat,
    b_inverse: Mat,
    v: Mat,
    tilt: f64,
}

/// ∂F of the collapsed bound; P̄ = βα is [`Collapsed::alpha`].
#[derive(Clone, Debug)]
pub struct CollapsedBar {
    /// Ψ̄0.
    pub psi0: f64,
    /// Ψ̄2.
    pub psi2: Mat,
    /// K̄zz.
    pub kzz: Mat,
    /// β̄ at constant P.
    pub beta: f64,
    /// ∂F/∂ln v of a factor v of the kernel and of what is added to Kzz, made of whitened matrices alone: where Kzz is nearly
    /// singular, the sum Ψ̄0Ψ0 + ⟨P̄, P⟩ + ⟨Ψ̄2, 2Ψ2⟩ + ⟨K̄zz, Kzz⟩ would lose its digits.
    pub factor: f64,
}

/// Where the adjoints of uncertain outputs are added, both N×D.
pub struct OutputsGrad<'a> {
    /// ∂F/∂μ.
    pub mean: &'a mut Mat,
    /// ∂F/∂λ.
    pub var: &'a mut Mat,
}

/// Adds μ̄ and λ̄ of uncertain outputs with means μ, from Ψ1P̄, both N×D; `beta` is one for all outputs or one for each.
/// A missing cell, NaN in μ, has none.
pub fn outputs_adjoint(mean: &Mat, psi1_p_bar: &Mat, beta: &[f64], grad: OutputsGrad<'_>) {
    let bars = grad.mean.as_mut_slice().iter_mut().zip(grad.var.as_mut_slice());
    // Rows are as long as `beta`, or any number of cells has the only one.
    let cells = mean.as_slice().iter().zip(psi1_p_bar.as_slice()).zip(beta.iter().cycle());
    for (((mean, pulled), beta), (mean_bar, var_bar)) in cells.zip(bars) {
        if !mean.is_nan() {
            *mean_bar += pulled - beta * mean;
            *var_bar -= 0.5 * beta;
        }
    }
}

/// The most by which rounding may take the trace below 0, in nats a cell.
const ROUNDING: f64 = 1e-3;

impl Collapse<'_> {
    /// Errs when rounding has taken the digits of the bound: Ψ0 − tr A, the trace of a conditional covariance, is negative.
    /// Only where all weights are `nonnegative` must it not be.
    ///
    /// Such a bound can grow beyond all limits, and an optimiser would go there.
    pub fn check_digits(&self, nonnegative: impl FnOnce() -> bool) -> Result<()> {
        check_digits(self.beta * (self.a.trace() - self.psi0), self.rows, self.kzz, nonnegative)
    }
}

/// Errs where `excess` = β(tr A − Ψ0) of so many cells is more than rounding can make of a sum that is not positive.
pub(super) fn check_digits(
    excess: f64,
    rows: usize,
    kzz: &Cholesky,
    nonnegative: impl FnOnce() -> bool,
) -> Result<()> {
    if 0.5 * excess > ROUNDING * rows as f64 && nonnegative() {
        let what = "the covariance of the data given the inducing values".into();
        return Err(Error::NotPositiveDefinite { what, jitter: kzz.jitter() });
    }
    Ok(())
}

/// The bound. Errs when B has no Cholesky factor, which negative weights in Ψ2 or a huge β bring about,
/// or when the value is not finite.
pub fn collapsed(of: &Collapse<'_>) -> Result<Collapsed> {
    let (m, d, beta) = (of.a.rows(), of.outputs as f64, of.beta);
    let sum = || {
        let mut b = of.a.map(|a| beta * a);
        (0..m).for_each(|i| b[(i, i)] += 1.0 + of.jitter);
        b
    };
    let b = sum();
    if !b.is_finite() {
        return Err(Error::not_finite("I + βL⁻¹Ψ2L⁻ᵀ"));
    }
    let b = Cholesky::in_place(b, sum, "I + βL⁻¹Ψ2L⁻ᵀ")?;
    let mut v = of.p.clone();
    of.kzz.solve_l(&mut v);
    b.solve_l(&mut v);
    let fit = v.dot(&v);
    b.solve_lt(&mut v);
    let value = 0.5 * of.rows as f64 * d * (beta / std::f64::consts::TAU).ln()
        - 0.5 * d * b.log_det()
        - 0.5 * beta * of.yy
        + 0.5 * beta * beta * fit
        - 0.5 * beta * d * (of.psi0 - of.a.trace());
    if !value.is_finite() {
        return Err(Error::not_finite("the evidence bound"));
    }
    let mut alpha = v.clone();
    of.kzz.solve_lt(&mut alpha);
    alpha.scale(beta);
    let tilt = 1.0 + of.jitter + b.jitter();
    Ok(Collapsed { value, alpha, b_inverse: b.into_inverse(), v, tilt })
}

impl Collapsed {
    /// The adjoints.
    pub fn bar(&self, of: &Collapse<'_>) -> CollapsedBar {
        let (beta, d, m) = (of.beta, of.outputs as f64, of.a.rows());
        let vv = linalg::mul_nt(&self.v, &self.v);
        let (mut psi2, mut kzz) = (Mat::zeros(m, m), Mat::zeros(m, m));
        for i in 0..m {
            for j in 0..m {
                let (eye, inverse) = (f64::from(i == j), self.b_inverse[(i, j)]);
                let (vv, a) = (beta * beta * vv[(i, j)], of.a[(i, j)]);
                psi2[(i, j)] = 0.5 * beta * (d * (eye - inverse) - vv);
                kzz[(i, j)] = 0.5 * (d * (eye - self.tilt * inverse) - self.tilt * vv - beta * d * a);
            }
        }
        let vav = vv.dot(of.a);
        let vbv = self.tilt * vv.trace() + beta * vav;
        let psi0 = -0.5 * beta * d;
        CollapsedBar {
            factor: psi0 * of.psi0 + beta * beta * vbv + 2.0 * psi2.dot(of.a) + kzz.trace(),
            psi0,
            psi2: of.kzz.unwhiten(&psi2),
            kzz: of.kzz.unwhiten(&kzz),
            beta: 0.5 * of.rows as f64 * d / beta
                - 0.5 * of.yy
                - 0.5 * d * (of.psi0 - of.a.trace() + self.b_inverse.dot(of.a))
                + beta * vbv
                - 0.5 * beta * beta * vav,
        }
    }

    /// C = I − B⁻¹, of the predictive variance k∗∗ − k∗ L⁻ᵀCL⁻¹ k∗ᵀ.
    pub fn c(&self) -> Mat {
        let m = self.b_inverse.rows();
        Mat::from_fn(m, m, |i, j| f64::from(i == j) - self.b_inverse[(i, j)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{differences, relative_error};

    const N: usize = 6;
    const M: usize = 3;
    const D: usize = 2;
    const BETA: f64 = 7.0;

    /// Ψ-statistics of a kernel that is not known, and a Kzz.
    struct Statistics {
        psi0: f64,
        psi1: Mat,
        psi2: Mat,
        kzz: Cholesky,
    }

    fn statistics() -> Statistics {
        let wave = |i: usize, j: usize| (1.7 * i as f64 + 0.9 * j as f64 + 0.3).sin();
        let psi1 = Mat::from_fn(N, M, wave);
        let mut psi2 = linalg::mul_tn(&psi1, &psi1);
        (0..M).for_each(|i| psi2[(i, i)] += 0.3);
        let mut kzz =
            linalg::mul_tn(&Mat::from_fn(4, M, |i, j| wave(j, i)), &Mat::from_fn(4, M, |i, j| wave(j, i)));
        (0..M).for_each(|i| kzz[(i, i)] += 1.0);
        Statistics { psi0: 9.0, psi1, psi2, kzz: Cholesky::new(&kzz, "Kzz").unwrap() }
    }

    impl Statistics {
        /// F and ∂F/∂(μ, λ).
        fn bound(&self, mean: &Mat, var: &Mat) -> (f64, Vec<f64>) {
            let a = self.kzz.whiten(&self.psi2);
            let p = linalg::mul_tn(&self.psi1, mean);
            let of = Collapse {
                rows: N,
                outputs: mean.cols(),
                yy: mean.dot(mean) + var.as_slice().iter().sum::<f64>(),
                p: &p,
                psi0: self.psi0,
                a: &a,
                kzz: &self.kzz,
                beta: BETA,
                jitter: 0.0,
            };
            let found = collapsed(&of).unwrap();
            let mut pulled = linalg::mul(&self.psi1, &found.alpha);
            pulled.scale(BETA);
            let [mut mean_bar, mut var_bar] = [(); 2].map(|()| Mat::zeros(N, mean.cols()));
            outputs_adjoint(mean, &pulled, &[BETA], OutputsGrad { mean: &mut mean_bar, var: &mut var_bar });
            (found.value, [mean_bar.into_vec(), var_bar.into_vec()].concat())
        }

        /// The same bound with q(u_d) = N(m_d, Σ) written out, m M×D:
        ///
        /// Σ E[ln N(y | f, σ²)] − KL(q(u) ‖ p(u)), the expectation over q(y), q(u), p(f | u) and q(x).
        fn uncollapsed(&self, mean: &Mat, var: &Mat, m: &Mat, sigma: &Mat) -> f64 {
            let d = mean.cols() as f64;
            let kinv = self.kzz.inverse();
            let (w, k2k) = (linalg::mul(&kinv, m), linalg::mul(&linalg::mul(&kinv, &self.psi2), &kinv));
            let mut second = linalg::mul_nt(m, m);
            second.add_scaled(d, sigma);
            let square = mean.dot(mean) + var.as_slice().iter().sum::<f64>()
                - 2.0 * mean.dot(&linalg::mul(&self.psi1, &w))
                + k2k.dot(&second)
                + d * (self.psi0 - kinv.dot(&self.psi2));
            let log_det = Cholesky::new(sigma, "Σ").unwrap().log_det();
            let kl = 0.5 * (kinv.dot(&second) - d * M as f64 + d * (self.kzz.log_det() - log_det));
            0.5 * N as f64 * d * (BETA / std::f64::consts::TAU).ln() - 0.5 * BETA * square - kl
        }

        /// (Kzz + βΨ2)⁻¹ = L⁻ᵀB⁻¹L⁻¹.
        fn precision(&self) -> Mat {
            let mut sum = linalg::mul_nt(self.kzz.l(), self.kzz.l());
            sum.add_scaled(BETA, &self.psi2);
            Cholesky::new(&sum, "Kzz + βΨ2").unwrap().inverse()
        }
    }

    fn outputs() -> (Mat, Mat) {
        let mean = Mat::from_fn(N, D, |i, j| (2.1 * i as f64 - 0.8 * j as f64).cos());
        (mean, Mat::from_fn(N, D, |i, j| 0.02 + 0.05 * ((i + 2 * j) % 4) as f64))
    }

    #[test]
    fn adjoints_of_uncertain_outputs_agree_with_differences() {
        let (of, (mean, var)) = (statistics(), outputs());
        let u = [mean.as_slice(), var.as_slice()].concat();
        let slow = differences(&u, |u| {
            let mat = |from: &[f64]| Mat::from_vec(N, D, from.to_vec()).unwrap();
            of.bound(&mat(&u[..N * D]), &mat(&u[N * D..])).0
        });
        assert!(relative_error(&of.bound(&mean, &var).1, &slow, 0.0) < 1e-9);
    }

    #[test]
    fn the_bound_of_uncertain_outputs_is_that_of_its_best_inducing_values() {
        let (of, (mean, var)) = (statistics(), outputs());
        let bound = of.bound(&mean, &var).0;
        let kzz = linalg::mul_nt(of.kzz.l(), of.kzz.l());
        let gain = linalg::mul(&kzz, &of.precision());
        let mut best = linalg::mul(&gain, &linalg::mul_tn(&of.psi1, &mean));
        best.scale(BETA);
        let sigma = linalg::mul(&gain, &kzz);
        let there = of.uncollapsed(&mean, &var, &best, &sigma);
        assert!((bound - there).abs() < 1e-11 * bound.abs(), "{bound} against {there}");
        for (i, by) in [(0, 0.01), (M * D - 1, -0.02)] {
            let mut moved = best.clone();
            moved.as_mut_slice()[i] += by;
            assert!(of.uncollapsed(&mean, &var, &moved, &sigma) < bound);
        }
        for factor in [0.9, 1.1] {
            assert!(of.uncollapsed(&mean, &var, &best, &sigma.map(|v| factor * v)) < bound);
        }
    }

    #[test]
    fn the_bound_is_its_expectation_over_outputs_less_what_they_would_gain() {
        let (of, (mean, var)) = (statistics(), outputs());
        // F of certain outputs is quadratic in them: 2ND sigma points have its expectation exactly.
        let certain = Mat::zeros(N, D);
        let mut expected = 0.0;
        for i in 0..N * D {
            for sign in [-1.0, 1.0] {
                let mut y = mean.clone();
                y.as_mut_slice()[i] += sign * ((N * D) as f64 * var.as_slice()[i]).sqrt();
                expected += of.bound(&y, &certain).0 / (2 * N * D) as f64;
            }
        }
        let weights = linalg::mul_nt(&linalg::mul(&of.psi1, &of.precision()), &of.psi1);
        let gain: f64 =
            (0..N).map(|n| 0.5 * BETA * BETA * weights[(n, n)] * var.row(n).iter().sum::<f64>()).sum();
        let bound = of.bound(&mean, &var).0;
        assert!(gain > 1e-2 * bound.abs() && (expected - gain - bound).abs() < 1e-11 * bound.abs());
        let less = of.bound(&mean, &var.map(|v| 1e-3 * v)).0;
        assert!(of.bound(&mean, &certain).0 > less && less > bound);
    }
}
