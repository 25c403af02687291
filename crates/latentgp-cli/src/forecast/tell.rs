//! Forecasts as a table, as JSON, as lines of scores and as a picture.

use super::job::Job;
use super::series::Series;
use super::{Args, Found};
use crate::failure::{Failure, Outcome};
use crate::figure::{self, Bands, Figure, Observation};
use crate::summary::short;
use latentgp::data::table::{Column, Table};
use latentgp::model::Fitted;
use latentgp::model::narx::{LEVELS, Narx, Score};
use serde_json::{Value, json};
use std::path::Path;

/// Whether a file of that name takes words.
fn takes_words(to: Option<&Path>) -> bool {
    to.is_none_or(|path| path.extension().is_none_or(|e| !e.eq_ignore_ascii_case("npy")))
}

/// Dates, rows, the truth, means and variances.
pub fn table(job: &Job, series: &Series, found: &[Found], to: Option<&Path>) -> Outcome<Table> {
    let begin = job.begin();
    let rows = begin..job.known() + job.horizon;
    let mut columns = Vec::new();
    if let Some(dates) = series.dates.as_ref().filter(|_| takes_words(to)) {
        let date = |i: usize| if i < dates.len() { dates.text(i) } else { String::new() };
        columns.push(Column::words(dates.name.clone(), rows.clone().map(date)));
    }
    columns.push(Column::numbers("row", rows.clone().map(|i| i as f64).collect()));
    let truth = |i: usize| series.values.get(i).copied().unwrap_or(f64::NAN);
    columns.push(Column::numbers("truth", rows.map(truth).collect()));
    for each in found {
        let (mean, variance) = match found.len() {
            1 => ("mean".to_string(), "variance".to_string()),
            _ => (format!("{}_mean", each.name), format!("{}_variance", each.name)),
        };
        columns.push(Column::numbers(mean, each.forecast.mean.col(0)));
        columns.push(Column::numbers(variance, each.forecast.var.col(0)));
    }
    // A column of SERIES may have one of these names.
    if let Some(first) = columns.first().map(|c| c.name.clone())
        && columns[1..].iter().any(|c| c.name == first)
    {
        columns[0].name = format!("{first}_of_series");
    }
    Table::new("forecast", columns).map_err(Failure::work)
}

/// The scores, a line each way.
pub fn scores(found: &[Found]) -> String {
    let rows: Vec<_> =
        found.iter().map(|f| (f.name.as_str(), f.score.as_ref(), f.forecast.evaluations)).collect();
    lines(&rows)
}

/// A heading and a line each; without truth, the cost alone.
pub fn lines(rows: &[(&str, Option<&Score>, f64)]) -> String {
    let wide = rows.iter().map(|r| r.0.len()).max().unwrap_or(0).max("expectation".len());
    let scored = rows.iter().any(|r| r.1.is_some());
    let mut text = format!("{:<wide$}", "expectation");
    if scored {
        text += &format!("{:>12}{:>10}{:>8}{:>8}{:>8}", "RMSE", "NLPD", "in 50%", "in 90%", "in 95%");
    }
    text += &format!("{:>20}", "kernel evaluations");
    for (name, score, cost) in rows {
        text += &format!("\n{name:<wide$}");
        if let Some(s) = score {
            text += &format!("{:>12}{:>10.3}", short(s.rmse), s.nlpd);
            s.coverage.iter().for_each(|share| text += &format!("{:>7.0}%", 100.0 * share));
        }
        text += &format!("{cost:>20.0}");
    }
    text
}

/// Puts a score into a JSON object.
pub fn put(all: &mut Value, score: &Score) {
    all["rmse"] = json!(score.rmse);
    all["nlpd"] = json!(score.nlpd);
    for (level, share) in LEVELS.iter().zip(score.coverage) {
        all["coverage"][format!("{:.0}", 100.0 * level)] = json!(share);
    }
    all["scored"] = json!(score.count);
}

/// What the program was asked and what it found.
pub fn json(args: &Args, job: &Job, series: &Series, fitted: &Fitted<Narx>, found: &[Found]) -> Value {
    let each = found.iter().map(|f| {
        let mut all = json!({
            "expectation": f.name,
            "kernel_evaluations": f.forecast.evaluations,
            "mean": f.forecast.mean.col(0),
            "variance": f.forecast.var.col(0),
        });
        if let Some(score) = &f.score {
            put(&mut all, score);
        }
        all
    });
    json!({
        "column": series.name,
        "n": series.values.len(),
        "lag": job.lag,
        "train": job.train,
        "horizon": job.horizon,
        "first_row": job.begin(),
        "kernel": job.kernel,
        "fitted_kernel": fitted.model.kernel().expression(),
        "noise_variance": fitted.model.noise().get() * fitted.model.scaling.scale[0].powi(2),
        "correlated": args.correlated,
        "papers": job.papers,
        "log_evidence": fitted.evidence,
        "iterations": fitted.iterations,
        "converged": fitted.converged,
        "forecasts": each.collect::<Vec<_>>(),
        "out": args.out,
        "plot": args.plot,
    })
}

/// The series and each forecast with its bands.
pub fn picture(job: &Job, series: &Series, found: &[Found]) -> Outcome<Figure> {
    let x: Vec<f64> = (job.begin()..job.known() + job.horizon).map(|i| i as f64).collect();
    let observed: Vec<Observation> =
        series.values.iter().enumerate().map(|(i, &y)| Observation { x: i as f64, y }).collect();
    let one = |f: &Found| Bands {
        title: f.name.clone(),
        x_title: "row".into(),
        y_title: series.name.clone(),
        observed: observed.clone(),
        training_end: Some((job.known() - 1) as f64),
        ..Bands::gaussian(&x, &f.forecast.mean.col(0), &f.forecast.var.col(0))
    };
    let all: Vec<Bands> = found.iter().map(one).collect();
    Ok(match &all[..] {
        [only] => figure::bands(only)?,
        several => figure::bands_stacked(several)?,
    })
}
