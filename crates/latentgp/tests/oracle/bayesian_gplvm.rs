//! The Bayesian GPLVM: Kuu, KL, Ψ-statistics, the bound, its gradient and predictions.

use super::Errors;
use super::read::{kernel, mat, number, numbers, theta};
use latentgp::Mat;
use latentgp::data::Scaling;
use latentgp::expectation::*;
use latentgp::model::{BayesianGplvm, Jitter, Model, Outputs};
use latentgp::param;
use serde_json::Value;

const VALUE: f64 = 1e-8;
const GRADIENT: f64 = 1e-6;

/// An expectation without options.
pub fn by_name(name: &str) -> Box<dyn Expectation> {
    if let Some(points) = name.strip_prefix("gauss_hermite_") {
        return Box::new(GaussHermite::new(points.parse().expect("a number of points")));
    }
    match name {
        "analytic" => Box::new(Analytic),
        "unscented" => Box::new(Unscented),
        other => panic!("an expectation that this test does not know: {other}"),
    }
}

/// The rule of a case, and whether the case has predictions.
fn rule(case: &Value) -> (Box<dyn Expectation>, bool) {
    let options = &case["options"];
    match case["expectation"].as_str().expect("an expectation") {
        "scaled_unscented" => {
            let (alpha, kappa) = (number(&options["alpha"]), number(&options["kappa"]));
            (Box::new(ScaledUnscented { alpha, kappa }), true)
        }
        "minimal_skew" => (Box::new(MinimalSkew { w0: number(&options["w0"]) }), true),
        "monte_carlo_given_draws" => {
            let draws = options["standard_normal_draws"].as_array().expect("draws").iter().map(mat).collect();
            (Box::new(GivenDraws::new(draws).expect("draws of one shape")), false)
        }
        other => (by_name(other), true),
    }
}

pub fn run(file: &Value, errors: &mut Errors) {
    let (y, z) = (mat(&file["Y"]), mat(&file["Z"]));
    let q = Gaussians::new(mat(&file["mu"]), mat(&file["S"])).expect("Gaussians");
    let k = kernel(&file["kernel"], q.dim());
    let jitter = number(&file["jitter"]);
    let mut kzz = Mat::zeros(z.rows(), z.rows());
    k.gram(&z, &mut kzz);
    (0..z.rows()).for_each(|i| kzz[(i, i)] += jitter);
    errors.compare("Kuu", kzz.as_slice(), &numbers(&file["Kuu"]), VALUE);
    let star = Gaussians::new(mat(&file["x_star_mean"]), mat(&file["x_star_var"])).expect("Gaussians");
    for case in file["cases"].as_array().expect("cases") {
        let name = case["expectation"].as_str().expect("an expectation");
        let (rule, predicts) = rule(case);
        let psi = rule.psi(&*k, &q, &z).expect("Ψ-statistics");
        errors.compare(&format!("{name} psi0"), &[psi.psi0], &numbers(&case["psi0"]), VALUE);
        errors.compare(&format!("{name} psi1"), psi.psi1.as_slice(), &numbers(&case["psi1"]), VALUE);
        errors.compare(&format!("{name} psi2"), psi.psi2.as_slice(), &numbers(&case["psi2"]), VALUE);

        let none = Scaling { mean: vec![0.0; y.cols()], scale: vec![1.0; y.cols()] };
        let noise = number(&file["noise_variance"]);
        let outputs = Outputs::new(y.clone());
        let mut model =
            BayesianGplvm::new(outputs, none, k.clone(), rule, q.clone(), z.clone(), noise).expect("a model");
        model.jitter = Jitter { kzz: jitter, b: 0.0 };
        let mut grad = vec![0.0; param::count(&model)];
        let bound = model.log_evidence(Some(&mut grad)).expect("a bound");
        errors.compare(&format!("{name} elbo"), &[bound], &numbers(&case["elbo"]), VALUE);
        let again = model.log_evidence(None).expect("a bound");
        errors.compare(&format!("{name} elbo without gradient"), &[again], &[bound], 1e-14);

        let theirs = &case["gradient"];
        let parts = [
            ("kernel", theta(&theirs["kernel"])),
            ("noise", numbers(&theirs["noise_variance"])),
            ("Z", numbers(&theirs["Z"])),
            ("mu", numbers(&theirs["mu"])),
            ("S", numbers(&theirs["S"])),
        ];
        let mut rest = &grad[..];
        for (part, expected) in &parts {
            let (ours, others) = rest.split_at(expected.len());
            errors.compare(&format!("{name} gradient of {part}"), ours, expected, GRADIENT);
            rest = others;
        }
        assert!(rest.is_empty(), "every gradient is compared");
        if predicts {
            predictions(&model, case, &star, name, errors);
        }
    }
}

fn predictions(model: &BayesianGplvm, case: &Value, star: &Gaussians, name: &str, errors: &mut Errors) {
    let posterior = model.posterior().expect("a posterior");
    let certain = posterior.predict(&star.mean).expect("a prediction");
    let theirs = &case["predict_certain"];
    errors.compare(
        &format!("{name} certain mean"),
        certain.mean.as_slice(),
        &numbers(&theirs["mean"]),
        VALUE,
    );
    errors.compare(&format!("{name} certain var"), &certain.var.col(0), &numbers(&theirs["var"]), VALUE);
    let uncertain = posterior.predict_uncertain(star).expect("a prediction");
    let theirs = &case["predict_uncertain"];
    errors.compare(
        &format!("{name} uncertain mean"),
        uncertain.mean.as_slice(),
        &numbers(&theirs["mean"]),
        VALUE,
    );
    let cov = posterior.covariance(star).expect("covariances");
    let all: Vec<f64> = cov.iter().flat_map(|c| c.as_slice().to_vec()).collect();
    errors.compare(&format!("{name} uncertain cov"), &all, &numbers(&theirs["cov"]), VALUE);
    let diagonal: Vec<f64> =
        cov.iter().flat_map(|c| (0..c.rows()).map(|i| c[(i, i)]).collect::<Vec<_>>()).collect();
    errors.compare(&format!("{name} uncertain var"), uncertain.var.as_slice(), &diagonal, 1e-9);
}
