//! The density of a row with its position integrated out, by importance sampling:
//!
//! ```text
//! p(y∗) = ∫ p(y∗ | x) N(x | 0, I) dx ≈ 1/T Σ_t p(y∗ | x_t) N(x_t | 0, I) / q(x_t),   x_t ~ q
//! ```

use crate::error::Result;
use crate::mat::Mat;
use crate::posterior::Posterior;

/// log p(y∗) of the observed cells of a row, from positions x_t and log N(x_t | 0, I) − log q(x_t) of each.
pub(crate) fn log_density(posterior: &Posterior, y: &[f64], x: &Mat, log_ratio: &[f64]) -> Result<f64> {
    let (at, noise) = (posterior.predict(x)?, posterior.noise_variance());
    let one = |t: usize| {
        let seen = (0..y.len()).filter(|j| !y[*j].is_nan());
        let fit: f64 = seen
            .map(|j| {
                let v = at.var[(t, j)] + noise[j];
                -0.5 * ((y[j] - at.mean[(t, j)]).powi(2) / v + (std::f64::consts::TAU * v).ln())
            })
            .sum();
        log_ratio[t] + fit
    };
    Ok(log_mean_exp(&(0..x.rows()).map(one).collect::<Vec<_>>()))
}

fn log_mean_exp(logs: &[f64]) -> f64 {
    let top = logs.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    if top == f64::NEG_INFINITY {
        return top;
    }
    top + (logs.iter().map(|l| (l - top).exp()).sum::<f64>() / logs.len() as f64).ln()
}
