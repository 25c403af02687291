//! The Laplace approximation: mode, log evidence, its gradient and predictions.

use super::Errors;
use super::read::{kernel, mat, number, numbers};
use latentgp::likelihood::{Link, Observations};
use latentgp::model::{Laplace, Model};
use latentgp::param;
use serde_json::{Value, json};

const VALUE: f64 = 1e-8;
const GRADIENT: f64 = 1e-6;
/// How far the approximation may be from the truth, in nats a row.
const BIAS: f64 = 0.1;

fn observations(case: &Value) -> Observations {
    let y = numbers(&case["y"]);
    let classes: Vec<usize> = y.iter().map(|y| usize::from(*y > 0.0)).collect();
    let made = match case["likelihood"].as_str().expect("a likelihood") {
        "logit" => Observations::bernoulli(&classes, Link::Logit),
        "probit" => Observations::bernoulli(&classes, Link::Probit),
        "poisson" => Observations::poisson(&y),
        other => panic!("a likelihood that this test does not know: {other}"),
    };
    made.expect("observations")
}

pub fn run(case: &Value, errors: &mut Errors) {
    let x = mat(&case["X"]);
    let params = &case["params"];
    let description = json!({
        "type": case.get("kernel").cloned().unwrap_or(json!("rbf")),
        "variance": params["variance"],
        "lengthscales": params["lengthscale"],
    });
    let k = kernel(&description, x.cols());
    let mut model = Laplace::new(x, observations(case), k).expect("a model");
    model.mean.set(params.get("mean").map_or(0.0, number));
    let at = model.approximation().expect("an approximation");
    errors.compare("mode_f", at.mode().as_slice(), &numbers(&case["mode_f"]), VALUE);
    errors.compare("alpha", at.alpha().as_slice(), &numbers(&case["alpha"]), VALUE);
    let mut grad = vec![0.0; param::count(&model)];
    let evidence = model.log_evidence(Some(&mut grad)).expect("a log evidence");
    errors.compare("log_marginal", &[evidence], &numbers(&case["log_marginal"]), VALUE);
    if let Some(truth) = case.get("reference_log_evidence") {
        let bias = (evidence - number(&truth["value"])).abs() / model.x.rows() as f64;
        assert!(bias < BIAS, "{bias} nats a row from the truth");
    }
    let mut rest = &grad[..];
    for part in ["variance", "lengthscale", "mean"] {
        let len = if part == "mean" { 1 } else { numbers(&params[part]).len() };
        let (ours, others) = rest.split_at(len);
        rest = others;
        match case["grad_log_marginal"].get(part) {
            Some(theirs) => errors.compare(&format!("gradient of {part}"), ours, &numbers(theirs), GRADIENT),
            None => assert_eq!(part, "mean", "the gradients of the kernel are given"),
        }
    }
    predictions(&model, case, errors);
}

fn predictions(model: &Laplace, case: &Value, errors: &mut Errors) {
    let at = model.approximation().expect("an approximation");
    let star = mat(&case["X_test"]);
    let latents = at.latents(&star).expect("latent values");
    let mut compare = |name: &str, ours: &[f64]| {
        if let Some(theirs) = case.get(name) {
            errors.compare(name, ours, &numbers(theirs), VALUE);
        }
    };
    compare("pred_latent_mean", latents.mean.as_slice());
    compare("pred_latent_var", latents.var.as_slice());
    if case["likelihood"] == "poisson" {
        let rates = at.rates(&star).expect("rates");
        compare("pred_rate_mean", &rates.mean);
        compare("pred_rate_var", &rates.var);
        compare("pred_count_var", &rates.count_var);
    } else {
        compare("pred_prob_averaged", &at.probabilities(&star).expect("probabilities").col(1));
        compare("pred_prob_at_mean", &at.probabilities_at_mean(&star).expect("probabilities").col(1));
    }
}
