//! Scores of predicted classes and class probabilities.
//!
//! ```text
//! accuracy = share of rows whose most probable class is right
//! log loss = mean of −ln p_n,label       brier = mean of Σ_c (p_nc − δ_c,label)²
//! ```

use crate::error::{Error, Result};
use crate::mat::Mat;

/// A probability below this counts as this in the log loss, so that one row cannot make it infinite.
pub const LEAST_PROBABILITY: f64 = 1e-15;
/// How far the probabilities of a row may sum from 1.
const SUM: f64 = 1e-6;

fn check(labels: &[usize], probabilities: &Mat) -> Result<()> {
    if labels.is_empty() {
        return Err(Error::shape("labels to score", "at least one", 0));
    }
    if probabilities.rows() != labels.len() {
        return Err(Error::shape("rows of the class probabilities", labels.len(), probabilities.rows()));
    }
    for (row, &label) in labels.iter().enumerate() {
        let p = probabilities.row(row);
        if label >= p.len() {
            let expected = format!("a class below the {} predicted", p.len());
            return Err(Error::invalid(format!("label of row {}", row + 1), expected, label));
        }
        let sum: f64 = p.iter().sum();
        if !p.iter().all(|v| (0.0..=1.0 + SUM).contains(v)) || (sum - 1.0).abs() > SUM {
            let what = format!("class probabilities of row {}", row + 1);
            return Err(Error::invalid(what, "numbers from 0 to 1 that sum to 1", format!("{p:?}")));
        }
    }
    Ok(())
}

/// The most probable class of every row; of equal ones the first.
pub fn most_probable(probabilities: &Mat) -> Vec<usize> {
    let best = |p: &[f64]| (1..p.len()).fold(0, |best, c| if p[c] > p[best] { c } else { best });
    (0..probabilities.rows()).map(|n| best(probabilities.row(n))).collect()
}

/// The share of rows whose most probable class is the label.
///
/// ```
/// use latentgp::{Mat, metrics};
/// let p = Mat::from_rows(&[[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]]);
/// assert_eq!(metrics::accuracy(&[0, 1, 1], &p)?, 2.0 / 3.0);
/// # Ok::<(), latentgp::Error>(())
/// ```
pub fn accuracy(labels: &[usize], probabilities: &Mat) -> Result<f64> {
    check(labels, probabilities)?;
    let right = most_probable(probabilities).iter().zip(labels).filter(|(a, b)| a == b).count();
    Ok(right as f64 / labels.len() as f64)
}

/// The mean of −ln p of the labels, with probabilities of at least [`LEAST_PROBABILITY`].
pub fn log_loss(labels: &[usize], probabilities: &Mat) -> Result<f64> {
    check(labels, probabilities)?;
    let loss = |(n, c): (usize, &usize)| -probabilities[(n, *c)].clamp(LEAST_PROBABILITY, 1.0).ln();
    Ok(labels.iter().enumerate().map(loss).sum::<f64>() / labels.len() as f64)
}

/// The mean squared distance of the probabilities from the labels, from 0 to 2.
pub fn brier(labels: &[usize], probabilities: &Mat) -> Result<f64> {
    check(labels, probabilities)?;
    let square = |n: usize, label: usize| -> f64 {
        let p = probabilities.row(n).iter().enumerate();
        p.map(|(c, p)| (p - f64::from(c == label)).powi(2)).sum()
    };
    Ok(labels.iter().enumerate().map(|(n, c)| square(n, *c)).sum::<f64>() / labels.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_by_hand() {
        let p = Mat::from_rows(&[[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]]);
        assert_eq!(accuracy(&[0, 2], &p).unwrap(), 0.5);
        let loss = 0.5 * (2f64.ln() - LEAST_PROBABILITY.ln());
        assert!((log_loss(&[0, 2], &p).unwrap() - loss).abs() < 1e-12);
        assert!((brier(&[0, 2], &p).unwrap() - 0.5 * (0.375 + 2.0)).abs() < 1e-15);
        assert_eq!(most_probable(&Mat::from_rows(&[[0.3, 0.3, 0.3]])), [0]);
    }

    #[test]
    fn nonsense_is_refused() {
        let p = Mat::from_rows(&[[0.5, 0.5], [0.2, 0.8]]);
        assert!(accuracy(&[], &Mat::zeros(0, 2)).is_err() && accuracy(&[0], &p).is_err());
        assert!(log_loss(&[0, 2], &p).is_err());
        for bad in [[0.5, 0.6], [1.5, -0.5], [f64::NAN, 1.0]] {
            assert!(brier(&[0], &Mat::from_rows(&[bad])).is_err(), "{bad:?}");
        }
    }
}
