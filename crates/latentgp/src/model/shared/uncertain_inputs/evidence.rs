//! How clear the standard deviation of an error is that was learnt.

use super::UncertainInputs;
use crate::error::Result;
use crate::fit::fit;
use crate::model::Model;
use crate::optim::{Lbfgs, quiet};
use serde::{Deserialize, Serialize};

/// What the bound says of a learnt error: how much of it is lost where there is next to no error and where it is twice as
/// large, everything else but other learnt errors fitted again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorEvidence {
    /// The column.
    pub column: usize,
    /// The loss without it.
    pub without: f64,
    /// The loss where it is doubled.
    pub doubled: f64,
}

/// Losses below this leave an error unclear: it is about half the 95 % quantile of χ² with one degree of freedom.
const CLEAR: f64 = 2.0;
/// An error of this part is next to none.
const NEARLY_NONE: f64 = 0.02;
/// Iterations of a fit with an error held.
const HELD_ITERATIONS: usize = 300;

impl ErrorEvidence {
    /// Whether the data tell the error, or could do as well without it or with a larger one.
    pub fn is_clear(&self) -> bool {
        self.without >= CLEAR && self.doubled >= CLEAR
    }
}

/// Works out the [`ErrorEvidence`] of every learnt error of a fitted model; other learnt errors are held.
pub(crate) fn weigh_errors<M: Model + Clone>(
    model: &M,
    inputs: impl Fn(&mut M) -> &mut UncertainInputs,
) -> Result<Vec<ErrorEvidence>> {
    let best = model.varying_evidence(None)?;
    let count = inputs(&mut model.clone()).read.learn.len();
    let loss = |k: usize, factor: f64| -> Result<f64> {
        let mut other = model.clone();
        inputs(&mut other).hold_error(k, factor);
        let how = Lbfgs { max_iterations: HELD_ITERATIONS, ..Lbfgs::default() };
        fit(&mut other, &how, &mut quiet)?;
        Ok(best - other.varying_evidence(None)?)
    };
    (0..count)
        .map(|k| {
            let column = inputs(&mut model.clone()).read.learn[k];
            Ok(ErrorEvidence { column, without: loss(k, NEARLY_NONE)?, doubled: loss(k, 2.0)? })
        })
        .collect()
}
