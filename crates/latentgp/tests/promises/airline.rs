//! The airline series by the papers' protocol: windows of twelve months, the most recent first, 48 targets,
//! standardised by their mean and standard deviation. Exact regression reaches the known optimum, and free
//! simulation of 132 months from it gives the rows of the papers' table for the last 84.

use latentgp::Mat;
use latentgp::data::{Scale, airline, lags::Lags};
use latentgp::expectation::{Analytic, GaussHermite, MonteCarlo, Unscented};
use latentgp::kernel::{Kernel, Linear, Periodic, Rbf};
use latentgp::model::narx::{Narx, NarxOptions, Simulation};
use latentgp::model::{Model, Regression, RegressionOptions, Restarts};
use latentgp::param::{Parameterized, Transform};
use std::ops::ControlFlow;

/// The log evidence of the standardised targets that an independent program reaches from the same start
/// with the same transforms, softplus + 1e-6; printed with three digits. Other transforms end elsewhere.
const REACHED: f64 = -7.579;
const TOLERANCE: f64 = 1e-3;
const LAG: usize = 12;
const TARGETS: usize = 48;

#[test]
fn the_known_optimum_is_reached() {
    let series = airline::PASSENGERS;
    let known: Vec<f64> = series[LAG..LAG + TARGETS].to_vec();
    let mean = known.iter().sum::<f64>() / TARGETS as f64;
    let std = (known.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / TARGETS as f64).sqrt();
    let scaled: Vec<f64> = series.iter().map(|v| (v - mean) / std).collect();
    let x = Mat::from_fn(TARGETS, LAG, |i, j| scaled[i + LAG - 1 - j]);
    let y = Mat::column(&scaled[LAG..LAG + TARGETS]);
    let (mut rbf, mut linear) = (Rbf::new(LAG), Linear::new(LAG));
    for j in 0..LAG {
        let column = x.col(j);
        let mean = column.iter().sum::<f64>() / TARGETS as f64;
        let var = column.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / TARGETS as f64;
        rbf.lengthscale.value[(0, j)] = 10.0 * var.sqrt();
    }
    linear.variance.set(0.01 / LAG as f64);
    let options = RegressionOptions { scale: Scale::None, noise: 0.01, ..Default::default() };
    let mut start = Regression::with(x, y, rbf + linear, &options).expect("a model");
    let go = |_: &_| ControlFlow::Continue(());
    let best = Restarts { runs: 4, ..Default::default() }.fit(&start, &go).expect("a fit").evidence;
    start.params_mut().into_iter().for_each(|(_, p)| p.transform = Transform::Softplus { lo: 1e-6 });
    let fitted = Restarts::default().fit(&start, &go).expect("a fit");
    assert!(fitted.converged && (fitted.evidence - REACHED).abs() < TOLERANCE, "{}", fitted.evidence);
    assert!(best > REACHED, "restarts find better optima: {best}");
}

/// A row of the papers' table: ways to simulate, of which the scores are averaged, NLPD and RMSE; the papers
/// print no RMSE of Monte Carlo.
type Row = (Vec<Simulation>, f64, Option<f64>);

/// What the rows of a kernel may differ by.
struct Tolerance {
    evidence: f64,
    nlpd: f64,
    rmse: f64,
}

/// Ten runs of Monte Carlo vary among themselves, 24 nodes the most.
const MONTE_CARLO: f64 = 0.35;

fn monte_carlo(samples: usize) -> Vec<Simulation> {
    (0..10).map(|seed| Simulation::papers(MonteCarlo::new(samples, seed))).collect()
}

fn rows(kernel: impl Kernel + 'static, evidence: f64, within: &Tolerance, rows: &[Row]) {
    let known = Mat::column(&airline::PASSENGERS[..LAG + TARGETS]);
    let start = Narx::new(&known, None, Lags::new(LAG), kernel, &NarxOptions::default()).expect("a model");
    let model = start.papers_fit(&|_| ControlFlow::Continue(())).expect("a fit").model;
    let reached = model.varying_evidence(None).expect("an evidence");
    assert!((reached - evidence).abs() < within.evidence, "log evidence {reached} for {evidence}");
    let (first, after) = airline::PASSENGERS.split_at(LAG);
    for (runs, nlpd, rmse) in rows {
        let (mut ours, mut error) = (0.0, 0.0);
        for how in runs {
            let found = model.simulate(&Mat::column(first), None, after.len(), how).expect("a simulation");
            let score = found.score(&Mat::column(after), TARGETS).expect("a score").remove(0);
            ours += score.nlpd / runs.len() as f64;
            error += score.rmse / runs.len() as f64;
        }
        let name = format!("{:?}", runs[0].propagation);
        let wide = if runs.len() > 1 { MONTE_CARLO } else { within.nlpd };
        assert!((ours - nlpd).abs() < wide, "{name}: NLPD {ours} for {nlpd}");
        assert!(rmse.is_none_or(|r| (error - r).abs() < within.rmse), "{name}: RMSE {error} for {rmse:?}");
    }
}

#[test]
fn rows_of_rbf_and_linear() {
    rows(
        Rbf::new(LAG) + Linear::new(LAG),
        REACHED,
        &Tolerance { evidence: 2e-3, nlpd: 0.02, rmse: 0.02 },
        &[
            (vec![Simulation::certain()], 11.37, Some(69.40)),
            (vec![Simulation::papers(Analytic)], 7.08, Some(68.93)),
            (vec![Simulation::papers(GaussHermite::new(2))], 7.07, Some(68.88)),
            (vec![Simulation::papers(Unscented)], 7.10, Some(69.11)),
            (monte_carlo(24), 7.52, None),
            (monte_carlo(200), 7.09, None),
        ],
    );
}

/// The optimum lies in a flat valley, along which the forecasts move.
#[test]
fn rows_of_periodic_rbf_and_linear() {
    rows(
        Periodic::new(LAG) + Rbf::new(LAG) + Linear::new(LAG),
        -3.402,
        &Tolerance { evidence: 0.05, nlpd: 0.1, rmse: 1.2 },
        &[
            (vec![Simulation::certain()], 7.46, Some(44.98)),
            (vec![Simulation::papers(GaussHermite::new(2))], 5.20, Some(45.00)),
            (vec![Simulation::papers(Unscented)], 5.26, Some(45.27)),
            (monte_carlo(24), 5.41, None),
            (monte_carlo(200), 5.19, None),
        ],
    );
}
