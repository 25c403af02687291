//! The series: one column of numbers without gaps, and the words beside it.

use crate::failure::{Failure, Outcome};
use latentgp::data::table::{Column, Table};

/// Windows need two targets after them for a fit.
pub const LEAST: usize = 2;

/// A series in time.
pub struct Series {
    pub name: String,
    pub values: Vec<f64>,
    /// Dates, or whatever words there are.
    pub dates: Option<Column>,
}

impl Series {
    /// Reads the column named, or the only one of numbers.
    pub fn read(spec: &str, column: Option<&str>, lag: usize) -> Outcome<Self> {
        let table = Table::read(spec).map_err(Failure::data)?;
        let numbers = table.numeric_columns();
        let name = match (column, &numbers[..]) {
            (Some(name), _) => name.to_string(),
            (None, [only]) => only.to_string(),
            (None, []) => return Err(Failure::data(format!("{}: has no column of numbers", table.source()))),
            (None, several) => {
                return Err(Failure::usage(format!(
                    "{} has {} columns of numbers; choose one with --column: {}",
                    table.source(),
                    several.len(),
                    several.join(", ")
                )));
            }
        };
        let values = table.column(&name).map_err(Failure::data)?;
        if let Some(row) = values.iter().position(|v| v.is_nan()) {
            return Err(Failure::data(format!(
                "{}, row {row} (from 0), column `{name}`: the value is missing; a series has no gaps, fill it in",
                table.source()
            )));
        }
        if values.len() < lag + LEAST {
            return Err(Failure::data(format!(
                "{}: expected at least {} values, the lag of {lag} and {LEAST} to learn from, found {}; give more \
                 of them or a shorter --lag",
                table.source(),
                lag + LEAST,
                values.len()
            )));
        }
        let dates = table.iter().find(|c| c.as_numbers().is_none()).cloned();
        Ok(Series { name, values, dates })
    }
}
