//! The extension module `latentgp._native`: what Python's estimators call.
//!
//! Convert, call, convert back: arrays come as NumPy's and leave as NumPy's, models are opaque handles, errors
//! become exceptions in [`error`], and long work runs on a thread of its own in [`work`], without the interpreter's
//! lock, while Ctrl-C is listened for.

mod call;
mod convert;
mod custom;
mod data;
mod error;
mod kernel;
mod latent;
mod lazy;
mod load;
mod narx;
mod pool;
mod psi;
mod regression;
mod search;
mod settings;
mod work;

use pyo3::prelude::*;

/// A fit takes and gives back the same megabytes at every step, which this one does not return to the system meanwhile.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Gaussian processes with uncertain inputs: the compiled part of `latentgp`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<kernel::Kernel>()?;
    module.add_class::<latent::LatentModel>()?;
    module.add_class::<regression::RegressionModel>()?;
    module.add_class::<narx::NarxModel>()?;
    module.add_function(wrap_pyfunction!(psi::psi_statistics, module)?)?;
    module.add_function(wrap_pyfunction!(settings::prior_columns, module)?)?;
    module.add_function(wrap_pyfunction!(load::from_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(load::settings, module)?)?;
    module.add_function(wrap_pyfunction!(search::search, module)?)?;
    module.add_function(wrap_pyfunction!(data::dataset, module)?)?;
    module.add_function(wrap_pyfunction!(data::doubts, module)?)?;
    Ok(())
}
