//! The bound and its gradient, block by block.
//!
//! With A = L⁻¹Kzx of a block, and ḡ_c, s̄_c the derivatives of its expected log likelihood in the means and
//! variances of the latent values,
//!
//! ```text
//! μ̄_c = Aḡ_c − μ_c     T̄_c = 2 H_cT_c − T_c + diag(1/T_c,jj),  H_c = A diag(s̄_c) Aᵀ,  lower triangle
//! Ā = Σ_c μ_cḡ_cᵀ + 2(T_cT_cᵀ − I)A diag(s̄_c)     K̄zx = L⁻ᵀĀ     k̄(x, x) = Σ_c s̄_c     m̄_c = Σ ḡ_c
//! K̄zz = −½ L⁻ᵀ (lower triangle of ĀAᵀ, mirrored) L⁻¹     λ̄ = Σ_n ∂E[ln p(y_n | f_n)]/∂λ
//! ```
//!
//! with λ the parameters of the likelihood.
//!
//! ĀAᵀ follows from Aḡ_c and H_c, so that only these sums are kept of a block.

use super::Svgp;
use crate::blocks::{self, Parts, part_rows};
use crate::error::{Error, Result};
use crate::fast::vmath::groups;
use crate::kernel::{InlineVec, KernelGrad};
use crate::likelihood::Observations;
use crate::linalg::{self, Cholesky};
use crate::mat::{Mat, all_finite};
use crate::model::shared::kzz;
use crate::param;
use crate::scratch::Buffer;
use std::ops::Range;

/// The matrices that all blocks share.
struct Shared {
    l: Cholesky,
    /// T_c.
    roots: InlineVec<Mat>,
    /// 2(T_cT_cᵀ − I).
    spread: InlineVec<Mat>,
}

/// Latent values of a block, C×B, and A, M×B.
struct Block {
    x: Mat,
    a: Mat,
    mean: Mat,
    var: Mat,
}

/// The sums over the rows of a block.
struct Sums {
    value: f64,
    /// Aḡ_c, C×M.
    mean: Mat,
    /// H_c.
    h: InlineVec<Mat>,
    m_bar: Buffer<f64>,
    theta: Buffer<f64>,
    /// λ̄.
    lambda: Buffer<f64>,
    z: Mat,
    /// The gradient in the rows of the block, where inputs are uncertain.
    x: Option<Mat>,
}

impl Shared {
    fn new(model: &Svgp) -> Result<Self> {
        let roots: InlineVec<Mat> = (0..model.q_mean.value.rows()).map(|c| model.root(c)).collect();
        let spread = roots
            .iter()
            .map(|t| {
                let mut s = linalg::mul_nt(t, t);
                (0..s.rows()).for_each(|i| s[(i, i)] -= 1.0);
                s.scale(2.0);
                s
            })
            .collect();
        Ok(Shared { l: model.kzz()?, roots, spread })
    }

    fn block(&self, model: &Svgp, x: Mat) -> Block {
        let (b, m, latents) = (x.rows(), model.z.value.rows(), self.roots.len());
        let mut cross = Mat::zeros(b, m);
        model.kernel.cross(&x, &model.z.value, &mut cross);
        let mut a = cross.t();
        self.l.solve_l(&mut a);
        let mut prior = Buffer::filled(0.0, b);
        model.kernel.diag(&x, &mut prior);
        for j in 0..m {
            prior.iter_mut().zip(a.row(j)).for_each(|(p, a)| *p -= a * a);
        }
        let mut mean = linalg::mul(&model.q_mean.value, &a);
        let mut var = Mat::zeros(latents, b);
        for c in 0..latents {
            mean.row_mut(c).iter_mut().for_each(|f| *f += model.mean.as_slice()[c]);
            let seen = linalg::mul_tn(&self.roots[c], &a);
            let out = var.row_mut(c);
            // Rounding may make the conditional prior variance negative.
            out.iter_mut().zip(&prior).for_each(|(v, p)| *v = p.max(0.0));
            for j in 0..m {
                out.iter_mut().zip(seen.row(j)).for_each(|(v, s)| *v += s * s);
            }
        }
        Block { x, a, mean, var }
    }
}

/// Σ E[ln p] over the rows of a block, where row i of the block is `row(i)` of the data. *Sets* its
/// derivatives in means and variances, and *adds* the derivatives in the likelihood's parameters to `lambda`,
/// which is empty where they are not needed.
fn expected(model: &Svgp, row: &dyn Fn(usize) -> usize, at: &mut Block, lambda: &mut [f64]) -> Result<f64> {
    let mut value = 0.0;
    let points = model.uncertain.as_ref();
    let mut own = Buffer::filled(0.0, lambda.len());
    match &model.observations {
        Observations::One { y, likelihood } => {
            for i in 0..at.x.rows() {
                let (y, mean, var) = (y[row(i)], at.mean[(0, i)], at.var[(0, i)]);
                let e = likelihood.expected(y, mean, var, &model.rule);
                let w = points.map_or(1.0, |p| p.weight(row(i)));
                match points {
                    _ if lambda.is_empty() => {}
                    None => likelihood.expected_adjoint(y, mean, var, &model.rule, lambda),
                    Some(_) => {
                        own.fill(0.0);
                        likelihood.expected_adjoint(y, mean, var, &model.rule, &mut own);
                        lambda.iter_mut().zip(own.iter()).for_each(|(l, o)| *l += w * o);
                    }
                }
                value += w * e.value;
                (at.mean[(0, i)], at.var[(0, i)]) = (w * e.mean, w * e.var);
            }
        }
        Observations::Classes { labels, likelihood } => {
            let classes = likelihood.classes;
            let (mut mean_bar, mut var_bar) = (Buffer::filled(0.0, classes), Buffer::filled(0.0, classes));
            for i in 0..at.x.rows() {
                let column = |of: &Mat| Buffer::of((0..classes).map(|c| of[(c, i)]));
                let (y, mean, var) = (labels[row(i)], column(&at.mean), column(&at.var));
                let w = points.map_or(1.0, |p| p.weight(row(i)));
                value += w * likelihood.expected(y, &mean, &var, &model.nodes, &mut mean_bar, &mut var_bar);
                for c in 0..classes {
                    (at.mean[(c, i)], at.var[(c, i)]) = (w * mean_bar[c], w * var_bar[c]);
                }
            }
        }
    }
    match value.is_finite() {
        true => Ok(value),
        false => Err(Error::not_finite("the expected log likelihood")),
    }
}

/// Applies `then` to each block of the listed rows, or of all rows, and returns the results in order.
fn each_block<T: Send>(
    x: &Mat,
    listed: Option<&[usize]>,
    then: impl Fn(Mat, &dyn Fn(usize) -> usize) -> Result<T> + Sync,
) -> Result<Parts<T>> {
    let n = listed.map_or(x.rows(), <[usize]>::len);
    let one = |own: Range<usize>| match listed {
        None => then(x.slice_rows(own.start, own.end), &|i| own.start + i),
        Some(listed) => then(x.select_rows(&listed[own.clone()]), &|i| listed[own.start + i]),
    };
    blocks::each_of(groups(0..n, part_rows(n)), false, one).into_iter().collect()
}

/// KL(q(v) ‖ p(v)).
fn divergence(model: &Svgp) -> f64 {
    let square = |p: &param::Param| p.as_slice().iter().map(|v| v * v).sum::<f64>();
    let (mean, diagonal, lower) = (&model.q_mean, &model.q_diagonal, &model.q_lower);
    let log: f64 = diagonal.as_slice().iter().map(|t| t.ln()).sum();
    0.5 * (square(mean) + square(diagonal) + square(lower) - diagonal.len() as f64) - log
}

fn finite(value: f64) -> Result<f64> {
    if value.is_finite() { Ok(value) } else { Err(Error::not_finite("the evidence bound")) }
}

/// The bound of all rows.
pub(super) fn value(model: &Svgp) -> Result<f64> {
    let shared = Shared::new(model)?;
    let parts = each_block(&model.current(), None, |x, row| {
        expected(model, row, &mut shared.block(model, x), &mut [])
    })?;
    let value = model.weight * parts.iter().sum::<f64>() - divergence(model);
    match &model.uncertain {
        None => finite(value),
        Some(uncertain) => finite(value - uncertain.x.kl()?),
    }
}

/// The bound and its gradient; with `rows`, an estimate of both from these rows.
pub(super) fn gradient(model: &Svgp, rows: Option<&[usize]>, grad: &mut [f64]) -> Result<f64> {
    let shared = Shared::new(model)?;
    let inputs = model.current();
    let scale = model.weight * rows.map_or(1.0, |r| inputs.rows() as f64 / r.len() as f64);
    let parts = each_block(&inputs, rows, |x, row| {
        let mut at = shared.block(model, x);
        let mut lambda = Buffer::filled(0.0, param::count(&model.observations));
        let value = scale * expected(model, row, &mut at, &mut lambda)?;
        at.mean.scale(scale);
        at.var.scale(scale);
        lambda.iter_mut().for_each(|l| *l *= scale);
        Ok(sums(model, &shared, at, value, lambda))
    })?;
    let points_bar = model.uncertain.is_some().then(|| {
        let mut all = Mat::zeros(inputs.rows(), inputs.cols());
        let each = parts
            .iter()
            .filter_map(|part| part.x.as_ref())
            .flat_map(|x| (0..x.rows()).map(move |i| x.row(i)));
        for (k, bar) in each.enumerate() {
            all.row_mut(rows.map_or(k, |rows| rows[k])).copy_from_slice(bar);
        }
        all
    });
    let mut parts = parts.into_iter();
    let mut total = parts.next().expect("at least one row");
    parts.for_each(|part| total.add(&part));
    let own = grad.len() - model.uncertain.as_ref().map_or(0, |u| param::count(&u.x));
    let (grad_own, slots) = grad.split_at_mut(own);
    write(model, &shared, &mut total, grad_own);
    let kl = match (&model.uncertain, &points_bar) {
        (Some(uncertain), Some(bar)) => uncertain.pull(bar, slots)?,
        _ => 0.0,
    };
    if !all_finite(grad) {
        return Err(Error::not_finite("the gradient of the evidence bound"));
    }
    finite(total.value - divergence(model) - kl)
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.value += other.value;
        self.mean.add_scaled(1.0, &other.mean);
        self.h.iter_mut().zip(&other.h).for_each(|(a, b)| a.add_scaled(1.0, b));
        self.m_bar.iter_mut().zip(&other.m_bar).for_each(|(a, b)| *a += b);
        self.theta.iter_mut().zip(&other.theta).for_each(|(a, b)| *a += b);
        self.lambda.iter_mut().zip(&other.lambda).for_each(|(a, b)| *a += b);
        self.z.add_scaled(1.0, &other.z);
    }
}

/// The sums of a block; `at` holds ḡ and s̄ instead of means and variances.
fn sums(model: &Svgp, shared: &Shared, at: Block, value: f64, lambda: Buffer<f64>) -> Sums {
    let (latents, b) = (at.mean.rows(), at.x.rows());
    let z = &model.z.value;
    let mut a_bar = linalg::mul_tn(&model.q_mean.value, &at.mean);
    let mut h = InlineVec::new();
    let mut diag_bar = Buffer::filled(0.0, b);
    for c in 0..latents {
        let mut weighted = at.a.clone();
        for j in 0..weighted.rows() {
            weighted.row_mut(j).iter_mut().zip(at.var.row(c)).for_each(|(a, s)| *a *= s);
        }
        h.push(linalg::mul_nt(&weighted, &at.a));
        linalg::gemm(1.0, &shared.spread[c], linalg::Op::N, &weighted, linalg::Op::N, &mut a_bar);
        diag_bar.iter_mut().zip(at.var.row(c)).for_each(|(d, s)| *d += s);
    }
    shared.l.solve_lt(&mut a_bar);
    let mut theta = Buffer::filled(0.0, param::count(&model.kernel));
    let mut z_bar = Mat::zeros(z.rows(), z.cols());
    let mut x_bar = model.uncertain.is_some().then(|| Mat::zeros(b, at.x.cols()));
    let grad = KernelGrad { theta: &mut theta, x: x_bar.as_mut(), z: Some(&mut z_bar) };
    model.kernel.cross_adjoint(&at.x, z, &a_bar.t(), grad);
    let grad = KernelGrad { theta: &mut theta, x: x_bar.as_mut(), z: None };
    model.kernel.diag_adjoint(&at.x, &diag_bar, grad);
    let m_bar = Buffer::of((0..latents).map(|c| at.mean.row(c).iter().sum()));
    Sums { value, mean: linalg::mul_nt(&at.mean, &at.a), h, m_bar, theta, lambda, z: z_bar, x: x_bar }
}

/// Computes the gradient from the sums over all rows, in the order of the parameters.
fn write(model: &Svgp, shared: &Shared, total: &mut Sums, grad: &mut [f64]) {
    let (latents, m) = (shared.roots.len(), model.z.value.rows());
    // ĀAᵀ.
    let mut outer = linalg::mul_tn(&model.q_mean.value, &total.mean);
    for c in 0..latents {
        linalg::gemm(1.0, &shared.spread[c], linalg::Op::N, &total.h[c], linalg::Op::N, &mut outer);
    }
    linalg::mirror_lower(&mut outer);
    outer.scale(-0.5);
    let kzz_bar = shared.l.unwhiten(&outer);
    let into = KernelGrad { theta: &mut total.theta, x: Some(&mut total.z), z: None };
    kzz::adjoint(&*model.kernel, &model.z.value, model.jitter, &kzz_bar, into);

    total.mean.add_scaled(-1.0, &model.q_mean.value);
    let mut rest = grad;
    let (z, mean) = (total.z.as_slice(), total.mean.as_slice());
    for part in [&total.theta[..], &total.lambda, &total.m_bar, z, mean] {
        let (mine, others) = rest.split_at_mut(part.len());
        mine.copy_from_slice(part);
        rest = others;
    }
    let (diagonal, lower) = rest.split_at_mut(latents * m);
    let (mut diagonal, mut lower) = (diagonal.iter_mut(), lower.iter_mut());
    for c in 0..latents {
        let t = &shared.roots[c];
        let pulled = linalg::mul(&total.h[c], t);
        for i in 0..m {
            (0..i).zip(&mut lower).for_each(|(j, to)| *to = 2.0 * pulled[(i, j)] - t[(i, j)]);
            let to = diagonal.next().expect("M a function");
            *to = 2.0 * pulled[(i, i)] - t[(i, i)] + 1.0 / t[(i, i)];
        }
    }
}
