//! The model file of a Bayesian GPLVM: the model, whose columns and rows it is of, and how it was trained.

use super::params::{ParamSpec, put_params, take_params};
use super::parts::ExpectationSpec;
use super::prior::{USUAL, put_prior, take_prior};
use super::report::Report;
use super::unfinished::{Unfinished, UnfinishedSpec};
use super::{ModelFile, Store, damaged, written};
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::expectation::{self, Gaussians};
use crate::kernel::Own;
use crate::mat::Mat;
use crate::model::{BayesianGplvm, Jitter, Outputs};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A class for each training row.
#[derive(Clone, Debug, PartialEq)]
pub struct Labels {
    /// The name of the column.
    pub name: String,
    /// The label of each row; empty where it is missing.
    pub of: Vec<String>,
}

/// A trained Bayesian GPLVM with all that belongs to it.
#[derive(Clone)]
pub struct Trained {
    /// The model.
    pub model: BayesianGplvm,
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

#[derive(Serialize, Deserialize)]
struct Header {
    n: usize,
    d: usize,
    latent_dim: usize,
    inducing: usize,
    kernel: String,
    expectation: ExpectationSpec,
    scaling: Scaling,
    jitter: [f64; 2],
    params: Vec<ParamSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prior: Option<String>,
    columns: Vec<String>,
    labels: Option<LabelSpec>,
    id: Option<String>,
    report: Report,
    #[serde(default)]
    unfinished: Option<UnfinishedSpec>,
}

/// Labels in a header.
#[derive(Serialize, Deserialize)]
pub(super) struct LabelSpec {
    pub(super) name: String,
    pub(super) distinct: Vec<String>,
}

impl Store for Trained {
    const KIND: &'static str = "bayesian-gplvm";

    fn to_file(&self) -> Result<ModelFile> {
        let model = &self.model;
        let (n, d, q, m) = model.sizes();
        let kernel = written(&*model.kernel, q)?;
        expectation::parse(&model.expectation.expression())?;
        let mut file = ModelFile::new(Self::KIND, json!(null));
        let params = put_params(model, &mut file);
        file.tensors.insert("y".into(), model.outputs.y.clone());
        let prior = Some(put_prior(&*model.prior, "prior", &mut file)).filter(|prior| prior != USUAL);
        let trace = Mat::from_vec(1, self.report.trace.len(), self.report.trace.clone())?;
        file.tensors.insert("trace".into(), trace);
        let labels = self.labels.as_ref().map(|labels| {
            let (codes, distinct) = codes(&labels.of);
            file.tensors.insert("labels".into(), Mat::column(&codes));
            LabelSpec { name: labels.name.clone(), distinct }
        });
        let header = Header {
            n,
            d,
            latent_dim: q,
            inducing: m,
            kernel,
            expectation: ExpectationSpec::of(&*model.expectation),
            scaling: model.scaling.clone(),
            jitter: [model.jitter.kzz, model.jitter.b],
            params,
            prior,
            columns: self.columns.clone(),
            labels,
            id: self.id.clone(),
            report: self.report.clone(),
            unfinished: self.unfinished.as_ref().map(|u| u.put(&mut file)),
        };
        file.header = serde_json::to_value(header).map_err(|e| Error::data("model file", e.to_string()))?;
        Ok(file)
    }

    fn from_file_with(mut file: ModelFile, own: &Own) -> Result<Self> {
        let h: Header = file.header_as()?;
        if h.columns.len() != h.d {
            return Err(damaged(format!("should name {} columns, it names {}", h.d, h.columns.len())));
        }
        let y = file.take("y", h.n, h.d)?;
        if y.as_slice().iter().any(|v| v.is_infinite()) || y.is_empty() {
            return Err(damaged("its data are empty or infinite"));
        }
        let scales = || h.scaling.mean.iter().chain(&h.scaling.scale);
        let positive = h.scaling.scale.iter().all(|s| *s > 0.0);
        if h.scaling.mean.len() != h.d || !positive || !scales().all(|v| v.is_finite()) {
            return Err(damaged("its scaling does not fit its columns"));
        }
        let kernel = own.parse(&h.kernel, h.latent_dim)?;
        let expectation = h.expectation.parse()?;
        let [mean, var] = ["mean", "var"].map(|name| file.tensor(name).cloned());
        let q = Gaussians::new(mean?, var?)?;
        let (z, noise) = (file.tensor("z")?.clone(), file.noise(h.d)?);
        if (q.dim(), z.rows()) != (h.latent_dim, h.inducing) {
            return Err(damaged("the sizes in its header are not those of its arrays"));
        }
        let outputs = Outputs::new(y);
        let mut model = BayesianGplvm::new(outputs, h.scaling, kernel, expectation, q, z, noise.get())?;
        model.noise = noise;
        let prior = h.prior.as_deref().unwrap_or(USUAL);
        model.set_prior(take_prior(prior, "prior", (h.n, h.latent_dim), &mut file)?)?;
        take_params(&mut model, &h.params, &mut file)?;
        model.jitter = Jitter { kzz: h.jitter[0], b: h.jitter[1] };
        let labels = match h.labels {
            Some(spec) => Some(spec.labels(&file.take("labels", h.n, 1)?)?),
            None => None,
        };
        let unfinished = h.unfinished.map(|spec| spec.take(&mut file)).transpose()?;
        let mut report = h.report;
        report.trace = file.tensor("trace")?.as_slice().to_vec();
        Ok(Trained { model, columns: h.columns, labels, id: h.id, report, unfinished })
    }
}

/// Each word once, in order of first appearance, and the place of each row's.
pub(super) fn codes(words: &[String]) -> (Vec<f64>, Vec<String>) {
    let words: crate::data::words::Words = words.iter().collect();
    (words.codes().iter().map(|&c| f64::from(c)).collect(), words.distinct().to_vec())
}

impl LabelSpec {
    pub(super) fn labels(self, codes: &Mat) -> Result<Labels> {
        let word = |&c: &f64| {
            let known = c >= 0.0 && c.fract() == 0.0 && c < self.distinct.len() as f64;
            if known { Ok(self.distinct[c as usize].clone()) } else { Err(damaged("a label is unknown")) }
        };
        let of = codes.as_slice().iter().map(word).collect::<Result<_>>()?;
        Ok(Labels { name: self.name, of })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{load, save};
    use crate::kernel::{Auto, Formula, Matern32, Scalar};
    use crate::model::Model;
    use crate::model::Training;
    use crate::param::{Param, Parameterized};
    use crate::recipe::Recipe;
    use std::ops::ControlFlow;

    fn trained(y: Mat, expectation: &str) -> Trained {
        let training = Training {
            latent_dim: 2,
            inducing: 4,
            hold: 2,
            max_iterations: 4,
            expectation: expectation::parse(expectation).unwrap(),
            ..Training::default()
        };
        let fit = training.fit(&y, &Matern32::new(2), &|_| ControlFlow::Continue(())).unwrap();
        let n = y.rows();
        Trained {
            report: Report::new(&fit, &Recipe::of("bayesian-gplvm"), 0.5).certified(&fit.model).unwrap(),
            model: fit.model,
            columns: (0..y.cols()).map(|j| format!("c{j}")).collect(),
            labels: Some(Labels { name: "class".into(), of: (0..n).map(|i| format!("{}", i % 2)).collect() }),
            id: Some("id".into()),
            unfinished: None,
        }
    }

    fn data(missing: bool) -> Mat {
        let mut y = Mat::from_fn(9, 3, |i, j| ((i * 3 + j * j) as f64).sin() * 10.0 + j as f64);
        if missing {
            (y[(2, 1)], y[(5, 0)]) = (f64::NAN, f64::NAN);
        }
        y
    }

    #[test]
    fn predictions_after_save_and_load_are_the_same_bits() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.lgp");
        for (missing, expectation) in [
            (false, "unscented"),
            (true, "auto"),
            (false, "monte_carlo(samples=5, seed=2, fresh=true)"),
            (true, "gauss_hermite(points=3)"),
        ] {
            let mut before = trained(data(missing), expectation);
            before.model.noise.fixed = true;
            save(&path, &before).unwrap();
            let after: Trained = load(&path).unwrap();
            assert_eq!(after.model.params(), before.model.params());
            assert_eq!(*after.model.kernel, *before.model.kernel);
            assert_eq!((&after.labels, &after.report), (&before.labels, &before.report));
            assert_eq!((&after.columns, &after.id), (&before.columns, &before.id));
            let (a, b) = (before.model.posterior().unwrap(), after.model.posterior().unwrap());
            let q = before.model.latent();
            assert_eq!(a.predict_uncertain(&q), b.predict_uncertain(&q));
            assert_eq!(a.predict(&q.mean), b.predict(&q.mean));
            let new = Mat::from_rows(&[[0.3, f64::NAN, 2.0]]);
            assert_eq!(before.model.project(&new), after.model.project(&new));
            assert_eq!(before.model.log_evidence(None), after.model.log_evidence(None));
        }
    }

    #[test]
    fn every_truncation_and_every_flipped_byte_is_refused() {
        let bytes = trained(data(true), "unscented").to_file().unwrap().to_bytes().unwrap();
        assert!(ModelFile::from_bytes(&bytes).is_ok());
        for at in 0..bytes.len() {
            assert!(ModelFile::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
            let mut bad = bytes.clone();
            bad[at] ^= 0xff;
            assert!(ModelFile::from_bytes(&bad).is_err(), "byte {at}");
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let whole = trained(data(false), "unscented").to_file().unwrap();
        let names: Vec<String> = whole.tensors.keys().cloned().collect();
        for name in names {
            let mut file = whole.clone();
            file.tensors.remove(&name);
            assert!(Trained::from_file(file).is_err(), "without {name}");
            if name != "trace" {
                let mut file = whole.clone();
                let (rows, cols) = (file.tensors[&name].rows(), file.tensors[&name].cols());
                file.tensors.insert(name.clone(), Mat::filled(rows + 1, cols, 0.5));
                assert!(Trained::from_file(file).is_err(), "{name} too long");
                let mut file = whole.clone();
                file.tensors.insert(name.clone(), Mat::filled(rows, cols, f64::INFINITY));
                assert!(Trained::from_file(file).is_err(), "{name} infinite");
            }
        }
        for (key, value) in [
            ("n", json!(u64::MAX)),
            ("latent_dim", json!(0)),
            ("kernel", json!("linear")),
            ("kernel", json!("nonsense")),
            ("expectation", json!({ "expression": "x", "max_nodes": null, "step": 0 })),
            ("columns", json!(["a"])),
            ("scaling", json!({ "mean": [0.0], "scale": [1.0] })),
            ("params", json!([])),
            ("report", json!({})),
        ] {
            let mut file = whole.clone();
            file.header[key] = value;
            assert!(Trained::from_file(file).is_err(), "{key}");
        }
    }

    #[test]
    fn another_prior_is_stored_with_its_parameters() {
        let y = data(false);
        let days: Vec<f64> = (0..9).map(|i| if i == 4 { f64::NAN } else { 3.0 + 0.5 * i as f64 }).collect();
        let prior = crate::model::prior::parse("times(column=day, std=0.2, learn=true)").unwrap();
        let training = Training {
            inducing: 4,
            max_iterations: 8,
            prior: Some(prior.bind(9, 2, std::slice::from_ref(&days)).unwrap()),
            ..Training::default()
        };
        let fit = training.fit(&y, &Matern32::new(2), &|_| ControlFlow::Continue(())).unwrap();
        let mut before = trained(y, "auto");
        before.model = fit.model;
        let file = before.to_file().unwrap();
        assert_eq!(file.header["prior"], before.model.prior.expression());
        assert_ne!(file.header["prior"], "times(column=day, std=0.2, dim=0, learn=true)");
        let after = Trained::from_file(ModelFile::from_bytes(&file.to_bytes().unwrap()).unwrap()).unwrap();
        assert_eq!(after.model.params(), before.model.params());
        assert_eq!(after.model.log_evidence(None), before.model.log_evidence(None));
        let posterior = before.model.posterior().unwrap();
        let new = Mat::from_rows(&[[0.3, f64::NAN, 2.0]]);
        let known = |m: &BayesianGplvm| m.project_knowing(&posterior, &new, &[vec![4.0]]).unwrap();
        assert_eq!(known(&after.model), known(&before.model));
        assert_ne!(known(&after.model), after.model.project(&new).unwrap());
        assert_eq!(after.to_file().unwrap().to_bytes().unwrap(), file.to_bytes().unwrap());
        for name in ["prior.times", "prior.units", "prior.std"] {
            let mut file = file.clone();
            file.tensors.remove(name);
            assert!(Trained::from_file(file).is_err(), "without {name}");
        }
        for wrong in [json!("nonsense"), json!("normal"), json!("times(column=day, std=1, dim=2)")] {
            let mut file = file.clone();
            file.header["prior"] = wrong;
            assert!(Trained::from_file(file).is_err());
        }
    }

    #[derive(Clone)]
    struct Wave(&'static str);

    impl Formula for Wave {
        fn name(&self) -> &str {
            self.0
        }
        fn params(&self) -> Vec<(&'static str, Param)> {
            vec![("variance", Param::scalar(1.0))]
        }
        fn k<S: Scalar>(&self, x: &[S], z: &[S], theta: &[S]) -> S {
            theta[0] * (x[0] - z[0]).cos()
        }
    }

    fn with_wave(name: &'static str) -> Trained {
        let mut own = trained(data(false), "unscented");
        own.model.kernel = Box::new(Auto::new(Wave(name), 2));
        own.model.kernel.params_mut()[0].1.set(2.5);
        own
    }

    #[test]
    fn a_kernel_of_ones_own_is_read_by_who_has_it() {
        let file = with_wave("wave").to_file().unwrap();
        let missing = Trained::from_file(file.clone()).err().unwrap().to_string();
        assert!(missing.contains("unknown kernel `wave`"), "{missing}");
        let own = Own::new(vec![Box::new(Auto::new(Wave("wave"), 2))]).unwrap();
        let read = Trained::from_file_with(file, &own).unwrap();
        assert_eq!(read.model.kernel.expression(), "wave(variance=2.5)");
    }

    #[test]
    fn a_kernel_that_cannot_be_read_back_is_not_written() {
        for name in ["two waves", "rbf"] {
            assert!(with_wave(name).to_file().err().unwrap().to_string().contains("(variance=2.5)"));
        }
    }
}
