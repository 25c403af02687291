//! DATA to matrices: which columns are numbers, labels or ids, and how new data fit an old model.

use crate::failure::{Failure, Outcome};
use latentgp::Mat;
use latentgp::data::table::{Column, Table};
use latentgp::file::Labels;

/// Which columns of a table are used, and for what.
#[derive(Debug, Clone, Default)]
pub struct Choice<'a> {
    /// A column, or a file, with the class of each row.
    pub labels: Option<&'a str>,
    /// A column that identifies rows.
    pub id: Option<&'a str>,
    /// Only these columns.
    pub columns: &'a [String],
    /// Not these columns.
    pub exclude: &'a [String],
    /// Columns that the prior of X asks for.
    pub known: &'a [String],
}

/// A table to learn from.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Where they come from.
    pub source: String,
    /// The numbers.
    pub y: Mat,
    /// Their names.
    pub columns: Vec<String>,
    /// The labels, if there are any.
    pub labels: Option<Labels>,
    /// The columns that the prior of X asks for.
    pub known: Option<Mat>,
}

/// Errs where an option lists a column twice.
pub fn once(option: &str, names: &[String]) -> Outcome {
    match names.iter().enumerate().find(|(k, name)| names[..*k].contains(name)) {
        Some((_, name)) => {
            Err(Failure::usage(format!("{option}: the column `{name}` is listed twice; name it once")))
        }
        None => Ok(()),
    }
}

/// Reads DATA and takes out what is not to be learnt from.
pub fn choose(spec: &str, choice: &Choice<'_>) -> Outcome<Chosen> {
    once("--columns", choice.columns)?;
    once("--exclude", choice.exclude)?;
    for (option, other) in [("--labels", choice.labels), ("--id", choice.id)] {
        if let Some(both) = other.filter(|name| choice.columns.iter().any(|c| c == name)) {
            return Err(Failure::usage(format!(
                "--columns: `{both}` is that of {option}, which is not learnt from; leave it out of one of the two"
            )));
        }
    }
    let mut table = Table::read(spec).map_err(Failure::data)?;
    let labels = choice.labels.map(|name| labels(&mut table, name)).transpose()?;
    for name in choice.exclude.iter().map(String::as_str).chain(choice.id) {
        table.take(name).map_err(Failure::data)?;
    }
    let known = match choice.known {
        [] => None,
        names => Some(table.numeric(names).map_err(Failure::data)?),
    };
    for name in choice.known {
        table.take(name).map_err(Failure::data)?;
    }
    let columns: Vec<String> = match choice.columns {
        [] => table.columns().iter().map(|c| c.to_string()).collect(),
        chosen => chosen.to_vec(),
    };
    if columns.is_empty() {
        return Err(Failure::data(format!("{spec}: no column of numbers is left")));
    }
    let numbers = table.numeric_columns();
    if let Some(words) = columns.iter().find(|c| table.get(c).is_ok() && !numbers.contains(&c.as_str())) {
        return Err(Failure::data(format!(
            "{}, column `{words}`: expected numbers, found text; leave it out with `--exclude {words}` \
             or make it the label with `--labels {words}`",
            table.source()
        )));
    }
    let y = table.numeric(&columns).map_err(Failure::data)?;
    let empty = |j: &usize| y.rows() > 0 && (0..y.rows()).all(|i| y[(i, *j)].is_nan());
    if let Some(column) = (0..y.cols()).find(empty).map(|j| &columns[j]) {
        return Err(Failure::data(format!(
            "{}, column `{column}`: every cell is missing; leave it out with `--exclude {column}`",
            table.source()
        )));
    }
    Ok(Chosen { source: table.source().into(), y, columns, labels, known })
}

/// The labels: a column of the table, which is taken out of it, or a file with one column.
fn labels(table: &mut Table, name: &str) -> Outcome<Labels> {
    if table.columns().contains(&name) {
        let column = table.take(name).map_err(Failure::data)?;
        return Ok(Labels { name: name.into(), of: texts(&column) });
    }
    let is_file = std::path::Path::new(name).exists() || name.contains(".npz") || name.contains(".mat");
    if !is_file {
        // The table's own message names its columns and the nearest of them.
        let unknown = table.get(name).err().map(|e| e.to_string()).unwrap_or_default();
        return Err(Failure::data(format!("{unknown}; nor is there a file of that name")));
    }
    let file = Table::read(name).map_err(Failure::data)?;
    let columns = file.columns();
    // MATLAB keeps lists as rows: 1×N is a list of labels where N rows want one each.
    let unnamed = columns.iter().enumerate().all(|(j, name)| *name == j.to_string());
    if unnamed && file.rows() == 1 && columns.len() > 1 && columns.len() == table.rows() {
        return Ok(Labels { name: "label".into(), of: file.iter().map(|c| c.text(0)).collect() });
    }
    let [only] = columns[..] else {
        return Err(Failure::data(format!("{name}: labels are one column, this file has {}", columns.len())));
    };
    if file.rows() != table.rows() {
        return Err(Failure::data(format!(
            "{name}: expected {} labels, one for each row of {}, found {}",
            table.rows(),
            table.source(),
            file.rows()
        )));
    }
    Ok(Labels { name: "label".into(), of: texts(file.get(only).map_err(Failure::data)?) })
}

fn texts(column: &Column) -> Vec<String> {
    (0..column.len()).map(|i| column.text(i)).collect()
}

/// Reads DATA for a model of the columns given; also the id column, to be put in front of results.
///
/// Columns are taken by name; where DATA or the model has no names, by position.
pub fn for_model(spec: &str, columns: &[String], id: Option<&str>) -> Outcome<(Mat, Option<Column>)> {
    let mut table = Table::read(spec).map_err(Failure::data)?;
    let id = id_column(&mut table, id, columns)?;
    Ok((matched(&table, columns)?.0, id))
}

/// The column that identifies rows: a copy where the model needs it as well, else taken out of the table.
pub fn id_column<'a>(
    table: &mut Table,
    id: Option<&str>,
    needed: impl IntoIterator<Item = &'a String>,
) -> Outcome<Option<Column>> {
    let Some(name) = id else { return Ok(None) };
    let column = match needed.into_iter().any(|n| n == name) {
        true => table.get(name).cloned(),
        false => table.take(name),
    };
    column.map(Some).map_err(Failure::data)
}

/// The columns that a model needs, and whether they were found by their names.
pub fn matched(table: &Table, columns: &[String]) -> Outcome<(Mat, bool)> {
    table.matched(columns).map_err(Failure::data)
}
