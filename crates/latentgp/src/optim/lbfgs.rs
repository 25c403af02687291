//! L-BFGS: quasi-Newton steps from the last few changes of u and of the gradient.
//!
//! ```text
//! u₊ = u + t·d    d = −Hg    t from a strong Wolfe line search
//! ```
//!
//! H comes from the last few changes of u and g, see [`History`]; Nocedal and Wright, *Numerical Optimization*,
//! algorithm 7.5. The first step has length 1 along −g. When a search fails, the history is dropped and −g is
//! tried before the run gives up. The value never goes up.

use super::history::{History, Products};
use super::line_search::{LineSearch, Verdict};
use super::{Limits, Objective, Optimizer, Report, State, Step, StopReason, Watch};
use super::{dot, evaluate, evaluate_first, max_abs, norm, require, run};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// L-BFGS for smooth, exact objectives.
///
/// The tolerances mean the same as `gtol` and `ftol` of SciPy's L-BFGS-B. `start` and `step` expose the run
/// for checkpoints; [`minimize`](Optimizer::minimize) is a loop over them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lbfgs {
    /// How many changes of u and of the gradient are kept. The functions of `tests/optim` took 20062, 17177 and
    /// 14919 evaluations in all with 10, 20 and 30, the default, which holds 60 n numbers.
    pub memory: usize,
    /// Most iterations.
    pub max_iterations: usize,
    /// Most evaluations of the objective.
    pub max_evaluations: usize,
    /// Stops when max |∂f/∂u| is no more than this.
    pub gradient_tolerance: f64,
    /// Stops when an iteration lowers f by no more than this times max(|f|, |f₊|, 1).
    pub value_tolerance: f64,
    /// c₁ of the line search.
    pub sufficient_decrease: f64,
    /// c₂ of the line search.
    pub curvature: f64,
    /// Most evaluations in one line search.
    pub max_trials: usize,
}

impl Default for Lbfgs {
    fn default() -> Self {
        Lbfgs {
            memory: 30,
            max_iterations: 15_000,
            max_evaluations: 15_000,
            gradient_tolerance: 1e-5,
            value_tolerance: 2.2e-9,
            sufficient_decrease: 1e-3,
            curvature: 0.9,
            max_trials: 20,
        }
    }
}

/// Everything that a run of [`Lbfgs`] knows between two steps; stored and read back exactly, the run goes on
/// to the same bits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LbfgsState {
    /// The best point so far.
    pub u: Vec<f64>,
    /// f(u).
    pub value: f64,
    /// ∂f/∂u.
    pub gradient: Vec<f64>,
    /// The last changes of u and of the gradient.
    pub history: History,
    /// Accepted iterations.
    pub iteration: usize,
    /// Evaluations of the objective.
    pub evaluations: usize,
    /// ‖Δu‖₂ of the last iteration.
    pub step_length: f64,
    /// Whether the objective could not be evaluated at some trial of the last iteration.
    pub blocked: bool,
    #[serde(skip)]
    work: Work,
}

/// Working memory for one iteration. Only the products of the history outlive a step; they are computed again where they are
/// missing.
#[derive(Clone, Debug, Default)]
struct Work {
    direction: Vec<f64>,
    trial: Vec<f64>,
    trial_gradient: Vec<f64>,
    found: Vec<f64>,
    found_gradient: Vec<f64>,
    /// In a box, as an enum holds a state beside smaller variants.
    products: Box<Products>,
}

/// What a line search left in `found` and `found_gradient`.
struct Found {
    t: f64,
    value: f64,
    /// Whether some trial could not be evaluated, so that the step says little about convergence.
    blocked: bool,
}

impl Lbfgs {
    /// Evaluates the objective at `u0` and sets up a run from there.
    ///
    /// # Errors
    /// What the objective says at `u0`; [`Error::NotFinite`]; [`Error::Invalid`] for a setting.
    pub fn start(&self, u0: &[f64], f: &mut Objective<'_>) -> Result<LbfgsState> {
        self.check()?;
        let n = u0.len();
        let history = History::new(self.memory, n)?;
        let mut gradient = vec![0.0; n];
        let value = evaluate_first(u0, &mut gradient, f)?;
        Ok(LbfgsState {
            u: u0.to_vec(),
            value,
            gradient,
            history,
            iteration: 0,
            evaluations: 1,
            step_length: 0.0,
            blocked: false,
            work: Work::default(),
        })
    }

    /// One iteration; says why the run is over when it is.
    ///
    /// # Errors
    /// What the objective says, unless it means "step back"; the state is then as if the step had not been
    /// asked for, and can go on. [`Error::Shape`] for a state whose parts do not fit together.
    pub fn step(&self, state: &mut LbfgsState, f: &mut Objective<'_>) -> Result<Option<StopReason>> {
        self.check()?;
        state.prepare()?;
        if let Some(stop) = state.over(self.limits()) {
            return Ok(Some(stop));
        }
        loop {
            let slope = state.aim();
            let fresh = state.history.pairs == 0;
            let counted = state.evaluations;
            let found = self.search(state, slope, f).inspect_err(|_| state.evaluations = counted)?;
            match found {
                Some(found) => return Ok(self.accept(state, found, fresh)),
                None if state.evaluations >= self.max_evaluations => {
                    return Ok(Some(StopReason::MaxEvaluations));
                }
                None if fresh => return Ok(Some(StopReason::LineSearch)),
                None => state.history.clear(),
            }
        }
    }

    /// Goes on from a state until the run is over.
    ///
    /// # Errors
    /// As [`step`](Self::step); the state then holds the best point.
    pub fn resume(
        &self,
        state: &mut LbfgsState,
        f: &mut Objective<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Report> {
        run(state, watch, |state| self.step(state, f))
    }

    fn check(&self) -> Result<()> {
        let (c1, c2) = (self.sufficient_decrease, self.curvature);
        require(self.memory > 0, "memory of L-BFGS", "at least 1", self.memory)?;
        require(self.max_trials > 0, "max_trials of L-BFGS", "at least 1", self.max_trials)?;
        require(self.gradient_tolerance >= 0.0, "gradient_tolerance", "0 or more", self.gradient_tolerance)?;
        require(self.value_tolerance >= 0.0, "value_tolerance", "0 or more", self.value_tolerance)?;
        require(0.0 < c2 && c2 < 1.0, "curvature of L-BFGS", "between 0 and 1", c2)?;
        require(0.0 < c1 && c1 < c2, "sufficient_decrease of L-BFGS", "between 0 and curvature", c1)
    }

    fn limits(&self) -> Limits {
        Limits {
            gradient_tolerance: self.gradient_tolerance,
            max_iterations: self.max_iterations,
            max_evaluations: self.max_evaluations,
        }
    }

    /// Searches along the direction; `None` when no lower point was found.
    fn search(&self, state: &mut LbfgsState, slope: f64, f: &mut Objective<'_>) -> Result<Option<Found>> {
        let mut t = state.first_trial();
        let mut line = LineSearch::new(state.value, slope, t, self.sufficient_decrease, self.curvature);
        let (mut best_t, mut best_value) = (0.0, state.value);
        let budget = self.max_trials.min(self.max_evaluations - state.evaluations);
        for _ in 0..budget {
            let work = &mut state.work;
            for ((trial, u), d) in work.trial.iter_mut().zip(&state.u).zip(&work.direction) {
                *trial = u + t * d;
            }
            // A step lost in rounding would be accepted for nothing.
            if work.trial == state.u {
                break;
            }
            state.evaluations += 1;
            let value = evaluate(&work.trial, &mut work.trial_gradient, f)?;
            let slope = dot(&work.trial_gradient, &work.direction);
            let verdict = match value.filter(|_| slope.is_finite()) {
                None => line.fail(),
                Some(value) => {
                    let verdict = line.observe(value, slope);
                    if verdict == Verdict::Accept || value < best_value {
                        std::mem::swap(&mut work.found, &mut work.trial);
                        std::mem::swap(&mut work.found_gradient, &mut work.trial_gradient);
                        (best_t, best_value) = (t, value);
                    }
                    verdict
                }
            };
            match verdict {
                Verdict::Try(next) => t = next,
                Verdict::Accept | Verdict::Exhausted => break,
            }
        }
        let blocked = line.failures() > 0;
        Ok((best_t > 0.0).then_some(Found { t: best_t, value: best_value, blocked }))
    }

    /// Moves to the point found, remembers its pair, and tests for the end.
    fn accept(&self, state: &mut LbfgsState, found: Found, fresh: bool) -> Option<StopReason> {
        let before = state.value;
        state.remember(found.t);
        state.step_length = found.t * norm(&state.work.direction);
        state.value = found.value;
        state.blocked = found.blocked;
        std::mem::swap(&mut state.u, &mut state.work.found);
        std::mem::swap(&mut state.gradient, &mut state.work.found_gradient);
        state.iteration += 1;
        let scale = before.abs().max(found.value.abs()).max(1.0);
        let still = before - found.value <= self.value_tolerance * scale;
        match state.over(self.limits()) {
            Some(StopReason::Gradient) => Some(StopReason::Gradient),
            // A step that was cut short at a wall is small for that reason; −g may lead away from it.
            _ if still && found.blocked && !fresh => {
                state.history.clear();
                state.over(self.limits())
            }
            _ if still && found.blocked => Some(StopReason::LineSearch),
            _ if still => Some(StopReason::Value),
            other => other,
        }
    }
}

impl LbfgsState {
    /// Makes room for a step; errs when the parts of a state that was read do not fit together.
    fn prepare(&mut self) -> Result<()> {
        let n = self.u.len();
        if self.gradient.len() != n {
            let expected = format!("a gradient of {n} numbers");
            return Err(Error::shape("the state of L-BFGS", expected, self.gradient.len()));
        }
        self.history.check(n)?;
        let work = &mut self.work;
        for part in [
            &mut work.direction,
            &mut work.trial,
            &mut work.trial_gradient,
            &mut work.found,
            &mut work.found_gradient,
        ] {
            part.resize(n, 0.0);
        }
        work.products.prepare(self.history.memory, n);
        Ok(())
    }

    /// Points the direction downhill and returns its slope: −Hg, or −g/‖g‖ when that is of no use.
    fn aim(&mut self) -> f64 {
        if self.history.pairs > 0 {
            let work = &mut self.work;
            work.direction.copy_from_slice(&self.gradient);
            self.history.apply(&mut work.direction, &mut work.products);
            work.direction.iter_mut().for_each(|d| *d = -*d);
            let slope = dot(&self.gradient, &work.direction);
            if slope < 0.0 && slope.is_finite() {
                return slope;
            }
            self.history.clear();
        }
        let length = norm(&self.gradient);
        for (d, g) in self.work.direction.iter_mut().zip(&self.gradient) {
            *d = -g / length;
        }
        -length
    }

    /// The first t to try: 1 where H sets the scale, else a length of 1 or that of the last step; behind a step
    /// that a wall cut short, no more than twice its length.
    fn first_trial(&self) -> f64 {
        let last = self.step_length;
        let t = if self.history.pairs == 0 && last > 0.0 { last.min(1.0) } else { 1.0 };
        if self.blocked { t.min(2.0 * last / norm(&self.work.direction)) } else { t }
    }

    /// Hands the pair of a step of t along the direction to the history.
    fn remember(&mut self, t: f64) {
        let work = &mut self.work;
        // The memory of the trial is free once a point was found.
        let (s, y) = (&mut work.trial, &mut work.trial_gradient);
        for i in 0..s.len() {
            s[i] = t * work.direction[i];
            y[i] = work.found_gradient[i] - self.gradient[i];
        }
        self.history.push(s, y, -dot(s, &self.gradient));
    }
}

impl State for LbfgsState {
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

impl Optimizer for Lbfgs {
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
    use std::ops::ControlFlow;

    fn bowl(u: &[f64], g: &mut [f64]) -> Result<f64> {
        let mut f = 0.0;
        for (i, (u, g)) in u.iter().zip(g.iter_mut()).enumerate() {
            let weight = 1.0 + 10.0 * i as f64;
            *g = weight * (u - 1.0).sinh();
            f += weight * (u - 1.0).cosh();
        }
        Ok(f)
    }

    fn minimize(u: &mut [f64], mut f: impl FnMut(&[f64], &mut [f64]) -> Result<f64>) -> Result<Report> {
        Lbfgs::default().minimize(u, &mut f, &mut quiet)
    }

    #[test]
    fn starts_at_the_optimum_or_without_variables_or_on_a_plain() {
        let report = minimize(&mut [1.0; 3], bowl).unwrap();
        assert_eq!((report.iterations, report.evaluations), (0, 1));
        assert_eq!((report.converged, report.stop_reason), (true, StopReason::Gradient));
        let report = minimize(&mut [], |_, _| Ok(5.0)).unwrap();
        assert_eq!((report.value, report.evaluations, report.converged), (5.0, 1, true));
        let mut u = [3.0, 4.0];
        let report = minimize(&mut u, |_, g| {
            g.fill(0.0);
            Ok(7.0)
        });
        assert_eq!((u, report.unwrap().stop_reason), ([3.0, 4.0], StopReason::Gradient));
    }

    #[test]
    fn the_first_point_must_be_good() {
        let indefinite = || Error::NotPositiveDefinite { what: "K".into(), jitter: 0.0 };
        let mut u = [2.0];
        assert_eq!(minimize(&mut u, |_, _| Err(indefinite())), Err(indefinite()));
        assert!(matches!(minimize(&mut u, |_, _| Ok(f64::NAN)), Err(Error::NotFinite { .. })));
        assert!(matches!(minimize(&mut [f64::NAN], bowl), Err(Error::NotFinite { .. })));
        assert_eq!(u, [2.0]);
    }

    #[test]
    fn settings_outside_their_domain_are_errors() {
        for bad in [
            Lbfgs { memory: 0, ..Lbfgs::default() },
            Lbfgs { max_trials: 0, ..Lbfgs::default() },
            Lbfgs { gradient_tolerance: f64::NAN, ..Lbfgs::default() },
            Lbfgs { value_tolerance: -1.0, ..Lbfgs::default() },
            Lbfgs { sufficient_decrease: 0.95, ..Lbfgs::default() },
        ] {
            assert!(matches!(bad.minimize(&mut [2.0], &mut bowl, &mut quiet), Err(Error::Invalid { .. })));
        }
    }

    #[test]
    fn limits_and_requests_stop_the_run_and_keep_the_best() {
        let start = [6.0, -4.0, 5.0, 9.0];
        let highest = bowl(&start, &mut [0.0; 4]).unwrap();
        for (how, reason) in [
            (Lbfgs { max_iterations: 3, ..Lbfgs::default() }, StopReason::MaxIterations),
            (Lbfgs { max_evaluations: 4, ..Lbfgs::default() }, StopReason::MaxEvaluations),
        ] {
            let mut u = start;
            let report = how.minimize(&mut u, &mut bowl, &mut quiet).unwrap();
            assert_eq!((report.stop_reason, report.converged), (reason, false));
            assert!(report.iterations <= 3 && report.evaluations <= 8);
            assert_eq!(bowl(&u, &mut [0.0; 4]).unwrap(), report.value);
            assert!(report.value < highest);
        }
        let mut u = start;
        let mut seen = Vec::new();
        let report = Lbfgs::default().minimize(&mut u, &mut bowl, &mut |step| {
            seen.push((step.iteration, step.value, step.u.to_vec()));
            if step.iteration == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(report.unwrap().stop_reason, StopReason::Asked);
        assert_eq!((seen.len(), seen[1].0, &seen[1].2[..]), (2, 2, &u[..]));
        assert!(seen[1].1 < seen[0].1 && seen[0].1 < highest);
    }

    #[test]
    fn another_error_ends_the_run_at_the_best_point() {
        let mut calls = 0;
        let mut u = [6.0, -4.0];
        let found = minimize(&mut u, |u, g| {
            calls += 1;
            if calls > 6 { Err(Error::Interrupted) } else { bowl(u, g) }
        });
        assert_eq!(found, Err(Error::Interrupted));
        assert!(bowl(&u, &mut [0.0; 2]).unwrap() < bowl(&[6.0, -4.0], &mut [0.0; 2]).unwrap());
    }

    #[test]
    fn a_wrong_gradient_is_no_endless_loop() {
        // Uphill everywhere by its own account: every search fails, the second one along −g.
        let mut u = [1.0, 2.0];
        let report = minimize(&mut u, |u, g| {
            g.iter_mut().zip(u).for_each(|(g, u)| *g = -u);
            Ok(0.5 * u.iter().map(|u| u * u).sum::<f64>())
        });
        assert_eq!(report.unwrap().stop_reason, StopReason::LineSearch);
        assert_eq!(u, [1.0, 2.0]);
    }

    #[test]
    fn a_history_that_misleads_is_dropped() {
        let mut f = bowl;
        let how = Lbfgs::default();
        let mut state = how.start(&[4.0, -2.0, 3.0], &mut f).unwrap();
        (0..3).for_each(|_| assert_eq!(how.step(&mut state, &mut f), Ok(None)));
        // A scale this wrong sends every trial of the first search out of reach.
        state.history.gamma = 1e150;
        let before = state.value;
        how.step(&mut state, &mut f).unwrap();
        assert!(state.value < before);
        assert!(how.resume(&mut state, &mut f, &mut quiet).unwrap().converged);
    }

    #[test]
    fn huge_and_tiny_gradients_do_not_overflow() {
        for scale in [1e200, 1e-200] {
            let mut u = [5.0, -7.0];
            let how = Lbfgs { gradient_tolerance: 1e-6 * scale, value_tolerance: 0.0, ..Lbfgs::default() };
            let mut f = |u: &[f64], g: &mut [f64]| {
                g.iter_mut().zip(u).for_each(|(g, u)| *g = scale * u);
                Ok(0.5 * scale * (u[0] * u[0] + u[1] * u[1]))
            };
            let report = how.minimize(&mut u, &mut f, &mut quiet).unwrap();
            assert!(report.stop_reason != StopReason::MaxIterations, "{report:?}");
            assert!(u.iter().all(|u| u.abs() < 1e-5), "{scale}: {u:?} {report:?}");
        }
    }
}
