//! Forecasts as a table, as JSON and as lines of scores.

use super::fitting::Chosen;
use super::job::Job;
use super::series::Series;
use super::simulate::{Found, Scored};
use super::units::View;
use super::{Args, ways};
use crate::failure::{Failure, Outcome};
use crate::words::short;
use latentgp::data::table::{Column, Table};
use latentgp::model::narx::{LEVELS, Score};
use serde_json::{Value, json};
use std::path::Path;

/// Whether a file of that name takes words.
fn takes_words(to: Option<&Path>) -> bool {
    to.is_none_or(|path| path.extension().is_none_or(|e| !e.eq_ignore_ascii_case("npy")))
}

/// What stands before the columns of a series: nothing if there is only one.
pub fn prefix(series: &Series, d: usize) -> String {
    if series.names.len() == 1 { String::new() } else { format!("{}_", series.names[d]) }
}

/// `50`, `90`, `95`.
fn percent(level: f64) -> String {
    format!("{:.0}", 100.0 * level)
}

/// Dates, rows, the truth, means, variances and, of one way, intervals.
pub fn table(job: &Job, series: &Series, found: &[Found], to: Option<&Path>) -> Outcome<Table> {
    let rows = job.begin()..job.end();
    let mut columns = vec![Column::numbers("row", rows.clone().map(|i| i as f64).collect())];
    let seen = series.values.rows();
    for d in 0..series.names.len() {
        let before = prefix(series, d);
        let truth = |i: usize| if i < seen { series.values[(i, d)] } else { f64::NAN };
        columns.push(Column::numbers(format!("{before}truth"), rows.clone().map(truth).collect()));
        for each in found {
            let way = if found.len() == 1 { String::new() } else { format!("{}_", each.name) };
            let forecast = &each.view.forecast;
            columns.push(Column::numbers(format!("{before}{way}mean"), forecast.mean.col(d)));
            columns.push(Column::numbers(format!("{before}{way}variance"), forecast.var.col(d)));
        }
        if let [only] = found {
            columns.extend(intervals(&only.view, &before, d));
        }
    }
    if let Some((name, dates)) = series.dates_of(rows).filter(|_| takes_words(to)) {
        // A column of SERIES may have one of these names.
        let taken = columns.iter().any(|c| c.name == name);
        let name = if taken { format!("{name}_of_series") } else { name.to_string() };
        columns.insert(0, Column::words(name, dates));
    }
    Table::new("forecast", columns).map_err(Failure::work)
}

fn intervals(view: &View, before: &str, d: usize) -> Vec<Column> {
    let one = |(level, (lower, upper)): (&f64, &(latentgp::Mat, latentgp::Mat))| {
        let name = |end: &str| format!("{before}{end}_{}", percent(*level));
        [Column::numbers(name("lower"), lower.col(d)), Column::numbers(name("upper"), upper.col(d))]
    };
    LEVELS.iter().zip(&view.bands).flat_map(one).collect()
}

/// The drawn futures, one after the other.
pub fn paths(job: &Job, series: &Series, found: &Found) -> Outcome<Table> {
    let all = &found.view.forecast.trajectories;
    let steps = job.end() - job.begin();
    let cells = || (0..all.len()).flat_map(|p| (0..steps).map(move |h| (p, h)));
    let column = |name: &str, of: &dyn Fn(usize, usize) -> f64| {
        Column::numbers(name, cells().map(|(p, h)| of(p, h)).collect())
    };
    let mut columns =
        vec![column("path", &|p, _| (p + 1) as f64), column("row", &|_, h| (job.begin() + h) as f64)];
    for (d, name) in series.names.iter().enumerate() {
        let taken = ["path", "row"].contains(&name.as_str());
        let name = if taken { format!("{name}_of_series") } else { name.clone() };
        columns.push(column(&name, &|p, h| all[p][(h, d)]));
    }
    Table::new("paths", columns).map_err(Failure::work)
}

/// A line of a comparison.
pub struct Line<'a> {
    pub name: &'a str,
    pub runs: usize,
    pub scored: Option<&'a Scored>,
    pub cost: f64,
}

/// The scores, a line each way; of several series one block after the other.
pub fn scores(series: &Series, found: &[Found]) -> String {
    blocks(series, |d| {
        let rows: Vec<Line<'_>> = found
            .iter()
            .map(|f| Line { name: &f.name, runs: f.runs, scored: f.scores.get(d), cost: f.evaluations })
            .collect();
        lines(&rows)
    })
}

/// A block of text for each series, under its name where there are several.
pub fn blocks(series: &Series, of: impl Fn(usize) -> String) -> String {
    match &series.names[..] {
        [_] => of(0),
        names => {
            names.iter().enumerate().map(|(d, n)| format!("{n}\n{}", of(d))).collect::<Vec<_>>().join("\n\n")
        }
    }
}

/// A heading and a line each; without truth, the cost alone.
pub fn lines(rows: &[Line<'_>]) -> String {
    let name = |r: &Line<'_>| match r.runs {
        1 => r.name.to_string(),
        n => format!("{}, {n} runs", r.name),
    };
    let wide = rows.iter().map(|r| name(r).len()).max().unwrap_or(0).max("expectation".len());
    let spread = rows.iter().any(|r| r.scored.is_some_and(|s| s.std.is_some()));
    let (rmse, nlpd) = if spread { (22, 20) } else { (14, 14) };
    let mut text = format!("{:<wide$}", "expectation");
    if rows.iter().any(|r| r.scored.is_some()) {
        text += &format!("{:>rmse$}{:>nlpd$}", "RMSE", "NLPD");
        LEVELS.iter().for_each(|level| text += &format!("{:>8}", format!("in {}%", percent(*level))));
    }
    text += &format!("{:>20}", "kernel evaluations");
    for row in rows {
        text += &format!("\n{:<wide$}", name(row));
        if let Some(Scored { score, std }) = row.scored {
            let with = |value: String, std: Option<String>| match std {
                Some(std) => format!("{value} ± {std}"),
                // Values stand below each other, whether they have a deviation or not.
                None if spread => format!("{value}{}", " ".repeat(10)),
                None => value,
            };
            let deviation = |s: f64| {
                let text = if (1e-3..1e3).contains(&s) { format!("{s:.3}") } else { format!("{s:.0e}") };
                format!("{text:<7}")
            };
            let r = with(short(score.rmse), std.map(|s| deviation(s.0)));
            let n = with(scaled(score.nlpd), std.map(|s| deviation(s.1)));
            text += &format!("{r:>rmse$}{n:>nlpd$}");
            score.coverage.iter().for_each(|share| text += &format!("{:>7.0}%", 100.0 * share));
        }
        text += &format!("{:>20.0}", row.cost);
    }
    text
}

/// Three places, or digits where there would be too many.
fn scaled(value: f64) -> String {
    if value.abs() < 1e5 { format!("{value:.3}") } else { short(value) }
}

/// Puts a score into a JSON object.
pub fn put(all: &mut Value, score: &Score) {
    all["rmse"] = json!(score.rmse);
    all["nlpd"] = json!(score.nlpd);
    for (level, share) in LEVELS.iter().zip(score.coverage) {
        all["coverage"][percent(*level)] = json!(share);
    }
    all["scored"] = json!(score.count);
}

/// Puts the parts of each series into `all` itself if there is one series, into its list `series` otherwise.
pub fn put_series(all: &mut Value, series: &Series, of: impl Fn(usize) -> Value) {
    if series.names.len() > 1 {
        let one = |(d, name): (usize, &String)| {
            let mut own = of(d);
            own["target"] = json!(name);
            own
        };
        all["series"] = series.names.iter().enumerate().map(one).collect();
        return;
    }
    if let Value::Object(parts) = of(0) {
        parts.into_iter().for_each(|(key, value)| all[key] = value);
    }
}

fn one_series(found: &Found, d: usize) -> Value {
    let forecast = &found.view.forecast;
    let mut own = json!({ "mean": forecast.mean.col(d), "variance": forecast.var.col(d) });
    for (level, (lower, upper)) in LEVELS.iter().zip(&found.view.bands) {
        own["intervals"][percent(*level)] = json!({ "lower": lower.col(d), "upper": upper.col(d) });
    }
    if let Some(Scored { score, std }) = found.scores.get(d) {
        put(&mut own, score);
        if let Some((rmse, nlpd)) = std {
            own["rmse_std"] = json!(rmse);
            own["nlpd_std"] = json!(nlpd);
        }
    }
    own
}

/// The settings that every JSON document of this command begins with.
pub fn settings(args: &Args, job: &Job, series: &Series) -> Value {
    let mut all = json!({
        "targets": series.names,
        "exogenous": series.inputs,
        "n": series.values.rows(),
        "lag": job.lags.series,
        "exogenous_delays": job.lags.exogenous,
        "train": job.train,
        "horizon": job.horizon,
        "kernel": job.kernel,
        "inducing": job.options.inducing,
        "window": if ways::correlated(args) { "correlated" } else { "independent" },
        "out": args.out,
        "plot": args.plot,
    });
    if let [lag] = job.lags.series[..] {
        all["lag"] = json!(lag);
    }
    all
}

/// What the program was asked and what it found.
pub fn json(args: &Args, job: &Job, series: &Series, chosen: &Chosen, found: &[Found]) -> Value {
    let each = found.iter().map(|f| {
        let mut all = json!({ "expectation": f.name, "runs": f.runs, "kernel_evaluations": f.evaluations });
        put_series(&mut all, series, |d| one_series(f, d));
        all
    });
    let model = &*chosen.model;
    let mut all = settings(args, job, series);
    all["first_row"] = json!(job.begin());
    all["dates"] = json!(series.dates_of(job.begin()..job.end()).map(|d| d.1));
    all["transform"] = json!(chosen.units.name());
    all["fitted_kernel"] = json!(model.kernel().expression());
    all["noise_variance"] = json!(model.noise_variance());
    all["papers"] = json!(job.papers);
    all["log_evidence"] = json!(chosen.evidence);
    all["iterations"] = json!(chosen.iterations);
    all["converged"] = json!(chosen.converged);
    all["paths"] = json!(args.paths);
    all["forecasts"] = each.collect();
    all
}
