//! The posterior of the inputs of new rows with known outputs.
//!
//! Given q(u) from the training, the bound of each row ([`RowBound`]) is maximised over q(x∗).

use crate::error::{Error, Result};
use crate::expectation::Gaussians;
use crate::input_map::InputMap;
use crate::mat::Mat;
use crate::mean::Mean;
use crate::model::latent::bayesian_gplvm::RowBound;
use crate::posterior::Posterior;
use rayon::prelude::*;

/// The posterior of x∗ of each row from its prior, both scaled, and from its outputs in the units of the
/// data; NaN is a missing output. Cells with zero variance stay unchanged.
///
/// Errs when shapes disagree, and where inputs are projected or the mean is linear, for which there is no
/// such bound.
pub(super) fn infer(posterior: &Posterior, prior: &Gaussians, y: &Mat) -> Result<Gaussians> {
    let outputs = posterior.scaling.scale.len();
    if y.rows() != prior.n() || y.cols() != outputs {
        let expected = format!("{} × {outputs}", prior.n());
        return Err(Error::shape("outputs of the new rows", expected, y.shape()));
    }
    if !matches!(posterior.map, InputMap::AsIs) || !matches!(posterior.mean, Mean::Zero) {
        return Err(refused());
    }
    let y = posterior.scaling.apply(y)?;
    each_row(prior, |n, own| {
        let found = RowBound::new(posterior, y.row(n), own).best_of(around(own))?;
        Ok((found.0, found.1))
    })
}

/// The error of a model that has no posterior of inputs.
pub(super) fn refused() -> Error {
    Error::invalid(
        "what inputs are inferred from",
        "an exact or sparse regression without a mean function (gp, sparse)",
        "another model",
    )
}

/// Means and variances of the cells of a row.
type Row = (Vec<f64>, Vec<f64>);

/// Applies `one` to every row of the prior, in parallel; returns their posteriors.
pub(super) fn each_row(
    prior: &Gaussians,
    one: impl Fn(usize, (&[f64], &[f64])) -> Result<Row> + Sync,
) -> Result<Gaussians> {
    let rows: Vec<Row> = (0..prior.n())
        .into_par_iter()
        .map(|n| one(n, (prior.mean.row(n), prior.var.row(n))))
        .collect::<Result<_>>()?;
    let mut q = prior.clone();
    for (n, (mean, var)) in rows.iter().enumerate() {
        q.mean.row_mut(n).copy_from_slice(mean);
        q.var.row_mut(n).copy_from_slice(var);
    }
    Ok(q)
}

/// The starts of a row's posterior: the mean of its prior, and one standard deviation to either side.
pub(super) fn around((mean, var): (&[f64], &[f64])) -> Vec<Row> {
    let step = |by: f64| mean.iter().zip(var).map(|(m, p)| m + by * p.sqrt()).collect();
    [0.0, -1.0, 1.0].into_iter().map(|by| (step(by), var.iter().map(|p| 0.5 * p).collect())).collect()
}
