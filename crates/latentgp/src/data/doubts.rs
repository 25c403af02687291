//! Columns that may be something else than data: identifiers, dates, classes, marks of missing values, slips.
//!
//! A model learns whatever it is given: the number of a row tells the class where rows are sorted by class, and one 1e300
//! leaves nothing of all other values. [`doubts`] looks before the fit. What it finds are doubts, not errors: each says what
//! was seen and what to do if it is true.

use crate::mat::Mat;
use std::fmt;

/// Fewer rows than these may be consecutive by chance.
const FEW_ROWS: usize = 8;
/// As many rows at least, for a column of few values to look like classes.
const ROWS_OF_CLASSES: usize = 20;
/// The most classes that a column is taken for.
const MOST_CLASSES: usize = 10;
/// So many times as far out as nine tenths of a column is absurdly far.
const FAR: f64 = 1e4;
/// Values that are written where there is none.
const MARKS: [f64; 14] = [
    -99.0, -999.0, -9999.0, -99999.0, -999999.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0, 1e20, 1e30, -1e30,
    1e36,
];
/// Names of columns that number rows.
const ID_NAMES: [&str; 9] = ["id", "index", "idx", "row", "rownum", "row_id", "key", "no", "unnamed: 0"];
/// Names of columns that hold classes.
const CLASS_NAMES: [&str; 9] =
    ["class", "label", "target", "species", "category", "type", "group", "cluster", "diagnosis"];

/// What columns are learnt for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A table whose rows get latent positions; `labelled` where classes of the rows are known apart from it.
    Rows {
        /// Whether there are labels.
        labelled: bool,
    },
    /// Inputs of a regression: these may well be consecutive.
    Inputs,
    /// Targets or series.
    Values,
}

/// What a column may be.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// The number of each row, or another identifier.
    Identifier,
    /// Dates written as whole numbers.
    Dates,
    /// A class of each row.
    Classes(usize),
    /// A value that stands for a missing one, and how often.
    Mark(f64, usize),
    /// Values far beyond all others: the furthest, and how many there are.
    Far(f64, usize),
}

/// A doubt about a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubt {
    /// The column's name.
    pub column: String,
    /// What it may be.
    pub kind: Kind,
}

impl Doubt {
    /// What to do if it is true, in words that name no option.
    pub fn cure(&self) -> &'static str {
        match self.kind {
            Kind::Identifier => "leave it out",
            Kind::Dates => "leave it out, or turn it into days since the first",
            Kind::Classes(_) => "give it as the label of the rows, or leave it out",
            Kind::Mark(..) => "write NaN or an empty cell in its place",
            Kind::Far(..) => "correct it, or write NaN or an empty cell in its place",
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column `{}` ", self.column)?;
        match &self.kind {
            Kind::Identifier => write!(f, "looks like an identifier of the rows, not like a measurement"),
            Kind::Dates => write!(f, "looks like dates written as whole numbers, which are not evenly apart"),
            Kind::Classes(count) => {
                write!(f, "looks like {count} classes, and would be learnt as a measurement")
            }
            Kind::Mark(value, count) => {
                write!(
                    f,
                    "has {value:?} {}, far from all other values: it may mark missing ones",
                    times(*count)
                )
            }
            Kind::Far(value, count) => {
                write!(
                    f,
                    "has {value:?}{}, thousands of times as far out as its other values",
                    others(*count)
                )
            }
        }
    }
}

fn times(count: usize) -> String {
    match count {
        1 => "once".into(),
        n => format!("{n} times"),
    }
}

fn others(count: usize) -> String {
    match count {
        1 => String::new(),
        n => format!(" and {} more such values", n - 1),
    }
}

/// The doubts about columns, in their order; `names` has one a column of `y`, in which NaN is a missing cell.
///
/// ```
/// use latentgp::{Mat, data::doubts::{Kind, Use, doubts}};
/// let y = Mat::from_fn(20, 2, |i, j| if j == 0 { i as f64 } else { (i as f64).sin() });
/// let found = doubts(&["", "length"], &y, Use::Rows { labelled: false });
/// assert_eq!((found.len(), &found[0].kind), (1, &Kind::Identifier));
/// ```
pub fn doubts<S: AsRef<str>>(names: &[S], y: &Mat, used: Use) -> Vec<Doubt> {
    let columns: Vec<Vec<f64>> = (0..y.cols()).map(|j| observed(y, j)).collect();
    let named = names.iter().any(|n| n.as_ref().parse::<usize>().is_err());
    let few: Vec<Option<usize>> = columns.iter().map(|c| classes(c)).collect();
    let mut found = Vec::new();
    for (j, values) in columns.iter().enumerate() {
        let name = names.get(j).map_or("", |n| n.as_ref());
        let lower = name.to_lowercase();
        // A cell of the header that is empty names its column by its number.
        let unnamed = named && (name.is_empty() || (j == 0 && name == "0"));
        let called = |list: &[&str]| list.contains(&lower.as_str());
        let whole = values.iter().all(|v| v.fract() == 0.0);
        let gapless = values.len() == y.rows();
        let says_id = unnamed || called(&ID_NAMES) || lower.ends_with("_id");
        let numbers_rows = whole && gapless && values.len() >= FEW_ROWS && is_distinct(values);
        let kind = match used {
            Use::Values => None,
            _ if whole && are_dates(values) => Some(Kind::Dates),
            _ if numbers_rows && says_id => Some(Kind::Identifier),
            Use::Rows { .. } if numbers_rows && is_a_count(values) => Some(Kind::Identifier),
            Use::Rows { labelled: false } => few[j]
                .filter(|_| called(&CLASS_NAMES) || (j + 1 == y.cols() && alone(&few, j)))
                .map(Kind::Classes),
            _ => None,
        };
        let kind = kind.or_else(|| mark(values)).or_else(|| far(values));
        found.extend(kind.map(|kind| Doubt { column: name.into(), kind }));
    }
    found
}

fn observed(y: &Mat, j: usize) -> Vec<f64> {
    (0..y.rows()).map(|i| y[(i, j)]).filter(|v| !v.is_nan()).collect()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut all = values.to_vec();
    all.sort_unstable_by(f64::total_cmp);
    all
}

/// The number that has `k` below it.
fn nth(values: &[f64], k: usize) -> f64 {
    *values.to_vec().select_nth_unstable_by(k, f64::total_cmp).1
}

fn is_distinct(values: &[f64]) -> bool {
    sorted(values).windows(2).all(|w| w[0] < w[1])
}

/// Whether whole numbers, all different, are those from one to another, or grow from row to row.
fn is_a_count(values: &[f64]) -> bool {
    let all = sorted(values);
    let gapless = all[all.len() - 1] - all[0] == (all.len() - 1) as f64;
    gapless || values.windows(2).all(|w| w[0] < w[1])
}

/// Whether all are days, such as 20240131.
fn are_dates(values: &[f64]) -> bool {
    let is_date = |v: &f64| {
        let (day, month, year) = (v % 100.0, (v / 100.0).floor() % 100.0, (v / 1e4).floor());
        (1900.0..2100.0).contains(&year) && (1.0..=12.0).contains(&month) && (1.0..=31.0).contains(&day)
    };
    values.len() > 1 && values.iter().all(is_date)
}

/// How many classes a column of few whole numbers from 0 or 1 on may have.
fn classes(values: &[f64]) -> Option<usize> {
    if values.len() < ROWS_OF_CLASSES || values.iter().any(|v| v.fract() != 0.0) {
        return None;
    }
    let mut all = sorted(values);
    all.dedup();
    let consecutive = all.windows(2).all(|w| w[1] - w[0] == 1.0);
    let starts = all[0] == 0.0 || all[0] == 1.0;
    ((2..=MOST_CLASSES).contains(&all.len()) && starts && consecutive).then_some(all.len())
}

/// Whether no other column has few values, as those of a survey or an image would.
fn alone(few: &[Option<usize>], j: usize) -> bool {
    few.iter().enumerate().all(|(k, c)| k == j || c.is_none())
}

/// A mark of missing values that lies further from all others than these from each other.
fn mark(values: &[f64]) -> Option<Kind> {
    MARKS.iter().find_map(|&mark| {
        let count = values.iter().filter(|v| **v == mark).count();
        let (lo, hi) = values
            .iter()
            .filter(|v| **v != mark)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(*v), hi.max(*v)));
        let apart = if mark < lo { lo - mark } else { mark - hi };
        (count > 0 && lo < hi && apart > hi - lo).then_some(Kind::Mark(mark, count))
    })
}

/// Values that lie absurdly far from the median.
fn far(values: &[f64]) -> Option<Kind> {
    if values.len() < FEW_ROWS {
        return None;
    }
    let n = values.len();
    let median = nth(values, n / 2);
    // Halves do not overflow.
    let distance = |v: f64| (0.5 * v - 0.5 * median).abs();
    let distances: Vec<f64> = values.iter().map(|v| distance(*v)).collect();
    let usual = nth(&distances, (9 * n).div_ceil(10).min(n - 2));
    let count = distances.iter().filter(|d| **d > FAR * usual).count();
    let furthest = values.iter().copied().max_by(|a, b| distance(*a).total_cmp(&distance(*b)))?;
    (usual > 0.0 && count > 0).then_some(Kind::Far(furthest, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: Use = Use::Rows { labelled: false };

    /// The kinds that are found in one column beside a measurement.
    fn beside(name: &str, used: Use, value: impl Fn(usize) -> f64) -> Vec<Kind> {
        let y = Mat::from_fn(40, 2, |i, j| if j == 0 { value(i) } else { (1.3 * i as f64).sin() });
        let found = doubts(&[name, "length"], &y, used);
        assert!(found.iter().all(|d| d.column == name && !d.cure().is_empty()), "{found:?}");
        found.into_iter().map(|d| d.kind).collect()
    }

    /// The same of the last column.
    fn last(name: &str, used: Use, value: impl Fn(usize) -> f64) -> Vec<Kind> {
        let y = Mat::from_fn(40, 2, |i, j| if j == 1 { value(i) } else { (1.3 * i as f64).sin() });
        doubts(&["length", name], &y, used).into_iter().map(|d| d.kind).collect()
    }

    #[test]
    fn what_numbers_rows_is_an_identifier() {
        for (name, value) in [
            ("n", &(|i: usize| i as f64) as &dyn Fn(usize) -> f64),
            ("n", &|i| 100.0 - i as f64),
            ("n", &|i| ((i * 7) % 40) as f64),
            ("customer", &|i| 1000.0 + (i * i) as f64),
            ("customer_id", &|i| ((i * 7919) % 1009) as f64),
            ("", &|i| ((i * 7919) % 1009) as f64),
            ("0", &|i| i as f64),
        ] {
            assert_eq!(beside(name, ROWS, value), [Kind::Identifier], "{name}");
        }
        assert_eq!(beside("", Use::Inputs, |i| i as f64), [Kind::Identifier]);
        // Inputs are often evenly apart, and so are values of a trend.
        assert!(beside("year", Use::Inputs, |i| i as f64).is_empty());
        assert!(beside("n", Use::Values, |i| i as f64).is_empty());
        assert!(beside("n", ROWS, |i| 0.5 * i as f64).is_empty());
        assert!(beside("n", ROWS, |i| ((i * 7919) % 1009) as f64).is_empty());
        // All columns of a matrix are numbered.
        let y = Mat::from_fn(40, 2, |i, j| ((i * (7 + j)) % 13) as f64 * 0.5);
        assert!(doubts(&["0", "1"], &y, ROWS).is_empty());
    }

    #[test]
    fn dates_are_known_by_their_digits() {
        let day = |i: usize| 20_240_101.0 + (i % 28) as f64 + 100.0 * (i / 28) as f64;
        assert_eq!(beside("n", ROWS, day), [Kind::Dates]);
        assert_eq!(beside("n", Use::Inputs, day), [Kind::Dates]);
        assert!(beside("n", ROWS, |i| 20_249_901.0 + 37.0 * ((i * 7) % 13) as f64).is_empty());
    }

    #[test]
    fn a_class_is_seen_where_nobody_named_it() {
        let class = |i: usize| (i % 3) as f64;
        assert_eq!(beside("Species", ROWS, class), [Kind::Classes(3)]);
        assert_eq!(last("z", ROWS, class), [Kind::Classes(3)]);
        assert!(
            beside("z", ROWS, class).is_empty() && last("z", Use::Rows { labelled: true }, class).is_empty()
        );
        assert!(
            last("z", Use::Inputs, class).is_empty() && last("z", ROWS, |i| (i % 3) as f64 * 2.0).is_empty()
        );
        // Every column of a survey has few answers.
        let y = Mat::from_fn(40, 3, |i, j| ((i * (j + 3)) % 5) as f64);
        assert!(doubts(&["a", "b", "c"], &y, ROWS).is_empty());
    }

    #[test]
    fn marks_and_slips_are_far_from_the_rest() {
        let with = |bad: f64| move |i: usize| if i == 7 { bad } else { (0.7 * i as f64).sin() };
        for used in [ROWS, Use::Inputs, Use::Values] {
            assert_eq!(beside("a", used, with(-999.0)), [Kind::Mark(-999.0, 1)]);
            assert_eq!(beside("a", used, with(1e300)), [Kind::Far(1e300, 1)]);
            assert_eq!(beside("a", used, with(-1.7e308)), [Kind::Far(-1.7e308, 1)]);
        }
        assert!(beside("a", ROWS, with(50.0)).is_empty());
        assert!(beside("a", ROWS, |i| -99.0 + 3.0 * ((i * i) % 71) as f64 + 0.5 * (i % 2) as f64).is_empty());
        let nan = |i: usize| if i.is_multiple_of(2) { f64::NAN } else { with(9999.0)(i) };
        assert_eq!(beside("a", ROWS, nan), [Kind::Mark(9999.0, 1)]);
        // Nine tenths are one number: what else there is need not be a slip.
        assert!(beside("a", ROWS, |i| if i == 3 { 7.0 } else { 0.0 }).is_empty());
        assert!(doubts(&["a"], &Mat::filled(1, 1, 1e300), ROWS).is_empty());
        assert!(doubts(&["a"], &Mat::filled(3, 1, f64::NAN), ROWS).is_empty());
    }

    #[test]
    fn doubts_say_what_was_seen() {
        let text = |kind: Kind| Doubt { column: "a".into(), kind }.to_string();
        assert!(text(Kind::Mark(-999.0, 3)).contains("`a` has -999.0 3 times"));
        assert!(text(Kind::Far(1e300, 2)).contains("1e300 and 1 more such values"));
        assert!(text(Kind::Classes(4)).contains("4 classes"));
    }
}
