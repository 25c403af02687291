//! Gradients by finite differences, limits, batches, threads, and invalid input.

use super::*;
use crate::check::{self, relative_error};
use crate::evidence::{Collapse, collapsed};
use crate::expectation::Rule;
use crate::kernel::Rbf;
use crate::likelihood::StudentT;
use crate::likelihood::tests::Gaussian;
use crate::model::regression::laplace::tests::{every_kind, inputs, kernel};
use crate::model::shared::uncertain_inputs::NODES;
use crate::model::{InputOptions, Laplace, SparseOptions, SparseRegression, UncertainInputs, fit};
use crate::optim::{Adam, Lbfgs, quiet};
use rand_distr::{Distribution, StandardNormal};

const GRADIENT: f64 = 1e-7;

/// A model at generic parameters.
fn crooked(n: usize, observations: Observations) -> Svgp {
    let z = Mat::from_fn(5, 2, |i, j| (1.7 * i as f64 - 0.8 * j as f64).cos());
    let mut model = Svgp::at(inputs(n), observations, kernel(), z).unwrap();
    let mut k = 0.0;
    let names = ["mean", "q_mean", "q_diagonal", "q_lower"];
    for (name, p) in model.params_mut().into_iter().filter(|(name, _)| names.contains(&name.as_str())) {
        for v in p.value.as_mut_slice() {
            k += 1.3;
            *v = if name == "q_diagonal" { 0.6 + 0.3 * f64::sin(k) } else { 0.3 * f64::sin(k) };
        }
    }
    model
}

fn only_q(model: &mut Svgp) {
    model.params_mut().into_iter().for_each(|(name, p)| p.fixed = !name.starts_with("q_"));
}

fn exactly() -> Lbfgs {
    Lbfgs { gradient_tolerance: 1e-8, value_tolerance: 1e-15, ..Lbfgs::default() }
}

/// Values around a curve, with outliers.
fn with_outliers(n: usize, df: f64) -> Observations {
    let x = inputs(n);
    let value = |i: usize| 40.0 + 3.0 * x[(i, 0)].cos() + if i % 9 == 4 { 25.0 } else { 0.0 };
    Observations::new((0..n).map(value).collect(), StudentT::new(df).unwrap()).unwrap()
}

#[test]
fn gradients_agree_with_differences() {
    let weights = [1.0, 0.5];
    let kinds = every_kind(37).into_iter().chain([with_outliers(37, 4.0)]);
    for (observations, weight) in kinds.flat_map(|o| weights.map(|w| (o.clone(), w))) {
        let mut model = crooked(37, observations);
        model.weight = weight;
        check::model(&model, GRADIENT).unwrap_or_else(|e| panic!("{}: {e}", model.observations.expression()));
    }
}

fn smooth_data(n: usize) -> (Mat, Vec<f64>) {
    let x = inputs(n);
    let y = (0..n).map(|i| x[(i, 0)].cos() + 0.4 * (7.0 * i as f64).sin()).collect();
    (x, y)
}

#[test]
fn a_gaussian_likelihood_reaches_the_collapsed_bound() {
    let (n, noise) = (50, 0.2);
    let (x, y) = smooth_data(n);
    let observations = Observations::new(y.clone(), Gaussian { noise }).unwrap();
    let mut model = Svgp::new(x.clone(), observations, kernel(), 7, 1).unwrap();
    only_q(&mut model);
    fit(&mut model, &exactly(), &mut quiet).unwrap();
    let (z, m) = (&model.z.value, 7);
    let mut kxz = Mat::zeros(n, m);
    model.kernel.cross(&x, z, &mut kxz);
    let mut diag = vec![0.0; n];
    model.kernel.diag(&x, &mut diag);
    let kzz = model.kzz().unwrap();
    let of = Collapse {
        rows: n,
        outputs: 1,
        yy: y.iter().map(|v| v * v).sum(),
        p: &linalg::mul_tn(&kxz, &Mat::column(&y)),
        psi0: diag.iter().sum(),
        a: &kzz.whiten(&linalg::mul_tn(&kxz, &kxz)),
        kzz: &kzz,
        beta: 1.0 / noise,
        jitter: 0.0,
    };
    let best = collapsed(&of).unwrap().value;
    let found = model.log_evidence(None).unwrap();
    assert!((found - best).abs() < 1e-8 * best.abs(), "{found} against {best}");
}

#[test]
fn many_degrees_of_freedom_are_a_gaussian_likelihood() {
    let n = 30;
    let mut model = crooked(n, with_outliers(n, 1e9));
    let (name, scale) = model.params_mut().swap_remove(param::count(&kernel()) - 1);
    assert_eq!(name, "likelihood.scale");
    scale.set(0.4);
    let Observations::One { y, likelihood } = &model.observations else { panic!("one function") };
    let unit = (-likelihood.log_jacobian()).exp();
    let centre = likelihood.response(0.0);
    let z = y.iter().map(|y| (y - centre) / unit).collect();
    let gaussian = crooked(n, Observations::new(z, Gaussian { noise: 0.16 }).unwrap());
    let limit = gaussian.log_evidence(None).unwrap() - n as f64 * unit.ln();
    let found = model.log_evidence(None).unwrap();
    assert!((found - limit).abs() < 1e-4 * limit.abs(), "{found} against {limit}");
}

#[test]
fn the_units_of_values_are_those_of_the_data() {
    let n = 25;
    let model = crooked(n, with_outliers(n, 4.0));
    let Observations::One { y, .. } = &model.observations else { panic!("one function") };
    let larger = y.iter().map(|y| 1000.0 * y - 7.0).collect();
    let other = crooked(n, Observations::new(larger, StudentT::new(4.0).unwrap()).unwrap());
    let (a, b) = (model.varying_evidence(None).unwrap(), other.varying_evidence(None).unwrap());
    assert!((a - b).abs() < 1e-9 * a.abs(), "{a} {b}");
    let shift = model.log_evidence(None).unwrap() - other.log_evidence(None).unwrap();
    assert!((shift - n as f64 * 1000f64.ln()).abs() < 1e-7, "{shift}");
    let at = |m: &Svgp| m.observations.likelihood().unwrap().moments(0.3, 0.2);
    let (few, many) = (at(&model), at(&other));
    assert!((many.0 - (1000.0 * few.0 - 7.0)).abs() < 1e-8 && (many.1 / few.1 / 1e6 - 1.0).abs() < 1e-12);
}

/// y = sin 2x + 0.1 ε, with one row in ten off by 3 ε.
fn contaminated(n: usize, seed: u64) -> (Mat, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let x = Mat::from_fn(n, 1, |i, _| 6.0 * i as f64 / n as f64 - 3.0);
    let y = (0..n).map(|i| {
        let (noise, off) = (0.1 * normal(), 3.0 * normal());
        (2.0 * x[(i, 0)]).sin() + noise + if i % 10 == 7 { off } else { 0.0 }
    });
    let y = y.collect();
    (x, y)
}

#[test]
fn outliers_do_not_bend_the_function() {
    for seed in 0..3 {
        let (x, y) = contaminated(200, seed);
        let at = Mat::from_fn(101, 1, |i, _| 0.058 * i as f64 - 2.9);
        let truth: Vec<f64> = (0..at.rows()).map(|i| (2.0 * at[(i, 0)]).sin()).collect();
        let rmse = |p: &[f64]| crate::metrics::rmse(&truth, p).unwrap();

        let observations = Observations::from_expression("student_t", &Mat::column(&y), 0).unwrap();
        let mut robust = Svgp::new(x.clone(), observations, Rbf::new(1), 20, 0).unwrap();
        fit(&mut robust, &Lbfgs::default(), &mut quiet).unwrap();
        let found = robust.latents(&at).unwrap().observed(robust.observations.likelihood().unwrap()).unwrap();
        let ours = rmse(found.mean.as_slice());

        let options = SparseOptions { inducing: 20, ..SparseOptions::default() };
        let mut gaussian = SparseRegression::new(x, None, Mat::column(&y), Rbf::new(1), &options).unwrap();
        fit(&mut gaussian, &Lbfgs::default(), &mut quiet).unwrap();
        let theirs = rmse(gaussian.posterior().unwrap().predict(&at).unwrap().mean.as_slice());

        let (evidence, other) = (robust.log_evidence(None).unwrap(), gaussian.log_evidence(None).unwrap());
        println!("seed {seed}: rmse {ours:.4} against {theirs:.4}, bounds {evidence:.1} and {other:.1}");
        assert!(ours < 0.05 && ours < 0.4 * theirs, "{ours} against {theirs}");
        assert!(evidence > other + 50.0, "{evidence} against {other}");
        // The fitted noise is the noise of the rows without outliers.
        let scale = robust.params().swap_remove(2).1.get();
        let unit = (-robust.observations.likelihood().unwrap().log_jacobian()).exp();
        assert!((0.06..0.14).contains(&(scale * unit)), "{}", scale * unit);
    }
}

#[test]
fn with_z_at_x_a_gaussian_likelihood_is_exact() {
    let (x, y) = smooth_data(15);
    let observations = Observations::new(y, Gaussian { noise: 0.2 }).unwrap();
    let exact = Laplace::new(x.clone(), observations.clone(), kernel()).unwrap().log_evidence(None).unwrap();
    let mut model = Svgp::at(x.clone(), observations, kernel(), x).unwrap();
    model.jitter = 1e-10;
    only_q(&mut model);
    fit(&mut model, &exactly(), &mut quiet).unwrap();
    let found = model.log_evidence(None).unwrap();
    assert!((found - exact).abs() < 1e-6, "{found} against {exact}");
}

#[test]
fn with_z_at_x_and_many_counts_it_approaches_laplace() {
    // The posterior of a rate of several hundred is nearly Gaussian, so that both approximations are nearly
    // exact.
    let x = inputs(20);
    let counts: Vec<f64> = (0..20).map(|i| (6.0 + x[(i, 0)]).exp().round()).collect();
    let observations = Observations::poisson(&counts).unwrap();
    let laplace = Laplace::new(x.clone(), observations.clone(), kernel()).unwrap();
    let mut model = Svgp::at(x.clone(), observations, kernel(), x.clone()).unwrap();
    model.jitter = 1e-9;
    only_q(&mut model);
    fit(&mut model, &Lbfgs { value_tolerance: 1e-13, ..Lbfgs::default() }, &mut quiet).unwrap();
    let (bound, evidence) = (model.log_evidence(None).unwrap(), laplace.log_evidence(None).unwrap());
    assert!((bound - evidence).abs() < 0.02, "{bound} against {evidence}");
    let star = Mat::from_rows(&[[0.2, 0.3], [-0.5, 1.0]]);
    let (a, b) = (model.latents(&star).unwrap(), laplace.approximation().unwrap().latents(&star).unwrap());
    assert!(relative_error(a.mean.as_slice(), b.mean.as_slice(), 0.0) < 1e-3);
    assert!(relative_error(a.var.as_slice(), b.var.as_slice(), 0.0) < 1e-2);
}

#[test]
fn the_bound_of_two_classes_is_near_laplace() {
    // Both values are below the exact evidence by a few hundredths of a nat for each row.
    let observations = every_kind(30).remove(0);
    let laplace = Laplace::new(inputs(30), observations.clone(), kernel()).unwrap();
    let mut model = Svgp::at(inputs(30), observations, kernel(), inputs(30)).unwrap();
    only_q(&mut model);
    fit(&mut model, &Lbfgs::default(), &mut quiet).unwrap();
    let (bound, evidence) = (model.log_evidence(None).unwrap(), laplace.log_evidence(None).unwrap());
    assert!((bound - evidence).abs() < 0.03 * 30.0, "{bound} against {evidence}");
}

#[test]
fn predictions_are_those_of_the_dense_formula() {
    let model = crooked(12, every_kind(12).remove(3));
    let star = Mat::from_rows(&[[0.2, 0.3], [-0.5, 1.0], [40.0, 0.0]]);
    let found = model.latents(&star).unwrap();
    let l = model.kzz().unwrap();
    let mut a = Mat::zeros(5, 3);
    model.kernel.cross(&model.z.value, &star, &mut a);
    l.solve_l(&mut a);
    for c in 0..3 {
        let t = model.root(c);
        for i in 0..3 {
            let own = a.col(i);
            let mean: f64 = own.iter().zip(model.q_mean.value.row(c)).map(|(a, m)| a * m).sum();
            let seen: f64 = (0..5).map(|j| (0..5).map(|k| t[(k, j)] * own[k]).sum::<f64>().powi(2)).sum();
            let prior = model.kernel.eval(star.row(i), star.row(i));
            let var = prior - own.iter().map(|a| a * a).sum::<f64>() + seen;
            assert!((found.mean[(i, c)] - mean - model.mean.as_slice()[c]).abs() < 1e-12);
            assert!((found.var[(i, c)] - var).abs() < 1e-12);
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let model = crooked(1500, every_kind(1500).remove(3));
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut grad = vec![0.0; param::count(&model)];
        let value = pool.install(|| model.log_evidence(Some(&mut grad))).unwrap();
        (value, grad)
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn batches_are_unbiased_and_repeatable() {
    let mut model = crooked(60, every_kind(60).remove(2));
    let mut whole = vec![0.0; param::count(&model)];
    model.log_evidence(Some(&mut whole)).unwrap();
    model.batch = Some(MiniBatch { rows: 20, seed: 4 });
    let (steps, mut mean) = (4000, vec![0.0; whole.len()]);
    let mut grad = whole.clone();
    for step in 0..steps {
        model.renew(step);
        model.log_evidence(Some(&mut grad)).unwrap();
        mean.iter_mut().zip(&grad).for_each(|(m, g)| *m += g / steps as f64);
    }
    let error = relative_error(&mean, &whole, 0.0);
    assert!(error < 0.03, "{error}");
    let again = |step: u64| {
        let mut own = model.clone();
        own.renew(step);
        own.rows.unwrap()
    };
    assert_eq!(again(7), again(7));
    assert_ne!(again(7), again(8));
    model.batch = Some(MiniBatch { rows: 1000, seed: 4 });
    model.renew(0);
    assert!(model.rows.is_none());
}

#[test]
fn adam_on_batches_comes_near_lbfgs() {
    let n = 600;
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let x = Mat::from_fn(n, 1, |_, _| {
        2.0 * <StandardNormal as Distribution<f64>>::sample(&StandardNormal, &mut rng)
    });
    let labels: Vec<usize> = (0..n)
        .map(|i| {
            let noise: f64 = StandardNormal.sample(&mut rng);
            usize::from((1.5 * x[(i, 0)]).sin() + 0.5 * noise > 0.0)
        })
        .collect();
    let observations = Observations::bernoulli(&labels, crate::likelihood::Link::Probit).unwrap();
    let start = Svgp::new(x, observations, Rbf::new(1), 10, 0).unwrap();
    let before = start.log_evidence(None).unwrap();
    let mut whole = start.clone();
    let full = fit(&mut whole, &Lbfgs { max_iterations: 300, ..Lbfgs::default() }, &mut quiet).unwrap();
    let run = || {
        let mut model = start.clone();
        model.batch = Some(MiniBatch { rows: 100, seed: 5 });
        let how = Adam { learning_rate: 0.03, decay: 0.002, max_iterations: 1500, ..Adam::default() };
        fit(&mut model, &how, &mut quiet).unwrap();
        (model.log_evidence(None).unwrap(), param::values(&model))
    };
    let (found, values) = run();
    let gained = (found - before) / (-full.value - before);
    assert!(gained > 0.95, "{before} → {found}, L-BFGS {}", -full.value);
    assert_eq!(run(), (found, values));
}

#[test]
fn bad_inputs_are_errors() {
    let y = || Observations::poisson(&[1.0, 0.0, 3.0]).unwrap();
    let x = || Mat::column(&[0.0, 1.0, 2.0]);
    assert!(matches!(Svgp::new(x(), y(), Rbf::new(1), 0, 0), Err(Error::Invalid { .. })));
    assert!(matches!(Svgp::new(x(), y(), Rbf::new(2), 2, 0), Err(Error::Shape { .. })));
    assert!(matches!(Svgp::at(x(), y(), Rbf::new(1), Mat::zeros(2, 2)), Err(Error::Shape { .. })));
    assert!(matches!(Svgp::at(x(), y(), Rbf::new(1), Mat::zeros(0, 1)), Err(Error::Shape { .. })));
    let nan = Mat::filled(1, 1, f64::NAN);
    assert!(matches!(Svgp::at(x(), y(), Rbf::new(1), nan), Err(Error::Invalid { .. })));
    let mut model = Svgp::new(x(), y(), Rbf::new(1), 9, 0).unwrap();
    assert_eq!(model.z.value.rows(), 3);
    assert!(model.set_nodes(0, 8).is_err());
    assert!(matches!(model.probabilities(&x()), Err(Error::Invalid { .. })));
    assert!(matches!(model.rates(&Mat::zeros(1, 2)), Err(Error::Shape { .. })));
    // An infinite rate is an error, after which the optimiser reduces its step.
    model.mean.set(1e4);
    let mut grad = vec![0.0; param::count(&model)];
    assert!(matches!(model.log_evidence(Some(&mut grad)), Err(Error::NotFinite { .. })));
    assert!(matches!(model.log_evidence(None), Err(Error::NotFinite { .. })));
}

#[test]
fn uncertain_inputs_without_uncertainty_are_certain() {
    let model = crooked(12, every_kind(12).remove(0));
    let star = Mat::from_rows(&[[0.2, 0.3], [-0.5, 1.0]]);
    let (a, b) = (model.latents(&star).unwrap(), model.latents_uncertain(&Gaussians::certain(star)).unwrap());
    assert!(relative_error(b.mean.as_slice(), a.mean.as_slice(), 0.0) < 1e-9);
    assert!(relative_error(b.var.as_slice(), a.var.as_slice(), 0.0) < 1e-6);
}

#[test]
fn certain_inputs_are_the_limit_of_uncertain_ones() {
    let n = 20;
    for observations in every_kind(n) {
        let x = inputs(n);
        let q = crate::expectation::Gaussians::certain(x.clone());
        let z = x.slice_rows(0, 5);
        let plain = Svgp::at(x.clone(), observations.clone(), kernel(), z.clone()).unwrap();
        let mut both = Svgp::uncertain(&q, &observations, kernel(), 5, 0).unwrap();
        both.z.value = z;
        let (a, b) = (plain.log_evidence(None).unwrap(), both.log_evidence(None).unwrap());
        assert!((a - b).abs() < 1e-9 * a.abs(), "{a} against {b}");
        let wide = crate::expectation::Gaussians::new(x.clone(), x.map(|_| 0.3)).unwrap();
        both = Svgp::uncertain(&wide, &observations, kernel(), 5, 0).unwrap();
        assert_eq!((both.x.rows(), both.weight), (n * 2 * x.cols(), 0.5 / x.cols() as f64));
    }
}

/// Every second row is known up to an error in the first column, and one cell is missing.
fn inferred(n: usize, observations: &Observations, learn: Vec<usize>) -> Svgp {
    let mut x = inputs(n);
    let std = Mat::from_fn(n, 2, |i, j| if j == 0 && i % 2 == 0 { 0.2 } else { 0.0 });
    x[(3, 1)] = f64::NAN;
    let how = InputOptions { learn, ..Default::default() };
    let mut given = UncertainInputs::with(&x, Some(&std), &how).unwrap();
    let crooked = |k: usize| 0.4 * (1.7 * k as f64).sin();
    (0..given.read.offset.len()).for_each(|k| given.read.offset.value[(0, k)] = crooked(k));
    (0..given.read.ratio.len()).for_each(|k| given.read.ratio.value[(0, k)] = 0.6 + crooked(k));
    let mut model = Svgp::inferred(given, observations, kernel(), 5, 0).unwrap();
    let len = model.q_mean.len();
    (0..len).for_each(|k| model.q_mean.value.as_mut_slice()[k] = crooked(k));
    model
}

#[test]
fn gradients_of_inferred_inputs_agree_with_differences() {
    for observations in every_kind(23) {
        for learn in [vec![], vec![0]] {
            check::model(&inferred(23, &observations, learn), GRADIENT).unwrap();
        }
    }
}

#[test]
fn inferred_inputs_at_their_priors_are_averaged_over_these() {
    // Outliers are scaled, so that the log density has a Jacobian.
    let outliers =
        Observations::from_expression("student_t", &inputs(20).select_cols(&[0]).map(|v| 70.0 * v), 0);
    for observations in [every_kind(20).remove(0), outliers.unwrap()] {
        let mut model = inferred(20, &observations, vec![]);
        model.uncertain.as_mut().unwrap().x.read.offset.value.fill(0.0);
        model.uncertain.as_mut().unwrap().x.read.ratio.value.fill(1.0);
        let x = &model.uncertain.as_ref().unwrap().x;
        let (q, kl) = (x.gaussians(), x.kl().unwrap());
        // The reference evaluates the observations at every node separately.
        let (nodes, weights) = (NODES.nodes(2), NODES.weights(2));
        let mut averaged = -kl;
        for (s, weight) in weights.iter().enumerate() {
            let at = Mat::from_fn(20, 2, |i, j| q.mean[(i, j)] + q.var[(i, j)].sqrt() * nodes[(s, j)]);
            let mut one = Svgp::at(at, observations.clone(), kernel(), model.z.value.clone()).unwrap();
            one.q_mean = model.q_mean.clone();
            averaged += weight * one.log_evidence(None).unwrap();
        }
        let bound = model.log_evidence(None).unwrap();
        assert!((bound - averaged).abs() < 1e-10 * averaged.abs(), "{bound} against {averaged}");
    }
}

#[test]
fn batches_of_inferred_inputs_are_unbiased() {
    let observations = every_kind(20).remove(0);
    let mut model = inferred(20, &observations, vec![0]);
    let mut whole = vec![0.0; param::count(&model)];
    model.log_evidence(Some(&mut whole)).unwrap();
    model.batch = Some(MiniBatch { rows: 16, seed: 3 });
    let (steps, mut sum) = (4000, vec![0.0; whole.len()]);
    for step in 0..steps {
        model.renew(step);
        let mut grad = vec![0.0; whole.len()];
        model.log_evidence(Some(&mut grad)).unwrap();
        sum.iter_mut().zip(&grad).for_each(|(s, g)| *s += g / steps as f64);
    }
    assert!(relative_error(&sum, &whole, 1e-3) < 0.03);
}
