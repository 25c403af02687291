//! Centring and scaling of columns, and the way back.
//!
//! z = (y − mean_d)/scale_d for every observed cell of column d; NaN is a missing cell and stays one. If
//! p(Z) is the density of the scaled data, then log p(Y) = log p(Z) − Σ_d n_d ln scale_d with n_d the
//! observed cells of column d.
//!
//! Sums run over values divided by a power of two near the largest, which is exact, so that neither 1e300
//! nor 1e-300 leaves the range of the squares.

use crate::error::{Error, Result};
use crate::mat::Mat;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A column whose standard deviation is below this part of its largest magnitude holds one number and
/// rounding errors.
const CONSTANT: f64 = 64.0 * f64::EPSILON;

/// What is done to the columns before a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Each column less its mean, divided by its standard deviation (that of a population).
    #[default]
    Standardize,
    /// Each column less its mean, all divided by the one standard deviation of all cells so centred.
    Global,
    /// Each column less its mean.
    Center,
    /// Nothing.
    None,
}

impl Scale {
    const NAMES: [(&'static str, Scale); 4] = [
        ("standardize", Scale::Standardize),
        ("global", Scale::Global),
        ("center", Scale::Center),
        ("none", Scale::None),
    ];
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Scale::Standardize => "standardize",
            Scale::Global => "global",
            Scale::Center => "center",
            Scale::None => "none",
        })
    }
}

impl FromStr for Scale {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let found = Scale::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, scale)| *scale).ok_or_else(|| {
            let near = super::nearest(text, &Scale::NAMES.map(|(name, _)| name));
            let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            Error::invalid("scale", "standardize, global, center or none", format!("`{text}`{hint}"))
        })
    }
}

/// A mean and a scale for each column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// What is subtracted from each column.
    pub mean: Vec<f64>,
    /// What each column is divided by, then; above 0.
    pub scale: Vec<f64>,
}

/// Mean and squared deviations of a column's observed cells, in units of 2^exponent.
struct Moments {
    exponent: i32,
    mean: f64,
    squares: f64,
    count: usize,
}

impl Moments {
    /// Of finite values and NaN; `None` when nothing is observed.
    fn of(column: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let observed = column.filter(|v| !v.is_nan());
        let largest = observed.clone().fold(0.0, |m: f64, v| m.max(v.abs()));
        let exponent = libm::frexp(largest).1;
        let values = observed.map(|v| libm::ldexp(v, -exponent));
        let count = values.clone().count();
        if count == 0 {
            return None;
        }
        let n = count as f64;
        let rough = values.clone().sum::<f64>() / n;
        // The second pass removes the rounding of the first.
        let mean = rough + values.clone().map(|v| v - rough).sum::<f64>() / n;
        let squares = values.clone().map(|v| (v - mean) * (v - mean)).sum::<f64>();
        // Values are at most 1 now, and the largest is at least a half.
        let constant = (squares / n).sqrt() <= CONSTANT * libm::ldexp(largest, -exponent);
        Some(Moments { exponent, mean, squares: if constant { 0.0 } else { squares }, count })
    }
}

/// √(Σ squares / Σ counts) of several columns, 1 when it is 0; `None` when it is too small to divide by.
fn pooled_std(columns: &[Moments]) -> Option<f64> {
    let varied = || columns.iter().filter(|m| m.squares > 0.0);
    let Some(top) = varied().map(|m| m.exponent).max() else { return Some(1.0) };
    let squares: f64 = varied().map(|m| libm::ldexp(m.squares, 2 * (m.exponent - top))).sum();
    let count: usize = columns.iter().map(|m| m.count).sum();
    let std = libm::ldexp((squares / count as f64).sqrt(), top);
    (std >= f64::MIN_POSITIVE).then_some(std)
}

/// The error of values that differ by less than the smallest normal number.
fn too_small(what: String) -> Error {
    Error::data(
        what,
        "the values differ by less than numbers can resolve (1e-308); multiply them by a large number",
    )
}

impl Scaling {
    /// Means and scales of the observed cells; NaN is missing.
    ///
    /// A constant column (to rounding) has the scale 1. Errs when a cell is infinite, when a column has no
    /// observed cell, when there is no column, when centring leaves the range of numbers, and when values differ by less
    /// than the smallest normal number.
    ///
    /// ```
    /// use latentgp::{Mat, data::{Scale, Scaling}};
    /// let y = Mat::from_rows(&[[1.0, 5.0], [3.0, 5.0]]);
    /// let scaling = Scaling::fit(&y, Scale::Standardize)?;
    /// assert_eq!((scaling.mean.as_slice(), scaling.scale.as_slice()), (&[2.0, 5.0][..], &[1.0, 1.0][..]));
    /// # Ok::<(), latentgp::Error>(())
    /// ```
    pub fn fit(y: &Mat, how: Scale) -> Result<Self> {
        if y.cols() == 0 {
            return Err(Error::data("the data", "there is no column of numbers"));
        }
        no_infinity(y)?;
        let moments = (0..y.cols())
            .map(|d| {
                Moments::of((0..y.rows()).map(move |n| y[(n, d)])).ok_or_else(|| {
                    Error::data(format!("column {}", d + 1), "no value is observed; leave the column out")
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let (mut mean, mut scale) = (vec![0.0; y.cols()], vec![1.0; y.cols()]);
        if how != Scale::None {
            mean = moments.iter().map(|m| libm::ldexp(m.mean, m.exponent)).collect();
        }
        match how {
            Scale::Standardize => {
                let each = moments.chunks(1).enumerate();
                let std = |(d, m)| pooled_std(m).ok_or_else(|| too_small(format!("column {}", d + 1)));
                scale = each.map(std).collect::<Result<_>>()?;
            }
            Scale::Global => scale.fill(pooled_std(&moments).ok_or_else(|| too_small("the data".into()))?),
            Scale::Center | Scale::None => {}
        }
        let scaling = Scaling { mean, scale };
        no_infinity(&scaling.transformed(y)).map_err(|_| {
            Error::data("the data", "they span more than numbers can hold; divide them by a large number")
        })?;
        Ok(scaling)
    }

    /// (y − mean)/scale; errs when the columns differ in number or a cell is infinite.
    pub fn apply(&self, y: &Mat) -> Result<Mat> {
        self.check(y)?;
        no_infinity(y)?;
        Ok(self.transformed(y))
    }

    /// mean + scale · z, for means and samples; errs when the columns differ in number.
    pub fn undo_mean(&self, z: &Mat) -> Result<Mat> {
        self.check(z)?;
        Ok(Mat::from_fn(z.rows(), z.cols(), |n, d| z[(n, d)] * self.scale[d] + self.mean[d]))
    }

    /// scale² · v, for variances; errs when the columns differ in number.
    pub fn undo_var(&self, v: &Mat) -> Result<Mat> {
        self.check(v)?;
        // Twice by the scale, whose square may overflow where the product does not.
        Ok(Mat::from_fn(v.rows(), v.cols(), |n, d| v[(n, d)] * self.scale[d] * self.scale[d]))
    }

    /// scale² · v of one variance of every column, or of one that all columns share.
    pub fn variances(&self, v: &[f64]) -> Vec<f64> {
        let each = v.iter().copied().cycle();
        self.scale.iter().zip(each).map(|(scale, v)| v * scale * scale).collect()
    }

    /// −Σ_d n_d ln scale_d: what the log density of the scaled data lacks to be that of the data as given.
    ///
    /// # Panics
    /// When `observed_per_column` has not one count a column.
    pub fn log_jacobian(&self, observed_per_column: &[usize]) -> f64 {
        assert_eq!(observed_per_column.len(), self.scale.len(), "one count a column");
        -observed_per_column.iter().zip(&self.scale).map(|(&n, s)| n as f64 * s.ln()).sum::<f64>()
    }

    fn check(&self, y: &Mat) -> Result<()> {
        if y.cols() != self.mean.len() || y.cols() != self.scale.len() {
            return Err(Error::shape("columns to scale", self.mean.len(), y.cols()));
        }
        Ok(())
    }

    fn transformed(&self, y: &Mat) -> Mat {
        Mat::from_fn(y.rows(), y.cols(), |n, d| {
            let (value, mean, scale) = (y[(n, d)], self.mean[d], self.scale[d]);
            let centred = value - mean;
            // Halves do not overflow where the difference of two huge numbers does.
            if centred.is_infinite() { (0.5 * value - 0.5 * mean) / (0.5 * scale) } else { centred / scale }
        })
    }
}

fn no_infinity(y: &Mat) -> Result<()> {
    match y.as_slice().iter().position(|v| v.is_infinite()) {
        None => Ok(()),
        Some(at) => Err(Error::data(
            format!("row {}, column {}", at / y.cols() + 1, at % y.cols() + 1),
            "the value is infinite; mark it as missing (an empty cell, NaN) or correct it",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOWS: [Scale; 4] = [Scale::Standardize, Scale::Global, Scale::Center, Scale::None];

    fn close(a: f64, b: f64, relative: f64) {
        assert!((a - b).abs() <= relative * b.abs(), "{a} against {b}");
    }

    #[test]
    fn each_way_of_scaling_is_its_definition() {
        let nan = f64::NAN;
        let y = Mat::from_rows(&[[1.0, 10.0], [2.0, nan], [nan, 30.0], [6.0, 20.0]]);
        let fit = |how| Scaling::fit(&y, how).unwrap();
        let (a, b) = (14.0 / 3.0, 200.0 / 3.0);
        let s = fit(Scale::Standardize);
        assert_eq!(s.mean, [3.0, 20.0]);
        close(s.scale[0], f64::sqrt(a), 1e-15);
        close(s.scale[1], f64::sqrt(b), 1e-15);
        let g = fit(Scale::Global);
        assert_eq!(g.mean, s.mean);
        close(g.scale[0], f64::sqrt((3.0 * a + 3.0 * b) / 6.0), 1e-15);
        assert_eq!(g.scale[0], g.scale[1]);
        assert_eq!((fit(Scale::Center).mean, fit(Scale::Center).scale), (vec![3.0, 20.0], vec![1.0; 2]));
        assert_eq!((fit(Scale::None).mean, fit(Scale::None).scale), (vec![0.0; 2], vec![1.0; 2]));
        close(s.log_jacobian(&[3, 3]), -1.5 * (a.ln() + b.ln()), 1e-14);
        for how in HOWS {
            let back = fit(how).undo_mean(&fit(how).apply(&y).unwrap()).unwrap();
            for (x, y) in back.as_slice().iter().zip(y.as_slice()) {
                assert!(x.is_nan() && y.is_nan() || (x - y).abs() < 1e-14);
            }
        }
        close(s.undo_var(&Mat::filled(1, 2, 2.0)).unwrap()[(0, 1)], 2.0 * b, 1e-14);
    }

    #[test]
    fn magnitude_does_not_matter() {
        for unit in [1e-300, 1e-150, 1.0, 1e150, 1e300, 1e307] {
            let y = Mat::column(&[-3.0 * unit, 1.0 * unit, 2.0 * unit, 4.0 * unit]);
            for how in [Scale::Standardize, Scale::Global] {
                let s = Scaling::fit(&y, how).unwrap();
                close(s.mean[0], unit, 1e-14);
                close(s.scale[0] / unit, 6.5f64.sqrt(), 1e-14);
                let z = s.apply(&y).unwrap();
                assert!((z.dot(&z) - 4.0).abs() < 1e-13);
            }
        }
        let wide = Mat::column(&[1.7e308, -1.7e308, -1.7e308]);
        assert!(Scaling::fit(&wide, Scale::Standardize).unwrap().apply(&wide).unwrap().is_finite());
        assert!(Scaling::fit(&wide, Scale::Center).unwrap_err().to_string().contains("span"));
        assert_eq!(
            Scaling { mean: vec![0.0], scale: vec![1e300] }.undo_var(&Mat::zeros(1, 1)).unwrap()[(0, 0)],
            0.0
        );
    }

    #[test]
    fn the_mean_is_accurate_on_a_large_offset() {
        let y = Mat::from_fn(10_000, 1, |i, _| 1e9 + f64::from(i % 2 == 0));
        let s = Scaling::fit(&y, Scale::Standardize).unwrap();
        assert_eq!((s.mean[0], s.scale[0]), (1e9 + 0.5, 0.5));
    }

    #[test]
    fn rounding_in_a_constant_column_is_not_blown_up() {
        let noisy = |i: usize| if i.is_multiple_of(3) { 0.1 + 0.2 - 0.2 } else { 0.1 };
        let y = Mat::from_fn(30, 3, |i, j| [noisy(i), 1e20 * noisy(i), i as f64][j]);
        assert_eq!(Scaling::fit(&y, Scale::Standardize).unwrap().scale[..2], [1.0, 1.0]);
        let only = Scaling::fit(&y.select_cols(&[2]), Scale::Standardize).unwrap().scale[0];
        close(Scaling::fit(&y, Scale::Global).unwrap().scale[0], only / 3f64.sqrt(), 1e-14);
        for constant in [0.0, 0.1, -1e300, 5e-324] {
            let s = Scaling::fit(&Mat::filled(7, 1, constant), Scale::Standardize).unwrap();
            assert_eq!((s.mean[0], s.scale[0]), (constant, 1.0));
        }
        // A hundred thousand roundings of 1e9 are a signal.
        let fine = Mat::from_fn(10, 1, |i, _| 1e9 + 1e-2 * i as f64);
        assert!(Scaling::fit(&fine, Scale::Standardize).unwrap().scale[0] < 0.1);
        let tiny = Mat::column(&[0.0, 5e-324]);
        for how in [Scale::Standardize, Scale::Global] {
            assert!(Scaling::fit(&tiny, how).unwrap_err().to_string().contains("multiply them"));
        }
    }

    #[test]
    fn what_cannot_be_scaled_is_named() {
        for how in HOWS {
            let message = |y: &Mat| Scaling::fit(y, how).unwrap_err().to_string();
            let mut y = Mat::zeros(3, 2);
            y[(1, 1)] = f64::NEG_INFINITY;
            assert!(message(&y).contains("row 2, column 2"));
            let missing = Mat::from_fn(3, 2, |_, j| if j == 1 { f64::NAN } else { 1.0 });
            assert!(message(&missing).contains("column 2"));
            assert!(message(&Mat::zeros(0, 2)).contains("column 1"));
            assert!(message(&Mat::zeros(2, 0)).contains("no column"));
            let s = Scaling::fit(&Mat::zeros(3, 2), how).unwrap();
            assert!(s.apply(&Mat::zeros(3, 1)).is_err() && s.undo_mean(&Mat::zeros(3, 3)).is_err());
            assert!(s.apply(&y).is_err());
        }
    }

    #[test]
    fn names_are_read_and_written() {
        for how in HOWS {
            assert_eq!(how.to_string().parse::<Scale>().unwrap(), how);
            assert_eq!(serde_json::to_string(&how).unwrap(), format!("\"{how}\""));
        }
        let message = "standardise".parse::<Scale>().unwrap_err().to_string();
        assert!(message.contains("did you mean `standardize`?"), "{message}");
    }
}
