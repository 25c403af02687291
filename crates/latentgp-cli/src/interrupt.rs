//! Ctrl-C: the first asks the work to stop, the second ends the program at once.

use crate::failure::{Failure, Outcome};
use std::sync::atomic::{AtomicUsize, Ordering};

static ASKED: AtomicUsize = AtomicUsize::new(0);

/// Begins to listen for Ctrl-C, SIGTERM and SIGHUP.
pub fn listen() -> Outcome {
    ctrlc::set_handler(|| {
        if ASKED.fetch_add(1, Ordering::SeqCst) > 0 {
            std::process::exit(130);
        }
    })
    .map_err(Failure::work)
}

/// Whether somebody asked to stop.
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst) > 0
}
