//! How far the Ψ-statistics in use are from those of a stronger rule.

use crate::error::{Error, Result};
use crate::expectation::{Auto, Expectation, Gaussians, Psi, stronger};
use crate::mat::Mat;
use crate::model::{BayesianGplvm, Model, Outputs};
use serde::{Deserialize, Serialize};

/// Rows that are compared.
const ROWS: usize = 50;
/// Above these relative differences of Ψ1, Ψ2 and the bound, the approximation deserves a warning.
const LARGE: [f64; 3] = [0.02, 0.05, 0.05];
/// Below this one of Ψ1 and Ψ2 they are right.
const SLIGHT: f64 = 0.01;

/// Relative differences between the expectation of a fitted model and a stronger rule, on a sample of rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// The expectation that was used.
    pub expectation: String,
    /// The stronger rule; the same as `expectation` where that is exact.
    pub reference: String,
    /// How many rows were compared.
    pub rows: usize,
    /// ‖Ψ1 − Ψ1*‖ / ‖Ψ1*‖.
    pub psi1: f64,
    /// ‖Ψ2 − Ψ2*‖ / ‖Ψ2*‖.
    pub psi2: f64,
    /// |F − F*| / |F*| of the bound of these rows alone.
    pub bound: f64,
}

impl Certificate {
    /// One sentence when the approximation is poor. Latent variances that are wide show in Ψ1 and Ψ2; where these are right
    /// and the bound is not, it is the small noise by which it divides their errors.
    pub fn warning(&self) -> Option<String> {
        let large = self.psi1 > LARGE[0] || self.psi2 > LARGE[1] || self.bound > LARGE[2];
        let reason = match self.psi1.max(self.psi2) > SLIGHT {
            true => "the latent variances are wide for this kernel",
            false => "the bound divides the errors of Ψ1 and Ψ2 by the noise, which is small",
        };
        large.then(|| {
            format!(
                "the expectation `{}` is {:.1} % off in Ψ1, {:.1} % in Ψ2 and {:.1} % in the bound against `{}` \
                 on {} rows: {reason}; try a stronger rule such as `gauss_hermite(points=3)`, `cubature5` or \
                 `quasi_monte_carlo`",
                self.expectation,
                100.0 * self.psi1,
                100.0 * self.psi2,
                100.0 * self.bound,
                self.reference,
                self.rows
            )
        })
    }
}

impl BayesianGplvm {
    /// Compares the expectation in use with a stronger rule on up to 50 rows, evenly spread.
    pub fn certificate(&self) -> Result<Certificate> {
        let (n, _, q, _) = self.sizes();
        let used = self.used();
        let count = n.min(ROWS);
        let sample: Vec<usize> = (0..count).map(|i| i * n / count).collect();
        let exact = used.expression() == "analytic";
        let reference = if exact { used.clone() } else { stronger(q) };
        let mut certificate = Certificate {
            expectation: used.expression(),
            reference: reference.expression(),
            rows: count,
            psi1: 0.0,
            psi2: 0.0,
            bound: 0.0,
        };
        if exact {
            return Ok(certificate);
        }
        let latent = self.latent().select_rows(&sample);
        let psi = |e: &dyn Expectation| e.psi(&*self.kernel, &latent, &self.z.value);
        // In the units of the scaled data: the Jacobian of other units would hide a difference, or make one of nothing.
        let bound = |e: &dyn Expectation| self.of_rows(&sample, &latent, e.boxed()).varying_evidence(None);
        // So few rows are done by one thread, with all the nodes of a strong rule.
        let (psis, bounds) =
            rayon::join(|| (psi(&*used), psi(&*reference)), || (bound(&*used), bound(&*reference)));
        let (ours, theirs) = (psis.0?, psis.1?);
        certificate.psi1 = distance(&ours, &theirs, |p| &p.psi1);
        certificate.psi2 = distance(&ours, &theirs, |p| &p.psi2);
        certificate.bound = match bounds {
            (Ok(ours), Ok(theirs)) => (ours - theirs).abs() / theirs.abs().max(f64::MIN_POSITIVE),
            // A bound that rounding spoils by one of the two is all off.
            (Err(Error::NotPositiveDefinite { .. }), _) | (_, Err(Error::NotPositiveDefinite { .. })) => 1.0,
            (Err(e), _) | (_, Err(e)) => return Err(e),
        };
        Ok(certificate)
    }

    /// The rule that is used.
    fn used(&self) -> Box<dyn Expectation> {
        match self.expectation.expression().as_str() {
            "auto" => Auto::choice(&*self.kernel).boxed(),
            _ => self.expectation.clone(),
        }
    }

    /// Whether its Ψ-statistics are exact, and the evidence a bound.
    pub fn has_exact_psi(&self) -> bool {
        self.used().expression() == "analytic"
    }

    /// The same model of some rows alone.
    fn of_rows(
        &self,
        rows: &[usize],
        latent: &Gaussians,
        expectation: Box<dyn Expectation>,
    ) -> BayesianGplvm {
        let mut part = self.clone();
        part.outputs = Outputs::new(self.outputs.y.select_rows(rows));
        part.mean.value = latent.mean.clone();
        part.var.value = latent.var.clone();
        part.prior = self.prior.select_rows(rows);
        part.expectation = expectation;
        part
    }
}

fn distance(a: &Psi, b: &Psi, of: impl Fn(&Psi) -> &Mat) -> f64 {
    let mut apart = of(a).clone();
    apart.add_scaled(-1.0, of(b));
    (apart.dot(&apart) / of(b).dot(of(b)).max(f64::MIN_POSITIVE)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_variances_are_blamed_for_their_own_errors_only() {
        let of = |psi1, psi2, bound| Certificate { psi1, psi2, bound, ..Certificate::default() }.warning();
        assert_eq!(of(0.001, 0.001, 0.01), None);
        let wide = of(0.06, 0.02, 0.09).unwrap();
        assert!(wide.contains("the latent variances are wide"), "{wide}");
        let noise = of(0.0001, 0.0002, 0.09).unwrap();
        assert!(noise.contains("9.0 % in the bound") && !noise.contains("wide"), "{noise}");
    }
}
