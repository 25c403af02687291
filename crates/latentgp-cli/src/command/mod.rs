//! One file a command.

pub mod completions;
pub mod dataset;
pub mod demo;
pub mod explore;
pub mod impute;
pub mod inspect;
pub mod plot;
pub mod predict;
pub mod reconstruct;
pub mod report;
pub mod transform;

use crate::args::{Cli, Command};
use crate::failure::{Failure, Outcome};
use crate::fit;
use crate::forecast;
use crate::regress;
use crate::reproduce;
use crate::search;

/// Runs the command.
pub fn run(cli: Cli) -> Outcome {
    if let Some(threads) = cli.common.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.get());
        pool.build_global().map_err(Failure::work)?;
    }
    let common = &cli.common;
    match cli.command {
        Command::Demo(args) => demo::run(&args, common),
        Command::Dataset(args) => dataset::run(&args, common),
        Command::Fit(args) => fit::run(&args, common),
        Command::Transform(args) => transform::run(&args, common),
        Command::Reconstruct(args) => reconstruct::run(&args, common),
        Command::Impute(args) => impute::run(&args, common),
        Command::Regress(args) => regress::run(&args, common),
        Command::Predict(args) => predict::run(&args, common),
        Command::Forecast(args) => forecast::run(&args, common),
        Command::Search(args) => search::run(&args, common),
        Command::Plot(args) => plot::run(&args, common),
        Command::Report(args) => report::run(&args, common),
        Command::Explore(args) => explore::run(&args, common),
        Command::Reproduce(args) => reproduce::run(&args, common.seed(), common.quiet),
        Command::Inspect(args) => inspect::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => completions::man(&args),
    }
}
