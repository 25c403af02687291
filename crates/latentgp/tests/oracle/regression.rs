//! Exact regression: the kernel matrix, the log marginal likelihood, its gradient and predictions.

use super::Errors;
use super::named::{self, Named};
use super::read::{kernel, mat, number, numbers, theta};
use latentgp::Mat;
use latentgp::data::Scale;
use latentgp::kernel::Kernel;
use latentgp::model::{Model, Regression, RegressionOptions};
use latentgp::param::{self, Param};
use serde_json::Value;

const VALUE: f64 = 1e-8;
const GRADIENT: f64 = 1e-6;

fn model(x: Mat, y: Mat, kernel: Box<dyn Kernel>, noise: f64) -> Regression {
    let options = RegressionOptions { scale: Scale::None, ..Default::default() };
    let mut model = Regression::with(x, y, kernel, &options).expect("a model");
    model.noise = Param::scalar(noise);
    model
}

/// The gradient of the kernel and of the noise.
fn gradient(model: &Regression) -> (f64, Vec<f64>, f64) {
    let mut grad = vec![0.0; param::count(model)];
    let value = model.log_evidence(Some(&mut grad)).expect("an evidence");
    let noise = grad.pop().expect("the noise is last");
    (value, grad, noise)
}

/// Files `gpr_*`: kernels by name, one output.
pub fn run_named(file: &Value, errors: &mut Errors) {
    let x = mat(&file["X"]);
    let params = &file["params"];
    let Named { kernel, fields } =
        named::kernel(file["kernel"].as_str().expect("a kernel"), params, x.cols());
    let noise = number(&params["noise_variance"]);
    let mut k = Mat::zeros(x.rows(), x.rows());
    kernel.gram(&x, &mut k);
    errors.compare("K", k.as_slice(), &numbers(&file["K"]), VALUE);

    let model = model(x, Mat::column(&numbers(&file["y"])), kernel, noise);
    let (value, grad, noise_bar) = gradient(&model);
    errors.compare("log_marginal", &[value], &numbers(&file["log_marginal"]), VALUE);
    let theirs = &file["grad_log_marginal"];
    named::compare_gradient(&grad, &fields, theirs, GRADIENT, errors);
    errors.compare("gradient of noise", &[noise_bar], &numbers(&theirs["noise_variance"]), GRADIENT);

    let at = mat(&file["X_test"]);
    let posterior = model.posterior().expect("a posterior");
    let there = posterior.predict(&at).expect("a prediction");
    errors.compare("pred_mean", &there.mean.col(0), &numbers(&file["pred_mean"]), VALUE);
    errors.compare("pred_var_latent", &there.var.col(0), &numbers(&file["pred_var_latent"]), VALUE);
    let observed: Vec<f64> = there.var.col(0).iter().map(|v| v + posterior.noise_variance()[0]).collect();
    errors.compare("pred_var_y", &observed, &numbers(&file["pred_var_y"]), VALUE);
    let joint = posterior.joint_covariance(&at, 0).expect("a covariance");
    errors.compare("pred_cov_latent", joint.as_slice(), &numbers(&file["pred_cov_latent"]), VALUE);
}

/// Files `gp_regression_*`: nested kernels, several outputs.
pub fn run_nested(file: &Value, errors: &mut Errors) {
    let x = mat(&file["X"]);
    let kernel = kernel(&file["kernel"], x.cols());
    let model = model(x, mat(&file["Y"]), kernel, number(&file["noise_variance"]));
    let (value, grad, noise_bar) = gradient(&model);
    errors.compare("log marginal", &[value], &numbers(&file["log_marginal_likelihood"]), VALUE);
    let theirs = &file["gradient"];
    errors.compare("gradient of kernel", &grad, &theta(&theirs["kernel"]), GRADIENT);
    errors.compare("gradient of noise", &[noise_bar], &numbers(&theirs["noise_variance"]), GRADIENT);
    let there = model.posterior().expect("a posterior").predict(&mat(&file["X_star"])).expect("a prediction");
    errors.compare("mean", there.mean.as_slice(), &numbers(&file["mean"]), VALUE);
    errors.compare("var", &there.var.col(0), &numbers(&file["var"]), VALUE);
}
