//! Tables: what every command calls DATA.
//!
//! A table has named columns of numbers or of words, all of one length. It comes from CSV or TSV (with
//! a header or without, see [`csv`](crate::data::csv)), `.npy`, `.npz:KEY`, `.mat:KEY` (MAT v5),
//! `.parquet` (with the cargo feature `parquet`) or, as `-`, from CSV on standard input. A missing
//! value is NaN; an infinity is an error. Columns without a name are called `0`, `1`, …

use crate::data::csv::{self, CsvOptions};
use crate::data::names::{excerpt, list, nearest};
use crate::data::words::Words;
use crate::data::{mat5, npy};
use crate::error::{Error, Result};
use crate::mat::Mat;
use std::collections::HashMap;
use std::io::{self, Read};
use std::path::Path;

/// A column of a [`Table`].
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, or its number from 0 where the file has no names.
    pub name: String,
    /// Its cells.
    pub values: Values,
}

/// The cells of a [`Column`].
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Numbers; NaN where a value is missing.
    Numbers(Vec<f64>),
    /// Words; empty where one is missing.
    Words(Words),
}

impl Column {
    /// A column of numbers.
    pub fn numbers(name: impl Into<String>, values: Vec<f64>) -> Self {
        Column { name: name.into(), values: Values::Numbers(values) }
    }

    /// A column of words.
    pub fn words<S: AsRef<str>>(name: impl Into<String>, words: impl IntoIterator<Item = S>) -> Self {
        Column { name: name.into(), values: Values::Words(words.into_iter().collect()) }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match &self.values {
            Values::Numbers(v) => v.len(),
            Values::Words(w) => w.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers, if it is a column of numbers.
    pub fn as_numbers(&self) -> Option<&[f64]> {
        match &self.values {
            Values::Numbers(v) => Some(v),
            Values::Words(_) => None,
        }
    }

    /// A cell as text: a whole number without a decimal point, a missing value as nothing.
    pub fn text(&self, row: usize) -> String {
        match &self.values {
            Values::Numbers(v) => print(v[row]),
            Values::Words(w) => w.get(row).to_string(),
        }
    }
}

/// The shortest digits that read back as the same number; nothing for NaN.
pub(crate) fn print(value: f64) -> String {
    if value.is_nan() {
        return String::new();
    }
    let mut digits = format!("{value:?}");
    if digits.ends_with(".0") {
        digits.truncate(digits.len() - 2);
    }
    digits
}

/// Named columns of equal length.
///
/// ```
/// use latentgp::data::table::Table;
/// let mut table = Table::from_csv("x,y,class\n1,2.5,a\n3,,b\n".as_bytes(), "points")?;
/// let labels = table.take("class")?;
/// assert_eq!(labels.text(1), "b");
/// let y = table.to_mat()?;
/// assert_eq!(y.row(0), &[1.0, 2.5]);
/// assert!(y[(1, 1)].is_nan());
/// # Ok::<(), latentgp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    source: String,
    columns: Vec<Column>,
}

impl Table {
    /// Puts columns together; errs when their lengths differ or two have the same name.
    pub fn new(source: impl Into<String>, columns: Vec<Column>) -> Result<Self> {
        let source = source.into();
        let mut seen = HashMap::new();
        for (j, c) in columns.iter().enumerate() {
            if c.len() != columns[0].len() {
                let what = format!("{source}, column `{}`", c.name);
                return Err(Error::shape(what, format!("{} rows", columns[0].len()), c.len()));
            }
            if let Some(i) = seen.insert(c.name.as_str(), j) {
                let reason = format!(
                    "columns {} and {} are both called `{}`; rename one of them",
                    i + 1,
                    j + 1,
                    c.name
                );
                return Err(Error::data(source, reason));
            }
        }
        Ok(Table { source, columns })
    }

    /// A table of the columns of a matrix; errs when there is not one name a column.
    pub fn from_mat<S: AsRef<str>>(source: impl Into<String>, names: &[S], values: &Mat) -> Result<Self> {
        if names.len() != values.cols() {
            return Err(Error::shape("column names", values.cols(), names.len()));
        }
        let columns = names.iter().enumerate().map(|(j, n)| Column::numbers(n.as_ref(), values.col(j)));
        Table::new(source, columns.collect())
    }

    /// Reads `PATH`, `PATH.npz:KEY`, `PATH.mat:KEY` or `-` (CSV on standard input).
    ///
    /// The format follows from the name; what is none of the others is read as CSV. Errs when the file
    /// cannot be read, is damaged, or has no rows, and at the first infinity, with its row and column.
    pub fn read(spec: &str) -> Result<Self> {
        if spec == "-" {
            return Table::from_csv(io::stdin().lock(), "standard input");
        }
        let (path, key) = split_key(spec);
        match extension(path).as_str() {
            "npy" => npy::read_npy(path)?.checked(),
            "npz" => npy::read_npz(path, key)?.checked(),
            "mat" => mat5::read(path, key)?.checked(),
            "parquet" | "pq" => read_parquet(path)?.checked(),
            _ => Table::from_csv(open(path)?, path),
        }
    }

    /// The file that [`read`](Table::read) opens for `spec`; none for standard input.
    pub fn file(spec: &str) -> Option<&Path> {
        (spec != "-").then(|| Path::new(split_key(spec).0))
    }

    /// Reads CSV whose delimiter and header are detected; `name` is for messages.
    ///
    /// The rules, and how to set delimiter and header: [`csv`](crate::data::csv).
    pub fn from_csv(reader: impl Read, name: &str) -> Result<Self> {
        csv::read(reader, name, CsvOptions::default())
    }

    fn checked(self) -> Result<Self> {
        if self.columns.is_empty() || self.rows() == 0 {
            return Err(Error::data(self.source, "has no rows; at least one is needed"));
        }
        for c in &self.columns {
            if let Some(i) = c.as_numbers().and_then(|v| v.iter().position(|x| x.is_infinite())) {
                let what = format!("{}, row {}, column `{}`", self.source, i + 1, c.name);
                return Err(Error::data(what, "is infinite; write NaN where a value is missing"));
            }
        }
        Ok(self)
    }

    /// Where the table came from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }

    /// The names of all columns, in order.
    pub fn columns(&self) -> Vec<&str> {
        self.columns.iter().map(|c| c.name.as_str()).collect()
    }

    /// The names of the columns of numbers, in order.
    pub fn numeric_columns(&self) -> Vec<&str> {
        self.columns.iter().filter(|c| c.as_numbers().is_some()).map(|c| c.name.as_str()).collect()
    }

    /// A column; an unknown name errs with the names there are and the nearest.
    pub fn get(&self, name: &str) -> Result<&Column> {
        Ok(&self.columns[self.position(name)?])
    }

    /// Every column, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter()
    }

    /// The columns listed as an N×D matrix; errs when one is unknown or holds words.
    pub fn numeric<S: AsRef<str>>(&self, names: &[S]) -> Result<Mat> {
        let columns: Vec<&[f64]> = names.iter().map(|n| self.values(n.as_ref())).collect::<Result<_>>()?;
        Ok(Mat::from_fn(self.rows(), columns.len(), |i, j| columns[j][i]))
    }

    /// Every column as an N×D matrix; errs when one holds words.
    pub fn to_mat(&self) -> Result<Mat> {
        self.numeric(&self.columns())
    }

    /// The numbers of a column; errs when it is unknown or holds words.
    pub fn column(&self, name: &str) -> Result<Vec<f64>> {
        self.values(name).map(<[f64]>::to_vec)
    }

    /// A column as text, of whichever kind it is: `0`, `1`, `2` and `a`, `b`, `c` are labels alike.
    pub fn text(&self, name: &str) -> Result<Vec<String>> {
        let column = self.get(name)?;
        Ok((0..column.len()).map(|i| column.text(i)).collect())
    }

    /// The rows listed, in that order; `None` is a row in which everything is missing.
    ///
    /// # Panics
    /// When a row is none of the table.
    pub fn rearranged(&self, rows: &[Option<usize>]) -> Table {
        let columns = self.columns.iter().map(|column| match &column.values {
            Values::Numbers(v) => Column::numbers(
                column.name.clone(),
                rows.iter().map(|r| r.map_or(f64::NAN, |i| v[i])).collect(),
            ),
            Values::Words(w) => {
                Column::words(column.name.clone(), rows.iter().map(|r| r.map_or("", |i| w.get(i))))
            }
        });
        Table { source: self.source.clone(), columns: columns.collect() }
    }

    /// Removes a column, such as labels or an id, and returns it.
    pub fn take(&mut self, name: &str) -> Result<Column> {
        let j = self.position(name)?;
        Ok(self.columns.remove(j))
    }

    fn values(&self, name: &str) -> Result<&[f64]> {
        let column = self.get(name)?;
        column.as_numbers().ok_or_else(|| {
            let found = (0..column.len()).map(|i| column.text(i)).find(|t| !t.is_empty()).unwrap_or_default();
            Error::data(
                format!("{}, column `{name}`", self.source),
                format!("expected numbers, found text such as `{}`; leave this column out", excerpt(&found)),
            )
        })
    }

    fn position(&self, name: &str) -> Result<usize> {
        self.columns.iter().position(|c| c.name == name).ok_or_else(|| {
            let names = self.columns();
            let hint = nearest(name, &names).map_or("; it".into(), |n| format!("; did you mean `{n}`? It"));
            Error::data(self.source.as_str(), format!("has no column `{name}`{hint} has {}", list(&names)))
        })
    }
}

#[cfg(feature = "parquet")]
fn read_parquet(path: &str) -> Result<Table> {
    crate::data::parquet::read(path)
}

#[cfg(not(feature = "parquet"))]
fn read_parquet(path: &str) -> Result<Table> {
    Err(Error::data(
        path,
        "this program was built without the feature `parquet`; convert the file to CSV or .npy",
    ))
}

/// `a.npz:KEY` is the file `a.npz` and the key `KEY`; a name that exists as it is has no key.
pub(crate) fn split_key(spec: &str) -> (&str, Option<&str>) {
    if Path::new(spec).exists() {
        return (spec, None);
    }
    let lower = spec.to_ascii_lowercase();
    match [".npz:", ".mat:"].iter().filter_map(|e| lower.find(e)).min() {
        Some(at) => (&spec[..at + 4], Some(&spec[at + 5..]).filter(|k| !k.is_empty())),
        None => (spec, None),
    }
}

pub(crate) fn extension(path: &str) -> String {
    Path::new(path).extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

pub(crate) fn open(path: &str) -> Result<std::fs::File> {
    std::fs::File::open(path).map_err(|e| io_error(path, e))
}

pub(crate) fn io_error(path: &str, e: io::Error) -> Error {
    let reason = match e.kind() {
        io::ErrorKind::UnexpectedEof => "ends too early: the file is truncated or damaged".to_string(),
        _ => e.to_string(),
    };
    Error::Io { path: path.to_string(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::new(
            "t",
            vec![
                Column::numbers("year", vec![1949.0, -0.5, f64::NAN]),
                Column::words("class", ["a", "", "b"]),
                Column::numbers("passengers in thousands", vec![1e-7, 1e20, 3.0]),
            ],
        )
        .unwrap()
    }

    #[test]
    fn columns_by_name() {
        let t = table();
        assert_eq!((t.rows(), t.source()), (3, "t"));
        assert_eq!(t.numeric_columns(), ["year", "passengers in thousands"]);
        let m = t.numeric(&["passengers in thousands", "year"]).unwrap();
        assert_eq!(m.row(1), &[1e20, -0.5]);
        assert_eq!(t.text("year").unwrap(), ["1949", "-0.5", ""]);
        assert_eq!(t.text("class").unwrap(), ["a", "", "b"]);
        assert_eq!(t.text("passengers in thousands").unwrap(), ["1e-7", "1e20", "3"]);
        assert_eq!(t.iter().count(), 3);
    }

    #[test]
    fn a_column_taken_is_gone() {
        let mut t = table();
        assert_eq!(t.take("class").unwrap().len(), 3);
        assert_eq!(t.columns(), ["year", "passengers in thousands"]);
        assert_eq!(t.to_mat().unwrap().cols(), 2);
        assert!(t.take("class").is_err());
    }

    #[test]
    fn rows_are_rearranged() {
        let t = table().rearranged(&[Some(2), None, Some(0)]);
        assert_eq!(t.text("year").unwrap(), ["", "", "1949"]);
        assert_eq!(t.text("class").unwrap(), ["b", "", "a"]);
        assert_eq!((t.rows(), t.source()), (3, "t"));
    }

    #[test]
    fn an_unknown_column_names_those_there_are() {
        let near = table().column("yaer").unwrap_err().to_string();
        assert!(!near.contains("did you mean"), "two letters of four differ: {near}");
        let near = table().column("yeer").unwrap_err().to_string();
        assert_eq!(
            near,
            "t: has no column `yeer`; did you mean `year`? It has `year`, `class`, `passengers in thousands`"
        );
        let near = table().column("passengers").unwrap_err().to_string();
        assert!(near.contains("did you mean `passengers in thousands`?"), "{near}");
        let far = table().column("zzz").unwrap_err().to_string();
        assert_eq!(far, "t: has no column `zzz`; it has `year`, `class`, `passengers in thousands`");
    }

    #[test]
    fn words_are_no_numbers() {
        let e = table().to_mat().unwrap_err().to_string();
        assert_eq!(e, "t, column `class`: expected numbers, found text such as `a`; leave this column out");
    }

    #[test]
    fn lengths_and_names_are_checked() {
        let two = |a: &str, n| vec![Column::numbers("a", vec![0.0; 2]), Column::numbers(a, vec![0.0; n])];
        assert!(Table::new("t", two("b", 2)).is_ok());
        assert!(matches!(Table::new("t", two("b", 3)), Err(Error::Shape { .. })));
        let twice = Table::new("t", two("a", 2)).unwrap_err().to_string();
        assert!(twice.contains("columns 1 and 2") && twice.contains("`a`"), "{twice}");
        assert!(Table::from_mat("t", &["a"], &Mat::zeros(2, 2)).is_err());
    }

    #[test]
    fn infinities_and_empty_tables_are_refused() {
        let t = Table::new("t", vec![Column::numbers("a", vec![0.0, f64::NEG_INFINITY])]).unwrap();
        let e = t.checked().unwrap_err().to_string();
        assert!(e.starts_with("t, row 2, column `a`: is infinite"), "{e}");
        assert!(Table::new("t", vec![]).unwrap().checked().is_err());
    }

    #[test]
    fn keys_are_split_off() {
        assert_eq!(split_key("no/a.npz:Y"), ("no/a.npz", Some("Y")));
        assert_eq!(split_key("no/a.MAT:data"), ("no/a.MAT", Some("data")));
        assert_eq!(split_key("no/a.npz:a:b"), ("no/a.npz", Some("a:b")));
        assert_eq!(split_key("no/a.npz:"), ("no/a.npz", None));
        assert_eq!(split_key("C:\\a.csv"), ("C:\\a.csv", None));
        assert_eq!((Table::file("no/a.npz:Y"), Table::file("-")), (Some(Path::new("no/a.npz")), None));
    }
}
