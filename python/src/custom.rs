//! Kernels that are written in Python: one call a block.
//!
//! The library asks for blocks without the interpreter's lock, from any of its threads; each call here takes the
//! lock, hands over arrays, and gives it back. The formula has nowhere to return an error to, and a Python function
//! can raise: its exception travels up to the thread of the job as the payload of an unwinding, which the pool of
//! threads passes on and [`work`](crate::work) turns into the exception of the job, with its own traceback.

use crate::call;
use crate::convert::{Array, to_array, to_mat};
use crate::error::{Outcome, Raise};
use latentgp::Mat;
use latentgp::kernel::{Kernel, KernelGrad, Own, PointGrad, expression_of};
use latentgp::param::{self, Param, Parameterized};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::panic::resume_unwind;
use std::sync::Arc;

/// A kernel whose blocks are computed by methods of a Python object.
#[derive(Clone)]
pub struct Custom {
    name: String,
    params: Vec<(String, Param)>,
    /// Shared, as a reference to a Python object is copied only with the lock.
    object: Arc<Py<PyAny>>,
}

/// What unwinds when a kernel raised.
pub struct Raised(pub PyErr);

/// What unwinds when there is no interpreter any more.
pub struct Gone;

impl Custom {
    /// The kernel of an object that tells its parameters: names and values of two dimensions.
    fn new(name: String, object: &Bound<'_, PyAny>) -> Outcome<Self> {
        let told: Vec<(String, Array<'_>)> = object.call_method0("_starts")?.extract()?;
        let positive = |(name, value): (String, Array<'_>)| Ok((name, Param::positive(to_mat(&value)?)));
        let params = told.into_iter().map(positive).collect::<Outcome<_>>()?;
        Ok(Custom { name, params, object: Arc::new(object.clone().unbind()) })
    }

    /// Calls Python with the parameters, and unwinds with what it raises.
    fn call<T>(&self, ask: impl FnOnce(&Bound<'_, PyAny>, Bound<'_, PyArray1<f64>>) -> Outcome<T>) -> T {
        let said = Python::try_attach(|py| {
            let theta = PyArray1::from_vec(py, param::values(self));
            ask(self.object.bind(py), theta).map_err(PyErr::from)
        });
        match said {
            Some(Ok(value)) => value,
            Some(Err(error)) => resume_unwind(Box::new(Raised(error))),
            None => resume_unwind(Box::new(Gone)),
        }
    }
}

/// The kernels of a dictionary of names and objects.
pub fn own(of: Option<&Bound<'_, PyDict>>) -> Outcome<Own> {
    let mut kernels: Vec<Box<dyn Kernel>> = Vec::new();
    for (name, object) in of.into_iter().flatten() {
        kernels.push(Box::new(Custom::new(name.extract()?, &object)?));
    }
    Ok(Own::new(kernels)?)
}

/// A copy of a matrix as an array.
fn array<'py>(py: Python<'py>, of: &Mat) -> Outcome<Bound<'py, PyArray2<f64>>> {
    to_array(py, of.clone())
}

/// Adds an array to a matrix of its shape.
fn add(from: &Bound<'_, PyAny>, to: Option<&mut Mat>) -> Outcome<()> {
    let Some(to) = to else { return Ok(()) };
    let from: Array<'_> = from.extract()?;
    let from = to_mat(&from)?;
    if (from.rows(), from.cols()) != (to.rows(), to.cols()) {
        return Err(Raise::fault("a gradient has not the shape of its points"));
    }
    to.add_scaled(1.0, &from);
    Ok(())
}

/// Adds the entries of an array to a slice of its length.
fn add_flat(from: &Bound<'_, PyAny>, to: &mut [f64]) -> Outcome<()> {
    let from: PyReadonlyArray1<'_, f64> = from.extract()?;
    let from = from.as_array();
    if from.len() != to.len() {
        return Err(Raise::fault("a gradient has not as many entries as the parameters"));
    }
    to.iter_mut().zip(from).for_each(|(a, b)| *a += b);
    Ok(())
}

impl Parameterized for Custom {
    fn params(&self) -> Vec<(String, &Param)> {
        self.params.iter().map(|(name, p)| (name.clone(), p)).collect()
    }
    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        self.params.iter_mut().map(|(name, p)| (name.clone(), p)).collect()
    }
}

impl Kernel for Custom {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        let mut out = Mat::zeros(1, 1);
        self.cross(&Mat::from_rows(&[x]), &Mat::from_rows(&[z]), &mut out);
        out[(0, 0)]
    }

    fn eval_adjoint(&self, x: &[f64], z: &[f64], bar: f64, grad: PointGrad<'_>) {
        let (mut gx, mut gz) = (Mat::zeros(1, x.len()), Mat::zeros(1, z.len()));
        let inner = KernelGrad { theta: grad.theta, x: Some(&mut gx), z: Some(&mut gz) };
        self.cross_adjoint(&Mat::from_rows(&[x]), &Mat::from_rows(&[z]), &Mat::filled(1, 1, bar), inner);
        grad.x.iter_mut().zip(gx.as_slice()).for_each(|(a, b)| *a += b);
        grad.z.iter_mut().zip(gz.as_slice()).for_each(|(a, b)| *a += b);
    }

    fn expression(&self) -> String {
        expression_of(&self.name, &self.params())
    }

    fn cross(&self, x: &Mat, z: &Mat, out: &mut Mat) {
        self.call(|object, theta| {
            let py = object.py();
            let k = call::method(object, "_cross", (theta, array(py, x)?, array(py, z)?))?;
            out.as_mut_slice().fill(0.0);
            add(&k, Some(out))
        });
    }

    fn cross_adjoint(&self, x: &Mat, z: &Mat, bar: &Mat, grad: KernelGrad<'_>) {
        self.call(|object, theta| {
            let py = object.py();
            let of = (theta, array(py, x)?, array(py, z)?, array(py, bar)?);
            let (theta, gx, gz): (Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>) =
                call::method(object, "_cross_vjp", of)?.extract()?;
            add(&gx, grad.x)?;
            add(&gz, grad.z)?;
            add_flat(&theta, grad.theta)
        });
    }

    fn diag(&self, x: &Mat, out: &mut [f64]) {
        self.call(|object, theta| {
            let k = call::method(object, "_diag", (theta, array(object.py(), x)?))?;
            out.fill(0.0);
            add_flat(&k, out)
        });
    }

    fn diag_adjoint(&self, x: &Mat, bar: &[f64], grad: KernelGrad<'_>) {
        self.call(|object, theta| {
            let py = object.py();
            let of = (theta, array(py, x)?, PyArray1::from_slice(py, bar));
            let (theta, gx): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
                call::method(object, "_diag_vjp", of)?.extract()?;
            add(&gx, grad.x)?;
            add_flat(&theta, grad.theta)
        });
    }
}
