//! The noise variance of models, shared by all outputs or one for each: its start and its lower bound.
//!
//! Data without noise, and models that can interpolate every observation, would drive σ² to 0, where rounding
//! decides on the value of the evidence.

use crate::error::{Error, Result};
use crate::mat::Mat;
use crate::model::Outputs;
use crate::param::{Param, Transform};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Whether outputs share a noise variance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoiseKind {
    /// One for all outputs, in the units of the scaled data.
    #[default]
    Shared,
    /// One for every output.
    Columns,
}

impl fmt::Display for NoiseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoiseKind::Shared => "shared",
            NoiseKind::Columns => "columns",
        })
    }
}

impl FromStr for NoiseKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "shared" => Ok(NoiseKind::Shared),
            "columns" => Ok(NoiseKind::Columns),
            other => Err(Error::invalid("noise", "shared or columns", other)),
        }
    }
}

/// The lower bound of σ², as a part of the mean square of the scaled targets: a thousandth of their standard
/// deviation.
pub const NOISE_FLOOR: f64 = 1e-6;

/// A σ² below this many times its lower bound counts as being there.
const AT_FLOOR: f64 = 2.0;

/// σ² at a part of the mean square of the outputs, with its lower bound.
pub(crate) fn noise_param(part: f64, outputs: &Outputs) -> Param {
    noise_param_of(part, mean_square(outputs))
}

/// The mean square of the observed cells.
pub(crate) fn mean_square(outputs: &Outputs) -> f64 {
    let cells: usize = outputs.observed().iter().sum();
    outputs.groups.iter().map(|g| g.yy).sum::<f64>() / cells.max(1) as f64
}

/// [`noise_param`] for either kind of noise. With one noise for each output, σ² starts at that part of the
/// output's own mean square; all have the lower bound of the output with the smallest mean square.
pub(crate) fn noise_param_by(kind: NoiseKind, part: f64, outputs: &Outputs) -> Param {
    if kind == NoiseKind::Shared || outputs.d() == 1 {
        return noise_param(part, outputs);
    }
    let mut squares = vec![0.0; outputs.d()];
    for group in &outputs.groups {
        for (&column, yy) in group.columns.iter().zip(&group.squares) {
            squares[column] = yy / group.rows.max(1) as f64;
        }
    }
    let each: Vec<Param> = squares.iter().map(|square| noise_param_of(part, *square)).collect();
    let floor = |p: &Param| if let Transform::Above { lo } = p.transform { lo } else { 0.0 };
    let lo = each.iter().map(floor).fold(f64::INFINITY, f64::min);
    let mut noise = Param::positive(Mat::from_fn(1, each.len(), |_, j| each[j].get()));
    noise.transform = Transform::Above { lo };
    noise
}

/// [`noise_param`] for a known mean square.
pub(crate) fn noise_param_of(part: f64, square: f64) -> Param {
    let unit = if square > 1e-250 && square.is_finite() { square } else { 1.0 };
    let lo = NOISE_FLOOR * unit;
    // A part that is not positive is kept, so that the check of the parameters names it.
    let start = if part > 0.0 { (part * unit).max(2.0 * AT_FLOOR * lo) } else { part };
    let mut noise = Param::scalar(start);
    noise.transform = Transform::Above { lo };
    noise
}

/// Whether a fit drove σ² of any output to its lower bound: there is no noise, or the model cannot tell it
/// from its function.
pub fn noise_at_floor(noise: &Param) -> bool {
    match noise.transform {
        Transform::Above { lo } => !noise.fixed && noise.as_slice().iter().any(|v| *v < AT_FLOOR * lo),
        _ => false,
    }
}

/// σ² of each of `outputs` outputs, from a parameter with one entry or one for each.
pub(crate) fn of_each(noise: &Param, outputs: usize) -> Vec<f64> {
    match noise.len() {
        1 => vec![noise.get(); outputs],
        _ => noise.as_slice().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mat::Mat;

    #[test]
    fn the_start_is_above_the_floor_and_a_wrong_part_is_named() {
        let outputs = Outputs::new(Mat::column(&[3.0, -3.0, f64::NAN]));
        let noise = noise_param(0.1, &outputs);
        assert_eq!((noise.get(), noise.transform), (0.1 * 9.0, Transform::Above { lo: 9.0 * NOISE_FLOOR }));
        assert!(!noise_at_floor(&noise) && !noise_at_floor(&noise_param(1e-30, &outputs)));
        assert!(noise_param(-1.0, &outputs).check("noise").is_err());
        assert!(noise_param(f64::NAN, &outputs).check("noise").is_err());
        assert!(noise_param(0.1, &Outputs::new(Mat::zeros(2, 1))).check("noise").is_ok());
    }

    #[test]
    fn each_column_starts_at_its_own_part_above_the_floor_of_the_least() {
        let y = Mat::from_rows(&[[3.0, 0.3, 0.0], [-3.0, f64::NAN, 0.0]]);
        let noise = noise_param_by(NoiseKind::Columns, 0.1, &Outputs::new(y.clone()));
        let expected = [0.9, 0.009, 0.1];
        assert!(noise.as_slice().iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{noise:?}");
        assert!(
            matches!(noise.transform, Transform::Above { lo } if (lo - 0.09 * NOISE_FLOOR).abs() < 1e-12)
        );
        let (outputs, one) = (Outputs::new(y.clone()), Outputs::new(y.select_cols(&[0])));
        assert_eq!(noise_param_by(NoiseKind::Shared, 0.1, &outputs), noise_param(0.1, &outputs));
        assert_eq!(noise_param_by(NoiseKind::Columns, 0.1, &one), noise_param(0.1, &one));
        assert!(noise_param_by(NoiseKind::Columns, -1.0, &outputs).check("noise").is_err());
        assert_eq!((of_each(&noise, 3).len(), of_each(&noise_param(0.1, &outputs), 3).len()), (3, 3));
        assert_eq!("columns".parse::<NoiseKind>().unwrap().to_string(), "columns");
        assert!("own".parse::<NoiseKind>().is_err());
    }

    #[test]
    fn only_what_was_fitted_ends_on_the_floor() {
        let mut noise = noise_param_of(0.1, 1.0);
        noise.set(1.2 * NOISE_FLOOR);
        assert!(noise_at_floor(&noise));
        noise.fixed = true;
        assert!(!noise_at_floor(&noise));
        assert!(!noise_at_floor(&Param::scalar(1e-300)));
    }
}
