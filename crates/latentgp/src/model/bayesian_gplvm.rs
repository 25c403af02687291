//! The Bayesian GPLVM of Titsias & Lawrence (2010): latent positions with uncertainty, integrated out.
//!
//! ```text
//! y_nd = f_d(x_n) + ε,  f_d ~ GP(0, k),  x_n ~ N(m_n, diag p_n),  q(x_n) = N(μ_n, diag S_n)
//! F = Σ_groups collapsed(Y, Ψ, Kzz, β) − KL,   KL = ½ Σ ((μ − m)²/p + S/p − ln(S/p) − 1)
//! ```
//!
//! The bound is that of the data as given: the Jacobian of the scaling is in it.

use super::{Model, Outputs};
use crate::blocks;
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::evidence::{Collapse, Collapsed, collapsed};
use crate::expectation::{Expectation, Gaussians, Psi, PsiGrad};
use crate::kernel::{self, Kernel, KernelGrad};
use crate::linalg::Cholesky;
use crate::mat::Mat;
use crate::param::{self, Param, Parameterized};
use crate::posterior::{Factors, Posterior};
use rayon::prelude::*;

/// What is added to diagonals before they are factored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// To Kzz.
    pub kzz: f64,
    /// To B = I + βL⁻¹Ψ2L⁻ᵀ.
    pub b: f64,
}

impl Default for Jitter {
    fn default() -> Self {
        Jitter { kzz: 1e-6, b: 0.0 }
    }
}

/// The model: parameters, data and rules. [`Training`](super::Training) makes and fits one.
#[derive(Clone)]
pub struct BayesianGplvm {
    /// The kernel.
    pub kernel: Box<dyn Kernel>,
    /// σ², in the units of the scaled data.
    pub noise: Param,
    /// Z, M×Q.
    pub z: Param,
    /// μ, N×Q.
    pub mean: Param,
    /// S, N×Q.
    pub var: Param,
    /// How Ψ-statistics are computed.
    pub expectation: Box<dyn Expectation>,
    /// p(x_n).
    pub prior: Gaussians,
    /// Added to diagonals.
    pub jitter: Jitter,
    /// Y, scaled.
    pub outputs: Outputs,
    /// The units of the data.
    pub scaling: Scaling,
}

/// Above this estimate of the rounding error that ill-conditioning brings into the bound of one cell,
/// Ψ2 is whitened block by block.
const ROUNDING: f64 = 1e-10;

/// Ψ of all rows: Ψ1 whole, Ψ0 and L⁻¹Ψ2L⁻ᵀ of each group.
struct GroupPsi {
    psi1: Mat,
    each: Vec<(f64, Mat)>,
}

impl BayesianGplvm {
    /// A model of the scaled outputs, at the positions and inducing inputs given.
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
        let prior = Gaussians { mean: Mat::zeros(q.n(), q.dim()), var: Mat::filled(q.n(), q.dim(), 1.0) };
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

    /// The factor of Kzz, jitter included.
    pub(crate) fn kzz(&self) -> Result<Cholesky> {
        let m = self.z.value.rows();
        let mut kzz = Mat::zeros(m, m);
        self.kernel.gram(&self.z.value, &mut kzz);
        (0..m).for_each(|i| kzz[(i, i)] += self.jitter.kzz);
        if !kzz.is_finite() {
            return Err(Error::not_finite("Kzz"));
        }
        Cholesky::with_jitter(&kzz, "Kzz")
    }

    /// What the last Cholesky factor of Kzz needed beyond the jitter that is always added.
    pub fn extra_jitter(&self) -> Result<f64> {
        Ok(self.kzz()?.jitter())
    }

    fn group_psi(&self, q: &Gaussians, kzz: &Cholesky) -> Result<GroupPsi> {
        let (z, m) = (&self.z.value, self.z.value.rows());
        let size = (0..m).map(|i| kzz.l().row(i).iter().map(|v| v * v).sum::<f64>()).sum::<f64>() / m as f64;
        let careful = f64::EPSILON * kzz.condition() * size / self.noise.get() > ROUNDING;
        let psi_of = |q: &Gaussians| -> Result<Psi> {
            if careful {
                return self.expectation.psi_whitened(&*self.kernel, q, z, kzz);
            }
            let mut psi = self.expectation.psi(&*self.kernel, q, z)?;
            psi.psi2 = kzz.whiten(&psi.psi2);
            Ok(psi)
        };
        if self.outputs.is_complete() {
            let psi = psi_of(q)?;
            return Ok(GroupPsi { psi1: psi.psi1, each: vec![(psi.psi0, psi.psi2)] });
        }
        let mut psi1 = Mat::zeros(q.n(), m);
        let mut each = vec![(0.0, Mat::zeros(m, m)); self.outputs.groups.len()];
        for pattern in self.outputs.patterns.iter().filter(|p| !p.groups.is_empty()) {
            let psi = psi_of(&q.select_rows(&pattern.rows))?;
            for (i, &n) in pattern.rows.iter().enumerate() {
                psi1.row_mut(n).copy_from_slice(psi.psi1.row(i));
            }
            for &g in &pattern.groups {
                each[g].0 += psi.psi0;
                each[g].1.add_scaled(1.0, &psi.psi2);
            }
        }
        Ok(GroupPsi { psi1, each })
    }

    /// The bound of every group: P of its columns, what went in, what came out.
    fn collapse<T: Send>(
        &self,
        psi: &GroupPsi,
        p: &Mat,
        kzz: &Cholesky,
        then: impl Fn(&Collapse<'_>, Collapsed) -> T + Sync,
    ) -> Result<Vec<T>> {
        let complete = self.outputs.is_complete();
        let one = |(g, group): (usize, &super::outputs::Group)| {
            let own = if complete { p.clone() } else { p.select_cols(&group.columns) };
            let of = Collapse {
                rows: group.rows,
                outputs: group.columns.len(),
                yy: group.yy,
                p: &own,
                psi0: psi.each[g].0,
                a: &psi.each[g].1,
                kzz,
                beta: 1.0 / self.noise.get(),
                jitter: self.jitter.b,
            };
            Ok(then(&of, collapsed(&of)?))
        };
        self.outputs.groups.par_iter().enumerate().map(one).collect()
    }

    /// KL(q(X) ‖ p(X)); adds −∂KL to the gradients.
    fn kl(&self, grads: Option<(&mut [f64], &mut [f64])>) -> f64 {
        let (mean, var) = (self.mean.as_slice(), self.var.as_slice());
        let (m, p) = (self.prior.mean.as_slice(), self.prior.var.as_slice());
        let one = |i: usize| {
            let ratio = var[i] / p[i];
            0.5 * ((mean[i] - m[i]).powi(2) / p[i] + ratio - ratio.ln() - 1.0)
        };
        if let Some((mean_bar, var_bar)) = grads {
            for i in 0..mean.len() {
                mean_bar[i] -= (mean[i] - m[i]) / p[i];
                var_bar[i] -= 0.5 * (1.0 / p[i] - 1.0 / var[i]);
            }
        }
        (0..mean.len()).map(one).sum()
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
        all
    }
}

impl Model for BayesianGplvm {
    fn log_evidence(&self, grad: Option<&mut [f64]>) -> Result<f64> {
        Ok(self.varying_evidence(grad)? + self.constant())
    }

    fn varying_evidence(&self, grad: Option<&mut [f64]>) -> Result<f64> {
        let (n, _, q, m) = self.sizes();
        let latent = self.latent();
        let kzz = self.kzz()?;
        let mut psi = self.group_psi(&latent, &kzz)?;
        let p = blocks::mul_tn(&psi.psi1, &self.outputs.filled);
        let Some(grad) = grad else {
            let values = self.collapse(&psi, &p, &kzz, |_, c| c.value)?;
            return Ok(values.iter().sum::<f64>() - self.kl(None));
        };
        grad.fill(0.0);
        let bars = self.collapse(&psi, &p, &kzz, |of, c| {
            let bar = c.bar(of);
            (c.value, c.alpha, bar)
        })?;
        let beta = 1.0 / self.noise.get();

        let theta = param::count(&self.kernel);
        let (theta_bar, rest) = grad.split_at_mut(theta);
        let (noise_bar, rest) = rest.split_at_mut(1);
        let (z_slot, rest) = rest.split_at_mut(m * q);
        let (mean_slot, var_slot) = rest.split_at_mut(n * q);

        // Through P = Ψ1ᵀY: Ψ̄1 = Y P̄ᵀ, P̄ = βα.
        let mut alpha = Mat::zeros(m, self.outputs.filled.cols());
        let mut kzz_bar = Mat::zeros(m, m);
        let (mut value, mut beta_bar) = (0.0, 0.0);
        for (group, (f, own, bar)) in self.outputs.groups.iter().zip(&bars) {
            value += f;
            beta_bar += bar.beta;
            kzz_bar.add_scaled(1.0, &bar.kzz);
            match self.outputs.is_complete() {
                true => alpha.add_scaled(1.0, own),
                false => {
                    for (j, &column) in group.columns.iter().enumerate() {
                        (0..m).for_each(|i| alpha[(i, column)] = own[(i, j)]);
                    }
                }
            }
        }
        let psi1_bar = blocks::mul_nt(beta, &self.outputs.filled, &alpha);
        for (each, (_, _, bar)) in psi.each.iter_mut().zip(bars) {
            *each = (bar.psi0, bar.psi2);
        }

        noise_bar[0] = -beta * beta * beta_bar;
        let mut z_bar = Mat::zeros(m, q);
        let grads = KernelGrad { theta: theta_bar, x: Some(&mut z_bar), z: None };
        self.kernel.gram_adjoint(&self.z.value, &kzz_bar, grads);
        let (mut mean_bar, mut var_bar) = (Mat::zeros(n, q), Mat::zeros(n, q));
        self.pull_psi(&latent, psi, psi1_bar, theta_bar, &mut z_bar, &mut mean_bar, &mut var_bar)?;
        z_slot.copy_from_slice(z_bar.as_slice());
        mean_slot.copy_from_slice(mean_bar.as_slice());
        var_slot.copy_from_slice(var_bar.as_slice());
        value -= self.kl(Some((mean_slot, var_slot)));
        if grad.iter().any(|g| !g.is_finite()) {
            return Err(Error::not_finite("the gradient of the evidence bound"));
        }
        Ok(value)
    }

    /// The Jacobian of the scaling.
    fn constant(&self) -> f64 {
        self.scaling.log_jacobian(&self.outputs.observed())
    }

    fn posterior(&self) -> Result<Posterior> {
        let kzz = self.kzz()?;
        let psi = self.group_psi(&self.latent(), &kzz)?;
        // Wide data are trained on a root of YYᵀ; predictions need Y itself.
        let p = blocks::mul_tn(&psi.psi1, &self.outputs.zero_filled());
        let parts = self.collapse(&psi, &p, &kzz, |_, c| (c.c(), c.alpha))?;
        let groups = self.outputs.groups.iter().zip(parts);
        let factors = groups.map(|(g, (c, alpha))| Factors::new(g.columns.clone(), alpha, c, &kzz)).collect();
        Ok(Posterior {
            kernel: self.kernel.clone(),
            z: self.z.value.clone(),
            noise: self.noise.get(),
            l: kzz,
            factors,
            expectation: self.expectation.clone(),
            scaling: self.scaling.clone(),
        })
    }

    fn renew(&mut self, step: u64) {
        self.expectation.renew(step);
    }
}

impl BayesianGplvm {
    /// Chains Ψ̄ back; `psi.each` holds Ψ̄0 and Ψ̄2 of each group.
    fn pull_psi(
        &self,
        latent: &Gaussians,
        bar: GroupPsi,
        psi1_bar: Mat,
        theta_bar: &mut [f64],
        z_bar: &mut Mat,
        mean_bar: &mut Mat,
        var_bar: &mut Mat,
    ) -> Result<()> {
        let (z, m) = (&self.z.value, self.z.value.rows());
        let mut each = bar.each;
        if self.outputs.is_complete() {
            let (psi0, psi2) = each.remove(0);
            let bar = Psi { psi0, psi1: psi1_bar, psi2 };
            let grad = PsiGrad { theta: theta_bar, z: z_bar, mean: mean_bar, var: var_bar };
            return self.expectation.psi_adjoint(&*self.kernel, latent, z, &bar, grad);
        }
        for pattern in self.outputs.patterns.iter().filter(|p| !p.groups.is_empty()) {
            let own = latent.select_rows(&pattern.rows);
            let mut bar =
                Psi { psi0: 0.0, psi1: psi1_bar.select_rows(&pattern.rows), psi2: Mat::zeros(m, m) };
            for &g in &pattern.groups {
                bar.psi0 += each[g].0;
                bar.psi2.add_scaled(1.0, &each[g].1);
            }
            let (mut mean, mut var) = (Mat::zeros(own.n(), own.dim()), Mat::zeros(own.n(), own.dim()));
            let grad = PsiGrad { theta: theta_bar, z: z_bar, mean: &mut mean, var: &mut var };
            self.expectation.psi_adjoint(&*self.kernel, &own, z, &bar, grad)?;
            for (i, &n) in pattern.rows.iter().enumerate() {
                mean_bar.row_mut(n).copy_from_slice(mean.row(i));
                var_bar.row_mut(n).copy_from_slice(var.row(i));
            }
        }
        Ok(())
    }
}
