//! Runs from several starts, in parallel; the best is kept.
//!
//! The first run starts at the model as it is. Later ones shake the kernel's hyperparameters and the noise
//! on the scale on which they are optimised: positive ones by a factor exp(spread · N(0, 1)). A run depends
//! on the seed and its number alone.

use crate::blocks;
use crate::error::Result;
use crate::model::latent::bayesian_gplvm::training::OnProgress;
use crate::model::{Model, Progress, fit};
use crate::optim::{Adam, Lbfgs, Optimizer, Report, Step, StopReason};
use crate::param::{Parameterized, Transform};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

/// How a model is fitted by type-II maximum likelihood.
#[derive(Clone, Debug, PartialEq)]
pub struct Restarts {
    /// Runs in all.
    pub runs: usize,
    /// Iterations of a run.
    pub max_iterations: usize,
    /// Standard deviation of the logarithm of the factors that shake a start.
    pub spread: f64,
    /// Seed of the starts.
    pub seed: u64,
}

impl Default for Restarts {
    fn default() -> Self {
        Restarts { runs: 1, max_iterations: 1000, spread: 1.0, seed: 0 }
    }
}

/// A fitted model and how it got there.
#[derive(Clone)]
pub struct Fitted<M> {
    /// The model.
    pub model: M,
    /// The log evidence of the data as given, or its bound, or the objective where the model says so.
    pub evidence: f64,
    /// Iterations of the run that was kept.
    pub iterations: usize,
    /// Evaluations of that run.
    pub evaluations: usize,
    /// Whether it converged.
    pub converged: bool,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// What was maximised, priors included, after each iteration of that run.
    pub trace: Vec<f64>,
    /// The evidences of all runs; `None` where one failed.
    pub runs: Vec<Option<f64>>,
}

impl Restarts {
    /// Fits a model from its own hyperparameters and from shaken ones.
    pub fn fit<M: Model + Clone + Send + Sync>(
        &self,
        start: &M,
        watch: &OnProgress<'_>,
    ) -> Result<Fitted<M>> {
        best_of(self.runs, |run| {
            let mut model = start.clone();
            self.shake(&mut model, run);
            self.climb(model, run, watch)
        })
    }

    /// The generator of a run.
    pub(crate) fn rng(&self, run: usize) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(run as u64);
        rng
    }

    /// Moves the free hyperparameters of every run but the first.
    pub(crate) fn shake(&self, model: &mut impl Parameterized, run: usize) {
        if run == 0 {
            return;
        }
        let mut rng = self.rng(run);
        for (name, p) in model.params_mut() {
            if p.fixed || !(name.starts_with("kernel.") || name == "noise") {
                continue;
            }
            let transform = p.transform;
            for v in p.value.as_mut_slice() {
                let noise: f64 = StandardNormal.sample(&mut rng);
                match transform {
                    Transform::Identity => *v += 0.1 * self.spread * noise,
                    _ => *v = transform.forward(transform.inverse(*v) + self.spread * noise),
                }
            }
        }
    }

    /// One run.
    pub(crate) fn climb<M: Model>(
        &self,
        mut model: M,
        run: usize,
        watch: &OnProgress<'_>,
    ) -> Result<Fitted<M>> {
        let mut trace = Vec::new();
        let report = stage(
            &mut model,
            &Climb { run, held: false, before: 0, limit: self.max_iterations },
            &mut trace,
            watch,
            false,
        )?;
        Fitted::new(model, &report, trace)
    }
}

/// Where a stage of a run begins and ends.
pub(crate) struct Climb {
    pub run: usize,
    pub held: bool,
    pub before: usize,
    pub limit: usize,
}

/// Maximises until convergence or the limit; Adam where the objective is noisy.
pub(crate) fn stage<M: Model>(
    model: &mut M,
    at: &Climb,
    trace: &mut Vec<f64>,
    watch: &OnProgress<'_>,
    noisy: bool,
) -> Result<Report> {
    let how: Box<dyn Optimizer> = match noisy {
        true => Box::new(Adam { max_iterations: at.limit, ..Adam::default() }),
        false => Box::new(Lbfgs { max_iterations: at.limit, ..Lbfgs::default() }),
    };
    let mut see = |step: &Step<'_>| {
        trace.push(-step.value);
        let (iteration, bound) = (at.before + step.iteration, -step.value);
        watch(&Progress { restart: at.run, held: at.held, iteration, bound, u: step.u.into() })
    };
    fit(model, &*how, &mut see)
}

impl<M: Model> Fitted<M> {
    pub(crate) fn new(model: M, report: &Report, trace: Vec<f64>) -> Result<Self> {
        Ok(Fitted {
            evidence: model.log_evidence(None)?,
            model,
            iterations: report.iterations,
            evaluations: report.evaluations,
            converged: report.converged,
            stop_reason: report.stop_reason,
            trace,
            runs: Vec::new(),
        })
    }
}

/// The best of several runs by what they maximised, the first among equals.
pub(crate) fn best_of<M: Send>(
    runs: usize,
    run: impl Fn(usize) -> Result<Fitted<M>> + Send + Sync,
) -> Result<Fitted<M>> {
    let all: Vec<Result<Fitted<M>>> =
        blocks::together(|| (0..runs.max(1)).into_par_iter().map(run).collect());
    let evidences = all.iter().map(|r| r.as_ref().ok().map(|f| f.evidence)).collect();
    let reached = |f: &Fitted<M>| f.trace.last().copied().unwrap_or(f.evidence);
    let mut best: Option<Fitted<M>> = None;
    let mut failure = None;
    for run in all {
        match run {
            Ok(fitted) if best.as_ref().is_none_or(|b| reached(&fitted) > reached(b)) => best = Some(fitted),
            Ok(_) => {}
            Err(e) => failure = failure.or(Some(e)),
        }
    }
    let mut best = best.ok_or_else(|| failure.expect("at least one run"))?;
    best.runs = evidences;
    Ok(best)
}
