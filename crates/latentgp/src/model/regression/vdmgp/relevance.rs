//! Relevance in a variational Mahalanobis process: directions, and shares of the original inputs.
//!
//! A direction contributes c_k = mean (f̂(x_n) − f̂₋ₖ(x_n))² / var y, over the training rows and the outputs:
//! the change of the fitted function when direction k is held at the projection of the average input. It is
//! useful when c_k ≥ 0.01 ([`USEFUL`]). The share of input d is
//!
//! ```text
//! s_d = Σ_k c_k/Σc · w_kd²/Σ_e w_ke²      over the useful k
//! ```
//!
//! with the weights of the scaled inputs; draws of W from q(W) give its mean, standard deviation and 90 %
//! interval.

use crate::error::Result;
use crate::expectation::Gaussians;
use crate::mat::Mat;
use crate::model::{Model, Vdmgp};
use crate::posterior::{InputMap, Posterior};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// A direction is useful when its contribution is at least this part of the variance of the targets.
pub const USEFUL: f64 = 0.01;
/// Draws of W for the shares.
const DRAWS: usize = 2000;
/// The fixed seed of these draws, so that a report repeats to the bit.
const SEED: u64 = 0;

/// A direction of the projection.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// The row of W.
    pub index: usize,
    /// c_k.
    pub contribution: f64,
    /// Whether c_k reaches [`USEFUL`].
    pub useful: bool,
    /// ℓ²_k, the prior variance of its weights.
    pub ell2: f64,
}

/// The share of one original input in the useful directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InputShare {
    /// The posterior mean of s_d; the shares sum to 1, or are all 0 when no direction is useful.
    pub share: f64,
    /// Its posterior standard deviation.
    pub std: f64,
    /// The 5 % quantile.
    pub low: f64,
    /// The 95 % quantile.
    pub high: f64,
}

/// The report.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightRelevance {
    /// All directions, the largest contribution first.
    pub directions: Vec<Direction>,
    /// One for each input column.
    pub inputs: Vec<InputShare>,
}

impl WeightRelevance {
    /// How many directions are useful.
    pub fn useful(&self) -> usize {
        self.directions.iter().filter(|d| d.useful).count()
    }
}

impl Vdmgp {
    /// Which directions are useful, and what each input's share in them is.
    pub fn relevance(&self) -> Result<WeightRelevance> {
        let posterior = self.posterior()?;
        let (contributions, ell2) = (self.contributions(&posterior)?, self.ell2());
        let one = |k: usize| Direction {
            index: k,
            contribution: contributions[k],
            useful: contributions[k] >= USEFUL,
            ell2: ell2[k],
        };
        let mut directions: Vec<Direction> = (0..ell2.len()).map(one).collect();
        directions.sort_by(|a, b| b.contribution.total_cmp(&a.contribution).then(a.index.cmp(&b.index)));
        let inputs = self.shares(&directions);
        Ok(WeightRelevance { directions, inputs })
    }

    /// c_k, in the units of the scaled targets.
    fn contributions(&self, posterior: &Posterior) -> Result<Vec<f64>> {
        let plain = Posterior { map: InputMap::AsIs, inputs: None, ..posterior.clone() };
        let latent = self.latent();
        let mean =
            |q: &Gaussians| -> Result<Mat> { self.data.outputs.apply(&plain.predict_uncertain(q)?.mean) };
        let whole = mean(&latent)?;
        let variance = self.data.variance();
        let one = |k: usize| -> Result<f64> {
            let mut without = latent.clone();
            let average = latent.mean.col(k).iter().sum::<f64>() / latent.n() as f64;
            for n in 0..latent.n() {
                without.mean[(n, k)] = average;
                without.var[(n, k)] = 0.0;
            }
            let mut moved = mean(&without)?;
            moved.add_scaled(-1.0, &whole);
            Ok(moved.dot(&moved) / (moved.len() as f64 * variance))
        };
        (0..latent.dim()).map(one).collect()
    }

    fn shares(&self, directions: &[Direction]) -> Vec<InputShare> {
        let (mean, var) = (&self.mean.value, &self.var.value);
        let useful: Vec<&Direction> = directions.iter().filter(|d| d.useful).collect();
        let total: f64 = useful.iter().map(|d| d.contribution).sum();
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        let mut draws = Mat::zeros(mean.cols(), DRAWS);
        for direction in useful {
            let (mean, var) = (mean.row(direction.index), var.row(direction.index));
            for s in 0..DRAWS {
                let squares: Vec<f64> = mean
                    .iter()
                    .zip(var)
                    .map(|(m, v)| {
                        let draw: f64 = StandardNormal.sample(&mut rng);
                        (m + v.sqrt() * draw).powi(2)
                    })
                    .collect();
                let norm: f64 = squares.iter().sum();
                if norm > 0.0 {
                    let part = direction.contribution / (total * norm);
                    squares.iter().enumerate().for_each(|(d, w2)| draws[(d, s)] += part * w2);
                }
            }
        }
        (0..mean.cols()).map(|d| summary(draws.row_mut(d))).collect()
    }
}

fn summary(draws: &mut [f64]) -> InputShare {
    let n = draws.len() as f64;
    let share = draws.iter().sum::<f64>() / n;
    let std = (draws.iter().map(|v| (v - share).powi(2)).sum::<f64>() / n).sqrt();
    draws.sort_by(f64::total_cmp);
    let quantile = |p: f64| draws[((n - 1.0) * p).round() as usize];
    InputShare { share, std, low: quantile(0.05), high: quantile(0.95) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Scale;
    use crate::expectation::Auto;
    use crate::kernel::Rbf;
    use crate::model::{Supervised, WeightPrior};

    /// Three directions: the first depends on inputs 0 and 1 in the ratio 2:1, the second hardly on any, the
    /// third on none.
    fn model(var: f64) -> Vdmgp {
        let x = Mat::from_fn(40, 4, |i, j| ((i * 13 + j * 29 + i * j) as f64 * 0.618).fract());
        let y = Mat::from_fn(40, 1, |i, _| 2.0 * x[(i, 0)] + x[(i, 1)]);
        let data = Supervised::new(&x, &y, Scale::Standardize, Scale::Standardize).unwrap();
        let mean = Mat::from_rows(&[[0.6, 0.3, 0.0, 0.0], [0.0, 0.0, 1e-3, 0.0], [0.0; 4]]);
        let z = Mat::from_fn(6, 3, |i, j| if j == 0 { i as f64 * 0.5 - 1.25 } else { 0.0 });
        let weights = Gaussians::new(mean, Mat::filled(3, 4, var)).unwrap();
        Vdmgp::new(data, Rbf::new(3), Box::new(Auto), WeightPrior::TypeII, weights, z, 0.01).unwrap()
    }

    #[test]
    fn one_direction_is_useful_and_its_inputs_share_it() {
        let report = model(1e-12).relevance().unwrap();
        assert_eq!(report.useful(), 1);
        assert_eq!((report.directions[0].index, report.directions[2].index), (0, 2));
        assert!(report.directions[0].contribution > 0.5 && report.directions[1].contribution < 1e-3);
        for (input, share) in report.inputs.iter().zip([0.8, 0.2, 0.0, 0.0]) {
            assert!((input.share - share).abs() < 1e-4 && input.std < 1e-4, "{input:?} against {share}");
        }
    }

    #[test]
    fn uncertain_weights_make_uncertain_shares() {
        let (sure, unsure) = (model(1e-12).relevance().unwrap(), model(0.01).relevance().unwrap());
        assert_eq!(unsure.useful(), 1);
        for (a, b) in sure.inputs.iter().zip(&unsure.inputs) {
            assert!(b.std > a.std && b.low < b.share && b.share < b.high);
        }
        let total: f64 = unsure.inputs.iter().map(|i| i.share).sum();
        assert!((total - 1.0).abs() < 1e-12);
        assert!(unsure.inputs[0].low > unsure.inputs[2].high);
        assert_eq!(unsure, model(0.01).relevance().unwrap());
    }

    #[test]
    fn a_constant_function_has_no_useful_direction() {
        let mut constant = model(1e-3);
        constant.mean.set(0.0);
        let report = constant.relevance().unwrap();
        assert_eq!(report.useful(), 0);
        assert!(report.inputs.iter().all(|i| i.share == 0.0 && i.high == 0.0));
    }
}
