//! L-BFGS: quasi-Newton steps from the last few changes of u and of the gradient.
//!
//! ```text
//! s = u₊ − u    y = g₊ − g    ρ = 1/sᵀy    γ = sᵀy/yᵀy    H₊ = (I − ρsyᵀ) H (I − ρysᵀ) + ρssᵀ,  H₀ = γI
//! d = −Hg, by two loops over the pairs (s, y)    u₊ = u + t·d, with t from a strong Wolfe line search
//! ```
//!
//! Nocedal and Wright, *Numerical Optimization*, algorithm 7.5. The first step has length 1 along −g. Pairs
//! without positive curvature are left out. When a search fails, the history is dropped and −g is tried
//! before the run gives up. The value never goes up.

use super::line_search::{LineSearch, Verdict};
use super::{Objective, Optimizer, Report, State, Step, StopReason, Watch};
use super::{dot, evaluate, evaluate_first, max_abs, norm, require, run};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// L-BFGS for smooth, exact objectives.
///
/// The tolerances mean the same as `gtol` and `ftol` of SciPy's L-BFGS-B. `start` and `step` expose the run
/// for checkpoints; [`minimize`](Optimizer::minimize) is a loop over them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lbfgs {
    /// How many pairs (s, y) are kept.
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
            memory: 10,
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
    /// How many pairs there is room for.
    pub memory: usize,
    /// How many pairs are kept.
    pub pairs: usize,
    /// The place of the next pair, in a ring of `memory` places.
    pub next: usize,
    /// The changes of u, `memory` × n.
    pub s: Vec<f64>,
    /// The changes of the gradient, `memory` × n.
    pub y: Vec<f64>,
    /// 1/sᵀy of each pair.
    pub rho: Vec<f64>,
    /// sᵀy/yᵀy of the last pair.
    pub gamma: f64,
    /// Accepted iterations.
    pub iteration: usize,
    /// Evaluations of the objective.
    pub evaluations: usize,
    /// ‖Δu‖₂ of the last iteration.
    pub step_length: f64,
    #[serde(skip)]
    work: Work,
}

/// Room for one iteration; nothing in it outlives a step.
#[derive(Clone, Debug, Default)]
struct Work {
    direction: Vec<f64>,
    trial: Vec<f64>,
    trial_gradient: Vec<f64>,
    found: Vec<f64>,
    found_gradient: Vec<f64>,
    alpha: Vec<f64>,
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
        let room = self.memory.checked_mul(n).ok_or_else(|| {
            Error::invalid("memory of L-BFGS", "a number of pairs that fits in memory", self.memory)
        })?;
        let mut gradient = vec![0.0; n];
        let value = evaluate_first(u0, &mut gradient, f)?;
        Ok(LbfgsState {
            u: u0.to_vec(),
            value,
            gradient,
            memory: self.memory,
            pairs: 0,
            next: 0,
            s: vec![0.0; room],
            y: vec![0.0; room],
            rho: vec![0.0; self.memory],
            gamma: 1.0,
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
    pub fn step(&self, state: &mut LbfgsState, f: &mut Objective<'_>) -> Result<Option<StopReason>> {
        self.check()?;
        state.prepare()?;
        if let Some(stop) = self.limits(state) {
            return Ok(Some(stop));
        }
        loop {
            let slope = state.aim();
            let fresh = state.pairs == 0;
            let counted = state.evaluations;
            let found = self.search(state, slope, f).inspect_err(|_| state.evaluations = counted)?;
            match found {
                Some(found) => return Ok(self.accept(state, found, fresh)),
                None if state.evaluations >= self.max_evaluations => {
                    return Ok(Some(StopReason::MaxEvaluations));
                }
                None if fresh => return Ok(Some(StopReason::LineSearch)),
                None => state.forget(),
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
        require(
            0.0 < c1 && c1 < c2 && c2 < 1.0,
            "sufficient_decrease and curvature of L-BFGS",
            "0 < sufficient_decrease < curvature < 1",
            format!("{c1} and {c2}"),
        )
    }

    fn limits(&self, state: &LbfgsState) -> Option<StopReason> {
        if max_abs(&state.gradient) <= self.gradient_tolerance {
            Some(StopReason::Gradient)
        } else if state.iteration >= self.max_iterations {
            Some(StopReason::MaxIterations)
        } else if state.evaluations >= self.max_evaluations {
            Some(StopReason::MaxEvaluations)
        } else {
            None
        }
    }

    /// Searches along the direction; `None` when no lower point was found.
    fn search(&self, state: &mut LbfgsState, slope: f64, f: &mut Objective<'_>) -> Result<Option<Found>> {
        // A direction without history has length 1; the last step is then the best guess of a scale.
        let mut t = if state.pairs == 0 && state.step_length > 0.0 { state.step_length.min(1.0) } else { 1.0 };
        let mut line = LineSearch::new(state.value, slope, t, self.sufficient_decrease, self.curvature);
        let (mut best_t, mut best_value) = (0.0, state.value);
        let budget = self.max_trials.min(self.max_evaluations - state.evaluations);
        for _ in 0..budget {
            let work = &mut state.work;
            for ((trial, u), d) in work.trial.iter_mut().zip(&state.u).zip(&work.direction) {
                *trial = u + t * d;
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
        std::mem::swap(&mut state.u, &mut state.work.found);
        std::mem::swap(&mut state.gradient, &mut state.work.found_gradient);
        state.iteration += 1;
        let scale = before.abs().max(found.value.abs()).max(1.0);
        let still = before - found.value <= self.value_tolerance * scale;
        match self.limits(state) {
            Some(StopReason::Gradient) => Some(StopReason::Gradient),
            // A step that was cut short at a wall is small for that reason; −g may lead away from it.
            _ if still && found.blocked && !fresh => {
                state.forget();
                self.limits(state)
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
        let room = self.memory.checked_mul(n);
        let fits = self.gradient.len() == n
            && Some(self.s.len()) == room
            && Some(self.y.len()) == room
            && self.rho.len() == self.memory
            && self.pairs <= self.memory
            && self.next < self.memory;
        if !fits {
            let expected = format!("{} pairs of {n} numbers", self.memory);
            let found = format!("{} and {} numbers", self.s.len(), self.y.len());
            return Err(Error::shape("the state of L-BFGS", expected, found));
        }
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
        work.alpha.resize(self.memory, 0.0);
        Ok(())
    }

    /// Points the direction downhill and returns its slope: −Hg, or −g/‖g‖ when that is of no use.
    fn aim(&mut self) -> f64 {
        if self.pairs > 0 {
            self.two_loops();
            let slope = dot(&self.gradient, &self.work.direction);
            if slope < 0.0 && slope.is_finite() {
                return slope;
            }
            self.forget();
        }
        let length = norm(&self.gradient);
        for (d, g) in self.work.direction.iter_mut().zip(&self.gradient) {
            *d = -g / length;
        }
        -length
    }

    /// direction = −Hg.
    fn two_loops(&mut self) {
        let n = self.u.len();
        let d = &mut self.work.direction;
        d.copy_from_slice(&self.gradient);
        // The last pair first; the ring starts anew behind its end.
        let place = |age: usize| (self.next + self.memory - 1 - age) % self.memory;
        for age in 0..self.pairs {
            let at = place(age);
            let (s, y) = (&self.s[at * n..][..n], &self.y[at * n..][..n]);
            let alpha = self.rho[at] * dot(s, d);
            self.work.alpha[at] = alpha;
            add_scaled(d, -alpha, y);
        }
        d.iter_mut().for_each(|d| *d *= self.gamma);
        for age in (0..self.pairs).rev() {
            let at = place(age);
            let (s, y) = (&self.s[at * n..][..n], &self.y[at * n..][..n]);
            let beta = self.rho[at] * dot(y, d);
            add_scaled(d, self.work.alpha[at] - beta, s);
        }
        d.iter_mut().for_each(|d| *d = -*d);
    }

    /// Adds the pair of a step of t along the direction, if the curvature along it is positive.
    fn remember(&mut self, t: f64) {
        let n = self.u.len();
        let work = &mut self.work;
        // The trial's room is free once a point was found.
        let (s, y) = (&mut work.trial, &mut work.trial_gradient);
        for i in 0..n {
            s[i] = t * work.direction[i];
            y[i] = work.found_gradient[i] - self.gradient[i];
        }
        let (sy, yy, descent) = (dot(s, y), dot(y, y), -dot(s, &self.gradient));
        let (rho, gamma) = (1.0 / sy, sy / yy);
        let usable = sy > f64::EPSILON * descent && rho.is_finite() && gamma.is_finite() && gamma > 0.0;
        if usable {
            self.s[self.next * n..][..n].copy_from_slice(s);
            self.y[self.next * n..][..n].copy_from_slice(y);
            self.rho[self.next] = rho;
            self.gamma = gamma;
            self.next = (self.next + 1) % self.memory;
            self.pairs = (self.pairs + 1).min(self.memory);
        }
    }

    /// Drops the history.
    fn forget(&mut self) {
        self.pairs = 0;
        self.next = 0;
    }
}

fn add_scaled(to: &mut [f64], scale: f64, from: &[f64]) {
    for (a, b) in to.iter_mut().zip(from) {
        *a += scale * b;
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
