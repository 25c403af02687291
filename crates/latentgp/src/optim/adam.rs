//! Adam: steps scaled by running means of the gradient and of its square, for noisy objectives.
//!
//! ```text
//! m ← β₁m + (1 − β₁)g    v ← β₂v + (1 − β₂)g²    ηₖ = η / (1 + decay·k)
//! u ← u − ηₖ · m/(1 − β₁ᵏ) / (√(v/(1 − β₂ᵏ)) + ε)
//! ```
//!
//! Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1.

use super::{Limits, Objective, Optimizer, Report, State, Step, StopReason, Watch};
use super::{evaluate, evaluate_first, max_abs, norm, require, run};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// Adam for stochastic objectives.
///
/// The result is the last iterate: values are noisy, so the lowest one seen is the luckiest rather than the
/// best, and the mean of several iterates is a point that was never evaluated. A positive `decay` lets the
/// steps, and with them the noise of the last iterate, die out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adam {
    /// η, about the size of the first steps of each entry of u.
    pub learning_rate: f64,
    /// β₁, the memory of the mean gradient.
    pub beta1: f64,
    /// β₂, the memory of the mean square.
    pub beta2: f64,
    /// ε, which keeps the quotient finite.
    pub epsilon: f64,
    /// How fast the learning rate falls with the iterations.
    pub decay: f64,
    /// Most iterations.
    pub max_iterations: usize,
    /// Most evaluations of the objective.
    pub max_evaluations: usize,
    /// Stops when max |∂f/∂u| is no more than this; at 0, only where nothing pulls at all.
    pub gradient_tolerance: f64,
    /// Stops when the smoothed value changes by no more than this times max(|f|, 1) in `window` iterations.
    pub value_tolerance: Option<f64>,
    /// The weight of the past in the smoothed value.
    pub smoothing: f64,
    /// How many iterations lie between two looks at the smoothed value.
    pub window: usize,
    /// How often a move is halved when the objective cannot be evaluated at its end.
    pub max_halvings: usize,
}

impl Default for Adam {
    fn default() -> Self {
        Adam {
            learning_rate: 0.01,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            decay: 0.0,
            max_iterations: 1000,
            max_evaluations: usize::MAX,
            gradient_tolerance: 0.0,
            value_tolerance: None,
            smoothing: 0.98,
            window: 100,
            max_halvings: 10,
        }
    }
}

/// Everything that a run of [`Adam`] knows between two steps; stored and read back exactly, the run goes on to
/// the same bits, provided that the objective's own random numbers do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AdamState {
    /// The last point.
    pub u: Vec<f64>,
    /// f(u), as noisy as the objective.
    pub value: f64,
    /// ∂f/∂u.
    pub gradient: Vec<f64>,
    /// The running mean of the gradient.
    pub m: Vec<f64>,
    /// The running mean of its square.
    pub v: Vec<f64>,
    /// The smoothed value.
    pub smoothed: f64,
    /// The smoothed value when it was last looked at.
    pub smoothed_before: Option<f64>,
    /// Accepted iterations.
    pub iteration: usize,
    /// Evaluations of the objective.
    pub evaluations: usize,
    /// ‖Δu‖₂ of the last iteration.
    pub step_length: f64,
    #[serde(skip)]
    work: Work,
}

/// Working memory for one iteration; nothing in it outlives a step.
#[derive(Clone, Debug, Default)]
struct Work {
    change: Vec<f64>,
    trial: Vec<f64>,
    gradient: Vec<f64>,
    m: Vec<f64>,
    v: Vec<f64>,
}

impl Adam {
    /// Evaluates the objective at `u0` and sets up a run from there.
    ///
    /// # Errors
    /// What the objective says at `u0`; [`Error::NotFinite`]; [`Error::Invalid`] for a setting.
    pub fn start(&self, u0: &[f64], f: &mut Objective<'_>) -> Result<AdamState> {
        self.check()?;
        let n = u0.len();
        let mut gradient = vec![0.0; n];
        let value = evaluate_first(u0, &mut gradient, f)?;
        Ok(AdamState {
            u: u0.to_vec(),
            value,
            gradient,
            m: vec![0.0; n],
            v: vec![0.0; n],
            smoothed: value,
            smoothed_before: None,
            iteration: 0,
            evaluations: 1,
            step_length: 0.0,
            work: Work::default(),
        })
    }

    /// One iteration; says why the run is over when it is.
    ///
    /// # Errors
    /// What the objective says, unless it means "step back"; the state is then as if the step had not been
    /// asked for, and can go on. [`Error::Shape`] for a state whose parts do not fit together.
    pub fn step(&self, state: &mut AdamState, f: &mut Objective<'_>) -> Result<Option<StopReason>> {
        self.check()?;
        state.prepare()?;
        if let Some(stop) = state.over(self.limits()) {
            return Ok(Some(stop));
        }
        self.aim(state);
        let counted = state.evaluations;
        for _ in 0..=self.max_halvings {
            if state.evaluations >= self.max_evaluations {
                return Ok(Some(StopReason::MaxEvaluations));
            }
            let work = &mut state.work;
            for ((trial, u), change) in work.trial.iter_mut().zip(&state.u).zip(&work.change) {
                *trial = u + change;
            }
            state.evaluations += 1;
            let value =
                evaluate(&work.trial, &mut work.gradient, f).inspect_err(|_| state.evaluations = counted)?;
            if let Some(value) = value {
                return Ok(self.accept(state, value));
            }
            work.change.iter_mut().for_each(|c| *c *= 0.5);
        }
        Ok(Some(StopReason::LineSearch))
    }

    /// Goes on from a state until the run is over.
    ///
    /// # Errors
    /// As [`step`](Self::step); the state then holds the last point.
    pub fn resume(
        &self,
        state: &mut AdamState,
        f: &mut Objective<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Report> {
        run(state, watch, |state| self.step(state, f))
    }

    fn check(&self) -> Result<()> {
        let share = |x: f64| (0.0..1.0).contains(&x);
        let positive = |x: f64| x > 0.0 && x.is_finite();
        require(positive(self.learning_rate), "learning_rate of Adam", "above 0", self.learning_rate)?;
        require(share(self.beta1), "beta1 of Adam", "from 0 to below 1", self.beta1)?;
        require(share(self.beta2), "beta2 of Adam", "from 0 to below 1", self.beta2)?;
        require(positive(self.epsilon), "epsilon of Adam", "above 0", self.epsilon)?;
        require(self.decay >= 0.0, "decay of Adam", "0 or more", self.decay)?;
        require(self.gradient_tolerance >= 0.0, "gradient_tolerance", "0 or more", self.gradient_tolerance)?;
        require(share(self.smoothing), "smoothing of Adam", "from 0 to below 1", self.smoothing)?;
        require(self.window > 0, "window of Adam", "at least 1", self.window)?;
        let tolerance = self.value_tolerance.unwrap_or(0.0);
        require(tolerance >= 0.0, "value_tolerance of Adam", "0 or more", tolerance)
    }

    fn limits(&self) -> Limits {
        Limits {
            gradient_tolerance: self.gradient_tolerance,
            max_iterations: self.max_iterations,
            max_evaluations: self.max_evaluations,
        }
    }

    /// The next moments and the move they ask for, beside the state until the move is accepted.
    fn aim(&self, state: &mut AdamState) {
        let k = (state.iteration + 1) as f64;
        let (unbias1, unbias2) = (1.0 - self.beta1.powf(k), 1.0 - self.beta2.powf(k));
        let rate = self.learning_rate / (1.0 + self.decay * (k - 1.0));
        let work = &mut state.work;
        for (i, &g) in state.gradient.iter().enumerate() {
            work.m[i] = self.beta1 * state.m[i] + (1.0 - self.beta1) * g;
            // A square that overflows would freeze its entry for good.
            work.v[i] = (self.beta2 * state.v[i] + (1.0 - self.beta2) * g * g).min(f64::MAX);
            let spread = (work.v[i] / unbias2).min(f64::MAX).sqrt();
            work.change[i] = -rate * (work.m[i] / unbias1) / (spread + self.epsilon);
        }
    }

    fn accept(&self, state: &mut AdamState, value: f64) -> Option<StopReason> {
        let work = &mut state.work;
        state.step_length = norm(&work.change);
        state.value = value;
        std::mem::swap(&mut state.u, &mut work.trial);
        std::mem::swap(&mut state.gradient, &mut work.gradient);
        std::mem::swap(&mut state.m, &mut work.m);
        std::mem::swap(&mut state.v, &mut work.v);
        state.iteration += 1;
        state.smoothed = self.smoothing * state.smoothed + (1.0 - self.smoothing) * value;
        let still = state.iteration.is_multiple_of(self.window) && self.is_still(state);
        state.over(self.limits()).or(still.then_some(StopReason::Value))
    }

    /// Looks at the smoothed value, and remembers it for the next look.
    fn is_still(&self, state: &mut AdamState) -> bool {
        let before = state.smoothed_before.replace(state.smoothed);
        let (Some(before), Some(tolerance)) = (before, self.value_tolerance) else { return false };
        (before - state.smoothed).abs() <= tolerance * before.abs().max(1.0)
    }
}

impl AdamState {
    /// Makes room for a step; errs when the parts of a state that was read do not fit together.
    fn prepare(&mut self) -> Result<()> {
        let n = self.u.len();
        let found = [self.gradient.len(), self.m.len(), self.v.len()];
        if found != [n; 3] {
            let expected = format!("gradient, m and v of {n} numbers");
            return Err(Error::shape("the state of Adam", expected, format!("{found:?}")));
        }
        let work = &mut self.work;
        for part in [&mut work.change, &mut work.trial, &mut work.gradient, &mut work.m, &mut work.v] {
            part.resize(n, 0.0);
        }
        Ok(())
    }
}

impl State for AdamState {
    fn view(&self) -> Step<'_> {
        Step {
            iteration: self.iteration,
            evaluations: self.evaluations,
            value: self.value,
            gradient_norm: max_abs(&self.gradient),
            step_length: self.step_length,
            u: &self.u,
        }
    }
}

impl Optimizer for Adam {
    fn minimize(&self, u: &mut [f64], f: &mut Objective<'_>, watch: &mut Watch<'_>) -> Result<Report> {
        let mut state = self.start(u, f)?;
        let report = self.resume(&mut state, f, watch);
        u.copy_from_slice(&state.u);
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optim::quiet;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const NEAR: f64 = 0.02;

    fn bowl(u: &[f64], g: &mut [f64]) -> Result<f64> {
        g.copy_from_slice(&[u[0] - 1.0, 50.0 * (u[1] + 2.0)]);
        Ok(0.5 * (u[0] - 1.0).powi(2) + 25.0 * (u[1] + 2.0).powi(2))
    }

    #[test]
    fn the_first_moves_are_those_of_the_formula() {
        let how = Adam { decay: 0.5, ..Adam::default() };
        let mut state = how.start(&[3.0, 0.0], &mut bowl).unwrap();
        let (mut u, mut g) = ([3.0, 0.0], [0.0; 2]);
        let (mut m, mut v) = ([0.0; 2], [0.0; 2]);
        for k in 1..=20 {
            assert_eq!(how.step(&mut state, &mut bowl), Ok(None));
            bowl(&u, &mut g).unwrap();
            for i in 0..2 {
                m[i] = 0.9 * m[i] + 0.1 * g[i];
                v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
                let (m, v) = (m[i] / (1.0 - 0.9f64.powi(k)), v[i] / (1.0 - 0.999f64.powi(k)));
                u[i] -= 0.01 / (1.0 + 0.5 * f64::from(k - 1)) * m / (v.sqrt() + 1e-8);
                assert!((state.u[i] - u[i]).abs() < 1e-12, "move {k}");
            }
        }
    }

    #[test]
    fn noise_is_averaged_away() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut noisy = |u: &[f64], g: &mut [f64]| {
            let value = bowl(u, g)?;
            g.iter_mut().for_each(|g| *g += rng.random_range(-1.0..1.0));
            Ok(value + rng.random_range(-1.0..1.0))
        };
        let mut u = [0.0, 0.0];
        let how = Adam { learning_rate: 0.05, decay: 0.01, max_iterations: 5000, ..Adam::default() };
        let report = how.minimize(&mut u, &mut noisy, &mut quiet).unwrap();
        assert_eq!((report.stop_reason, report.iterations), (StopReason::MaxIterations, 5000));
        assert_eq!(report.evaluations, 5001);
        assert!((u[0] - 1.0).abs() < NEAR && (u[1] + 2.0).abs() < NEAR, "{u:?}");
    }

    #[test]
    fn a_smoothed_value_that_rests_stops_the_run() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut noisy = |u: &[f64], g: &mut [f64]| Ok(bowl(u, g)? + 0.1 * rng.random_range(-1.0..1.0));
        let how = Adam { value_tolerance: Some(0.02), max_iterations: 100_000, ..Adam::default() };
        let mut u = [3.0, 0.0];
        let report = how.minimize(&mut u, &mut noisy, &mut quiet).unwrap();
        assert_eq!((report.stop_reason, report.converged), (StopReason::Value, true));
        assert!(report.iterations < 2000 && bowl(&u, &mut [0.0; 2]).unwrap() < 0.1, "{u:?} {report:?}");
    }

    #[test]
    fn a_move_over_a_wall_is_halved_until_it_fits() {
        let wall = |u: &[f64], g: &mut [f64]| {
            if u[0] < 2.0 {
                return Err(Error::NotPositiveDefinite { what: "K".into(), jitter: 0.0 });
            }
            bowl(u, g)
        };
        let mut u = [2.005, -1.9];
        let report = Adam::default().minimize(&mut u, &mut { wall }, &mut quiet).unwrap();
        assert_eq!((report.stop_reason, report.converged), (StopReason::LineSearch, false));
        assert!(u[0] >= 2.0 && u[0] < 2.005 && report.iterations > 0, "{u:?}");
        let never = |u: &[f64], g: &mut [f64]| if u == [3.0, 0.0] { bowl(u, g) } else { Ok(f64::NAN) };
        let mut u = [3.0, 0.0];
        let report = Adam::default().minimize(&mut u, &mut { never }, &mut quiet).unwrap();
        assert_eq!((report.stop_reason, report.evaluations), (StopReason::LineSearch, 12));
        assert_eq!(u, [3.0, 0.0]);
    }

    #[test]
    fn plains_empty_vectors_and_bad_settings() {
        let mut flat = |_: &[f64], g: &mut [f64]| {
            g.fill(0.0);
            Ok(2.0)
        };
        for u in [&mut [][..], &mut [4.0]] {
            let report = Adam::default().minimize(u, &mut flat, &mut quiet).unwrap();
            assert_eq!((report.evaluations, report.stop_reason), (1, StopReason::Gradient));
        }
        for bad in [
            Adam { learning_rate: f64::NAN, ..Adam::default() },
            Adam { beta2: 1.0, ..Adam::default() },
            Adam { epsilon: 0.0, ..Adam::default() },
            Adam { window: 0, ..Adam::default() },
            Adam { value_tolerance: Some(-1.0), ..Adam::default() },
        ] {
            let found = bad.minimize(&mut [1.0], &mut flat, &mut quiet);
            assert!(matches!(found, Err(Error::Invalid { .. })), "{bad:?}");
        }
        let mut error = |_: &[f64], _: &mut [f64]| Err(Error::Interrupted);
        assert_eq!(Adam::default().start(&[1.0], &mut error).unwrap_err(), Error::Interrupted);
    }

    #[test]
    fn gradients_near_the_largest_number_still_move() {
        let mut steep = |u: &[f64], g: &mut [f64]| {
            g[0] = 1e300 * u[0].signum();
            Ok(u[0].abs())
        };
        let mut u = [1.0];
        Adam { max_iterations: 5, ..Adam::default() }.minimize(&mut u, &mut steep, &mut quiet).unwrap();
        assert!(u[0].is_finite());
    }
}
