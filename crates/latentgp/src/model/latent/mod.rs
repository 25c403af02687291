//! Latent spaces: every row of Y has a position that is not observed.

pub(crate) mod bayesian_gplvm;
mod decoded;
pub(crate) mod gplvm;
pub(crate) mod ppca;
pub(crate) mod space;

use crate::data::Scaling;
use crate::error::Result;
use crate::file::{ModelFile, damaged};
use crate::kernel::Own;
use crate::mat::Mat;
use bayesian_gplvm::BayesianSpace;
use gplvm::Gplvm;
use ppca::PpcaSpace;
use space::LatentSpace;

type Restore = fn(&mut ModelFile, &Own, Mat, Scaling) -> Result<Box<dyn LatentSpace>>;

/// What makes a latent space of a model file, by the name there, for data and their units.
const RESTORE: [(&str, Restore); 3] = [
    ("bayesian-gplvm", |file, own, y, scaling| Ok(Box::new(BayesianSpace::restore(file, own, y, scaling)?))),
    ("gplvm", |file, own, y, scaling| Ok(Box::new(Gplvm::restore(file, own, y, scaling)?))),
    ("ppca", |file, _, y, scaling| Ok(Box::new(PpcaSpace::restore(file, y, scaling)?))),
];

/// The latent space of a model file.
pub(crate) fn restore(
    name: &str,
    file: &mut ModelFile,
    own: &Own,
    y: Mat,
    scaling: Scaling,
) -> Result<Box<dyn LatentSpace>> {
    let known = RESTORE.iter().find(|(known, _)| *known == name);
    let (_, restore) = known.ok_or_else(|| damaged(format!("its model `{name}` is not known")))?;
    restore(file, own, y, scaling)
}
