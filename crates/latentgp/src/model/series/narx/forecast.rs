//! The forecast of a simulation, and its scores.

use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::mat::Mat;
use crate::metrics;
use crate::special::normal_quantile;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// The levels at which coverage is reported.
pub const LEVELS: [f64; 3] = [0.5, 0.9, 0.95];

/// Means and variances of the steps ahead.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// Means, a row each step, a column each series.
    pub mean: Mat,
    /// Variances of observations, noise included.
    pub var: Mat,
    /// The futures that were drawn, each as large as `mean`; empty unless they were asked for.
    pub trajectories: Vec<Mat>,
    /// How many evaluations of the kernel the simulation made, or of closed-form expectations.
    pub evaluations: f64,
}

/// The scores of the forecast of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Root mean squared error.
    pub rmse: f64,
    /// Mean negative log predictive density.
    pub nlpd: f64,
    /// Share of the true values inside the central intervals of [`LEVELS`].
    pub coverage: [f64; 3],
    /// The number of values compared.
    pub count: usize,
}

impl Score {
    /// Scores observations under N(mean, var); missing observations (NaN) are left out.
    ///
    /// Errs when lengths differ or nothing is observed.
    pub fn new(y: &[f64], mean: &[f64], var: &[f64]) -> Result<Self> {
        if y.len() != mean.len() || y.len() != var.len() {
            return Err(Error::shape("values to score", mean.len(), y.len()));
        }
        let seen: Vec<usize> = (0..y.len()).filter(|&i| !y[i].is_nan()).collect();
        let pick = |of: &[f64]| -> Vec<f64> { seen.iter().map(|&i| of[i]).collect() };
        let (y, mean, var) = (pick(y), pick(mean), pick(var));
        let mut coverage = [0.0; 3];
        for (share, level) in coverage.iter_mut().zip(LEVELS) {
            *share = metrics::coverage(&y, &mean, &var, level)?;
        }
        Ok(Score {
            rmse: metrics::rmse(&y, &mean)?,
            nlpd: metrics::nlpd(&y, &mean, &var)?,
            coverage,
            count: y.len(),
        })
    }
}

impl Forecast {
    pub(super) fn empty(steps: usize, series: usize) -> Self {
        let (mean, var) = (Mat::zeros(steps, series), Mat::zeros(steps, series));
        Forecast { mean, var, trajectories: Vec::new(), evaluations: 0.0 }
    }

    /// Adds reading errors of this variance to the drawn futures.
    pub(super) fn read_with(&mut self, variance: f64, seed: u64) {
        if variance == 0.0 {
            return;
        }
        // These random streams come after the streams of the futures.
        const FIRST: u64 = 1 << 32;
        for (s, path) in self.trajectories.iter_mut().enumerate() {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(FIRST + s as u64);
            for value in path.as_mut_slice() {
                let xi: f64 = StandardNormal.sample(&mut rng);
                *value += variance.sqrt() * xi;
            }
        }
    }

    /// The forecast without its first steps.
    pub(super) fn after(self, steps: usize) -> Self {
        if steps == 0 {
            return self;
        }
        let rest = |of: &Mat| of.slice_rows(steps, of.rows());
        let trajectories = self.trajectories.iter().map(rest).collect();
        Forecast { mean: rest(&self.mean), var: rest(&self.var), trajectories, evaluations: self.evaluations }
    }

    pub(super) fn in_units(self, scaling: &Scaling) -> Result<Self> {
        let mean = scaling.undo_mean(&self.mean)?;
        let var = scaling.undo_var(&self.var)?;
        if !(mean.is_finite() && var.is_finite()) {
            return Err(Error::not_finite("a forecast"));
        }
        let trajectories =
            self.trajectories.iter().map(|t| scaling.undo_mean(t)).collect::<Result<Vec<_>>>()?;
        Ok(Forecast { mean, var, trajectories, evaluations: self.evaluations })
    }

    /// The scores of each series, from step `first` (from 0) to the last that `truth` has.
    ///
    /// `truth` has a row each step, as many as the forecast or fewer; NaN is missing.
    pub fn score(&self, truth: &Mat, first: usize) -> Result<Vec<Score>> {
        let last = truth.rows();
        if truth.cols() != self.mean.cols() || last > self.mean.rows() {
            let expected = format!("at most {}", self.mean.shape());
            return Err(Error::shape("truth of a forecast", expected, truth.shape()));
        }
        if first >= last {
            return Err(Error::invalid("first step to score", format!("below {last}"), first));
        }
        let column = |of: &Mat, d: usize| (first..last).map(|h| of[(h, d)]).collect::<Vec<f64>>();
        (0..truth.cols())
            .map(|d| Score::new(&column(truth, d), &column(&self.mean, d), &column(&self.var, d)))
            .collect()
    }

    /// The ends of the central interval that holds the probability `level` at every step: quantiles of the
    /// trajectories where there are any, of the Gaussian elsewhere.
    ///
    /// Errs unless 0 < `level` < 1.
    pub fn band(&self, level: f64) -> Result<(Mat, Mat)> {
        if !(level > 0.0 && level < 1.0) {
            return Err(Error::invalid("level of a band", "a probability between 0 and 1", level));
        }
        let tail = 0.5 * (1.0 - level);
        let end = |p: f64| {
            Mat::from_fn(self.mean.rows(), self.mean.cols(), |h, d| match self.trajectories.len() {
                0 => self.mean[(h, d)] + normal_quantile(p) * self.var[(h, d)].sqrt(),
                _ => quantile(self.trajectories.iter().map(|t| t[(h, d)]).collect(), p),
            })
        };
        Ok((end(tail), end(1.0 - tail)))
    }
}

/// The p-quantile of a sample, linear between its order statistics.
fn quantile(mut sample: Vec<f64>, p: f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let at = p * (sample.len() - 1) as f64;
    let (lo, part) = (at.floor() as usize, at.fract());
    let hi = (lo + 1).min(sample.len() - 1);
    sample[lo] + part * (sample[hi] - sample[lo])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_leave_out_what_is_missing() {
        let mut forecast = Forecast::empty(3, 1);
        forecast.var.fill(4.0);
        let truth = Mat::column(&[9.0, 1.0, f64::NAN]);
        let score = &forecast.score(&truth, 1).unwrap()[0];
        assert_eq!((score.rmse, score.count, score.coverage), (1.0, 1, [1.0; 3]));
        assert!((score.nlpd - 0.5 * ((8.0 * std::f64::consts::PI).ln() + 0.25)).abs() < 1e-14);
        assert!(forecast.score(&truth, 3).is_err() && forecast.score(&Mat::zeros(4, 1), 0).is_err());
        assert!(forecast.score(&Mat::zeros(3, 2), 0).is_err() && forecast.score(&truth, 2).is_err());
    }

    #[test]
    fn bands_are_quantiles() {
        let mut forecast = Forecast::empty(1, 1);
        forecast.var.fill(1.0);
        let (lo, hi) = forecast.band(0.95).unwrap();
        assert!(
            (hi[(0, 0)] - 1.959_963_984_540_054).abs() < 1e-12 && (lo[(0, 0)] + hi[(0, 0)]).abs() < 1e-12
        );
        forecast.trajectories = (0..=100).rev().map(|i| Mat::filled(1, 1, i as f64)).collect();
        let (lo, hi) = forecast.band(0.9).unwrap();
        assert!((lo[(0, 0)] - 5.0).abs() < 1e-9 && (hi[(0, 0)] - 95.0).abs() < 1e-9);
        assert!(forecast.band(1.0).is_err());
    }
}
