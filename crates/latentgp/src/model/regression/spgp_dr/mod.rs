//! SPGP-DR: FITC on a learned projection of the inputs, of Snelson & Ghahramani (2006), "Variable noise and
//! dimensionality reduction for sparse Gaussian processes".
//!
//! ```text
//! y = f(Px̃) + ε,  f ~ GP(0, k),  P: K×D a parameter,  x̃ the scaled input
//! F = fitc(Y, diag k(XPᵀ), k(XPᵀ, Z), k(Z, Z), σ²)     P̄ = (∂F/∂(XPᵀ))ᵀX
//! ```
//!
//! For inputs with errors of variance R (N×D) the covariance is the expectation of the kernel,
//!
//! ```text
//! x̃_n ~ N(x_n, diag R_n):   F = fitc(Y, ψ0, Ψ1, k(Z, Z), σ²),  the projected input N(Px_n, diag S_n),  S = R(P∘P)ᵀ
//! ```
//!
//! which is the Gaussian with the first two moments of y; the correlations that such errors cause between
//! directions are neglected.
//!
//! With P = I, fixed, it is plain FITC regression ([`SpgpDr::fitc`]). The evidence is for the data as given:
//! it includes the Jacobian of the scaling.

mod regressor;
mod training;

pub use training::{ProjectionStart, SpgpDrPlan, SpgpDrTraining};

use crate::blocks;
use crate::error::{Error, Result};
use crate::evidence::{self, Fitc, FitcBar};
use crate::expectation::{Auto, Gaussians};
use crate::kernel::{self, Kernel, KernelGrad};
use crate::linalg::Cholesky;
use crate::mat::{Mat, all_finite};
use crate::mean::Mean;
use crate::model::shared::expected_rows::{expected_rows, expected_rows_adjoint};
use crate::model::shared::kzz;
use crate::model::{Model, Supervised};
use crate::param::{self, Param, Parameterized};
use crate::posterior::{Factors, InputMap, Posterior};

/// The model: parameters and data. [`SpgpDrTraining`](crate::model::SpgpDrTraining) makes and fits one.
#[derive(Clone, Debug)]
pub struct SpgpDr {
    /// The kernel, in the projected space.
    pub kernel: Box<dyn Kernel>,
    /// σ², in the units of the scaled targets.
    pub noise: Param,
    /// Z, M×K, in the projected space.
    pub z: Param,
    /// P, K×D.
    pub p: Param,
    /// Added to the diagonal of Kzz.
    pub jitter: f64,
    /// Inputs and targets.
    pub data: Supervised,
    /// R, the variances of the scaled inputs; `None` where they are certain.
    pub x_var: Option<Mat>,
}

/// The quantities from which the evidence is computed.
struct Parts {
    /// The projected inputs; variances are 0 where inputs are certain.
    latent: Gaussians,
    kzz: Cholesky,
    fitc: Fitc,
}

impl SpgpDr {
    /// A model with a given projection (K×D) and inducing inputs (M×K).
    ///
    /// Errs when shapes disagree or a value is outside its domain.
    pub fn new(data: Supervised, kernel: impl Kernel + 'static, p: Mat, z: Mat, noise: f64) -> Result<Self> {
        if p.cols() != data.x.cols() || p.rows() == 0 {
            return Err(Error::shape("the projection", format!("at least 1 × {}", data.x.cols()), p.shape()));
        }
        if z.cols() != p.rows() || z.rows() == 0 {
            return Err(Error::shape("inducing inputs", format!("at least 1 × {}", p.rows()), z.shape()));
        }
        kernel::check_dim(&kernel, p.rows())?;
        let model = SpgpDr {
            kernel: Box::new(kernel),
            noise: Param::scalar(noise),
            z: Param::free(z),
            p: Param::free(p),
            jitter: 1e-6,
            data,
            x_var: None,
        };
        model.params().iter().try_for_each(|(name, p)| p.check(name))?;
        Ok(model)
    }

    /// Plain FITC regression: the projection is the identity, fixed.
    pub fn fitc(data: Supervised, kernel: impl Kernel + 'static, z: Mat, noise: f64) -> Result<Self> {
        let p = Mat::eye(data.x.cols());
        let mut model = Self::new(data, kernel, p, z, noise)?;
        model.p.fixed = true;
        Ok(model)
    }

    /// The projected inputs, N×K: XPᵀ, with the variances R(P∘P)ᵀ.
    pub fn latent(&self) -> Gaussians {
        let mean = blocks::mul_nt(1.0, &self.data.x, &self.p.value);
        match &self.x_var {
            None => Gaussians::certain(mean),
            Some(r) => Gaussians { mean, var: blocks::mul_nt(1.0, r, &self.p.value.map(|p| p * p)) },
        }
    }

    fn parts(&self) -> Result<Parts> {
        let latent = self.latent();
        let z = &self.z.value;
        let kzz = kzz::factor(&*self.kernel, z, self.jitter)?;
        let (kxz, diag) = match self.x_var {
            None => self.certain_rows(&latent.mean),
            Some(_) => expected_rows(&*self.kernel, &latent, z)?,
        };
        let fitc = evidence::fitc(&self.data.y, diag.as_slice(), &kxz, &kzz, self.noise.get())?;
        Ok(Parts { latent, kzz, fitc })
    }

    /// k(x, Z) and k(x, x) of certain inputs.
    fn certain_rows(&self, x: &Mat) -> (Mat, Mat) {
        let (mut kxz, mut diag) = (Mat::zeros(x.rows(), self.z.value.rows()), Mat::zeros(x.rows(), 1));
        self.kernel.cross(x, &self.z.value, &mut kxz);
        self.kernel.diag(x, diag.as_mut_slice());
        (kxz, diag)
    }

    /// P̄ from the adjoints of Kxz and of the diagonal; adds the gradients in the kernel's parameters and in
    /// Z.
    fn rows_adjoint(
        &self,
        latent: &Gaussians,
        bar: &FitcBar,
        theta: &mut [f64],
        z_bar: &mut Mat,
    ) -> Result<Mat> {
        let z = &self.z.value;
        let Some(r) = &self.x_var else {
            let mut x_bar = Mat::zeros(latent.n(), latent.dim());
            let at = KernelGrad { theta, x: Some(&mut x_bar), z: Some(z_bar) };
            self.kernel.cross_adjoint(&latent.mean, z, &bar.kxz, at);
            let at = KernelGrad { theta, x: Some(&mut x_bar), z: None };
            self.kernel.diag_adjoint(&latent.mean, bar.kxx_diag.as_slice(), at);
            return Ok(blocks::mul_tn(&x_bar, &self.data.x));
        };
        let of = (&bar.kxz, bar.kxx_diag.as_slice());
        let q_bar = expected_rows_adjoint(&*self.kernel, latent, z, of, theta, z_bar)?;
        let (mut p_bar, square_bar) =
            (blocks::mul_tn(&q_bar.mean, &self.data.x), blocks::mul_tn(&q_bar.var, r));
        let entries = p_bar.as_mut_slice().iter_mut().zip(square_bar.as_slice()).zip(self.p.value.as_slice());
        entries.for_each(|((own, square), p)| *own += 2.0 * square * p);
        Ok(p_bar)
    }
}

impl Parameterized for SpgpDr {
    fn params(&self) -> Vec<(String, &Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params());
        all.extend([("noise", &self.noise), ("z", &self.z), ("p", &self.p)].map(|(s, p)| (s.to_string(), p)));
        all
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params_mut());
        let own = [("noise", &mut self.noise), ("z", &mut self.z), ("p", &mut self.p)];
        all.extend(own.map(|(s, p)| (s.to_string(), p)));
        all
    }

    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.kernel.each_param(visit);
        [&self.noise, &self.z, &self.p].into_iter().for_each(visit);
    }

    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        self.kernel.each_param_mut(visit);
        [&mut self.noise, &mut self.z, &mut self.p].into_iter().for_each(visit);
    }
}

impl Model for SpgpDr {
    /// The log Jacobian of the scaling.
    fn constant(&self) -> f64 {
        self.data.log_jacobian()
    }

    fn varying_evidence(&self, grad: Option<&mut [f64]>) -> Result<f64> {
        let parts = self.parts()?;
        let value = parts.fitc.value;
        let Some(grad) = grad else { return Ok(value) };
        grad.fill(0.0);
        let bar = parts.fitc.bar(&parts.kzz);
        let z = &self.z.value;
        let (theta_bar, rest) = grad.split_at_mut(param::count(&self.kernel));
        let (noise_bar, rest) = rest.split_at_mut(1);
        let (z_slot, p_slot) = rest.split_at_mut(z.len());

        noise_bar[0] = bar.noise;
        let mut z_bar = Mat::zeros(z.rows(), z.cols());
        let at = KernelGrad { theta: theta_bar, x: Some(&mut z_bar), z: None };
        kzz::adjoint(&*self.kernel, z, self.jitter, &bar.kzz, at);
        let p_bar = self.rows_adjoint(&parts.latent, &bar, theta_bar, &mut z_bar)?;
        z_slot.copy_from_slice(z_bar.as_slice());
        p_slot.copy_from_slice(p_bar.as_slice());
        if !all_finite(grad) {
            return Err(Error::not_finite("the gradient of the evidence"));
        }
        Ok(value)
    }

    fn posterior(&self) -> Result<Posterior> {
        let Parts { kzz, fitc, .. } = self.parts()?;
        let columns = (0..self.data.y.cols()).collect();
        Ok(Posterior {
            kernel: self.kernel.clone(),
            z: self.z.value.clone(),
            noise: vec![self.noise.get(); self.data.y.cols()],
            factors: vec![Factors::new(columns, fitc.alpha.clone(), fitc.c(), &kzz)],
            l: kzz.into(),
            expectation: Box::new(Auto),
            scaling: self.data.outputs.clone(),
            mean: Mean::Zero,
            inputs: Some(self.data.inputs.clone()),
            map: InputMap::Projected { p: self.p.value.clone() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{self, relative_error};
    use crate::data::Scale;
    use crate::kernel::{Linear, Matern32, Rbf};
    use crate::linalg;

    const GRADIENT: f64 = 1e-7;
    /// Tolerance for quantities that are equal in exact arithmetic, with no jitter and a kernel matrix of
    /// condition number at most 1e6.
    const EQUAL: f64 = 1e-9;

    fn data(n: usize, d: usize) -> Supervised {
        let x = Mat::from_fn(n, d, |i, j| ((i * 7 + j * 3) as f64 * 0.9).sin() * (1.0 + j as f64));
        let y = Mat::from_fn(n, 2, |i, j| (x[(i, 0)] + j as f64).sin() + 0.1 * ((i * 5 + j) as f64).cos());
        Supervised::new(&x, &y, Scale::Standardize, Scale::Standardize).unwrap()
    }

    #[test]
    fn the_gradient_is_that_of_differences() {
        let p = Mat::from_fn(2, 4, |i, j| 0.5 * ((i * 4 + j) as f64).cos());
        let z = Mat::from_fn(5, 2, |i, j| ((i * 2 + j) as f64 * 1.7).sin());
        let kernels: [Box<dyn Kernel>; 2] =
            [Box::new(Rbf::new(2)), Box::new(Matern32::new(2) + Linear::new(2))];
        let errors = Mat::from_fn(12, 4, |i, j| 0.1 * ((i + j) % 3) as f64);
        for (kernel, x_var) in
            kernels.into_iter().flat_map(|k| [(k.clone(), None), (k, Some(errors.clone()))])
        {
            let mut model = SpgpDr::new(data(12, 4), kernel, p.clone(), z.clone(), 0.2).unwrap();
            model.x_var = x_var;
            check::model(&model, GRADIENT).unwrap();
        }
    }

    #[test]
    fn errors_of_nothing_change_nothing_and_others_flatten() {
        let p = Mat::from_rows(&[[0.8, -0.3, 0.2], [0.1, 0.4, -0.5]]);
        let z = Mat::from_fn(6, 2, |i, j| ((i * 2 + j) as f64 * 1.7).sin());
        let mut model = SpgpDr::new(data(15, 3), Rbf::new(2), p, z, 0.05).unwrap();
        let certain = model.log_evidence(None).unwrap();
        let at = model.data.inputs.undo_mean(&model.data.x).unwrap();
        let before = model.posterior().unwrap().predict(&at).unwrap();
        model.x_var = Some(Mat::zeros(15, 3));
        assert!((model.log_evidence(None).unwrap() - certain).abs() < EQUAL * certain.abs());
        model.x_var = Some(Mat::filled(15, 3, 0.5));
        assert!((model.log_evidence(None).unwrap() - certain).abs() > 1e-3);
        let after = model.posterior().unwrap().predict(&at).unwrap();
        assert!(after.var.as_slice().iter().sum::<f64>() > before.var.as_slice().iter().sum::<f64>());
    }

    /// y at inputs with errors has the covariance E[k(x, x')], which draws of the inputs show.
    #[test]
    fn the_covariance_is_that_of_draws() {
        use crate::model::shared::expected_rows::expected_rows;
        use rand::SeedableRng;
        use rand_distr::{Distribution, StandardNormal};
        const DRAWS: usize = 20_000;
        let p = Mat::from_rows(&[[0.8, -0.3]]);
        let (x, r) = (Mat::from_rows(&[[0.3, -0.5]]), Mat::from_rows(&[[0.4, 0.9]]));
        let data = Supervised::new(&x, &Mat::filled(1, 1, 0.0), Scale::None, Scale::None).unwrap();
        let (z, k) = (Mat::from_rows(&[[0.2], [1.0]]), Rbf::new(1));
        let mut model = SpgpDr::new(data, k.clone(), p.clone(), z.clone(), 0.1).unwrap();
        model.x_var = Some(r.clone());
        let (psi1, psi0) = expected_rows(&k, &model.latent(), &z).unwrap();
        assert!((psi0[(0, 0)] - 1.0).abs() < EQUAL);
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
        let drawn = Mat::from_fn(DRAWS, 2, |_, j| {
            let normal: f64 = StandardNormal.sample(&mut rng);
            x[(0, j)] + r[(0, j)].sqrt() * normal
        });
        let mut cross = Mat::zeros(DRAWS, 2);
        k.cross(&linalg::mul_nt(&drawn, &p), &z, &mut cross);
        for j in 0..2 {
            let mean = cross.col(j).iter().sum::<f64>() / DRAWS as f64;
            assert!((psi1[(0, j)] - mean).abs() < 3.0 / (DRAWS as f64).sqrt(), "{} {mean}", psi1[(0, j)]);
        }
    }

    #[test]
    fn the_identity_makes_it_plain_fitc() {
        let data = data(15, 2);
        let (k, z) = (Rbf::new(2), data.x.select_rows(&[0, 3, 6, 9]));
        let mut projected = SpgpDr::new(data.clone(), k.clone(), Mat::eye(2), z.clone(), 0.1).unwrap();
        let plain = SpgpDr::fitc(data.clone(), k.clone(), z.clone(), 0.1).unwrap();
        assert!(plain.p.fixed && !projected.p.fixed);
        projected.jitter = 0.0;
        let (mut kzz, mut kxz) = (Mat::zeros(4, 4), Mat::zeros(15, 4));
        k.gram(&z, &mut kzz);
        k.cross(&data.x, &z, &mut kxz);
        let kzz = Cholesky::new(&kzz, "Kzz").unwrap();
        let by_hand = evidence::fitc(&data.y, &[1.0; 15], &kxz, &kzz, 0.1).unwrap().value;
        let ours = projected.log_evidence(None).unwrap();
        assert!((ours - by_hand - data.log_jacobian()).abs() < EQUAL);
    }

    #[test]
    fn inducing_inputs_at_the_data_make_it_exact() {
        let data = data(12, 3);
        let mut k = Rbf::new(3);
        k.lengthscale.set(0.7);
        let mut model = SpgpDr::fitc(data.clone(), k.clone(), data.x.clone(), 0.1).unwrap();
        model.jitter = 0.0;
        let mut kxx = Mat::zeros(12, 12);
        k.gram(&data.x, &mut kxx);
        (0..12).for_each(|i| kxx[(i, i)] += 0.1);
        let exact = Cholesky::new(&kxx, "K").unwrap();
        let solved = exact.solve(&data.y);
        let value = -12.0 * std::f64::consts::TAU.ln() - exact.log_det() - 0.5 * data.y.dot(&solved);
        let ours = model.log_evidence(None).unwrap() - data.log_jacobian();
        assert!((ours - value).abs() < EQUAL * value.abs(), "{ours} against {value}");

        let new = Mat::from_fn(5, 3, |i, j| ((i + 2 * j) as f64).cos());
        let found = model.posterior().unwrap().predict(&new).unwrap();
        let mut cross = Mat::zeros(5, 12);
        k.cross(&data.inputs.apply(&new).unwrap(), &data.x, &mut cross);
        let mean = data.outputs.undo_mean(&linalg::mul(&cross, &solved)).unwrap();
        assert!(relative_error(found.mean.as_slice(), mean.as_slice(), 1e-3) < EQUAL);
        let explained = linalg::mul(&cross, &exact.solve(&cross.t()));
        let var = Mat::from_fn(5, 2, |i, j| (1.0 - explained[(i, i)]) * data.outputs.scale[j].powi(2));
        assert!(relative_error(found.var.as_slice(), var.as_slice(), 1e-3) < EQUAL);
    }

    #[test]
    fn uncertain_inputs_spread_the_prediction() {
        use crate::expectation::Gaussians;
        let data = data(15, 3);
        let p = Mat::from_rows(&[[0.8, -0.3, 0.2]]);
        let z = Mat::from_fn(6, 1, |i, _| i as f64 * 0.6 - 1.5);
        let posterior = SpgpDr::new(data, Rbf::new(1), p, z, 0.05).unwrap().posterior().unwrap();
        let x = Mat::from_fn(3, 3, |i, j| ((i + j) as f64).sin());
        let certain = posterior.predict(&x).unwrap();
        let none = posterior.predict_uncertain(&Gaussians::certain(x.clone())).unwrap();
        assert!(relative_error(none.mean.as_slice(), certain.mean.as_slice(), 1e-3) < EQUAL);
        assert!(relative_error(none.var.as_slice(), certain.var.as_slice(), 1e-3) < EQUAL);
        let wide = Gaussians::new(x, Mat::filled(3, 3, 0.05)).unwrap();
        let spread = posterior.predict_uncertain(&wide).unwrap();
        let cov = posterior.covariance(&wide).unwrap();
        assert!((0..3).all(|i| (cov[i][(1, 1)] - spread.var[(i, 1)]).abs() < 1e-12));
        assert!(spread.var.as_slice().iter().sum::<f64>() > none.var.as_slice().iter().sum::<f64>());
    }

    #[test]
    fn shapes_that_disagree_are_errors() {
        let (data, k) = (data(6, 3), Rbf::new(2));
        let new = |p: Mat, z: Mat, noise: f64| SpgpDr::new(data.clone(), k.clone(), p, z, noise);
        assert!(new(Mat::zeros(2, 3), Mat::zeros(4, 2), 0.1).is_ok());
        for (p, z) in
            [((2, 2), (4, 2)), ((0, 3), (4, 0)), ((2, 3), (4, 3)), ((2, 3), (0, 2)), ((3, 3), (4, 3))]
        {
            assert!(matches!(new(Mat::zeros(p.0, p.1), Mat::zeros(z.0, z.1), 0.1), Err(Error::Shape { .. })));
        }
        assert!(matches!(new(Mat::zeros(2, 3), Mat::zeros(4, 2), 0.0), Err(Error::Invalid { .. })));
        assert!(matches!(
            new(Mat::filled(2, 3, f64::NAN), Mat::zeros(4, 2), 0.1),
            Err(Error::Invalid { .. })
        ));
    }
}
