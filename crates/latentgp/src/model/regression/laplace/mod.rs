//! The Laplace approximation: a Gaussian at the mode of p(f | y), for classes and counts.
//!
//! ```text
//! f_c ~ GP(m_c, k),  y_n ~ p(y | f_n)      f̂ = m + Ka,  a = ∇ ln p(y | f̂),  W = −∇² ln p(y | f̂)
//! ln p(y) ≈ ln p(y | f̂) − ½ aᵀKa − ½ ln|I + KW|
//! K̄ = ½ Σ_c (a_ca_cᵀ − R_cc) + v_ca_cᵀ     m̄_c = Σ_n (a + v)_cn
//! v = (I + WK)⁻¹ ∂(−½ ln|I + KW|)/∂f̂       R = (K + W⁻¹)⁻¹
//! f∗ | y ~ N(m + k∗a, k∗∗ − k∗Rk∗ᵀ)
//! ```
//!
//! v accounts for the dependence of the mode on the hyperparameters. Rasmussen & Williams (2006), algorithms
//! 3.1 to 3.4 and 5.1. The approximation is nearly exact for counts and biased for two classes; O(C N³) time.
//!
//! ```
//! use latentgp::{Mat, kernel::Rbf, likelihood::{Link, Observations}};
//! use latentgp::model::{Laplace, VARIANCE_PRIOR, fit};
//! use latentgp::optim::{Lbfgs, quiet};
//! let x = Mat::from_fn(30, 1, |i, _| 0.2 * i as f64 - 3.0);
//! let labels: Vec<usize> = (0..30).map(|i| usize::from(i == 12 || (i > 14 && i != 17))).collect();
//! let y = Observations::bernoulli(&labels, Link::Logit)?;
//! let mut model = Laplace::new(x, y, Rbf::new(1))?.with_variance_prior(VARIANCE_PRIOR);
//! fit(&mut model, &Lbfgs::default(), &mut quiet)?;
//! let p = model.approximation()?.probabilities(&Mat::column(&[-2.0, 2.0]))?;
//! assert!(p[(0, 1)] < 0.2 && p[(1, 1)] > 0.8);
//! # Ok::<(), latentgp::Error>(())
//! ```

mod curvature;
mod local;
mod newton;
mod regressor;
#[cfg(test)]
pub(super) mod tests;

use crate::blocks::part_rows;
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::expectation;
use crate::kernel::{self, Kernel, KernelGrad};
use crate::likelihood::{Latents, Observations, Rates};
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;
use crate::mean::Mean;
use crate::model::Model;
use crate::param::{self, Param, Parameterized, Prior};
use crate::posterior::{Factors, InputMap, Posterior};
use crate::scratch::Buffer;
use newton::Mode;
use rayon::prelude::*;

/// A Gaussian process with a likelihood that is not Gaussian, by Laplace's approximation.
#[derive(Clone)]
pub struct Laplace {
    /// The kernel, shared by all latent functions.
    pub kernel: Box<dyn Kernel>,
    /// m, the prior mean of each latent function, 1×C; free unless it is fixed.
    pub mean: Param,
    /// X, N×Q, scaled.
    pub x: Mat,
    /// y and p(y | f).
    pub observations: Observations,
    /// The units of X; `None` where inputs are not scaled.
    pub inputs: Option<Scaling>,
}

/// A weak prior on the variance of a latent function of classes: 95 % of it lies between 1.4 and 70.
pub const VARIANCE_PRIOR: Prior = Prior::LogNormal { mean: std::f64::consts::LN_10, std: 1.0 };

/// The Gaussian approximation at the mode.
pub struct Approximation<'a> {
    model: &'a Laplace,
    k: Mat,
    mode: Mode,
    log_evidence: f64,
}

/// Errs unless the sizes of inputs, observations and kernel agree.
pub(super) fn check_inputs(x: &Mat, observations: &Observations, kernel: &dyn Kernel) -> Result<()> {
    if x.rows() != observations.n() {
        return Err(Error::shape("rows of the inputs", observations.n(), x.rows()));
    }
    if x.cols() == 0 {
        return Err(Error::shape("columns of the inputs", "at least 1", 0));
    }
    if !x.is_finite() {
        return Err(Error::not_finite("an input"));
    }
    kernel::check_dim(kernel, x.cols())
}

/// Starts free lengthscales at √Q, the typical distance between standardised inputs of Q columns. With much
/// shorter ones the rows are uncorrelated, and the fit ends at variance 0.
pub(super) fn widen(kernel: &mut dyn Kernel, columns: usize) {
    for (name, p) in kernel.params_mut() {
        let start = (if p.len() > 1 { p.len() } else { columns } as f64).sqrt();
        if name.ends_with("lengthscale") && !p.fixed && p.transform.admits(start) {
            p.set(start);
        }
    }
}

impl Laplace {
    /// Starts the free lengthscales at √Q, for standardised inputs of Q columns.
    pub fn wide_start(&mut self) {
        widen(&mut *self.kernel, self.x.cols());
    }

    /// A model of observations at given inputs, which are not scaled unless [`inputs`](Self::inputs) is set,
    /// with a start of the prior mean.
    ///
    /// Errs when shapes disagree or a number is outside its domain, and for a likelihood that is not
    /// log-concave or has parameters; the sparse model takes those.
    pub fn new(x: Mat, observations: Observations, kernel: impl Kernel + 'static) -> Result<Self> {
        check_inputs(&x, &observations, &kernel)?;
        let refuse = |expected: &str| {
            let found = format!("{}; the model `sparse` takes it", observations.expression());
            Err(Error::invalid("likelihood of the model `gp`", expected, found))
        };
        if observations.likelihood().is_some_and(|l| !l.log_concave()) {
            return refuse("a log-concave one");
        }
        if param::count(&observations) > 0 {
            return refuse("one without parameters");
        }
        let mean = Param::free(Mat::from_rows(&[observations.start()]));
        let model = Laplace { kernel: Box::new(kernel), mean, x, observations, inputs: None };
        model.params().iter().try_for_each(|(name, p)| p.check(name))?;
        Ok(model)
    }

    /// Sets a prior on the free variances of the kernel that have none.
    ///
    /// Where classes are separable, the evidence hardly falls as the variance grows, while the Gaussian at
    /// the mode becomes far wider than the posterior and probabilities drift to 1/C. A prior such as
    /// [`VARIANCE_PRIOR`] prevents this.
    pub fn with_variance_prior(mut self, prior: Prior) -> Self {
        for (name, p) in self.kernel.params_mut() {
            if name.rsplit('.').next() == Some("variance") && !p.fixed && p.prior.is_none() {
                p.prior = Some(prior);
            }
        }
        self
    }

    /// Finds the mode, from which all predictions are made.
    pub fn approximation(&self) -> Result<Approximation<'_>> {
        let n = self.x.rows();
        let mut k = Mat::zeros(n, n);
        self.kernel.gram(&self.x, &mut k);
        if !k.is_finite() {
            return Err(Error::not_finite("K"));
        }
        let mode = newton::mode(&self.observations, &k, self.mean.as_slice())?;
        let log_evidence = mode.value - 0.5 * mode.curvature.log_det();
        if !log_evidence.is_finite() {
            return Err(Error::not_finite("the log evidence"));
        }
        Ok(Approximation { model: self, k, mode, log_evidence })
    }
}

impl Approximation<'_> {
    /// The approximate ln p(y).
    pub fn log_evidence(&self) -> f64 {
        self.log_evidence
    }

    /// f̂, the mode of the latent values, N×C, prior mean included.
    pub fn mode(&self) -> Mat {
        self.mode.f.t()
    }

    /// a = K⁻¹(f̂ − m), N×C.
    pub fn alpha(&self) -> Mat {
        self.mode.a.t()
    }

    /// The posterior of the latent values at x, N×C, with covariances where there are several functions.
    pub fn latents(&self, x: &Mat) -> Result<Latents> {
        if x.cols() != self.model.x.cols() {
            return Err(Error::shape("columns of the inputs", self.model.x.cols(), x.cols()));
        }
        if !x.is_finite() {
            return Err(Error::not_finite("an input"));
        }
        match &self.model.inputs {
            None => self.scaled_latents(x),
            Some(units) => self.scaled_latents(&units.apply(x)?),
        }
    }

    /// [`latents`](Self::latents) at scaled inputs.
    fn scaled_latents(&self, x: &Mat) -> Result<Latents> {
        let (n, rows, latents) = (x.rows(), part_rows(x.rows()), self.mode.a.rows());
        let part = |i: usize| self.latents_block(&x.slice_rows(i * rows, (i * rows + rows).min(n)));
        let parts: Vec<(Mat, Vec<Mat>)> = (0..n.div_ceil(rows)).into_par_iter().map(part).collect();
        let (means, covs): (Vec<Mat>, Vec<Vec<Mat>>) = parts.into_iter().unzip();
        let cov = covs.concat();
        let mean = Mat::from_vec(n, latents, means.into_iter().flat_map(Mat::into_vec).collect())?;
        let var = Mat::from_fn(n, latents, |i, c| cov[i][(c, c)]);
        if !(mean.is_finite() && var.is_finite()) {
            return Err(Error::not_finite("a prediction"));
        }
        Ok(Latents { mean, var, cov: (latents > 1).then_some(cov) })
    }

    fn latents_block(&self, x: &Mat) -> (Mat, Vec<Mat>) {
        let mut cross = Mat::zeros(x.rows(), self.model.x.rows());
        self.model.kernel.cross(x, &self.model.x, &mut cross);
        let mut prior = vec![0.0; x.rows()];
        self.model.kernel.diag(x, &mut prior);
        let mut mean = linalg::mul_nt(&cross, &self.mode.a);
        for i in 0..mean.rows() {
            mean.row_mut(i).iter_mut().zip(self.model.mean.as_slice()).for_each(|(f, m)| *f += m);
        }
        let (all, latents) = (self.mode.curvature.covariances(&cross.t(), &prior), self.mode.a.rows());
        let one = |p: usize| Mat::from_fn(latents, latents, |c, d| all[(p, c * latents + d)]);
        (mean, (0..x.rows()).map(one).collect())
    }

    /// Class probabilities at x, N×C, averaged over the latent values; errs where there are no classes.
    pub fn probabilities(&self, x: &Mat) -> Result<Mat> {
        self.model.observations.probabilities(&self.latents(x)?)
    }

    /// Class probabilities at the means of the latent values, N×C; errs where there are no classes.
    pub fn probabilities_at_mean(&self, x: &Mat) -> Result<Mat> {
        self.model.observations.probabilities_at_mean(&self.latents(x)?)
    }

    /// Rates and counts at x; errs where no counts were observed.
    pub fn rates(&self, x: &Mat) -> Result<Rates> {
        self.model.observations.rates(&self.latents(x)?)
    }

    /// *Sets* the total gradient of the log evidence, including the dependence of the mode on the parameters.
    fn gradient(&self, grad: &mut [f64]) -> Result<()> {
        let (mode, n) = (&self.mode, self.k.rows());
        let latents = mode.a.rows();
        let mut pull = Mat::zeros(latents, n);
        let diagonal = Buffer::of((0..n).map(|i| self.k[(i, i)]));
        let mut own = Buffer::filled(0.0, latents);
        let covariances = mode.curvature.covariances(&self.k, &diagonal);
        for i in 0..n {
            mode.local.implicit(i, covariances.row(i), &mut own);
            (0..latents).for_each(|c| pull[(c, i)] = own[c]);
        }
        let mut v = pull.clone();
        v.add_scaled(-1.0, &mode.curvature.apply(&linalg::mul(&pull, &self.k)));

        let mut k_bar = Mat::zeros(n, n);
        for c in 0..latents {
            k_bar.add_scaled(-0.5, &mode.curvature.block(c));
            let (a, v) = (mode.a.row(c), v.row(c));
            for i in 0..n {
                for (j, out) in k_bar.row_mut(i).iter_mut().enumerate() {
                    *out += 0.5 * (a[i] * a[j] + v[i] * a[j] + a[i] * v[j]);
                }
            }
        }
        grad.fill(0.0);
        let (theta, mean_bar) = grad.split_at_mut(param::count(&self.model.kernel));
        self.model.kernel.gram_adjoint(&self.model.x, &k_bar, KernelGrad { theta, x: None, z: None });
        for c in 0..latents {
            mean_bar[c] = mode.a.row(c).iter().zip(v.row(c)).map(|(a, v)| a + v).sum();
        }
        match grad.iter().all(|g| g.is_finite()) {
            true => Ok(()),
            false => Err(Error::not_finite("the gradient of the log evidence")),
        }
    }
}

impl Parameterized for Laplace {
    fn params(&self) -> Vec<(String, &Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params());
        all.push(("mean".to_string(), &self.mean));
        all
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params_mut());
        all.push(("mean".to_string(), &mut self.mean));
        all
    }

    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.kernel.each_param(visit);
        visit(&self.mean);
    }

    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        self.kernel.each_param_mut(visit);
        visit(&mut self.mean);
    }
}

impl Model for Laplace {
    fn varying_evidence(&self, grad: Option<&mut [f64]>) -> Result<f64> {
        let at = self.approximation()?;
        grad.map_or(Ok(()), |grad| at.gradient(grad))?;
        Ok(at.log_evidence)
    }

    /// The posterior of the latent functions; covariances between classes are only in
    /// [`Approximation::latents`].
    fn posterior(&self) -> Result<Posterior> {
        let at = self.approximation()?;
        // R needs no factor of K, which may be singular: L is the identity.
        let l = Cholesky::new(&Mat::eye(self.x.rows()), "the identity")?;
        let factors = (0..self.observations.latents())
            .map(|c| {
                let alpha = Mat::column(at.mode.a.row(c));
                Factors::new(vec![c], alpha, at.mode.curvature.block(c), &l)
            })
            .collect();
        let mean = self.mean.as_slice().to_vec();
        Ok(Posterior {
            mean: Mean::Zero,
            inputs: self.inputs.clone(),
            map: InputMap::AsIs,
            kernel: self.kernel.clone(),
            z: self.x.clone(),
            noise: vec![0.0; mean.len()],
            l: l.into(),
            factors,
            expectation: Box::new(expectation::Auto),
            scaling: Scaling { scale: vec![1.0; mean.len()], mean },
        })
    }
}
