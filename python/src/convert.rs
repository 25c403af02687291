//! NumPy's arrays to matrices and back; JSON to Python's objects.

use crate::error::{Outcome, Raise};
use latentgp::Mat;
use latentgp::file::Report;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};

/// An array of numbers, N×D, as Python has it.
pub type Array<'py> = PyReadonlyArray2<'py, f64>;

/// An array of numbers, N×D, as Python gets it.
pub type Given<'py> = Bound<'py, PyArray2<f64>>;

/// Means and variances, as Python gets them.
pub type Moments<'py> = (Given<'py>, Given<'py>);

/// A copy of an array, in whatever order it lies.
pub fn to_mat(array: &Array<'_>) -> Outcome<Mat> {
    let view = array.as_array();
    let (rows, cols) = view.dim();
    Ok(Mat::from_vec(rows, cols, view.iter().copied().collect())?)
}

/// An array with the entries of a matrix, which are not copied.
pub fn to_array(py: Python<'_>, mat: Mat) -> Outcome<Given<'_>> {
    let shape = [mat.rows(), mat.cols()];
    Ok(PyArray1::from_vec(py, mat.into_vec()).reshape(shape)?)
}

/// Means and variances.
pub fn moments(py: Python<'_>, mean: Mat, var: Mat) -> Outcome<Moments<'_>> {
    Ok((to_array(py, mean)?, to_array(py, var)?))
}

/// A JSON object as a dictionary.
pub fn to_dict<'py>(py: Python<'py>, value: &Value) -> Outcome<Bound<'py, PyDict>> {
    let json = py.import("json")?;
    let loaded = json.call_method1("loads", (value.to_string(),))?;
    loaded.cast_into::<PyDict>().map_err(|_| Raise::fault("a report is no dictionary"))
}

/// How a fit went, in the words of Python's attributes.
pub fn told(report: &Report) -> Value {
    json!({
        "bound": report.evidence, "log_evidence": report.evidence, "iterations": report.iterations,
        "evaluations": report.evaluations, "converged": report.converged,
        "stop_reason": report.stop_reason.to_string(), "seconds": report.seconds,
        "effort": report.effort.unwrap_or_default().to_string(),
        "asked_restarts": report.effort.is_none().then_some(report.restarts.len().max(1)),
        "begun": report.begun, "gradient_norm": report.gradient_norm, "agreement": report.agreement(),
        "not_converged": report.not_converged(), "restarts": report.restarts, "trace": report.trace, "kernel": report.kernel,
        "scale": report.scale.map(|s| s.to_string()), "seed": report.seed,
    })
}
