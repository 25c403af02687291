//! The command line: every command with its examples first.

use crate::command::{
    completions, dataset, demo, explore, impute, inspect, plot, predict, reconstruct, report, transform,
};
use crate::fit;
use crate::forecast;
use crate::regress;
use crate::reproduce;
use crate::search;
use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use latentgp::data::nearest;
use latentgp::fit::Effort;
use std::num::NonZeroUsize;

const TEMPLATE: &str = "\
{about-with-newline}
{before-help}{usage-heading} {usage}

{all-args}{after-help}";

/// Gaussian processes with uncertain inputs, for any kernel: latent spaces of tables, and what they tell.
#[derive(Parser)]
#[command(
    name = "latentgp",
    version,
    before_help = "\
Examples:
  latentgp demo                                        a whole example, with a picture and a report
  latentgp dataset oil-flow --n 300 > oil.csv          an embedded data set as CSV
  latentgp fit oil.csv --labels regime --latent-dim 5 --kernel matern32 --out oil.lgp
  latentgp explore oil.lgp                             the latent map in the browser, decoded under the pointer
  latentgp plot oil.lgp --out oil.svg                  the latent map, the relevance, the bound
  latentgp transform oil.lgp new.csv --out latent.csv  where new rows lie
  latentgp regress house.csv --target price --folds 5 --out house.lgp
  latentgp predict house.lgp new.csv                   means and variances of the price
  latentgp forecast sales.csv --horizon 24 --plot sales.svg
  latentgp reproduce --quick                           the papers' tables, ours beside theirs",
    after_help = "\
DATA is a file: CSV or TSV (header and delimiter are detected), .npy, .npz:KEY, .mat:KEY (MAT v5),
.parquet, or - for CSV on standard input. Empty cells, NA, N/A and NaN are missing values.
Results go to standard output or --out, progress and notes to standard error.
Exit codes: 0 done, 1 the work failed, 2 wrong usage, 3 bad input data, 130 interrupted."
)]
pub struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub common: Common,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// More threads than any machine has would only exhaust it.
const MAX_THREADS: usize = 1024;
/// More runs than anyone waits for would only exhaust the memory.
const MAX_RESTARTS: usize = 10_000;

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    match text.parse::<NonZeroUsize>() {
        Ok(n) if n.get() <= MAX_THREADS => Ok(n),
        _ => Err(format!("expected a whole number from 1 to {MAX_THREADS}")),
    }
}

/// How hard the best optimum is looked for.
#[derive(clap::Args, Debug)]
pub struct SearchArgs {
    /// How hard the best optimum is looked for: quick (one start), normal (a race of many starts, no more than ten times as
    /// long), thorough (no more than forty times) [default: normal]
    #[arg(long, value_name = "HOW", value_parser = effort, help_heading = "Training", conflicts_with = "restarts")]
    pub effort: Option<Effort>,
    /// In place of a search, so many runs from different starts, each to its end, of which the best is kept
    #[arg(long, value_name = "N", value_parser = restarts, help_heading = "Training")]
    pub restarts: Option<usize>,
}

impl SearchArgs {
    /// What was asked for, in one.
    pub fn chosen(&self) -> Effort {
        if self.restarts.is_some() { Effort::Quick } else { self.effort.unwrap_or_default() }
    }
}

fn effort(text: &str) -> Result<Effort, String> {
    text.parse().map_err(|e: latentgp::Error| e.to_string())
}

/// Where latent positions and inducing inputs start.
#[derive(clap::Args, Debug)]
pub struct InitArgs {
    /// Where the latent positions of the first run start: pca, pca-raw, spectral, random, or a FILE with a row for each of
    /// DATA: a table, or a model of the same rows [default: pca]
    #[arg(long, value_name = "HOW|FILE", help_heading = "Training")]
    pub init: Option<String>,
    /// Where inducing inputs start: spread (positions that are far apart), kmeans, rows, or a FILE with a row for each
    /// [default: spread]
    #[arg(long, value_name = "HOW|FILE", help_heading = "Training")]
    pub inducing_init: Option<String>,
}

/// A number of latent dimensions, or one that follows from the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimensions {
    /// As many as matter.
    Auto,
    /// So many.
    Of(usize),
}

/// `auto` or a number.
pub fn dimensions(text: &str) -> Result<Dimensions, String> {
    match text {
        "auto" => Ok(Dimensions::Auto),
        number => {
            number.parse().map(Dimensions::Of).map_err(|_| "expected auto or a whole number".to_string())
        }
    }
}

/// How many runs a fit may make.
pub fn restarts(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 0..=MAX_RESTARTS) => Ok(n),
        _ => Err(format!("expected a whole number up to {MAX_RESTARTS}")),
    }
}

/// What is done about columns that may be no data.
#[derive(Args, Debug)]
pub struct DoubtArgs {
    /// Refuse data that look like something else: identifiers, dates as numbers, marks of missing values, slips
    #[arg(long, help_heading = "Data")]
    pub strict: bool,
}

/// Options of every command.
#[derive(Args, Debug, Clone)]
pub struct Common {
    /// Seed of everything random; the same seed gives the same digits [default: 0]
    #[arg(long, global = true, value_name = "N", help_heading = "Everywhere")]
    pub seed: Option<u64>,
    /// Threads to use; results do not depend on it [default: all cores]
    #[arg(long, global = true, value_name = "N", help_heading = "Everywhere", value_parser = threads)]
    pub threads: Option<NonZeroUsize>,
    /// No progress and no notes on standard error
    #[arg(long, short, global = true, help_heading = "Everywhere")]
    pub quiet: bool,
}

impl Common {
    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Learn a latent space of an embedded data set, print what it tells, write a picture and a report
    Demo(demo::Args),
    /// List the embedded data sets, or print one as CSV
    Dataset(dataset::Args),
    /// Learn a latent space of a table
    Fit(Box<fit::Args>),
    /// Find the latent positions of new rows, with variances
    Transform(transform::Args),
    /// Decode latent positions to data, with variances
    Reconstruct(reconstruct::Args),
    /// Fill the missing cells of a table, with variances
    Impute(impute::Args),
    /// Learn to predict columns of a table from the others: values, classes or counts
    Regress(Box<regress::Args>),
    /// Predict with a regression: means and variances, or class probabilities
    Predict(predict::Args),
    /// Forecast a series many steps ahead, with uncertainty that is carried along
    Forecast(Box<forecast::Args>),
    /// Compare kernels, latent dimensions and inducing inputs within a budget, and keep the best
    Search(Box<search::Args>),
    /// Draw the latent map, the relevance and the bound of a model
    Plot(plot::Args),
    /// Write one self-contained HTML page about a model
    Report(report::Args),
    /// Look at a model in the browser: the latent map, decoded live under the pointer
    Explore(explore::Args),
    /// Make the tables and figures of the papers anew, ours beside theirs
    Reproduce(reproduce::Args),
    /// Show what is in a model file
    Inspect(inspect::Args),
    /// Print the completions of a shell
    Completions(completions::Args),
    /// Print the manual page, of the program or of one command
    Man(completions::ManArgs),
}

/// The whole command line, examples in their place.
pub fn command() -> clap::Command {
    let each = |c: clap::Command| c.help_template(TEMPLATE).mut_args(negative);
    each(Cli::command()).mut_subcommands(each)
}

/// A negative number after an option is its value, which the option itself may refuse.
fn negative(arg: clap::Arg) -> clap::Arg {
    match arg.get_action().takes_values() && !arg.is_positional() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    }
}

/// The arguments of this process; wrong usage ends it with code 2.
pub fn read() -> Cli {
    let matches = command().try_get_matches().unwrap_or_else(|e| suggested(e).exit());
    Cli::from_arg_matches(&matches).unwrap_or_else(|e| e.exit())
}

/// Adds the nearest command where the parser sees none: it does not know that `fti` is `fit`.
fn suggested(mut e: clap::Error) -> clap::Error {
    if let (Some(ContextValue::String(typed)), None) =
        (e.get(ContextKind::InvalidSubcommand), e.get(ContextKind::SuggestedSubcommand))
    {
        let command = command();
        let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        if let Some(near) = nearest(typed, &names) {
            let near = ContextValue::Strings(vec![near.to_string()]);
            e.insert(ContextKind::SuggestedSubcommand, near);
        }
    }
    e
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_sound() {
        super::command().debug_assert();
    }
}
