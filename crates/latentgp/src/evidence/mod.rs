//! Matrices to a number and its adjoints. No kernels and no parameters here.

mod collapsed;
mod fitc;

pub use collapsed::{Collapse, Collapsed, CollapsedBar, collapsed};
pub use fitc::{Fitc, FitcBar, fitc};
