//! New rows of a GPLVM: the position that explains a row best.
//!
//! ```text
//! x∗ = argmax log N(y∗ | k∗α, (k∗∗ − k∗Rk∗ᵀ + σ²)I) [+ log N(x∗ | 0, I)]
//! ```
//!
//! over the observed cells. It is maximised from several starts: the positions of the training rows that
//! look most like y∗, and the origin. Each row stands on its own, so that a batch equals its pieces.

use crate::error::{Error, Result};
use crate::kernel::KernelGrad;
use crate::linalg;
use crate::mat::Mat;
use crate::model::Model;
use crate::model::latent::gplvm::{Gplvm, LatentPrior};
use crate::optim::{Lbfgs, Optimizer, quiet};
use crate::param;
use crate::posterior::{Explained, Factors, Posterior};
use rayon::prelude::*;

/// Training rows whose positions serve as starts.
const STARTS: usize = 4;

/// Positions of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Positions {
    /// X∗, N×Q.
    pub x: Mat,
    /// log p(y∗ | x∗) of every row over its observed cells, for the data as given. No density of the row:
    /// that has x∗ integrated out, [`Gplvm::log_density`].
    pub log_likelihood: Vec<f64>,
}

impl Gplvm {
    /// The latent positions of the rows of `y`; NaN is a missing cell.
    ///
    /// A row that is equal to a training row has that row's position. A row without any observed cell is at
    /// the origin.
    pub fn project(&self, y: &Mat) -> Result<Positions> {
        self.project_with(&self.posterior()?, y)
    }

    /// The same with a posterior that is there already.
    pub fn project_with(&self, posterior: &Posterior, y: &Mat) -> Result<Positions> {
        Ok(self.place(posterior, y, false)?.0)
    }

    /// The positions of rows, and where they are asked for the log densities with the positions integrated out.
    pub(crate) fn place(
        &self,
        posterior: &Posterior,
        y: &Mat,
        densities: bool,
    ) -> Result<(Positions, Vec<f64>)> {
        let scaled = self.scaling.apply(y)?;
        let rows: Vec<Row> = (0..y.rows())
            .into_par_iter()
            .map(|n| self.place_row(posterior, y.row(n), scaled.row(n), densities))
            .collect::<Result<_>>()?;
        let mut all = Positions { x: Mat::zeros(y.rows(), self.x.value.cols()), log_likelihood: Vec::new() };
        for (n, row) in rows.iter().enumerate() {
            all.x.row_mut(n).copy_from_slice(&row.x);
            all.log_likelihood.push(row.log_likelihood);
        }
        Ok((all, rows.iter().filter_map(|row| row.log_density).collect()))
    }

    fn place_row(&self, posterior: &Posterior, given: &[f64], y: &[f64], density: bool) -> Result<Row> {
        let at = RowDensity { posterior, y };
        let (near, exact) = self.outputs.nearest_rows(y, STARTS);
        let origin = vec![0.0; self.x.value.cols()];
        if y.iter().all(|v| v.is_nan()) {
            return Ok(Row { x: origin, log_likelihood: 0.0, log_density: density.then_some(0.0) });
        }
        let starts: Vec<_> = near.iter().map(|&n| self.x.value.row(n).to_vec()).chain([origin]).collect();
        let climbs = |prior| starts.iter().map(|x| climb(&at, x.clone(), prior)).collect::<Vec<_>>();
        let found = if density || exact.is_none() { climbs(self.prior) } else { Vec::new() };
        let (x, log_likelihood) = match exact {
            Some(n) => {
                let x = self.x.value.row(n).to_vec();
                let value = at.value(&x, None)?;
                (x, value)
            }
            None => best(&found)?,
        };
        let log_density = match density {
            true => {
                // The density has the prior, whatever the positions were found with.
                let found =
                    if self.prior == LatentPrior::None { climbs(LatentPrior::StandardNormal) } else { found };
                let found: Vec<Found> = found.into_iter().flatten().collect();
                Some(self.row_log_density(posterior, given, y, &found)?)
            }
            false => None,
        };
        Ok(Row { x, log_likelihood, log_density })
    }
}

/// What is known of one row.
struct Row {
    x: Vec<f64>,
    log_likelihood: f64,
    log_density: Option<f64>,
}

/// A position that no near one is better than.
pub(crate) struct Found {
    pub x: Vec<f64>,
    log_likelihood: f64,
    /// What was maximised: the log likelihood, and the log density of the prior up to a constant.
    pub joint: f64,
}

/// The position of the best, and its log likelihood.
fn best(found: &[Result<Found>]) -> Result<(Vec<f64>, f64)> {
    let mut best: Option<&Found> = None;
    for found in found.iter().flatten() {
        if best.is_none_or(|b| found.joint > b.joint) {
            best = Some(found);
        }
    }
    match (best, found.iter().find_map(|f| f.as_ref().err())) {
        (Some(found), _) => Ok((found.x.clone(), found.log_likelihood)),
        (None, Some(error)) => Err(error.clone()),
        (None, None) => unreachable!("at least one start"),
    }
}

fn climb(density: &RowDensity<'_>, mut x: Vec<f64>, prior: LatentPrior) -> Result<Found> {
    let weight = f64::from(prior == LatentPrior::StandardNormal);
    let mut objective = |x: &[f64], grad: &mut [f64]| -> Result<f64> {
        let value = density.value(x, Some(grad))?;
        grad.iter_mut().zip(x).for_each(|(g, x)| *g = weight * x - *g);
        Ok(0.5 * weight * x.iter().map(|x| x * x).sum::<f64>() - value)
    };
    let how = Lbfgs { max_iterations: 300, value_tolerance: 1e-12, ..Lbfgs::default() };
    let report = how.minimize(&mut x, &mut objective, &mut quiet)?;
    let log_likelihood = density.value(&x, None)?;
    Ok(Found { x, log_likelihood, joint: -report.value })
}

/// log p(y∗ | x∗) of one scaled row.
pub(crate) struct RowDensity<'a> {
    pub posterior: &'a Posterior,
    pub y: &'a [f64],
}

impl RowDensity<'_> {
    /// The value at x; sets its gradient.
    pub fn value(&self, x: &[f64], grad: Option<&mut [f64]>) -> Result<f64> {
        let p = self.posterior;
        let at = Mat::from_rows(&[x]);
        let mut k = Mat::zeros(1, p.z.rows());
        p.kernel.cross(&at, &p.z, &mut k);
        let mut prior = [0.0];
        p.kernel.diag(&at, &mut prior);
        let (mut value, mut prior_bar) = (0.0, 0.0);
        let mut k_bar = Mat::zeros(1, p.z.rows());
        for f in &p.factors {
            if let Explained::Each { u, c } = &f.c {
                let (own, bar) = self.each(f, (u, c), &k, prior[0], &mut k_bar);
                value += own;
                prior_bar += bar;
                continue;
            }
            let rk = p.r_times(f, &k);
            let free = prior[0] - rk.dot(&k);
            // Outputs that share R share their noise.
            let var = free.max(0.0) + p.noise[f.columns[0]];
            let mean = linalg::mul(&k, &f.alpha);
            let (mut square, mut seen) = (0.0, 0.0);
            for (j, &column) in f.columns.iter().enumerate().filter(|(_, c)| !self.y[**c].is_nan()) {
                let apart = self.y[column] - mean[(0, j)];
                square += apart * apart;
                seen += 1.0;
                value -= p.scaling.scale[column].ln();
                (0..k.cols()).for_each(|m| k_bar[(0, m)] += apart / var * f.alpha[(m, j)]);
            }
            value -= 0.5 * (seen * (std::f64::consts::TAU * var).ln() + square / var);
            if free > 0.0 {
                let var_bar = 0.5 * (square / var - seen) / var;
                prior_bar += var_bar;
                k_bar.add_scaled(-2.0 * var_bar, &rk);
            }
        }
        if let Some(grad) = grad {
            let mut theta = vec![0.0; param::count(&p.kernel)];
            let mut x_bar = Mat::zeros(1, x.len());
            let to = KernelGrad { theta: &mut theta, x: Some(&mut x_bar), z: None };
            p.kernel.cross_adjoint(&at, &p.z, &k_bar, to);
            let to = KernelGrad { theta: &mut theta, x: Some(&mut x_bar), z: None };
            p.kernel.diag_adjoint(&at, &[prior_bar], to);
            grad.copy_from_slice(x_bar.row(0));
        }
        if value.is_finite() { Ok(value) } else { Err(Error::not_finite("the density of a new row")) }
    }

    /// The part of outputs with a noise of their own each, C_d = U diag(c_d) Uᵀ: the value, and ∂/∂k∗∗; adds ∂/∂k∗.
    fn each(&self, f: &Factors, (u, c): (&Mat, &Mat), k: &Mat, prior: f64, k_bar: &mut Mat) -> (f64, f64) {
        let p = self.posterior;
        let mut white = k.t();
        p.l.solve_l(&mut white);
        let (along, mean) = (linalg::mul_tn(u, &white), linalg::mul(k, &f.alpha));
        let mut along_bar = Mat::zeros(u.cols(), 1);
        let (mut value, mut prior_bar) = (0.0, 0.0);
        for (j, &column) in f.columns.iter().enumerate().filter(|(_, c)| !self.y[**c].is_nan()) {
            let explained: f64 = (0..u.cols()).map(|i| c[(i, j)] * along[(i, 0)].powi(2)).sum();
            let (free, apart) = (prior - explained, self.y[column] - mean[(0, j)]);
            let var = free.max(0.0) + p.noise[column];
            value -= p.scaling.scale[column].ln()
                + 0.5 * ((std::f64::consts::TAU * var).ln() + apart * apart / var);
            (0..k.cols()).for_each(|m| k_bar[(0, m)] += apart / var * f.alpha[(m, j)]);
            if free > 0.0 {
                let var_bar = 0.5 * (apart * apart / var - 1.0) / var;
                prior_bar += var_bar;
                (0..u.cols()).for_each(|i| along_bar[(i, 0)] -= 2.0 * var_bar * c[(i, j)] * along[(i, 0)]);
            }
        }
        let mut bar = linalg::mul(u, &along_bar);
        p.l.solve_lt(&mut bar);
        k_bar.add_scaled(1.0, &bar.t());
        (value, prior_bar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{differences, relative_error};
    use crate::kernel::{Linear, Matern52};
    use crate::model::GplvmTraining;
    use std::ops::ControlFlow;

    fn data(n: usize, shift: f64) -> Mat {
        Mat::from_fn(n, 4, |i, j| {
            let t = (i as f64 + shift) / n as f64 * 5.0;
            (t + j as f64).sin() + 0.3 * (t - j as f64).cos()
        })
    }

    fn fitted(prior: LatentPrior, y: &Mat) -> Gplvm {
        let training = GplvmTraining { prior, max_iterations: 50, ..Default::default() };
        training.fit(y, &(Matern52::new(2) + Linear::new(2)), &|_| ControlFlow::Continue(())).unwrap().model
    }

    #[test]
    fn the_density_is_that_of_the_prediction_and_its_gradient_right() {
        let mut y = data(20, 0.0);
        y[(3, 1)] = f64::NAN;
        // A fit of data without noise has a covariance too ill-conditioned for differences.
        let training = GplvmTraining { noise: 0.05, ..Default::default() };
        let mut model = training.start(&y, &(Matern52::new(2) + Linear::new(2)), 0).unwrap();
        density_agrees(&model);
        model.noise.value = Mat::from_fn(1, 4, |_, j| 0.02 * (1 + j) as f64);
        density_agrees(&model);
    }

    fn density_agrees(model: &Gplvm) {
        let posterior = model.posterior().unwrap();
        let row = [0.3, f64::NAN, -0.2, 0.5];
        let given = model.scaling.undo_mean(&Mat::from_rows(&[row])).unwrap();
        let density = RowDensity { posterior: &posterior, y: &row };
        let x = [0.4, -0.7];
        let mut grad = [0.0; 2];
        let value = density.value(&x, Some(&mut grad)).unwrap();
        let slow = differences(&x, |x| density.value(x, None).unwrap());
        assert!(relative_error(&grad, &slow, 1e-3) < 1e-7);
        let there = posterior.predict(&Mat::from_rows(&[x])).unwrap();
        let noise = posterior.noise_variance();
        let one = |j: usize| {
            let var = there.var[(0, j)] + noise[j];
            -0.5 * ((std::f64::consts::TAU * var).ln() + (given[(0, j)] - there.mean[(0, j)]).powi(2) / var)
        };
        assert!((value - [0, 2, 3].map(one).iter().sum::<f64>()).abs() < 1e-9 * value.abs());
    }

    #[test]
    fn new_rows_land_where_they_are_reconstructed() {
        let y = data(40, 0.0);
        for prior in [LatentPrior::None, LatentPrior::StandardNormal] {
            let model = fitted(prior, &y);
            let mut new = data(40, 0.5).slice_rows(5, 12);
            let found = model.project(&new).unwrap();
            let back = model.posterior().unwrap().predict(&found.x).unwrap().mean;
            let error = relative_error(back.as_slice(), new.as_slice(), 0.0);
            assert!(error < 0.1, "{prior:?}: {error}");
            new[(2, 1)] = f64::NAN;
            let holed = model.project(&new).unwrap();
            assert_eq!(holed.x.row(0), found.x.row(0));
            let alone = model.project(&new.slice_rows(2, 3)).unwrap();
            assert_eq!(alone.x.row(0), holed.x.row(2));
            let same = model.project(&y.slice_rows(7, 8)).unwrap();
            assert_eq!(same.x.row(0), model.x.value.row(7));
            assert_eq!(model.project(&Mat::filled(1, 4, f64::NAN)).unwrap().x.row(0), &[0.0, 0.0]);
        }
        let model = fitted(LatentPrior::None, &y);
        assert!(model.project(&Mat::zeros(1, 3)).is_err());
        assert!(model.project(&Mat::filled(1, 4, f64::INFINITY)).is_err());
        let far = model.project(&Mat::filled(1, 4, 1e6)).unwrap();
        assert!(far.x.is_finite());
    }
}
