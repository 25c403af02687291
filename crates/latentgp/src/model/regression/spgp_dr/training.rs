//! From a table to a fitted SPGP-DR, or to plain FITC: the start and the restarts.
//!
//! Inputs and targets are scaled. P starts at the principal directions of the inputs or at random ones, with
//! a length that puts projected inputs about one lengthscale apart for any K. Z starts at projected rows that
//! are far apart. Restarts, which run in parallel, draw P and Z afresh; the best evidence is kept.

use crate::data::Scale;
use crate::error::{Result, at_least_one};
use crate::fit::{self, Effort, Fitted, OnIteration, Plan, Schedule, rng_of};
use crate::kernel::Kernel;
use crate::linalg;
use crate::mat::Mat;
use crate::model::shared::noise::noise_param_of;
use crate::model::shared::starts::{normals, spread_out};
use crate::model::shared::supervised::fix_redundant_lengthscales;
use crate::model::{SpgpDr, Supervised};
use rand_chacha::ChaCha8Rng;

/// Where the projection starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProjectionStart {
    /// At the principal directions of the inputs; at random directions beyond their number and in restarts.
    #[default]
    Pca,
    /// At random directions.
    Random,
    /// At the identity, fixed: plain FITC regression.
    Identity,
}

/// How an SPGP-DR is made and fitted.
///
/// ```
/// use latentgp::{Mat, kernel::Matern52, model::{Model, SpgpDrTraining}};
/// use std::ops::ControlFlow;
/// let x = Mat::from_fn(60, 3, |i, j| ((i + 1) as f64 * [0.618, 0.414, 0.732][j]).fract());
/// let y = Mat::from_fn(60, 1, |i, _| (4.0 * (x[(i, 0)] - x[(i, 2)])).sin());
/// let how = SpgpDrTraining { latent_dim: 1, inducing: 10, ..Default::default() };
/// let fit = how.fit(&x, &y, &Matern52::new(1), &|_| ControlFlow::Continue(()))?;
/// let there = fit.model.posterior()?.predict(&Mat::from_rows(&[[0.5, 0.5, 0.2]]))?;
/// assert!((there.mean[(0, 0)] - 1.2f64.sin()).abs() < 0.1);
/// # Ok::<(), latentgp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SpgpDrTraining {
    /// K, directions; not used with the identity as projection, which has as many as inputs.
    pub latent_dim: usize,
    /// M, inducing inputs; at most as many as rows are used.
    pub inducing: usize,
    /// Where P starts.
    pub projection: ProjectionStart,
    /// How inputs are scaled.
    pub scale_inputs: Scale,
    /// How targets are scaled.
    pub scale_outputs: Scale,
    /// The start of σ², as a part of the variance of the scaled targets.
    pub noise: f64,
    /// Most iterations.
    pub max_iterations: usize,
    /// Full runs from different starts; with more than one there is no race.
    pub restarts: usize,
    /// How hard the fit looks for the best optimum; a [`Recipe`](crate::recipe::Recipe) asks for
    /// [`Effort::Normal`].
    pub effort: Effort,
    /// Seed of the starts.
    pub seed: u64,
    /// Added to the diagonal of Kzz.
    pub jitter: f64,
}

impl Default for SpgpDrTraining {
    fn default() -> Self {
        SpgpDrTraining {
            latent_dim: 2,
            inducing: 20,
            projection: ProjectionStart::Pca,
            scale_inputs: Scale::Standardize,
            scale_outputs: Scale::Standardize,
            noise: 0.1,
            max_iterations: 1000,
            restarts: 1,
            effort: Effort::Quick,
            seed: 0,
            jitter: 1e-6,
        }
    }
}

impl SpgpDrTraining {
    /// Fits a model of targets y (N×outputs) given inputs x (N×D).
    pub fn fit(
        &self,
        x: &Mat,
        y: &Mat,
        kernel: &dyn Kernel,
        watch: &OnIteration<'_>,
    ) -> Result<Fitted<SpgpDr>> {
        self.fit_uncertain(x, None, y, kernel, watch)
    }

    /// [`fit`](Self::fit) for inputs with known standard deviations, as large as x; see [`SpgpDr::x_var`].
    pub fn fit_uncertain(
        &self,
        x: &Mat,
        std: Option<&Mat>,
        y: &Mat,
        kernel: &dyn Kernel,
        watch: &OnIteration<'_>,
    ) -> Result<Fitted<SpgpDr>> {
        fit::train(&self.plan(x, std, y, kernel), Vec::new(), watch)
    }

    /// The plan of [`fit_uncertain`](Self::fit_uncertain).
    pub fn plan(&self, x: &Mat, std: Option<&Mat>, y: &Mat, kernel: &dyn Kernel) -> SpgpDrPlan {
        SpgpDrPlan {
            how: self.clone(),
            x: x.clone(),
            std: std.cloned(),
            y: y.clone(),
            kernel: kernel.boxed(),
        }
    }

    /// The model at the start of a restart of [`fit_uncertain`](Self::fit_uncertain).
    pub fn start_uncertain(
        &self,
        x: &Mat,
        std: Option<&Mat>,
        y: &Mat,
        kernel: &dyn Kernel,
        restart: usize,
    ) -> Result<SpgpDr> {
        let data = Supervised::new(x, y, self.scale_inputs, self.scale_outputs)?;
        let mut model = self.start(&data, kernel, restart)?;
        model.x_var = std.map(|s| data.input_variances(s)).transpose()?;
        Ok(model)
    }

    /// The model at the start of a restart.
    pub fn start(&self, data: &Supervised, kernel: &dyn Kernel, restart: usize) -> Result<SpgpDr> {
        let plain = self.projection == ProjectionStart::Identity;
        if !plain {
            at_least_one("directions of the projection", self.latent_dim)?;
        }
        at_least_one("inducing inputs", self.inducing)?;
        let mut rng = rng_of(self.seed, restart);
        let p = match self.projection {
            ProjectionStart::Identity => Mat::eye(data.x.cols()),
            ProjectionStart::Pca if restart == 0 => principal(&data.x, self.latent_dim, &mut rng)?,
            _ => random(self.latent_dim, data.x.cols(), &mut rng),
        };
        let latent = linalg::mul_nt(&data.x, &p);
        let z = spread_out(&latent, self.inducing.min(data.x.rows()), &mut rng);
        let noise = noise_param_of(self.noise, data.variance());
        let mut kernel = kernel.boxed();
        let mut model = match plain {
            true => SpgpDr::fitc(data.clone(), kernel, z, noise.get())?,
            false => {
                fix_redundant_lengthscales(&mut *kernel);
                SpgpDr::new(data.clone(), kernel, p, z, noise.get())?
            }
        };
        (model.jitter, model.noise) = (self.jitter, noise);
        Ok(model)
    }
}

/// A [`SpgpDrTraining`] with its data and kernel.
#[derive(Clone)]
pub struct SpgpDrPlan {
    how: SpgpDrTraining,
    x: Mat,
    std: Option<Mat>,
    y: Mat,
    kernel: Box<dyn Kernel>,
}

impl Plan for SpgpDrPlan {
    type Model = SpgpDr;

    fn schedule(&self) -> Schedule {
        let SpgpDrTraining { max_iterations, restarts, effort, .. } = self.how;
        Schedule { hold: 0, max_iterations, search: effort.search(restarts) }
    }

    fn start(&self, restart: usize) -> Result<SpgpDr> {
        self.how.start_uncertain(&self.x, self.std.as_ref(), &self.y, &*self.kernel, restart)
    }
}

/// Rows of variance 1/(KD), so that a projection of standardised inputs has the variance 1/K.
fn random(k: usize, d: usize, rng: &mut ChaCha8Rng) -> Mat {
    normals(k, d, 1.0 / ((k * d) as f64).sqrt(), rng)
}

/// Leading principal directions, scaled so that each projection has the variance 1/K.
fn principal(x: &Mat, k: usize, rng: &mut ChaCha8Rng) -> Result<Mat> {
    /// Directions with less than this part of the leading variance are replaced by random ones.
    const NEGLIGIBLE: f64 = 1e-10;
    let (n, d) = (x.rows(), x.cols());
    let (values, vectors) = linalg::eigh(&linalg::mul_tn(x, x))?;
    let mut p = random(k, d, rng);
    for i in 0..k.min(d) {
        let value = values[d - 1 - i];
        if value > NEGLIGIBLE * values[d - 1] {
            let scale = (n as f64 / (value * k as f64)).sqrt();
            (0..d).for_each(|j| p[(i, j)] = scale * vectors[(j, d - 1 - i)]);
        }
    }
    Ok(p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::kernel::{Matern52, Rbf};
    use crate::metrics::nmse;
    use crate::model::{Model, NOISE_FLOOR, noise_at_floor};
    use crate::optim::StopReason;
    use std::ops::ControlFlow;

    const QUIET: &OnIteration<'static> = &|_| ControlFlow::Continue(());

    /// y = sin(2 w·x) with five inputs in different units.
    fn table(n: usize) -> (Mat, Mat) {
        let x = Mat::from_fn(n, 5, |i, j| ((i * 13 + j * 29) as f64 * 0.618).fract() * 10f64.powi(j as i32));
        let along = |i: usize| x[(i, 0)] - x[(i, 2)] / 100.0;
        let y = Mat::from_fn(n, 1, |i, _| 40.0 + 7.0 * (3.0 * along(i)).sin() + 0.1 * (i as f64).sin());
        (x, y)
    }

    #[test]
    fn data_without_noise_end_on_the_floor_of_it() {
        let x = Mat::from_fn(40, 2, |i, j| ((i * 13 + j * 29) as f64 * 0.618).fract());
        let y = Mat::from_fn(40, 1, |i, _| 5.0 + x[(i, 0)] + 0.5 * x[(i, 1)]);
        let how = SpgpDrTraining { latent_dim: 1, inducing: 20, ..Default::default() };
        let fit = how.fit(&x, &y, &Rbf::new(1), QUIET).unwrap();
        let noise = &fit.model.noise;
        assert!(noise.get() > NOISE_FLOOR && noise_at_floor(noise), "{}", noise.get());
    }

    #[test]
    fn a_projection_and_plain_fitc_learn_a_function() {
        let (x, y) = table(120);
        let (train, test): (Vec<usize>, Vec<usize>) = (0..120).partition(|i| i % 3 != 0);
        let truth = y.select_rows(&test).into_vec();
        for (projection, k, most) in [
            (ProjectionStart::Pca, 2, 0.02),
            (ProjectionStart::Random, 1, 0.02),
            (ProjectionStart::Identity, 5, 0.05),
        ] {
            let how =
                SpgpDrTraining { latent_dim: k, inducing: 15, projection, restarts: 2, ..Default::default() };
            let fit = how.fit(&x.select_rows(&train), &y.select_rows(&train), &Rbf::new(k), QUIET).unwrap();
            let found = fit.model.posterior().unwrap().predict(&x.select_rows(&test)).unwrap();
            let error = nmse(&truth, found.mean.as_slice()).unwrap();
            assert!(error < most, "{projection:?}: {error}");
            assert_eq!(fit.restarts.len(), 2);
            let lengthscales_move =
                fit.model.kernel.params().iter().any(|(n, p)| n == "lengthscale" && !p.fixed);
            assert_eq!(lengthscales_move, projection == ProjectionStart::Identity);
        }
    }

    #[test]
    fn bad_input_is_a_model_or_an_error() {
        let (x, y) = table(20);
        let how = SpgpDrTraining { inducing: 30, max_iterations: 20, ..Default::default() };
        let fit = |x: &Mat, y: &Mat| how.fit(x, y, &Matern52::new(2), QUIET);
        let finite = |x: &Mat, y: &Mat| {
            let p = fit(x, y).unwrap().model.posterior().unwrap().predict(x).unwrap();
            assert!(p.mean.is_finite() && p.var.is_finite());
        };
        // Without noise in the targets, σ² falls until rounding stops it.
        let long = SpgpDrTraining { max_iterations: 1000, ..how.clone() };
        for y in [Mat::filled(20, 1, 3.0), x.select_cols(&[2])] {
            let fit = long.fit(&x, &y, &Matern52::new(2), QUIET).unwrap();
            let p = fit.model.posterior().unwrap().predict(&x).unwrap();
            assert!(p.mean.is_finite() && p.var.is_finite());
        }
        finite(&Mat::filled(20, 5, 1.0), &y);
        finite(&Mat::from_fn(20, 5, |i, _| (i / 10) as f64), &y);
        finite(&x.slice_rows(0, 1), &y.slice_rows(0, 1));
        finite(&x.map(|v| v * 1e140), &y.map(|v| v * 1e-140));
        assert!(fit(&x.map(|v| v / 0.0), &y).is_err());
        assert!(how.fit(&x, &y, &Matern52::new(3), QUIET).is_err());
        assert!(SpgpDrTraining { latent_dim: 0, ..how.clone() }.fit(&x, &y, &Rbf::new(2), QUIET).is_err());
        assert!(SpgpDrTraining { inducing: 0, ..how.clone() }.fit(&x, &y, &Rbf::new(2), QUIET).is_err());
    }

    #[test]
    fn errors_of_inputs_are_learnt_with() {
        let (x, y) = table(60);
        let how = SpgpDrTraining { latent_dim: 1, inducing: 10, max_iterations: 60, ..Default::default() };
        let std = |part: f64| Mat::from_fn(60, 5, |_, j| part * 10f64.powi(j as i32));
        let fit = |std: Option<&Mat>| how.fit_uncertain(&x, std, &y, &Rbf::new(1), QUIET);
        let (naive, none) = (fit(None).unwrap(), fit(Some(&std(0.0))).unwrap());
        assert!((naive.evidence - none.evidence).abs() < 0.05 * naive.evidence.abs());
        let told = fit(Some(&std(0.1))).unwrap();
        assert!(told.model.x_var.is_some() && told.evidence.is_finite());
        assert!(told.model.posterior().unwrap().predict(&x).unwrap().mean.is_finite());
        assert!(matches!(fit(Some(&Mat::zeros(60, 2))), Err(Error::Shape { .. })));
        assert!(matches!(fit(Some(&std(-1.0))), Err(Error::Invalid { .. })));
    }

    #[test]
    fn a_run_repeats_to_the_bit_and_stops_on_request() {
        let (x, y) = table(40);
        let how = SpgpDrTraining { max_iterations: 30, seed: 4, ..Default::default() };
        let run = |watch: &OnIteration<'_>| how.fit(&x, &y, &Rbf::new(2), watch).unwrap();
        assert_eq!(run(QUIET).evidence.to_bits(), run(QUIET).evidence.to_bits());
        let stopped = run(&|at| {
            if at.total_iterations() < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        assert_eq!((stopped.iterations, stopped.stop_reason), (3, StopReason::Asked));
    }
}
