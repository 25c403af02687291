//! Model files of any kind.

use crate::custom;
use crate::error::{Outcome, Raise};
use crate::latent::LatentModel;
use crate::narx::NarxModel;
use crate::regression::RegressionModel;
use latentgp::Error;
use latentgp::file::{ModelFile, Store, Trained, TrainedNarx, TrainedRegression, TrainedSpace};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The model in the bytes of a `.lgp` file; `own` has the kernels of it that are written in Python.
#[pyfunction]
#[pyo3(signature = (bytes, own=None))]
pub fn from_bytes(py: Python<'_>, bytes: &[u8], own: Option<&Bound<'_, PyDict>>) -> Outcome<Py<PyAny>> {
    let own = custom::own(own)?;
    let file = ModelFile::from_bytes(bytes)?;
    Ok(match file.kind.as_str() {
        Trained::KIND => Py::new(py, LatentModel::bayesian(Trained::from_file_with(file, &own)?))?.into_any(),
        TrainedSpace::KIND => {
            Py::new(py, LatentModel::space(TrainedSpace::from_file_with(file, &own)?))?.into_any()
        }
        TrainedRegression::KIND => {
            Py::new(py, RegressionModel::new(TrainedRegression::from_file_with(file, &own)?))?.into_any()
        }
        TrainedNarx::KIND => {
            Py::new(py, NarxModel::new(TrainedNarx::from_file_with(file, &own)?))?.into_any()
        }
        other => {
            let reason = format!("holds a `{other}`, which this version of latentgp does not know");
            return Err(Raise::Library(Error::ModelFile { path: "model file".into(), reason }));
        }
    })
}
