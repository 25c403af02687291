//! Latent spaces without inducing inputs behind one door: the GPLVM, whose positions are points, and PPCA.

use crate::error::Result;
use crate::expectation::Gaussians;
use crate::mat::Mat;
use crate::model::{Gplvm, Model, Ppca};
use crate::posterior::Prediction;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// A latent space of either kind.
#[derive(Clone)]
pub enum LatentSpace {
    /// Positions as points.
    Gplvm(Box<Gplvm>),
    /// Principal components, with Y as given: N×D, NaN where a cell is missing.
    Ppca(Box<Ppca>, Mat),
}

/// Latent positions of rows; a GPLVM knows no variances, which are 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Means and variances, N×Q.
    pub q: Gaussians,
    /// The log density of the observed cells of each row, with its position integrated out.
    pub log_density: Vec<f64>,
}

impl LatentSpace {
    /// `gplvm` or `ppca`.
    pub fn name(&self) -> &'static str {
        match self {
            LatentSpace::Gplvm(_) => "gplvm",
            LatentSpace::Ppca(..) => "ppca",
        }
    }

    /// N, D and Q.
    pub fn sizes(&self) -> (usize, usize, usize) {
        match self {
            LatentSpace::Gplvm(m) => (m.outputs.y.rows(), m.outputs.y.cols(), m.x.value.cols()),
            LatentSpace::Ppca(m, y) => (y.rows(), y.cols(), m.latent_dim()),
        }
    }

    /// The rule that uncertain positions are decoded by.
    pub fn expectation(&self) -> String {
        match self {
            LatentSpace::Gplvm(m) => m.expectation.expression(),
            LatentSpace::Ppca(..) => "auto".into(),
        }
    }

    /// Number of missing cells.
    pub fn missing(&self) -> usize {
        let y = match self {
            LatentSpace::Gplvm(m) => &m.outputs.y,
            LatentSpace::Ppca(_, y) => y,
        };
        y.as_slice().iter().filter(|v| v.is_nan()).count()
    }

    /// σ² of all columns or of each, in the units of the scaled data.
    pub fn noise(&self) -> &[f64] {
        match self {
            LatentSpace::Gplvm(m) => m.noise.as_slice(),
            LatentSpace::Ppca(m, _) => &m.noise,
        }
    }

    /// σ² of every column, in the units of the data.
    pub fn noise_variance(&self) -> Vec<f64> {
        match self {
            LatentSpace::Gplvm(m) => m.scaling.variances(m.noise.as_slice()),
            LatentSpace::Ppca(m, _) => m.noise_variance(),
        }
    }

    /// Positions of the training rows.
    pub fn latent(&self) -> Result<Gaussians> {
        match self {
            LatentSpace::Gplvm(m) => Ok(Gaussians::certain(m.x.value.clone())),
            LatentSpace::Ppca(m, y) => gaussians(m, y),
        }
    }

    /// Positions of new rows; NaN is a missing cell.
    pub fn transform(&self, y: &Mat) -> Result<Placed> {
        match self {
            LatentSpace::Gplvm(m) => {
                let (at, log_density) = m.place(&m.posterior()?, y, true)?;
                Ok(Placed { q: Gaussians::certain(at.x), log_density })
            }
            LatentSpace::Ppca(m, _) => Ok(Placed { q: gaussians(m, y)?, log_density: densities(m, y)? }),
        }
    }

    /// The positions alone.
    pub fn project(&self, y: &Mat) -> Result<Gaussians> {
        match self {
            LatentSpace::Gplvm(m) => Ok(Gaussians::certain(m.project(y)?.x)),
            LatentSpace::Ppca(m, _) => gaussians(m, y),
        }
    }

    /// The log densities alone.
    pub fn log_density(&self, y: &Mat) -> Result<Vec<f64>> {
        match self {
            LatentSpace::Gplvm(m) => m.log_density(&m.posterior()?, y),
            LatentSpace::Ppca(m, _) => densities(m, y),
        }
    }

    /// Data at latent positions, without the noise.
    pub fn reconstruct(&self, q: &Gaussians) -> Result<Prediction> {
        match self {
            LatentSpace::Gplvm(m) => {
                let posterior = m.posterior()?;
                match q.var.as_slice().iter().all(|v| *v == 0.0) {
                    true => posterior.predict(&q.mean),
                    false => posterior.predict_uncertain(q),
                }
            }
            LatentSpace::Ppca(m, _) => m.reconstruct_uncertain(q),
        }
    }

    /// Y with its missing cells filled, and their variances, noise included; 0 where a cell was observed.
    pub fn impute(&self, y: &Mat) -> Result<Prediction> {
        match self {
            LatentSpace::Ppca(m, _) => m.impute(y),
            LatentSpace::Gplvm(m) => {
                let posterior = m.posterior()?;
                let there = posterior.predict(&m.project_with(&posterior, y)?.x)?;
                let noise = posterior.noise_variance();
                let mut all = Prediction { mean: y.clone(), var: Mat::zeros(y.rows(), y.cols()) };
                for i in 0..y.rows() {
                    for j in (0..y.cols()).filter(|j| y[(i, *j)].is_nan()) {
                        all.mean[(i, j)] = there.mean[(i, j)];
                        all.var[(i, j)] = there.var[(i, j)] + noise[j];
                    }
                }
                Ok(all)
            }
        }
    }

    /// `n` draws from the model: x ~ N(0, I), y ~ p(y | x), both returned.
    pub fn sample(&self, n: usize, seed: u64) -> Result<(Mat, Mat)> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = |_: usize, _: usize| -> f64 { StandardNormal.sample(&mut rng) };
        let x = Mat::from_fn(n, self.sizes().2, &mut normal);
        let at = self.reconstruct(&Gaussians::certain(x.clone()))?;
        let noise = self.noise_variance();
        let y = Mat::from_fn(n, at.mean.cols(), |i, j| {
            at.mean[(i, j)] + (at.var[(i, j)] + noise[j]).sqrt() * normal(i, j)
        });
        Ok((x, y))
    }

    /// How much each dimension matters, in the units of the scaled data: ‖w_k‖² for PPCA; for a GPLVM the mean
    /// square of the slope of the posterior mean times the spread of the positions, as positions and
    /// lengthscales share one scale.
    pub fn relevance(&self) -> Result<Vec<f64>> {
        match self {
            LatentSpace::Ppca(m, _) => {
                Ok((0..m.latent_dim()).map(|k| m.w.col(k).iter().map(|w| w * w).sum()).collect())
            }
            LatentSpace::Gplvm(m) => slopes(m),
        }
    }
}

fn densities(model: &Ppca, y: &Mat) -> Result<Vec<f64>> {
    (0..y.rows()).map(|i| model.log_likelihood(&y.slice_rows(i, i + 1))).collect()
}

fn gaussians(model: &Ppca, y: &Mat) -> Result<Gaussians> {
    let at = model.transform(y)?;
    let var = Mat::from_fn(y.rows(), model.latent_dim(), |i, k| at.cov[i][(k, k)]);
    Gaussians::new(at.mean, var)
}

fn slopes(model: &Gplvm) -> Result<Vec<f64>> {
    let posterior = model.posterior()?;
    let x = &model.x.value;
    let (n, d) = (x.rows(), model.outputs.y.cols());
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
        squares.sum::<f64>() / (n * d) as f64 * spread
    };
    Ok((0..x.cols()).map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PpcaOptions;

    #[test]
    fn draws_have_the_covariance_of_the_model() {
        let y = Mat::from_fn(60, 3, |i, j| {
            (0.3 * i as f64).sin() * (1.0 + j as f64) + ((i * 5 + j * j) as f64).cos()
        });
        let ppca = Ppca::fit(&y, &PpcaOptions { latent_dim: 1, ..Default::default() }).unwrap();
        let (w, s, noise) = (ppca.w.clone(), ppca.scaling.clone(), ppca.noise_variance());
        let space = LatentSpace::Ppca(Box::new(ppca), y);
        const DRAWS: usize = 20_000;
        let (x, drawn) = space.sample(DRAWS, 3).unwrap();
        assert_eq!((x.rows(), drawn.cols()), (DRAWS, 3));
        assert_eq!(space.sample(DRAWS, 3).unwrap().1, drawn);
        for j in 0..3 {
            let expected = (w[(j, 0)] * s.scale[j]).powi(2) + noise[j];
            let mean = drawn.col(j).iter().sum::<f64>() / DRAWS as f64;
            let var = drawn.col(j).iter().map(|v| (v - mean).powi(2)).sum::<f64>() / DRAWS as f64;
            assert!((var / expected - 1.0).abs() < 0.05, "{var} against {expected}");
        }
    }
}
