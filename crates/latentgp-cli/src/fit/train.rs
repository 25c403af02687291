//! Runs a job on a thread of its own, so that Ctrl-C is answered within a second however long an iteration takes.

use super::checkpoint::{self, unfinished};
use super::job::Job;
use super::progress::Progress;
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use latentgp::file::{Report, Trained};
use latentgp::model::{BayesianGplvm, Fit, Run};
use latentgp::optim::StopReason;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often the main thread looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(20);
/// How long the current iteration may take to end after Ctrl-C, before the last state is saved without it.
const PATIENCE: Duration = Duration::from_millis(300);

/// Who watches a fit.
pub struct Watching {
    /// Nothing on stderr.
    pub quiet: bool,
    /// Where the state is written, and how often.
    pub checkpoint: Option<(PathBuf, Duration)>,
}

/// What is known of every restart while it runs.
struct States {
    /// Where each was last seen, without the optimiser's memory, unless the fit is to stop.
    last: Vec<Option<Run>>,
    /// What the checkpoint holds of each: all of it, from which a resume is exact.
    stored: Vec<Option<Run>>,
    /// When that was.
    at: Vec<Option<Instant>>,
    /// Why the checkpoint could not be written.
    failure: Option<Failure>,
}

struct Watcher {
    job: Job,
    /// The model of the first start: what stored states are put into.
    start: BayesianGplvm,
    progress: Progress,
    checkpoint: Option<(PathBuf, Duration)>,
    states: Mutex<States>,
    began: Instant,
}

impl Watcher {
    fn seconds(&self) -> f64 {
        self.job.seconds + self.began.elapsed().as_secs_f64()
    }

    /// Sees an iteration of a restart; its state is copied when it is due and when the fit is to stop.
    fn see(&self, run: &Run) -> ControlFlow<()> {
        self.progress.see(run.restart, run.total_iterations(), run.bound().unwrap_or(f64::NEG_INFINITY));
        let stop = interrupt::asked();
        let mut states = self.states.lock().unwrap_or_else(|e| e.into_inner());
        states.last[run.restart] = Some(if stop { run.clone() } else { run.light() });
        let due = |(_, every): &(PathBuf, Duration)| {
            stop || states.at[run.restart].is_none_or(|at| at.elapsed() >= *every)
        };
        if self.checkpoint.as_ref().is_some_and(due) {
            states.stored[run.restart] = Some(run.clone());
            self.write(&mut states);
            states.at[run.restart] = Some(Instant::now());
        }
        if stop || states.failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn write(&self, states: &mut States) {
        let Some((path, _)) = &self.checkpoint else { return };
        let runs = states.stored.iter().flatten().cloned().collect();
        if let Err(failure) = checkpoint::write(path, &self.job, &self.start, runs, self.seconds()) {
            states.failure.get_or_insert(failure);
        }
    }

    fn last(&self) -> Vec<Run> {
        let states = self.states.lock().unwrap_or_else(|e| e.into_inner());
        states.last.iter().flatten().cloned().collect()
    }
}

/// Trains; an interrupted fit is a model with `unfinished` set.
pub fn train(job: Job, watching: &Watching) -> Outcome<Trained> {
    let restarts = job.training.restarts.max(1);
    let limit = job.training.hold + job.training.max_iterations;
    let mut runs = vec![None; restarts];
    for run in job.runs.iter().filter(|r| r.restart < restarts) {
        runs[run.restart] = Some(run.clone());
    }
    let watcher = Arc::new(Watcher {
        start: job.training.start(&job.y, &*job.kernel, 0)?,
        progress: Progress::new(watching.quiet, restarts, limit),
        checkpoint: watching.checkpoint.clone(),
        states: Mutex::new(States {
            last: runs.clone(),
            stored: runs,
            at: vec![None; restarts],
            failure: None,
        }),
        began: Instant::now(),
        job,
    });
    if let Some((path, _)) = &watcher.checkpoint {
        checkpoint::write(path, &watcher.job, &watcher.start, watcher.last(), watcher.seconds())?;
    }
    let (send, receive) = mpsc::channel();
    let worker = Arc::clone(&watcher);
    std::thread::spawn(move || {
        let Job { training, y, kernel, runs, .. } = &worker.job;
        let fit = training.resume(y, &**kernel, runs.clone(), &|run| worker.see(run));
        // The other side is gone when it lost its patience.
        let _ = send.send(fit);
    });
    let mut asked: Option<Instant> = None;
    let fit: Option<Fit> = loop {
        match receive.recv_timeout(LOOK) {
            Ok(fit) => break Some(fit?),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::work(
                    "the training ended without a result; this is a fault of latentgp",
                ));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if interrupt::asked() && asked.get_or_insert_with(Instant::now).elapsed() >= PATIENCE {
            break None;
        }
    };
    if let Some(failure) = watcher.states.lock().unwrap_or_else(|e| e.into_inner()).failure.take() {
        return Err(failure);
    }
    let over = fit.as_ref().is_some_and(|f| f.stop_reason != StopReason::Asked);
    let trained = match fit {
        Some(fit) if over && fit.runs.iter().all(Run::is_over) => finished(&watcher, fit),
        Some(fit) => unfinished(&watcher.job, &watcher.start, fit.runs, watcher.seconds())?,
        None => unfinished(&watcher.job, &watcher.start, watcher.last(), watcher.seconds())?,
    };
    watcher.progress.finish(&format!(
        "{}, bound {}, {:.1} s: {}",
        crate::words::count(trained.report.iterations, "iteration"),
        crate::words::short(trained.report.bound),
        trained.report.seconds,
        trained.report.stop_reason
    ));
    Ok(trained)
}

fn finished(watcher: &Watcher, fit: Fit) -> Trained {
    let job = &watcher.job;
    Trained {
        report: Report::new(&fit, &job.training, &job.kernel_text, watcher.seconds()),
        model: fit.model,
        columns: job.columns.clone(),
        labels: job.labels.clone(),
        id: job.id.clone(),
        unfinished: None,
    }
}
