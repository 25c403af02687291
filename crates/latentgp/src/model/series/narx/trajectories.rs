//! Sampled trajectories: whole futures, drawn value by value.
//!
//! ```text
//! f(x_t) | f(x_1) … f(x_(t−1))  ~  N(m_t + l_tᵀ(z_1 … z_(t−1)), c_tt − l_tᵀl_t)
//! c_ij = k(x_i, x_j) − φ(x_i)ᵀCφ(x_j)      l_t = row t of the Cholesky factor of c      y_t = f(x_t) + ε
//! ```
//!
//! The factor grows by a row each step, so that one function holds for a whole future.

use super::Forecast;
use super::simulate::{Run, Stepper, diverged};
use super::window::Window;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::linalg;
use crate::mat::Mat;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

/// Futures of one block share a kernel matrix; the blocks make results independent of the number of threads.
const BLOCK: usize = 32;
/// A conditional variance below this part of c_tt is rounding error: the function is known there.
const KNOWN: f64 = 1e-12;
/// The most numbers that the futures may store.
const MOST: usize = 200_000_000;

/// The most steps of a future that keeps its function, which stores a triangular matrix of so many rows.
const MOST_STEPS: usize = 2500;

/// What each draw of a future is conditioned on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Draws {
    /// The function: each value is conditioned on all earlier values of the future. This is the posterior of
    /// the series, the reference.
    #[default]
    Function,
    /// The window alone: each value is drawn from the posterior at the window, as if the function were drawn
    /// anew at every step. Moment propagation approximates this.
    Marginal,
}

/// One future: its window, the function values drawn so far, its random generator.
struct Future {
    rng: ChaCha8Rng,
    window: Window,
    x: Vec<Vec<f64>>,
    phi: Vec<Vec<f64>>,
    l: Vec<Vec<f64>>,
    z: Vec<Vec<f64>>,
    values: Mat,
}

impl Future {
    fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.rng)
    }

    /// The row l_t for a new point, the diagonal entry last.
    fn row(&self, kernel: &dyn Kernel, x: &[f64], phi: &[f64], c_phi: &[f64], prior: f64) -> Vec<f64> {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let mut row: Vec<f64> = Vec::with_capacity(self.x.len() + 1);
        let mut prior_cov = Mat::zeros(1, self.x.len());
        if !self.x.is_empty() {
            kernel.cross(&Mat::from_rows(&[x]), &Mat::from_rows(&self.x), &mut prior_cov);
        }
        for j in 0..self.x.len() {
            let cov = prior_cov[(0, j)] - dot(c_phi, &self.phi[j]);
            let rest = cov - dot(&row, &self.l[j][..j]);
            let own = self.l[j][j];
            row.push(if own > 0.0 { rest / own } else { 0.0 });
        }
        let whole = prior - dot(phi, c_phi);
        let left = whole - dot(&row, &row);
        row.push(if left > KNOWN * prior { left.sqrt() } else { 0.0 });
        row
    }
}

pub(super) fn run(
    stepper: &Stepper,
    window: &Window,
    run: &Run<'_>,
    count: usize,
    seed: u64,
    draws: Draws,
) -> Result<Forecast> {
    let (steps, d) = (run.steps, run.lags.series.len());
    if count < 2 {
        return Err(Error::invalid("trajectories", "at least 2, for a variance", count));
    }
    if count.saturating_mul(steps).saturating_mul(d) > MOST {
        let expected = format!("at most {} of {steps} steps", MOST / (steps * d).max(1));
        return Err(Error::invalid("trajectories", expected, count));
    }
    if draws == Draws::Function && steps > MOST_STEPS {
        let expected =
            format!("at most {MOST_STEPS} steps of sampled futures; propagated moments go further");
        return Err(Error::invalid("horizon", expected, steps));
    }
    let blocks: Vec<(usize, usize)> =
        (0..count.div_ceil(BLOCK)).map(|b| (b * BLOCK, (b * BLOCK + BLOCK).min(count))).collect();
    let found: Vec<Vec<Mat>> = blocks
        .into_par_iter()
        .map(|(from, to)| block(stepper, window, run, from..to, seed, draws))
        .collect::<Result<_>>()?;
    let trajectories: Vec<Mat> = found.into_iter().flatten().collect();
    let mut out = Forecast::empty(steps, d);
    let n = count as f64;
    trajectories.iter().for_each(|t| out.mean.add_scaled(1.0 / n, t));
    for t in &trajectories {
        let pairs = t.as_slice().iter().zip(out.mean.as_slice());
        out.var
            .as_mut_slice()
            .iter_mut()
            .zip(pairs)
            .for_each(|(v, (y, m))| *v += (y - m) * (y - m) / (n - 1.0));
    }
    let seen = if draws == Draws::Function { (steps - 1) as f64 / 2.0 } else { 0.0 };
    out.evaluations = n * steps as f64 * (stepper.basis.z.rows() as f64 + seen);
    out.trajectories = trajectories;
    Ok(out)
}

fn block(
    stepper: &Stepper,
    window: &Window,
    run: &Run<'_>,
    numbers: std::ops::Range<usize>,
    seed: u64,
    draws: Draws,
) -> Result<Vec<Mat>> {
    let d = run.lags.series.len();
    let mut futures: Vec<Future> = numbers.map(|s| future(window, seed, s, run.steps, d)).collect();
    for step in 0..run.steps {
        let rows: Vec<Vec<f64>> =
            futures.iter().map(|f| [&f.window.mean[..], run.inputs.row(step)].concat()).collect();
        let x = Mat::from_rows(&rows);
        let (phi, prior) = stepper.basis.features(&x);
        let mean = linalg::mul(&phi, &stepper.v);
        let c_phi = stepper.c.as_ref().map_or_else(|| phi.clone(), |c| linalg::mul(&phi, c));
        for (i, f) in futures.iter_mut().enumerate() {
            let row = f.row(&*stepper.basis.kernel, x.row(i), phi.row(i), c_phi.row(i), prior[i]);
            let z: Vec<f64> = (0..d).map(|_| f.normal()).collect();
            let mut value = mean.row(i).to_vec();
            for (j, value) in value.iter_mut().enumerate() {
                let past: f64 = row.iter().zip(&f.z).map(|(l, z)| l * z[j]).sum();
                *value += past + row[row.len() - 1] * z[j] + stepper.noise.sqrt() * f.normal();
            }
            if value.iter().any(|v| !v.is_finite()) {
                return Err(diverged(step));
            }
            f.values.row_mut(step).copy_from_slice(&value);
            f.window.push(&value, &Mat::zeros(d, d), None);
            if draws == Draws::Function {
                f.x.push(x.row(i).to_vec());
                f.phi.push(phi.row(i).to_vec());
                f.l.push(row);
                f.z.push(z);
            }
        }
    }
    Ok(futures.into_iter().map(|f| f.values).collect())
}

/// A future that starts at a draw from the first window.
fn future(window: &Window, seed: u64, number: usize, steps: usize, d: usize) -> Future {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number as u64);
    let mut window = window.clone();
    for (m, v) in window.mean.iter_mut().zip((0..).map(|i| window.cov[(i, i)])) {
        let xi: f64 = StandardNormal.sample(&mut rng);
        *m += v.sqrt() * xi;
    }
    let (x, phi, l, z) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    Future { rng, window, x, phi, l, z, values: Mat::zeros(steps, d) }
}
