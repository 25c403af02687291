//! Bayesian linear regression: exact regression with a linear kernel, in the space of its Q weights.
//!
//! ```text
//! y_nd = x_nᵀw_d + ε,  w_qd ~ N(0, v_q),  ε ~ N(0, σ²)          β = 1/σ²,  S = diag(√v),  G = XᵀX,  R = XᵀY
//! B = I + βSGS    Σ = SB⁻¹S    μ = βΣR                          q(w_d) = N(μ_d, Σ)
//! F = ND/2·log(β/2π) − D/2·log|B| − β/2·(tr YᵀY − tr μᵀR)
//! ∂F/∂v_q = ½(β²‖(R − Gμ)_q‖² − Dβ(G − βGΣG)_qq)
//! ∂F/∂β   = ND/2β − ½(tr YᵀY − 2 tr μᵀR + tr μᵀGμ + D tr ΣG)
//! ```
//!
//! It equals [`Regression`](crate::model::Regression) with the kernel [`Linear`] (Rasmussen & Williams 2006,
//! section 2.1). The fit uses the data only through G and R: O(NQ²) once and O(Q³) for each evaluation
//! instead of O(N³). With one variance for each column (ARD) the variance of an irrelevant column vanishes.
//! The intercept comes from the scaling: the means of inputs and outputs.

use super::exact::{check_inputs, scaled_inputs};
use super::regressor::given_inputs;
use crate::blocks;
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::expectation::Expectation;
use crate::file::ModelFile;
use crate::kernel::{Kernel, Linear, Own};
use crate::linalg::{self, Cholesky};
use crate::mat::{Mat, all_finite};
use crate::mean::Mean;
use crate::model::shared::noise::noise_param;
use crate::model::{MeanKind, Model, Outputs, RegressionOptions, Regressor};
use crate::param::{self, Param, Parameterized};
use crate::posterior::{Factors, InputMap, Posterior};

/// Bayesian linear regression.
///
/// ```
/// use latentgp::{Mat, kernel::Linear, model::{LinearRegression, Model, RegressionOptions, Restarts}};
/// use std::ops::ControlFlow;
/// let x = Mat::from_fn(50, 2, |i, j| (1.7 * i as f64 + j as f64).sin());
/// let y = Mat::from_fn(50, 1, |i, _| 3.0 + 2.0 * x[(i, 0)] + 0.1 * (i as f64).cos());
/// let start = LinearRegression::new(x, y, Linear::new(2), &RegressionOptions::default())?;
/// let fitted = Restarts::default().fit(&start, &|_| ControlFlow::Continue(()))?;
/// assert!(fitted.model.log_evidence(None)? > start.log_evidence(None)?);
/// # Ok::<(), latentgp::Error>(())
/// ```
#[derive(Clone)]
pub struct LinearRegression {
    /// The kernel; its variances are the prior variances of the weights of scaled inputs.
    pub kernel: Linear,
    /// σ², in the units of the scaled data.
    pub noise: Param,
    /// The expectation for predictions at uncertain inputs.
    pub expectation: Box<dyn Expectation>,
    /// The units of Y.
    pub scaling: Scaling,
    /// The units of X.
    pub inputs: Option<Scaling>,
    x: Mat,
    outputs: Outputs,
    /// G and R of each group of outputs that were observed together.
    sums: Vec<(Mat, Mat)>,
}

/// The posterior of the weights of outputs that were observed together.
struct Weights {
    b: Cholesky,
    /// Σ, Q×Q.
    cov: Mat,
    /// The means, Q×D.
    mean: Mat,
}

impl LinearRegression {
    /// A regression of Y (N×D, NaN where a cell is missing) on X (N×Q).
    ///
    /// Errs where [`Regression::with`](crate::model::Regression::with) does, and with a mean function.
    pub fn new(x: Mat, y: Mat, kernel: Linear, options: &RegressionOptions) -> Result<Self> {
        check_inputs(&x, &y, &kernel)?;
        if options.mean != MeanKind::Zero {
            let found = format!("{:?}", options.mean).to_lowercase();
            return Err(Error::invalid("mean function of a linear regression", "zero", found));
        }
        if !x.is_finite() {
            return Err(Error::not_finite("an input"));
        }
        let (x, inputs) = scaled_inputs(x, options.scale_inputs)?;
        let scaling = Scaling::fit(&y, options.scale)?;
        let outputs = Outputs::new(scaling.apply(&y)?);
        let noise = noise_param(options.noise, &outputs);
        let model = Self::of(kernel, noise, options.expectation.clone(), x, outputs, scaling, inputs);
        model.params().iter().try_for_each(|(name, p)| p.check(name))?;
        Ok(model)
    }

    fn of(
        kernel: Linear,
        noise: Param,
        expectation: Box<dyn Expectation>,
        x: Mat,
        outputs: Outputs,
        scaling: Scaling,
        inputs: Option<Scaling>,
    ) -> Self {
        let sum = |group: &crate::model::shared::outputs::Group| {
            let (x, y) = (x.select_rows(&group.at), outputs.y.select_rows(&group.at));
            (blocks::mul_tn(&x, &x), blocks::mul_tn(&x, &y.select_cols(&group.columns)))
        };
        let sums = outputs.groups.iter().map(sum).collect();
        LinearRegression { kernel, noise, expectation, scaling, inputs, x, outputs, sums }
    }

    /// Converts a kernel of `dim` columns to a linear kernel; errs for any other kind.
    pub fn kernel_of(kernel: &dyn Kernel, dim: usize) -> Result<Linear> {
        for mut linear in [Linear::new(dim), Linear::isotropic(dim)] {
            let own = kernel.params();
            if own.len() == 1 && own[0].1.len() == linear.variance.len() {
                linear.variance = own[0].1.clone();
                if *kernel == *(&linear as &dyn Kernel) {
                    return Ok(linear);
                }
            }
        }
        Err(Error::invalid(
            "kernel of a linear regression",
            "linear or linear(ard=false)",
            kernel.expression(),
        ))
    }

    /// √v of every column.
    fn stds(&self) -> Vec<f64> {
        let v = self.kernel.variance.as_slice();
        (0..self.x.cols()).map(|q| v[if v.len() == 1 { 0 } else { q }].sqrt()).collect()
    }

    fn weights(&self, gram: &Mat, r: &Mat) -> Result<Weights> {
        let (s, beta, q) = (self.stds(), 1.0 / self.noise.get(), gram.rows());
        let b = Mat::from_fn(q, q, |i, j| f64::from(i == j) + beta * s[i] * gram[(i, j)] * s[j]);
        if !b.is_finite() {
            return Err(Error::not_finite("I + βSGS"));
        }
        let b = Cholesky::new(&b, "I + βSGS")?;
        let inverse = b.inverse();
        let cov = Mat::from_fn(q, q, |i, j| s[i] * inverse[(i, j)] * s[j]);
        let mut mean = linalg::mul(&cov, r);
        mean.scale(beta);
        Ok(Weights { b, cov, mean })
    }
}

impl Parameterized for LinearRegression {
    fn params(&self) -> Vec<(String, &Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params());
        all.push(("noise".to_string(), &self.noise));
        all
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        let mut all = param::prefixed("kernel", self.kernel.params_mut());
        all.push(("noise".to_string(), &mut self.noise));
        all
    }
}

impl Model for LinearRegression {
    fn constant(&self) -> f64 {
        self.scaling.log_jacobian(&self.outputs.observed())
    }

    fn varying_evidence(&self, grad: Option<&mut [f64]>) -> Result<f64> {
        let beta = 1.0 / self.noise.get();
        let (mut value, mut beta_bar) = (0.0, 0.0);
        let mut v_bar = vec![0.0; self.x.cols()];
        for (group, (gram, r)) in self.outputs.groups.iter().zip(&self.sums) {
            let Weights { b, cov, mean } = self.weights(gram, r)?;
            let (d, cells) = (r.cols() as f64, (group.rows * r.cols()) as f64);
            value += 0.5 * cells * (beta / std::f64::consts::TAU).ln()
                - 0.5 * d * b.log_det()
                - 0.5 * beta * (group.yy - mean.dot(r));
            if grad.is_none() {
                continue;
            }
            let (fit, gram_cov) = (linalg::mul(gram, &mean), linalg::mul(gram, &cov));
            let unexplained = linalg::mul(&gram_cov, gram);
            for (q, bar) in v_bar.iter_mut().enumerate() {
                let square = |d: usize| (r[(q, d)] - fit[(q, d)]).powi(2);
                let pull = (0..r.cols()).map(square).sum::<f64>();
                let room = gram[(q, q)] - beta * unexplained[(q, q)];
                *bar += 0.5 * beta * (beta * pull - d * room);
            }
            let squares = group.yy - 2.0 * mean.dot(r) + mean.dot(&fit) + d * gram_cov.trace();
            beta_bar += 0.5 * (cells / beta - squares);
        }
        if !value.is_finite() {
            return Err(Error::not_finite("the log evidence"));
        }
        if let Some(grad) = grad {
            let (theta, noise) = grad.split_at_mut(self.kernel.variance.len());
            match theta {
                [one] => *one = v_bar.iter().sum(),
                each => each.copy_from_slice(&v_bar),
            }
            noise[0] = -beta * beta * beta_bar;
            if !all_finite(grad) {
                return Err(Error::not_finite("the gradient of the log evidence"));
            }
        }
        Ok(value)
    }

    /// The inducing inputs are the unit vectors, at which the values of f are the weights.
    fn posterior(&self) -> Result<Posterior> {
        let (s, q) = (self.stds(), self.x.cols());
        let prior = Mat::from_fn(q, q, |i, j| if i == j { s[i] * s[i] } else { 0.0 });
        let l = Cholesky::new(&prior, "the prior of the weights")?;
        let each = self.outputs.groups.iter().zip(&self.sums).map(|(group, (gram, r))| {
            let Weights { b, mean, .. } = self.weights(gram, r)?;
            let alpha = Mat::from_fn(q, mean.cols(), |i, d| mean[(i, d)] / (s[i] * s[i]));
            let mut c = b.into_inverse();
            c.scale(-1.0);
            (0..q).for_each(|i| c[(i, i)] += 1.0);
            Ok(Factors::new(group.columns.clone(), alpha, c, &l))
        });
        Ok(Posterior {
            factors: each.collect::<Result<_>>()?,
            kernel: Box::new(self.kernel.clone()),
            z: Mat::eye(q),
            noise: vec![self.noise.get(); self.outputs.d()],
            l: l.into(),
            expectation: self.expectation.clone(),
            scaling: self.scaling.clone(),
            mean: Mean::Zero,
            inputs: self.inputs.clone(),
            map: InputMap::AsIs,
        })
    }
}

impl LinearRegression {
    /// The inverse of [`store`](Regressor::store), without the parameters.
    pub(crate) fn restore(file: &mut ModelFile, own: &Own) -> Result<Box<Self>> {
        let (x, y) = file.take_pairs_of_known_inputs()?;
        let kernel = Self::kernel_of(&*file.kernel(own, x.cols())?, x.cols())?;
        let (scaling, inputs) = (file.scaling("scaling", y.cols())?, file.units("input_scaling", x.cols())?);
        let (noise, rule) = (Param::scalar(1.0), file.expectation()?);
        Ok(Box::new(Self::of(kernel, noise, rule, x, Outputs::new(y), scaling, inputs)))
    }
}

impl Regressor for LinearRegression {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn title(&self) -> &'static str {
        "Bayesian linear regression"
    }

    fn kernel(&self) -> &dyn Kernel {
        &self.kernel
    }

    fn sizes(&self) -> (usize, usize, usize) {
        (self.x.rows(), self.x.cols(), self.outputs.y.cols())
    }

    fn data(&self) -> Result<(Mat, Mat)> {
        Ok((given_inputs(self.inputs.as_ref(), &self.x)?, self.scaling.undo_mean(&self.outputs.y)?))
    }

    fn store(&self, file: &mut ModelFile) -> Result<()> {
        file.put_pairs(&self.x, &self.outputs.y, &self.scaling, self.inputs.as_ref())?;
        file.set_expectation(&*self.expectation)
    }

    fn boxed(&self) -> Box<dyn Regressor> {
        Box::new(self.clone())
    }

    fn noise(&self) -> Option<(&Param, &Scaling)> {
        Some((&self.noise, &self.scaling))
    }

    fn expectation(&self) -> Option<&dyn Expectation> {
        Some(&*self.expectation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{self, relative_error};
    use crate::data::Scale;
    use crate::kernel::Rbf;
    use crate::model::{Answers, Regression, Restarts};
    use std::ops::ControlFlow;

    fn data(n: usize) -> (Mat, Mat) {
        let x = Mat::from_fn(n, 3, |i, j| ((2.3 + 0.7 * j as f64) * i as f64).sin() * 2.0 + j as f64);
        let y = Mat::from_fn(n, 2, |i, d| {
            3.0 + x[(i, 0)] * (1.0 + d as f64) - 0.5 * x[(i, 1)] + 0.3 * ((7 * i + d) as f64).cos()
        });
        (x, y)
    }

    fn options() -> RegressionOptions {
        RegressionOptions { scale_inputs: Scale::Standardize, ..Default::default() }
    }

    /// The model, and exact regression at the same parameters.
    fn both(mut kernel: Linear, holes: bool) -> (LinearRegression, Regression) {
        let (x, mut y) = data(17);
        if holes {
            [(1, 0), (4, 0), (4, 1), (9, 1)].iter().for_each(|&at| y[at] = f64::NAN);
        }
        let variance = kernel.variance.value.as_mut_slice();
        variance.iter_mut().enumerate().for_each(|(q, v)| *v = 0.4 + 0.8 * q as f64);
        let linear = LinearRegression::new(x.clone(), y.clone(), kernel.clone(), &options()).unwrap();
        (linear, Regression::with(x, y, kernel, &options()).unwrap())
    }

    #[test]
    fn it_is_exact_regression_with_a_linear_kernel() {
        for kernel in [Linear::new(3), Linear::isotropic(3)] {
            for holes in [false, true] {
                let (linear, exact) = both(kernel.clone(), holes);
                check::model(&linear, 1e-7).unwrap();
                let (a, b) = (linear.log_evidence(None).unwrap(), exact.log_evidence(None).unwrap());
                assert!((a - b).abs() < 1e-8 * b.abs(), "{a} {b}");
                let at = Mat::from_rows(&[[0.3, -0.2, 1.0], [4.0, 0.5, -7.0]]);
                for var in [None, Some(Mat::from_rows(&[[0.2, 0.0, 0.1], [0.0, 0.4, 0.0]]))] {
                    let of = |m: &dyn Regressor| match m.predict(&at, var.as_ref()).unwrap() {
                        Answers::Values(p) => p,
                        _ => panic!("values"),
                    };
                    let (a, b) = (of(&linear), of(&exact));
                    assert!(relative_error(a.mean.as_slice(), b.mean.as_slice(), 1e-3) < 1e-8);
                    assert!(relative_error(a.var.as_slice(), b.var.as_slice(), 1e-3) < 1e-8);
                }
                let (a, b) = (linear.joint_covariance(&at, 1), exact.joint_covariance(&at, 1));
                assert!(relative_error(a.unwrap().as_slice(), b.unwrap().as_slice(), 1e-3) < 1e-8);
            }
        }
    }

    #[test]
    fn a_fit_finds_the_plane_and_the_column_that_says_nothing() {
        let (x, y) = data(300);
        let start = LinearRegression::new(x, y, Linear::new(3), &options()).unwrap();
        let fitted = Restarts::default().fit(&start, &|_| ControlFlow::Continue(())).unwrap().model;
        let v = fitted.kernel.variance.as_slice();
        assert!(v[2] < 1e-2 * v[1].min(v[0]), "{v:?}");
        let at = Mat::from_rows(&[[0.5, 1.0, 2.0]]);
        let there = fitted.posterior().unwrap().predict(&at).unwrap();
        assert!((there.mean[(0, 0)] - 3.0).abs() < 0.1 && (there.mean[(0, 1)] - 3.5).abs() < 0.1);
        // The noise 0.3 cos has mean square 0.045; both scaled outputs share one σ².
        let expected = fitted.scaling.scale.iter().map(|s| 0.045 / (s * s)).sum::<f64>() / 2.0;
        assert!((fitted.noise.get() / expected - 1.0).abs() < 0.1, "{} {expected}", fitted.noise.get());
    }

    #[test]
    fn other_kernels_and_mean_functions_are_refused() {
        assert!(LinearRegression::kernel_of(&Rbf::new(2), 2).is_err());
        assert!(LinearRegression::kernel_of(&Linear::isotropic(2), 2).is_ok());
        let (x, y) = data(9);
        let wrong = RegressionOptions { mean: MeanKind::Linear, ..options() };
        assert!(LinearRegression::new(x, y, Linear::new(3), &wrong).is_err());
    }
}
