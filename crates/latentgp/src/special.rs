//! The normal distribution function and its inverse.
//!
//! Φ(x) = ½ erfc(−x/√2), from the platform-independent erfc of `libm`. Its inverse is found by Newton's
//! method on a concave function, started on the left of the root, from where the steps approach the root
//! without passing it: on ln Φ in the tails and on erf in the middle, so that both keep their relative
//! accuracy of about 1e-15.

use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

const HALF_LN_2PI: f64 = 0.918_938_533_204_672_8;
/// Below it the asymptotic series of ln Φ is exact to rounding, and Φ itself soon underflows.
const SERIES_BELOW: f64 = -20.0;
/// Newton's method needs about six steps; the bound only makes it plain that the loop ends.
const MAX_STEPS: usize = 50;

/// Φ(x), the probability that a standard normal variable is below x.
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// ln Φ(x), also where Φ underflows.
pub fn log_normal_cdf(x: f64) -> f64 {
    if x == f64::NEG_INFINITY {
        return x;
    }
    if x > 0.0 {
        return (-normal_cdf(-x)).ln_1p();
    }
    if x >= SERIES_BELOW || x.is_nan() {
        return normal_cdf(x).ln();
    }
    // 1 − 1/x² + 3/x⁴ − 15/x⁶ + …
    let inverse_square = 1.0 / (x * x);
    let mut term = 1.0;
    let mut tail = 0.0;
    for k in 1..10 {
        term *= -inverse_square * (2 * k - 1) as f64;
        tail += term;
    }
    -0.5 * x * x - HALF_LN_2PI - (-x).ln() + tail.ln_1p()
}

/// The x with Φ(x) = p; −∞ and ∞ at 0 and 1, NaN outside [0, 1].
pub fn normal_quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        f64::NAN
    } else if p < 0.25 {
        lower_tail(p)
    } else if p > 0.75 {
        // 1 − p is exact here.
        -lower_tail(1.0 - p)
    } else {
        let q = p - 0.5;
        (SQRT_2 * inverse_erf(2.0 * q.abs())).copysign(q)
    }
}

/// The quantile of p < ¼. Φ(x) ≤ ½ exp(−x²/2) puts the start left of the root.
fn lower_tail(p: f64) -> f64 {
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    let target = p.ln();
    climb(-(-2.0 * target).sqrt(), |x| {
        let log_cdf = log_normal_cdf(x);
        (target - log_cdf) / (-0.5 * x * x - HALF_LN_2PI - log_cdf).exp()
    })
}

/// The z ≥ 0 with erf z = e, for e ≤ ½.
fn inverse_erf(e: f64) -> f64 {
    climb(0.0, |z| (e - libm::erf(z)) * 0.5 * PI.sqrt() * (z * z).exp())
}

/// Newton's method from the left, until a step no longer moves to the right by more than rounding.
fn climb(mut x: f64, step: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..MAX_STEPS {
        let by = step(x);
        x += by;
        if by <= 2.0 * f64::EPSILON * x.abs() {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a quantile; one rounding of p moves it by about as much.
    const RELATIVE: f64 = 2e-15;

    #[test]
    fn quantiles_agree_with_the_tables() {
        // SciPy 1.17.1, scipy.special.ndtri.
        for (p, truth) in REFERENCE {
            let found = normal_quantile(p);
            assert!((found - truth).abs() <= RELATIVE * truth.abs(), "{p}: {found} against {truth}");
        }
    }

    #[test]
    fn the_quantile_inverts_the_distribution_function() {
        for i in -370..=80 {
            let x = 0.1 * f64::from(i);
            let p = normal_cdf(x);
            // The rounding of p, passed through the slope of the quantile, is not the quantile's fault;
            // far in the tail erfc loses x² roundings.
            let slope = (0.5 * x * x + HALF_LN_2PI).exp() * p;
            let tolerance = f64::EPSILON * (8.0 + 2.0 * x * x) * slope.max(1.0);
            assert!((normal_quantile(p) - x).abs() <= tolerance, "{x}");
        }
    }

    #[test]
    fn the_logarithm_joins_its_pieces_and_goes_on_after_underflow() {
        let (left, right) = (log_normal_cdf(SERIES_BELOW - 1e-9), log_normal_cdf(SERIES_BELOW));
        assert!((right - left - 1e-9 * 20.05).abs() < 1e-11);
        assert!((log_normal_cdf(-100.0) - -5005.524208694205).abs() < 1e-9);
        assert_eq!(log_normal_cdf(30.0), -normal_cdf(-30.0));
        assert_eq!(log_normal_cdf(f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert!(log_normal_cdf(f64::NAN).is_nan());
    }

    #[test]
    fn ends_and_nonsense() {
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
        assert_eq!(normal_quantile(0.5), 0.0);
        assert!((normal_quantile(5e-324) - -38.467_405_617_144_344).abs() < 1e-12);
        for p in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(normal_quantile(p).is_nan());
        }
    }

    const REFERENCE: [(f64, f64); 20] = [
        (1e-300, -37.0470962993612),
        (1e-100, -21.273453560965322),
        (1e-20, -9.262340089798409),
        (1e-08, -5.612001244174789),
        (0.001, -3.090232306167813),
        (0.025, -1.9599639845400545),
        (0.1, -1.2815515655446004),
        (0.2, -0.8416212335729142),
        (0.24999, -0.6745212191808629),
        (0.25, -0.6744897501960817),
        (0.3, -0.5244005127080409),
        (0.45, -0.12566134685507402),
        (0.499, -0.0025066308995717666),
        (0.5000001, 2.506628273311648e-07),
        (0.6, 0.2533471031357997),
        (0.75, 0.6744897501960817),
        (0.75001, 0.6745212191808626),
        (0.9, 1.2815515655446004),
        (0.99, 2.3263478740408408),
        (0.999999, 4.753424308817087),
    ];
}
