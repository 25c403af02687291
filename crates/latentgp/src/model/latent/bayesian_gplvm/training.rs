//! From a table to a fitted Bayesian GPLVM: the start, the stages and the restarts.
//!
//! 1. Y is scaled; μ starts at the principal components, S at 0.1, Z at latent points that are far apart.
//! 2. With σ² and the kernel's variances held, so that noise cannot explain everything away, μ, S, Z and the
//!    lengthscales find their places.
//! 3. Everything is free until L-BFGS converges; Adam takes its place where the draws are fresh.
//!
//! Restarts shift the start of μ and the choice of Z; they run in parallel, and the best bound is kept.

use crate::blocks;
use crate::data::{Scale, Scaling};
use crate::error::{Error, Result};
use crate::expectation::{self, Expectation, Gaussians};
use crate::fit::run::{hold, release};
use crate::kernel::Kernel;
use crate::mat::Mat;
use crate::model::shared::noise::noise_param;
use crate::model::shared::pca;
use crate::model::shared::prior::{self, InputPrior};
use crate::model::{BayesianGplvm, Certificate, Jitter, Model, Outputs, Run, Stage};
use crate::optim::StopReason;
use crate::param::{self, Parameterized};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;

/// How a Bayesian GPLVM is made and fitted.
#[derive(Clone)]
pub struct Training {
    /// Q, latent dimensions.
    pub latent_dim: usize,
    /// M, inducing inputs; at most as many as rows are used.
    pub inducing: usize,
    /// How Ψ-statistics are computed.
    pub expectation: Box<dyn Expectation>,
    /// How the columns of Y are scaled.
    pub scale: Scale,
    /// The start of σ², as a part of the variance of the scaled data.
    pub noise: f64,
    /// The start of S.
    pub variance: f64,
    /// Iterations with the noise held.
    pub hold: usize,
    /// Iterations with everything free.
    pub max_iterations: usize,
    /// Runs from different starts.
    pub restarts: usize,
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
            scale: Scale::Standardize,
            noise: 0.05,
            variance: 0.1,
            hold: 50,
            max_iterations: 1000,
            restarts: 1,
            seed: 0,
            jitter: Jitter::default(),
            prior: None,
        }
    }
}

/// Where a fit stands.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Which of the restarts, from 0.
    pub restart: usize,
    /// Whether the noise is still held.
    pub held: bool,
    /// Iterations so far, both stages.
    pub iteration: usize,
    /// The bound.
    pub bound: f64,
    /// The parameters that move, unconstrained.
    pub u: Arc<[f64]>,
}

impl Progress {
    /// Puts these parameters into a model that is as its run began.
    pub fn place_in(&self, model: &mut (impl Parameterized + ?Sized)) {
        let fixed = if self.held { hold(model) } else { Vec::new() };
        param::unflatten(model, &self.u);
        release(model, &fixed);
    }
}

/// A fitted model and how it got there.
#[derive(Clone)]
pub struct Fit {
    /// The model.
    pub model: BayesianGplvm,
    /// The bound of the data as given.
    pub bound: f64,
    /// Iterations of the run that was kept, both stages.
    pub iterations: usize,
    /// Evaluations of that run.
    pub evaluations: usize,
    /// Whether it converged.
    pub converged: bool,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// The bound after each iteration of that run.
    pub trace: Vec<f64>,
    /// The bounds of all restarts; `None` where one failed.
    pub restarts: Vec<Option<f64>>,
    /// What Kzz needed on its diagonal at the end, beyond the jitter that is always there.
    pub extra_jitter: f64,
    /// How good the Ψ-statistics are.
    pub certificate: Certificate,
    /// Where every restart that did not fail ended; those that were asked to stop can go on from there.
    pub runs: Vec<Run>,
}

/// A callback that sees every iteration and may ask to stop; the best state is kept.
pub type OnProgress<'a> = dyn Fn(&Progress) -> ControlFlow<()> + Sync + 'a;

/// A callback that sees all of a restart's state after every iteration: to be stored, and to go on from.
pub type OnRun<'a> = dyn Fn(&Run) -> ControlFlow<()> + Sync + 'a;

impl Training {
    /// Fits a model of Y (N×D, NaN where a cell is missing).
    pub fn fit(&self, y: &Mat, kernel: &dyn Kernel, watch: &OnProgress<'_>) -> Result<Fit> {
        self.resume(y, kernel, Vec::new(), &|run| {
            watch(&Progress {
                restart: run.restart,
                held: run.stage == Stage::Held,
                iteration: run.total_iterations(),
                bound: run.bound().unwrap_or(f64::NAN),
                u: run.place.u().into(),
            })
        })
    }

    /// Goes on from where runs of the same training were stored; restarts without one begin.
    ///
    /// Runs are those that a watch saw, or those of [`Fit::runs`]. The result is that of an uninterrupted fit, bit
    /// for bit, where they hold the optimiser's state, and close to it where they are [`Run::light`].
    pub fn resume(&self, y: &Mat, kernel: &dyn Kernel, mut runs: Vec<Run>, watch: &OnRun<'_>) -> Result<Fit> {
        let stored: Vec<Option<Run>> = (0..self.restarts.max(1))
            .map(|restart| runs.iter().position(|r| r.restart == restart).map(|at| runs.swap_remove(at)))
            .collect();
        let one = |(restart, run)| self.run(y, kernel, restart, run, watch);
        let done: Vec<Result<(Fit, Run)>> =
            blocks::together(|| stored.into_par_iter().enumerate().map(one).collect());
        let bounds = done.iter().map(|r| r.as_ref().ok().map(|(f, _)| f.bound)).collect();
        let mut best: Option<Fit> = None;
        let mut failure = None;
        let mut runs = Vec::new();
        for one in done {
            match one {
                Ok((fit, run)) => {
                    runs.push(run);
                    if best.as_ref().is_none_or(|b| fit.bound > b.bound) {
                        best = Some(fit);
                    }
                }
                Err(e) => failure = failure.or(Some(e)),
            }
        }
        let mut best = best.ok_or_else(|| failure.expect("at least one run"))?;
        best.restarts = bounds;
        best.runs = runs;
        best.certificate = best.model.certificate()?;
        Ok(best)
    }

    /// The model where a run stands.
    pub fn model_at(&self, y: &Mat, kernel: &dyn Kernel, run: &Run) -> Result<BayesianGplvm> {
        run.model(&self.start(y, kernel, run.restart)?)
    }

    /// The model at the start of a restart.
    pub fn start(&self, y: &Mat, kernel: &dyn Kernel, restart: usize) -> Result<BayesianGplvm> {
        self.check(y)?;
        let scaling = Scaling::fit(y, self.scale)?;
        let scaled = scaling.apply(y)?;
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(restart as u64);
        let mut mean = start_positions(&scaled, self.latent_dim, restart, &mut rng)?;
        let mut var = Mat::filled(y.rows(), self.latent_dim, self.variance);
        if let Some(prior) = &self.prior {
            prior::check_sizes(&**prior, &mean)?;
            prior.start(&mut mean, &mut var)?;
        }
        let z = spread_out(&mean, self.inducing.min(y.rows()), &mut rng);
        let q = Gaussians::new(mean, var)?;
        let outputs = Outputs::new(scaled);
        let noise = noise_param(self.noise, &outputs);
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

    fn check(&self, y: &Mat) -> Result<()> {
        if y.rows() == 0 || y.cols() == 0 {
            return Err(Error::data(
                "the data",
                format!("there is nothing to learn from in a table of {}", y.shape()),
            ));
        }
        if y.rows() < 2 {
            return Err(Error::data("the data", "a latent space needs at least two rows; there is one"));
        }
        if self.latent_dim == 0 {
            return Err(Error::invalid("latent dimensions", "at least 1", 0));
        }
        if self.inducing == 0 {
            return Err(Error::invalid("inducing inputs", "at least 1", 0));
        }
        Ok(())
    }

    fn run(
        &self,
        y: &Mat,
        kernel: &dyn Kernel,
        restart: usize,
        stored: Option<Run>,
        watch: &OnRun<'_>,
    ) -> Result<(Fit, Run)> {
        let mut model = self.start(y, kernel, restart)?;
        let mut run = match stored {
            Some(run) => {
                run.check(&mut model)?;
                run.place_in(&mut model);
                run
            }
            None => Run::first(restart, self.hold > 0, &mut model),
        };
        let mut asked = false;
        if run.stage == Stage::Held {
            asked = run.advance(&mut model, self.hold, watch)?;
            if !asked {
                run.next_stage(&model);
            }
        }
        if run.stage == Stage::Free && !asked {
            run.advance(&mut model, self.max_iterations, watch)?;
        }
        let stop_reason = run.stopped.filter(|_| run.is_over()).unwrap_or(StopReason::Asked);
        if run.is_over() {
            run = run.light();
        }
        let fit = Fit {
            bound: model.log_evidence(None)?,
            iterations: run.total_iterations(),
            evaluations: run.total_evaluations(),
            converged: stop_reason.converged(),
            stop_reason,
            trace: run.trace.clone(),
            restarts: Vec::new(),
            extra_jitter: model.extra_jitter()?,
            certificate: Certificate::default(),
            runs: Vec::new(),
            model,
        };
        Ok((fit, run))
    }
}

/// Principal components, each scaled to unit variance; restarts after the first are shaken.
pub(crate) fn start_positions(y: &Mat, q: usize, restart: usize, rng: &mut ChaCha8Rng) -> Result<Mat> {
    let mut x = pca::scores(y, q)?;
    let n = y.rows();
    let std = |x: &Mat, k: usize| ((0..n).map(|i| x[(i, k)].powi(2)).sum::<f64>() / n as f64).sqrt();
    let first = std(&x, 0);
    for k in 0..q {
        let own = std(&x, k);
        let empty = own <= 1e-9 * first.max(f64::MIN_POSITIVE);
        for i in 0..n {
            let noise: f64 = StandardNormal.sample(rng);
            x[(i, k)] = if empty { 0.1 * noise } else { x[(i, k)] / own };
            if restart > 0 && !empty {
                x[(i, k)] += 0.3 * noise;
            }
        }
    }
    Ok(x)
}

/// `m` rows of x that are far apart: k-means++ seeding, each next row drawn in proportion to its squared
/// distance from those taken.
pub(crate) fn spread_out(x: &Mat, m: usize, rng: &mut ChaCha8Rng) -> Mat {
    let n = x.rows();
    let square =
        |i: usize, j: usize| -> f64 { x.row(i).iter().zip(x.row(j)).map(|(a, b)| (a - b).powi(2)).sum() };
    let mut taken = vec![rng.random_range(0..n)];
    let mut nearest: Vec<f64> = (0..n).map(|i| square(i, taken[0])).collect();
    while taken.len() < m {
        let total: f64 = nearest.iter().sum();
        let mut left = rng.random::<f64>() * total;
        let mut next = (0..n).find(|i| !taken.contains(i)).expect("m is at most n");
        for i in (0..n).filter(|i| !taken.contains(i)) {
            next = i;
            left -= nearest[i];
            if left <= 0.0 {
                break;
            }
        }
        taken.push(next);
        (0..n).for_each(|i| nearest[i] = nearest[i].min(square(i, next)));
    }
    // Rows that coincide would make Kzz singular; a small shift keeps them apart.
    let mut z = x.select_rows(&taken);
    for v in z.as_mut_slice() {
        let noise: f64 = StandardNormal.sample(rng);
        *v += 1e-3 * noise;
    }
    z
}
