//! From a table to a fitted Bayesian GPLVM: the start, the stages and the restarts.
//!
//! 1. Y is scaled; μ starts at the principal components, S at 0.1, Z at latent points that are far apart.
//! 2. With σ² and the kernel's variances held, so that noise cannot explain everything away, μ, S, Z and the
//!    lengthscales find their places.
//! 3. Everything is free until L-BFGS converges; Adam takes its place where the draws are fresh.
//!
//! A search races starts of other kinds and shakes the best; runs go side by side.

use crate::data::{Scale, Scaling};
use crate::error::{Error, Result, at_least_one};
use crate::expectation::{self, Expectation, Gaussians, QuasiMonteCarlo};
use crate::fit::{self, Effort, Fitted, Method, OnIteration, Plan, Schedule, rng_of};
use crate::kernel::Kernel;
use crate::mat::Mat;
use crate::model::shared::init::{InducingInit, Init};
use crate::model::shared::noise::{NoiseKind, mean_square, noise_param_by};
use crate::model::shared::prior::{self, InputPrior};
use crate::model::shared::starts::{self, HIGH_NOISE, HOP};
use crate::model::{BayesianGplvm, Jitter, Model, Outputs};
use crate::optim::Adam;

/// Nodes of the rule that decides between fits whose own rule is not exact.
const CHECK_NODES: usize = 256;

/// How a Bayesian GPLVM is made and fitted.
#[derive(Clone)]
pub struct Training {
    /// Q, latent dimensions.
    pub latent_dim: usize,
    /// M, inducing inputs; at most as many as rows are used.
    pub inducing: usize,
    /// How Ψ-statistics are computed.
    pub expectation: Box<dyn Expectation>,
    /// Where the positions of the first run start.
    pub init: Init,
    /// Where inducing inputs start.
    pub inducing_init: InducingInit,
    /// How the columns of Y are scaled.
    pub scale: Scale,
    /// The start of σ², as a part of the variance of the scaled data.
    pub noise: f64,
    /// Whose σ² is.
    pub noise_kind: NoiseKind,
    /// The start of S.
    pub variance: f64,
    /// Iterations with the noise held.
    pub hold: usize,
    /// Iterations with everything free.
    pub max_iterations: usize,
    /// Runs to their end from different starts; where there is more than one, nothing is raced.
    pub restarts: usize,
    /// How hard the best optimum is looked for; a [`Recipe`](crate::recipe::Recipe) asks for [`Effort::Normal`].
    pub effort: Effort,
    /// Seed of the starts.
    pub seed: u64,
    /// Added to diagonals.
    pub jitter: Jitter,
    /// p(X), bound to the rows; N(0, I) where there is none.
    pub prior: Option<Box<dyn InputPrior>>,
}

impl Default for Training {
    fn default() -> Self {
        Training {
            latent_dim: 2,
            inducing: 20,
            expectation: Box::new(expectation::Auto),
            init: Init::Pca,
            inducing_init: InducingInit::Spread,
            scale: Scale::Standardize,
            noise: 0.05,
            noise_kind: NoiseKind::Shared,
            variance: 0.1,
            hold: 50,
            max_iterations: 1000,
            restarts: 1,
            effort: Effort::Quick,
            seed: 0,
            jitter: Jitter::default(),
            prior: None,
        }
    }
}

impl Training {
    /// Fits a model of Y (N×D, NaN where a cell is missing).
    pub fn fit(
        &self,
        y: &Mat,
        kernel: &dyn Kernel,
        watch: &OnIteration<'_>,
    ) -> Result<Fitted<BayesianGplvm>> {
        fit::train(&self.plan(y, kernel), Vec::new(), watch)
    }

    /// The plan of [`fit`](Self::fit).
    pub fn plan(&self, y: &Mat, kernel: &dyn Kernel) -> TrainingPlan {
        TrainingPlan { how: self.clone(), y: y.clone(), kernel: kernel.boxed() }
    }

    /// The model at the start of a restart.
    pub fn start(&self, y: &Mat, kernel: &dyn Kernel, restart: usize) -> Result<BayesianGplvm> {
        self.check(y)?;
        let scaling = Scaling::fit(y, self.scale)?;
        let scaled = scaling.apply(y)?;
        let mut rng = rng_of(self.seed, restart);
        let first = (&self.init, self.noise);
        let (mut mean, noise) = starts::start(&scaled, self.latent_dim, restart, first, &mut rng)?;
        let mut var = Mat::filled(y.rows(), self.latent_dim, self.variance);
        if let Some(prior) = &self.prior {
            prior::check_sizes(&**prior, &mean)?;
            prior.start(&mut mean, &mut var)?;
        }
        let z = self.inducing_init.choose(&mean, self.inducing, restart, &mut rng)?;
        let q = Gaussians::new(mean, var)?;
        let outputs = Outputs::new(scaled);
        let noise = noise_param_by(self.noise_kind, noise, &outputs);
        let mut model = BayesianGplvm::new(
            outputs,
            scaling,
            kernel.boxed(),
            self.expectation.clone(),
            q,
            z,
            noise.get(),
        )?;
        (model.jitter, model.noise) = (self.jitter, noise);
        self.prior.iter().try_for_each(|prior| model.set_prior(prior.clone()))?;
        Ok(model)
    }

    pub(crate) fn check(&self, y: &Mat) -> Result<()> {
        if y.rows() == 0 || y.cols() == 0 {
            return Err(Error::data(
                "the data",
                format!("there is nothing to learn from in a table of {}", y.shape()),
            ));
        }
        if y.rows() < 2 {
            return Err(Error::data("the data", "a latent space needs at least two rows; there is one"));
        }
        at_least_one("latent dimensions", self.latent_dim)?;
        at_least_one("inducing inputs", self.inducing)
    }
}

/// A [`Training`] with its data and kernel.
#[derive(Clone)]
pub struct TrainingPlan {
    how: Training,
    y: Mat,
    kernel: Box<dyn Kernel>,
}

impl Plan for TrainingPlan {
    type Model = BayesianGplvm;

    fn schedule(&self) -> Schedule {
        let Training { hold, max_iterations, restarts, effort, .. } = self.how;
        Schedule { hold, max_iterations, search: effort.search(restarts) }
    }

    fn start(&self, restart: usize) -> Result<BayesianGplvm> {
        self.how.start(&self.y, &*self.kernel, restart)
    }

    fn group(&self, restart: usize) -> usize {
        starts::group(restart)
    }

    /// All positions are shaken: small shakes, or those of some rows, fall back to where they were. Every other hop
    /// starts with high noise too.
    fn hop(&self, best: &mut BayesianGplvm, run: usize) -> Result<bool> {
        starts::shake(&mut best.mean.value, HOP, &mut rng_of(self.how.seed, run));
        if run % 2 == 1 && !best.noise.fixed {
            best.noise.set(best.noise.get().max(HIGH_NOISE * mean_square(&best.outputs)));
        }
        Ok(true)
    }

    /// The value by a stronger rule, where the rule in use is not exact and repeats itself: such a value is no bound, and
    /// the best of many may be the one that flatters itself most.
    fn verdict(&self, model: &BayesianGplvm) -> Result<Option<f64>> {
        if model.has_exact_psi() || model.is_stochastic() {
            return Ok(None);
        }
        let mut checked = model.clone();
        checked.expectation = Box::new(QuasiMonteCarlo::new(CHECK_NODES, 0));
        Ok(Some(checked.log_evidence(None).unwrap_or(f64::NEG_INFINITY)))
    }

    /// Steps of Adam shrink to a tenth over the iterations allowed, so that the noise of fresh draws dies out.
    fn method(&self, _: &BayesianGplvm, limit: usize) -> Method {
        match self.how.expectation.is_stochastic() {
            true => Method::Adam(Adam {
                learning_rate: 0.1,
                decay: 10.0 / limit.max(1) as f64,
                max_iterations: limit,
                ..Adam::default()
            }),
            false => Method::usual(false, limit),
        }
    }
}
