//! Sparse variational inference for classes, counts and values with outliers: many rows, M inducing inputs.
//!
//! ```text
//! f_c(x) = m_c + a(x)ᵀv_c,  a(x) = L⁻¹k(Z, x),  Kzz = LLᵀ,  v_c ~ N(0, I),  q(v_c) = N(μ_c, T_cT_cᵀ)
//! q(f_c(x)) = N(m_c + aᵀμ_c,  k(x, x) − aᵀa + ‖T_cᵀa‖²)
//! ELBO = Σ_n E_q[ln p(y_n | f_n)] − ½ Σ_c (‖μ_c‖² + ‖T_c‖² − M − 2 Σ ln T_c,jj)
//! ```
//!
//! Hensman, Matthews & Ghahramani (2015), with whitened inducing variables, whose posterior changes little
//! with the kernel. Expectations are Gauss-Hermite sums for one latent function and means over fixed
//! quasi-Monte Carlo nodes for classes, so that the bound is a smooth function for L-BFGS. With [`MiniBatch`]
//! every gradient uses some of the rows, for Adam. Memory is O(NM + CM²); rows are processed in blocks, and
//! results do not depend on the number of threads.
//!
//! ```
//! use latentgp::{Mat, kernel::Rbf, likelihood::Observations};
//! use latentgp::model::{Svgp, fit};
//! use latentgp::optim::{Lbfgs, quiet};
//! let x = Mat::from_fn(60, 1, |i, _| i as f64 * 0.1);
//! let counts: Vec<f64> = (0..60).map(|i| (2.0 + (i as f64 * 0.1).sin()).exp().round()).collect();
//! let mut model = Svgp::new(x, Observations::poisson(&counts)?, Rbf::new(1), 8, 0)?;
//! fit(&mut model, &Lbfgs::default(), &mut quiet)?;
//! let rates = model.rates(&Mat::column(&[1.5]))?;
//! assert!((rates.mean[0] - 3f64.exp()).abs() < 3.0);
//! # Ok::<(), latentgp::Error>(())
//! ```

mod bound;
mod regressor;
mod start;
#[cfg(test)]
mod tests;

use crate::data::Scaling;
use crate::error::{Error, Result, at_least_one};
use crate::expectation::{self, Gaussians, Rule};
use crate::fit::fit;
use crate::input_map::sigma_points;
use crate::kernel::Kernel;
use crate::likelihood::{Latents, Observations, Quadrature, Rates};
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;
use crate::mean::Mean;
use crate::model::Model;
use crate::model::regression::infer::{around, each_row};
use crate::model::regression::laplace::{check_inputs, widen};
use crate::model::shared::kzz;
use crate::model::shared::starts::scale_lengthscales;
use crate::model::shared::uncertain_inputs::{NODES, UncertainInputs};
use crate::optim::{Lbfgs, quiet};
use crate::param::{self, Param, Parameterized};
use crate::posterior::{Factors, InputMap, Posterior};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::borrow::Cow;

/// Points of the Gauss-Hermite rule for an expected log density.
const POINTS: usize = 20;
/// Nodes for an expected log softmax.
const SAMPLES: usize = 128;

/// Gradients from a batch of rows, drawn anew for every step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MiniBatch {
    /// Rows of a batch.
    pub rows: usize,
    /// Seed of the draws: the same seed gives the same batches.
    pub seed: u64,
}

/// A sparse Gaussian process with a likelihood that is not Gaussian.
#[derive(Clone)]
pub struct Svgp {
    /// The kernel, shared by all latent functions.
    pub kernel: Box<dyn Kernel>,
    /// m, the prior mean of each latent function, 1×C; free unless it is fixed.
    pub mean: Param,
    /// Z, M×Q.
    pub z: Param,
    /// μ, C×M, of the whitened inducing variables.
    pub q_mean: Param,
    /// The diagonals of T, C×M.
    pub q_diagonal: Param,
    /// T below its diagonal, row after row, C × M(M − 1)/2.
    pub q_lower: Param,
    /// X, N×Q, scaled; for uncertain inputs the points around each row, row after row, at the start.
    pub x: Mat,
    /// The posteriors of uncertain inputs, which determine the points.
    pub uncertain: Option<PointInputs>,
    /// y and p(y | f) at every point.
    pub observations: Observations,
    /// The units of X; `None` where inputs are not scaled.
    pub inputs: Option<Scaling>,
    /// Added to the diagonal of Kzz.
    pub jitter: f64,
    /// The weight of each row: 1, or 1/S where every observation is repeated at S points of equal weight.
    pub weight: f64,
    /// The batches for stochastic gradients; without a gradient the bound always sums over all rows.
    pub batch: Option<MiniBatch>,
    rows: Option<Vec<usize>>,
    rule: Quadrature,
    nodes: Mat,
}

/// Inputs with posteriors, and the weighted points around them at which every observation is repeated.
#[derive(Clone, Debug)]
pub struct PointInputs {
    /// q(X), scaled.
    pub x: UncertainInputs,
    /// The columns that are uncertain in some row.
    columns: Vec<usize>,
    /// The nodes in these columns.
    nodes: Mat,
    /// The weights of the nodes.
    weights: Vec<f64>,
    /// y of every row.
    rows: Observations,
}

impl PointInputs {
    fn new(x: UncertainInputs, rows: &Observations) -> Self {
        let columns = uncertain_somewhere(&x.gaussians());
        let (nodes, weights) = match columns.len() {
            0 => (Mat::zeros(1, 0), vec![1.0]),
            r => (NODES.nodes(r), NODES.weights(r)),
        };
        PointInputs { columns, nodes, weights, x, rows: rows.clone() }
    }

    /// The number of points of each row.
    fn count(&self) -> usize {
        self.weights.len()
    }

    /// The weight of a point.
    fn weight(&self, point: usize) -> f64 {
        self.weights[point % self.count()]
    }

    /// x_s = μ + √S ∘ ξ_s of every row, one row after the other.
    fn points(&self) -> Mat {
        let (q, each) = (self.x.gaussians(), self.count());
        let mut all = Mat::zeros(q.n() * each, q.dim());
        for i in 0..q.n() {
            for s in 0..each {
                let at = all.row_mut(i * each + s);
                at.copy_from_slice(q.mean.row(i));
                let moved = self.columns.iter().zip(self.nodes.row(s));
                moved.for_each(|(&j, xi)| at[j] += q.var[(i, j)].sqrt() * xi);
            }
        }
        all
    }

    /// Writes the gradients in the parameters, −KL included, to `slots`, given the gradients in the points;
    /// returns the KL.
    fn pull(&self, points_bar: &Mat, slots: &mut [f64]) -> Result<f64> {
        let (q, each) = (self.x.gaussians(), self.count());
        let (mut mean, mut var) = (Mat::zeros(q.n(), q.dim()), Mat::zeros(q.n(), q.dim()));
        for i in 0..q.n() {
            for s in 0..each {
                let bar = points_bar.row(i * each + s);
                mean.row_mut(i).iter_mut().zip(bar).for_each(|(m, b)| *m += b);
                for (&j, xi) in self.columns.iter().zip(self.nodes.row(s)) {
                    if q.var[(i, j)] > 0.0 {
                        var[(i, j)] += 0.5 * bar[j] * xi / q.var[(i, j)].sqrt();
                    }
                }
            }
        }
        self.x.pull(&mean, &var, slots)
    }
}

/// The columns that are uncertain in some row.
fn uncertain_somewhere(q: &Gaussians) -> Vec<usize> {
    (0..q.dim()).filter(|&j| (0..q.n()).any(|i| q.var[(i, j)] > 0.0)).collect()
}

/// The points of the unscented rule around every row, one row after the other.
fn points(q: &Gaussians, columns: &[usize]) -> Mat {
    let each = (2 * columns.len()).max(1);
    let mut all = Mat::zeros(q.n() * each, q.dim());
    for i in 0..q.n() {
        let at = sigma_points(q.mean.row(i), q.var.row(i), columns);
        (0..each).for_each(|s| all.row_mut(i * each + s).copy_from_slice(at.row(s)));
    }
    all
}

impl Svgp {
    /// Starts the free lengthscales at √Q, for standardised inputs of Q columns.
    pub fn wide_start(&mut self) {
        widen(&mut *self.kernel, self.x.cols());
    }

    /// A model with `inducing` inputs (at most one for each row), which start at rows that are far apart;
    /// q(v) starts at the prior.
    ///
    /// Errs when shapes disagree or a number is outside its domain.
    pub fn new(
        x: Mat,
        observations: Observations,
        kernel: impl Kernel + 'static,
        inducing: usize,
        seed: u64,
    ) -> Result<Self> {
        check_inputs(&x, &observations, &kernel)?;
        at_least_one("inducing inputs", inducing)?;
        let z = start::spread_out(&x, inducing.min(x.rows()), &mut ChaCha8Rng::seed_from_u64(seed));
        Self::at(x, observations, kernel, z)
    }

    /// [`new`](Self::new) for inputs with Gaussian errors: every observation is repeated at the points of the
    /// unscented rule, two for each column with errors and of equal weight, so that the bound contains
    /// E_q(x)[E_q(f)[log p(y | f(x))]].
    pub fn uncertain(
        q: &Gaussians,
        observations: &Observations,
        kernel: impl Kernel + 'static,
        inducing: usize,
        seed: u64,
    ) -> Result<Self> {
        let columns = uncertain_somewhere(q);
        let each = (2 * columns.len()).max(1);
        let mut model = Self::new(points(q, &columns), observations.repeated(each), kernel, inducing, seed)?;
        model.weight = 1.0 / each as f64;
        Ok(model)
    }

    /// [`uncertain`](Self::uncertain) with a posterior for every uncertain cell, which is fitted with −KL in
    /// the bound; each row has a further point at its mean.
    pub fn inferred(
        x: UncertainInputs,
        observations: &Observations,
        kernel: impl Kernel + 'static,
        inducing: usize,
        seed: u64,
    ) -> Result<Self> {
        let points = PointInputs::new(x, observations);
        let all = observations.repeated(points.count());
        let mut model = Self::new(points.points(), all, kernel, inducing, seed)?;
        model.uncertain = Some(points);
        Ok(model)
    }

    /// A model with given inducing inputs, M×Q.
    pub fn at(x: Mat, observations: Observations, kernel: impl Kernel + 'static, z: Mat) -> Result<Self> {
        check_inputs(&x, &observations, &kernel)?;
        if z.cols() != x.cols() || z.rows() == 0 {
            return Err(Error::shape("inducing inputs", format!("at least 1 × {}", x.cols()), z.shape()));
        }
        let (m, latents) = (z.rows(), observations.latents());
        let nodes = match &observations {
            Observations::One { .. } => Mat::zeros(0, 1),
            Observations::Classes { likelihood, .. } => likelihood.nodes(SAMPLES, 0)?,
        };
        let model = Svgp {
            kernel: Box::new(kernel),
            mean: Param::free(Mat::from_rows(&[observations.start()])),
            z: Param::free(z),
            q_mean: Param::free(Mat::zeros(latents, m)),
            q_diagonal: Param::positive(Mat::filled(latents, m, 1.0)),
            q_lower: Param::free(Mat::zeros(latents, m * (m - 1) / 2)),
            x,
            uncertain: None,
            observations,
            inputs: None,
            jitter: 1e-6,
            weight: 1.0,
            batch: None,
            rows: None,
            rule: Quadrature::new(POINTS)?,
            nodes,
        };
        model.params().iter().try_for_each(|(name, p)| p.check(name))?;
        Ok(model)
    }

    /// Sets the numbers of nodes of the expectations: Gauss-Hermite points (1 to 64) and quasi-Monte Carlo
    /// nodes.
    pub fn set_nodes(&mut self, points: usize, samples: usize) -> Result<()> {
        self.rule = Quadrature::new(points)?;
        if let Observations::Classes { likelihood, .. } = &self.observations {
            self.nodes = likelihood.nodes(samples, 0)?;
        }
        Ok(())
    }

    /// T of a latent function.
    pub fn root(&self, c: usize) -> Mat {
        let m = self.z.value.rows();
        let (diagonal, lower) = (self.q_diagonal.value.row(c), self.q_lower.value.row(c));
        Mat::from_fn(m, m, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => diagonal[i],
            std::cmp::Ordering::Greater => lower[i * (i - 1) / 2 + j],
        })
    }

    /// X at the current posteriors.
    fn current(&self) -> Cow<'_, Mat> {
        self.uncertain.as_ref().map_or(Cow::Borrowed(&self.x), |u| Cow::Owned(u.points()))
    }

    /// The posterior of the true inputs of new rows, scaled, given their priors and observations; NaN is a
    /// missing observation. Rows are independent of each other.
    fn infer_scaled(&self, prior: &Gaussians, y: &Mat) -> Result<Gaussians> {
        if y.rows() != prior.n() || y.cols() != 1 {
            return Err(Error::shape("outputs of the new rows", format!("{} × 1", prior.n()), y.shape()));
        }
        each_row(prior, |n, (mean, var)| {
            let own = Gaussians { mean: Mat::from_rows(&[mean]), var: Mat::from_rows(&[var]) };
            let inputs = UncertainInputs::of_priors(&own);
            if y[(n, 0)].is_nan() || inputs.cells.is_empty() {
                return Ok((mean.to_vec(), var.to_vec()));
            }
            let observed = match &self.observations {
                Observations::One { likelihood, .. } => {
                    Observations::One { y: vec![y[(n, 0)]], likelihood: likelihood.clone() }
                }
                Observations::Classes { likelihood, .. } => {
                    Observations::Classes { labels: vec![y[(n, 0)] as usize], likelihood: *likelihood }
                }
            };
            let uncertain = PointInputs::new(inputs, &observed);
            let count = uncertain.count();
            let mut one =
                Svgp { observations: observed.repeated(count), batch: None, rows: None, ..self.clone() };
            (one.x, one.weight, one.uncertain) = (uncertain.points(), 1.0, Some(uncertain));
            one.params_mut().into_iter().for_each(|(name, p)| p.fixed = !name.starts_with("missing."));
            let (mut best, mut top) = (own.clone(), f64::NEG_INFINITY);
            for (mean, var) in around((mean, var)) {
                let mut from = one.clone();
                let inputs = &mut from.uncertain.as_mut().expect("set above").x;
                for (c, &(_, j)) in inputs.cells.iter().enumerate() {
                    (inputs.mean.value[(0, c)], inputs.var.value[(0, c)]) = (mean[j], var[j]);
                }
                let report = fit(&mut from, &Lbfgs { max_iterations: 200, ..Lbfgs::default() }, &mut quiet)?;
                if -report.value > top {
                    (top, best) = (-report.value, from.uncertain.expect("set above").x.gaussians());
                }
            }
            Ok((best.mean.row(0).to_vec(), best.var.row(0).to_vec()))
        })
    }

    fn kzz(&self) -> Result<Cholesky> {
        kzz::factor(&*self.kernel, &self.z.value, self.jitter)
    }

    /// The posterior of the latent values at x, N×C.
    pub fn latents(&self, x: &Mat) -> Result<Latents> {
        Ok(self.posterior()?.predict(x)?.into())
    }

    /// The posterior of the latent values at uncertain inputs, by moments.
    pub fn latents_uncertain(&self, q: &Gaussians) -> Result<Latents> {
        Ok(self.posterior()?.predict_uncertain(q)?.into())
    }

    /// Class probabilities at x, N×C, averaged over the latent values; errs where there are no classes.
    pub fn probabilities(&self, x: &Mat) -> Result<Mat> {
        self.observations.probabilities(&self.latents(x)?)
    }

    /// Class probabilities at the means of the latent values, N×C; errs where there are no classes.
    pub fn probabilities_at_mean(&self, x: &Mat) -> Result<Mat> {
        self.observations.probabilities_at_mean(&self.latents(x)?)
    }

    /// Rates and counts at x; errs where no counts were observed.
    pub fn rates(&self, x: &Mat) -> Result<Rates> {
        self.observations.rates(&self.latents(x)?)
    }
}

impl Parameterized for Svgp {
    fn params(&self) -> Vec<(String, &Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params());
        all.extend(param::prefixed("likelihood", self.observations.params()));
        all.extend([
            ("mean".to_string(), &self.mean),
            ("z".to_string(), &self.z),
            ("q_mean".to_string(), &self.q_mean),
            ("q_diagonal".to_string(), &self.q_diagonal),
            ("q_lower".to_string(), &self.q_lower),
        ]);
        all.extend(self.uncertain.iter().flat_map(|u| u.x.params()));
        all
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params_mut());
        all.extend(param::prefixed("likelihood", self.observations.params_mut()));
        all.extend([
            ("mean".to_string(), &mut self.mean),
            ("z".to_string(), &mut self.z),
            ("q_mean".to_string(), &mut self.q_mean),
            ("q_diagonal".to_string(), &mut self.q_diagonal),
            ("q_lower".to_string(), &mut self.q_lower),
        ]);
        all.extend(self.uncertain.iter_mut().flat_map(|u| u.x.params_mut()));
        all
    }

    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.kernel.each_param(visit);
        self.observations.each_param(visit);
        let own = [&self.mean, &self.z, &self.q_mean, &self.q_diagonal, &self.q_lower];
        own.into_iter().for_each(&mut *visit);
        self.uncertain.iter().for_each(|u| u.x.each_param(visit));
    }

    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        self.kernel.each_param_mut(visit);
        self.observations.each_param_mut(visit);
        [&mut self.mean, &mut self.z, &mut self.q_mean, &mut self.q_diagonal, &mut self.q_lower]
            .into_iter()
            .for_each(&mut *visit);
        self.uncertain.iter_mut().for_each(|u| u.x.each_param_mut(visit));
    }
}

impl Model for Svgp {
    /// The bound over all rows; with a gradient and a [`MiniBatch`], its estimate from the current batch.
    fn varying_evidence(&self, grad: Option<&mut [f64]>) -> Result<f64> {
        match grad {
            None => bound::value(self),
            Some(grad) => bound::gradient(self, self.rows.as_deref(), grad),
        }
    }

    fn constant(&self) -> f64 {
        match &self.uncertain {
            // The weights of a row's points sum to 1.
            Some(points) => points.rows.log_jacobian(),
            None => self.weight * self.observations.log_jacobian(),
        }
    }

    fn posterior(&self) -> Result<Posterior> {
        let l = self.kzz()?;
        let factors = (0..self.q_mean.value.rows())
            .map(|c| {
                let mut alpha = Mat::column(self.q_mean.value.row(c));
                l.solve_lt(&mut alpha);
                let t = self.root(c);
                let mut rest = Mat::eye(t.rows());
                rest.add_scaled(-1.0, &linalg::mul_nt(&t, &t));
                Factors::new(vec![c], alpha, rest, &l)
            })
            .collect();
        let mean = self.mean.as_slice().to_vec();
        Ok(Posterior {
            mean: Mean::Zero,
            inputs: self.inputs.clone(),
            map: InputMap::AsIs,
            kernel: self.kernel.clone(),
            z: self.z.value.clone(),
            noise: vec![0.0; mean.len()],
            l: l.into(),
            factors,
            expectation: Box::new(expectation::Auto),
            scaling: Scaling { scale: vec![1.0; mean.len()], mean },
        })
    }

    /// The starts of a [sparse regression](crate::model::SparseRegression).
    fn another_start(&mut self, restart: usize) -> bool {
        let other = (1..=2).contains(&restart) && self.uncertain.as_ref().is_some_and(|u| u.x.has_errors());
        if other {
            scale_lengthscales(&mut *self.kernel, 0.5f64.powi(restart as i32));
        }
        other
    }

    fn renew(&mut self, step: u64) {
        self.rows = self.batch.filter(|b| b.rows < self.x.rows()).map(|batch| {
            let mut rng = ChaCha8Rng::seed_from_u64(batch.seed);
            rng.set_stream(step);
            let mut rows = rand::seq::index::sample(&mut rng, self.x.rows(), batch.rows.max(1)).into_vec();
            rows.sort_unstable();
            rows
        });
    }
}
