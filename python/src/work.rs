//! Long work, without the interpreter's lock and with an ear for Ctrl-C.
//!
//! The work runs on a thread of its own; the thread that Python called from waits for it, looks for signals and
//! calls the user's callback. A fit that is asked to stop ends with its current iteration and keeps its best state:
//! the caller gets both the state and the exception, and raises the exception once the state is in its place.

use crate::custom::{Gone, Raised};
use crate::error::{Outcome, Raise};
use crate::pool::Pool;
use latentgp::Result;
use latentgp::model::{Fitted, OnProgress, Progress};
use latentgp::optim::StopReason;
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
    /// An iteration is over; the thread goes on when this is answered.
    Seen(Progress, SyncSender<()>),
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

/// A fit that can be taken as it stands after any iteration.
pub trait Job: Send + Sync + 'static {
    /// What comes of it.
    type Trained: Send + 'static;

    /// Fits to the end, or until the watch asks to stop.
    fn fit(&self, watch: &OnProgress<'_>) -> Result<Self::Trained>;

    /// What a run had come to after the iteration that was seen.
    fn at(&self, seen: &Seen) -> Result<Self::Trained>;
}

/// The last iteration of a run, and the bounds of all.
#[derive(Clone)]
pub struct Seen {
    pub progress: Progress,
    pub trace: Vec<f64>,
}

impl Seen {
    /// The report of a run that was left there.
    pub fn fitted<M>(&self, model: M) -> Fitted<M> {
        Fitted {
            model,
            evidence: self.progress.bound,
            iterations: self.progress.iteration,
            evaluations: self.progress.iteration,
            converged: false,
            stop_reason: StopReason::Asked,
            trace: self.trace.clone(),
            runs: vec![Some(self.progress.bound)],
        }
    }
}

/// The last iterations of all runs that have had one.
#[derive(Default)]
struct Memory(Mutex<Vec<Seen>>);

impl Memory {
    fn see(&self, progress: &Progress) {
        let mut runs = self.0.lock().unwrap_or_else(|e| e.into_inner());
        match runs.iter_mut().find(|s| s.progress.restart == progress.restart) {
            Some(seen) => {
                seen.progress = progress.clone();
                seen.trace.push(progress.bound);
            }
            None => runs.push(Seen { progress: progress.clone(), trace: vec![progress.bound] }),
        }
    }

    /// That of the best run.
    fn best(&self) -> Option<Seen> {
        let runs = self.0.lock().unwrap_or_else(|e| e.into_inner());
        runs.iter().max_by(|a, b| a.progress.bound.total_cmp(&b.progress.bound)).cloned()
    }
}

/// Runs a fit, which a true answer of the callback, an exception in it or a signal asks to stop.
///
/// Returns what the fit has become, and the exception to be raised after it is stored. A run whose iteration does
/// not end soon after it was asked to stop is left behind, at the iteration before.
pub fn fit<J: Job>(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
    job: J,
) -> Outcome<(J::Trained, Option<PyErr>)> {
    let (job, stop, memory) = (Arc::new(job), Arc::new(AtomicBool::new(false)), Arc::new(Memory::default()));
    let (own, asked, seen, watched) = (job.clone(), stop.clone(), memory.clone(), callback.is_some());
    let mut receiver = spawn(move |sender: &Sender<Message<J::Trained>>| {
        own.fit(&|progress| {
            seen.see(progress);
            if watched && !asked.load(Ordering::Relaxed) {
                let (answer, answered) = mpsc::sync_channel(1);
                // Nobody listens any more once the caller is gone: then there is nobody to go on for.
                if sender.send(Message::Seen(progress.clone(), answer)).is_err() || answered.recv().is_err() {
                    return ControlFlow::Break(());
                }
            }
            if asked.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    })?;
    let (mut raised, mut since) = (None, None);
    loop {
        match wait(py, &mut receiver)? {
            Some(Message::Done(result)) => return Ok((result?, raised)),
            Some(Message::Seen(progress, answer)) => {
                let said = callback.map(|c| c.call1((progress.restart, progress.iteration, progress.bound)));
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
                (Some(seen), raised) => Ok((py.detach(|| caught(|| job.at(&seen)))?, raised)),
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
