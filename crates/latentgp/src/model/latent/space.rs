//! What every latent space can do: the trait that model files, the command line and Python see.

use crate::data::Scaling;
use crate::error::Result;
use crate::expectation::Gaussians;
use crate::file::{ModelFile, Store, TrainedSpace};
use crate::kernel::Kernel;
use crate::mat::Mat;
use crate::model::Certificate;
use crate::param::Parameterized;
use crate::posterior::{Posterior, Prediction};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// A latent space of any kind.
pub trait LatentSpace: Send + Sync {
    /// Its name, such as `gplvm` or `ppca`.
    fn name(&self) -> &'static str;

    /// What it is, in words.
    fn title(&self) -> &'static str;

    /// What its fit maximises, in words.
    fn objective(&self) -> &'static str;

    /// Y, N×D, NaN where a cell is missing; scaled or as given.
    fn y(&self) -> &Mat;

    /// Q.
    fn latent_dim(&self) -> usize;

    /// The units of Y.
    fn scaling(&self) -> &Scaling;

    /// σ² of all columns or of each, in the units of the scaled data.
    fn noise(&self) -> &[f64];

    /// The log evidence of the data as given; the log density of data and positions where these are points.
    fn evidence(&self) -> Result<f64>;

    /// Positions of the training rows.
    fn latent(&self) -> Result<Gaussians>;

    /// Positions of new rows; NaN is a missing cell.
    fn transform(&self, y: &Mat) -> Result<Placed>;

    /// The positions alone.
    fn project(&self, y: &Mat) -> Result<Gaussians>;

    /// The log densities alone; `samples` and `seed` are those of importance sampling, where a model has no closed form.
    fn log_density(&self, y: &Mat, samples: usize, seed: u64) -> Result<Vec<f64>>;

    /// Data at latent positions, without the noise.
    fn reconstruct(&self, q: &Gaussians) -> Result<Prediction>;

    /// Y with its missing cells filled, and their variances, noise included; 0 where a cell was observed.
    fn impute(&self, y: &Mat) -> Result<Prediction>;

    /// How much each dimension matters, in the units of the scaled data.
    fn relevance(&self) -> Result<Vec<f64>>;

    /// Writes what is its own into a model file.
    fn store(&self, file: &mut ModelFile) -> Result<()>;

    /// A copy.
    fn boxed(&self) -> Box<dyn LatentSpace>;

    /// The kind of its model file.
    fn kind(&self) -> &'static str {
        TrainedSpace::KIND
    }

    /// The positions, and what else comes with them without more work: log densities, or nothing.
    fn place(&self, y: &Mat) -> Result<Placed> {
        Ok(Placed { q: self.project(y)?, log_density: Vec::new() })
    }

    /// What the log densities of [`transform`](Self::transform) are: `log_density`, or `bound` where they are lower bounds.
    fn density(&self) -> &'static str {
        "log_density"
    }

    /// Z, where there are inducing inputs.
    fn inducing(&self) -> Option<&Mat> {
        None
    }

    /// The process that positions are decoded by, where it is one.
    fn decoder(&self) -> Result<Option<Posterior>> {
        Ok(None)
    }

    /// How far the Ψ-statistics are from those of a stronger rule, where there are any.
    fn certificate(&self) -> Result<Option<Certificate>> {
        Ok(None)
    }

    /// What Kzz needs on its diagonal beyond the usual jitter, where there is one.
    fn extra_jitter(&self) -> Result<Option<f64>> {
        Ok(None)
    }

    /// A sentence for each way in which the fit explains less than it could.
    fn collapses(&self) -> Vec<String> {
        Vec::new()
    }

    /// Dimensions, counted from 0, that are switched off.
    fn unused(&self) -> Vec<usize> {
        Vec::new()
    }

    /// The kernel and the other parameters, where there are any.
    fn parameters(&self) -> Option<(&dyn Kernel, &dyn Parameterized)> {
        None
    }

    /// Whether positions are points, without variances.
    fn is_certain(&self) -> bool {
        false
    }

    /// Whether the noise ended at its floor.
    fn noise_at_floor(&self) -> bool {
        false
    }

    /// W, D×Q, and the mean in the units of the data, of linear models.
    fn loadings(&self) -> Result<Option<(Mat, Vec<f64>)>> {
        Ok(None)
    }

    /// The rule that uncertain positions are decoded by.
    fn expectation(&self) -> String {
        "auto".into()
    }

    /// N, D and Q.
    fn sizes(&self) -> (usize, usize, usize) {
        (self.y().rows(), self.y().cols(), self.latent_dim())
    }

    /// Number of missing cells.
    fn missing(&self) -> usize {
        self.y().as_slice().iter().filter(|v| v.is_nan()).count()
    }

    /// σ² of every column, in the units of the data.
    fn noise_variance(&self) -> Vec<f64> {
        self.scaling().variances(self.noise())
    }

    /// `n` draws from the model: x ~ N(0, I), y ~ p(y | x), both returned.
    fn sample(&self, n: usize, seed: u64) -> Result<(Mat, Mat)> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = |_: usize, _: usize| -> f64 { StandardNormal.sample(&mut rng) };
        let x = Mat::from_fn(n, self.latent_dim(), &mut normal);
        let at = self.reconstruct(&Gaussians::certain(x.clone()))?;
        let noise = self.noise_variance();
        let y = Mat::from_fn(n, at.mean.cols(), |i, j| {
            at.mean[(i, j)] + (at.var[(i, j)] + noise[j]).sqrt() * normal(i, j)
        });
        Ok((x, y))
    }
}

impl Clone for Box<dyn LatentSpace> {
    fn clone(&self) -> Self {
        self.boxed()
    }
}

/// Puts the name of a model into a file, and what the headers of latent spaces without inducing inputs say where a model says
/// nothing else.
pub(super) fn put_usual(name: &str, file: &mut ModelFile) -> Result<()> {
    file.set("model", name)?;
    file.set("kernel", "linear")?;
    file.set("expectation", ())?;
    file.set("standard_normal", true)?;
    file.set("converged", true)?;
    file.set("params", [(); 0])
}

/// Latent positions of rows; a GPLVM knows no variances, which are 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Means and variances, N×Q.
    pub q: Gaussians,
    /// The log density of the observed cells of each row, with its position integrated out, or a lower bound of it.
    pub log_density: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Ppca, PpcaOptions, PpcaSpace};

    #[test]
    fn draws_have_the_covariance_of_the_model() {
        let y = Mat::from_fn(60, 3, |i, j| {
            (0.3 * i as f64).sin() * (1.0 + j as f64) + ((i * 5 + j * j) as f64).cos()
        });
        let ppca = Ppca::fit(&y, &PpcaOptions { latent_dim: 1, ..Default::default() }).unwrap();
        let (w, s, noise) = (ppca.w.clone(), ppca.scaling.clone(), ppca.noise_variance());
        let space = PpcaSpace { model: ppca, y };
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
