//! Matrices to a number and its adjoints. No kernels and no parameters here.

mod collapsed;

pub use collapsed::{Collapse, Collapsed, CollapsedBar, collapsed};
