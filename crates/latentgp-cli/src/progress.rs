//! Progress on stderr: a bar on a terminal, one line at the end elsewhere, nothing when quiet.

use crate::out;
use crate::words::short;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use latentgp::fit::Run;
use std::io::IsTerminal;
use std::sync::Mutex;

/// Where the restarts are.
pub struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    /// Iterations and bound of each restart.
    seen: Mutex<Vec<(usize, f64)>>,
}

impl Progress {
    /// For so many restarts of at most so many iterations.
    pub fn new(quiet: bool, restarts: usize, iterations: usize) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let total = (restarts as u64).saturating_mul(iterations as u64);
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
            let style = ProgressStyle::with_template(
                "{spinner} {bar:24} iteration {human_pos}  bound {msg}  {elapsed}, at most {eta} left",
            );
            bar.set_style(style.expect("a template of known keys"));
            bar
        });
        Progress { bar, quiet, seen: Mutex::new(vec![(0, f64::NEG_INFINITY); restarts]) }
    }

    /// One more iteration of a restart.
    pub fn see(&self, run: &Run) {
        let mut seen = self.seen.lock().unwrap_or_else(|e| e.into_inner());
        seen[run.restart] = (run.total_iterations(), run.bound().unwrap_or(f64::NEG_INFINITY));
        if let Some(bar) = &self.bar {
            bar.set_position(seen.iter().map(|s| s.0 as u64).sum());
            let best = seen.iter().map(|s| s.1).fold(f64::NEG_INFINITY, f64::max);
            bar.set_message(short(best));
        }
    }

    /// Takes the bar away and says how it went.
    pub fn finish(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.finish_and_clear(),
            None => out::note(self.quiet, line),
        }
    }
}
