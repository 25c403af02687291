//! Sparse regression: the collapsed bound of Titsias (2009), for inputs that are certain, known up to an
//! error, missing or latent.
//!
//! ```text
//! F = Σ_groups collapsed(Y, Ψ, Kzz, β) − KL(uncertain inputs)     log p(Y) ≥ F
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
use crate::kernel::{Kernel, Rbf};
use crate::mat::{Mat, all_finite};
use crate::model::regression::exact::check_inputs;
use crate::model::regression::infer::infer;
use crate::model::shared::noise::{NoiseKind, noise_param_by};
use crate::model::shared::sparse_bound::{BoundGrad, SparseBound};
use crate::model::shared::starts::{scale_lengthscales, spread_out};
use crate::model::shared::uncertain_inputs::{
    InputOptions, Treatment, UncertainInputs, with_latent, with_latent_units, without_latent_units,
};
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
    /// What is done about uncertain inputs.
    pub uncertain: InputOptions,
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
        let latent = options.uncertain.latent;
        check_inputs(&with_latent(&x, latent), &y, &kernel)?;
        if options.inducing == 0 {
            return Err(Error::invalid("inducing inputs", "at least 1", 0));
        }
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

    /// The posterior of the true inputs of the training rows, in the units of the data; latent columns, which have units
    /// of their own, come last.
    pub fn inputs_posterior(&self) -> Result<Gaussians> {
        self.in_units(self.latent())
    }

    /// What is known of the inputs of new rows before their outputs are seen, in the units of the data: X has the observed
    /// columns, with NaN where a cell is missing, and `var` the variances of their errors. Latent columns follow.
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

    /// The posterior of the true inputs of new rows whose outputs are known, in the units of the data: X, the variances of
    /// its errors and Y as in the training, with NaN where a cell is missing.
    ///
    /// Each row stands on its own. Errs when shapes disagree.
    pub fn infer_inputs(&self, x: &Mat, var: Option<&Mat>, y: &Mat) -> Result<Gaussians> {
        let prior = self.scaled_priors(x, var)?;
        self.in_units(infer(&self.posterior()?, &prior, y)?)
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

/// What a smooth function of the observed columns, with unit lengthscales, leaves of the outputs, scaled: where latent
/// columns start.
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

    /// With inferred inputs the next two runs start from a half and a quarter of the lengthscales: a function that is
    /// too smooth leaves the inputs where they were read.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{self, relative_error};
    use crate::expectation::{Analytic, Unscented};
    use crate::kernel::{Linear, Matern32};
    use crate::linalg::{self, Cholesky};
    use crate::model::{BayesianGplvm, Regression, RegressionOptions};
    use crate::optim::{Lbfgs, quiet};
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

    /// Posteriors of all cells with errors at their priors.
    fn at_priors(mut model: SparseRegression) -> SparseRegression {
        model.x.read.offset.value.fill(0.0);
        model.x.read.ratio.value.fill(1.0);
        model
    }

    #[test]
    fn vanishing_errors_of_the_inputs_are_none() {
        let (x, y) = data(20);
        let ways: [(Box<dyn Kernel>, Box<dyn Expectation>); 2] =
            [(Box::new(Rbf::new(2)), Box::new(Analytic)), (Box::new(Matern32::new(2)), Box::new(Unscented))];
        for ((kernel, e), treatment) in
            ways.iter().flat_map(|w| [Treatment::Inferred, Treatment::Averaged].map(|t| (w, t)))
        {
            let make = |std: Option<Mat>| {
                let uncertain = InputOptions { treatment, ..Default::default() };
                let options = SparseOptions { expectation: e.clone(), uncertain, ..options(8) };
                let model =
                    SparseRegression::new(x.clone(), std, y.clone(), kernel.clone(), &options).unwrap();
                at_priors(model).log_evidence(None).unwrap()
            };
            let certain = make(None);
            assert_eq!(certain, make(Some(Mat::zeros(20, 2))));
            let tiny = make(Some(Mat::filled(20, 2, 1e-7)));
            assert!((certain - tiny).abs() < 1e-6 * certain.abs());
            let wide = make(Some(Mat::filled(20, 2, 0.5)));
            assert!((certain - wide).abs() > 1.0);
        }
    }

    #[test]
    fn boundless_errors_of_the_inputs_are_missing_cells() {
        let (x, y) = data(20);
        let (mut holed, mut std) = (x.clone(), Mat::zeros(20, 2));
        for at in [(3, 0), (7, 1), (8, 0), (8, 1)] {
            (holed[at], std[at]) = (f64::NAN, 1e140);
        }
        let options = SparseOptions { scale_inputs: Scale::None, ..options(8) };
        let make = |x: &Mat, std: Option<Mat>| {
            SparseRegression::new(x.clone(), std, y.clone(), Rbf::new(2), &options).unwrap()
        };
        let (missing, mut wide) = (make(&holed, None), make(&x, Some(std)));
        wide.z = missing.z.clone();
        let (a, b) = (missing.log_evidence(None).unwrap(), wide.log_evidence(None).unwrap());
        assert!((a - b).abs() < 1e-9 * a.abs(), "{a} against {b}");
    }

    #[test]
    fn with_every_cell_latent_it_is_the_bayesian_gplvm() {
        let (_, y) = data(15);
        let uncertain = InputOptions { latent: 2, ..Default::default() };
        let options = SparseOptions { uncertain, ..options(6) };
        let model = SparseRegression::new(Mat::zeros(15, 0), None, y, Rbf::new(2), &options).unwrap();
        let (scaling, q, z) = (model.scaling.clone(), model.latent(), model.z.value.clone());
        let noise = model.noise.get();
        let kernel = Rbf::new(2);
        let mut twin =
            BayesianGplvm::new(model.outputs.clone(), scaling, kernel, Box::new(Analytic), q, z, noise)
                .unwrap();
        twin.jitter = model.jitter;
        let (mut a, mut b) = (vec![0.0; param::count(&model)], vec![0.0; param::count(&twin)]);
        let values = (model.log_evidence(Some(&mut a)).unwrap(), twin.log_evidence(Some(&mut b)).unwrap());
        assert!((values.0 - values.1).abs() < 1e-10 * values.1.abs(), "{values:?}");
        assert!(relative_error(&a, &b, 1e-3) < 1e-9);
        check::model(&model, GRADIENT).unwrap();
    }

    /// One row of a curve is known up to an error; its y is a little off the curve.
    fn one_uncertain() -> (SparseRegression, Regression, Gaussians) {
        let mut x = Mat::from_fn(12, 1, |i, _| 0.35 * i as f64);
        let y = Mat::from_fn(12, 1, |i, _| (1.2 * x[(i, 0)]).sin() + 0.02 * (5.0 * i as f64).cos());
        let mut std = Mat::zeros(12, 1);
        (x[(4, 0)], std[(4, 0)]) = (x[(4, 0)] + 0.25, 0.3);
        let uncertain = InputOptions::default();
        let jitter = Jitter { kzz: 1e-9, b: 0.0 };
        let options =
            SparseOptions { inducing: 12, scale: Scale::None, jitter, uncertain, ..Default::default() };
        let mut model =
            SparseRegression::new(x.clone(), Some(std), y.clone(), Rbf::new(1), &options).unwrap();
        model.z.value = Mat::from_fn(24, 1, |i, _| -0.6 + 0.22 * i as f64);
        model.noise.set(0.01);
        let with = RegressionOptions { scale: Scale::None, ..Default::default() };
        let mut exact = Regression::with(x, y, Rbf::new(1), &with).unwrap();
        exact.noise.set(0.01);
        let prior = model.x.priors(&Mat::column(&[0.35 * 4.0 + 0.25]), Some(&Mat::column(&[0.09]))).unwrap();
        (model, exact, prior)
    }

    /// ln ∫ N(x | m, p) exp(f(x)) dx, and mean and variance of x under the integrand.
    fn integral(m: f64, p: f64, mut f: impl FnMut(f64) -> f64) -> (f64, f64, f64) {
        let nodes: Vec<(f64, f64)> = (-300..=300)
            .map(|k| {
                let xi = 6.0 * f64::from(k) / 300.0;
                let x = m + p.sqrt() * xi;
                (x, f(x) - 0.5 * xi * xi)
            })
            .collect();
        let top = nodes.iter().fold(f64::NEG_INFINITY, |t, n| t.max(n.1));
        let sum = |of: &dyn Fn(f64) -> f64| nodes.iter().map(|(x, l)| of(*x) * (l - top).exp()).sum::<f64>();
        let (total, mean) = (sum(&|_| 1.0), sum(&|x| x) / sum(&|_| 1.0));
        let var = sum(&|x| (x - mean) * (x - mean)) / total;
        (top + (total * 6.0 / 300.0 / std::f64::consts::TAU.sqrt()).ln(), mean, var)
    }

    #[test]
    fn bound_and_posterior_of_an_input_are_those_of_quadrature() {
        let (mut model, mut exact, prior) = one_uncertain();
        let (evidence, mean, var) = integral(prior.mean[(0, 0)], prior.var[(0, 0)], |x| {
            exact.x[(4, 0)] = x;
            exact.log_evidence(None).unwrap()
        });
        model.params_mut().into_iter().for_each(|(name, p)| p.fixed = !name.starts_with("errors."));
        crate::fit::fit(&mut model, &Lbfgs::default(), &mut quiet).unwrap();
        let bound = model.log_evidence(None).unwrap();
        assert!(bound <= evidence + 1e-6 && bound > evidence - 0.2, "{bound} against {evidence}");
        let q = model.latent();
        let (found, spread) = (q.mean[(4, 0)], q.var[(4, 0)]);
        assert!((found - mean).abs() < 0.15 * var.sqrt(), "{found} against {mean} ± {}", var.sqrt());
        assert!((spread / var - 1.0).abs() < 0.2, "{spread} against {var}");
        assert!(spread < prior.var[(0, 0)]);
    }

    #[test]
    fn the_input_of_a_new_row_is_that_of_quadrature() {
        let (model, _, _) = one_uncertain();
        let (x, s2, y) = (2.9, 0.16, -0.1);
        let prior = model.new_inputs(&Mat::column(&[x]), Some(&Mat::column(&[s2]))).unwrap();
        let posterior = model.posterior().unwrap();
        let (_, mean, var) = integral(prior.mean[(0, 0)], prior.var[(0, 0)], |x| {
            let there = posterior.predict(&Mat::column(&[x])).unwrap();
            // The expected log density: f is uncertain too, and q(f) does not depend on x∗.
            -0.5 * (there.var[(0, 0)] + (y - there.mean[(0, 0)]).powi(2)) / model.noise.get()
        });
        let q =
            model.infer_inputs(&Mat::column(&[x]), Some(&Mat::column(&[s2])), &Mat::column(&[y])).unwrap();
        let (found, spread) = (q.mean[(0, 0)], q.var[(0, 0)]);
        assert!((found - mean).abs() < 0.15 * var.sqrt(), "{found} against {mean} ± {}", var.sqrt());
        assert!((spread / var - 1.0).abs() < 0.2, "{spread} against {var}");
        // Without an error nothing is inferred, without y there is the prior.
        let both = Mat::column(&[x, x]);
        let q =
            model.infer_inputs(&both, Some(&Mat::column(&[0.0, s2])), &Mat::column(&[y, f64::NAN])).unwrap();
        assert_eq!((q.mean[(0, 0)], q.var[(0, 0)]), (x, 0.0));
        assert!((q.mean[(1, 0)] - prior.mean[(0, 0)]).abs() < 1e-5);
        assert!((q.var[(1, 0)] - prior.var[(0, 0)]).abs() < 1e-5);
        assert!(model.infer_inputs(&both, None, &Mat::column(&[1.0])).is_err());
    }

    #[test]
    fn inferred_and_averaged_inputs_agree_where_y_says_nothing_of_them() {
        // A line so flat that its noise hides where on it an input lies.
        let x = Mat::from_fn(80, 1, |i, _| 0.05 * i as f64 - 2.0);
        let y = Mat::from_fn(80, 1, |i, _| 0.3 * x[(i, 0)] + 1.5 * (37.0 * i as f64).sin());
        let fitted = |treatment| {
            let uncertain = InputOptions { treatment, ..Default::default() };
            let options = SparseOptions { inducing: 3, scale: Scale::None, uncertain, ..Default::default() };
            let std = Some(Mat::filled(80, 1, 0.05));
            let start = SparseRegression::new(x.clone(), std, y.clone(), Linear::new(1), &options).unwrap();
            start.fit(&Restarts::default(), &go).unwrap().model
        };
        let (a, b) = (fitted(Treatment::Inferred), fitted(Treatment::Averaged));
        let at = Mat::column(&[-1.5, 0.7]);
        let predict = |m: &SparseRegression| m.posterior().unwrap().predict(&at).unwrap().mean;
        assert!(relative_error(predict(&a).as_slice(), predict(&b).as_slice(), 0.0) < 5e-3);
        assert!((a.noise.get() / b.noise.get() - 1.0).abs() < 5e-3);
        let (q, read) = (a.latent(), b.latent());
        assert!(relative_error(q.mean.as_slice(), read.mean.as_slice(), 0.0) < 5e-3);
        assert!(relative_error(q.var.as_slice(), read.var.as_slice(), 0.0) < 5e-3);
    }

    fn holed() -> SparseRegression {
        let (mut x, mut y) = data(12);
        [(1, 0), (5, 1), (8, 0), (8, 1)].iter().for_each(|&at| x[at] = f64::NAN);
        y[(4, 0)] = f64::NAN;
        y[(8, 1)] = f64::NAN;
        let std = Mat::from_fn(12, 2, |i, j| if i % 3 == 0 { 0.0 } else { 0.1 * (1 + j) as f64 });
        SparseRegression::new(x, Some(std), y, Rbf::new(2) + Linear::new(2), &options(5)).unwrap()
    }

    /// Every kind of cell at once, away from every special point.
    fn every_cell(learn: Vec<usize>, latent: usize) -> SparseRegression {
        let given = holed();
        let uncertain = InputOptions { learn, latent, ..Default::default() };
        let options = SparseOptions { uncertain, ..options(5) };
        let (x, y) = (given.x.given(), given.outputs.y.clone());
        let kernel = Rbf::new(2 + latent) + Linear::new(2 + latent);
        let mut model =
            SparseRegression::new(x.mean, Some(x.var.map(f64::sqrt)), y, kernel, &options).unwrap();
        let crooked = |k: usize| 0.4 * (1.7 * k as f64).sin();
        let read = &mut model.x.read;
        (0..read.offset.len()).for_each(|k| read.offset.value[(0, k)] = crooked(k));
        (0..read.ratio.len()).for_each(|k| read.ratio.value[(0, k)] = 0.6 + crooked(k));
        (0..model.x.mean.len()).for_each(|k| model.x.mean.value[(0, k)] += crooked(k));
        model
    }

    #[test]
    fn gradients_agree_with_differences() {
        for e in [Box::new(Analytic) as Box<dyn Expectation>, Box::new(Unscented)] {
            for mut model in [every_cell(vec![], 0), every_cell(vec![1], 0), every_cell(vec![0, 1], 1)] {
                model.expectation = Mixed(e.clone());
                check::model(&model, GRADIENT).unwrap();
            }
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
