//! Kernels: what an expression describes.

use crate::convert::{Array, Given, Moments, moments, to_array, to_mat};
use crate::error::{Outcome, Raise};
use crate::{custom, work};
use latentgp::Mat;
use latentgp::kernel::{self, KernelGrad};
use latentgp::param;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A kernel on inputs of a given number of columns.
#[pyclass(frozen, module = "latentgp._native")]
pub struct Kernel(pub Box<dyn kernel::Kernel>);

#[pymethods]
impl Kernel {
    /// Reads an expression, for inputs of `dim` columns; `own` has the kernels of it that are written in Python.
    #[staticmethod]
    #[pyo3(signature = (expression, dim, own=None))]
    fn parse(expression: &str, dim: usize, own: Option<&Bound<'_, PyDict>>) -> Outcome<Self> {
        Ok(Kernel(custom::own(own)?.parse(expression, dim)?))
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
        py.detach(|| {
            work::caught(|| {
                self.0.cross(&x, &z, &mut out);
                Ok(())
            })
        })?;
        to_array(py, out)
    }

    /// k(x, x), N×N, with what a point shares with nothing but itself.
    fn gram<'py>(&self, py: Python<'py>, x: Array<'py>) -> Outcome<Given<'py>> {
        let x = to_mat(&x)?;
        kernel::check_dim(&*self.0, x.cols())?;
        let mut out = Mat::zeros(x.rows(), x.rows());
        py.detach(|| {
            work::caught(|| {
                self.0.gram(&x, &mut out);
                Ok(())
            })
        })?;
        to_array(py, out)
    }

    /// What ∂F/∂K adds to ∂F/∂θ, by the names of the parameters, to ∂F/∂x and to ∂F/∂z.
    fn cross_adjoint<'py>(
        &self,
        py: Python<'py>,
        x: Array<'py>,
        z: Array<'py>,
        bar: Array<'py>,
    ) -> Outcome<(Bound<'py, PyDict>, Moments<'py>)> {
        let (x, z, bar) = (to_mat(&x)?, to_mat(&z)?, to_mat(&bar)?);
        kernel::check_dim(&*self.0, x.cols())?;
        if x.cols() != z.cols() || (bar.rows(), bar.cols()) != (x.rows(), z.rows()) {
            return Err(Raise::Python(PyValueError::new_err("x, z and the adjoint of k(x, z) do not fit")));
        }
        let (mut gx, mut gz) = (Mat::zeros(x.rows(), x.cols()), Mat::zeros(z.rows(), z.cols()));
        let mut theta = vec![0.0; param::count(&*self.0)];
        py.detach(|| {
            work::caught(|| {
                let grad = KernelGrad { theta: &mut theta, x: Some(&mut gx), z: Some(&mut gz) };
                self.0.cross_adjoint(&x, &z, &bar, grad);
                Ok(())
            })
        })?;
        let (named, mut rest) = (PyDict::new(py), &theta[..]);
        for (name, param) in self.0.params() {
            let (mine, others) = rest.split_at(param.len());
            named.set_item(
                name,
                to_array(py, Mat::from_vec(param.value.rows(), param.value.cols(), mine.to_vec())?)?,
            )?;
            rest = others;
        }
        Ok((named, moments(py, gx, gz)?))
    }
}
