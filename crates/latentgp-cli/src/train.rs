//! Fits of every command: a thread of its own, progress, checkpoints, and Ctrl-C answered within a second however long an
//! iteration takes.

use crate::failure::{Failure, Outcome};
use crate::progress::Progress;
use crate::words::{count, short};
use crate::{interrupt, out};
use latentgp::Mat;
use latentgp::data::table::{Column, Table};
use latentgp::file::Unfinished;
use latentgp::fit::{Fitted, Run};
use latentgp::optim::StopReason;
use latentgp::recipe::{Data, Job, Learnt, Recipe};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often the main thread looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(20);
/// How long the current iteration may take to end after Ctrl-C, before the last state is kept without it.
const PATIENCE: Duration = Duration::from_millis(300);
/// Where the state goes when a fit without `--out` is interrupted.
pub const RESCUE: &str = "latentgp-interrupted.lgp";

/// What is fitted.
#[derive(Clone)]
pub struct Task {
    /// The settings.
    pub recipe: Recipe,
    /// The data as given.
    pub data: Data,
    /// Restarts that have begun.
    pub runs: Vec<Run>,
    /// Seconds spent before.
    pub seconds: f64,
    /// What the evidence of the data as the user gave them has beside that of the data as they are fitted.
    pub jacobian: f64,
}

/// Writes what came of a fit to a file.
pub type Write = dyn Fn(&Path, Done) -> Outcome + Send + Sync;

/// A file that holds the state of a fit, and how often it is written.
#[derive(Clone)]
pub struct Checkpoint {
    /// The file.
    pub path: PathBuf,
    /// The time between two writes.
    pub every: Duration,
    /// Writes what there is as a model file.
    pub write: Arc<Write>,
}

/// What came of a fit.
pub struct Done {
    /// The best model and how it got there.
    pub fitted: Fitted<Learnt>,
    /// Wall-clock time.
    pub seconds: f64,
    /// What is needed to go on, if the fit was stopped or ended at its limit of iterations.
    pub unfinished: Option<Unfinished>,
}

/// Options of every command that fits.
#[derive(clap::Args, Debug)]
pub struct TrainingArgs {
    /// Write the state regularly to this file, from which --resume goes on
    #[arg(long, value_name = "FILE", help_heading = "Training")]
    pub checkpoint: Option<PathBuf>,
    /// Seconds between two such writes
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "checkpoint",
        default_value_t = 60.0,
        help_heading = "Training"
    )]
    pub checkpoint_every: f64,
    /// Go on from a checkpoint or from the file of an interrupted fit; settings are those stored there
    #[arg(long, value_name = "FILE", help_heading = "Training")]
    pub resume: Option<PathBuf>,
    /// What was maximised after every iteration, as a table
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub trace: Option<PathBuf>,
}

impl TrainingArgs {
    /// Errs where a file cannot be written or a number is wrong.
    pub fn check(&self) -> Outcome {
        out::check(self.trace.as_deref(), &out::TABLES)?;
        out::check(self.checkpoint.as_deref(), &[])?;
        if !(self.checkpoint_every >= 0.0 && self.checkpoint_every <= 1e9) {
            return Err(Failure::usage("--checkpoint-every: expected a number of seconds, not negative"));
        }
        Ok(())
    }

    /// The checkpoint, written by `write`.
    pub fn checkpoint(
        &self,
        write: impl Fn(&Path, Done) -> Outcome + Send + Sync + 'static,
    ) -> Option<Checkpoint> {
        let path = self.checkpoint.clone()?;
        Some(Checkpoint {
            path,
            every: Duration::from_secs_f64(self.checkpoint_every),
            write: Arc::new(write),
        })
    }

    /// Writes the trace, where it was asked for.
    pub fn write_trace(&self, values: &[f64]) -> Outcome {
        let Some(path) = &self.trace else { return Ok(()) };
        let iterations = (1..=values.len()).map(|i| i as f64).collect();
        let columns =
            vec![Column::numbers("iteration", iterations), Column::numbers("bound", values.to_vec())];
        out::table(&Table::new("trace", columns).map_err(Failure::work)?, Some(path))
    }

    /// Removes a checkpoint that the finished model has made superfluous; without a model file it stays.
    pub fn finish(&self, model: Option<&Path>) -> Outcome {
        match (&self.checkpoint, model) {
            (Some(path), Some(model)) if !out::same_file(model, path) => std::fs::remove_file(path)
                .map_err(|e| Failure::work(format!("{}: cannot be removed: {e}", path.display()))),
            _ => Ok(()),
        }
    }
}

impl Task {
    /// A fit that begins.
    pub fn new(recipe: Recipe, data: Data) -> Self {
        Task { recipe, data, runs: Vec::new(), seconds: 0.0, jacobian: 0.0 }
    }

    /// A fit that goes on from a file, under another limit of iterations where it is given.
    ///
    /// Errs where the fit in the file is over, `stopped` for this reason, and no higher limit is given.
    pub fn resume(left: Unfinished, stopped: StopReason, max_iterations: Option<usize>) -> Outcome<Self> {
        let Unfinished { recipe, data, runs, seconds } = left;
        let mut task = Task { recipe, data, runs, seconds, jacobian: 0.0 };
        if max_iterations == Some(0) {
            return Err(Failure::usage("--max-iter: expected at least 1, found 0"));
        }
        if stopped == StopReason::MaxIterations && max_iterations <= task.recipe.max_iterations {
            let limit =
                task.recipe.max_iterations.map_or("its limit".into(), |limit| count(limit, "iteration"));
            return Err(Failure::usage(format!(
                "this fit is over (it ended at {limit}), there is nothing to resume; a higher --max-iter goes on"
            )));
        }
        if let Some(limit) = max_iterations {
            if task.recipe.max_iterations.is_none_or(|old| limit > old) {
                task.runs.iter_mut().for_each(Run::allow_more);
            }
            task.recipe.max_iterations = Some(limit);
        }
        Ok(task)
    }

    /// What is needed to go on with a fit that ended at its limit of iterations: its best run alone.
    fn more(&self, fitted: &Fitted<Learnt>, seconds: f64) -> Option<Unfinished> {
        let at_limit = fitted.stop_reason == StopReason::MaxIterations;
        let best = fitted.best.as_ref().filter(|_| at_limit)?;
        let recipe = self.recipe.by_one_run();
        let runs = vec![Run { restart: 0, ..best.light() }];
        Some(Unfinished { recipe, data: self.data.clone(), runs, seconds })
    }
}

impl Done {
    /// Whether the fit was asked to stop.
    pub fn interrupted(&self) -> bool {
        self.fitted.stop_reason == StopReason::Asked
    }
}

/// Errs when an option says other than what is stored: it would have no effect.
pub fn agree(asked: &Recipe, seed: Option<u64>, stored: &Recipe, path: &Path) -> Outcome {
    let model = (!asked.model.is_empty() && asked.model != stored.model)
        .then(|| ("model", asked.model.clone(), stored.model.clone()));
    let seed = seed
        .filter(|seed| *seed != stored.seed)
        .map(|seed| ("seed", seed.to_string(), stored.seed.to_string()));
    match model.or_else(|| asked.contradicts(stored)).or(seed) {
        None => Ok(()),
        Some((option, asked, has)) => Err(Failure::usage(format!(
            "--{} {asked} contradicts {}, which has {has}; leave the option out, or begin a new fit without --resume",
            option.replace('_', "-"),
            path.display()
        ))),
    }
}

/// Errs unless both tables have the same bits and the same missing cells.
pub fn same_data(given: &[&Mat], stored: &[&Mat], spec: &str, path: &Path) -> Outcome {
    let bits =
        |m: &Mat| m.as_slice().iter().map(|v| (!v.is_nan()).then_some(v.to_bits())).collect::<Vec<_>>();
    let same = |(a, b): (&&Mat, &&Mat)| a.shape() == b.shape() && bits(a) == bits(b);
    match given.len() == stored.len() && given.iter().zip(stored).all(same) {
        true => Ok(()),
        false => Err(Failure::data(format!(
            "{spec}: these are not the data that {} was made from; leave DATA out, or begin a new fit without \
             --resume",
            path.display()
        ))),
    }
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
    task: Task,
    job: Box<dyn Job>,
    progress: Progress,
    checkpoint: Option<Checkpoint>,
    states: Mutex<States>,
    began: Instant,
}

impl Watcher {
    fn seconds(&self) -> f64 {
        self.task.seconds + self.began.elapsed().as_secs_f64()
    }

    /// Sees an iteration of a restart; its state is copied when it is due and when the fit is to stop.
    fn see(&self, run: &Run) -> ControlFlow<()> {
        self.progress.see(run);
        let stop = interrupt::asked();
        let mut states = self.states.lock().unwrap_or_else(|e| e.into_inner());
        states.last[run.restart] = Some(if stop { run.clone() } else { run.light() });
        let due = |c: &Checkpoint| stop || states.at[run.restart].is_none_or(|at| at.elapsed() >= c.every);
        if self.checkpoint.as_ref().is_some_and(due) {
            states.stored[run.restart] = Some(run.clone());
            self.write(&mut states);
            states.at[run.restart] = Some(Instant::now());
        }
        if stop || states.failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn write(&self, states: &mut States) {
        let Some(checkpoint) = &self.checkpoint else { return };
        let runs = states.stored.iter().flatten().cloned().collect();
        let written = self.left(runs).and_then(|left| (checkpoint.write)(&checkpoint.path, left));
        if let Err(failure) = written {
            states.failure.get_or_insert(failure);
        }
    }

    fn last(&self) -> Vec<Run> {
        let states = self.states.lock().unwrap_or_else(|e| e.into_inner());
        states.last.iter().flatten().cloned().collect()
    }

    /// The best state so far as a model that can be used, and all that is needed to go on.
    fn left(&self, runs: Vec<Run>) -> Outcome<Done> {
        let bound = |run: &Run| run.bound().unwrap_or(f64::NEG_INFINITY);
        let best = runs.iter().max_by(|a, b| bound(a).total_cmp(&bound(b)));
        let model = best.map_or_else(|| self.job.start(), |run| self.job.at(run))?;
        let evidence = best.and_then(Run::bound).map_or_else(|| model.evidence(), Ok)?;
        let fitted = Fitted {
            model,
            evidence,
            iterations: best.map_or(0, Run::total_iterations),
            evaluations: best.map_or(0, Run::total_evaluations),
            converged: false,
            stop_reason: StopReason::Asked,
            gradient_norm: None,
            trace: best.map_or(Vec::new(), |run| run.trace.clone()),
            begun: runs.len(),
            restarts: runs.iter().map(Run::bound).collect(),
            best: None,
            runs: Vec::new(),
        };
        let Task { recipe, data, .. } = self.task.clone();
        let seconds = self.seconds();
        Ok(Done { fitted, seconds, unfinished: Some(Unfinished { recipe, data, runs, seconds }) })
    }
}

/// Fits; of one that was interrupted, the reason to stop is that it was asked to. `what` names what is maximised.
pub fn train(task: Task, what: &str, quiet: bool, checkpoint: Option<Checkpoint>) -> Outcome<Done> {
    let job = task.recipe.job(task.data.clone(), None)?;
    let schedule = job.schedule();
    let restarts = schedule.search.most();
    let mut runs = vec![None; restarts];
    for run in task.runs.iter().filter(|r| r.restart < restarts) {
        runs[run.restart] = Some(run.clone());
    }
    let states = States { last: runs.clone(), stored: runs, at: vec![None; restarts], failure: None };
    let watcher = Arc::new(Watcher {
        progress: Progress::new(quiet, schedule.search, schedule.hold + schedule.max_iterations),
        checkpoint,
        states: Mutex::new(states),
        began: Instant::now(),
        job,
        task,
    });
    if let Some(checkpoint) = &watcher.checkpoint {
        (checkpoint.write)(&checkpoint.path, watcher.left(watcher.last())?)?;
    }
    let (send, receive) = mpsc::channel();
    let worker = Arc::clone(&watcher);
    std::thread::spawn(move || {
        let fitted = worker.job.fit(worker.task.runs.clone(), &|run| worker.see(run));
        // The other side is gone when it lost its patience.
        let _ = send.send(fitted);
    });
    let mut asked: Option<Instant> = None;
    let fitted = loop {
        match receive.recv_timeout(LOOK) {
            Ok(fitted) => break Some(fitted?),
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
    let done = match fitted {
        Some(fitted) if fitted.stop_reason != StopReason::Asked => {
            let seconds = watcher.seconds();
            let unfinished = watcher.task.more(&fitted, seconds);
            Done { fitted, seconds, unfinished }
        }
        Some(fitted) => watcher.left(fitted.runs)?,
        None => watcher.left(watcher.last())?,
    };
    watcher.progress.finish(&format!(
        "{}, {what} {}, {:.1} s: {}",
        count(done.fitted.iterations, "iteration"),
        short(done.fitted.evidence + watcher.task.jacobian),
        done.seconds,
        done.fitted.stop_reason
    ));
    Ok(done)
}

/// What an interrupted command says of the state that it saved.
pub fn interrupted(command: &str, fitted: (usize, f64), what: &str, path: &Path) -> Failure {
    let path = path.display();
    Failure::interrupted(format!(
        "interrupted after {} at the {what} {}; the best state is in {path}, go on with \
         `latentgp {command} --resume {path} --out {path}`",
        count(fitted.0, "iteration"),
        short(fitted.1)
    ))
}
