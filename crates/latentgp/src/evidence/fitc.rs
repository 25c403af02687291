//! The evidence of FITC: Snelson & Ghahramani (2006), the sparse pseudo-input process.
//!
//! With Q = Kxz Kzz⁻¹ Kzx, Λ = diag(k − diag Q) + σ²I, Kzz = LLᵀ, W = L⁻¹Kzx, A = I + WΛ⁻¹Wᵀ,
//! V = A⁻¹WΛ⁻¹Y and R = (Q + Λ)⁻¹Y = Λ⁻¹(Y − WᵀV):
//!
//! ```text
//! F    = Σ_d log N(y_d | 0, Q + Λ) = −ND/2·log 2π − D/2·(Σ log λ_n + log|A|) − ½ tr YᵀR
//! k̄_n  = ½ Σ_d r_nd² − D/2·(1/λ_n − w_nᵀA⁻¹w_n/λ_n²)       σ̄² = Σ k̄_n
//! W̄    = (WR)Rᵀ − D·A⁻¹WΛ⁻¹ − 2W diag k̄                    K̄zx = L⁻ᵀW̄     K̄zz = −½ L⁻ᵀ(W̄Wᵀ)L⁻¹
//! posterior   α = L⁻ᵀV     C = I − A⁻¹
//! ```
//!
//! Every matrix is N×M, N×D or M×M: an N×N one exists nowhere.

use crate::blocks;
use crate::error::{Error, Result};
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;

/// The evidence, what its adjoints need, and the posterior of the inducing values.
#[derive(Clone, Debug)]
pub struct Fitc {
    /// F.
    pub value: f64,
    /// α: the posterior mean at z is k(z, Z)α.
    pub alpha: Mat,
    /// Wᵀ, N×M.
    w: Mat,
    /// λ, N×1.
    lambda: Mat,
    a: Cholesky,
    /// R = (Q + Λ)⁻¹Y, N×D.
    r: Mat,
}

/// ∂F of FITC.
#[derive(Clone, Debug)]
pub struct FitcBar {
    /// k̄, of the kernel's diagonal, N.
    pub kxx_diag: Mat,
    /// K̄xz, N×M.
    pub kxz: Mat,
    /// K̄zz, M×M, symmetric.
    pub kzz: Mat,
    /// σ̄².
    pub noise: f64,
}

/// log N(Y | 0, Q + diag(k − diag Q) + σ²I), summed over the columns of Y (N×D).
///
/// `kxx_diag` has N numbers, `kxz` is N×M, `kzz` the factor of an M×M matrix. Errs when shapes disagree, when
/// a number on the diagonal of Λ is not positive, and when the value is not finite.
///
/// ```
/// use latentgp::{Mat, evidence::fitc, linalg::Cholesky};
/// let kzz = Cholesky::new(&Mat::filled(1, 1, 1.0), "Kzz")?;
/// let f = fitc(&Mat::column(&[0.3]), &[1.0], &Mat::filled(1, 1, 0.5), &kzz, 0.25)?;
/// let log_normal = -0.5 * (std::f64::consts::TAU * 1.25).ln() - 0.5 * 0.09 / 1.25;
/// assert!((f.value - log_normal).abs() < 1e-14);
/// # Ok::<(), latentgp::Error>(())
/// ```
pub fn fitc(y: &Mat, kxx_diag: &[f64], kxz: &Mat, kzz: &Cholesky, noise: f64) -> Result<Fitc> {
    let (n, m, d) = (y.rows(), kxz.cols(), y.cols());
    if kxx_diag.len() != n || kxz.rows() != n {
        let found = format!("{} and {} rows", kxx_diag.len(), kxz.rows());
        return Err(Error::shape("rows of the kernel's diagonal and of Kxz", n, found));
    }
    if kzz.l().rows() != m {
        return Err(Error::shape("Kzz", format!("{m} × {m}"), kzz.l().shape()));
    }
    let mut w = kxz.clone();
    kzz.solve_rows(&mut w);
    let lambda = diagonal(kxx_diag, &w, noise)?;

    let mut scaled = w.clone();
    divide_rows(&mut scaled, lambda.as_slice());
    let mut a = blocks::mul_tn(&w, &scaled);
    linalg::symmetrize(&mut a);
    (0..m).for_each(|i| a[(i, i)] += 1.0);
    if !a.is_finite() {
        return Err(Error::not_finite("I + L⁻¹KzxΛ⁻¹KxzL⁻ᵀ"));
    }
    let a = Cholesky::with_jitter(&a, "I + L⁻¹KzxΛ⁻¹KxzL⁻ᵀ")?;
    let mut alpha = a.solve(&blocks::mul_tn(&scaled, y));
    let mut r = y.clone();
    r.add_scaled(-1.0, &linalg::mul(&w, &alpha));
    divide_rows(&mut r, lambda.as_slice());
    kzz.solve_lt(&mut alpha);

    let log_det: f64 = lambda.as_slice().iter().map(|v| v.ln()).sum::<f64>() + a.log_det();
    let d = d as f64;
    let value = -0.5 * n as f64 * d * std::f64::consts::TAU.ln() - 0.5 * d * log_det - 0.5 * y.dot(&r);
    if !value.is_finite() {
        return Err(Error::not_finite("the evidence of FITC"));
    }
    Ok(Fitc { value, alpha, w, lambda, a, r })
}

/// λ_n = k_n − ‖w_n‖² + σ²; rounding below 0 in the difference, where Z passes through x_n, counts as 0.
fn diagonal(kxx_diag: &[f64], w: &Mat, noise: f64) -> Result<Mat> {
    let one = |n: usize, _| {
        let rest = kxx_diag[n] - w.row(n).iter().map(|v| v * v).sum::<f64>();
        if rest < 0.0 { noise } else { rest + noise }
    };
    let lambda = Mat::from_fn(kxx_diag.len(), 1, one);
    match lambda.as_slice().iter().find(|v| !(v.is_finite() && **v > 0.0)) {
        None => Ok(lambda),
        Some(bad) if bad.is_finite() => {
            Err(Error::NotPositiveDefinite { what: "the covariance of FITC".into(), jitter: 0.0 })
        }
        Some(_) => Err(Error::not_finite("the covariance of FITC")),
    }
}

fn divide_rows(a: &mut Mat, by: &[f64]) {
    for (n, by) in by.iter().enumerate() {
        a.row_mut(n).iter_mut().for_each(|v| *v /= by);
    }
}

impl Fitc {
    /// The adjoints, with the factor of Kzz that the value came from.
    pub fn bar(&self, kzz: &Cholesky) -> FitcBar {
        let (n, m, d) = (self.w.rows(), self.w.cols(), self.r.cols() as f64);
        // Rows of A⁻¹W.
        let solved = self.a.solve(&self.w.t()).t();
        let wr = blocks::mul_tn(&self.w, &self.r);
        let mut w_bar = linalg::mul_nt(&self.r, &wr);
        let mut kxx_diag = Mat::zeros(n, 1);
        for i in 0..n {
            let (w, s, lambda) = (self.w.row(i), solved.row(i), self.lambda[(i, 0)]);
            let inner: f64 = w.iter().zip(s).map(|(w, s)| w * s).sum();
            let square: f64 = self.r.row(i).iter().map(|r| r * r).sum();
            kxx_diag[(i, 0)] = 0.5 * square - 0.5 * d * (1.0 - inner / lambda) / lambda;
            let bar = w_bar.row_mut(i);
            for j in 0..m {
                bar[j] -= d * s[j] / lambda + 2.0 * kxx_diag[(i, 0)] * w[j];
            }
        }
        let mut inner = blocks::mul_tn(&w_bar, &self.w);
        linalg::symmetrize(&mut inner);
        inner.scale(-0.5);
        let mut kzx = w_bar.t();
        kzz.solve_lt(&mut kzx);
        FitcBar { noise: kxx_diag.as_slice().iter().sum(), kxx_diag, kxz: kzx.t(), kzz: kzz.unwhiten(&inner) }
    }

    /// C = I − A⁻¹, of the predictive variance k∗∗ − k∗ L⁻ᵀCL⁻¹ k∗ᵀ.
    pub fn c(&self) -> Mat {
        let inverse = self.a.inverse();
        Mat::from_fn(inverse.rows(), inverse.rows(), |i, j| f64::from(i == j) - inverse[(i, j)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{differences, relative_error};

    const GRADIENT: f64 = 1e-8;

    fn wave(rows: usize, cols: usize, seed: f64) -> Mat {
        Mat::from_fn(rows, cols, |i, j| ((i * 5 + j * 3) as f64 * 0.7 + seed).sin())
    }

    /// Kxx diagonal, Kxz and Kzz of one positive definite matrix, as blocks of GᵀG + I/2.
    fn problem() -> (Mat, Vec<f64>, Mat, Mat) {
        let (n, m) = (9, 4);
        let g = wave(20, n + m, 0.4);
        let mut all = linalg::mul_tn(&g, &g);
        (0..n + m).for_each(|i| all[(i, i)] += 0.5);
        let diag = (0..n).map(|i| all[(i, i)]).collect();
        let kxz = Mat::from_fn(n, m, |i, j| all[(i, n + j)]);
        let kzz = Mat::from_fn(m, m, |i, j| all[(n + i, n + j)]);
        (wave(n, 2, 1.3), diag, kxz, kzz)
    }

    /// The definition, with N×N matrices.
    fn dense(y: &Mat, diag: &[f64], kxz: &Mat, kzz: &Mat, noise: f64) -> f64 {
        let n = y.rows();
        let q = linalg::mul(kxz, &Cholesky::new(kzz, "Kzz").unwrap().solve(&kxz.t()));
        let cov = Mat::from_fn(n, n, |i, j| if i == j { diag[i] + noise } else { q[(i, j)] });
        let chol = Cholesky::new(&cov, "the covariance").unwrap();
        let d = y.cols() as f64;
        -0.5 * n as f64 * d * std::f64::consts::TAU.ln()
            - 0.5 * d * chol.log_det()
            - 0.5 * y.dot(&chol.solve(y))
    }

    #[test]
    fn the_value_is_the_dense_one() {
        let (y, diag, kxz, kzz) = problem();
        let chol = Cholesky::new(&kzz, "Kzz").unwrap();
        let ours = fitc(&y, &diag, &kxz, &chol, 0.3).unwrap().value;
        let theirs = dense(&y, &diag, &kxz, &kzz, 0.3);
        assert!((ours - theirs).abs() < 1e-11 * theirs.abs(), "{ours} against {theirs}");
    }

    #[test]
    fn adjoints_are_differences() {
        let (y, diag, kxz, kzz) = problem();
        let (n, m, noise) = (kxz.rows(), kxz.cols(), 0.3);
        let chol = Cholesky::new(&kzz, "Kzz").unwrap();
        let bar = fitc(&y, &diag, &kxz, &chol, noise).unwrap().bar(&chol);
        let u = [&diag[..], kxz.as_slice(), kzz.as_slice(), &[noise]].concat();
        let value = |u: &[f64]| {
            let (diag, rest) = u.split_at(n);
            let (kxz, rest) = rest.split_at(n * m);
            let kxz = Mat::from_vec(n, m, kxz.to_vec()).unwrap();
            let mut kzz = Mat::from_vec(m, m, rest[..m * m].to_vec()).unwrap();
            linalg::symmetrize(&mut kzz);
            let chol = Cholesky::new(&kzz, "Kzz").unwrap();
            fitc(&y, diag, &kxz, &chol, rest[m * m]).unwrap().value
        };
        let ours = [bar.kxx_diag.as_slice(), bar.kxz.as_slice(), bar.kzz.as_slice(), &[bar.noise]].concat();
        let error = relative_error(&ours, &differences(&u, value), 1e-3);
        assert!(error < GRADIENT, "{error:e}");
    }

    #[test]
    fn bad_input_is_an_error() {
        let (y, diag, kxz, kzz) = problem();
        let chol = Cholesky::new(&kzz, "Kzz").unwrap();
        assert!(matches!(fitc(&y, &diag[1..], &kxz, &chol, 0.3), Err(Error::Shape { .. })));
        assert!(matches!(fitc(&y, &diag, &kxz.select_cols(&[0]), &chol, 0.3), Err(Error::Shape { .. })));
        let none = vec![0.0; diag.len()];
        assert!(matches!(fitc(&y, &none, &kxz, &chol, 0.0), Err(Error::NotPositiveDefinite { .. })));
        assert!(matches!(fitc(&y, &diag, &kxz, &chol, f64::NAN), Err(Error::NotFinite { .. })));
        let nan = Mat::filled(kxz.rows(), kxz.cols(), f64::NAN);
        assert!(matches!(fitc(&y, &diag, &nan, &chol, 0.3), Err(Error::NotFinite { .. })));
    }
}
