//! Counts: p(y | f) = exp(y f − exp f)/y!, with a rate exp f that is log-normal under a Gaussian f.
//!
//! ```text
//! E[rate] = exp(m + v/2)    Var[rate] = (exp v − 1) exp(2m + v)    Var[y] = E[rate] + Var[rate]
//! E[ln p] = y m − exp(m + v/2) − ln y!
//! ```

use super::names::{Entry, Parsed};
use super::{Derivatives, Expected, Kind, Likelihood, Quadrature, check_counts, check_intensities};
use crate::error::Result;
use crate::param::{Param, Parameterized};
use crate::special::normal_cdf;

pub(super) const ENTRY: Entry = Entry {
    name: "poisson",
    about: "counts; with whole=false averages of counts too, which need not be whole",
    example: "poisson(whole=false)",
    options: &[("whole", "true")],
    kind: Kind::Counts,
    make: |asked| Ok(Parsed::One { likelihood: Box::new(Poisson), lenient: !asked.flag("whole")? }),
};

/// The likelihood of counts, with a log link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Poisson;

impl Poisson {
    /// Mean and variance of the rate under f ~ N(mean, var).
    pub fn rate(&self, mean: f64, var: f64) -> (f64, f64) {
        let rate = (mean + 0.5 * var).exp();
        // The square is in the exponent, so that it overflows no sooner than the variance itself.
        (rate, (2.0 * mean + var + log_exp_m1(var)).exp())
    }
}

/// From this count on the logarithm of a Gamma variable is as good as Gaussian.
const LARGE: f64 = 1000.0;
/// Most and fewest places of the sum behind a distribution function.
const PLACES: (f64, f64) = (81.0, 1201.0);
/// The sum goes so many standard deviations to either side.
const REACH: f64 = 6.0;

impl Poisson {
    /// P(y ≤ count) under f ~ N(mean, var), the rate exp f averaged out, to about three digits.
    ///
    /// ```text
    /// P(y ≤ k | f) = P(ln G > f),  G ~ Gamma(k + 1, 1):   a step in f of width 1/√(k + 1)
    /// ```
    pub fn predictive_cdf(&self, count: f64, mean: f64, var: f64) -> f64 {
        let (shape, std) = (count + 1.0, var.max(0.0).sqrt());
        if shape > LARGE {
            // Mean and variance of ln G to O(1/k²).
            let middle = shape - 0.5;
            return normal_cdf((middle.ln() - mean) / (var.max(0.0) + 1.0 / middle).sqrt());
        }
        if std == 0.0 {
            return poisson_cdf(count, mean.exp());
        }
        let places = (8.0 * REACH * std * shape.sqrt()).clamp(PLACES.0, PLACES.1) as usize | 1;
        let step = 2.0 * REACH / (places - 1) as f64;
        let (mut sum, mut whole) = (0.0, 0.0);
        for s in 0..places {
            let z = s as f64 * step - REACH;
            let weight = (-0.5 * z * z).exp();
            sum += weight * poisson_cdf(count, (mean + z * std).exp());
            whole += weight;
        }
        sum / whole
    }
}

/// Σ_{j ≤ k} exp(−rate) rateʲ/j!, of k below [`LARGE`]: from the largest term down, so that nothing underflows.
fn poisson_cdf(k: f64, rate: f64) -> f64 {
    if rate <= 0.0 {
        return 1.0;
    }
    // A rate so far above k, or below it, leaves less than rounding on the other side.
    let far = 12.0 * (k + 1.0).sqrt() + 40.0;
    if rate > k + far {
        return 0.0;
    }
    let top = rate.floor().min(k);
    let largest = (top * rate.ln() - rate - log_factorial(top)).exp();
    let (mut sum, mut term, mut j) = (largest, largest, top);
    while j > 0.0 && term > 1e-17 * sum {
        term *= j / rate;
        sum += term;
        j -= 1.0;
    }
    (term, j) = (largest, top);
    while j < k && term > 1e-17 * sum {
        j += 1.0;
        term *= rate / j;
        sum += term;
    }
    sum.min(1.0)
}

/// ln(exp v − 1), for v ≥ 0.
fn log_exp_m1(v: f64) -> f64 {
    if v > 40.0 { v } else { v.exp_m1().ln() }
}

/// ln y!.
fn log_factorial(y: f64) -> f64 {
    libm::lgamma(y + 1.0)
}

impl Parameterized for Poisson {
    fn params(&self) -> Vec<(String, &Param)> {
        vec![]
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        vec![]
    }
}

impl Likelihood for Poisson {
    fn expression(&self) -> String {
        "poisson".into()
    }

    fn check(&self, y: &[f64]) -> Result<()> {
        check_counts(y)
    }

    /// Numbers of 0 or more, whole or not.
    fn check_density(&self, y: &[f64]) -> Result<()> {
        check_intensities(y)
    }

    fn log_density(&self, y: f64, f: f64) -> Derivatives {
        let rate = f.exp();
        // A rate beyond all numbers is a density of 0, whatever y f is.
        let value = if rate.is_infinite() { f64::NEG_INFINITY } else { y * f - rate - log_factorial(y) };
        Derivatives { value, first: y - rate, second: -rate, third: -rate }
    }

    fn kind(&self) -> Kind {
        Kind::Counts
    }

    fn moments(&self, mean: f64, var: f64) -> (f64, f64) {
        let (rate, spread) = self.rate(mean, var);
        (rate, rate + spread)
    }

    fn response_moments(&self, mean: f64, var: f64) -> (f64, f64) {
        self.rate(mean, var)
    }

    /// m_a m_b (exp C − 1), with m the means of the rates.
    fn covariance(&self, a: (f64, f64), b: (f64, f64), cov: f64) -> f64 {
        self.rate(a.0, a.1).0 * self.rate(b.0, b.1).0 * cov.exp_m1()
    }

    fn predictive_cdf(&self, y: f64, mean: f64, var: f64) -> f64 {
        Poisson::predictive_cdf(self, y, mean, var)
    }

    /// The logarithm of the mean count, or of half a count where all are 0.
    fn start(&self, y: &[f64]) -> f64 {
        let n = y.len().max(1) as f64;
        y.iter().map(|v| v / n).sum::<f64>().max(0.5 / n).ln()
    }

    fn expected(&self, y: f64, mean: f64, var: f64, _: &Quadrature) -> Expected {
        let rate = (mean + 0.5 * var).exp();
        Expected { value: y * mean - rate - log_factorial(y), mean: y - rate, var: -0.5 * rate }
    }

    /// Gauss-Hermite around the mode of p(y | f) N(f; mean, var), where the integrand is: a count that is
    /// far from what was expected would fall between the nodes of the plain rule.
    fn log_predictive(&self, y: f64, mean: f64, var: f64, rule: &Quadrature) -> f64 {
        if var <= 0.0 {
            return self.log_density(y, mean).value;
        }
        let mode = centre(y, mean, var);
        let spread = 1.0 / (1.0 / var + mode.exp());
        let correction =
            |f: f64| 0.5 * ((f - mode).powi(2) / spread - (f - mean).powi(2) / var + (spread / var).ln());
        rule.log_mean_exp(mode, spread, |f| self.log_density(y, f).value + correction(f))
    }
}

/// The f that maximises y f − exp f − (f − mean)²/2var, by Newton's method from above, where it cannot
/// overshoot: the derivative is concave and falls.
fn centre(y: f64, mean: f64, var: f64) -> f64 {
    let mut f = mean.max((y + 1.0).ln()).min(700.0);
    for _ in 0..200 {
        let rate = f.exp();
        let step = (y - rate - (f - mean) / var) / (rate + 1.0 / var);
        f += step;
        if step.abs() <= 1e-12 * (1.0 + f.abs()) {
            break;
        }
    }
    f
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn rates_by_hand() {
        let (mean, var) = Poisson.rate(0.5, 0.8);
        assert!((mean - 0.9f64.exp()).abs() < 1e-14);
        assert!((var - 0.8f64.exp_m1() * 1.8f64.exp()).abs() < 1e-13);
        assert_eq!(Poisson.rate(1.0, 0.0), (1f64.exp(), 0.0));
        assert_eq!(Poisson.moments(0.0, 0.0), (1.0, 1.0));
    }

    #[test]
    fn distribution_functions_are_sums_of_densities() {
        let rule = Quadrature::new(60).unwrap();
        for (mean, var) in [(0.7, 0.0), (0.7, 0.3), (-2.0, 1.0), (4.0, 0.01), (5.5, 0.5)] {
            let mut sum = 0.0;
            for k in 0..400 {
                sum += Poisson.log_predictive(f64::from(k), mean, var, &rule).exp();
                let found = Poisson.predictive_cdf(f64::from(k), mean, var);
                assert!((found - sum).abs() < 1e-3, "{k} of N({mean}, {var}): {found} against {sum}");
            }
        }
        // On either side of the count where the formula changes.
        for (mean, var) in [(6.9, 0.0), (6.9, 0.2), (6.8, 0.001)] {
            let steps = [998.0, 999.0, 1000.0, 1001.0].map(|k| Poisson.predictive_cdf(k, mean, var));
            assert!(steps.windows(2).all(|p| p[0] < p[1] && p[1] - p[0] < 0.02), "{steps:?}");
        }
    }

    #[test]
    fn quantiles_are_the_first_counts_that_reach_their_probability() {
        for (mean, var) in [(0.7, 0.0), (0.7, 0.3), (-30.0, 1.0), (4.0, 0.01), (12.0, 2.0)] {
            for p in [0.025, 0.25, 0.5, 0.95] {
                let k = Poisson.predictive_quantile(p, mean, var);
                assert!(Poisson.predictive_cdf(k, mean, var) >= p);
                assert!(k == 0.0 || Poisson.predictive_cdf(k - 1.0, mean, var) < p, "{k}");
            }
        }
        assert!(Poisson.predictive_quantile(0.5, 600.0, 1.0).is_finite());
    }

    #[test]
    fn a_count_far_from_its_mean_keeps_its_density() {
        // Sums of a fine trapezoid, which converges geometrically for this integrand.
        let rule = Quadrature::new(20).unwrap();
        for (y, mean, var) in [(0.0, 6.0, 0.04), (500.0, 1.0, 1.0), (3.0, 0.5, 0.3), (1000.0, 6.9, 4.0)] {
            let normal = |f: f64| -0.5 * ((f - mean) * (f - mean) / var + (std::f64::consts::TAU * var).ln());
            let terms: Vec<f64> = (-20_000..20_000)
                .map(|i| mean + f64::from(i) * 1e-3)
                .map(|f| Poisson.log_density(y, f).value + normal(f) + 1e-3f64.ln())
                .collect();
            let top = terms.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
            let truth = top + terms.iter().map(|t| (t - top).exp()).sum::<f64>().ln();
            let found = Poisson.log_predictive(y, mean, var, &rule);
            assert!((found - truth).abs() < 1e-6, "{y} {mean} {var}: {found} {truth}");
        }
    }

    #[test]
    fn observations_that_are_no_counts_are_refused() {
        for bad in [&[1.0, -1.0][..], &[0.5], &[f64::NAN], &[f64::INFINITY]] {
            assert!(matches!(Poisson.check(bad), Err(Error::Invalid { .. })), "{bad:?}");
        }
        assert!(matches!(Poisson.check(&[]), Err(Error::Data { .. })));
        Poisson.check(&[0.0, 0.0]).unwrap();
        assert!(Poisson.start(&[0.0, 0.0]).is_finite());
    }
}
