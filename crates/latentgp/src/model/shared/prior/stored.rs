//! A prior of X in a model file: its expression in the header, its arrays as `NAME.…`.

use super::InputPrior;
use crate::error::{Error, Result};
use crate::file::{ModelFile, damaged};

/// The prior of models whose header names none.
pub(crate) const USUAL: &str = "normal";

/// Puts the arrays of a prior into the file; its expression is for the header.
pub(crate) fn put_prior(prior: &dyn InputPrior, name: &str, file: &mut ModelFile) -> String {
    let arrays = prior.arrays().into_iter().map(|(own, array)| (format!("{name}.{own}"), array));
    file.tensors.extend(arrays);
    prior.expression()
}

/// The inverse of [`put_prior`] for N rows and Q columns.
pub(crate) fn take_prior(
    expression: &str,
    name: &str,
    (n, q): (usize, usize),
    file: &mut ModelFile,
) -> Result<Box<dyn InputPrior>> {
    let mut take = |own: &str, rows: usize, cols: usize| file.take(&format!("{name}.{own}"), rows, cols);
    let found = super::parse(expression).and_then(|prior| prior.restore(n, q, &mut take));
    found.map_err(|e| match e {
        Error::ModelFile { .. } => e,
        e => damaged(format!("its prior cannot be restored: {e}")),
    })
}
