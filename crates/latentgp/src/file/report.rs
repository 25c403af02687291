//! How a model was trained: one report for every model.

use super::damaged;
use crate::data::Scale;
use crate::error::{Error, Result};
use crate::fit::{Effort, Fitted};
use crate::model::{Certificate, LatentSpace, Scores};
use crate::optim::StopReason;
use crate::recipe::Recipe;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An evidence that is worked out anew is the same up to this part: other machines round in another way.
const SAME: f64 = 1e-6;

/// How a model was trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The log evidence of the data as given, its bound or its approximation; the log density of data and positions
    /// where these are points.
    #[serde(rename = "bound", alias = "log_evidence")]
    pub evidence: f64,
    /// Iterations of the run that was kept; 0 for a closed form.
    pub iterations: usize,
    /// Evaluations of that run.
    pub evaluations: usize,
    /// Whether it converged.
    pub converged: bool,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// max |∂F/∂u| where it stopped, in the unconstrained parameters; `None` where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradient_norm: Option<f64>,
    /// Wall-clock time of the fit.
    pub seconds: f64,
    /// How hard the best optimum was looked for; `None` where so many full runs were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// How many runs began, those that lost a race included; 0 where it is not known.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub begun: usize,
    /// The evidences of the runs that were followed to their end; `None` where one failed.
    pub restarts: Vec<Option<f64>>,
    /// What Kzz needed on its diagonal beyond the usual jitter, of a Bayesian GPLVM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_jitter: Option<f64>,
    /// How good the Ψ-statistics are, of a Bayesian GPLVM; empty until its fit is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,
    /// The kernel as it was asked for.
    pub kernel: String,
    /// How data or targets were scaled; `None` where targets are classes or counts.
    pub scale: Option<Scale>,
    /// The seed of the starts.
    pub seed: u64,
    /// On rows that were held out, if there were any: of every target.
    #[serde(default, skip_serializing)]
    pub scores: Vec<Option<Scores>>,
    /// What was maximised, after each iteration.
    #[serde(skip)]
    pub trace: Vec<f64>,
}

fn is_unknown(runs: &usize) -> bool {
    *runs == 0
}

impl Report {
    /// Of a fit by a recipe that took so long.
    pub fn new<M>(fit: &Fitted<M>, recipe: &Recipe, seconds: f64) -> Self {
        Report {
            evidence: fit.evidence,
            iterations: fit.iterations,
            evaluations: fit.evaluations,
            converged: fit.converged,
            stop_reason: fit.stop_reason,
            gradient_norm: fit.gradient_norm,
            seconds,
            effort: recipe.restarts.is_none().then(|| recipe.effort()),
            begun: fit.begun,
            restarts: fit.restarts.clone(),
            extra_jitter: None,
            certificate: None,
            kernel: recipe.kernel_text().into(),
            scale: recipe.is_gaussian().then(|| recipe.scale()),
            seed: recipe.seed,
            scores: Vec::new(),
            trace: fit.trace.clone(),
        }
    }

    /// The same with what is known of Ψ and Kzz, where a latent space has them; of a fit that is not over, nothing is worked
    /// out.
    pub fn certified(self, model: &dyn LatentSpace) -> Result<Self> {
        let (extra_jitter, certificate) = match self.stop_reason {
            StopReason::Asked => {
                let unknown = model.inducing().map(|_| (0.0, Certificate::default()));
                unknown.unzip()
            }
            _ => (model.extra_jitter()?, model.certificate()?),
        };
        Ok(Report { extra_jitter, certificate, ..self })
    }

    /// How sure the optimum is: how many of the runs that were followed to their end came within one nat of the best, and
    /// how far below it the others are. `None` of a single run.
    pub fn agreement(&self) -> Option<String> {
        let ended: Vec<f64> = self.restarts.iter().flatten().copied().collect();
        let best = ended.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let near = ended.iter().filter(|e| best - **e <= 1.0).count();
        let below = ended.iter().map(|e| best - e).filter(|gap| *gap > 1.0);
        let (least, most) =
            below.fold((f64::INFINITY, 0.0), |(l, m): (f64, f64), gap| (l.min(gap), m.max(gap)));
        let runs = match self.begun > self.restarts.len() {
            true => format!("{} runs, {} of them to their end", self.begun, self.restarts.len()),
            false => format!("{} runs", self.restarts.len()),
        };
        let others = match ended.len() - near {
            0 => String::new(),
            1 => format!(", the other {most:.1} below it"),
            _ => format!(", the others {least:.1} to {most:.1} below it"),
        };
        (self.begun.max(self.restarts.len()) > 1 && !ended.is_empty())
            .then(|| format!("{runs}; {near} within 1 nat of the best{others}"))
    }

    /// What to do where the fit ended at its limit of iterations, or where its gradient says that it stopped too early.
    pub fn not_converged(&self) -> Option<String> {
        let gradient =
            self.gradient_norm.map_or(String::new(), |g| format!(", the largest gradient is {g:.1e}"));
        match self.stop_reason {
            _ if self.converged => None,
            StopReason::MaxIterations => Some(format!(
                "the limit of iterations was reached before the fit converged{gradient}: the bound can still rise; go on \
                 with more iterations"
            )),
            StopReason::Asked | StopReason::ClosedForm => None,
            reason => Some(format!(
                "the fit has not converged ({reason}{gradient}); another seed, another scaling of the data or a larger \
                 noise to start from may help"
            )),
        }
    }

    /// Errs where a model has another evidence than this report; a fit that was stopped has told none of its end.
    pub(super) fn tells(&self, evidence: Result<f64>) -> Result<()> {
        let close = |now: f64| (now - self.evidence).abs() <= SAME * self.evidence.abs().max(1.0);
        match self.stop_reason == StopReason::Asked || evidence.is_ok_and(close) {
            true => Ok(()),
            false => {
                Err(damaged("its parameters do not give the evidence of its training report; fit again"))
            }
        }
    }

    /// The certificate, where there is one that says something.
    pub fn known_certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref().filter(|c| !c.expectation.is_empty())
    }

    /// As the header of a regression has it.
    pub(super) fn of_regression(&self) -> Result<Value> {
        let fail = |e: serde_json::Error| Error::data("model file", e.to_string());
        let mut all = serde_json::to_value(self).map_err(fail)?;
        let fields = all.as_object_mut().expect("a report has fields");
        let evidence = fields.remove("bound").unwrap_or(Value::Null);
        fields.insert("log_evidence".into(), evidence);
        fields.insert("scores".into(), serde_json::to_value(&self.scores).map_err(fail)?);
        Ok(all)
    }
}

#[cfg(test)]
impl Report {
    /// Of a fit that never was.
    pub(super) fn example(scale: Option<Scale>, trace: Vec<f64>) -> Self {
        Report {
            evidence: 1.0,
            iterations: 2,
            evaluations: 3,
            converged: true,
            stop_reason: StopReason::Value,
            gradient_norm: Some(1e-3),
            seconds: 0.1,
            effort: None,
            begun: 5,
            restarts: vec![Some(1.0), None],
            extra_jitter: None,
            certificate: None,
            kernel: "matern32".into(),
            scale,
            seed: 7,
            scores: Vec::new(),
            trace,
        }
    }
}
