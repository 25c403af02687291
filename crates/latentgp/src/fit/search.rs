//! A search for the best optimum: runs from different starts are raced, then the best one is shaken and
//! fitted again.
//!
//! ```text
//! start 0 ───────────────────────────────────────────▶ end      what `quick` does
//! start 1 ──▶│                                                  short runs of many,
//! start 2 ──▶│──────▶│                                          longer ones of the best
//! start 3 ──▶│──────▶│──────────────────────────────▶ end
//!                                                      └─ shaken ──▶ end ─ shaken ──▶ end   kept where better
//! ```
//!
//! The first start always runs to its end, so that no search is worse than one fit. Its length sets the
//! length of the other runs and the budget of the search. Every run is a [`Run`], and the traces alone decide
//! which runs go on. The runs are the whole state of a search: stored and read back, it ends at the same
//! bits, on any number of threads.

use super::{Fitted, OnIteration, Plan, Run, Stage, Trainable};
use crate::blocks;
use crate::error::{Error, Result};
use crate::optim::StopReason;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::ControlFlow;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

/// A race compares runs after at least this many free iterations, since starts differ in the held scales.
const MIN_ITERATIONS: usize = 15;

/// How hard a fit looks for the best optimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// One start, run to its end.
    Quick,
    /// A race of starts and hops from the best, in about ten times the evaluations of one fit at the most.
    #[default]
    Normal,
    /// A race with more starts and hops, in about forty times the evaluations of one fit.
    Thorough,
}

impl Effort {
    /// All efforts, the least first.
    pub const ALL: [Effort; 3] = [Effort::Quick, Effort::Normal, Effort::Thorough];

    /// The search for many parameters, such as latent positions or weights. With more than one restart, every
    /// run is full.
    pub fn search(self, restarts: usize) -> Search {
        match self {
            _ if restarts > 1 => Search::runs(restarts),
            Effort::Quick => Search::runs(1),
            Effort::Normal => {
                Search { starts: 10, rounds: &[(0.2, 3), (0.4, 1)], hops: 8, together: 2, budget: 8.0 }
            }
            Effort::Thorough => {
                Search { starts: 32, rounds: &[(0.2, 8), (0.4, 3)], hops: 40, together: 4, budget: 36.0 }
            }
        }
    }

    /// The search for few hyperparameters.
    pub fn search_few(self, restarts: usize) -> Search {
        match self {
            _ if restarts > 1 => Search::runs(restarts),
            Effort::Quick => Search::runs(1),
            Effort::Normal => Search { starts: 6, rounds: &[(0.4, 2)], hops: 2, together: 2, budget: 6.0 },
            Effort::Thorough => {
                Search { starts: 24, rounds: &[(0.4, 6)], hops: 8, together: 4, budget: 30.0 }
            }
        }
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Effort::Quick => "quick",
            Effort::Normal => "normal",
            Effort::Thorough => "thorough",
        })
    }
}

impl FromStr for Effort {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Effort::ALL.into_iter().find(|e| e.to_string() == name);
        found.ok_or_else(|| Error::invalid("effort", "quick, normal or thorough", name))
    }
}

/// What a search consists of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// Runs that begin at different starts; without rounds all of them run to their end.
    pub starts: usize,
    /// The rounds of the race: the part of the first run's iterations, and how many runs of each group go on
    /// after it.
    pub rounds: &'static [(f64, usize)],
    /// The most hops from the best.
    pub hops: usize,
    /// How many hops start from the same point, in parallel.
    pub together: usize,
    /// No hop begins once the search has spent this many times the evaluations of the first run.
    pub budget: f64,
}

impl Search {
    /// `starts` runs from different starts, all to their end.
    pub fn runs(starts: usize) -> Self {
        Search { starts: starts.max(1), rounds: &[], hops: 0, together: 1, budget: f64::INFINITY }
    }

    /// Whether runs that fall behind are stopped early.
    pub fn is_race(&self) -> bool {
        !self.rounds.is_empty()
    }

    /// The most runs that there can be.
    pub fn most(&self) -> usize {
        self.starts.max(1) + self.hops
    }
}

/// The state of a run.
enum Slot<M> {
    Waiting,
    Going(Run),
    Over { run: Run, model: Option<M>, evidence: f64, score: f64 },
    Failed(Error),
}

impl<M> Slot<M> {
    fn run(&self) -> Option<&Run> {
        match self {
            Slot::Going(run) | Slot::Over { run, .. } => Some(run),
            _ => None,
        }
    }

    fn score(&self) -> Option<f64> {
        match self {
            Slot::Over { score, .. } => Some(*score),
            _ => None,
        }
    }
}

/// A search in progress.
struct Searching<'a, P: Plan> {
    plan: &'a P,
    watch: &'a OnIteration<'a>,
    slots: Vec<Slot<P::Model>>,
    asked: AtomicBool,
}

/// Trains a model by a plan. Runs whose state is among `stored` resume there, the others begin.
///
/// `stored` has runs that a watch saw, or [`Fitted::runs`]. The result equals an uninterrupted fit bit for
/// bit where runs hold the optimiser's state, and comes close to it where they are [`Run::light`]. Errs when
/// all runs fail, with the reason of the first.
pub fn train<P: Plan>(plan: &P, stored: Vec<Run>, watch: &OnIteration<'_>) -> Result<Fitted<P::Model>> {
    let how = plan.schedule().search;
    let mut slots: Vec<Slot<P::Model>> = (0..how.most()).map(|_| Slot::Waiting).collect();
    for run in stored {
        if let Some(slot @ Slot::Waiting) = slots.get_mut(run.restart) {
            *slot = Slot::Going(run);
        }
    }
    let mut search = Searching { plan, watch, slots, asked: AtomicBool::new(false) };
    blocks::together(|| {
        match how.rounds {
            [] => search.advance(&(0..how.starts).collect::<Vec<_>>(), usize::MAX),
            _ => {
                search.advance(&[0], usize::MAX);
                search.race(&how);
            }
        }
        search.hop(&how);
    });
    search.end()
}

impl<P: Plan> Searching<'_, P> {
    fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Continues runs up to `iterations` iterations, or to their end.
    fn advance(&mut self, which: &[usize], iterations: usize) {
        if self.asked() {
            return;
        }
        let taken: Vec<(usize, Slot<P::Model>)> =
            which.iter().map(|k| (*k, std::mem::replace(&mut self.slots[*k], Slot::Waiting))).collect();
        let own: &Self = self;
        let done: Vec<(usize, Slot<P::Model>)> =
            taken.into_par_iter().map(|(k, slot)| (k, own.go(k, slot, iterations))).collect();
        for (k, slot) in done {
            self.slots[k] = slot;
        }
        self.forget();
    }

    fn go(&self, k: usize, slot: Slot<P::Model>, iterations: usize) -> Slot<P::Model> {
        let stored = match slot {
            Slot::Waiting if self.asked() => return slot,
            Slot::Waiting => None,
            Slot::Going(run) => Some(run),
            done => return done,
        };
        self.climb(k, stored, iterations).unwrap_or_else(Slot::Failed)
    }

    fn climb(&self, k: usize, stored: Option<Run>, iterations: usize) -> Result<Slot<P::Model>> {
        let (plan, schedule) = (self.plan, self.plan.schedule());
        let mut model = plan.start(k)?;
        let mut run = match stored {
            Some(run) => {
                model.place(&run)?;
                run
            }
            None => {
                let stage = if schedule.hold > 0 { Stage::Held } else { Stage::Free };
                Run::new(k, stage, model.point(stage))
            }
        };
        let watch = |run: &Run| {
            let asked = (self.watch)(run).is_break();
            if asked {
                self.asked.store(true, Ordering::Relaxed);
            }
            match asked || run.total_iterations() >= iterations {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let enough = |run: &Run| run.total_iterations() >= iterations;
        if run.stage == Stage::Held && !enough(&run) {
            let paused = model.climb(&mut run, &plan.method(&model, schedule.hold), &watch)?;
            if !paused {
                plan.between(&mut model);
                run.next_stage(model.point(Stage::Free));
            }
        }
        if run.stage == Stage::Free && !enough(&run) {
            model.climb(&mut run, &plan.method(&model, schedule.max_iterations), &watch)?;
        }
        if !run.is_over() {
            return Ok(Slot::Going(run));
        }
        let evidence = model.evidence()?;
        let run = run.light();
        let score = match plan.verdict(&model)? {
            Some(score) => score,
            None => run.bound().unwrap_or(evidence),
        };
        Ok(Slot::Over { run, model: Some(model), evidence, score })
    }

    /// The best of the runs that are over; among equals the first.
    fn best(&self) -> Option<usize> {
        let scores = (0..self.slots.len()).filter_map(|k| Some((k, self.slots[k].score()?)));
        scores
            .fold(None, |best: Option<(usize, f64)>, new| match best {
                Some(best) if new.1 <= best.1 => Some(best),
                _ => Some(new),
            })
            .map(|(k, _)| k)
    }

    /// Drops all models but the best.
    fn forget(&mut self) {
        let best = self.best();
        for (k, slot) in self.slots.iter_mut().enumerate() {
            if let Slot::Over { model, .. } = slot
                && Some(k) != best
            {
                *model = None;
            }
        }
    }

    /// The race: short runs of many starts, longer runs of the best.
    fn race(&mut self, how: &Search) {
        let first = match self.slots[0].run() {
            Some(run) => run.total_iterations(),
            // A first run that failed has no length to compare with.
            None => self.plan.schedule().max_iterations / 10,
        };
        let mut alive: Vec<usize> = (1..how.starts).collect();
        for (part, keep) in how.rounds {
            let limit =
                ((part * first as f64).ceil() as usize).max(self.plan.schedule().hold + MIN_ITERATIONS);
            self.advance(&alive, limit);
            // A run that was stored beyond the limit is judged by its value at the limit.
            let at = |k: usize| {
                let trace = &self.slots[k].run()?.trace;
                trace.get(limit.min(trace.len()).checked_sub(1)?).copied()
            };
            let mut order: Vec<(usize, f64)> = alive.iter().filter_map(|k| Some((*k, at(*k)?))).collect();
            order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let mut kept: Vec<usize> = Vec::new();
            for (k, _) in order {
                let group = self.plan.group(k);
                if kept.iter().filter(|other| self.plan.group(**other) == group).count() < *keep {
                    kept.push(k);
                }
            }
            let before = std::mem::replace(&mut alive, kept);
            if !self.asked() {
                before.iter().filter(|k| !alive.contains(k)).for_each(|k| self.leave(*k));
            }
        }
        self.advance(&alive, usize::MAX);
    }

    /// Drops the optimiser's memory of a run that lost.
    fn leave(&mut self, k: usize) {
        if let Slot::Going(run) = &mut self.slots[k] {
            *run = run.light();
        }
    }

    /// Evaluations of all runs so far.
    fn spent(&self) -> usize {
        self.slots.iter().filter_map(|s| Some(s.run()?.total_evaluations())).sum()
    }

    /// Fits from shaken copies of the best model.
    fn hop(&mut self, how: &Search) {
        let first = self.slots[0].run().map_or(0, Run::total_evaluations) as f64;
        let mut next = how.starts;
        while next < how.most() && !self.asked() {
            let batch: Vec<usize> = (next..how.most().min(next + how.together)).collect();
            next += how.together;
            let begins = batch.iter().all(|k| matches!(self.slots[*k], Slot::Waiting));
            if begins && self.spent() as f64 > how.budget * first {
                break;
            }
            let Some(best) = self.best() else { return };
            let Slot::Over { run, .. } = &self.slots[best] else { return };
            let from = run.clone();
            for k in &batch {
                if !matches!(self.slots[*k], Slot::Waiting) {
                    continue;
                }
                self.slots[*k] = match self.shaken(&from, *k) {
                    Ok(None) => return,
                    Ok(Some(run)) => Slot::Going(run),
                    Err(e) => Slot::Failed(e),
                }
            }
            self.advance(&batch, usize::MAX);
        }
    }

    /// Run `k`, which begins at a shaken copy of the end of another run.
    fn shaken(&self, from: &Run, k: usize) -> Result<Option<Run>> {
        let mut model = self.plan.start(from.restart)?;
        model.place(from)?;
        let moved = self.plan.hop(&mut model, k)?;
        Ok(moved.then(|| Run::new(k, Stage::Free, model.point(Stage::Free))))
    }

    fn end(self) -> Result<Fitted<P::Model>> {
        // A request to stop that comes after the last run has no effect.
        let unfinished = |slot: &Slot<P::Model>| matches!(slot, Slot::Going(_) | Slot::Waiting);
        let asked = self.asked() && self.slots.iter().any(unfinished);
        let (best, plan) = (self.best(), self.plan);
        let mut begun = 0;
        let (mut restarts, mut runs, mut failure, mut kept) = (Vec::new(), Vec::new(), None, None);
        for (k, slot) in self.slots.into_iter().enumerate() {
            begun += usize::from(!matches!(slot, Slot::Waiting));
            match slot {
                Slot::Waiting => {}
                Slot::Going(run) => {
                    if asked {
                        restarts.push(run.bound());
                        // In an interrupted search an unfinished run may be the best.
                        let better = |of: &(Run, _, _)| run.bound() > of.0.bound();
                        if kept.as_ref().is_none_or(better) {
                            kept = Some((run.clone(), None, None));
                        }
                    }
                    runs.push(run);
                }
                Slot::Over { run, model, evidence, .. } => {
                    restarts.push(Some(evidence));
                    let better = |of: &(Run, _, _)| run.bound() > of.0.bound();
                    if Some(k) == best && kept.as_ref().is_none_or(better) {
                        kept = Some((run.clone(), model, Some(evidence)));
                    }
                    runs.push(run);
                }
                Slot::Failed(error) => {
                    restarts.push(None);
                    failure = failure.or(Some(error));
                }
            }
        }
        let none = || failure.unwrap_or_else(|| Error::invalid("restarts", "at least 1", 0));
        let (run, model, evidence) = kept.ok_or_else(none)?;
        let model = model.map_or_else(|| super::model_at(plan, &run), Ok)?;
        let evidence = evidence.map_or_else(|| model.evidence(), Ok)?;
        let stop_reason = run.stopped.filter(|_| !asked).unwrap_or(StopReason::Asked);
        Ok(Fitted {
            model,
            evidence,
            iterations: run.total_iterations(),
            evaluations: run.total_evaluations(),
            converged: stop_reason.converged() && run.flat,
            stop_reason,
            gradient_norm: run.gradient,
            trace: run.trace.clone(),
            begun,
            restarts,
            best: Some(run.light()),
            runs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::go_on;
    use crate::kernel::{Matern32, Rbf};
    use crate::mat::Mat;
    use crate::model::{BayesianGplvm, Regression, RegressionOptions, Training, TrainingPlan};
    use crate::param::Parameterized;
    use crate::{data, fit};
    use std::sync::Mutex;

    fn plan(effort: Effort, kernel: &dyn crate::kernel::Kernel) -> TrainingPlan {
        let y = data::oil_flow::simulate(25, 4).y;
        let how = Training { inducing: 5, hold: 5, max_iterations: 40, effort, ..Training::default() };
        how.plan(&y, kernel)
    }

    fn same(a: &Fitted<BayesianGplvm>, b: &Fitted<BayesianGplvm>) {
        assert_eq!((a.evidence.to_bits(), &a.trace), (b.evidence.to_bits(), &b.trace));
        assert_eq!((a.begun, &a.restarts, a.stop_reason), (b.begun, &b.restarts, b.stop_reason));
        assert_eq!(a.model.params(), b.model.params());
    }

    #[test]
    fn a_search_is_no_worse_than_one_fit_and_keeps_to_its_budget() {
        let one = train(&plan(Effort::Quick, &Rbf::new(2)), Vec::new(), &go_on).unwrap();
        let best = train(&plan(Effort::Normal, &Rbf::new(2)), Vec::new(), &go_on).unwrap();
        assert!(best.evidence >= one.evidence);
        assert_eq!((one.begun, one.restarts.len()), (1, 1));
        assert_eq!(best.restarts[0], Some(one.evidence));
        assert!(best.begun >= 10 && best.restarts.len() < best.begun, "{} began", best.begun);
        let most = best.restarts.iter().flatten().fold(f64::MIN, |a, b| a.max(*b));
        assert!((best.evidence - most).abs() < 1e-6, "{} and {most}", best.evidence);
        // Runs that began within the budget are finished: at most two hops from one point.
        let spent: usize = best.runs.iter().map(Run::total_evaluations).sum();
        assert!(spent < 12 * one.evaluations, "{spent} against {}", one.evaluations);
    }

    #[test]
    fn threads_do_not_matter() {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| train(&plan(Effort::Normal, &Matern32::new(2)), Vec::new(), &go_on)).unwrap()
        };
        same(&on(1), &on(3));
    }

    #[test]
    fn a_search_stored_at_any_time_ends_at_the_same_bits() {
        let plan = plan(Effort::Normal, &Rbf::new(2));
        // The last state seen of every run, as a checkpoint stores it, at some iterations of the search.
        let states: Mutex<(Vec<Option<Run>>, usize, Vec<String>)> =
            Mutex::new((vec![None; plan.schedule().search.most()], 0, Vec::new()));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let whole = pool.install(|| {
            train(&plan, Vec::new(), &|run| {
                let (last, seen, all) = &mut *states.lock().unwrap();
                last[run.restart] = Some(run.clone());
                *seen += 1;
                if *seen % 61 == 1 {
                    all.push(serde_json::to_string(&last.iter().flatten().collect::<Vec<_>>()).unwrap());
                }
                ControlFlow::Continue(())
            })
        });
        let (whole, (_, _, all)) = (whole.unwrap(), states.into_inner().unwrap());
        assert!(all.len() > 4);
        for text in all {
            let stored: Vec<Run> = serde_json::from_str(&text).unwrap();
            same(&train(&plan, stored, &go_on).unwrap(), &whole);
        }
    }

    #[test]
    fn a_search_that_was_asked_to_stop_keeps_its_best_and_goes_on() {
        let plan = plan(Effort::Normal, &Rbf::new(2));
        let whole = train(&plan, Vec::new(), &go_on).unwrap();
        for last in [0, 3, 11] {
            let stop = |run: &Run| match run.restart >= last && run.total_iterations() >= 4 {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            let part = train(&plan, Vec::new(), &stop).unwrap();
            assert_eq!((part.stop_reason, part.converged), (StopReason::Asked, false));
            let best = part.runs.iter().filter_map(Run::bound).fold(f64::MIN, f64::max);
            assert!((part.evidence - best).abs() < 1e-9 * best.abs(), "{} and {best}", part.evidence);
            let stored = part.runs.iter().map(|r| serde_json::to_string(r).unwrap());
            let runs = stored.map(|text| serde_json::from_str(&text).unwrap()).collect();
            same(&train(&plan, runs, &go_on).unwrap(), &whole);
        }
    }

    #[test]
    fn hyperparameters_are_searched_too() {
        let x = Mat::from_fn(30, 1, |i, _| 0.2 * i as f64);
        let y = x.map(|v| (3.0 * v).sin() + 0.1 * (17.0 * v).cos());
        let start = Regression::with(x, y, Rbf::new(1), &RegressionOptions::default()).unwrap();
        let how = |effort| fit::Restarts { effort, ..fit::Restarts::default() };
        let one = how(Effort::Quick).fit(&start, &go_on).unwrap();
        let best = how(Effort::Normal).fit(&start, &go_on).unwrap();
        assert!(best.evidence >= one.evidence && best.begun > 5 && best.converged);
    }

    #[test]
    fn efforts_have_names() {
        for effort in Effort::ALL {
            assert_eq!(effort.to_string().parse::<Effort>().unwrap(), effort);
            assert_eq!(serde_json::to_string(&effort).unwrap(), format!("\"{effort}\""));
            assert_eq!((effort.search(3), effort.search_few(3)), (Search::runs(3), Search::runs(3)));
        }
        assert!("much".parse::<Effort>().unwrap_err().to_string().contains("thorough"));
    }
}
