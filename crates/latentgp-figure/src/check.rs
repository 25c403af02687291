//! Checks of what is to be drawn, so that a figure never fails half-way.

use latentgp::{Error, Result};

/// The largest magnitude that is drawn; beyond it, differences overflow.
pub const LARGEST: f64 = 1e300;

/// Errs unless every value is a number that can be drawn.
pub fn finite(what: &str, values: &[f64]) -> Result<()> {
    match values.iter().position(|v| !v.is_finite() || v.abs() > LARGEST) {
        None => Ok(()),
        Some(at) => Err(Error::NotFinite { what: format!("{what}, value {} ({})", at + 1, values[at]) }),
    }
}

/// Errs unless every value is a number that can be drawn and none is negative.
pub fn variances(what: &str, values: &[f64]) -> Result<()> {
    finite(what, values)?;
    match values.iter().position(|v| *v < 0.0) {
        None => Ok(()),
        Some(at) => Err(Error::Invalid {
            what: format!("{what}, value {}", at + 1),
            expected: "no negative number".into(),
            found: values[at].to_string(),
        }),
    }
}

/// Errs unless there is something to draw.
pub fn some(what: &str, length: usize) -> Result<()> {
    if length > 0 {
        return Ok(());
    }
    Err(Error::Data { what: what.into(), reason: "there is nothing to draw; give at least one value".into() })
}

/// Errs unless two lengths agree.
pub fn length(what: &str, expected: usize, found: usize) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::Shape { what: what.into(), expected: format!("{expected} values"), found: format!("{found}") })
}
