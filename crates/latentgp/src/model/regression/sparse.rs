//! Sparse regression: the collapsed bound of Titsias (2009), for inputs that are certain, uncertain, missing
//! or latent.
//!
//! ```text
//! F = Σ_groups collapsed(Y, Ψ, Kzz, β) − KL(uncertain inputs)     log p(Y) ≥ F
//! certain rows    Ψ0 = Σ k(x_n, x_n)   Ψ1 = Kxz   Ψ2 = KzxKxz
//! ```
//!
//! Rows that are not certain use the expectation: see [`UncertainInputs`]. Memory is O(NM + M²). Y and, on
//! request, X are scaled inside; the bound is for the data as given.

mod regressor;
#[cfg(test)]
mod tests;

use crate::data::{Scale, Scaling};
use crate::error::{Error, Result, at_least_one};
use crate::expectation::{self, Expectation, Gaussians, Mixed};
use crate::fit::{Fitted, OnIteration, Restarts};
use crate::kernel::{Kernel, Rbf};
use crate::mat::{Mat, all_finite};
use crate::model::regression::exact::check_inputs;
use crate::model::regression::infer::infer;
use crate::model::shared::noise::{NoiseKind, noise_param_by};
use crate::model::shared::sparse_bound::{BoundGrad, SparseBound};
use crate::model::shared::starts::{scale_lengthscales, spread_out};
use crate::model::shared::uncertain_inputs::{
    InputOptions, NODES, Treatment, UncertainInputs, with_latent, with_latent_units, without_latent_units,
};
use crate::model::{Jitter, Model, Outputs};
use crate::param::{self, Param, Parameterized};
use crate::posterior::Posterior;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The options of a sparse regression besides data and kernel.
#[derive(Clone)]
pub struct SparseOptions {
    /// M, inducing inputs; at most as many as rows are used.
    pub inducing: usize,
    /// Whether the inducing inputs are fixed at their start.
    pub fix_inducing: bool,
    /// How the columns of Y are scaled.
    pub scale: Scale,
    /// How the columns of X are scaled; by default they are not.
    pub scale_inputs: Scale,
    /// The start of σ², as a part of the mean square of the scaled Y.
    pub noise: f64,
    /// Whether all outputs share σ² or each has its own.
    pub noise_kind: NoiseKind,
    /// How uncertain inputs are treated.
    pub uncertain: InputOptions,
    /// The expectation for rows with uncertain inputs. Where errors are inferred without a closed form,
    /// [`Auto`](expectation::Auto) is the scaled unscented rule with κ = 2, which has a node at the mean of a
    /// row.
    pub expectation: Box<dyn Expectation>,
    /// Added to diagonals.
    pub jitter: Jitter,
    /// Seed of the choice of inducing inputs.
    pub seed: u64,
}

impl Default for SparseOptions {
    fn default() -> Self {
        SparseOptions {
            inducing: 50,
            fix_inducing: false,
            scale: Scale::Standardize,
            scale_inputs: Scale::None,
            noise: 0.1,
            noise_kind: NoiseKind::Shared,
            uncertain: InputOptions::default(),
            expectation: Box::new(expectation::Auto),
            jitter: Jitter::default(),
            seed: 0,
        }
    }
}

/// Sparse regression.
///
/// ```
/// use latentgp::{Mat, kernel::Rbf, model::{Model, SparseOptions, SparseRegression}};
/// let mut x = Mat::from_fn(200, 1, |i, _| 0.03 * i as f64);
/// let y = x.map(f64::sin);
/// x[(7, 0)] = f64::NAN;
/// let std = Mat::filled(200, 1, 0.01);
/// let options = SparseOptions { inducing: 12, ..Default::default() };
/// let model = SparseRegression::new(x, Some(std), y, Rbf::new(1), &options)?;
/// assert!(model.log_evidence(None)?.is_finite());
/// # Ok::<(), latentgp::Error>(())
/// ```
#[derive(Clone)]
pub struct SparseRegression {
    /// The kernel, of scaled inputs.
    pub kernel: Box<dyn Kernel>,
    /// σ², one for all targets or one for each, in the units of the scaled data.
    pub noise: Param,
    /// Z, M×Q, in the units of the scaled inputs.
    pub z: Param,
    /// X, scaled.
    pub x: UncertainInputs,
    /// The expectation for rows with uncertain inputs.
    pub expectation: Mixed,
    /// Added to diagonals.
    pub jitter: Jitter,
    /// Y, scaled.
    pub outputs: Outputs,
    /// The units of Y.
    pub scaling: Scaling,
    /// The units of X.
    pub inputs: Option<Scaling>,
}

impl SparseRegression {
    /// A regression of Y (N×D) on X (N×Q), both with NaN where a cell is missing; `std` has the standard
    /// deviations of the inputs, 0 where one is certain.
    ///
    /// Z starts at rows that are far apart (k-means++). Errs when shapes disagree, a value is infinite, a
    /// column has no observed cell, or the expectation cannot run.
    pub fn new(
        x: Mat,
        std: Option<Mat>,
        y: Mat,
        kernel: impl Kernel + 'static,
        options: &SparseOptions,
    ) -> Result<Self> {
        let latent = options.uncertain.latent;
        check_inputs(&with_latent(&x, latent), &y, &kernel)?;
        at_least_one("inducing inputs", options.inducing)?;
        let observed = match options.scale_inputs {
            Scale::None => None,
            _ if x.cols() == 0 => None,
            how => Some(Scaling::fit(&x, how)?),
        };
        let scaled = observed.as_ref().map_or_else(|| Ok(x.clone()), |s| s.apply(&x))?;
        let std = std.map(|s| match &observed {
            Some(i) if s.cols() == x.cols() => {
                Mat::from_fn(s.rows(), s.cols(), |n, q| s[(n, q)] / i.scale[q])
            }
            _ => s,
        });
        let mut x = UncertainInputs::with(&scaled, std.as_ref(), &options.uncertain)?;
        let inputs = observed.map(|of| with_latent_units(of, latent));
        let scaling = Scaling::fit(&y, options.scale)?;
        let outputs = Outputs::new(scaling.apply(&y)?);
        if latent > 0 {
            let rest = left_by_smooth(&scaled, std.as_ref(), &outputs.y, options.inducing, options.seed)?;
            x.start_latent(&rest, options.seed)?;
        }
        let expectation: Box<dyn Expectation> = match x.has_errors() && kernel.closed_form().is_none() {
            true if options.expectation.expression() == "auto" => Box::new(NODES),
            _ => options.expectation.clone(),
        };
        let z = spread(&x.gaussians().mean, options.inducing, &mut ChaCha8Rng::seed_from_u64(options.seed))?;
        let mut z = Param::free(z);
        z.fixed = options.fix_inducing;
        let model = SparseRegression {
            kernel: Box::new(kernel),
            noise: noise_param_by(options.noise_kind, options.noise, &outputs),
            z,
            x,
            expectation: Mixed(expectation),
            jitter: options.jitter,
            outputs,
            scaling,
            inputs,
        };
        model.expectation.check(&*model.kernel, model.z.value.cols())?;
        model.params().iter().try_for_each(|(name, p)| p.check(name))?;
        Ok(model)
    }

    /// q(X), scaled, with the current posteriors of uncertain and missing cells.
    pub fn latent(&self) -> Gaussians {
        self.x.gaussians()
    }

    /// The posterior of the true inputs of the training rows, in the units of the data. Latent columns, whose
    /// units are arbitrary, come last.
    pub fn inputs_posterior(&self) -> Result<Gaussians> {
        self.in_units(self.latent())
    }

    /// The prior of the inputs of new rows, in the units of the data: X has the observed columns, with NaN
    /// where a cell is missing, and `var` the variances of their errors. Latent columns come last.
    pub fn new_inputs(&self, x: &Mat, var: Option<&Mat>) -> Result<Gaussians> {
        self.in_units(self.scaled_priors(x, var)?)
    }

    fn in_units(&self, of: Gaussians) -> Result<Gaussians> {
        let Some(s) = &self.inputs else { return Ok(of) };
        Gaussians::new(s.undo_mean(&of.mean)?, s.undo_var(&of.var)?)
    }

    /// The units of the observed columns of X.
    fn observed_units(&self) -> Option<Scaling> {
        self.inputs.as_ref().map(|s| without_latent_units(s, self.x.latent()))
    }

    fn scaled_priors(&self, x: &Mat, var: Option<&Mat>) -> Result<Gaussians> {
        self.x.priors_in(self.observed_units().as_ref(), x, var)
    }

    /// The posterior of the true inputs of new rows with known outputs, in the units of the data. X comes
    /// with the variances of its errors; X and Y have NaN where a cell is missing.
    ///
    /// Rows are independent of each other. Errs when shapes disagree.
    pub fn infer_inputs(&self, x: &Mat, var: Option<&Mat>, y: &Mat) -> Result<Gaussians> {
        let prior = self.scaled_priors(x, var)?;
        self.in_units(infer(&self.posterior()?, &prior, y)?)
    }

    /// Fits from the current model, and from shaken hyperparameters with other choices of Z.
    pub fn fit(&self, how: &Restarts, watch: &OnIteration<'_>) -> Result<Fitted<SparseRegression>> {
        how.fit(self, watch)
    }

    pub(crate) fn bound(&self) -> SparseBound<'_> {
        SparseBound {
            kernel: &*self.kernel,
            expectation: &self.expectation,
            z: &self.z.value,
            noise: self.noise.as_slice(),
            jitter: self.jitter,
            outputs: &self.outputs,
            scaling: &self.scaling,
        }
    }
}

/// The scaled residuals of the outputs after a smooth fit on the observed columns with unit lengthscales.
/// Latent columns start from these residuals.
pub(crate) fn left_by_smooth(x: &Mat, std: Option<&Mat>, y: &Mat, inducing: usize, seed: u64) -> Result<Mat> {
    let y = Scaling::fit(y, Scale::Standardize)?.apply(y)?;
    if x.cols() == 0 {
        return Ok(y);
    }
    let uncertain = InputOptions { treatment: Treatment::Averaged, ..InputOptions::default() };
    let options = SparseOptions { uncertain, scale: Scale::None, inducing, seed, ..SparseOptions::default() };
    let smooth = SparseRegression::new(x.clone(), std.cloned(), y.clone(), Rbf::new(x.cols()), &options)?;
    let mut rest = y;
    rest.add_scaled(-1.0, &smooth.posterior()?.predict_uncertain(&smooth.latent())?.mean);
    Ok(rest)
}

/// Up to `m` rows that are far apart, by k-means++ on columns of unit variance.
fn spread(x: &Mat, m: usize, rng: &mut ChaCha8Rng) -> Result<Mat> {
    let columns = Scaling::fit(x, Scale::Standardize)?;
    columns.undo_mean(&spread_out(&columns.apply(x)?, m.min(x.rows()), rng))
}

impl Parameterized for SparseRegression {
    fn params(&self) -> Vec<(String, &Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params());
        all.extend([("noise".to_string(), &self.noise), ("z".to_string(), &self.z)]);
        all.extend(self.x.params());
        all
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params_mut());
        all.extend([("noise".to_string(), &mut self.noise), ("z".to_string(), &mut self.z)]);
        all.extend(self.x.params_mut());
        all
    }

    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.kernel.each_param(visit);
        [&self.noise, &self.z].into_iter().for_each(&mut *visit);
        self.x.each_param(visit);
    }

    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        self.kernel.each_param_mut(visit);
        [&mut self.noise, &mut self.z].into_iter().for_each(&mut *visit);
        self.x.each_param_mut(visit);
    }
}

impl Model for SparseRegression {
    fn constant(&self) -> f64 {
        self.bound().jacobian()
    }

    fn varying_evidence(&self, grad: Option<&mut [f64]>) -> Result<f64> {
        let q = self.latent();
        let Some(grad) = grad else {
            return Ok(self.bound().value(&q)? - self.x.kl()?);
        };
        grad.fill(0.0);
        let (theta, rest) = grad.split_at_mut(param::count(&self.kernel));
        let (noise, rest) = rest.split_at_mut(self.noise.len());
        let (z_slot, x_slots) = rest.split_at_mut(self.z.len());
        let mut z = Mat::zeros(self.z.value.rows(), self.z.value.cols());
        let (mut mean, mut var) = (Mat::zeros(q.n(), q.dim()), Mat::zeros(q.n(), q.dim()));
        let bars = BoundGrad { theta, noise, z: &mut z, mean: &mut mean, var: &mut var, outputs: None };
        let (value, ()) = self.bound().gradient(&q, bars, |_, _| ())?;
        z_slot.copy_from_slice(z.as_slice());
        let value = value - self.x.pull(&mean, &var, x_slots)?;
        if !all_finite(grad) {
            return Err(Error::not_finite("the gradient of the evidence bound"));
        }
        Ok(value)
    }

    fn posterior(&self) -> Result<Posterior> {
        let mut posterior = self.bound().posterior(&self.latent())?;
        posterior.expectation = self.expectation.0.clone();
        posterior.inputs = self.inputs.clone();
        Ok(posterior)
    }

    /// With inferred inputs the next two runs start from a half and a quarter of the lengthscales: with a
    /// function that is too smooth, the inferred inputs stay at their readings.
    fn another_start(&mut self, restart: usize) -> bool {
        let other = (1..=2).contains(&restart) && self.x.has_errors();
        if other {
            scale_lengthscales(&mut *self.kernel, 0.5f64.powi(restart as i32));
        }
        other
    }

    fn renew(&mut self, step: u64) {
        self.expectation.renew(step);
    }

    fn is_stochastic(&self) -> bool {
        self.expectation.is_stochastic()
    }

    fn choose_inducing(&mut self, rng: &mut ChaCha8Rng) -> Result<()> {
        if !self.z.fixed {
            self.z.value = spread(&self.latent().mean, self.z.value.rows(), rng)?;
        }
        Ok(())
    }

    fn parts(&self) -> usize {
        self.bound().parts()
    }
}
