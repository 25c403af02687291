//! Predictions of any regression, and their scores.
//!
//! Scores are defined in [`metrics`](crate::metrics). The density of counts is ln E[p(y | f)], with the
//! latent value integrated out; the density of values is Gaussian with the predicted mean and variance,
//! whatever the likelihood.

use crate::error::{Error, Result};
use crate::likelihood::{Kind, Latents, Likelihood, Observations, Poisson, Quadrature};
use crate::mat::Mat;
use crate::metrics;
use crate::posterior::Prediction;
use serde::{Deserialize, Serialize};

/// Points of the Gauss-Hermite rule for the density of a count.
const POINTS: usize = 40;

/// The levels of [`Scores::coverage`].
pub const LEVELS: [f64; 3] = [0.5, 0.9, 0.95];

/// Predictions at N inputs.
#[derive(Clone, Debug, PartialEq)]
pub enum Answers {
    /// Predictions of observations, N×D: the noise is part of the variance.
    Values(Prediction),
    /// Probabilities, N×C.
    Classes(Mat),
    /// Counts.
    Counts {
        /// E[count].
        mean: Vec<f64>,
        /// Var[count].
        var: Vec<f64>,
        /// The latent value, such as the logarithm of a rate: means and variances, N×1.
        latent: Prediction,
        /// p(count | latent value).
        likelihood: Box<dyn Likelihood>,
    },
}

impl Answers {
    /// Predictions of observations from latent values; errs where they overflow.
    pub fn of(observations: &Observations, latents: Latents) -> Result<Answers> {
        let Some(likelihood) = observations.likelihood().filter(|l| l.kind() != Kind::Classes) else {
            return Ok(Answers::Classes(observations.probabilities(&latents)?));
        };
        let there = latents.observed(likelihood)?;
        Ok(match likelihood.kind() {
            Kind::Counts => Answers::Counts {
                mean: there.mean.into_vec(),
                var: there.var.into_vec(),
                latent: Prediction { mean: latents.mean, var: latents.var },
                likelihood: likelihood.boxed(),
            },
            _ => Answers::Values(there),
        })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Answers::Values(p) => p.mean.rows(),
            Answers::Classes(p) => p.rows(),
            Answers::Counts { mean, .. } => mean.len(),
        }
    }

    /// Joins parts in the order of `rows`: row k of all parts together belongs at `rows[k]`.
    ///
    /// Errs when there are no parts, and when they differ in kind or width.
    pub fn gather(parts: Vec<Answers>, rows: &[usize]) -> Result<Answers> {
        let place = |of: Vec<&Mat>| -> Result<Mat> {
            let cols = of.first().map_or(0, |m| m.cols());
            let all: Vec<&[f64]> = of.iter().flat_map(|m| (0..m.rows()).map(|i| m.row(i))).collect();
            if all.len() != rows.len() || of.iter().any(|m| m.cols() != cols) {
                return Err(Error::shape("gathered predictions", rows.len(), all.len()));
            }
            let mut out = Mat::filled(rows.len(), cols, f64::NAN);
            rows.iter().zip(all).for_each(|(&to, row)| out.row_mut(to).copy_from_slice(row));
            Ok(out)
        };
        let column = |v: &Vec<f64>| Mat::column(v);
        let wrong = || Error::invalid("gathered predictions", "one kind", "several");
        match parts.first() {
            Some(Answers::Values(_)) => {
                let of = |p: &Answers| if let Answers::Values(p) = p { Ok(p.clone()) } else { Err(wrong()) };
                let all = parts.iter().map(of).collect::<Result<Vec<_>>>()?;
                let mean = place(all.iter().map(|p| &p.mean).collect())?;
                Ok(Answers::Values(Prediction { mean, var: place(all.iter().map(|p| &p.var).collect())? }))
            }
            Some(Answers::Classes(_)) => {
                let of = |p: &Answers| if let Answers::Classes(p) = p { Ok(p.clone()) } else { Err(wrong()) };
                let all = parts.iter().map(of).collect::<Result<Vec<_>>>()?;
                Ok(Answers::Classes(place(all.iter().collect())?))
            }
            Some(Answers::Counts { likelihood, .. }) => {
                let of = |p: &Answers| match p {
                    Answers::Counts { mean, var, latent, likelihood: own } if own == likelihood => {
                        Ok([column(mean), column(var), latent.mean.clone(), latent.var.clone()])
                    }
                    _ => Err(wrong()),
                };
                let all = parts.iter().map(of).collect::<Result<Vec<_>>>()?;
                let part = |k: usize| place(all.iter().map(|p| &p[k]).collect());
                let latent = Prediction { mean: part(2)?, var: part(3)? };
                let (mean, var) = (part(0)?.into_vec(), part(1)?.into_vec());
                Ok(Answers::Counts { mean, var, latent, likelihood: likelihood.clone() })
            }
            None => Err(Error::shape("gathered predictions", "at least one part", 0)),
        }
    }
}

/// The mean negative log probability of counts under their predictions, with the latent rate of a Poisson
/// integrated out.
///
/// Errs when lengths differ, when there are no counts, and for a number that is not a count.
pub fn count_nlpd(counts: &[f64], latent: &Prediction) -> Result<f64> {
    nlpd(&Poisson, counts, latent)
}

/// [`count_nlpd`] for any likelihood.
fn nlpd(likelihood: &dyn Likelihood, y: &[f64], latent: &Prediction) -> Result<f64> {
    likelihood.check(y)?;
    if latent.mean.len() != y.len() {
        return Err(Error::shape("predicted counts", y.len(), latent.mean.len()));
    }
    let rule = Quadrature::new(POINTS)?;
    let moments = latent.mean.as_slice().iter().zip(latent.var.as_slice());
    let one = |(y, (m, v)): (&f64, (&f64, &f64))| -likelihood.log_predictive(*y, *m, *v, &rule);
    let mean = y.iter().zip(moments).map(one).sum::<f64>() / y.len() as f64;
    if mean.is_finite() { Ok(mean) } else { Err(Error::not_finite("the negative log probability")) }
}

/// The share of counts inside the central intervals of [`LEVELS`]: from the first count whose distribution
/// function reaches ½(1 − level) to the first where it reaches ½(1 + level).
fn count_coverage(likelihood: &dyn Likelihood, counts: &[f64], latent: &Prediction) -> [f64; 3] {
    let moments = latent.mean.as_slice().iter().zip(latent.var.as_slice());
    let cdf = |y: f64, m: f64, v: f64| if y < 0.0 { 0.0 } else { likelihood.predictive_cdf(y, m, v) };
    let edges: Vec<(f64, f64)> =
        counts.iter().zip(moments).map(|(&y, (&m, &v))| (cdf(y - 1.0, m, v), cdf(y, m, v))).collect();
    LEVELS.map(|level| {
        let inside = |e: &&(f64, f64)| e.0 < 0.5 * (1.0 + level) && e.1 >= 0.5 * (1.0 - level);
        edges.iter().filter(inside).count() as f64 / counts.len() as f64
    })
}

/// Scores of predictions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Cells that were scored.
    pub n: usize,
    /// The root mean squared error, for values and counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmse: Option<f64>,
    /// The normalised mean squared error; `None` where all observations are equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nmse: Option<f64>,
    /// The mean negative log predictive density of an observation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nlpd: Option<f64>,
    /// The share inside the central 50, 90 and 95 % intervals, for values and counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<[f64; 3]>,
    /// The share of right classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// The mean negative log probability of the right class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_loss: Option<f64>,
}

impl Answers {
    /// Scores of every output against the true values, N×D, with NaN where they are unknown; a class is given
    /// by its number. `None` for an output without known values.
    ///
    /// Errs when shapes disagree, and for values that cannot be observed.
    pub fn scores(&self, truth: &Mat) -> Result<Vec<Option<Scores>>> {
        if truth.rows() != self.rows() {
            return Err(Error::shape("rows of the targets", self.rows(), truth.rows()));
        }
        let outputs = if let Answers::Values(p) = self { p.mean.cols() } else { 1 };
        if truth.cols() != outputs {
            return Err(Error::shape("columns of the targets", outputs, truth.cols()));
        }
        (0..truth.cols())
            .map(|d| {
                let rows: Vec<usize> = (0..truth.rows()).filter(|&i| !truth[(i, d)].is_nan()).collect();
                if rows.is_empty() { Ok(None) } else { self.score(&truth.col(d), d, &rows).map(Some) }
            })
            .collect()
    }

    fn score(&self, truth: &[f64], d: usize, rows: &[usize]) -> Result<Scores> {
        let of = |v: &[f64]| rows.iter().map(|&i| v[i]).collect::<Vec<f64>>();
        let y = of(truth);
        let errors = |mean: &[f64]| -> Result<Scores> {
            let nmse = match metrics::nmse(&y, mean) {
                Ok(value) => Some(value),
                Err(Error::Data { .. }) => None,
                Err(e) => return Err(e),
            };
            Ok(Scores { n: y.len(), rmse: Some(metrics::rmse(&y, mean)?), nmse, ..Scores::default() })
        };
        match self {
            Answers::Values(p) => {
                let (mean, var) = (of(&p.mean.col(d)), of(&p.var.col(d)));
                let mut scores = errors(&mean)?;
                scores.nlpd = Some(metrics::nlpd(&y, &mean, &var)?);
                let mut coverage = [0.0; 3];
                for (c, level) in coverage.iter_mut().zip(LEVELS) {
                    *c = metrics::coverage(&y, &mean, &var, level)?;
                }
                scores.coverage = Some(coverage);
                Ok(scores)
            }
            Answers::Counts { mean, latent, likelihood, .. } => {
                let mut scores = errors(&of(mean))?;
                let part = |m: &Mat| m.select_rows(rows);
                let latent = Prediction { mean: part(&latent.mean), var: part(&latent.var) };
                scores.nlpd = Some(nlpd(&**likelihood, &y, &latent)?);
                scores.coverage = Some(count_coverage(&**likelihood, &y, &latent));
                Ok(scores)
            }
            Answers::Classes(p) => {
                if let Some(bad) = y.iter().find(|c| c.fract() != 0.0 || **c < 0.0) {
                    return Err(Error::invalid("a class", "a whole number, 0 or more", bad));
                }
                let labels: Vec<usize> = y.iter().map(|c| *c as usize).collect();
                let p = p.select_rows(rows);
                Ok(Scores {
                    n: y.len(),
                    accuracy: Some(metrics::accuracy(&labels, &p)?),
                    log_loss: Some(metrics::log_loss(&labels, &p)?),
                    ..Scores::default()
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(mean: &[f64]) -> Answers {
        Answers::Values(Prediction { mean: Mat::column(mean), var: Mat::filled(mean.len(), 1, 0.25) })
    }

    #[test]
    fn gathered_rows_are_where_they_belong() {
        let all = Answers::gather(vec![values(&[2.0, 0.0]), values(&[1.0])], &[2, 0, 1]).unwrap();
        assert_eq!(all, values(&[0.0, 1.0, 2.0]));
        let classes = Answers::Classes(Mat::filled(1, 2, 0.5));
        assert!(Answers::gather(vec![values(&[1.0]), classes], &[0, 1]).is_err());
        assert!(Answers::gather(vec![values(&[1.0])], &[0, 1]).is_err());
        assert!(Answers::gather(vec![], &[]).is_err());
    }

    #[test]
    fn scores_leave_out_what_is_not_known() {
        let truth = Mat::column(&[1.0, f64::NAN, 3.0]);
        let scores = values(&[1.0, 9.0, 2.0]).scores(&truth).unwrap()[0].clone().unwrap();
        assert_eq!((scores.n, scores.coverage), (2, Some([0.5; 3])));
        assert!((scores.rmse.unwrap() - 0.5f64.sqrt()).abs() < 1e-14);
        assert!((scores.nmse.unwrap() - 0.5).abs() < 1e-14);
        let none = values(&[1.0]).scores(&Mat::column(&[f64::NAN])).unwrap();
        assert_eq!(none, [None]);
        let equal = values(&[1.0, 2.0]).scores(&Mat::column(&[4.0, 4.0])).unwrap();
        assert_eq!(equal[0].as_ref().unwrap().nmse, None);
        assert!(values(&[1.0]).scores(&truth).is_err());
        assert!(values(&[1.0]).scores(&Mat::zeros(1, 2)).is_err());
        for (class, known) in [(1.0, true), (0.5, false), (-1.0, false), (f64::INFINITY, false)] {
            let classes = Answers::Classes(Mat::filled(1, 2, 0.5));
            assert_eq!(classes.scores(&Mat::column(&[class])).is_ok(), known, "{class}");
        }
    }

    #[test]
    fn a_certain_rate_has_the_density_of_its_count() {
        // −ln of Poisson(3 | 2): 2 − 3 ln 2 + ln 6.
        let latent = Prediction { mean: Mat::filled(1, 1, 2f64.ln()), var: Mat::zeros(1, 1) };
        let by_hand = 2.0 - 3.0 * 2f64.ln() + 6f64.ln();
        assert!((count_nlpd(&[3.0], &latent).unwrap() - by_hand).abs() < 1e-12);
        assert!(count_nlpd(&[0.5], &latent).is_err() && count_nlpd(&[], &latent).is_err());
    }

    #[test]
    fn intervals_of_counts_hold_their_share() {
        // Poisson(2): P(0) = 0.135, P(≤ 3) = 0.857, P(≤ 4) = 0.947, P(≤ 5) = 0.983: the quartiles are 1 and 3,
        // the 5 and 95 % points 0 and 5.
        let n = 7;
        let latent = Prediction { mean: Mat::filled(n, 1, 2f64.ln()), var: Mat::zeros(n, 1) };
        let counts: Vec<f64> = (0..n).map(|y| y as f64).collect();
        assert_eq!(count_coverage(&Poisson, &counts, &latent), [3.0 / 7.0, 6.0 / 7.0, 6.0 / 7.0]);
        let likelihood = Box::new(Poisson);
        let answers = Answers::Counts { mean: vec![2.0; n], var: vec![2.0; n], latent, likelihood };
        let scores = answers.scores(&Mat::column(&counts)).unwrap()[0].clone().unwrap();
        assert_eq!(scores.coverage, Some([3.0 / 7.0, 6.0 / 7.0, 6.0 / 7.0]));
    }
}
