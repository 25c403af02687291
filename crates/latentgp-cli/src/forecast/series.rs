//! The series: columns of numbers, exogenous inputs that may reach beyond them, and dates. Values may be missing.
//!
//! Rows at the end of SERIES whose targets are all empty are the future: they may have dates and exogenous
//! values. The rows of `--future FILE` take their place.

use super::{Args, dates};
use crate::failure::{Failure, Outcome};
use latentgp::Mat;
use latentgp::data::table::{Column, Table};

/// Windows need two targets after them for a fit.
pub const LEAST: usize = 2;
/// As a target: all columns of numbers.
const ALL: &str = "all";

/// Series in time.
pub struct Series {
    /// Where they come from.
    pub source: String,
    /// The names of the targets.
    pub names: Vec<String>,
    /// T×D, NaN where a value is missing.
    pub values: Mat,
    /// The names of the exogenous inputs.
    pub inputs: Vec<String>,
    /// Their values: T rows, and as many more as there are.
    pub exogenous: Option<Mat>,
    /// Rows below the last target, for which there are dates or exogenous values.
    pub ahead: usize,
    /// The name of the column of dates, and what it says; it may end before the forecast does.
    pub dates: Option<(String, Vec<String>)>,
    /// What was done to rows that were not in order.
    pub notes: Vec<String>,
}

impl Series {
    /// Reads targets, exogenous inputs and dates.
    pub fn read(args: &Args) -> Outcome<Self> {
        let table = Table::read(&args.series).map_err(Failure::data)?;
        let date = date_column(&table, args.date.as_deref())?;
        let mut notes = Vec::new();
        let names = targets(&table, args, date.as_deref())?;
        let table = match &date {
            Some(name) => in_order(table, name, &names, &mut notes)?,
            None => table,
        };
        let all = numbers(&table, &names)?;
        let rows =
            (0..all.rows()).rev().find(|&i| all.row(i).iter().any(|v| !v.is_nan())).map_or(0, |i| i + 1);
        let values = all.slice_rows(0, rows);
        check(&table, &values, &names, f64::is_infinite, "leave it empty where it is not known")?;
        let future = args.future.as_ref().map(|spec| Table::read(spec).map_err(Failure::data)).transpose()?;
        let exogenous = match &args.exogenous[..] {
            [] => None,
            inputs => Some(exogenous(&table, future.as_ref(), inputs, rows)?),
        };
        let dates = date.map(|name| dates_in(&table, future.as_ref(), name, rows)).transpose()?;
        let ahead = match (&exogenous, &future) {
            (Some(inputs), _) => inputs.rows() - rows,
            (None, Some(future)) => future.rows(),
            (None, None) => all.rows() - rows,
        };
        let inputs = args.exogenous.clone();
        Ok(Series {
            source: table.source().to_string(),
            names,
            values,
            inputs,
            exogenous,
            ahead,
            dates,
            notes,
        })
    }

    /// The date of each of the rows; dates that are evenly apart go on beyond the last that is given.
    pub fn dates_of(&self, rows: std::ops::Range<usize>) -> Option<(&str, Vec<String>)> {
        let (name, given) = self.dates.as_ref()?;
        let missing = rows.end.saturating_sub(given.len());
        let mut all = given.clone();
        all.extend(dates::after(given, missing).unwrap_or_else(|| vec![String::new(); missing]));
        Some((name, all[rows].to_vec()))
    }

    /// What is to be said of the dates when rows up to `end` are forecast.
    pub fn dates_note(&self, end: usize) -> Option<String> {
        let (name, given) = self.dates.as_ref()?;
        let missing = end.saturating_sub(given.len());
        (missing > 0 && dates::after(given, missing).is_none()).then(|| {
            format!(
                "column `{name}` has no even steps of years, months or days: dates to come are left empty"
            )
        })
    }

    /// Errs unless there are enough rows for windows of that length and something to learn from.
    pub fn check_length(&self, longest: usize) -> Outcome {
        match self.values.rows() {
            rows if rows < longest + LEAST => Err(Failure::data(format!(
                "{}: expected at least {} values, the lag of {longest} and {LEAST} to learn from, found {rows}; give \
                 more of them or a shorter --lag",
                self.source,
                longest + LEAST,
            ))),
            _ => Ok(()),
        }
    }

    /// Errs where all values of a target in these rows are one number.
    pub fn check_varies(&self, rows: std::ops::Range<usize>) -> Outcome {
        for (d, name) in self.names.iter().enumerate() {
            let column = self.values.col(d);
            let values = &column[rows.clone()];
            let (lo, hi) = values.iter().fold((f64::MAX, f64::MIN), |(lo, hi), v| (lo.min(*v), hi.max(*v)));
            if lo > hi {
                return Err(Failure::data(format!(
                    "{}, column `{name}`: all {} values to learn from are missing",
                    self.source,
                    values.len()
                )));
            }
            if hi - lo <= 8.0 * f64::EPSILON * lo.abs().max(hi.abs()) {
                return Err(Failure::data(format!(
                    "{}, column `{name}`: all {} values to learn from are {lo}: there is nothing to learn{}",
                    self.source,
                    values.len(),
                    if self.names.len() > 1 { "; leave it out of --target" } else { "" }
                )));
            }
        }
        Ok(())
    }

    /// Errs unless the exogenous inputs are known up to row `end`, which is not among them.
    pub fn check_future(&self, end: usize) -> Outcome {
        let Some(inputs) = self.exogenous.as_ref().filter(|u| u.rows() < end) else { return Ok(()) };
        Err(Failure::data(format!(
            "{}: the forecast needs {} up to row {}, found up to row {}; put the values to come below the \
             series with the target left empty, or into --future FILE, or choose a shorter --horizon or longer delays \
             by --exogenous-lag",
            self.source,
            self.inputs.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", "),
            end,
            inputs.rows(),
        )))
    }
}

fn date_column(table: &Table, asked: Option<&str>) -> Outcome<Option<String>> {
    match asked {
        Some(name) => Ok(Some(table.get(name).map_err(Failure::data)?.name.clone())),
        None => Ok(table.iter().find(|c| c.as_numbers().is_none()).map(|c| c.name.clone())),
    }
}

/// Rows by their dates, the oldest first, and a row of missing values for each date that is missing before the last target.
///
/// Errs where two rows have the same date.
fn in_order(table: Table, name: &str, targets: &[String], notes: &mut Vec<String>) -> Outcome<Table> {
    let dates = table.text(name).map_err(Failure::data)?;
    let source = table.source().to_string();
    let mut sorted = table;
    match dates::order(&dates) {
        dates::Order::Sorted => {}
        dates::Order::Double(a, b) => {
            return Err(Failure::data(format!(
                "{source}, column `{name}`: rows {} and {} are both of {}; leave one of them out",
                a + 1,
                b + 1,
                dates[a]
            )));
        }
        dates::Order::Unsorted(rows) => {
            let rows: Vec<Option<usize>> = rows.into_iter().map(Some).collect();
            sorted = sorted.rearranged(&rows);
            notes.push(format!(
                "{source}, column `{name}`: rows were not in the order of their dates; they are sorted, the oldest first"
            ));
        }
    }
    let dates = sorted.text(name).map_err(Failure::data)?;
    let Some(grid) = dates::Grid::of(&dates).filter(|grid| grid.missing() > 0) else { return Ok(sorted) };
    let values = numbers(&sorted, targets)?;
    let seen = |row: &Option<usize>| row.is_some_and(|i| values.row(i).iter().any(|v| !v.is_nan()));
    let rows = grid.rows();
    let last = rows.iter().rposition(seen).unwrap_or(0);
    // What comes after the last target is the future, of which no row may be made up.
    let kept = |(k, row): (usize, Option<usize>)| (k < last || row.is_some()).then_some((grid.date(k), row));
    let (all, rows): (Vec<String>, Vec<Option<usize>>) =
        rows.into_iter().enumerate().filter_map(kept).unzip();
    let missing = rows.iter().filter(|row| row.is_none()).count();
    if missing == 0 {
        return Ok(sorted);
    }
    let filled = sorted.rearranged(&rows);
    let columns = filled.iter().map(|column| match column.name == name {
        true => Column::words(name, &all),
        false => column.clone(),
    });
    let widest = dates::widest_gap(&rows)
        .map_or(String::new(), |(a, b)| format!(", most between {} and {}", all[a], all[b]));
    notes.push(format!(
        "{source}, column `{name}`: {}{widest}; their values are taken for missing",
        match missing {
            1 => "1 date is left out".into(),
            n => format!("{n} dates are left out"),
        }
    ));
    Table::new(source, columns.collect()).map_err(Failure::data)
}

/// The targets that were asked for, or the only column of numbers that is nothing else.
fn targets(table: &Table, args: &Args, date: Option<&str>) -> Outcome<Vec<String>> {
    let other = |name: &str| Some(name) == date || args.exogenous.iter().any(|e| e == name);
    let left: Vec<String> =
        table.numeric_columns().into_iter().filter(|n| !other(n)).map(String::from).collect();
    let source = table.source();
    let chosen = match (&args.target[..], &left[..]) {
        ([all], _) if all == ALL && !table.columns().contains(&ALL) => left,
        ([], [_]) => left,
        ([], []) => return Err(Failure::data(format!("{source}: has no column of numbers to forecast"))),
        ([], several) => {
            return Err(Failure::usage(format!(
                "{source} has {} columns of numbers; choose with --target, one or several, or `--target {ALL}`, and name \
                 dates that are numbers by --date: {}",
                several.len(),
                several.join(", ")
            )));
        }
        (asked, _) => asked.to_vec(),
    };
    if chosen.is_empty() {
        return Err(Failure::data(format!("{source}: has no column of numbers to forecast")));
    }
    for (i, name) in chosen.iter().enumerate() {
        if other(name) || chosen[..i].contains(name) {
            return Err(Failure::usage(format!(
                "--target: `{name}` is named twice; a column is one target, one exogenous input or the date"
            )));
        }
    }
    Ok(chosen)
}

fn numbers(table: &Table, names: &[String]) -> Outcome<Mat> {
    let words = names.iter().find(|n| table.get(n).is_ok_and(|c| c.as_numbers().is_none()));
    if let Some(name) = words {
        return Err(Failure::data(format!(
            "{}, column `{name}`: expected numbers, found text such as `{}`",
            table.source(),
            table.get(name).map_err(Failure::data)?.text(0)
        )));
    }
    table.numeric(names).map_err(Failure::data)
}

/// Errs at the first value that is wrong: missing or infinite.
fn check(
    table: &Table,
    values: &Mat,
    names: &[String],
    wrong: impl Fn(f64) -> bool,
    advice: &str,
) -> Outcome {
    match values.as_slice().iter().position(|v| wrong(*v)) {
        None => Ok(()),
        Some(at) => Err(Failure::data(format!(
            "{}, row {}, column `{}`: the value is {}: {advice}",
            table.source(),
            at / names.len() + 1,
            names[at % names.len()],
            if values.as_slice()[at].is_nan() { "missing" } else { "infinite" }
        ))),
    }
}

/// The exogenous inputs of the series and of what follows, up to the first row that lacks one.
fn exogenous(table: &Table, future: Option<&Table>, names: &[String], rows: usize) -> Outcome<Mat> {
    let own = numbers(table, names)?;
    let known = own.slice_rows(0, rows);
    check(table, &known, names, f64::is_infinite, "leave it empty where it is not known")?;
    let after = match future {
        None => own.slice_rows(rows, own.rows()),
        Some(file) => {
            let found = numbers(file, names)?;
            check(
                file,
                &found,
                names,
                |v| !v.is_finite(),
                "the inputs of what is forecast must all be known",
            )?;
            found
        }
    };
    let seen = (0..after.rows()).take_while(|&i| after.row(i).iter().all(|v| v.is_finite())).count();
    let all: Vec<&[f64]> = (0..rows).map(|i| known.row(i)).chain((0..seen).map(|i| after.row(i))).collect();
    Ok(Mat::from_rows(&all))
}

fn dates_in(
    table: &Table,
    future: Option<&Table>,
    name: String,
    rows: usize,
) -> Outcome<(String, Vec<String>)> {
    let texts = |of: &Column| (0..of.len()).map(|i| of.text(i)).collect::<Vec<_>>();
    let mut all = texts(table.get(&name).map_err(Failure::data)?);
    if let Some(file) = future {
        all.truncate(rows);
        if let Ok(more) = file.get(&name) {
            all.extend(texts(more));
        }
    }
    Ok((name, all))
}
