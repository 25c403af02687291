//! The model file of a GPLVM or a PPCA.

use super::gplvm::{LabelSpec, Labels, codes};
use super::params::{ParamSpec, put_params, take_params};
use super::parts::ExpectationSpec;
use super::report::Report;
use super::unfinished::{Unfinished, UnfinishedSpec};
use super::{ModelFile, Store, damaged, written};
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::kernel::Own;
use crate::mat::Mat;
use crate::model::{Gplvm, LatentPrior, LatentSpace, Outputs, Ppca};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A GPLVM or a PPCA with all that belongs to it.
#[derive(Clone)]
pub struct TrainedSpace {
    /// The model.
    pub model: LatentSpace,
    /// The names of the columns of Y.
    pub columns: Vec<String>,
    /// Classes of the training rows, if they were given.
    pub labels: Option<Labels>,
    /// How it was trained.
    pub report: Report,
    /// What is needed to go on with a training that is not over.
    pub unfinished: Option<Unfinished>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    model: String,
    n: usize,
    d: usize,
    latent_dim: usize,
    kernel: String,
    expectation: Option<ExpectationSpec>,
    standard_normal: bool,
    converged: bool,
    scaling: Scaling,
    params: Vec<ParamSpec>,
    columns: Vec<String>,
    labels: Option<LabelSpec>,
    report: Report,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unfinished: Option<UnfinishedSpec>,
}

impl Store for TrainedSpace {
    const KIND: &'static str = "latent-space";

    fn to_file(&self) -> Result<ModelFile> {
        let (n, d, q) = self.model.sizes();
        let mut file = ModelFile::new(Self::KIND, json!(null));
        let row = |v: &[f64]| Mat::from_vec(1, v.len(), v.to_vec());
        file.tensors.insert("trace".into(), row(&self.report.trace)?);
        let labels = self.labels.as_ref().map(|labels| {
            let (codes, distinct) = codes(&labels.of);
            file.tensors.insert("labels".into(), Mat::column(&codes));
            LabelSpec { name: labels.name.clone(), distinct }
        });
        let mut h = Header {
            model: self.model.name().into(),
            n,
            d,
            latent_dim: q,
            kernel: "linear".into(),
            expectation: None,
            standard_normal: true,
            converged: true,
            scaling: Scaling { mean: vec![], scale: vec![] },
            params: vec![],
            columns: self.columns.clone(),
            labels,
            report: self.report.clone(),
            unfinished: self.unfinished.as_ref().map(|u| u.put(&mut file)),
        };
        match &self.model {
            LatentSpace::Gplvm(m) => {
                h.kernel = written(&*m.kernel, q)?;
                h.expectation = Some(ExpectationSpec::of(&*m.expectation));
                h.standard_normal = m.prior == LatentPrior::StandardNormal;
                h.scaling = m.scaling.clone();
                h.params = put_params(&**m, &mut file);
                file.tensors.insert("y".into(), m.outputs.y.clone());
            }
            LatentSpace::Ppca(m, y) => {
                h.scaling = m.scaling.clone();
                h.converged = m.converged;
                for (name, of) in [("mean", &m.mean), ("eigenvalues", &m.eigenvalues)] {
                    file.tensors.insert(name.into(), row(of)?);
                }
                file.tensors.insert("w".into(), m.w.clone());
                file.tensors.insert("noise".into(), row(&m.noise)?);
                file.tensors.insert("y".into(), y.clone());
            }
        }
        file.header = serde_json::to_value(h).map_err(|e| Error::data("model file", e.to_string()))?;
        Ok(file)
    }

    fn from_file_with(mut file: ModelFile, own: &Own) -> Result<Self> {
        let h: Header = file.header_as()?;
        let y = file.take("y", h.n, h.d)?;
        let sound = h.scaling.mean.iter().chain(&h.scaling.scale).all(|v| v.is_finite())
            && h.scaling.scale.iter().all(|v| *v > 0.0);
        if h.columns.len() != h.d || h.scaling.mean.len() != h.d || h.scaling.scale.len() != h.d || !sound {
            return Err(damaged("its columns, their names and their scaling do not fit"));
        }
        if y.is_empty() || y.as_slice().iter().any(|v| v.is_infinite()) {
            return Err(damaged("its data are empty or infinite"));
        }
        let labels = match h.labels {
            Some(spec) => Some(spec.labels(&file.take("labels", h.n, 1)?)?),
            None => None,
        };
        let mut report = h.report;
        report.trace = file.tensor("trace")?.as_slice().to_vec();
        let unfinished = h.unfinished.map(|spec| spec.take(&mut file)).transpose()?;
        let model = match h.model.as_str() {
            "gplvm" => {
                let kernel = own.parse(&h.kernel, h.latent_dim)?;
                let x = file.tensor("x")?.clone();
                if (x.rows(), x.cols()) != (h.n, h.latent_dim) {
                    return Err(damaged("its positions do not fit its data"));
                }
                let prior = if h.standard_normal { LatentPrior::StandardNormal } else { LatentPrior::None };
                let mut model = Gplvm::new(Outputs::new(y), h.scaling, kernel, x, prior, 0.1)?;
                model.noise = file.noise(h.d)?;
                take_params(&mut model, &h.params, &mut file)?;
                let expectation = h.expectation.ok_or_else(|| damaged("its expectation is missing"))?;
                model.expectation = expectation.parse()?;
                LatentSpace::Gplvm(Box::new(model))
            }
            "ppca" => {
                let w = file.take("w", h.d, h.latent_dim)?;
                let mean = file.take("mean", 1, h.d)?;
                let noise = file.noise(h.d)?.value.into_vec();
                let eigenvalues = file.tensor("eigenvalues")?.clone();
                let finite = w.is_finite() && mean.is_finite() && eigenvalues.is_finite();
                let positive = noise.iter().all(|v| *v > 0.0 && v.is_finite());
                if !(finite && positive && h.latent_dim > 0) {
                    return Err(damaged("a number of it is outside its domain"));
                }
                let model = Ppca {
                    w,
                    mean: mean.into_vec(),
                    noise,
                    scaling: h.scaling,
                    eigenvalues: eigenvalues.into_vec(),
                    trace: report.trace.clone(),
                    converged: h.converged,
                };
                LatentSpace::Ppca(Box::new(model), y)
            }
            other => return Err(damaged(format!("its model `{other}` is not known"))),
        };
        Ok(TrainedSpace { model, columns: h.columns, labels, report, unfinished })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Scale;
    use crate::file::{load, save};
    use crate::kernel::Matern32;
    use crate::model::{GplvmTraining, PpcaOptions};
    use std::ops::ControlFlow;

    fn all() -> Vec<TrainedSpace> {
        let mut y = Mat::from_fn(9, 3, |i, j| ((i * 3 + j * j) as f64).sin() * 10.0 + j as f64);
        let whole = y.clone();
        y[(2, 1)] = f64::NAN;
        let how = GplvmTraining { hold: 2, max_iterations: 4, ..Default::default() };
        let gplvm = how.fit(&y, &Matern32::new(2), &|_| ControlFlow::Continue(())).unwrap();
        let options = PpcaOptions { max_iterations: 20, ..Default::default() };
        let ppca = |y: &Mat| LatentSpace::Ppca(Box::new(Ppca::fit(y, &options).unwrap()), y.clone());
        let models = [LatentSpace::Gplvm(Box::new(gplvm.model)), ppca(&whole), ppca(&y)];
        let trained = |model: LatentSpace| TrainedSpace {
            columns: vec!["a".into(), "b".into(), "c".into()],
            labels: Some(Labels { name: "l".into(), of: (0..9).map(|i| (i % 2).to_string()).collect() }),
            unfinished: None,
            report: Report::example(
                Some(Scale::Standardize),
                if let LatentSpace::Ppca(m, _) = &model { m.trace.clone() } else { vec![1.0] },
            ),
            model,
        };
        models.map(trained).into()
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
