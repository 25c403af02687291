//! The embedded data sets.

use crate::convert::to_array;
use crate::error::Outcome;
use latentgp::data;
use numpy::PyArray2;
use pyo3::prelude::*;

/// Names of the columns, values, and where there is one the name and the words of a label.
type Set<'py> = (Vec<String>, Bound<'py, PyArray2<f64>>, Option<(String, Vec<String>)>);

/// An embedded data set: `n` rows of it, as many as usual where it is None, simulated with `seed` where it is.
#[pyfunction]
#[pyo3(signature = (name, n=None, seed=0))]
pub fn dataset<'py>(py: Python<'py>, name: &str, n: Option<usize>, seed: u64) -> Outcome<Set<'py>> {
    let set = data::dataset(name, n, seed)?;
    Ok((set.columns, to_array(py, set.values)?, set.label))
}
