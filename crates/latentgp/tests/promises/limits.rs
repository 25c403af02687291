//! Approximations against their limits, and the same number by a second way.

use latentgp::data::{Scale, Scaling};
use latentgp::expectation::{
    self, Analytic, Expectation, GaussHermite, Gaussians, MonteCarlo, QuasiMonteCarlo, Unscented,
};
use latentgp::kernel::{self, Kernel, Matern32, Rbf};
use latentgp::linalg::{self, Cholesky};
use latentgp::model::prior::Normal;
use latentgp::model::{BayesianGplvm, Jitter, Model, Outputs, Training};
use latentgp::{Mat, check, param};
use std::ops::ControlFlow;

const DIM: usize = 2;

fn points(n: usize, phase: f64) -> Mat {
    Mat::from_fn(n, DIM, |i, j| 1.2 * (2.3 * i as f64 + 1.1 * j as f64 + phase).sin())
}

fn inputs(n: usize, scale: f64) -> Gaussians {
    let var = Mat::from_fn(n, DIM, |i, j| scale * (0.5 + 0.3 * (1.7 * i as f64 - 0.4 * j as f64).cos()));
    Gaussians::new(points(n, 0.1), var).unwrap()
}

fn outputs(n: usize, d: usize) -> Mat {
    Mat::from_fn(n, d, |i, j| (1.3 * i as f64 + 0.8 * j as f64).sin() + 0.1 * ((i * d + j) as f64).cos())
}

fn unscaled(d: usize) -> Scaling {
    Scaling { mean: vec![0.0; d], scale: vec![1.0; d] }
}

fn model(y: &Mat, kernel: &dyn Kernel, rule: &dyn Expectation, q: Gaussians, z: Mat) -> BayesianGplvm {
    let outputs = Outputs::new(y.clone());
    BayesianGplvm::new(outputs, unscaled(y.cols()), kernel.boxed(), rule.boxed(), q, z, 0.07).unwrap()
}

fn close(what: &str, a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    let error = check::relative_error(a, b, 1e-12);
    assert!(error < tolerance, "{what}: relative error {error:e}");
}

#[test]
fn certain_inputs_give_kernel_matrices() {
    let (x, z) = (points(7, 0.1), points(4, 0.9));
    for entry in kernel::names() {
        let k = kernel::parse(entry.name, DIM).unwrap();
        let mut kxz = Mat::zeros(7, 4);
        k.cross(&x, &z, &mut kxz);
        let square = linalg::mul_tn(&kxz, &kxz);
        for (name, _) in expectation::names() {
            let rule = expectation::parse(name).unwrap();
            if rule.check(&*k, DIM).is_err() {
                continue;
            }
            let psi = rule.psi(&*k, &Gaussians::certain(x.clone()), &z).unwrap();
            close(&format!("{k} by {name}: Ψ1"), psi.psi1.as_slice(), kxz.as_slice(), 1e-12);
            close(&format!("{k} by {name}: Ψ2"), psi.psi2.as_slice(), square.as_slice(), 1e-12);
        }
    }
}

#[test]
fn quadrature_and_draws_converge_to_the_closed_form() {
    let (q, z) = (inputs(6, 1.0), points(4, 0.9));
    for text in ["rbf", "rbf + linear + constant", "rbf(dims=[0]) * linear(dims=[1]) + linear"] {
        let k = kernel::parse(text, DIM).unwrap();
        let exact = Analytic.psi(&*k, &q, &z).unwrap();
        let error = |rule: &dyn Expectation| {
            let psi = rule.psi(&*k, &q, &z).unwrap();
            let error = |a: &Mat, b: &Mat| check::relative_error(a.as_slice(), b.as_slice(), 0.0);
            (error(&psi.psi1, &exact.psi1), error(&psi.psi2, &exact.psi2))
        };
        let (first, second) = (error(&GaussHermite::new(3)), error(&GaussHermite::new(24)));
        assert!(second.0 < 1e-6 && second.1 < 1e-5 && second.0 < first.0, "{text}: {first:?} {second:?}");
        let draws = |samples| error(&MonteCarlo::new(samples, 0)).1;
        assert!(draws(40_000) < 0.02 && draws(40_000) < draws(40), "{text}");
        let sobol = |samples| error(&QuasiMonteCarlo::new(samples, 0)).1;
        assert!(sobol(16_384) < 2e-3 && sobol(16_384) < sobol(64), "{text}: {} {}", sobol(64), sobol(16_384));
    }
}

#[test]
fn the_bound_of_certain_inputs_is_that_of_titsias_written_densely() {
    let (n, y, z) = (9, outputs(9, 3), points(4, 0.9));
    let k = Matern32::new(DIM);
    let x = points(n, 0.1);
    let q = Gaussians::new(x.clone(), Mat::filled(n, DIM, 1e-300)).unwrap();
    let mut m = model(&y, &k, &Unscented, q, z.clone());
    m.jitter = Jitter { kzz: 0.0, b: 0.0 };
    // A prior equal to q makes the KL vanish.
    m.prior = Box::new(Normal::new(m.latent()).unwrap());
    let noise = m.noise.get();
    let (mut kxx, mut kxz, mut kzz) = (Mat::zeros(n, n), Mat::zeros(n, 4), Mat::zeros(4, 4));
    k.gram(&x, &mut kxx);
    k.cross(&x, &z, &mut kxz);
    k.gram(&z, &mut kzz);
    let nystrom = linalg::mul(&kxz, &Cholesky::new(&kzz, "kzz").unwrap().solve(&kxz.t()));
    let mut covariance = nystrom.clone();
    (0..n).for_each(|i| covariance[(i, i)] += noise);
    let chol = Cholesky::new(&covariance, "covariance").unwrap();
    let quadratic = y.dot(&chol.solve(&y));
    let d = 3.0;
    let dense = -0.5 * d * (n as f64 * std::f64::consts::TAU.ln() + chol.log_det())
        - 0.5 * quadratic
        - 0.5 * d / noise * (kxx.trace() - nystrom.trace());
    close("bound", &[m.log_evidence(None).unwrap()], &[dense], 1e-10);
}

/// The bound as a sum over outputs, each a model of its own of the rows at which it was observed.
fn column_by_column(m: &BayesianGplvm) -> f64 {
    let y = &m.outputs.y;
    let kl_of = |m: &BayesianGplvm| -> f64 {
        let (mean, var) = (m.mean.as_slice(), m.var.as_slice());
        mean.iter().zip(var).map(|(m, s)| 0.5 * (m * m + s - s.ln() - 1.0)).sum()
    };
    let part = |j: usize| {
        let rows: Vec<usize> = (0..y.rows()).filter(|i| !y[(*i, j)].is_nan()).collect();
        let one = y.select_cols(&[j]).select_rows(&rows);
        let own = model(&one, &*m.kernel, &*m.expectation, m.latent().select_rows(&rows), m.z.value.clone());
        own.log_evidence(None).unwrap() + kl_of(&own)
    };
    (0..y.cols()).map(part).sum::<f64>() - kl_of(m)
}

#[test]
fn missing_cells_and_wide_data_equal_the_sum_over_outputs() {
    let holed = {
        let mut y = outputs(12, 5);
        for (i, j) in [(0, 0), (3, 0), (5, 2), (5, 3), (11, 4), (7, 1), (7, 0)] {
            y[(i, j)] = f64::NAN;
        }
        (0..5).for_each(|j| y[(9, j)] = f64::NAN);
        y
    };
    for (what, y) in [("complete", outputs(12, 5)), ("holed", holed), ("wide", outputs(6, 15))] {
        for rule in [&Analytic as &dyn Expectation, &Unscented] {
            let m = model(&y, &Rbf::new(DIM), rule, inputs(y.rows(), 0.4), points(4, 0.9));
            let mut grad = vec![0.0; param::count(&m)];
            let bound = m.log_evidence(Some(&mut grad)).unwrap();
            close(what, &[bound], &[column_by_column(&m)], 1e-10);
            let mut moved = m.clone();
            let value = |u: &[f64]| {
                param::unflatten(&mut moved, u);
                moved.log_evidence(None).unwrap()
            };
            let slow = check::differences(&param::flatten(&m), value);
            let mut ours = vec![0.0; slow.len()];
            param::chain(&m, &grad, &mut ours);
            close(&format!("gradient, {what}"), &ours, &slow, 1e-6);
        }
    }
}

#[test]
fn far_from_everything_the_variance_is_that_of_the_prior() {
    let m = model(&outputs(12, 3), &Rbf::new(DIM), &Analytic, inputs(12, 0.1), points(5, 0.9));
    let posterior = m.posterior().unwrap();
    for (far, var) in [(30.0, 0.5), (100.0, 30.0), (1e4, 1e4), (1e8, 1e9), (1e150, 1.0)] {
        let q = Gaussians::new(Mat::filled(1, DIM, far), Mat::filled(1, DIM, var)).unwrap();
        let found = posterior.predict_uncertain(&q).unwrap();
        assert!((found.var[(0, 0)] - 1.0).abs() < 0.05, "{far} ± √{var}: variance {}", found.var[(0, 0)]);
    }
}

#[test]
fn every_row_may_have_a_prior_of_its_own() {
    let mut m = model(&outputs(7, 3), &Matern32::new(DIM), &Unscented, inputs(7, 0.4), points(4, 0.9));
    let kl = |m: &BayesianGplvm| -> f64 {
        let of_rows = m.prior.marginals();
        let prior = of_rows.mean.as_slice().iter().zip(of_rows.var.as_slice());
        let q = m.mean.as_slice().iter().zip(m.var.as_slice());
        q.zip(prior).map(|((a, s), (b, p))| 0.5 * ((a - b).powi(2) / p + s / p - (s / p).ln() - 1.0)).sum()
    };
    let standard = m.log_evidence(None).unwrap() + kl(&m);
    let own = Gaussians::new(points(7, 0.3), Mat::from_fn(7, DIM, |i, j| 0.2 + 0.1 * (i + j) as f64));
    m.set_prior(Box::new(Normal::new(own.unwrap()).unwrap())).unwrap();
    let mut grad = vec![0.0; param::count(&m)];
    let bound = m.log_evidence(Some(&mut grad)).unwrap();
    close("bound", &[bound + kl(&m)], &[standard], 1e-12);
    let mut moved = m.clone();
    let slow = check::differences(&param::flatten(&m), |u| {
        param::unflatten(&mut moved, u);
        moved.log_evidence(None).unwrap()
    });
    let mut ours = vec![0.0; slow.len()];
    param::chain(&m, &grad, &mut ours);
    close("gradient", &ours, &slow, 1e-6);
}

#[test]
fn whitened_statistics_are_the_statistics_whitened() {
    let (q, z) = (inputs(40, 0.5), points(4, 0.9));
    let k = Matern32::new(DIM);
    let mut kzz = Mat::zeros(4, 4);
    k.gram(&z, &mut kzz);
    let l = Cholesky::new(&kzz, "kzz").unwrap();
    let (rbf, sum) = (Rbf::new(DIM), kernel::parse("rbf + linear + white", DIM).unwrap());
    let whitened: [(&dyn Expectation, &dyn Kernel); 5] = [
        (&Unscented, &k),
        (&GaussHermite::new(3), &k),
        (&MonteCarlo::new(5, 2), &k),
        (&Analytic, &rbf),
        (&Analytic, &sum),
    ];
    for (rule, k) in whitened {
        let (plain, white) = (rule.psi(k, &q, &z).unwrap(), rule.psi_whitened(k, &q, &z, &l).unwrap());
        close("Ψ1", white.psi1.as_slice(), plain.psi1.as_slice(), 1e-15);
        close("A", white.psi2.as_slice(), l.whiten(&plain.psi2).as_slice(), 1e-11);
    }
}

fn quick() -> Training {
    Training { inducing: 8, max_iterations: 60, hold: 10, ..Training::default() }
}

fn go(_: &latentgp::fit::Run) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn the_bound_is_that_of_the_data_as_given_and_the_latent_space_does_not_change_with_units() {
    let y = outputs(20, 4);
    let fit = |y: &Mat, scale| Training { scale, ..quick() }.fit(y, &Matern32::new(2), &go).unwrap();
    for scale in [Scale::Standardize, Scale::Global] {
        let (plain, twice) = (fit(&y, scale), fit(&y.map(|v| 4.0 * v), scale));
        assert_eq!(plain.model.mean.value, twice.model.mean.value, "a power of two moves no bit");
        let jacobian = -((20 * 4) as f64) * 4f64.ln();
        close("bound of 4·Y", &[twice.evidence], &[plain.evidence + jacobian], 1e-12);
        let start = |y: &Mat| Training { scale, ..quick() }.start(y, &Matern32::new(2), 0).unwrap();
        let (a, b) = (start(&y), start(&y.map(|v| 3.7 * v + 11.0)));
        close("start of 3.7·Y + 11", b.mean.as_slice(), a.mean.as_slice(), 1e-9);
        let jacobian = -((20 * 4) as f64) * 3.7f64.ln();
        let (a, b) = (a.log_evidence(None).unwrap(), b.log_evidence(None).unwrap());
        close("bound of 3.7·Y + 11", &[b], &[a + jacobian], 1e-9);
    }
    // Rounding differs with other factors, and a long fit magnifies it; the optimum is the same.
    let oil = latentgp::data::oil_flow::simulate(60, 1).y;
    let long = Training { max_iterations: 2000, inducing: 12, ..quick() };
    let go_to = |y: &Mat| long.fit(y, &Rbf::new(2), &go).unwrap().model.mean.value;
    let (plain, shifted) = (go_to(&oil), go_to(&oil.map(|v| 3.7 * v + 11.0)));
    close("latent space of 3.7·Y + 11", shifted.as_slice(), plain.as_slice(), 0.01);
}

#[test]
fn rows_are_projected_on_their_own_and_training_rows_come_back() {
    let y = outputs(24, 5);
    let fit = Training { max_iterations: 400, ..quick() }.fit(&y, &Rbf::new(2), &go).unwrap();
    let posterior = fit.model.posterior().unwrap();
    let back = fit.model.project_with(&posterior, &y).unwrap();
    assert_eq!(back.q.mean, fit.model.mean.value);
    assert_eq!(back.q.var, fit.model.var.value);
    // A row that is nearly a training row lands near its position: q(x) is a maximum of the row's own bound.
    let near = fit.model.project_with(&posterior, &y.map(|v| v + 1e-9)).unwrap();
    close("near the training rows", near.q.mean.as_slice(), back.q.mean.as_slice(), 0.02);
    let mut new = y.map(|v| v * 1.02 + 0.01);
    new[(2, 3)] = f64::NAN;
    (0..5).for_each(|j| new[(7, j)] = f64::NAN);
    let batch = fit.model.project_with(&posterior, &new).unwrap();
    for i in 0..new.rows() {
        let one = fit.model.project_with(&posterior, &new.slice_rows(i, i + 1)).unwrap();
        assert_eq!(one.q.mean.row(0), batch.q.mean.row(i), "a batch equals its pieces, to the bit");
    }
    close("nothing observed: the prior", batch.q.mean.row(7), &[0.0, 0.0], 1e-6);
    close("nothing observed: the prior", batch.q.var.row(7), &[1.0, 1.0], 1e-4);
    let imputed = fit.model.impute(&posterior, &new).unwrap();
    assert!(imputed.y.is_finite() && imputed.var.is_finite());
    assert!((imputed.y[(2, 3)] - (y[(2, 3)] * 1.02 + 0.01)).abs() < 5.0 * imputed.var[(2, 3)].sqrt());
    let (density, bound) = (fit.model.log_density(&posterior, &new, 256, 0).unwrap(), &batch.bound);
    for i in 0..new.rows() {
        assert!(
            density[i] > bound[i] - 1e-6,
            "row {i}: log density {} below its bound {}",
            density[i],
            bound[i]
        );
    }
    let (x, samples) = fit.model.sample(&posterior, 2000, 1).unwrap();
    assert!(x.is_finite() && samples.is_finite());
    assert_eq!(fit.model.sample(&posterior, 2000, 1).unwrap().1, samples);
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let (y, wide) = (outputs(150, 4), outputs(1000, 300));
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let rules: [&dyn Expectation; 4] =
                [&Analytic, &Unscented, &MonteCarlo::new(9, 2), &QuasiMonteCarlo::new(16, 2)];
            let of = |y: &Mat, rule: &dyn Expectation, m: usize| -> Vec<u64> {
                let m = model(y, &Rbf::new(DIM), rule, inputs(y.rows(), 0.4), points(m, 0.9));
                let mut grad = vec![0.0; param::count(&m)];
                let value = m.log_evidence(Some(&mut grad)).unwrap();
                std::iter::once(value).chain(grad).map(f64::to_bits).collect()
            };
            let mut bits: Vec<u64> = rules.into_iter().flat_map(|rule| of(&y, rule, 6)).collect();
            // Wide and many enough for every step to go in parts.
            bits.extend(of(&wide, &Analytic, 20));
            bits.extend(of(&wide, &Unscented, 20));
            let fit = Training { restarts: 3, ..quick() }.fit(&y, &Matern32::new(2), &go).unwrap();
            bits.extend(fit.model.mean.as_slice().iter().map(|v| v.to_bits()));
            bits
        })
    };
    let one = run(1);
    assert!(one == run(2) && one == run(5));
}
