//! What a model can be told of uncertain inputs.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What is done about inputs that are known up to errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Treatment {
    /// Each has a posterior: y tells where in its error bar it lies.
    #[default]
    Inferred,
    /// Each is averaged over as it was given. It has fewer parameters, but the noise pays for the slope of the function
    /// across every error bar.
    Averaged,
}

impl Treatment {
    /// Its name, which [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Treatment::Inferred => "inferred",
            Treatment::Averaged => "averaged",
        }
    }
}

impl fmt::Display for Treatment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Treatment {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let all = [Treatment::Inferred, Treatment::Averaged];
        all.into_iter()
            .find(|t| t.name() == text)
            .ok_or_else(|| Error::invalid("inputs", "inferred or averaged", text))
    }
}

/// What a model can be told of uncertain inputs besides the numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InputOptions {
    /// What is done about errors.
    pub treatment: Treatment,
    /// The columns whose errors have a standard deviation that is learnt; one that is given there is not read.
    pub learn: Vec<usize>,
    /// Columns that were never observed, after the others.
    pub latent: usize,
}
