//! The noise variance of every model that fits one: where it starts and what it stays above.
//!
//! Data without noise, and models that can follow every observation, would drive σ² to 0, where rounding decides
//! what the evidence is.

use crate::model::Outputs;
use crate::param::{Param, Transform};

/// σ² stays above this part of the mean square of the scaled targets: a thousandth of their standard deviation.
pub const NOISE_FLOOR: f64 = 1e-6;

/// A σ² below so many times its floor has ended there.
const AT_FLOOR: f64 = 2.0;

/// σ² at a part of the mean square of the outputs, above its floor.
pub(crate) fn noise_param(part: f64, outputs: &Outputs) -> Param {
    noise_param_of(part, mean_square(outputs))
}

/// The mean square of the cells that are there.
pub(crate) fn mean_square(outputs: &Outputs) -> f64 {
    let cells: usize = outputs.observed().iter().sum();
    outputs.groups.iter().map(|g| g.yy).sum::<f64>() / cells.max(1) as f64
}

/// The same, of a mean square that is known.
pub(crate) fn noise_param_of(part: f64, square: f64) -> Param {
    let unit = if square > 1e-250 && square.is_finite() { square } else { 1.0 };
    let lo = NOISE_FLOOR * unit;
    // A part that is no positive number stays as it is, for the check of the parameters to name.
    let start = if part > 0.0 { (part * unit).max(2.0 * AT_FLOOR * lo) } else { part };
    let mut noise = Param::scalar(start);
    noise.transform = Transform::Above { lo };
    noise
}

/// Whether a fit drove σ² to its floor: there is no noise, or none that this model can tell from its function.
pub fn noise_at_floor(noise: &Param) -> bool {
    match noise.transform {
        Transform::Above { lo } => !noise.fixed && noise.get() < AT_FLOOR * lo,
        _ => false,
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
    fn only_what_was_fitted_ends_on_the_floor() {
        let mut noise = noise_param_of(0.1, 1.0);
        noise.set(1.2 * NOISE_FLOOR);
        assert!(noise_at_floor(&noise));
        noise.fixed = true;
        assert!(!noise_at_floor(&noise));
        assert!(!noise_at_floor(&Param::scalar(1e-300)));
    }
}
