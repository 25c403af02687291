//! The model file of a model of series: the series it was trained on, what its windows are of, and how it was trained. What
//! only one model has is written and read by the model.

use super::report::Report;
use super::{ModelFile, Store, damaged};
use crate::data::Scaling;
use crate::data::lags::Lags;
use crate::error::{Error, Result};
use crate::kernel::Own;
use crate::mat::Mat;
use crate::model::series::{SeriesModel, Windows, kinds, restorer};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A trained model of series with all that belongs to it.
#[derive(Clone)]
pub struct TrainedSeries {
    /// The model.
    pub model: Box<dyn SeriesModel>,
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

/// What all models of series have, under their name in the header.
#[derive(Serialize, Deserialize)]
struct Header {
    lags: Vec<usize>,
    delays: Vec<Vec<usize>>,
    scaling: Scaling,
    exogenous: Option<Scaling>,
    time_steps: usize,
    names: Vec<String>,
    exogenous_names: Vec<String>,
}

impl Store for TrainedSeries {
    const KIND: &'static str = "narx";

    fn holds(kind: &str) -> bool {
        kinds().any(|known| known == kind)
    }

    fn to_file(&self) -> Result<ModelFile> {
        let name = self.model.name();
        let mut file = ModelFile::new(name, json!({}));
        self.model.store(&mut file)?;
        let lags = self.model.lags();
        // Files name the columns of windows.
        let windows: Vec<String> = (0..lags.width()).map(|k| format!("w{k}")).collect();
        file.set("inputs", windows)?;
        file.set("input_std", Vec::<String>::new())?;
        file.set("targets", &self.names)?;
        file.set("classes", Vec::<String>::new())?;
        file.put_report(&self.report, self.report.of_regression()?)?;
        let header = Header {
            lags: lags.series.clone(),
            delays: lags.exogenous.clone(),
            scaling: self.model.scaling().clone(),
            exogenous: self.model.input_scaling().cloned(),
            time_steps: self.series.rows(),
            names: self.names.clone(),
            exogenous_names: self.exogenous_names.clone(),
        };
        let common = serde_json::to_value(header).map_err(|e| Error::data("model file", e.to_string()))?;
        for (key, value) in common.as_object().into_iter().flatten() {
            file.header[name][key] = value.clone();
        }
        file.put("series", &self.series);
        self.exogenous.iter().for_each(|inputs| file.put("exogenous", inputs));
        Ok(file)
    }

    fn verified(self) -> Result<Self> {
        self.report.tells(self.model.log_evidence(None))?;
        Ok(self)
    }

    fn from_file_with(mut file: ModelFile, own: &Own) -> Result<Self> {
        let unknown = || damaged(format!("a `{}` is no model of series", file.kind));
        let restore = restorer(&file.kind).ok_or_else(unknown)?;
        let h: Header = file.field(&file.kind)?;
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
        let report = file.take_report()?;
        let windows = Windows { lags, scaling: h.scaling, exogenous: h.exogenous };
        let model = restore(&mut file, own, windows, &series, exogenous.as_ref())?;
        let (names, exogenous_names) = (h.names, h.exogenous_names);
        Ok(TrainedSeries { model, series, exogenous, names, exogenous_names, report })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Scale;
    use crate::data::airline;
    use crate::file::{load, save};
    use crate::kernel::{Linear, Rbf};
    use crate::model::narx::{Narx, NarxOptions, Simulation};
    use crate::model::{Model, Restarts};
    use std::ops::ControlFlow;

    fn trained(inducing: Option<usize>, inputs: bool) -> TrainedSeries {
        let series = Mat::column(&airline::PASSENGERS[..40]);
        let exogenous = inputs.then(|| Mat::from_fn(40, 1, |t, _| (t as f64).cos()));
        let lags = if inputs { Lags::new(4).with_exogenous([0, 1]) } else { Lags::new(4) };
        let q = lags.width();
        let options = NarxOptions { inducing, ..Default::default() };
        let start =
            Narx::new(&series, exogenous.as_ref(), lags, Rbf::new(q) + Linear::new(q), &options).unwrap();
        let how = Restarts { max_iterations: 5, ..Default::default() };
        let fitted = start.fit(&how, &|_| ControlFlow::Continue(())).unwrap();
        let evidence = fitted.model.log_evidence(None).unwrap();
        let report = Report { evidence, ..Report::example(Some(Scale::Standardize), fitted.trace) };
        TrainedSeries {
            model: Box::new(fitted.model),
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
            let after: TrainedSeries = load(&path).unwrap();
            let future = inputs.then(|| Mat::from_fn(46, 1, |t, _| (t as f64).cos()));
            let of =
                |t: &TrainedSeries| t.model.simulate(&t.series, future.as_ref(), 6, &Simulation::default());
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
        let lags = before.model.lags().clone();
        for error in [0.0, 0.1] {
            let options = NarxOptions { inducing: Some(8), error, ..Default::default() };
            let start =
                Narx::new(&before.series, before.exogenous.as_ref(), lags.clone(), kernel.clone(), &options);
            let how = Restarts { max_iterations: 5, ..Default::default() };
            before.model = Box::new(start.unwrap().fit(&how, &|_| ControlFlow::Continue(())).unwrap().model);
            let file = before.to_file().unwrap();
            let after =
                TrainedSeries::from_file(ModelFile::from_bytes(&file.to_bytes().unwrap()).unwrap()).unwrap();
            let future = Mat::from_fn(46, 1, |t, _| if t == 7 { f64::NAN } else { (t as f64).cos() });
            let of =
                |t: &TrainedSeries| t.model.simulate(&t.series, Some(&future), 6, &Simulation::default());
            assert_eq!(of(&after).unwrap(), of(&before).unwrap());
            assert_eq!(after.model.params(), before.model.params());
            for array in ["gaps.mean", "gaps.var"] {
                let mut wrong = file.clone();
                wrong.tensors.insert(array.into(), Mat::filled(1, 1, -1.0));
                assert!(TrainedSeries::from_file(wrong).is_err(), "{array}");
            }
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let whole = trained(None, true).to_file().unwrap();
        for array in ["series", "exogenous", "x", "y"] {
            let mut file = whole.clone();
            file.tensors.remove(array);
            assert!(TrainedSeries::from_file(file).is_err(), "without {array}");
            let mut file = whole.clone();
            let (rows, cols) = (whole.tensors[array].rows(), whole.tensors[array].cols());
            file.tensors.insert(array.into(), Mat::filled(rows, cols + 1, 0.5));
            assert!(TrainedSeries::from_file(file).is_err(), "{array} too wide");
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
            assert!(TrainedSeries::from_file(file).is_err(), "{key}");
        }
    }
}
