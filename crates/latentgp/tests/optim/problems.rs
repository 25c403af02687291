//! Functions to minimise, the same as in `lbfgsb.py`: name, start, value and gradient.

use latentgp::linalg::{Cholesky, mul_nt};
use latentgp::{Mat, Result};
use std::f64::consts::TAU;

/// Writes the gradient and returns the value.
pub type Function = fn(&[f64], &mut [f64]) -> Result<f64>;

pub struct Problem {
    pub name: &'static str,
    pub start: Vec<f64>,
    pub function: Function,
    /// The least value, where it is known.
    pub least: Option<f64>,
}

pub fn all() -> Vec<Problem> {
    let problem = |name, start: Vec<f64>, function, least| Problem { name, start, function, least };
    vec![
        problem("rosenbrock", vec![-1.2, 1.0], rosenbrock, Some(0.0)),
        problem("rosenbrock", [-1.2, 1.0].repeat(50), rosenbrock, Some(0.0)),
        problem("rosenbrock", [-1.2, 1.0].repeat(500), rosenbrock, Some(0.0)),
        problem("powell", [3.0, -1.0, 0.0, 1.0].repeat(25), powell, Some(0.0)),
        problem("beale", vec![1.0, 1.0], beale, Some(0.0)),
        problem("brown", vec![1.0, 1.0], brown, Some(0.0)),
        problem("quadratic", vec![0.0; 50], quadratic, Some(0.0)),
        problem("trigonometric", vec![0.01; 100], trigonometric, None),
        problem("gplvm", gplvm_start(), gplvm, None),
    ]
}

/// The chained function: Σ 100 (u₊ − u²)² + (1 − u)².
pub fn rosenbrock(u: &[f64], g: &mut [f64]) -> Result<f64> {
    g.fill(0.0);
    let mut f = 0.0;
    for i in 0..u.len() - 1 {
        let (a, b) = (u[i + 1] - u[i] * u[i], 1.0 - u[i]);
        f += 100.0 * a * a + b * b;
        g[i] += -400.0 * a * u[i] - 2.0 * b;
        g[i + 1] += 200.0 * a;
    }
    Ok(f)
}

/// Powell's singular function, extended: its Hessian is singular at the minimum.
pub fn powell(u: &[f64], g: &mut [f64]) -> Result<f64> {
    let mut f = 0.0;
    for (u, g) in u.chunks_exact(4).zip(g.chunks_exact_mut(4)) {
        let (p, q, r, s) = (u[0] + 10.0 * u[1], u[2] - u[3], u[1] - 2.0 * u[2], u[0] - u[3]);
        f += p * p + 5.0 * q * q + r.powi(4) + 10.0 * s.powi(4);
        g[0] = 2.0 * p + 40.0 * s.powi(3);
        g[1] = 20.0 * p + 4.0 * r.powi(3);
        g[2] = 10.0 * q - 8.0 * r.powi(3);
        g[3] = -10.0 * q - 40.0 * s.powi(3);
    }
    Ok(f)
}

/// Beale's function.
pub fn beale(u: &[f64], g: &mut [f64]) -> Result<f64> {
    g.fill(0.0);
    let mut f = 0.0;
    for (k, c) in [(1, 1.5), (2, 2.25), (3, 2.625)] {
        let r = c - u[0] * (1.0 - u[1].powi(k));
        f += r * r;
        g[0] += 2.0 * r * (u[1].powi(k) - 1.0);
        g[1] += 2.0 * r * f64::from(k) * u[0] * u[1].powi(k - 1);
    }
    Ok(f)
}

/// Brown's badly scaled function: the minimum is at (1e6, 2e-6).
pub fn brown(u: &[f64], g: &mut [f64]) -> Result<f64> {
    let (p, q, r) = (u[0] - 1e6, u[1] - 2e-6, u[0] * u[1] - 2.0);
    g[0] = 2.0 * p + 2.0 * r * u[1];
    g[1] = 2.0 * q + 2.0 * r * u[0];
    Ok(p * p + q * q + r * r)
}

/// ½ Σ λ (u − 1)² with λ from 1 to 1e6.
pub fn quadratic(u: &[f64], g: &mut [f64]) -> Result<f64> {
    let mut f = 0.0;
    for i in 0..u.len() {
        let lambda = 10f64.powf(6.0 * i as f64 / (u.len() - 1) as f64);
        g[i] = lambda * (u[i] - 1.0);
        f += 0.5 * g[i] * (u[i] - 1.0);
    }
    Ok(f)
}

/// The trigonometric function of Moré, Garbow and Hillstrom.
pub fn trigonometric(u: &[f64], g: &mut [f64]) -> Result<f64> {
    let n = u.len() as f64;
    let cosines: f64 = u.iter().map(|u| u.cos()).sum();
    let mut residuals = 0.0;
    let mut f = 0.0;
    for i in 0..u.len() {
        let k = (i + 1) as f64;
        let r = n - cosines + k * (1.0 - u[i].cos()) - u[i].sin();
        f += r * r;
        residuals += r;
        g[i] = 2.0 * r * (k * u[i].sin() - u[i].cos());
    }
    for i in 0..u.len() {
        g[i] += 2.0 * residuals * u[i].sin();
    }
    Ok(f)
}

const N: usize = 40;
const D: usize = 6;

fn gplvm_start() -> Vec<f64> {
    let x = (0..N).flat_map(|i| [(TAU * i as f64 / N as f64).cos(), 0.1 * (i as f64).sin()]);
    x.chain([-2.0]).collect()
}

/// A GPLVM with an RBF kernel, MAP, two latent dimensions: u is X, then the log noise variance.
pub fn gplvm(u: &[f64], g: &mut [f64]) -> Result<f64> {
    let y = Mat::from_fn(N, D, |i, j| {
        let (i, j, k) = (i as f64, j as f64, (1 + j % 3) as f64);
        (TAU * i / N as f64 * k + j).sin() + 0.1 * (7.0 * i * (j + 1.0)).cos()
    });
    let x = |i: usize, q: usize| u[2 * i + q];
    let noise = u[2 * N].exp();
    let k =
        Mat::from_fn(N, N, |i, j| (-0.5 * ((x(i, 0) - x(j, 0)).powi(2) + (x(i, 1) - x(j, 1)).powi(2))).exp());
    let mut c = k.clone();
    (0..N).for_each(|i| c[(i, i)] += noise + 1e-6);
    let factor = Cholesky::new(&c, "K")?;
    let a = factor.solve(&y);
    let mut bar = factor.inverse();
    bar.scale(0.5 * D as f64);
    bar.add_scaled(-0.5, &mul_nt(&a, &a));
    g.fill(0.0);
    for i in 0..N {
        for q in 0..2 {
            let pull: f64 = (0..N).map(|j| bar[(i, j)] * k[(i, j)] * (x(i, q) - x(j, q))).sum();
            g[2 * i + q] = x(i, q) - 2.0 * pull;
        }
    }
    g[2 * N] = noise * bar.trace();
    let prior: f64 = u[..2 * N].iter().map(|x| x * x).sum();
    Ok(0.5 * D as f64 * factor.log_det() + 0.5 * a.dot(&y) + 0.5 * prior)
}
