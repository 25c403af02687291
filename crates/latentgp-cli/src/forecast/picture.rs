//! Forecasts with their bands, and the scores of a backtest step by step.

use super::job::Job;
use super::series::Series;
use super::simulate::Found;
use crate::failure::Outcome;
use crate::figure::{self, Band, Bands, Figure, HorizonScores, Observation};

/// Steps of history that are drawn for each step of the forecast, and for each step of the longest lag.
const HISTORY: (usize, usize) = (5, 3);
/// Years that an axis needs to have years alone at its ticks.
const YEARS: usize = 3;

/// The series and each forecast with its bands; of several series, one picture each. Of a long history what lies before
/// the forecast is drawn.
pub fn forecast(job: &Job, series: &Series, found: &[Found]) -> Outcome<Figure> {
    let x: Vec<f64> = (job.begin()..job.end()).map(|i| i as f64).collect();
    let history = (HISTORY.0 * (job.end() - job.begin())).max(HISTORY.1 * job.lags.longest());
    let from = job.begin().saturating_sub(history);
    let (x_title, places) = match series.dates_of(0..job.end().max(series.values.rows())) {
        Some((name, dates)) => (name.to_string(), ticks(&dates, from)),
        None => ("row".to_string(), Vec::new()),
    };
    let one = |f: &Found, d: usize| {
        let observed = series
            .values
            .col(d)
            .into_iter()
            .enumerate()
            .skip(from)
            .filter(|(_, y)| y.is_finite())
            .map(|(i, y)| Observation { x: i as f64, y })
            .collect();
        let name = &series.names[d];
        let band = |k: usize, label: &str| {
            let (lower, upper) = &f.view.bands[k];
            Band { label: label.into(), lower: lower.col(d), upper: upper.col(d) }
        };
        Bands {
            title: if found.len() > 1 { format!("{name}: {}", f.name) } else { name.clone() },
            x_title: x_title.clone(),
            y_title: name.clone(),
            x: x.clone(),
            mean: f.view.forecast.mean.col(d),
            bands: vec![band(1, "90 % band"), band(0, "50 % band")],
            observed,
            spread: Vec::new(),
            training_end: Some((job.known() - 1) as f64),
            places: places.clone(),
            joined: true,
            least: f.view.units.least(),
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

/// The dates from a row on; of several years the first row of each alone, under its year.
fn ticks(dates: &[String], from: usize) -> Vec<(f64, String)> {
    let year = |i: usize| dates[i].get(..4).filter(|y| y.bytes().all(|b| b.is_ascii_digit()));
    let begins =
        |i: &usize| *i > 0 && year(*i).is_some() && year(*i - 1).is_some() && year(*i) != year(*i - 1);
    let years: Vec<usize> = (from..dates.len()).filter(begins).collect();
    let yearly = years.len() >= YEARS && years.windows(2).any(|w| w[1] > w[0] + 1);
    match yearly {
        true => years.iter().map(|&i| (i as f64, year(i).unwrap_or_default().to_string())).collect(),
        false => {
            let known = (from..dates.len()).filter(|&i| !dates[i].is_empty());
            known.map(|i| (i as f64, dates[i].clone())).collect()
        }
    }
}

/// RMSE and coverage at every step ahead, a line each way.
pub fn steps(scores: &[HorizonScores]) -> Outcome<Figure> {
    Ok(figure::horizons(scores)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_several_years_are_years() {
        let months: Vec<String> = (0..60).map(|i| format!("{}-{:02}", 1950 + i / 12, 1 + i % 12)).collect();
        let all = ticks(&months, 0);
        let names: Vec<&str> = all.iter().map(|t| t.1.as_str()).collect();
        assert_eq!(names, ["1951", "1952", "1953", "1954"]);
        assert_eq!(all[0].0, 12.0);
        assert_eq!(ticks(&months, 40).len(), 20);
        let words: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
        assert_eq!(ticks(&words, 1), [(1.0, "b".to_string()), (2.0, "c".to_string())]);
    }
}
