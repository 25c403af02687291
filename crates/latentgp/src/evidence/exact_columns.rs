//! The evidence of an exact Gaussian process of outputs that have a noise of their own each.
//!
//! Outputs observed at the same rows share Kxx = UΛUᵀ, of which one eigendecomposition serves all of them. With
//! c_id = λ_i + σ_d², W = UᵀY and α_d = U(w_d/c_d):
//!
//! ```text
//! F    = Σ_d [−N/2·log 2π − ½Σ_i log c_id − ½Σ_i w_id²/c_id]
//! K̄xx = ½(ααᵀ − U diag(Σ_d 1/c_id) Uᵀ)     σ̄_d² = ½(α_dᵀα_d − Σ_i 1/c_id)
//! ```

use crate::error::{Error, Result};
use crate::linalg::{self, Op};
use crate::mat::Mat;

/// The evidence and what its adjoints and the posterior are made of.
#[derive(Clone, Debug)]
pub struct ExactColumns {
    /// F.
    pub value: f64,
    /// α, N×D: the posterior mean at x is k(x, X)α, and Ȳ = −α.
    pub alpha: Mat,
    /// U, N×N.
    pub u: Mat,
    /// 1/c_id, N×D: (Kxx + σ_d²I)⁻¹ = U diag(1/c_d) Uᵀ.
    pub inverse: Mat,
}

/// ∂F; Ȳ = −[`ExactColumns::alpha`].
#[derive(Clone, Debug)]
pub struct ExactColumnsBar {
    /// K̄xx, symmetric.
    pub kxx: Mat,
    /// σ̄_d².
    pub noise: Vec<f64>,
}

/// Σ_d log N(y_d | 0, Kxx + σ_d²I); the lower triangle of Kxx is read.
///
/// Errs when shapes disagree, Kxx + σ_d²I is not positive definite, or a number is not finite.
pub fn exact_columns(y: &Mat, kxx: &Mat, noise: &[f64]) -> Result<ExactColumns> {
    if noise.len() != y.cols() {
        return Err(Error::shape("variances of the noise", y.cols(), noise.len()));
    }
    if kxx.rows() != y.rows() || kxx.cols() != y.rows() {
        return Err(Error::shape("Kxx", format!("{0} × {0}", y.rows()), kxx.shape()));
    }
    let (lambda, u) = linalg::eigh(kxx)?;
    let mut turned = linalg::mul_tn(&u, y);
    let mut inverse = Mat::zeros(y.rows(), y.cols());
    let mut value = -0.5 * (y.len() as f64) * std::f64::consts::TAU.ln();
    for (i, lambda) in lambda.iter().enumerate() {
        for (j, noise) in noise.iter().enumerate() {
            let (c, w) = (lambda + noise, turned[(i, j)]);
            if c <= 0.0 {
                return Err(Error::NotPositiveDefinite { what: "Kxx + σ²I".into(), jitter: 0.0 });
            }
            value -= 0.5 * (c.ln() + w * w / c);
            inverse[(i, j)] = 1.0 / c;
            turned[(i, j)] = w / c;
        }
    }
    let alpha = linalg::mul(&u, &turned);
    if !(value.is_finite() && alpha.is_finite()) {
        return Err(Error::not_finite("the log evidence"));
    }
    Ok(ExactColumns { value, alpha, u, inverse })
}

impl ExactColumns {
    /// The adjoints.
    pub fn bar(&self) -> ExactColumnsBar {
        let (n, d) = (self.alpha.rows(), self.alpha.cols());
        let sums: Vec<f64> = (0..n).map(|i| self.inverse.row(i).iter().sum()).collect();
        let scaled = Mat::from_fn(n, n, |i, k| self.u[(i, k)] * sums[k]);
        let mut kxx = linalg::mul_nt(&self.alpha, &self.alpha);
        linalg::gemm(-1.0, &scaled, Op::N, &self.u, Op::T, &mut kxx);
        kxx.scale(0.5);
        linalg::symmetrize(&mut kxx);
        let one = |j: usize| -> f64 {
            (0..n).map(|i| 0.5 * (self.alpha[(i, j)].powi(2) - self.inverse[(i, j)])).sum()
        };
        ExactColumnsBar { kxx, noise: (0..d).map(one).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{differences, relative_error};
    use crate::evidence::exact;

    fn problem() -> (Mat, Mat, [f64; 3]) {
        let y = Mat::from_fn(5, 3, |i, j| (1.7 * i as f64 - 0.8 * j as f64).sin());
        let a = Mat::from_fn(7, 5, |i, j| ((i * 5 + j) as f64 * 0.37).cos());
        (y, linalg::mul_tn(&a, &a), [0.3, 0.25, 1.4])
    }

    #[test]
    fn adjoints_agree_with_differences() {
        let (y, k, noise) = problem();
        let found = exact_columns(&y, &k, &noise).unwrap();
        let bar = found.bar();
        let value = |u: &[f64]| {
            let y = Mat::from_vec(5, 3, u[..15].to_vec()).unwrap();
            let mut k = Mat::from_vec(5, 5, u[15..40].to_vec()).unwrap();
            linalg::symmetrize(&mut k);
            exact_columns(&y, &k, &u[40..]).unwrap().value
        };
        let u = [y.as_slice(), k.as_slice(), &noise].concat();
        let mut y_bar = found.alpha.clone();
        y_bar.scale(-1.0);
        let ours = [y_bar.as_slice(), bar.kxx.as_slice(), &bar.noise].concat();
        assert!(relative_error(&ours, &differences(&u, value), 1e-3) < 1e-8);
    }

    #[test]
    fn each_output_is_a_process_of_its_own_and_equal_noises_are_one() {
        let (y, k, noise) = problem();
        let found = exact_columns(&y, &k, &noise).unwrap();
        let alone: f64 = (0..3).map(|j| exact(&y.select_cols(&[j]), &k, noise[j]).unwrap().value).sum();
        assert!((alone - found.value).abs() < 1e-11 * alone.abs());
        let (same, one) = (exact_columns(&y, &k, &[0.3; 3]).unwrap(), exact(&y, &k, 0.3).unwrap());
        assert!((same.value - one.value).abs() < 1e-10 * one.value.abs());
        assert!(relative_error(same.alpha.as_slice(), one.alpha.as_slice(), 1e-3) < 1e-10);
        let (a, b) = (same.bar(), one.bar());
        assert!(relative_error(a.kxx.as_slice(), b.kxx.as_slice(), 1e-3) < 1e-10);
        assert!((a.noise.iter().sum::<f64>() - b.noise).abs() < 1e-10 * b.noise.abs());
    }
}
