//! Model files of any kind, with what an estimator was asked for in the header of each.

use crate::custom;
use crate::error::{Outcome, Raise};
use crate::latent::LatentModel;
use crate::narx::NarxModel;
use crate::regression::RegressionModel;
use latentgp::Error;
use latentgp::file::{ModelFile, SETTINGS, Store, TrainedRegression, TrainedSeries, TrainedSpace};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::Value;

/// The bytes of a file, with the settings in its header where there are any: a JSON object.
pub fn to_bytes<'py>(
    py: Python<'py>,
    mut file: ModelFile,
    settings: Option<&str>,
) -> Outcome<Bound<'py, PyBytes>> {
    if let Some(text) = settings {
        let settings: Value = serde_json::from_str(text).map_err(|e| Raise::fault(&e.to_string()))?;
        file.header[SETTINGS] = settings;
    }
    Ok(PyBytes::new(py, &file.to_bytes()?))
}

/// The settings in the bytes of a `.lgp` file, as JSON, where there are any.
#[pyfunction]
pub fn settings(bytes: &[u8]) -> Outcome<Option<String>> {
    Ok(ModelFile::from_bytes(bytes)?.header.get(SETTINGS).map(Value::to_string))
}

/// The model in the bytes of a `.lgp` file; `own` has the kernels of it that are written in Python.
#[pyfunction]
#[pyo3(signature = (bytes, own=None))]
pub fn from_bytes(py: Python<'_>, bytes: &[u8], own: Option<&Bound<'_, PyDict>>) -> Outcome<Py<PyAny>> {
    let own = custom::own(own)?;
    let file = ModelFile::from_bytes(bytes)?;
    Ok(match file.kind.as_str() {
        kind if TrainedSpace::holds(kind) => {
            Py::new(py, LatentModel::new(TrainedSpace::from_file_with(file, &own)?.verified()?))?.into_any()
        }
        TrainedRegression::KIND => {
            Py::new(py, RegressionModel::new(TrainedRegression::from_file_with(file, &own)?.verified()?))?
                .into_any()
        }
        kind if TrainedSeries::holds(kind) => {
            Py::new(py, NarxModel::new(TrainedSeries::from_file_with(file, &own)?.verified()?))?.into_any()
        }
        other => {
            let reason = format!("holds a `{other}`, which this version of latentgp does not know");
            return Err(Raise::Library(Error::ModelFile { path: "model file".into(), reason }));
        }
    })
}
