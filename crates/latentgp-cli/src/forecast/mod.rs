//! `latentgp forecast SERIES`.

mod backtest;
mod dates;
mod fitting;
mod job;
mod picture;
mod series;
mod simulate;
mod tell;
mod units;
mod ways;

use crate::args::Common;
use crate::failure::{Failure, Outcome};
use crate::{doubts, interrupt, out};
use clap::ValueEnum;
use job::Job;
use latentgp::Mat;
use latentgp::data::doubts::Use;
use latentgp::data::table::Table;
use series::Series;
use std::path::PathBuf;

/// Which series, how far, how, and where the result goes.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "\
Examples:
  latentgp forecast sales.csv --horizon 24 --plot sales.svg     the next 24 values, and a picture
  latentgp dataset airline | latentgp forecast - --train 96 --plot airline.png
  latentgp forecast load.csv --target load --exogenous temp --exogenous-lag 2 --future temp.csv
  latentgp forecast prices.csv --target gas,power --lag 5 --trajectories 1000 --paths paths.csv
  latentgp forecast sales.csv --backtest --horizon 12 --compare --json
  latentgp dataset airline | latentgp forecast - --papers --train 48 --compare",
    after_help = "\
The next value is learnt from the --lag values before it. Many steps ahead, each prediction is
an uncertain input of the next ones: integrated over by --expectation, in windows that carry the
covariance of their lags (--window correlated) or take them for independent, or by whole sampled
futures (--trajectories).

SERIES has a row each time step, the oldest first; an empty cell is a missing value. The first column of words is taken
for dates. Rows at its end in which the targets are empty are the future; they may hold dates
and exogenous values, as may --future. Dates such as 1960-12 or 1960-12-31 that are evenly apart
go on by themselves.

Columns of the result: the dates, where there are any (not in .npy files), row (from 0), truth,
mean and variance of an observation, noise included, and the ends of the 50, 90 and 95 %
intervals; of several targets, each with its name in front. Where --train leaves values of
SERIES, the forecast is scored on them: RMSE, NLPD and the shares of values inside the
intervals. --compare shows all expectations side by side; Monte Carlo is the mean and the
standard deviation of --runs runs.

A series whose ups and downs grow with its level is better forecast as its logarithm:
--transform auto looks whether the first years, or whatever --train keeps, are like that, and
says so. The kernel sees windows in standardised units; its parameters start wide unless it is
given values.

--papers repeats the protocol of the unscented GPLVM paper: 12 lags, its start and its
optimiser, training inputs with a variance of 1e-6 (the paper names that of the noise:
--training-variance noise), independent windows, and a simulation that begins at the first
window of the training, with variances equal to the noise; values after the training are scored.
With --train 48 and the kernels \"rbf + linear\" and \"periodic + rbf + linear\" on the airline
series it gives the rows of the paper's Table 3."
)]
pub struct Args {
    /// A table: CSV, TSV, .npy, .npz:KEY, .mat:KEY, .parquet, or - for CSV on standard input
    series: String,
    /// The columns to forecast together, or all [default: the only one of numbers]
    #[arg(long, short, alias = "column", value_name = "COL,…", value_delimiter = ',', help_heading = "Data")]
    target: Vec<String>,
    /// The column of dates [default: the first of words]
    #[arg(long, value_name = "COL", help_heading = "Data")]
    date: Option<String>,
    /// Past values that the next one is learnt from, for all targets or each [default: 13; 12 with --papers]
    #[arg(long, value_name = "L,…", value_delimiter = ',', help_heading = "Data")]
    lag: Vec<usize>,
    /// Values learnt to predict, after the first window [default: all; with --backtest half of them]
    #[arg(long, value_name = "N", help_heading = "Data")]
    train: Option<usize>,
    /// Steps beyond those [default: to the end of SERIES, else 24; with --backtest 12]
    #[arg(long, value_name = "H", help_heading = "Data")]
    horizon: Option<usize>,
    /// Columns that are known in advance and help to predict
    #[arg(
        long,
        value_name = "COL,…",
        value_delimiter = ',',
        help_heading = "Data",
        conflicts_with = "papers"
    )]
    exogenous: Vec<String>,
    /// Their past values besides the present one, or a range of delays such as 1-3; for all or each [default: 0]
    #[arg(
        long,
        value_name = "L,…",
        value_delimiter = ',',
        help_heading = "Data",
        requires = "exogenous",
        allow_hyphen_values = true
    )]
    exogenous_lag: Vec<String>,
    /// A table of what follows SERIES: exogenous values, dates
    #[arg(long, value_name = "FILE", help_heading = "Data", conflicts_with = "backtest")]
    future: Option<String>,

    /// A kernel expression, such as matern32 or "periodic + rbf + linear"
    #[arg(long, short, value_name = "KERNEL", default_value = "rbf + linear", help_heading = "Model")]
    kernel: String,
    /// Forecast logarithms: log, none, or auto, where changes grow with the level [default: auto; none with --papers]
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true, help_heading = "Model")]
    transform: Option<TransformName>,
    /// Sparse regression with so many inducing windows [default: exact]
    #[arg(long, short = 'M', value_name = "M", help_heading = "Model", conflicts_with = "papers")]
    inducing: Option<usize>,
    /// How uncertain windows are integrated over [default: auto: analytic or, without a closed form, unscented]
    #[arg(long, short, value_name = "RULE", help_heading = "Model")]
    expectation: Option<String>,
    /// Most nodes that an expectation may use [default: 100000]
    #[arg(long, value_name = "N", help_heading = "Model", requires = "expectation")]
    max_nodes: Option<usize>,
    /// Whether the lags of a window are correlated or independent [default: correlated; independent with --papers]
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true, help_heading = "Model")]
    window: Option<WindowName>,
    /// Variance of the training inputs, in standardised units, or noise: that of the fit [default: 0; 1e-6 with --papers]
    #[arg(
        long,
        value_name = "V",
        help_heading = "Model",
        conflicts_with_all = ["trajectories", "no_propagate", "backtest"]
    )]
    training_variance: Option<String>,
    /// What is done about that variance: averaged over, or inferred, each value with a posterior [default: averaged]
    #[arg(
        long,
        value_name = "HOW",
        value_parser = ["averaged", "inferred"],
        help_heading = "Model",
        requires = "training_variance",
        conflicts_with = "papers"
    )]
    inputs: Option<String>,
    /// Draw so many futures instead: quantiles are theirs
    #[arg(
        long,
        value_name = "N",
        help_heading = "Model",
        conflicts_with_all = ["expectation", "window", "compare", "no_propagate"]
    )]
    trajectories: Option<usize>,
    /// Take every lag for its mean
    #[arg(long, help_heading = "Model", conflicts_with_all = ["expectation", "window", "compare"])]
    no_propagate: bool,
    /// The expectations side by side
    #[arg(long, help_heading = "Model", conflicts_with = "expectation")]
    compare: bool,
    /// Runs of each Monte Carlo row of a comparison [default: 10]
    #[arg(long, value_name = "N", help_heading = "Model", requires = "compare", conflicts_with = "backtest")]
    runs: Option<usize>,
    /// The protocol of the papers, described below
    #[arg(long, help_heading = "Model", conflicts_with_all = ["backtest", "effort", "restarts", "max_iter", "transform"])]
    papers: bool,

    #[command(flatten)]
    doubts: crate::args::DoubtArgs,
    #[command(flatten)]
    search: crate::args::SearchArgs,
    /// Most iterations of a run [default: 1000]
    #[arg(long, value_name = "N", help_heading = "Training")]
    max_iter: Option<usize>,

    /// Score forecasts from many origins, each of which knows the past alone
    #[arg(long, help_heading = "Backtest")]
    backtest: bool,
    /// Rows from an origin to the next [default: the horizon]
    #[arg(long, value_name = "N", help_heading = "Backtest", requires = "backtest")]
    stride: Option<usize>,
    /// Fit anew at every origin
    #[arg(long, help_heading = "Backtest", requires = "backtest")]
    refit: bool,

    /// Write the forecast to a file (.csv, .tsv, .npy, .parquet)
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    out: Option<PathBuf>,
    /// Write the drawn futures to a file: path, row and a column each target
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Results",
        requires = "trajectories",
        conflicts_with = "backtest"
    )]
    paths: Option<PathBuf>,
    /// Draw the forecast with its bands, or the scores of a backtest step by step (.svg, .png)
    #[arg(long, value_name = "FIG", help_heading = "Results")]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long, help_heading = "Results")]
    json: bool,
}

/// Whether logarithms are forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TransformName {
    /// Where changes grow with the level.
    Auto,
    /// Always.
    Log,
    /// Never.
    None,
}

/// What a window keeps of its past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WindowName {
    /// The covariance of its lags.
    Correlated,
    /// Their variances.
    Independent,
}

/// Fits, simulates, scores and tells.
pub fn run(args: &Args, common: &Common) -> Outcome {
    out::check(args.out.as_deref(), &out::TABLES)?;
    out::check(args.paths.as_deref(), &out::TABLES)?;
    out::check(args.plot.as_deref(), &["svg", "png"])?;
    let future = args.future.as_deref().and_then(Table::file);
    out::apart(
        &[("SERIES", Table::file(&args.series)), ("--future", future)],
        &[
            ("--out", args.out.as_deref()),
            ("--paths", args.paths.as_deref()),
            ("--plot", args.plot.as_deref()),
        ],
    )?;
    job::check(args)?;
    interrupt::listen()?;
    let series = Series::read(args)?;
    if let (true, Some(note)) = (args.doubts.strict, series.notes.first()) {
        return Err(Failure::data(format!("{note} (--strict)")));
    }
    for note in &series.notes {
        out::note(common.quiet, format!("note: {note}"));
    }
    let told = |names: &[String], values: &Mat| {
        doubts::tell(&args.doubts, common.quiet, &series.source, (names, values, Use::Values))
    };
    told(&series.names, &series.values)?;
    series.exogenous.as_ref().map_or(Ok(()), |inputs| told(&series.inputs, inputs))?;
    let job = Job::new(args, common, &series)?;
    if let Some(note) = series.dates_note(job.end()) {
        out::note(common.quiet, note);
    }
    if args.backtest {
        return backtest::run(args, common, &job, &series);
    }
    let chosen = fitting::fit(&job, &series, common.quiet)?;
    let found = simulate::simulate(&job, &series, &chosen)?;
    if let Some(path) = &args.plot {
        picture::forecast(&job, &series, &found)?.save(path).map_err(crate::failure::Failure::work)?;
    }
    if let Some(path) = &args.paths {
        out::table(&tell::paths(&job, &series, &found[0])?, Some(path))?;
    }
    let table = || tell::table(&job, &series, &found, args.out.as_deref());
    if args.out.is_some() {
        out::table(&table()?, args.out.as_deref())?;
    }
    if args.json {
        return out::json(&tell::json(args, &job, &series, &chosen, &found));
    }
    if args.compare {
        return out::text(&tell::scores(&series, &found));
    }
    if !found[0].scores.is_empty() {
        out::note(common.quiet, tell::scores(&series, &found));
    }
    if args.out.is_some() { Ok(()) } else { out::table(&table()?, None) }
}
