//! The model file of a latent space: the model, whose columns and rows it is of, and how it was trained. What only one model has is written and read by the model.

use super::labels::{LabelSpec, Labels};
use super::report::Report;
use super::unfinished::{Unfinished, UnfinishedSpec};
use super::{ModelFile, Store, damaged};
use crate::error::Result;
use crate::kernel::Own;
use crate::model::{LatentSpace, restore_space};
use serde::Deserialize;
use serde_json::json;

/// A latent space with all that belongs to it.
#[derive(Clone)]
pub struct TrainedSpace {
    /// The model.
    pub model: Box<dyn LatentSpace>,
    /// The names of the columns of Y.
    pub columns: Vec<String>,
    /// Classes of the training rows, if they were given.
    pub labels: Option<Labels>,
    /// The name of the column that identifies rows, if there was one.
    pub id: Option<String>,
    /// How it was trained.
    pub report: Report,
    /// What is needed to go on with a training that is not over.
    pub unfinished: Option<Unfinished>,
}

/// Files of this model have a kind of their own.
const BAYESIAN_GPLVM: &str = "bayesian-gplvm";

/// What the headers of all latent spaces have.
#[derive(Deserialize)]
struct Header {
    n: usize,
    d: usize,
    columns: Vec<String>,
    labels: Option<LabelSpec>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    unfinished: Option<UnfinishedSpec>,
}

impl Store for TrainedSpace {
    const KIND: &'static str = "latent-space";

    fn holds(kind: &str) -> bool {
        [Self::KIND, BAYESIAN_GPLVM].contains(&kind)
    }

    fn to_file(&self) -> Result<ModelFile> {
        let (n, d, q) = self.model.sizes();
        let mut file = ModelFile::new(self.model.kind(), json!({}));
        [("n", n), ("d", d), ("latent_dim", q)]
            .into_iter()
            .try_for_each(|(key, size)| file.set(key, size))?;
        file.set("scaling", self.model.scaling())?;
        file.put("y", self.model.y());
        self.model.store(&mut file)?;
        file.set("columns", &self.columns)?;
        let labels = self.labels.as_ref().map(|labels| LabelSpec::put(labels, &mut file));
        file.set("labels", labels)?;
        self.id.iter().try_for_each(|id| file.set("id", id))?;
        file.put_unfinished(self.unfinished.as_ref())?;
        file.put_report(&self.report, &self.report)?;
        Ok(file)
    }

    fn verified(self) -> Result<Self> {
        self.report.tells(self.model.evidence())?;
        Ok(self)
    }

    fn from_file_with(mut file: ModelFile, own: &Own) -> Result<Self> {
        let h: Header = file.header_as()?;
        let (y, scaling) = (file.take("y", h.n, h.d)?, file.scaling("scaling", h.d)?);
        if h.columns.len() != h.d {
            return Err(damaged("its columns and their names do not fit"));
        }
        if y.is_empty() || y.as_slice().iter().any(|v| v.is_infinite()) {
            return Err(damaged("its data are empty or infinite"));
        }
        let labels = h.labels.map(|spec| spec.take(h.n, &mut file)).transpose()?;
        let report = file.take_report()?;
        let unfinished = h.unfinished.map(|spec| spec.take(&mut file)).transpose()?;
        let name: String = if file.kind == Self::KIND { file.field("model")? } else { file.kind.clone() };
        let model = restore_space(&name, &mut file, own, y, scaling)?;
        Ok(TrainedSpace { model, columns: h.columns, labels, id: h.id, report, unfinished })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Scale;
    use crate::file::{load, save};
    use crate::kernel::Matern32;
    use crate::mat::Mat;
    use crate::model::{GplvmTraining, Ppca, PpcaOptions, PpcaSpace};
    use std::ops::ControlFlow;

    fn all() -> Vec<TrainedSpace> {
        let mut y = Mat::from_fn(9, 3, |i, j| ((i * 3 + j * j) as f64).sin() * 10.0 + j as f64);
        let whole = y.clone();
        y[(2, 1)] = f64::NAN;
        let how = GplvmTraining { hold: 2, max_iterations: 4, ..Default::default() };
        let gplvm = how.fit(&y, &Matern32::new(2), &|_| ControlFlow::Continue(())).unwrap();
        let options = PpcaOptions { max_iterations: 20, ..Default::default() };
        let ppca = |y: &Mat| PpcaSpace { model: Ppca::fit(y, &options).unwrap(), y: y.clone() };
        let (whole, gaps) = (ppca(&whole), ppca(&y));
        let traces = [vec![1.0], whole.model.trace.clone(), gaps.model.trace.clone()];
        let models: [Box<dyn LatentSpace>; 3] = [Box::new(gplvm.model), Box::new(whole), Box::new(gaps)];
        let trained = |(model, trace): (Box<dyn LatentSpace>, Vec<f64>)| TrainedSpace {
            columns: vec!["a".into(), "b".into(), "c".into()],
            labels: Some(Labels { name: "l".into(), of: (0..9).map(|i| (i % 2).to_string()).collect() }),
            id: None,
            unfinished: None,
            report: Report {
                evidence: model.evidence().unwrap(),
                ..Report::example(Some(Scale::Standardize), trace)
            },
            model,
        };
        models.into_iter().zip(traces).map(trained).collect()
    }

    #[test]
    fn results_after_save_and_load_are_the_same_bits() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.lgp");
        let new = Mat::from_rows(&[[0.3, f64::NAN, 2.0], [1.0, 2.0, -3.0]]);
        for before in all() {
            save(&path, &before).unwrap();
            let after: TrainedSpace = load(&path).unwrap();
            let name = before.model.name();
            assert_eq!(after.model.transform(&new), before.model.transform(&new), "{name}");
            assert_eq!(after.model.impute(&new), before.model.impute(&new), "{name}");
            let q = before.model.latent().unwrap();
            assert_eq!(after.model.latent().unwrap(), q, "{name}");
            assert_eq!(after.model.reconstruct(&q), before.model.reconstruct(&q), "{name}");
            assert_eq!(after.model.relevance(), before.model.relevance());
            assert_eq!((&after.labels, &after.report), (&before.labels, &before.report));
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        for whole in all() {
            let name = whole.model.name();
            let whole = whole.to_file().unwrap();
            for array in whole.tensors.keys().filter(|a| *a != "trace" && *a != "eigenvalues") {
                let mut file = whole.clone();
                file.tensors.remove(array);
                assert!(TrainedSpace::from_file(file).is_err(), "{name} without {array}");
                let mut file = whole.clone();
                let (rows, cols) = (whole.tensors[array].rows(), whole.tensors[array].cols());
                file.tensors.insert(array.clone(), Mat::filled(rows + 1, cols, 0.5));
                assert!(TrainedSpace::from_file(file).is_err(), "{name}, {array} too long");
                let mut file = whole.clone();
                file.tensors.insert(array.clone(), Mat::filled(rows, cols, f64::INFINITY));
                assert!(TrainedSpace::from_file(file).is_err(), "{name}, {array} infinite");
            }
            for (key, value) in [
                ("n", json!(u64::MAX)),
                ("model", json!("nonsense")),
                ("latent_dim", json!(7)),
                ("columns", json!(["a"])),
                ("scaling", json!({ "mean": [0.0], "scale": [1.0] })),
                ("report", json!({})),
            ] {
                let mut file = whole.clone();
                file.header[key] = value;
                assert!(TrainedSpace::from_file(file).is_err(), "{name}: {key}");
            }
        }
    }
}
