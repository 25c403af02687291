//! `latentgp forecast --backtest`: forecasts from many origins, scored on what came after.

use super::job::Job;
use super::series::Series;
use super::{Args, tell};
use crate::args::Common;
use crate::failure::{Failure, Outcome};
use crate::fit::Progress;
use crate::{interrupt, out};
use latentgp::Mat;
use latentgp::data::lags::Lags;
use latentgp::data::table::{Column, Table};
use latentgp::kernel;
use latentgp::model::narx::{Backtest, Backtested, NarxOptions, Refit, Simulation};
use serde_json::{Value, json};
use std::ops::ControlFlow;

/// Runs, scores and tells.
pub fn run(args: &Args, common: &Common, job: &Job, series: &Series) -> Outcome {
    let progress = Progress::new(common.quiet, job.fitting.runs, job.fitting.max_iterations);
    let watch = |p: &latentgp::model::Progress| {
        progress.see(p.restart, p.iteration, p.bound);
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let how = Backtest {
        first: job.known(),
        horizon: job.horizon,
        stride: args.stride.unwrap_or(job.horizon),
        refit: if args.refit { Refit::Always } else { Refit::Once },
        memory: None,
        fitting: job.fitting.clone(),
    };
    let kernel = kernel::parse(&job.kernel, job.lag)?;
    let ways: Vec<Simulation> = job.ways.iter().map(|w| w.1.clone()).collect();
    let (values, lags) = (Mat::column(&series.values), Lags::new(job.lag));
    let options = NarxOptions::default();
    let found = how.run(&values, None, &lags, &*kernel, &options, job.wide, &ways, &watch)?;
    if interrupt::asked() {
        return Err(Failure::interrupted("interrupted before the backtest ended; nothing is kept"));
    }
    progress.finish(&format!("{} origins", found[0].origins.len()));
    if args.out.is_some() {
        out::table(&table(job, series, &found)?, args.out.as_deref())?;
    }
    if args.json {
        return out::json(&to_json(args, job, series, &how, &found));
    }
    let rows: Vec<_> =
        job.ways.iter().zip(&found).map(|(w, f)| (w.0.as_str(), Some(&f.overall[0]), cost(f))).collect();
    let of = &found[0];
    out::text(&format!(
        "{} origins, from row {} to row {}, up to {} steps ahead: {} values\n{}",
        of.origins.len(),
        of.origins[0],
        of.origins[of.origins.len() - 1],
        of.by_step.len(),
        of.overall[0].count,
        tell::lines(&rows)
    ))
}

fn cost(of: &Backtested) -> f64 {
    of.forecasts.iter().map(|f| f.evaluations).sum()
}

/// A row for each step of each origin.
fn table(job: &Job, series: &Series, found: &[Backtested]) -> Outcome<Table> {
    let cells: Vec<(usize, usize)> = found[0]
        .origins
        .iter()
        .zip(&found[0].forecasts)
        .flat_map(|(&origin, f)| (0..f.mean.rows()).map(move |h| (origin, h)))
        .collect();
    let column = |name: &str, of: &dyn Fn(usize, usize) -> f64| {
        Column::numbers(name, cells.iter().map(|&(origin, h)| of(origin, h)).collect())
    };
    let mut columns = vec![
        column("origin", &|origin, _| origin as f64),
        column("step", &|_, h| (h + 1) as f64),
        column("row", &|origin, h| (origin + h) as f64),
        column("truth", &|origin, h| series.values[origin + h]),
    ];
    for ((name, _), of) in job.ways.iter().zip(found) {
        let before = if found.len() == 1 { String::new() } else { format!("{name}_") };
        let mean = of.forecasts.iter().flat_map(|f| f.mean.col(0)).collect();
        let variance = of.forecasts.iter().flat_map(|f| f.var.col(0)).collect();
        columns.push(Column::numbers(format!("{before}mean"), mean));
        columns.push(Column::numbers(format!("{before}variance"), variance));
    }
    Table::new("forecasts", columns).map_err(Failure::work)
}

fn to_json(args: &Args, job: &Job, series: &Series, how: &Backtest, found: &[Backtested]) -> Value {
    let each = job.ways.iter().zip(found).map(|((name, _), of)| {
        let mut all = json!({ "expectation": name, "kernel_evaluations": cost(of) });
        tell::put(&mut all, &of.overall[0]);
        let step = |s: &Vec<latentgp::model::narx::Score>| {
            let mut one = json!({});
            tell::put(&mut one, &s[0]);
            one
        };
        all["by_step"] = of.by_step.iter().map(step).collect();
        all
    });
    json!({
        "column": series.name,
        "n": series.values.len(),
        "lag": job.lag,
        "train": job.train,
        "horizon": how.horizon,
        "stride": how.stride,
        "refit": args.refit,
        "kernel": job.kernel,
        "correlated": args.correlated,
        "origins": found[0].origins,
        "backtest": each.collect::<Vec<_>>(),
        "out": args.out,
    })
}
