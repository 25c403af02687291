//! GP-NARX: propagated moments against closed forms, bands against the truth, bad input.

use latentgp::data::{Scale, airline, lags::Lags};
use latentgp::expectation::{
    Analytic, Auto, Cubature5, Expectation, GaussHermite, MonteCarlo, QuasiMonteCarlo, Unscented,
};
use latentgp::kernel::{Constant, Linear, Matern32, Periodic, Rbf};
use latentgp::linalg::{self, Cholesky};
use latentgp::model::Restarts;
use latentgp::model::narx::*;
use latentgp::{Error, Mat};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::ops::ControlFlow;

const EXACT: f64 = 1e-6;

fn go(_: &latentgp::fit::Run) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn unscaled() -> NarxOptions {
    NarxOptions { scale: Scale::None, ..Default::default() }
}

fn rules() -> [Box<dyn Expectation>; 3] {
    [Box::new(Analytic), Box::new(Unscented), Box::new(GaussHermite::new(2))]
}

fn with(by: &dyn Expectation, correlated: bool) -> Simulation {
    let propagation = match correlated {
        true => Propagation::Correlated(by.boxed()),
        false => Propagation::Independent(by.boxed()),
    };
    Simulation { propagation, ..Default::default() }
}

/// A kernel far above the noise leaves the closed form no digits: `auto` sees that, and who asks for it is told.
#[test]
fn clean_series_are_forecast_by_nodes() {
    let noise = |t: usize| 1e-3 * (t as f64 * 12.9898).sin();
    let value = |t: usize| (t as f64 / 5.0).sin() + 0.5 * (t as f64 / 3.0).sin() + noise(t);
    let series = Mat::from_fn(110, 1, |t, _| value(t));
    let model = |variance: f64, lengthscale: f64, noise: f64| {
        let mut rbf = Rbf::new(13);
        rbf.variance.set(variance);
        rbf.lengthscale.value.fill(lengthscale);
        let kernel = rbf + Linear::new(13);
        let mut model = Narx::new(&series, None, Lags::new(13), kernel, &NarxOptions::default()).unwrap();
        model.noise_mut().set(noise);
        model
    };
    let clean = model(1e6, 300.0, 3e-6);
    for correlated in [true, false] {
        let how = with(&Auto, correlated);
        assert_eq!(clean.rule(&how).unwrap().unwrap().expression(), "unscented");
        let [found, nodes] =
            [&how, &with(&Unscented, correlated)].map(|how| clean.simulate(&series, None, 40, how).unwrap());
        assert_eq!(found, nodes);
        let refused =
            clean.simulate(&series, None, 40, &with(&Analytic, correlated)).unwrap_err().to_string();
        assert!(refused.contains("unscented"), "{refused}");
    }
    assert_eq!(model(1.0, 3.0, 0.1).rule(&with(&Auto, true)).unwrap().unwrap().expression(), "analytic");
}

/// An oscillation that obeys y_t = 2cos(ω) y_(t−1) − y_(t−2) exactly teaches a linear kernel these weights;
/// from a window of zeros the variance after h steps is σ² Σ ψ_j², ψ the impulse response.
#[test]
fn variances_of_a_known_linear_system_are_exact() {
    let (omega, noise, steps) = (0.5f64, 0.7, 20);
    let series = Mat::from_fn(300, 1, |t, _| 1000.0 * (omega * t as f64).sin());
    let mut model = Narx::new(&series, None, Lags::new(2), Linear::new(2), &unscaled()).unwrap();
    model.noise_mut().set(noise);
    let mut psi = vec![1.0, 2.0 * omega.cos()];
    while psi.len() < steps {
        psi.push(2.0 * omega.cos() * psi[psi.len() - 1] - psi[psi.len() - 2]);
    }
    let exact: Vec<f64> = (1..=steps).map(|h| noise * psi[..h].iter().map(|p| p * p).sum::<f64>()).collect();
    for rule in rules() {
        let found = model.simulate(&Mat::zeros(2, 1), None, steps, &with(&*rule, true)).unwrap();
        for (h, exact) in exact.iter().enumerate() {
            let error = (found.var[(h, 0)] / exact - 1.0).abs();
            assert!(error < EXACT, "{} at step {}: {error:.1e}", &*rule, h + 1);
        }
        let apart = model.simulate(&Mat::zeros(2, 1), None, steps, &with(&*rule, false)).unwrap();
        assert!((apart.var[(steps - 1, 0)] / exact[steps - 1] - 1.0).abs() > 0.1, "{}", &*rule);
    }
}

/// A noisy autoregression of two series with an exogenous input.
fn linear_system(n: usize) -> (Mat, Mat) {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut draw = move || -> f64 { StandardNormal.sample(&mut rng) };
    let u = Mat::from_fn(n, 1, |t, _| (0.3 * t as f64).sin());
    let mut y = Mat::zeros(n, 2);
    for t in 2..n {
        y[(t, 0)] =
            0.6 * y[(t - 1, 0)] - 0.3 * y[(t - 2, 0)] + 0.4 * y[(t - 1, 1)] + u[(t, 0)] + 0.3 * draw();
        y[(t, 1)] = 0.5 * y[(t - 1, 1)] - 0.2 * y[(t - 1, 0)] + 0.5 * u[(t - 1, 0)] + 0.3 * draw();
    }
    (y, u)
}

/// With weights w ~ N(ŵ, P), independent from step to step, mean, variance and covariance with the window are
/// ŵᵀμ, ŵᵀΣŵ + tr PΣ + μᵀPμ + σ² and Σŵ.
#[test]
fn moments_of_a_learned_linear_system_are_exact() {
    let (y, u) = linear_system(70);
    let known = y.slice_rows(0, 50);
    let lags = Lags::of_series(&[2, 1]).with_exogenous([0, 1]);
    let noise = 0.09;
    let mut model =
        Narx::new(&known, Some(&u.slice_rows(0, 50)), lags.clone(), Linear::new(5), &unscaled()).unwrap();
    model.noise_mut().set(noise);

    let table = lags.table(&known, Some(&u.slice_rows(0, 50))).unwrap();
    let mut precision = linalg::mul_tn(&table.x, &table.x);
    precision.scale(1.0 / noise);
    (0..5).for_each(|i| precision[(i, i)] += 1.0);
    let factor = Cholesky::new(&precision, "weights").unwrap();
    let mut w = factor.solve(&linalg::mul_tn(&table.x, &table.y));
    w.scale(1.0 / noise);
    let p = factor.inverse();

    let steps = 15;
    let (mut mean, mut cov) = (vec![known[(49, 0)], known[(48, 0)], known[(49, 1)]], Mat::zeros(5, 5));
    let (mut means, mut vars) = (Vec::new(), Vec::new());
    for h in 0..steps {
        let mu = Mat::column(&[mean[0], mean[1], mean[2], u[(50 + h, 0)], u[(49 + h, 0)]]);
        let m = linalg::mul_tn(&w, &mu);
        let weight = p.dot(&cov) + mu.dot(&linalg::mul(&p, &mu)) + noise;
        let cross = linalg::mul(&cov, &w);
        let mut own = linalg::mul_tn(&w, &cross);
        (0..2).for_each(|d| own[(d, d)] += weight);
        means.extend([m[(0, 0)], m[(1, 0)]]);
        vars.extend([own[(0, 0)], own[(1, 1)]]);
        let mut next = Mat::zeros(5, 5);
        let (new0, new2) = (0, 2);
        next[(new0, new0)] = own[(0, 0)];
        next[(new2, new2)] = own[(1, 1)];
        next[(1, 1)] = cov[(0, 0)];
        for (i, j, v) in [(0, 2, own[(0, 1)]), (1, 0, cross[(0, 0)]), (1, 2, cross[(0, 1)])] {
            next[(i, j)] = v;
            next[(j, i)] = v;
        }
        mean = vec![m[(0, 0)], mean[0], m[(1, 0)]];
        cov = next;
    }
    let ahead = u.slice_rows(0, 50 + steps);
    let more: [Box<dyn Expectation>; 1] = [Box::new(Cubature5)];
    for rule in rules().into_iter().chain(more) {
        let found = model.simulate(&known, Some(&ahead), steps, &with(&*rule, true)).unwrap();
        let worst = |a: &Mat, b: &[f64]| latentgp::check::relative_error(a.as_slice(), b, 0.0);
        assert!(worst(&found.mean, &means) < EXACT, "{}", &*rule);
        assert!(worst(&found.var, &vars) < EXACT, "{}", &*rule);
    }

    // Draws that forget their function have these moments, up to the error of 20,000 draws.
    let count = 20_000;
    let mut how = Simulation::trajectories(count, 1);
    how.propagation = Propagation::Trajectories { count, seed: 1, draws: Draws::Marginal };
    let drawn = model.simulate(&known, Some(&ahead), steps, &how).unwrap();
    for i in 0..2 * steps {
        let (m, v) = (drawn.mean.as_slice()[i], drawn.var.as_slice()[i]);
        assert!((m - means[i]).abs() < 5.0 * (vars[i] / count as f64).sqrt());
        assert!((v / vars[i] - 1.0).abs() < 0.06);
    }
}

/// The next value of a known system.
fn truth(recent: f64, before: f64, noise: f64) -> f64 {
    0.5 + 0.6 * (1.5 * recent).sin() - 0.4 * before + noise
}

#[test]
fn bands_cover_the_truth_at_every_horizon() {
    let (std, n, horizon, futures) = (0.1, 300, 20, 10_000);
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mut draw = || -> f64 { std * Distribution::<f64>::sample(&StandardNormal, &mut rng) };
    let mut y = vec![0.0, 0.0];
    while y.len() < n {
        y.push(truth(y[y.len() - 1], y[y.len() - 2], draw()));
    }
    let mut ahead = vec![Vec::with_capacity(futures); horizon];
    for _ in 0..futures {
        let (mut recent, mut before) = (y[n - 1], y[n - 2]);
        for values in &mut ahead {
            (recent, before) = (truth(recent, before, draw()), recent);
            values.push(recent);
        }
    }
    let series = Mat::column(&y);
    let start = Narx::new(&series, None, Lags::new(2), Rbf::new(2), &NarxOptions::default()).unwrap();
    let model = start.fit(&Restarts::default(), &go).unwrap().model;
    let ways = [
        Simulation::correlated(Analytic),
        Simulation::correlated(Unscented),
        Simulation::correlated(GaussHermite::new(3)),
        Simulation::correlated(QuasiMonteCarlo::new(256, 0)),
        Simulation::trajectories(2000, 0),
    ];
    for how in &ways {
        let found = model.simulate(&series, None, horizon, how).unwrap();
        for (h, values) in ahead.iter().enumerate() {
            let (mean, var) = (vec![found.mean[(h, 0)]; futures], vec![found.var[(h, 0)]; futures]);
            let share = latentgp::metrics::coverage(values, &mean, &var, 0.9).unwrap();
            assert!((0.85..=0.95).contains(&share), "{:?} at step {}: {share}", how.propagation, h + 1);
        }
    }
}

#[test]
fn every_expectation_runs_with_any_kernel_exact_and_sparse() {
    let (y, u) = linear_system(60);
    let lags = Lags::of_series(&[2, 2]).with_exogenous([0]);
    let inputs = u.slice_rows(0, 50);
    let known = y.slice_rows(0, 50);
    let rules: [Box<dyn Expectation>; 5] = [
        Box::new(Unscented),
        Box::new(GaussHermite::new(2)),
        Box::new(Cubature5),
        Box::new(MonteCarlo::new(100, 0)),
        Box::new(QuasiMonteCarlo::new(128, 0)),
    ];
    for inducing in [None, Some(15)] {
        let options = NarxOptions { inducing, ..Default::default() };
        let kernel = Matern32::new(5) + Linear::new(5);
        let mut start = Narx::new(&known, Some(&inputs), lags.clone(), kernel, &options).unwrap();
        start.wide_start();
        let how = Restarts { max_iterations: 30, ..Default::default() };
        let model = start.fit(&how, &go).unwrap().model;
        let certain = model.simulate(&known, Some(&u), 10, &Simulation::certain()).unwrap();
        for rule in &rules {
            for correlated in [false, true] {
                let mut how = with(&**rule, correlated);
                let plain = model.simulate(&known, Some(&u), 10, &how).unwrap();
                assert!(
                    (plain.mean[(0, 0)] - certain.mean[(0, 0)]).abs() < 1e-9,
                    "the first step is certain"
                );
                assert!(plain.var.as_slice().iter().all(|v| *v > 0.0));
                assert!(plain.score(&y.slice_rows(50, 60), 0).unwrap()[1].rmse < 1.5);
                assert!(plain.evaluations > certain.evaluations);
                let papers = Simulation::papers(Unscented);
                (how.training, how.start) = (papers.training, papers.start);
                model.simulate(&known, Some(&u), 10, &how).unwrap();
            }
        }
    }
}

/// Of a constant function, a future that keeps it has values whose correlation is that of the constant.
#[test]
fn a_future_keeps_its_function() {
    let series = Mat::from_fn(8, 1, |t, _| 0.5 * (t as f64).sin());
    let mut model = Narx::new(&series, None, Lags::new(1), Constant::new(), &unscaled()).unwrap();
    model.noise_mut().set(0.5);
    let constant = 1.0 / (1.0 + 7.0 / 0.5);
    let count = 20_000;
    for (draws, expected) in [(Draws::Function, constant), (Draws::Marginal, 0.0)] {
        let mut how = Simulation::certain();
        how.propagation = Propagation::Trajectories { count, seed: 5, draws };
        let found = model.simulate(&series, None, 3, &how).unwrap();
        let cov = found
            .trajectories
            .iter()
            .map(|t| (t[(0, 0)] - found.mean[(0, 0)]) * (t[(2, 0)] - found.mean[(2, 0)]) / count as f64);
        let cov: f64 = cov.sum();
        assert!((cov - expected).abs() < 0.02, "{draws:?}: {cov} against {expected}");
        assert!((found.var[(2, 0)] / (constant + 0.5) - 1.0).abs() < 0.05);
        let again = model.simulate(&series, None, 3, &how).unwrap();
        assert_eq!(again, found);
        let one = rayon_pool(1).install(|| model.simulate(&series, None, 3, &how).unwrap());
        assert_eq!(one, found);
    }
}

fn rayon_pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

#[test]
fn rolling_origins_see_the_past_alone() {
    let series = Mat::column(&airline::PASSENGERS[..80]);
    let mut other = series.clone();
    (70..80).for_each(|t| other[(t, 0)] = 1.0);
    let kernel = Rbf::new(3) + Linear::new(3);
    let way = [Simulation::certain(), Simulation::correlated(Unscented)];
    for refit in [Refit::Once, Refit::Always] {
        let test = Backtest {
            first: 50,
            horizon: 8,
            stride: 10,
            refit,
            memory: Some(45),
            fitting: Restarts { max_iterations: 15, ..Default::default() },
        };
        let run = |series: &Mat| {
            test.run(series, None, &Lags::new(3), &kernel, &NarxOptions::default(), true, &way, &go).unwrap()
        };
        let (a, b) = (run(&series), run(&other));
        assert_eq!(a[1].origins, [50, 60, 70]);
        for i in 0..3 {
            assert_eq!(a[1].forecasts[i], b[1].forecasts[i]);
        }
        assert!(b[1].overall[0].rmse > a[1].overall[0].rmse);
        assert_eq!((a[0].by_step.len(), a[0].by_step[7][0].count, a[0].overall[0].count), (8, 3, 24));
    }
    let short = Backtest { first: 4, ..Default::default() };
    let run = |test: &Backtest| {
        test.run(&series, None, &Lags::new(3), &kernel, &NarxOptions::default(), true, &way, &go)
    };
    assert!(run(&short).unwrap_err().to_string().contains("first origin"));
    assert!(run(&Backtest { horizon: 0, ..Default::default() }).is_err());
}

#[test]
fn bad_input_is_named() {
    let series = Mat::column(&airline::PASSENGERS[..40]);
    let new = |s: &Mat, u: Option<&Mat>, lags: Lags| {
        let kernel = Rbf::new(lags.width());
        Narx::new(s, u, lags, kernel, &NarxOptions::default())
    };
    let said = |found: latentgp::Result<Narx>| found.err().expect("an error").to_string();
    assert!(said(new(&series.slice_rows(0, 12), None, Lags::new(12))).contains("longest lag, 12"));
    assert!(said(new(&series.slice_rows(0, 13), None, Lags::new(12))).contains("only one time step"));
    let mut holed = series.clone();
    holed[(7, 0)] = f64::NAN;
    assert!(new(&holed, None, Lags::new(3)).is_ok());
    let mut infinite = series.clone();
    infinite[(7, 0)] = f64::INFINITY;
    assert!(said(new(&infinite, None, Lags::new(3))).contains("row 8 of series 1"));
    assert!(said(new(&Mat::filled(30, 1, 0.1), None, Lags::new(3))).contains("nothing to learn"));
    let with_input = Lags::new(3).with_exogenous([0]);
    assert!(said(new(&series, Some(&Mat::zeros(39, 1)), with_input)).contains("rows of the exogenous"));
    let narrow = Narx::new(&series, None, Lags::new(3), Rbf::new(2), &NarxOptions::default());
    assert!(matches!(narrow.err(), Some(Error::Shape { .. })));

    let model = new(&series, None, Lags::new(3)).unwrap();
    let run = |history: &Mat, u: Option<&Mat>, steps: usize, how: &Simulation| {
        model.simulate(history, u, steps, how).unwrap_err().to_string()
    };
    let how = Simulation::default();
    assert!(run(&series, None, 0, &how).contains("horizon"));
    assert!(run(&series.slice_rows(0, 2), None, 5, &how).contains("fewer than the longest lag"));
    assert!(model.simulate(&holed, None, 5, &how).is_ok());
    assert!(run(&infinite, None, 5, &how).contains("row 8"));
    assert!(run(&series, Some(&Mat::zeros(45, 1)), 5, &how).contains("columns of the exogenous"));
    assert!(run(&series, None, 5, &Simulation::trajectories(1, 0)).contains("at least 2"));
    assert!(run(&series, None, 5, &Simulation::trajectories(usize::MAX, 0)).contains("at most"));
    assert!(run(&series, None, 5, &Simulation::independent(GaussHermite::new(60))).contains("nodes"));
    let negative = Simulation { start: StartVariance::Value(-1.0), ..Simulation::default() };
    assert!(run(&series, None, 5, &negative).contains("start variance"));

    let kernel = Periodic::new(3) + Linear::new(3);
    let periodic = Narx::new(&series, None, Lags::new(3), kernel, &NarxOptions::default()).unwrap();
    for correlated in [false, true] {
        let found = periodic.simulate(&series, None, 5, &with(&Analytic, correlated));
        assert!(matches!(found, Err(Error::NoClosedForm { .. })));
    }

    // y_t = 10 y_(t−1) leaves the range of numbers.
    let growing = Mat::from_fn(12, 1, |t, _| 10f64.powi(t as i32));
    let mut model = Narx::new(&growing, None, Lags::new(1), Linear::new(1), &unscaled()).unwrap();
    model.noise_mut().set(1e-3);
    for how in [Simulation::certain(), Simulation::correlated(Unscented), Simulation::trajectories(3, 0)] {
        let wrong = model.simulate(&growing, None, 400, &how).unwrap_err();
        assert!(matches!(&wrong, Error::NotFinite { .. }), "{wrong}");
    }
}
