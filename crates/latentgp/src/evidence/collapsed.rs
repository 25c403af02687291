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
//! that output's Ψ0, Ψ2 and N.

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
    /// tr YᵀY.
    pub yy: f64,
    /// P = Ψ1ᵀY. It may have other columns than Y, as long as PPᵀ is the same.
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
    /// β̄, without what comes through P.
    pub beta: f64,
}

/// Rounding may take the trace below 0 by so many nats a cell.
const ROUNDING: f64 = 1e-3;

impl Collapse<'_> {
    /// Errs when rounding has taken the digits of the bound: Ψ0 − tr A, the trace of a conditional covariance, is negative.
    /// Only where all weights are `nonnegative` must it not be.
    ///
    /// Such a bound can grow beyond all limits, and an optimiser would go there.
    pub fn check_digits(&self, nonnegative: impl FnOnce() -> bool) -> Result<()> {
        if 0.5 * self.beta * (self.a.trace() - self.psi0) > ROUNDING * self.rows as f64 && nonnegative() {
            let what = "the covariance of the data given the inducing values".into();
            return Err(Error::NotPositiveDefinite { what, jitter: self.kzz.jitter() });
        }
        Ok(())
    }
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
        CollapsedBar {
            psi0: -0.5 * beta * d,
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
