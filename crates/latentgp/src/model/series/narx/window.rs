//! The window of a simulation: means and covariances of the lags, which advance one step at a time.

use crate::data::lags::Lags;
use crate::expectation::Gaussians;
use crate::mat::Mat;

/// The lags of all series, scaled: means and their covariance.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// Series and lag of every entry.
    places: Vec<(usize, usize)>,
    pub mean: Vec<f64>,
    pub cov: Mat,
}

impl Window {
    /// The window at the end of `history` (scaled, T×D), whose values are independent.
    pub fn new(lags: &Lags, history: &Gaussians) -> Self {
        let lag = lags.series.iter().enumerate();
        let places: Vec<(usize, usize)> = lag.flat_map(|(d, &l)| (0..l).map(move |p| (d, p))).collect();
        let last = |&(d, p): &(usize, usize)| (history.n() - 1 - p, d);
        let mean = places.iter().map(|place| history.mean[last(place)]).collect();
        let n = places.len();
        let cov = Mat::from_fn(n, n, |i, j| if i == j { history.var[last(&places[i])] } else { 0.0 });
        Window { places, mean, cov }
    }

    /// The variances of the lags.
    pub fn var(&self) -> Vec<f64> {
        (0..self.mean.len()).map(|i| self.cov[(i, i)]).collect()
    }

    /// Appends new values with their covariance (D×D). `cross`, where it is tracked, is their covariance with
    /// the window (n×D, at least as many rows as lags).
    pub fn push(&mut self, mean: &[f64], cov: &Mat, cross: Option<&Mat>) {
        // Lag p of a series was lag p − 1 one step before; lag 0 is the new value.
        let before = |i: usize| (self.places[i].1 > 0).then(|| i - 1);
        let n = self.mean.len();
        let next = Mat::from_fn(n, n, |i, j| {
            let (di, dj) = (self.places[i].0, self.places[j].0);
            match (before(i), before(j), cross) {
                (Some(a), Some(b), _) => self.cov[(a, b)],
                (None, None, Some(_)) => cov[(di, dj)],
                (None, None, None) => {
                    if di == dj {
                        cov[(di, di)]
                    } else {
                        0.0
                    }
                }
                (Some(a), None, Some(cross)) => cross[(a, dj)],
                (None, Some(b), Some(cross)) => cross[(b, di)],
                (_, _, None) => 0.0,
            }
        });
        self.mean = (0..n).map(|i| before(i).map_or(mean[self.places[i].0], |a| self.mean[a])).collect();
        self.cov = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_covariances_move_on() {
        let mean = Mat::from_rows(&[[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]);
        let history = Gaussians { var: Mat::filled(3, 2, 0.5), mean };
        let mut window = Window::new(&Lags::of_series(&[2, 1]), &history);
        assert_eq!(window.mean, [3.0, 2.0, 30.0]);
        let cov = Mat::from_rows(&[[4.0, 1.0], [1.0, 9.0]]);
        let cross = Mat::from_rows(&[[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]);
        let mut plain = window.clone();
        plain.push(&[7.0, 70.0], &cov, None);
        assert_eq!((plain.mean.clone(), plain.var()), (vec![7.0, 3.0, 70.0], vec![4.0, 0.5, 9.0]));
        assert_eq!(plain.cov[(0, 2)], 0.0);
        window.push(&[7.0, 70.0], &cov, Some(&cross));
        assert_eq!(window.cov, Mat::from_rows(&[[4.0, 0.1, 1.0], [0.1, 0.5, 0.2], [1.0, 0.2, 9.0]]));
    }
}
