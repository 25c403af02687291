//! Threads for work, which no two jobs share.
//!
//! A job may wait for Python: for a kernel that is written there, or for the answer of a callback. What Python does
//! meanwhile may be another job, or wait for one: with threads in common, the one that waits could be the one that
//! is waited for. So every job takes a set of threads, and hands it back for the next one when it ends.

use crate::error::{Outcome, Raise};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Mutex;

/// How many sets of threads are kept while nobody uses them.
const KEPT: usize = 4;

/// The sets that are free, and the process that they are of.
static FREE: Mutex<(u32, Vec<ThreadPool>)> = Mutex::new((0, Vec::new()));

/// The threads of one job.
pub struct Pool {
    threads: ThreadPool,
    /// Whether the job was called from a thread of another one.
    inner: bool,
}

impl Pool {
    /// Threads that no job uses.
    ///
    /// A job inside of another has one thread, as each thread of the outer one may call for as much at once.
    pub fn take() -> Outcome<Pool> {
        let inner = rayon::current_thread_index().is_some();
        if !inner && let Some(threads) = free(|pools| pools.pop()) {
            return Ok(Pool { threads, inner });
        }
        let count = if inner { 1 } else { 0 };
        let made = ThreadPoolBuilder::new().num_threads(count).build();
        Ok(Pool { threads: made.map_err(|e| Raise::fault(&e.to_string()))?, inner })
    }

    /// Runs work on the threads.
    pub fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.threads.install(work)
    }

    /// Leaves the threads to the next job.
    pub fn give_back(self) {
        if !self.inner {
            free(|pools| {
                if pools.len() < KEPT {
                    pools.push(self.threads)
                }
            });
        }
    }
}

/// The sets of this process that are free: a fork has none of the threads of its parent.
fn free<T>(then: impl FnOnce(&mut Vec<ThreadPool>) -> T) -> T {
    let mut free = FREE.lock().unwrap_or_else(|e| e.into_inner());
    if free.0 != std::process::id() {
        // To drop a set of the parent would wait for its threads.
        std::mem::forget(std::mem::replace(&mut *free, (std::process::id(), Vec::new())));
    }
    then(&mut free.1)
}
