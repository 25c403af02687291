//! Minimisation of f(u) with its gradient: [`Lbfgs`] for exact objectives, [`Adam`] for noisy ones.
//!
//! An objective writes ∂f/∂u and returns f(u). Where it cannot be evaluated (a matrix is not positive
//! definite, a number is not finite) the optimiser takes a shorter step; only the starting point must be
//! good. Constraints are the business of [`Transform`](crate::param::Transform): u is free.
//!
//! ```
//! use latentgp::optim::{Lbfgs, Optimizer, quiet};
//! let mut u = [3.0, -1.0];
//! let mut bowl = |u: &[f64], g: &mut [f64]| {
//!     g.copy_from_slice(&[2.0 * (u[0] - 1.0), 20.0 * u[1]]);
//!     Ok((u[0] - 1.0).powi(2) + 10.0 * u[1].powi(2))
//! };
//! let report = Lbfgs::default().minimize(&mut u, &mut bowl, &mut quiet)?;
//! assert!(report.converged && (u[0] - 1.0).abs() < 1e-5);
//! # Ok::<(), latentgp::Error>(())
//! ```

mod adam;
mod history;
mod lbfgs;
mod line_search;

pub use adam::{Adam, AdamState};
pub use history::History;
pub use lbfgs::{Lbfgs, LbfgsState};

use crate::error::{Error, Result};
use crate::mat::all_finite;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::ControlFlow;

/// f: takes u, overwrites the gradient, returns the value.
///
/// [`Error::NotPositiveDefinite`], [`Error::NotFinite`] and numbers that are not finite mean "not here, step
/// back"; any other error, such as [`Error::Interrupted`], ends the run.
pub type Objective<'a> = dyn FnMut(&[f64], &mut [f64]) -> Result<f64> + 'a;

/// Sees every accepted iteration; [`ControlFlow::Break`] stops the run, and the state so far is kept.
pub type Watch<'a> = dyn FnMut(&Step<'_>) -> ControlFlow<()> + 'a;

/// A [`Watch`] that lets everything pass.
pub fn quiet(_: &Step<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// An accepted iteration.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Iterations so far, from 1.
    pub iteration: usize,
    /// Evaluations of the objective so far.
    pub evaluations: usize,
    /// f(u).
    pub value: f64,
    /// max |∂f/∂u|.
    pub gradient_norm: f64,
    /// ‖Δu‖₂, the distance moved in this iteration.
    pub step_length: f64,
    /// Where the iteration ended.
    pub u: &'a [f64],
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The gradient is within its tolerance.
    Gradient,
    /// The value changes by no more than its tolerance.
    Value,
    /// The iterations allowed are used up.
    MaxIterations,
    /// The evaluations allowed are used up.
    MaxEvaluations,
    /// No acceptable step exists in the direction of descent.
    LineSearch,
    /// The caller asked to stop.
    Asked,
    /// There was nothing to iterate: the optimum has a formula.
    ClosedForm,
}

impl StopReason {
    /// Whether it is a minimum, within the tolerances, that ended the run.
    pub fn converged(self) -> bool {
        matches!(self, StopReason::Gradient | StopReason::Value | StopReason::ClosedForm)
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StopReason::Gradient => "the gradient is within its tolerance",
            StopReason::Value => "the value no longer changes beyond its tolerance",
            StopReason::MaxIterations => "the limit of iterations was reached",
            StopReason::MaxEvaluations => "the limit of evaluations was reached",
            StopReason::LineSearch => "no step along the direction of descent was acceptable",
            StopReason::Asked => "stopped on request",
            StopReason::ClosedForm => "closed form",
        })
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// f at the u that is returned.
    pub value: f64,
    /// Accepted iterations.
    pub iterations: usize,
    /// Evaluations of the objective, each of value and gradient.
    pub evaluations: usize,
    /// Whether the run ended at a minimum, within the tolerances.
    pub converged: bool,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// max |∂f/∂u| at the u that is returned.
    pub gradient_norm: f64,
}

/// A method of minimisation.
pub trait Optimizer: Send + Sync {
    /// Moves u to a lower f, and leaves it at the best point found, after an error too.
    ///
    /// # Errors
    /// The objective's own error when it cannot be evaluated at the first u, and at any point those errors
    /// that do not mean "step back"; [`Error::Invalid`] for a setting outside its domain.
    fn minimize(&self, u: &mut [f64], f: &mut Objective<'_>, watch: &mut Watch<'_>) -> Result<Report>;
}

/// What a run between two steps knows of itself, whatever the method.
trait State {
    fn view(&self) -> Step<'_>;

    /// Why the run is over where it stands, if it is.
    fn over(&self, limits: Limits) -> Option<StopReason> {
        let at = self.view();
        if at.gradient_norm <= limits.gradient_tolerance {
            Some(StopReason::Gradient)
        } else if at.iteration >= limits.max_iterations {
            Some(StopReason::MaxIterations)
        } else if at.evaluations >= limits.max_evaluations {
            Some(StopReason::MaxEvaluations)
        } else {
            None
        }
    }
}

/// When any run is over, whatever the method.
struct Limits {
    gradient_tolerance: f64,
    max_iterations: usize,
    max_evaluations: usize,
}

/// Repeats `step` until it or the watch says why to stop.
fn run<S: State>(
    state: &mut S,
    watch: &mut Watch<'_>,
    mut step: impl FnMut(&mut S) -> Result<Option<StopReason>>,
) -> Result<Report> {
    loop {
        let before = state.view().iteration;
        let mut stop = step(state)?;
        let now = state.view();
        if now.iteration > before && watch(&now).is_break() {
            stop = stop.or(Some(StopReason::Asked));
        }
        if let Some(stop_reason) = stop {
            return Ok(Report {
                value: now.value,
                iterations: now.iteration,
                evaluations: now.evaluations,
                converged: stop_reason.converged(),
                stop_reason,
                gradient_norm: now.gradient_norm,
            });
        }
    }
}

/// f at the first u, where there is nowhere to step back to.
fn evaluate_first(u: &[f64], gradient: &mut [f64], f: &mut Objective<'_>) -> Result<f64> {
    if !all_finite(u) {
        return Err(Error::not_finite("the starting point of the optimiser"));
    }
    let value = f(u, gradient)?;
    if !value.is_finite() {
        return Err(Error::not_finite("the objective at the starting point"));
    }
    if !all_finite(gradient) {
        return Err(Error::not_finite("the gradient at the starting point"));
    }
    Ok(value)
}

/// f at a trial point; `None` where the optimiser has to step back.
fn evaluate(u: &[f64], gradient: &mut [f64], f: &mut Objective<'_>) -> Result<Option<f64>> {
    if !all_finite(u) {
        return Ok(None);
    }
    match f(u, gradient) {
        Ok(value) => Ok((value.is_finite() && all_finite(gradient)).then_some(value)),
        Err(Error::NotPositiveDefinite { .. } | Error::NotFinite { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

fn max_abs(a: &[f64]) -> f64 {
    a.iter().fold(0.0, |m, x| m.max(x.abs()))
}

/// ‖a‖₂, without overflow or underflow of the squares.
fn norm(a: &[f64]) -> f64 {
    let scale = max_abs(a);
    if scale == 0.0 || !scale.is_finite() {
        return scale;
    }
    scale * a.iter().map(|x| (x / scale).powi(2)).sum::<f64>().sqrt()
}

/// Σ a_i b_i in eight interleaved sums, which the compiler can keep in vector registers.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let (a8, b8) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = a8.remainder().iter().zip(b8.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a8.zip(b8) {
        for k in 0..LANES {
            sums[k] += x[k] * y[k];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// Errs unless `ok`, naming the setting.
fn require(ok: bool, what: &str, expected: &str, found: impl ToString) -> Result<()> {
    if ok { Ok(()) } else { Err(Error::invalid(what, expected, found)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_and_norm_agree_with_plain_sums() {
        let a: Vec<f64> = (0..21).map(|i| (i as f64).sin()).collect();
        let plain: f64 = a.iter().map(|x| x * x).sum();
        assert!((dot(&a, &a) - plain).abs() < 1e-14 * plain);
        assert!((norm(&a) - plain.sqrt()).abs() < 1e-14 * plain);
        assert!((norm(&[3e200, 4e200]) / 5e200 - 1.0).abs() < 1e-15);
        assert_eq!((norm(&[]), norm(&[0.0]), dot(&[], &[])), (0.0, 0.0, 0.0));
    }

    #[test]
    fn a_trial_that_cannot_be_evaluated_is_none_and_other_errors_pass() {
        let mut g = [0.0];
        let mut at = |f: &mut Objective<'_>| evaluate(&[1.0], &mut g, f);
        let indefinite = || Error::NotPositiveDefinite { what: "K".into(), jitter: 0.0 };
        assert_eq!(at(&mut |_, _| Err(indefinite())), Ok(None));
        assert_eq!(at(&mut |_, _| Err(Error::not_finite("x"))), Ok(None));
        assert_eq!(at(&mut |_, _| Ok(f64::NAN)), Ok(None));
        assert_eq!(
            at(&mut |_, g| {
                g[0] = f64::INFINITY;
                Ok(0.0)
            }),
            Ok(None)
        );
        assert_eq!(at(&mut |_, _| Err(Error::Interrupted)), Err(Error::Interrupted));
    }

    #[test]
    fn reasons_read_as_words() {
        assert_eq!(StopReason::Asked.to_string(), "stopped on request");
        assert_eq!(serde_json::to_string(&StopReason::MaxIterations).unwrap(), "\"max_iterations\"");
    }
}
