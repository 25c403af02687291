//! A fitted GP-NARX.

use crate::convert::{Array, Given, Moments, moments, to_array, to_dict, to_mat, told};
use crate::error::{Outcome, Raise};
use crate::kernel::Kernel;
use crate::settings::SimulationSettings;
use crate::work::Done;
use crate::{load, work};
use latentgp::file::{Store, TrainedSeries};
use latentgp::model::narx::Forecast;
use latentgp::recipe::{Data, Learnt};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::Arc;

type Drawn<'py> = (Moments<'py>, Vec<Given<'py>>);

/// A fitted GP-NARX.
#[pyclass(frozen, module = "latentgp._native")]
pub struct NarxModel(Arc<TrainedSeries>);

impl NarxModel {
    pub fn new(trained: TrainedSeries) -> Self {
        NarxModel(Arc::new(trained))
    }
}

#[pymethods]
impl NarxModel {
    /// Fits by a recipe; the exception is to be raised once the model is stored.
    #[staticmethod]
    fn fit(
        py: Python<'_>,
        series: Array<'_>,
        exogenous: Option<Array<'_>>,
        kernel: &Kernel,
        recipe: &str,
        names: (Vec<String>, Vec<String>),
        callback: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<(NarxModel, Option<PyErr>)> {
        let (series, exogenous) = (to_mat(&series)?, exogenous.as_ref().map(to_mat).transpose()?);
        let data = Data::Series { series: series.clone(), exogenous: exogenous.clone() };
        let (Done { fitted, report }, raised) =
            work::fit(py, callback, recipe, data, Some(kernel.0.clone()))?;
        let Learnt::Series(model) = fitted.model else {
            return Err(Raise::fault("the model is none of series"));
        };
        let (names, exogenous_names) = names;
        let trained = TrainedSeries { model, series, exogenous, names, exogenous_names, report };
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
        let model = &self.0.model;
        (model.lags().series.clone(), model.lags().exogenous.clone(), model.inducing())
    }

    /// The fitted kernel as an expression.
    #[getter]
    fn kernel(&self) -> String {
        self.0.model.kernel().expression()
    }

    /// σ² of every series, in the units of the data.
    #[getter]
    fn noise_variance(&self) -> Vec<f64> {
        self.0.model.noise_variance()
    }

    /// The series and the exogenous inputs that the model was trained on.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Outcome<(Given<'py>, Option<Given<'py>>)> {
        let inputs = self.0.exogenous.as_ref().map(|u| to_array(py, u.clone())).transpose()?;
        Ok((to_array(py, self.0.series.clone())?, inputs))
    }

    /// How the fit went.
    fn report<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyDict>> {
        to_dict(py, &told(&self.0.report))
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
