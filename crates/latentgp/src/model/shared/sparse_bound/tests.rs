use super::*;
use crate::check::{differences, relative_error};
use crate::expectation::{Analytic, GaussHermite, Unscented};
use crate::kernel::{Linear, Matern32, Rbf};
use crate::param;

const DIM: usize = 2;
const M: usize = 4;
const NOISE: f64 = 0.2;

fn inputs(n: usize) -> Gaussians {
    let mean = Mat::from_fn(n, DIM, |i, j| (2.3 * i as f64 + 1.1 * j as f64).sin());
    Gaussians { mean, var: Mat::from_fn(n, DIM, |i, j| 0.3 + 0.2 * (1.7 * i as f64 - 0.4 * j as f64).cos()) }
}

fn outputs(n: usize, d: usize, holes: &[(usize, usize)]) -> Gaussians {
    let mut mean = Mat::from_fn(n, d, |i, j| (2.1 * i as f64 - 0.8 * j as f64).cos());
    holes.iter().for_each(|&at| mean[at] = f64::NAN);
    Gaussians { mean, var: Mat::from_fn(n, d, |i, j| 0.05 + 0.03 * ((i + 2 * j) % 4) as f64) }
}

/// Where everything is: θ, σ², Z, μ and S of the inputs, μ and λ of the outputs.
type Place = (Box<dyn Kernel>, Vec<f64>, Mat, Gaussians, Gaussians);

fn with_bound<T>(
    rule: &dyn Expectation,
    outputs: &Outputs,
    (kernel, noise, z, ..): &Place,
    work: impl FnOnce(&SparseBound<'_>) -> T,
) -> T {
    let scaling = Scaling { mean: vec![0.0; outputs.d()], scale: vec![1.0; outputs.d()] };
    work(&SparseBound {
        kernel: &**kernel,
        expectation: rule,
        z,
        noise,
        jitter: Jitter::default(),
        outputs,
        scaling: &scaling,
    })
}

/// F, and its gradient in the order of [`Place`]; that of the outputs only where it is asked for.
fn gradient(rule: &dyn Expectation, outputs: &Outputs, at: &Place, with_outputs: bool) -> (f64, Vec<f64>) {
    let (kernel, _, z, q, y) = at;
    let like = |of: &Mat| Mat::zeros(of.rows(), of.cols());
    let (mut theta, mut noise) = (vec![0.0; param::count(&**kernel)], vec![0.0; at.1.len()]);
    let mut z_bar = like(z);
    let [mut mean, mut var, mut y_mean, mut y_var] = [&q.mean, &q.var, &y.mean, &y.var].map(like);
    let to = OutputsGrad { mean: &mut y_mean, var: &mut y_var };
    let bars = BoundGrad {
        theta: &mut theta,
        noise: &mut noise,
        z: &mut z_bar,
        mean: &mut mean,
        var: &mut var,
        outputs: with_outputs.then_some(to),
    };
    let (value, ()) = with_bound(rule, outputs, at, |bound| bound.gradient(q, bars, |_, _| ())).unwrap();
    let rest = [&z_bar, &mean, &var, &y_mean, &y_var];
    let mut all = theta;
    all.extend(noise);
    rest.iter().for_each(|of| all.extend_from_slice(of.as_slice()));
    (value, all)
}

/// A kernel, an expectation, and outputs.
type Case = (Box<dyn Kernel>, Box<dyn Expectation>, Gaussians);

/// A case for every way that the bound goes.
fn cases() -> Vec<Case> {
    let holes = [(0, 0), (3, 0), (5, 2), (7, 1)];
    let mut all: Vec<Case> = Vec::new();
    for y in [outputs(9, 3, &[]), outputs(9, 3, &holes), outputs(4, 6, &[])] {
        all.push((Box::new(Rbf::new(DIM)), Box::new(Analytic), y.clone()));
        all.push((Box::new(Matern32::new(DIM)), Box::new(Unscented), y.clone()));
        all.push((Box::new(Matern32::new(DIM) + Linear::new(DIM)), Box::new(GaussHermite::new(3)), y));
    }
    all
}

fn place(kernel: Box<dyn Kernel>, y: Gaussians) -> Place {
    let z = Mat::from_fn(M, DIM, |i, j| (1.3 * i as f64 - 0.7 * j as f64).cos());
    (kernel, vec![NOISE], z, inputs(y.n()), y)
}

/// The same with a noise of its own for every output.
fn by_columns(mut at: Place) -> Place {
    at.1 = (0..at.4.mean.cols()).map(|j| NOISE * 3f64.powi(1 - j as i32)).collect();
    at
}

#[test]
fn gradients_with_uncertain_outputs_agree_with_differences() {
    for (kernel, rule, y) in cases() {
        let name = format!("{kernel} by {rule}, {}", y.mean.shape());
        let at = place(kernel, y);
        gradients_agree(&*rule, &name, &at);
        gradients_agree(&*rule, &format!("{name}, noise by column"), &by_columns(at));
    }
}

fn gradients_agree(rule: &dyn Expectation, name: &str, at: &Place) {
    {
        let (value, ours) = gradient(rule, &Outputs::uncertain(&at.4.mean, &at.4.var).unwrap(), at, true);
        let mut u = param::values(&*at.0);
        u.extend(&at.1);
        // A missing cell is no number to move.
        let y_mean = at.4.mean.map(|v| if v.is_nan() { 0.0 } else { v });
        [&at.2, &at.3.mean, &at.3.var, &y_mean, &at.4.var]
            .iter()
            .for_each(|of| u.extend_from_slice(of.as_slice()));
        let moved_value = |u: &[f64]| {
            let mut moved = at.clone();
            let (theta, rest) = u.split_at(param::count(&*at.0));
            param::set_values(&mut *moved.0, theta);
            let (noise, mut rest) = rest.split_at(at.1.len());
            moved.1.copy_from_slice(noise);
            for to in [&mut moved.2, &mut moved.3.mean, &mut moved.3.var, &mut moved.4.mean, &mut moved.4.var]
            {
                let (own, others) = rest.split_at(to.len());
                let each = to.as_mut_slice().iter_mut().zip(own);
                each.filter(|(to, _)| !to.is_nan()).for_each(|(to, own)| *to = *own);
                rest = others;
            }
            let outputs = Outputs::uncertain(&moved.4.mean, &moved.4.var).unwrap();
            with_bound(rule, &outputs, &moved, |bound| bound.value(&moved.3)).unwrap()
        };
        assert!((moved_value(&u) - value).abs() < 1e-11 * value.abs(), "{name}");
        let error = relative_error(&ours, &differences(&u, moved_value), 1e-3);
        assert!(error < 1e-7, "{name}: {error:e}");
    }
}

#[test]
fn outputs_without_variance_are_certain() {
    for (kernel, rule, y) in cases() {
        let name = format!("{kernel} by {rule}, {}", y.mean.shape());
        let at = place(kernel, Gaussians { var: y.var.map(|_| 0.0), mean: y.mean });
        let certain = Outputs::new(at.4.mean.clone());
        let (value, plain) = gradient(&*rule, &certain, &at, false);
        let outputs = at.4.mean.len();
        let plain = &plain[..plain.len() - 2 * outputs];
        // The adjoints of the outputs are there for certain ones as well, of wide data too.
        for of in [&certain, &Outputs::uncertain(&at.4.mean, &at.4.var).unwrap()] {
            let (same, all) = gradient(&*rule, of, &at, true);
            assert!((same - value).abs() < 1e-12 * value.abs(), "{name}: {same} against {value}");
            let error = relative_error(&all[..plain.len()], plain, 0.0);
            assert!(error < 1e-11, "{name}: {error:e}");
            let slopes = all[plain.len() + outputs..].iter().zip(at.4.mean.as_slice());
            assert!(
                slopes.into_iter().all(|(s, y)| *s == if y.is_nan() { 0.0 } else { -0.5 / NOISE }),
                "{name}"
            );
        }
        let nearly = Outputs::uncertain(&at.4.mean, &at.4.var.map(|_| 1e-9)).unwrap();
        let near = with_bound(&*rule, &nearly, &at, |bound| bound.value(&at.3)).unwrap();
        let cells = at.4.mean.as_slice().iter().filter(|v| !v.is_nan()).count();
        assert!((value - near - 0.5e-9 / NOISE * cells as f64).abs() < 1e-11 * value.abs(), "{name}");
    }
}

#[test]
fn equal_noises_by_column_are_one_noise() {
    for (kernel, rule, y) in cases() {
        let name = format!("{kernel} by {rule}, {}", y.mean.shape());
        let shared = place(kernel, y);
        let mut columns = shared.clone();
        columns.1 = vec![NOISE; shared.4.mean.cols()];
        let outputs = Outputs::new(shared.4.mean.clone());
        let (a, b) =
            (gradient(&*rule, &outputs, &shared, false), gradient(&*rule, &outputs, &columns, false));
        assert!((a.0 - b.0).abs() < 1e-10 * a.0.abs(), "{name}: {} against {}", a.0, b.0);
        // The slope of one noise is the sum over the columns.
        let (at, d) = (param::count(&*shared.0), columns.1.len());
        let mut by_column = b.1.clone();
        let sum: f64 = by_column.drain(at..at + d).sum();
        by_column.insert(at, sum);
        let error = relative_error(&by_column, &a.1, 1e-3);
        assert!(error < 1e-9, "{name}: {error:e}");
        let [one, each] =
            [&shared, &columns].map(|at| with_bound(&*rule, &outputs, at, |b| b.posterior(&at.3)).unwrap());
        let new = inputs(4);
        for (a, b) in [
            (one.predict(&new.mean).unwrap(), each.predict(&new.mean).unwrap()),
            (one.predict_uncertain(&new).unwrap(), each.predict_uncertain(&new).unwrap()),
        ] {
            assert!(relative_error(a.mean.as_slice(), b.mean.as_slice(), 1e-3) < 1e-9, "{name}");
            assert!(relative_error(a.var.as_slice(), b.var.as_slice(), 1e-3) < 1e-9, "{name}");
        }
        assert_eq!(one.noise, each.noise);
    }
}

#[test]
fn each_column_is_a_model_of_its_own_noise() {
    for (kernel, rule, y) in cases() {
        let name = format!("{kernel} by {rule}, {}", y.mean.shape());
        let all = by_columns(place(kernel, y));
        let outputs = Outputs::new(all.4.mean.clone());
        let whole = with_bound(&*rule, &outputs, &all, |b| b.value(&all.3)).unwrap();
        let posterior = with_bound(&*rule, &outputs, &all, |b| b.posterior(&all.3)).unwrap();
        let new = inputs(5);
        let (certain, uncertain) =
            (posterior.predict(&new.mean).unwrap(), posterior.predict_uncertain(&new).unwrap());
        let cov = posterior.covariance(&new).unwrap();
        let mut sum = 0.0;
        for j in 0..outputs.d() {
            let mut alone = all.clone();
            alone.1 = vec![all.1[j]];
            let own = Outputs::new(all.4.mean.select_cols(&[j]));
            sum += with_bound(&*rule, &own, &alone, |b| b.value(&alone.3)).unwrap();
            let there = with_bound(&*rule, &own, &alone, |b| b.posterior(&alone.3)).unwrap();
            let (a, b) = (there.predict(&new.mean).unwrap(), there.predict_uncertain(&new).unwrap());
            for (own, of) in [(a, &certain), (b, &uncertain)] {
                assert!(relative_error(&own.mean.col(0), &of.mean.col(j), 1e-3) < 1e-9, "{name}");
                assert!(relative_error(&own.var.col(0), &of.var.col(j), 1e-3) < 1e-9, "{name}");
            }
            let theirs = there.covariance(&new).unwrap();
            assert!(cov.iter().zip(&theirs).all(|(a, b)| (a[(j, j)] - b[(0, 0)]).abs() < 1e-9), "{name}");
            let (a, b) = (
                posterior.joint_covariance(&new.mean, j).unwrap(),
                there.joint_covariance(&new.mean, 0).unwrap(),
            );
            assert!(relative_error(a.as_slice(), b.as_slice(), 1e-3) < 1e-9, "{name}");
        }
        assert!((whole - sum).abs() < 1e-10 * sum.abs(), "{name}: {whole} against {sum}");
    }
}

#[test]
fn beside_a_singular_kzz_the_factor_of_the_kernel_keeps_its_slope() {
    const ROWS: usize = 60;
    let mean = Mat::from_fn(ROWS, DIM, |i, j| (2.3 * i as f64 + 1.1 * j as f64).sin());
    let q = Gaussians { var: mean.map(|v| 0.1 + 0.05 * v), mean };
    let smooth = |i: usize, j: usize| q.mean[(i, 0)] + 0.3 * (q.mean[(i, 1)] + j as f64).sin();
    let y = Gaussians::certain(Mat::from_fn(ROWS, 6, |i, j| smooth(i, j) + 0.1 * ((7 * i + j) as f64).cos()));
    let z = Mat::from_fn(20, DIM, |i, j| (1.3 * i as f64 - 0.7 * j as f64).cos());
    let mut kernel = Matern32::new(DIM);
    kernel.variance.set(5e5);
    kernel.lengthscale.set(1000.0);
    for noise in [vec![0.1], (0..6).map(|j| 0.1 + 0.01 * j as f64).collect()] {
        let at: Place = (Box::new(kernel.clone()), noise, z.clone(), q.clone(), y.clone());
        let outputs = Outputs::new(y.mean.clone());
        let slope = gradient(&Unscented, &outputs, &at, false).1[0];
        let value = |factor: f64| {
            let mut moved = at.clone();
            let mut own = kernel.clone();
            own.variance.set(factor * kernel.variance.get());
            moved.0 = Box::new(own);
            with_bound(&Unscented, &outputs, &moved, |bound| bound.value(&moved.3)).unwrap()
        };
        const STEP: f64 = 1e-2;
        let difference = (value(1.0 + STEP) - value(1.0 - STEP)) / (2.0 * STEP * kernel.variance.get());
        assert!((slope / difference - 1.0).abs() < 1e-3, "{slope:e} against {difference:e}");
    }
}
