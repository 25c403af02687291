//! From a table to a fitted variational Mahalanobis process: the start, the stages and the restarts.
//!
//! 1. Inputs and targets are scaled; the means of the weights start at N(0, 0.3²/D), their variances at 0.01,
//!    σ_f² at what the kernel says, σ² at a tenth of the targets' variance, Z at projected rows that are far apart.
//! 2. With σ² and the kernel's variances held, the weights learn which inputs matter. Without this stage the
//!    noise explains everything, and all directions are switched off.
//! 3. Z is placed again, on projected rows spread evenly along the dominant direction.
//! 4. Everything is free.
//!
//! Restarts, which run in parallel, draw different weights; the best bound is kept.

use crate::data::Scale;
use crate::error::{Result, at_least_one};
use crate::expectation::{self, Expectation, Gaussians};
use crate::fit::{self, Effort, Fitted, OnIteration, Plan, Schedule, rng_of};
use crate::kernel::Kernel;
use crate::linalg;
use crate::mat::Mat;
use crate::model::shared::noise::noise_param_of;
use crate::model::shared::starts::{normals, spread_along_dominant, spread_out};
use crate::model::shared::supervised::fix_redundant_lengthscales;
use crate::model::{Jitter, Supervised, Vdmgp, WeightPrior};

/// How a variational Mahalanobis process is made and fitted.
///
/// ```
/// use latentgp::{data::sinc, kernel::Rbf, model::{Model, VdmgpTraining}};
/// use std::ops::ControlFlow;
/// let sinc::Sinc { x, y } = sinc::simulate(60, 0);
/// let how = VdmgpTraining { latent_dim: 3, max_iterations: 50, ..Default::default() };
/// let fit = how.fit(&x, &y, &Rbf::new(3), &|_| ControlFlow::Continue(()))?;
/// let prediction = fit.model.posterior()?.predict(&x)?;
/// let report = fit.model.relevance()?;
/// assert_eq!((prediction.mean.rows(), report.directions.len(), report.inputs.len()), (60, 3, 25));
/// # Ok::<(), latentgp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct VdmgpTraining {
    /// K, directions; irrelevant ones are switched off.
    pub latent_dim: usize,
    /// M, inducing inputs; at most as many as rows are used.
    pub inducing: usize,
    /// The prior of the weights.
    pub prior: WeightPrior,
    /// How Ψ-statistics are computed.
    pub expectation: Box<dyn Expectation>,
    /// How inputs are scaled.
    pub scale_inputs: Scale,
    /// How targets are scaled.
    pub scale_outputs: Scale,
    /// The standard deviation of a projected standardised input at the start.
    pub spread: f64,
    /// The start of the variances of the weights.
    pub variance: f64,
    /// The start of σ², as a part of the variance of the scaled targets.
    pub noise: f64,
    /// Iterations with the noise and the kernel's variances held.
    pub hold: usize,
    /// Iterations with everything free.
    pub max_iterations: usize,
    /// Full runs from different starts; with more than one there is no race.
    pub restarts: usize,
    /// How hard the fit looks for the best optimum; a [`Recipe`](crate::recipe::Recipe) asks for
    /// [`Effort::Normal`].
    pub effort: Effort,
    /// Seed of the starts.
    pub seed: u64,
    /// Added to diagonals.
    pub jitter: Jitter,
}

impl Default for VdmgpTraining {
    fn default() -> Self {
        VdmgpTraining {
            latent_dim: 5,
            inducing: 20,
            prior: WeightPrior::TypeII,
            expectation: Box::new(expectation::Auto),
            scale_inputs: Scale::Standardize,
            scale_outputs: Scale::Standardize,
            spread: 0.3,
            variance: 0.01,
            noise: 0.1,
            hold: 200,
            max_iterations: 600,
            restarts: 1,
            effort: Effort::Quick,
            seed: 0,
            jitter: Jitter::default(),
        }
    }
}

impl VdmgpTraining {
    /// Fits a model of targets y (N×outputs) given inputs x (N×D).
    pub fn fit(
        &self,
        x: &Mat,
        y: &Mat,
        kernel: &dyn Kernel,
        watch: &OnIteration<'_>,
    ) -> Result<Fitted<Vdmgp>> {
        self.fit_uncertain(x, None, y, kernel, watch)
    }

    /// [`fit`](Self::fit) for inputs with known standard deviations, as large as x; see [`Vdmgp::x_var`].
    pub fn fit_uncertain(
        &self,
        x: &Mat,
        std: Option<&Mat>,
        y: &Mat,
        kernel: &dyn Kernel,
        watch: &OnIteration<'_>,
    ) -> Result<Fitted<Vdmgp>> {
        fit::train(&self.plan(x, std, y, kernel), Vec::new(), watch)
    }

    /// The plan of [`fit_uncertain`](Self::fit_uncertain).
    pub fn plan(&self, x: &Mat, std: Option<&Mat>, y: &Mat, kernel: &dyn Kernel) -> VdmgpPlan {
        VdmgpPlan { how: self.clone(), x: x.clone(), std: std.cloned(), y: y.clone(), kernel: kernel.boxed() }
    }

    /// The model at the start of a restart of [`fit_uncertain`](Self::fit_uncertain).
    pub fn start_uncertain(
        &self,
        x: &Mat,
        std: Option<&Mat>,
        y: &Mat,
        kernel: &dyn Kernel,
        restart: usize,
    ) -> Result<Vdmgp> {
        let data = Supervised::new(x, y, self.scale_inputs, self.scale_outputs)?;
        let mut model = self.start(&data, kernel, restart)?;
        model.x_var = std.map(|s| data.input_variances(s)).transpose()?;
        Ok(model)
    }

    /// The model at the start of a restart.
    pub fn start(&self, data: &Supervised, kernel: &dyn Kernel, restart: usize) -> Result<Vdmgp> {
        at_least_one("directions of the projection", self.latent_dim)?;
        at_least_one("inducing inputs", self.inducing)?;
        let (k, d) = (self.latent_dim, data.x.cols());
        let mut rng = rng_of(self.seed, restart);
        let mean = normals(k, d, self.spread / (d as f64).sqrt(), &mut rng);
        let z = spread_out(&linalg::mul_nt(&data.x, &mean), self.inducing.min(data.x.rows()), &mut rng);
        let weights = Gaussians::new(mean, Mat::filled(k, d, self.variance))?;
        let mut kernel = kernel.boxed();
        fix_redundant_lengthscales(&mut *kernel);
        let noise = noise_param_of(self.noise, data.variance());
        let (expectation, prior) = (self.expectation.clone(), self.prior.clone());
        let mut model = Vdmgp::new(data.clone(), kernel, expectation, prior, weights, z, noise.get())?;
        (model.jitter, model.noise) = (self.jitter, noise);
        Ok(model)
    }
}

/// A [`VdmgpTraining`] with its data and kernel.
#[derive(Clone)]
pub struct VdmgpPlan {
    how: VdmgpTraining,
    x: Mat,
    std: Option<Mat>,
    y: Mat,
    kernel: Box<dyn Kernel>,
}

impl Plan for VdmgpPlan {
    type Model = Vdmgp;

    fn schedule(&self) -> Schedule {
        let VdmgpTraining { hold, max_iterations, restarts, effort, .. } = self.how;
        Schedule { hold, max_iterations, search: effort.search(restarts) }
    }

    fn start(&self, restart: usize) -> Result<Vdmgp> {
        self.how.start_uncertain(&self.x, self.std.as_ref(), &self.y, &*self.kernel, restart)
    }

    /// Places Z again, along the dominant direction.
    fn between(&self, model: &mut Vdmgp) {
        model.z.value = spread_along_dominant(&model.latent().mean, model.z.value.rows());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::sinc;
    use crate::kernel::{Constant, Linear, Matern32, Rbf};
    use crate::model::{Model, NOISE_FLOOR};
    use crate::optim::StopReason;
    use crate::param::Parameterized;
    use std::ops::ControlFlow;

    const QUIET: &OnIteration<'static> = &|_| ControlFlow::Continue(());

    fn quick() -> VdmgpTraining {
        VdmgpTraining { latent_dim: 2, inducing: 8, hold: 10, max_iterations: 15, ..Default::default() }
    }

    #[test]
    fn a_run_repeats_to_the_bit_on_any_number_of_threads() {
        let sinc::Sinc { x, y } = sinc::simulate(80, 3);
        let how = VdmgpTraining { restarts: 2, seed: 9, ..quick() };
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| how.fit(&x, &y, &Rbf::new(2), QUIET)).unwrap()
        };
        let (one, two) = (run(1), run(2));
        assert_eq!(one.restarts, two.restarts);
        assert_eq!(one.model.mean, two.model.mean);
        assert_ne!(one.restarts[0], one.restarts[1]);
        assert_eq!(one.evidence, one.restarts.iter().flatten().fold(f64::MIN, |a, b| a.max(*b)));
    }

    #[test]
    fn the_noise_is_held_first_and_a_stop_is_obeyed_in_either_stage() {
        let sinc::Sinc { x, y } = sinc::simulate(40, 1);
        for last in [4, 12] {
            let stop = |at: &crate::fit::Run| {
                assert_eq!(at.is_held(), at.total_iterations() <= 10);
                if at.total_iterations() < last { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            let fit = quick().fit(&x, &y, &Rbf::new(2), &stop).unwrap();
            assert_eq!((fit.iterations, fit.stop_reason), (last, StopReason::Asked));
            assert_eq!(fit.trace.len(), last);
            let noise_is_free = fit.model.params().iter().any(|(name, p)| name == "noise" && !p.fixed);
            assert!(noise_is_free);
            // The kept model has the evidence that the trace reached.
            assert!((fit.evidence - fit.trace[last - 1]).abs() < 1e-9 * fit.evidence.abs());
        }
    }

    #[test]
    fn kernels_without_a_closed_form_and_given_priors_are_learnt_too() {
        let sinc::Sinc { x, y } = sinc::simulate(60, 2);
        for prior in [WeightPrior::fixed(&[0.1, 0.1]), WeightPrior::Gamma { shape: 1.0, rate: 1e-6 }] {
            let how = VdmgpTraining { prior, ..quick() };
            let data = Supervised::new(&x, &y, how.scale_inputs, how.scale_outputs).unwrap();
            let before = how.start(&data, &Matern32::new(2), 0).unwrap().log_evidence(None).unwrap();
            let fit = how.fit(&x, &y, &Matern32::new(2), QUIET).unwrap();
            assert!(fit.evidence > before);
        }
    }

    #[test]
    fn a_kernel_that_explains_nothing_leaves_the_noise_at_the_variance() {
        let sinc::Sinc { x, y } = sinc::simulate(40, 0);
        let fit = quick().fit(&x, &y, &Constant::new(), QUIET).unwrap();
        // Standardised targets: all of their variance is noise, and the model's evidence equals that of white
        // noise.
        assert!((fit.model.noise.get() - 1.0).abs() < 0.1, "{}", fit.model.noise.get());
        let white = -0.5 * 40.0 * (std::f64::consts::TAU.ln() + 1.0) + fit.model.constant();
        assert!(fit.evidence <= white + 1.0, "{} against {white}", fit.evidence);
    }

    #[test]
    fn noise_stops_at_its_floor() {
        let x = Mat::from_fn(20, 1, |i, _| 0.1 * i as f64);
        let y = x.map(|v| 3.0 * v);
        let how = VdmgpTraining { hold: 20, max_iterations: 300, latent_dim: 1, inducing: 5, ..quick() };
        let fit = how.fit(&x, &y, &Linear::new(1), QUIET).unwrap();
        assert!(fit.model.noise.get() > NOISE_FLOOR && fit.evidence.is_finite());
    }

    #[test]
    fn bad_input_is_a_model_or_an_error() {
        let sinc::Sinc { x, y } = sinc::simulate(20, 0);
        let how = VdmgpTraining { inducing: 30, ..quick() };
        let long = VdmgpTraining { hold: 200, max_iterations: 600, ..how.clone() };
        let finite_after = |how: &VdmgpTraining, x: &Mat, y: &Mat| {
            let fit = how.fit(x, y, &Rbf::new(2), QUIET).unwrap();
            let p = fit.model.posterior().unwrap().predict(x).unwrap();
            assert!(p.mean.is_finite() && p.var.is_finite() && fit.evidence.is_finite());
            let shares: f64 = fit.model.relevance().unwrap().inputs.iter().map(|i| i.share).sum();
            assert!(shares == 0.0 || (shares - 1.0).abs() < 1e-9, "{shares}");
        };
        // Without noise in the targets, σ² falls to its floor.
        finite_after(&long, &x, &Mat::filled(20, 1, 3.0));
        finite_after(&long, &x, &x.select_cols(&[4]));
        let finite = |x: &Mat, y: &Mat| finite_after(&how, x, y);
        finite(&x, &y);
        finite(&x, &Mat::filled(20, 1, 3.0));
        finite(&Mat::filled(20, 5, 1.0), &y);
        finite(&Mat::from_fn(20, 5, |i, _| (i / 10) as f64), &y);
        finite(&x.slice_rows(0, 1), &y.slice_rows(0, 1));
        finite(&x.map(|v| v * 1e150), &y.map(|v| v * 1e-150));
        finite(&x, &Mat::from_fn(20, 3, |i, j| (i * j) as f64));
        let fails = |how: VdmgpTraining, x: &Mat| how.fit(x, &y, &Rbf::new(2), QUIET).is_err();
        assert!(fails(how.clone(), &x.map(|v| v / 0.0)));
        assert!(fails(how.clone(), &x.map(|_| f64::NAN)));
        assert!(fails(how.clone(), &x.slice_rows(0, 3)));
        assert!(fails(VdmgpTraining { latent_dim: 0, ..how.clone() }, &x));
        assert!(fails(VdmgpTraining { latent_dim: 3, ..how.clone() }, &x));
        assert!(fails(VdmgpTraining { inducing: 0, ..how.clone() }, &x));
        assert!(fails(VdmgpTraining { variance: 0.0, ..how.clone() }, &x));
        assert!(fails(VdmgpTraining { spread: f64::NAN, ..how.clone() }, &x));
        assert!(fails(VdmgpTraining { noise: 0.0, ..how.clone() }, &x));
        assert!(fails(VdmgpTraining { prior: WeightPrior::fixed(&[1.0]), ..how }, &x));
    }

    #[test]
    fn errors_of_inputs_spread_their_places() {
        let x = Mat::from_fn(40, 2, |i, j| ((i * 7 + j * 11) as f64 * 0.618).fract() * 4.0);
        let y = Mat::from_fn(40, 1, |i, _| x[(i, 0)].sin() + 0.1 * ((i * 13) as f64).sin());
        let how =
            VdmgpTraining { latent_dim: 1, inducing: 8, hold: 30, max_iterations: 30, ..Default::default() };
        let fit = |std: Option<&Mat>| {
            how.fit_uncertain(&x, std, &y, &Rbf::new(1), &|_| std::ops::ControlFlow::Continue(()))
        };
        let (plain, certain) = (fit(None).unwrap(), fit(Some(&Mat::zeros(40, 2))).unwrap());
        assert!((certain.evidence - plain.evidence).abs() < 1e-6 * plain.evidence.abs());
        let errors = Mat::from_fn(40, 2, |_, j| if j == 0 { 0.3 } else { 0.0 });
        let mut told = fit(Some(&errors)).unwrap().model;
        let wide = told.latent();
        // The expected value: S = (X∘X + R)Vᵀ + R(W∘W)ᵀ.
        let (r, w, v) =
            ((0.3 / told.data.inputs.scale[0]).powi(2), told.mean.value[(0, 0)], told.var.value[(0, 0)]);
        told.x_var = None;
        let narrow = told.latent();
        for i in 0..40 {
            assert!((wide.var[(i, 0)] - narrow.var[(i, 0)] - r * (v + w * w)).abs() < 1e-12);
        }
        for bad in [Mat::zeros(40, 1), Mat::filled(40, 2, -1.0), Mat::filled(40, 2, f64::NAN)] {
            assert!(fit(Some(&bad)).is_err());
        }
    }
}
