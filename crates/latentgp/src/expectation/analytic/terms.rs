//! Ψ of some points and its adjoint: sums over terms and pairs of terms.

use super::gauss_adjoint::{Bars, Pull, SingleBar};
use super::pair::{Factor, Pair, PairAt, Slopes};
use super::{gauss, moments};
use crate::error::{Error, Result};
use crate::expectation::{Gaussians, PsiInputs};
use crate::fast::vmath::in_lanes;
use crate::kernel::InlineVec;
use crate::mat::Mat;
use crate::param;
use crate::scratch::Buffer;
use std::cmp::Ordering;
use std::ops::Range;

/// The values of each pair in turn at some points and, where its terms are the same, those of the term by itself.
pub(super) type Kept = Option<Buffer<f64>>;

/// What the backward pass of some points gathers.
pub(super) struct Gathered {
    pub theta: Buffer<f64>,
    pub z: Mat,
}

/// Ψ̄ of some points: their rows of Ψ̄1, and the [`weights`](Terms::weights) that Ψ̄2 gives to pairs.
pub(super) struct PartBar<'b> {
    pub psi0: f64,
    pub psi1: &'b [f64],
    pub psi2: &'b Mat,
    pub weights: &'b [f64],
}

/// Ψ̄0 and where the gradient of one point's E[k(x, x)] is added.
pub(super) struct Psi0Bar<'g> {
    bar: f64,
    theta_bar: &'g mut [f64],
    mean_bar: &'g mut [f64],
    var_bar: &'g mut [f64],
}

/// A kernel's terms, with inputs and inducing inputs.
pub(super) struct Terms<'a> {
    pub q: &'a Gaussians,
    pub z: &'a Mat,
    theta: Buffer<f64>,
    factors: InlineVec<Factor>,
    unit: Factor,
}

impl<'a> Terms<'a> {
    pub fn new(of: &PsiInputs<'a>) -> Result<Self> {
        of.check_shapes()?;
        let PsiInputs { kernel, q, z, .. } = *of;
        let form = kernel.closed_form().ok_or_else(|| Error::NoClosedForm { kernel: kernel.expression() })?;
        let mut theta = Buffer::filled(0.0, param::count(kernel));
        param::copy_values(kernel, &mut theta);
        let factors = form.terms.into_iter().map(|t| Factor::new(t, &theta, q.dim())).collect();
        Ok(Terms { q, z, theta, factors, unit: Factor::unit(q.dim()) })
    }

    fn correlated(&self) -> impl Iterator<Item = &Factor> + Clone {
        self.factors.iter().filter(|f| !f.term.white)
    }

    /// The pair of the only term with itself, where that is Gaussian.
    pub fn only_gaussian(&self) -> Option<Pair<'_>> {
        super::only_gaussian(self.factors.iter().map(|f| &f.term))?;
        self.pairs().next()
    }

    /// Each term with itself and those before it.
    fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        self.correlated().enumerate().flat_map(move |(i, t)| {
            let others = self.correlated().enumerate().take(i + 1);
            others.map(move |(j, u)| Pair::new(t, u, self.z.rows(), i == j))
        })
    }

    /// Pairs of each term with 1: their expectations are the terms of Ψ1.
    fn singles(&self) -> impl Iterator<Item = Pair<'_>> {
        self.correlated().map(|u| Pair::new(&self.unit, u, self.z.rows(), false))
    }

    /// A pair at some points.
    pub fn at<'p>(&'p self, pair: &'p Pair<'p>, points: Range<usize>) -> PairAt<'p> {
        PairAt { pair, q: self.q, z: self.z, points }
    }

    /// Whether any term has monomials.
    fn has_powers(&self) -> bool {
        self.factors.iter().any(|f| !f.term.powers.is_empty())
    }

    /// E[k(x, x)] of point n; with `bar`, adds its gradient.
    pub fn psi0(&self, n: usize, bar: Option<Psi0Bar<'_>>) -> f64 {
        let (mean, var) = (self.q.mean.row(n), self.q.var.row(n));
        let second = |q: usize| mean[q] * mean[q] + var[q];
        let product = |f: &Factor, but: Option<usize>| -> f64 {
            f.term.powers.iter().filter(|q| Some(**q) != but).map(|&q| second(q)).product()
        };
        if let Some(Psi0Bar { bar, theta_bar, mean_bar, var_bar }) = bar {
            for f in &self.factors {
                let total = bar * f.scale * product(f, None);
                f.term.scale.iter().for_each(|&i| theta_bar[i] += total / self.theta[i]);
                for &q in &f.term.powers {
                    let slope = bar * f.scale * product(f, Some(q));
                    mean_bar[q] += 2.0 * mean[q] * slope;
                    var_bar[q] += slope;
                }
            }
        }
        self.factors.iter().map(|f| f.scale * product(f, None)).sum()
    }

    /// Ψ0 of some points.
    pub fn psi0_of(&self, points: Range<usize>) -> f64 {
        match self.has_powers() {
            true => points.map(|n| self.psi0(n, None)).sum(),
            false => points.len() as f64 * self.psi0(points.start, None),
        }
    }

    /// How many numbers `points` points keep.
    pub fn values(&self, points: usize) -> usize {
        self.pairs().filter(Pair::is_pure).map(|p| p.shape().numbers(points)).sum()
    }

    /// Ψ0 and the lower triangle of Ψ2 of some points, and the values if they are to be kept; adds their rows of Ψ1.
    pub fn forward(&self, points: Range<usize>, psi1: &mut [f64], keep: bool) -> (f64, Mat, Kept) {
        let (m, from) = (self.z.rows(), points.start);
        let mut singles = self.singles();
        let psi0 = self.psi0_of(points.clone());
        let mut psi2 = Mat::zeros(m, m);
        let mut kept = keep.then(|| Buffer::any(self.values(points.len())));
        let mut rest = kept.as_deref_mut().unwrap_or_default();
        for pair in self.pairs() {
            // A term by itself is computed along with its pair with itself.
            let single = if pair.same { singles.next() } else { None };
            let mut visit = |n: usize, values: &[f64]| {
                let row = &mut psi1[(n - from) * m..(n - from + 1) * m];
                if let Some(single) = &single {
                    self.add_row(single, values, row);
                }
            };
            let sum = if pair.is_pure() {
                let values = keep.then(|| {
                    let (own, others) =
                        std::mem::take(&mut rest).split_at_mut(pair.shape().numbers(points.len()));
                    rest = others;
                    own
                });
                let visit: Option<&mut gauss::Visit<'_>> =
                    if single.is_some() { Some(&mut visit) } else { None };
                in_lanes(gauss::Sum { at: self.at(&pair, points.clone()), kept: values, visit })
            } else {
                if let Some(single) = &single {
                    moments::each(&self.at(single, points.clone()), &mut visit);
                }
                moments::sum(&self.at(&pair, points.clone()))
            };
            self.spread(&pair, &sum, &mut psi2);
        }
        (psi0, psi2, kept)
    }

    /// Adds a term by itself, of these values at a point, to the point's row of Ψ1.
    fn add_row(&self, single: &Pair<'_>, values: &[f64], row: &mut [f64]) {
        if single.is_plain(row.len()) {
            row.iter_mut().zip(values).for_each(|(out, v)| *out += single.scale() * v);
            return;
        }
        for (j, out) in row.iter_mut().enumerate() {
            let value = values[j.min(single.cols - 1)];
            *out += single.scale() * value * single.u.monomial(self.z.row(j), None);
        }
    }

    /// F̄ of these values, from the point's row of Ψ̄1.
    fn weigh_row(&self, single: &Pair<'_>, bar: &[f64], out: &mut [f64]) {
        if single.is_plain(bar.len()) {
            out.iter_mut().zip(bar).for_each(|(out, bar)| *out = single.scale() * bar);
            return;
        }
        out.fill(0.0);
        for (j, bar) in bar.iter().enumerate() {
            let monomial = single.u.monomial(self.z.row(j), None);
            out[j.min(single.cols - 1)] += single.scale() * bar * monomial;
        }
    }

    /// Adds a pair's C + Cᵀ (C alone where the terms are the same) to the lower triangle of Ψ2.
    fn spread(&self, pair: &Pair<'_>, sum: &[f64], psi2: &mut Mat) {
        let m = self.z.rows();
        let [left, right] = [pair.t, pair.u].map(|f| self.monomials(f));
        let at = |i: usize, j: usize| {
            pair.scale() * sum[i.min(pair.rows - 1) * pair.cols + j.min(pair.cols - 1)] * left[i] * right[j]
        };
        for i in 0..m {
            for j in 0..=i {
                psi2[(i, j)] += if pair.same { at(i, j) } else { at(i, j) + at(j, i) };
            }
        }
    }

    /// The monomial of a term at each inducing input.
    fn monomials(&self, of: &Factor) -> Buffer<f64> {
        Buffer::of((0..self.z.rows()).map(|j| of.monomial(self.z.row(j), None)))
    }

    /// F̄ of the values of every pair in turn, which is the same at every point.
    pub fn weights(&self, psi2_bar: &Mat) -> Buffer<f64> {
        let m = self.z.rows();
        let mut all = Buffer::filled(0.0, self.pairs().map(|pair| pair.rows * pair.cols).sum());
        let mut rest = &mut all[..];
        for pair in self.pairs() {
            let [left, right] = [pair.t, pair.u].map(|f| self.monomials(f));
            let (weights, others) = rest.split_at_mut(pair.rows * pair.cols);
            for i in 0..m {
                for j in 0..m {
                    weights[i.min(pair.rows - 1) * pair.cols + j.min(pair.cols - 1)] +=
                        left[i] * pair.scale() * right[j] * pair_bar(&pair, psi2_bar, i, j);
                }
            }
            rest = others;
        }
        all
    }

    /// θ̄ and Z̄ of some points; adds their rows of μ̄ and S̄.
    pub fn backward(
        &self,
        points: Range<usize>,
        bar: PartBar<'_>,
        mean_bar: &mut [f64],
        var_bar: &mut [f64],
        kept: Option<&[f64]>,
    ) -> Gathered {
        let (m, dim, from) = (self.z.rows(), self.q.dim(), points.start);
        let mut got = Gathered { theta: Buffer::filled(0.0, self.theta.len()), z: Mat::zeros(m, dim) };
        // Without monomials, E[k(x, x)] is the same at all points.
        let (alike, ones) =
            if self.has_powers() { (1, points.clone()) } else { (points.len(), from..from + 1) };
        for n in ones {
            let at = (n - from) * dim..(n - from + 1) * dim;
            let to = Psi0Bar {
                bar: alike as f64 * bar.psi0,
                theta_bar: &mut got.theta,
                mean_bar: &mut mean_bar[at.clone()],
                var_bar: &mut var_bar[at],
            };
            self.psi0(n, Some(to));
        }
        let (mut singles, mut rest, mut rest_kept) = (self.singles(), bar.weights, kept);
        for pair in self.pairs() {
            let single = if pair.same { singles.next() } else { None };
            let (weights, others) = rest.split_at(pair.rows * pair.cols);
            rest = others;
            let weigh = |n: usize, out: &mut [f64]| {
                if let Some(single) = &single {
                    self.weigh_row(single, &bar.psi1[(n - from) * m..(n - from + 1) * m], out);
                }
            };
            let mut slopes = Slopes::new(&pair, dim);
            let mut own = single.as_ref().map(|s| (s, Slopes::new(s, dim)));
            let mut bars = Bars { mean: mean_bar, var: var_bar };
            if pair.is_pure() {
                let kept = rest_kept.map(|rest| {
                    let (own, others) = rest.split_at(pair.shape().numbers(points.len()));
                    rest_kept = Some(others);
                    own
                });
                let single_bar = own.as_mut().map(|(pair, slopes)| SingleBar { pair, weigh: &weigh, slopes });
                let at = self.at(&pair, points.clone());
                in_lanes(Pull { at, weights, kept, bars, slopes: &mut slopes, single: single_bar });
            } else {
                if let Some((single, slopes)) = &mut own {
                    let at = self.at(single, points.clone());
                    let values = moments::pull(&at, &weigh, &mut bars, slopes);
                    self.pull_row_monomials(single, &values, bar.psi1, &mut got.z);
                }
                let weigh = |_: usize, out: &mut [f64]| out.copy_from_slice(weights);
                let at = self.at(&pair, points.clone());
                let values = moments::pull(&at, &weigh, &mut bars, &mut slopes);
                self.pull_monomials(&pair, &values, bar.psi2, &mut got.z);
            }
            if let Some((single, slopes)) = &own {
                self.add_slopes(single, slopes, &mut got);
            }
            self.add_slopes(&pair, &slopes, &mut got);
        }
        got
    }

    /// Gradients through the monomials of z of a term by itself, from its values at some points.
    fn pull_row_monomials(&self, single: &Pair<'_>, values: &[f64], psi1_bar: &[f64], z_bar: &mut Mat) {
        let m = self.z.rows();
        for &q in &single.u.term.powers {
            for j in 0..m {
                let others = single.u.monomial(self.z.row(j), Some(q)) * single.scale();
                let column = values.iter().skip(j.min(single.cols - 1)).step_by(single.cols);
                let weighed: f64 =
                    psi1_bar.iter().skip(j).step_by(m).zip(column).map(|(bar, v)| bar * v).sum();
                z_bar[(j, q)] += others * weighed;
            }
        }
    }

    /// Gradients through the monomials of z and z' of a pair, from its values summed over points.
    fn pull_monomials(&self, pair: &Pair<'_>, values: &[f64], psi2_bar: &Mat, z_bar: &mut Mat) {
        let m = self.z.rows();
        let size = pair.rows * pair.cols;
        let mut sum = Buffer::filled(0.0, size);
        values.chunks_exact(size).for_each(|v| sum.iter_mut().zip(v).for_each(|(a, b)| *a += b));
        for i in 0..m {
            for j in 0..m {
                let e = sum[i.min(pair.rows - 1) * pair.cols + j.min(pair.cols - 1)];
                let f = pair.scale() * pair_bar(pair, psi2_bar, i, j) * e;
                let (left, right) =
                    (pair.t.monomial(self.z.row(i), None), pair.u.monomial(self.z.row(j), None));
                for &q in &pair.t.term.powers {
                    z_bar[(i, q)] += f * pair.t.monomial(self.z.row(i), Some(q)) * right;
                }
                for &q in &pair.u.term.powers {
                    z_bar[(j, q)] += f * left * pair.u.monomial(self.z.row(j), Some(q));
                }
            }
        }
    }

    /// Adds the gradients of a pair.
    fn add_slopes(&self, pair: &Pair<'_>, slopes: &Slopes, got: &mut Gathered) {
        pair.t.add_theta(&self.theta, &slopes.t_precision, slopes.total, &mut got.theta);
        pair.u.add_theta(&self.theta, &slopes.u_precision, slopes.total, &mut got.theta);
        for q in 0..self.q.dim() {
            for i in 0..pair.rows {
                got.z[(i, q)] += slopes.t_z[q * pair.rows + i];
            }
            for j in 0..pair.cols {
                got.z[(j, q)] += slopes.u_z[q * pair.cols + j];
            }
        }
    }
}

/// F̄ of entry (i, j) of C: both places of Ψ2 that it reaches.
fn pair_bar(pair: &Pair<'_>, psi2_bar: &Mat, i: usize, j: usize) -> f64 {
    match (pair.same, i.cmp(&j)) {
        (true, Ordering::Less) => 0.0,
        (true, Ordering::Equal) => psi2_bar[(i, j)],
        _ => psi2_bar[(i, j)] + psi2_bar[(j, i)],
    }
}
