//! The collapsed variational bound of Titsias (2009) and Titsias & Lawrence (2010).
//!
//! With Kzz = LLᵀ, A = L⁻¹Ψ2L⁻ᵀ, B = I + βA, P = Ψ1ᵀY, V = B⁻¹L⁻¹P and α = βL⁻ᵀV:
//!
//! ```text
//! F   = ND/2·log(β/2π) − D/2·log|B| − β/2·tr YᵀY + β/2·tr Pᵀα − βD/2·(Ψ0 − tr A)
//! Ψ̄0 = −βD/2     Ψ̄1 = βYαᵀ     Ψ̄2 = L⁻ᵀ(βD/2·(I − B⁻¹) − β³/2·VVᵀ)L⁻¹
//! K̄zz = L⁻ᵀ(D/2·(I − B⁻¹) − β²/2·VVᵀ − βD/2·A)L⁻¹
//! β̄  = ND/2β − tr YᵀY/2 − D/2·(Ψ0 − tr A + tr B⁻¹A) + tr Pᵀα − β²/2·tr VᵀAV
//! ```
//!
//! log|Kzz| − log|Kzz + βΨ2| of the usual writing is −log|B|: no small difference of large numbers, and
//! no Kzz⁻¹. Y enters through P and tr YᵀY only, so that a missing cell is a zero in Y and a row less in
//! that output's Ψ and N.

use crate::error::{Error, Result};
use crate::expectation::Psi;
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;

/// ∂F of the collapsed bound.
#[derive(Clone, Debug)]
pub struct CollapsedBar {
    /// Ψ̄0, Ψ̄1, Ψ̄2.
    pub psi: Psi,
    /// K̄zz.
    pub kzz: Mat,
    /// β̄.
    pub beta: f64,
}

/// What predictions need of q(u): mean k∗α, variance k∗∗ − k∗ L⁻ᵀ C L⁻¹ k∗ᵀ.
#[derive(Clone, Debug, PartialEq)]
pub struct Factors {
    /// α, M×D.
    pub alpha: Mat,
    /// C = I − B⁻¹, M×M.
    pub c: Mat,
}

/// A collapsed bound with what its gradient and its posterior are made of.
pub struct Collapsed<'a> {
    /// F.
    pub value: f64,
    y: &'a Mat,
    rows: usize,
    psi: &'a Psi,
    kzz: &'a Cholesky,
    beta: f64,
    a: Mat,
    b_inverse: Mat,
    v: Mat,
    tilt: f64,
}

/// The bound for the outputs Y (N×D), of which `rows` rows were observed, the others being zero.
///
/// `jitter` is added to the diagonal of B. Errs when B has no Cholesky factor, which negative weights in
/// Ψ2 or a huge β bring about, or when the value is not finite.
pub fn collapsed<'a>(
    y: &'a Mat,
    rows: usize,
    psi: &'a Psi,
    kzz: &'a Cholesky,
    beta: f64,
    jitter: f64,
) -> Result<Collapsed<'a>> {
    let (m, d) = (psi.psi2.rows(), y.cols() as f64);
    let a = kzz.whiten(&psi.psi2);
    let mut b = a.clone();
    b.scale(beta);
    (0..m).for_each(|i| b[(i, i)] += 1.0 + jitter);
    let b = Cholesky::with_jitter(&b, "I + βL⁻¹Ψ2L⁻ᵀ")?;
    let tilt = 1.0 + jitter + b.jitter();
    let mut half = linalg::mul_tn(&psi.psi1, y);
    kzz.solve_l(&mut half);
    b.solve_l(&mut half);
    let fit = half.dot(&half);
    let mut v = half;
    b.solve_lt(&mut v);
    let value = 0.5 * rows as f64 * d * (beta / std::f64::consts::TAU).ln()
        - 0.5 * d * b.log_det()
        - 0.5 * beta * y.dot(y)
        + 0.5 * beta * beta * fit
        - 0.5 * beta * d * (psi.psi0 - a.trace());
    if !value.is_finite() {
        return Err(Error::not_finite("the evidence bound"));
    }
    Ok(Collapsed { value, y, rows, psi, kzz, beta, a, b_inverse: b.inverse(), v, tilt })
}

impl Collapsed<'_> {
    /// The adjoints of every matrix that went in.
    pub fn bar(&self) -> CollapsedBar {
        let (beta, d) = (self.beta, self.y.cols() as f64);
        let m = self.a.rows();
        let vv = linalg::mul_nt(&self.v, &self.v);
        let (mut psi2, mut kzz) = (Mat::zeros(m, m), Mat::zeros(m, m));
        for i in 0..m {
            for j in 0..m {
                let (eye, inverse) = (f64::from(i == j), self.b_inverse[(i, j)]);
                let (vv, a) = (beta * beta * vv[(i, j)], self.a[(i, j)]);
                psi2[(i, j)] = 0.5 * beta * (d * (eye - inverse) - vv);
                kzz[(i, j)] = 0.5 * (d * (eye - self.tilt * inverse) - self.tilt * vv - beta * d * a);
            }
        }
        let alpha = self.alpha();
        let mut psi1 = linalg::mul_nt(self.y, &alpha);
        psi1.scale(beta);
        let av = linalg::mul(&self.a, &self.v);
        // β·tr PᵀΣ⁻¹P = β·tr Vᵀ(B)V, as L⁻¹P = BV.
        let fit = self.tilt * self.v.dot(&self.v) + beta * self.v.dot(&av);
        let beta_bar = 0.5 * self.rows as f64 * d / beta
            - 0.5 * self.y.dot(self.y)
            - 0.5 * d * (self.psi.psi0 - self.a.trace() + self.b_inverse.dot(&self.a))
            + beta * fit
            - 0.5 * beta * beta * self.v.dot(&av);
        CollapsedBar {
            psi: Psi { psi0: -0.5 * beta * d, psi1, psi2: self.kzz.unwhiten(&psi2) },
            kzz: self.kzz.unwhiten(&kzz),
            beta: beta_bar,
        }
    }

    /// α = βL⁻ᵀV.
    fn alpha(&self) -> Mat {
        let mut alpha = self.v.clone();
        self.kzz.solve_lt(&mut alpha);
        alpha.scale(self.beta);
        alpha
    }

    /// The posterior of the inducing values.
    pub fn factors(&self) -> Factors {
        let c = Mat::from_fn(self.a.rows(), self.a.rows(), |i, j| f64::from(i == j) - self.b_inverse[(i, j)]);
        Factors { alpha: self.alpha(), c }
    }
}
