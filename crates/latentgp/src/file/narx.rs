//! The model file of a GP-NARX: the regression inside, what its windows are of, and the series it was trained on.

use super::regression::{TrainedRegression, read};
use super::report::Report;
use super::{ModelFile, Store, damaged};
use crate::data::Scaling;
use crate::data::lags::Lags;
use crate::error::{Error, Result};
use crate::kernel::Own;
use crate::mat::Mat;
use crate::model::narx::{Narx, Process};
use crate::model::{Regression, SparseRegression};
use serde::{Deserialize, Serialize};

/// A trained GP-NARX with all that belongs to it.
#[derive(Clone)]
pub struct TrainedNarx {
    /// The model.
    pub model: Narx,
    /// The series it was trained on, a row each time step.
    pub series: Mat,
    /// The exogenous inputs of these time steps.
    pub exogenous: Option<Mat>,
    /// The names of the series.
    pub names: Vec<String>,
    /// The names of the exogenous inputs.
    pub exogenous_names: Vec<String>,
    /// How it was trained.
    pub report: Report,
}

#[derive(Serialize, Deserialize)]
struct Header {
    lags: Vec<usize>,
    delays: Vec<Vec<usize>>,
    scaling: Scaling,
    exogenous: Option<Scaling>,
    time_steps: usize,
    names: Vec<String>,
    exogenous_names: Vec<String>,
    /// The variance of the errors of the series where some of its values are latent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gaps: Option<f64>,
}

impl TrainedNarx {
    /// The regression inside, as one of its own.
    fn regression(&self) -> TrainedRegression {
        let window = |k: usize| format!("w{k}");
        TrainedRegression {
            model: self.model.regression().boxed(),
            inputs: (0..self.model.lags.width()).map(window).collect(),
            input_std: Vec::new(),
            targets: self.names.clone(),
            classes: Vec::new(),
            report: self.report.clone(),
            unfinished: None,
        }
    }
}

impl Store for TrainedNarx {
    const KIND: &'static str = "narx";

    fn to_file(&self) -> Result<ModelFile> {
        let mut file = self.regression().to_file()?;
        file.kind = Self::KIND.into();
        let header = Header {
            lags: self.model.lags.series.clone(),
            delays: self.model.lags.exogenous.clone(),
            scaling: self.model.scaling.clone(),
            exogenous: self.model.exogenous.clone(),
            time_steps: self.series.rows(),
            names: self.names.clone(),
            exogenous_names: self.exogenous_names.clone(),
            gaps: self.model.latent().map(|_| self.model.error()),
        };
        file.header["narx"] =
            serde_json::to_value(header).map_err(|e| Error::data("model file", e.to_string()))?;
        if let Some(model) = self.model.latent() {
            file.put("gaps.mean", &model.cells.mean.value);
            file.put("gaps.var", &model.cells.var.value);
        }
        file.tensors.insert("series".into(), self.series.clone());
        if let Some(inputs) = &self.exogenous {
            file.tensors.insert("exogenous".into(), inputs.clone());
        }
        Ok(file)
    }

    fn from_file_with(mut file: ModelFile, own: &Own) -> Result<Self> {
        let windows = file.header.get("narx").cloned().ok_or_else(|| damaged("its windows are missing"))?;
        let h: Header =
            serde_json::from_value(windows).map_err(|e| damaged(format!("in the header, {e}")))?;
        let series = file.take("series", h.time_steps, h.lags.len())?;
        let exogenous = match h.delays.len() {
            0 => None,
            inputs => Some(file.take("exogenous", h.time_steps, inputs)?),
        };
        let lags = Lags { series: h.lags, exogenous: h.delays };
        let fits = |s: &Scaling, of: usize| {
            let sound =
                s.mean.iter().all(|v| v.is_finite()) && s.scale.iter().all(|v| *v > 0.0 && v.is_finite());
            s.mean.len() == of && s.scale.len() == of && sound
        };
        if !fits(&h.scaling, lags.series.len())
            || h.exogenous.is_some() != exogenous.is_some()
            || !h.exogenous.as_ref().is_none_or(|s| fits(s, lags.exogenous.len()))
            || h.names.len() != lags.series.len()
            || h.exogenous_names.len() != lags.exogenous.len()
        {
            return Err(damaged("its series, their names and their scaling do not fit"));
        }
        match h.gaps {
            Some(error) if !(error >= 0.0 && error.is_finite()) => {
                return Err(damaged("the variance of its errors is outside its domain"));
            }
            Some(_) => lags.check_with_gaps(&series, exogenous.as_ref(), 0)?,
            None => lags.check(&series, exogenous.as_ref(), 0)?,
        }
        let (name, likelihood): (String, String) = (file.field("model")?, file.field("likelihood")?);
        let (process, report) = match (name.as_str(), likelihood.as_str()) {
            ("gp", "gaussian") => {
                let (model, _, report) = read(&mut file, |_, _, file| Regression::restore(file, own))?;
                (Process::Exact(model), report)
            }
            ("sparse", "gaussian") => {
                let (model, _, report) = read(&mut file, |_, _, file| SparseRegression::restore(file, own))?;
                (Process::Sparse(model), report)
            }
            _ => return Err(damaged(format!("its regression `{name}` is none of series"))),
        };
        let mut model = Narx { process, lags, scaling: h.scaling, exogenous: h.exogenous };
        let (_, q, d) = model.regression().sizes();
        if (q, d) != (model.lags.width(), model.lags.series.len()) {
            return Err(damaged("its regression does not fit its windows"));
        }
        if let Some(error) = h.gaps {
            let cells = (file.tensor("gaps.mean")?.clone(), file.tensor("gaps.var")?.clone());
            model.restore_gaps(&series, exogenous.as_ref(), error, cells)?;
        }
        Ok(TrainedNarx {
            model,
            series,
            exogenous,
            names: h.names,
            exogenous_names: h.exogenous_names,
            report,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Scale;
    use crate::data::airline;
    use crate::file::{load, save};
    use crate::kernel::{Linear, Rbf};
    use crate::model::Restarts;
    use crate::model::narx::{NarxOptions, Simulation};
    use crate::param::Parameterized;
    use serde_json::json;
    use std::ops::ControlFlow;

    fn trained(inducing: Option<usize>, inputs: bool) -> TrainedNarx {
        let series = Mat::column(&airline::PASSENGERS[..40]);
        let exogenous = inputs.then(|| Mat::from_fn(40, 1, |t, _| (t as f64).cos()));
        let lags = if inputs { Lags::new(4).with_exogenous([0, 1]) } else { Lags::new(4) };
        let q = lags.width();
        let options = NarxOptions { inducing, ..Default::default() };
        let start =
            Narx::new(&series, exogenous.as_ref(), lags, Rbf::new(q) + Linear::new(q), &options).unwrap();
        let how = Restarts { max_iterations: 5, ..Default::default() };
        let fitted = start.fit(&how, &|_| ControlFlow::Continue(())).unwrap();
        let report = Report::example(Some(Scale::Standardize), fitted.trace);
        TrainedNarx {
            model: fitted.model,
            series,
            exogenous,
            names: vec!["passengers".into()],
            exogenous_names: if inputs { vec!["u".into()] } else { vec![] },
            report,
        }
    }

    #[test]
    fn forecasts_after_save_and_load_are_the_same_bits() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.lgp");
        for (inducing, inputs) in [(None, false), (Some(8), false), (None, true)] {
            let before = trained(inducing, inputs);
            save(&path, &before).unwrap();
            let after: TrainedNarx = load(&path).unwrap();
            let future = inputs.then(|| Mat::from_fn(46, 1, |t, _| (t as f64).cos()));
            let of =
                |t: &TrainedNarx| t.model.simulate(&t.series, future.as_ref(), 6, &Simulation::default());
            assert_eq!(of(&after).unwrap(), of(&before).unwrap(), "{inducing:?} {inputs}");
            assert_eq!((&after.report, &after.names), (&before.report, &before.names));
        }
    }

    #[test]
    fn gaps_are_stored_with_their_posteriors() {
        let mut before = trained(None, true);
        before.series[(20, 0)] = f64::NAN;
        before.exogenous.as_mut().unwrap()[(7, 0)] = f64::NAN;
        let kernel = Rbf::new(6) + Linear::new(6);
        let lags = before.model.lags.clone();
        for error in [0.0, 0.1] {
            let options = NarxOptions { inducing: Some(8), error, ..Default::default() };
            let start =
                Narx::new(&before.series, before.exogenous.as_ref(), lags.clone(), kernel.clone(), &options);
            let how = Restarts { max_iterations: 5, ..Default::default() };
            before.model = start.unwrap().fit(&how, &|_| ControlFlow::Continue(())).unwrap().model;
            let file = before.to_file().unwrap();
            let after =
                TrainedNarx::from_file(ModelFile::from_bytes(&file.to_bytes().unwrap()).unwrap()).unwrap();
            let future = Mat::from_fn(46, 1, |t, _| if t == 7 { f64::NAN } else { (t as f64).cos() });
            let of = |t: &TrainedNarx| t.model.simulate(&t.series, Some(&future), 6, &Simulation::default());
            assert_eq!(of(&after).unwrap(), of(&before).unwrap());
            assert_eq!(after.model.params(), before.model.params());
            for array in ["gaps.mean", "gaps.var"] {
                let mut wrong = file.clone();
                wrong.tensors.insert(array.into(), Mat::filled(1, 1, -1.0));
                assert!(TrainedNarx::from_file(wrong).is_err(), "{array}");
            }
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let whole = trained(None, true).to_file().unwrap();
        for array in ["series", "exogenous", "x", "y"] {
            let mut file = whole.clone();
            file.tensors.remove(array);
            assert!(TrainedNarx::from_file(file).is_err(), "without {array}");
            let mut file = whole.clone();
            let (rows, cols) = (whole.tensors[array].rows(), whole.tensors[array].cols());
            file.tensors.insert(array.into(), Mat::filled(rows, cols + 1, 0.5));
            assert!(TrainedNarx::from_file(file).is_err(), "{array} too wide");
        }
        for (key, value) in [
            ("lags", json!([5])),
            ("delays", json!([])),
            ("names", json!([])),
            ("time_steps", json!(u64::MAX)),
            ("scaling", json!({ "mean": [0.0], "scale": [0.0] })),
        ] {
            let mut file = whole.clone();
            file.header["narx"][key] = value;
            assert!(TrainedNarx::from_file(file).is_err(), "{key}");
        }
    }
}
