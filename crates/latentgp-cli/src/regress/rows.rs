//! DATA as inputs, their errors and targets.

use super::Args;
use super::job::Job;
use crate::data::once;
use crate::failure::{Failure, Outcome};
use crate::words::{count, short};
use latentgp::Mat;
use latentgp::data::table::Table;
use latentgp::file::TrainedRegression;
use latentgp::likelihood::encode;
use latentgp::model::{LARGEST, Regressor, beyond_range};
use latentgp::recipe::Data;

/// In the place of a column of standard deviations: they are alike, and learnt.
pub const LEARN: &str = "learn";

/// Rows to learn from, or to be scored on.
#[derive(Clone)]
pub struct Rows {
    pub x: Mat,
    /// Standard deviations of the inputs, where there are any.
    pub std: Option<Mat>,
    /// Targets; classes are their numbers.
    pub y: Mat,
    pub inputs: Vec<String>,
    pub input_std: Vec<Option<String>>,
    pub targets: Vec<String>,
    pub classes: Vec<String>,
    /// What the user should know of them.
    pub notes: Vec<String>,
}

impl Rows {
    /// Reads the rows to learn from.
    pub fn read(args: &Args, spec: &str, job: &Job) -> Outcome<Self> {
        let mut table = Table::read(spec).map_err(Failure::data)?;
        for (option, names) in
            [("--target", &args.target), ("--columns", &args.columns), ("--exclude", &args.exclude)]
        {
            once(option, names)?;
        }
        if let Some(both) = args.columns.iter().find(|c| args.target.contains(c)) {
            return Err(Failure::usage(format!(
                "--columns: `{both}` is a target, which the inputs are to predict; leave it out of one of the two"
            )));
        }
        let (y, classes) = observed(&table, &args.target, job)?;
        for name in args.target.iter().chain(&args.exclude).map(String::as_str).chain(args.id.as_deref()) {
            table.take(name).map_err(Failure::data)?;
        }
        let pairs: Vec<(Option<&str>, &str)> = args
            .input_std
            .iter()
            .map(|s| s.split_once('=').map_or((None, s.as_str()), |(input, column)| (Some(input), column)))
            .collect();
        let errors: Vec<&str> = pairs.iter().map(|(_, column)| *column).collect();
        let inputs: Vec<String> = match &args.columns[..] {
            [] => table.columns().iter().filter(|c| !errors.contains(c)).map(|c| c.to_string()).collect(),
            chosen => chosen.to_vec(),
        };
        if inputs.is_empty() {
            return Err(Failure::data(format!("{}: no column is left as an input", table.source())));
        }
        let input_std = paired(&pairs, &inputs)?;
        let numbers = table.numeric_columns();
        if let Some(words) = inputs.iter().find(|c| table.get(c).is_ok() && !numbers.contains(&c.as_str())) {
            return Err(Failure::data(format!(
                "{}, column `{words}`: expected numbers, found text; leave it out with `--exclude {words}`, or \
                 predict it with `--target {words} --likelihood categorical`",
                table.source()
            )));
        }
        let x = table.numeric(&inputs).map_err(Failure::data)?;
        let rows = Rows {
            std: std_columns(&table, &input_std, &x)?,
            x,
            y,
            inputs,
            input_std,
            targets: args.target.clone(),
            classes,
            notes: Vec::new(),
        };
        if let Some((i, j)) = beyond_range(&rows.x) {
            return Err(beyond(table.source(), i, &rows.inputs[j], rows.x[(i, j)]));
        }
        if let Some((i, j)) = beyond_range(&rows.y) {
            return Err(beyond(table.source(), i, &rows.targets[j], rows.y[(i, j)]));
        }
        rows.checked(table.source(), job.takes_gaps())
    }

    /// Leaves out what has no target; errs where inputs are missing that must not be.
    fn checked(mut self, source: &str, gaps: bool) -> Outcome<Self> {
        if !gaps {
            missing_input(source, &self.x, &self.inputs, "leave the row out, or use `--model sparse`")?;
        }
        let known = |i: &usize| self.y.row(*i).iter().any(|v| !v.is_nan());
        let keep: Vec<usize> = (0..self.y.rows()).filter(known).collect();
        let without = self.y.rows() - keep.len();
        if keep.is_empty() {
            return Err(Failure::data(format!("{source}: no row has a target")));
        }
        if without > 0 {
            self.notes.push(format!("{source}: {} without a target left out", count(without, "row")));
            let notes = std::mem::take(&mut self.notes);
            self = Rows { notes, ..self.part(&keep) };
        }
        Ok(self)
    }

    /// The rows listed.
    pub fn part(&self, rows: &[usize]) -> Rows {
        Rows {
            x: self.x.select_rows(rows),
            std: self.std.as_ref().map(|s| s.select_rows(rows)),
            y: self.y.select_rows(rows),
            inputs: self.inputs.clone(),
            input_std: self.input_std.clone(),
            targets: self.targets.clone(),
            classes: self.classes.clone(),
            notes: Vec::new(),
        }
    }

    /// Reads rows to be scored on.
    pub fn test(&self, spec: &str, job: &Job) -> Outcome<Rows> {
        let table = Table::read(spec).map_err(Failure::data)?;
        for name in &self.targets {
            table.get(name).map_err(Failure::data)?;
        }
        let y = targets(&table, &self.targets, job.classes().then_some(&self.classes))?;
        let x = table.numeric(&self.inputs).map_err(Failure::data)?;
        within_range(table.source(), &x, &self.inputs)?;
        let rows = Rows { std: std_columns(&table, &self.input_std, &x)?, x, y, ..self.part(&[]) };
        rows.checked(table.source(), job.takes_gaps())
    }

    /// The rows of a fit that goes on.
    pub fn stored(of: &TrainedRegression, data: &Data) -> Outcome<Rows> {
        let Data::Pairs { x, x_std, y, .. } = data else {
            return Err(Failure::data("the data of the stored fit are not those of a regression"));
        };
        Ok(Rows {
            x: x.clone(),
            std: x_std.clone(),
            y: y.clone(),
            inputs: of.inputs.clone(),
            input_std: of.input_std.clone(),
            targets: of.targets.clone(),
            classes: of.classes.clone(),
            notes: Vec::new(),
        })
    }

    /// The places of the inputs whose errors are learnt.
    pub fn learnt(&self) -> Vec<usize> {
        let all = self.input_std.iter().enumerate();
        all.filter(|(_, column)| column.as_deref() == Some(LEARN)).map(|(j, _)| j).collect()
    }

    /// Variances of the inputs, those that the model has learnt included.
    pub fn variances(&self, model: &dyn Regressor) -> Option<Mat> {
        variances(model, &self.x, self.std.as_ref())
    }
}

/// Variances of inputs from their standard deviations, with those in their places that the model has learnt.
pub fn variances(model: &dyn Regressor, x: &Mat, std: Option<&Mat>) -> Option<Mat> {
    let learnt = model.learnt_errors();
    if std.is_none() && learnt.is_empty() {
        return None;
    }
    let mut var = std.map_or_else(|| Mat::zeros(x.rows(), x.cols()), |s| s.map(|v| v * v));
    learnt.iter().for_each(|(j, s)| (0..x.rows()).for_each(|i| var[(i, *j)] = s * s));
    Some(var)
}

/// For each input the column of its standard deviation.
fn paired(pairs: &[(Option<&str>, &str)], inputs: &[String]) -> Outcome<Vec<Option<String>>> {
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    if pairs.iter().all(|(input, _)| input.is_none()) {
        if pairs.len() != inputs.len() {
            return Err(Failure::usage(format!(
                "--input-std: expected one column for each of the {} inputs ({}), or INPUT=COL, found {}",
                inputs.len(),
                inputs.join(", "),
                pairs.len()
            )));
        }
        return Ok(pairs.iter().map(|(_, column)| Some(column.to_string())).collect());
    }
    let mut all = vec![None; inputs.len()];
    for (input, column) in pairs {
        let place = input.and_then(|input| inputs.iter().position(|i| i == input));
        let Some(place) = place else {
            return Err(Failure::usage(format!(
                "--input-std: expected INPUT=COL with INPUT one of {}, found `{}`",
                inputs.join(", "),
                input.map_or(column.to_string(), |input| format!("{input}={column}"))
            )));
        };
        all[place] = Some(column.to_string());
    }
    Ok(all)
}

/// Standard deviations, 0 for an input without a column of them and for a cell that is missing; `None` where no
/// input has one.
pub fn std_columns(table: &Table, columns: &[Option<String>], x: &Mat) -> Outcome<Option<Mat>> {
    let given = |name: &&String| name.as_str() != LEARN;
    if !columns.iter().flatten().any(|name| given(&name)) {
        return Ok(None);
    }
    let mut std = Mat::zeros(table.rows(), columns.len());
    for (j, name) in columns.iter().enumerate() {
        let Some(name) = name.as_ref().filter(given) else { continue };
        for (i, v) in table.column(name).map_err(Failure::data)?.into_iter().enumerate() {
            if x[(i, j)].is_nan() {
                continue;
            }
            if !(v >= 0.0 && v.is_finite()) {
                return Err(Failure::data(format!(
                    "{}, row {}, column `{name}`: a standard deviation must be a number, 0 or more, found {}",
                    table.source(),
                    i + 1,
                    if v.is_nan() { "nothing".into() } else { short(v) }
                )));
            }
            std[(i, j)] = v;
        }
    }
    Ok(Some(std))
}

fn beyond(source: &str, row: usize, column: &str, value: f64) -> Failure {
    Failure::data(format!(
        "{source}, row {}, column `{column}`: {} is beyond what can be squared; multiply the column by a power of \
         ten that brings it near 1",
        row + 1,
        short(value)
    ))
}

/// Errs at the first input that is too large to work with.
pub fn within_range(source: &str, x: &Mat, inputs: &[String]) -> Outcome {
    match x.as_slice().iter().position(|v| v.abs() > LARGEST) {
        None => Ok(()),
        Some(at) => Err(beyond(source, at / x.cols(), &inputs[at % x.cols()], x.as_slice()[at])),
    }
}

/// Errs at the first input that is missing.
pub fn missing_input(source: &str, x: &Mat, inputs: &[String], hint: &str) -> Outcome {
    match x.as_slice().iter().position(|v| v.is_nan()) {
        None => Ok(()),
        Some(at) => Err(Failure::data(format!(
            "{source}, row {}, column `{}`: the input is missing; {hint}",
            at / x.cols() + 1,
            inputs[at % x.cols()]
        ))),
    }
}

/// Targets as numbers, and the names of classes where classes are the target.
fn observed(table: &Table, names: &[String], job: &Job) -> Outcome<(Mat, Vec<String>)> {
    if !job.classes() {
        return Ok((targets(table, names, None)?, Vec::new()));
    }
    let labels = table.text(&names[0]).map_err(Failure::data)?;
    let seen: Vec<&String> = labels.iter().filter(|l| !l.is_empty()).collect();
    let (_, classes) = encode(&seen);
    if classes.len() < 2 || (job.two_classes() && classes.len() > 2) {
        return Err(Failure::data(format!(
            "{}, column `{}`: expected {} classes, found {}{}",
            table.source(),
            names[0],
            if job.two_classes() { "2" } else { "at least 2" },
            classes.len(),
            if classes.len() > 2 { "; use `--likelihood categorical`" } else { "" }
        )));
    }
    Ok((targets(table, names, Some(&classes))?, classes))
}

/// Targets as numbers, N×D; classes by their place among those known.
pub fn targets(table: &Table, names: &[String], classes: Option<&Vec<String>>) -> Outcome<Mat> {
    let Some(classes) = classes else {
        let numbers = table.numeric_columns();
        if let Some(words) = names.iter().find(|c| table.get(c).is_ok() && !numbers.contains(&c.as_str())) {
            return Err(Failure::data(format!(
                "{}, column `{words}`: expected numbers, found text; classes need `--likelihood bernoulli` or \
                 `--likelihood categorical`",
                table.source()
            )));
        }
        return table.numeric(names).map_err(Failure::data);
    };
    let labels = table.text(&names[0]).map_err(Failure::data)?;
    let code = |(i, label): (usize, &String)| match classes.iter().position(|c| c == label) {
        _ if label.is_empty() => Ok(f64::NAN),
        Some(k) => Ok(k as f64),
        None => Err(Failure::data(format!(
            "{}, row {}, column `{}`: the class `{label}` is none of those learnt ({})",
            table.source(),
            i + 1,
            names[0],
            classes.join(", ")
        ))),
    };
    Ok(Mat::column(&labels.iter().enumerate().map(code).collect::<Outcome<Vec<_>>>()?))
}
