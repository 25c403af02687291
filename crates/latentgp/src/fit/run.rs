//! One restart of a fit as a value that can be stored between any two iterations.
//!
//! ```text
//! Held ──noise and variances fixed──▶ Free ──everything moves──▶ stopped
//! ```
//!
//! A [`Run`] that is read back goes on to the same bits as one that was never interrupted.

use crate::blocks;
use crate::error::{Error, Result};
use crate::expectation::Expectation;
use crate::fit::negative_evidence;
use crate::model::{BayesianGplvm, Model, OnRun};
use crate::optim::{Adam, AdamState, Lbfgs, LbfgsState, Objective, StopReason};
use crate::param::{self, Parameterized};
use serde::{Deserialize, Serialize};

/// Which parameters move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// All but the noise and the kernel's variances.
    Held,
    /// All.
    Free,
}

/// What the optimiser of a stage knows.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Only where it is: a stage that has not begun, or one that is over.
    Point(Vec<f64>),
    /// In the middle of L-BFGS.
    Lbfgs(LbfgsState),
    /// In the middle of Adam.
    Adam(AdamState),
}

/// Where one restart stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// Which of the restarts, from 0.
    pub restart: usize,
    /// The stage that it is in.
    pub stage: Stage,
    /// Where the optimiser of this stage is.
    pub place: Place,
    /// Why this stage stopped, when it has.
    pub stopped: Option<StopReason>,
    /// Iterations of the stages before.
    pub iterations: usize,
    /// Evaluations of the stages before.
    pub evaluations: usize,
    /// The step of the last fresh draws.
    pub draw: u64,
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
    /// At the start of a model.
    pub(crate) fn first(restart: usize, held: bool, model: &mut BayesianGplvm) -> Self {
        let stage = if held { Stage::Held } else { Stage::Free };
        let fixed = if held { hold(model) } else { Vec::new() };
        let place = Place::Point(param::flatten(model));
        release(model, &fixed);
        Run {
            restart,
            stage,
            place,
            stopped: None,
            iterations: 0,
            evaluations: 0,
            draw: 0,
            trace: Vec::new(),
        }
    }

    /// Iterations of all stages.
    pub fn total_iterations(&self) -> usize {
        self.iterations + self.place.counts().0
    }

    /// Evaluations of all stages.
    pub fn total_evaluations(&self) -> usize {
        self.evaluations + self.place.counts().1
    }

    /// The bound after the last iteration, if there was one.
    pub fn bound(&self) -> Option<f64> {
        self.trace.last().copied()
    }

    /// Whether nothing is left to do.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Free && self.stopped.is_some()
    }

    /// A copy that knows where it is but not how the optimiser got there: a fraction of the memory.
    pub fn light(&self) -> Run {
        Run {
            place: Place::Point(self.place.u().to_vec()),
            iterations: self.total_iterations(),
            evaluations: self.total_evaluations(),
            trace: self.trace.clone(),
            ..*self
        }
    }

    /// Errs when a run that was read is not one of this model.
    pub(crate) fn check(&self, model: &mut BayesianGplvm) -> Result<()> {
        let held = if self.stage == Stage::Held { hold(model) } else { Vec::new() };
        let free: usize = model.params().iter().filter(|(_, p)| !p.fixed).map(|(_, p)| p.len()).sum();
        release(model, &held);
        let u = self.place.u();
        if u.len() != free {
            return Err(Error::shape("free parameters of a stored run", free, u.len()));
        }
        if !u.iter().all(|v| v.is_finite()) {
            return Err(Error::not_finite("a parameter of a stored run"));
        }
        Ok(())
    }

    /// The model where the run stands, from the start of this or any other restart of the same training:
    /// they differ only in what every run moves.
    pub fn model(&self, start: &BayesianGplvm) -> Result<BayesianGplvm> {
        let mut model = start.clone();
        self.check(&mut model)?;
        self.place_in(&mut model);
        Ok(model)
    }

    /// Sets the parameters of a model, at the start of this restart, to where the run is.
    pub(crate) fn place_in(&self, model: &mut BayesianGplvm) {
        model.renew(self.draw);
        let held = if self.stage == Stage::Held { hold(model) } else { Vec::new() };
        param::unflatten(model, self.place.u());
        release(model, &held);
    }

    /// Iterates until the stage is over or `watch` says to stop; tells whether it did.
    pub(crate) fn advance(
        &mut self,
        model: &mut BayesianGplvm,
        limit: usize,
        watch: &OnRun<'_>,
    ) -> Result<bool> {
        let held = if self.stage == Stage::Held { hold(model) } else { Vec::new() };
        let result = blocks::steps(model.parts(), || self.iterate(model, limit, watch));
        param::unflatten(model, self.place.u());
        release(model, &held);
        result
    }

    fn iterate(&mut self, model: &mut BayesianGplvm, limit: usize, watch: &OnRun<'_>) -> Result<bool> {
        if self.stopped.is_some() {
            return Ok(false);
        }
        let constant = model.constant();
        let how = Method::of(&*model.expectation, limit);
        let mut grad = vec![0.0; param::count(model)];
        // Fresh draws follow from the number of evaluations before them, those of the first stage included.
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

    /// Goes from a stage that is over to the next, at the parameters of the model.
    pub(crate) fn next_stage(&mut self, model: &BayesianGplvm) {
        *self = Run {
            restart: self.restart,
            stage: Stage::Free,
            place: Place::Point(param::flatten(model)),
            stopped: None,
            iterations: self.total_iterations(),
            evaluations: self.total_evaluations(),
            draw: self.draw,
            trace: std::mem::take(&mut self.trace),
        };
    }
}

impl Place {
    fn value(&self) -> f64 {
        match self {
            Place::Point(_) => f64::NAN,
            Place::Lbfgs(state) => state.value,
            Place::Adam(state) => state.value,
        }
    }
}

/// The optimiser of a stage.
enum Method {
    Lbfgs(Lbfgs),
    Adam(Adam),
}

impl Method {
    /// L-BFGS, or Adam with steps that shrink to a tenth over the iterations allowed, so that the noise of
    /// fresh draws dies out.
    fn of(expectation: &dyn Expectation, limit: usize) -> Self {
        match expectation.is_stochastic() {
            true => Method::Adam(Adam {
                learning_rate: 0.1,
                decay: 10.0 / limit.max(1) as f64,
                max_iterations: limit,
                ..Adam::default()
            }),
            false => Method::Lbfgs(Lbfgs { max_iterations: limit, ..Lbfgs::default() }),
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
            // A state of the other method, which only an edited file has, begins anew from its point.
            _ => {
                *place = self.start(place.u(), f)?;
                Ok(None)
            }
        }
    }
}

/// Fixes the noise and the kernel's variances; tells which of them were free.
pub(crate) fn hold(model: &mut (impl Parameterized + ?Sized)) -> Vec<String> {
    let mut held = Vec::new();
    for (name, p) in model.params_mut() {
        let own = name.rsplit('.').next().is_some_and(|own| ["variance", "weight"].contains(&own));
        let is_scale = name == "noise" || (name.starts_with("kernel.") && own);
        if is_scale && !p.fixed {
            p.fixed = true;
            held.push(name);
        }
    }
    held
}

pub(crate) fn release(model: &mut (impl Parameterized + ?Sized), held: &[String]) {
    for (name, p) in model.params_mut() {
        if held.contains(&name) {
            p.fixed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expectation;
    use crate::kernel::Matern32;
    use crate::mat::Mat;
    use crate::model::{Fit, Training};
    use std::ops::ControlFlow;
    use std::sync::Mutex;

    #[test]
    fn scales_are_held_and_nothing_else() {
        use crate::kernel::parse;
        for (kernel, expected) in [
            ("rbf + linear", vec!["kernel.0.variance", "kernel.1.variance"]),
            ("spectral_mixture(components=2)", vec!["kernel.weight"]),
            ("arc_sine", vec!["kernel.variance"]),
        ] {
            let mut model = Training { latent_dim: 2, inducing: 3, ..Training::default() }
                .start(&Mat::from_fn(9, 3, |i, j| ((i * 3 + j) as f64).sin()), &*parse(kernel, 2).unwrap(), 0)
                .unwrap();
            let held = hold(&mut model);
            let kernel: Vec<&String> = held.iter().filter(|name| *name != "noise").collect();
            assert_eq!(kernel, expected);
            assert!(held.iter().any(|name| name == "noise"));
        }
    }

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

    fn same(a: &Fit, b: &Fit) {
        assert_eq!(a.bound, b.bound);
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
            let whole = training
                .resume(&y, &kernel, Vec::new(), &|run| {
                    stored.lock().unwrap().push(serde_json::to_string(run).unwrap());
                    ControlFlow::Continue(())
                })
                .unwrap();
            let stored = stored.into_inner().unwrap();
            assert!(stored.len() > 10);
            for text in &stored {
                let run: Run = serde_json::from_str(text).unwrap();
                let first = training.start(&y, &kernel, 0).unwrap();
                let near = run.model(&first).unwrap();
                assert_eq!(near.params(), training.model_at(&y, &kernel, &run).unwrap().params());
                let at = training.model_at(&y, &kernel, &run).unwrap().log_evidence(None).unwrap();
                assert!((at - run.bound().unwrap()).abs() < 1e-9 * at.abs(), "{rule}: {at}");
                let again = training.resume(&y, &kernel, vec![run], &|_| ControlFlow::Continue(())).unwrap();
                same(&again, &whole);
            }
        }
    }

    #[test]
    fn a_fit_that_was_asked_to_stop_can_go_on() {
        for rule in ["unscented", "monte_carlo(samples=3, seed=1, fresh=true)"] {
            let (training, y) = training(rule);
            let kernel = Matern32::new(2);
            let whole = training.fit(&y, &kernel, &|_| ControlFlow::Continue(())).unwrap();
            for limit in [1, 4, 5, 9] {
                let stop = |iteration| match iteration >= limit {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                };
                let part = training.fit(&y, &kernel, &|p| stop(p.iteration)).unwrap();
                assert_eq!((part.stop_reason, part.converged), (StopReason::Asked, false));
                assert_eq!(part.iterations, limit);
                let rest = training.resume(&y, &kernel, part.runs, &|_| ControlFlow::Continue(())).unwrap();
                same(&rest, &whole);
            }
            let over = training.resume(&y, &kernel, whole.runs.clone(), &|_| ControlFlow::Break(())).unwrap();
            same(&over, &whole);
        }
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
        let fit = one.fit(&y, &kernel, &|_| ControlFlow::Continue(())).unwrap();
        assert_eq!(fit.model.params(), model.params());
    }

    #[test]
    fn a_run_of_another_model_is_refused() {
        let (training, y) = training("unscented");
        let kernel = Matern32::new(2);
        let mut run = training.fit(&y, &kernel, &|_| ControlFlow::Break(())).unwrap().runs.remove(0);
        run.stage = Stage::Free;
        assert!(matches!(training.model_at(&y, &kernel, &run), Err(Error::Shape { .. })));
        let nan = run.place.u().iter().map(|_| f64::NAN).collect();
        run = Run { stage: Stage::Held, place: Place::Point(nan), ..run };
        assert!(matches!(training.model_at(&y, &kernel, &run), Err(Error::NotFinite { .. })));
    }
}
