//! Regressions: targets Y on inputs X, with values, classes or counts as targets.

pub(crate) mod answers;
pub(crate) mod exact;
mod infer;
mod joint;
pub(crate) mod laplace;
pub(crate) mod linear;
pub(crate) mod regressor;
pub(crate) mod sparse;
pub(crate) mod spgp_dr;
pub(crate) mod svgp;
pub(crate) mod vdmgp;

use crate::error::Result;
use crate::file::{ModelFile, damaged};
use crate::kernel::Own;

pub use answers::{Answers, LEVELS, Scores, count_nlpd};
pub use exact::{MeanKind, Regression, RegressionOptions};
pub use laplace::{Approximation, Laplace, VARIANCE_PRIOR};
pub use linear::LinearRegression;
pub use regressor::Regressor;
pub use sparse::{SparseOptions, SparseRegression};
pub use spgp_dr::{ProjectionStart, SpgpDr, SpgpDrPlan, SpgpDrTraining};
pub use svgp::{MiniBatch, PointInputs, Svgp};
pub use vdmgp::{
    Direction, InputShare, Terms, USEFUL, Vdmgp, VdmgpPlan, VdmgpTraining, WeightPrior, WeightRelevance,
};

type Restore = fn(&mut ModelFile, &Own) -> Result<Box<dyn Regressor>>;

/// How each regression is restored from a model file: by its name there, and by whether the noise is
/// Gaussian.
const RESTORE: [(&str, bool, Restore); 7] = [
    ("gp", true, |file, own| Ok(Regression::restore(file, own)?)),
    ("sparse", true, |file, own| Ok(SparseRegression::restore(file, own)?)),
    ("spgp-dr", true, |file, own| Ok(SpgpDr::restore(file, own)?)),
    ("vdmgp", true, |file, own| Ok(Vdmgp::restore(file, own)?)),
    ("linear", true, |file, own| Ok(LinearRegression::restore(file, own)?)),
    ("gp", false, |file, own| Ok(Laplace::restore(file, own)?)),
    ("sparse", false, |file, own| Ok(Svgp::restore(file, own)?)),
];

/// Restores the regression of a model file, without its parameters.
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
