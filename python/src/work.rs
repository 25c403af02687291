//! Long work, without the interpreter's lock and with an ear for Ctrl-C.
//!
//! The work runs on a thread of its own; the thread that Python called from waits for it, looks for signals and
//! calls the user's callback. A fit that is asked to stop ends with its current iteration and keeps its best state:
//! the caller gets both the state and the exception, and raises the exception once the state is in its place.

use crate::custom::{Gone, Raised};
use crate::error::{Outcome, Raise};
use crate::pool::Pool;
use crate::settings;
use latentgp::Result;
use latentgp::file::Report;
use latentgp::fit::{Fitted, Run};
use latentgp::kernel::Kernel;
use latentgp::optim::StopReason;
use latentgp::recipe::{Data, Job, Learnt};
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often signals are looked for.
const LOOK: Duration = Duration::from_millis(20);
/// How long an iteration may take to end after a fit was asked to stop.
const PATIENCE: Duration = Duration::from_millis(400);

/// What the working thread says.
enum Message<T> {
    /// An iteration is over: restart, iterations, bound; the thread goes on when this is answered.
    Seen((usize, usize, f64), SyncSender<()>),
    /// The work is over.
    Done(Outcome<T>),
}

/// Runs work that cannot be stopped in the middle; on Ctrl-C its result is left behind.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Outcome<T> {
    let mut receiver = spawn(move |_| work())?;
    loop {
        match wait(py, &mut receiver)? {
            Some(Message::Done(result)) => return result,
            _ => py.check_signals()?,
        }
    }
}

/// The last iterations of all runs that have had one, without the optimiser's memory.
#[derive(Default)]
struct Memory(Mutex<Vec<Run>>);

impl Memory {
    fn see(&self, run: &Run) {
        let mut runs = self.0.lock().unwrap_or_else(|e| e.into_inner());
        match runs.iter_mut().find(|r| r.restart == run.restart) {
            Some(seen) => *seen = run.light(),
            None => runs.push(run.light()),
        }
    }

    /// That of the best run.
    fn best(&self) -> Option<Run> {
        let runs = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let bound = |run: &Run| run.bound().unwrap_or(f64::NEG_INFINITY);
        runs.iter().max_by(|a, b| bound(a).total_cmp(&bound(b))).cloned()
    }
}

/// What came of a fit.
pub struct Done {
    pub fitted: Fitted<Learnt>,
    pub report: Report,
}

/// What a job had come to after the last iteration that was seen.
fn left(job: &dyn Job, run: &Run) -> Result<Fitted<Learnt>> {
    Ok(Fitted {
        model: job.at(run)?,
        evidence: run.bound().unwrap_or(f64::NAN),
        iterations: run.total_iterations(),
        evaluations: run.total_evaluations(),
        converged: false,
        stop_reason: StopReason::Asked,
        gradient_norm: None,
        trace: run.trace.clone(),
        begun: 1,
        restarts: vec![run.bound()],
        best: None,
        runs: Vec::new(),
    })
}

/// Runs a fit, which a true answer of the callback, an exception in it or a signal asks to stop.
///
/// Returns what the fit has become, and the exception to be raised after it is stored. A run whose iteration does
/// not end soon after it was asked to stop is left behind, at the iteration before.
pub fn fit(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
    recipe: &str,
    data: Data,
    kernel: Option<Box<dyn Kernel>>,
) -> Outcome<(Done, Option<PyErr>)> {
    fit_from(py, callback, recipe, data, kernel, Vec::new())
}

/// The same from where runs are.
pub fn fit_from(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
    recipe: &str,
    data: Data,
    kernel: Option<Box<dyn Kernel>>,
    stored: Vec<Run>,
) -> Outcome<(Done, Option<PyErr>)> {
    let (recipe, began) = (settings::recipe(recipe)?, Instant::now());
    let job: Arc<dyn Job> = Arc::from(py.detach(|| caught(|| recipe.job(data, kernel)))?);
    let (stop, memory) = (Arc::new(AtomicBool::new(false)), Arc::new(Memory::default()));
    let (own, asked, seen, watched) = (job.clone(), stop.clone(), memory.clone(), callback.is_some());
    let done = |fitted: Fitted<Learnt>| {
        let report = Report::new(&fitted, &recipe, began.elapsed().as_secs_f64());
        Done { fitted, report }
    };
    let mut receiver = spawn(move |sender: &Sender<Message<Fitted<Learnt>>>| {
        own.fit(stored, &|run| {
            seen.see(run);
            if watched && !asked.load(Ordering::Relaxed) {
                let at = (run.restart, run.total_iterations(), run.bound().unwrap_or(f64::NAN));
                let (answer, answered) = mpsc::sync_channel(1);
                // Nobody listens any more once the caller is gone: then there is nobody to go on for.
                if sender.send(Message::Seen(at, answer)).is_err() || answered.recv().is_err() {
                    return ControlFlow::Break(());
                }
            }
            if asked.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    })?;
    let (mut raised, mut since) = (None, None);
    loop {
        match wait(py, &mut receiver)? {
            Some(Message::Done(result)) => return Ok((done(result?), raised)),
            Some(Message::Seen(at, answer)) => {
                let said = callback.map(|c| c.call1(at));
                match said.map(|s| s.and_then(|s| s.is_truthy())) {
                    Some(Ok(true)) => stop.store(true, Ordering::Relaxed),
                    Some(Err(error)) => {
                        raised.get_or_insert(error);
                        stop.store(true, Ordering::Relaxed);
                    }
                    _ => {}
                }
                // The thread may have given up waiting, which its last message tells.
                let _ = answer.send(());
            }
            None => {}
        }
        if let Err(error) = py.check_signals() {
            raised.get_or_insert(error);
            stop.store(true, Ordering::Relaxed);
        }
        if stop.load(Ordering::Relaxed) && since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            return match (memory.best(), raised) {
                (Some(run), raised) => Ok((done(py.detach(|| caught(|| left(&*job, &run)))?), raised)),
                (None, Some(error)) => Err(error.into()),
                (None, None) => Err(Raise::fault("a fit was asked to stop before it began")),
            };
        }
    }
}

/// The result of work, or the exception that a kernel written in Python raised in it.
pub fn caught<T>(work: impl FnOnce() -> Result<T>) -> Outcome<T> {
    // What the work has left half done is dropped with it.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => Ok(result?),
        Err(payload) => Err(match payload.downcast::<Raised>() {
            Ok(raised) => Raise::Python(raised.0),
            Err(payload) if payload.is::<Gone>() => Raise::fault("the interpreter is gone"),
            Err(payload) => {
                let text = payload.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
                Raise::fault(&format!("the work broke off: {}", text.unwrap_or("no reason was given")))
            }
        }),
    }
}

fn spawn<T: Send + 'static>(
    work: impl FnOnce(&Sender<Message<T>>) -> Result<T> + Send + 'static,
) -> Outcome<Receiver<Message<T>>> {
    let pool = Pool::take()?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let done = Message::Done(caught(|| pool.install(|| work(&sender))));
        pool.give_back();
        // The caller is gone after Ctrl-C.
        let _ = sender.send(done);
    });
    Ok(receiver)
}

/// The next message, or nothing after a while.
fn wait<T: Send>(py: Python<'_>, receiver: &mut Receiver<Message<T>>) -> Outcome<Option<Message<T>>> {
    match py.detach(move || receiver.recv_timeout(LOOK)) {
        Ok(message) => Ok(Some(message)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(Raise::fault("the work ended without a result")),
    }
}
