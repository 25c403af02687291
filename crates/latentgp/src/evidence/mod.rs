//! Matrices to a number and its adjoints. No kernels and no parameters here.

mod collapsed;
mod exact;
mod fitc;

pub use collapsed::{Collapse, Collapsed, CollapsedBar, OutputsGrad, collapsed, outputs_adjoint};
pub(crate) use exact::exact_in_place;
pub use exact::{Exact, ExactBar, exact, exact_root};
pub use fitc::{Fitc, FitcBar, fitc};
