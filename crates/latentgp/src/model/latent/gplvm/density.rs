//! The density of a row under a GPLVM: ∫ p(y∗ | x) N(x | 0, I) dx by importance sampling.
//!
//! ```text
//! q(x) = w₀ N(x | 0, I) + Σ_c w_c [N(x | m_c, H_c⁻¹) + N(x | m_c, 9 H_c⁻¹)] / 2
//! ```
//!
//! The m_c are the positions that explain the row best, each with the curvature H_c = −∂² log p(y∗, x)/∂x² there:
//! exact for a linear kernel, where p(x | y∗) is nearly Gaussian. The wider Gaussians and the prior are for tails
//! and for what lies elsewhere: no weight is above 1/w₀ of the likelihood, so that the average has a variance.

use crate::error::{Error, Result};
use crate::expectation::{MonteCarlo, QuasiMonteCarlo, Rule};
use crate::linalg;
use crate::mat::Mat;
use crate::model::latent::gplvm::Gplvm;
use crate::model::latent::gplvm::rows::{Found, RowDensity};
use crate::model::shared::row_density;
use crate::posterior::Posterior;
use std::f64::consts::TAU;

/// Draws from all components together.
const SAMPLES: usize = 512;
/// Part of them that are from the prior.
const PRIOR: f64 = 0.25;
/// How much wider the wide Gaussian of a mode is.
const WIDE: f64 = 3.0;
/// A mode that holds less than e to this of the mass of the best is left to the prior.
const NEGLIGIBLE: f64 = -12.0;
/// Modes that are nearer than this many standard deviations are one.
const SAME: f64 = 0.5;
/// The step of the differences that give the curvature.
const STEP: f64 = 1e-4;

/// N(m, H⁻¹) with H = U diag(λ) Uᵀ.
#[derive(Clone)]
struct Component {
    mean: Vec<f64>,
    lambda: Vec<f64>,
    u: Mat,
    samples: usize,
}

impl Component {
    fn prior(dim: usize) -> Self {
        let u = Mat::from_fn(dim, dim, |i, j| f64::from(i == j));
        Component { mean: vec![0.0; dim], lambda: vec![1.0; dim], u, samples: 0 }
    }

    /// The Gaussian around a mode; its variances are at most those of the prior.
    fn around(density: &RowDensity<'_>, mean: &[f64]) -> Result<Self> {
        let dim = mean.len();
        let mut h = Mat::zeros(dim, dim);
        for k in 0..dim {
            for sign in [1.0, -1.0] {
                let (mut moved, mut grad) = (mean.to_vec(), vec![0.0; dim]);
                moved[k] += sign * STEP;
                density.value(&moved, Some(&mut grad))?;
                (0..dim).for_each(|j| h[(k, j)] -= sign * grad[j] / (2.0 * STEP));
            }
            h[(k, k)] += 1.0;
        }
        linalg::symmetrize(&mut h);
        let (lambda, u) = linalg::eigh(&h)?;
        let lambda = lambda.into_iter().map(|v| v.max(1.0)).collect();
        Ok(Component { mean: mean.to_vec(), lambda, u, samples: 0 })
    }

    fn wider(&self) -> Self {
        let lambda = self.lambda.iter().map(|v| (v / WIDE.powi(2)).max(1.0)).collect();
        Component { lambda, ..self.clone() }
    }

    /// m + U λ^(−½) ξ.
    fn place(&self, xi: &[f64], x: &mut [f64]) {
        for (i, x) in x.iter_mut().enumerate() {
            let part = |k: usize| self.u[(i, k)] * xi[k] / self.lambda[k].sqrt();
            *x = self.mean[i] + (0..xi.len()).map(part).sum::<f64>();
        }
    }

    /// (x − m)ᵀ H (x − m).
    fn square(&self, x: &[f64]) -> f64 {
        let along = |k: usize| (0..x.len()).map(|i| self.u[(i, k)] * (x[i] - self.mean[i])).sum::<f64>();
        (0..x.len()).map(|k| self.lambda[k] * along(k).powi(2)).sum()
    }

    fn log_det(&self) -> f64 {
        self.lambda.iter().map(|v| v.ln()).sum()
    }

    fn log_density(&self, x: &[f64]) -> f64 {
        0.5 * (self.log_det() - self.square(x) - x.len() as f64 * TAU.ln())
    }
}

impl Gplvm {
    /// log p(y∗ | Y) of each row's observed cells, for the data as given: x∗ ~ N(0, I) is integrated out, whatever
    /// prior the fit had. NaN is a missing cell; 0 where all are.
    ///
    /// Importance sampling from fixed points, so that a row always has the same density.
    pub fn log_density(&self, posterior: &Posterior, y: &Mat) -> Result<Vec<f64>> {
        Ok(self.place(posterior, y, true)?.1)
    }

    /// That of one row, from the places that explain it best and from the row as given and scaled.
    pub(crate) fn row_log_density(
        &self,
        posterior: &Posterior,
        given: &[f64],
        scaled: &[f64],
        found: &[Found],
    ) -> Result<f64> {
        let dim = self.x.value.cols();
        let density = RowDensity { posterior, y: scaled };
        let all = components(&density, found, dim);
        let total: usize = all.iter().map(|c| c.samples).sum();
        let mut x = Mat::zeros(total, dim);
        let mut at = 0;
        for c in &all {
            let xi = nodes(c.samples, at as u64, dim);
            (0..c.samples).for_each(|t| c.place(xi.row(t), x.row_mut(at + t)));
            at += c.samples;
        }
        let prior = Component::prior(dim);
        let ratio = |t: usize| {
            let part = |c: &Component| (c.samples as f64 / total as f64).ln() + c.log_density(x.row(t));
            let parts: Vec<f64> = all.iter().map(part).collect();
            let top = parts.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
            prior.log_density(x.row(t)) - top - parts.iter().map(|p| (p - top).exp()).sum::<f64>().ln()
        };
        let ratios: Vec<f64> = (0..total).map(ratio).collect();
        let value = row_density::log_density(posterior, given, &x, &ratios)?;
        if value.is_finite() { Ok(value) } else { Err(Error::not_finite("the density of a new row")) }
    }
}

/// Sobol points, or random ones where those have not as many dimensions.
fn nodes(samples: usize, seed: u64, dim: usize) -> Mat {
    let sobol = QuasiMonteCarlo::new(samples, seed);
    match sobol.check_rule(dim) {
        Ok(()) => sobol.nodes(dim),
        Err(_) => MonteCarlo::new(samples, seed).nodes(dim),
    }
}

/// The parts of q, with their numbers of samples.
fn components(density: &RowDensity<'_>, found: &[Found], dim: usize) -> Vec<Component> {
    let mut modes: Vec<(Component, f64)> = Vec::new();
    for found in found {
        if modes.iter().any(|(c, _)| c.square(&found.x) < SAME * SAME) {
            continue;
        }
        // Where the curvature is not finite, the prior serves.
        if let Ok(c) = Component::around(density, &found.x) {
            let mass = found.joint - 0.5 * c.log_det();
            modes.push((c, mass));
        }
    }
    let best = modes.iter().fold(f64::NEG_INFINITY, |a, (_, mass)| a.max(*mass));
    modes.retain(|(_, mass)| mass - best > NEGLIGIBLE);
    let mut all = vec![Component::prior(dim)];
    all[0].samples = SAMPLES;
    if !modes.is_empty() {
        all[0].samples = (PRIOR * SAMPLES as f64) as usize;
        let each = (SAMPLES - all[0].samples) / (2 * modes.len());
        for (c, _) in modes {
            all.extend([c.wider(), c].map(|c| Component { samples: each, ..c }));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Scale;
    use crate::kernel::{Kernel, Linear, Matern52, Rbf};
    use crate::model::latent::gplvm::LatentPrior;
    use crate::model::{GplvmTraining, Model, Ppca, PpcaOptions};
    use std::ops::ControlFlow;

    /// Of an integral over a grid, and of what is sampled.
    const INTEGRAL: f64 = 0.03;

    fn data(n: usize, d: usize) -> Mat {
        Mat::from_fn(n, d, |i, j| {
            let t = i as f64 / n as f64 * 6.0;
            (t + j as f64).sin() + 0.3 * (2.0 * t - j as f64).cos() + 0.1 * ((13 * i + 7 * j) as f64).sin()
        })
    }

    fn fitted(y: &Mat, kernel: &dyn Kernel, training: &GplvmTraining) -> Gplvm {
        training.fit(y, kernel, &|_| ControlFlow::Continue(())).unwrap().model
    }

    #[test]
    fn the_density_of_a_cell_integrates_to_one() {
        const CELLS: usize = 801;
        /// So few that rounding does not decide where they end: what is sampled varies by some per cent from place to place.
        const ITERATIONS: usize = 15;
        let y = data(30, 3);
        for (dim, prior, kernel) in [
            (1, LatentPrior::StandardNormal, Box::new(Rbf::new(1)) as Box<dyn Kernel>),
            (2, LatentPrior::StandardNormal, Box::new(Matern52::new(2) + Linear::new(2))),
            (2, LatentPrior::None, Box::new(Rbf::new(2))),
        ] {
            let training =
                GplvmTraining { latent_dim: dim, prior, max_iterations: ITERATIONS, ..Default::default() };
            let model = fitted(&y, &*kernel, &training);
            let posterior = model.posterior().unwrap();
            let (low, high) = (-12.0, 12.0);
            let step = (high - low) / (CELLS - 1) as f64;
            let grid = Mat::from_fn(CELLS, 3, |i, j| match j {
                1 => low + step * i as f64,
                _ => f64::NAN,
            });
            let logs = model.log_density(&posterior, &grid).unwrap();
            let integral: f64 = logs.iter().map(|l| l.exp() * step).sum();
            assert!((integral - 1.0).abs() < INTEGRAL, "{dim} {prior:?}: {integral}");
        }
    }

    #[test]
    fn a_linear_kernel_at_the_scores_has_nearly_the_density_of_ppca() {
        /// The GPLVM does not know the loadings exactly, and has them without the shrinkage of the scores.
        const NEARLY: f64 = 0.3;
        let y = data(60, 6);
        let options = PpcaOptions { latent_dim: 2, scale: Scale::Center, ..Default::default() };
        let ppca = Ppca::fit(&y, &options).unwrap();
        let training = GplvmTraining { scale: Scale::Center, ..Default::default() };
        let mut model = training.start(&y, &Linear::isotropic(2), 0).unwrap();
        model.x.value = ppca.transform(&y).unwrap().mean;
        model.noise.value = Mat::filled(1, 1, ppca.noise[0]);
        let new = Mat::from_fn(8, 6, |i, j| y[(7 * i, j)] + 0.05 * ((i * 5 + j * 3) as f64).cos());
        let ours = model.log_density(&model.posterior().unwrap(), &new).unwrap();
        for i in 0..new.rows() {
            let theirs = ppca.log_likelihood(&new.slice_rows(i, i + 1)).unwrap();
            assert!((ours[i] - theirs).abs() < NEARLY, "{} against {theirs}", ours[i]);
        }
    }

    #[test]
    fn a_batch_equals_its_pieces_and_nothing_is_certain_without_cells() {
        let y = data(25, 4);
        let model = fitted(&y, &Rbf::new(2), &GplvmTraining { max_iterations: 30, ..Default::default() });
        let posterior = model.posterior().unwrap();
        let mut new = y.slice_rows(3, 7);
        new[(0, 1)] = f64::NAN;
        (0..4).for_each(|j| new[(1, j)] = f64::NAN);
        (0..4).for_each(|j| new[(2, j)] = 1e5);
        let all = model.log_density(&posterior, &new).unwrap();
        for i in 0..4 {
            let alone = model.log_density(&posterior, &new.slice_rows(i, i + 1)).unwrap();
            assert_eq!(alone[0], all[i]);
        }
        assert_eq!(all[1], 0.0);
        assert!(all[2].is_finite() && all[2] < all[3]);
        assert!(model.log_density(&posterior, &Mat::filled(1, 4, f64::INFINITY)).is_err());
        assert!(model.log_density(&posterior, &Mat::zeros(1, 3)).is_err());
    }
}
