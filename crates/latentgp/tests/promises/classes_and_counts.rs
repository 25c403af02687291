//! Classes and counts from end to end: held-out accuracy on the irises, coverage of simulated counts.

use latentgp::Mat;
use latentgp::data::{Scale, Scaling, iris};
use latentgp::kernel::Rbf;
use latentgp::likelihood::{Likelihood, Link, Observations, Poisson, Quadrature, encode};
use latentgp::metrics::{accuracy, brier, coverage, kfold, log_loss};
use latentgp::model::{Laplace, MiniBatch, Model, Restarts, Svgp, VARIANCE_PRIOR, fit};
use latentgp::optim::{Adam, Lbfgs, quiet};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::Distribution;
use std::ops::ControlFlow;

const FOLDS: usize = 5;
const SEED: u64 = 1;

fn irises() -> (Mat, Vec<usize>) {
    let (x, species) = iris::load();
    let x = Scaling::fit(&x, Scale::Standardize).unwrap().apply(&x).unwrap();
    (x, encode(&species).0)
}

fn limited() -> Lbfgs {
    Lbfgs { max_iterations: 30, ..Lbfgs::default() }
}

/// Probabilities of every row from a model that has not seen it.
fn held_out(x: &Mat, labels: &[usize], predict: impl Fn(Mat, &[usize], &Mat) -> Mat) -> Mat {
    let classes = labels.iter().max().unwrap() + 1;
    let mut all = Mat::zeros(x.rows(), classes);
    for fold in kfold(x.rows(), FOLDS, SEED).unwrap() {
        let rest: Vec<usize> = (0..x.rows()).filter(|i| !fold.contains(i)).collect();
        let known: Vec<usize> = rest.iter().map(|&i| labels[i]).collect();
        let p = predict(x.select_rows(&rest), &known, &x.select_rows(&fold));
        fold.iter().enumerate().for_each(|(i, &n)| all.row_mut(n).copy_from_slice(p.row(i)));
    }
    all
}

fn report(name: &str, labels: &[usize], p: &Mat) -> f64 {
    let right = accuracy(labels, p).unwrap();
    let (loss, squares) = (log_loss(labels, p).unwrap(), brier(labels, p).unwrap());
    println!("{name:<24} accuracy {right:.4}, log loss {loss:.4}, brier {squares:.4}");
    right
}

#[test]
fn irises_by_laplace() {
    let (x, species) = irises();
    let p = held_out(&x, &species, |x, y, star| {
        let model = Laplace::new(x, Observations::categorical(y, 3).unwrap(), Rbf::new(4)).unwrap();
        let mut model = model.with_variance_prior(VARIANCE_PRIOR);
        fit(&mut model, &limited(), &mut quiet).unwrap();
        model.approximation().unwrap().probabilities(star).unwrap()
    });
    assert!(report("laplace categorical", &species, &p) >= 0.95);
    for link in [Link::Logit, Link::Probit] {
        let virginica: Vec<usize> = species.iter().map(|s| usize::from(*s == 2)).collect();
        let p = held_out(&x, &virginica, |x, y, star| {
            let model = Laplace::new(x, Observations::bernoulli(y, link).unwrap(), Rbf::new(4)).unwrap();
            let model = model.with_variance_prior(VARIANCE_PRIOR);
            let restarts =
                Restarts { runs: 2, max_iterations: limited().max_iterations, ..Restarts::default() };
            let fitted = restarts.fit(&model, &|_| ControlFlow::Continue(())).unwrap();
            fitted.model.approximation().unwrap().probabilities(star).unwrap()
        });
        assert!(report(&format!("laplace {link:?}"), &virginica, &p) >= 0.95);
    }
}

#[test]
fn irises_by_sparse_inference() {
    let (x, species) = irises();
    let p = held_out(&x, &species, |x, y, star| {
        let mut model = Svgp::new(x, Observations::categorical(y, 3).unwrap(), Rbf::new(4), 12, 0).unwrap();
        fit(&mut model, &limited(), &mut quiet).unwrap();
        model.probabilities(star).unwrap()
    });
    assert!(report("sparse categorical", &species, &p) >= 0.95);
    let virginica: Vec<usize> = species.iter().map(|s| usize::from(*s == 2)).collect();
    let p = held_out(&x, &virginica, |x, y, star| {
        let observations = Observations::bernoulli(y, Link::Logit).unwrap();
        let mut model = Svgp::new(x, observations, Rbf::new(4), 12, 0).unwrap();
        model.batch = Some(MiniBatch { rows: 40, seed: 0 });
        let how = Adam { learning_rate: 0.05, decay: 0.005, max_iterations: 600, ..Adam::default() };
        fit(&mut model, &how, &mut quiet).unwrap();
        model.probabilities(star).unwrap()
    });
    assert!(report("sparse Logit, batches", &virginica, &p) >= 0.95);
}

/// Counts of rate exp(2.5 + sin 2x + x/3) at random x.
fn counts(n: usize, seed: u64) -> (Mat, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let uniform = rand_distr::Uniform::new(-3.0, 3.0).unwrap();
    let x = Mat::from_fn(n, 1, |_, _| uniform.sample(&mut rng));
    let rate = |x: f64| (2.5 + (2.0 * x).sin() + x / 3.0).exp();
    let y = (0..n).map(|i| rand_distr::Poisson::new(rate(x[(i, 0)])).unwrap().sample(&mut rng)).collect();
    (x, y)
}

#[test]
fn intervals_of_counts_cover_what_they_promise() {
    let (x, y) = counts(150, 3);
    let (star, truth) = counts(1500, 4);
    let mut laplace = Laplace::new(x.clone(), Observations::poisson(&y).unwrap(), Rbf::new(1)).unwrap();
    fit(&mut laplace, &limited(), &mut quiet).unwrap();
    let at = laplace.approximation().unwrap();
    let mut sparse = Svgp::new(x, Observations::poisson(&y).unwrap(), Rbf::new(1), 15, 0).unwrap();
    fit(&mut sparse, &Lbfgs::default(), &mut quiet).unwrap();
    let (evidence, bound) = (at.log_evidence(), sparse.log_evidence(None).unwrap());
    assert!((evidence - bound).abs() < 1.0, "{evidence} against {bound}");
    let predictions = [
        ("laplace", at.rates(&star).unwrap(), at.latents(&star).unwrap()),
        ("sparse", sparse.rates(&star).unwrap(), sparse.latents(&star).unwrap()),
    ];
    let rule = Quadrature::new(20).unwrap();
    for (name, rates, latents) in predictions {
        for (level, tolerance) in [(0.5, 0.06), (0.9, 0.03), (0.95, 0.025)] {
            let found = coverage(&truth, &rates.mean, &rates.count_var, level).unwrap();
            println!("{name}: {found:.3} of the counts in the {level} interval");
            assert!((found - level).abs() < tolerance, "{name}: {found} for {level}");
        }
        let density =
            |i: usize| Poisson.log_predictive(truth[i], latents.mean[(i, 0)], latents.var[(i, 0)], &rule);
        let score = (0..truth.len()).map(density).sum::<f64>() / truth.len() as f64;
        println!("{name}: mean log density {score:.4}");
        assert!(score > -3.0);
    }
}
