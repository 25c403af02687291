//! A fitted latent space: Bayesian GPLVM, GPLVM or PPCA.

use crate::convert::{Array, Given, Moments, moments, to_array, to_dict, to_mat, told};
use crate::error::{Outcome, Raise};
use crate::kernel::Kernel;
use crate::work::Done;
use crate::{load, settings, work};
use latentgp::expectation::Gaussians;
use latentgp::file::{Labels, Store, TrainedSpace};
use latentgp::fit::Run;
use latentgp::model::Placed as Found;
use latentgp::recipe::{Choice, Data, Learnt, Recipe};
use latentgp::{Error, Mat, Result};
use latentgp_explore::{Explorer, Options};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::json;
use std::sync::Arc;

/// What a fit gives back: the model, and the exception to raise once it is stored.
type Fitted = (LatentModel, Option<PyErr>);

/// Positions, and how well each row is explained where that comes with them.
type Placed<'py> = (Given<'py>, Given<'py>, Vec<f64>);

/// A fitted latent space.
#[pyclass(frozen, module = "latentgp._native")]
pub struct LatentModel(Arc<TrainedSpace>, Vec<Choice>);

/// What a fit of Y begins with.
struct Begin {
    recipe: Recipe,
    runs: Vec<Run>,
    choices: Vec<Choice>,
}

impl Begin {
    /// Where another model ended, by a single run.
    fn from_model(recipe: Recipe, of: &TrainedSpace) -> Result<Self> {
        let (_, parameters) = of.model.parameters().ok_or_else(|| {
            Error::invalid("warm_start", "a model that is fitted by its gradient", of.model.name())
        })?;
        let recipe = Recipe {
            latent_dim: Some(of.model.latent_dim()),
            inducing: of.model.inducing().map(Mat::rows),
            ..recipe.by_one_run()
        };
        Ok(Begin { recipe, runs: vec![Run::from_model(parameters)], choices: Vec::new() })
    }

    /// From the start, with what is not given chosen from the data: by a first short fit, and an exception that came in its way.
    fn from_data(
        py: Python<'_>,
        recipe: Recipe,
        data: &Data,
        callback: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<Self> {
        let Data::Table { y, .. } = data else { return Err(Raise::fault("a latent space is of a table")) };
        let (mut recipe, mut choices) = recipe.chosen(y);
        if let Some(pilot) = recipe.pilot(y) {
            let (done, raised) = work::fit(py, callback, &settings::text(&pilot)?, data.clone(), None)?;
            if let Some(raised) = raised {
                return Err(raised.into());
            }
            let Learnt::Space(space) = done.fitted.model else {
                return Err(Raise::fault("the model is no latent space"));
            };
            let relevance = py.detach(|| work::caught(|| space.relevance()))?;
            let (settled, choice) = recipe.with_relevant(&relevance, false);
            recipe = settled;
            choices.insert(0, choice);
        }
        Ok(Begin { recipe, runs: Vec::new(), choices })
    }
}

impl LatentModel {
    pub fn new(trained: TrainedSpace) -> Self {
        LatentModel(Arc::new(trained), Vec::new())
    }

    /// Something worked out from the model on a thread of its own.
    fn work<T: Send + 'static>(
        &self,
        py: Python<'_>,
        of: impl FnOnce(&TrainedSpace) -> Result<T> + Send + 'static,
    ) -> Outcome<T> {
        let trained = Arc::clone(&self.0);
        work::run(py, move || of(&trained))
    }
}

#[pymethods]
impl LatentModel {
    /// Fits by a recipe; the exception is to be raised once the model is stored.
    #[staticmethod]
    fn fit(
        py: Python<'_>,
        y: Array<'_>,
        known: Option<Array<'_>>,
        kernel: Option<&Kernel>,
        recipe: &str,
        columns: Vec<String>,
        callback: Option<&Bound<'_, PyAny>>,
        warm: Option<&LatentModel>,
    ) -> Outcome<Fitted> {
        let known = known.as_ref().map(to_mat).transpose()?;
        let (data, kernel) = (Data::Table { y: to_mat(&y)?, known }, kernel.map(|k| k.0.clone()));
        let asked = settings::recipe(recipe)?;
        let Begin { recipe, runs, choices } = match warm {
            Some(model) => Begin::from_model(asked, &model.0)?,
            None => Begin::from_data(py, asked, &data, callback)?,
        };
        let (Done { fitted, report }, raised) =
            work::fit_from(py, callback, &settings::text(&recipe)?, data, kernel, runs)?;
        let Learnt::Space(model) = fitted.model else {
            return Err(Raise::fault("the model is no latent space"));
        };
        let report = py.detach(|| work::caught(|| report.certified(&*model)))?;
        let (labels, id, unfinished) = (None, None, None);
        let trained = TrainedSpace { model, columns, labels, id, report, unfinished };
        Ok((LatentModel(Arc::new(trained), choices), raised))
    }

    /// What was chosen from the data: option, value and reason.
    #[getter]
    fn choices(&self) -> Vec<(&'static str, String, String)> {
        self.1.iter().map(|c| (c.option, c.value.clone(), c.reason.clone())).collect()
    }

    /// `bayesian-gplvm`, `gplvm` or `ppca`.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.model.name()
    }

    /// The names of the columns of the data.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.columns.clone()
    }

    /// The fitted kernel as an expression.
    #[getter]
    fn kernel(&self) -> String {
        let parameters = self.0.model.parameters();
        parameters.map_or_else(|| "linear".into(), |(kernel, _)| kernel.expression())
    }

    /// σ² of every column, in the units of the data.
    #[getter]
    fn noise_variance(&self) -> Vec<f64> {
        self.0.model.noise_variance()
    }

    /// Whose the noise is: `shared` or `columns`.
    #[getter]
    fn noise_kind(&self) -> &'static str {
        if self.0.model.noise().len() > 1 { "columns" } else { "shared" }
    }

    /// The inducing inputs, of a Bayesian GPLVM.
    #[getter]
    fn inducing<'py>(&self, py: Python<'py>) -> Outcome<Option<Given<'py>>> {
        self.0.model.inducing().map(|z| to_array(py, z.clone())).transpose()
    }

    /// The loadings, D×Q in the units of the data, and the mean, of a PPCA.
    #[getter]
    fn loadings<'py>(&self, py: Python<'py>) -> Outcome<Option<(Given<'py>, Vec<f64>)>> {
        let loadings = self.0.model.loadings()?;
        loadings.map(|(w, mean)| Ok((to_array(py, w)?, mean))).transpose()
    }

    /// Latent dimensions.
    #[getter]
    fn latent_dim(&self) -> usize {
        self.0.model.latent_dim()
    }

    /// How far the expectations of a Bayesian GPLVM are from those of a stronger rule.
    fn certificate<'py>(&self, py: Python<'py>) -> Outcome<Option<Bound<'py, PyDict>>> {
        let found = self.work(py, |t| match t.report.known_certificate() {
            Some(known) => Ok(Some(known.clone())),
            // That of a fit that was interrupted is not known yet.
            None => t.model.certificate(),
        })?;
        found.map(|c| to_dict(py, &json!(c))).transpose()
    }

    /// How the fit went.
    fn report<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyDict>> {
        let mut report = told(&self.0.report);
        report["expectation"] = json!(self.0.model.expectation());
        report["collapses"] = json!(self.0.model.collapses());
        to_dict(py, &report)
    }

    /// Means and variances of the positions of the training rows.
    fn latent<'py>(&self, py: Python<'py>) -> Outcome<Moments<'py>> {
        let q = self.0.model.latent()?;
        moments(py, q.mean, q.var)
    }

    /// How much each latent dimension matters.
    fn relevance(&self, py: Python<'_>) -> Outcome<Vec<f64>> {
        self.work(py, |t| t.model.relevance())
    }

    /// Means and variances of the positions of rows, and of a Bayesian GPLVM a bound of the log density of each.
    fn transform<'py>(&self, py: Python<'py>, y: Array<'py>) -> Outcome<Placed<'py>> {
        let y = to_mat(&y)?;
        let Found { q, log_density } = self.work(py, move |t| t.model.place(&y))?;
        Ok((to_array(py, q.mean)?, to_array(py, q.var)?, log_density))
    }

    /// Data at latent positions, certain or Gaussian, without the noise: means and variances.
    fn reconstruct<'py>(&self, py: Python<'py>, mean: Array<'py>, var: Array<'py>) -> Outcome<Moments<'py>> {
        let q = Gaussians::new(to_mat(&mean)?, to_mat(&var)?)?;
        let there = self.work(py, move |t| t.model.reconstruct(&q))?;
        moments(py, there.mean, there.var)
    }

    /// Rows with their missing cells filled, and the variances of these, noise included.
    fn impute<'py>(&self, py: Python<'py>, y: Array<'py>) -> Outcome<Moments<'py>> {
        let y = to_mat(&y)?;
        let filled = self.work(py, move |t| t.model.impute(&y))?;
        moments(py, filled.mean, filled.var)
    }

    /// The log density of each row, given the training data; `samples` and `seed` are those of the importance
    /// sampling of a Bayesian GPLVM.
    fn log_density(&self, py: Python<'_>, y: Array<'_>, samples: usize, seed: u64) -> Outcome<Vec<f64>> {
        let y = to_mat(&y)?;
        self.work(py, move |t| t.model.log_density(&y, samples, seed))
    }

    /// `n` draws of the model: positions from N(0, I), and data there, noise included.
    fn sample<'py>(&self, py: Python<'py>, n: usize, seed: u64) -> Outcome<Moments<'py>> {
        let (x, y) = self.work(py, move |t| t.model.sample(n, seed))?;
        moments(py, x, y)
    }

    /// The page of the model as one file.
    fn page(
        &self,
        py: Python<'_>,
        title: String,
        labels: Option<Vec<String>>,
        images: Option<(usize, usize)>,
    ) -> Outcome<String> {
        self.work(py, move |t| {
            let mut trained = t.clone();
            let n = trained.model.sizes().0;
            if let Some(of) = labels {
                if of.len() != n {
                    return Err(Error::shape("labels, one for each training row", n, of.len()));
                }
                trained.labels = Some(Labels { name: "label".into(), of });
            }
            Explorer::space(trained, Options { title, data: None, images })?.static_page()
        })
    }

    /// The content of its `.lgp` file, with settings in its header where they are given.
    #[pyo3(signature = (settings=None))]
    fn to_bytes<'py>(&self, py: Python<'py>, settings: Option<&str>) -> Outcome<Bound<'py, PyBytes>> {
        load::to_bytes(py, self.0.to_file()?, settings)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Outcome<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let rebuild = py.import("latentgp._native")?.getattr("from_bytes")?;
        Ok((rebuild, (self.to_bytes(py, None)?,)))
    }
}
