//! Every adjoint against central differences: kernels alone, and every kernel × every expectation.

use latentgp::expectation::{self, Expectation, Gaussians, MonteCarlo, QuasiMonteCarlo};
use latentgp::kernel::{self, Kernel};
use latentgp::{Mat, check};

const DIM: usize = 3;
/// Relative agreement of adjoints and differences.
const TOLERANCE: f64 = 1e-6;

fn points(n: usize, phase: f64) -> Mat {
    Mat::from_fn(n, DIM, |i, j| (2.3 * i as f64 + 1.1 * j as f64 + phase).sin())
}

fn inputs(n: usize) -> Gaussians {
    let var = Mat::from_fn(n, DIM, |i, j| 0.3 + 0.2 * (1.7 * i as f64 - 0.4 * j as f64).cos());
    Gaussians::new(points(n, 0.1), var).unwrap()
}

fn compositions() -> Vec<Box<dyn Kernel>> {
    [
        "rbf + linear",
        "rbf + linear + constant + white",
        "rbf(dims=[0, 2]) * linear(dims=[1])",
        "rbf(dims=[0]) * rbf(dims=[1]) * rbf(dims=[2]) + linear(ard=false)",
        "linear(dims=[0]) * linear(dims=[1, 2]) + rbf(lengthscale=0.7) + rbf(ard=false, lengthscale=2)",
        "(rbf(dims=[0]) + linear(dims=[0])) * (constant + linear(dims=[1, 2]))",
        "periodic * rbf + linear",
        "matern32(dims=[0, 1]) * periodic(dims=[2]) + matern52",
        "mlp(hidden=[4, 3], base=matern32)",
    ]
    .iter()
    .map(|e| kernel::parse(e, DIM).unwrap_or_else(|err| panic!("{e}: {err}")))
    .collect()
}

fn all_kernels() -> Vec<Box<dyn Kernel>> {
    // A network has a kink wherever a unit switches; the small one among the compositions has few.
    let smooth = kernel::names().iter().filter(|entry| entry.name != "mlp");
    let named = smooth.map(|entry| kernel::parse(entry.name, DIM).unwrap());
    named.chain(compositions()).collect()
}

/// Every expectation by name, with few draws where draws are many by default.
fn all_expectations() -> Vec<Box<dyn Expectation>> {
    let few = |name: &str| -> Box<dyn Expectation> {
        match name {
            "monte_carlo" => Box::new(MonteCarlo::new(7, 1)),
            "quasi_monte_carlo" => Box::new(QuasiMonteCarlo::new(8, 1)),
            other => expectation::parse(other).unwrap(),
        }
    };
    expectation::names().map(|(name, _)| few(name)).collect()
}

#[test]
fn every_kernel_obeys_the_laws() {
    for k in all_kernels() {
        check::kernel(&*k, &points(6, 0.0), &points(5, 0.7), TOLERANCE)
            .unwrap_or_else(|e| panic!("{k}: {e}"));
    }
}

#[test]
fn every_kernel_times_every_expectation() {
    let (q, z) = (inputs(5), points(4, 0.7));
    let mut closed = 0;
    for k in all_kernels() {
        for e in all_expectations() {
            match e.check(&*k, DIM) {
                Ok(()) => check::psi_adjoint(&*e, &*k, &q, &z, TOLERANCE)
                    .unwrap_or_else(|err| panic!("{k} by {e}: {err}")),
                Err(_) => assert!(e.to_string() == "analytic" && k.closed_form().is_none(), "{k} by {e}"),
            }
        }
        closed += usize::from(k.closed_form().is_some());
    }
    assert!(closed >= 10, "rbf, linear, constant, white and six compositions have closed forms");
}
