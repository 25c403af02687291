//! Values with outliers: y = centre + unit · z, with z ~ t_ν(f, s²).
//!
//! With r = z − f, t = r/(s√ν) and q = 1/(1 + t²),
//!
//! ```text
//! ln p(z | f) = ln Γ((ν + 1)/2) − ln Γ(ν/2) − ½ ln πν − ln s − ½(ν + 1) ln(1 + t²)
//! ∂ = (ν + 1) t q/(s√ν)     ∂² = (ν + 1) q(1 − 2q)/(s²ν)     ∂³ = 2(ν + 1) t q²(1 − 4q)/(s√ν)³
//! ∂/∂s = ((ν + 1) t²q − 1)/s     E[z] = E[f]     Var[z] = Var[f] + s²ν/(ν − 2)
//! ```
//!
//! The pull ∂ of an observation on f falls as 1/r beyond s√ν: what is far from all others counts little. There ∂² > 0, so
//! that the likelihood is not log-concave. Centre and unit are the median of the observations and 1.4826 times the median
//! of their distances from it, which outliers do not move; of Gaussian numbers the latter is the standard deviation.
//!
//! E[ln p] has no closed form. A Gauss-Hermite rule of 20 points has it to 1e-6 while Var[f] is at most s², and to 1e-2
//! while it is at most 10 s²; after a fit it is mostly less.
//!
//! A t variable is Gaussian of variance s²/λ with λ ~ Gamma(ν/2, ν/2), so that the density of a held-out observation under
//! f ~ N(m, v) is the integral of N(z; m, v + s²/λ) over one smooth variable, ln λ.

use super::names::{Entry, Parsed};
use super::{Derivatives, Kind, Likelihood, Quadrature};
use crate::error::{Error, Result};
use crate::param::{Param, Parameterized, Transform};

/// 1/Φ⁻¹(¾): the standard deviation of Gaussian numbers, of their median distance from the median.
const NORMAL: f64 = 1.482_602_218_505_602;
/// s stays above this part of the unit.
const LEAST_SCALE: f64 = 1e-3;
/// Where s starts.
const START: f64 = 0.3;
/// ν is above this, where the variance is finite.
const LEAST_DF: f64 = 2.0;
/// Observations are below this, and differ by more than its inverse: their variances are numbers.
const LARGEST: f64 = 1e150;
/// Observations are nearer to the centre than so many units.
const FARTHEST: f64 = 1e100;
/// Beyond it ln(1 + t²) is 2 ln t to all digits, and t² may overflow.
const FAR: f64 = 1e9;
/// From this x on, the series of logarithms of Γ have all digits; differences of ln Γ itself lose them.
const SERIES: f64 = 50.0;
/// A spread of less than this part of the centre is rounding.
const CONSTANT: f64 = 64.0 * f64::EPSILON;
/// Terms below exp(−DEPTH) of the largest do not count.
const DEPTH: f64 = 40.0;
/// Places in the width of the largest term, and most places of the sum.
const PLACES: f64 = 2.0;
const MOST_PLACES: f64 = 4000.0;

pub(super) const ENTRY: Entry = Entry {
    name: "student_t",
    about: "numbers with outliers; df above 2 says how rare these are, and the scale is learnt",
    example: "student_t(df=4)",
    options: &[("df", "4")],
    kind: Kind::Values,
    make: |asked| {
        let df = asked.call.get("df", "a number")?;
        Ok(Parsed::one(StudentT::new(df).map_err(|_| asked.call.wrong("df", "a number above 2"))?))
    },
};

/// Student's t around f, with a scale that is fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct StudentT {
    /// s, of standardised observations.
    pub scale: Param,
    df: f64,
    /// Of the observations.
    centre: f64,
    unit: f64,
    /// All of ln p(z | f) at r = 0 but −ln s.
    constant: f64,
}

impl StudentT {
    /// With ν degrees of freedom: 4 is robust, and more is nearer to a Gaussian; errs unless ν > 2.
    pub fn new(df: f64) -> Result<Self> {
        if !(df > LEAST_DF && df.is_finite()) {
            return Err(Error::invalid("df of a student_t likelihood", "a number above 2", df));
        }
        let mut scale = Param::scalar(START);
        scale.transform = Transform::Above { lo: LEAST_SCALE };
        let constant = log_gamma_step(0.5 * df) - 0.5 * (std::f64::consts::PI * df).ln();
        Ok(StudentT { scale, df, centre: 0.0, unit: 1.0, constant })
    }

    /// ν.
    pub fn df(&self) -> f64 {
        self.df
    }

    /// Centre and unit of the observations.
    pub fn units(&self) -> (f64, f64) {
        (self.centre, self.unit)
    }

    fn standardised(&self, y: f64) -> f64 {
        (y - self.centre) / self.unit
    }
}

/// ln Γ(x + ½) − ln Γ(x).
fn log_gamma_step(x: f64) -> f64 {
    if x < SERIES {
        return libm::lgamma(x + 0.5) - libm::lgamma(x);
    }
    let (i, square) = (1.0 / x, 1.0 / (x * x));
    0.5 * x.ln() - i * (1.0 / 8.0 - square * (1.0 / 192.0 - square * (1.0 / 640.0 - square * 17.0 / 14336.0)))
}

/// x ln x − x − ln Γ(x).
fn log_gamma_rest(x: f64) -> f64 {
    if x < SERIES {
        return x * x.ln() - x - libm::lgamma(x);
    }
    let (i, square) = (1.0 / x, 1.0 / (x * x));
    let series = i * (1.0 / 12.0 - square * (1.0 / 360.0 - square / 1260.0));
    0.5 * (x / std::f64::consts::TAU).ln() - series
}

/// Of at least one finite number; the mean of the middle two where they are even.
fn median(mut of: Vec<f64>) -> f64 {
    of.sort_unstable_by(f64::total_cmp);
    let middle = of.len() / 2;
    if of.len() % 2 == 1 { of[middle] } else { 0.5 * of[middle - 1] + 0.5 * of[middle] }
}

/// Median, and a standard deviation from the median distance; the largest where that is rounding, and 1 where all numbers
/// are equal.
fn units(y: &[f64]) -> (f64, f64) {
    let centre = median(y.to_vec());
    let distances: Vec<f64> = y.iter().map(|v| (v - centre).abs()).collect();
    let least = (CONSTANT * centre.abs()).max(f64::MIN_POSITIVE);
    let farthest = distances.iter().fold(0.0, |a: f64, b| a.max(*b));
    let unit = [NORMAL * median(distances), farthest].into_iter().find(|u| *u > least);
    (centre, unit.unwrap_or(1.0))
}

impl Parameterized for StudentT {
    fn params(&self) -> Vec<(String, &Param)> {
        vec![("scale".to_string(), &self.scale)]
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        vec![("scale".to_string(), &mut self.scale)]
    }

    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        visit(&self.scale);
    }

    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        visit(&mut self.scale);
    }
}

impl Likelihood for StudentT {
    fn expression(&self) -> String {
        format!("student_t(df={})", self.df)
    }

    fn check(&self, y: &[f64]) -> Result<()> {
        if y.is_empty() {
            return Err(Error::data("the observations", "there is none to learn from"));
        }
        if let Some(at) = y.iter().position(|v| !v.is_finite()) {
            return Err(Error::invalid(format!("observation of row {}", at + 1), "a finite number", y[at]));
        }
        let (centre, unit) = units(y);
        if unit < 1.0 / LARGEST {
            let reason =
                format!("they differ by {unit:e} only, which has no square; multiply them by a power of ten");
            return Err(Error::data("the observations", reason));
        }
        match y.iter().position(|v| !(v.abs() < LARGEST && (v - centre).abs() < FARTHEST * unit)) {
            None => Ok(()),
            Some(at) => {
                let expected =
                    "a number that can be squared (leave the row out, or divide all by a power of ten)";
                Err(Error::invalid(format!("observation of row {}", at + 1), expected, y[at]))
            }
        }
    }

    fn set_units(&mut self, y: &[f64]) {
        (self.centre, self.unit) = units(y);
    }

    fn log_jacobian(&self) -> f64 {
        -self.unit.ln()
    }

    fn log_concave(&self) -> bool {
        false
    }

    fn log_density(&self, y: f64, f: f64) -> Derivatives {
        let (s, more) = (self.scale.get(), self.df + 1.0);
        let width = s * self.df.sqrt();
        let t = (self.standardised(y) - f) / width;
        let q = 1.0 / (1.0 + t * t);
        let tq = if t.is_infinite() { 0.0 } else { t * q };
        let log = if t.abs() > FAR { 2.0 * t.abs().ln() } else { (t * t).ln_1p() };
        Derivatives {
            value: self.constant - s.ln() - 0.5 * more * log,
            first: more * tq / width,
            second: more * q * (1.0 - 2.0 * q) / (width * width),
            third: 2.0 * more * tq * q * (1.0 - 4.0 * q) / (width * width * width),
        }
    }

    fn log_density_adjoint(&self, y: f64, f: f64, bar: f64, grad: &mut [f64]) {
        let s = self.scale.get();
        let t = (self.standardised(y) - f) / (s * self.df.sqrt());
        // t²q, which is 1 where t² overflows.
        let share = 1.0 - 1.0 / (1.0 + t * t);
        grad[0] += bar * ((self.df + 1.0) * share - 1.0) / s;
    }

    fn moments(&self, mean: f64, var: f64) -> (f64, f64) {
        let s = self.scale.get();
        let noise = s * s * self.df / (self.df - 2.0);
        (self.centre + self.unit * mean, (var + noise) * self.unit * self.unit)
    }

    fn response_moments(&self, mean: f64, var: f64) -> (f64, f64) {
        (self.centre + self.unit * mean, var * self.unit * self.unit)
    }

    fn covariance(&self, _: (f64, f64), _: (f64, f64), cov: f64) -> f64 {
        cov * self.unit * self.unit
    }

    /// By the trapezoid rule over ln λ, which converges geometrically; the nodes of the Gaussian are not needed.
    fn log_predictive(&self, y: f64, mean: f64, var: f64, _: &Quadrature) -> f64 {
        let r = self.standardised(y) - mean;
        if var <= 0.0 {
            return self.log_density(y, mean).value + self.log_jacobian();
        }
        let (s, half) = (self.scale.get(), 0.5 * self.df);
        let term = |tau: f64| {
            let spread = var + s * s * (-tau).exp();
            -half * (tau.exp_m1() - tau) - 0.5 * (spread.ln() + r * (r / spread))
        };
        // The largest term is right of where it is for var = 0, and of λ = 1 if that is less; and left of 1 + 1/ν. Beyond,
        // terms fall at least as those of the density of ln λ.
        let depth = DEPTH / half;
        let first = ((self.df + 1.0) / (self.df + (r / s) * (r / s))).ln().min(0.0);
        let left = first - depth - (2.0 * depth).sqrt();
        let right = (1.0 / self.df).ln_1p() + 2.0 * depth.sqrt().ln_1p();
        let places = (PLACES * (right - left) * (self.df + 1.0).sqrt()).min(MOST_PLACES).ceil();
        let step = (right - left) / places;
        let terms: Vec<f64> = (0..=places as usize).map(|i| term(left + i as f64 * step)).collect();
        let top = terms.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
        let sum = top + terms.iter().map(|t| (t - top).exp()).sum::<f64>().ln() + step.ln();
        sum + log_gamma_rest(half) - 0.5 * std::f64::consts::TAU.ln() + self.log_jacobian()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(df: f64, scale: f64, y: &[f64]) -> StudentT {
        let mut t = StudentT::new(df).unwrap();
        t.scale.set(scale);
        t.check(y).unwrap();
        t.set_units(y);
        t
    }

    const Y: [f64; 7] = [3.0, 5.0, 4.0, 2.0, 6.0, 400.0, 4.5];

    #[test]
    fn units_do_not_follow_outliers() {
        assert_eq!(of(4.0, 0.3, &Y).units(), (4.5, 1.5 * NORMAL));
        // Every observation twice says the same.
        let twice: Vec<f64> = Y.iter().flat_map(|y| [*y, *y]).collect();
        assert_eq!(units(&twice), units(&Y));
        assert_eq!(units(&[1.0, 3.0]), (2.0, NORMAL));
        assert_eq!(units(&[1.0, 2.0, 3.0, 4.0, 1e60]), (3.0, NORMAL));
        assert_eq!(units(&[7.0, 7.0, 7.0, 7.0 + 1e-14, 9.0]), (7.0, 2.0));
        assert_eq!((units(&[7.0, 7.0]), units(&[-2.0])), ((7.0, 1.0), (-2.0, 1.0)));
    }

    #[test]
    fn many_degrees_of_freedom_are_a_gaussian() {
        let normal = |r: f64, var: f64| -0.5 * (r * r / var + (std::f64::consts::TAU * var).ln());
        let rule = Quadrature::fine();
        for df in [1e6, 1e9, 1e15] {
            let t = of(df, 0.7, &Y);
            let (centre, unit) = t.units();
            for (y, f) in [(4.0, 0.2), (9.0, -0.4), (4.5, 0.0)] {
                let z = (y - centre) / unit;
                let at = t.log_density(y, f);
                let tolerance = 300.0 / df + 1e-12;
                assert!((at.value - normal(z - f, 0.49)).abs() < tolerance, "{df} {y}");
                assert!(
                    (at.first - (z - f) / 0.49).abs() < tolerance
                        && (at.second + 1.0 / 0.49).abs() < tolerance
                );
                let found = t.log_predictive(y, f, 0.3, &rule);
                let truth = normal(z - f, 0.79) - unit.ln();
                assert!((found - truth).abs() < tolerance + 1e-9, "{df} {y}: {found} {truth}");
                let (mean, var) = t.moments(f, 0.3);
                assert!((mean - centre - unit * f).abs() < 1e-12);
                assert!((var / (0.79 * unit * unit) - 1.0).abs() < tolerance);
            }
        }
    }

    #[test]
    fn held_out_densities_are_integrals_over_f() {
        let rule = Quadrature::fine();
        for (df, s) in [(2.5, 0.4), (4.0, 0.05), (4.0, 1.0), (30.0, 0.3), (400.0, 0.2)] {
            let t = of(df, s, &Y);
            for (y, mean, var) in
                [(4.0, 0.3, 0.5), (400.0, 0.0, 0.2), (-30.0, 1.0, 1e-4), (4.6, 0.0, 9.0), (20.0, 0.5, 0.01)]
            {
                // A trapezoid of steps that are small against both widths, over both peaks.
                let std = f64::sqrt(var);
                let step = 0.05 * std.min(s);
                let terms = (20.0 * std / step) as i64;
                let normal = |f: f64| -0.5 * ((f - mean).powi(2) / var + (std::f64::consts::TAU * var).ln());
                let logs: Vec<f64> = (-terms..=terms)
                    .map(|i| mean + i as f64 * step)
                    .map(|f| t.log_density(y, f).value + normal(f) + step.ln())
                    .collect();
                let top = logs.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
                let sum = top + logs.iter().map(|l| (l - top).exp()).sum::<f64>().ln();
                let (found, truth) = (t.log_predictive(y, mean, var, &rule), sum + t.log_jacobian());
                assert!((found - truth).abs() < 1e-8, "{df} {s} {y} {mean} {var}: {found} {truth}");
            }
            let certain = t.log_predictive(4.0, 0.3, 0.0, &rule);
            assert!((t.log_predictive(4.0, 0.3, 1e-12, &rule) - certain).abs() < 1e-9);
        }
    }

    #[test]
    fn twenty_points_are_enough_around_the_scale() {
        let (t, rule) = (of(4.0, 0.1, &Y), Quadrature::new(20).unwrap());
        for (var, tolerance) in [(0.01, 1e-6), (0.1, 1e-2)] {
            for y in [4.5, 5.0, 9.0, 400.0] {
                let step = 1e-3;
                let exact: f64 = (-10_000..=10_000)
                    .map(|i| step * f64::from(i))
                    .map(|xi| t.log_density(y, 0.1 + f64::sqrt(var) * xi).value * (-0.5 * xi * xi).exp())
                    .sum();
                let exact = exact * step / std::f64::consts::TAU.sqrt();
                let found = t.expected(y, 0.1, var, &rule).value;
                assert!((found - exact).abs() < tolerance, "{var} {y}: {found} {exact}");
            }
        }
    }

    #[test]
    fn densities_have_the_moments() {
        let t = of(9.0, 0.6, &Y);
        let (mean, var) = t.moments(0.4, 0.2);
        let rule = Quadrature::fine();
        let step = 0.02;
        let moment = |k: i32| -> f64 {
            let y = (-40_000..40_000).map(|i| mean + step * f64::from(i));
            y.map(|y| t.log_predictive(y, 0.4, 0.2, &rule).exp() * (y - mean).powi(k) * step).sum()
        };
        assert!((moment(0) - 1.0).abs() < 1e-9 && moment(1).abs() < 1e-9, "{} {}", moment(0), moment(1));
        assert!((moment(2) / var - 1.0).abs() < 1e-6, "{} {var}", moment(2));
    }

    #[test]
    fn observations_and_degrees_that_cannot_be_are_refused() {
        for df in [2.0, 0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(StudentT::new(df).is_err(), "{df}");
        }
        let t = StudentT::new(4.0).unwrap();
        for bad in [&[1.0, f64::NAN][..], &[f64::INFINITY], &[1e200, -1e200], &[1.0, 2.0, 3.0, 1e120]] {
            assert!(matches!(t.check(bad), Err(Error::Invalid { .. })), "{bad:?}");
        }
        for bad in [&[][..], &[1e-200, 2e-200, 4e-200]] {
            assert!(matches!(t.check(bad), Err(Error::Data { .. })), "{bad:?}");
        }
        t.check(&[1.0, 2.0, 1e60]).unwrap();
    }
}
