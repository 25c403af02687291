//! EM for a table with missing cells, or with a noise for every column, as iterations of a [`Run`].
//!
//! A run stands where its last iteration was evaluated, before the M step; it goes on to the same bits from there.

use super::rows::parts;
use super::{Ppca, PpcaOptions};
use crate::error::{Error, Result};
use crate::fit::{Method, OnIteration, Place, Plan, Run, Schedule, Search, Stage, Trainable};
use crate::mat::Mat;
use crate::optim::StopReason;

/// A probabilistic PCA with the table that it is fitted to.
#[derive(Clone)]
pub struct PpcaFit {
    /// The model.
    pub model: Ppca,
    /// Y as given, NaN where a cell is missing.
    pub y: Mat,
    pub(super) scaled: Mat,
    /// σ² stays above this.
    pub(super) floor: f64,
    /// EM stops when an iteration adds no more than this part of the log likelihood.
    pub(super) tolerance: f64,
}

/// The plan of a fit of a table: closed form, or EM where a cell is missing or every column has its noise.
#[derive(Clone)]
pub struct PpcaPlan {
    start: PpcaFit,
    max_iterations: usize,
}

impl PpcaOptions {
    /// The plan of [`Ppca::fit`]; errs as it does.
    pub fn plan(&self, y: &Mat) -> Result<PpcaPlan> {
        let (model, scaled, floor) = Ppca::start(y, self)?;
        let start = PpcaFit { model, y: y.clone(), scaled, floor, tolerance: self.tolerance };
        Ok(PpcaPlan { start, max_iterations: self.max_iterations.max(1) })
    }
}

impl Plan for PpcaPlan {
    type Model = PpcaFit;

    fn schedule(&self) -> Schedule {
        Schedule { hold: 0, max_iterations: self.max_iterations, search: Search::runs(1) }
    }

    fn start(&self, _: usize) -> Result<PpcaFit> {
        Ok(self.start.clone())
    }
}

impl PpcaFit {
    fn u(&self) -> Vec<f64> {
        [self.model.w.as_slice(), &self.model.mean, &self.model.noise].concat()
    }

    /// Sets W, m and σ².
    fn set(&mut self, u: &[f64]) -> Result<()> {
        let (d, q) = (self.model.w.rows(), self.model.w.cols());
        let expected = d * (q + 1) + self.model.noise.len();
        if u.len() != expected {
            return Err(Error::shape("free parameters of a stored run", expected, u.len()));
        }
        if !(u.iter().all(|v| v.is_finite()) && u[d * (q + 1)..].iter().all(|v| *v > 0.0)) {
            return Err(Error::not_finite("a parameter of a stored run"));
        }
        let (w, rest) = u.split_at(d * q);
        self.model.w = Mat::from_vec(d, q, w.to_vec())?;
        self.model.mean.copy_from_slice(&rest[..d]);
        self.model.noise.copy_from_slice(&rest[d..]);
        Ok(())
    }

    /// EM until it stands still, its limit is reached, or the watch asks to stop.
    pub(super) fn iterate(&mut self, run: &mut Run, limit: usize, watch: &OnIteration<'_>) -> Result<bool> {
        let parts = parts(&self.scaled);
        let observed: Vec<usize> =
            (0..self.y.cols()).map(|j| self.y.col(j).iter().filter(|v| !v.is_nan()).count()).collect();
        let jacobian = self.model.scaling.log_jacobian(&observed);
        let mut evaluated = run.iterations > 0;
        let mut last = f64::NEG_INFINITY;
        loop {
            let rows = parts.iter().map(|p| self.model.rows(p, &self.scaled)).collect::<Result<Vec<_>>>()?;
            // What it stands still at does not depend on the units of the data.
            let value = rows.iter().map(|r| r.log_likelihood()).sum::<f64>();
            if !(value + jacobian).is_finite() {
                return Err(Error::not_finite("the log likelihood"));
            }
            if !evaluated {
                run.place = Place::Point(self.u());
                run.trace.push(value + jacobian);
                (run.iterations, run.evaluations) = (run.iterations + 1, run.evaluations + 1);
                if value - last <= self.tolerance * value.abs().max(1.0) {
                    run.stopped = Some(StopReason::Value);
                    return Ok(false);
                }
                if watch(run).is_break() {
                    return Ok(true);
                }
            }
            (evaluated, last) = (false, value);
            self.model.maximise(&self.scaled, &parts, &rows, self.floor)?;
            if run.iterations >= limit {
                run.place = Place::Point(self.u());
                run.stopped = Some(StopReason::MaxIterations);
                return Ok(false);
            }
        }
    }

    /// What the run says of the model that it left.
    fn finish(&mut self, run: &Run) -> Result<()> {
        self.model.trace = run.trace.clone();
        self.model.converged = run.stopped.is_some_and(StopReason::converged);
        self.model.turn()
    }
}

impl Trainable for PpcaFit {
    fn evidence(&self) -> Result<f64> {
        self.model.log_likelihood(&self.y)
    }

    fn point(&mut self, _: Stage) -> Vec<f64> {
        self.u()
    }

    fn place(&mut self, run: &Run) -> Result<()> {
        self.set(run.place.u())?;
        self.finish(run)
    }

    fn climb(&mut self, run: &mut Run, how: &Method, watch: &OnIteration<'_>) -> Result<bool> {
        if self.model.noise.len() == 1 && self.y.as_slice().iter().all(|v| !v.is_nan()) {
            run.stopped.get_or_insert(StopReason::ClosedForm);
            return Ok(false);
        }
        self.set(run.place.u())?;
        let asked = run.stopped.is_none() && self.iterate(run, how.limit(), watch)?;
        self.finish(run)?;
        Ok(asked)
    }
}
