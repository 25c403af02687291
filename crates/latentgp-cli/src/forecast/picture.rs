//! Forecasts with their bands, and the scores of a backtest step by step.

use super::job::Job;
use super::series::Series;
use super::simulate::Found;
use crate::failure::Outcome;
use crate::figure::{self, Band, Bands, Figure, HorizonScores, Observation};

/// The series and each forecast with its bands; of several series, one picture each.
pub fn forecast(job: &Job, series: &Series, found: &[Found]) -> Outcome<Figure> {
    let x: Vec<f64> = (job.begin()..job.end()).map(|i| i as f64).collect();
    let one = |f: &Found, d: usize| {
        let observed = series
            .values
            .col(d)
            .into_iter()
            .enumerate()
            .map(|(i, y)| Observation { x: i as f64, y })
            .collect();
        let band = |k: usize, label: &str| {
            let (lower, upper) = &f.view.bands[k];
            Band { label: label.into(), lower: lower.col(d), upper: upper.col(d) }
        };
        Bands {
            title: f.name.clone(),
            x_title: "row".into(),
            y_title: series.names[d].clone(),
            x: x.clone(),
            mean: f.view.forecast.mean.col(d),
            bands: vec![band(1, "90 % band"), band(0, "50 % band")],
            observed,
            places: Vec::new(),
            training_end: Some((job.known() - 1) as f64),
        }
    };
    let count = series.names.len();
    let all: Vec<Bands> = (0..count).flat_map(|d| found.iter().map(move |f| one(f, d))).collect();
    Ok(match &all[..] {
        [only] => figure::bands(only)?,
        several if count == 1 => figure::bands_stacked(several)?,
        several => figure::bands_apart(several)?,
    })
}

/// RMSE and coverage at every step ahead, a line each way.
pub fn steps(scores: &[HorizonScores]) -> Outcome<Figure> {
    Ok(figure::horizons(scores)?)
}
