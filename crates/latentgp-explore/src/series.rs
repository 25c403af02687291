//! What the page of a model of series asks for: forecasts from any row on.

use crate::answer::{Refused, Reply, asked, list};
use latentgp::Mat;
use latentgp::file::TrainedSeries;
use latentgp::model::narx::Simulation;
use serde::Deserialize;
use serde_json::{Value, json};

/// Most steps ahead.
const MOST_STEPS: usize = 1000;
/// Steps ahead that a page begins with, and more where the windows are longer.
const STEPS: usize = 24;

/// A model of series.
pub struct Series(TrainedSeries);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedForecast {
    cut: usize,
    horizon: usize,
}

impl Series {
    /// Of a model file.
    pub fn new(of: TrainedSeries) -> Self {
        Series(of)
    }

    /// Answers a question of the page.
    pub fn answer(&self, name: &str, body: &[u8]) -> Result<Reply, Refused> {
        match name {
            "forecast" => self.forecast(&asked(body)?),
            _ => Err(Refused::unknown(name)),
        }
    }

    /// The longest lag or delay.
    fn longest(&self) -> usize {
        let lags = self.0.model.lags();
        let delays = lags.exogenous.iter().flatten().copied();
        lags.series.iter().copied().chain(delays).max().unwrap_or(0)
    }

    /// What there is.
    pub fn about(&self) -> Value {
        let of = &self.0;
        let rows = of.series.rows();
        // Exogenous inputs are known up to the last row of the training.
        let beyond = if of.exogenous.is_some() { 0 } else { MOST_STEPS };
        json!({
            "kind": "series",
            "model": "GP-NARX",
            "kernel": of.report.kernel,
            "objective": "log evidence",
            "evidence": of.report.evidence,
            "n": rows,
            "names": of.names,
            "exogenous": of.exogenous_names,
            "least": self.longest().max(1),
            "beyond": beyond,
            "horizon": STEPS.max(self.longest()).min(MOST_STEPS),
            "most": MOST_STEPS,
            "values": (0..of.series.cols()).map(|d| list(&of.series.col(d))).collect::<Value>(),
        })
    }

    /// The steps after row `cut`, by the rows before it.
    fn forecast(&self, of: &AskedForecast) -> Result<Reply, Refused> {
        let (rows, least) = (self.0.series.rows(), self.longest().max(1));
        if !(least..=rows).contains(&of.cut) || !(1..=MOST_STEPS).contains(&of.horizon) {
            return Err(Refused::wrong(format!(
                "expected a cut from {least} to {rows} and a horizon from 1 to {MOST_STEPS}"
            )));
        }
        let steps = match &self.0.exogenous {
            Some(inputs) => of.horizon.min(inputs.rows().saturating_sub(of.cut)),
            None => of.horizon,
        };
        if steps == 0 {
            return Err(Refused::wrong(
                "exogenous inputs are not known after the last row; move the cut to the left",
            ));
        }
        let history = self.0.series.slice_rows(0, of.cut);
        let how = Simulation::default();
        let found = self.0.model.simulate(&history, self.0.exogenous.as_ref(), steps, &how)?;
        let one = |m: &Mat| (0..m.cols()).map(|d| list(&m.col(d))).collect::<Value>();
        Ok(Reply::json(&json!({ "mean": one(&found.mean), "std": one(&found.var.map(f64::sqrt)) })))
    }
}
