//! Regressions: targets Y on inputs X, with values, classes or counts as targets.

pub(crate) mod answers;
pub(crate) mod exact;
mod joint;
pub(crate) mod laplace;
pub(crate) mod regressor;
pub(crate) mod sparse;
pub(crate) mod spgp_dr;
pub(crate) mod svgp;
pub(crate) mod vdmgp;
