//! Sums over all points, part by part on all threads.

use super::gauss;
use super::terms::{Kept, PartBar, Terms};
use crate::blocks::{self, Parts, part_rows};
use crate::expectation::{Psi, PsiGrad, PsiInputs, PsiY};
use crate::fast::vmath::in_lanes;
use crate::linalg::tall::{self, Packed};
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;
use crate::scratch::{self, Buffer};
use std::ops::Range;

/// Operations a point, roughly: a pair's exponential and the product before it.
pub(super) fn cost(dim: usize, m: usize) -> usize {
    m * (m + 1) / 2 * (8 + dim)
}

/// At most this many exponentials, 16 MB, are kept for the backward pass. What fits the last-level cache is read faster than it
/// is computed again, and the limit keeps memory at O(NM + M²).
pub(super) const MAX_KEPT: usize = 1 << 21;

/// Ψ of all points, and what each part kept.
pub(super) fn forward(terms: &Terms<'_>, keep: bool) -> (Psi, Parts<Kept>) {
    let (n, m, dim) = (terms.q.n(), terms.z.rows(), terms.q.dim());
    if n == 0 || m == 0 {
        return (Psi::zeros(n, m), Parts::new());
    }
    let mut psi = Psi { psi0: 0.0, psi1: scratch::any(n, m), psi2: Mat::zeros(m, m) };
    let parts = blocks::each_part(n, cost(dim, m), [&mut psi.psi1], |points, [psi1]| {
        psi1.fill(0.0);
        terms.forward(points, psi1, keep)
    });
    let mut all = Parts::new();
    for (psi0, psi2, kept) in parts {
        psi.psi0 += psi0;
        psi.psi2.add_scaled(1.0, &psi2);
        all.push(kept);
    }
    linalg::mirror_lower(&mut psi.psi2);
    (psi, all)
}

/// Ψ of all points with L⁻¹Ψ2L⁻ᵀ in the place of Ψ2, and what each part kept.
///
/// For a single Gaussian term, Ψ2 = Σ_n ψ1ψ1ᵀ + cov, with the covariance from an exp(δ) − 1 that loses nothing where q(x) is
/// narrow: the large first part is whitened before it is squared.
pub(super) fn whitened(terms: &Terms<'_>, l: &Cholesky, keep: bool) -> (Psi, Parts<Kept>) {
    let (n, m, dim) = (terms.q.n(), terms.z.rows(), terms.q.dim());
    let only = terms.only_gaussian();
    let Some(only) = only.filter(|_| n > 0 && m > 0) else {
        let (mut psi, kept) = forward(terms, keep);
        psi.psi2 = l.whiten(&psi.psi2);
        return (psi, kept);
    };
    let mut psi = Psi { psi0: 0.0, psi1: scratch::any(n, m), psi2: Mat::zeros(m, m) };
    let parts = blocks::each_part(n, cost(dim, m), [&mut psi.psi1], |points, [psi1]| {
        let mut kept = keep.then(|| Buffer::any(only.shape().numbers(points.len())));
        let mut covariance = Mat::zeros(m, m);
        let at = terms.at(&only, points.clone());
        in_lanes(gauss::Covariance { at, kept: kept.as_deref_mut(), psi1, out: &mut covariance });
        let mut white = scratch::any(points.len(), m);
        white.as_mut_slice().copy_from_slice(psi1);
        l.solve_rows(&mut white);
        let mut square = Mat::zeros(m, m);
        linalg::add_ata(1.0, &white, &mut square);
        (terms.psi0_of(points), covariance, square, kept)
    });
    let (mut covariance, mut all) = (Mat::zeros(m, m), Parts::new());
    for (psi0, own, square, kept) in parts {
        psi.psi0 += psi0;
        covariance.add_scaled(1.0, &own);
        psi.psi2.add_scaled(1.0, &square);
        all.push(kept);
    }
    linalg::mirror_lower(&mut covariance);
    linalg::mirror_lower(&mut psi.psi2);
    psi.psi2.add_scaled(1.0, &l.whiten(&covariance));
    (psi, all)
}

/// Adds the gradient, from what each part kept. `psi1_bar` writes the rows of Ψ̄1 of some points.
fn backward(
    terms: &Terms<'_>,
    kept: &[Kept],
    (psi0, psi2): (f64, &Mat),
    psi1_bar: impl Fn(Range<usize>, &mut [f64]) + Sync,
    grad: PsiGrad<'_>,
) {
    let (n, m, dim) = (terms.q.n(), terms.z.rows(), terms.q.dim());
    if n == 0 || m == 0 || dim == 0 {
        return;
    }
    let (rows, weights) = (part_rows(n), terms.weights(psi2));
    let parts = blocks::each_part(n, 3 * cost(dim, m), [grad.mean, grad.var], |points, [mean, var]| {
        let mut psi1 = Buffer::any(points.len() * m);
        psi1_bar(points.clone(), &mut psi1);
        let bar = PartBar { psi0, psi1: &psi1, psi2, weights: &weights };
        let kept = kept.get(points.start / rows).and_then(|kept| kept.as_deref());
        terms.backward(points, bar, mean, var, kept)
    });
    for part in &parts {
        grad.theta.iter_mut().zip(&part.theta).for_each(|(a, b)| *a += b);
        grad.z.add_scaled(1.0, &part.z);
    }
}

/// Adds the gradient, with Ψ̄1 as a matrix.
pub(super) fn backward_whole(terms: &Terms<'_>, kept: &[Kept], bar: &Psi, grad: PsiGrad<'_>) {
    let m = terms.z.rows();
    let rows = |points: Range<usize>, out: &mut [f64]| {
        out.copy_from_slice(&bar.psi1.as_slice()[points.start * m..points.end * m]);
    };
    backward(terms, kept, (bar.psi0, &bar.psi2), rows, grad);
}

/// At most this many numbers of P, 128 KB, fit the second-level cache while they are summed.
const MAX_P: usize = 1 << 14;

/// Whether P is so small that it is summed part by part, without Ψ1 as a matrix.
pub(super) fn is_narrow(of: &PsiInputs<'_>, y: &Mat) -> bool {
    of.q.n() > 0 && (1..=MAX_P).contains(&(of.z.rows() * y.cols()))
}

/// Ψ0, P = Ψ1ᵀY and Ψ2 of all points, and what each part kept. P is summed part by part, without Ψ1 as a matrix.
pub(super) fn psi_y(terms: &Terms<'_>, y: &Mat, keep: bool) -> (PsiY, Parts<Kept>) {
    let (n, m, dim, d) = (terms.q.n(), terms.z.rows(), terms.q.dim(), y.cols());
    let one = |points: Range<usize>| {
        let mut psi1 = Buffer::any(points.len() * m);
        psi1.fill(0.0);
        let (psi0, psi2, kept) = terms.forward(points.clone(), &mut psi1, keep);
        let p = tall::mul_tn(&psi1, m, &y.as_slice()[points.start * d..points.end * d], d, 0..d);
        (PsiY { psi0, p, psi2 }, Parts::from_iter([kept]))
    };
    let add = |(sum, kept): &mut (PsiY, Parts<Kept>), (other, mut more): (PsiY, Parts<Kept>)| {
        sum.psi0 += other.psi0;
        sum.p.add_scaled(1.0, &other.p);
        sum.psi2.add_scaled(1.0, &other.psi2);
        kept.append(&mut more);
    };
    let (mut sum, kept) = blocks::sum_parts(n, cost(dim, m) + m * d / 4, one, add);
    linalg::mirror_lower(&mut sum.psi2);
    (sum, kept)
}

/// Adds the gradient, with rows of Ψ̄1 = Y P̄ᵀ.
pub(super) fn backward_y(terms: &Terms<'_>, kept: &[Kept], y: &Mat, bar: &PsiY, grad: PsiGrad<'_>) {
    debug_assert_eq!((bar.p.rows(), bar.p.cols()), (terms.z.rows(), y.cols()));
    let (packed, d) = (Packed::new(&bar.p), y.cols());
    let rows = |points: Range<usize>, out: &mut [f64]| {
        packed.mul(1.0, &y.as_slice()[points.start * d..points.end * d], out);
    };
    backward(terms, kept, (bar.psi0, &bar.psi2), rows, grad);
}
