//! From a table to a fitted variational Mahalanobis process: the start, the stages and the restarts.
//!
//! 1. Inputs and targets are scaled; the means of the weights start at N(0, 0.3²/D), their variances at 0.01,
//!    σ_f² at the variance of the targets, σ² at a tenth of it, Z at projected rows that are far apart.
//! 2. With σ² and the kernel's variances held, the weights turn towards what matters. Without this stage the
//!    noise explains everything, and all directions are switched off.
//! 3. Z is placed again, on projected rows spread evenly along the direction that now dominates.
//! 4. Everything is free.
//!
//! Restarts, which run in parallel, draw other weights; the best bound is kept.

use super::stages::{Fitted, Stages, best_of, spread_along_dominant};
use super::supervised::fix_redundant_lengthscales;
use super::training::{OnProgress, spread_out};
use super::{Jitter, Supervised, Vdmgp, WeightPrior};
use crate::data::Scale;
use crate::error::{Error, Result};
use crate::expectation::{self, Expectation, Gaussians};
use crate::kernel::Kernel;
use crate::linalg;
use crate::mat::Mat;
use crate::param::Parameterized;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// How a variational Mahalanobis process is made and fitted.
#[derive(Clone, Debug)]
pub struct VdmgpTraining {
    /// K, directions; those of no use are switched off.
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
    /// Runs from different starts.
    pub restarts: usize,
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
        watch: &OnProgress<'_>,
    ) -> Result<Fitted<Vdmgp>> {
        let data = Supervised::new(x, y, self.scale_inputs, self.scale_outputs)?;
        best_of(self.restarts, |restart| {
            let mut model = self.start(&data, kernel, restart)?;
            let mut stages = Stages::new(restart, watch);
            let noisy = self.expectation.is_stochastic();
            if self.hold > 0 {
                let held = hold(&mut model);
                let done = stages.stage(&mut model, self.hold, true, noisy);
                release(&mut model, &held);
                done?;
                model.z.value = spread_along_dominant(&model.latent().mean, model.z.value.rows());
            }
            stages.stage(&mut model, self.max_iterations, false, noisy)?;
            stages.done(model)
        })
    }

    /// The model at the start of a restart.
    pub fn start(&self, data: &Supervised, kernel: &dyn Kernel, restart: usize) -> Result<Vdmgp> {
        if self.latent_dim == 0 {
            return Err(Error::invalid("directions of the projection", "at least 1", 0));
        }
        if self.inducing == 0 {
            return Err(Error::invalid("inducing inputs", "at least 1", 0));
        }
        let (k, d) = (self.latent_dim, data.x.cols());
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(restart as u64);
        let scale = self.spread / (d as f64).sqrt();
        let mean = Mat::from_fn(k, d, |_, _| {
            let draw: f64 = StandardNormal.sample(&mut rng);
            scale * draw
        });
        let z = spread_out(&linalg::mul_nt(&data.x, &mean), self.inducing.min(data.x.rows()), &mut rng);
        let weights = Gaussians::new(mean, Mat::filled(k, d, self.variance))?;
        let mut kernel = kernel.boxed();
        fix_redundant_lengthscales(&mut *kernel);
        let noise = self.noise * data.variance();
        let (expectation, prior) = (self.expectation.clone(), self.prior.clone());
        let mut model = Vdmgp::new(data.clone(), kernel, expectation, prior, weights, z, noise)?;
        model.jitter = self.jitter;
        Ok(model)
    }
}

/// Fixes the noise and the kernel's variances; tells which of them were free.
fn hold(model: &mut Vdmgp) -> Vec<String> {
    let mut held = Vec::new();
    for (name, p) in model.params_mut() {
        let is_scale = name == "noise" || (name.starts_with("kernel.") && name.ends_with("variance"));
        if is_scale && !p.fixed {
            p.fixed = true;
            held.push(name);
        }
    }
    held
}

fn release(model: &mut Vdmgp, held: &[String]) {
    model.params_mut().into_iter().filter(|(name, _)| held.contains(name)).for_each(|(_, p)| p.fixed = false);
}
