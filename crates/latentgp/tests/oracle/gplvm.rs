//! The GPLVM with point estimates: the objective and its gradient.

use super::Errors;
use super::named::{self, Named};
use super::read::{mat, number, numbers};
use latentgp::data::Scaling;
use latentgp::model::{Gplvm, LatentPrior, Model, Outputs};
use latentgp::param::{self, Param};
use serde_json::Value;

const VALUE: f64 = 1e-8;
const GRADIENT: f64 = 1e-6;

pub fn run(file: &Value, errors: &mut Errors) {
    let (y, params) = (mat(&file["Y"]), &file["params"]);
    let x = mat(&params["X"]);
    let Named { kernel, fields } =
        named::kernel(file["kernel"].as_str().expect("a kernel"), params, x.cols());
    let prior = match file["latent_prior"].as_str() {
        Some("standard_normal") => LatentPrior::StandardNormal,
        Some("none") | None => LatentPrior::None,
        other => panic!("a prior that this test does not know: {other:?}"),
    };
    let none = Scaling { mean: vec![0.0; y.cols()], scale: vec![1.0; y.cols()] };
    let mut model = Gplvm::new(Outputs::new(y), none, kernel, x, prior, 0.1).expect("a model");
    model.noise = Param::scalar(number(&params["noise_variance"]));
    let mut grad = vec![0.0; param::count(&model)];
    let value = model.log_evidence(Some(&mut grad)).expect("an objective");
    errors.compare("objective", &[value], &numbers(&file["objective"]), VALUE);
    if file.get("log_likelihood").is_some() {
        let likelihood = model.log_likelihood().expect("a likelihood");
        errors.compare("log_likelihood", &[likelihood], &numbers(&file["log_likelihood"]), VALUE);
    }
    let theirs = &file["grad"];
    let theta: usize = fields.iter().map(|f| f.1).sum();
    named::compare_gradient(&grad[..theta], &fields, theirs, GRADIENT, errors);
    errors.compare("gradient of noise", &grad[theta..=theta], &numbers(&theirs["noise_variance"]), GRADIENT);
    errors.compare("gradient of X", &grad[theta + 1..], &numbers(&theirs["X"]), GRADIENT);
}
