//! Matrices to a number and its adjoints. No kernels and no parameters here.

mod collapsed;
mod collapsed_columns;
mod exact;
mod exact_columns;
mod fitc;

pub use collapsed::{Collapse, Collapsed, CollapsedBar, OutputsGrad, collapsed, outputs_adjoint};
pub use collapsed_columns::{CollapseColumns, CollapsedColumns, CollapsedColumnsBar, collapsed_columns};
pub(crate) use exact::exact_in_place;
pub use exact::{Exact, ExactBar, exact, exact_root};
pub use exact_columns::{ExactColumns, ExactColumnsBar, exact_columns};
pub use fitc::{Fitc, FitcBar, fitc};
