//! What every experiment is given: its data, its settings, and how it tells where it stands.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use latentgp::fit::Run;
use latentgp_terminal::failure::{Failure, Outcome};
use latentgp_terminal::{interrupt, out};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

/// The settings of a run.
pub struct Context {
    /// The folder with the papers' data.
    pub data: Option<PathBuf>,
    /// Whether only what takes little time is run.
    pub quick: bool,
    /// Whether all lines of Monte Carlo take all their steps from the start.
    pub long: bool,
    /// Steps of Adam, where not each row's own.
    pub steps: Option<usize>,
    /// Runs of whatever is random.
    pub runs: usize,
    /// Seed of everything that the papers' own seeds do not fix.
    pub seed: u64,
    bar: Option<ProgressBar>,
    quiet: bool,
}

impl Context {
    /// Progress goes to a terminal's last line, or line by line to a file.
    pub fn new(data: Option<PathBuf>, quick: bool, runs: usize, seed: u64, quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}");
            bar.set_style(style.expect("a template of known keys"));
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Context { data, quick, long: false, steps: None, runs, seed, bar, quiet }
    }

    /// The path of a file of the papers, if it is there.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        self.data.as_ref().map(|folder| folder.join(name)).filter(|path| path.is_file())
    }

    /// What is being done.
    pub fn doing(&self, what: &str) -> Outcome {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_string());
        }
        self.go_on()
    }

    /// Something is done.
    pub fn done(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.println(what),
            None => out::note(self.quiet, what),
        }
    }

    /// Does something that writes to the terminal.
    pub fn pause<T>(&self, f: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(f),
            None => f(),
        }
    }

    /// Takes the last line away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Errs when somebody asked to stop.
    pub fn go_on(&self) -> Outcome {
        match interrupt::asked() {
            true => Err(Failure::interrupted("interrupted")),
            false => Ok(()),
        }
    }

    /// Sees the iterations of a fit, and ends it when somebody asks.
    pub fn watch(&self, what: &str) -> impl Fn(&Run) -> ControlFlow<()> + Sync {
        move |run| {
            if let Some(bar) = &self.bar {
                let bound = run.bound().unwrap_or(f64::NAN);
                bar.set_message(format!("{what}: iteration {}, bound {bound:.1}", run.total_iterations()));
            }
            if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
}
