//! `latentgp forecast SERIES`.

mod backtest;
mod job;
mod series;
mod tell;

use crate::args::Common;
use crate::failure::{Failure, Outcome};
use crate::fit::Progress;
use crate::{interrupt, out, summary};
use job::Job;
use latentgp::Mat;
use latentgp::data::lags::Lags;
use latentgp::kernel;
use latentgp::model::Fitted;
use latentgp::model::narx::{Forecast, Narx, NarxOptions, Score};
use latentgp::optim::StopReason;
use series::Series;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Which series, how far, how, and where the result goes.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "\
Examples:
  latentgp forecast sales.csv --horizon 24 --plot sales.svg        the next 24 values as CSV, and a picture
  latentgp dataset airline | latentgp forecast - --train 96 --kernel \"rbf + linear\" --compare
  latentgp dataset airline | latentgp forecast - --train 48 --kernel \"rbf + linear\" --expectation unscented --papers
  latentgp forecast sales.csv --backtest --horizon 12 --json",
    after_help = "\
The next value is learnt from the --lag values before it. Many steps ahead, each prediction is an uncertain
input of the next ones; the lags of a window are independent, or with --correlated carry their covariance. Columns
of the result: words of SERIES such as dates, where there are any (not in .npy files), row (from 0), truth,
mean and variance of an observation, noise included. Where --train leaves values of SERIES, the forecast is scored
on them: RMSE, NLPD and the shares of values inside the 50, 90 and 95 % intervals. The kernel sees windows in
standardised units; its parameters start wide unless it is given values."
)]
pub struct Args {
    /// A table: CSV, TSV, .npy, .npz:KEY, .mat:KEY, .parquet, or - for CSV on standard input
    series: String,
    /// The column to forecast [default: the only one of numbers]
    #[arg(long, value_name = "COL", help_heading = "Data")]
    column: Option<String>,
    /// Past values that the next one is learnt from
    #[arg(long, value_name = "L", default_value_t = 12, help_heading = "Data")]
    lag: usize,
    /// Values learnt to predict, after the first window [default: all; with --backtest half of them]
    #[arg(long, value_name = "N", help_heading = "Data")]
    train: Option<usize>,
    /// Steps beyond those [default: to the end of SERIES, else 24; with --backtest 12]
    #[arg(long, value_name = "H", help_heading = "Data")]
    horizon: Option<usize>,

    /// A kernel expression, such as matern32 or "periodic + rbf + linear"
    #[arg(long, short, value_name = "KERNEL", default_value = "rbf + linear", help_heading = "Model")]
    kernel: String,
    /// How uncertain windows are integrated over [default: auto]
    #[arg(long, short, value_name = "RULE", help_heading = "Model")]
    expectation: Option<String>,
    /// Take every lag for its mean
    #[arg(long, help_heading = "Model", conflicts_with_all = ["expectation", "correlated", "compare"])]
    no_propagate: bool,
    /// Carry the covariance of the window along
    #[arg(long, help_heading = "Model")]
    correlated: bool,
    /// The expectations side by side
    #[arg(long, help_heading = "Model", conflicts_with = "expectation")]
    compare: bool,
    /// The protocol of the papers: their start and fit, simulated from the first training window on
    #[arg(long, help_heading = "Model", conflicts_with_all = ["correlated", "backtest", "restarts", "max_iter"])]
    papers: bool,

    /// Runs from different starts, of which the best is kept [default: 1]
    #[arg(long, value_name = "N", help_heading = "Training")]
    restarts: Option<usize>,
    /// Most iterations of a run [default: 1000]
    #[arg(long, value_name = "N", help_heading = "Training")]
    max_iter: Option<usize>,

    /// Score forecasts from many origins, each of which knows the past alone
    #[arg(long, help_heading = "Backtest", conflicts_with = "plot")]
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
    /// Draw the forecast with its bands (.svg, .png)
    #[arg(long, value_name = "FIG", help_heading = "Results")]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long, help_heading = "Results")]
    json: bool,
}

/// One way to simulate and what came of it.
struct Found {
    name: String,
    forecast: Forecast,
    score: Option<Score>,
}

/// Fits, simulates, scores and tells.
pub fn run(args: &Args, common: &Common) -> Outcome {
    out::check(args.out.as_deref(), &out::TABLES)?;
    out::check(args.plot.as_deref(), &["svg", "png"])?;
    job::check(args)?;
    kernel::parse(&args.kernel, args.lag)?;
    interrupt::listen()?;
    let series = Series::read(&args.series, args.column.as_deref(), args.lag)?;
    let job = Job::new(args, common, &series)?;
    if args.backtest {
        return backtest::run(args, common, &job, &series);
    }
    let fitted = fit(&job, &series, common.quiet)?;
    if fitted.stop_reason == StopReason::Asked {
        return Err(Failure::interrupted("interrupted before the fit ended; nothing is kept"));
    }
    let found = simulate(&job, &series, &fitted.model)?;
    if let Some(path) = &args.plot {
        tell::picture(&job, &series, &found)?.save(path).map_err(Failure::work)?;
    }
    let table = || tell::table(&job, &series, &found, args.out.as_deref());
    if args.out.is_some() {
        out::table(&table()?, args.out.as_deref())?;
    }
    if args.json {
        return out::json(&tell::json(args, &job, &series, &fitted, &found));
    }
    if args.compare {
        return out::text(&tell::scores(&found));
    }
    if found[0].score.is_some() {
        out::note(common.quiet, tell::scores(&found));
    }
    if args.out.is_some() { Ok(()) } else { out::table(&table()?, None) }
}

/// Fits the model to the training part.
fn fit(job: &Job, series: &Series, quiet: bool) -> Outcome<Fitted<Narx>> {
    let progress = Progress::new(quiet, job.fitting.runs, job.fitting.max_iterations);
    let watch = |p: &latentgp::model::Progress| {
        progress.see(p.restart, p.iteration, p.bound);
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let known = Mat::column(&series.values[..job.known()]);
    let kernel = kernel::parse(&job.kernel, job.lag)?;
    let mut start = Narx::new(&known, None, Lags::new(job.lag), kernel, &NarxOptions::default())?;
    if job.wide {
        start.wide_start();
    }
    let fitted = if job.papers { start.papers_fit(&watch)? } else { start.fit(&job.fitting, &watch)? };
    progress.finish(&format!(
        "{}, log evidence {}: {}",
        summary::count(fitted.iterations, "iteration"),
        summary::short(fitted.evidence),
        fitted.stop_reason
    ));
    Ok(fitted)
}

/// Simulates in every way, and scores the steps whose truth is known.
fn simulate(job: &Job, series: &Series, model: &Narx) -> Outcome<Vec<Found>> {
    let begin = job.begin();
    let history = Mat::column(&series.values[..begin]);
    let steps = job.known() + job.horizon - begin;
    let seen = series.values.len().min(begin + steps);
    let truth = Mat::column(&series.values[begin..seen]);
    let mut all = Vec::new();
    for (name, way) in &job.ways {
        let forecast = model.simulate(&history, None, steps, way)?;
        let score = match seen > job.known() {
            true => forecast.score(&truth, job.known() - begin)?.pop(),
            false => None,
        };
        all.push(Found { name: name.clone(), forecast, score });
    }
    Ok(all)
}
