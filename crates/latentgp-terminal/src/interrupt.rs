//! Ctrl-C: the first asks the work to stop, a later second one ends the program at once.

use crate::failure::{Failure, Outcome};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Signals so soon after the first are the same wish: `timeout` sends one to the program and one to its group.
const ONE_WISH: Duration = Duration::from_secs(1);

static ASKED: OnceLock<Instant> = OnceLock::new();

/// Begins to listen for Ctrl-C, SIGTERM and SIGHUP.
pub fn listen() -> Outcome {
    ctrlc::set_handler(|| {
        if ASKED.get_or_init(Instant::now).elapsed() > ONE_WISH {
            std::process::exit(130);
        }
    })
    .map_err(Failure::work)
}

/// Makes a file that grows over its limit (`ulimit -f`) a failed write, after which temporary files are removed, in place of
/// the end of the program.
pub fn survive_limits() {
    #[cfg(unix)]
    // SAFETY: no handler is installed; the call is made before any thread begins.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Whether somebody asked to stop.
pub fn asked() -> bool {
    ASKED.get().is_some()
}
