//! Latent spaces: every row of Y has a position that is not observed.

pub(crate) mod bayesian_gplvm;
pub(crate) mod gplvm;
pub(crate) mod ppca;
pub(crate) mod space;
