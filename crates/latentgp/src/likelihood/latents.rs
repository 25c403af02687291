//! From the Gaussian posterior of latent values to probabilities, rates and counts.

use super::{Categorical, Likelihood, Quadrature};
use crate::error::{Error, Result};
use crate::linalg::Cholesky;
use crate::mat::Mat;
use crate::posterior::Prediction;
use rayon::prelude::*;

/// Nodes behind an averaged softmax.
const SAMPLES: usize = 1024;

/// Posteriors of latent values: N rows, C latent functions.
#[derive(Clone, Debug, PartialEq)]
pub struct Latents {
    /// Means, N×C.
    pub mean: Mat,
    /// Variances, N×C.
    pub var: Mat,
    /// The C×C covariance at every row, where the functions are correlated.
    pub cov: Option<Vec<Mat>>,
}

/// The rate of counts, and the counts themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    /// E[rate], which is the mean count too.
    pub mean: Vec<f64>,
    /// Var[rate].
    pub var: Vec<f64>,
    /// Var[count], which is E[rate] + Var[rate] of a Poisson.
    pub count_var: Vec<f64>,
}

impl From<Prediction> for Latents {
    /// Functions that are independent of each other.
    fn from(of: Prediction) -> Self {
        Latents { mean: of.mean, var: of.var, cov: None }
    }
}

impl Latents {
    fn one(&self, of: &dyn Likelihood) -> Result<()> {
        match self.mean.cols() {
            1 => Ok(()),
            found => Err(Error::shape(format!("latent functions of {of}"), 1, found)),
        }
    }

    /// p(y = c) at every row, N×C, averaged over the one latent value of a likelihood of classes.
    pub fn probabilities(&self, likelihood: &dyn Likelihood) -> Result<Mat> {
        let rule = Quadrature::fine();
        self.by_class(likelihood, |n, out| {
            likelihood.probabilities(self.mean[(n, 0)], self.var[(n, 0)], &rule, out);
        })
    }

    /// p(y = c) at the mean of the latent value, N×C.
    pub fn probabilities_at_mean(&self, likelihood: &dyn Likelihood) -> Result<Mat> {
        self.by_class(likelihood, |n, out| likelihood.probabilities_at(self.mean[(n, 0)], out))
    }

    fn by_class(&self, likelihood: &dyn Likelihood, each: impl Fn(usize, &mut [f64])) -> Result<Mat> {
        self.one(likelihood)?;
        let mut all = Mat::zeros(self.mean.rows(), likelihood.classes());
        (0..all.rows()).for_each(|n| each(n, all.row_mut(n)));
        Ok(all)
    }

    /// p(y = c) at every row, N×C, averaged over the latent values by quasi-Monte Carlo.
    pub fn categorical(&self, likelihood: &Categorical) -> Result<Mat> {
        let (n, classes) = (self.mean.rows(), likelihood.classes);
        if self.mean.cols() != classes {
            return Err(Error::shape(
                "latent functions of a categorical likelihood",
                classes,
                self.mean.cols(),
            ));
        }
        let nodes = likelihood.nodes(SAMPLES, 0)?;
        let row = |i: usize| -> Result<Vec<f64>> {
            Ok(likelihood.averaged(self.mean.row(i), &self.root(i)?, &nodes))
        };
        let rows = (0..n).into_par_iter().map(row).collect::<Result<Vec<_>>>()?;
        Mat::from_vec(n, classes, rows.concat())
    }

    /// p(y = c) at the means of the latent values, N×C.
    pub fn categorical_at_mean(&self) -> Mat {
        let mut all = self.mean.clone();
        (0..all.rows()).for_each(|n| {
            Categorical::softmax(all.row_mut(n));
        });
        all
    }

    /// T with TTᵀ the covariance at a row.
    fn root(&self, row: usize) -> Result<Mat> {
        let classes = self.mean.cols();
        let diagonal = |i: usize, j: usize| if i == j { self.var[(row, i)].max(0.0).sqrt() } else { 0.0 };
        match &self.cov {
            None => Ok(Mat::from_fn(classes, classes, diagonal)),
            // At a training point that is known exactly the covariance may vanish.
            Some(cov) if cov[row].trace() <= 0.0 => Ok(Mat::zeros(classes, classes)),
            Some(cov) => Ok(Cholesky::with_jitter(&cov[row], "the covariance of latent values")?.l().clone()),
        }
    }

    /// Mean and variance of an observation at every row, N×1; errs where they are beyond all numbers.
    pub fn observed(&self, likelihood: &dyn Likelihood) -> Result<Prediction> {
        self.one(likelihood)?;
        let at = self.mean.as_slice().iter().zip(self.var.as_slice());
        let (mean, var): (Vec<f64>, Vec<f64>) = at.map(|(m, v)| likelihood.moments(*m, *v)).unzip();
        if var.iter().chain(&mean).any(|v| !v.is_finite()) {
            return Err(Error::not_finite("a predicted observation"));
        }
        Ok(Prediction { mean: Mat::column(&mean), var: Mat::column(&var) })
    }

    /// Rates and counts at every row, of a likelihood of counts; errs where they are beyond all numbers.
    pub fn rates(&self, likelihood: &dyn Likelihood) -> Result<Rates> {
        self.one(likelihood)?;
        let at = || self.mean.as_slice().iter().zip(self.var.as_slice());
        let (mean, var): (Vec<f64>, Vec<f64>) =
            at().map(|(m, v)| likelihood.response_moments(*m, *v)).unzip();
        let count_var: Vec<f64> = at().map(|(m, v)| likelihood.moments(*m, *v).1).collect();
        if count_var.iter().any(|v| !v.is_finite()) {
            return Err(Error::not_finite("a predicted rate"));
        }
        Ok(Rates { mean, var, count_var })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::likelihood::{Bernoulli, Poisson};

    fn two() -> Latents {
        let var = Mat::from_rows(&[[0.5, 1.0], [0.0, 0.0]]);
        Latents { mean: Mat::from_rows(&[[0.3, -0.4], [2.0, 1.0]]), var, cov: None }
    }

    #[test]
    fn covariances_that_are_diagonal_change_nothing() {
        let plain = two();
        let cov = vec![Mat::from_rows(&[[0.5, 0.0], [0.0, 1.0]]), Mat::zeros(2, 2)];
        let full = Latents { cov: Some(cov), ..two() };
        let likelihood = Categorical::new(2).unwrap();
        let (a, b) = (plain.categorical(&likelihood).unwrap(), full.categorical(&likelihood).unwrap());
        assert!(a.as_slice().iter().zip(b.as_slice()).all(|(a, b)| (a - b).abs() < 1e-12));
        // Without uncertainty the average is the value at the mean.
        let at_mean = plain.categorical_at_mean();
        assert!((a[(1, 0)] - at_mean[(1, 0)]).abs() < 1e-12 && a[(0, 0)] < at_mean[(0, 0)]);
    }

    #[test]
    fn shapes_and_overflow_are_errors() {
        assert!(matches!(two().rates(&Poisson), Err(Error::Shape { .. })));
        assert!(matches!(two().probabilities(&Bernoulli::logit()), Err(Error::Shape { .. })));
        assert!(matches!(two().categorical(&Categorical { classes: 3 }), Err(Error::Shape { .. })));
        let huge = Latents { mean: Mat::filled(1, 1, 1e3), var: Mat::zeros(1, 1), cov: None };
        assert!(matches!(huge.rates(&Poisson), Err(Error::NotFinite { .. })));
        assert!(matches!(huge.observed(&Poisson), Err(Error::NotFinite { .. })));
    }
}
