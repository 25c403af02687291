//! Joint covariances and draws of the predictions of a regression at several inputs.
//!
//! ```text
//! values     Cov[f] + σ²I
//! others     Cov[E[y_i | f_i], E[y_j | f_j]] + δ_ij E[Var[y_i | f_i]], as the likelihood says
//! counts     m_i m_j (exp C_ij − 1) + m_i δ_ij     of rates exp f with means m and C = Cov[f]
//! ```
//!
//! and draws of f, or of the rate exp f of counts.

use crate::error::{Error, Result};
use crate::likelihood::{Kind, Latents, Likelihood, Observations};
use crate::mat::Mat;
use crate::posterior::Posterior;

/// Errs where rows have latent inputs, which a joint prediction does not support.
pub(super) fn check_latent(inputs: usize) -> Result<()> {
    match inputs {
        0 => Ok(()),
        k => Err(Error::invalid("rows that vary together", "a model without latent inputs", k)),
    }
}

/// The joint covariance of observations with Gaussian noise.
pub(super) fn covariance(posterior: &Posterior, x: &Mat, output: usize) -> Result<Mat> {
    let mut cov = posterior.joint_covariance(x, output)?;
    let noise = posterior.noise_variance()[output];
    (0..cov.rows()).for_each(|i| cov[(i, i)] += noise);
    Ok(cov)
}

/// The joint covariance of observations of another likelihood, from the latent values at x.
pub(super) fn observed_covariance(
    observations: &Observations,
    posterior: &Posterior,
    latents: &dyn Fn() -> Result<Latents>,
    x: &Mat,
    output: usize,
) -> Result<Mat> {
    let likelihood = with_a_mean(observations, "joint covariance")?;
    let latent = posterior.joint_covariance(x, output)?;
    let there = latents()?;
    let var = there.observed(likelihood)?.var;
    let at = |i: usize| (there.mean[(i, output)], there.var[(i, output)]);
    let cov = Mat::from_fn(x.rows(), x.rows(), |i, j| match i == j {
        true => var[(i, output)],
        false => likelihood.covariance(at(i), at(j), latent[(i, j)]),
    });
    if cov.is_finite() { Ok(cov) } else { Err(Error::not_finite("the covariance of observations")) }
}

/// Draws of the function, or of the mean of the likelihood.
pub(super) fn draws(
    observations: Option<&Observations>,
    posterior: &Posterior,
    x: &Mat,
    count: usize,
    seed: u64,
) -> Result<Vec<Mat>> {
    let likelihood = observations.map(|o| with_a_mean(o, "draws of functions")).transpose()?;
    let mut drawn = posterior.sample(x, count, seed)?;
    if let Some(likelihood) = likelihood {
        let values = drawn.iter_mut().flat_map(|d| d.as_mut_slice());
        values.for_each(|f| *f = likelihood.response(*f));
    }
    finite(drawn)
}

/// Errs unless all draws are finite.
pub(super) fn finite(drawn: Vec<Mat>) -> Result<Vec<Mat>> {
    match drawn.iter().all(Mat::is_finite) {
        true => Ok(drawn),
        false => Err(Error::not_finite("a draw of the function")),
    }
}

/// The likelihood of observations; errs for classes, which have no mean.
fn with_a_mean<'a>(observations: &'a Observations, what: &str) -> Result<&'a dyn Likelihood> {
    let likelihood = observations.likelihood().filter(|l| l.kind() != Kind::Classes);
    likelihood.ok_or_else(|| Error::invalid(what, "values or counts", "classes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Scale, Scaling, sinc};
    use crate::kernel::Rbf;
    use crate::linalg::eigh;
    use crate::model::{Answers, Laplace, Regression, Regressor, Svgp, VdmgpTraining};
    use std::ops::ControlFlow;

    /// The number of draws that are compared with moments.
    const SAMPLES: usize = 2000;

    fn agrees(model: &dyn Regressor, x: &Mat) {
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
            // For Poisson counts the variance of the rate is the variance of the count minus its mean.
            let spread = (var[i] - if noise.is_nan() { mean[i] } else { noise }).max(1e-9);
            let values: Vec<f64> = drawn.iter().map(|d| d[(i, 0)]).collect();
            let found = values.iter().sum::<f64>() / SAMPLES as f64;
            let error = (spread / SAMPLES as f64).sqrt();
            assert!((found - mean[i]).abs() < 6.0 * error, "{}: {found} {} {error}", model.name(), mean[i]);
            let square = values.iter().map(|v| (v - found).powi(2)).sum::<f64>() / SAMPLES as f64;
            assert!(square > 0.4 * spread && square < 2.5 * spread, "{}: {square} {spread}", model.name());
        }
    }

    /// The noise variance of values, whatever the likelihood.
    fn noise_variance(of: &dyn Regressor) -> f64 {
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
        agrees(&fit.model, &at);
        let small = x.select_cols(&[0]);
        let gp = Regression::new(small.clone(), y.clone(), Rbf::new(1)).unwrap();
        agrees(&gp, &small.slice_rows(0, 6));
        let units = Scaling::fit(&small, Scale::Standardize).unwrap();
        let counts =
            || Observations::poisson(&(0..40).map(|i| f64::from(i % 5)).collect::<Vec<_>>()).unwrap();
        let scaled = units.apply(&small).unwrap();
        let mut laplace = Laplace::new(scaled.clone(), counts(), Rbf::new(1)).unwrap();
        laplace.inputs = Some(units.clone());
        agrees(&laplace, &small.slice_rows(0, 6));
        let robust = Observations::from_expression("student_t", &y.map(|v| 100.0 * v), 0).unwrap();
        for observed in [counts(), robust] {
            let mut svgp = Svgp::new(scaled.clone(), observed, Rbf::new(1), 8, 0).unwrap();
            svgp.inputs = Some(units.clone());
            agrees(&svgp, &small.slice_rows(0, 6));
        }
    }
}
