//! Priors of the weights of the variational Mahalanobis process, and their KL.
//!
//! w_kd ~ N(0, ℓ²_k), q(w_kd) = N(μ_kd, S_kd), T_k = Σ_d (μ_kd² + S_kd), over d = 1…D:
//!
//! ```text
//! given ℓ²_k      KL = ½ Σ_kd ((μ_kd² + S_kd)/ℓ²_k − ln(S_kd/ℓ²_k) − 1)
//! type II         the same at its optimum ℓ²_k = T_k/D: KL = ½ Σ_kd ln(ℓ²_k/S_kd)
//! 1/ℓ²_k ~ Gamma(a, b), q(ℓ²) at its optimum:
//!                 KL = (D/2 + a) Σ_k ln((2b + T_k)/2) − ½ Σ_kd ln S_kd − K ln(bᵃ Γ(D/2 + a)/Γ(a)) − DK/2
//! ```
//!
//! Titsias & Lázaro-Gredilla (2013), supplement B.2, which misprints the sign of the last term and its DK/2.

use crate::error::{Error, Result};
use crate::mat::Mat;
use crate::param::Param;
use crate::scratch::Buffer;

/// The prior of the weights.
#[derive(Clone, Debug, PartialEq)]
pub enum WeightPrior {
    /// ℓ²_k at the optimum of the bound: irrelevant directions are switched off.
    TypeII,
    /// ℓ²_k as given, 1×K: a parameter, fixed or free.
    Given(Param),
    /// Full Bayes: 1/ℓ²_k has a Gamma distribution. A tiny rate is weakly informative.
    Gamma {
        /// a > 0.
        shape: f64,
        /// b > 0.
        rate: f64,
    },
}

impl WeightPrior {
    /// ℓ² as given, and fixed.
    pub fn fixed(ell2: &[f64]) -> Self {
        WeightPrior::Given(Param { fixed: true, ..Param::positive(Mat::from_rows(&[ell2])) })
    }

    pub(crate) fn check(&self, directions: usize) -> Result<()> {
        match self {
            WeightPrior::TypeII => Ok(()),
            WeightPrior::Given(ell2) if ell2.len() != directions => {
                Err(Error::shape("prior variances of the weights", directions, ell2.len()))
            }
            WeightPrior::Given(ell2) => ell2.check("ell2"),
            WeightPrior::Gamma { shape, rate } => {
                let all = [("shape of the Gamma prior", shape), ("rate of the Gamma prior", rate)];
                match all.iter().find(|(_, v)| !(v.is_finite() && **v > 0.0)) {
                    Some((what, bad)) => Err(Error::invalid(*what, "a finite number above 0", bad)),
                    None => Ok(()),
                }
            }
        }
    }

    /// ℓ²_k of every direction: the optimum, the given value, or the inverse of the posterior mean of 1/ℓ²_k.
    pub fn ell2(&self, mean: &Mat, var: &Mat) -> Vec<f64> {
        self.ell2_of(&second_moments(mean, var), mean.cols() as f64).to_vec()
    }

    /// [`ell2`](Self::ell2) from T and the number of inputs.
    fn ell2_of(&self, t: &[f64], d: f64) -> Buffer<f64> {
        match self {
            WeightPrior::TypeII => Buffer::of(t.iter().map(|t| t / d)),
            WeightPrior::Given(ell2) => Buffer::of(ell2.as_slice().iter().copied()),
            WeightPrior::Gamma { shape, rate } => {
                Buffer::of(t.iter().map(|t| (2.0 * rate + t) / (d + 2.0 * shape)))
            }
        }
    }

    /// KL(q(W) ‖ p(W)); *subtracts* its gradients, since the bound contains −KL.
    pub(crate) fn kl(&self, mean: &Mat, var: &Mat, grads: Option<KlGrad<'_>>) -> f64 {
        let (k, d) = (mean.rows(), mean.cols() as f64);
        // In all three cases ∂KL/∂T_k is 1/(2ℓ²_k).
        let t = second_moments(mean, var);
        let ell2 = self.ell2_of(&t, d);
        let log_var: f64 = var.as_slice().iter().map(|v| v.ln()).sum();
        if let Some(grads) = grads {
            for (i, (m, s)) in mean.as_slice().iter().zip(var.as_slice()).enumerate() {
                let precision = 1.0 / ell2[i / mean.cols()];
                grads.mean[i] -= m * precision;
                grads.var[i] -= 0.5 * (precision - 1.0 / s);
            }
            if matches!(self, WeightPrior::Given(_)) {
                for i in 0..k {
                    grads.ell2[i] -= 0.5 * (d - t[i] / ell2[i]) / ell2[i];
                }
            }
        }
        let sum = |f: &dyn Fn(usize) -> f64| (0..k).map(f).sum::<f64>();
        match self {
            WeightPrior::TypeII => 0.5 * (sum(&|i| d * ell2[i].ln()) - log_var),
            WeightPrior::Given(_) => {
                0.5 * (sum(&|i| t[i] / ell2[i] + d * ell2[i].ln()) - log_var - d * k as f64)
            }
            WeightPrior::Gamma { shape, rate } => {
                let half = 0.5 * d + shape;
                let constant = shape * rate.ln() + libm::lgamma(half) - libm::lgamma(*shape);
                half * sum(&|i| (rate + 0.5 * t[i]).ln()) - 0.5 * log_var - k as f64 * (constant + 0.5 * d)
            }
        }
    }
}

/// The buffers from which the gradient of a KL is subtracted.
pub(crate) struct KlGrad<'a> {
    pub(crate) mean: &'a mut [f64],
    pub(crate) var: &'a mut [f64],
    /// K entries for a given ℓ², none otherwise.
    pub(crate) ell2: &'a mut [f64],
}

/// T_k.
fn second_moments(mean: &Mat, var: &Mat) -> Buffer<f64> {
    let row = |k: usize| mean.row(k).iter().zip(var.row(k)).map(|(m, s)| m * m + s).sum();
    Buffer::of((0..mean.rows()).map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights() -> (Mat, Mat) {
        let mean = Mat::from_fn(3, 4, |i, j| ((i * 4 + j) as f64).sin());
        (mean, Mat::from_fn(3, 4, |i, j| 0.1 + 0.05 * (i + j) as f64))
    }

    #[test]
    fn type_two_is_the_given_prior_at_its_optimum() {
        let (mean, var) = weights();
        let best = WeightPrior::TypeII.ell2(&mean, &var);
        let at = |ell2: &[f64]| WeightPrior::fixed(ell2).kl(&mean, &var, None);
        let least = WeightPrior::TypeII.kl(&mean, &var, None);
        assert!((at(&best) - least).abs() < 1e-13);
        for factor in [0.9, 1.1] {
            assert!(at(&best.iter().map(|l| l * factor).collect::<Vec<_>>()) > least);
        }
        let same = WeightPrior::fixed(&[0.3; 3]).kl(&Mat::zeros(3, 4), &Mat::filled(3, 4, 0.3), None);
        assert!(same.abs() < 1e-14);
    }

    #[test]
    fn a_gamma_that_is_sure_of_itself_is_a_given_prior() {
        // Mean a/b = 1/ℓ², relative variance 1/a.
        let (mean, var) = weights();
        let (shape, ell2) = (1e7, 0.4);
        let sure = WeightPrior::Gamma { shape, rate: shape * ell2 }.kl(&mean, &var, None);
        let given = WeightPrior::fixed(&[ell2; 3]).kl(&mean, &var, None);
        assert!((sure - given).abs() < 1e-4 * given, "{sure} against {given}");
    }

    #[test]
    fn what_is_outside_its_domain_is_named() {
        assert!(WeightPrior::TypeII.check(3).is_ok());
        assert!(matches!(WeightPrior::fixed(&[1.0, 2.0]).check(3), Err(Error::Shape { .. })));
        assert!(matches!(WeightPrior::fixed(&[1.0, 0.0]).check(2), Err(Error::Invalid { .. })));
        for (shape, rate) in [(0.0, 1.0), (1.0, -1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)] {
            assert!(matches!(WeightPrior::Gamma { shape, rate }.check(1), Err(Error::Invalid { .. })));
        }
    }
}
