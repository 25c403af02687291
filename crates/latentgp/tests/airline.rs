//! Exact regression reaches the known optimum on the airline series: windows of twelve months, the most
//! recent first, 48 targets, standardised by their mean and standard deviation.

use latentgp::Mat;
use latentgp::data::{Scale, airline};
use latentgp::kernel::{Linear, Rbf};
use latentgp::model::{Regression, RegressionOptions, Restarts};
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
