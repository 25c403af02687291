//! Errors as exceptions, in one place.

use latentgp::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyValueError};

/// An error of the library, or an exception that Python raised on the way.
pub enum Raise {
    /// The library's.
    Library(Error),
    /// Python's.
    Python(PyErr),
}

/// The result of anything that Python calls.
pub type Outcome<T> = Result<T, Raise>;

impl Raise {
    /// A fault of the program itself.
    pub fn fault(what: &str) -> Self {
        Raise::Python(PyRuntimeError::new_err(format!("{what}; this is a fault of latentgp")))
    }
}

impl From<Error> for Raise {
    fn from(error: Error) -> Self {
        Raise::Library(error)
    }
}

impl From<PyErr> for Raise {
    fn from(error: PyErr) -> Self {
        Raise::Python(error)
    }
}

impl From<Raise> for PyErr {
    fn from(raise: Raise) -> Self {
        match raise {
            Raise::Python(error) => error,
            Raise::Library(Error::Io { path, reason }) => PyOSError::new_err(format!("{path}: {reason}")),
            Raise::Library(Error::Interrupted) => PyKeyboardInterrupt::new_err(()),
            // Estimators have no limit to raise.
            Raise::Library(Error::TooManyNodes { rule, nodes, dim, limit, cheaper, .. }) => {
                PyValueError::new_err(format!(
                    "expectation: expected at most {limit} evaluations a point, found the {nodes} of `{rule}` in {dim} \
                     dimensions; try {cheaper}"
                ))
            }
            Raise::Library(large @ Error::TooLarge { .. }) => PyMemoryError::new_err(large.to_string()),
            // Everything else is about a value that was given: shapes, domains, expressions, files.
            Raise::Library(other) => PyValueError::new_err(other.to_string()),
        }
    }
}
