//! How good predictions and latent spaces are.
//!
//! ```text
//! rmse = √(mean (y − m)²)      nmse = mean (y − m)² / mean (y − ȳ)²      r2 = 1 − nmse
//! nlpd = mean of ½ ln 2πv + (y − m)²/2v            coverage = share of |y − m| ≤ √v Φ⁻¹(½ + level/2)
//! ```
//!
//! y are the observations, m and v the predicted means and variances (of observations: noise included).
//! Every function errs when lengths differ, when there is nothing to average and when a number is not
//! finite.

mod classes;

pub use classes::{LEAST_PROBABILITY, accuracy, brier, log_loss, most_probable};

use crate::error::{Error, Result};
use crate::mat::Mat;
use crate::special::normal_quantile;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// The root mean squared error.
///
/// ```
/// assert_eq!(latentgp::metrics::rmse(&[1.0, 2.0], &[4.0, 6.0])?, 12.5f64.sqrt());
/// # Ok::<(), latentgp::Error>(())
/// ```
pub fn rmse(y: &[f64], mean: &[f64]) -> Result<f64> {
    check(y, &[("means", mean)])?;
    finite("the root mean squared error", root_mean_square(y.iter().zip(mean).map(|(y, m)| y - m)))
}

/// The mean squared error divided by that of predicting the mean of `y`, which scores 1.
///
/// Errs when all of `y` are equal: then nothing was there to predict.
pub fn nmse(y: &[f64], mean: &[f64]) -> Result<f64> {
    let error = rmse(y, mean)?;
    let n = y.len() as f64;
    let centre = y.iter().map(|v| v / n).sum::<f64>();
    let spread = root_mean_square(y.iter().map(|v| v - centre));
    let largest = y.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    if spread <= 4.0 * f64::EPSILON * largest {
        return Err(Error::data(
            "the observations",
            "all are equal, so there is no variance to compare with",
        ));
    }
    finite("the normalised mean squared error", (error / spread).powi(2))
}

/// The share of the variance that is explained, 1 − nmse; errs as [`nmse`] does.
pub fn r2(y: &[f64], mean: &[f64]) -> Result<f64> {
    Ok(1.0 - nmse(y, mean)?)
}

/// The mean negative log density of `y` under N(mean, var).
pub fn nlpd(y: &[f64], mean: &[f64], var: &[f64]) -> Result<f64> {
    check_gaussian(y, mean, var)?;
    let density = |((y, m), v): ((&f64, &f64), &f64)| {
        0.5 * ((2.0 * std::f64::consts::PI).ln() + v.ln() + ((y - m) / v.sqrt()).powi(2))
    };
    let sum: f64 = y.iter().zip(mean).zip(var).map(density).sum();
    finite("the negative log predictive density", sum / y.len() as f64)
}

/// The share of `y` inside the central interval of N(mean, var) that holds the probability `level`.
///
/// Errs unless 0 < `level` < 1.
pub fn coverage(y: &[f64], mean: &[f64], var: &[f64], level: f64) -> Result<f64> {
    check_gaussian(y, mean, var)?;
    if !(level > 0.0 && level < 1.0) {
        return Err(Error::invalid("the level of a coverage", "a probability between 0 and 1", level));
    }
    let reach = -normal_quantile(0.5 * (1.0 - level));
    let inside =
        y.iter().zip(mean).zip(var).filter(|((y, m), v)| (*y - *m).abs() <= reach * v.sqrt()).count();
    Ok(inside as f64 / y.len() as f64)
}

/// Share of right answers in each fold.
#[derive(Clone, Debug, PartialEq)]
pub struct Accuracy {
    /// The mean over folds.
    pub mean: f64,
    /// The standard deviation over folds, with n − 1; 0 for a single fold.
    pub std: f64,
    /// Each fold's.
    pub folds: Vec<f64>,
}

/// Divides 0..n at random into `k` folds whose sizes differ by at most one; each is sorted.
///
/// Errs unless 2 ≤ k ≤ n.
pub fn kfold(n: usize, k: usize, seed: u64) -> Result<Vec<Vec<usize>>> {
    if k < 2 || k > n {
        return Err(Error::invalid("the number of folds", format!("from 2 to the {n} rows"), k));
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let mut rest = order.as_slice();
    Ok((0..k)
        .map(|fold| {
            let (head, tail) = rest.split_at(n / k + usize::from(fold < n % k));
            rest = tail;
            let mut rows = head.to_vec();
            rows.sort_unstable();
            rows
        })
        .collect())
}

/// Divides rows at random into `k` folds of equal shares of every label: neither the sizes of the folds nor the
/// rows of a label in them differ by more than one; each fold is sorted.
///
/// Errs unless 2 ≤ k ≤ the number of rows.
///
/// ```
/// let folds = latentgp::metrics::stratified_kfold(&[0, 0, 0, 0, 1, 1], 2, 7)?;
/// assert!(folds.iter().all(|f| f.len() == 3 && f.iter().filter(|&&row| row > 3).count() == 1));
/// # Ok::<(), latentgp::Error>(())
/// ```
pub fn stratified_kfold(labels: &[usize], k: usize, seed: u64) -> Result<Vec<Vec<usize>>> {
    let mut order = kfold(labels.len(), labels.len().max(2), seed)?.concat();
    if k < 2 || k > labels.len() {
        let expected = format!("from 2 to the {} rows", labels.len());
        return Err(Error::invalid("the number of folds", expected, k));
    }
    order.sort_by_key(|&row| labels[row]);
    let mut folds = vec![Vec::new(); k];
    order.iter().enumerate().for_each(|(place, &row)| folds[place % k].push(row));
    folds.iter_mut().for_each(|fold| fold.sort_unstable());
    Ok(folds)
}

/// Accuracy of the k-nearest-neighbour vote: each fold's rows are classified by all rows outside it.
///
/// Of equally near rows the first counts as nearer; of equally frequent labels the one whose nearest row is
/// nearest wins. Errs when a fold is empty, repeats a row, names a row that does not exist, or leaves fewer
/// than k rows outside.
pub fn knn_accuracy(x: &Mat, labels: &[usize], k: usize, folds: &[Vec<usize>]) -> Result<Accuracy> {
    if labels.len() != x.rows() {
        return Err(Error::shape("labels", format!("{}, one a row", x.rows()), labels.len()));
    }
    if !x.is_finite() {
        return Err(Error::not_finite("a position to classify"));
    }
    if folds.is_empty() {
        return Err(Error::invalid("folds", "at least one", 0));
    }
    // Positions of the order of 1, so that squared distances neither overflow nor vanish.
    let exponent = libm::frexp(x.as_slice().iter().fold(0.0, |m: f64, v| m.max(v.abs()))).1;
    let x = x.map(|v| libm::ldexp(v, -exponent));
    let scores = folds.iter().map(|fold| fold_accuracy(&x, labels, k, fold)).collect::<Result<Vec<f64>>>()?;
    let count = scores.len() as f64;
    let mean = scores.iter().sum::<f64>() / count;
    let squares: f64 = scores.iter().map(|s| (s - mean).powi(2)).sum();
    let std = if scores.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
    Ok(Accuracy { mean, std, folds: scores })
}

fn fold_accuracy(x: &Mat, labels: &[usize], k: usize, fold: &[usize]) -> Result<f64> {
    let mut inside = vec![false; x.rows()];
    for &row in fold {
        match inside.get_mut(row) {
            Some(seen) if !*seen => *seen = true,
            Some(_) => return Err(Error::invalid("a fold", "every row once", format!("row {row} twice"))),
            None => return Err(Error::invalid("a fold", format!("rows below {}", x.rows()), row)),
        }
    }
    let outside: Vec<usize> = (0..x.rows()).filter(|&row| !inside[row]).collect();
    if fold.is_empty() || k == 0 || k > outside.len() {
        let found = format!("{} rows in it, {} outside and k = {k}", fold.len(), outside.len());
        return Err(Error::invalid("a fold", "at least 1 row in it and 1 ≤ k rows outside", found));
    }
    let right = fold.par_iter().filter(|&&row| vote(x, labels, k, row, &outside) == labels[row]).count();
    Ok(right as f64 / fold.len() as f64)
}

fn vote(x: &Mat, labels: &[usize], k: usize, row: usize, outside: &[usize]) -> usize {
    let squared = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
    let mut near: Vec<(f64, usize)> = outside.iter().map(|&j| (squared(x.row(row), x.row(j)), j)).collect();
    let order = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    near.select_nth_unstable_by(k - 1, order);
    near.truncate(k);
    near.sort_unstable_by(order);
    let mut ballots: Vec<(usize, usize)> = Vec::new();
    for (_, j) in near {
        match ballots.iter_mut().find(|(label, _)| *label == labels[j]) {
            Some((_, count)) => *count += 1,
            None => ballots.push((labels[j], 1)),
        }
    }
    let most = ballots.iter().map(|&(_, count)| count).max().unwrap_or(0);
    // Ballots are in the order of their nearest row.
    ballots.iter().find(|(_, count)| *count == most).map_or(0, |&(label, _)| label)
}

fn root_mean_square(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let exponent = libm::frexp(values.clone().fold(0.0, |m: f64, v| m.max(v.abs()))).1;
    let (mut squares, mut n) = (0.0, 0.0);
    for v in values {
        squares += libm::ldexp(v, -exponent).powi(2);
        n += 1.0;
    }
    libm::ldexp((squares / n).sqrt(), exponent)
}

fn check(y: &[f64], others: &[(&str, &[f64])]) -> Result<()> {
    if y.is_empty() {
        return Err(Error::shape("observations to score", "at least one", 0));
    }
    for (what, other) in others.iter().chain([&("observations", y)]) {
        if other.len() != y.len() {
            return Err(Error::shape(format!("predicted {what}"), y.len(), other.len()));
        }
        if let Some(at) = other.iter().position(|v| !v.is_finite()) {
            return Err(Error::not_finite(format!("number {} of the {what} to score", at + 1)));
        }
    }
    Ok(())
}

fn check_gaussian(y: &[f64], mean: &[f64], var: &[f64]) -> Result<()> {
    check(y, &[("means", mean), ("variances", var)])?;
    match var.iter().find(|v| **v <= 0.0) {
        Some(v) => Err(Error::invalid("a predicted variance", "a number above 0", v)),
        None => Ok(()),
    }
}

fn finite(what: &str, value: f64) -> Result<f64> {
    if value.is_finite() { Ok(value) } else { Err(Error::not_finite(what)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const Y: [f64; 4] = [1.0, 2.0, 4.0, 5.0];
    const M: [f64; 4] = [1.5, 2.0, 3.0, 7.0];
    const V: [f64; 4] = [0.5, 1.0, 2.0, 1.0];

    #[test]
    fn errors_by_hand() {
        // Squared errors 0.25, 0, 1, 4; the observations' variance is 2.5.
        assert!((rmse(&Y, &M).unwrap() - 1.3125f64.sqrt()).abs() < 1e-15);
        assert!((nmse(&Y, &M).unwrap() - 0.525).abs() < 1e-15);
        assert!((r2(&Y, &M).unwrap() - 0.475).abs() < 1e-15);
        assert_eq!(nmse(&Y, &[3.0; 4]).unwrap(), 1.0);
        let huge = |a: &[f64]| a.iter().map(|v| v * 1e300).collect::<Vec<_>>();
        assert!((rmse(&huge(&Y), &huge(&M)).unwrap() / 1e300 - 1.3125f64.sqrt()).abs() < 1e-14);
        assert!((nmse(&huge(&Y), &huge(&M)).unwrap() - 0.525).abs() < 1e-14);
    }

    #[test]
    fn densities_and_coverage_by_hand() {
        // −mean of scipy.stats.norm.logpdf: ½ ln 2π + ½ mean ln v + ½ mean of 0.5, 0, 0.5, 4.
        let truth = 0.918_938_533_204_672_8 + 0.625;
        assert!((nlpd(&Y, &M, &V).unwrap() - truth).abs() < 1e-15);
        // Standardised errors 0.71, 0, 0.71, 2.
        for (level, share) in [(0.5, 0.25), (0.6, 0.75), (0.95, 0.75), (0.9546, 1.0)] {
            assert_eq!(coverage(&Y, &M, &V, level).unwrap(), share, "{level}");
        }
    }

    #[test]
    fn folds_are_a_partition_fixed_by_the_seed() {
        let folds = kfold(23, 5, 7).unwrap();
        assert_eq!(folds.iter().map(Vec::len).collect::<Vec<_>>(), [5, 5, 5, 4, 4]);
        let mut all = folds.concat();
        all.sort_unstable();
        assert_eq!(all, (0..23).collect::<Vec<_>>());
        assert_eq!(folds, kfold(23, 5, 7).unwrap());
        assert_ne!(folds, kfold(23, 5, 8).unwrap());
        assert!(kfold(3, 4, 0).is_err() && kfold(3, 1, 0).is_err() && kfold(0, 0, 0).is_err());
    }

    #[test]
    fn neighbours_vote() {
        let at = [0.0, 1.0, 2.1, 10.0, 11.0, 12.1, 5.0];
        let labels = [4, 4, 4, 9, 9, 9, 9];
        let folds = vec![vec![0, 3], vec![1, 4], vec![2, 5, 6]];
        for unit in [1.0, 1e200, 1e-200] {
            let x = Mat::from_fn(7, 2, |i, j| if j == 0 { at[i] * unit } else { 0.0 });
            // Row 6 is nearest to row 1 of those outside its fold; everything else is right.
            let one = knn_accuracy(&x, &labels, 1, &folds).unwrap();
            assert_eq!(one.folds, [1.0, 1.0, 2.0 / 3.0]);
            assert!((one.mean - 8.0 / 9.0).abs() < 1e-15 && (one.std - 1.0 / 27f64.sqrt()).abs() < 1e-15);
            // Rows 1, 0 and 3 vote on row 6: two fours.
            assert_eq!(knn_accuracy(&x, &labels, 3, &folds).unwrap().folds[2], 2.0 / 3.0);
        }
        // One vote each: the nearer row decides, and of equally near ones the first.
        let x = Mat::column(&[0.0, 1.0, -1.0, 0.5]);
        assert_eq!(vote(&x, &[0, 1, 2, 3], 3, 0, &[1, 2, 3]), 3);
        assert_eq!(vote(&x, &[0, 1, 2, 3], 2, 0, &[1, 2]), 1);
        let single = knn_accuracy(&x, &[0, 1, 1, 0], 1, &[vec![0]]).unwrap();
        assert_eq!((single.mean, single.std), (1.0, 0.0));
    }

    #[test]
    fn what_cannot_be_scored_is_refused() {
        assert!(rmse(&Y, &M[..3]).is_err() && rmse(&[], &[]).is_err());
        assert!(rmse(&[f64::NAN], &[0.0]).is_err() && rmse(&[0.0], &[f64::INFINITY]).is_err());
        assert!(rmse(&[1.7e308], &[-1.7e308]).is_err());
        assert!(nmse(&[0.1; 3], &[0.2; 3]).is_err());
        assert!(nlpd(&Y, &M, &[0.0; 4]).is_err() && nlpd(&Y, &M, &V[..2]).is_err());
        assert!(nlpd(&[1e200], &[0.0], &[1e-300]).is_err());
        for level in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(coverage(&Y, &M, &V, level).is_err());
        }
        let x = Mat::zeros(4, 1);
        let wrong = |k, fold: Vec<usize>| knn_accuracy(&x, &[0; 4], k, &[fold]).is_err();
        assert!(wrong(1, vec![]) && wrong(1, vec![4]) && wrong(1, vec![1, 1]));
        assert!(wrong(0, vec![1]) && wrong(4, vec![1]) && wrong(1, vec![0, 1, 2, 3]));
        assert!(knn_accuracy(&x, &[0; 3], 1, &[vec![0]]).is_err());
        assert!(knn_accuracy(&x, &[0; 4], 1, &[]).is_err());
        assert!(knn_accuracy(&Mat::filled(4, 1, f64::NAN), &[0; 4], 1, &[vec![0]]).is_err());
    }
}
