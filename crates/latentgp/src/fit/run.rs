//! One restart of a fit as a value that can be stored between any two iterations.

use super::hold::{hold, release};
use super::{OnIteration, Trainable, negative_evidence};
use crate::blocks;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::optim::{Adam, AdamState, Lbfgs, LbfgsState, Objective, StopReason};
use crate::param::{self, Parameterized};
use serde::{Deserialize, Serialize};

/// A gradient is small when it is at most this part of the objective.
const FLAT: f64 = 1e-3;

fn flat() -> bool {
    true
}

/// Which parameters move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// All but the noise and the kernel's variances.
    Held,
    /// All.
    Free,
}

/// The state of the optimiser in a stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A point alone: the stage has not begun or is over.
    Point(Vec<f64>),
    /// The state of L-BFGS in mid-run.
    Lbfgs(LbfgsState),
    /// The state of Adam in mid-run.
    Adam(AdamState),
}

/// The state of one restart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The number of the restart, from 0.
    pub restart: usize,
    /// The current stage.
    pub stage: Stage,
    /// The state of the optimiser of this stage.
    pub place: Place,
    /// Why this stage stopped; `None` while it runs.
    pub stopped: Option<StopReason>,
    /// Iterations of the earlier stages.
    pub iterations: usize,
    /// Evaluations of the earlier stages.
    pub evaluations: usize,
    /// The number that seeds the random draws of a noisy objective, as last renewed.
    pub draw: u64,
    /// max |∂F/∂u| at the end of this stage, for an exact objective.
    #[serde(default)]
    pub gradient: Option<f64>,
    /// Whether the gradient is small relative to the objective without its constant; true where it is not
    /// known.
    #[serde(default = "flat")]
    pub flat: bool,
    /// The bound after each iteration.
    pub trace: Vec<f64>,
}

impl Place {
    /// The free parameters, unconstrained.
    pub fn u(&self) -> &[f64] {
        match self {
            Place::Point(u) => u,
            Place::Lbfgs(state) => &state.u,
            Place::Adam(state) => &state.u,
        }
    }

    /// Iterations and evaluations of this stage.
    pub fn counts(&self) -> (usize, usize) {
        match self {
            Place::Point(_) => (0, 0),
            Place::Lbfgs(state) => (state.iteration, state.evaluations),
            Place::Adam(state) => (state.iteration, state.evaluations),
        }
    }
}

impl Run {
    /// A run at the start of a stage.
    pub(crate) fn new(restart: usize, stage: Stage, u: Vec<f64>) -> Self {
        Run {
            restart,
            stage,
            place: Place::Point(u),
            stopped: None,
            iterations: 0,
            evaluations: 0,
            draw: 0,
            gradient: None,
            flat: true,
            trace: Vec::new(),
        }
    }

    /// A run that begins at the parameters of a model, all free.
    pub fn from_model(model: &(impl Parameterized + ?Sized)) -> Self {
        Run::new(0, Stage::Free, param::flatten(model))
    }

    /// Whether the noise and the kernel's variances are still held.
    pub fn is_held(&self) -> bool {
        self.stage == Stage::Held
    }

    /// Iterations of all stages.
    pub fn total_iterations(&self) -> usize {
        self.iterations + self.place.counts().0
    }

    /// Evaluations of all stages.
    pub fn total_evaluations(&self) -> usize {
        self.evaluations + self.place.counts().1
    }

    /// The objective after the last iteration, if there was one.
    pub fn bound(&self) -> Option<f64> {
        self.trace.last().copied()
    }

    /// Whether the run is finished.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Free && self.stopped.is_some()
    }

    /// A copy without the optimiser's memory, which takes a fraction of the space.
    pub fn light(&self) -> Run {
        Run {
            place: Place::Point(self.place.u().to_vec()),
            iterations: self.total_iterations(),
            evaluations: self.total_evaluations(),
            trace: self.trace.clone(),
            ..*self
        }
    }

    /// Lets a run that reached its limit of iterations continue under a higher one.
    pub fn allow_more(&mut self) {
        if self.stage == Stage::Free && self.stopped == Some(StopReason::MaxIterations) {
            *self = Run { stopped: None, ..self.light() };
        }
    }

    /// Starts the free stage at `u`, after the held one.
    pub(super) fn next_stage(&mut self, u: Vec<f64>) {
        *self = Run {
            place: Place::Point(u),
            iterations: self.total_iterations(),
            evaluations: self.total_evaluations(),
            draw: self.draw,
            trace: std::mem::take(&mut self.trace),
            ..Run::new(self.restart, Stage::Free, Vec::new())
        };
    }

    /// Iterates an optimiser on −F.
    fn iterate<M: Model>(&mut self, model: &mut M, how: &Method, watch: &OnIteration<'_>) -> Result<bool> {
        let constant = model.constant();
        let mut grad = vec![0.0; param::count(model)];
        // The draws are seeded by the number of evaluations before them, in all stages.
        let earlier = self.evaluations as u64;
        let mut step = earlier + self.place.counts().1 as u64;
        let mut objective = |u: &[f64], out: &mut [f64]| -> Result<f64> {
            step += 1;
            negative_evidence(model, step - 1, u, &mut grad, out)
        };
        if let Place::Point(u) = &self.place {
            self.place = how.start(u, &mut objective)?;
        }
        while self.stopped.is_none() {
            let before = self.place.counts().0;
            self.stopped = how.step(&mut self.place, &mut objective)?;
            if self.stopped.is_some() {
                self.gradient = self.place.gradient_norm();
                self.flat = self.gradient.is_none_or(|g| g <= FLAT * self.place.value().abs().max(1.0));
            }
            self.draw = earlier + self.place.counts().1.saturating_sub(1) as u64;
            if self.place.counts().0 > before {
                self.trace.push(-(self.place.value() - constant));
                if watch(self).is_break() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Calls `of` with the scales held, if the stage holds them.
fn in_stage<M: Model, T>(model: &mut M, stage: Stage, of: impl FnOnce(&mut M) -> T) -> T {
    let held = if stage == Stage::Held { hold(model) } else { Vec::new() };
    let done = of(model);
    release(model, &held);
    done
}

impl<M: Model + Clone + Send + Sync> Trainable for M {
    fn evidence(&self) -> Result<f64> {
        self.log_evidence(None)
    }

    fn is_noisy(&self) -> bool {
        self.is_stochastic()
    }

    fn point(&mut self, stage: Stage) -> Vec<f64> {
        in_stage(self, stage, |model| param::flatten(model))
    }

    fn place(&mut self, run: &Run) -> Result<()> {
        let u = run.place.u();
        let free = self.point(run.stage).len();
        if u.len() != free {
            return Err(Error::shape("free parameters of a stored run", free, u.len()));
        }
        if !u.iter().all(|v| v.is_finite()) {
            return Err(Error::not_finite("a parameter of a stored run"));
        }
        self.renew(run.draw);
        in_stage(self, run.stage, |model| param::unflatten(model, u));
        Ok(())
    }

    fn climb(&mut self, run: &mut Run, how: &Method, watch: &OnIteration<'_>) -> Result<bool> {
        if run.stopped.is_some() {
            return Ok(false);
        }
        in_stage(self, run.stage, |model| {
            let asked = blocks::steps(model.parts(), || run.iterate(model, how, watch));
            param::unflatten(model, run.place.u());
            asked
        })
    }
}

impl Place {
    fn gradient_norm(&self) -> Option<f64> {
        match self {
            Place::Lbfgs(state) => Some(state.gradient.iter().fold(0.0, |most: f64, g| most.max(g.abs()))),
            _ => None,
        }
    }

    fn value(&self) -> f64 {
        match self {
            Place::Point(_) => f64::NAN,
            Place::Lbfgs(state) => state.value,
            Place::Adam(state) => state.value,
        }
    }
}

/// The optimiser of a stage.
#[derive(Clone, Debug)]
pub enum Method {
    /// L-BFGS, for exact objectives.
    Lbfgs(Lbfgs),
    /// Adam, for noisy objectives.
    Adam(Adam),
}

impl Method {
    /// L-BFGS, or Adam where the objective is noisy, with at most `limit` iterations.
    pub fn usual(noisy: bool, limit: usize) -> Self {
        match noisy {
            true => Method::Adam(Adam { max_iterations: limit, ..Adam::default() }),
            false => Method::Lbfgs(Lbfgs { max_iterations: limit, ..Lbfgs::default() }),
        }
    }

    /// The most iterations.
    pub fn limit(&self) -> usize {
        match self {
            Method::Lbfgs(how) => how.max_iterations,
            Method::Adam(how) => how.max_iterations,
        }
    }

    fn start(&self, u: &[f64], f: &mut Objective<'_>) -> Result<Place> {
        Ok(match self {
            Method::Lbfgs(how) => Place::Lbfgs(how.start(u, f)?),
            Method::Adam(how) => Place::Adam(how.start(u, f)?),
        })
    }

    fn step(&self, place: &mut Place, f: &mut Objective<'_>) -> Result<Option<StopReason>> {
        match (self, &mut *place) {
            (Method::Lbfgs(how), Place::Lbfgs(state)) => how.step(state, f),
            (Method::Adam(how), Place::Adam(state)) => how.step(state, f),
            // A state of the other method, which only an edited file has, restarts from its point.
            _ => {
                *place = self.start(place.u(), f)?;
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expectation;
    use crate::fit::{Fitted, go_on, model_at, train};
    use crate::kernel::Matern32;
    use crate::mat::Mat;
    use crate::model::{BayesianGplvm, Training};
    use std::ops::ControlFlow;
    use std::sync::Mutex;

    fn training(expectation: &str) -> (Training, Mat) {
        let training = Training {
            latent_dim: 2,
            inducing: 5,
            hold: 4,
            max_iterations: 12,
            restarts: 2,
            expectation: expectation::parse(expectation).unwrap(),
            ..Training::default()
        };
        (training, Mat::from_fn(15, 4, |i, j| ((i * (j + 2)) as f64 * 0.37).sin() + 0.1 * j as f64))
    }

    fn same(a: &Fitted<BayesianGplvm>, b: &Fitted<BayesianGplvm>) {
        assert_eq!(a.evidence, b.evidence);
        assert_eq!(a.trace, b.trace);
        assert_eq!(a.restarts, b.restarts);
        assert_eq!(
            (a.iterations, a.evaluations, a.stop_reason),
            (b.iterations, b.evaluations, b.stop_reason)
        );
        assert_eq!(a.model.params(), b.model.params());
    }

    #[test]
    fn from_any_iteration_a_stored_run_goes_on_to_the_same_bits() {
        for rule in ["unscented", "monte_carlo(samples=3, seed=1, fresh=true)"] {
            let (training, y) = training(rule);
            let kernel = Matern32::new(2);
            let stored = Mutex::new(Vec::new());
            let plan = training.plan(&y, &kernel);
            let whole = train(&plan, Vec::new(), &|run| {
                stored.lock().unwrap().push(serde_json::to_string(run).unwrap());
                ControlFlow::Continue(())
            })
            .unwrap();
            let stored = stored.into_inner().unwrap();
            assert!(stored.len() > 10);
            for text in &stored {
                let run: Run = serde_json::from_str(text).unwrap();
                let at = model_at(&plan, &run).unwrap().log_evidence(None).unwrap();
                assert!((at - run.bound().unwrap()).abs() < 1e-9 * at.abs(), "{rule}: {at}");
                let again = train(&plan, vec![run], &go_on).unwrap();
                same(&again, &whole);
            }
        }
    }

    #[test]
    fn a_fit_that_was_asked_to_stop_can_go_on() {
        for rule in ["unscented", "monte_carlo(samples=3, seed=1, fresh=true)"] {
            let (training, y) = training(rule);
            let kernel = Matern32::new(2);
            let plan = training.plan(&y, &kernel);
            let whole = train(&plan, Vec::new(), &go_on).unwrap();
            for limit in [1, 4, 5, 9] {
                let stop = |iteration| match iteration >= limit {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                };
                let part = train(&plan, Vec::new(), &|run| stop(run.total_iterations())).unwrap();
                assert_eq!((part.stop_reason, part.converged), (StopReason::Asked, false));
                assert_eq!(part.iterations, limit);
                let rest = train(&plan, part.runs, &go_on).unwrap();
                same(&rest, &whole);
            }
            let over = train(&plan, whole.runs.clone(), &|_| ControlFlow::Break(())).unwrap();
            same(&over, &whole);
        }
    }

    #[test]
    fn a_run_from_a_fitted_model_begins_where_that_ended() {
        let (training, y) = training("unscented");
        let plan = Training { restarts: 1, ..training }.plan(&y, &Matern32::new(2));
        let first = train(&plan, Vec::new(), &go_on).unwrap();
        let more = train(&plan, vec![Run::from_model(&first.model)], &go_on).unwrap();
        assert!(
            more.evidence > first.evidence && more.trace[0] >= first.evidence - 1e-9 * first.evidence.abs()
        );
        assert!(more.iterations <= 12);
    }

    #[test]
    fn stages_are_two_plain_fits() {
        let (training, y) = training("unscented");
        let kernel = Matern32::new(2);
        let mut model = training.start(&y, &kernel, 0).unwrap();
        let held = hold(&mut model);
        let stage = |limit| Lbfgs { max_iterations: limit, ..Lbfgs::default() };
        crate::fit::fit(&mut model, &stage(training.hold), &mut crate::optim::quiet).unwrap();
        release(&mut model, &held);
        crate::fit::fit(&mut model, &stage(training.max_iterations), &mut crate::optim::quiet).unwrap();
        let one = Training { restarts: 1, ..training };
        let fit = one.fit(&y, &kernel, &go_on).unwrap();
        assert_eq!(fit.model.params(), model.params());
    }

    #[test]
    fn a_run_of_another_model_is_refused() {
        let (training, y) = training("unscented");
        let kernel = Matern32::new(2);
        let plan = training.plan(&y, &kernel);
        let mut run = train(&plan, Vec::new(), &|_| ControlFlow::Break(())).unwrap().runs.remove(0);
        run.stage = Stage::Free;
        assert!(matches!(model_at(&plan, &run), Err(Error::Shape { .. })));
        let nan = run.place.u().iter().map(|_| f64::NAN).collect();
        run = Run { stage: Stage::Held, place: Place::Point(nan), ..run };
        assert!(matches!(model_at(&plan, &run), Err(Error::NotFinite { .. })));
    }
}
