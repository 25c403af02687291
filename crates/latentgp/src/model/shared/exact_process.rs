//! The exact process behind regression and the GPLVM: Kxx + σ²I at the rows where each output was observed.
//!
//! A group of outputs with missing rows is a process of the other rows alone. Its posterior is written for
//! all rows: α is zero and R = (K + σ²I)⁻¹ has zero rows and columns where nothing was observed. Where each
//! output has its own noise, the outputs of a group share the eigenvectors of K.

use crate::error::{Error, Result};
use crate::evidence::{Exact, ExactColumns, exact_columns, exact_in_place};
use crate::gram;
use crate::kernel::Kernel;
use crate::linalg::{self, Cholesky};
use crate::mat::{Mat, all_finite};
use crate::model::Outputs;
use crate::model::shared::outputs::Group;
use crate::posterior::{Explained, Factors};
use crate::scratch;
use rayon::prelude::*;

/// Kernel, inputs, noise and residuals.
pub(crate) struct ExactProcess<'a> {
    pub kernel: &'a dyn Kernel,
    pub x: &'a Mat,
    /// σ², one for all outputs or one for each.
    pub noise: &'a [f64],
    pub outputs: &'a Outputs,
    /// Y minus the mean function, N×D, zero where a cell is missing; for complete data any root of YYᵀ.
    pub residuals: &'a Mat,
}

/// The lower triangle of the rows and columns listed.
fn lower_part(kxx: &Mat, rows: &[usize]) -> Mat {
    let mut part = scratch::any(rows.len(), rows.len());
    for (i, &a) in rows.iter().enumerate() {
        let pairs = part.row_mut(i)[..=i].iter_mut().zip(rows);
        pairs.for_each(|(k, &b)| *k = kxx[(a, b)]);
    }
    part
}

/// The buffers to which gradients are added.
pub(crate) struct ExactGrad<'g> {
    pub theta: &'g mut [f64],
    pub noise: &'g mut [f64],
    pub x: Option<&'g mut Mat>,
    /// The gradient in the residuals.
    pub residuals: Option<&'g mut Mat>,
}

impl ExactProcess<'_> {
    /// The lower triangle of Kxx.
    fn kxx(&self) -> Result<Mat> {
        let kxx = gram::gram_lower(self.kernel, self.x);
        let rows = kxx.as_slice().par_chunks(kxx.cols().max(1)).enumerate();
        match rows.all(|(i, row)| all_finite(&row[..=i])) {
            true => Ok(kxx),
            false => Err(Error::not_finite("the kernel matrix of the inputs")),
        }
    }

    /// Calls `then` with the process of each group: its rows and columns, its residuals, its evidence.
    fn each_group(&self, kxx: Mat, mut then: impl FnMut(&Group, &Mat, Exact)) -> Result<()> {
        if let [group] = &self.outputs.groups[..]
            && group.rows == self.x.rows()
        {
            let again = || gram::gram_lower(self.kernel, self.x);
            let found = exact_in_place(self.residuals, group.columns.len(), kxx, again, self.noise[0])?;
            then(group, self.residuals, found);
            return Ok(());
        }
        for group in &self.outputs.groups {
            let (rows, columns) = (&group.at, &group.columns);
            let own = self.residuals.select_rows(rows).select_cols(columns);
            let part = || lower_part(&kxx, rows);
            let found = exact_in_place(&own, columns.len(), part(), part, self.noise[0])?;
            then(group, &own, found);
        }
        Ok(())
    }

    /// [`each_group`](Self::each_group) where each output has its own noise.
    fn each_group_by_columns(&self, kxx: &Mat, mut then: impl FnMut(&Group, ExactColumns)) -> Result<()> {
        for group in &self.outputs.groups {
            let (rows, columns) = (&group.at, &group.columns);
            let own = self.residuals.select_rows(rows).select_cols(columns);
            let mut part = lower_part(kxx, rows);
            linalg::mirror_lower(&mut part);
            let noise: Vec<f64> = columns.iter().map(|&j| self.noise[j]).collect();
            then(group, exact_columns(&own, &part, &noise)?);
        }
        Ok(())
    }

    /// [`evidence`](Self::evidence) where each output has its own noise.
    fn evidence_by_columns(&self, kxx: &Mat, grad: Option<ExactGrad<'_>>) -> Result<f64> {
        let n = self.x.rows();
        let (mut value, mut kxx_bar) = (0.0, scratch::zeros(n, n));
        let mut to = grad;
        self.each_group_by_columns(kxx, |Group { at: rows, columns, .. }, found| {
            value += found.value;
            let Some(to) = to.as_mut() else { return };
            let bar = found.bar();
            columns.iter().zip(&bar.noise).for_each(|(&j, own)| to.noise[j] += own);
            if let Some(residuals) = to.residuals.as_deref_mut() {
                for (i, &row) in rows.iter().enumerate() {
                    columns.iter().enumerate().for_each(|(j, &c)| residuals[(row, c)] -= found.alpha[(i, j)]);
                }
            }
            for (i, &a) in rows.iter().enumerate() {
                rows[..=i].iter().enumerate().for_each(|(j, &b)| kxx_bar[(a, b)] += bar.kxx[(i, j)]);
            }
        })?;
        if let Some(to) = to {
            gram::gram_adjoint(self.kernel, self.x, &kxx_bar, to.theta, to.x);
        }
        Ok(value)
    }

    /// log N(residuals | 0, K + σ²I), summed over the groups; adds its gradients.
    pub fn evidence(&self, grad: Option<ExactGrad<'_>>) -> Result<f64> {
        let kxx = self.kxx()?;
        if self.noise.len() > 1 {
            return self.evidence_by_columns(&kxx, grad);
        }
        let mut value = 0.0;
        let Some(mut grad) = grad else {
            self.each_group(kxx, |_, _, found| value += found.value)?;
            return Ok(value);
        };
        let n = self.x.rows();
        let mut kxx_bar: Option<Mat> = None;
        self.each_group(kxx, |Group { at: rows, columns, .. }, _, found| {
            value += found.value;
            let (bar, alpha) = found.into_bar_lower();
            grad.noise[0] += bar.noise;
            if let Some(to) = grad.residuals.as_deref_mut() {
                for (i, &row) in rows.iter().enumerate() {
                    columns.iter().enumerate().for_each(|(j, &c)| to[(row, c)] -= alpha[(i, j)]);
                }
            }
            drop(alpha);
            if rows.len() == n && kxx_bar.is_none() {
                kxx_bar = Some(bar.kxx);
                return;
            }
            let all = kxx_bar.get_or_insert_with(|| scratch::zeros(n, n));
            for (i, &a) in rows.iter().enumerate() {
                rows[..=i].iter().enumerate().for_each(|(j, &b)| all[(a, b)] += bar.kxx[(i, j)]);
            }
        })?;
        let kxx_bar = kxx_bar.unwrap_or_else(|| scratch::zeros(n, n));
        gram::gram_adjoint(self.kernel, self.x, &kxx_bar, grad.theta, grad.x);
        Ok(value)
    }

    /// L of K + σ²I at all rows, and the factors of every group. The residuals must have all columns of Y.
    pub fn factors(&self) -> Result<(Cholesky, Vec<Factors>)> {
        let kxx = self.kxx()?;
        let n = self.x.rows();
        let mut whole = kxx.clone();
        let noise = self.noise.iter().copied().fold(0.0, f64::max);
        (0..n).for_each(|i| whole[(i, i)] += noise);
        let l = Cholesky::with_jitter(&whole, "Kxx + σ²I")?;
        let mut all = Vec::new();
        if self.noise.len() > 1 {
            self.each_group_by_columns(&kxx, |Group { at: rows, columns, .. }, found| {
                let (mut alpha, mut u) = (Mat::zeros(n, columns.len()), Mat::zeros(n, rows.len()));
                for (i, &a) in rows.iter().enumerate() {
                    alpha.row_mut(a).copy_from_slice(found.alpha.row(i));
                    u.row_mut(a).copy_from_slice(found.u.row(i));
                }
                // C_d = LᵀR_dL.
                let c = Explained::Each { u: linalg::mul_tn(l.l(), &u), c: found.inverse };
                all.push(Factors::with(columns.to_vec(), alpha, c, &l));
            })?;
            return Ok((l, all));
        }
        self.each_group(kxx, |Group { at: rows, columns, .. }, _, found| {
            if rows.len() == n {
                all.push(Factors::exact(columns.to_vec(), found.alpha, &l));
                return;
            }
            let (mut alpha, mut r) = (Mat::zeros(n, columns.len()), Mat::zeros(n, n));
            let inverse = found.l.inverse();
            for (i, &a) in rows.iter().enumerate() {
                alpha.row_mut(a).copy_from_slice(found.alpha.row(i));
                rows.iter().enumerate().for_each(|(j, &b)| r[(a, b)] = inverse[(i, j)]);
            }
            all.push(Factors::of_r(columns.to_vec(), alpha, r, &l));
        })?;
        Ok((l, all))
    }

    /// Mean and variance of every observed cell given the other rows; missing cells are left unchanged.
    pub fn leave_one_out(&self, mean: &mut Mat, var: &mut Mat) -> Result<()> {
        self.each_group(self.kxx()?, |Group { at: rows, columns, .. }, own, found| {
            let (means, vars) = found.leave_one_out(own);
            for (i, &row) in rows.iter().enumerate() {
                for (j, &column) in columns.iter().enumerate() {
                    mean[(row, column)] = means[(i, j)];
                    var[(row, column)] = vars[i];
                }
            }
        })
    }
}
