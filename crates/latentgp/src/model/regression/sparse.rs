//! Sparse regression: the collapsed bound of Titsias (2009), for inputs that are certain, known up to an
//! error, or missing.
//!
//! ```text
//! F = Σ_groups collapsed(Y, Ψ, Kzz, β) − KL(missing inputs)     log p(Y) ≥ F
//! certain rows    Ψ0 = Σ k(x_n, x_n)   Ψ1 = Kxz   Ψ2 = KzxKxz
//! ```
//!
//! Other rows go through the expectation: see [`UncertainInputs`]. Memory is O(NM + M²). Y and, where
//! asked, X are scaled inside; the bound is that of the data as given.

mod regressor;

use crate::data::{Scale, Scaling};
use crate::error::{Error, Result};
use crate::expectation::{self, Expectation, Gaussians, Mixed};
use crate::fit::{Fitted, OnIteration, Restarts};
use crate::kernel::Kernel;
use crate::mat::{Mat, all_finite};
use crate::model::regression::exact::check_inputs;
use crate::model::shared::noise::{NoiseKind, noise_param_by};
use crate::model::shared::sparse_bound::{BoundGrad, SparseBound};
use crate::model::shared::starts::spread_out;
use crate::model::shared::uncertain_inputs::UncertainInputs;
use crate::model::{Jitter, Model, Outputs};
use crate::param::{self, Param, Parameterized};
use crate::posterior::Posterior;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// What a sparse regression can be told besides data and kernel.
#[derive(Clone)]
pub struct SparseOptions {
    /// M, inducing inputs; at most as many as rows are used.
    pub inducing: usize,
    /// Whether the inducing inputs stay where they start.
    pub fix_inducing: bool,
    /// How the columns of Y are scaled.
    pub scale: Scale,
    /// How the columns of X are scaled; by default they meet the kernel as they are.
    pub scale_inputs: Scale,
    /// The start of σ², as a part of the mean square of the scaled Y.
    pub noise: f64,
    /// Whose σ² is.
    pub noise_kind: NoiseKind,
    /// For rows with uncertain inputs.
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
    /// σ² of all targets or of each, in the units of the scaled data.
    pub noise: Param,
    /// Z, M×Q, among the scaled inputs.
    pub z: Param,
    /// X, scaled.
    pub x: UncertainInputs,
    /// For rows with uncertain inputs.
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
    /// Y (N×D) on X (N×Q), both with NaN where a cell is missing; `std` has the standard deviations of the
    /// inputs, 0 where one is certain.
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
        check_inputs(&x, &y, &kernel)?;
        if options.inducing == 0 {
            return Err(Error::invalid("inducing inputs", "at least 1", 0));
        }
        let inputs = match options.scale_inputs {
            Scale::None => None,
            how => Some(Scaling::fit(&x, how)?),
        };
        let scaled = |x: &Mat| inputs.as_ref().map_or_else(|| Ok(x.clone()), |s| s.apply(x));
        let std = std.map(|s| match &inputs {
            Some(i) if s.cols() == x.cols() => {
                Mat::from_fn(s.rows(), s.cols(), |n, q| s[(n, q)] / i.scale[q])
            }
            _ => s,
        });
        let x = UncertainInputs::new(&scaled(&x)?, std.as_ref())?;
        let scaling = Scaling::fit(&y, options.scale)?;
        let outputs = Outputs::new(scaling.apply(&y)?);
        let z = spread(&x.gaussians().mean, options.inducing, &mut ChaCha8Rng::seed_from_u64(options.seed))?;
        let mut z = Param::free(z);
        z.fixed = options.fix_inducing;
        let model = SparseRegression {
            kernel: Box::new(kernel),
            noise: noise_param_by(options.noise_kind, options.noise, &outputs),
            z,
            x,
            expectation: Mixed(options.expectation.clone()),
            jitter: options.jitter,
            outputs,
            scaling,
            inputs,
        };
        model.expectation.check(&*model.kernel, model.z.value.cols())?;
        model.params().iter().try_for_each(|(name, p)| p.check(name))?;
        Ok(model)
    }

    /// q(X), scaled; missing cells as the model sees them now.
    pub fn latent(&self) -> Gaussians {
        self.x.gaussians()
    }

    /// Fits from the model as it is and from shaken hyperparameters with other choices of Z.
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

/// Up to `m` rows that are far apart, by k-means++ on columns of unit variance.
fn spread(x: &Mat, m: usize, rng: &mut ChaCha8Rng) -> Result<Mat> {
    let columns = Scaling::fit(x, Scale::Standardize)?;
    columns.undo_mean(&spread_out(&columns.apply(x)?, m.min(x.rows()), rng))
}

impl Parameterized for SparseRegression {
    fn params(&self) -> Vec<(String, &Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params());
        all.extend([("noise".to_string(), &self.noise), ("z".to_string(), &self.z)]);
        if !self.x.cells.is_empty() {
            all.extend([
                ("missing.mean".to_string(), &self.x.mean),
                ("missing.var".to_string(), &self.x.var),
            ]);
        }
        all
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params_mut());
        all.extend([("noise".to_string(), &mut self.noise), ("z".to_string(), &mut self.z)]);
        if !self.x.cells.is_empty() {
            all.extend([
                ("missing.mean".to_string(), &mut self.x.mean),
                ("missing.var".to_string(), &mut self.x.var),
            ]);
        }
        all
    }

    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.kernel.each_param(visit);
        [&self.noise, &self.z].into_iter().for_each(&mut *visit);
        if !self.x.cells.is_empty() {
            [&self.x.mean, &self.x.var].into_iter().for_each(visit);
        }
    }

    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        self.kernel.each_param_mut(visit);
        [&mut self.noise, &mut self.z].into_iter().for_each(&mut *visit);
        if !self.x.cells.is_empty() {
            [&mut self.x.mean, &mut self.x.var].into_iter().for_each(visit);
        }
    }
}

impl Model for SparseRegression {
    fn constant(&self) -> f64 {
        self.bound().jacobian()
    }

    fn varying_evidence(&self, grad: Option<&mut [f64]>) -> Result<f64> {
        let q = self.latent();
        let Some(grad) = grad else {
            return Ok(self.bound().value(&q)? - self.x.kl(None)?);
        };
        grad.fill(0.0);
        let (theta, rest) = grad.split_at_mut(param::count(&self.kernel));
        let (noise, rest) = rest.split_at_mut(self.noise.len());
        let (z_slot, rest) = rest.split_at_mut(self.z.len());
        let (mean_slot, var_slot) = rest.split_at_mut(self.x.cells.len());
        let mut z = Mat::zeros(self.z.value.rows(), self.z.value.cols());
        let (mut mean, mut var) = (Mat::zeros(q.n(), q.dim()), Mat::zeros(q.n(), q.dim()));
        let bars = BoundGrad { theta, noise, z: &mut z, mean: &mut mean, var: &mut var, outputs: None };
        let (value, ()) = self.bound().gradient(&q, bars, |_, _| ())?;
        z_slot.copy_from_slice(z.as_slice());
        for (c, &at) in self.x.cells.iter().enumerate() {
            mean_slot[c] = mean[at];
            var_slot[c] = var[at];
        }
        let value = value - self.x.kl(Some((mean_slot, var_slot)))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{self, relative_error};
    use crate::expectation::{Analytic, Unscented};
    use crate::kernel::{Linear, Matern32, Rbf};
    use crate::linalg::{self, Cholesky};
    use crate::model::{Regression, RegressionOptions};
    use std::ops::ControlFlow;

    const GRADIENT: f64 = 1e-7;

    fn go(_: &crate::fit::Run) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn data(n: usize) -> (Mat, Mat) {
        let x = Mat::from_fn(n, 2, |i, j| (2.3 * i as f64 + 1.1 * j as f64).sin() * 2.0);
        let y = Mat::from_fn(n, 2, |i, d| {
            3.0 + x[(i, 0)].sin() * (1.0 + d as f64) + x[(i, 1)] + 0.1 * ((7 * i + d) as f64).cos()
        });
        (x, y)
    }

    fn options(inducing: usize) -> SparseOptions {
        let jitter = Jitter { kzz: 0.0, b: 0.0 };
        SparseOptions { inducing, jitter, scale_inputs: Scale::Standardize, ..Default::default() }
    }

    fn exact(x: &Mat, y: &Mat) -> Regression {
        let options = RegressionOptions { scale_inputs: Scale::Standardize, ..Default::default() };
        Regression::with(x.clone(), y.clone(), Matern32::new(2) + Linear::new(2), &options).unwrap()
    }

    #[test]
    fn inducing_inputs_at_the_data_make_it_exact_and_fewer_a_lower_bound() {
        let (x, mut y) = data(14);
        y[(3, 1)] = f64::NAN;
        let whole = exact(&x, &y);
        let kernel = || Matern32::new(2) + Linear::new(2);
        let mut sparse = SparseRegression::new(x.clone(), None, y.clone(), kernel(), &options(14)).unwrap();
        sparse.z.value = whole.x.clone();
        let (a, b) = (whole.log_evidence(None).unwrap(), sparse.log_evidence(None).unwrap());
        assert!((a - b).abs() < 1e-7 * a.abs(), "{a} against {b}");
        let at = Mat::from_rows(&[[0.3, -0.4], [1.7, 0.2]]);
        let (a, b) = (whole.posterior().unwrap(), sparse.posterior().unwrap());
        let (a, b) = (a.predict(&at).unwrap(), b.predict(&at).unwrap());
        assert!(relative_error(a.mean.as_slice(), b.mean.as_slice(), 1e-3) < 1e-7);
        assert!(relative_error(a.var.as_slice(), b.var.as_slice(), 1e-3) < 1e-7);
        let exact = whole.log_evidence(None).unwrap();
        for m in [1, 3, 6, 10] {
            let sparse = SparseRegression::new(x.clone(), None, y.clone(), kernel(), &options(m)).unwrap();
            let bound = sparse.log_evidence(None).unwrap();
            assert!(bound <= exact + 1e-9, "{m}: {bound} above {exact}");
        }
    }

    /// log N(y | 0, KxzKzz⁻¹Kzx + σ²I) − tr(Kxx − KxzKzz⁻¹Kzx)/2σ² of one output, by a matrix of all rows.
    fn by_rows(model: &SparseRegression) -> f64 {
        let (x, z, noise) = (&model.x.given().mean, &model.z.value, model.noise.get());
        let (n, m) = (x.rows(), z.rows());
        let (mut kzz, mut white, mut diag) = (Mat::zeros(m, m), Mat::zeros(m, n), vec![0.0; n]);
        model.kernel.gram(z, &mut kzz);
        (0..m).for_each(|i| kzz[(i, i)] += model.jitter.kzz);
        model.kernel.cross(z, x, &mut white);
        model.kernel.diag(x, &mut diag);
        Cholesky::new(&kzz, "Kzz").unwrap().solve_l(&mut white);
        let mut cov = linalg::mul_tn(&white, &white);
        let rest = diag.iter().sum::<f64>() - cov.trace();
        (0..n).for_each(|i| cov[(i, i)] += noise);
        let (l, mut w) = (Cholesky::new(&cov, "K").unwrap(), model.outputs.y.clone());
        l.solve_l(&mut w);
        let constant = n as f64 * std::f64::consts::TAU.ln();
        -0.5 * (w.dot(&w) + l.log_det() + constant + rest / noise) + model.constant()
    }

    #[test]
    fn crowded_inducing_inputs_and_little_noise_keep_the_digits() {
        let x = Mat::from_fn(90, 1, |i, _| 0.1 * i as f64);
        for (noise, tolerance) in [(1e-2, 1e-8), (1e-4, 1e-6), (1e-6, 1e-4)] {
            let y = Mat::from_fn(90, 1, |i, _| x[(i, 0)].sin() + 0.1 * noise * (37.0 * i as f64).cos());
            let options = SparseOptions { inducing: 45, noise, ..Default::default() };
            let mut model = SparseRegression::new(x.clone(), None, y, Rbf::new(1), &options).unwrap();
            model.noise.set(noise);
            let (ours, slow) = (model.log_evidence(None).unwrap(), by_rows(&model));
            assert!((ours - slow).abs() < tolerance * slow.abs(), "{noise}: {ours} against {slow}");
            let mut grad = vec![0.0; param::count(&model)];
            assert_eq!(model.log_evidence(Some(&mut grad)).unwrap(), ours);
        }
    }

    #[test]
    fn vanishing_errors_of_the_inputs_are_none() {
        let (x, y) = data(20);
        let make = |std: Option<Mat>, kernel: Box<dyn Kernel>, e: Box<dyn Expectation>| {
            let options = SparseOptions { expectation: e, ..options(8) };
            SparseRegression::new(x.clone(), std, y.clone(), kernel, &options).unwrap()
        };
        let ways: [(Box<dyn Kernel>, Box<dyn Expectation>); 2] =
            [(Box::new(Rbf::new(2)), Box::new(Analytic)), (Box::new(Matern32::new(2)), Box::new(Unscented))];
        for (kernel, e) in ways {
            let certain = make(None, kernel.clone(), e.clone()).log_evidence(None).unwrap();
            let zero = make(Some(Mat::zeros(20, 2)), kernel.clone(), e.clone()).log_evidence(None).unwrap();
            assert_eq!(certain, zero);
            let tiny = make(Some(Mat::filled(20, 2, 1e-7)), kernel.clone(), e.clone());
            assert!((certain - tiny.log_evidence(None).unwrap()).abs() < 1e-6 * certain.abs());
            let wide = make(Some(Mat::filled(20, 2, 0.5)), kernel, e).log_evidence(None).unwrap();
            assert!((certain - wide).abs() > 1.0);
        }
    }

    fn holed() -> SparseRegression {
        let (mut x, mut y) = data(12);
        [(1, 0), (5, 1), (8, 0), (8, 1)].iter().for_each(|&at| x[at] = f64::NAN);
        y[(4, 0)] = f64::NAN;
        y[(8, 1)] = f64::NAN;
        let std = Mat::from_fn(12, 2, |i, j| if i % 3 == 0 { 0.0 } else { 0.1 * (1 + j) as f64 });
        SparseRegression::new(x, Some(std), y, Rbf::new(2) + Linear::new(2), &options(5)).unwrap()
    }

    #[test]
    fn gradients_agree_with_differences() {
        let mut model = holed();
        (0..4).for_each(|c| model.x.mean.value[(0, c)] += 0.3 * (c as f64).cos());
        for e in [Box::new(Analytic) as Box<dyn Expectation>, Box::new(Unscented)] {
            model.expectation = Mixed(e);
            check::model(&model, GRADIENT).unwrap();
        }
    }

    #[test]
    fn a_missing_input_is_found_from_the_output() {
        let mut x = Mat::from_fn(60, 1, |i, _| 0.1 * i as f64);
        let y = Mat::from_fn(60, 2, |i, d| if d == 0 { x[(i, 0)].sin() } else { x[(i, 0)] * 0.5 });
        let truth = x[(23, 0)];
        x[(23, 0)] = f64::NAN;
        let options = SparseOptions { jitter: Jitter::default(), ..options(12) };
        let start = SparseRegression::new(x, None, y, Rbf::new(1), &options).unwrap();
        let fitted = start.fit(&Restarts { max_iterations: 300, ..Default::default() }, &go).unwrap();
        let inputs = fitted.model.inputs.as_ref().unwrap();
        let found = fitted.model.x.mean.get() * inputs.scale[0] + inputs.mean[0];
        assert!((found - truth).abs() < 0.01, "{found} against {truth}");
        assert!(fitted.model.x.var.get() < 0.01);
    }

    #[test]
    fn fixed_inducing_inputs_stay_and_runs_repeat() {
        let (x, y) = data(30);
        let fixed = SparseOptions { fix_inducing: true, ..options(6) };
        let start = SparseRegression::new(x, None, y, Rbf::new(2), &fixed).unwrap();
        let how = Restarts { runs: 3, max_iterations: 40, ..Default::default() };
        let (a, b) = (start.fit(&how, &go).unwrap(), start.fit(&how, &go).unwrap());
        assert_eq!(a.model.z.value, start.z.value);
        assert_eq!(param::values(&a.model), param::values(&b.model));
        assert!(a.evidence > start.log_evidence(None).unwrap());
    }

    #[test]
    fn bad_data_is_a_model_or_a_clear_error() {
        let (x, y) = data(6);
        let make = |x: &Mat, std: Option<Mat>, y: &Mat| {
            SparseRegression::new(x.clone(), std, y.clone(), Rbf::new(2), &SparseOptions::default())
        };
        let message = |x: &Mat, std: Option<Mat>, y: &Mat| make(x, std, y).err().unwrap().to_string();
        assert!(message(&x, Some(Mat::filled(6, 2, -1.0)), &y).contains("not negative"));
        assert!(message(&x, Some(Mat::filled(5, 2, 1.0)), &y).contains("standard deviations"));
        assert!(message(&Mat::filled(6, 2, f64::NAN), None, &y).contains("column 1"));
        assert!(message(&x.map(|_| f64::INFINITY), None, &y).contains("infinite"));
        assert!(make(&x, None, &y).unwrap().z.value.rows() == 6);
        let fits = |x: &Mat, y: &Mat| {
            for scale_inputs in [Scale::None, Scale::Standardize] {
                let options = SparseOptions { scale_inputs, ..Default::default() };
                let start = SparseRegression::new(x.clone(), None, y.clone(), Rbf::new(2), &options);
                let how = Restarts { runs: 2, max_iterations: 100, ..Default::default() };
                match start.and_then(|s| s.fit(&how, &go)) {
                    Ok(fitted) => {
                        assert!(fitted.evidence.is_finite());
                        let there = fitted.model.posterior().unwrap().predict(x).unwrap();
                        assert!(there.mean.is_finite() && there.var.is_finite());
                    }
                    Err(e) => assert!(!e.to_string().is_empty()),
                }
            }
        };
        fits(&x.slice_rows(0, 1), &y.slice_rows(0, 1));
        fits(&x, &Mat::filled(6, 1, 4.0));
        fits(&Mat::filled(6, 2, 1.0), &y);
        for unit in [1e-150, 1e150] {
            fits(&x.map(|v| v * unit), &y);
            fits(&x, &y.map(|v| v * unit));
        }
    }
}
