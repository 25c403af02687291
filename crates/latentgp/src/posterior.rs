//! Predictions: every model predicts through this file.
//!
//! ```text
//! certain     mean = k∗α      var = k∗∗ − k∗ L⁻ᵀ C L⁻¹ k∗ᵀ
//! uncertain   mean = ψ1α      cov = vᵀAv − meanᵀmean + (ψ0 − tr CA)·I,   A = L⁻¹Ψ2L⁻ᵀ, v = Lᵀα
//! ```
//!
//! A and v stay of moderate size where Kzz is ill-conditioned; Ψ2 and α do not.
//!
//! Means and variances are those of the noise-free function, in the units of the data. A mean function
//! m(x) = a + Bᵀx adds to the mean, and at uncertain inputs BᵀSB + BᵀSG + GᵀSB to the covariance, where
//! G = ∂(ψ1α)/∂μ: Cov[x, f(x)] = S E[∂f/∂x] of a Gaussian x (Stein's lemma).
//!
//! Inputs go through the [`InputMap`] of the model first. Where that is not the identity, there is no mean function,
//! and an uncertain input is taken as the points of the unscented rule around it, two for each uncertain column, whose
//! predictions are averaged: a projection correlates its coordinates.

use crate::blocks::part_rows;
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::expectation::correlated::{
    Basis, Correlated, Moments, is_closed, moments, resolve, uncertain_columns,
};
use crate::expectation::{Expectation, Gaussians, Psi, PsiGrad};
use crate::gram;
pub use crate::input_map::InputMap;
use crate::input_map::sigma_points;
use crate::kernel::Kernel;
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;
use crate::mean::Mean;
use crate::param;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use std::sync::Arc;

/// The posterior of outputs that were observed at the same rows.
#[derive(Clone, Debug)]
pub struct Factors {
    /// The columns of Y.
    pub columns: Vec<usize>,
    /// α, M×D.
    pub alpha: Mat,
    /// C.
    pub c: Explained,
    v: Mat,
}

/// C of the predictive variance k∗∗ − k∗L⁻ᵀCL⁻¹k∗ᵀ, for outputs that were observed at the same rows.
#[derive(Clone, Debug)]
pub enum Explained {
    /// The identity: that of an exact process.
    All,
    /// One for all outputs, M×M.
    Same(Mat),
    /// C_d = U diag(c_d) Uᵀ of output d: those with a noise of their own each.
    Each {
        /// U, M×K.
        u: Mat,
        /// The c_d, K×D.
        c: Mat,
    },
}

/// A function posterior.
#[derive(Clone)]
pub struct Posterior {
    /// The kernel.
    pub kernel: Box<dyn Kernel>,
    /// Z, M×Q.
    pub z: Mat,
    /// σ² of every output, in the units of the scaled data.
    pub noise: Vec<f64>,
    /// L.
    pub l: Arc<Cholesky>,
    /// One for each set of outputs that were observed together.
    pub factors: Vec<Factors>,
    /// For uncertain inputs.
    pub expectation: Box<dyn Expectation>,
    /// The units of the data.
    pub scaling: Scaling,
    /// The mean function, of scaled inputs to scaled outputs.
    pub mean: Mean,
    /// The units of the inputs; `None` where they meet the kernel as they are.
    pub inputs: Option<Scaling>,
    /// From scaled inputs to those of the kernel.
    pub map: InputMap,
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
    pub fn with(columns: Vec<usize>, alpha: Mat, c: Explained, l: &Cholesky) -> Self {
        let v = linalg::mul_tn(l.l(), &alpha);
        Factors { columns, alpha, c, v }
    }

    /// α of the columns listed, and their one C.
    pub fn new(columns: Vec<usize>, alpha: Mat, c: Mat, l: &Cholesky) -> Self {
        Factors::with(columns, alpha, Explained::Same(c), l)
    }

    /// α of the columns listed, with C = I.
    pub fn exact(columns: Vec<usize>, alpha: Mat, l: &Cholesky) -> Self {
        Factors::with(columns, alpha, Explained::All, l)
    }

    /// α of the columns listed, with the R that C = LᵀRL comes from.
    pub(crate) fn of_r(columns: Vec<usize>, alpha: Mat, r: Mat, l: &Cholesky) -> Self {
        let mut c = linalg::mul(&linalg::mul_tn(l.l(), &r), l.l());
        linalg::symmetrize(&mut c);
        Factors::new(columns, alpha, c, l)
    }

    /// v = Lᵀα, M×D.
    pub fn v(&self) -> &Mat {
        &self.v
    }

    /// tr C_dA of every output, or the only one where they share C.
    fn explained(&self, a: &Mat) -> Vec<f64> {
        match &self.c {
            Explained::All => vec![a.trace()],
            Explained::Same(c) => vec![c.dot(a)],
            Explained::Each { u, c } => {
                let au = linalg::mul(a, u);
                let along = |k: usize| (0..u.rows()).map(|i| u[(i, k)] * au[(i, k)]).sum::<f64>();
                let along: Vec<f64> = (0..u.cols()).map(along).collect();
                (0..c.cols()).map(|j| (0..c.rows()).map(|k| along[k] * c[(k, j)]).sum()).collect()
            }
        }
    }

    /// wᵀC_dw of every whitened row w and every output, N×D; N×1 where they share C.
    fn explained_rows(&self, white: &Mat) -> Mat {
        let weighted = match &self.c {
            Explained::All => None,
            Explained::Same(c) => Some(linalg::mul(white, c)),
            Explained::Each { u, c } => return linalg::mul(&linalg::mul(white, u).map(|v| v * v), c),
        };
        let weighted = weighted.as_ref().unwrap_or(white);
        Mat::from_fn(white.rows(), 1, |i, _| {
            white.row(i).iter().zip(weighted.row(i)).map(|(a, b)| a * b).sum()
        })
    }

    /// The outputs, by their place in [`columns`](Self::columns), that have one C together.
    fn alike(&self) -> Vec<Vec<usize>> {
        match self.c {
            Explained::Each { .. } => (0..self.columns.len()).map(|j| vec![j]).collect(),
            _ => vec![(0..self.columns.len()).collect()],
        }
    }
}

impl Explained {
    /// C_d of the output at a place; `None` is the identity.
    pub fn of(&self, output: usize) -> Option<Mat> {
        match self {
            Explained::All => None,
            Explained::Same(c) => Some(c.clone()),
            Explained::Each { u, c } => {
                let scaled = Mat::from_fn(u.rows(), u.cols(), |i, k| u[(i, k)] * c[(k, output)]);
                Some(linalg::mul_nt(&scaled, u))
            }
        }
    }

    /// Adds Σ_d scale_d·C_d over the outputs at the places given, whose scales are equal where they share C.
    pub(crate) fn add(&self, scales: &[(usize, f64)], to: &mut Mat) {
        let shared = scales.first().map_or(0.0, |(_, scale)| scale * scales.len() as f64);
        match self {
            Explained::All => (0..to.rows()).for_each(|i| to[(i, i)] += shared),
            Explained::Same(c) => to.add_scaled(shared, c),
            Explained::Each { u, c } => {
                let sum = |k: usize| scales.iter().map(|(d, scale)| scale * c[(k, *d)]).sum::<f64>();
                let sums: Vec<f64> = (0..u.cols()).map(sum).collect();
                let scaled = Mat::from_fn(u.rows(), u.cols(), |i, k| u[(i, k)] * sums[k]);
                linalg::gemm(1.0, &scaled, linalg::Op::N, u, linalg::Op::T, to);
            }
        }
    }
}

/// The entry of an output, of those of all or the only one.
fn pick(of: &[f64], output: usize) -> f64 {
    if of.len() == 1 { of[0] } else { of[output] }
}

impl Posterior {
    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.scaling.scale.len()
    }

    /// σ² of every output, in the units of the data.
    pub fn noise_variance(&self) -> Vec<f64> {
        self.scaling.variances(&self.noise)
    }

    /// k L⁻ᵀCL⁻¹ of rows k, for outputs that share C.
    pub(crate) fn r_times(&self, f: &Factors, k: &Mat) -> Mat {
        let mut white = k.t();
        self.l.solve_l(&mut white);
        let mut out = match &f.c {
            Explained::Same(c) => linalg::mul(c, &white),
            _ => white.clone(),
        };
        self.l.solve_lt(&mut out);
        out.t()
    }

    fn check_inputs(&self, x: &Mat) -> Result<()> {
        let expected = self.map.input_dim(self.z.cols());
        if x.cols() != expected {
            return Err(Error::shape("columns of the inputs", expected, x.cols()));
        }
        if let Some(at) = x.as_slice().iter().position(|v| !v.is_finite()) {
            let place = format!("row {}, column {} of the inputs", at / x.cols() + 1, at % x.cols() + 1);
            return Err(Error::not_finite(place));
        }
        Ok(())
    }

    /// Inputs in the units that the map sees.
    fn scale_inputs(&self, x: &Mat) -> Result<Mat> {
        self.check_inputs(x)?;
        match &self.inputs {
            None => Ok(x.clone()),
            Some(scaling) => scaling.apply(x),
        }
    }

    fn scale_gaussians(&self, q: &Gaussians) -> Result<Gaussians> {
        let mean = self.scale_inputs(&q.mean)?;
        let var = match &self.inputs {
            None => q.var.clone(),
            Some(s) => Mat::from_fn(q.n(), q.dim(), |n, d| q.var[(n, d)] / s.scale[d] / s.scale[d]),
        };
        Gaussians::new(mean, var)
    }

    /// At certain inputs, N×Q.
    pub fn predict(&self, x: &Mat) -> Result<Prediction> {
        let at = self.map.apply(&self.scale_inputs(x)?)?;
        if !self.map.is_certain() {
            return self.predict_latent(&at);
        }
        let mut scaled = self.predict_scaled(&at.mean);
        self.mean.add(1.0, &at.mean, &mut scaled.mean);
        self.unscale(scaled)
    }

    /// The places of certain inputs in the kernel's space; errs where the model's map leaves them uncertain.
    fn places(&self, x: &Mat) -> Result<Mat> {
        if !self.map.is_certain() {
            let expected = "a model whose projection of the inputs is certain";
            return Err(Error::invalid("joint predictions", expected, "random weights"));
        }
        Ok(self.map.apply(&self.scale_inputs(x)?)?.mean)
    }

    /// The N×N covariance of one output at the rows of x, all at once.
    pub fn joint_covariance(&self, x: &Mat, output: usize) -> Result<Mat> {
        let x = self.places(x)?;
        let Some(f) = self.factors.iter().find(|f| f.columns.contains(&output)) else {
            let expected = format!("one of the {} outputs, from 0", self.outputs());
            return Err(Error::invalid("output", expected, output));
        };
        let place = f.columns.iter().position(|c| *c == output).expect("a column of its own factors");
        let mut cov = self.joint_scaled(f, place, &x);
        let scale = self.scaling.scale[output];
        cov.scale(scale);
        cov.scale(scale);
        if cov.is_finite() { Ok(cov) } else { Err(Error::not_finite("a predictive covariance")) }
    }

    /// The covariance of the output at a place of its factors.
    fn joint_scaled(&self, f: &Factors, place: usize, x: &Mat) -> Mat {
        let mut k = Mat::zeros(x.rows(), self.z.rows());
        self.kernel.cross(x, &self.z, &mut k);
        let mut white = k.t();
        self.l.solve_l(&mut white);
        let explained = match f.c.of(place) {
            Some(c) => linalg::mul_tn(&white, &linalg::mul(&c, &white)),
            None => linalg::mul_tn(&white, &white),
        };
        let mut cov = gram::gram(&*self.kernel, x);
        cov.add_scaled(-1.0, &explained);
        linalg::symmetrize(&mut cov);
        (0..x.rows()).for_each(|i| cov[(i, i)] = at_least_zero(cov[(i, i)]));
        cov
    }

    /// `count` draws of the noise-free function at the rows of x, N×D each.
    ///
    /// A draw depends on the seed and its number alone.
    pub fn sample(&self, x: &Mat, count: usize, seed: u64) -> Result<Vec<Mat>> {
        let mean = self.predict(x)?.mean;
        let scaled = self.places(x)?;
        let mut roots: Vec<(Vec<usize>, Mat)> = Vec::new();
        for f in &self.factors {
            for places in f.alike() {
                let columns = places.iter().map(|&j| f.columns[j]).collect();
                roots.push((columns, root(&self.joint_scaled(f, places[0], &scaled))?));
            }
        }
        let draw = |s: usize| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(s as u64);
            let noise = Mat::from_fn(mean.rows(), mean.cols(), |_, _| StandardNormal.sample(&mut rng));
            let mut out = mean.clone();
            for (columns, root) in &roots {
                let own = linalg::mul(root, &noise.select_cols(columns));
                for (j, &column) in columns.iter().enumerate() {
                    let scale = self.scaling.scale[column];
                    (0..out.rows()).for_each(|i| out[(i, column)] += scale * own[(i, j)]);
                }
            }
            out
        };
        Ok((0..count).into_par_iter().map(draw).collect())
    }

    /// The same in the units of the scaled data, without the mean function.
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
        let means: Vec<Mat> = self.factors.iter().map(|f| linalg::mul(&k, &f.alpha)).collect();
        let mut white = k;
        self.l.solve_rows(&mut white);
        let (mut mean, mut var) = (Mat::zeros(n, d), Mat::zeros(n, d));
        for (f, part) in self.factors.iter().zip(&means) {
            let explained = f.explained_rows(&white);
            for i in 0..n {
                for (j, &column) in f.columns.iter().enumerate() {
                    mean[(i, column)] = part[(i, j)];
                    var[(i, column)] = at_least_zero(prior[i] - pick(explained.row(i), j));
                }
            }
        }
        (mean, var)
    }

    /// At uncertain inputs; rows are independent of each other.
    pub fn predict_uncertain(&self, q: &Gaussians) -> Result<Prediction> {
        let q = &self.scale_gaussians(q)?;
        if self.map == InputMap::AsIs {
            return self.predict_latent(q);
        }
        let d = self.outputs();
        let mut all = Prediction { mean: Mat::zeros(q.n(), d), var: Mat::zeros(q.n(), d) };
        for (n, (mean, cov)) in self.total_covariance(q)?.into_iter().enumerate() {
            all.mean.row_mut(n).copy_from_slice(&mean);
            (0..d).for_each(|j| all.var[(n, j)] = at_least_zero(cov[(j, j)]));
        }
        Ok(all)
    }

    /// At uncertain places in the kernel's space.
    fn predict_latent(&self, q: &Gaussians) -> Result<Prediction> {
        let d = self.outputs();
        let rows = self.each_row(q, |row, psi| {
            let (mut mean, mut var) = (vec![0.0; d], vec![0.0; d]);
            for f in &self.factors {
                let own = linalg::mul(&psi.psi1, &f.alpha);
                let spread = linalg::mul(&psi.psi2, &f.v);
                let explained = f.explained(&psi.psi2);
                for (j, &column) in f.columns.iter().enumerate() {
                    let rest = psi.psi0 - pick(&explained, j);
                    let second: f64 = (0..self.z.rows()).map(|i| f.v[(i, j)] * spread[(i, j)]).sum();
                    mean[column] = own[(0, j)];
                    var[column] = at_least_zero(rest) + second - own[(0, j)].powi(2);
                }
            }
            let mut all = Mat::from_rows(&[mean]);
            self.mean.add(1.0, &row.mean, &mut all);
            if let Some(tilt) = self.tilt(row)? {
                (0..d).for_each(|j| var[j] += tilt[(j, j)]);
            }
            var.iter_mut().for_each(|v| *v = at_least_zero(*v));
            Ok((all.into_vec(), var))
        })?;
        let (mean, var): (Vec<Vec<f64>>, Vec<Vec<f64>>) = rows.into_iter().unzip();
        let mat = |rows: Vec<Vec<f64>>| Mat::from_vec(q.n(), d, rows.concat()).expect("n × d numbers");
        self.unscale(Prediction { mean: mat(mean), var: mat(var) })
    }

    /// The D×D covariance of the outputs at each uncertain input.
    ///
    /// Outputs observed at different rows have different posteriors, which are uncorrelated given x.
    pub fn covariance(&self, q: &Gaussians) -> Result<Vec<Mat>> {
        let q = &self.scale_gaussians(q)?;
        if self.map == InputMap::AsIs {
            return self.covariance_latent(q);
        }
        Ok(self.total_covariance(q)?.into_iter().map(|(_, cov)| cov).collect())
    }

    /// Mean and covariance of the outputs at each uncertain scaled input, over the sigma points around it:
    /// E[f] = E E[f|x], cov f = E cov(f|x) + cov E[f|x].
    fn total_covariance(&self, q: &Gaussians) -> Result<Vec<(Vec<f64>, Mat)>> {
        let d = self.outputs();
        let one = |n: usize| -> Result<(Vec<f64>, Mat)> {
            let (mean, var) = (q.mean.row(n), q.var.row(n));
            let points = self.map.apply(&sigma_points(mean, var, &uncertain_columns(var)))?;
            let (means, covs) = (self.predict_latent(&points)?.mean, self.covariance_latent(&points)?);
            let weight = 1.0 / points.n() as f64;
            let mean: Vec<f64> = (0..d).map(|j| weight * means.col(j).iter().sum::<f64>()).collect();
            let mut cov = Mat::zeros(d, d);
            for (s, own) in covs.iter().enumerate() {
                let apart = |j: usize| means[(s, j)] - mean[j];
                cov.add_scaled(weight, own);
                cov.add_scaled(weight, &Mat::from_fn(d, d, |i, j| apart(i) * apart(j)));
            }
            Ok((mean, cov))
        };
        (0..q.n()).into_par_iter().map(one).collect()
    }

    fn covariance_latent(&self, q: &Gaussians) -> Result<Vec<Mat>> {
        let d = self.outputs();
        let scale = &self.scaling.scale;
        let (alpha, v) = (self.all(|f| &f.alpha), self.all(|f| &f.v));
        self.each_row(q, |row, psi| {
            let mut rest = vec![0.0; d];
            for f in &self.factors {
                let explained = f.explained(&psi.psi2);
                for (j, &column) in f.columns.iter().enumerate() {
                    rest[column] = at_least_zero(psi.psi0 - pick(&explained, j));
                }
            }
            let mean = linalg::mul(&psi.psi1, &alpha);
            let second = linalg::mul_tn(&v, &linalg::mul(&psi.psi2, &v));
            let tilt = self.tilt(row)?.unwrap_or_else(|| Mat::zeros(d, d));
            Ok(Mat::from_fn(d, d, |i, j| {
                let own = if i == j { rest[i] } else { 0.0 };
                (second[(i, j)] - mean[(0, i)] * mean[(0, j)] + own + tilt[(i, j)]) * scale[i] * scale[j]
            }))
        })
    }

    /// α or v of all outputs, M×D.
    fn all(&self, of: impl Fn(&Factors) -> &Mat) -> Mat {
        let mut all = Mat::zeros(self.z.rows(), self.outputs());
        for f in &self.factors {
            for (j, &column) in f.columns.iter().enumerate() {
                (0..self.z.rows()).for_each(|i| all[(i, column)] = of(f)[(i, j)]);
            }
        }
        all
    }

    /// BᵀSB + BᵀSG + GᵀSB at one input; `None` where the mean function has no slope.
    fn tilt(&self, row: &Gaussians) -> Result<Option<Mat>> {
        let Some(slope) = self.mean.slope() else { return Ok(None) };
        let (m, q, d) = (self.z.rows(), row.dim(), self.outputs());
        let alpha = self.all(|f| &f.alpha);
        let mut g = Mat::zeros(q, d);
        for j in 0..d {
            let bar = Psi { psi0: 0.0, psi1: Mat::from_rows(&[alpha.col(j)]), psi2: Mat::zeros(m, m) };
            let mut theta = vec![0.0; param::count(&self.kernel)];
            let (mut z, mut mean, mut var) = (Mat::zeros(m, q), Mat::zeros(1, q), Mat::zeros(1, q));
            let grad = PsiGrad { theta: &mut theta, z: &mut z, mean: &mut mean, var: &mut var };
            self.expectation.psi_adjoint(&*self.kernel, row, &self.z, &bar, grad)?;
            (0..q).for_each(|i| g[(i, j)] = mean[(0, i)]);
        }
        let s = row.var.row(0);
        Ok(Some(Mat::from_fn(d, d, |a, b| {
            let one = |i: usize| {
                let (ba, bb) = (slope[(i, a)], slope[(i, b)]);
                s[i] * (ba * bb + ba * g[(i, b)] + g[(i, a)] * bb)
            };
            (0..q).map(one).sum()
        })))
    }

    /// Ψ0, Ψ1 and A of each row on its own, and what `then` makes of them. Where some columns are certain, nodes spread over
    /// the others alone.
    fn each_row<T: Send>(
        &self,
        q: &Gaussians,
        then: impl Fn(&Gaussians, &Psi) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let basis = Arc::new(Basis { kernel: self.kernel.clone(), z: self.z.clone(), l: self.l.clone() });
        let closed = is_closed(resolve(&*self.expectation, &*self.kernel));
        let one = |n: usize| -> Result<T> {
            let (row, uncertain) = (q.select_rows(&[n]), uncertain_columns(q.var.row(n)).len());
            if closed || uncertain == 0 || uncertain == q.dim() {
                return then(&row, &self.expectation.psi_whitened(&*self.kernel, &row, &self.z, &self.l)?);
            }
            let of = Correlated::independent(q.mean.row(n).to_vec(), q.var.row(n));
            let Moments { psi0, psi1, psi2, .. } = moments(&*self.expectation, &basis, &of)?;
            then(&row, &Psi { psi0, psi1: linalg::mul_nt(&psi1, self.l.l()), psi2 })
        };
        (0..q.n()).into_par_iter().map(one).collect()
    }

    /// Scaled predictions in the units of the data.
    pub(crate) fn unscale(&self, p: Prediction) -> Result<Prediction> {
        let all = Prediction { mean: self.scaling.undo_mean(&p.mean)?, var: self.scaling.undo_var(&p.var)? };
        let finite = |i: &usize| all.mean.row(*i).iter().chain(all.var.row(*i)).all(|v| v.is_finite());
        if let Some(row) = (0..all.mean.rows()).find(|i| !finite(i)) {
            return Err(Error::not_finite(format!("the prediction of row {}", row + 1)));
        }
        Ok(all)
    }
}

/// Rounding below zero is zero; NaN stays NaN, to be refused later.
pub(crate) fn at_least_zero(v: f64) -> f64 {
    if v < 0.0 { 0.0 } else { v }
}

/// R with RRᵀ = A of a positive semi-definite A.
fn root(a: &Mat) -> Result<Mat> {
    if let Ok(factor) = Cholesky::new(a, "a predictive covariance") {
        return Ok(factor.l().clone());
    }
    let (values, vectors) = linalg::eigh(a)?;
    Ok(Mat::from_fn(a.rows(), a.rows(), |i, j| vectors[(i, j)] * values[j].max(0.0).sqrt()))
}
