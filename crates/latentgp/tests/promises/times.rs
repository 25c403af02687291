//! Known capture times as a prior of a latent column: data of a process in time, times with an error, some missing.

use latentgp::expectation::Gaussians;
use latentgp::kernel::{Kernel, Rbf};
use latentgp::linalg::{self, Cholesky};
use latentgp::model::{BayesianGplvm, Model, Training, prior};
use latentgp::{Mat, param};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::ops::ControlFlow;

const ROWS: usize = 60;
/// Rows that are kept back to be projected.
const NEW: usize = 10;
const OUTPUTS: usize = 5;
/// A latent time is so many days.
const DAYS: f64 = 4.0;

struct Simulated {
    y: Mat,
    /// The days of the rows as they are, and as they were noted.
    truth: Vec<f64>,
    noted: Vec<f64>,
}

/// y_d = f_d(τ) + ε with f_d ~ GP(0, rbf), τ ~ N(0, 1), ε ~ N(0, 0.1²); the noted latent times have the given error.
fn simulate(error: f64, seed: u64) -> Simulated {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = |_: usize, _: usize| -> f64 { StandardNormal.sample(&mut rng) };
    let n = ROWS + NEW;
    let tau = Mat::from_fn(n, 1, &mut normal);
    let mut kernel = Rbf::new(1);
    kernel.lengthscale.set(1.5);
    let mut k = Mat::zeros(n, n);
    kernel.gram(&tau, &mut k);
    (0..n).for_each(|i| k[(i, i)] += 1e-8);
    let mut y = linalg::mul(Cholesky::new(&k, "K").unwrap().l(), &Mat::from_fn(n, OUTPUTS, &mut normal));
    y.add_scaled(0.1, &Mat::from_fn(n, OUTPUTS, &mut normal));
    let truth: Vec<f64> = tau.as_slice().iter().map(|t| 20.0 + DAYS * t).collect();
    let noted = truth.iter().map(|day| day + DAYS * error * normal(0, 0)).collect();
    Simulated { y, truth, noted }
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let (ma, mb) = (mean(a), mean(b));
    let dot = |x: &[f64], y: &[f64], mx: f64, my: f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum()
    };
    dot(a, b, ma, mb) / (dot(a, a, ma, ma) * dot(b, b, mb, mb)).sqrt()
}

/// A fit of the first rows with these times, and with what the expression says of them.
fn fit(of: &Simulated, expression: &str, noted: &[f64]) -> BayesianGplvm {
    let days = vec![noted[..ROWS].to_vec()];
    let prior = prior::parse(expression).unwrap().bind(ROWS, 2, &days).unwrap();
    let training = Training { inducing: 15, max_iterations: 400, prior: Some(prior), ..Training::default() };
    let y = of.y.slice_rows(0, ROWS);
    training.fit(&y, &Rbf::new(2), &|_| ControlFlow::Continue(())).unwrap().model
}

#[test]
fn the_latent_column_is_nearer_to_the_times_than_what_was_noted() {
    for (error, seed) in [(0.05, 1), (0.05, 2), (0.3, 3)] {
        let data = simulate(error, seed);
        let model = fit(&data, &format!("times(column=day, std={})", DAYS * error), &data.noted);
        let given = correlation(&data.noted[..ROWS], &data.truth[..ROWS]);
        let found = correlation(&model.mean.value.col(0), &data.truth[..ROWS]);
        assert!(found > 0.95 && found > given, "error {error}, seed {seed}: {found} against {given}");
    }
}

#[test]
fn rows_without_a_time_and_new_rows_find_theirs() {
    let data = simulate(0.05, 4);
    let holed: Vec<f64> =
        data.noted.iter().enumerate().map(|(i, t)| if i % 4 == 0 { f64::NAN } else { *t }).collect();
    let model = fit(&data, "times(column=day, std=0.2)", &holed);
    let hidden: Vec<usize> = (0..ROWS).step_by(4).collect();
    let pick = |from: &[f64]| hidden.iter().map(|&i| from[i]).collect::<Vec<_>>();
    let found = correlation(&pick(&model.mean.value.col(0)), &pick(&data.truth));
    assert!(found > 0.95, "rows without a time: {found}");

    let (posterior, new) = (model.posterior().unwrap(), data.y.slice_rows(ROWS, ROWS + NEW));
    let alone = model.project_with(&posterior, &new).unwrap();
    assert!(correlation(&alone.q.mean.col(0), &data.truth[ROWS..]) > 0.95);
    let known = [data.noted[ROWS..].to_vec()];
    let timed = model.project_knowing(&posterior, &new, &known).unwrap();
    let prior = model.prior.new_rows(NEW, &known).unwrap();
    let off =
        |q: &Gaussians| -> f64 { (0..NEW).map(|i| (q.mean[(i, 0)] - prior.mean[(i, 0)]).powi(2)).sum() };
    assert!(off(&timed.q) < off(&alone.q));
    // A time narrows the posterior, and is the posterior where nothing else is known.
    assert!((0..NEW).all(|i| timed.q.var[(i, 0)] < alone.q.var[(i, 0)]));
    let nothing = Mat::filled(NEW, OUTPUTS, f64::NAN);
    let blank = model.project_knowing(&posterior, &nothing, &known).unwrap().q;
    assert!((0..NEW).all(|i| (blank.mean[(i, 0)] - prior.mean[(i, 0)]).abs() < 1e-5));
    // A training row with its own time is where it was; with another it is not.
    let (row, mut day) = (data.y.slice_rows(1, 2), vec![vec![data.noted[1]]]);
    let same = model.project_knowing(&posterior, &row, &day).unwrap().q;
    assert_eq!(same.mean.row(0), model.mean.value.row(1));
    day[0][0] += 0.5;
    assert!(model.project_knowing(&posterior, &row, &day).unwrap().q.mean[(0, 0)] > same.mean[(0, 0)]);
    let filled = model.impute_knowing(&posterior, &nothing, &known).unwrap();
    let day_of = |i: usize| correlation(filled.y.row(i), data.y.row(ROWS + i));
    assert!((0..NEW).all(|i| day_of(i) > 0.9), "{:?}", (0..NEW).map(day_of).collect::<Vec<_>>());
}

#[test]
fn the_error_of_the_times_is_learnt() {
    let data = simulate(0.3, 5);
    let model = fit(&data, "times(column=day, std=0.3, learn=true)", &data.noted);
    let std = param::values(&*model.prior)[0];
    assert!((0.7..1.8).contains(&std), "{std} for an error of {} days", 0.3 * DAYS);
}
