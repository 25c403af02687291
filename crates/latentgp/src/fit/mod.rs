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
mod search;

pub use restarts::Restarts;
pub use run::{Method, Place, Run, Stage};
pub use search::{Effort, Search, train};

pub(crate) use restarts::rng_of;

use crate::blocks;
use crate::error::Result;
use crate::model::Model;
use crate::optim::{Optimizer, Report, Step, StopReason, Watch};
use crate::param;
use std::ops::ControlFlow;

/// Called after each iteration of a run; may ask to stop, and then the best state is kept.
pub type OnIteration<'a> = dyn Fn(&Run) -> ControlFlow<()> + Sync + 'a;

/// An [`OnIteration`] that never stops a fit.
pub fn go_on(_: &Run) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// How long the stages of a fit may last, and how many restarts there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Iterations with the noise and the kernel's variances held; 0 leaves that stage out.
    pub hold: usize,
    /// Iterations with everything free.
    pub max_iterations: usize,
    /// Where runs start, and which of them go on.
    pub search: Search,
}

/// What is trained, from where, and how.
pub trait Plan: Send + Sync {
    /// The type of model that is trained.
    type Model: Trainable;

    /// The stages and the number of restarts.
    fn schedule(&self) -> Schedule;

    /// The model at the start of a restart, which depends on the plan and the number of the restart alone.
    fn start(&self, restart: usize) -> Result<Self::Model>;

    /// Changes the model between the stage that holds the scales and the free one.
    fn between(&self, _model: &mut Self::Model) {}

    /// The group of a restart; a race compares the starts within a group.
    fn group(&self, _restart: usize) -> usize {
        0
    }

    /// Shakes the model, so that run `run` can begin there; `false` where the plan does not support hops.
    fn hop(&self, _best: &mut Self::Model, _run: usize) -> Result<bool> {
        Ok(false)
    }

    /// The score that compares finished runs, where it is not the objective.
    fn verdict(&self, _model: &Self::Model) -> Result<Option<f64>> {
        Ok(None)
    }

    /// The optimiser of a stage.
    fn method(&self, model: &Self::Model, limit: usize) -> Method {
        Method::usual(model.is_noisy(), limit)
    }
}

/// A model that a run can fit: every [`Model`] by its gradient, probabilistic PCA by its own iterations.
pub trait Trainable: Clone + Send + Sync {
    /// The log evidence of the data as given, or its bound.
    fn evidence(&self) -> Result<f64>;

    /// Whether two evaluations at the same point may differ.
    fn is_noisy(&self) -> bool {
        false
    }

    /// The parameters that a stage optimises, unconstrained.
    fn point(&mut self, stage: Stage) -> Vec<f64>;

    /// Sets the parameters of a model at its start to the state of a run.
    ///
    /// Errs when the run belongs to another model.
    fn place(&mut self, run: &Run) -> Result<()>;

    /// Iterates until the stage is over or the watch asks to stop; returns whether it asked.
    fn climb(&mut self, run: &mut Run, how: &Method, watch: &OnIteration<'_>) -> Result<bool>;
}

/// A fitted model and how it got there.
#[derive(Clone)]
pub struct Fitted<M> {
    /// The model.
    pub model: M,
    /// The log evidence of the data as given, or its bound, or the objective where the model says so.
    pub evidence: f64,
    /// Iterations of the kept run, all stages.
    pub iterations: usize,
    /// Evaluations of the kept run.
    pub evaluations: usize,
    /// Whether it converged.
    pub converged: bool,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// max |∂F/∂u| at the end, in the unconstrained parameters, for an exact objective.
    pub gradient_norm: Option<f64>,
    /// The objective, priors included, after each iteration of the kept run.
    pub trace: Vec<f64>,
    /// How many runs began, including the ones that lost a race.
    pub begun: usize,
    /// The evidence of each run that was followed to its end, in order; `None` where one failed. After an
    /// interruption, of each run that began.
    pub restarts: Vec<Option<f64>>,
    /// The kept run, without the optimiser's memory.
    pub best: Option<Run>,
    /// The last state of every run that did not fail; interrupted runs can resume from it.
    pub runs: Vec<Run>,
}

impl<M> Fitted<M> {
    /// The same fit with its model converted to another type.
    pub fn map<T>(self, of: impl FnOnce(M) -> T) -> Fitted<T> {
        Fitted {
            model: of(self.model),
            evidence: self.evidence,
            iterations: self.iterations,
            evaluations: self.evaluations,
            converged: self.converged,
            stop_reason: self.stop_reason,
            gradient_norm: self.gradient_norm,
            trace: self.trace,
            begun: self.begun,
            restarts: self.restarts,
            best: self.best,
            runs: self.runs,
        }
    }
}

/// The model at the state of a run.
pub fn model_at<P: Plan>(plan: &P, run: &Run) -> Result<P::Model> {
    let mut model = plan.start(run.restart)?;
    model.place(run)?;
    Ok(model)
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

/// −F − Σ log p(θ) at u, less the [`constant`](Model::constant), and its gradient in u; `grad` is a buffer
/// for the gradient in θ.
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
