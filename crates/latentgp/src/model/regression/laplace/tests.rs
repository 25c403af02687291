//! Gradients by finite differences, limits, and invalid input.

use super::*;
use crate::check::{self, relative_error};
use crate::kernel::{Linear, Matern52, Rbf, White};
use crate::likelihood::Link;
use crate::likelihood::tests::Gaussian;
use crate::model::fit;
use crate::optim::{Lbfgs, quiet};

const GRADIENT: f64 = 1e-7;

pub(crate) fn inputs(n: usize) -> Mat {
    Mat::from_fn(n, 2, |i, j| (2.3 * i as f64 + 1.1 * j as f64 + 0.2).sin() * (1.0 + j as f64))
}

pub(crate) fn kernel() -> Box<dyn Kernel> {
    let mut k = Rbf::new(2);
    k.variance.set(1.7);
    k.lengthscale.value.as_mut_slice().copy_from_slice(&[0.8, 1.4]);
    Box::new(k + Matern52::isotropic(2))
}

pub(crate) fn every_kind(n: usize) -> Vec<Observations> {
    let x = inputs(n);
    let two: Vec<usize> = (0..n).map(|i| usize::from(x[(i, 0)] + 0.3 * x[(i, 1)] > 0.1)).collect();
    let three: Vec<usize> = (0..n).map(|i| (i * 7 + usize::from(x[(i, 0)] > 0.0)) % 3).collect();
    let counts: Vec<f64> = (0..n).map(|i| (1.0 + x[(i, 0)]).exp().round()).collect();
    vec![
        Observations::bernoulli(&two, Link::Logit).unwrap(),
        Observations::bernoulli(&two, Link::Probit).unwrap(),
        Observations::poisson(&counts).unwrap(),
        Observations::categorical(&three, 3).unwrap(),
        Observations::categorical(&two, 2).unwrap(),
    ]
}

#[test]
fn total_gradients_agree_with_differences() {
    for observations in every_kind(17) {
        let name = observations.expression();
        let mut model = Laplace::new(inputs(17), observations, kernel()).unwrap();
        model.mean.value = Mat::from_fn(1, model.mean.len(), |_, c| 0.3 - 0.4 * c as f64);
        check::model(&model, GRADIENT).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn a_likelihood_for_the_sparse_model_is_refused() {
    let y = Mat::column(&[1.0, 2.0, 4.0]);
    let observations = Observations::from_expression("student_t", &y, 0).unwrap();
    let message = Laplace::new(inputs(3), observations, kernel()).err().unwrap().to_string();
    assert!(message.contains("log-concave") && message.contains("student_t(df=4)"), "{message}");
    assert!(message.contains("`sparse`"), "{message}");
}

#[test]
fn the_mode_is_where_the_gradient_vanishes() {
    for observations in every_kind(40) {
        let model = Laplace::new(inputs(40), observations, kernel()).unwrap();
        let found = model.approximation().unwrap();
        let error = relative_error(found.mode.a.as_slice(), found.mode.local.first.as_slice(), 0.0);
        assert!(error < 1e-9, "{}: {error:e}", model.observations.expression());
    }
}

#[test]
fn a_gaussian_likelihood_makes_it_exact() {
    let (n, noise) = (12, 0.3);
    let x = inputs(n);
    let y: Vec<f64> = (0..n).map(|i| x[(i, 0)].cos() + 0.2).collect();
    let observations = Observations::new(y.clone(), Gaussian { noise }).unwrap();
    let mut model = Laplace::new(x.clone(), observations, kernel()).unwrap();
    model.mean.set(0.4);
    let mut c = Mat::zeros(n, n);
    model.kernel.gram(&x, &mut c);
    (0..n).for_each(|i| c[(i, i)] += noise);
    let c = Cholesky::new(&c, "C").unwrap();
    let mut r = Mat::column(&y).map(|v| v - 0.4);
    c.solve_l(&mut r);
    let exact = -0.5 * (r.dot(&r) + c.log_det() + n as f64 * std::f64::consts::TAU.ln());
    assert!((model.log_evidence(None).unwrap() - exact).abs() < 1e-11);
    let star = Mat::from_rows(&[[0.3, -0.4], [3.0, 1.0]]);
    let found = model.approximation().unwrap().latents(&star).unwrap();
    let mut cross = Mat::zeros(n, 2);
    model.kernel.cross(&x, &star, &mut cross);
    let solved = c.solve(&cross);
    for i in 0..2 {
        let mean: f64 = 0.4 + (0..n).map(|j| solved[(j, i)] * (y[j] - 0.4)).sum::<f64>();
        let prior = model.kernel.eval(star.row(i), star.row(i));
        let var: f64 = prior - (0..n).map(|j| solved[(j, i)] * cross[(j, i)]).sum::<f64>();
        assert!((found.mean[(i, 0)] - mean).abs() < 1e-11 && (found.var[(i, 0)] - var).abs() < 1e-11);
    }
}

#[test]
fn two_classes_by_softmax_are_a_logit_with_twice_the_kernel() {
    // f_1 − f_0 of two independent functions has twice the covariance, and Laplace commutes with linear maps.
    let n = 25;
    let labels: Vec<usize> = (0..n).map(|i| usize::from(inputs(n)[(i, 0)] > 0.2)).collect();
    let mut once = Rbf::new(2);
    once.variance.set(0.9);
    let mut twice = once.clone();
    twice.variance.set(1.8);
    let two = Observations::categorical(&labels, 2).unwrap();
    let mut softmax = Laplace::new(inputs(n), two, once).unwrap();
    softmax.mean.value = Mat::from_rows(&[[0.1, 0.5]]);
    let mut logit =
        Laplace::new(inputs(n), Observations::bernoulli(&labels, Link::Logit).unwrap(), twice).unwrap();
    logit.mean.set(0.4);
    let (a, b) = (softmax.approximation().unwrap(), logit.approximation().unwrap());
    assert!((a.log_evidence() - b.log_evidence()).abs() < 1e-10);
    let star = Mat::from_rows(&[[0.3, -0.4], [3.0, 1.0], [-1.0, 0.0]]);
    let (fa, fb) = (a.latents(&star).unwrap(), b.latents(&star).unwrap());
    let (pa, pb) = (a.probabilities(&star).unwrap(), b.probabilities(&star).unwrap());
    let covs = fa.cov.unwrap();
    for i in 0..3 {
        assert!((fa.mean[(i, 1)] - fa.mean[(i, 0)] - fb.mean[(i, 0)]).abs() < 1e-10);
        let c = &covs[i];
        let spread = c[(0, 0)] + c[(1, 1)] - c[(0, 1)] - c[(1, 0)];
        assert!((spread - fb.var[(i, 0)]).abs() < 1e-10);
        assert!((pa[(i, 1)] - pb[(i, 1)]).abs() < 1e-3, "{} {}", pa[(i, 1)], pb[(i, 1)]);
    }
}

#[test]
fn the_posterior_predicts_what_the_approximation_does() {
    for observations in every_kind(20) {
        let mut model = Laplace::new(inputs(20), observations, kernel()).unwrap();
        model.mean.value.as_mut_slice()[0] = 0.7;
        let star = Mat::from_rows(&[[0.3, -0.4], [30.0, 1.0]]);
        let ours = model.approximation().unwrap().latents(&star).unwrap();
        let theirs = model.posterior().unwrap().predict(&star).unwrap();
        assert!(relative_error(theirs.mean.as_slice(), ours.mean.as_slice(), 0.0) < 1e-12);
        assert!(relative_error(theirs.var.as_slice(), ours.var.as_slice(), 0.0) < 1e-12);
    }
}

#[test]
fn extreme_parameters_give_a_number_or_a_clear_error() {
    for observations in every_kind(15) {
        for variance in [1e-12, 1e-3, 1e3, 1e6, 1e10, 1e300] {
            for mean in [-1e4, -30.0, 30.0, 1e4] {
                let mut k = Rbf::new(2);
                k.variance.set(variance);
                let mut model = Laplace::new(inputs(15), observations.clone(), k).unwrap();
                model.mean.value.as_mut_slice()[0] = mean;
                let mut grad = vec![0.0; param::count(&model)];
                match model.log_evidence(Some(&mut grad)) {
                    Ok(value) => assert!(value.is_finite() && grad.iter().all(|g| g.is_finite())),
                    Err(Error::NotFinite { .. } | Error::NotPositiveDefinite { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        }
    }
}

#[test]
fn large_counts_and_far_means_converge() {
    let counts = [0.0, 1e6, 3.0, 1e4, 0.0, 2e6];
    let mut model = Laplace::new(
        Mat::column(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        Observations::poisson(&counts).unwrap(),
        Rbf::new(1),
    )
    .unwrap();
    for mean in [0.0, -20.0, 12.0] {
        model.mean.set(mean);
        let found = model.approximation().unwrap();
        let error = relative_error(found.mode.a.as_slice(), found.mode.local.first.as_slice(), 0.0);
        assert!(error < 1e-8, "{mean}: {error:e}");
    }
}

#[test]
fn repeated_rows_and_degenerate_kernels_are_fine() {
    let x = Mat::from_fn(12, 2, |i, _| (i / 4) as f64);
    for observations in every_kind(12) {
        Laplace::new(x.clone(), observations.clone(), Rbf::new(2)).unwrap().log_evidence(None).unwrap();
        Laplace::new(x.clone(), observations.clone(), Linear::new(2)).unwrap().log_evidence(None).unwrap();
        Laplace::new(x.clone(), observations, Rbf::new(2) + White::new())
            .unwrap()
            .log_evidence(None)
            .unwrap();
    }
}

#[test]
fn bad_inputs_are_errors() {
    let y = || Observations::poisson(&[1.0, 0.0, 3.0]).unwrap();
    let err = |x: Mat, k: Rbf| Laplace::new(x, y(), k).err().unwrap();
    assert!(matches!(err(Mat::zeros(2, 1), Rbf::new(1)), Error::Shape { .. }));
    assert!(matches!(err(Mat::zeros(3, 0), Rbf::new(0)), Error::Shape { .. }));
    assert!(matches!(err(Mat::zeros(3, 1), Rbf::new(2)), Error::Shape { .. }));
    assert!(matches!(err(Mat::filled(3, 1, f64::NAN), Rbf::new(1)), Error::NotFinite { .. }));
    let model = Laplace::new(Mat::column(&[0.0, 1.0, 2.0]), y(), Rbf::new(1)).unwrap();
    let at = model.approximation().unwrap();
    assert!(matches!(at.latents(&Mat::zeros(1, 2)), Err(Error::Shape { .. })));
    assert!(matches!(at.latents(&Mat::filled(1, 1, f64::INFINITY)), Err(Error::NotFinite { .. })));
    assert!(matches!(at.probabilities(&Mat::zeros(1, 1)), Err(Error::Invalid { .. })));
    assert_eq!(at.latents(&Mat::zeros(0, 1)).unwrap().mean.rows(), 0);
}

#[test]
fn a_fit_raises_the_evidence() {
    for observations in every_kind(30) {
        let mut model = Laplace::new(inputs(30), observations, Rbf::new(2)).unwrap();
        let before = model.log_evidence(None).unwrap();
        let how = Lbfgs { max_iterations: 100, ..Lbfgs::default() };
        let report = fit(&mut model, &how, &mut quiet).unwrap();
        assert!(-report.value > before && (model.log_evidence(None).unwrap() + report.value).abs() < 1e-9);
    }
}

#[test]
fn a_prior_keeps_separable_classes_from_a_huge_variance() {
    let x = Mat::from_fn(20, 1, |i, _| i as f64 * 0.2);
    let labels: Vec<usize> = (0..20).map(|i| i / 10).collect();
    let variance = |model: Laplace| {
        let mut model = model;
        fit(&mut model, &Lbfgs { max_iterations: 100, ..Lbfgs::default() }, &mut quiet).unwrap();
        model.kernel.params()[0].1.get()
    };
    let observations = Observations::bernoulli(&labels, Link::Logit).unwrap();
    let plain = Laplace::new(x, observations, Rbf::new(1)).unwrap();
    let held = plain.clone().with_variance_prior(VARIANCE_PRIOR);
    assert!(held.kernel.params()[1].1.prior.is_none());
    let (plain, held) = (variance(plain), variance(held));
    assert!(held < 70.0 && held < plain, "{held} {plain}");
}

#[test]
fn a_wide_start_finds_what_a_narrow_one_misses() {
    let x = Mat::from_fn(80, 8, |i, j| (((i * 31 + j * 17 + i * j) as f64 * 0.618_034).fract() - 0.5) * 3.4);
    let y: Vec<f64> = (0..80).map(|i| (1.0 + 0.5 * x[(i, 0)]).exp().round()).collect();
    let mut model = Laplace::new(x, Observations::poisson(&y).unwrap(), Rbf::new(8)).unwrap();
    let mut fixed = model.clone();
    model.wide_start();
    let lengthscale = |m: &Laplace| m.kernel.params()[1].1.as_slice().to_vec();
    assert_eq!(lengthscale(&model), [8f64.sqrt(); 8]);
    fixed.kernel.params_mut().into_iter().for_each(|(_, p)| p.fixed = true);
    fixed.wide_start();
    assert_eq!(lengthscale(&fixed), [1.0; 8]);
    let fitted =
        crate::model::Restarts::default().fit(&model, &|_| std::ops::ControlFlow::Continue(())).unwrap();
    assert!(fitted.model.kernel.params()[0].1.get() > 1e-3);
}
