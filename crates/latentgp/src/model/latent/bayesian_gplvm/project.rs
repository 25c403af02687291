//! The latent posterior of new rows.
//!
//! With q(u) as the training left it, the bound of a new row y∗ is a function of q(x∗) = N(μ, diag S) alone:
//!
//! ```text
//! F∗ = Σ_d −½ log 2πσ_d² − β_d/2·(y_d² − 2 y_d ψ1α_d + v_dᵀAv_d + ψ0 − tr C_dA) − KL(q(x∗) ‖ p(x∗))
//! ```
//!
//! over the observed d. It is maximised from several starts: the positions of the training rows that
//! look most like y∗, and the prior of new rows, which is N(m, diag p). Each row stands on its own, so that a
//! batch equals its pieces.

use crate::error::{Error, Result};
use crate::expectation::{Expectation, Gaussians, Psi, PsiGrad};
use crate::linalg;
use crate::mat::Mat;
use crate::model::{BayesianGplvm, Model};
use crate::optim::{Lbfgs, Optimizer, quiet};
use crate::param;
use crate::posterior::{Explained, Posterior};
use rayon::prelude::*;

/// Training rows whose positions serve as starts.
const STARTS: usize = 3;

/// Latent positions of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Latent {
    /// q(x∗): means and variances, N×Q.
    pub q: Gaussians,
    /// F∗ of every row, for the data as given: a lower bound of log p(y∗ | Y) where Ψ is exact.
    pub bound: Vec<f64>,
}

impl BayesianGplvm {
    /// The latent posterior of the rows of `y`; NaN is a missing cell.
    ///
    /// A row that is equal to a training row has that row's position. A row without any observed cell has
    /// the prior.
    pub fn project(&self, y: &Mat) -> Result<Latent> {
        self.project_with(&self.posterior()?, y)
    }

    /// The same with a posterior that is there already.
    pub fn project_with(&self, posterior: &Posterior, y: &Mat) -> Result<Latent> {
        self.project_knowing(posterior, y, &[])
    }

    /// The same where the columns that the prior asks for are known of the new rows, such as their times
    /// ([`InputPrior::columns`](crate::model::prior::InputPrior::columns)). Without any, nothing is known.
    ///
    /// A row that is equal to a training row has that row's position if what is known of it is the same too.
    pub fn project_knowing(&self, posterior: &Posterior, y: &Mat, known: &[Vec<f64>]) -> Result<Latent> {
        if y.cols() != self.outputs.d() {
            return Err(Error::shape("columns of the new rows", self.outputs.d(), y.cols()));
        }
        let scaled = self.scaling.apply(y)?;
        let prior = self.prior.new_rows(y.rows(), known)?;
        let of_training = (!known.is_empty()).then(|| self.prior.marginals());
        let rows: Vec<(Vec<f64>, Vec<f64>, f64)> = (0..y.rows())
            .into_par_iter()
            .map(|n| {
                let prior = (prior.mean.row(n), prior.var.row(n));
                let same = |at: usize| {
                    of_training.as_ref().is_none_or(|of| prior == (of.mean.row(at), of.var.row(at)))
                };
                self.project_row(RowBound::new(posterior, scaled.row(n), prior), scaled.row(n), same)
            })
            .collect::<Result<_>>()?;
        let q = self.mean.value.cols();
        let mut latent = Latent {
            q: Gaussians { mean: Mat::zeros(y.rows(), q), var: Mat::zeros(y.rows(), q) },
            bound: Vec::with_capacity(y.rows()),
        };
        for (n, (mean, var, bound)) in rows.into_iter().enumerate() {
            latent.q.mean.row_mut(n).copy_from_slice(&mean);
            latent.q.var.row_mut(n).copy_from_slice(&var);
            latent.bound.push(bound);
        }
        Ok(latent)
    }

    /// `same` tells whether a training row has the prior of this one.
    fn project_row(
        &self,
        objective: RowBound<'_>,
        y: &[f64],
        same: impl Fn(usize) -> bool,
    ) -> Result<(Vec<f64>, Vec<f64>, f64)> {
        let (near, exact) = self.outputs.nearest_rows(y, STARTS);
        if let Some(n) = exact.filter(|&n| same(n)) {
            let (mean, var) = (self.mean.value.row(n).to_vec(), self.var.value.row(n).to_vec());
            let bound = objective.value(&one(&mean, &var), None)?;
            return Ok((mean, var, bound));
        }
        let mut starts = vec![(objective.prior.0.to_vec(), objective.prior.1.to_vec())];
        let own = |&n: &usize| (self.mean.value.row(n).to_vec(), self.var.value.row(n).to_vec());
        if objective.observed > 0 {
            starts.extend(near.iter().map(own));
        }
        objective.best_of(starts)
    }
}

/// q of one row.
fn one(mean: &[f64], var: &[f64]) -> Gaussians {
    Gaussians { mean: Mat::from_rows(&[mean]), var: Mat::from_rows(&[var]) }
}

/// F∗ of one row, with what does not depend on q(x∗) worked out.
pub(crate) struct RowBound<'a> {
    posterior: &'a Posterior,
    /// m and p; where p is 0 the input is known.
    prior: (&'a [f64], &'a [f64]),
    /// The columns that are not known.
    free: Vec<usize>,
    observed: usize,
    /// Σ_d −½ log 2πσ_d² − β_d/2·y_d², and the Jacobian of the scaling.
    constant: f64,
    /// Ψ̄0, Ψ̄1, Ψ̄2.
    bar: Psi,
    /// Ā, of which Ψ̄2 = L⁻ᵀĀL⁻¹.
    a_bar: Mat,
}

impl<'a> RowBound<'a> {
    pub(crate) fn new(posterior: &'a Posterior, y: &[f64], prior: (&'a [f64], &'a [f64])) -> Self {
        let m = posterior.z.rows();
        let mut bar = Psi::zeros(1, m);
        let mut a_bar = Mat::zeros(m, m);
        let (mut constant, mut observed) = (0.0, 0);
        for f in &posterior.factors {
            let seen: Vec<usize> = (0..f.columns.len()).filter(|j| !y[f.columns[*j]].is_nan()).collect();
            let (alpha, v) = (f.alpha.select_cols(&seen), f.v().select_cols(&seen));
            let values = Mat::from_fn(1, seen.len(), |_, j| y[f.columns[seen[j]]]);
            // Outputs that share C share their noise.
            let parts: Vec<Vec<usize>> = match &f.c {
                Explained::Each { .. } => (0..seen.len()).map(|j| vec![j]).collect(),
                _ if seen.is_empty() => Vec::new(),
                _ => vec![(0..seen.len()).collect()],
            };
            for part in &parts {
                let beta = 1.0 / posterior.noise[f.columns[seen[part[0]]]];
                let [alpha, v, values] = [&alpha, &v, &values].map(|of| of.select_cols(part));
                linalg::gemm(beta, &values, linalg::Op::N, &alpha, linalg::Op::T, &mut bar.psi1);
                linalg::gemm(-0.5 * beta, &v, linalg::Op::N, &v, linalg::Op::T, &mut a_bar);
                bar.psi0 -= 0.5 * beta * part.len() as f64;
                constant += 0.5 * part.len() as f64 * (beta / std::f64::consts::TAU).ln()
                    - 0.5 * beta * values.dot(&values);
            }
            let scales = |&j: &usize| (j, 0.5 / posterior.noise[f.columns[j]]);
            f.c.add(&seen.iter().map(scales).collect::<Vec<_>>(), &mut a_bar);
            constant -= seen.iter().map(|&j| posterior.scaling.scale[f.columns[j]].ln()).sum::<f64>();
            observed += seen.len();
        }
        bar.psi2 = posterior.l.unwhiten(&a_bar);
        let free = (0..prior.1.len()).filter(|&i| prior.1[i] > 0.0).collect();
        RowBound { posterior, prior, free, observed, constant, bar, a_bar }
    }

    /// F∗ at q; sets its gradients in means and variances of the columns that are not known.
    fn value(&self, q: &Gaussians, grad: Option<(&mut [f64], &mut [f64])>) -> Result<f64> {
        let (kernel, z) = (&*self.posterior.kernel, &self.posterior.z);
        let expectation: &dyn Expectation = &*self.posterior.expectation;
        let (mean, var) = (q.mean.row(0), q.var.row(0));
        let (m, p) = self.prior;
        let kl_of = |i: usize| {
            let ratio = var[i] / p[i];
            0.5 * ((mean[i] - m[i]) * (mean[i] - m[i]) / p[i] + ratio - ratio.ln() - 1.0)
        };
        let kl: f64 = self.free.iter().copied().map(kl_of).sum();
        let psi = expectation.psi_whitened(kernel, q, z, &self.posterior.l)?;
        let value = self.constant
            + self.bar.psi0 * psi.psi0
            + self.bar.psi1.dot(&psi.psi1)
            + self.a_bar.dot(&psi.psi2)
            - kl;
        if let Some((mean_bar, var_bar)) = grad {
            let mut theta = vec![0.0; param::count(kernel)];
            let mut z_bar = Mat::zeros(z.rows(), z.cols());
            let (mut m_bar, mut s_bar) = (Mat::zeros(1, mean.len()), Mat::zeros(1, mean.len()));
            let grad = PsiGrad { theta: &mut theta, z: &mut z_bar, mean: &mut m_bar, var: &mut s_bar };
            expectation.psi_adjoint(kernel, q, z, &self.bar, grad)?;
            for (k, &i) in self.free.iter().enumerate() {
                mean_bar[k] = m_bar[(0, i)] - (mean[i] - m[i]) / p[i];
                var_bar[k] = s_bar[(0, i)] - 0.5 * (1.0 / p[i] - 1.0 / var[i]);
            }
        }
        if value.is_finite() { Ok(value) } else { Err(Error::not_finite("the bound of a new row")) }
    }

    /// The best q, from means and variances to start at, and F∗ there.
    pub(crate) fn maximise(&self, mean: Vec<f64>, var: Vec<f64>) -> Result<(Vec<f64>, Vec<f64>, f64)> {
        let q = self.free.len();
        let place = |of: &[f64]| self.free.iter().map(|&i| of[i]).collect::<Vec<f64>>();
        let mut u = place(&mean);
        u.extend(place(&var).into_iter().map(f64::ln));
        let known = (self.prior.0.to_vec(), vec![0.0; mean.len()]);
        let split = |u: &[f64]| {
            let (mut mean, mut var) = known.clone();
            for (k, &i) in self.free.iter().enumerate() {
                (mean[i], var[i]) = (u[k], u[q + k].exp());
            }
            one(&mean, &var)
        };
        if q == 0 {
            let bound = self.value(&split(&u), None)?;
            return Ok((known.0, known.1, bound));
        }
        let mut objective = |u: &[f64], grad: &mut [f64]| -> Result<f64> {
            let at = split(u);
            let (mean_bar, var_bar) = grad.split_at_mut(q);
            let value = self.value(&at, Some((mean_bar, var_bar)))?;
            mean_bar.iter_mut().for_each(|g| *g = -*g);
            var_bar.iter_mut().zip(&self.free).for_each(|(g, &i)| *g *= -at.var[(0, i)]);
            Ok(-value)
        };
        let optimizer = Lbfgs { max_iterations: 300, value_tolerance: 1e-12, ..Lbfgs::default() };
        let report = optimizer.minimize(&mut u, &mut objective, &mut quiet)?;
        let at = split(&u);
        Ok((at.mean.into_vec(), at.var.into_vec(), -report.value))
    }

    /// The best of several starts; errs where all of them fail.
    pub(crate) fn best_of(&self, starts: Vec<(Vec<f64>, Vec<f64>)>) -> Result<(Vec<f64>, Vec<f64>, f64)> {
        let mut best: Option<(Vec<f64>, Vec<f64>, f64)> = None;
        let mut failure = None;
        for (mean, var) in starts {
            match self.maximise(mean, var) {
                Ok(found) if best.as_ref().is_none_or(|b| found.2 > b.2) => best = Some(found),
                Ok(_) => {}
                Err(e) => failure = Some(e),
            }
        }
        best.ok_or_else(|| failure.expect("at least one start"))
    }
}
