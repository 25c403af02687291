//! One way to fit every model: stages, restarts in parallel, states that can be stored, and the best of them.
//!
//! ```text
//! start ──▶ held: noise and variances fixed ──▶ free: everything moves ──▶ stopped
//!   │            after each iteration: the trace grows, the watch sees the run
//!   └─ once for every restart, in parallel; the best is kept
//! ```
//!
//! A [`Plan`] says where a restart starts and how long its stages may last. [`train`] does the rest. A [`Run`] is one
//! restart as a value: stored after any iteration and read back, it ends at the same bits as one that was never
//! interrupted. [`fit`] is the plain form for a model that is there already.

mod hold;
mod restarts;
mod run;

pub use restarts::Restarts;
pub use run::{Method, Place, Run, Stage};

pub(crate) use restarts::rng_of;

use crate::blocks;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::optim::{Optimizer, Report, Step, StopReason, Watch};
use crate::param;
use rayon::prelude::*;
use std::ops::ControlFlow;

/// Sees a run after each of its iterations and may ask to stop; the best state is kept.
pub type OnIteration<'a> = dyn Fn(&Run) -> ControlFlow<()> + Sync + 'a;

/// An [`OnIteration`] that lets everything pass.
pub fn go_on(_: &Run) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// How long the stages of a fit may last, and how many restarts there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Iterations with the noise and the kernel's variances held; 0 leaves that stage out.
    pub hold: usize,
    /// Iterations with everything free.
    pub max_iterations: usize,
    /// Runs from different starts.
    pub restarts: usize,
}

/// What is trained, from where, and how.
pub trait Plan: Send + Sync {
    /// What is trained.
    type Model: Trainable;

    /// The stages and the number of restarts.
    fn schedule(&self) -> Schedule;

    /// The model at the start of a restart, which depends on the plan and the number of the restart alone.
    fn start(&self, restart: usize) -> Result<Self::Model>;

    /// Changes the model between the stage that holds the scales and the free one.
    fn between(&self, _model: &mut Self::Model) {}

    /// The optimiser of a stage.
    fn method(&self, model: &Self::Model, limit: usize) -> Method {
        Method::usual(model.is_noisy(), limit)
    }
}

/// What a run can move: every [`Model`] by its gradient; probabilistic PCA by its own iterations.
pub trait Trainable: Clone + Send + Sync {
    /// The log evidence of the data as given, or its bound.
    fn evidence(&self) -> Result<f64>;

    /// Whether two evaluations at the same point may differ.
    fn is_noisy(&self) -> bool {
        false
    }

    /// The parameters that move in a stage, unconstrained.
    fn point(&mut self, stage: Stage) -> Vec<f64>;

    /// Sets the parameters, of a model at the start of its restart, to where a run stands.
    ///
    /// Errs when the run is one of another model.
    fn place(&mut self, run: &Run) -> Result<()>;

    /// Iterates until the stage is over or the watch asks to stop; tells whether it did.
    fn climb(&mut self, run: &mut Run, how: &Method, watch: &OnIteration<'_>) -> Result<bool>;
}

/// A fitted model and how it got there.
#[derive(Clone)]
pub struct Fitted<M> {
    /// The model.
    pub model: M,
    /// The log evidence of the data as given, or its bound, or the objective where the model says so.
    pub evidence: f64,
    /// Iterations of the run that was kept, all stages.
    pub iterations: usize,
    /// Evaluations of that run.
    pub evaluations: usize,
    /// Whether it converged.
    pub converged: bool,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// What was maximised, priors included, after each iteration of that run.
    pub trace: Vec<f64>,
    /// The evidences of all restarts; `None` where one failed.
    pub restarts: Vec<Option<f64>>,
    /// Where every restart that did not fail ended; those that were asked to stop can go on from there.
    pub runs: Vec<Run>,
}

impl<M> Fitted<M> {
    /// The same fit of a model that is turned into another.
    pub fn map<T>(self, of: impl FnOnce(M) -> T) -> Fitted<T> {
        let Fitted {
            model,
            evidence,
            iterations,
            evaluations,
            converged,
            stop_reason,
            trace,
            restarts,
            runs,
        } = self;
        let model = of(model);
        Fitted { model, evidence, iterations, evaluations, converged, stop_reason, trace, restarts, runs }
    }

    /// What the optimiser reached, priors included.
    fn reached(&self) -> f64 {
        self.trace.last().copied().unwrap_or(self.evidence)
    }
}

/// Trains by a plan; restarts whose state is among `stored` go on from there, the others begin.
///
/// Stored runs are those that a watch saw, or [`Fitted::runs`]. The result is that of an uninterrupted fit, bit for
/// bit, where they hold the optimiser's state, and close to it where they are [`Run::light`]. Errs when all restarts
/// fail, with the reason of the first.
pub fn train<P: Plan>(plan: &P, stored: Vec<Run>, watch: &OnIteration<'_>) -> Result<Fitted<P::Model>> {
    let mut given: Vec<Option<Run>> = vec![None; plan.schedule().restarts.max(1)];
    for run in stored {
        if let Some(slot) = given.get_mut(run.restart) {
            slot.get_or_insert(run);
        }
    }
    let all: Vec<Result<(Fitted<P::Model>, Run)>> = blocks::together(|| {
        given.into_par_iter().enumerate().map(|(k, run)| one_run(plan, k, run, watch)).collect()
    });
    best_of(all)
}

/// The model where a run stands.
pub fn model_at<P: Plan>(plan: &P, run: &Run) -> Result<P::Model> {
    let mut model = plan.start(run.restart)?;
    model.place(run)?;
    Ok(model)
}

fn one_run<P: Plan>(
    plan: &P,
    restart: usize,
    stored: Option<Run>,
    watch: &OnIteration<'_>,
) -> Result<(Fitted<P::Model>, Run)> {
    let schedule = plan.schedule();
    let mut model = plan.start(restart)?;
    let mut run = match stored {
        Some(run) => {
            model.place(&run)?;
            run
        }
        None => {
            let stage = if schedule.hold > 0 { Stage::Held } else { Stage::Free };
            Run::new(restart, stage, model.point(stage))
        }
    };
    let mut asked = false;
    if run.stage == Stage::Held {
        asked = model.climb(&mut run, &plan.method(&model, schedule.hold), watch)?;
        if !asked {
            plan.between(&mut model);
            run.next_stage(model.point(Stage::Free));
        }
    }
    if !asked {
        model.climb(&mut run, &plan.method(&model, schedule.max_iterations), watch)?;
    }
    let stop_reason = run.stopped.filter(|_| run.is_over()).unwrap_or(StopReason::Asked);
    if run.is_over() {
        run = run.light();
    }
    let fitted = Fitted {
        evidence: model.evidence()?,
        model,
        iterations: run.total_iterations(),
        evaluations: run.total_evaluations(),
        converged: stop_reason.converged(),
        stop_reason,
        trace: run.trace.clone(),
        restarts: Vec::new(),
        runs: Vec::new(),
    };
    Ok((fitted, run))
}

/// The best of several runs by what they maximised, the first among equals.
fn best_of<M>(all: Vec<Result<(Fitted<M>, Run)>>) -> Result<Fitted<M>> {
    let restarts = all.iter().map(|r| r.as_ref().ok().map(|(f, _)| f.evidence)).collect();
    let (mut best, mut failure, mut runs): (Option<Fitted<M>>, _, _) = (None, None, Vec::new());
    for one in all {
        match one {
            Ok((fitted, run)) => {
                runs.push(run);
                if best.as_ref().is_none_or(|b| fitted.reached() > b.reached()) {
                    best = Some(fitted);
                }
            }
            Err(e) => failure = failure.or(Some(e)),
        }
    }
    let none = || failure.unwrap_or_else(|| Error::invalid("restarts", "at least 1", 0));
    Ok(Fitted { restarts, runs, ..best.ok_or_else(none)? })
}

/// Maximises F + Σ log p(θ) over the free parameters; the model is left at the best point found.
pub fn fit<M: Model + ?Sized>(model: &mut M, how: &dyn Optimizer, watch: &mut Watch<'_>) -> Result<Report> {
    let mut u = param::flatten(model);
    let mut grad = vec![0.0; param::count(model)];
    let mut step = 0;
    let (constant, parts) = (model.constant(), model.parts());
    let mut objective = |u: &[f64], out: &mut [f64]| -> Result<f64> {
        step += 1;
        negative_evidence(model, step - 1, u, &mut grad, out)
    };
    let mut with_constant = |step: &Step<'_>| watch(&Step { value: step.value - constant, ..*step });
    let report = blocks::steps(parts, || how.minimize(&mut u, &mut objective, &mut with_constant));
    param::unflatten(model, &u);
    report.map(|r| Report { value: r.value - constant, ..r })
}

/// −F − Σ log p(θ) at u, less the [`constant`](Model::constant), and its gradient in u; `grad` is room for that in θ.
fn negative_evidence<M: Model + ?Sized>(
    model: &mut M,
    step: u64,
    u: &[f64],
    grad: &mut [f64],
    out: &mut [f64],
) -> Result<f64> {
    param::unflatten(model, u);
    model.renew(step);
    let value = model.varying_evidence(Some(grad))? + param::log_prior(model, Some(grad));
    param::chain(model, grad, out);
    out.iter_mut().for_each(|g| *g = -*g);
    Ok(-value)
}
