//! Matrices to a number and its adjoints. No kernels and no parameters here.

mod collapsed;
mod exact;

pub use collapsed::{Collapse, Collapsed, CollapsedBar, collapsed};
pub use exact::{Exact, ExactBar, exact, exact_root};
