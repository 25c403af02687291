//! Predictions: every model predicts through this file.
//!
//! ```text
//! certain     mean = k∗α      var = k∗∗ − k∗ L⁻ᵀ C L⁻¹ k∗ᵀ
//! uncertain   mean = ψ1α      cov = vᵀAv − meanᵀmean + (ψ0 − tr CA)·I,   A = L⁻¹Ψ2L⁻ᵀ, v = Lᵀα
//! ```
//!
//! A and v stay of moderate size where Kzz is ill-conditioned; Ψ2 and α do not.
//!
//! Means and variances are those of the noise-free function, in the units of the data.

use crate::blocks::part_rows;
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::expectation::{Expectation, Gaussians, Psi};
use crate::kernel::Kernel;
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;
use rayon::prelude::*;

/// The posterior of outputs that share L and C.
#[derive(Clone, Debug)]
pub struct Factors {
    /// The columns of Y.
    pub columns: Vec<usize>,
    /// α, M×D.
    pub alpha: Mat,
    /// C, M×M; the identity for an exact process.
    pub c: Mat,
    /// v = Lᵀα.
    v: Mat,
}

/// A function posterior.
#[derive(Clone)]
pub struct Posterior {
    /// The kernel.
    pub kernel: Box<dyn Kernel>,
    /// Z, M×Q.
    pub z: Mat,
    /// σ², in the units of the scaled data.
    pub noise: f64,
    /// L.
    pub l: Cholesky,
    /// One for each set of outputs that were observed together.
    pub factors: Vec<Factors>,
    /// For uncertain inputs.
    pub expectation: Box<dyn Expectation>,
    /// The units of the data.
    pub scaling: Scaling,
}

/// Means and variances, N×D, of the noise-free function.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The mean.
    pub mean: Mat,
    /// The variance; add [`Posterior::noise_variance`] for that of an observation.
    pub var: Mat,
}

impl Factors {
    /// α and C of the columns listed, with the L they belong to.
    pub fn new(columns: Vec<usize>, alpha: Mat, c: Mat, l: &Cholesky) -> Self {
        let v = linalg::mul_tn(l.l(), &alpha);
        Factors { columns, alpha, c, v }
    }

    /// v = Lᵀα, M×D.
    pub fn v(&self) -> &Mat {
        &self.v
    }
}

impl Posterior {
    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.scaling.scale.len()
    }

    /// σ² of every output, in the units of the data.
    pub fn noise_variance(&self) -> Vec<f64> {
        self.scaling.scale.iter().map(|s| self.noise * s * s).collect()
    }

    fn check_inputs(&self, x: &Mat) -> Result<()> {
        if x.cols() != self.z.cols() {
            return Err(Error::shape("columns of the inputs", self.z.cols(), x.cols()));
        }
        if !x.is_finite() {
            return Err(Error::not_finite("an input"));
        }
        Ok(())
    }

    /// At certain inputs, N×Q.
    pub fn predict(&self, x: &Mat) -> Result<Prediction> {
        self.check_inputs(x)?;
        let scaled = self.predict_scaled(x);
        self.unscale(scaled)
    }

    /// The same in the units of the scaled data.
    pub(crate) fn predict_scaled(&self, x: &Mat) -> Prediction {
        let (n, d) = (x.rows(), self.outputs());
        let rows = part_rows(n);
        let parts: Vec<(Mat, Mat)> = (0..n.div_ceil(rows))
            .into_par_iter()
            .map(|i| self.predict_block(&x.slice_rows(i * rows, (i * rows + rows).min(n))))
            .collect();
        let mut all = Prediction { mean: Mat::zeros(n, d), var: Mat::zeros(n, d) };
        for (i, (mean, var)) in parts.iter().enumerate() {
            let at = i * rows * d..i * rows * d + mean.len();
            all.mean.as_mut_slice()[at.clone()].copy_from_slice(mean.as_slice());
            all.var.as_mut_slice()[at].copy_from_slice(var.as_slice());
        }
        all
    }

    fn predict_block(&self, x: &Mat) -> (Mat, Mat) {
        let (n, m, d) = (x.rows(), self.z.rows(), self.outputs());
        let mut k = Mat::zeros(n, m);
        self.kernel.cross(x, &self.z, &mut k);
        let mut prior = vec![0.0; n];
        self.kernel.diag(x, &mut prior);
        let mut white = k.t();
        self.l.solve_l(&mut white);
        let (mut mean, mut var) = (Mat::zeros(n, d), Mat::zeros(n, d));
        for f in &self.factors {
            let part = linalg::mul(&k, &f.alpha);
            let cw = linalg::mul(&f.c, &white);
            for i in 0..n {
                let explained: f64 = (0..m).map(|j| white[(j, i)] * cw[(j, i)]).sum();
                for (j, &column) in f.columns.iter().enumerate() {
                    mean[(i, column)] = part[(i, j)];
                    var[(i, column)] = (prior[i] - explained).max(0.0);
                }
            }
        }
        (mean, var)
    }

    /// At uncertain inputs; rows are independent of each other.
    pub fn predict_uncertain(&self, q: &Gaussians) -> Result<Prediction> {
        let d = self.outputs();
        let rows = self.each_row(q, |psi| {
            let (mut mean, mut var) = (vec![0.0; d], vec![0.0; d]);
            for f in &self.factors {
                let own = linalg::mul(&psi.psi1, &f.alpha);
                let spread = linalg::mul(&psi.psi2, &f.v);
                let rest = psi.psi0 - f.c.dot(&psi.psi2);
                for (j, &column) in f.columns.iter().enumerate() {
                    let second: f64 = (0..self.z.rows()).map(|i| f.v[(i, j)] * spread[(i, j)]).sum();
                    mean[column] = own[(0, j)];
                    var[column] = (rest.max(0.0) + second - own[(0, j)].powi(2)).max(0.0);
                }
            }
            (mean, var)
        })?;
        let (mean, var): (Vec<Vec<f64>>, Vec<Vec<f64>>) = rows.into_iter().unzip();
        let mat = |rows: Vec<Vec<f64>>| Mat::from_vec(q.n(), d, rows.concat()).expect("n × d numbers");
        self.unscale(Prediction { mean: mat(mean), var: mat(var) })
    }

    /// The D×D covariance of the outputs at each uncertain input.
    ///
    /// Outputs observed at different rows have different posteriors, which are uncorrelated given x.
    pub fn covariance(&self, q: &Gaussians) -> Result<Vec<Mat>> {
        let d = self.outputs();
        let scale = &self.scaling.scale;
        self.each_row(q, |psi| {
            let (mut alpha, mut v) = (Mat::zeros(self.z.rows(), d), Mat::zeros(self.z.rows(), d));
            let mut rest = vec![0.0; d];
            for f in &self.factors {
                let own = (psi.psi0 - f.c.dot(&psi.psi2)).max(0.0);
                for (j, &column) in f.columns.iter().enumerate() {
                    for i in 0..self.z.rows() {
                        alpha[(i, column)] = f.alpha[(i, j)];
                        v[(i, column)] = f.v[(i, j)];
                    }
                    rest[column] = own;
                }
            }
            let mean = linalg::mul(&psi.psi1, &alpha);
            let second = linalg::mul_tn(&v, &linalg::mul(&psi.psi2, &v));
            Mat::from_fn(d, d, |i, j| {
                let own = if i == j { rest[i] } else { 0.0 };
                (second[(i, j)] - mean[(0, i)] * mean[(0, j)] + own) * scale[i] * scale[j]
            })
        })
    }

    /// Ψ0, Ψ1 and A of each row on its own, and what `then` makes of them.
    fn each_row<T: Send>(&self, q: &Gaussians, then: impl Fn(&Psi) -> T + Sync) -> Result<Vec<T>> {
        self.check_inputs(&q.mean)?;
        let one = |n: usize| -> Result<T> {
            let psi = self.expectation.psi_whitened(&*self.kernel, &q.select_rows(&[n]), &self.z, &self.l)?;
            Ok(then(&psi))
        };
        (0..q.n()).into_par_iter().map(one).collect()
    }

    fn unscale(&self, p: Prediction) -> Result<Prediction> {
        let all = Prediction { mean: self.scaling.undo_mean(&p.mean)?, var: self.scaling.undo_var(&p.var)? };
        if !(all.mean.is_finite() && all.var.is_finite()) {
            return Err(Error::not_finite("a prediction"));
        }
        Ok(all)
    }
}
