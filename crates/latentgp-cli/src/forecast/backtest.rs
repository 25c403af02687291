//! `latentgp forecast --backtest`: forecasts from many origins, scored on what came after.

use super::job::Job;
use super::series::Series;
use super::simulate::Scored;
use super::tell::{self, Line};
use super::units::{Cells, Units, View};
use super::{Args, fitting, picture};
use crate::args::Common;
use crate::failure::{Failure, Outcome};
use crate::figure::HorizonScores;
use crate::progress::Progress;
use crate::{interrupt, out};
use latentgp::data::table::{Column, Table};
use latentgp::kernel;
use latentgp::model::narx::{Backtest, Backtested, Refit, Score, Simulation};
use serde_json::{Value, json};
use std::ops::ControlFlow;

/// One way to simulate, from all origins.
struct Rolled {
    name: String,
    views: Vec<View>,
    /// The scores of each series over all origins and steps.
    overall: Vec<Score>,
    /// The same for each step ahead.
    by_step: Vec<Vec<Score>>,
    cost: f64,
}

/// Runs, scores and tells.
pub fn run(args: &Args, common: &Common, job: &Job, series: &Series) -> Outcome {
    let how = Backtest {
        first: job.known(),
        horizon: job.horizon,
        stride: args.stride.unwrap_or(job.horizon),
        refit: if args.refit { Refit::Always } else { Refit::Once },
        memory: None,
        fitting: job.fitting.clone(),
    };
    let units = fitting::units(job, series, common.quiet)?;
    let found = roll(&how, units, job, series, common.quiet)?;
    let origins = found[0].origins.clone();
    let rolled: Vec<Rolled> = job
        .ways
        .iter()
        .zip(found)
        .map(|(way, of)| Rolled::new(&way.name, of, units, series))
        .collect::<Outcome<_>>()?;
    if let Some(path) = &args.plot {
        picture::steps(&lines_of(series, &rolled))?.save(path).map_err(Failure::work)?;
    }
    if args.out.is_some() {
        out::table(&table(series, &origins, &rolled)?, args.out.as_deref())?;
    }
    if args.json {
        return out::json(&to_json(args, job, series, units, &how, &origins, &rolled));
    }
    out::text(&words(series, &origins, &rolled))
}

fn roll(how: &Backtest, units: Units, job: &Job, series: &Series, quiet: bool) -> Outcome<Vec<Backtested>> {
    let progress = Progress::new(quiet, job.fitting.search(), job.fitting.max_iterations);
    let watch = |run: &latentgp::fit::Run| {
        progress.see(run);
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let kernel = kernel::parse(&job.kernel, job.lags.width())?;
    let ways: Vec<Simulation> = job.ways.iter().map(|w| w.runs[0].clone()).collect();
    let values = units.apply(&series.values);
    let inputs = series.exogenous.as_ref().map(|u| u.slice_rows(0, values.rows()));
    let found =
        how.run(&values, inputs.as_ref(), &job.lags, &*kernel, &job.options, job.wide, &ways, &watch)?;
    if interrupt::asked() {
        return Err(Failure::interrupted("interrupted before the backtest ended; nothing is kept"));
    }
    progress.finish(&format!("{} origins", found[0].origins.len()));
    Ok(found)
}

impl Rolled {
    fn new(name: &str, of: Backtested, units: Units, series: &Series) -> Outcome<Self> {
        let cost = of.forecasts.iter().map(|f| f.evaluations).sum();
        let views: Vec<View> =
            of.forecasts.into_iter().map(|f| View::new(units, f)).collect::<Outcome<_>>()?;
        let score = |steps: std::ops::Range<usize>, d: usize| {
            let mut cells = Cells::default();
            for (&origin, view) in of.origins.iter().zip(&views) {
                let last = steps.end.min(view.forecast.mean.rows());
                (steps.start..last).for_each(|h| cells.push(view, h, d, series.values[(origin + h, d)]));
            }
            cells.score()
        };
        let (count, longest) = (series.names.len(), of.by_step.len());
        let overall = (0..count).map(|d| score(0..longest, d)).collect::<Outcome<_>>()?;
        let by_step = (0..longest)
            .map(|h| (0..count).map(|d| score(h..h + 1, d)).collect::<Outcome<_>>())
            .collect::<Outcome<_>>()?;
        Ok(Rolled { name: name.to_string(), views, overall, by_step, cost })
    }
}

/// A summary, a line each way and, of a single way, a line each step.
fn words(series: &Series, origins: &[usize], rolled: &[Rolled]) -> String {
    let first = &rolled[0];
    let row =
        |name: String, score: &Score, cost: f64| (name, Scored { score: score.clone(), std: None }, cost);
    let block = |d: usize| {
        let mut rows: Vec<_> = rolled.iter().map(|r| row(r.name.clone(), &r.overall[d], r.cost)).collect();
        if let [only] = rolled {
            let cost = only.cost / only.by_step.len() as f64;
            let step = |(h, s): (usize, &Vec<Score>)| row(format!("  step {}", h + 1), &s[d], cost);
            rows.extend(only.by_step.iter().enumerate().map(step));
        }
        let lines: Vec<Line<'_>> = rows
            .iter()
            .map(|(name, scored, cost)| Line { name, runs: 1, scored: Some(scored), cost: *cost })
            .collect();
        tell::lines(&lines)
    };
    format!(
        "{} origins, from row {} to row {}, up to {} steps ahead: {} values\n{}",
        origins.len(),
        origins[0],
        origins[origins.len() - 1],
        first.by_step.len(),
        first.overall[0].count,
        tell::blocks(series, block)
    )
}

fn lines_of(series: &Series, rolled: &[Rolled]) -> Vec<HorizonScores> {
    let name = |r: &Rolled, d: usize| match (rolled.len(), series.names.len()) {
        (_, 1) => r.name.clone(),
        (1, _) => series.names[d].clone(),
        _ => format!("{}, {}", series.names[d], r.name),
    };
    let one = |r: &Rolled, d: usize| HorizonScores {
        name: name(r, d),
        rmse: r.by_step.iter().map(|s| s[d].rmse).collect(),
        coverage: r.by_step.iter().map(|s| s[d].coverage).collect(),
    };
    (0..series.names.len()).flat_map(|d| rolled.iter().map(move |r| one(r, d))).collect()
}

/// A row for each step of each origin.
fn table(series: &Series, origins: &[usize], rolled: &[Rolled]) -> Outcome<Table> {
    let cells: Vec<(usize, usize)> = origins
        .iter()
        .zip(&rolled[0].views)
        .flat_map(|(&origin, v)| (0..v.forecast.mean.rows()).map(move |h| (origin, h)))
        .collect();
    let column = |name: &str, of: &dyn Fn(usize, usize) -> f64| {
        Column::numbers(name, cells.iter().map(|&(origin, h)| of(origin, h)).collect())
    };
    let mut columns = vec![
        column("origin", &|origin, _| origin as f64),
        column("step", &|_, h| (h + 1) as f64),
        column("row", &|origin, h| (origin + h) as f64),
    ];
    for d in 0..series.names.len() {
        let before = tell::prefix(series, d);
        columns.push(column(&format!("{before}truth"), &|origin, h| series.values[(origin + h, d)]));
        for of in rolled {
            let way = if rolled.len() == 1 { String::new() } else { format!("{}_", of.name) };
            let mean = of.views.iter().flat_map(|v| v.forecast.mean.col(d)).collect();
            let variance = of.views.iter().flat_map(|v| v.forecast.var.col(d)).collect();
            columns.push(Column::numbers(format!("{before}{way}mean"), mean));
            columns.push(Column::numbers(format!("{before}{way}variance"), variance));
        }
    }
    Table::new("forecasts", columns).map_err(Failure::work)
}

fn to_json(
    args: &Args,
    job: &Job,
    series: &Series,
    units: Units,
    how: &Backtest,
    origins: &[usize],
    rolled: &[Rolled],
) -> Value {
    let score = |s: &Score| {
        let mut one = json!({});
        tell::put(&mut one, s);
        one
    };
    let each = rolled.iter().map(|of| {
        let mut all = json!({ "expectation": of.name, "kernel_evaluations": of.cost });
        tell::put_series(&mut all, series, |d| {
            let mut own = score(&of.overall[d]);
            own["by_step"] = of.by_step.iter().map(|s| score(&s[d])).collect();
            own
        });
        all
    });
    let mut all = tell::settings(args, job, series);
    all["transform"] = json!(units.name());
    all["stride"] = json!(how.stride);
    all["refit"] = json!(args.refit);
    all["origins"] = json!(origins);
    all["backtest"] = each.collect();
    all
}
