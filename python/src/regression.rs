//! A fitted regression of any kind.

use crate::convert::{Array, Given, Moments, moments, to_array, to_dict, to_mat, told};
use crate::error::{Outcome, Raise};
use crate::kernel::Kernel;
use crate::lazy::Lazy;
use crate::work::Done;
use crate::{load, work};
use latentgp::expectation::Expectation;
use latentgp::file::{Store, TrainedRegression};
use latentgp::mean::Mean;
use latentgp::model::Answers;
use latentgp::posterior::Posterior;
use latentgp::recipe::{Data, Learnt};
use latentgp::{Mat, Result};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::json;
use std::sync::Arc;

/// A fitted regression.
#[pyclass(frozen, module = "latentgp._native")]
pub struct RegressionModel(Arc<Ready>);

/// A trained regression, and what it predicts from once that was asked for.
struct Ready {
    trained: TrainedRegression,
    posterior: Lazy,
}

impl RegressionModel {
    pub fn new(trained: TrainedRegression) -> Self {
        RegressionModel(Arc::new(Ready { trained, posterior: Lazy::default() }))
    }
}

impl Ready {
    fn posterior(&self) -> Result<&Posterior> {
        self.posterior.get_or(|| self.trained.model.posterior())
    }

    fn predict(&self, x: &Mat, var: Option<&Mat>) -> Result<Answers> {
        let model = &self.trained.model;
        match model.predicts_from_posterior() {
            true => model.predict_with(self.posterior()?, x, var),
            false => model.predict(x, var),
        }
    }
}

#[pymethods]
impl RegressionModel {
    /// Fits by a recipe; `names` are those of the inputs, the targets and the classes. The exception is to be raised
    /// once the model is stored.
    #[staticmethod]
    fn fit(
        py: Python<'_>,
        x: Array<'_>,
        x_std: Option<Array<'_>>,
        y: Array<'_>,
        kernel: &Kernel,
        recipe: &str,
        names: (Vec<String>, Vec<String>, Vec<String>),
        callback: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<(RegressionModel, Option<PyErr>)> {
        let (inputs, targets, classes) = names;
        let x_std = x_std.as_ref().map(to_mat).transpose()?;
        let given = x_std.is_some();
        let data = Data::Pairs { x: to_mat(&x)?, x_std, y: to_mat(&y)?, classes: classes.len() };
        let (Done { fitted, report }, raised) =
            work::fit(py, callback, recipe, data, Some(kernel.0.clone()))?;
        let Learnt::Regression(model) = fitted.model else {
            return Err(Raise::fault("the model is no regression"));
        };
        let learnt: Vec<usize> = model.learnt_errors().into_iter().map(|(j, _)| j).collect();
        let of = |(j, name): (usize, &String)| match learnt.contains(&j) {
            true => Some("learn".to_string()),
            false => given.then(|| format!("{name}_std")),
        };
        let input_std: Vec<Option<String>> = match given || !learnt.is_empty() {
            true => inputs.iter().enumerate().map(of).collect(),
            false => Vec::new(),
        };
        let unfinished = None;
        let trained = TrainedRegression { model, inputs, input_std, targets, classes, report, unfinished };
        Ok((RegressionModel::new(trained), raised))
    }

    /// `gp`, `sparse`, `spgp-dr` or `vdmgp`.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.trained.model.name()
    }

    /// `gaussian`, or the name of another.
    #[getter]
    fn likelihood(&self) -> &'static str {
        self.0.trained.model.likelihood()
    }

    /// What is observed: `classes`, `counts` or `values`.
    #[getter]
    fn observed(&self) -> String {
        self.0.trained.model.observed().to_string()
    }

    /// The names of the inputs, the targets and the classes.
    #[getter]
    fn names(&self) -> (Vec<String>, Vec<String>, Vec<String>) {
        (self.0.trained.inputs.clone(), self.0.trained.targets.clone(), self.0.trained.classes.clone())
    }

    /// Rows, inputs, outputs, and where there are any inducing inputs and directions.
    #[getter]
    fn sizes(&self) -> (usize, usize, usize, Option<usize>, Option<usize>) {
        let (n, q, d) = self.0.trained.model.sizes();
        (n, q, d, self.0.trained.model.inducing(), self.0.trained.model.latent_dim())
    }

    /// The fitted kernel as an expression.
    #[getter]
    fn kernel(&self) -> String {
        self.0.trained.model.kernel().expression()
    }

    /// How much each input of the kernel matters, where its parameters tell.
    #[getter]
    fn relevance(&self) -> Option<Vec<f64>> {
        self.0.trained.model.kernel().relevance()
    }

    /// Whose the noise is: `shared` or `columns`.
    #[getter]
    fn noise_kind(&self) -> &'static str {
        match self.0.trained.model.noise() {
            Some((noise, _)) if noise.len() > 1 => "columns",
            _ => "shared",
        }
    }

    /// σ² of every output, in the units of the data, where the noise is Gaussian.
    #[getter]
    fn noise_variance(&self) -> Option<Vec<f64>> {
        self.0.trained.model.noise_variance()
    }

    /// The projection of standardised inputs, K×D: means and variances of its entries, where there is one.
    #[getter]
    fn projection<'py>(&self, py: Python<'py>) -> Outcome<Option<Moments<'py>>> {
        let projection = self.0.trained.model.projection();
        projection.map(|p| moments(py, p.mean, p.var)).transpose()
    }

    /// Inputs whose errors were learnt, and the standard deviations of these.
    #[getter]
    fn learnt_errors(&self) -> Vec<(usize, f64)> {
        self.0.trained.model.learnt_errors()
    }

    /// Of every learnt error its input, what the bound loses without it and with twice as much, and whether it is clear.
    #[getter]
    fn error_evidence(&self) -> Vec<(usize, f64, f64, bool)> {
        let all = self.0.trained.model.error_evidence().iter();
        all.map(|e| (e.column, e.without, e.doubled, e.is_clear())).collect()
    }

    /// Means and variances of the true inputs of the training rows, where these may be uncertain.
    fn inputs_posterior<'py>(&self, py: Python<'py>) -> Outcome<Option<Moments<'py>>> {
        let found = self.0.trained.model.inputs_posterior()?;
        found.map(|q| moments(py, q.mean, q.var)).transpose()
    }

    /// Means and variances of the true inputs of rows whose outputs are known.
    fn infer_inputs<'py>(
        &self,
        py: Python<'py>,
        x: Array<'py>,
        var: Option<Array<'py>>,
        y: Array<'py>,
    ) -> Outcome<Moments<'py>> {
        let (x, y, ready) = (to_mat(&x)?, to_mat(&y)?, Arc::clone(&self.0));
        let var = var.as_ref().map(to_mat).transpose()?;
        let q = work::run(py, move || ready.trained.model.infer_inputs(&x, var.as_ref(), &y))?;
        moments(py, q.mean, q.var)
    }

    /// How the fit went.
    fn report<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyDict>> {
        let mut report = told(&self.0.trained.report);
        let model = &self.0.trained.model;
        report["expectation"] = json!(model.expectation().map(Expectation::expression));
        report["mean"] = json!(model.mean().map(Mean::name));
        to_dict(py, &report)
    }

    /// Means and variances of observations, of values or counts; x is known up to the variances, if there are any.
    fn predict<'py>(&self, py: Python<'py>, x: Array<'py>, var: Option<Array<'py>>) -> Outcome<Moments<'py>> {
        match self.answers(py, &x, var.as_ref())? {
            Answers::Values(p) => moments(py, p.mean, p.var),
            Answers::Counts { mean, var, .. } => moments(py, Mat::column(&mean), Mat::column(&var)),
            Answers::Classes(p) => {
                let none = Mat::zeros(p.rows(), p.cols());
                moments(py, p, none)
            }
        }
    }

    /// The covariance of observations of one output at all inputs.
    fn covariance<'py>(&self, py: Python<'py>, x: Array<'py>, output: usize) -> Outcome<Given<'py>> {
        let (x, ready) = (to_mat(&x)?, Arc::clone(&self.0));
        let cov = work::run(py, move || ready.trained.model.joint_covariance(&x, output))?;
        to_array(py, cov)
    }

    /// Draws of the noise-free function at all inputs, or of the rate of counts, N×D each.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        x: Array<'py>,
        count: usize,
        seed: u64,
    ) -> Outcome<Vec<Given<'py>>> {
        let (x, ready) = (to_mat(&x)?, Arc::clone(&self.0));
        let drawn =
            work::run(py, move || ready.trained.model.sample_with(ready.posterior()?, &x, count, seed))?;
        drawn.into_iter().map(|d| to_array(py, d)).collect()
    }

    /// The content of its `.lgp` file, with settings in its header where they are given.
    #[pyo3(signature = (settings=None))]
    fn to_bytes<'py>(&self, py: Python<'py>, settings: Option<&str>) -> Outcome<Bound<'py, PyBytes>> {
        load::to_bytes(py, self.0.trained.to_file()?, settings)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Outcome<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let rebuild = py.import("latentgp._native")?.getattr("from_bytes")?;
        Ok((rebuild, (self.to_bytes(py, None)?,)))
    }
}

impl RegressionModel {
    fn answers(&self, py: Python<'_>, x: &Array<'_>, var: Option<&Array<'_>>) -> Outcome<Answers> {
        let (x, ready) = (to_mat(x)?, Arc::clone(&self.0));
        let var = var.map(to_mat).transpose()?;
        work::run(py, move || ready.predict(&x, var.as_ref()))
    }
}
