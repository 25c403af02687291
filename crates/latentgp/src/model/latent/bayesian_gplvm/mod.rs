//! The Bayesian GPLVM of Titsias & Lawrence (2010): latent positions with uncertainty, integrated out.
//!
//! ```text
//! y_nd = f_d(x_n) + ε_nd,  ε_nd ~ N(0, σ²) or N(0, σ_d²),  f_d ~ GP(0, k),  X ~ p(X),  q(x_n) = N(μ_n, diag S_n)
//! F = Σ_groups collapsed(Y, Ψ, Kzz, β) − KL(q(X) ‖ p(X))
//! ```
//!
//! The bound is that of the data as given: the Jacobian of the scaling is in it.

mod certificate;
mod collapse;
mod papers;
mod project;
mod space;
mod training;
mod using;

pub use certificate::Certificate;
pub use collapse::Collapse;
pub use papers::PapersTraining;
pub use project::Latent;
pub(crate) use project::RowBound;
pub use space::BayesianSpace;
pub use training::{Training, TrainingPlan};
pub use using::Imputed;

use crate::blocks;
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::expectation::{Expectation, Gaussians};
use crate::kernel::{self, Kernel};
use crate::mat::{Mat, all_finite};
use crate::model::shared::prior::{self, InputPrior, KlGrad, Normal};
use crate::model::shared::sparse_bound::{BoundGrad, SparseBound};
use crate::model::{Jitter, Model, Outputs};
use crate::param::{self, Param, Parameterized};
use crate::posterior::Posterior;
use crate::scratch;

/// The model: parameters, data and rules. [`Training`](crate::model::Training) makes and fits one.
#[derive(Clone)]
pub struct BayesianGplvm {
    /// The kernel.
    pub kernel: Box<dyn Kernel>,
    /// σ² of all columns or of each, in the units of the scaled data.
    pub noise: Param,
    /// Z, M×Q.
    pub z: Param,
    /// μ, N×Q.
    pub mean: Param,
    /// S, N×Q.
    pub var: Param,
    /// How Ψ-statistics are computed.
    pub expectation: Box<dyn Expectation>,
    /// p(X).
    pub prior: Box<dyn InputPrior>,
    /// Added to diagonals.
    pub jitter: Jitter,
    /// Y, scaled.
    pub outputs: Outputs,
    /// The units of the data.
    pub scaling: Scaling,
}

impl BayesianGplvm {
    /// A model of the scaled outputs, at the positions and inducing inputs given, with p(X) = N(0, I).
    ///
    /// Errs when shapes disagree, a value is outside its domain, or the expectation cannot run.
    pub fn new(
        outputs: Outputs,
        scaling: Scaling,
        kernel: impl Kernel + 'static,
        expectation: Box<dyn Expectation>,
        q: Gaussians,
        z: Mat,
        noise: f64,
    ) -> Result<Self> {
        if q.n() != outputs.n() {
            return Err(Error::shape("rows of the latent positions", outputs.n(), q.n()));
        }
        if scaling.scale.len() != outputs.d() {
            return Err(Error::shape("columns of the scaling", outputs.d(), scaling.scale.len()));
        }
        if z.cols() != q.dim() || z.rows() == 0 {
            return Err(Error::shape("inducing inputs", format!("at least 1 × {}", q.dim()), z.shape()));
        }
        kernel::check_dim(&kernel, q.dim())?;
        expectation.check(&kernel, q.dim())?;
        let prior = Box::new(Normal::standard(q.n(), q.dim()));
        let model = BayesianGplvm {
            kernel: Box::new(kernel),
            noise: Param::scalar(noise),
            z: Param::free(z),
            mean: Param::free(q.mean),
            var: Param::positive(q.var),
            expectation,
            prior,
            jitter: Jitter::default(),
            outputs,
            scaling,
        };
        model.params().iter().try_for_each(|(name, p)| p.check(name))?;
        Ok(model)
    }

    /// q(X).
    pub fn latent(&self) -> Gaussians {
        Gaussians { mean: self.mean.value.clone(), var: self.var.value.clone() }
    }

    /// N, D, Q, M.
    pub fn sizes(&self) -> (usize, usize, usize, usize) {
        (self.outputs.n(), self.outputs.d(), self.mean.value.cols(), self.z.value.rows())
    }

    /// What the last Cholesky factor of Kzz needed beyond the jitter that is always added.
    pub fn extra_jitter(&self) -> Result<f64> {
        Ok(self.bound().kzz()?.jitter())
    }

    fn bound(&self) -> SparseBound<'_> {
        SparseBound {
            kernel: &*self.kernel,
            expectation: &*self.expectation,
            z: &self.z.value,
            noise: self.noise.as_slice(),
            jitter: self.jitter,
            outputs: &self.outputs,
            scaling: &self.scaling,
        }
    }

    /// Takes another prior of X.
    ///
    /// Errs unless it is bound to as many rows and columns as X has.
    pub fn set_prior(&mut self, prior: Box<dyn InputPrior>) -> Result<()> {
        prior::check_sizes(&*prior, &self.mean.value)?;
        self.prior = prior;
        Ok(())
    }

    /// KL(q(X) ‖ p(X)); adds −∂KL to the gradients.
    fn kl(&self, grads: Option<KlGrad<'_>>) -> Result<f64> {
        self.prior.kl(&self.mean.value, &self.var.value, grads)
    }
}

impl Parameterized for BayesianGplvm {
    fn params(&self) -> Vec<(String, &Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params());
        all.extend([
            ("noise".to_string(), &self.noise),
            ("z".to_string(), &self.z),
            ("mean".to_string(), &self.mean),
            ("var".to_string(), &self.var),
        ]);
        all.extend(param::prefixed("prior", self.prior.params()));
        all
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params_mut());
        all.extend([
            ("noise".to_string(), &mut self.noise),
            ("z".to_string(), &mut self.z),
            ("mean".to_string(), &mut self.mean),
            ("var".to_string(), &mut self.var),
        ]);
        all.extend(param::prefixed("prior", self.prior.params_mut()));
        all
    }

    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.kernel.each_param(visit);
        [&self.noise, &self.z, &self.mean, &self.var].into_iter().for_each(&mut *visit);
        self.prior.each_param(visit);
    }

    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        self.kernel.each_param_mut(visit);
        [&mut self.noise, &mut self.z, &mut self.mean, &mut self.var].into_iter().for_each(&mut *visit);
        self.prior.each_param_mut(visit);
    }
}

impl Model for BayesianGplvm {
    fn varying_evidence(&self, grad: Option<&mut [f64]>) -> Result<f64> {
        let (n, _, q, m) = self.sizes();
        let Some(grad) = grad else {
            return Ok(self.bound().value(&self.latent())? - self.kl(None)?);
        };
        let [mean, var] = [&self.mean, &self.var].map(|of| {
            let mut own = scratch::any(n, q);
            blocks::copy(of.as_slice(), own.as_mut_slice());
            own
        });
        let latent = Gaussians { mean, var };
        let (theta, rest) = grad.split_at_mut(param::count(&self.kernel));
        let (noise, rest) = rest.split_at_mut(self.noise.len());
        theta.fill(0.0);
        noise.fill(0.0);
        let (z_slot, rest) = rest.split_at_mut(m * q);
        let (mean_slot, rest) = rest.split_at_mut(n * q);
        let (var_slot, prior_slot) = rest.split_at_mut(n * q);
        let mut z = Mat::zeros(m, q);
        let [mut mean, mut var] = [(); 2].map(|()| scratch::any(n, q));
        let bars = BoundGrad { theta, noise, z: &mut z, mean: &mut mean, var: &mut var, outputs: None };
        let (bound, kl) = self.bound().gradient(&latent, bars, |mean, var| {
            mean.fill(0.0);
            var.fill(0.0);
            prior_slot.fill(0.0);
            self.kl(Some(KlGrad { mean: mean.as_mut_slice(), var: var.as_mut_slice(), params: prior_slot }))
        })?;
        let value = bound - kl?;
        z_slot.copy_from_slice(z.as_slice());
        for (slot, from) in [(mean_slot, &mean), (var_slot, &var)] {
            blocks::copy(from.as_slice(), slot);
        }
        if !all_finite(grad) {
            return Err(Error::not_finite("the gradient of the evidence bound"));
        }
        Ok(value)
    }

    fn constant(&self) -> f64 {
        self.bound().jacobian()
    }

    fn posterior(&self) -> Result<Posterior> {
        self.bound().posterior(&self.latent())
    }

    fn is_stochastic(&self) -> bool {
        self.expectation.is_stochastic()
    }

    fn renew(&mut self, step: u64) {
        self.expectation.renew(step);
    }

    fn parts(&self) -> usize {
        self.bound().parts()
    }
}
