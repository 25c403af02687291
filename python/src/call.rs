//! Calls of Python functions that may last until the interpreter ends.
//!
//! Before version 3.14, Python ends a thread that wants the lock back while the interpreter ends, by an unwinding
//! that may not pass Rust's frames: the process would abort. Here such a thread sleeps until the process is over.

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::hint::black_box;

/// What is on the stack while Python runs: dropped only by an unwinding, which it does not let pass.
struct Sleep;

impl Drop for Sleep {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

type Call = unsafe extern "C" fn(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;
type Unwinding = unsafe extern "C-unwind" fn(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;

/// Calls a method of an object.
pub fn method<'py>(
    of: &Bound<'py, PyAny>,
    name: &str,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, method, arguments) = (of.py(), of.getattr(name)?, arguments.into_pyobject(of.py())?);
    // SAFETY: the two types of functions differ only in that an unwinding may leave the second. The compiler is kept
    // from seeing that it is a function that is declared not to unwind.
    let call = unsafe { std::mem::transmute::<Call, Unwinding>(black_box(ffi::PyObject_Call)) };
    let sleep = Sleep;
    // SAFETY: the lock is held; a callable, a tuple and no keywords are what it takes.
    let result = unsafe { call(method.as_ptr(), arguments.as_ptr(), std::ptr::null_mut()) };
    std::mem::forget(sleep);
    // SAFETY: it returns a reference of its own, or null and an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, result) }
}
