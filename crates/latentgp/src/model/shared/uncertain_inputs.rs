//! Inputs with known errors and with missing cells.
//!
//! A cell is a number, a number with a known standard deviation s, which is N(x, s²), or missing. A missing
//! cell of column j is latent: it has the prior N(m_j, v_j), mean and variance of the observed cells of its
//! column, and a posterior N(μ, S) whose parameters are fitted with −KL in the bound.

use crate::data::{Scale, Scaling};
use crate::error::{Error, Result};
use crate::expectation::Gaussians;
use crate::mat::Mat;
use crate::model::shared::prior::{InputPrior, KlGrad, Normal};
use crate::param::Param;

/// A missing cell's posterior starts with this part of its prior variance.
const START: f64 = 0.5;

/// Inputs of a regression, scaled.
#[derive(Clone, Debug, PartialEq)]
pub struct UncertainInputs {
    /// Means and variances; those of missing cells are in `mean` and `var`.
    known: Gaussians,
    /// Row and column of every missing cell.
    pub cells: Vec<(usize, usize)>,
    /// μ of the missing cells, one row.
    pub mean: Param,
    /// S of the missing cells, one row.
    pub var: Param,
    /// m and v of the missing cells, one row each.
    pub prior: Normal,
}

impl UncertainInputs {
    /// X, N×Q, with NaN where a cell is missing, and the standard deviations of the others, if known.
    ///
    /// Errs when a value is infinite, a standard deviation is negative or not a number, or a column has no
    /// observed cell. A standard deviation at a missing cell is not read.
    pub fn new(x: &Mat, std: Option<&Mat>) -> Result<Self> {
        let columns = Scaling::fit(x, Scale::Standardize)?;
        let (n, q) = (x.rows(), x.cols());
        let mut var = Mat::zeros(n, q);
        if let Some(std) = std {
            if std.shape() != x.shape() {
                return Err(Error::shape("standard deviations of the inputs", x.shape(), std.shape()));
            }
            for (at, (v, &s)) in var.as_mut_slice().iter_mut().zip(std.as_slice()).enumerate() {
                if x.as_slice()[at].is_nan() {
                    continue;
                }
                *v = s * s;
                if !(s >= 0.0 && v.is_finite()) {
                    let what = format!(
                        "standard deviation of row {}, column {} of the inputs",
                        at / q + 1,
                        at % q + 1
                    );
                    return Err(Error::invalid(what, "a finite number, not negative", s));
                }
            }
        }
        let cells: Vec<(usize, usize)> =
            (0..n).flat_map(|i| (0..q).map(move |j| (i, j))).filter(|&at| x[at].is_nan()).collect();
        let row = |f: &dyn Fn(usize) -> f64| Mat::from_fn(1, cells.len(), |_, c| f(cells[c].1));
        let prior =
            Normal { mean: row(&|j| columns.mean[j]), var: row(&|j| columns.scale[j] * columns.scale[j]) };
        if !prior.var.as_slice().iter().all(|v| v.is_finite() && *v > 0.0) {
            return Err(Error::not_finite("the variance of an input column with missing cells"));
        }
        Ok(UncertainInputs {
            known: Gaussians { mean: x.map(|v| if v.is_nan() { 0.0 } else { v }), var },
            mean: Param::free(prior.mean.clone()),
            var: Param::positive(prior.var.map(|v| START * v)),
            cells,
            prior,
        })
    }

    /// What is known of X, with NaN in the means of missing cells; with [`prior`](Self::prior) it is all that
    /// was given.
    pub(crate) fn given(&self) -> Gaussians {
        let mut known = self.known.clone();
        self.cells.iter().for_each(|&at| known.mean[at] = f64::NAN);
        known
    }

    /// The inverse of [`given`](Self::given), to the bit.
    pub(crate) fn of_given(given: Gaussians, prior: Normal) -> Result<Self> {
        let mut all = UncertainInputs::new(&given.mean, None)?;
        if prior.mean.len() != all.cells.len() {
            return Err(Error::shape("priors of missing inputs", all.cells.len(), prior.mean.len()));
        }
        all.known.var = given.var;
        all.prior = prior;
        Ok(all)
    }

    /// q(X) of all rows.
    pub fn gaussians(&self) -> Gaussians {
        let mut q = self.known.clone();
        for (c, &at) in self.cells.iter().enumerate() {
            q.mean[at] = self.mean.as_slice()[c];
            q.var[at] = self.var.as_slice()[c];
        }
        q
    }

    /// KL of the missing cells; adds −∂KL to the gradients of their means and variances.
    pub(crate) fn kl(&self, grads: Option<(&mut [f64], &mut [f64])>) -> Result<f64> {
        let grads = grads.map(|(mean, var)| KlGrad { mean, var, params: &mut [] });
        self.prior.kl(&self.mean.value, &self.var.value, grads)
    }
}
