//! The GPLVM of Lawrence (2005): latent positions as point estimates.
//!
//! ```text
//! y_nd = f_d(x_n) + ε,  f_d ~ GP(0, k)      F = log N(Y | 0, K(X, X) + σ²I) [+ log N(X | 0, I)]
//! ```
//!
//! Without the prior F is the likelihood, of which X and the lengthscales only enter as X/ℓ: the scale of X
//! means nothing. With it, the maximum a posteriori estimate, X and ℓ would shrink together for ever, as
//! that costs the likelihood nothing and the prior likes it. [`GplvmTraining`] therefore holds, with a
//! prior on X, the parameters that set the scale of the inputs (lengthscales, periods, frequencies, the
//! variances of linear and polynomial kernels) unless they have a prior of their own; which dimensions
//! matter then shows in the spread of X. The layers of an `mlp` kernel are not held: give their weights a
//! prior, or use maximum likelihood.
//!
//! F is that of the data as given: the Jacobian of the scaling is in it.

mod density;
pub(crate) mod rows;
mod space;

pub use rows::Positions;

use crate::data::{Scale, Scaling};
use crate::error::{Error, Result, at_least_one};
use crate::expectation::{self, Expectation};
use crate::fit::{self, Effort, Fitted, OnIteration, Plan, Schedule, rng_of};
use crate::kernel::{self, Kernel, Structure};
use crate::mat::{Mat, all_finite};
use crate::mean::Mean;
use crate::model::shared::exact_process::{ExactGrad, ExactProcess};
use crate::model::shared::init::Init;
use crate::model::shared::noise::{NoiseKind, noise_param, noise_param_by, of_each};
use crate::model::shared::starts;
use crate::model::{Model, Outputs};
use crate::param::{self, Param, Parameterized};
use crate::posterior::{InputMap, Posterior};
use std::borrow::Cow;

/// What is assumed of X.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LatentPrior {
    /// Nothing: maximum likelihood.
    None,
    /// x_n ~ N(0, I): maximum a posteriori.
    #[default]
    StandardNormal,
}

/// A GPLVM. [`GplvmTraining`] makes and fits one.
#[derive(Clone)]
pub struct Gplvm {
    /// The kernel.
    pub kernel: Box<dyn Kernel>,
    /// σ² of all columns or of each, in the units of the scaled data.
    pub noise: Param,
    /// X, N×Q.
    pub x: Param,
    /// What is assumed of X.
    pub prior: LatentPrior,
    /// For decoding uncertain positions.
    pub expectation: Box<dyn Expectation>,
    /// Y, scaled.
    pub outputs: Outputs,
    /// The units of the data.
    pub scaling: Scaling,
}

impl Gplvm {
    /// A model of the scaled outputs at the positions given, with the noise as a part of their mean square.
    pub fn new(
        outputs: Outputs,
        scaling: Scaling,
        kernel: impl Kernel + 'static,
        x: Mat,
        prior: LatentPrior,
        noise: f64,
    ) -> Result<Self> {
        if x.rows() != outputs.n() {
            return Err(Error::shape("rows of the latent positions", outputs.n(), x.rows()));
        }
        if scaling.scale.len() != outputs.d() {
            return Err(Error::shape("columns of the scaling", outputs.d(), scaling.scale.len()));
        }
        kernel::check_dim(&kernel, x.cols())?;
        let model = Gplvm {
            kernel: Box::new(kernel),
            noise: noise_param(noise, &outputs),
            x: Param::free(x),
            prior,
            expectation: Box::new(expectation::Auto),
            outputs,
            scaling,
        };
        model.params().iter().try_for_each(|(name, p)| p.check(name))?;
        Ok(model)
    }

    fn process<'a>(&'a self, residuals: &'a Mat) -> ExactProcess<'a> {
        ExactProcess {
            kernel: &*self.kernel,
            x: &self.x.value,
            noise: self.noise.as_slice(),
            outputs: &self.outputs,
            residuals,
        }
    }

    /// What enters the evidence.
    fn y(&self) -> Cow<'_, Mat> {
        self.outputs.cells(self.noise.len() > 1)
    }

    /// log p(Y | X), of the data as given, without the prior.
    pub fn log_likelihood(&self) -> Result<f64> {
        Ok(self.process(&self.y()).evidence(None)? + self.constant())
    }

    fn log_prior(&self) -> f64 {
        match self.prior {
            LatentPrior::None => 0.0,
            LatentPrior::StandardNormal => {
                let x = &self.x.value;
                -0.5 * (x.dot(x) + x.len() as f64 * std::f64::consts::TAU.ln())
            }
        }
    }
}

impl Parameterized for Gplvm {
    fn params(&self) -> Vec<(String, &Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params());
        all.extend([("noise".to_string(), &self.noise), ("x".to_string(), &self.x)]);
        all
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params_mut());
        all.extend([("noise".to_string(), &mut self.noise), ("x".to_string(), &mut self.x)]);
        all
    }

    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.kernel.each_param(visit);
        [&self.noise, &self.x].into_iter().for_each(visit);
    }

    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        self.kernel.each_param_mut(visit);
        [&mut self.noise, &mut self.x].into_iter().for_each(visit);
    }
}

impl Model for Gplvm {
    fn constant(&self) -> f64 {
        self.scaling.log_jacobian(&self.outputs.observed())
    }

    fn varying_evidence(&self, grad: Option<&mut [f64]>) -> Result<f64> {
        let Some(grad) = grad else {
            return Ok(self.process(&self.y()).evidence(None)? + self.log_prior());
        };
        grad.fill(0.0);
        let (theta, rest) = grad.split_at_mut(param::count(&self.kernel));
        let (noise, x_slot) = rest.split_at_mut(self.noise.len());
        let mut x = Mat::zeros(self.x.value.rows(), self.x.value.cols());
        let to = ExactGrad { theta, noise, x: Some(&mut x), residuals: None };
        let value = self.process(&self.y()).evidence(Some(to))?;
        if self.prior == LatentPrior::StandardNormal {
            x.add_scaled(-1.0, &self.x.value);
        }
        x_slot.copy_from_slice(x.as_slice());
        if !all_finite(grad) {
            return Err(Error::not_finite("the gradient of the log likelihood"));
        }
        Ok(value + self.log_prior())
    }

    fn posterior(&self) -> Result<Posterior> {
        let residuals = self.outputs.zero_filled();
        let (l, factors) = self.process(&residuals).factors()?;
        Ok(Posterior {
            kernel: self.kernel.clone(),
            z: self.x.value.clone(),
            noise: of_each(&self.noise, self.outputs.d()),
            l: l.into(),
            factors,
            expectation: self.expectation.clone(),
            scaling: self.scaling.clone(),
            mean: Mean::Zero,
            inputs: None,
            map: InputMap::AsIs,
        })
    }
}

/// How a GPLVM is made and fitted: X starts at the principal components; the noise and the kernel's
/// variances are held for some iterations, so that noise cannot explain everything away; then all is free.
#[derive(Clone, Debug, PartialEq)]
pub struct GplvmTraining {
    /// Q, latent dimensions.
    pub latent_dim: usize,
    /// What is assumed of X.
    pub prior: LatentPrior,
    /// Where the positions of the first run start.
    pub init: Init,
    /// How the columns of Y are scaled.
    pub scale: Scale,
    /// The start of σ², as a part of the mean square of the scaled data.
    pub noise: f64,
    /// Whose σ² is.
    pub noise_kind: NoiseKind,
    /// Iterations with the noise held.
    pub hold: usize,
    /// Iterations with everything free.
    pub max_iterations: usize,
    /// Runs to their end from different starts; where there is more than one, nothing is raced.
    pub restarts: usize,
    /// How hard the best optimum is looked for; a [`Recipe`](crate::recipe::Recipe) asks for [`Effort::Normal`].
    pub effort: Effort,
    /// Seed of the starts.
    pub seed: u64,
}

impl Default for GplvmTraining {
    fn default() -> Self {
        GplvmTraining {
            latent_dim: 2,
            prior: LatentPrior::default(),
            init: Init::Pca,
            scale: Scale::Standardize,
            noise: 0.01,
            noise_kind: NoiseKind::Shared,
            hold: 50,
            max_iterations: 1000,
            restarts: 1,
            effort: Effort::Quick,
            seed: 0,
        }
    }
}

impl GplvmTraining {
    /// Fits a model of Y (N×D, NaN where a cell is missing); the `evidence` of the result is F.
    pub fn fit(&self, y: &Mat, kernel: &dyn Kernel, watch: &OnIteration<'_>) -> Result<Fitted<Gplvm>> {
        fit::train(&self.plan(y, kernel), Vec::new(), watch)
    }

    /// The plan of [`fit`](Self::fit).
    pub fn plan(&self, y: &Mat, kernel: &dyn Kernel) -> GplvmPlan {
        GplvmPlan { how: self.clone(), y: y.clone(), kernel: kernel.boxed() }
    }

    /// The model at the start of a run.
    pub fn start(&self, y: &Mat, kernel: &dyn Kernel, run: usize) -> Result<Gplvm> {
        if y.rows() < 2 || y.cols() == 0 {
            let reason =
                format!("a latent space needs at least two rows and a column; there are {}", y.shape());
            return Err(Error::data("the data", reason));
        }
        at_least_one("latent dimensions", self.latent_dim)?;
        let scaling = Scaling::fit(y, self.scale)?;
        let scaled = scaling.apply(y)?;
        let mut rng = rng_of(self.seed, run);
        let first = (&self.init, self.noise);
        let (x, noise) = starts::start(&scaled, self.latent_dim, run, first, &mut rng)?;
        let mut kernel = kernel.boxed();
        if self.prior == LatentPrior::StandardNormal {
            hold_scale(&mut kernel);
        }
        let mut model = Gplvm::new(Outputs::new(scaled), scaling, kernel, x, self.prior, noise)?;
        model.noise = noise_param_by(self.noise_kind, noise, &model.outputs);
        Ok(model)
    }
}

/// A [`GplvmTraining`] with its data and kernel.
#[derive(Clone)]
pub struct GplvmPlan {
    how: GplvmTraining,
    y: Mat,
    kernel: Box<dyn Kernel>,
}

impl Plan for GplvmPlan {
    type Model = Gplvm;

    fn schedule(&self) -> Schedule {
        let GplvmTraining { hold, max_iterations, restarts, effort, .. } = self.how;
        Schedule { hold, max_iterations, search: effort.search(restarts) }
    }

    fn start(&self, restart: usize) -> Result<Gplvm> {
        self.how.start(&self.y, &*self.kernel, restart)
    }

    fn group(&self, restart: usize) -> usize {
        starts::group(restart)
    }

    /// All positions are shaken, in units of their own spread.
    fn hop(&self, best: &mut Gplvm, run: usize) -> Result<bool> {
        let x = &mut best.x.value;
        let square = x.dot(x) / x.len().max(1) as f64;
        starts::shake(x, starts::HOP * square.sqrt(), &mut rng_of(self.how.seed, run));
        Ok(true)
    }
}

/// Fixes the parameters that set the scale of the inputs, unless they have a prior.
fn hold_scale(kernel: &mut Box<dyn Kernel>) {
    let mut sets_scale = Vec::new();
    find_scale(&**kernel, &mut sets_scale);
    for ((_, p), sets) in kernel.params_mut().into_iter().zip(sets_scale) {
        p.fixed |= sets && p.prior.is_none();
    }
}

fn find_scale(kernel: &dyn Kernel, out: &mut Vec<bool>) {
    match kernel.structure() {
        Structure::Sum(parts) | Structure::Product(parts) => parts.iter().for_each(|k| find_scale(&**k, out)),
        Structure::Select(select) => find_scale(&*select.kernel, out),
        Structure::Leaf => {
            let expression = kernel.expression();
            let is_dot_product = ["linear", "polynomial"].iter().any(|name| expression.starts_with(name));
            let names = ["lengthscale", "period", "frequency", "frequency_variance", "weight_variance"];
            let sets = |name: &str| names.contains(&name) || (is_dot_product && name == "variance");
            out.extend(kernel.params().iter().map(|(name, _)| sets(name)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{self, relative_error};
    use crate::kernel::{Linear, Matern32, Rbf, Select};
    use crate::linalg;
    use crate::model::{Ppca, PpcaOptions};
    use std::ops::ControlFlow;

    const GRADIENT: f64 = 1e-7;

    fn go(_: &crate::fit::Run) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn data(n: usize, d: usize) -> Mat {
        Mat::from_fn(n, d, |i, j| {
            let t = i as f64 / n as f64 * 6.0;
            (t + j as f64).sin() + 0.3 * (2.0 * t - j as f64).cos() + 0.02 * ((13 * i + 7 * j) as f64).sin()
        })
    }

    #[test]
    fn gradients_agree_with_differences() {
        let mut holed = data(9, 4);
        holed[(2, 1)] = f64::NAN;
        holed[(5, 3)] = f64::NAN;
        for y in [data(9, 4), data(6, 10), holed] {
            for prior in [LatentPrior::None, LatentPrior::StandardNormal] {
                let training = GplvmTraining { prior, noise: 0.1, ..Default::default() };
                let mut model = training.start(&y, &(Rbf::new(2) + Linear::new(2)), 0).unwrap();
                check::model(&model, GRADIENT).unwrap();
                let one = model.log_evidence(None).unwrap();
                let posterior = model.posterior().unwrap();
                // Equal noises by column are one noise; others have their gradient too.
                model.noise.value = Mat::filled(1, y.cols(), model.noise.get());
                let each = model.log_evidence(None).unwrap();
                assert!((one - each).abs() < 1e-10 * one.abs(), "{one} against {each}");
                let at = model.x.value.map(|v| 0.7 * v + 0.1);
                let (a, b) =
                    (posterior.predict(&at).unwrap(), model.posterior().unwrap().predict(&at).unwrap());
                assert!(relative_error(a.mean.as_slice(), b.mean.as_slice(), 1e-3) < 1e-8);
                assert!(relative_error(a.var.as_slice(), b.var.as_slice(), 1e-3) < 1e-8);
                (0..y.cols()).for_each(|j| model.noise.value[(0, j)] *= 0.5 + j as f64);
                check::model(&model, GRADIENT).unwrap();
                each_column_alone(&model, &at);
            }
        }
    }

    /// An orthonormal basis of the span of the centred columns.
    fn projector(x: &Mat) -> Mat {
        let n = x.rows();
        let mean: Vec<f64> = (0..x.cols()).map(|j| x.col(j).iter().sum::<f64>() / n as f64).collect();
        let x = Mat::from_fn(n, x.cols(), |i, j| x[(i, j)] - mean[j]);
        let inverse = linalg::Cholesky::new(&linalg::mul_tn(&x, &x), "XᵀX").unwrap().inverse();
        linalg::mul_nt(&linalg::mul(&x, &inverse), &x)
    }

    #[test]
    fn a_linear_kernel_finds_the_principal_subspace() {
        const TOLERANCE: f64 = 1e-3;
        let y = data(30, 6);
        let ppca = Ppca::fit(&y, &PpcaOptions { latent_dim: 2, scale: Scale::Center, ..Default::default() })
            .unwrap();
        let scores = ppca.transform(&y).unwrap().mean;
        for prior in [LatentPrior::None, LatentPrior::StandardNormal] {
            let training =
                GplvmTraining { prior, scale: Scale::Center, restarts: 2, seed: 4, ..Default::default() };
            let fitted = training.fit(&y, &Linear::isotropic(2), &go).unwrap();
            let (a, b) = (projector(&fitted.model.x.value), projector(&scores));
            assert!(relative_error(a.as_slice(), b.as_slice(), 0.0) < TOLERANCE, "{prior:?}");
            if prior == LatentPrior::None {
                // The dual of PPCA: its noise is that of PPCA to the degrees of freedom of the columns.
                assert!((fitted.model.noise.get() / ppca.noise[0] - 1.0).abs() < 0.5);
            }
        }
    }

    /// The evidence and the posterior are those of D models of one column each.
    fn each_column_alone(model: &Gplvm, at: &Mat) {
        let (whole, mut sum) = (model.log_likelihood().unwrap(), 0.0);
        let there = model.posterior().unwrap().predict(at).unwrap();
        for j in 0..model.outputs.d() {
            let mut own = model.clone();
            own.outputs = Outputs::new(model.outputs.y.select_cols(&[j]));
            own.scaling = Scaling { mean: vec![model.scaling.mean[j]], scale: vec![model.scaling.scale[j]] };
            own.noise.value = Mat::filled(1, 1, model.noise.as_slice()[j]);
            sum += own.log_likelihood().unwrap();
            let alone = own.posterior().unwrap().predict(at).unwrap();
            assert!(relative_error(&alone.mean.col(0), &there.mean.col(j), 1e-3) < 1e-8);
            assert!(relative_error(&alone.var.col(0), &there.var.col(j), 1e-3) < 1e-8);
        }
        assert!((whole - sum).abs() < 1e-10 * sum.abs(), "{whole} against {sum}");
    }

    #[test]
    fn with_a_prior_the_scale_of_the_inputs_is_held() {
        let mut own = Rbf::new(1);
        own.lengthscale.prior = Some(crate::param::Prior::LogNormal { mean: 0.0, std: 0.1 });
        let kernel =
            Matern32::new(2) + Linear::new(2) * Select::new(Rbf::new(1), &[1], 2) + Select::new(own, &[0], 2);
        let map = GplvmTraining::default().start(&data(8, 4), &kernel, 0).unwrap();
        let fixed: Vec<String> =
            map.params().into_iter().filter(|(_, p)| p.fixed).map(|(name, _)| name).collect();
        assert_eq!(fixed, ["kernel.0.lengthscale", "kernel.1.0.variance", "kernel.1.1.lengthscale"]);
        let ml = GplvmTraining { prior: LatentPrior::None, ..Default::default() };
        assert!(ml.start(&data(8, 4), &kernel, 0).unwrap().params().iter().all(|(_, p)| !p.fixed));
    }

    #[test]
    fn a_fit_climbs_repeats_and_reconstructs() {
        let y = data(40, 5);
        let training = GplvmTraining { restarts: 2, max_iterations: 200, ..Default::default() };
        let a = training.fit(&y, &Rbf::new(2), &go).unwrap();
        let b = training.fit(&y, &Rbf::new(2), &go).unwrap();
        assert_eq!(param::values(&a.model), param::values(&b.model));
        assert!(a.evidence > training.start(&y, &Rbf::new(2), 0).unwrap().log_evidence(None).unwrap());
        assert!((a.evidence - a.model.log_evidence(None).unwrap()).abs() < 1e-9);
        let back = a.model.posterior().unwrap().predict(&a.model.x.value).unwrap();
        let mut apart = back.mean.clone();
        apart.add_scaled(-1.0, &y);
        assert!((apart.dot(&apart) / y.len() as f64).sqrt() < 0.1);
    }

    #[test]
    fn bad_data_is_a_model_or_a_clear_error() {
        let fit =
            |y: &Mat| GplvmTraining { max_iterations: 60, ..Default::default() }.fit(y, &Rbf::new(2), &go);
        let message = |y: &Mat| fit(y).err().unwrap().to_string();
        assert!(message(&data(1, 3)).contains("at least two rows"));
        assert!(message(&Mat::filled(5, 2, f64::INFINITY)).contains("infinite"));
        for y in [
            data(2, 3),
            data(9, 1),
            Mat::filled(6, 3, 2.0),
            data(3, 4).select_rows(&[0, 0, 0, 1, 1, 2]),
            data(9, 3).map(|v| v * 1e150),
            data(9, 3).map(|v| v * 1e-150),
        ] {
            match fit(&y) {
                Ok(fitted) => {
                    assert!(fitted.evidence.is_finite());
                    let back = fitted.model.posterior().unwrap().predict(&fitted.model.x.value).unwrap();
                    assert!(back.mean.is_finite() && back.var.is_finite());
                }
                Err(e) => assert!(!e.to_string().is_empty()),
            }
        }
    }
}
