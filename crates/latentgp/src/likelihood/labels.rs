//! Labels and counts, checked before anything is learned from them.

use crate::error::{Error, Result};

/// Numbers the classes of named labels: the class of each row, and the names in order.
///
/// ```
/// let (classes, names) = latentgp::likelihood::encode(&["oak", "ash", "oak"]);
/// assert_eq!((classes, names), (vec![1, 0, 1], vec!["ash".to_string(), "oak".to_string()]));
/// ```
pub fn encode<S: AsRef<str>>(labels: &[S]) -> (Vec<usize>, Vec<String>) {
    let mut names: Vec<String> = labels.iter().map(|l| l.as_ref().to_string()).collect();
    names.sort();
    names.dedup();
    let class = |l: &S| names.partition_point(|n| n.as_str() < l.as_ref());
    (labels.iter().map(class).collect(), names)
}

/// Errs unless every label is below `classes`, and every class has a row: nothing can be learned of a class
/// that was never seen, nor of a single one.
pub fn check_labels(labels: &[usize], classes: usize) -> Result<()> {
    if classes < 2 {
        return Err(Error::data(
            "the labels",
            format!("there is {classes} class, and telling classes apart takes at least 2; check the column"),
        ));
    }
    let mut seen = vec![false; classes];
    for (row, &label) in labels.iter().enumerate() {
        match seen.get_mut(label) {
            Some(seen) => *seen = true,
            None => {
                let expected = format!("a class from 0 to {}", classes - 1);
                return Err(Error::invalid(format!("label of row {}", row + 1), expected, label));
            }
        }
    }
    match seen.iter().position(|s| !s) {
        None => Ok(()),
        Some(class) => Err(Error::data(
            "the labels",
            format!(
                "class {class} of {classes} has no row to learn from; leave it out, or choose other rows"
            ),
        )),
    }
}

/// Errs unless there is a count, and every one is a whole number from 0 to 2⁵³.
pub fn check_counts(counts: &[f64]) -> Result<()> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if counts.is_empty() {
        return Err(Error::data("the counts", "there is none to learn from"));
    }
    match counts.iter().position(|y| !(*y >= 0.0 && *y <= EXACT && y.fract() == 0.0)) {
        None => Ok(()),
        Some(at) => {
            let what = format!("count of row {}", at + 1);
            Err(Error::invalid(
                what,
                "a whole number, 0 or more (round it, or leave the row out)",
                counts[at],
            ))
        }
    }
}

/// Errs unless there is a number, and every one is finite and 0 or more.
pub fn check_intensities(y: &[f64]) -> Result<()> {
    if y.is_empty() {
        return Err(Error::data("the counts", "there is none to learn from"));
    }
    match y.iter().position(|v| !(v.is_finite() && *v >= 0.0)) {
        Some(at) => Err(Error::invalid(format!("count of row {}", at + 1), "a number, 0 or more", y[at])),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_needs_a_row() {
        check_labels(&[0, 2, 1], 3).unwrap();
        assert!(matches!(check_labels(&[0, 2], 3), Err(Error::Data { .. })));
        assert!(matches!(check_labels(&[0, 0], 1), Err(Error::Data { .. })));
        assert!(matches!(check_labels(&[], 0), Err(Error::Data { .. })));
        assert!(matches!(check_labels(&[0, 1, 3], 3), Err(Error::Invalid { .. })));
    }
}
