//! The model file of a regression: the model, whose columns it is of, and how it was trained. What only one model has is
//! written and read by the model.

use super::report::Report;
use super::unfinished::{Unfinished, UnfinishedSpec};
use super::{ModelFile, Store, damaged, written};
use crate::error::Result;
use crate::kernel::Own;
use crate::likelihood::{self, Kind, Observations};
use crate::model::{Regressor, restore_regression};
use serde::Deserialize;
use serde_json::json;

/// A trained regression with all that belongs to it.
#[derive(Clone)]
pub struct TrainedRegression {
    /// The model.
    pub model: Box<dyn Regressor>,
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

/// What only the headers of regressions have, not those of models with a regression inside.
#[derive(Deserialize)]
struct Header {
    likelihood: String,
    q: usize,
    d: usize,
    inputs: Vec<String>,
    input_std: Vec<Option<String>>,
    targets: Vec<String>,
    classes: Vec<String>,
    #[serde(default)]
    unfinished: Option<UnfinishedSpec>,
}

/// Puts a regression, without the names of its columns.
pub(crate) fn put_regression(model: &dyn Regressor, file: &mut ModelFile) -> Result<()> {
    // Where a model says nothing else.
    let usual = [
        ("expectation", json!(null)),
        ("mean", json!("zero")),
        ("prior", json!("none")),
        ("scaling", json!(null)),
        ("input_scaling", json!(null)),
        ("jitter", json!([0.0, 0.0])),
        ("weight", json!(1.0)),
    ];
    usual.into_iter().try_for_each(|(key, value)| file.set(key, value))?;
    let ((n, q, d), latent_dim) = (model.sizes(), model.latent_dim());
    file.set("model", model.name())?;
    let likelihood = model.observations().map_or("gaussian".into(), Observations::expression);
    file.set("likelihood", likelihood)?;
    [("n", n), ("q", q), ("d", d)].into_iter().try_for_each(|(key, size)| file.set(key, size))?;
    file.set("latent_dim", latent_dim)?;
    file.set("inducing", model.inducing())?;
    file.set("kernel", written(model.kernel(), latent_dim.unwrap_or(q + model.latent_inputs()))?)?;
    model.store(file)?;
    file.put_parameters(model)
}

/// The regression that was put; `restore` makes it, by its name and whether the noise is Gaussian.
pub(crate) fn take_regression<M: Regressor + ?Sized>(
    file: &mut ModelFile,
    restore: impl Fn(&str, bool, &mut ModelFile) -> Result<Box<M>>,
) -> Result<Box<M>> {
    let (name, likelihood): (String, String) = (file.field("model")?, file.field("likelihood")?);
    let mut model = restore(&name, likelihood == "gaussian", file)?;
    let sizes = (model.sizes(), model.latent_dim(), model.inducing());
    if sizes != (file.pair_sizes()?, file.field("latent_dim")?, file.field("inducing")?) {
        return Err(damaged("the sizes in its header are not those of its arrays"));
    }
    file.take_parameters(&mut *model)?;
    Ok(model)
}

impl Store for TrainedRegression {
    const KIND: &'static str = "regression";

    fn to_file(&self) -> Result<ModelFile> {
        let mut file = ModelFile::new(Self::KIND, json!({}));
        put_regression(&*self.model, &mut file)?;
        file.set("inputs", &self.inputs)?;
        file.set("input_std", &self.input_std)?;
        file.set("targets", &self.targets)?;
        file.set("classes", &self.classes)?;
        file.put_unfinished(self.unfinished.as_ref())?;
        file.put_report(&self.report, self.report.of_regression()?)?;
        Ok(file)
    }

    fn verified(self) -> Result<Self> {
        self.report.tells(self.model.log_evidence(None))?;
        Ok(self)
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
        let report = file.take_report()?;
        let restore =
            |name: &str, gaussian: bool, file: &mut ModelFile| restore_regression(name, gaussian, file, own);
        let model = take_regression(&mut file, restore)?;
        let Header { inputs, input_std, targets, classes, unfinished, .. } = h;
        let unfinished = unfinished.map(|spec| spec.take(&mut file)).transpose()?;
        Ok(TrainedRegression { model, inputs, input_std, targets, classes, report, unfinished })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Scale;
    use crate::expectation::Gaussians;
    use crate::file::{load, save};
    use crate::kernel::Matern32;
    use crate::likelihood::Link;
    use crate::mat::Mat;
    use crate::model::{
        Laplace, Regression, RegressionOptions, SparseOptions, SparseRegression, SpgpDr, Supervised, Svgp,
        Vdmgp, WeightPrior,
    };

    fn data() -> (Mat, Mat) {
        let x = Mat::from_fn(9, 2, |i, j| (2.3 * i as f64 + 1.1 * j as f64).sin() * 2.0);
        let y = Mat::from_fn(9, 2, |i, d| 3.0 + (x[(i, 0)] + d as f64).sin() + x[(i, 1)]);
        (x, y)
    }

    fn trained(model: impl Regressor + 'static, classes: usize) -> TrainedRegression {
        let (_, q, d) = model.sizes();
        let names = |head: &str, n: usize| (0..n).map(|k| format!("{head}{k}")).collect::<Vec<_>>();
        TrainedRegression {
            inputs: names("x", q),
            input_std: vec![],
            targets: names("y", d),
            classes: names("c", classes),
            unfinished: None,
            report: Report {
                evidence: model.log_evidence(None).unwrap(),
                ..Report::example(Some(Scale::Standardize), vec![1.0, 2.0])
            },
            model: Box::new(model),
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
        let uncertain = crate::model::InputOptions { latent: 1, learn: vec![0], ..Default::default() };
        let options_latent = SparseOptions { uncertain, ..options.clone() };
        let latent =
            SparseRegression::new(gaps.clone(), std.clone(), y.clone(), Matern32::new(3), &options_latent)
                .unwrap();
        let sparse = SparseRegression::new(gaps, std, holed, k.clone(), &options).unwrap();
        let supervised = Supervised::new(&x, &y, Scale::Standardize, Scale::Standardize).unwrap();
        let (p, z) = (Mat::from_rows(&[[0.4, -0.7]]), Mat::column(&[-1.0, 0.1, 0.9]));
        let one = Matern32::new(1);
        let mut dr = SpgpDr::new(supervised.clone(), one.clone(), p.clone(), z.clone(), 0.1).unwrap();
        let certain = dr.clone();
        dr.x_var = Some(Mat::filled(9, 2, 0.2));
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
            let mut model = Laplace::new(x.clone(), o.clone(), k.clone()).unwrap();
            model.inputs = Some(units.clone());
            model.with_variance_prior(crate::model::VARIANCE_PRIOR)
        };
        let svgp = |o: &Observations| {
            let mut model = Svgp::new(x.clone(), o.clone(), k.clone(), 4, 1).unwrap();
            let len = model.q_mean.len();
            (0..len).for_each(|i| model.q_mean.value.as_mut_slice()[i] = (i as f64).sin());
            model.inputs = Some(units.clone());
            model
        };
        let mut all =
            vec![trained(gp, 0), trained(sparse, 0), trained(latent, 0), trained(certain, 0), trained(dr, 0)];
        let with_errors = Vdmgp { x_var: Some(Mat::filled(9, 2, 0.2)), ..vdmgp[1].clone() };
        all.extend(vdmgp.map(|m| trained(m, 0)));
        all.push(trained(with_errors, 0));
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
        for before in all() {
            save(&path, &before).unwrap();
            let after: TrainedRegression = load(&path).unwrap();
            let name = format!("{} {}", before.model.name(), before.model.likelihood());
            assert_eq!(after.model.name(), before.model.name());
            assert_eq!(after.model.params(), before.model.params(), "{name}");
            let (a, b) = (before.model.predict(&new, None), after.model.predict(&new, None));
            assert_eq!(a.unwrap(), b.unwrap(), "{name}");
            let evidence = |t: &TrainedRegression| t.model.log_evidence(None).unwrap();
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
            let projected = whole.model.latent_dim().is_some();
            let whole = whole.to_file().unwrap();
            let arrays: Vec<String> = whole.tensors.keys().cloned().collect();
            for array in arrays.iter().filter(|a| *a != "trace") {
                let (rows, cols) = (whole.tensors[array].rows(), whole.tensors[array].cols());
                let mut file = whole.clone();
                file.tensors.remove(array);
                // Inputs of a projection are certain where no variances are given.
                let optional = array == "x.var" && projected;
                assert!(optional || TrainedRegression::from_file(file).is_err(), "{name} without {array}");
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
