//! Gaussian processes with uncertain inputs, for any kernel.

pub mod data;
pub mod error;
pub mod linalg;
pub mod mat;
pub mod param;
mod vmath;

pub use error::{Error, Result};
pub use mat::Mat;
