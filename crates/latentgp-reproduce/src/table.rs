//! Tables of an experiment: ours beside the papers', and curves.

use latentgp_figure::{self as figure, Figure, Lines};
use serde_json::{Map, Value, json};

/// A mean and, where several numbers were averaged, their standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The standard deviation, with n − 1.
    pub std: Option<f64>,
}

impl Estimate {
    /// A number by itself.
    pub fn of(mean: f64) -> Self {
        Estimate { mean, std: None }
    }

    /// A number with its standard deviation.
    pub fn with(mean: f64, std: f64) -> Self {
        Estimate { mean, std: Some(std) }
    }

    /// The mean and the standard deviation of several numbers; of one, the number.
    pub fn over(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Estimate { mean, std: (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt()) }
    }

    fn text(&self, decimals: usize) -> String {
        match self.std {
            Some(std) => format!("{:.decimals$} ± {std:.decimals$}", self.mean),
            None => format!("{:.decimals$}", self.mean),
        }
    }
}

/// A quantity that a table compares.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Its name in headings: "1-NN, %".
    pub name: &'static str,
    /// Its name in CSV and JSON: `accuracy`.
    pub key: &'static str,
    /// How many decimals are shown.
    pub decimals: usize,
}

/// A line of a table.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The method, with its number of nodes.
    pub method: String,
    /// The kernel; may be empty.
    pub kernel: String,
    /// Ours, one for each measure; empty where the row was skipped.
    pub ours: Vec<Estimate>,
    /// The papers', one for each measure; empty where they have none.
    pub theirs: Vec<Option<Estimate>>,
    /// A difference that is known and explained, for each measure; empty where there is none.
    pub allowed: Vec<f64>,
    /// The bound of the evidence, where there is one.
    pub bound: Option<f64>,
    /// How long it took; see [`Row::took`].
    pub seconds: f64,
    /// What else is to be said.
    pub note: String,
}

impl Row {
    /// How long it took, in seconds; `None` where the row was skipped.
    pub fn took(&self) -> Option<f64> {
        (!self.ours.is_empty()).then_some(self.seconds)
    }

    /// Ours less theirs.
    pub fn difference(&self, measure: usize) -> Option<f64> {
        Some(self.ours.get(measure)?.mean - (*self.theirs.get(measure)?)?.mean)
    }

    /// Whether the difference is within the papers' ±, within 1 % or our own ± where they print none, or allowed;
    /// `None` without theirs.
    fn agrees(&self, measure: usize, decimals: usize, allow: bool) -> Option<bool> {
        let theirs = (*self.theirs.get(measure)?)?;
        let rounding = 0.5 * 10f64.powi(-(decimals as i32));
        let explained = self.allowed.get(measure).copied().filter(|_| allow).unwrap_or(0.0);
        let own = self.ours.get(measure)?.std.unwrap_or(0.0);
        let printed = theirs.std.unwrap_or(own.max(0.01 * theirs.mean.abs()));
        Some(self.difference(measure)?.abs() <= printed.max(explained) + rounding)
    }
}

/// Text in rows and columns.
pub struct Grid {
    /// The heading.
    pub title: String,
    /// The heads of the columns.
    pub heads: Vec<String>,
    /// The cells.
    pub rows: Vec<Vec<String>>,
}

/// A table of the papers, and ours.
#[derive(Clone, Debug)]
pub struct Table {
    /// What follows the experiment's name in file names; empty for its main table.
    pub slug: &'static str,
    /// The heading.
    pub title: String,
    /// What is compared.
    pub measures: Vec<Measure>,
    /// The lines.
    pub rows: Vec<Row>,
}

impl Table {
    /// As text; columns that are empty throughout are left out.
    pub fn grid(&self) -> Grid {
        let mut columns: Vec<(String, Vec<String>)> = vec![
            ("method".into(), self.rows.iter().map(|r| r.method.clone()).collect()),
            ("kernel".into(), self.rows.iter().map(|r| r.kernel.clone()).collect()),
        ];
        for (k, m) in self.measures.iter().enumerate() {
            let ours = |r: &Row| r.ours.get(k).map_or("skipped".into(), |e| e.text(m.decimals));
            let theirs =
                |r: &Row| r.theirs.get(k).copied().flatten().map_or(String::new(), |e| e.text(m.decimals));
            let difference = |r: &Row| r.difference(k).map_or(String::new(), |d| signed(d, m.decimals));
            columns.push((m.name.into(), self.rows.iter().map(ours).collect()));
            columns.push(("paper".into(), self.rows.iter().map(theirs).collect()));
            columns.push(("difference".into(), self.rows.iter().map(difference).collect()));
        }
        let bound = |r: &Row| r.bound.map_or(String::new(), |b| format!("{b:.2}").replace('-', "−"));
        let seconds = |r: &Row| r.took().map_or(String::new(), |s| format!("{s:.1}"));
        columns.push(("bound".into(), self.rows.iter().map(bound).collect()));
        columns.push(("seconds".into(), self.rows.iter().map(seconds).collect()));
        columns.push(("note".into(), self.rows.iter().map(|r| r.note.clone()).collect()));
        columns.retain(|(_, cells)| cells.iter().any(|c| !c.is_empty()));
        let (heads, columns): (Vec<String>, Vec<Vec<String>>) = columns.into_iter().unzip();
        let row = |i: usize| columns.iter().map(|c| c[i].clone()).collect();
        Grid { title: self.title.clone(), heads, rows: (0..self.rows.len()).map(row).collect() }
    }

    /// One sentence: how many numbers agree with the papers', and which do not.
    pub fn verdict(&self) -> Option<String> {
        let (mut compared, mut agreeing, mut by_allowance) = (0, 0, false);
        let mut apart = Vec::new();
        for row in &self.rows {
            let mut differences = Vec::new();
            for (k, m) in self.measures.iter().enumerate() {
                let Some(agrees) = row.agrees(k, m.decimals, true) else { continue };
                by_allowance |= agrees && row.agrees(k, m.decimals, false) == Some(false);
                compared += 1;
                agreeing += usize::from(agrees);
                if !agrees {
                    let difference = signed(row.difference(k).unwrap_or(f64::NAN), m.decimals);
                    differences.push(match self.measures.len() {
                        1 => difference,
                        _ => format!("{} {difference}", m.name),
                    });
                }
            }
            if !differences.is_empty() {
                apart.push(format!("{} ({})", row.label(), differences.join(", ")));
            }
        }
        let explained = if by_allowance { ", or differ as explained below" } else { "" };
        let within = format!("within the papers' ± (where they print none, 1 % or our own ±){explained}");
        let apart = apart.join("; ");
        match (compared, agreeing) {
            (0, _) => None,
            (1, 1) => Some(format!("The one number that the papers print is {within}.")),
            (n, all) if n == all => Some(format!("All {n} numbers that the papers print are {within}.")),
            (1, 0) => Some(format!("The one number that the papers print is not {within}: {apart}.")),
            (n, 0) => Some(format!("None of the papers' {n} numbers is {within}: {apart}.")),
            (n, some) => Some(format!("{some} of the papers' {n} numbers are {within}. Apart are {apart}.")),
        }
    }

    /// The columns of the CSV file, with numbers in full.
    pub fn csv(&self) -> String {
        let mut heads = vec!["method".to_string(), "kernel".into()];
        for m in &self.measures {
            for part in ["", "_std", "_paper", "_paper_std", "_difference"] {
                heads.push(format!("{}{part}", m.key));
            }
        }
        heads.extend(["bound".to_string(), "seconds".into(), "note".into()]);
        let number = |v: Option<f64>| v.map_or(String::new(), |v| format!("{v}"));
        let mut lines = vec![heads];
        for row in &self.rows {
            let mut cells = vec![row.method.clone(), row.kernel.clone()];
            for k in 0..self.measures.len() {
                let (ours, theirs) = (row.ours.get(k), row.theirs.get(k).copied().flatten());
                cells.push(number(ours.map(|e| e.mean)));
                cells.push(number(ours.and_then(|e| e.std)));
                cells.push(number(theirs.map(|e| e.mean)));
                cells.push(number(theirs.and_then(|e| e.std)));
                cells.push(number(row.difference(k)));
            }
            cells.extend([number(row.bound), number(row.took())]);
            cells.push(row.note.clone());
            lines.push(cells);
        }
        csv(&lines)
    }

    /// The table as JSON.
    pub fn json(&self) -> Value {
        let estimate = |e: Option<Estimate>| e.map(|e| json!({ "mean": e.mean, "std": e.std }));
        let row = |row: &Row| {
            let mut all = Map::new();
            all.insert("method".into(), json!(row.method));
            all.insert("kernel".into(), json!(row.kernel));
            for (k, m) in self.measures.iter().enumerate() {
                let (ours, theirs) = (row.ours.get(k).copied(), row.theirs.get(k).copied().flatten());
                let three = json!({
                    "ours": estimate(ours), "paper": estimate(theirs), "difference": row.difference(k),
                });
                all.insert(m.key.into(), three);
            }
            all.insert("bound".into(), json!(row.bound));
            all.insert("seconds".into(), json!(row.took()));
            all.insert("skipped".into(), json!(row.ours.is_empty()));
            all.insert("note".into(), json!(row.note));
            Value::Object(all)
        };
        json!({ "title": self.title, "rows": self.rows.iter().map(row).collect::<Vec<_>>() })
    }
}

impl Row {
    /// Method and kernel in one.
    pub fn label(&self) -> String {
        if self.kernel.is_empty() { self.method.clone() } else { format!("{}, {}", self.method, self.kernel) }
    }
}

/// Curves over the same places.
#[derive(Clone, Debug)]
pub struct Curves {
    /// What follows the experiment's name in file names.
    pub slug: &'static str,
    /// The heading.
    pub title: String,
    /// What the places are.
    pub x_title: String,
    /// What the values are.
    pub y_title: String,
    /// The places.
    pub x: Vec<f64>,
    /// A name and, for each place, a value; NaN where there is none.
    pub lines: Vec<(String, Vec<f64>)>,
    /// Whether the places are shown on a logarithmic axis; values always are.
    pub log_x: bool,
}

impl Curves {
    /// As text.
    pub fn grid(&self) -> Grid {
        let number = |v: f64| if v.is_finite() { significant(v) } else { String::new() };
        let heads = std::iter::once(self.x_title.clone()).chain(self.lines.iter().map(|l| l.0.clone()));
        let row = |i: usize| {
            std::iter::once(self.x[i].to_string()).chain(self.lines.iter().map(|l| number(l.1[i]))).collect()
        };
        Grid { title: self.title.clone(), heads: heads.collect(), rows: (0..self.x.len()).map(row).collect() }
    }

    /// The curves as CSV, with numbers in full.
    pub fn csv(&self) -> String {
        let mut lines = vec![self.grid().heads];
        for (i, x) in self.x.iter().enumerate() {
            let number = |v: f64| if v.is_finite() { v.to_string() } else { String::new() };
            lines.push(
                std::iter::once(x.to_string()).chain(self.lines.iter().map(|l| number(l.1[i]))).collect(),
            );
        }
        csv(&lines)
    }

    /// The curves of the names given, or all, as a figure.
    pub fn figure(&self, only: Option<&[&str]>) -> latentgp::Result<Figure> {
        let kept = |l: &&(String, Vec<f64>)| only.is_none_or(|names| names.contains(&l.0.as_str()));
        figure::lines(&Lines {
            title: self.title.clone(),
            x_title: self.x_title.clone(),
            y_title: self.y_title.clone(),
            x: self.x.clone(),
            lines: self.lines.iter().filter(kept).cloned().collect(),
            log_x: self.log_x,
            log_y: true,
        })
    }

    /// The curves as JSON.
    pub fn json(&self) -> Value {
        let line = |(name, values): &(String, Vec<f64>)| json!({ "name": name, "values": values });
        json!({
            "title": self.title, "x_title": self.x_title, "y_title": self.y_title, "x": self.x,
            "lines": self.lines.iter().map(line).collect::<Vec<_>>(),
        })
    }
}

fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    match text.chars().any(|c| ('1'..='9').contains(&c)) {
        true => text.replace('-', "−"),
        false => format!("{:.decimals$}", 0.0),
    }
}

/// A number with three significant digits.
pub fn significant(value: f64) -> String {
    if value == 0.0 || value.fract() == 0.0 && value.abs() < 1e6 {
        return format!("{value}");
    }
    let digits = 2 - value.abs().log10().floor() as i32;
    match digits {
        -3..=5 => format!("{value:.*}", digits.max(0) as usize),
        _ => format!("{value:.2e}"),
    }
}

fn csv(lines: &[Vec<String>]) -> String {
    let cell = |c: &String| match c.contains(['"', ',', '\n']) {
        true => format!("\"{}\"", c.replace('"', "\"\"")),
        false => c.clone(),
    };
    lines.iter().map(|l| l.iter().map(cell).collect::<Vec<_>>().join(",") + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCURACY: Measure = Measure { name: "1-NN, %", key: "accuracy", decimals: 1 };

    fn table() -> Table {
        let row = |method: &str, ours: f64, theirs: Option<Estimate>| Row {
            method: method.into(),
            ours: vec![Estimate::of(ours)],
            theirs: vec![theirs],
            ..Row::default()
        };
        Table {
            slug: "",
            title: "T".into(),
            measures: vec![ACCURACY],
            rows: vec![
                row("near", 97.0, Some(Estimate::with(98.0, 2.7))),
                row("far", 90.0, Some(Estimate::with(98.0, 2.7))),
                row("alone", 50.0, None),
                Row { method: "left, out".into(), ..Row::default() },
            ],
        }
    }

    #[test]
    fn what_differs_is_said() {
        let verdict = table().verdict().unwrap();
        assert!(verdict.starts_with("1 of the papers' 2") && verdict.ends_with("far (−8.0)."), "{verdict}");
        let near = Table { rows: table().rows[..1].to_vec(), ..table() };
        assert!(near.verdict().unwrap().starts_with("The one number"));
        let far = Table { rows: table().rows[1..2].to_vec(), ..table() };
        assert!(far.verdict().unwrap().contains("is not within"));
        let none = Table { rows: table().rows.split_off(2), ..table() };
        assert_eq!(none.verdict(), None);
    }

    #[test]
    fn cells_drop_empty_columns_and_mark_what_was_skipped() {
        let Grid { heads, rows, .. } = table().grid();
        assert_eq!(heads, ["method", "1-NN, %", "paper", "difference", "seconds"]);
        assert_eq!(rows[1], ["far", "90.0", "98.0 ± 2.7", "−8.0", "0.0"]);
        assert_eq!(rows[3], ["left, out", "skipped", "", "", ""]);
    }

    #[test]
    fn csv_quotes_and_keeps_digits() {
        let text = table().csv();
        assert!(text.starts_with("method,kernel,accuracy,accuracy_std,accuracy_paper,"));
        assert!(text.contains("near,,97,,98,2.7,-1,,0,\n") && text.contains("\"left, out\",,,"), "{text}");
    }

    #[test]
    fn a_row_that_was_skipped_took_no_time_at_all() {
        let rows = table().json()["rows"].clone();
        assert_eq!((&rows[0]["seconds"], &rows[0]["skipped"]), (&json!(0.0), &json!(false)));
        assert_eq!((&rows[3]["seconds"], &rows[3]["skipped"]), (&Value::Null, &json!(true)));
        let text = table().csv();
        let (heads, skipped) = (text.lines().next().unwrap(), text.lines().last().unwrap());
        let commas = heads.matches(',').count() + 1;
        assert_eq!(skipped, format!("\"left, out\"{}", ",".repeat(commas - 1)));
    }

    #[test]
    fn estimates_and_numbers() {
        assert_eq!(Estimate::over(&[1.0, 3.0]), Estimate::with(2.0, 2f64.sqrt()));
        assert_eq!(Estimate::over(&[3.0]), Estimate::of(3.0));
        assert_eq!([signed(-0.04, 1), signed(0.26, 1), signed(-8.0, 1)], ["0.0", "+0.3", "−8.0"]);
        assert_eq!([significant(0.012345), significant(123.4), significant(7.0)], ["0.0123", "123", "7"]);
    }
}
