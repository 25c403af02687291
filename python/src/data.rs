//! The embedded data sets, and doubts about data.

use crate::convert::{Array, to_array, to_mat};
use crate::error::Outcome;
use latentgp::data;
use latentgp::data::doubts::{Use, doubts as doubts_of};
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

/// What there is to doubt in columns that are used as `rows`, `inputs` or `values`, one sentence each.
#[pyfunction]
pub fn doubts(names: Vec<String>, values: Array<'_>, used: &str) -> Outcome<Vec<String>> {
    let used = match used {
        "rows" => Use::Rows { labelled: false },
        "inputs" => Use::Inputs,
        _ => Use::Values,
    };
    let found = doubts_of(&names, &to_mat(&values)?, used);
    Ok(found.iter().map(|doubt| format!("{doubt}; {}", doubt.cure())).collect())
}
