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

use crate::error::Result;
use crate::file::{ModelFile, damaged};
use crate::kernel::Own;
use exact::Regression;
use laplace::Laplace;
use regressor::Regressor;
use sparse::SparseRegression;
use spgp_dr::SpgpDr;
use svgp::Svgp;
use vdmgp::Vdmgp;

type Restore = fn(&mut ModelFile, &Own) -> Result<Box<dyn Regressor>>;

/// What makes a regression of a model file: by the name there, and whether the noise is Gaussian.
const RESTORE: [(&str, bool, Restore); 6] = [
    ("gp", true, |file, own| Ok(Regression::restore(file, own)?)),
    ("sparse", true, |file, own| Ok(SparseRegression::restore(file, own)?)),
    ("spgp-dr", true, |file, own| Ok(SpgpDr::restore(file, own)?)),
    ("vdmgp", true, |file, own| Ok(Vdmgp::restore(file, own)?)),
    ("gp", false, |file, own| Ok(Laplace::restore(file, own)?)),
    ("sparse", false, |file, own| Ok(Svgp::restore(file, own)?)),
];

/// The regression of a model file, but for its parameters.
pub(crate) fn restore(
    name: &str,
    gaussian: bool,
    file: &mut ModelFile,
    own: &Own,
) -> Result<Box<dyn Regressor>> {
    let known = RESTORE.iter().find(|(known, of, _)| *known == name && *of == gaussian);
    let (_, _, restore) = known.ok_or_else(|| damaged(format!("its model `{name}` is not known")))?;
    restore(file, own)
}
