//! Simulates in every way, and scores the steps whose truth is known.

use super::fitting::Chosen;
use super::job::{Job, TrainingVariance};
use super::series::Series;
use super::units::{Cells, View};
use crate::failure::{Failure, Outcome};
use crate::out;
use latentgp::model::narx::{Score, Simulation, UncertainTraining};
use latentgp::model::{Jitter, SeriesModel};
use rayon::prelude::*;

/// One way to simulate and what came of it.
pub struct Found {
    pub name: String,
    /// The forecast of the first run.
    pub view: View,
    /// How many runs there were.
    pub runs: usize,
    /// The mean scores of each series; empty without truth.
    pub scores: Vec<Scored>,
    /// Evaluations of the kernel in one run.
    pub evaluations: f64,
}

/// A score, the mean of several runs, and their standard deviations.
pub struct Scored {
    pub score: Score,
    /// Of RMSE and NLPD.
    pub std: Option<(f64, f64)>,
}

impl Scored {
    /// Of several runs; the standard deviation is that of a sample.
    pub fn of(runs: Vec<Score>) -> Self {
        let n = runs.len() as f64;
        let mean = |of: &dyn Fn(&Score) -> f64| runs.iter().map(of).sum::<f64>() / n;
        let std = |of: &dyn Fn(&Score) -> f64| {
            let middle = mean(of);
            (runs.iter().map(|s| (of(s) - middle).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
        };
        let score = Score {
            rmse: mean(&|s| s.rmse),
            nlpd: mean(&|s| s.nlpd),
            coverage: [0, 1, 2].map(|i| mean(&|s| s.coverage[i])),
            count: runs[0].count,
        };
        let std = (runs.len() > 1).then(|| (std(&|s| s.rmse), std(&|s| s.nlpd)));
        Scored { score, std }
    }
}

/// Every way, every run.
pub fn simulate(job: &Job, series: &Series, chosen: &Chosen) -> Outcome<Vec<Found>> {
    let (begin, end) = (job.begin(), job.end());
    let history = chosen.units.apply(&series.values.slice_rows(0, begin));
    let inputs = series.exogenous.as_ref().map(|u| u.slice_rows(0, end.min(u.rows())));
    let model = &*chosen.model;
    let mut all = Vec::new();
    for way in &job.ways {
        let run = |how: &Simulation| -> Outcome<View> {
            let how = with_training(job, model, how);
            View::new(chosen.units, model.simulate(&history, inputs.as_ref(), end - begin, &how)?)
        };
        let runs = match way.runs.par_iter().map(run).collect::<Outcome<Vec<View>>>() {
            Ok(runs) => runs,
            // The others of a comparison are worth having without one that leaves the range of numbers.
            Err(why) if job.ways.len() > 1 => {
                out::note(false, format_args!("{} is left out: {why}", way.name));
                continue;
            }
            Err(why) => return Err(why),
        };
        let each = runs.iter().map(|view| score(job, series, view)).collect::<Outcome<Vec<_>>>()?;
        let series_of = |d: usize| Scored::of(each.iter().map(|scores| scores[d].clone()).collect());
        let count = runs.len();
        let view = runs.into_iter().next().expect("a way has a run");
        let used = match way.name.as_str() {
            "auto" => model.rule(&with_training(job, model, &way.runs[0]))?,
            _ => None,
        };
        all.push(Found {
            name: used.map_or_else(|| way.name.clone(), |rule| rule.expression()),
            evaluations: view.forecast.evaluations,
            view,
            runs: count,
            scores: (0..each[0].len()).map(series_of).collect(),
        });
    }
    match all.is_empty() {
        true => {
            Err(Failure::work("no way to simulate stayed in the range of numbers; try a shorter --horizon"))
        }
        false => Ok(all),
    }
}

/// With the variance of the training inputs that was asked for.
fn with_training(job: &Job, model: &dyn SeriesModel, how: &Simulation) -> Simulation {
    let variance = match job.training {
        None => return how.clone(),
        Some(TrainingVariance::Noise) => model.noise(),
        Some(TrainingVariance::Value(v)) => v,
    };
    let jitter = how.training.map_or_else(Jitter::default, |t| t.jitter);
    Simulation { training: Some(UncertainTraining { variance, jitter }), ..how.clone() }
}

/// The scores of each series, over the rows that were not trained on; none where there are none.
fn score(job: &Job, series: &Series, view: &View) -> Outcome<Vec<Score>> {
    let (known, seen) = (job.known(), series.values.rows().min(job.end()));
    let truth = |d: usize| (known..seen).any(|t| !series.values[(t, d)].is_nan());
    if !(0..series.names.len()).all(truth) {
        return Ok(Vec::new());
    }
    (0..series.names.len())
        .map(|d| {
            let mut cells = Cells::default();
            (known..seen).for_each(|t| cells.push(view, t - job.begin(), d, series.values[(t, d)]));
            cells.score()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_a_mean_and_a_deviation() {
        let score = |rmse: f64| Score { rmse, nlpd: -rmse, coverage: [rmse / 10.0; 3], count: 7 };
        let of = Scored::of(vec![score(1.0), score(3.0)]);
        assert_eq!((of.score.rmse, of.score.nlpd, of.score.count), (2.0, -2.0, 7));
        assert_eq!(of.score.coverage, [0.2; 3]);
        assert!((of.std.unwrap().0 - 2f64.sqrt()).abs() < 1e-12);
        assert!(Scored::of(vec![score(1.0)]).std.is_none());
    }
}
