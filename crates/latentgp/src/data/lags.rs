//! Windows of past values: from series in time to a table of inputs and targets.
//!
//! ```text
//! x_t = (y_1(t−1) … y_1(t−L_1),  y_2(t−1) … y_2(t−L_2),  …,  u_1(t−d_1) …,  u_2(t−d_2) …)     y_t = (y_1(t), y_2(t), …)
//! ```
//!
//! The most recent value comes first. An exogenous input has delays of its own; delay 0 is its value at the
//! time of the target. Tables have one row a time step, the oldest first.

use crate::error::{Error, Result};
use crate::mat::Mat;
use serde::{Deserialize, Serialize};

/// Which past values a window has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lags {
    /// L_d: past values of each series.
    pub series: Vec<usize>,
    /// The delays of each exogenous input, in the order of the window.
    pub exogenous: Vec<Vec<usize>>,
}

/// What a column of a window comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Series and delay.
    Series(usize, usize),
    /// Exogenous input and delay.
    Exogenous(usize, usize),
}

/// Inputs and targets, a row each time step that has a whole window.
#[derive(Clone, Debug, PartialEq)]
pub struct Lagged {
    /// Windows, N×Q.
    pub x: Mat,
    /// Targets, N×D.
    pub y: Mat,
}

impl Lags {
    /// The last `lag` values of one series.
    pub fn new(lag: usize) -> Self {
        Lags { series: vec![lag], exogenous: Vec::new() }
    }

    /// The last `lags[d]` values of several series.
    pub fn of_series(lags: &[usize]) -> Self {
        Lags { series: lags.to_vec(), exogenous: Vec::new() }
    }

    /// With one more exogenous input, of these delays.
    pub fn with_exogenous(mut self, delays: impl IntoIterator<Item = usize>) -> Self {
        self.exogenous.push(delays.into_iter().collect());
        self
    }

    /// How many rows there must be before the first target.
    pub fn longest(&self) -> usize {
        self.series.iter().chain(self.exogenous.iter().flatten()).copied().max().unwrap_or(0)
    }

    /// The shortest delay of an exogenous input: as many of the last values that are to come are not needed.
    pub fn shortest_delay(&self) -> usize {
        self.exogenous.iter().flatten().copied().min().unwrap_or(0)
    }

    /// How many columns of a window come from the series: they are the first.
    pub fn own(&self) -> usize {
        self.series.iter().sum()
    }

    /// Q, the columns of a window.
    pub fn width(&self) -> usize {
        self.own() + self.exogenous.iter().map(Vec::len).sum::<usize>()
    }

    /// Where each column comes from.
    pub fn columns(&self) -> Vec<Source> {
        let own = self.series.iter().enumerate();
        let own = own.flat_map(|(d, &lag)| (1..=lag).map(move |delay| Source::Series(d, delay)));
        let others = self.exogenous.iter().enumerate();
        let others = others.flat_map(|(e, delays)| delays.iter().map(move |&d| Source::Exogenous(e, d)));
        own.chain(others).collect()
    }

    /// The window of time `t`, for tables in which all its values are there.
    pub(crate) fn window(&self, series: &Mat, exogenous: Option<&Mat>, t: usize) -> Vec<f64> {
        let value = |source: &Source| match *source {
            Source::Series(d, delay) => series[(t - delay, d)],
            Source::Exogenous(e, delay) => exogenous.expect("checked")[(t - delay, e)],
        };
        self.columns().iter().map(value).collect()
    }

    /// Errs unless the tables have the columns that the lags speak of, and no missing or infinite number.
    ///
    /// `future` is the number of rows that the exogenous inputs have in addition, of which the last may be left out
    /// that no delay reaches.
    pub(crate) fn check(&self, series: &Mat, exogenous: Option<&Mat>, future: usize) -> Result<()> {
        self.check_with_gaps(series, exogenous, future)?;
        finite(series, "series")?;
        exogenous.map_or(Ok(()), |inputs| finite(inputs, "exogenous input"))
    }

    /// The same where values may be missing.
    pub(crate) fn check_with_gaps(&self, series: &Mat, exogenous: Option<&Mat>, future: usize) -> Result<()> {
        if self.width() == 0 || self.series.is_empty() {
            let expected = "at least one series and one past value of it, or of an exogenous input";
            return Err(Error::invalid("lags", expected, format!("{self:?}")));
        }
        if series.cols() != self.series.len() {
            return Err(Error::shape("columns of the series", self.series.len(), series.cols()));
        }
        no_infinity(series, "series")?;
        let Some(inputs) = exogenous else {
            return match self.exogenous.len() {
                0 => Ok(()),
                n => Err(Error::shape("columns of the exogenous inputs", n, "none")),
            };
        };
        if inputs.cols() != self.exogenous.len() {
            return Err(Error::shape("columns of the exogenous inputs", self.exogenous.len(), inputs.cols()));
        }
        let most = series.rows() + future;
        let least = series.rows() + future.saturating_sub(self.shortest_delay());
        if !(least..=most).contains(&inputs.rows()) {
            let expected = match future {
                0 => format!("{}, as many as the series has", series.rows()),
                _ => format!(
                    "{least}: the {} of the series and those to come that the delays reach",
                    series.rows()
                ),
            };
            return Err(Error::shape("rows of the exogenous inputs", expected, inputs.rows()));
        }
        no_infinity(inputs, "exogenous input")
    }

    /// Errs unless a time has a whole window.
    pub(crate) fn check_length(&self, rows: usize) -> Result<()> {
        let first = self.longest();
        if rows > first {
            return Ok(());
        }
        let reason = format!(
            "{rows} values are no more than the longest lag, {first}; give more of them or a shorter lag"
        );
        Err(Error::data("the series", reason))
    }

    /// Inputs and targets of all times that have a whole window.
    ///
    /// `series` is T×D and `exogenous` T×E. Errs when the columns are not those of the lags, the numbers of
    /// rows differ, a value is missing or infinite, or no time has a whole window.
    ///
    /// ```
    /// use latentgp::{Mat, data::lags::Lags};
    /// let found = Lags::new(2).table(&Mat::column(&[1.0, 2.0, 3.0, 4.0]), None)?;
    /// assert_eq!(found.x, Mat::from_rows(&[[2.0, 1.0], [3.0, 2.0]]));
    /// assert_eq!(found.y, Mat::column(&[3.0, 4.0]));
    /// # Ok::<(), latentgp::Error>(())
    /// ```
    pub fn table(&self, series: &Mat, exogenous: Option<&Mat>) -> Result<Lagged> {
        self.check(series, exogenous, 0)?;
        let first = self.longest();
        self.check_length(series.rows())?;
        let rows: Vec<Vec<f64>> = (first..series.rows()).map(|t| self.window(series, exogenous, t)).collect();
        Ok(Lagged { x: Mat::from_rows(&rows), y: series.slice_rows(first, series.rows()) })
    }
}

fn finite(table: &Mat, what: &str) -> Result<()> {
    at_none(
        table,
        what,
        |v| !v.is_finite(),
        "the value is missing or infinite, and these windows need all of them",
    )
}

fn no_infinity(table: &Mat, what: &str) -> Result<()> {
    at_none(table, what, f64::is_infinite, "the value is infinite; leave it empty where it is not known")
}

/// Errs at the first value that is `wrong`.
fn at_none(table: &Mat, what: &str, wrong: impl Fn(f64) -> bool, reason: &str) -> Result<()> {
    match table.as_slice().iter().position(|v| wrong(*v)) {
        None => Ok(()),
        Some(at) => {
            let place = format!("row {} of {what} {}", at / table.cols() + 1, at % table.cols() + 1);
            Err(Error::data(place, reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_the_most_recent_value_first() {
        let series = Mat::from_fn(6, 2, |t, d| (10 * d + t) as f64);
        let inputs = Mat::from_fn(6, 2, |t, e| (100 * (e + 1) + t) as f64);
        let lags = Lags::of_series(&[2, 1]).with_exogenous([0, 3]).with_exogenous([1]);
        assert_eq!((lags.longest(), lags.width(), lags.own()), (3, 6, 3));
        let found = lags.table(&series, Some(&inputs)).unwrap();
        assert_eq!(found.x.shape(), "3 × 6");
        assert_eq!(found.x.row(0), [2.0, 1.0, 12.0, 103.0, 100.0, 202.0]);
        assert_eq!(found.x.row(2), [4.0, 3.0, 14.0, 105.0, 102.0, 204.0]);
        assert_eq!(found.y.row(0), [3.0, 13.0]);
        assert_eq!(lags.columns()[4], Source::Exogenous(0, 3));
    }

    #[test]
    fn what_has_no_window_is_named() {
        let series = Mat::column(&[1.0, 2.0, 3.0]);
        let message = |lags: &Lags, s: &Mat, u: Option<&Mat>| lags.table(s, u).unwrap_err().to_string();
        assert!(message(&Lags::new(3), &series, None).contains("longest lag, 3"));
        assert!(message(&Lags::new(0), &series, None).contains("at least one"));
        assert!(message(&Lags::of_series(&[1, 1]), &series, None).contains("columns of the series"));
        let holed = Mat::column(&[1.0, f64::NAN, 3.0]);
        assert!(message(&Lags::new(1), &holed, None).contains("row 2 of series 1"));
        let lags = Lags::new(1).with_exogenous([0]);
        assert!(message(&lags, &series, None).contains("found none"));
        assert!(message(&lags, &series, Some(&Mat::zeros(2, 1))).contains("as many as the series"));
        assert!(message(&lags, &series, Some(&holed)).contains("exogenous input 1"));
        assert!(message(&Lags::new(1), &series, Some(&Mat::zeros(3, 1))).contains("expected 0"));
    }
}
