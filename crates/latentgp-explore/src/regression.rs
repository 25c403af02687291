//! What the page of a regression asks for: predictions along one input, the others held.

use crate::answer::{Refused, Reply, asked, list, rows};
use latentgp::file::TrainedRegression;
use latentgp::metrics::most_probable;
use latentgp::model::Answers;
use latentgp::posterior::Posterior;
use latentgp::{Mat, Result};
use serde::Deserialize;
use serde_json::{Value, json};

/// Places of a curve.
const PLACES: usize = 120;
/// Most training rows that are drawn.
const MOST_ROWS: usize = 2000;
/// How far curves go beyond the data on either side, as a part of their range.
const BEYOND: f64 = 0.08;
/// Standard deviations of the 90 % and the 50 % band of a normal distribution.
const WIDTHS: [f64; 2] = [1.644_853_626_951_472_2, 0.674_489_750_196_081_7];

/// A regression with what follows from its parameters.
pub struct Regression {
    trained: TrainedRegression,
    posterior: Posterior,
    x: Mat,
    y: Mat,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedSlice {
    input: usize,
    target: usize,
    at: Vec<f64>,
}

impl Regression {
    /// Works out what follows from the parameters.
    pub fn new(trained: TrainedRegression) -> Result<Self> {
        let (x, y) = trained.model.data()?;
        Ok(Regression { posterior: trained.model.posterior()?, x, y, trained })
    }

    /// Answers a question of the page.
    pub fn answer(&self, name: &str, body: &[u8]) -> std::result::Result<Reply, Refused> {
        match name {
            "slice" => self.slice(&asked(body)?),
            _ => Err(Refused::unknown(name)),
        }
    }

    /// What there is; of many training rows, some evenly spread over them.
    pub fn about(&self) -> Value {
        let of = &self.trained;
        let range = |k: usize| {
            let seen = self.x.col(k).into_iter().filter(|v| v.is_finite());
            let (lo, hi) =
                seen.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)));
            [lo, hi]
        };
        let middle = |k: usize| {
            let mut seen: Vec<f64> = self.x.col(k).into_iter().filter(|v| v.is_finite()).collect();
            seen.sort_by(f64::total_cmp);
            seen.get(seen.len() / 2).copied().unwrap_or(0.0)
        };
        let every = self.x.rows().div_ceil(MOST_ROWS).max(1);
        let shown: Vec<usize> = (0..self.x.rows()).step_by(every).collect();
        let columns = |m: &Mat| (0..m.cols()).map(|k| list(&m.select_rows(&shown).col(k))).collect::<Value>();
        let inputs = of.inputs.len();
        json!({
            "kind": "regression",
            "model": of.model.title(),
            "kernel": of.report.kernel,
            "objective": "log evidence",
            "evidence": of.report.evidence,
            "n": self.x.rows(),
            "inputs": of.inputs,
            "targets": of.targets,
            "classes": of.classes,
            "likelihood": of.model.likelihood(),
            "range": (0..inputs).map(range).map(|r| list(&r)).collect::<Value>(),
            "middle": list(&(0..inputs).map(middle).collect::<Vec<_>>()),
            "shown": shown.len(),
            "x": columns(&self.x),
            "y": columns(&self.y),
        })
    }

    /// The prediction along one input, the others at the values given.
    fn slice(&self, of: &AskedSlice) -> std::result::Result<Reply, Refused> {
        let (count, targets) = (self.trained.inputs.len(), self.trained.targets.len());
        if of.input >= count || of.target >= targets {
            return Err(Refused::wrong(format!(
                "expected an input below {count} and a target below {targets}"
            )));
        }
        let at = rows(std::slice::from_ref(&of.at), count, 1)?;
        let seen = || self.x.col(of.input).into_iter().filter(|v| v.is_finite());
        let (lo, hi) = (seen().fold(f64::INFINITY, f64::min), seen().fold(f64::NEG_INFINITY, f64::max));
        let room = if hi > lo { BEYOND * (hi - lo) } else { 1.0 };
        let step = (hi - lo + 2.0 * room) / (PLACES - 1) as f64;
        let places: Vec<f64> = (0..PLACES).map(|k| lo - room + step * k as f64).collect();
        // The last row is where the sliders are.
        let x = Mat::from_fn(PLACES + 1, count, |i, k| match k == of.input && i < PLACES {
            true => places[i],
            false => at[(0, k)],
        });
        let d = of.target;
        let model = &self.trained.model;
        let answers = match model.predicts_from_posterior() {
            true => model.predict_with(&self.posterior, &x, None)?,
            false => model.predict(&x, None)?,
        };
        let mut told = match answers {
            Answers::Values(p) => {
                let edge = |by: f64| -> Vec<f64> {
                    (0..=PLACES).map(|i| p.mean[(i, d)] + by * p.var[(i, d)].sqrt()).collect()
                };
                banded(&p.mean.col(d), WIDTHS.map(|w| (edge(-w), edge(w))))
            }
            Answers::Counts { mean, latent, likelihood, .. } => {
                let edge = |p: f64| -> Vec<f64> {
                    let at = latent.mean.as_slice().iter().zip(latent.var.as_slice());
                    at.map(|(m, v)| likelihood.predictive_quantile(p, *m, *v)).collect()
                };
                banded(&mean, [0.05, 0.25].map(|p| (edge(p), edge(1.0 - p))))
            }
            Answers::Classes(p) => json!({
                "classes": (0..p.cols()).map(|c| list(&p.col(c)[..PLACES])).collect::<Value>(),
                "now": { "classes": list(p.row(PLACES)), "most": most_probable(&p)[PLACES] },
            }),
        };
        told["x"] = list(&places);
        Ok(Reply::json(&told))
    }
}

/// Means and bands along the places, and where the sliders are.
fn banded(mean: &[f64], bands: [(Vec<f64>, Vec<f64>); 2]) -> Value {
    let part = |v: &[f64]| list(&v[..PLACES]);
    json!({
        "mean": part(mean),
        "bands": bands.iter().map(|(lo, hi)| json!([part(lo), part(hi)])).collect::<Value>(),
        "now": { "mean": mean[PLACES], "bands": bands.iter().map(|(lo, hi)| list(&[lo[PLACES], hi[PLACES]])).collect::<Value>() },
    })
}
