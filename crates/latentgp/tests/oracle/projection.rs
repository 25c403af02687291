//! SPGP-DR and the variational Mahalanobis process: evidence, gradients, q(u) and predictions.

use super::Errors;
use super::read::{mat, number, numbers};
use latentgp::Mat;
use latentgp::data::Scale;
use latentgp::expectation::{Analytic, Expectation, Gaussians};
use latentgp::kernel::{Rbf, Stationary, shape};
use latentgp::model::{Jitter, Model, SpgpDr, Supervised, Vdmgp, WeightPrior};
use latentgp::param::{self, Param};
use serde_json::Value;

const VALUE: f64 = 1e-8;
const GRADIENT: f64 = 1e-6;

/// The data as given: nothing is scaled.
fn data(case: &Value) -> Supervised {
    let y = Mat::column(&numbers(&case["y"]));
    Supervised::new(&mat(&case["X"]), &y, Scale::None, Scale::None).expect("data")
}

/// An rbf with lengthscales 1 and the case's variance.
fn kernel(case: &Value, dim: usize) -> Stationary<shape::Rbf> {
    let mut k = Rbf::new(dim);
    k.variance.set(number(&case["params"]["signal_variance"]));
    k.lengthscale.fixed = true;
    k
}

/// Compares each gradient that the case has with the part of ours of the name beside it. Where the case has one
/// number for a parameter of several, they share its value, and the gradient is the sum.
fn gradients(model: &dyn Model, ours: &[f64], theirs: &Value, names: &[(&str, &str)], errors: &mut Errors) {
    for (name, values) in theirs.as_object().expect("gradients") {
        let (_, own) =
            names.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("a gradient of {name}"));
        let expected = numbers(values);
        let mut at = 0;
        for (param, p) in model.params() {
            let mut part = ours[at..at + p.len()].to_vec();
            if param == *own {
                if expected.len() == 1 {
                    part = vec![part.iter().sum()];
                }
                errors.compare(&format!("gradient of {name}"), &part, &expected, GRADIENT);
            }
            at += p.len();
        }
    }
}

fn predictions(model: &dyn Model, case: &Value, errors: &mut Errors) {
    let posterior = model.posterior().expect("a posterior");
    let found = posterior.predict(&mat(&case["X_test"])).expect("a prediction");
    let noise = posterior.noise_variance()[0];
    errors.compare("pred_mean", found.mean.as_slice(), &numbers(&case["pred_mean"]), VALUE);
    errors.compare(
        "pred_var_y",
        found.var.map(|v| v + noise).as_slice(),
        &numbers(&case["pred_var_y"]),
        VALUE,
    );
}

pub fn spgp_dr(case: &Value, errors: &mut Errors) {
    let params = &case["params"];
    let (p, z) = (mat(&params["W"]), mat(&params["Z"]));
    let k = kernel(case, p.rows());
    let mut model = SpgpDr::new(data(case), k, p, z, number(&params["noise_variance"])).expect("a model");
    model.jitter = number(&case["jitter"]);
    let mut grad = vec![0.0; param::count(&model)];
    let value = model.log_evidence(Some(&mut grad)).expect("an evidence");
    errors.compare("log_marginal", &[value], &numbers(&case["log_marginal"]), VALUE);
    let names = [("W", "p"), ("Z", "z"), ("noise_variance", "noise"), ("signal_variance", "kernel.variance")];
    gradients(&model, &grad, &case["grad_log_marginal"], &names, errors);
    predictions(&model, case, errors);
}

pub fn vdmgp(case: &Value, errors: &mut Errors) {
    let params = &case["params"];
    let weights = Gaussians::new(mat(&params["mu"]), mat(&params["S"])).expect("Gaussians");
    let k = kernel(case, weights.n());
    let prior = match case["prior"].as_str().expect("a prior") {
        "type2" => WeightPrior::TypeII,
        "fixed" => {
            let ell2 = numbers(&params["ell2"]);
            let each = if ell2.len() == 1 { vec![ell2[0]; weights.n()] } else { ell2 };
            WeightPrior::Given(Param::positive(Mat::from_rows(&[each])))
        }
        "bayes" => {
            WeightPrior::Gamma { shape: number(&case["gamma_shape"]), rate: number(&case["gamma_rate"]) }
        }
        other => panic!("a prior that this test does not know: {other}"),
    };
    let (z, noise) = (mat(&params["Z"]), number(&params["noise_variance"]));
    let mut model = Vdmgp::new(data(case), k, Box::new(Analytic), prior, weights, z, noise).expect("a model");
    model.jitter = Jitter { kzz: number(&case["jitter"]), b: 0.0 };

    let mut grad = vec![0.0; param::count(&model)];
    let bound = model.log_evidence(Some(&mut grad)).expect("a bound");
    let terms = model.terms().expect("the terms of the bound");
    errors.compare("bound", &[bound], &numbers(&case["bound"]), VALUE);
    errors.compare("F1", &[terms.fit], &numbers(&case["F1"]), VALUE);
    errors.compare("KL", &[terms.kl], &numbers(&case["KL"]), VALUE);
    if let Some(ell2) = case.get("ell2_optimal") {
        errors.compare("ell2_optimal", &model.ell2(), &numbers(ell2), VALUE);
    }
    let names = [
        ("S", "var"),
        ("Z", "z"),
        ("mu", "mean"),
        ("noise_variance", "noise"),
        ("signal_variance", "kernel.variance"),
        ("ell2", "ell2"),
    ];
    gradients(&model, &grad, &case["grad_bound"], &names, errors);
    inducing(&model, case, errors);
    predictions(&model, case, errors);
}

/// Ψ and q(u), in the units of the cases: their inducing values have unit variance.
fn inducing(model: &Vdmgp, case: &Value, errors: &mut Errors) {
    let variance = number(&case["params"]["signal_variance"]);
    let psi = Analytic.psi(&*model.kernel, &model.latent(), &model.z.value).expect("Ψ-statistics");
    let std = variance.sqrt();
    errors.compare("psi0", &[psi.psi0], &numbers(&case["psi0"]), VALUE);
    errors.compare("psi1", psi.psi1.map(|v| v / std).as_slice(), &numbers(&case["psi1"]), VALUE);
    errors.compare("psi2", psi.psi2.map(|v| v / variance).as_slice(), &numbers(&case["psi2"]), VALUE);
    let (mean, cov) = model.inducing_values().expect("q(u)");
    errors.compare("q_u_mean", mean.map(|v| v / std).as_slice(), &numbers(&case["q_u_mean"]), VALUE);
    errors.compare("q_u_cov", cov.map(|v| v / variance).as_slice(), &numbers(&case["q_u_cov"]), VALUE);
}
