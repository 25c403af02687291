//! Exact Gaussian process regression, for several outputs that share a kernel.
//!
//! ```text
//! y_nd = m_d(x_n) + f_d(x_n) + ε,  f_d ~ GP(0, k),  ε ~ N(0, σ²)     F = log N(Y − m(X) | 0, Kxx + σ²I)
//! ```
//!
//! Y is scaled inside, and X on request; the evidence and all predictions are in the units of the data as
//! given. Kernel, noise and mean function apply to scaled data.

mod regressor;

use crate::data::{Scale, Scaling};
use crate::error::{Error, Result};
use crate::expectation::{self, Expectation};
use crate::kernel::{self, Kernel};
use crate::mat::{Mat, all_finite};
use crate::mean::Mean;
use crate::model::shared::exact_process::{ExactGrad, ExactProcess};
use crate::model::shared::noise::noise_param;
use crate::model::shared::supervised::check_range;
use crate::model::{Model, Outputs};
use crate::param::{self, Param, Parameterized};
use crate::posterior::{InputMap, Posterior, Prediction};
use serde::{Deserialize, Serialize};

/// The kind of mean function of a regression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MeanKind {
    /// Zero in the scaled data.
    #[default]
    Zero,
    /// A constant for each output.
    Constant,
    /// A linear function for each output.
    Linear,
}

/// The options of a regression besides data and kernel.
#[derive(Clone)]
pub struct RegressionOptions {
    /// How the columns of Y are scaled.
    pub scale: Scale,
    /// How the columns of X are scaled; by default they are not.
    pub scale_inputs: Scale,
    /// The mean function.
    pub mean: MeanKind,
    /// The start of σ², as a part of the mean square of the scaled Y.
    pub noise: f64,
    /// The expectation for predictions at uncertain inputs.
    pub expectation: Box<dyn Expectation>,
}

impl Default for RegressionOptions {
    fn default() -> Self {
        RegressionOptions {
            scale: Scale::Standardize,
            scale_inputs: Scale::None,
            mean: MeanKind::Zero,
            noise: 0.1,
            expectation: Box::new(expectation::Auto),
        }
    }
}

/// Exact regression.
///
/// ```
/// use latentgp::{Mat, kernel::Rbf, model::{Model, Regression, Restarts}};
/// use std::ops::ControlFlow;
/// let x = Mat::from_fn(30, 1, |i, _| 0.2 * i as f64);
/// let y = x.map(|x| 5.0 + x.sin());
/// let start = Regression::new(x, y, Rbf::new(1))?;
/// let fitted = Restarts::default().fit(&start, &|_| ControlFlow::Continue(()))?;
/// let there = fitted.model.posterior()?.predict(&Mat::column(&[1.1]))?;
/// assert!((there.mean[(0, 0)] - (5.0 + 1.1f64.sin())).abs() < 1e-3);
/// # Ok::<(), latentgp::Error>(())
/// ```
#[derive(Clone)]
pub struct Regression {
    /// The kernel, of scaled inputs.
    pub kernel: Box<dyn Kernel>,
    /// σ², in the units of the scaled data.
    pub noise: Param,
    /// The mean function, from scaled inputs to scaled outputs.
    pub mean: Mean,
    /// The expectation for predictions at uncertain inputs.
    pub expectation: Box<dyn Expectation>,
    /// X, N×Q, scaled.
    pub x: Mat,
    /// Y, scaled.
    pub outputs: Outputs,
    /// The units of Y.
    pub scaling: Scaling,
    /// The units of X.
    pub inputs: Option<Scaling>,
}

impl Regression {
    /// A regression of Y (N×D, NaN where a cell is missing) on X (N×Q), with the default options.
    pub fn new(x: Mat, y: Mat, kernel: impl Kernel + 'static) -> Result<Self> {
        Self::with(x, y, kernel, &RegressionOptions::default())
    }

    /// [`new`](Self::new) with options.
    ///
    /// Errs when shapes disagree, an input is missing or infinite, an output is infinite or a column of Y
    /// has no observed cell.
    pub fn with(x: Mat, y: Mat, kernel: impl Kernel + 'static, options: &RegressionOptions) -> Result<Self> {
        check_inputs(&x, &y, &kernel)?;
        if let Some(at) = x.as_slice().iter().position(|v| !v.is_finite()) {
            let place = format!("row {}, column {} of the inputs", at / x.cols() + 1, at % x.cols() + 1);
            let reason = "the value is missing or infinite; leave the row out, or use sparse regression, \
                          which takes missing inputs";
            return Err(Error::data(place, reason));
        }
        let (x, inputs) = scaled_inputs(x, options.scale_inputs)?;
        let scaling = Scaling::fit(&y, options.scale)?;
        let outputs = Outputs::new(scaling.apply(&y)?);
        let mean = match options.mean {
            MeanKind::Zero => Mean::Zero,
            MeanKind::Constant => Mean::constant(y.cols()),
            MeanKind::Linear => Mean::linear(x.cols(), y.cols()),
        };
        let model = Regression {
            kernel: Box::new(kernel),
            noise: noise_param(options.noise, &outputs),
            mean,
            expectation: options.expectation.clone(),
            x,
            outputs,
            scaling,
            inputs,
        };
        model.params().iter().try_for_each(|(name, p)| p.check(name))?;
        Ok(model)
    }

    /// Y minus the mean function, zero where a cell is missing.
    fn residuals(&self) -> Mat {
        let mut r = self.outputs.zero_filled();
        self.mean.add(-1.0, &self.x, &mut r);
        self.clear_missing(&mut r);
        r
    }

    fn clear_missing(&self, of: &mut Mat) {
        let cells = of.as_mut_slice().iter_mut().zip(self.outputs.y.as_slice());
        cells.filter(|(_, y)| y.is_nan()).for_each(|(v, _)| *v = 0.0);
    }

    fn process<'a>(&'a self, residuals: &'a Mat) -> ExactProcess<'a> {
        ExactProcess {
            kernel: &*self.kernel,
            x: &self.x,
            noise: self.noise.as_slice(),
            outputs: &self.outputs,
            residuals,
        }
    }

    /// The leave-one-out prediction of the noise-free function at every training row, for fixed
    /// hyperparameters and scaling, in closed form (Rasmussen & Williams 2006, 5.10–5.12). Missing cells have
    /// the plain prediction.
    pub fn leave_one_out(&self) -> Result<Prediction> {
        let posterior = self.posterior()?;
        let mut scaled = posterior.predict_scaled(&self.x);
        let residuals = self.residuals();
        self.process(&residuals).leave_one_out(&mut scaled.mean, &mut scaled.var)?;
        self.mean.add(1.0, &self.x, &mut scaled.mean);
        posterior.unscale(scaled)
    }
}

/// X in scaled units, and the scaling.
pub(crate) fn scaled_inputs(x: Mat, how: Scale) -> Result<(Mat, Option<Scaling>)> {
    if how == Scale::None {
        return Ok((x, None));
    }
    let scaling = Scaling::fit(&x, how)?;
    Ok((scaling.apply(&x)?, Some(scaling)))
}

/// Errs unless X and Y have rows and columns and agree with the kernel.
pub(crate) fn check_inputs(x: &Mat, y: &Mat, kernel: &impl Kernel) -> Result<()> {
    if x.rows() != y.rows() {
        return Err(Error::shape("rows of the inputs", y.rows(), x.rows()));
    }
    if y.is_empty() || x.is_empty() {
        let found = format!("inputs of {} and outputs of {}", x.shape(), y.shape());
        return Err(Error::data("the data", format!("there is nothing to learn from in {found}")));
    }
    check_range(x, "input")?;
    check_range(y, "target")?;
    kernel::check_dim(kernel, x.cols())
}

impl Parameterized for Regression {
    fn params(&self) -> Vec<(String, &Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params());
        all.push(("noise".to_string(), &self.noise));
        all.extend(param::prefixed("mean", self.mean.params()));
        all
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params_mut());
        all.push(("noise".to_string(), &mut self.noise));
        all.extend(param::prefixed("mean", self.mean.params_mut()));
        all
    }

    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.kernel.each_param(visit);
        visit(&self.noise);
        self.mean.each_param(visit);
    }

    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        self.kernel.each_param_mut(visit);
        visit(&mut self.noise);
        self.mean.each_param_mut(visit);
    }
}

impl Model for Regression {
    fn constant(&self) -> f64 {
        self.scaling.log_jacobian(&self.outputs.observed())
    }

    fn varying_evidence(&self, grad: Option<&mut [f64]>) -> Result<f64> {
        let own;
        let residuals = match self.mean {
            Mean::Zero => &self.outputs.filled,
            _ => {
                own = self.residuals();
                &own
            }
        };
        let process = self.process(residuals);
        let Some(grad) = grad else {
            return process.evidence(None);
        };
        grad.fill(0.0);
        let (theta, rest) = grad.split_at_mut(param::count(&self.kernel));
        let (noise, mean) = rest.split_at_mut(1);
        let mut residual_bar = Mat::zeros(residuals.rows(), residuals.cols());
        let wanted = (self.mean != Mean::Zero).then_some(&mut residual_bar);
        let value = process.evidence(Some(ExactGrad { theta, noise, x: None, residuals: wanted }))?;
        residual_bar.scale(-1.0);
        self.mean.adjoint(&self.x, &residual_bar, mean);
        if !all_finite(grad) {
            return Err(Error::not_finite("the gradient of the log evidence"));
        }
        Ok(value)
    }

    fn posterior(&self) -> Result<Posterior> {
        let residuals = self.residuals();
        let (l, factors) = self.process(&residuals).factors()?;
        Ok(Posterior {
            kernel: self.kernel.clone(),
            z: self.x.clone(),
            noise: vec![self.noise.get(); self.outputs.d()],
            l: l.into(),
            factors,
            expectation: self.expectation.clone(),
            scaling: self.scaling.clone(),
            mean: self.mean.clone(),
            inputs: self.inputs.clone(),
            map: InputMap::AsIs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{self, relative_error};
    use crate::expectation::{Gaussians, QuasiMonteCarlo};
    use crate::kernel::{Linear, Matern32, Periodic, Rbf, White};
    use crate::model::Restarts;
    use std::ops::ControlFlow;

    const GRADIENT: f64 = 1e-7;

    const KINDS: [MeanKind; 3] = [MeanKind::Zero, MeanKind::Constant, MeanKind::Linear];

    fn go(_: &crate::fit::Run) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn data(n: usize) -> (Mat, Mat) {
        let x = Mat::from_fn(n, 2, |i, j| (2.3 * i as f64 + 1.1 * j as f64).sin() * 2.0);
        let y = Mat::from_fn(n, 3, |i, d| {
            3.0 + x[(i, 0)].sin() * (1.0 + d as f64) + x[(i, 1)] + 0.1 * ((7 * i + d) as f64).cos()
        });
        (x, y)
    }

    fn model(mean: MeanKind, holes: bool) -> Regression {
        let (x, mut y) = data(12);
        if holes {
            [(1, 0), (4, 0), (4, 2), (9, 2)].iter().for_each(|&at| y[at] = f64::NAN);
        }
        let options = RegressionOptions { mean, scale_inputs: Scale::Standardize, ..Default::default() };
        let mut model = Regression::with(x, y, Rbf::new(2) + Linear::new(2), &options).unwrap();
        for (name, p) in model.params_mut() {
            if name.starts_with("mean") {
                (0..p.len()).for_each(|i| p.value.as_mut_slice()[i] = 0.3 * (i as f64 + 1.0).cos());
            }
        }
        model
    }

    #[test]
    fn gradients_agree_with_differences() {
        for mean in KINDS {
            for holes in [false, true] {
                check::model(&model(mean, holes), GRADIENT)
                    .unwrap_or_else(|e| panic!("{mean:?} {holes}: {e}"));
            }
        }
    }

    /// The model without row `out`; everything else is unchanged.
    fn without(model: &Regression, out: usize) -> Regression {
        let keep: Vec<usize> = (0..model.x.rows()).filter(|i| *i != out).collect();
        let mut part = model.clone();
        part.x = model.x.select_rows(&keep);
        part.outputs = Outputs::new(model.outputs.y.select_rows(&keep));
        part
    }

    #[test]
    fn leave_one_out_is_a_refit_without_the_row() {
        for mean in KINDS {
            let model = model(mean, true);
            let all = model.leave_one_out().unwrap();
            let (x, _) = data(12);
            for i in 0..12 {
                let there = without(&model, i).posterior().unwrap().predict(&x.slice_rows(i, i + 1)).unwrap();
                assert!(relative_error(all.mean.row(i), there.mean.row(0), 1.0) < 1e-9);
                assert!(relative_error(all.var.row(i), there.var.row(0), 1.0) < 1e-9);
            }
        }
    }

    #[test]
    fn a_missing_output_is_a_row_less_for_that_output() {
        let holed = model(MeanKind::Linear, true);
        let at = Mat::from_rows(&[[0.3, -0.4], [1.7, 0.2]]);
        let all = holed.posterior().unwrap().predict(&at).unwrap();
        let mut alone = holed.clone();
        let keep: Vec<usize> = (0..12).filter(|i| ![1, 4].contains(i)).collect();
        alone.x = holed.x.select_rows(&keep);
        alone.outputs = Outputs::new(holed.outputs.y.select_rows(&keep));
        let posterior = alone.posterior().unwrap();
        let one = posterior.predict(&at).unwrap();
        for i in 0..2 {
            assert!((all.mean[(i, 0)] - one.mean[(i, 0)]).abs() < 1e-9);
            assert!((all.var[(i, 0)] - one.var[(i, 0)]).abs() < 1e-9);
        }
        let joint = holed.posterior().unwrap().joint_covariance(&at, 0).unwrap();
        let other = posterior.joint_covariance(&at, 0).unwrap();
        assert!(relative_error(joint.as_slice(), other.as_slice(), 1e-6) < 1e-8);
        assert!((joint[(1, 1)] - all.var[(1, 0)]).abs() < 1e-10);
    }

    #[test]
    fn scaling_changes_no_evidence_and_no_prediction() {
        let (x, y) = data(12);
        let none = RegressionOptions { scale: Scale::None, ..Default::default() };
        let mut plain = Regression::with(x.clone(), y.clone(), Rbf::new(2), &none).unwrap();
        plain.mean = Mean::constant(3);
        let options = RegressionOptions { scale_inputs: Scale::Standardize, ..Default::default() };
        let mut scaled = Regression::with(x, y.select_cols(&[0, 0, 0]), Rbf::new(2), &options).unwrap();
        plain.outputs = Outputs::new(y.select_cols(&[0, 0, 0]));
        // The same process with kernel and noise converted to the units of the data.
        let (own, inputs) = (&scaled.scaling, scaled.inputs.clone().unwrap());
        let square = own.scale[0] * own.scale[0];
        plain.noise = Param::scalar(scaled.noise.get() * square);
        let mut kernel = Rbf::new(2);
        kernel.variance.set(square);
        kernel.lengthscale.value.as_mut_slice().copy_from_slice(&inputs.scale);
        plain.kernel = Box::new(kernel);
        if let Mean::Constant { intercept } = &mut plain.mean {
            intercept.set(own.mean[0]);
        }
        scaled.mean = Mean::Zero;
        let (a, b) = (plain.log_evidence(None).unwrap(), scaled.log_evidence(None).unwrap());
        assert!((a - b).abs() < 1e-9 * a.abs(), "{a} against {b}");
        let at = Mat::from_rows(&[[0.3, -0.4], [1.7, 0.2]]);
        let (p, s) = (plain.posterior().unwrap(), scaled.posterior().unwrap());
        let (a, b) = (p.predict(&at).unwrap(), s.predict(&at).unwrap());
        assert!(relative_error(a.mean.as_slice(), b.mean.as_slice(), 1e-3) < 1e-9);
        assert!(relative_error(a.var.as_slice(), b.var.as_slice(), 1e-3) < 1e-9);
        let q = Gaussians::new(at, Mat::filled(2, 2, 0.2)).unwrap();
        let (a, b) = (p.predict_uncertain(&q).unwrap(), s.predict_uncertain(&q).unwrap());
        assert!(relative_error(a.mean.as_slice(), b.mean.as_slice(), 1e-3) < 1e-9);
        assert!(relative_error(a.var.as_slice(), b.var.as_slice(), 1e-3) < 1e-9);
    }

    #[test]
    fn uncertain_inputs_are_averaged_over_with_the_mean_function() {
        const DRAWS: usize = 65_536;
        let model = model(MeanKind::Linear, false);
        let posterior = model.posterior().unwrap();
        let q = Gaussians::new(Mat::from_rows(&[[0.3, -0.4]]), Mat::from_rows(&[[0.2, 0.3]])).unwrap();
        let closed = posterior.predict_uncertain(&q).unwrap();
        use crate::expectation::Rule;
        let xi = QuasiMonteCarlo::new(DRAWS, 1).nodes(2);
        let x = Mat::from_fn(DRAWS, 2, |i, j| q.mean[(0, j)] + q.var[(0, j)].sqrt() * xi[(i, j)]);
        let many = posterior.predict(&x).unwrap();
        let covariance = posterior.covariance(&q).unwrap();
        for d in 0..3 {
            let mean = many.mean.col(d).iter().sum::<f64>() / DRAWS as f64;
            let spread = many.mean.col(d).iter().map(|m| (m - mean).powi(2)).sum::<f64>() / DRAWS as f64;
            let own = many.var.col(d).iter().sum::<f64>() / DRAWS as f64;
            assert!((closed.mean[(0, d)] - mean).abs() < 1e-3 * mean.abs(), "mean {d}");
            assert!((closed.var[(0, d)] - spread - own).abs() < 2e-3 * spread, "var {d}");
            assert!((covariance[0][(d, d)] - closed.var[(0, d)]).abs() < 1e-9);
        }
        let point = Gaussians::new(q.mean.clone(), Mat::filled(1, 2, 1e-12)).unwrap();
        let (a, b) = (posterior.predict_uncertain(&point).unwrap(), posterior.predict(&q.mean).unwrap());
        assert!(relative_error(a.mean.as_slice(), b.mean.as_slice(), 1e-3) < 1e-9);
        assert!(relative_error(a.var.as_slice(), b.var.as_slice(), 1e-3) < 1e-6);
    }

    #[test]
    fn draws_have_the_mean_and_the_covariance() {
        const DRAWS: usize = 4000;
        let posterior = model(MeanKind::Constant, true).posterior().unwrap();
        let at = Mat::from_rows(&[[0.3, -0.4], [2.7, 0.2], [2.8, 0.25]]);
        let draws = posterior.sample(&at, DRAWS, 5).unwrap();
        assert_eq!(draws[7], posterior.sample(&at, 8, 5).unwrap()[7]);
        let there = posterior.predict(&at).unwrap();
        let cov = posterior.joint_covariance(&at, 1).unwrap();
        for i in 0..3 {
            for j in 0..3 {
                let product = |s: &Mat| (s[(i, 1)] - there.mean[(i, 1)]) * (s[(j, 1)] - there.mean[(j, 1)]);
                let found = draws.iter().map(product).sum::<f64>() / DRAWS as f64;
                let scale = (cov[(i, i)] * cov[(j, j)]).sqrt();
                assert!((found - cov[(i, j)]).abs() < 0.1 * scale, "{found} against {}", cov[(i, j)]);
            }
        }
    }

    #[test]
    fn restarts_keep_the_best_and_repeat_to_the_bit() {
        let (x, y) = data(20);
        let start = Regression::new(x, y, Matern32::new(2) + Linear::new(2)).unwrap();
        let how = Restarts { runs: 4, max_iterations: 60, seed: 3, ..Default::default() };
        let one = how.fit(&start, &go).unwrap();
        let two = how.fit(&start, &go).unwrap();
        assert_eq!(param::values(&one.model), param::values(&two.model));
        assert_eq!(one.restarts.len(), 4);
        assert!(one.restarts.iter().flatten().all(|r| *r <= one.evidence + 1e-9));
        assert!(one.restarts.iter().flatten().any(|r| (r - one.restarts[0].unwrap()).abs() > 1e-9));
        assert!(one.evidence > start.log_evidence(None).unwrap());
        let alone = Restarts { runs: 1, ..how }.fit(&start, &go).unwrap();
        assert_eq!(alone.restarts[0], one.restarts[0]);
    }

    #[test]
    fn a_linear_mean_finds_the_plane() {
        let x = Mat::from_fn(40, 1, |i, _| i as f64 * 0.1);
        let y = Mat::from_fn(40, 1, |i, _| 2.0 + 3.0 * x[(i, 0)] + 0.01 * ((i * i) as f64).sin());
        let options = RegressionOptions { mean: MeanKind::Linear, ..Default::default() };
        let start = Regression::with(x, y, Rbf::new(1), &options).unwrap();
        let fitted = Restarts::default().fit(&start, &go).unwrap();
        let far = fitted.model.posterior().unwrap().predict(&Mat::column(&[20.0])).unwrap();
        assert!((far.mean[(0, 0)] - 62.0).abs() < 0.2, "{}", far.mean[(0, 0)]);
    }

    #[test]
    fn bad_data_is_a_model_or_a_clear_error() {
        let (x, y) = data(6);
        let message =
            |x: &Mat, y: &Mat| Regression::new(x.clone(), y.clone(), Rbf::new(2)).err().unwrap().to_string();
        assert!(message(&x.slice_rows(0, 5), &y).contains("rows"));
        assert!(message(&Mat::zeros(0, 2), &Mat::zeros(0, 1)).contains("nothing to learn"));
        let spoilt = |of: &Mat, v: f64| {
            let mut of = of.clone();
            of[(2, 1)] = v;
            of
        };
        assert!(message(&spoilt(&x, f64::NAN), &y).contains("row 3, column 2 of the inputs"));
        assert!(message(&spoilt(&x, f64::INFINITY), &y).contains("row 3, column 2 of the inputs"));
        assert!(message(&x, &spoilt(&y, f64::INFINITY)).contains("row 3, column 2"));
        assert!(Regression::new(x.clone(), y.clone(), Rbf::new(3)).is_err());

        let fits = |x: &Mat, y: &Mat| {
            for scale_inputs in [Scale::None, Scale::Standardize] {
                let kernel = Rbf::new(2) * Periodic::new(2) + White::new();
                let options =
                    RegressionOptions { scale_inputs, mean: MeanKind::Linear, ..Default::default() };
                let start = Regression::with(x.clone(), y.clone(), kernel, &options).unwrap();
                let how = Restarts { runs: 2, max_iterations: 100, ..Default::default() };
                match how.fit(&start, &go) {
                    Ok(fitted) => {
                        assert!(fitted.evidence.is_finite());
                        let there = fitted.model.posterior().unwrap().predict(x).unwrap();
                        assert!(there.mean.is_finite() && there.var.is_finite());
                        assert!(fitted.model.leave_one_out().unwrap().mean.is_finite());
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
