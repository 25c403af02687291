//! Rows of a PPCA that lack the same cells, and the M step over them.
//!
//! With W and Y cut to the observed columns, X̂ = (Y − m)WM⁻¹ and E = Y − m − X̂Wᵀ:
//!
//! ```text
//! log p = −½ Σ_n (d log 2π + (d − q) log σ² + log|M| + ‖E_n‖²/σ² + ‖x̂_n‖²)
//! ```
//!
//! (y − m)ᵀC⁻¹(y − m) = ‖e‖²/σ² + ‖x̂‖² is a sum of squares, where the usual form is a difference. Where every column has
//! its noise ψ_d, W, Y − m and E are divided by √ψ_d, σ² = 1, and log p has −½ Σ_d log ψ_d more for every row.

use crate::error::{Error, Result};
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;
use crate::model::latent::ppca::{Ppca, PpcaGrad, quadratic};
use std::collections::BTreeMap;

/// Rows at which the same columns were observed.
pub(crate) struct Part {
    pub rows: Vec<usize>,
    pub seen: Vec<usize>,
}

/// The rows by what is missing.
pub(crate) fn parts(y: &Mat) -> Vec<Part> {
    let mut by_seen: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
    for n in 0..y.rows() {
        let seen = (0..y.cols()).filter(|j| !y[(n, *j)].is_nan()).collect();
        by_seen.entry(seen).or_default().push(n);
    }
    by_seen.into_iter().map(|(seen, rows)| Part { rows, seen }).collect()
}

/// The posterior of a part's rows.
pub(crate) struct Rows {
    seen: Vec<usize>,
    w: Mat,
    /// X̂, one row each.
    pub x: Mat,
    /// σ²M⁻¹, shared.
    pub cov: Mat,
    m_inverse: Mat,
    log_det: f64,
    error: Mat,
    /// σ², 1 where the columns are divided by their own.
    noise: f64,
    /// √ψ of the columns seen, where every column has its own.
    roots: Option<Vec<f64>>,
}

impl Ppca {
    pub(crate) fn rows(&self, part: &Part, y: &Mat) -> Result<Rows> {
        let q = self.w.cols();
        let mut w = self.w.select_rows(&part.seen);
        let mut centred = Mat::from_fn(part.rows.len(), part.seen.len(), |i, j| {
            y[(part.rows[i], part.seen[j])] - self.mean[part.seen[j]]
        });
        let roots = (self.noise.len() > 1)
            .then(|| part.seen.iter().map(|&j| self.noise[j].sqrt()).collect::<Vec<f64>>());
        if let Some(roots) = &roots {
            for (j, root) in roots.iter().enumerate() {
                w.row_mut(j).iter_mut().for_each(|w| *w /= root);
                (0..centred.rows()).for_each(|i| centred[(i, j)] /= root);
            }
        }
        let noise = if roots.is_some() { 1.0 } else { self.noise[0] };
        let mut m = linalg::mul_tn(&w, &w);
        (0..q).for_each(|k| m[(k, k)] += noise);
        if !m.is_finite() {
            return Err(Error::not_finite("WᵀW + σ²I"));
        }
        let m = Cholesky::with_jitter(&m, "WᵀW + σ²I")?;
        let x = m.solve(&linalg::mul_tn(&w, &centred.t())).t();
        let mut error = centred;
        linalg::gemm(-1.0, &x, linalg::Op::N, &w, linalg::Op::T, &mut error);
        let m_inverse = m.inverse();
        let mut cov = m_inverse.clone();
        cov.scale(noise);
        let log_det = m.log_det();
        Ok(Rows { seen: part.seen.clone(), w, x, cov, m_inverse, log_det, error, noise, roots })
    }

    /// The M step: W and m of each column by least squares on the expected moments, then σ² or ψ.
    pub(crate) fn maximise(&mut self, y: &Mat, parts: &[Part], rows: &[Rows], floor: f64) -> Result<()> {
        let (d, q) = (self.w.rows(), self.w.cols());
        let mut moments = vec![(Mat::zeros(q + 1, q + 1), Mat::zeros(q + 1, 1)); d];
        for (part, r) in parts.iter().zip(rows) {
            let n = r.x.rows();
            let ones = Mat::from_fn(n, q + 1, |i, k| if k < q { r.x[(i, k)] } else { 1.0 });
            let mut second = linalg::mul_tn(&ones, &ones);
            for a in 0..q {
                (0..q).for_each(|b| second[(a, b)] += n as f64 * r.cov[(a, b)]);
            }
            let own = Mat::from_fn(n, part.seen.len(), |i, j| y[(part.rows[i], part.seen[j])]);
            let cross = linalg::mul_tn(&ones, &own);
            for (j, &column) in part.seen.iter().enumerate() {
                let (a, b) = &mut moments[column];
                a.add_scaled(1.0, &second);
                (0..=q).for_each(|k| b[(k, 0)] += cross[(k, j)]);
            }
        }
        for (column, (a, b)) in moments.iter().enumerate() {
            let found = Cholesky::with_jitter(a, "the moments of the latent positions")?.solve(b);
            (0..q).for_each(|k| self.w[(column, k)] = found[(k, 0)]);
            self.mean[column] = found[(q, 0)];
        }
        let (mut squares, mut cells) = (0.0, 0);
        let mut each = vec![(0.0, 0); d];
        for (part, r) in parts.iter().zip(rows) {
            for &j in &part.seen {
                let w = self.w.row(j);
                let apart = |(i, &n): (usize, &usize)| {
                    let guess: f64 = w.iter().zip(r.x.row(i)).map(|(w, x)| w * x).sum();
                    (y[(n, j)] - self.mean[j] - guess).powi(2)
                };
                let (own, spread): (f64, f64) = (
                    part.rows.iter().enumerate().map(apart).sum(),
                    part.rows.len() as f64 * quadratic(&r.cov, w),
                );
                squares += own;
                squares += spread;
                each[j].0 += own + spread;
                each[j].1 += part.rows.len();
            }
            cells += part.rows.len() * part.seen.len();
        }
        let variance = |(squares, cells): (f64, usize)| {
            (squares / cells.max(1) as f64).max(floor).max(f64::MIN_POSITIVE)
        };
        self.noise = match self.noise.len() {
            1 => vec![variance((squares, cells))],
            _ => each.into_iter().map(variance).collect(),
        };
        Ok(())
    }
}

impl Rows {
    pub fn log_likelihood(&self) -> f64 {
        let noise = self.noise;
        let (n, d, q) = (self.x.rows() as f64, self.seen.len() as f64, self.x.cols() as f64);
        let constant = d * std::f64::consts::TAU.ln() + (d - q) * noise.ln() + self.log_det;
        let log_roots: f64 = self.roots.iter().flatten().map(|root| root.ln()).sum();
        -0.5 * (n * constant + self.error.dot(&self.error) / noise + self.x.dot(&self.x)) - n * log_roots
    }

    pub fn add_gradient(&self, grad: &mut PpcaGrad) {
        let noise = self.noise;
        let (n, d, q) = (self.x.rows() as f64, self.seen.len() as f64, self.x.cols() as f64);
        let mut w = linalg::mul(&self.w, &self.m_inverse);
        w.scale(-n);
        linalg::gemm(1.0 / noise, &self.error, linalg::Op::T, &self.x, linalg::Op::N, &mut w);
        for (i, &column) in self.seen.iter().enumerate() {
            let root = self.roots.as_ref().map_or(1.0, |roots| roots[i]);
            grad.w.row_mut(column).iter_mut().zip(w.row(i)).for_each(|(a, b)| *a += b / root);
            let error = self.error.col(i);
            grad.mean[column] += error.iter().sum::<f64>() / noise / root;
            if self.roots.is_some() {
                // [C⁻¹]_dd of unit noise is 1 − w_dᵀM⁻¹w_d.
                let inverse = 1.0 - quadratic(&self.m_inverse, self.w.row(i));
                let square: f64 = error.iter().map(|e| e * e).sum();
                grad.noise[column] += 0.5 * (square - n * inverse) / (root * root);
            }
        }
        if self.roots.is_some() {
            return;
        }
        let trace = (d - q) / noise + self.m_inverse.trace();
        grad.noise[0] += 0.5 * self.error.dot(&self.error) / noise / noise - 0.5 * n * trace;
    }
}
