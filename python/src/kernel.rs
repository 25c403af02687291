//! Kernels: expressions, sums and products of them.

use crate::convert::{Array, Given, to_array, to_mat};
use crate::error::{Outcome, Raise};
use latentgp::Mat;
use latentgp::kernel::{self, Product, Select, Sum};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A kernel on inputs of a given number of columns.
#[pyclass(frozen, module = "latentgp._native")]
pub struct Kernel(pub Box<dyn kernel::Kernel>);

#[pymethods]
impl Kernel {
    /// Reads an expression, for inputs of `dim` columns.
    #[staticmethod]
    fn parse(expression: &str, dim: usize) -> Outcome<Self> {
        Ok(Kernel(kernel::parse(expression, dim)?))
    }

    /// The kernel on some of the columns of inputs that have `dim` of them.
    fn select(&self, dims: Vec<usize>, dim: usize) -> Outcome<Self> {
        let mut sorted = dims.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if dims.is_empty() || sorted.len() != dims.len() || sorted.last().is_some_and(|last| *last >= dim) {
            let what = format!("dims: expected columns from 0 to {}, each once", dim.saturating_sub(1));
            return Err(Raise::Python(PyValueError::new_err(format!("{what}, found {dims:?}"))));
        }
        kernel::check_dim(&*self.0, dims.len())?;
        Ok(Kernel(Box::new(Select::new(self.0.clone(), &dims, dim))))
    }

    fn __add__(&self, other: &Kernel) -> Self {
        Kernel(Box::new(Sum::new(vec![self.0.clone(), other.0.clone()])))
    }

    fn __mul__(&self, other: &Kernel) -> Self {
        Kernel(Box::new(Product::new(vec![self.0.clone(), other.0.clone()])))
    }

    fn __repr__(&self) -> String {
        self.0.expression()
    }

    /// The kernel as an expression, parameters included.
    #[getter]
    fn expression(&self) -> String {
        self.0.expression()
    }

    /// The parameters by name, each as an array.
    fn params<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (name, param) in self.0.params() {
            all.set_item(name, to_array(py, param.value.clone())?)?;
        }
        Ok(all)
    }

    /// k(x, z), N×M.
    fn cross<'py>(&self, py: Python<'py>, x: Array<'py>, z: Array<'py>) -> Outcome<Given<'py>> {
        let (x, z) = (to_mat(&x)?, to_mat(&z)?);
        kernel::check_dim(&*self.0, x.cols())?;
        kernel::check_dim(&*self.0, z.cols())?;
        if x.cols() != z.cols() {
            let found = format!("columns of z: expected {}, found {}", x.cols(), z.cols());
            return Err(Raise::Python(PyValueError::new_err(found)));
        }
        let mut out = Mat::zeros(x.rows(), z.rows());
        // A kernel that is written in Python takes the lock itself.
        py.detach(|| self.0.cross(&x, &z, &mut out));
        to_array(py, out)
    }
}
