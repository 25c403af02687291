//! The `latentgp` program: options to library calls, and their results to tables, pictures and JSON.

mod args;
mod command;
mod data;
mod doubts;
mod fit;
mod forecast;
mod html;
mod picture;
mod progress;
mod regress;
mod search;
mod summary;
mod train;
mod trained;

use latentgp_figure as figure;
use latentgp_reproduce as reproduce;
use latentgp_terminal::{failure, interrupt, out, words};
use std::process::ExitCode;

/// A fit takes and gives back the same megabytes at every step, which this one does not return to the system meanwhile.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    interrupt::survive_limits();
    let cli = args::read();
    match command::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            out::note(false, format_args!("latentgp: {failure}"));
            ExitCode::from(failure.code)
        }
    }
}
