//! What latent spaces read from the posterior of their function: reconstructions, filled cells, and slopes.

use crate::error::Result;
use crate::expectation::Gaussians;
use crate::mat::Mat;
use crate::posterior::{Posterior, Prediction};

/// Data at latent positions: certain ones, or Gaussians where any variance is above 0.
pub(crate) fn reconstruct(posterior: &Posterior, q: &Gaussians) -> Result<Prediction> {
    match q.var.as_slice().iter().all(|v| *v == 0.0) {
        true => posterior.predict(&q.mean),
        false => posterior.predict_uncertain(q),
    }
}

/// A table with its missing cells filled by what is predicted `there`; variances include the noise, and are 0 where a cell
/// was observed.
pub(crate) fn fill(posterior: &Posterior, y: &Mat, there: &Prediction) -> Prediction {
    let noise = posterior.noise_variance();
    let mut filled = Prediction { mean: y.clone(), var: Mat::zeros(y.rows(), y.cols()) };
    for i in 0..y.rows() {
        for j in (0..y.cols()).filter(|j| y[(i, *j)].is_nan()) {
            filled.mean[(i, j)] = there.mean[(i, j)];
            filled.var[(i, j)] = there.var[(i, j)] + noise[j];
        }
    }
    filled
}

/// How much each latent dimension matters where the kernel's parameters do not tell: the mean square of the slope of the
/// posterior mean in it, times the spread of the positions, as positions and lengthscales share one scale.
pub(crate) fn slopes(posterior: &Posterior, x: &Mat) -> Vec<f64> {
    let n = x.rows();
    let one = |k: usize| {
        let mean = x.col(k).iter().sum::<f64>() / n as f64;
        let spread = x.col(k).iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
        let h = 1e-3 * (1.0 + spread.sqrt());
        let moved = |by: f64| {
            let mut moved = x.clone();
            (0..n).for_each(|i| moved[(i, k)] += by);
            posterior.predict_scaled(&moved).mean
        };
        let (up, down) = (moved(h), moved(-h));
        let squares = up.as_slice().iter().zip(down.as_slice()).map(|(a, b)| ((a - b) / (2.0 * h)).powi(2));
        squares.sum::<f64>() / up.len() as f64 * spread
    };
    (0..x.cols()).map(one).collect()
}
