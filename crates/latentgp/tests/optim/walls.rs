//! Objectives that cannot be evaluated everywhere.

use crate::problems::rosenbrock;
use latentgp::optim::{Lbfgs, Optimizer, Report, StopReason, quiet};
use latentgp::{Error, Result};

const NEAR: f64 = 1e-4;

fn indefinite() -> Error {
    Error::NotPositiveDefinite { what: "K".into(), jitter: 1e-6 }
}

fn minimize(u: &mut [f64], mut f: impl FnMut(&[f64], &mut [f64]) -> Result<f64>) -> Report {
    let mut last = f64::INFINITY;
    let mut falls = |step: &latentgp::optim::Step<'_>| {
        assert!(step.value <= last, "the value went up from {last} to {}", step.value);
        last = step.value;
        quiet(step)
    };
    Lbfgs::default().minimize(u, &mut f, &mut falls).unwrap()
}

#[test]
fn an_error_region_beside_the_path_is_avoided() {
    let (mut refused, mut u) = (0, [-1.2, 1.0]);
    let report = minimize(&mut u, |u, g| {
        // The valley of the function, with little room to overshoot.
        if (u[1] - u[0] * u[0]).abs() > 0.5 || u[0] > 1.05 {
            refused += 1;
            return Err(indefinite());
        }
        rosenbrock(u, g)
    });
    assert!(report.converged, "{}", report.stop_reason);
    assert!(refused > 0, "the wall was never met");
    assert!(u.iter().all(|u| (u - 1.0).abs() < NEAR), "{u:?}");
}

#[test]
fn nan_beyond_a_point_is_a_wall_too() {
    // √(2 − u) and ln u: NaN on both sides of the minimum at 1, where f' = 1/(2√(2 − u)) − 1/(2u) = 0.
    let f = |u: &[f64], g: &mut [f64]| {
        let (value, slope) = (-(2.0 - u[0]).sqrt() - 0.5 * u[0].ln(), 0.5 / (2.0 - u[0]).sqrt() - 0.5 / u[0]);
        g[0] = slope;
        Ok(value)
    };
    for start in [1e-9, 0.3, 1.9, 2.0 - 1e-9] {
        let mut u = [start];
        let report = minimize(&mut u, f);
        assert!(report.converged && (u[0] - 1.0).abs() < NEAR, "from {start}: {u:?}, {report:?}");
    }
}

#[test]
fn a_minimum_behind_the_wall_ends_at_the_wall() {
    let mut u = [-3.0, 2.0];
    let report = minimize(&mut u, |u, g| {
        if u[0] > 1.0 {
            return Err(indefinite());
        }
        g.copy_from_slice(&[2.0 * (u[0] - 2.0), 2.0 * u[1]]);
        Ok((u[0] - 2.0).powi(2) + u[1] * u[1])
    });
    assert_eq!((report.stop_reason, report.converged), (StopReason::LineSearch, false));
    assert!(u[0] <= 1.0 && u[0] > 1.0 - NEAR, "{u:?}");
    assert!(report.evaluations < 100, "{}", report.evaluations);
}

#[test]
fn nothing_but_the_start_can_be_evaluated() {
    let mut u = [0.5, 0.5];
    let report = minimize(&mut u, |u, g| {
        if u != [0.5, 0.5] {
            return Err(Error::NotFinite { what: "f".into() });
        }
        rosenbrock(u, g)
    });
    assert_eq!((u, report.stop_reason, report.iterations), ([0.5, 0.5], StopReason::LineSearch, 0));
}

#[test]
fn an_objective_without_a_minimum_ends() {
    let mut u = [0.0];
    let how = Lbfgs { max_iterations: 50, ..Lbfgs::default() };
    let mut fall = |u: &[f64], g: &mut [f64]| {
        g[0] = -1.0;
        Ok(-u[0])
    };
    let report = how.minimize(&mut u, &mut fall, &mut quiet).unwrap();
    assert!(!report.converged && u[0].is_finite() && u[0] > 0.0);
}
