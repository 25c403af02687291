//! Two classes: p(y = 1 | f) = 1/(1 + exp(−f)) (logit) or Φ(f) (probit).
//!
//! With s = ±1 for y = 1, 0 and z = s f, logit has ln p = −ln(1 + exp(−z)). Probit has ln p = ln Φ(z), and
//! with r = φ(z)/Φ(z) and δ = z + r
//!
//! ```text
//! ∂ = s r      ∂² = −r δ      ∂³ = s r (δ² + r δ − 1)
//! ```
//!
//! Far on the wrong side, t = −z ≫ 1, these are small differences of large numbers; there Laplace's continued
//! fraction r = t + δ, δ = 1/(t + ε), ε = 2/(t + η), η = 3/(t + 4/(t + …)) gives each without cancellation.

use super::names::{Entry, Parsed};
use super::{Derivatives, Kind, Likelihood, Quadrature, check_labels};
use crate::error::{Error, Result};
use crate::param::{Param, Parameterized};
use crate::special::{log_normal_cdf, normal_cdf};

const HALF_LN_2PI: f64 = 0.918_938_533_204_672_8;
/// Beyond it the continued fraction is used; so many of its terms give all digits there.
const TAIL: f64 = 2.0;
const TERMS: usize = 120;
/// Up to this variance Gauss-Hermite is right to 1e-7 in a logit probability.
const NARROW: f64 = 8.0;
/// Spacing and reach of the sum that takes over beyond it: the error is exp(−2π²/spacing), below rounding.
const SPACING: f64 = 0.5;
const REACH: f64 = 40.0;
/// Logit probabilities of latent means below this are 0 in any case.
const LOWEST: f64 = 750.0;

pub(super) const ENTRY: Entry = Entry {
    name: "bernoulli",
    about: "one of two classes; link is logit or probit",
    example: "bernoulli(link=probit)",
    options: &[("link", "logit")],
    kind: Kind::Classes,
    make: |asked| {
        let link = match asked.call.text("link") {
            "logit" => Link::Logit,
            "probit" => Link::Probit,
            _ => return Err(asked.call.wrong("link", "logit or probit")),
        };
        match asked.classes {
            0 | 2 => Ok(Parsed::one(Bernoulli { link })),
            n => Err(Error::invalid("data of a bernoulli likelihood", "2 classes (categorical has more)", n)),
        }
    },
};

/// How f becomes a probability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// 1/(1 + exp(−f)).
    #[default]
    Logit,
    /// Φ(f).
    Probit,
}

/// The likelihood of two classes, 0 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bernoulli {
    /// How f becomes a probability.
    pub link: Link,
}

impl Bernoulli {
    /// With the logistic function.
    pub fn logit() -> Self {
        Bernoulli { link: Link::Logit }
    }

    /// With the normal distribution function.
    pub fn probit() -> Self {
        Bernoulli { link: Link::Probit }
    }

    /// p(y = 1 | f).
    pub fn probability(&self, f: f64) -> f64 {
        match self.link {
            Link::Logit => logistic(f),
            Link::Probit => normal_cdf(f),
        }
    }

    /// p(y = 1) averaged over f ~ N(mean, var): Φ(mean/√(1 + var)) for probit.
    ///
    /// For logit by Gauss-Hermite, while the Gaussian is narrow; a wide one would see a step between two nodes,
    /// but E[1/(1 + exp(−f))] = E[Φ((mean + u)/√var)] over a logistic u is then a smooth sum over u.
    pub fn averaged(&self, mean: f64, var: f64) -> f64 {
        self.average(mean, var, &Quadrature::fine())
    }

    fn average(&self, mean: f64, var: f64, rule: &Quadrature) -> f64 {
        match self.link {
            Link::Probit => normal_cdf(mean / (1.0 + var).sqrt()),
            Link::Logit if var <= NARROW => rule.mean(mean, var, logistic),
            Link::Logit => wide(mean, var),
        }
    }
}

/// E[Φ((mean + u)/√var)] over u of density ¼ sech²(u/2), by the trapezoid rule.
fn wide(mean: f64, var: f64) -> f64 {
    let std = var.sqrt();
    // Far on the left the probability is that of a u that makes up for the mean.
    let steps = (2.0 * REACH + (-mean).clamp(0.0, LOWEST)) / SPACING;
    let term = |i: usize| {
        let u = -REACH + SPACING * i as f64;
        logistic(u) * logistic(-u) * normal_cdf((mean + u) / std)
    };
    (SPACING * (0..=steps as usize).map(term).sum::<f64>()).min(1.0)
}

/// 1/(1 + exp(−f)), without overflow.
fn logistic(f: f64) -> f64 {
    let e = (-f.abs()).exp();
    if f >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) }
}

fn logit(sign: f64, f: f64) -> Derivatives {
    let z = sign * f;
    let (p, q) = (logistic(f), logistic(-f));
    Derivatives {
        value: z.min(0.0) - (-z.abs()).exp().ln_1p(),
        first: sign * logistic(-z),
        second: -p * q,
        third: p * q * (p - q),
    }
}

fn probit(sign: f64, f: f64) -> Derivatives {
    let z = sign * f;
    let value = log_normal_cdf(z);
    if z >= -TAIL {
        // The density underflows to 0 for a large z, and all derivatives with it.
        let r = (-0.5 * z * z - HALF_LN_2PI - value).exp();
        let delta = if r == 0.0 { 0.0 } else { z + r };
        return Derivatives {
            value,
            first: sign * r,
            second: -r * delta,
            third: if r == 0.0 { 0.0 } else { sign * r * (delta * delta + r * delta - 1.0) },
        };
    }
    let t = -z;
    let (mut eta, mut zeta) = (0.0, 0.0);
    for k in (3..TERMS).rev() {
        (zeta, eta) = (eta, k as f64 / (t + eta));
    }
    let eps = 2.0 / (t + eta);
    let delta = 1.0 / (t + eps);
    let r = t + delta;
    // δ² + rδ − 1 = δ(2δ − ε), and 2δ − ε = 2(η − ε)/((t + ε)(t + η)) with
    // η − ε = (t + 3η − 2ζ)/((t + ζ)(t + η)), where η = 3/(t + ζ).
    let gap = (t + 3.0 * eta - 2.0 * zeta) / ((t + zeta) * (t + eta));
    Derivatives {
        value,
        first: sign * r,
        second: -(t * delta + delta * delta),
        third: sign * (t * delta + delta * delta) * 2.0 * gap / ((t + eps) * (t + eta)),
    }
}

impl Parameterized for Bernoulli {
    fn params(&self) -> Vec<(String, &Param)> {
        vec![]
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        vec![]
    }
}

impl Likelihood for Bernoulli {
    fn expression(&self) -> String {
        match self.link {
            Link::Logit => "bernoulli(link=logit)".into(),
            Link::Probit => "bernoulli(link=probit)".into(),
        }
    }

    fn check(&self, y: &[f64]) -> Result<()> {
        if let Some(at) = y.iter().position(|v| *v != 0.0 && *v != 1.0) {
            return Err(Error::invalid(format!("label of row {}", at + 1), "class 0 or 1", y[at]));
        }
        check_labels(&y.iter().map(|v| *v as usize).collect::<Vec<_>>(), 2)
    }

    fn log_density(&self, y: f64, f: f64) -> Derivatives {
        let sign = if y > 0.5 { 1.0 } else { -1.0 };
        match self.link {
            Link::Logit => logit(sign, f),
            Link::Probit => probit(sign, f),
        }
    }

    fn kind(&self) -> Kind {
        Kind::Classes
    }

    fn classes(&self) -> usize {
        2
    }

    /// Each class by itself, so that the rarer one keeps its digits.
    fn probabilities(&self, mean: f64, var: f64, rule: &Quadrature, out: &mut [f64]) {
        (out[0], out[1]) = (self.average(-mean, var, rule), self.average(mean, var, rule));
    }

    fn probabilities_at(&self, f: f64, out: &mut [f64]) {
        (out[0], out[1]) = (self.probability(-f), self.probability(f));
    }

    fn moments(&self, mean: f64, var: f64) -> (f64, f64) {
        let rule = Quadrature::fine();
        let (p, q) = (self.average(mean, var, &rule), self.average(-mean, var, &rule));
        (p, p * q)
    }

    fn log_predictive(&self, y: f64, mean: f64, var: f64, rule: &Quadrature) -> f64 {
        let sign = if y > 0.5 { 1.0 } else { -1.0 };
        match self.link {
            Link::Probit => log_normal_cdf(sign * mean / (1.0 + var).sqrt()),
            Link::Logit => rule.log_mean_exp(mean, var, |f| logit(sign, f).value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probit_tail_keeps_its_digits() {
        for t in [30.0, 1e3, 1e5, 1e8] {
            let at = probit(1.0, -t);
            let i = 1.0 / (t * t);
            // r = t (1 + t⁻² − 2t⁻⁴ + 10t⁻⁶ − 74t⁻⁸ + …); its derivatives follow.
            let first = t * (1.0 + i * (1.0 - i * (2.0 - i * (10.0 - 74.0 * i))));
            let second = -1.0 + i * (1.0 - i * (6.0 - i * (50.0 - 518.0 * i)));
            let third = 2.0 * i / t * (1.0 - i * (12.0 - i * (150.0 - 2072.0 * i)));
            assert!((at.first / first - 1.0).abs() < 1e-10, "{t} {} {first}", at.first);
            assert!((at.second / second - 1.0).abs() < 1e-9, "{t} {} {second}", at.second);
            assert!((at.third / third - 1.0).abs() < 1e-7, "{t} {} {third}", at.third);
        }
    }

    #[test]
    fn the_pieces_of_the_probit_join() {
        let (left, right) = (probit(1.0, -TAIL - 1e-13), probit(1.0, -TAIL));
        for (a, b) in [(left.first, right.first), (left.second, right.second), (left.third, right.third)] {
            assert!((a / b - 1.0).abs() < 1e-12, "{a} {b}");
        }
    }

    #[test]
    fn averages_hold_for_any_variance() {
        // SciPy 1.17.1, integrate.quad of expit(f) N(f; mean, var) over ±40 standard deviations, split at 0.
        for (mean, var, truth) in AVERAGES {
            let found = Bernoulli::logit().averaged(mean, var);
            let tolerance = if var <= NARROW { 1e-10 } else { 1e-14 };
            assert!((found - truth).abs() < tolerance, "{mean} {var}: {found} {truth}");
        }
        let (left, right) = (Bernoulli::logit().averaged(0.4, NARROW), wide(0.4, NARROW));
        assert!((left - right).abs() < 1e-7, "{left} {right}");
        assert_eq!(Bernoulli::logit().averaged(-1e6, 1.0), 0.0);
        assert_eq!(Bernoulli::probit().averaged(1e6, 1.0), 1.0);
        let far = Bernoulli::logit().averaged(-40.0, 1.0);
        assert!((far / (-39.5f64).exp() - 1.0).abs() < 1e-6, "{far}");
        let far = Bernoulli::logit().averaged(-80.0, 20.0);
        assert!((far / (-70f64).exp() - 1.0).abs() < 1e-6, "{far}");
    }

    #[test]
    fn labels_other_than_two_classes_are_refused() {
        for bad in [&[0.0, 1.0, 2.0][..], &[0.0, f64::NAN], &[0.5, 1.0], &[-1.0, 1.0]] {
            assert!(matches!(Bernoulli::logit().check(bad), Err(Error::Invalid { .. })));
        }
        for bad in [&[1.0, 1.0][..], &[0.0], &[]] {
            assert!(matches!(Bernoulli::logit().check(bad), Err(Error::Data { .. })));
        }
        Bernoulli::logit().check(&[0.0, 1.0]).unwrap();
    }

    const AVERAGES: [(f64, f64, f64); 5] = [
        (0.7, 1.3, 0.6355303418342966),
        (-2.0, 10.0, 0.29028682667154654),
        (0.3, 0.01, 0.5742614096433241),
        (5.0, 400.0, 0.598312117861599),
        (-100.0, 1e6, 0.46017222801882307),
    ];
}
