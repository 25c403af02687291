//! Inputs with targets, scaled for a fit.

use crate::data::{Scale, Scaling};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, Structure};
use crate::mat::Mat;

/// Inputs X (N×D) and targets Y (N×outputs), both scaled, with their original units.
#[derive(Clone, Debug, PartialEq)]
pub struct Supervised {
    /// X, scaled.
    pub x: Mat,
    /// Y, scaled.
    pub y: Mat,
    /// The units of the inputs.
    pub inputs: Scaling,
    /// The units of the targets.
    pub outputs: Scaling,
}

impl Supervised {
    /// Scales inputs and targets.
    ///
    /// Errs when there is nothing to learn from, rows differ in number, or a cell is missing or infinite.
    pub fn new(x: &Mat, y: &Mat, inputs: Scale, outputs: Scale) -> Result<Self> {
        if x.rows() != y.rows() {
            return Err(Error::shape("rows of the targets", x.rows(), y.rows()));
        }
        if x.is_empty() || y.is_empty() {
            let reason = format!(
                "there is nothing to learn from inputs of {} and targets of {}",
                x.shape(),
                y.shape()
            );
            return Err(Error::data("the data", reason));
        }
        no_gap(x, "input")?;
        no_gap(y, "target")?;
        check_range(x, "input")?;
        check_range(y, "target")?;
        let (inputs, outputs) = (Scaling::fit(x, inputs)?, Scaling::fit(y, outputs)?);
        Ok(Supervised { x: inputs.apply(x)?, y: outputs.apply(y)?, inputs, outputs })
    }

    /// N, inputs, outputs.
    pub fn sizes(&self) -> (usize, usize, usize) {
        (self.x.rows(), self.x.cols(), self.y.cols())
    }

    /// Inputs and targets as they were given, to rounding.
    pub fn given(&self) -> Result<(Mat, Mat)> {
        Ok((self.inputs.undo_mean(&self.x)?, self.outputs.undo_mean(&self.y)?))
    }

    /// The log Jacobian of the scaling: the log density of the targets as given minus that of the scaled
    /// targets.
    pub fn log_jacobian(&self) -> f64 {
        self.outputs.log_jacobian(&vec![self.y.rows(); self.y.cols()])
    }

    /// The variances of the scaled inputs, from their standard deviations in the units of the data, as large
    /// as X.
    pub fn input_variances(&self, std: &Mat) -> Result<Mat> {
        if std.shape() != self.x.shape() {
            return Err(Error::shape("standard deviations of the inputs", self.x.shape(), std.shape()));
        }
        if let Some(bad) = std.as_slice().iter().find(|s| !(s.is_finite() && **s >= 0.0)) {
            return Err(Error::invalid(
                "standard deviation of an input",
                "a finite number, not negative",
                bad,
            ));
        }
        Ok(Mat::from_fn(std.rows(), std.cols(), |i, j| (std[(i, j)] / self.inputs.scale[j]).powi(2)))
    }

    /// The mean square of the scaled targets; 1 when all are 0.
    pub fn variance(&self) -> f64 {
        let square = self.y.dot(&self.y) / self.y.len() as f64;
        if square > 0.0 { square } else { 1.0 }
    }
}

fn no_gap(of: &Mat, what: &str) -> Result<()> {
    let Some(at) = of.as_slice().iter().position(|v| v.is_nan()) else { return Ok(()) };
    let (row, column) = (at / of.cols() + 1, at % of.cols() + 1);
    Err(Error::data(
        format!("row {row}, column {column} of the {what}s"),
        "the value is missing; leave the row out",
    ))
}

/// The largest magnitude that a column may have; its inverse is the smallest. Variances, which are squares,
/// then stay in the range of numbers.
pub const LARGEST: f64 = 1e152;

/// Row and column of the first cell out of range: its magnitude is above [`LARGEST`], or it is the largest of
/// a column that is not all zero and below the inverse of [`LARGEST`]. Missing cells (NaN) and infinities are
/// not considered.
///
/// ```
/// use latentgp::{Mat, model::beyond_range};
/// assert_eq!(beyond_range(&Mat::from_rows(&[[1.0, 2.0], [3.0, 1e300]])), Some((1, 1)));
/// assert_eq!(beyond_range(&Mat::from_rows(&[[1e-300, 2.0], [0.0, 0.0]])), Some((0, 0)));
/// assert_eq!(beyond_range(&Mat::from_rows(&[[0.0, 2.0], [0.0, 1e-300]])), None);
/// ```
pub fn beyond_range(of: &Mat) -> Option<(usize, usize)> {
    for j in 0..of.cols() {
        let size = |i: &usize| of[(*i, j)].abs();
        let seen = (0..of.rows()).filter(|i| !of[(*i, j)].is_nan());
        let Some(largest) = seen.max_by(|a, b| size(a).total_cmp(&size(b))) else { continue };
        let magnitude = size(&largest);
        if (magnitude > LARGEST && magnitude.is_finite()) || (magnitude > 0.0 && magnitude < 1.0 / LARGEST) {
            return Some((largest, j));
        }
    }
    None
}

/// Errs where a cell is [`beyond_range`].
pub(crate) fn check_range(of: &Mat, what: &str) -> Result<()> {
    let Some((i, j)) = beyond_range(of) else { return Ok(()) };
    Err(Error::data(
        format!("row {}, column {} of the {what}s", i + 1, j + 1),
        format!(
            "{:.3e} is beyond what can be squared; multiply the column by a power of ten that brings it \
             near 1",
            of[(i, j)]
        ),
    ))
}

/// Fixes the lengthscales of a kernel that is stationary and has no parts: beside a free projection of the
/// inputs they are redundant.
pub(crate) fn fix_redundant_lengthscales(kernel: &mut dyn Kernel) {
    const STATIONARY: [&str; 3] = ["variance", "lengthscale", "alpha"];
    let leaf = matches!(kernel.structure(), Structure::Leaf);
    if leaf && kernel.params().iter().all(|(name, _)| STATIONARY.contains(&name.as_str())) {
        let lengthscales = kernel.params_mut().into_iter().filter(|(name, _)| name == "lengthscale");
        lengthscales.for_each(|(_, p)| p.fixed = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Matern32, Periodic, Rbf};

    #[test]
    fn what_cannot_be_learnt_from_is_named() {
        let new = |x: &Mat, y: &Mat| Supervised::new(x, y, Scale::Standardize, Scale::Standardize);
        let (x, y) = (Mat::from_fn(4, 2, |i, j| (i * 2 + j) as f64), Mat::column(&[1.0, 2.0, 3.0, 4.0]));
        assert!(new(&x, &y).is_ok());
        assert!(matches!(new(&x, &y.slice_rows(0, 3)), Err(Error::Shape { .. })));
        assert!(matches!(new(&Mat::zeros(0, 2), &Mat::zeros(0, 1)), Err(Error::Data { .. })));
        assert!(matches!(new(&Mat::zeros(4, 0), &y), Err(Error::Data { .. })));
        let mut holed = x.clone();
        holed[(2, 1)] = f64::NAN;
        assert!(new(&holed, &y).unwrap_err().to_string().contains("row 3, column 2 of the inputs"));
        holed[(2, 1)] = f64::INFINITY;
        assert!(matches!(new(&holed, &y), Err(Error::Data { .. })));
        let constant = new(&x, &Mat::filled(4, 1, 7.0)).unwrap();
        assert_eq!((constant.variance(), constant.log_jacobian()), (1.0, 0.0));
    }

    #[test]
    fn only_redundant_lengthscales_are_fixed() {
        let fixed = |k: &dyn Kernel| {
            let mut k = k.boxed();
            fix_redundant_lengthscales(&mut *k);
            k.params().iter().filter(|(_, p)| p.fixed).count()
        };
        assert_eq!(fixed(&Rbf::new(2)), 1);
        assert_eq!(fixed(&Periodic::new(2)), 0);
        assert_eq!(fixed(&(Rbf::new(2) + Matern32::new(2))), 0);
    }
}
