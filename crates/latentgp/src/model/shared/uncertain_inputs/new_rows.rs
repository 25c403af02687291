//! What is known of the inputs of new rows before their outputs are seen.

use super::cell_prior::CellPrior;
use super::{Treatment, UncertainInputs};
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::expectation::Gaussians;
use crate::mat::Mat;

impl UncertainInputs {
    /// The priors of new rows, in the units of the model: X has the observed columns, with NaN where a cell is missing,
    /// and `var` the variances of their errors. Latent columns follow.
    ///
    /// Errs when shapes disagree.
    pub fn priors(&self, x: &Mat, var: Option<&Mat>) -> Result<Gaussians> {
        let observed = self.columns.mean.cols() - self.latent;
        if x.cols() != observed {
            return Err(Error::shape("columns of the inputs", observed, x.cols()));
        }
        if let Some(var) = var.filter(|v| v.shape() != x.shape()) {
            return Err(Error::shape("variances of the inputs", x.shape(), var.shape()));
        }
        let one = |i: usize, j: usize| {
            let (c, v) = self.column(j);
            if j >= observed || x[(i, j)].is_nan() {
                return (c, v);
            }
            let (x, a) = (x[(i, j)], var.map_or(0.0, |v| v[(i, j)]));
            match self.treatment {
                Treatment::Averaged => (x, a),
                Treatment::Inferred if a == 0.0 => (x, 0.0),
                Treatment::Inferred => {
                    let prior = CellPrior::new(x, a, c, v);
                    (prior.mean, prior.var)
                }
            }
        };
        let (n, q) = (x.rows(), observed + self.latent);
        Gaussians::new(Mat::from_fn(n, q, |i, j| one(i, j).0), Mat::from_fn(n, q, |i, j| one(i, j).1))
    }

    /// [`priors`](Self::priors) of rows in the units of the data.
    pub(crate) fn priors_in(&self, units: Option<&Scaling>, x: &Mat, var: Option<&Mat>) -> Result<Gaussians> {
        let Some(s) = units else { return self.priors(x, var) };
        if let Some(var) = var.filter(|v| v.shape() != x.shape()) {
            return Err(Error::shape("variances of the inputs", x.shape(), var.shape()));
        }
        let x = s.apply(x)?;
        let var = var.map(|v| Mat::from_fn(v.rows(), v.cols(), |i, j| v[(i, j)] / s.scale[j] / s.scale[j]));
        self.priors(&x, var.as_ref())
    }
}
