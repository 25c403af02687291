//! The likelihood at given latent values: its value, gradient and curvature, for one latent function or C.
//!
//! ```text
//! one       W = −∂² ln p, diagonal
//! classes   W = diag π − ππᵀ at every row
//! ```

use crate::error::{Error, Result};
use crate::likelihood::{Categorical, Observations};
use crate::mat::Mat;
use crate::scratch::Buffer;

/// ln p(y | f) and its derivatives for Newton's method and the gradient; every matrix is C×N.
pub(super) struct Local {
    /// Σ_n ln p(y_n | f_n).
    pub(super) value: f64,
    /// ∂ ln p/∂f.
    pub(super) first: Mat,
    /// The diagonal part of W: −∂² ln p, or π.
    pub(super) weight: Mat,
    /// ∂³ ln p, for one latent function.
    third: Buffer<f64>,
}

impl Local {
    /// Errs where a number is not finite, or where the likelihood is not log-concave.
    pub(super) fn new(of: &Observations, f: &Mat) -> Result<Self> {
        let (latents, n) = (f.rows(), f.cols());
        let (mut first, mut weight) = (Mat::zeros(latents, n), Mat::zeros(latents, n));
        let (mut value, mut third) = (0.0, Buffer::default());
        match of {
            Observations::One { y, likelihood } => {
                third = Buffer::filled(0.0, n);
                for (i, y) in y.iter().enumerate() {
                    let at = likelihood.log_density(*y, f[(0, i)]);
                    if at.second > 0.0 {
                        let found = format!("a second derivative of {} at row {}", at.second, i + 1);
                        return Err(Error::invalid(
                            likelihood.expression(),
                            "a log-concave likelihood",
                            found,
                        ));
                    }
                    value += at.value;
                    (first[(0, i)], weight[(0, i)]) = (at.first, -at.second);
                    third[i] = at.third;
                }
            }
            Observations::Classes { labels, likelihood } => {
                for (i, &y) in labels.iter().enumerate() {
                    let mut pi = column(f, i);
                    value += likelihood.log_density(y, &mut pi);
                    for (c, &p) in pi.iter().enumerate() {
                        (first[(c, i)], weight[(c, i)]) = (f64::from(c == y) - p, p);
                    }
                }
            }
        }
        if !(value.is_finite() && first.is_finite() && weight.is_finite()) {
            return Err(Error::not_finite("the log likelihood"));
        }
        Ok(Local { value, first, weight, third })
    }

    /// Whether the latent functions are coupled by the likelihood.
    pub(super) fn coupled(&self) -> bool {
        self.weight.rows() > 1
    }

    /// ∂(−½ ln|I + KW|)/∂f at row i, where the posterior covariance of its latent values is s, C×C.
    pub(super) fn implicit(&self, i: usize, s: &[f64], out: &mut [f64]) {
        match self.coupled() {
            true => Categorical::implicit(&column(&self.weight, i), s, out),
            false => out[0] = 0.5 * s[0] * self.third[i],
        }
    }
}

fn column(of: &Mat, i: usize) -> Buffer<f64> {
    Buffer::of((0..of.rows()).map(|c| of[(c, i)]))
}
