//! Closed forms, for kernels that are sums of products of Gaussian factors and monomials.
//!
//! With one-dimensional factors and independent Gaussian inputs every expectation of a term, or of a pair
//! of terms t (at z) and u (at z'), is a product over the dimensions. With a = 1/ℓ_t² and b = 1/ℓ_u² (0
//! where a term has no Gaussian factor in that dimension), D = 1/(1 + (a+b)S), δ = z − μ, δ' = z' − μ:
//!
//! ```text
//! E[exp(−a(x−z)²/2 − b(x−z')²/2) xᵏ] = √D exp(−½ D (aδ² + bδ'² + S ab (δ−δ')²)) · mₖ
//! m₀ = 1     m₁ = m̃ = μ + DS(aδ + bδ')     m₂ = m̃² + DS
//! ```
//!
//! Pairs of pure Gaussians ([`gauss`]), which an rbf kernel needs, go one M×M tile a point, a matrix
//! product and a vectorised exp; what has monomials ([`moments`]) takes a plain loop.

pub(super) mod correlated;
mod gauss;
mod moments;

use super::{Cost, Expectation, Gaussians, Psi, PsiGrad, check_shapes};
use crate::blocks::part_rows;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, Term};
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;
use crate::param;
use rayon::prelude::*;

/// Ψ-statistics in closed form: rbf, linear, constant, white, all sums of them (cross terms included) and
/// products of them on separate columns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Analytic;

/// A term with its numbers in place.
pub(super) struct Factor {
    term: Term,
    scale: f64,
    /// 1/ℓ_q², 0 where there is no Gaussian factor.
    precision: Vec<f64>,
}

impl Factor {
    fn new(term: Term, theta: &[f64], dim: usize) -> Self {
        let mut precision = vec![0.0; dim];
        term.gauss.iter().for_each(|&(q, i)| precision[q] = theta[i].powi(-2));
        let scale = term.scale.iter().map(|&i| theta[i]).product();
        Factor { term, scale, precision }
    }

    /// The term 1, with which a pair becomes a single term.
    fn unit(dim: usize) -> Self {
        Factor { term: Term::default(), scale: 1.0, precision: vec![0.0; dim] }
    }

    fn is_gaussian(&self) -> bool {
        !self.term.gauss.is_empty()
    }

    /// ∏ z_q over the powers, without `but`.
    fn monomial(&self, z: &[f64], but: Option<usize>) -> f64 {
        self.term.powers.iter().filter(|q| Some(**q) != but).map(|&q| z[q]).product()
    }

    /// Adds ∂F/∂θ from ∂F/∂(1/ℓ²) and from Σ F̄∘value, which the scales divide.
    fn add_theta(&self, theta: &[f64], precision_bar: &[f64], total: f64, grad: &mut [f64]) {
        self.term.scale.iter().for_each(|&i| grad[i] += total / theta[i]);
        self.term.gauss.iter().for_each(|&(q, i)| grad[i] -= 2.0 * precision_bar[q] * theta[i].powi(-3));
    }
}

/// Two terms, t at z and u at z'; their expectation is `rows × cols` where a term without Gaussian factor
/// needs one place only.
pub(super) struct Pair<'a> {
    t: &'a Factor,
    u: &'a Factor,
    rows: usize,
    cols: usize,
    /// Whether t and u are the same term: the lower triangle is enough.
    same: bool,
}

impl<'a> Pair<'a> {
    fn new(t: &'a Factor, u: &'a Factor, m: usize, same: bool) -> Self {
        let places = |f: &Factor| if f.is_gaussian() { m } else { 1 };
        Pair { t, u, rows: places(t), cols: places(u), same }
    }

    /// Whether the fast tile serves: no monomials at all.
    fn is_pure(&self) -> bool {
        self.t.term.powers.is_empty() && self.u.term.powers.is_empty()
    }

    fn scale(&self) -> f64 {
        self.t.scale * self.u.scale
    }
}

/// What the backward pass of some points gathers.
pub(super) struct Gathered {
    theta: Vec<f64>,
    z: Mat,
}

/// Ψ̄0 and where the gradient of one point's E[k(x, x)] is added.
struct Psi0Bar<'g> {
    bar: f64,
    theta_bar: &'g mut [f64],
    mean_bar: &'g mut [f64],
    var_bar: &'g mut [f64],
}

struct Plan<'a> {
    q: &'a Gaussians,
    z: &'a Mat,
    theta: Vec<f64>,
    factors: Vec<Factor>,
    unit: Factor,
}

impl<'a> Plan<'a> {
    fn new(kernel: &dyn Kernel, q: &'a Gaussians, z: &'a Mat) -> Result<Self> {
        check_shapes(kernel, q, z)?;
        let form = kernel.closed_form().ok_or_else(|| Error::NoClosedForm { kernel: kernel.expression() })?;
        let theta = param::values(kernel);
        let factors = form.terms.into_iter().map(|t| Factor::new(t, &theta, q.dim())).collect();
        Ok(Plan { q, z, theta, factors, unit: Factor::unit(q.dim()) })
    }

    fn correlated(&self) -> impl Iterator<Item = &Factor> {
        self.factors.iter().filter(|f| !f.term.white)
    }

    fn pairs(&self) -> Vec<Pair<'_>> {
        let all: Vec<&Factor> = self.correlated().collect();
        let mut pairs = Vec::new();
        for (i, t) in all.iter().enumerate() {
            for (j, u) in all.iter().enumerate().take(i + 1) {
                pairs.push(Pair::new(t, u, self.z.rows(), i == j));
            }
        }
        pairs
    }

    /// Pairs of each term with 1: their expectations are the terms of Ψ1.
    fn singles(&self) -> Vec<Pair<'_>> {
        self.correlated().map(|u| Pair::new(&self.unit, u, self.z.rows(), false)).collect()
    }

    /// E[k(x, x)] of point n; with `bar`, adds its gradient.
    fn psi0(&self, n: usize, bar: Option<Psi0Bar<'_>>) -> f64 {
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

    fn forward(&self, from: usize, to: usize, psi1: &mut [f64]) -> (f64, Mat) {
        let m = self.z.rows();
        let (singles, pairs) = (self.singles(), self.pairs());
        let psi0 = (from..to).map(|n| self.psi0(n, None)).sum();
        for single in &singles {
            let mut visit = |n: usize, values: &[f64]| {
                let row = &mut psi1[(n - from) * m..(n - from + 1) * m];
                for (j, out) in row.iter_mut().enumerate() {
                    let value = values[j.min(single.cols - 1)];
                    *out += single.scale() * value * single.u.monomial(self.z.row(j), None);
                }
            };
            match single.is_pure() {
                true => gauss::each(single, self.q, self.z, from..to, &mut visit),
                false => moments::each(single, self.q, self.z, from..to, &mut visit),
            }
        }
        let mut psi2 = Mat::zeros(m, m);
        for pair in &pairs {
            let mut sum = vec![0.0; pair.rows * pair.cols];
            let mut visit = |_: usize, values: &[f64]| sum.iter_mut().zip(values).for_each(|(a, b)| *a += b);
            match pair.is_pure() {
                true => gauss::each(pair, self.q, self.z, from..to, &mut visit),
                false => moments::each(pair, self.q, self.z, from..to, &mut visit),
            }
            self.spread(pair, &sum, &mut psi2);
        }
        (psi0, psi2)
    }

    /// Adds a pair's C + Cᵀ (C alone where the terms are the same) to the lower triangle of Ψ2.
    fn spread(&self, pair: &Pair<'_>, sum: &[f64], psi2: &mut Mat) {
        let m = self.z.rows();
        let left: Vec<f64> = (0..m).map(|j| pair.t.monomial(self.z.row(j), None)).collect();
        let right: Vec<f64> = (0..m).map(|j| pair.u.monomial(self.z.row(j), None)).collect();
        let at = |i: usize, j: usize| {
            pair.scale() * sum[i.min(pair.rows - 1) * pair.cols + j.min(pair.cols - 1)] * left[i] * right[j]
        };
        for i in 0..m {
            for j in 0..=i {
                psi2[(i, j)] += if pair.same { at(i, j) } else { at(i, j) + at(j, i) };
            }
        }
    }

    fn backward(
        &self,
        from: usize,
        to: usize,
        bar: &Psi,
        mean_bar: &mut [f64],
        var_bar: &mut [f64],
    ) -> Gathered {
        let (m, dim) = (self.z.rows(), self.q.dim());
        let mut got = Gathered { theta: vec![0.0; self.theta.len()], z: Mat::zeros(m, dim) };
        for n in from..to {
            let at = (n - from) * dim..(n - from + 1) * dim;
            let places = Psi0Bar {
                bar: bar.psi0,
                theta_bar: &mut got.theta,
                mean_bar: &mut mean_bar[at.clone()],
                var_bar: &mut var_bar[at],
            };
            self.psi0(n, Some(places));
        }
        for single in &self.singles() {
            let weigh = |n: usize, out: &mut [f64]| {
                out.fill(0.0);
                for j in 0..m {
                    let monomial = single.u.monomial(self.z.row(j), None);
                    out[j.min(single.cols - 1)] += single.scale() * bar.psi1[(n, j)] * monomial;
                }
            };
            let values = self.pull(single, from..to, weigh, mean_bar, var_bar, &mut got);
            // Monomials of z: values[n] against Ψ̄1.
            for &q in &single.u.term.powers {
                for j in 0..m {
                    let others = single.u.monomial(self.z.row(j), Some(q)) * single.scale();
                    let column = j.min(single.cols - 1);
                    let weighed = |n: usize| bar.psi1[(n, j)] * values[(n - from) * single.cols + column];
                    got.z[(j, q)] += others * (from..to).map(weighed).sum::<f64>();
                }
            }
        }
        for pair in &self.pairs() {
            // F̄ of C: both places of Ψ2 that an entry of C reaches.
            let c_bar = |i: usize, j: usize| match (pair.same, i.cmp(&j)) {
                (true, std::cmp::Ordering::Less) => 0.0,
                (true, std::cmp::Ordering::Equal) => bar.psi2[(i, j)],
                _ => bar.psi2[(i, j)] + bar.psi2[(j, i)],
            };
            let mut weights = vec![0.0; pair.rows * pair.cols];
            for i in 0..m {
                let left = pair.t.monomial(self.z.row(i), None) * pair.scale();
                for j in 0..m {
                    let right = pair.u.monomial(self.z.row(j), None);
                    weights[i.min(pair.rows - 1) * pair.cols + j.min(pair.cols - 1)] +=
                        left * right * c_bar(i, j);
                }
            }
            let weigh = |_: usize, out: &mut [f64]| out.copy_from_slice(&weights);
            let keeps = pair.is_pure();
            let values = self.pull(pair, from..to, weigh, mean_bar, var_bar, &mut got);
            if !keeps {
                self.pull_monomials(pair, &values, &c_bar, &mut got.z);
            }
        }
        got
    }

    /// Gradients through the monomials of z and z' of a pair, from its values summed over points.
    fn pull_monomials(
        &self,
        pair: &Pair<'_>,
        values: &[f64],
        c_bar: &dyn Fn(usize, usize) -> f64,
        z_bar: &mut Mat,
    ) {
        let m = self.z.rows();
        let size = pair.rows * pair.cols;
        let mut sum = vec![0.0; size];
        values.chunks_exact(size).for_each(|v| sum.iter_mut().zip(v).for_each(|(a, b)| *a += b));
        for i in 0..m {
            for j in 0..m {
                let e = sum[i.min(pair.rows - 1) * pair.cols + j.min(pair.cols - 1)];
                let f = pair.scale() * c_bar(i, j) * e;
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

    /// Backward through a pair's expectation; returns its values where monomials of z need them.
    fn pull(
        &self,
        pair: &Pair<'_>,
        points: std::ops::Range<usize>,
        weigh: impl Fn(usize, &mut [f64]),
        mean_bar: &mut [f64],
        var_bar: &mut [f64],
        got: &mut Gathered,
    ) -> Vec<f64> {
        let dim = self.q.dim();
        let mut slopes = Slopes::new(pair, dim);
        let values = match pair.is_pure() {
            true => {
                gauss::pull(pair, self.q, self.z, points, &weigh, mean_bar, var_bar, &mut slopes);
                Vec::new()
            }
            false => moments::pull(pair, self.q, self.z, points, &weigh, mean_bar, var_bar, &mut slopes),
        };
        pair.t.add_theta(&self.theta, &slopes.t_precision, slopes.total, &mut got.theta);
        pair.u.add_theta(&self.theta, &slopes.u_precision, slopes.total, &mut got.theta);
        for q in 0..dim {
            for i in 0..pair.rows {
                got.z[(i, q)] += slopes.t_z[q * pair.rows + i];
            }
            for j in 0..pair.cols {
                got.z[(j, q)] += slopes.u_z[q * pair.cols + j];
            }
        }
        values
    }
}

/// Gradients of a pair, summed over points.
pub(super) struct Slopes {
    /// Σ F̄ ∘ value.
    total: f64,
    t_precision: Vec<f64>,
    u_precision: Vec<f64>,
    /// Q×rows and Q×cols.
    t_z: Vec<f64>,
    u_z: Vec<f64>,
}

impl Slopes {
    fn new(pair: &Pair<'_>, dim: usize) -> Self {
        Slopes {
            total: 0.0,
            t_precision: vec![0.0; dim],
            u_precision: vec![0.0; dim],
            t_z: vec![0.0; dim * pair.rows],
            u_z: vec![0.0; dim * pair.cols],
        }
    }
}

impl Expectation for Analytic {
    fn psi(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat) -> Result<Psi> {
        let plan = Plan::new(kernel, q, z)?;
        let (n, m) = (q.n(), z.rows());
        let mut psi = Psi::zeros(n, m);
        if n == 0 || m == 0 {
            return Ok(psi);
        }
        let rows = part_rows(n);
        let parts: Vec<(f64, Mat)> = psi
            .psi1
            .as_mut_slice()
            .par_chunks_mut(rows * m)
            .enumerate()
            .map(|(i, psi1)| plan.forward(i * rows, (i * rows + rows).min(n), psi1))
            .collect();
        for (psi0, psi2) in &parts {
            psi.psi0 += psi0;
            psi.psi2.add_scaled(1.0, psi2);
        }
        linalg::mirror_lower(&mut psi.psi2);
        Ok(psi)
    }

    /// For a single Gaussian term, Ψ2 = Σ_n ψ1ψ1ᵀ + cov, with the covariance from an exp(δ) − 1 that loses
    /// nothing where q(x) is narrow: the large first part is whitened before it is squared.
    fn psi_whitened(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat, l: &Cholesky) -> Result<Psi> {
        let plan = Plan::new(kernel, q, z)?;
        let all: Vec<&Factor> = plan.correlated().collect();
        let single = all.len() == 1 && all[0].term.powers.is_empty() && all[0].is_gaussian();
        if !single || q.n() == 0 {
            let mut psi = self.psi(kernel, q, z)?;
            psi.psi2 = l.whiten(&psi.psi2);
            return Ok(psi);
        }
        let (n, m) = (q.n(), z.rows());
        let mut psi = Psi::zeros(n, m);
        let rows = part_rows(n);
        let part = |(i, psi1): (usize, &mut [f64])| {
            let points = i * rows..(i * rows + rows).min(n);
            let pair = Pair::new(&plan.unit, all[0], m, false);
            gauss::each(&pair, q, z, points.clone(), &mut |n, values| {
                let row = &mut psi1[(n - i * rows) * m..(n - i * rows + 1) * m];
                row.iter_mut().zip(values).for_each(|(out, v)| *out = pair.scale() * v);
            });
            let mut covariance = Mat::zeros(m, m);
            let pair = Pair::new(all[0], all[0], m, true);
            gauss::covariances(&pair, q, z, points.clone(), psi1, &mut covariance);
            let mut white = Mat::from_vec(points.len(), m, psi1.to_vec()).expect("rows × m numbers");
            l.solve_rows(&mut white);
            let mut square = Mat::zeros(m, m);
            linalg::add_ata(1.0, &white, &mut square);
            let psi0 = points.map(|n| plan.psi0(n, None)).sum::<f64>();
            (psi0, covariance, square)
        };
        let parts: Vec<(f64, Mat, Mat)> =
            psi.psi1.as_mut_slice().par_chunks_mut(rows * m).enumerate().map(part).collect();
        let mut covariance = Mat::zeros(m, m);
        for (psi0, cov, square) in &parts {
            psi.psi0 += psi0;
            covariance.add_scaled(1.0, cov);
            psi.psi2.add_scaled(1.0, square);
        }
        linalg::mirror_lower(&mut covariance);
        linalg::mirror_lower(&mut psi.psi2);
        psi.psi2.add_scaled(1.0, &l.whiten(&covariance));
        Ok(psi)
    }

    fn psi_adjoint(
        &self,
        kernel: &dyn Kernel,
        q: &Gaussians,
        z: &Mat,
        bar: &Psi,
        grad: PsiGrad<'_>,
    ) -> Result<()> {
        let plan = Plan::new(kernel, q, z)?;
        let (n, dim) = (q.n(), q.dim());
        if n == 0 || z.rows() == 0 || dim == 0 {
            return Ok(());
        }
        let rows = part_rows(n);
        let parts: Vec<Gathered> = grad
            .mean
            .as_mut_slice()
            .par_chunks_mut(rows * dim)
            .zip(grad.var.as_mut_slice().par_chunks_mut(rows * dim))
            .enumerate()
            .map(|(i, (mean, var))| plan.backward(i * rows, (i * rows + rows).min(n), bar, mean, var))
            .collect();
        for part in &parts {
            grad.theta.iter_mut().zip(&part.theta).for_each(|(a, b)| *a += b);
            grad.z.add_scaled(1.0, &part.z);
        }
        Ok(())
    }

    fn expression(&self) -> String {
        "analytic".into()
    }

    fn cost(&self, n: usize, q: usize, m: usize) -> Cost {
        let parts = n.div_ceil(part_rows(n.max(1))) as f64;
        let numbers = (n * m + m * m) as f64 + parts * (2 * m * m + 4 * m * q) as f64;
        Cost { nodes: 0.0, evaluations: n as f64 * (m * (m + 1) / 2) as f64, bytes: 8.0 * numbers }
    }

    fn check(&self, kernel: &dyn Kernel, _: usize) -> Result<()> {
        match kernel.closed_form() {
            Some(_) => Ok(()),
            None => Err(Error::NoClosedForm { kernel: kernel.expression() }),
        }
    }

    fn nonnegative(&self, _: usize) -> bool {
        true
    }
}
