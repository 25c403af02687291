//! Gaussian processes with uncertain inputs, for any kernel.

mod blocks;
pub mod check;
pub mod data;
pub mod error;
pub mod evidence;
pub mod expectation;
pub mod file;
pub mod kernel;
pub mod linalg;
pub mod mat;
pub mod metrics;
pub mod model;
pub mod nearest;
pub mod optim;
pub mod param;
pub mod posterior;
pub mod special;
mod vmath;

pub use error::{Error, Result};
pub use mat::Mat;
