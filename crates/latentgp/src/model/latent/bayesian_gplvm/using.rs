//! What a fitted Bayesian GPLVM is used for: relevance, imputation, densities and samples.

use crate::error::{Error, Result};
use crate::expectation::{Gaussians, QuasiMonteCarlo, Rule};
use crate::mat::Mat;
use crate::model::latent::decoded;
use crate::model::shared::row_density;
use crate::model::{BayesianGplvm, Latent};
use crate::posterior::{Posterior, Prediction};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// A table with its missing cells filled.
#[derive(Clone, Debug, PartialEq)]
pub struct Imputed {
    /// Observed cells as they were, missing ones by their predictive mean.
    pub y: Mat,
    /// The predictive variance of missing cells, noise included; 0 where a cell was observed.
    pub var: Mat,
    /// The latent positions that the observed cells of each row imply.
    pub latent: Latent,
}

impl BayesianGplvm {
    /// How much each latent dimension matters: what the kernel's parameters tell, or, where they do not,
    /// the mean square of the posterior mean's slope times the spread of the latent means.
    pub fn relevance(&self, posterior: &Posterior) -> Result<Vec<f64>> {
        if let Some(relevance) = self.kernel.relevance() {
            return Ok(relevance);
        }
        Ok(decoded::slopes(posterior, &self.mean.value))
    }

    /// Fills the missing cells (NaN) of `y`, each row from its own latent posterior.
    pub fn impute(&self, posterior: &Posterior, y: &Mat) -> Result<Imputed> {
        self.impute_knowing(posterior, y, &[])
    }

    /// The same where the columns that the prior asks for are known of the rows.
    pub fn impute_knowing(&self, posterior: &Posterior, y: &Mat, known: &[Vec<f64>]) -> Result<Imputed> {
        let latent = self.project_knowing(posterior, y, known)?;
        let predicted = posterior.predict_uncertain(&latent.q)?;
        let Prediction { mean, var } = decoded::fill(posterior, y, &predicted);
        Ok(Imputed { y: mean, var, latent })
    }

    /// log p(y∗ | Y) of each row's observed cells, by importance sampling of x∗ from its posterior q(x∗):
    ///
    /// ```text
    /// p(y∗) ≈ 1/T Σ_t p(y∗ | x_t) p(x_t) / q(x_t),   x_t ~ q, from T Sobol points
    /// ```
    pub fn log_density(&self, posterior: &Posterior, y: &Mat, samples: usize, seed: u64) -> Result<Vec<f64>> {
        if samples == 0 {
            return Err(Error::invalid("samples of the log density", "at least 1", 0));
        }
        let latent = self.project_with(posterior, y)?;
        let prior = self.prior.new_rows(y.rows(), &[])?;
        let q = latent.q.dim();
        let rule = QuasiMonteCarlo::new(samples, seed);
        rule.check_rule(q)?;
        let xi = rule.nodes(q);
        let row = |n: usize| -> Result<f64> {
            let (mean, var) = (latent.q.mean.row(n), latent.q.var.row(n));
            let x = Mat::from_fn(samples, q, |t, k| mean[k] + var[k].sqrt() * xi[(t, k)]);
            let (m, p) = (prior.mean.row(n), prior.var.row(n));
            let one = |t: usize, k: usize| {
                0.5 * (xi[(t, k)].powi(2) - (x[(t, k)] - m[k]).powi(2) / p[k] + (var[k] / p[k]).ln())
            };
            let ratio = |t: usize| (0..q).map(|k| one(t, k)).sum();
            let ratios: Vec<f64> = (0..samples).map(ratio).collect();
            row_density::log_density(posterior, y.row(n), &x, &ratios)
        };
        (0..y.rows()).map(row).collect()
    }

    /// `n` draws from the model: x ~ p(x), y ~ p(y | x), both returned.
    pub fn sample(&self, posterior: &Posterior, n: usize, seed: u64) -> Result<(Mat, Mat)> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = |_: usize, _: usize| -> f64 { StandardNormal.sample(&mut rng) };
        let prior = self.prior.new_rows(n, &[])?;
        let x = Mat::from_fn(n, self.mean.value.cols(), |i, k| {
            prior.mean[(i, k)] + prior.var[(i, k)].sqrt() * normal(i, k)
        });
        let at = posterior.predict(&x)?;
        let noise = posterior.noise_variance();
        let y = Mat::from_fn(n, at.mean.cols(), |i, j| {
            at.mean[(i, j)] + (at.var[(i, j)] + noise[j]).sqrt() * normal(i, j)
        });
        Ok((x, y))
    }

    /// Data at latent positions: certain ones, or Gaussians where any variance is above 0.
    pub fn reconstruct(&self, posterior: &Posterior, q: &Gaussians) -> Result<Prediction> {
        decoded::reconstruct(posterior, q)
    }
}
