//! Covariances and draws of the predictions of a regression at several inputs, all at once.
//!
//! ```text
//! values     Cov[f] + σ²I
//! others     Cov[E[y_i | f_i], E[y_j | f_j]] + δ_ij E[Var[y_i | f_i]], as the likelihood says
//! counts     m_i m_j (exp C_ij − 1) + m_i δ_ij     of rates exp f with means m and C = Cov[f]
//! VDMGP      √v_i √v_j ρ_ij     variances v as predicted; correlations ρ from draws of the weights:
//!            E_W[Cov[f | W]] + Cov_W[E[f | W]] + σ²I
//! ```
//!
//! and draws of the functions themselves: of f, of the rate exp f of counts, and of VDMGP with weights of its own for
//! each draw.

use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::expectation::{QuasiMonteCarlo, Rule};
use crate::input_map::InputMap;
use crate::likelihood::{Kind, Latents, Likelihood, Observations};
use crate::mat::Mat;
use crate::model::{Answers, Regressor, Vdmgp};
use crate::posterior::Posterior;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

/// Draws of the weights of a projection.
const DRAWS: usize = 64;

impl Regressor {
    /// The N×N covariance of observations of one output at the rows of x.
    ///
    /// Errs when shapes disagree, an input is missing, there is no such output, and for classes.
    pub fn joint_covariance(&self, x: &Mat, output: usize) -> Result<Mat> {
        let posterior = self.model().posterior()?;
        match self {
            Regressor::Vdmgp(m) => self.of_random_weights(m, &posterior, x, output),
            Regressor::Laplace(_, s) | Regressor::Svgp(_, s) => self.of_likelihood(&posterior, x, s, output),
            _ => {
                let mut cov = posterior.joint_covariance(x, output)?;
                let noise = posterior.noise_variance()[output];
                (0..cov.rows()).for_each(|i| cov[(i, i)] += noise);
                Ok(cov)
            }
        }
    }

    /// `count` draws of the noise-free function at the rows of x, N×D each: of values, or of the rates of counts.
    ///
    /// A draw depends on the seed and its number alone. Errs when shapes disagree, an input is missing, and for
    /// classes.
    pub fn sample(&self, x: &Mat, count: usize, seed: u64) -> Result<Vec<Mat>> {
        self.sample_with(&self.model().posterior()?, x, count, seed)
    }

    /// The same, from a posterior that is known already.
    pub fn sample_with(&self, posterior: &Posterior, x: &Mat, count: usize, seed: u64) -> Result<Vec<Mat>> {
        let drawn = match self {
            Regressor::Vdmgp(m) => (0..count)
                .into_par_iter()
                .map(|t| {
                    let mut rng = ChaCha8Rng::seed_from_u64(seed);
                    rng.set_stream(t as u64);
                    let mut at = posterior.clone();
                    at.map = InputMap::Projected { p: weights(m, &mut rng) };
                    Ok(at.sample(x, 1, rng.next_u64())?.remove(0))
                })
                .collect::<Result<Vec<Mat>>>()?,
            Regressor::Laplace(_, s) | Regressor::Svgp(_, s) => {
                let likelihood = self.with_a_mean("draws of functions")?;
                let mut drawn = posterior.sample(&s.apply(x)?, count, seed)?;
                for d in &mut drawn {
                    d.as_mut_slice().iter_mut().for_each(|f| *f = likelihood.response(*f));
                }
                drawn
            }
            _ => posterior.sample(x, count, seed)?,
        };
        match drawn.iter().all(Mat::is_finite) {
            true => Ok(drawn),
            false => Err(Error::not_finite("a draw of the function")),
        }
    }

    /// The likelihood, where observations have a mean: errs for classes.
    fn with_a_mean(&self, what: &str) -> Result<&dyn Likelihood> {
        let likelihood = self.observations().and_then(Observations::likelihood);
        let likelihood = likelihood.filter(|l| l.kind() != Kind::Classes);
        likelihood.ok_or_else(|| Error::invalid(what, "values or counts", "classes"))
    }

    fn of_likelihood(&self, posterior: &Posterior, x: &Mat, s: &Scaling, output: usize) -> Result<Mat> {
        let likelihood = self.with_a_mean("joint covariance")?;
        let inputs = s.apply(x)?;
        let latent = posterior.joint_covariance(&inputs, output)?;
        let there: Latents = match self {
            Regressor::Laplace(m, _) => m.approximation()?.latents(&inputs)?,
            _ => posterior.predict(&inputs)?.into(),
        };
        let var = there.observed(likelihood)?.var;
        let at = |i: usize| (there.mean[(i, output)], there.var[(i, output)]);
        let cov = Mat::from_fn(x.rows(), x.rows(), |i, j| match i == j {
            true => var[(i, output)],
            false => likelihood.covariance(at(i), at(j), latent[(i, j)]),
        });
        if cov.is_finite() { Ok(cov) } else { Err(Error::not_finite("the covariance of observations")) }
    }

    fn of_random_weights(&self, model: &Vdmgp, posterior: &Posterior, x: &Mat, output: usize) -> Result<Mat> {
        let Answers::Values(there) = self.predict(x, None)? else {
            return Err(Error::invalid("joint covariance", "values", "something else"));
        };
        let (n, w, v) = (x.rows(), &model.mean.value, &model.var.value);
        let rule = QuasiMonteCarlo::new(DRAWS, 0);
        rule.check_rule(w.len())?;
        let xi = rule.nodes(w.len());
        let mut at = posterior.clone();
        let (mut cov, mut first) = (Mat::zeros(n, n), Mat::zeros(n, 1));
        for t in 0..DRAWS {
            let p = Mat::from_fn(w.rows(), w.cols(), |i, j| {
                w[(i, j)] + v[(i, j)].sqrt() * xi[(t, i * w.cols() + j)]
            });
            at.map = InputMap::Projected { p };
            cov.add_scaled(1.0 / DRAWS as f64, &at.joint_covariance(x, output)?);
            let mean = at.predict(x)?.mean.col(output);
            (0..n).for_each(|i| first[(i, 0)] += mean[i] / DRAWS as f64);
            (0..n).for_each(|i| (0..n).for_each(|j| cov[(i, j)] += mean[i] * mean[j] / DRAWS as f64));
        }
        let noise = posterior.noise_variance()[output];
        let joint = Mat::from_fn(n, n, |i, j| {
            cov[(i, j)] - first[(i, 0)] * first[(j, 0)] + if i == j { noise } else { 0.0 }
        });
        Ok(Mat::from_fn(n, n, |i, j| {
            let wanted = (there.var[(i, output)] * there.var[(j, output)]).sqrt();
            if i == j { wanted } else { joint[(i, j)] / (joint[(i, i)] * joint[(j, j)]).sqrt() * wanted }
        }))
    }
}

/// A draw of the weights of a projection.
fn weights(of: &Vdmgp, rng: &mut ChaCha8Rng) -> Mat {
    let (w, v) = (&of.mean.value, &of.var.value);
    Mat::from_fn(w.rows(), w.cols(), |i, j| {
        let xi: f64 = StandardNormal.sample(rng);
        w[(i, j)] + v[(i, j)].sqrt() * xi
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Scale, sinc};
    use crate::kernel::Rbf;
    use crate::linalg::eigh;
    use crate::model::{Laplace, Regression, Svgp, VdmgpTraining};
    use std::ops::ControlFlow;

    /// Draws that are compared with moments.
    const SAMPLES: usize = 2000;

    fn agrees(model: &Regressor, x: &Mat) {
        let cov = model.joint_covariance(x, 0).unwrap();
        let var = match model.predict(x, None).unwrap() {
            Answers::Values(p) => p.var.col(0),
            Answers::Counts { var, .. } => var,
            Answers::Classes(_) => unreachable!(),
        };
        for i in 0..x.rows() {
            assert!((cov[(i, i)] - var[i]).abs() < 1e-9 * var[i], "{}: {i}", model.name());
            (0..i).for_each(|j| assert!((cov[(i, j)] - cov[(j, i)]).abs() < 1e-9 * var[i].max(var[j])));
        }
        assert!(eigh(&cov).unwrap().0[0] > 0.0, "{}", model.name());
        assert!(model.joint_covariance(x, 7).is_err());
        let (mean, noise) = match model.predict(x, None).unwrap() {
            Answers::Values(p) => (p.mean.col(0), noise_variance(model)),
            Answers::Counts { mean, .. } => (mean, f64::NAN),
            Answers::Classes(_) => unreachable!(),
        };
        let drawn = model.sample(x, SAMPLES, 3).unwrap();
        assert_eq!(drawn[..5], model.sample(x, 5, 3).unwrap());
        for i in 0..x.rows() {
            // Counts: the variance of the rate is that of the count but for the mean.
            let spread = (var[i] - if noise.is_nan() { mean[i] } else { noise }).max(1e-9);
            let values: Vec<f64> = drawn.iter().map(|d| d[(i, 0)]).collect();
            let found = values.iter().sum::<f64>() / SAMPLES as f64;
            let error = (spread / SAMPLES as f64).sqrt();
            assert!((found - mean[i]).abs() < 6.0 * error, "{}: {found} {} {error}", model.name(), mean[i]);
            let square = values.iter().map(|v| (v - found).powi(2)).sum::<f64>() / SAMPLES as f64;
            assert!(square > 0.4 * spread && square < 2.5 * spread, "{}: {square} {spread}", model.name());
        }
    }

    /// Of values, whatever the likelihood.
    fn noise_variance(of: &Regressor) -> f64 {
        match of.observations().and_then(Observations::likelihood) {
            Some(likelihood) => likelihood.moments(0.0, 0.0).1,
            None => of.noise_variance().unwrap()[0],
        }
    }

    #[test]
    fn diagonals_are_the_predicted_variances() {
        let sinc::Sinc { x, y } = sinc::simulate(40, 0);
        let at = x.slice_rows(0, 6);
        let how = VdmgpTraining { latent_dim: 2, hold: 20, max_iterations: 30, ..Default::default() };
        let fit = how.fit(&x, &y, &Rbf::new(2), &|_| ControlFlow::Continue(())).unwrap();
        agrees(&Regressor::Vdmgp(Box::new(fit.model)), &at);
        let small = x.select_cols(&[0]);
        let gp = Regression::new(small.clone(), y.clone(), Rbf::new(1)).unwrap();
        agrees(&Regressor::Gp(Box::new(gp)), &small.slice_rows(0, 6));
        let units = Scaling::fit(&small, Scale::Standardize).unwrap();
        let counts =
            || Observations::poisson(&(0..40).map(|i| f64::from(i % 5)).collect::<Vec<_>>()).unwrap();
        let scaled = units.apply(&small).unwrap();
        let laplace = Laplace::new(scaled.clone(), counts(), Rbf::new(1)).unwrap();
        agrees(&Regressor::Laplace(Box::new(laplace), units.clone()), &small.slice_rows(0, 6));
        let robust = Observations::from_expression("student_t", &y.map(|v| 100.0 * v), 0).unwrap();
        for observed in [counts(), robust] {
            let svgp = Svgp::new(scaled.clone(), observed, Rbf::new(1), 8, 0).unwrap();
            agrees(&Regressor::Svgp(Box::new(svgp), units.clone()), &small.slice_rows(0, 6));
        }
    }
}
