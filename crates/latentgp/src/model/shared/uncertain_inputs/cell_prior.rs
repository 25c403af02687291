//! The prior of a cell that is known up to an error.
//!
//! ```text
//! N(x, a)·N(c, v + v²/a)     ρ = a/v     p = v(ρ + ρ²)/(1 + ρ + ρ²)     m = x + (c − x)ρ²/(1 + ρ + ρ²)
//! ```
//!
//! A cell that was read well is where it was read, up to its error, however its column is spread; the column enters as
//! ρ². With N(c, v) in the place of N(c, v + v²/a) it would enter as ρ, and draw every cell to the middle of its column.
//! As a grows the prior becomes that of a missing cell, N(c, v).

/// Prior of a cell that was read as x with the variance `a` of its error, in a column of N(c, v).
#[derive(Clone, Copy)]
pub(super) struct CellPrior {
    /// m.
    pub mean: f64,
    /// p.
    pub var: f64,
    /// ∂m/∂a and ∂p/∂a.
    pub slopes: (f64, f64),
    /// ∂√p/∂√a, which is finite at a = 0.
    pub root_slope: f64,
}

impl CellPrior {
    /// Numbers stay finite from a = 0 to a = ∞.
    pub fn new(x: f64, a: f64, c: f64, v: f64) -> Self {
        let rho = a / v;
        if rho < 1.0 {
            let sum = 1.0 + rho + rho * rho;
            let part = (1.0 + rho) / sum;
            let growth = (1.0 + 2.0 * rho) / (sum * sum);
            return CellPrior {
                mean: x + (c - x) * rho * rho / sum,
                var: a * part,
                slopes: ((c - x) * rho * (2.0 + rho) / (sum * sum * v), growth),
                root_slope: growth / part.sqrt(),
            };
        }
        let t = v / a;
        let sum = 1.0 + t + t * t;
        let growth = t.powi(3) * (t + 2.0) / (sum * sum);
        CellPrior {
            mean: x + (c - x) / sum,
            var: v * (1.0 + t) / sum,
            slopes: ((c - x) * t * t * (2.0 * t + 1.0) / (sum * sum * v), growth),
            root_slope: t * t * t.sqrt() * (t + 2.0) / (sum * (sum * (1.0 + t)).sqrt()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prior_is_between_what_was_read_and_its_column() {
        let (x, c, v) = (1.3, 0.4, 2.0);
        let at = |a: f64| CellPrior::new(x, a, c, v);
        assert_eq!((at(0.0).mean, at(0.0).var), (x, 0.0));
        assert_eq!((at(f64::INFINITY).mean, at(f64::INFINITY).var), (c, v));
        for a in [1e-12, 0.01, 0.7, 1.99, 2.01, 30.0, 1e9] {
            let (one, wide) = (at(a), v + v * v / a);
            let weight = 1.0 / a + 1.0 / wide;
            assert!((one.var * weight - 1.0).abs() < 1e-12);
            assert!((one.mean - (x / a + c / wide) / weight).abs() < 1e-12);
            let slope = |of: &dyn Fn(f64) -> f64| (of(a * 1.0001) - of(a * 0.9999)) / (2e-4 * a);
            let close = |ours: f64, slow: f64| (ours - slow).abs() < 1e-6 * slow.abs() + 1e-11 / a;
            assert!(close(one.slopes.0, slope(&|a| at(a).mean)), "{a}");
            assert!(close(one.slopes.1, slope(&|a| at(a).var)), "{a}");
            // ∂√p/∂√a = 2√a ∂√p/∂a.
            assert!(close(one.root_slope, 2.0 * a.sqrt() * slope(&|a| at(a).var.sqrt())), "{a}");
        }
        // A cell that was read well is hardly drawn to its column.
        assert!((at(0.02).mean - x).abs() < 1e-4);
    }
}
