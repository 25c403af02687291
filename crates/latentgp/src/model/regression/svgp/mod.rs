//! Sparse variational inference for classes, counts and values with outliers: many rows, M inducing inputs.
//!
//! ```text
//! f_c(x) = m_c + a(x)ᵀv_c,  a(x) = L⁻¹k(Z, x),  Kzz = LLᵀ,  v_c ~ N(0, I),  q(v_c) = N(μ_c, T_cT_cᵀ)
//! q(f_c(x)) = N(m_c + aᵀμ_c,  k(x, x) − aᵀa + ‖T_cᵀa‖²)
//! ELBO = Σ_n E_q[ln p(y_n | f_n)] − ½ Σ_c (‖μ_c‖² + ‖T_c‖² − M − 2 Σ ln T_c,jj)
//! ```
//!
//! Hensman, Matthews & Ghahramani (2015), with whitened inducing variables, in which the posterior changes
//! little while the kernel does. Expectations are Gauss-Hermite sums for one latent function and means over
//! fixed quasi-Monte Carlo nodes for classes, so that the bound is a smooth function for L-BFGS. With
//! [`MiniBatch`] every gradient sees some of the rows, for Adam. Memory is O(NM + CM²); rows go in blocks,
//! with the same digits on any number of threads.
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
use crate::error::{Error, Result};
use crate::expectation::{self, Gaussians};
use crate::input_map::sigma_points;
use crate::kernel::Kernel;
use crate::likelihood::{Latents, Observations, Quadrature, Rates};
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;
use crate::mean::Mean;
use crate::model::Model;
use crate::model::regression::laplace::{check_inputs, widen};
use crate::model::shared::kzz;
use crate::param::{self, Param, Parameterized};
use crate::posterior::{Factors, InputMap, Posterior};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Points of the Gauss-Hermite rule behind an expected log density.
const POINTS: usize = 20;
/// Nodes behind an expected log softmax.
const SAMPLES: usize = 128;

/// Gradients from some of the rows, drawn anew for every step.
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
    /// X, N×Q, scaled.
    pub x: Mat,
    /// y and p(y | f).
    pub observations: Observations,
    /// The units of X; `None` where inputs meet the kernel as they are.
    pub inputs: Option<Scaling>,
    /// Added to the diagonal of Kzz.
    pub jitter: f64,
    /// How much each row counts: 1, or 1/S where every observation is there at S possible inputs.
    pub weight: f64,
    /// For gradients from some of the rows; the bound without a gradient is always that of all rows.
    pub batch: Option<MiniBatch>,
    rows: Option<Vec<usize>>,
    rule: Quadrature,
    nodes: Mat,
}

impl Svgp {
    /// Starts the free lengthscales at √Q, for standardised inputs of Q columns.
    pub fn wide_start(&mut self) {
        widen(&mut *self.kernel, self.x.cols());
    }

    /// A model with `inducing` inputs (at most one a row), which start at rows that are far apart; q(v) starts
    /// at the prior.
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
        if inducing == 0 {
            return Err(Error::invalid("inducing inputs", "at least 1", 0));
        }
        let z = start::spread_out(&x, inducing.min(x.rows()), &mut ChaCha8Rng::seed_from_u64(seed));
        Self::at(x, observations, kernel, z)
    }

    /// The same at inputs that are known up to Gaussian errors: every observation is there at the points of the
    /// unscented rule, two for each column with errors and of the same weight, so that E_q(x)[E_q(f)[log p(y | f(x))]] is
    /// in the bound.
    pub fn uncertain(
        q: &Gaussians,
        observations: &Observations,
        kernel: impl Kernel + 'static,
        inducing: usize,
        seed: u64,
    ) -> Result<Self> {
        let varies = |j: &usize| (0..q.n()).any(|i| q.var[(i, *j)] > 0.0);
        let columns: Vec<usize> = (0..q.dim()).filter(varies).collect();
        let points = (2 * columns.len()).max(1);
        let x = Mat::from_rows(
            &(0..q.n())
                .flat_map(|i| {
                    let at = sigma_points(q.mean.row(i), q.var.row(i), &columns);
                    (0..points).map(move |s| at.row(s).to_vec())
                })
                .collect::<Vec<_>>(),
        );
        let mut model = Self::new(x, observations.repeated(points), kernel, inducing, seed)?;
        model.weight = 1.0 / points as f64;
        Ok(model)
    }

    /// A model with the inducing inputs given, M×Q.
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

    /// Sets the nodes of the expectations: points of Gauss-Hermite (1 to 64), and of quasi-Monte Carlo.
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

    fn kzz(&self) -> Result<Cholesky> {
        kzz::factor(&*self.kernel, &self.z.value, self.jitter)
    }

    /// The posterior of the latent values at x, N×C.
    pub fn latents(&self, x: &Mat) -> Result<Latents> {
        Ok(self.posterior()?.predict(x)?.into())
    }

    /// The same at uncertain inputs, by moments.
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
        all
    }

    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.kernel.each_param(visit);
        self.observations.each_param(visit);
        [&self.mean, &self.z, &self.q_mean, &self.q_diagonal, &self.q_lower].into_iter().for_each(visit);
    }

    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        self.kernel.each_param_mut(visit);
        self.observations.each_param_mut(visit);
        [&mut self.mean, &mut self.z, &mut self.q_mean, &mut self.q_diagonal, &mut self.q_lower]
            .into_iter()
            .for_each(visit);
    }
}

impl Model for Svgp {
    /// The bound; with a gradient and a [`MiniBatch`] its estimate from the rows drawn last, else of all rows.
    fn varying_evidence(&self, grad: Option<&mut [f64]>) -> Result<f64> {
        match grad {
            None => bound::value(self),
            Some(grad) => bound::gradient(self, self.rows.as_deref(), grad),
        }
    }

    fn constant(&self) -> f64 {
        self.weight * self.observations.log_jacobian()
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
