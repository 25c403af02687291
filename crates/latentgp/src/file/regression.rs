//! The model file of a regression: the model with the data it predicts from, whose columns they are, and how it
//! was trained.

use super::gplvm::ExpectationSpec;
use super::params::{ParamSpec, put_params, take_params};
use super::report::Report;
use super::unfinished::{Unfinished, UnfinishedSpec};
use super::{ModelFile, Store, damaged, written};
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::expectation::{Gaussians, Mixed};
use crate::kernel::Own;
use crate::likelihood::{self, Kind, Observations};
use crate::mat::Mat;
use crate::mean::Mean;
use crate::model::prior::Normal;
use crate::model::{
    Jitter, Laplace, Outputs, Regression, Regressor, SparseRegression, SpgpDr, Supervised, Svgp,
    UncertainInputs, Vdmgp, WeightPrior,
};
use crate::param::Param;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A trained regression with all that belongs to it.
#[derive(Clone)]
pub struct TrainedRegression {
    /// The model.
    pub model: Regressor,
    /// The names of the columns of X.
    pub inputs: Vec<String>,
    /// For every input the column with its standard deviation, if it has one; empty where none has.
    pub input_std: Vec<Option<String>>,
    /// The names of the targets.
    pub targets: Vec<String>,
    /// The names of the classes, where classes are the target.
    pub classes: Vec<String>,
    /// How it was trained.
    pub report: Report,
    /// What is needed to go on with a training that is not over.
    pub unfinished: Option<Unfinished>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    model: String,
    likelihood: String,
    n: usize,
    q: usize,
    d: usize,
    latent_dim: Option<usize>,
    inducing: Option<usize>,
    kernel: String,
    expectation: Option<ExpectationSpec>,
    mean: String,
    prior: PriorSpec,
    scaling: Option<Scaling>,
    input_scaling: Option<Scaling>,
    jitter: [f64; 2],
    /// Of each row, in a sparse model of classes or counts.
    #[serde(default = "whole")]
    weight: f64,
    params: Vec<ParamSpec>,
    inputs: Vec<String>,
    input_std: Vec<Option<String>>,
    targets: Vec<String>,
    classes: Vec<String>,
    report: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unfinished: Option<UnfinishedSpec>,
}

/// The prior of the weights of a variational projection.
#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum PriorSpec {
    #[default]
    None,
    TypeII,
    Given,
    Gamma(f64, f64),
}

impl TrainedRegression {
    /// All of the header but what differs between models.
    fn header(&self) -> Header {
        let (n, q, d) = self.model.sizes();
        Header {
            model: self.model.name().into(),
            likelihood: self.model.observations().map_or("gaussian".into(), Observations::expression),
            n,
            q,
            d,
            latent_dim: self.model.latent_dim(),
            inducing: self.model.inducing(),
            kernel: self.model.kernel().expression(),
            expectation: None,
            mean: "zero".into(),
            prior: PriorSpec::None,
            scaling: None,
            input_scaling: None,
            jitter: [0.0; 2],
            weight: 1.0,
            params: Vec::new(),
            inputs: self.inputs.clone(),
            input_std: self.input_std.clone(),
            targets: self.targets.clone(),
            classes: self.classes.clone(),
            report: Value::Null,
            unfinished: None,
        }
    }

    /// Puts what differs between models into header and file.
    fn put(&self, h: &mut Header, file: &mut ModelFile) {
        let mut put = |name: &str, of: &Mat| file.tensors.insert(name.into(), of.clone());
        match &self.model {
            Regressor::Gp(m) => {
                put("x", &m.x);
                put("y", &m.outputs.y);
                (h.scaling, h.input_scaling) = (Some(m.scaling.clone()), m.inputs.clone());
                h.expectation = Some(ExpectationSpec::of(&*m.expectation));
                h.mean = match m.mean {
                    Mean::Zero => "zero",
                    Mean::Constant { .. } => "constant",
                    Mean::Linear { .. } => "linear",
                }
                .into();
            }
            Regressor::Sparse(m) => {
                let given = m.x.given();
                put("x", &given.mean);
                put("x.var", &given.var);
                put("prior.mean", &m.x.prior.mean);
                put("prior.var", &m.x.prior.var);
                put("y", &m.outputs.y);
                (h.scaling, h.input_scaling) = (Some(m.scaling.clone()), m.inputs.clone());
                h.expectation = Some(ExpectationSpec::of(&*m.expectation.0));
                h.jitter = [m.jitter.kzz, m.jitter.b];
            }
            Regressor::SpgpDr(m) => {
                put("x", &m.data.x);
                put("y", &m.data.y);
                m.x_var.iter().for_each(|r| drop(put("x.var", r)));
                (h.scaling, h.input_scaling) = (Some(m.data.outputs.clone()), Some(m.data.inputs.clone()));
                h.jitter = [m.jitter, 0.0];
            }
            Regressor::Vdmgp(m) => {
                put("x", &m.data.x);
                put("y", &m.data.y);
                m.x_var.iter().for_each(|r| drop(put("x.var", r)));
                (h.scaling, h.input_scaling) = (Some(m.data.outputs.clone()), Some(m.data.inputs.clone()));
                h.expectation = Some(ExpectationSpec::of(&*m.expectation));
                h.jitter = [m.jitter.kzz, m.jitter.b];
                h.prior = match m.prior {
                    WeightPrior::TypeII => PriorSpec::TypeII,
                    WeightPrior::Given(_) => PriorSpec::Given,
                    WeightPrior::Gamma { shape, rate } => PriorSpec::Gamma(shape, rate),
                };
            }
            Regressor::Laplace(m, inputs) => {
                put("x", &m.x);
                put("y", &m.observations.column());
                h.input_scaling = Some(inputs.clone());
            }
            Regressor::Svgp(m, inputs) => {
                put("x", &m.x);
                put("y", &m.observations.column());
                h.input_scaling = Some(inputs.clone());
                h.jitter = [m.jitter, 0.0];
                h.weight = m.weight;
            }
        }
    }
}

fn whole() -> f64 {
    1.0
}

impl Header {
    fn observations(&self, y: &Mat) -> Result<Observations> {
        Observations::restored(&self.likelihood, y, self.classes.len())
    }

    /// The scalings of outputs and inputs, of the right lengths.
    fn scaling(&self, outputs: bool) -> Result<Scaling> {
        let (of, len) = if outputs { (&self.scaling, self.d) } else { (&self.input_scaling, self.q) };
        match of {
            Some(s) if s.mean.len() == len && s.scale.len() == len && sound(s) => Ok(s.clone()),
            _ => Err(damaged("its scaling does not fit its columns")),
        }
    }

    fn supervised(&self, x: Mat, y: Mat) -> Result<Supervised> {
        if !(x.is_finite() && y.is_finite()) {
            return Err(damaged("its data are not finite"));
        }
        Ok(Supervised { x, y, inputs: self.scaling(false)?, outputs: self.scaling(true)? })
    }

    /// R, where inputs of a projection have errors.
    fn input_variances(&self, file: &mut ModelFile) -> Result<Option<Mat>> {
        if !file.tensors.contains_key("x.var") {
            return Ok(None);
        }
        let r = file.take("x.var", self.n, self.q)?;
        match r.as_slice().iter().all(|v| *v >= 0.0 && v.is_finite()) {
            true => Ok(Some(r)),
            false => Err(damaged("the variances of its inputs are outside their domain")),
        }
    }

    fn model(&self, file: &mut ModelFile, own: &Own) -> Result<Regressor> {
        let (n, q, d) = (self.n, self.q, self.d);
        let (x, y) = (file.take("x", n, q)?, file.take("y", n, d)?);
        if x.is_empty() || y.is_empty() || x.as_slice().iter().chain(y.as_slice()).any(|v| v.is_infinite()) {
            return Err(damaged("its data are empty or infinite"));
        }
        let dim = match (matches!(self.model.as_str(), "spgp-dr" | "vdmgp"), self.latent_dim) {
            (true, Some(dim)) => dim,
            (false, None) => q,
            _ => {
                return Err(damaged(
                    "it has directions of a projection where there is none, or none where there is",
                ));
            }
        };
        let kernel = own.parse(&self.kernel, dim)?;
        let expectation = || match &self.expectation {
            Some(spec) => spec.parse(),
            None => Err(damaged("its expectation is missing")),
        };
        let jitter = Jitter { kzz: self.jitter[0], b: self.jitter[1] };
        let array = |name: &str| file.tensor(name).cloned();
        let inducing = || -> Result<Mat> {
            let z = array("z")?;
            match Some(z.rows()) == self.inducing {
                true => Ok(z),
                false => Err(damaged("the sizes in its header are not those of its arrays")),
            }
        };
        let gaussian = self.likelihood == "gaussian";
        Ok(match (self.model.as_str(), gaussian) {
            ("gp", true) => {
                if !x.is_finite() {
                    return Err(damaged("an input is missing"));
                }
                let inputs = self.input_scaling.as_ref().map(|_| self.scaling(false)).transpose()?;
                let mean = match self.mean.as_str() {
                    "zero" => Mean::Zero,
                    "constant" => Mean::constant(d),
                    "linear" => Mean::linear(q, d),
                    other => return Err(damaged(format!("its mean function `{other}` is not known"))),
                };
                Regressor::Gp(Box::new(Regression {
                    kernel,
                    noise: Param::scalar(1.0),
                    mean,
                    expectation: expectation()?,
                    x,
                    outputs: Outputs::new(y),
                    scaling: self.scaling(true)?,
                    inputs,
                }))
            }
            ("sparse", true) => {
                let z = inducing()?;
                if z.cols() != q || z.is_empty() {
                    return Err(damaged("its inducing inputs do not fit its inputs"));
                }
                let inputs = self.input_scaling.as_ref().map(|_| self.scaling(false)).transpose()?;
                let prior = Normal { mean: array("prior.mean")?, var: array("prior.var")? };
                let given = Gaussians { mean: x, var: file.take("x.var", n, q)? };
                if prior.mean.len() != prior.var.len()
                    || !prior.mean.is_finite()
                    || prior.var.as_slice().iter().any(|v| !(*v > 0.0 && v.is_finite()))
                    || given.var.as_slice().iter().any(|v| !(*v >= 0.0 && v.is_finite()))
                {
                    return Err(damaged("its inputs or their variances are outside their domain"));
                }
                Regressor::Sparse(Box::new(SparseRegression {
                    kernel,
                    noise: Param::scalar(1.0),
                    z: Param::free(z),
                    x: UncertainInputs::of_given(given, prior)?,
                    expectation: Mixed(expectation()?),
                    jitter,
                    outputs: Outputs::new(y),
                    scaling: self.scaling(true)?,
                    inputs,
                }))
            }
            ("spgp-dr", true) => {
                let data = self.supervised(x, y)?;
                let mut model = SpgpDr::new(data, kernel, array("p")?, inducing()?, 1.0)?;
                model.jitter = jitter.kzz;
                model.x_var = self.input_variances(file)?;
                Regressor::SpgpDr(Box::new(model))
            }
            ("vdmgp", true) => {
                let weights = Gaussians::new(array("mean")?, array("var")?)?;
                let prior = match self.prior {
                    PriorSpec::TypeII => WeightPrior::TypeII,
                    PriorSpec::Given => WeightPrior::fixed(array("ell2")?.as_slice()),
                    PriorSpec::Gamma(shape, rate) => WeightPrior::Gamma { shape, rate },
                    PriorSpec::None => return Err(damaged("the prior of its weights is missing")),
                };
                let z = inducing()?;
                let data = self.supervised(x, y)?;
                let mut model = Vdmgp::new(data, kernel, expectation()?, prior, weights, z, 1.0)?;
                model.jitter = jitter;
                model.x_var = self.input_variances(file)?;
                Regressor::Vdmgp(Box::new(model))
            }
            ("gp", false) => {
                let model = Laplace::new(x, self.observations(&y)?, kernel)?;
                Regressor::Laplace(Box::new(model), self.scaling(false)?)
            }
            ("sparse", false) => {
                let mut model = Svgp::at(x, self.observations(&y)?, kernel, inducing()?)?;
                model.jitter = jitter.kzz;
                if !(self.weight > 0.0 && self.weight.is_finite()) {
                    return Err(damaged("the weight of its rows is outside its domain"));
                }
                model.weight = self.weight;
                Regressor::Svgp(Box::new(model), self.scaling(false)?)
            }
            (other, _) => return Err(damaged(format!("its model `{other}` is not known"))),
        })
    }
}

fn sound(s: &Scaling) -> bool {
    s.mean.iter().all(|v| v.is_finite()) && s.scale.iter().all(|v| v.is_finite() && *v > 0.0)
}

impl Store for TrainedRegression {
    const KIND: &'static str = "regression";

    fn to_file(&self) -> Result<ModelFile> {
        let (_, q, _) = self.model.sizes();
        written(self.model.kernel(), self.model.latent_dim().unwrap_or(q))?;
        let mut file = ModelFile::new(Self::KIND, json!(null));
        let mut header = self.header();
        self.put(&mut header, &mut file);
        header.params = put_params(self.model.model(), &mut file);
        header.report = self.report.of_regression()?;
        header.unfinished = self.unfinished.as_ref().map(|u| u.put(&mut file));
        let trace = Mat::from_vec(1, self.report.trace.len(), self.report.trace.clone())?;
        file.tensors.insert("trace".into(), trace);
        file.header = serde_json::to_value(header).map_err(|e| Error::data("model file", e.to_string()))?;
        Ok(file)
    }

    fn from_file_with(mut file: ModelFile, own: &Own) -> Result<Self> {
        let h: Header = file.header_as()?;
        let classes = h.likelihood != "gaussian" && likelihood::named(&h.likelihood)?.kind == Kind::Classes;
        if h.inputs.len() != h.q
            || h.targets.len() != h.d
            || (!h.input_std.is_empty() && h.input_std.len() != h.q)
            || (h.classes.is_empty() == classes)
        {
            return Err(damaged("the names of its columns do not fit its arrays"));
        }
        let mut model = h.model(&mut file, own)?;
        take_params(model.parameters_mut(), &h.params, &mut file)?;
        let unfinished = h.unfinished.map(|spec| spec.take(&mut file)).transpose()?;
        let mut report: Report =
            serde_json::from_value(h.report).map_err(|e| damaged(format!("in the header, {e}")))?;
        report.trace = file.tensor("trace")?.as_slice().to_vec();
        Ok(TrainedRegression {
            model,
            inputs: h.inputs,
            input_std: h.input_std,
            targets: h.targets,
            classes: h.classes,
            report,
            unfinished,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Scale;
    use crate::file::{load, save};
    use crate::kernel::Matern32;
    use crate::likelihood::Link;
    use crate::model::{RegressionOptions, SparseOptions};

    fn data() -> (Mat, Mat) {
        let x = Mat::from_fn(9, 2, |i, j| (2.3 * i as f64 + 1.1 * j as f64).sin() * 2.0);
        let y = Mat::from_fn(9, 2, |i, d| 3.0 + (x[(i, 0)] + d as f64).sin() + x[(i, 1)]);
        (x, y)
    }

    fn trained(model: Regressor, classes: usize) -> TrainedRegression {
        let (_, q, d) = model.sizes();
        let names = |head: &str, n: usize| (0..n).map(|k| format!("{head}{k}")).collect::<Vec<_>>();
        TrainedRegression {
            inputs: names("x", q),
            input_std: vec![],
            targets: names("y", d),
            classes: names("c", classes),
            unfinished: None,
            report: Report::example(Some(Scale::Standardize), vec![1.0, 2.0]),
            model,
        }
    }

    /// One of each kind, with gaps where a kind takes them.
    fn all() -> Vec<TrainedRegression> {
        let ((x, y), k) = (data(), Matern32::new(2));
        let mut holed = y.clone();
        holed[(3, 1)] = f64::NAN;
        let options = RegressionOptions {
            scale_inputs: Scale::Standardize,
            mean: crate::model::MeanKind::Linear,
            ..Default::default()
        };
        let gp = Regression::with(x.clone(), holed.clone(), k.clone(), &options).unwrap();
        let mut gaps = x.clone();
        gaps[(4, 0)] = f64::NAN;
        let options = SparseOptions { inducing: 4, scale_inputs: Scale::Standardize, ..Default::default() };
        let std = Some(Mat::filled(9, 2, 0.1));
        let sparse = SparseRegression::new(gaps, std, holed, k.clone(), &options).unwrap();
        let supervised = Supervised::new(&x, &y, Scale::Standardize, Scale::Standardize).unwrap();
        let (p, z) = (Mat::from_rows(&[[0.4, -0.7]]), Mat::column(&[-1.0, 0.1, 0.9]));
        let one = Matern32::new(1);
        let dr = SpgpDr::new(supervised.clone(), one.clone(), p.clone(), z.clone(), 0.1).unwrap();
        let weights = Gaussians::new(p, Mat::filled(1, 2, 0.02)).unwrap();
        let rule = Box::new(crate::expectation::Auto);
        let priors =
            [WeightPrior::TypeII, WeightPrior::fixed(&[0.3]), WeightPrior::Gamma { shape: 1.0, rate: 1e-3 }];
        let vdmgp = priors.map(|prior| {
            let data = supervised.clone();
            let (w, z) = (weights.clone(), z.clone());
            Vdmgp::new(data, one.clone(), rule.clone(), prior, w, z, 0.1).unwrap()
        });
        let units = supervised.inputs.clone();
        let labels = [0, 1, 2, 1, 0, 2, 2, 1, 0];
        let three = Observations::categorical(&labels, 3).unwrap();
        let two = Observations::bernoulli(&labels.map(|l| l % 2), Link::Probit).unwrap();
        let counts = Observations::poisson(&labels.map(|l| l as f64)).unwrap();
        let x = supervised.x.clone();
        let laplace = |o: &Observations| {
            let model = Laplace::new(x.clone(), o.clone(), k.clone()).unwrap();
            Regressor::Laplace(
                Box::new(model.with_variance_prior(crate::model::VARIANCE_PRIOR)),
                units.clone(),
            )
        };
        let svgp = |o: &Observations| {
            let mut model = Svgp::new(x.clone(), o.clone(), k.clone(), 4, 1).unwrap();
            let len = model.q_mean.len();
            (0..len).for_each(|i| model.q_mean.value.as_mut_slice()[i] = (i as f64).sin());
            Regressor::Svgp(Box::new(model), units.clone())
        };
        let mut all = vec![
            trained(Regressor::Gp(Box::new(gp)), 0),
            trained(Regressor::Sparse(Box::new(sparse)), 0),
            trained(Regressor::SpgpDr(Box::new(dr)), 0),
        ];
        all.extend(vdmgp.map(|m| trained(Regressor::Vdmgp(Box::new(m)), 0)));
        for (o, classes) in [(three, 3), (two, 2), (counts, 0)] {
            all.extend([trained(laplace(&o), classes), trained(svgp(&o), classes)]);
        }
        let robust = Observations::from_expression("student_t(df=5)", &y.select_cols(&[0]), 0).unwrap();
        all.push(trained(svgp(&robust), 0));
        all
    }

    #[test]
    fn predictions_after_save_and_load_are_the_same_bits() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.lgp");
        let new = Mat::from_rows(&[[0.3, -0.2], [1.4, 0.9]]);
        let errors = all().into_iter().filter_map(|mut t| {
            match &mut t.model {
                Regressor::SpgpDr(m) => m.x_var = Some(Mat::filled(9, 2, 0.2)),
                Regressor::Vdmgp(m) => m.x_var = Some(Mat::filled(9, 2, 0.2)),
                _ => return None,
            }
            Some(t)
        });
        for before in all().into_iter().chain(errors) {
            save(&path, &before).unwrap();
            let after: TrainedRegression = load(&path).unwrap();
            let name = format!("{} {}", before.model.name(), before.model.likelihood());
            assert_eq!(after.model.name(), before.model.name());
            assert_eq!(after.model.model().params(), before.model.model().params(), "{name}");
            let (a, b) = (before.model.predict(&new, None), after.model.predict(&new, None));
            assert_eq!(a.unwrap(), b.unwrap(), "{name}");
            let evidence = |t: &TrainedRegression| t.model.model().log_evidence(None).unwrap();
            assert_eq!(evidence(&after), evidence(&before), "{name}");
            assert_eq!(after.report, before.report);
            let names = |t: &TrainedRegression| (t.inputs.clone(), t.targets.clone(), t.classes.clone());
            assert_eq!(names(&after), names(&before));
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        for whole in all() {
            let name = format!("{} {}", whole.model.name(), whole.model.likelihood());
            let whole = whole.to_file().unwrap();
            let arrays: Vec<String> = whole.tensors.keys().cloned().collect();
            for array in arrays.iter().filter(|a| *a != "trace") {
                let (rows, cols) = (whole.tensors[array].rows(), whole.tensors[array].cols());
                let mut file = whole.clone();
                file.tensors.remove(array);
                assert!(TrainedRegression::from_file(file).is_err(), "{name} without {array}");
                let mut file = whole.clone();
                file.tensors.insert(array.clone(), Mat::filled(rows + 1, cols + 1, 0.5));
                assert!(TrainedRegression::from_file(file).is_err(), "{name}, {array} too large");
                if rows * cols > 0 {
                    let mut file = whole.clone();
                    file.tensors.insert(array.clone(), Mat::filled(rows, cols, f64::INFINITY));
                    assert!(TrainedRegression::from_file(file).is_err(), "{name}, {array} infinite");
                }
            }
            for (key, value) in [
                ("n", json!(u64::MAX)),
                ("model", json!("nonsense")),
                ("likelihood", json!("nonsense")),
                ("kernel", json!("nonsense")),
                ("inputs", json!(["a"])),
                ("targets", json!([])),
                ("params", json!([])),
                ("input_scaling", json!({ "mean": [0.0], "scale": [1.0] })),
                ("report", json!({})),
            ] {
                let mut file = whole.clone();
                file.header[key] = value;
                assert!(TrainedRegression::from_file(file).is_err(), "{name}: {key}");
            }
        }
    }
}
