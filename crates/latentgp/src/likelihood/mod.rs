//! Likelihoods p(y | f) of observations that are not Gaussian: classes and counts.
//!
//! ```text
//! bernoulli    p(y = 1 | f) = 1/(1 + exp(−f)), or Φ(f)      y ∈ {0, 1}
//! poisson      p(y | f) = exp(y f − exp f) / y!             y ∈ {0, 1, 2, …}
//! categorical  p(y = c | f) = exp f_c / Σ_k exp f_k         y ∈ {0, …, C − 1}, f of C values
//! ```
//!
//! A [`Likelihood`] of one latent value gives ln p(y | f) with three derivatives in f; expectations under a
//! Gaussian f are Gauss-Hermite sums ([`Quadrature`]) unless it knows better. [`Categorical`] couples C latent
//! values, and its expectations are sums over quasi-Monte Carlo nodes.
//!
//! ```
//! use latentgp::likelihood::{Bernoulli, Likelihood};
//! let at = Bernoulli::logit().log_density(1.0, -1000.0);
//! assert_eq!((at.value, at.first), (-1000.0, 1.0));
//! ```

mod bernoulli;
mod categorical;
mod labels;
mod latents;
mod observations;
mod poisson;
mod quadrature;

pub use bernoulli::{Bernoulli, Link};
pub use categorical::Categorical;
pub use labels::{check_counts, check_labels, encode};
pub use latents::{Latents, Rates};
pub use observations::Observations;
pub use poisson::Poisson;
pub use quadrature::Quadrature;

use crate::error::Result;
use std::fmt;

/// ln p(y | f) and its derivatives in f.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Derivatives {
    /// ln p(y | f).
    pub value: f64,
    /// ∂/∂f.
    pub first: f64,
    /// ∂²/∂f²; not positive, as every likelihood here is log-concave.
    pub second: f64,
    /// ∂³/∂f³.
    pub third: f64,
}

/// E[ln p(y | f)] under f ~ N(mean, var), and its derivatives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected {
    /// The expectation.
    pub value: f64,
    /// Its derivative in the mean.
    pub mean: f64,
    /// Its derivative in the variance.
    pub var: f64,
}

/// What is observed, for whoever turns latent values into predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of two classes: predictions are probabilities.
    TwoClasses(Bernoulli),
    /// Counts: predictions are rates.
    Counts,
    /// Something else, with its [`moments`](Likelihood::moments).
    Other,
}

/// A likelihood of one observation given one latent value, log-concave in the latter.
pub trait Likelihood: CloneLikelihood + fmt::Debug + Send + Sync {
    /// Its name, with its options.
    fn expression(&self) -> String;

    /// Errs where the observations cannot have come from it, and where nothing can be learned from them.
    fn check(&self, y: &[f64]) -> Result<()>;

    /// ln p(y | f) with its derivatives.
    fn log_density(&self, y: f64, f: f64) -> Derivatives;

    /// Mean and variance of y under f ~ N(mean, var).
    fn moments(&self, mean: f64, var: f64) -> (f64, f64);

    /// What predictions of it are called.
    fn kind(&self) -> Kind {
        Kind::Other
    }

    /// A prior mean of f to start from.
    fn start(&self, _y: &[f64]) -> f64 {
        0.0
    }

    /// E[ln p(y | f)] under f ~ N(mean, var): the derivatives are those of the sum that is its value.
    fn expected(&self, y: f64, mean: f64, var: f64, rule: &Quadrature) -> Expected {
        rule.expected(mean, var, |f| self.log_density(y, f))
    }

    /// ln E[p(y | f)] under f ~ N(mean, var): the log density of a held-out observation.
    fn log_predictive(&self, y: f64, mean: f64, var: f64, rule: &Quadrature) -> f64 {
        rule.log_mean_exp(mean, var, |f| self.log_density(y, f).value)
    }
}

/// Cloning behind a `Box<dyn Likelihood>`; every `Clone` likelihood has it.
pub trait CloneLikelihood {
    /// A copy in a box.
    fn boxed(&self) -> Box<dyn Likelihood>;
}

impl<L: Likelihood + Clone + 'static> CloneLikelihood for L {
    fn boxed(&self) -> Box<dyn Likelihood> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Likelihood> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

impl fmt::Display for dyn Likelihood + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expression())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::check::{differences, relative_error};

    const DERIVATIVES: f64 = 1e-8;

    /// y ~ N(f, noise): with it the approximations are exact, which makes their limits testable.
    #[derive(Clone, Debug)]
    pub(crate) struct Gaussian {
        pub(crate) noise: f64,
    }

    impl Likelihood for Gaussian {
        fn expression(&self) -> String {
            "gaussian".into()
        }
        fn check(&self, _: &[f64]) -> Result<()> {
            Ok(())
        }
        fn log_density(&self, y: f64, f: f64) -> Derivatives {
            let r = y - f;
            Derivatives {
                value: -0.5 * (r * r / self.noise + (std::f64::consts::TAU * self.noise).ln()),
                first: r / self.noise,
                second: -1.0 / self.noise,
                third: 0.0,
            }
        }
        fn moments(&self, mean: f64, var: f64) -> (f64, f64) {
            (mean, var + self.noise)
        }
    }

    #[test]
    fn derivatives_agree_with_differences_and_stay_finite() {
        let all: [(Box<dyn Likelihood>, &[f64]); 4] = [
            (Box::new(Bernoulli::logit()), &[0.0, 1.0]),
            (Box::new(Bernoulli::probit()), &[0.0, 1.0]),
            (Box::new(Poisson), &[0.0, 3.0, 40.0]),
            (Box::new(Gaussian { noise: 0.3 }), &[-0.4]),
        ];
        for (likelihood, observations) in &all {
            for &y in *observations {
                for f in [-30.0, -6.0, -4.1, -2.01, -1.99, -0.7, 0.0, 0.4, 1.9, 2.1, 3.5, 5.0] {
                    let at = likelihood.log_density(y, f);
                    let first = differences(&[f], |u| likelihood.log_density(y, u[0]).value);
                    let second = differences(&[f], |u| likelihood.log_density(y, u[0]).first);
                    let third = differences(&[f], |u| likelihood.log_density(y, u[0]).second);
                    for (order, ours, slow) in
                        [(1, at.first, first), (2, at.second, second), (3, at.third, third)]
                    {
                        let error = relative_error(&[ours], &slow, 0.03);
                        assert!(error < DERIVATIVES, "{likelihood} y {y} f {f} order {order}: {error:e}");
                    }
                }
                for f in [-1e12, -1e3, 1e3, 1e12, f64::MAX, -f64::MAX] {
                    let at = likelihood.log_density(y, f);
                    for v in [at.value, at.first, at.second, at.third] {
                        assert!(!v.is_nan(), "{likelihood} y {y} f {f}: {at:?}");
                    }
                    assert!(at.second <= 0.0, "log-concave");
                }
            }
        }
    }

    #[test]
    fn expectations_have_the_gradient_of_their_sum() {
        let rule = Quadrature::new(20).unwrap();
        let all: [(Box<dyn Likelihood>, f64); 5] = [
            (Box::new(Bernoulli::logit()), 1.0),
            (Box::new(Bernoulli::probit()), 0.0),
            (Box::new(Poisson), 4.0),
            (Box::new(Poisson), 0.0),
            (Box::new(Gaussian { noise: 0.3 }), -0.4),
        ];
        for (likelihood, y) in &all {
            for (mean, var) in [(0.3, 0.5), (-2.0, 4.0), (1.5, 1e-4)] {
                let at = likelihood.expected(*y, mean, var, &rule);
                let slow = differences(&[mean, var], |u| likelihood.expected(*y, u[0], u[1], &rule).value);
                let error = relative_error(&[at.mean, at.var], &slow, 0.1);
                assert!(error < 1e-7, "{likelihood} {mean} {var}: {error:e}");
            }
            // At variance 0 the limit: ½ ∂²/∂f².
            let (at, limit) = (likelihood.expected(*y, 0.3, 0.0, &rule), likelihood.log_density(*y, 0.3));
            assert!((at.value - limit.value).abs() < 1e-14 && (at.var - 0.5 * limit.second).abs() < 1e-12);
            let near = likelihood.expected(*y, 0.3, 1e-8, &rule);
            assert!((near.var - at.var).abs() < 1e-6, "{likelihood}: {} {}", near.var, at.var);
        }
    }

    #[test]
    fn predictive_densities_sum_to_one_and_have_the_moments() {
        let rule = Quadrature::new(48).unwrap();
        for likelihood in [Bernoulli::logit(), Bernoulli::probit()] {
            let p = [0.0, 1.0].map(|y| likelihood.log_predictive(y, 0.7, 1.3, &rule).exp());
            let (mean, var) = likelihood.moments(0.7, 1.3);
            assert!((p[0] + p[1] - 1.0).abs() < 1e-12 && (p[1] - mean).abs() < 1e-9);
            assert!((var - p[0] * p[1]).abs() < 1e-9);
        }
        let density = |y: usize| Poisson.log_predictive(y as f64, 0.7, 0.3, &rule).exp();
        let moment = |k: i32| (0..400).map(|y| density(y) * (y as f64).powi(k)).sum::<f64>();
        let (mean, var) = Poisson.moments(0.7, 0.3);
        assert!((moment(0) - 1.0).abs() < 1e-10 && (moment(1) - mean).abs() < 1e-8);
        assert!((moment(2) - mean * mean - var).abs() < 1e-6);
    }
}
