//! A fitted GP-NARX.

use crate::convert::{Array, Given, Moments, moments, to_array, to_dict, to_mat};
use crate::error::Outcome;
use crate::kernel::Kernel;
use crate::settings::{NarxSettings, SimulationSettings};
use crate::training::NarxJob;
use crate::{load, work};
use latentgp::file::{Store, TrainedNarx};
use latentgp::model::narx::Forecast;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::json;
use std::sync::Arc;

type Drawn<'py> = (Moments<'py>, Vec<Given<'py>>);

/// A fitted GP-NARX.
#[pyclass(frozen, module = "latentgp._native")]
pub struct NarxModel(Arc<TrainedNarx>);

impl NarxModel {
    pub fn new(trained: TrainedNarx) -> Self {
        NarxModel(Arc::new(trained))
    }
}

#[pymethods]
impl NarxModel {
    /// Fits; the exception is to be raised once the model is stored.
    #[staticmethod]
    fn fit(
        py: Python<'_>,
        series: Array<'_>,
        exogenous: Option<Array<'_>>,
        kernel: &Kernel,
        settings: NarxSettings,
        callback: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<(NarxModel, Option<PyErr>)> {
        let (series, kernel) = (to_mat(&series)?, kernel.0.clone());
        let exogenous = exogenous.as_ref().map(to_mat).transpose()?;
        let job = py.detach(|| work::caught(|| NarxJob::new(series, exogenous, kernel, settings)))?;
        let (trained, raised) = work::fit(py, callback, job)?;
        Ok((NarxModel::new(trained), raised))
    }

    /// The names of the series and of the exogenous inputs.
    #[getter]
    fn names(&self) -> (Vec<String>, Vec<String>) {
        (self.0.names.clone(), self.0.exogenous_names.clone())
    }

    /// The lags of each series, the delays of each exogenous input, and the inducing inputs, where there are any.
    #[getter]
    fn lags(&self) -> (Vec<usize>, Vec<Vec<usize>>, Option<usize>) {
        let inducing = match &self.0.model.process {
            latentgp::model::narx::Process::Exact(_) => None,
            latentgp::model::narx::Process::Sparse(m) => Some(m.z.value.rows()),
        };
        (self.0.model.lags.series.clone(), self.0.model.lags.exogenous.clone(), inducing)
    }

    /// The fitted kernel as an expression.
    #[getter]
    fn kernel(&self) -> String {
        self.0.model.kernel().expression()
    }

    /// σ² of every series, in the units of the data.
    #[getter]
    fn noise_variance(&self) -> Vec<f64> {
        let noise = self.0.model.noise().get();
        self.0.model.scaling.scale.iter().map(|s| noise * s * s).collect()
    }

    /// The series and the exogenous inputs that the model was trained on.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Outcome<(Given<'py>, Option<Given<'py>>)> {
        let inputs = self.0.exogenous.as_ref().map(|u| to_array(py, u.clone())).transpose()?;
        Ok((to_array(py, self.0.series.clone())?, inputs))
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

    /// Means and variances of the steps after `history`, noise included, and the futures that were drawn.
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        history: Array<'py>,
        exogenous: Option<Array<'py>>,
        steps: usize,
        settings: SimulationSettings,
    ) -> Outcome<Drawn<'py>> {
        let (history, trained) = (to_mat(&history)?, Arc::clone(&self.0));
        let exogenous = exogenous.as_ref().map(to_mat).transpose()?;
        let how = settings.simulation()?;
        let Forecast { mean, var, trajectories, .. } =
            work::run(py, move || trained.model.simulate(&history, exogenous.as_ref(), steps, &how))?;
        let drawn = trajectories.into_iter().map(|t| to_array(py, t)).collect::<Outcome<_>>()?;
        Ok((moments(py, mean, var)?, drawn))
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
