//! Models of series in time.

pub mod narx;
mod series_model;

pub use series_model::{SeriesModel, Windows};

use crate::error::Result;
use crate::file::ModelFile;
use crate::kernel::Own;
use crate::mat::Mat;
use narx::Narx;

type Restore = fn(&mut ModelFile, &Own, Windows, &Mat, Option<&Mat>) -> Result<Box<dyn SeriesModel>>;

/// How each kind of model file restores its model from the windows, the series and the exogenous inputs.
const RESTORE: [(&str, Restore); 1] = [("narx", |file, own, windows, series, inputs| {
    Ok(Box::new(Narx::restore(file, own, windows, series, inputs)?))
})];

/// The kinds of model files that hold a model of series.
pub(crate) fn kinds() -> impl Iterator<Item = &'static str> {
    RESTORE.iter().map(|(kind, _)| *kind)
}

/// The function that restores models of this kind.
pub(crate) fn restorer(kind: &str) -> Option<Restore> {
    RESTORE.iter().find(|(known, _)| *known == kind).map(|(_, restore)| *restore)
}
