//! Model files of any kind.

use crate::error::{Outcome, Raise};
use crate::latent::LatentModel;
use crate::narx::NarxModel;
use crate::regression::RegressionModel;
use latentgp::Error;
use latentgp::file::{ModelFile, Store, Trained, TrainedNarx, TrainedRegression, TrainedSpace};
use pyo3::prelude::*;

/// The model in the bytes of a `.lgp` file.
#[pyfunction]
pub fn from_bytes(py: Python<'_>, bytes: &[u8]) -> Outcome<Py<PyAny>> {
    let file = ModelFile::from_bytes(bytes)?;
    Ok(match file.kind.as_str() {
        Trained::KIND => Py::new(py, LatentModel::bayesian(Trained::from_file(file)?))?.into_any(),
        TrainedSpace::KIND => Py::new(py, LatentModel::space(TrainedSpace::from_file(file)?))?.into_any(),
        TrainedRegression::KIND => {
            Py::new(py, RegressionModel::new(TrainedRegression::from_file(file)?))?.into_any()
        }
        TrainedNarx::KIND => Py::new(py, NarxModel::new(TrainedNarx::from_file(file)?))?.into_any(),
        other => {
            let reason = format!("holds a `{other}`, which this version of latentgp does not know");
            return Err(Raise::Library(Error::ModelFile { path: "model file".into(), reason }));
        }
    })
}
