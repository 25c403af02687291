//! Parameters in a model file: an array each, and in the header how each is constrained.

use super::{ModelFile, damaged};
use crate::error::Result;
use crate::param::{Param, Parameterized, Prior, Transform};
use serde::{Deserialize, Serialize};

/// What a parameter is besides its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParamSpec {
    /// Its name, which is that of its array.
    pub name: String,
    /// Its constraint.
    pub transform: Transform,
    /// Whether the fit leaves it alone.
    pub fixed: bool,
    /// Its prior, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<Prior>,
}

/// Puts every parameter's value into the file; the list is for the header.
pub fn put_params(of: &(impl Parameterized + ?Sized), file: &mut ModelFile) -> Vec<ParamSpec> {
    let put = |(name, p): (String, &Param)| {
        file.tensors.insert(name.clone(), p.value.clone());
        ParamSpec { name, transform: p.transform, fixed: p.fixed, prior: p.prior }
    };
    of.params().into_iter().map(put).collect()
}

/// Sets every parameter to what [`put_params`] wrote; errs when names, shapes or domains do not fit.
pub fn take_params(
    of: &mut (impl Parameterized + ?Sized),
    specs: &[ParamSpec],
    file: &mut ModelFile,
) -> Result<()> {
    let mut params = of.params_mut();
    let names = |it: &mut dyn Iterator<Item = &str>| it.collect::<Vec<_>>().join(", ");
    let (expected, found) = (
        names(&mut params.iter().map(|(n, _)| n.as_str())),
        names(&mut specs.iter().map(|s| s.name.as_str())),
    );
    if expected != found {
        return Err(damaged(format!("its parameters should be {expected}; they are {found}")));
    }
    for ((name, p), spec) in params.iter_mut().zip(specs) {
        p.value = file.take(name, p.value.rows(), p.value.cols())?;
        (p.transform, p.fixed, p.prior) = (spec.transform, spec.fixed, spec.prior);
        if let Some(bad) = p.as_slice().iter().find(|v| !v.is_finite()) {
            return Err(damaged(format!("the parameter `{name}` holds {bad}")));
        }
        if !p.fixed {
            p.check(name)?;
        }
    }
    Ok(())
}
