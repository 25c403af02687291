//! Closed forms at one input with a full covariance, x = μ + Rξ with ξ ~ N(0, I).
//!
//! With A = diag a and B = diag b the precisions of two terms, δ = z − μ, δ' = z' − μ:
//!
//! ```text
//! G = I + Rᵀ(A + B)R = LLᵀ     T = RL⁻ᵀ     y = Tᵀ(Aδ + Bδ')
//! E[exp(−½(x−z)ᵀA(x−z) − ½(x−z')ᵀB(x−z')) p(x)] = |G|^(−½) exp(½(yᵀy − δᵀAδ − δ'ᵀBδ')) · E[p(x̃)]
//! x̃ ~ N(μ + Ty, TTᵀ)
//! ```
//!
//! and moments of x̃ follow from Isserlis' theorem. R may have fewer columns than rows.

use super::pair::{Factor, Pair};
use crate::error::{Error, Result};
use crate::expectation::Correlated;
use crate::kernel::{self, Kernel};
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;
use crate::param;

/// E[k(x, x)], E[k(x, z_m)], E[k(x, z_m) k(x, z_m')] and Cov[x_q, k(x, z_m)], Q×M.
pub(in crate::expectation) struct Raw {
    pub psi0: f64,
    pub psi1: Mat,
    pub psi2: Mat,
    pub cross: Mat,
}

/// The Gaussian that a pair of terms tilts x to, up to its mean.
struct Tilt {
    /// T, Q×r.
    t: Mat,
    /// TTᵀ.
    cov: Mat,
    /// −½ log|G|.
    log: f64,
}

impl Tilt {
    fn new(pair: &Pair<'_>, q: &Correlated) -> Result<Self> {
        let r = q.root.cols();
        let weight = |i: usize| pair.t.precision[i] + pair.u.precision[i];
        let weighted = Mat::from_fn(q.root.rows(), r, |i, j| weight(i) * q.root[(i, j)]);
        let mut g = linalg::mul_tn(&q.root, &weighted);
        (0..r).for_each(|i| g[(i, i)] += 1.0);
        linalg::symmetrize(&mut g);
        let l = Cholesky::new(&g, "I + Rᵀ(A + B)R")?;
        let mut t = q.root.clone();
        l.solve_rows(&mut t);
        Ok(Tilt { cov: linalg::mul_nt(&t, &t), log: -0.5 * l.log_det(), t })
    }

    /// Tᵀ diag(a) (z_m − μ) of every m, and δᵀAδ.
    fn pull(&self, factor: &Factor, q: &Correlated, z: &Mat, places: usize) -> (Mat, Vec<f64>) {
        let delta = |m: usize, i: usize| z[(m, i)] - q.mean[i];
        let weighted = Mat::from_fn(places, z.cols(), |m, i| match factor.precision[i] {
            0.0 => 0.0,
            a => a * delta(m, i),
        });
        let square = |m: usize| (0..z.cols()).map(|i| weighted[(m, i)] * delta(m, i)).sum();
        (linalg::mul(&weighted, &self.t), (0..places).map(square).collect())
    }
}

/// E[∏ x_i over `indices`] of a Gaussian (Isserlis).
fn moment(indices: &[usize], mean: &dyn Fn(usize) -> f64, cov: &Mat) -> f64 {
    let Some((&i, rest)) = indices.split_first() else { return 1.0 };
    let paired = |k: usize| {
        let others: Vec<usize> = rest.iter().enumerate().filter(|(o, _)| *o != k).map(|(_, &j)| j).collect();
        cov[(i, rest[k])] * moment(&others, mean, cov)
    };
    mean(i) * moment(rest, mean, cov) + (0..rest.len()).map(paired).sum::<f64>()
}

/// The expectations of a pair, `rows × cols`, once for each of `extra`: factors x_q in addition.
fn expectations(pair: &Pair<'_>, q: &Correlated, z: &Mat, extra: &[Option<usize>]) -> Result<Vec<Mat>> {
    let tilt = Tilt::new(pair, q)?;
    let (left, left_square) = tilt.pull(pair.t, q, z, pair.rows);
    let (right, right_square) = tilt.pull(pair.u, q, z, pair.cols);
    let powers = [&pair.t.term.powers[..], &pair.u.term.powers[..]].concat();
    let indices: Vec<Vec<usize>> = extra.iter().map(|e| powers.iter().copied().chain(*e).collect()).collect();
    let mut out = vec![Mat::zeros(pair.rows, pair.cols); extra.len()];
    let mut y = vec![0.0; q.root.cols()];
    for i in 0..pair.rows {
        for j in 0..pair.cols {
            y.iter_mut().zip(left.row(i).iter().zip(right.row(j))).for_each(|(y, (a, b))| *y = a + b);
            let square: f64 = y.iter().map(|v| v * v).sum();
            let gauss = (tilt.log + 0.5 * (square - left_square[i] - right_square[j])).exp();
            let mean =
                |at: usize| q.mean[at] + tilt.t.row(at).iter().zip(&y).map(|(t, y)| t * y).sum::<f64>();
            for (out, indices) in out.iter_mut().zip(&indices) {
                out[(i, j)] = gauss * moment(indices, &mean, &tilt.cov);
            }
        }
    }
    Ok(out)
}

/// Ψ-statistics and covariances with the input.
///
/// Errs when the kernel has no closed form.
pub(in crate::expectation) fn raw(kernel: &dyn Kernel, q: &Correlated, z: &Mat) -> Result<Raw> {
    kernel::check_dim(kernel, q.mean.len())?;
    let form = kernel.closed_form().ok_or_else(|| Error::NoClosedForm { kernel: kernel.expression() })?;
    let (m, dim) = (z.rows(), q.mean.len());
    let theta = param::values(kernel);
    let factors: Vec<Factor> = form.terms.into_iter().map(|t| Factor::new(t, &theta, dim)).collect();
    let cov = linalg::mul_nt(&q.root, &q.root);
    let squared = |f: &Factor| {
        let twice: Vec<usize> = f.term.powers.iter().flat_map(|&p| [p, p]).collect();
        f.scale * moment(&twice, &|i| q.mean[i], &cov)
    };
    let psi0 = factors.iter().map(squared).sum();

    let unit = Factor::unit(dim);
    let smooth: Vec<&Factor> = factors.iter().filter(|f| !f.term.white).collect();
    let extra: Vec<Option<usize>> = std::iter::once(None).chain((0..dim).map(Some)).collect();
    let (mut psi1, mut psi2, mut cross) = (Mat::zeros(1, m), Mat::zeros(m, m), Mat::zeros(dim, m));
    for (i, u) in smooth.iter().enumerate() {
        let single = Pair::new(&unit, u, m, false);
        let found = expectations(&single, q, z, &extra)?;
        for j in 0..m {
            let (at, factor) = (j.min(single.cols - 1), u.scale * u.monomial(z.row(j), None));
            psi1[(0, j)] += factor * found[0][(0, at)];
            for p in 0..dim {
                cross[(p, j)] += factor * (found[p + 1][(0, at)] - q.mean[p] * found[0][(0, at)]);
            }
        }
        for (k, t) in smooth.iter().enumerate().take(i + 1) {
            let pair = Pair::new(u, t, m, i == k);
            let found = &expectations(&pair, q, z, &[None])?[0];
            spread(&pair, found, z, &mut psi2);
        }
    }
    linalg::mirror_lower(&mut psi2);
    Ok(Raw { psi0, psi1, psi2, cross })
}

/// Adds a pair's C + Cᵀ (C alone where the terms are the same) to the lower triangle of Ψ2.
fn spread(pair: &Pair<'_>, found: &Mat, z: &Mat, psi2: &mut Mat) {
    let m = z.rows();
    let of = |f: &Factor| -> Vec<f64> { (0..m).map(|j| f.monomial(z.row(j), None)).collect() };
    let (left, right) = (of(pair.t), of(pair.u));
    let at = |i: usize, j: usize| {
        pair.scale() * found[(i.min(pair.rows - 1), j.min(pair.cols - 1))] * left[i] * right[j]
    };
    for i in 0..m {
        for j in 0..=i {
            psi2[(i, j)] += if pair.same { at(i, j) } else { at(i, j) + at(j, i) };
        }
    }
}
