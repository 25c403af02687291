//! Inputs that are known up to errors: what it costs to ignore these, to average over them, and to infer the inputs.
//!
//! `cargo run --release --example inferred_inputs` prints all of it; a word after it, such as `rbf`, `plane`, `counts` or
//! `learnt`, prints one part. Truths are uniform on ±3, and read with errors of standard deviation 0.3. `f` is the error of
//! the curve at certain inputs; NLPD and coverage are those of new rows whose inputs have errors of the same size.

use latentgp::fit::go_on;
use latentgp::metrics::{coverage, rmse};
use latentgp::model::{Answers, Regressor, Treatment};
use latentgp::recipe::{Data, Learnt, Recipe};
use latentgp::{Mat, Result};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Poisson, StandardNormal};

/// Standard deviation of the errors of the inputs.
const ERROR: f64 = 0.3;
/// Standard deviation of the noise.
const NOISE: f64 = 0.1;

type Function = fn(&[f64]) -> f64;
type Draw = fn(f64, &mut ChaCha8Rng) -> f64;

/// Rows of a simulated table.
struct Rows {
    /// As they were read.
    x: Mat,
    y: Mat,
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

fn uniform(n: usize, q: usize, rng: &mut ChaCha8Rng) -> Mat {
    Mat::from_fn(n, q, |_, _| 6.0 * rng.random::<f64>() - 3.0)
}

fn rows(n: usize, q: usize, error: f64, f: Function, draw: Draw, rng: &mut ChaCha8Rng) -> Rows {
    let truth = uniform(n, q, rng);
    let y = Mat::from_fn(n, 1, |i, _| draw(f(truth.row(i)), rng));
    Rows { x: Mat::from_fn(n, q, |i, j| truth[(i, j)] + error * normal(rng)), y }
}

fn noisy(f: f64, rng: &mut ChaCha8Rng) -> f64 {
    f + NOISE * normal(rng)
}

fn count(f: f64, rng: &mut ChaCha8Rng) -> f64 {
    Poisson::new(f.exp()).map_or(0.0, |counts| counts.sample(rng))
}

fn class(f: f64, rng: &mut ChaCha8Rng) -> f64 {
    f64::from(rng.random::<f64>() < 1.0 / (1.0 + (-f).exp()))
}

/// What is done about the errors; `None` ignores them.
const WAYS: [(&str, Option<Treatment>); 3] =
    [("ignored", None), ("averaged", Some(Treatment::Averaged)), ("inferred", Some(Treatment::Inferred))];

/// Fits a sparse regression; without a way the errors are not told.
fn fitted(of: &Recipe, rows: &Rows, std: Option<f64>, classes: usize) -> Result<Box<dyn Regressor>> {
    let x_std = std.map(|s| Mat::filled(rows.x.rows(), rows.x.cols(), s));
    let data = Data::Pairs { x: rows.x.clone(), x_std, y: rows.y.clone(), classes };
    match of.job(data, None)?.fit(Vec::new(), &go_on)?.model {
        Learnt::Regression(model) => Ok(model),
        _ => unreachable!("a regression was asked for"),
    }
}

/// Values: the table of one function.
fn values(title: &str, kernel: &str, q: usize, n: usize, f: Function) -> Result<()> {
    println!("\n{title}, {n} rows, kernel {kernel}");
    println!("seed  inputs     noise     f    NLPD  coverage of 90 %");
    for seed in 0..3 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (seen, new) = (rows(n, q, ERROR, f, noisy, &mut rng), rows(400, q, ERROR, f, noisy, &mut rng));
        let mut grid = uniform(400, q, &mut rng);
        grid.scale(0.9);
        let truth: Vec<f64> = (0..400).map(|i| f(grid.row(i))).collect();
        for (name, inputs) in WAYS {
            let recipe = Recipe {
                kernel: Some(kernel.into()),
                inputs,
                inducing: Some(if q == 1 { 20 } else { 50 }),
                ..Recipe::of("sparse")
            };
            let model = fitted(&recipe, &seen, inputs.map(|_| ERROR), 0)?;
            let var = inputs.map(|_| Mat::filled(400, q, ERROR * ERROR));
            let Answers::Values(curve) = model.predict(&grid, None)? else { unreachable!("values") };
            let answers = model.predict(&new.x, var.as_ref())?;
            let scores = answers.scores(&new.y)?;
            let Answers::Values(there) = &answers else { unreachable!("values") };
            let inside = coverage(new.y.as_slice(), there.mean.as_slice(), there.var.as_slice(), 0.9)?;
            println!(
                "{seed:<5} {name:<9} {:>6.3} {:>6.3} {:>6.3} {:>6.0} %",
                model.noise_variance().map_or(f64::NAN, |v| v[0].sqrt()),
                rmse(&truth, curve.mean.as_slice())?,
                scores[0].as_ref().and_then(|s| s.nlpd).unwrap_or(f64::NAN),
                100.0 * inside
            );
        }
    }
    Ok(())
}

/// Classes and counts: log loss over ten seeds.
fn likelihood(title: &str, expression: &str, classes: usize, f: Function, draw: Draw) -> Result<()> {
    println!("\n{title}: log loss of new rows");
    println!("seed  ignored averaged inferred");
    let mut sums = [0.0; 3];
    for seed in 0..10 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (seen, new) = (rows(300, 1, ERROR, f, draw, &mut rng), rows(1000, 1, ERROR, f, draw, &mut rng));
        print!("{seed:<5}");
        for (k, (_, inputs)) in WAYS.into_iter().enumerate() {
            let likelihood = Some(expression.into());
            let recipe = Recipe { likelihood, inputs, inducing: Some(20), ..Recipe::of("sparse") };
            let model = fitted(&recipe, &seen, inputs.map(|_| ERROR), classes)?;
            let var = inputs.map(|_| Mat::filled(1000, 1, ERROR * ERROR));
            let scores = model.predict(&new.x, var.as_ref())?.scores(&new.y)?;
            let loss = scores[0].as_ref().and_then(|s| s.log_loss.or(s.nlpd)).unwrap_or(f64::NAN);
            sums[k] += 0.1 * loss;
            print!(" {loss:>8.4}");
        }
        println!();
    }
    println!("mean  {:>8.4} {:>8.4} {:>8.4}", sums[0], sums[1], sums[2]);
    Ok(())
}

/// Errors whose standard deviation is learnt: two functions, two sizes, ten sets.
fn learnt() -> Result<()> {
    println!("\nerrors that are learnt");
    println!("function  true  learnt  told apart");
    let functions: [(&str, Function); 2] =
        [("sine", |x| (2.0 * x[0]).sin()), ("wave", |x| x[0] + (1.5 * x[0]).cos())];
    for (k, (name, f)) in (0..10).zip(functions.into_iter().cycle()) {
        let error = if k / 2 % 2 == 0 { 0.1 } else { 0.3 };
        let mut rng = ChaCha8Rng::seed_from_u64(100 + k);
        let seen = rows(300, 1, error, f, noisy, &mut rng);
        let recipe = Recipe { learn_errors: vec![0], inducing: Some(20), ..Recipe::of("sparse") };
        let model = fitted(&recipe, &seen, None, 0)?;
        for ((_, std), evidence) in model.learnt_errors().into_iter().zip(model.error_evidence()) {
            let clear = if evidence.is_clear() { "yes" } else { "no" };
            println!(
                "{name:<8} {error:>5.2} {std:>7.3}  {clear} ({:.1}, {:.1})",
                evidence.without, evidence.doubled
            );
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let part = std::env::args().nth(1);
    let wanted = |name: &str| part.as_ref().is_none_or(|p| p == name);
    if wanted("rbf") {
        values("sin 2x", "rbf", 1, 300, |x| (2.0 * x[0]).sin())?;
    }
    if wanted("matern32") {
        values("sin 2x", "matern32", 1, 300, |x| (2.0 * x[0]).sin())?;
    }
    if wanted("plane") {
        values("sin 1.5x + cos y + y/2", "rbf", 2, 500, |x| (1.5 * x[0]).sin() + x[1].cos() + 0.5 * x[1])?;
    }
    if wanted("counts") {
        likelihood("counts, exp(1 + sin 2x)", "poisson", 0, |x| 1.0 + (2.0 * x[0]).sin(), count)?;
    }
    if wanted("classes") {
        likelihood("two classes, 4 sin 2x", "bernoulli", 2, |x| 4.0 * (2.0 * x[0]).sin(), class)?;
    }
    if wanted("learnt") {
        learnt()?;
    }
    Ok(())
}
