//! Exact regression against scikit-learn's GaussianProcessRegressor at the same hyperparameters; the
//! numbers, the script that made them and the versions are in `tests/golden/`.

use latentgp::Mat;
use latentgp::data::Scale;
use latentgp::kernel;
use latentgp::model::{Model, Regression, RegressionOptions};
use latentgp::param::Param;
use serde_json::Value;

const TOLERANCE: f64 = 1e-8;

fn numbers(v: &Value) -> Vec<f64> {
    match v {
        Value::Number(n) => vec![n.as_f64().expect("a number")],
        Value::Array(a) => a.iter().flat_map(numbers).collect(),
        other => panic!("expected numbers, found {other}"),
    }
}

fn mat(v: &Value) -> Mat {
    Mat::from_rows(&v.as_array().expect("rows").iter().map(numbers).collect::<Vec<_>>())
}

fn compare(what: &str, ours: &[f64], theirs: &[f64]) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let error = latentgp::check::relative_error(ours, theirs, 0.0);
    assert!(error < TOLERANCE, "{what}: relative error {error:e}");
}

#[test]
fn exact_regression_agrees() {
    let file: Value = serde_json::from_str(include_str!("../golden/sklearn_gpr.json")).expect("JSON");
    let cases = file["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 8);
    for case in cases {
        let name = case["kernel"].as_str().expect("a kernel");
        let (x, y, at) = (mat(&case["x"]), mat(&case["y"]), mat(&case["x_test"]));
        for (way, scale) in [("plain", Scale::None), ("standardized", Scale::Standardize)] {
            let options = RegressionOptions { scale, ..Default::default() };
            let kernel = kernel::parse(name, x.cols()).expect(name);
            let mut model = Regression::with(x.clone(), y.clone(), kernel, &options).expect(name);
            model.noise = Param::scalar(case["noise"].as_f64().expect("a number"));
            let theirs = &case[way];
            // Theirs is the density of the scaled data, without the Jacobian.
            let jacobian = model.scaling.log_jacobian(&model.outputs.observed());
            let value = model.log_evidence(None).expect(name) - jacobian;
            compare(&format!("{name} {way} evidence"), &[value], &numbers(&theirs["log_marginal"]));
            let posterior = model.posterior().expect(name);
            let there = posterior.predict(&at).expect(name);
            compare(&format!("{name} {way} mean"), there.mean.as_slice(), &numbers(&theirs["mean"]));
            for d in 0..y.cols() {
                let cov = posterior.joint_covariance(&at, d).expect(name);
                compare(&format!("{name} {way} covariance"), cov.as_slice(), &numbers(&theirs["cov"][d]));
                let diagonal: Vec<f64> = (0..at.rows()).map(|i| cov[(i, i)]).collect();
                compare(&format!("{name} {way} variance"), &there.var.col(d), &diagonal);
            }
        }
    }
}
