//! The evidence of an exact Gaussian process.
//!
//! With C = Kxx + σ²I = LLᵀ and α = C⁻¹Y, over all D columns of Y:
//!
//! ```text
//! F   = log N(Y | 0, C) = −ND/2·log 2π − D/2·log|C| − ½ tr Yᵀα
//! K̄xx = ½(ααᵀ − D·C⁻¹)     σ̄² = tr K̄xx     Ȳ = −α
//! without row i    mean = y_i − α_i/[C⁻¹]_ii     var = 1/[C⁻¹]_ii − σ²
//! ```
//!
//! The last line is Rasmussen & Williams (2006), equations 5.10–5.12, for the noise-free function.

use crate::blocks;
use crate::error::{Error, Result};
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;
use crate::scratch;

/// The evidence and what its adjoints and the posterior are made of.
#[derive(Clone, Debug)]
pub struct Exact {
    /// F.
    pub value: f64,
    /// α = C⁻¹Y: the posterior mean at x is k(x, X)α, and Ȳ = −α.
    pub alpha: Mat,
    /// The factor of C.
    pub l: Cholesky,
    outputs: usize,
    noise: f64,
}

/// ∂F; Ȳ = −[`Exact::alpha`].
#[derive(Clone, Debug)]
pub struct ExactBar {
    /// K̄xx, symmetric.
    pub kxx: Mat,
    /// σ̄².
    pub noise: f64,
}

/// log N(Y | 0, Kxx + σ²I) over all columns of Y.
///
/// Errs when Kxx + σ²I has no Cholesky factor or a number is not finite.
///
/// ```
/// use latentgp::{Mat, evidence::exact};
/// let found = exact(&Mat::column(&[0.5, -0.5]), &Mat::eye(2), 1.0)?;
/// let by_hand = -(4.0 * std::f64::consts::PI).ln() - 0.125;
/// assert!((found.value - by_hand).abs() < 1e-15);
/// # Ok::<(), latentgp::Error>(())
/// ```
pub fn exact(y: &Mat, kxx: &Mat, noise: f64) -> Result<Exact> {
    exact_root(y, y.cols(), kxx, noise)
}

/// [`exact`] from a root R of YYᵀ = RRᵀ in the place of Y, which has `outputs` columns. Value, K̄xx and σ̄² are those of Y; α is
/// C⁻¹R.
pub fn exact_root(root: &Mat, outputs: usize, kxx: &Mat, noise: f64) -> Result<Exact> {
    if kxx.rows() != root.rows() || kxx.cols() != root.rows() {
        return Err(Error::shape("Kxx", format!("{0} × {0}", root.rows()), kxx.shape()));
    }
    if !kxx.is_finite() {
        return Err(Error::not_finite("Kxx + σ²I"));
    }
    exact_in_place(root, outputs, kxx.clone(), || kxx.clone(), noise)
}

/// [`exact_root`] in the memory of Kxx, which is finite and of which the lower triangle is read. `again` makes Kxx once more
/// where C needs jitter.
pub(crate) fn exact_in_place(
    root: &Mat,
    outputs: usize,
    kxx: Mat,
    again: impl Fn() -> Mat,
    noise: f64,
) -> Result<Exact> {
    let noisy = |mut c: Mat| {
        (0..c.rows()).for_each(|i| c[(i, i)] += noise);
        c
    };
    let l = Cholesky::in_place(noisy(kxx), || noisy(again()), "Kxx + σ²I")?;
    let mut alpha = scratch::copied(root);
    l.solve_l(&mut alpha);
    let fit = alpha.dot(&alpha);
    l.solve_lt(&mut alpha);
    let (n, d) = (root.rows() as f64, outputs as f64);
    let value = -0.5 * d * (n * std::f64::consts::TAU.ln() + l.log_det()) - 0.5 * fit;
    if !(value.is_finite() && alpha.is_finite()) {
        return Err(Error::not_finite("the log evidence"));
    }
    Ok(Exact { value, alpha, l, outputs, noise })
}

impl Exact {
    /// The adjoints.
    pub fn bar(&self) -> ExactBar {
        let mut bar = self.clone().into_bar_lower().0;
        linalg::mirror_lower(&mut bar.kxx);
        bar
    }

    /// The adjoints, with the lower triangle of K̄xx alone, in the memory of L; and α.
    pub(crate) fn into_bar_lower(self) -> (ExactBar, Mat) {
        let Exact { alpha, l, outputs, .. } = self;
        let mut kxx = l.into_inverse_lower();
        let n = kxx.rows();
        blocks::each_part(n, n * (alpha.cols() + 1), [&mut kxx], |rows, [kxx]| {
            let products = linalg::outer_rows(&alpha, rows.clone());
            for (i, kxx) in kxx.chunks_exact_mut(n).enumerate() {
                for (v, product) in kxx[..=rows.start + i].iter_mut().zip(products.row(i)) {
                    *v = 0.5 * (product - outputs as f64 * *v);
                }
            }
        });
        (ExactBar { noise: kxx.trace(), kxx }, alpha)
    }

    /// Mean (N×D) and variance (N) of the noise-free function at each row, from the other rows.
    pub fn leave_one_out(&self, y: &Mat) -> (Mat, Vec<f64>) {
        let root = self.l.inverse_l();
        let n = root.rows();
        let mut precision = vec![0.0; n];
        for i in 0..n {
            precision.iter_mut().zip(root.row(i)).for_each(|(p, r)| *p += r * r);
        }
        let mean = Mat::from_fn(n, y.cols(), |i, d| y[(i, d)] - self.alpha[(i, d)] / precision[i]);
        (mean, precision.iter().map(|p| (1.0 / p - self.noise).max(0.0)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{differences, relative_error};
    use std::f64::consts::TAU;

    fn problem() -> (Mat, Mat) {
        let y = Mat::from_fn(5, 3, |i, j| (1.7 * i as f64 - 0.8 * j as f64).sin());
        let a = Mat::from_fn(7, 5, |i, j| ((i * 5 + j) as f64 * 0.37).cos());
        (y, linalg::mul_tn(&a, &a))
    }

    #[test]
    fn the_value_is_the_density() {
        let (y, k) = problem();
        let found = exact(&y, &k, 0.3).unwrap();
        let mut c = k.clone();
        (0..5).for_each(|i| c[(i, i)] += 0.3);
        let (values, vectors) = linalg::eigh(&c).unwrap();
        let turned = linalg::mul_tn(&vectors, &y);
        let one = |i: usize, d: usize| -0.5 * ((TAU * values[i]).ln() + turned[(i, d)].powi(2) / values[i]);
        let slow: f64 = (0..5).flat_map(|i| (0..3).map(move |d| (i, d))).map(|(i, d)| one(i, d)).sum();
        assert!((found.value - slow).abs() < 1e-11 * slow.abs());
    }

    #[test]
    fn adjoints_agree_with_differences() {
        let (y, k) = problem();
        let found = exact(&y, &k, 0.3).unwrap();
        let bar = found.bar();
        let value = |u: &[f64]| {
            let y = Mat::from_vec(5, 3, u[..15].to_vec()).unwrap();
            let mut k = Mat::from_vec(5, 5, u[15..40].to_vec()).unwrap();
            linalg::symmetrize(&mut k);
            exact(&y, &k, u[40]).unwrap().value
        };
        let u = [y.as_slice(), k.as_slice(), &[0.3]].concat();
        let mut y_bar = found.alpha.clone();
        y_bar.scale(-1.0);
        let ours = [y_bar.as_slice(), bar.kxx.as_slice(), &[bar.noise]].concat();
        assert!(relative_error(&ours, &differences(&u, value), 1e-3) < 1e-8);
    }

    #[test]
    fn a_root_of_the_outer_product_serves_wide_data() {
        let (_, k) = problem();
        let y = Mat::from_fn(5, 9, |i, j| (1.7 * i as f64 - 0.8 * j as f64).sin());
        let (values, vectors) = linalg::eigh(&linalg::mul_nt(&y, &y)).unwrap();
        let root = Mat::from_fn(5, 5, |i, j| vectors[(i, j)] * values[j].max(0.0).sqrt());
        let (a, b) = (exact(&y, &k, 0.3).unwrap(), exact_root(&root, 9, &k, 0.3).unwrap());
        assert!((a.value - b.value).abs() < 1e-11 * a.value.abs());
        assert!(relative_error(a.bar().kxx.as_slice(), b.bar().kxx.as_slice(), 0.0) < 1e-10);
    }
}
