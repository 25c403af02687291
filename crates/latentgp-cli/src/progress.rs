//! Progress on stderr: a bar on a terminal, one line at the end elsewhere, nothing when quiet.

use crate::out;
use crate::words::short;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use latentgp::fit::{Run, Search};
use std::io::IsTerminal;
use std::sync::Mutex;

/// Where the restarts are.
pub struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    /// Iterations and bound of each restart.
    seen: Mutex<Vec<(usize, f64)>>,
    search: Search,
}

impl Progress {
    /// For the runs of a search, each of at most so many iterations.
    pub fn new(quiet: bool, search: Search, iterations: usize) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let total =
                (iterations as u64).saturating_mul(if search.is_race() { 1 } else { search.starts as u64 });
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
            let style = ProgressStyle::with_template(
                "{spinner} {bar:24} iteration {human_pos}  {msg}  {elapsed}, at most {eta} left",
            );
            bar.set_style(style.expect("a template of known keys"));
            bar
        });
        Progress { bar, quiet, seen: Mutex::new(vec![(0, f64::NEG_INFINITY); search.most()]), search }
    }

    /// One more iteration of a restart.
    pub fn see(&self, run: &Run) {
        let mut seen = self.seen.lock().unwrap_or_else(|e| e.into_inner());
        seen[run.restart] = (run.total_iterations(), run.bound().unwrap_or(f64::NEG_INFINITY));
        if let Some(bar) = &self.bar {
            bar.set_position(seen.iter().map(|s| s.0 as u64).sum());
            let best = seen.iter().map(|s| s.1).fold(f64::NEG_INFINITY, f64::max);
            let begun = seen.iter().filter(|s| s.0 > 0).count();
            bar.set_message(format!("of {begun} runs  best bound {}", short(best)));
            // How long a search may last is known when its first run is over.
            if self.search.is_race() && begun > 1 {
                bar.set_length((self.search.budget * seen[0].0 as f64) as u64);
            }
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
