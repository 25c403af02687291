//! Probabilistic PCA (Tipping & Bishop 1999).
//!
//! ```text
//! y_n = W x_n + m + ε,  x_n ~ N(0, I_q),  ε ~ N(0, σ²I)      C = WWᵀ + σ²I     M = WᵀW + σ²I
//! maximum likelihood   m = mean,  W = U_q(Λ_q − σ²I)^{1/2},  σ² = mean of the discarded eigenvalues
//! q(x_n) = N(M⁻¹Wᵀ(y_n − m), σ²M⁻¹)
//! ```
//!
//! U, Λ are those of the covariance with 1/N. With missing cells W, m and σ² come from EM, in which each row
//! has the rows of W that belong to its observed columns; everything else here takes missing cells as well.
//!
//! With a noise of its own for every column, ε ~ N(0, diag ψ), this is factor analysis, by EM from the closed form of one
//! noise. Columns divided by √ψ_d are a probabilistic PCA with σ² = 1:
//!
//! ```text
//! C = WWᵀ + diag ψ     M = I + WᵀΨ⁻¹W     q(x_n) = N(M⁻¹WᵀΨ⁻¹(y_n − m), M⁻¹)
//! ```

mod em;
pub(crate) mod rows;
mod space;

pub use em::{PpcaFit, PpcaPlan};
pub use space::PpcaSpace;

use crate::data::{Scale, Scaling};
use crate::error::{Error, Result};
use crate::expectation::Gaussians;
use crate::fit::{self, OnIteration};
use crate::linalg;
use crate::mat::Mat;
use crate::model::latent::ppca::rows::parts;
use crate::model::{NOISE_FLOOR, NoiseKind};
use crate::posterior::Prediction;

/// How a model is fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct PpcaOptions {
    /// q, latent dimensions.
    pub latent_dim: usize,
    /// How the columns are scaled.
    pub scale: Scale,
    /// Whose σ² is.
    pub noise_kind: NoiseKind,
    /// Most iterations of EM, where cells are missing or every column has its noise.
    pub max_iterations: usize,
    /// EM stops when an iteration adds no more than this part of the log likelihood.
    pub tolerance: f64,
}

impl Default for PpcaOptions {
    fn default() -> Self {
        PpcaOptions {
            latent_dim: 2,
            scale: Scale::Standardize,
            noise_kind: NoiseKind::Shared,
            max_iterations: 5000,
            tolerance: 1e-10,
        }
    }
}

/// A probabilistic PCA, of scaled data.
#[derive(Clone, Debug, PartialEq)]
pub struct Ppca {
    /// W, D×q.
    pub w: Mat,
    /// m, D.
    pub mean: Vec<f64>,
    /// σ², or ψ of every column.
    pub noise: Vec<f64>,
    /// The units of the data.
    pub scaling: Scaling,
    /// Eigenvalues of the covariance of the scaled data, descending; those beyond min(N, D) are zero and
    /// not listed. Empty where cells are missing.
    pub eigenvalues: Vec<f64>,
    /// The log likelihood after each iteration of EM; empty after the closed form.
    pub trace: Vec<f64>,
    /// Whether EM converged; the closed form always does.
    pub converged: bool,
}

/// Posterior of latent positions.
#[derive(Clone, Debug, PartialEq)]
pub struct PpcaLatent {
    /// Means, N×q.
    pub mean: Mat,
    /// The covariance of each row, q×q; rows with the same missing cells share theirs.
    pub cov: Vec<Mat>,
}

/// A log likelihood and its gradients, in the units of the scaled data.
#[derive(Clone, Debug, PartialEq)]
pub struct PpcaGrad {
    /// log p(Y), of the data as given.
    pub value: f64,
    /// ∂/∂W.
    pub w: Mat,
    /// ∂/∂m.
    pub mean: Vec<f64>,
    /// ∂/∂σ², or ∂/∂ψ.
    pub noise: Vec<f64>,
}

impl Ppca {
    /// Maximum likelihood for Y (N×D, NaN where a cell is missing).
    ///
    /// Errs when q is not between 1 and D − 1, a value is infinite, a column has no observed cell, or
    /// nothing varies.
    ///
    /// ```
    /// use latentgp::{Mat, model::{Ppca, PpcaOptions}};
    /// let y = Mat::from_fn(50, 3, |i, j| (0.3 * i as f64).sin() * (1.0 + j as f64) + 0.1 * ((i * 3 + j) as f64).cos());
    /// let model = Ppca::fit(&y, &PpcaOptions { latent_dim: 1, ..Default::default() })?;
    /// let x = model.transform(&y)?;
    /// let back = model.reconstruct(&x.mean)?;
    /// assert!((back[(7, 2)] - y[(7, 2)]).abs() < 0.5);
    /// # Ok::<(), latentgp::Error>(())
    /// ```
    pub fn fit(y: &Mat, options: &PpcaOptions) -> Result<Self> {
        Self::fit_watched(y, options, &fit::go_on)
    }

    /// The same, with a look at every iteration of EM, which may ask to stop: the best state so far is kept.
    pub fn fit_watched(y: &Mat, options: &PpcaOptions, watch: &OnIteration<'_>) -> Result<Self> {
        Ok(fit::train(&options.plan(y)?, Vec::new(), watch)?.model.model)
    }

    /// The closed form, with missing cells at the means of their columns; the scaled data, and the floor of σ².
    fn start(y: &Mat, options: &PpcaOptions) -> Result<(Self, Mat, f64)> {
        let (q, d) = (options.latent_dim, y.cols());
        if q == 0 || q >= d {
            let expected = format!("between 1 and {}, less than the {d} columns", d.saturating_sub(1));
            return Err(Error::invalid("latent dimensions", expected, q));
        }
        let scaling = Scaling::fit(y, options.scale)?;
        let scaled = scaling.apply(y)?;
        let means = column_means(&scaled);
        let filled =
            Mat::from_fn(y.rows(), d, |i, j| if scaled[(i, j)].is_nan() { means[j] } else { scaled[(i, j)] });
        let mut model = closed_form(&filled, q, scaling)?;
        if scaled.as_slice().iter().any(|v| v.is_nan()) {
            model.eigenvalues.clear();
        }
        if options.noise_kind == NoiseKind::Columns {
            model.noise = vec![model.noise[0]; d];
        }
        let floor = NOISE_FLOOR * mean_variance(&filled, &means);
        Ok((model, scaled, floor))
    }

    /// q.
    pub fn latent_dim(&self) -> usize {
        self.w.cols()
    }

    /// σ² of every column, in the units of the data.
    pub fn noise_variance(&self) -> Vec<f64> {
        self.scaling.variances(&self.noise)
    }

    /// σ² or ψ of a column.
    pub(crate) fn noise_of(&self, column: usize) -> f64 {
        if self.noise.len() == 1 { self.noise[0] } else { self.noise[column] }
    }

    fn scaled(&self, y: &Mat) -> Result<Mat> {
        self.scaling.apply(y)
    }

    /// log p(Y) of the data as given, over the observed cells.
    pub fn log_likelihood(&self, y: &Mat) -> Result<f64> {
        Ok(self.gradient(y)?.value)
    }

    /// log p(Y) and its gradients at any W, m and σ²:
    ///
    /// ```text
    /// E = Y − X̂Wᵀ    W̄ = EᵀX̂/σ² − N·WM⁻¹    m̄ = Σ_n E_n/σ²    σ̄² = ½‖E‖²/σ⁴ − N/2·tr C⁻¹
    /// ```
    ///
    /// With ψ of every column ψ̄_d = ½Σ_n e_nd²/ψ_d² − N/2·[C⁻¹]_dd.
    pub fn gradient(&self, y: &Mat) -> Result<PpcaGrad> {
        let scaled = self.scaled(y)?;
        let d = self.w.rows();
        let mut grad =
            PpcaGrad { value: 0.0, w: Mat::zeros(d, self.w.cols()), mean: vec![0.0; d], noise: Vec::new() };
        grad.noise = vec![0.0; self.noise.len()];
        let mut observed = vec![0; d];
        for part in parts(&scaled) {
            part.seen.iter().for_each(|&j| observed[j] += part.rows.len());
            let rows = self.rows(&part, &scaled)?;
            grad.value += rows.log_likelihood();
            rows.add_gradient(&mut grad);
        }
        grad.value += self.scaling.log_jacobian(&observed);
        if !grad.value.is_finite() {
            return Err(Error::not_finite("the log likelihood"));
        }
        Ok(grad)
    }

    /// Posterior of the latent positions of the rows of y; NaN is a missing cell.
    pub fn transform(&self, y: &Mat) -> Result<PpcaLatent> {
        let scaled = self.scaled(y)?;
        let q = self.w.cols();
        let mut all = PpcaLatent { mean: Mat::zeros(y.rows(), q), cov: vec![Mat::eye(q); y.rows()] };
        // A row without any cell has the prior.
        for part in parts(&scaled).iter().filter(|p| !p.seen.is_empty()) {
            let rows = self.rows(part, &scaled)?;
            for (i, &n) in part.rows.iter().enumerate() {
                all.mean.row_mut(n).copy_from_slice(rows.x.row(i));
                all.cov[n] = rows.cov.clone();
            }
        }
        if all.mean.is_finite() { Ok(all) } else { Err(Error::not_finite("a latent position")) }
    }

    /// Wx + m of latent positions, N×q, in the units of the data.
    pub fn reconstruct(&self, x: &Mat) -> Result<Mat> {
        if x.cols() != self.w.cols() {
            return Err(Error::shape("columns of the latent positions", self.w.cols(), x.cols()));
        }
        let mut y = linalg::mul_nt(x, &self.w);
        (0..y.rows()).for_each(|n| y.row_mut(n).iter_mut().zip(&self.mean).for_each(|(y, m)| *y += m));
        self.scaling.undo_mean(&y)
    }

    /// The same for positions N(μ, diag S): mean and variance W∘W·S, without the noise.
    pub fn reconstruct_uncertain(&self, x: &Gaussians) -> Result<Prediction> {
        let mean = self.reconstruct(&x.mean)?;
        let var = linalg::mul_nt(&x.var, &self.w.map(|w| w * w));
        Ok(Prediction { mean, var: self.scaling.undo_var(&var)? })
    }

    /// Y with its missing cells filled by their expectation given the observed cells of their row, and the
    /// variance of each as an observation, noise included; observed cells stay and have variance 0.
    pub fn impute(&self, y: &Mat) -> Result<Prediction> {
        let latent = self.transform(y)?;
        let guess = self.reconstruct(&latent.mean)?;
        let mut all = Prediction { mean: y.clone(), var: Mat::zeros(y.rows(), y.cols()) };
        for n in 0..y.rows() {
            for j in (0..y.cols()).filter(|j| y[(n, *j)].is_nan()) {
                let spread = quadratic(&latent.cov[n], self.w.row(j));
                all.mean[(n, j)] = guess[(n, j)];
                all.var[(n, j)] = (spread + self.noise_of(j)) * self.scaling.scale[j] * self.scaling.scale[j];
            }
        }
        Ok(all)
    }

    /// W turned so that its columns are orthogonal, the longest first, each with its largest entry
    /// positive. The likelihood is the same for every rotation.
    pub(crate) fn turn(&mut self) -> Result<()> {
        let q = self.w.cols();
        let (_, vectors) = linalg::eigh(&linalg::mul_tn(&self.w, &self.w))?;
        let descending = Mat::from_fn(q, q, |i, j| vectors[(i, q - 1 - j)]);
        self.w = linalg::mul(&self.w, &descending);
        (0..q).for_each(|k| point_up(&mut self.w, k));
        Ok(())
    }
}

/// vᵀAv.
pub(crate) fn quadratic(a: &Mat, v: &[f64]) -> f64 {
    (0..v.len()).map(|i| v[i] * a.row(i).iter().zip(v).map(|(a, v)| a * v).sum::<f64>()).sum()
}

/// Makes the largest entry of a column positive.
fn point_up(w: &mut Mat, k: usize) {
    let largest = w.col(k).iter().fold(0.0, |a: f64, b| if b.abs() > a.abs() { *b } else { a });
    if largest < 0.0 {
        (0..w.rows()).for_each(|i| w[(i, k)] = -w[(i, k)]);
    }
}

fn column_means(y: &Mat) -> Vec<f64> {
    let mean = |j: usize| {
        let seen: Vec<f64> = y.col(j).into_iter().filter(|v| !v.is_nan()).collect();
        seen.iter().sum::<f64>() / seen.len() as f64
    };
    (0..y.cols()).map(mean).collect()
}

fn mean_variance(y: &Mat, means: &[f64]) -> f64 {
    let square = |n: usize| y.row(n).iter().zip(means).map(|(y, m)| (y - m) * (y - m)).sum::<f64>();
    (0..y.rows()).map(square).sum::<f64>() / y.len() as f64
}

/// Maximum likelihood of complete scaled data, through the smaller of the D×D and the N×N problem.
fn closed_form(y: &Mat, q: usize, scaling: Scaling) -> Result<Ppca> {
    let (n, d) = (y.rows(), y.cols());
    let mean = column_means(y);
    let centred = Mat::from_fn(n, d, |i, j| y[(i, j)] - mean[j]);
    let mut of = if d <= n { linalg::mul_tn(&centred, &centred) } else { linalg::mul_nt(&centred, &centred) };
    of.scale(1.0 / n as f64);
    let (ascending, vectors) = linalg::eigh(&of)?;
    let size = ascending.len();
    let eigenvalues: Vec<f64> = ascending.iter().rev().map(|v| v.max(0.0)).collect();
    let total: f64 = eigenvalues.iter().sum();
    if total <= 0.0 {
        let reason = format!(
            "no column varies over the {n} rows, or not by a number that can be squared; there are no \
             components to find. Scale tiny columns"
        );
        return Err(Error::data("the data", reason));
    }
    let discarded: f64 = eigenvalues.iter().skip(q).sum::<f64>() / (d - q) as f64;
    let noise = discarded.max(NOISE_FLOOR * total / d as f64);
    let mut w = Mat::zeros(d, q);
    for k in 0..q.min(size) {
        let length = (eigenvalues[k] - noise).max(0.0).sqrt();
        let v = Mat::column(&vectors.col(size - 1 - k));
        // Directions of the N×N problem are turned into those of the D×D one.
        let u = if d <= n { v } else { linalg::mul_tn(&centred, &v) };
        let norm = u.dot(&u).sqrt();
        if norm > 0.0 {
            (0..d).for_each(|i| w[(i, k)] = u[(i, 0)] / norm * length);
            point_up(&mut w, k);
        }
    }
    if !(noise.is_finite() && w.is_finite() && noise >= f64::MIN_POSITIVE) {
        return Err(Error::not_finite("the principal components"));
    }
    Ok(Ppca { w, mean, noise: vec![noise], scaling, eigenvalues, trace: Vec::new(), converged: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{differences, relative_error};
    use crate::fit::{Run, Stage};
    use std::ops::ControlFlow;

    fn data(n: usize, d: usize) -> Mat {
        Mat::from_fn(n, d, |i, j| {
            let (a, b) = ((1.3 * i as f64).sin() * 3.0, (0.7 * (i * i) as f64).cos() * 2.0);
            1.0 + a * (j as f64 + 1.0).sin()
                + b * (2.0 * j as f64).cos()
                + 0.3 * ((17 * i + 5 * j) as f64).sin()
        })
    }

    fn options(q: usize) -> PpcaOptions {
        PpcaOptions { latent_dim: q, scale: Scale::None, ..Default::default() }
    }

    fn holed(n: usize, d: usize) -> Mat {
        let mut y = data(n, d);
        [(1, 0), (1, 3), (5, 2), (9, 4), (12, 0)].iter().for_each(|&at| y[at] = f64::NAN);
        y
    }

    #[test]
    fn gradients_agree_with_differences_and_vanish_at_the_optimum() {
        for y in [data(20, 5), holed(20, 5), data(4, 9)] {
            let mut model = Ppca::fit(&data(20, y.cols()), &options(2)).unwrap();
            model.noise[0] *= 1.5;
            model.w.scale(0.8);
            model.mean[1] += 0.3;
            let grad = model.gradient(&y).unwrap();
            let u = [model.w.as_slice(), &model.mean, &model.noise].concat();
            let slow = differences(&u, |u| {
                let mut at = model.clone();
                let (w, rest) = u.split_at(at.w.len());
                at.w.as_mut_slice().copy_from_slice(w);
                at.mean.copy_from_slice(&rest[..rest.len() - 1]);
                at.noise = vec![rest[rest.len() - 1]];
                at.log_likelihood(&y).unwrap()
            });
            let ours = [grad.w.as_slice(), &grad.mean, &grad.noise].concat();
            assert!(relative_error(&ours, &slow, 1e-3) < 1e-8);
        }
        let y = data(20, 5);
        let best = Ppca::fit(&y, &options(2)).unwrap();
        let grad = best.gradient(&y).unwrap();
        assert!(grad.w.as_slice().iter().chain(&grad.mean).chain(&grad.noise).all(|g| g.abs() < 1e-8));
    }

    #[test]
    fn factor_analysis_has_gradients_and_the_density_of_its_covariance() {
        for y in [data(20, 5), holed(20, 5), data(4, 9)] {
            let mut model = Ppca::fit(&data(20, y.cols()), &options(2)).unwrap();
            let noise = model.noise[0];
            model.noise = (0..y.cols()).map(|j| noise * (0.3 + j as f64)).collect();
            model.w.scale(0.8);
            model.mean[1] += 0.3;
            let grad = model.gradient(&y).unwrap();
            let u = [model.w.as_slice(), &model.mean, &model.noise].concat();
            let slow = differences(&u, |u| {
                let mut at = model.clone();
                let (w, rest) = u.split_at(at.w.len());
                at.w.as_mut_slice().copy_from_slice(w);
                at.mean.copy_from_slice(&rest[..y.cols()]);
                at.noise.copy_from_slice(&rest[y.cols()..]);
                at.log_likelihood(&y).unwrap()
            });
            let ours = [grad.w.as_slice(), &grad.mean, &grad.noise].concat();
            assert!(relative_error(&ours, &slow, 1e-3) < 1e-8);
            // log N(y | m, WWᵀ + diag ψ) of the cells of each row, written out.
            let mut direct = 0.0;
            for n in 0..y.rows() {
                let seen: Vec<usize> = (0..y.cols()).filter(|&j| !y[(n, j)].is_nan()).collect();
                let w = model.w.select_rows(&seen);
                let mut c = linalg::mul_nt(&w, &w);
                seen.iter().enumerate().for_each(|(i, &j)| c[(i, i)] += model.noise[j]);
                let c = linalg::Cholesky::new(&c, "C").unwrap();
                let mut apart = Mat::from_fn(seen.len(), 1, |i, _| y[(n, seen[i])] - model.mean[seen[i]]);
                c.solve_l(&mut apart);
                let constant = seen.len() as f64 * std::f64::consts::TAU.ln();
                direct -= 0.5 * (apart.dot(&apart) + c.log_det() + constant);
            }
            assert!((grad.value - direct).abs() < 1e-10 * direct.abs(), "{} against {direct}", grad.value);
        }
    }

    #[test]
    fn equal_noises_are_those_of_ppca() {
        let y = holed(20, 5);
        let one = Ppca::fit(&y, &options(2)).unwrap();
        let each = Ppca { noise: vec![one.noise[0]; 5], ..one.clone() };
        let (a, b) = (one.log_likelihood(&y).unwrap(), each.log_likelihood(&y).unwrap());
        assert!((a - b).abs() < 1e-10 * a.abs());
        let (a, b) = (one.impute(&y).unwrap(), each.impute(&y).unwrap());
        assert!(relative_error(a.mean.as_slice(), b.mean.as_slice(), 1e-3) < 1e-10);
        assert!(relative_error(a.var.as_slice(), b.var.as_slice(), 1e-3) < 1e-10);
        assert_eq!(one.noise_variance(), each.noise_variance());
    }

    #[test]
    fn factor_analysis_finds_the_noise_of_every_column() {
        let (n, d, truth) = (1500, 6, [0.3, 0.4, 0.6, 1.0, 2.0, 0.5f64]);
        let mut state = 7u64;
        let mut normal = || {
            // Sums of twelve uniform numbers are near enough to Gaussian ones.
            let uniform = |state: &mut u64| {
                *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (*state >> 11) as f64 / (1u64 << 53) as f64
            };
            (0..12).map(|_| uniform(&mut state)).sum::<f64>() - 6.0
        };
        let x: Vec<[f64; 2]> = (0..n).map(|_| [normal(), normal()]).collect();
        let mut y = Mat::from_fn(n, d, |i, j| {
            let w = [(1.0 + j as f64).sin() * 2.0, (2.0 * j as f64).cos() * 1.5];
            0.5 * j as f64 + w[0] * x[i][0] + w[1] * x[i][1] + truth[j].sqrt() * normal()
        });
        let options = PpcaOptions { noise_kind: NoiseKind::Columns, tolerance: 1e-7, ..options(2) };
        for holes in [false, true] {
            if holes {
                (0..n).step_by(7).for_each(|i| y[(i, i % d)] = f64::NAN);
            }
            let model = Ppca::fit(&y, &options).unwrap();
            assert!(model.converged && model.trace.windows(2).all(|t| t[1] >= t[0] - 1e-9 * t[0].abs()));
            for (found, truth) in model.noise.iter().zip(truth) {
                assert!((found / truth - 1.0).abs() < 0.25, "{:?}", model.noise);
            }
            let shared =
                Ppca::fit(&y, &PpcaOptions { noise_kind: NoiseKind::Shared, ..options.clone() }).unwrap();
            assert!(model.log_likelihood(&y).unwrap() > shared.log_likelihood(&y).unwrap() + 100.0);
        }
    }

    #[test]
    fn wide_data_go_through_the_small_problem() {
        let y = data(6, 15);
        let wide = Ppca::fit(&y, &options(2)).unwrap();
        // The same rows again and again have the same covariance and more rows than columns.
        let tall = y.select_rows(&(0..18).map(|i| i % 6).collect::<Vec<_>>());
        let tall = Ppca::fit(&tall, &options(2)).unwrap();
        assert!(relative_error(wide.w.as_slice(), tall.w.as_slice(), 0.0) < 1e-9);
        assert!((wide.noise[0] - tall.noise[0]).abs() < 1e-12);
        let grad = wide.gradient(&y).unwrap();
        assert!(grad.w.as_slice().iter().all(|g| g.abs() < 1e-7));
    }

    #[test]
    fn scaling_is_undone_everywhere() {
        let y = data(20, 4);
        let scaled =
            Ppca::fit(&y, &PpcaOptions { latent_dim: 2, scale: Scale::Global, ..Default::default() })
                .unwrap();
        let plain = Ppca::fit(&y, &options(2)).unwrap();
        let (a, b) = (scaled.log_likelihood(&y).unwrap(), plain.log_likelihood(&y).unwrap());
        assert!((a - b).abs() < 1e-9 * a.abs());
        let (x, z) = (scaled.transform(&y).unwrap(), plain.transform(&y).unwrap());
        let (a, b) = (scaled.reconstruct(&x.mean).unwrap(), plain.reconstruct(&z.mean).unwrap());
        assert!(relative_error(a.as_slice(), b.as_slice(), 0.0) < 1e-9);
        assert!(relative_error(&scaled.noise_variance(), &plain.noise_variance(), 0.0) < 1e-9);
    }

    #[test]
    fn em_obeys_a_stop_and_keeps_what_it_has() {
        let y = holed(60, 6);
        let stop = |run: &Run| match run.iterations {
            3 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let plan = options(2).plan(&y).unwrap();
        let part = fit::train(&plan, Vec::new(), &stop).unwrap();
        let model = &part.model.model;
        assert_eq!((model.trace.len(), model.converged), (3, false));
        assert!((model.log_likelihood(&y).unwrap() - model.trace[2]).abs() < 1e-9);
        assert_eq!(&fit::model_at(&plan, &part.runs[0]).unwrap().model, model);
        let rest = fit::train(&plan, part.runs.clone(), &fit::go_on).unwrap();
        assert_eq!(rest.model.model, Ppca::fit(&y, &options(2)).unwrap());
        assert!(fit::model_at(&options(1).plan(&y).unwrap(), &part.runs[0]).is_err());
    }

    #[test]
    fn em_climbs_to_a_stationary_point_and_fills_the_holes() {
        let (whole, y) = (data(60, 6), holed(60, 6));
        let model = Ppca::fit(&y, &options(2)).unwrap();
        assert!(model.converged && model.trace.windows(2).all(|t| t[1] >= t[0] - 1e-9));
        let grad = model.gradient(&y).unwrap();
        assert!((grad.value - model.trace[model.trace.len() - 1]).abs() < 1e-6);
        assert!(grad.w.as_slice().iter().chain(&grad.mean).all(|g| g.abs() < 0.1), "{grad:?}");
        let filled = model.impute(&y).unwrap();
        for (at, v) in y.as_slice().iter().enumerate() {
            let (mean, var) = (filled.mean.as_slice()[at], filled.var.as_slice()[at]);
            if v.is_nan() {
                assert!(var >= model.noise[0] && (mean - whole.as_slice()[at]).abs() < 4.0 * var.sqrt());
            } else {
                assert_eq!((mean, var), (*v, 0.0));
            }
        }
        let complete = Ppca::fit(&whole, &options(2)).unwrap();
        assert!(relative_error(model.w.as_slice(), complete.w.as_slice(), 0.0) < 0.1);
        let blank = Mat::filled(1, 6, f64::NAN);
        let prior = model.transform(&blank).unwrap();
        assert_eq!((prior.mean.row(0), &prior.cov[0]), (&[0.0, 0.0][..], &Mat::eye(2)));
    }

    #[test]
    fn em_without_holes_is_the_closed_form() {
        let y = data(40, 5);
        let best = Ppca::fit(&y, &options(2)).unwrap();
        let mut other = best.clone();
        other.w.as_mut_slice().iter_mut().enumerate().for_each(|(i, w)| *w += 0.3 * (i as f64).sin());
        other.noise[0] *= 3.0;
        let mut em =
            PpcaFit { model: other, y: y.clone(), scaled: y.clone(), floor: 1e-12, tolerance: 1e-14 };
        let mut run = Run::new(0, Stage::Free, Vec::new());
        em.iterate(&mut run, 5000, &fit::go_on).unwrap();
        let other = em.model;
        assert!((other.noise[0] - best.noise[0]).abs() < 1e-5 * best.noise[0]);
        let (a, b) = (linalg::mul_nt(&other.w, &other.w), linalg::mul_nt(&best.w, &best.w));
        assert!(relative_error(a.as_slice(), b.as_slice(), 0.0) < 1e-4);
    }

    #[test]
    fn bad_data_is_a_model_or_a_clear_error() {
        let message = |y: &Mat, q: usize| Ppca::fit(y, &options(q)).unwrap_err().to_string();
        assert!(message(&data(9, 3), 3).contains("between 1 and 2"));
        assert!(message(&data(9, 3), 0).contains("latent dimensions"));
        assert!(message(&data(1, 3), 1).contains("no column varies"));
        assert!(message(&Mat::filled(9, 3, 2.0), 1).contains("no column varies"));
        assert!(
            message(&data(9, 3).map(|v| if v > 2.0 { f64::INFINITY } else { v }), 1).contains("infinite")
        );
        for scale in [Scale::None, Scale::Standardize] {
            for unit in [1e-150, 1e150, 1e-300, 1e300] {
                let y = data(9, 4).map(|v| v * unit);
                match Ppca::fit(&y, &PpcaOptions { scale, ..options(2) }) {
                    Ok(model) => {
                        assert!(model.log_likelihood(&y).unwrap().is_finite());
                        assert!(model.reconstruct(&model.transform(&y).unwrap().mean).unwrap().is_finite());
                    }
                    Err(e) => {
                        let clear =
                            ["not finite", "Scale tiny columns"].iter().any(|m| e.to_string().contains(m));
                        assert!(scale == Scale::None && clear, "{e}");
                    }
                }
            }
        }
        // Rows on a line: fewer dimensions than asked for, and fewer rows.
        for n in [2, 3, 9] {
            let line = Mat::from_fn(n, 4, |i, j| i as f64 * (j as f64 + 1.0));
            let model = Ppca::fit(&line, &options(2)).unwrap();
            assert!(model.log_likelihood(&line).unwrap().is_finite());
            let back = model.reconstruct(&model.transform(&line).unwrap().mean).unwrap();
            assert!(relative_error(back.as_slice(), line.as_slice(), 0.0) < 1e-5);
        }
    }
}
