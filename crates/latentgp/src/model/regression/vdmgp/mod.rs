//! The variational Mahalanobis process of Titsias & Lázaro-Gredilla (2013): a process on a linear projection
//! of the inputs whose weights are integrated out.
//!
//! ```text
//! y = f(Wx̃) + ε,  f ~ GP(0, k),  w_kd ~ N(0, ℓ²_k),  q(w_kd) = N(W_kd, V_kd),  W: K×D,  x̃ the scaled input
//! q(x̃_n) = N(μ_n, diag S_n),  μ = XWᵀ,  S = (X∘X)Vᵀ
//! F = collapsed(Y, Ψ, Kzz, β) − KL(q(W) ‖ p(W))       W̄ = μ̄ᵀX     V̄ = S̄ᵀ(X∘X)
//! ```
//!
//! Inputs with errors of variance R (N×D) have S = (X∘X + R)Vᵀ + R(W∘W)ᵀ; the correlations that such errors
//! cause between directions are neglected.
//!
//! The inducing values are values of f. The paper uses f/σ_f, which has unit variance: the bound is the same,
//! and q(u) differs by that factor. Different entries of a projected input are independent under q(W), so
//! that Ψ is exact for an rbf; every other kernel can use any expectation. The bound is for the data as
//! given: it includes the Jacobian of the scaling.

mod regressor;
mod relevance;
mod training;
pub(crate) mod weight_prior;

pub use relevance::{Direction, InputShare, USEFUL, WeightRelevance};
pub use training::{VdmgpPlan, VdmgpTraining};
pub use weight_prior::WeightPrior;

use crate::blocks;
use crate::error::{Error, Result};
use crate::evidence::{Collapse, Collapsed, collapsed};
use crate::expectation::{Expectation, Gaussians, Psi, PsiGrad};
use crate::kernel::{self, Kernel, KernelGrad};
use crate::linalg::{self, Cholesky};
use crate::mat::{Mat, all_finite};
use crate::mean::Mean;
use crate::model::regression::vdmgp::weight_prior::KlGrad;
use crate::model::shared::kzz;
use crate::model::{Jitter, Model, Supervised};
use crate::param::{self, Param, Parameterized};
use crate::posterior::{Factors, InputMap, Posterior};

/// The model: parameters, data and rules. [`VdmgpTraining`](crate::model::VdmgpTraining) makes and fits one.
#[derive(Clone, Debug)]
pub struct Vdmgp {
    /// The kernel, in the projected space.
    pub kernel: Box<dyn Kernel>,
    /// σ², in the units of the scaled targets.
    pub noise: Param,
    /// Z, M×K, in the projected space.
    pub z: Param,
    /// W, K×D: the means of the weights.
    pub mean: Param,
    /// V, K×D: their variances.
    pub var: Param,
    /// The prior of the weights; a given ℓ² is the last parameter, `ell2`.
    pub prior: WeightPrior,
    /// How Ψ-statistics are computed.
    pub expectation: Box<dyn Expectation>,
    /// Added to diagonals.
    pub jitter: Jitter,
    /// Inputs and targets.
    pub data: Supervised,
    /// R, the variances of the scaled inputs; `None` where they are certain.
    pub x_var: Option<Mat>,
}

/// The terms of the bound without the KL and the Jacobian.
struct Parts {
    latent: Gaussians,
    /// L⁻¹Ψ2L⁻ᵀ takes the place of Ψ2.
    psi: Psi,
    p: Mat,
    kzz: Cholesky,
}

/// The terms of the bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// F₁, the contribution of the data, for the data as given.
    pub fit: f64,
    /// KL(q(W) ‖ p(W)), with the KL of q(ℓ²) in the fully Bayesian case.
    pub kl: f64,
}

impl Vdmgp {
    /// A model with given weights (K×D) and inducing inputs (M×K).
    ///
    /// Errs when shapes disagree, a value is outside its domain, or the expectation cannot run.
    pub fn new(
        data: Supervised,
        kernel: impl Kernel + 'static,
        expectation: Box<dyn Expectation>,
        prior: WeightPrior,
        weights: Gaussians,
        z: Mat,
        noise: f64,
    ) -> Result<Self> {
        let (k, d) = (weights.mean.rows(), data.x.cols());
        if weights.dim() != d || k == 0 {
            let found = weights.mean.shape();
            return Err(Error::shape("weights of the projection", format!("at least 1 × {d}"), found));
        }
        if weights.var.shape() != weights.mean.shape() {
            let found = weights.var.shape();
            return Err(Error::shape("variances of the weights", weights.mean.shape(), found));
        }
        if z.cols() != k || z.rows() == 0 {
            return Err(Error::shape("inducing inputs", format!("at least 1 × {k}"), z.shape()));
        }
        kernel::check_dim(&kernel, k)?;
        expectation.check(&kernel, k)?;
        prior.check(k)?;
        let model = Vdmgp {
            kernel: Box::new(kernel),
            noise: Param::scalar(noise),
            z: Param::free(z),
            mean: Param::free(weights.mean),
            var: Param::positive(weights.var),
            prior,
            expectation,
            jitter: Jitter::default(),
            data,
            x_var: None,
        };
        model.params().iter().try_for_each(|(name, p)| p.check(name))?;
        Ok(model)
    }

    /// q of the projected inputs: μ = XWᵀ and S = (X∘X)Vᵀ, or S = (X∘X + R)Vᵀ + R(W∘W)ᵀ with errors.
    pub fn latent(&self) -> Gaussians {
        let mut var = blocks::mul_nt(1.0, &self.second_moments(), &self.var.value);
        if let Some(r) = &self.x_var {
            var.add_scaled(1.0, &blocks::mul_nt(1.0, r, &self.mean.value.map(|w| w * w)));
        }
        Gaussians { mean: blocks::mul_nt(1.0, &self.data.x, &self.mean.value), var }
    }

    /// E[X∘X].
    fn second_moments(&self) -> Mat {
        let mut square = self.data.x.map(|v| v * v);
        self.x_var.iter().for_each(|r| square.add_scaled(1.0, r));
        square
    }

    /// ℓ²_k of every direction, see [`WeightPrior::ell2`].
    pub fn ell2(&self) -> Vec<f64> {
        self.prior.ell2(&self.mean.value, &self.var.value)
    }

    /// F₁ and the KL; the bound is their difference.
    pub fn terms(&self) -> Result<Terms> {
        let fit = self.collapse(&self.parts()?)?.value + self.data.log_jacobian();
        Ok(Terms { fit, kl: self.prior.kl(&self.mean.value, &self.var.value, None) })
    }

    /// q(u): the means, M×outputs, and the covariance, M×M, of f at Z, in the units of the scaled targets.
    pub fn inducing_values(&self) -> Result<(Mat, Mat)> {
        let parts = self.parts()?;
        let bound = self.collapse(&parts)?;
        let l = parts.kzz.l();
        let kzz_alpha = linalg::mul(l, &linalg::mul_tn(l, &bound.alpha));
        let mut rest = bound.c();
        rest.scale(-1.0);
        (0..rest.rows()).for_each(|i| rest[(i, i)] += 1.0);
        let mut cov = linalg::mul_nt(&linalg::mul(l, &rest), l);
        linalg::symmetrize(&mut cov);
        Ok((kzz_alpha, cov))
    }

    fn parts(&self) -> Result<Parts> {
        let z = &self.z.value;
        let kzz = kzz::factor(&*self.kernel, z, self.jitter.kzz)?;
        let latent = self.latent();
        let finite = |i: &usize| latent.mean.row(*i).iter().chain(latent.var.row(*i)).all(|v| v.is_finite());
        if let Some(row) = (0..latent.n()).find(|i| !finite(i)) {
            return Err(Error::not_finite(format!("the projection of row {} of the inputs", row + 1)));
        }
        let mut psi = self.expectation.psi_whitened(&*self.kernel, &latent, z, &kzz)?;
        let p = blocks::mul_tn(&psi.psi1, &self.data.y);
        // The bound needs Ψ1 only through P.
        psi.psi1 = Mat::default();
        Ok(Parts { latent, psi, p, kzz })
    }

    fn question<'a>(&self, parts: &'a Parts) -> Collapse<'a> {
        Collapse {
            rows: self.data.y.rows(),
            outputs: self.data.y.cols(),
            yy: self.data.y.dot(&self.data.y),
            p: &parts.p,
            psi0: parts.psi.psi0,
            a: &parts.psi.psi2,
            kzz: &parts.kzz,
            beta: 1.0 / self.noise.get(),
            jitter: self.jitter.b,
        }
    }

    fn collapse(&self, parts: &Parts) -> Result<Collapsed> {
        collapsed(&self.question(parts))
    }
}

impl Parameterized for Vdmgp {
    fn params(&self) -> Vec<(String, &Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params());
        let own = [("noise", &self.noise), ("z", &self.z), ("mean", &self.mean), ("var", &self.var)];
        all.extend(own.map(|(name, p)| (name.to_string(), p)));
        if let WeightPrior::Given(ell2) = &self.prior {
            all.push(("ell2".to_string(), ell2));
        }
        all
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params_mut());
        let own = [
            ("noise", &mut self.noise),
            ("z", &mut self.z),
            ("mean", &mut self.mean),
            ("var", &mut self.var),
        ];
        all.extend(own.map(|(name, p)| (name.to_string(), p)));
        if let WeightPrior::Given(ell2) = &mut self.prior {
            all.push(("ell2".to_string(), ell2));
        }
        all
    }

    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.kernel.each_param(visit);
        [&self.noise, &self.z, &self.mean, &self.var].into_iter().for_each(&mut *visit);
        if let WeightPrior::Given(ell2) = &self.prior {
            visit(ell2);
        }
    }

    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        self.kernel.each_param_mut(visit);
        [&mut self.noise, &mut self.z, &mut self.mean, &mut self.var].into_iter().for_each(&mut *visit);
        if let WeightPrior::Given(ell2) = &mut self.prior {
            visit(ell2);
        }
    }
}

impl Model for Vdmgp {
    /// The log Jacobian of the scaling.
    fn constant(&self) -> f64 {
        self.data.log_jacobian()
    }

    fn varying_evidence(&self, grad: Option<&mut [f64]>) -> Result<f64> {
        let parts = self.parts()?;
        self.question(&parts).check_digits(|| self.expectation.nonnegative(self.z.value.cols()))?;
        let Some(grad) = grad else {
            let kl = self.prior.kl(&self.mean.value, &self.var.value, None);
            return Ok(self.collapse(&parts)?.value - kl);
        };
        grad.fill(0.0);
        let question = self.question(&parts);
        let bound = collapsed(&question)?;
        let bar = bound.bar(&question);
        let (z, latent, x) = (&self.z.value, &parts.latent, &self.data.x);
        let beta = question.beta;

        let (theta_bar, rest) = grad.split_at_mut(param::count(&self.kernel));
        let (noise_bar, rest) = rest.split_at_mut(1);
        let (z_slot, rest) = rest.split_at_mut(z.len());
        let (mean_slot, rest) = rest.split_at_mut(self.mean.len());
        let (var_slot, ell2_slot) = rest.split_at_mut(self.var.len());

        noise_bar[0] = -beta * beta * bar.beta;
        let mut z_bar = Mat::zeros(z.rows(), z.cols());
        let at = KernelGrad { theta: theta_bar, x: Some(&mut z_bar), z: None };
        kzz::adjoint(&*self.kernel, z, self.jitter.kzz, &bar.kzz, at);
        // Through P = Ψ1ᵀY: Ψ̄1 = Y P̄ᵀ, P̄ = βα.
        let psi1 = blocks::mul_nt(beta, &self.data.y, &bound.alpha);
        let psi_bar = Psi { psi0: bar.psi0, psi1, psi2: bar.psi2 };
        let mut mean_bar = Mat::zeros(latent.n(), latent.dim());
        let mut var_bar = Mat::zeros(latent.n(), latent.dim());
        let at = PsiGrad { theta: theta_bar, z: &mut z_bar, mean: &mut mean_bar, var: &mut var_bar };
        self.expectation.psi_adjoint(&*self.kernel, latent, z, &psi_bar, at)?;
        z_slot.copy_from_slice(z_bar.as_slice());
        mean_slot.copy_from_slice(blocks::mul_tn(&mean_bar, x).as_slice());
        if let Some(r) = &self.x_var {
            let of_squares = blocks::mul_tn(&var_bar, r);
            let weights = self.mean.as_slice().iter().zip(of_squares.as_slice());
            mean_slot.iter_mut().zip(weights).for_each(|(g, (w, s))| *g += 2.0 * w * s);
        }
        var_slot.copy_from_slice(blocks::mul_tn(&var_bar, &self.second_moments()).as_slice());
        let at = KlGrad { mean: mean_slot, var: var_slot, ell2: ell2_slot };
        let kl = self.prior.kl(&self.mean.value, &self.var.value, Some(at));
        if !all_finite(grad) {
            return Err(Error::not_finite("the gradient of the evidence bound"));
        }
        Ok(bound.value - kl)
    }

    fn posterior(&self) -> Result<Posterior> {
        let parts = self.parts()?;
        let bound = self.collapse(&parts)?;
        let columns = (0..self.data.y.cols()).collect();
        let factors = vec![Factors::new(columns, bound.alpha.clone(), bound.c(), &parts.kzz)];
        let map = InputMap::Random { mean: self.mean.value.clone(), var: self.var.value.clone() };
        Ok(Posterior {
            kernel: self.kernel.clone(),
            z: self.z.value.clone(),
            noise: vec![self.noise.get(); self.data.y.cols()],
            l: parts.kzz.into(),
            factors,
            expectation: self.expectation.clone(),
            scaling: self.data.outputs.clone(),
            mean: Mean::Zero,
            inputs: Some(self.data.inputs.clone()),
            map,
        })
    }

    fn is_stochastic(&self) -> bool {
        self.expectation.is_stochastic()
    }

    fn renew(&mut self, step: u64) {
        self.expectation.renew(step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{self, relative_error};
    use crate::data::Scale;
    use crate::expectation::{Analytic, Auto, GaussHermite, Unscented};
    use crate::kernel::{Linear, Matern32, Rbf};

    const GRADIENT: f64 = 1e-6;

    fn data(n: usize, outputs: usize) -> Supervised {
        let x = Mat::from_fn(n, 4, |i, j| ((i * 7 + j * 3) as f64 * 0.9).sin() * (1.0 + j as f64));
        let y =
            Mat::from_fn(n, outputs, |i, j| (x[(i, 0)] + j as f64).sin() + 0.1 * ((i * 5 + j) as f64).cos());
        Supervised::new(&x, &y, Scale::Standardize, Scale::Standardize).unwrap()
    }

    fn model(kernel: Box<dyn Kernel>, rule: Box<dyn Expectation>, prior: WeightPrior, var: f64) -> Vdmgp {
        let mean = Mat::from_fn(2, 4, |i, j| 0.5 * ((i * 4 + j) as f64).cos());
        let weights = Gaussians::new(mean, Mat::from_fn(2, 4, |i, j| var * (1.0 + (i + j) as f64))).unwrap();
        let z = Mat::from_fn(5, 2, |i, j| ((i * 2 + j) as f64 * 1.7).sin());
        Vdmgp::new(data(12, 2), kernel, rule, prior, weights, z, 0.2).unwrap()
    }

    #[test]
    fn the_gradient_is_that_of_differences_for_every_prior_kernel_and_rule() {
        let rbf = || Box::new(Rbf::new(2));
        let gamma = WeightPrior::Gamma { shape: 1.5, rate: 0.3 };
        let free = WeightPrior::Given(Param::row(2, 0.4));
        let mut cases = vec![
            model(rbf(), Box::new(Analytic), WeightPrior::TypeII, 0.02),
            model(rbf(), Box::new(Analytic), gamma.clone(), 0.02),
            model(rbf(), Box::new(Analytic), free, 0.02),
            model(Box::new(Matern32::new(2)), Box::new(Unscented), WeightPrior::TypeII, 0.02),
            model(Box::new(Matern32::new(2) + Linear::new(2)), Box::new(GaussHermite::new(3)), gamma, 0.02),
            model(rbf(), Box::new(Analytic), WeightPrior::TypeII, 0.02),
        ];
        let last = cases.last_mut().unwrap();
        let (n, d) = (last.data.x.rows(), last.data.x.cols());
        last.x_var = Some(Mat::from_fn(n, d, |i, j| 0.1 + 0.05 * ((i + 2 * j) as f64).sin()));
        for model in &cases {
            check::model(model, GRADIENT)
                .unwrap_or_else(|e| panic!("{}, {:?}: {e}", model.kernel, model.prior));
        }
    }

    #[test]
    fn without_uncertainty_it_is_a_projected_sparse_process() {
        const TINY: f64 = 1e-12;
        let model = model(Box::new(Rbf::new(2)), Box::new(Auto), WeightPrior::TypeII, TINY);
        let latent = linalg::mul_nt(&model.data.x, &model.mean.value);
        let (k, z) = (Rbf::new(2), &model.z.value);
        let (mut kxz, mut kzz) = (Mat::zeros(12, 5), Mat::zeros(5, 5));
        k.cross(&latent, z, &mut kxz);
        k.gram(z, &mut kzz);
        (0..5).for_each(|i| kzz[(i, i)] += model.jitter.kzz);
        let kzz = Cholesky::new(&kzz, "Kzz").unwrap();
        let (p, a) = (linalg::mul_tn(&kxz, &model.data.y), kzz.whiten(&linalg::mul_tn(&kxz, &kxz)));
        let yy = model.data.y.dot(&model.data.y);
        let of = Collapse {
            rows: 12,
            outputs: 2,
            yy,
            p: &p,
            psi0: 12.0,
            a: &a,
            kzz: &kzz,
            beta: 5.0,
            jitter: 0.0,
        };
        let sparse = collapsed(&of).unwrap();
        let ours = model.terms().unwrap().fit - model.data.log_jacobian();
        assert!((ours - sparse.value).abs() < 1e-8 * sparse.value.abs(), "{ours} against {}", sparse.value);

        let new = Mat::from_fn(3, 4, |i, j| ((i + 2 * j) as f64).sin());
        let found = model.posterior().unwrap().predict(&new).unwrap();
        let at = linalg::mul_nt(&model.data.inputs.apply(&new).unwrap(), &model.mean.value);
        let mut cross = Mat::zeros(3, 5);
        k.cross(&at, z, &mut cross);
        let mean = model.data.outputs.undo_mean(&linalg::mul(&cross, &sparse.alpha)).unwrap();
        assert!(relative_error(found.mean.as_slice(), mean.as_slice(), 1e-3) < 1e-8);
    }

    #[test]
    fn shapes_that_disagree_are_errors() {
        let rbf = || Rbf::new(2);
        let weights = |k: usize, d: usize| Gaussians { mean: Mat::zeros(k, d), var: Mat::filled(k, d, 0.1) };
        let new = |w: Gaussians, z: Mat, prior: WeightPrior, noise: f64| {
            Vdmgp::new(data(6, 1), rbf(), Box::new(Auto), prior, w, z, noise)
        };
        let z = || Mat::zeros(3, 2);
        assert!(new(weights(2, 4), z(), WeightPrior::TypeII, 0.1).is_ok());
        assert!(matches!(new(weights(2, 3), z(), WeightPrior::TypeII, 0.1), Err(Error::Shape { .. })));
        assert!(matches!(new(weights(0, 4), z(), WeightPrior::TypeII, 0.1), Err(Error::Shape { .. })));
        assert!(matches!(new(weights(3, 4), z(), WeightPrior::TypeII, 0.1), Err(Error::Shape { .. })));
        assert!(matches!(
            new(weights(2, 4), Mat::zeros(0, 2), WeightPrior::TypeII, 0.1),
            Err(Error::Shape { .. })
        ));
        assert!(matches!(new(weights(2, 4), z(), WeightPrior::fixed(&[1.0]), 0.1), Err(Error::Shape { .. })));
        assert!(matches!(new(weights(2, 4), z(), WeightPrior::TypeII, -0.1), Err(Error::Invalid { .. })));
        let certain = Gaussians::certain(Mat::zeros(2, 4));
        assert!(matches!(new(certain, z(), WeightPrior::TypeII, 0.1), Err(Error::Invalid { .. })));
        let closed = Vdmgp::new(
            data(6, 1),
            Matern32::new(2),
            Box::new(Analytic),
            WeightPrior::TypeII,
            weights(2, 4),
            z(),
            0.1,
        );
        assert!(matches!(closed, Err(Error::NoClosedForm { .. })));
    }
}
