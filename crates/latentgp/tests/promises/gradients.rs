//! Every adjoint against central differences: kernels alone, and every kernel × every expectation.

use latentgp::data::{Scale, Scaling};
use latentgp::expectation::{self, Expectation, Gaussians, MonteCarlo, QuasiMonteCarlo};
use latentgp::kernel::{self, Kernel};
use latentgp::linalg::Cholesky;
use latentgp::model::{BayesianGplvm, Model, Outputs};
use latentgp::{Mat, check, param};

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

/// The noise of these bounds.
const NOISE: f64 = 0.01;

/// What the bound of a cell would lose if Ψ2 were whitened as a whole.
fn rounding(kernel: &dyn Kernel, z: &Mat) -> f64 {
    let mut kzz = Mat::zeros(z.rows(), z.rows());
    kernel.gram(z, &mut kzz);
    (0..z.rows()).for_each(|i| kzz[(i, i)] += 1e-6);
    let condition = Cholesky::new(&kzz, "Kzz").unwrap().condition();
    f64::EPSILON * condition * kzz.trace() / z.rows() as f64 / NOISE
}

/// Where nodes are drawn anew the bound is whitened as a whole: the same draws, held, show what that loses.
#[test]
fn draws_made_anew_lose_little_where_kzz_is_ill_conditioned() {
    let y = Mat::from_fn(70, 2, |i, j| (0.9 * i as f64 + 2.0 * j as f64).sin());
    let kernel = kernel::parse("matern32(lengthscale=40)", DIM).unwrap();
    let z = points(9, 0.7);
    assert!((1e-10..1e-5).contains(&rounding(&*kernel, &z)));
    let of = |fresh: bool| {
        let mut rule = MonteCarlo::new(30, 2);
        rule.fresh = fresh;
        let scaling = Scaling::fit(&y, Scale::None).unwrap();
        let (outputs, q) = (Outputs::new(y.clone()), inputs(70));
        let model = BayesianGplvm::new(outputs, scaling, kernel.boxed(), Box::new(rule), q, z.clone(), NOISE);
        let model = model.unwrap();
        let mut grad = vec![0.0; param::count(&model)];
        let value = model.log_evidence(Some(&mut grad)).unwrap();
        (value, grad, model.posterior().unwrap().predict(&points(5, 0.3)).unwrap())
    };
    let ((held, slopes, expected), (anew, own, found)) = (of(false), of(true));
    assert_eq!(found, expected, "a posterior is computed once, with all its digits");
    assert!(held != anew, "one of them went the other way");
    assert!((held - anew).abs() < 140.0 * 1e-5, "{held} {anew}");
    assert!(check::relative_error(&own, &slopes, 0.0) < 1e-4);
}

/// Long lengthscales and little noise: Ψ2 is whitened block by block, and what that computes leads back.
#[test]
fn bounds_of_an_ill_conditioned_kzz_have_their_gradients() {
    for (kernel, rule) in [
        ("rbf(lengthscale=3)", "analytic"),
        ("rbf(lengthscale=4, ard=false)", "analytic"),
        ("matern32(lengthscale=40)", "unscented"),
        ("matern52(lengthscale=20)", "gauss_hermite(points=2)"),
        ("mlp(hidden=[4, 3], base=rbf)", "cubature5"),
    ] {
        let y = Mat::from_fn(70, 2, |i, j| (0.9 * i as f64 + 2.0 * j as f64).sin());
        let scaling = Scaling::fit(&y, Scale::None).unwrap();
        let kernel = kernel::parse(kernel, DIM).unwrap();
        let rule = expectation::parse(rule).unwrap();
        let what = format!("{kernel} by {rule}");
        let (q, z) = (inputs(70), points(9, 0.7));
        assert!(rounding(&*kernel, &z) > 1e-10, "{what} is not whitened so");
        let mut model = BayesianGplvm::new(Outputs::new(y), scaling, kernel, rule, q, z, NOISE).unwrap();
        let mut grad = vec![0.0; param::count(&model)];
        let value = model.log_evidence(Some(&mut grad)).unwrap();
        assert_eq!(value, model.log_evidence(None).unwrap(), "{what}");
        let theta = param::values(&model);
        // Of the many positions a few are enough.
        let some: Vec<usize> = (0..theta.len()).filter(|i| *i < 40 || i % 29 == 0).collect();
        let at: Vec<f64> = some.iter().map(|i| theta[*i]).collect();
        let slopes = check::differences(&at, |at| {
            let mut moved = theta.clone();
            some.iter().zip(at).for_each(|(i, v)| moved[*i] = *v);
            param::set_values(&mut model, &moved);
            model.log_evidence(None).unwrap()
        });
        let own: Vec<f64> = some.iter().map(|i| grad[*i]).collect();
        let error = check::relative_error(&own, &slopes, 0.0);
        assert!(error < 1e-6, "{what}: {error:e}");
    }
}
