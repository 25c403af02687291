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

/// log N(y | 0, KxzKzz⁻¹Kzx + σ²I) − tr(Kxx − KxzKzz⁻¹Kzx)/2σ² of one output, from N×N matrices.
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

/// Sets the posteriors of all uncertain cells to their priors.
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
            let model = SparseRegression::new(x.clone(), std, y.clone(), kernel.clone(), &options).unwrap();
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
    // Both models then have the same posteriors relative to the same priors.
    wide.x.read.ratio.value.fill(missing.x.var.get() / missing.x.prior.var[(0, 0)]);
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
        BayesianGplvm::new(model.outputs.clone(), scaling, kernel, Box::new(Analytic), q, z, noise).unwrap();
    twin.jitter = model.jitter;
    let (mut a, mut b) = (vec![0.0; param::count(&model)], vec![0.0; param::count(&twin)]);
    let values = (model.log_evidence(Some(&mut a)).unwrap(), twin.log_evidence(Some(&mut b)).unwrap());
    assert!((values.0 - values.1).abs() < 1e-10 * values.1.abs(), "{values:?}");
    assert!(relative_error(&a, &b, 1e-3) < 1e-9);
    check::model(&model, GRADIENT).unwrap();
}

/// A curve with one uncertain row, whose y is slightly off the curve.
fn one_uncertain() -> (SparseRegression, Regression, Gaussians) {
    let mut x = Mat::from_fn(12, 1, |i, _| 0.35 * i as f64);
    let y = Mat::from_fn(12, 1, |i, _| (1.2 * x[(i, 0)]).sin() + 0.02 * (5.0 * i as f64).cos());
    let mut std = Mat::zeros(12, 1);
    (x[(4, 0)], std[(4, 0)]) = (x[(4, 0)] + 0.25, 0.3);
    let uncertain = InputOptions::default();
    let jitter = Jitter { kzz: 1e-9, b: 0.0 };
    let options = SparseOptions { inducing: 12, scale: Scale::None, jitter, uncertain, ..Default::default() };
    let mut model = SparseRegression::new(x.clone(), Some(std), y.clone(), Rbf::new(1), &options).unwrap();
    model.z.value = Mat::from_fn(24, 1, |i, _| -0.6 + 0.22 * i as f64);
    model.noise.set(0.01);
    let with = RegressionOptions { scale: Scale::None, ..Default::default() };
    let mut exact = Regression::with(x, y, Rbf::new(1), &with).unwrap();
    exact.noise.set(0.01);
    let prior = model.x.priors(&Mat::column(&[0.35 * 4.0 + 0.25]), Some(&Mat::column(&[0.09]))).unwrap();
    (model, exact, prior)
}

/// ln ∫ N(x | m, p) exp(f(x)) dx, and the mean and variance of x under the normalised integrand.
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
    let q = model.infer_inputs(&Mat::column(&[x]), Some(&Mat::column(&[s2])), &Mat::column(&[y])).unwrap();
    let (found, spread) = (q.mean[(0, 0)], q.var[(0, 0)]);
    assert!((found - mean).abs() < 0.15 * var.sqrt(), "{found} against {mean} ± {}", var.sqrt());
    assert!((spread / var - 1.0).abs() < 0.2, "{spread} against {var}");
    // Without an error the input is returned as it is; without y the posterior is the prior.
    let both = Mat::column(&[x, x]);
    let q = model.infer_inputs(&both, Some(&Mat::column(&[0.0, s2])), &Mat::column(&[y, f64::NAN])).unwrap();
    assert_eq!((q.mean[(0, 0)], q.var[(0, 0)]), (x, 0.0));
    assert!((q.mean[(1, 0)] - prior.mean[(0, 0)]).abs() < 1e-5);
    assert!((q.var[(1, 0)] - prior.var[(0, 0)]).abs() < 1e-5);
    assert!(model.infer_inputs(&both, None, &Mat::column(&[1.0])).is_err());
}

#[test]
fn inferred_and_averaged_inputs_agree_where_y_says_nothing_of_them() {
    // The line is so flat that noise hides the position of an input.
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

/// A model with every kind of cell, at generic parameters.
fn every_cell(learn: Vec<usize>, latent: usize) -> SparseRegression {
    let given = holed();
    let uncertain = InputOptions { learn, latent, ..Default::default() };
    let options = SparseOptions { uncertain, ..options(5) };
    let (x, y) = (given.x.given(), given.outputs.y.clone());
    let kernel = Rbf::new(2 + latent) + Linear::new(2 + latent);
    let mut model = SparseRegression::new(x.mean, Some(x.var.map(f64::sqrt)), y, kernel, &options).unwrap();
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
