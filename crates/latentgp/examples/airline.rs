//! Airline passengers by the protocol of the unscented GPLVM paper, its Table 3 beside ours.
//!
//! Twelve lags; months 13 to 60 are the training targets; free simulation of 132 months from the first
//! window, the last 84 scored in thousands of passengers. The hyperparameters are those of exact regression
//! from the papers' start, by L-BFGS. Run it with `cargo run --release --example airline`.

use latentgp::data::{airline, lags::Lags};
use latentgp::expectation::{Analytic, Expectation, GaussHermite, MonteCarlo, Unscented};
use latentgp::kernel::{Kernel, Linear, Periodic, Rbf};
use latentgp::model::Model;
use latentgp::model::narx::{Forecast, Narx, NarxOptions, Score, Simulation};
use latentgp::{Mat, Result};
use std::ops::ControlFlow;
use std::time::Instant;

const LAG: usize = 12;
const TRAINING: usize = 48;

/// NLPD and RMSE of the papers, where they give both.
type Theirs = (Option<f64>, Option<f64>);

fn simulate(model: &Narx, how: &Simulation) -> Result<(Score, Forecast)> {
    let (known, after) = airline::PASSENGERS.split_at(LAG);
    let forecast = model.simulate(&Mat::column(known), None, after.len(), how)?;
    let score = forecast.score(&Mat::column(after), TRAINING)?.remove(0);
    Ok((score, forecast))
}

fn row(name: &str, model: &Narx, runs: &[Simulation], theirs: Theirs) -> Result<()> {
    let clock = Instant::now();
    let (mut nlpd, mut rmse, mut evaluations, mut coverage) = (0.0, 0.0, 0.0, 0.0);
    for how in runs {
        let (score, forecast) = simulate(model, how)?;
        nlpd += score.nlpd / runs.len() as f64;
        rmse += score.rmse / runs.len() as f64;
        coverage += score.coverage[1] / runs.len() as f64;
        evaluations += forecast.evaluations / runs.len() as f64;
    }
    let seconds = clock.elapsed().as_secs_f64() / runs.len() as f64;
    let text = |v: Option<f64>| v.map_or("–".to_string(), |v| format!("{v:.2}"));
    let (n, r) = (text(theirs.0), text(theirs.1));
    println!(
        "{name:<22} {n:>6} / {r:>5}   {nlpd:>6.2} / {rmse:>5.2}   {coverage:>5.2} {evaluations:>12.0} {seconds:>9.3}"
    );
    Ok(())
}

fn table(name: &str, kernel: impl Kernel + 'static, theirs: &[(&str, Theirs)]) -> Result<()> {
    let series = Mat::column(&airline::PASSENGERS[..LAG + TRAINING]);
    let start = Narx::new(&series, None, Lags::new(LAG), kernel, &NarxOptions::default())?;
    let clock = Instant::now();
    let fitted = start.papers_fit(&|_| ControlFlow::Continue(()))?;
    let model = fitted.model;
    println!(
        "{name}: log evidence of the scaled data {:.3}, noise {:.5}, {} iterations, {:.1} s",
        model.varying_evidence(None)?,
        model.noise().get(),
        fitted.iterations,
        clock.elapsed().as_secs_f64()
    );
    println!(
        "{:<22} {:>14}   {:>14}   {:>5} {:>12} {:>9}",
        "NLPD / RMSE", "paper", "here", "90 %", "kernels", "s"
    );
    for (method, theirs) in theirs {
        let monte_carlo = |samples: usize| -> Vec<Simulation> {
            (0..10).map(|seed| Simulation::papers(MonteCarlo::new(samples, seed))).collect()
        };
        let one = |by: Box<dyn Expectation>| {
            let mut how = Simulation::papers(Analytic);
            how.propagation = latentgp::model::narx::Propagation::Independent(by);
            vec![how]
        };
        let runs = match *method {
            "GP-NARX" => vec![Simulation::certain()],
            "analytic" => one(Box::new(Analytic)),
            "Gauss-Hermite 4096" => one(Box::new(GaussHermite::new(2))),
            "unscented 24" => one(Box::new(Unscented)),
            "Monte Carlo 24" => monte_carlo(24),
            "Monte Carlo 200" => monte_carlo(200),
            _ => monte_carlo(4096),
        };
        row(method, &model, &runs, *theirs)?;
    }
    println!("carrying the covariance of the window, starting from certain values:");
    row("  unscented", &model, &[Simulation::correlated(Unscented)], (None, None))?;
    row("  trajectories 1000", &model, &[Simulation::trajectories(1000, 0)], (None, None))?;
    println!();
    Ok(())
}

fn main() -> Result<()> {
    let both = |nlpd: f64, rmse: f64| (Some(nlpd), Some(rmse));
    table(
        "rbf + linear",
        Rbf::new(LAG) + Linear::new(LAG),
        &[
            ("GP-NARX", both(11.37, 69.40)),
            ("analytic", both(7.08, 68.93)),
            ("Gauss-Hermite 4096", both(7.07, 68.88)),
            ("unscented 24", both(7.10, 69.11)),
            ("Monte Carlo 24", (Some(7.52), None)),
            ("Monte Carlo 200", (Some(7.09), None)),
            ("Monte Carlo 4096", (Some(7.07), None)),
        ],
    )?;
    table(
        "periodic + rbf + linear",
        Periodic::new(LAG) + Rbf::new(LAG) + Linear::new(LAG),
        &[
            ("GP-NARX", both(7.46, 44.98)),
            ("Gauss-Hermite 4096", both(5.20, 45.00)),
            ("unscented 24", both(5.26, 45.27)),
            ("Monte Carlo 24", (Some(5.41), None)),
            ("Monte Carlo 200", (Some(5.19), None)),
            ("Monte Carlo 4096", (Some(5.19), None)),
        ],
    )
}
