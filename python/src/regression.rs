//! A fitted regression of any kind.

use crate::convert::{Array, Moments, moments, to_array, to_dict, to_mat};
use crate::error::Outcome;
use crate::kernel::Kernel;
use crate::settings::RegressionSettings;
use crate::{training, work};
use latentgp::Mat;
use latentgp::file::{Store, TrainedRegression};
use latentgp::model::Answers;
use numpy::PyArray2;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::json;
use std::sync::Arc;

/// A fitted regression.
#[pyclass(frozen, module = "latentgp._native")]
pub struct RegressionModel(Arc<TrainedRegression>);

impl RegressionModel {
    pub fn new(trained: TrainedRegression) -> Self {
        RegressionModel(Arc::new(trained))
    }
}

#[pymethods]
impl RegressionModel {
    /// Fits; the exception is to be raised once the model is stored.
    #[staticmethod]
    fn fit(
        py: Python<'_>,
        x: Array<'_>,
        x_std: Option<Array<'_>>,
        y: Array<'_>,
        kernel: &Kernel,
        settings: RegressionSettings,
        callback: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<(RegressionModel, Option<PyErr>)> {
        let (x, y, kernel) = (to_mat(&x)?, to_mat(&y)?, kernel.0.clone());
        let std = x_std.as_ref().map(to_mat).transpose()?;
        let (trained, raised) = work::fit(py, callback, move |watch| {
            training::regression(&x, std.as_ref(), &y, kernel, &settings, watch)
        })?;
        Ok((RegressionModel::new(trained), raised))
    }

    /// `gp`, `sparse`, `spgp-dr` or `vdmgp`.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.model.name()
    }

    /// `gaussian`, `bernoulli`, `categorical` or `poisson`.
    #[getter]
    fn likelihood(&self) -> &'static str {
        self.0.model.likelihood()
    }

    /// The names of the inputs, the targets and the classes.
    #[getter]
    fn names(&self) -> (Vec<String>, Vec<String>, Vec<String>) {
        (self.0.inputs.clone(), self.0.targets.clone(), self.0.classes.clone())
    }

    /// Rows, inputs, outputs, and where there are any inducing inputs and directions.
    #[getter]
    fn sizes(&self) -> (usize, usize, usize, Option<usize>, Option<usize>) {
        let (n, q, d) = self.0.model.sizes();
        (n, q, d, self.0.model.inducing(), self.0.model.latent_dim())
    }

    /// The fitted kernel as an expression.
    #[getter]
    fn kernel(&self) -> String {
        self.0.model.kernel().expression()
    }

    /// How much each input of the kernel matters, where its parameters tell.
    #[getter]
    fn relevance(&self) -> Option<Vec<f64>> {
        self.0.model.kernel().relevance()
    }

    /// σ² of every output, in the units of the data, where the noise is Gaussian.
    #[getter]
    fn noise_variance(&self) -> Option<Vec<f64>> {
        self.0.model.noise_variance()
    }

    /// How the fit went.
    fn report<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyDict>> {
        let r = &self.0.report;
        let report = json!({
            "log_evidence": r.log_evidence, "iterations": r.iterations, "evaluations": r.evaluations,
            "converged": r.converged, "stop_reason": r.stop_reason.to_string(), "seconds": r.seconds,
            "restarts": r.restarts, "trace": r.trace, "kernel": r.kernel,
            "scale": r.scale.map(|s| s.to_string()), "seed": r.seed,
        });
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

    /// The covariance of one output at all inputs, without the noise.
    fn covariance<'py>(
        &self,
        py: Python<'py>,
        x: Array<'py>,
        output: usize,
    ) -> Outcome<Bound<'py, PyArray2<f64>>> {
        let (x, trained) = (to_mat(&x)?, Arc::clone(&self.0));
        let cov = work::run(py, move || trained.model.model().posterior()?.joint_covariance(&x, output))?;
        to_array(py, cov)
    }

    /// Draws of the noise-free function at all inputs, N×D each.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        x: Array<'py>,
        count: usize,
        seed: u64,
    ) -> Outcome<Vec<Bound<'py, PyArray2<f64>>>> {
        let (x, trained) = (to_mat(&x)?, Arc::clone(&self.0));
        let drawn = work::run(py, move || trained.model.model().posterior()?.sample(&x, count, seed))?;
        drawn.into_iter().map(|d| to_array(py, d)).collect()
    }

    /// The content of its `.lgp` file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.to_file()?.to_bytes()?))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Outcome<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let rebuild = py.import("latentgp._native")?.getattr("from_bytes")?;
        Ok((rebuild, (self.to_bytes(py)?,)))
    }
}

impl RegressionModel {
    fn answers(&self, py: Python<'_>, x: &Array<'_>, var: Option<&Array<'_>>) -> Outcome<Answers> {
        let (x, trained) = (to_mat(x)?, Arc::clone(&self.0));
        let var = var.map(to_mat).transpose()?;
        work::run(py, move || trained.model.predict(&x, var.as_ref()))
    }
}
