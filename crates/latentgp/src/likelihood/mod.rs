//! Likelihoods p(y | f) of observations that are not Gaussian: classes, counts, and values with outliers.
//!
//! ```text
//! bernoulli    p(y = 1 | f) = 1/(1 + exp(−f)), or Φ(f)      y ∈ {0, 1}
//! poisson      p(y | f) = exp(y f − exp f) / y!             y ∈ {0, 1, 2, …}
//! categorical  p(y = c | f) = exp f_c / Σ_k exp f_k         y ∈ {0, …, C − 1}, f of C values
//! student_t    p(y | f) = t_ν(y | f, s²)                    y any number, s a parameter
//! ```
//!
//! A [`Likelihood`] of one latent value gives ln p(y | f) with three derivatives in f; expectations under a
//! Gaussian f are Gauss-Hermite sums ([`Quadrature`]) unless it knows better. [`Categorical`] couples C latent
//! values, and its expectations are sums over quasi-Monte Carlo nodes. [`parse`] reads any of them, and [`names`] lists
//! them: a further likelihood is a file of its own and its entry in that list.
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
mod names;
mod observations;
mod poisson;
mod quadrature;
mod student_t;

pub use bernoulli::{Bernoulli, Link};
pub use categorical::Categorical;
pub use labels::{check_counts, check_intensities, check_labels, encode};
pub use latents::{Latents, Rates};
pub use names::{Entry, Parsed, named, names, parse};
pub use observations::Observations;
pub use poisson::Poisson;
pub use quadrature::Quadrature;
pub use student_t::StudentT;

use crate::error::Result;
use crate::param::{self, Parameterized};
use std::fmt;

/// Every likelihood that has a name; [`names`] is the way to it.
static ENTRIES: [Entry; 4] = [bernoulli::ENTRY, categorical::ENTRY, poisson::ENTRY, student_t::ENTRY];

/// ln p(y | f) and its derivatives in f.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Derivatives {
    /// ln p(y | f).
    pub value: f64,
    /// ∂/∂f.
    pub first: f64,
    /// ∂²/∂f²; not positive where the likelihood is log-concave.
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

/// What is observed, and with it what predictions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of several classes: predictions are probabilities.
    Classes,
    /// Counts: predictions are rates.
    Counts,
    /// Numbers: predictions are means and variances.
    Values,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Classes => "classes",
            Kind::Counts => "counts",
            Kind::Values => "values",
        })
    }
}

/// A likelihood of one observation given one latent value.
///
/// Its parameters, if it has any, are fitted with those of the kernel.
pub trait Likelihood: Parameterized + CloneLikelihood + fmt::Debug + Send + Sync {
    /// Its name, with its options.
    fn expression(&self) -> String;

    /// Errs where the observations cannot have come from it, and where nothing can be learned from them.
    fn check(&self, y: &[f64]) -> Result<()>;

    /// Errs where an observation has no density: less than [`check`](Self::check) asks for, where a likelihood says so.
    fn check_density(&self, y: &[f64]) -> Result<()> {
        self.check(y)
    }

    /// Takes the units of the observations that it will see, where it works in units of its own.
    fn set_units(&mut self, _y: &[f64]) {}

    /// What the log density of one observation lacks to be that of the data as given: −ln of their unit.
    fn log_jacobian(&self) -> f64 {
        0.0
    }

    /// Whether ln p(y | f) is concave in f for every y.
    fn log_concave(&self) -> bool {
        true
    }

    /// ln p(y | f) with its derivatives, without [`log_jacobian`](Self::log_jacobian).
    fn log_density(&self, y: f64, f: f64) -> Derivatives;

    /// *Adds* bar · ∂ ln p(y | f)/∂θ to `grad`, in the order of its parameters.
    fn log_density_adjoint(&self, _y: f64, _f: f64, _bar: f64, _grad: &mut [f64]) {}

    /// Mean and variance of y under f ~ N(mean, var).
    fn moments(&self, mean: f64, var: f64) -> (f64, f64);

    /// What is observed.
    fn kind(&self) -> Kind {
        Kind::Values
    }

    /// The number of classes, where one of several is observed.
    fn classes(&self) -> usize {
        0
    }

    /// E[y | f], what would be observed without noise.
    fn response(&self, f: f64) -> f64 {
        self.moments(f, 0.0).0
    }

    /// Mean and variance of E[y | f] under f ~ N(mean, var).
    fn response_moments(&self, mean: f64, var: f64) -> (f64, f64) {
        let (rule, centre) = (Quadrature::fine(), self.moments(mean, var).0);
        (centre, rule.mean(mean, var, |f| (self.response(f) - centre).powi(2)))
    }

    /// The covariance of two observations whose latent values have the means and variances, and the covariance, given.
    fn covariance(&self, a: (f64, f64), b: (f64, f64), cov: f64) -> f64 {
        let rule = Quadrature::fine();
        let centre = [a, b].map(|(mean, var)| self.moments(mean, var).0);
        // f_b given f_a is Gaussian around a straight line.
        let slope = if a.1 > 0.0 { cov / a.1 } else { 0.0 };
        let rest = (b.1 - slope * cov).max(0.0);
        rule.mean(a.0, a.1, |f| {
            let own = self.response(f) - centre[0];
            own * rule.mean(b.0 + slope * (f - a.0), rest, |g| self.response(g) - centre[1])
        })
    }

    /// p(y = c) for every class c, under f ~ N(mean, var).
    fn probabilities(&self, mean: f64, var: f64, rule: &Quadrature, out: &mut [f64]) {
        for (c, p) in out.iter_mut().enumerate() {
            *p = self.log_predictive(c as f64, mean, var, rule).exp();
        }
    }

    /// p(y = c | f) for every class c.
    fn probabilities_at(&self, f: f64, out: &mut [f64]) {
        for (c, p) in out.iter_mut().enumerate() {
            *p = self.log_density(c as f64, f).value.exp();
        }
    }

    /// P(count ≤ y) under f ~ N(mean, var), of a likelihood of counts.
    fn predictive_cdf(&self, y: f64, mean: f64, var: f64) -> f64 {
        let rule = Quadrature::fine();
        let density = |count: u64| self.log_predictive(count as f64, mean, var, &rule).exp();
        if y < 0.0 { 0.0 } else { (0..=y as u64).map(density).sum::<f64>().min(1.0) }
    }

    /// The smallest count whose [`predictive_cdf`](Self::predictive_cdf) reaches `p`, for 0 < p < 1, of a likelihood of
    /// counts.
    fn predictive_quantile(&self, p: f64, mean: f64, var: f64) -> f64 {
        let reaches = |k: f64| self.predictive_cdf(k, mean, var) >= p;
        let (mut below, mut above) = (-1.0, 1.0);
        while !reaches(above) && above < 1e300 {
            (below, above) = (above, 2.0 * above);
        }
        while above - below > 1.0 {
            let middle = (0.5 * (below + above)).floor();
            if middle <= below || middle >= above {
                break;
            }
            if reaches(middle) { above = middle } else { below = middle }
        }
        above
    }

    /// A prior mean of f to start from.
    fn start(&self, _y: &[f64]) -> f64 {
        0.0
    }

    /// E[ln p(y | f)] under f ~ N(mean, var): the derivatives are those of the sum that is its value.
    fn expected(&self, y: f64, mean: f64, var: f64, rule: &Quadrature) -> Expected {
        rule.expected(mean, var, |f| self.log_density(y, f))
    }

    /// *Adds* ∂/∂θ of that sum to `grad`, in the order of its parameters.
    fn expected_adjoint(&self, y: f64, mean: f64, var: f64, rule: &Quadrature, grad: &mut [f64]) {
        rule.each(mean, var, |f, weight| self.log_density_adjoint(y, f, weight, grad));
    }

    /// ln E[p(y | f)] under f ~ N(mean, var): the log density of a held-out observation as it is given.
    fn log_predictive(&self, y: f64, mean: f64, var: f64, rule: &Quadrature) -> f64 {
        rule.log_mean_exp(mean, var, |f| self.log_density(y, f).value) + self.log_jacobian()
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

impl PartialEq for dyn Likelihood + '_ {
    /// Of the same expression and parameters.
    fn eq(&self, other: &Self) -> bool {
        self.expression() == other.expression() && param::values(self) == param::values(other)
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
    use crate::param::Param;

    const DERIVATIVES: f64 = 1e-8;

    /// y ~ N(f, noise): with it the approximations are exact, which makes their limits testable.
    #[derive(Clone, Debug)]
    pub(crate) struct Gaussian {
        pub(crate) noise: f64,
    }

    impl Parameterized for Gaussian {
        fn params(&self) -> Vec<(String, &Param)> {
            vec![]
        }
        fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
            vec![]
        }
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

    /// One of each on the list, with observations of it; parameters away from where they start.
    fn all() -> Vec<(Box<dyn Likelihood>, &'static [f64])> {
        let mut all: Vec<(Box<dyn Likelihood>, &'static [f64])> =
            vec![(Box::new(Bernoulli::logit()), &[0.0, 1.0]), (Box::new(Gaussian { noise: 0.3 }), &[-0.4])];
        for entry in names() {
            let Parsed::One { mut likelihood, .. } = parse(entry.example, 0).unwrap() else { continue };
            let y: &[f64] = match entry.kind {
                Kind::Classes => &[0.0, 1.0],
                Kind::Counts => &[0.0, 3.0, 40.0],
                Kind::Values => &[-0.4, 2.5, 11.0],
            };
            likelihood.set_units(y);
            likelihood.each_param_mut(&mut |p| p.value.scale(1.3));
            all.push((likelihood, y));
        }
        all
    }

    #[test]
    fn derivatives_agree_with_differences_and_stay_finite() {
        for (likelihood, observations) in all() {
            for &y in observations {
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
                    assert!(at.second <= 0.0 || !likelihood.log_concave(), "{likelihood}");
                    let (ours, slow) = in_parameters(
                        &*likelihood,
                        |l| l.log_density(y, f).value,
                        |l, grad| {
                            l.log_density_adjoint(y, f, 1.0, grad);
                        },
                    );
                    let error = relative_error(&ours, &slow, 0.03);
                    assert!(error < DERIVATIVES, "{likelihood} y {y} f {f}, parameters: {error:e}");
                }
                for f in [-1e12, -1e3, 1e3, 1e12, f64::MAX, -f64::MAX] {
                    let at = likelihood.log_density(y, f);
                    for v in [at.value, at.first, at.second, at.third] {
                        assert!(!v.is_nan(), "{likelihood} y {y} f {f}: {at:?}");
                    }
                    assert!(at.second <= 0.0 || !likelihood.log_concave(), "{likelihood}");
                    let mut grad = vec![0.0; param::count(&*likelihood)];
                    likelihood.log_density_adjoint(y, f, 1.0, &mut grad);
                    assert!(!grad.iter().any(|g| g.is_nan()), "{likelihood} y {y} f {f}: {grad:?}");
                }
            }
        }
    }

    /// The gradient of `value` in the parameters as `adjoint` has it, and by differences.
    fn in_parameters(
        of: &dyn Likelihood,
        value: impl Fn(&dyn Likelihood) -> f64,
        adjoint: impl Fn(&dyn Likelihood, &mut [f64]),
    ) -> (Vec<f64>, Vec<f64>) {
        let theta = param::values(of);
        let (mut ours, mut moved) = (vec![0.0; theta.len()], of.boxed());
        adjoint(of, &mut ours);
        let slow = differences(&theta, |theta| {
            param::set_values(&mut *moved, theta);
            value(&*moved)
        });
        (ours, slow)
    }

    #[test]
    fn expectations_have_the_gradient_of_their_sum() {
        let rule = Quadrature::new(20).unwrap();
        let each = all().into_iter().flat_map(|(l, y)| y.iter().map(move |y| (l.clone(), *y)));
        for (likelihood, y) in each {
            for (mean, var) in [(0.3, 0.5), (-2.0, 4.0), (1.5, 1e-4)] {
                let at = likelihood.expected(y, mean, var, &rule);
                let slow = differences(&[mean, var], |u| likelihood.expected(y, u[0], u[1], &rule).value);
                let error = relative_error(&[at.mean, at.var], &slow, 0.1);
                assert!(error < 1e-7, "{likelihood} {mean} {var}: {error:e}");
                let (ours, slow) = in_parameters(
                    &*likelihood,
                    |l| l.expected(y, mean, var, &rule).value,
                    |l, grad| l.expected_adjoint(y, mean, var, &rule, grad),
                );
                let error = relative_error(&ours, &slow, 0.1);
                assert!(error < 1e-7, "{likelihood} {mean} {var}, parameters: {error:e}");
            }
            // At variance 0 the limit: ½ ∂²/∂f².
            let (at, limit) = (likelihood.expected(y, 0.3, 0.0, &rule), likelihood.log_density(y, 0.3));
            let scale = 1.0 + limit.value.abs();
            assert!((at.value - limit.value).abs() < 1e-14 * scale, "{likelihood}");
            assert!((at.var - 0.5 * limit.second).abs() < 1e-12, "{likelihood}");
            let near = likelihood.expected(y, 0.3, 1e-8, &rule);
            assert!((near.var - at.var).abs() < 1e-6, "{likelihood}: {} {}", near.var, at.var);
        }
    }

    /// A likelihood that says no more than it must.
    #[derive(Clone, Debug)]
    struct Plain(Box<dyn Likelihood>);

    impl Parameterized for Plain {
        fn params(&self) -> Vec<(String, &Param)> {
            self.0.params()
        }
        fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
            self.0.params_mut()
        }
    }

    impl Likelihood for Plain {
        fn expression(&self) -> String {
            self.0.expression()
        }
        fn check(&self, y: &[f64]) -> Result<()> {
            self.0.check(y)
        }
        fn log_density(&self, y: f64, f: f64) -> Derivatives {
            self.0.log_density(y, f)
        }
        fn log_jacobian(&self) -> f64 {
            self.0.log_jacobian()
        }
        fn moments(&self, mean: f64, var: f64) -> (f64, f64) {
            self.0.moments(mean, var)
        }
    }

    #[test]
    fn what_a_likelihood_knows_better_is_what_it_would_be_by_default() {
        let rule = Quadrature::fine();
        for (likelihood, y) in all() {
            let plain = Plain(likelihood.clone());
            for (mean, var) in [(0.7, 0.3), (-0.5, 0.02), (0.2, 0.0)] {
                let (a, b) = (likelihood.response_moments(mean, var), plain.response_moments(mean, var));
                assert!((a.0 - b.0).abs() < 1e-9 && (a.1 - b.1).abs() < 1e-9, "{likelihood}: {a:?} {b:?}");
                for other in [(0.4, 0.5), (0.1, 0.0)] {
                    let cov = 0.6 * f64::sqrt(var * other.1);
                    let own = likelihood.covariance((mean, var), other, cov);
                    let slow = plain.covariance((mean, var), other, cov);
                    assert!((own - slow).abs() < 1e-9, "{likelihood}: {own} {slow}");
                }
                match likelihood.kind() {
                    Kind::Classes => {
                        let (mut own, mut slow) = ([0.0; 2], [0.0; 2]);
                        likelihood.probabilities(mean, var, &rule, &mut own);
                        plain.probabilities(mean, var, &rule, &mut slow);
                        assert!(own.iter().zip(slow).all(|(a, b)| (a - b).abs() < 1e-9), "{likelihood}");
                        likelihood.probabilities_at(mean, &mut own);
                        plain.probabilities_at(mean, &mut slow);
                        assert!(own.iter().zip(slow).all(|(a, b)| (a - b).abs() < 1e-14), "{likelihood}");
                        assert_eq!(likelihood.classes(), 2);
                    }
                    Kind::Counts => {
                        for count in [-1.0, 0.0, 2.0, 5.0] {
                            let own =
                                if count < 0.0 { 0.0 } else { likelihood.predictive_cdf(count, mean, var) };
                            let slow = plain.predictive_cdf(count, mean, var);
                            assert!((own - slow).abs() < 1e-3, "{likelihood} {count}: {own} {slow}");
                        }
                    }
                    Kind::Values => {}
                }
                for y in y {
                    let own = likelihood.log_predictive(*y, mean, var, &rule);
                    let slow = plain.log_predictive(*y, mean, var, &rule);
                    assert!((own - slow).abs() < 1e-3 * (1.0 + slow.abs()), "{likelihood} {y}: {own} {slow}");
                }
            }
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
