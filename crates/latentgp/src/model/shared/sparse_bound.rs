//! The collapsed bound of outputs that share inducing inputs, for sparse regression and the Bayesian GPLVM.
//!
//! ```text
//! F = Σ_groups collapsed(Y, Ψ, Kzz, β)
//! ```
//!
//! Where every output has its own noise, a group's bound is `collapsed_columns`.
//!
//! Ψ of every row is computed once: Ψ0 and Ψ2 of a group are sums over its patterns of rows.

use crate::blocks;
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::evidence::{
    Collapse, CollapseColumns, Collapsed, CollapsedBar, CollapsedColumns, CollapsedColumnsBar, OutputsGrad,
    collapsed, collapsed_columns, outputs_adjoint,
};
use crate::expectation::{Expectation, Gaussians, Psi, PsiGrad, PsiInputs, PsiY};
use crate::fast::vmath::groups;
use crate::kernel::{Kernel, KernelGrad};
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;
use crate::mean::Mean;
use crate::model::Outputs;
use crate::model::shared::kzz;
use crate::posterior::{Explained, Factors, InputMap, Posterior};
use crate::scratch::{self, Buffer};
use smallvec::SmallVec;
use std::borrow::Cow;

/// What is added to diagonals before the Cholesky factorisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// To Kzz.
    pub kzz: f64,
    /// To B = I + βL⁻¹Ψ2L⁻ᵀ.
    pub b: f64,
}

impl Default for Jitter {
    fn default() -> Self {
        Jitter { kzz: 1e-6, b: 0.0 }
    }
}

/// Everything that the bound depends on except the inputs.
pub(crate) struct SparseBound<'a> {
    pub kernel: &'a dyn Kernel,
    pub expectation: &'a dyn Expectation,
    pub z: &'a Mat,
    /// σ², one for all outputs or one for each.
    pub noise: &'a [f64],
    pub jitter: Jitter,
    pub outputs: &'a Outputs,
    pub scaling: &'a Scaling,
}

/// The buffers to which gradients are added.
pub(crate) struct BoundGrad<'g> {
    pub theta: &'g mut [f64],
    pub noise: &'g mut [f64],
    pub z: &'g mut Mat,
    pub mean: &'g mut Mat,
    pub var: &'g mut Mat,
    /// Gradients in uncertain outputs, where these are parameters.
    pub outputs: Option<OutputsGrad<'g>>,
}

/// Ψ2 is whitened block by block where the estimated rounding error of the bound, for each cell, exceeds
/// this.
const MAX_ROUNDING: f64 = 1e-10;
/// The limit for all rows together where nodes are drawn anew at every step: the draws change the bound by
/// far more.
const MAX_DRAWN_ROUNDING: f64 = 1e-3;
/// The bound is refused above this estimate where Ψ2 cannot be whitened block by block.
const MAX_LOSS: f64 = 1e-2;

/// Ψ0 and L⁻¹Ψ2L⁻ᵀ of each group of columns, or adjoints of Ψ0 and Ψ2; one group for complete data.
struct GroupStats {
    psi0: Buffer<f64>,
    /// The M×M matrices of all groups, stacked.
    psi2: Mat,
}

impl GroupStats {
    fn one(psi0: f64, psi2: Mat) -> Self {
        GroupStats { psi0: Buffer::filled(psi0, 1), psi2 }
    }

    fn zeros(groups: usize, m: usize) -> Self {
        GroupStats { psi0: Buffer::filled(0.0, groups), psi2: scratch::zeros(groups * m, m) }
    }

    /// The M×M entries of a group.
    fn psi2_mut(&mut self, group: usize) -> &mut [f64] {
        let len = self.psi2.cols() * self.psi2.cols();
        &mut self.psi2.as_mut_slice()[group * len..][..len]
    }

    /// Adds Ψ0 and Ψ2 of a group to `psi`.
    fn add_to(&self, group: usize, psi: &mut Psi) {
        psi.psi0 += self.psi0[group];
        let own = &self.psi2.as_slice()[group * psi.psi2.len()..];
        psi.psi2.as_mut_slice().iter_mut().zip(own).for_each(|(to, own)| *to += own);
    }
}

/// F; ∂F/∂ln v for a variance factor v of the kernel, where its gradient would lose digits; the result of
/// `meanwhile`.
type Done<A> = (f64, Option<f64>, A);

/// Ψ0 and Ψ2 of each group, and P of all columns, or their adjoints.
type GroupSums = (GroupStats, Mat);

/// Ψ of all rows: Ψ1 whole, Ψ0 and L⁻¹Ψ2L⁻ᵀ of each group.
struct GroupPsi {
    psi1: Mat,
    each: GroupStats,
}

/// The bound of a group with a shared noise, or with one for each output.
enum GroupBound<'a> {
    Shared(Collapse<'a>, Collapsed),
    Columns(CollapseColumns<'a>, CollapsedColumns),
}

/// The bound of a group, α and the adjoints.
struct GroupBar {
    value: f64,
    alpha: Mat,
    psi0: f64,
    psi2: Mat,
    kzz: Mat,
    /// One for all outputs of the group, or one for each.
    beta: SmallVec<[f64; 1]>,
    factor: f64,
}

impl GroupBound<'_> {
    fn value(&self) -> f64 {
        match self {
            GroupBound::Shared(_, c) => c.value,
            GroupBound::Columns(_, c) => c.value,
        }
    }

    fn into_bar(self) -> GroupBar {
        match self {
            GroupBound::Shared(of, c) => {
                let CollapsedBar { psi0, psi2, kzz, beta, factor } = c.bar(&of);
                let beta = SmallVec::from([beta]);
                GroupBar { value: c.value, alpha: c.alpha, psi0, psi2, kzz, beta, factor }
            }
            GroupBound::Columns(of, c) => {
                let CollapsedColumnsBar { psi0, psi2, kzz, beta, factor } = c.bar(&of);
                let beta = SmallVec::from_vec(beta);
                GroupBar { value: c.value, alpha: c.alpha, psi0, psi2, kzz, beta, factor }
            }
        }
    }
}

/// Ψ0, L⁻¹Ψ2L⁻ᵀ and P of the only group; with `whiten`, Ψ2 is whitened already.
fn one_group(found: PsiY, whiten: Option<&Cholesky>, kzz: &Cholesky) -> GroupSums {
    let a = if whiten.is_some() { found.psi2 } else { kzz.whiten(&found.psi2) };
    (GroupStats::one(found.psi0, a), found.p)
}

impl SparseBound<'_> {
    /// The Cholesky factor of Kzz, jitter included.
    pub fn kzz(&self) -> Result<Cholesky> {
        kzz::factor(self.kernel, self.z, self.jitter.kzz)
    }

    fn psi_inputs<'a>(&'a self, q: &'a Gaussians, whiten: Option<&'a Cholesky>) -> PsiInputs<'a> {
        PsiInputs { kernel: self.kernel, q, z: self.z, whiten }
    }

    /// An estimate of the rounding error in the bound of one cell when Ψ2 is whitened as a whole.
    fn rounding(&self, kzz: &Cholesky) -> f64 {
        let m = self.z.rows();
        let squares = |i: usize| kzz.l().row(i).iter().map(|v| v * v).sum::<f64>();
        let size = (0..m).map(squares).sum::<f64>() / m as f64;
        let noise = self.noise.iter().copied().fold(f64::INFINITY, f64::min);
        f64::EPSILON * kzz.condition() * size / noise
    }

    /// The factor of Kzz if a step must whiten Ψ2 block by block; `None` if it may be whitened as a whole.
    fn whiten<'l>(&self, kzz: &'l Cholesky) -> Option<&'l Cholesky> {
        let drawn = MAX_DRAWN_ROUNDING / self.outputs.n() as f64;
        let max = if self.expectation.is_stochastic() { drawn.max(MAX_ROUNDING) } else { MAX_ROUNDING };
        (self.rounding(kzz) > max).then_some(kzz)
    }

    /// The factor of Kzz if a posterior, which is computed once, must whiten Ψ2 block by block.
    fn whiten_once<'l>(&self, kzz: &'l Cholesky) -> Option<&'l Cholesky> {
        (self.rounding(kzz) > MAX_ROUNDING).then_some(kzz)
    }

    /// Ψ0, Ψ1 and L⁻¹Ψ2L⁻ᵀ.
    fn psi(&self, q: &Gaussians, kzz: &Cholesky, whiten: Option<&Cholesky>) -> Result<Psi> {
        if let Some(l) = whiten {
            return self.expectation.psi_whitened(self.kernel, q, self.z, l);
        }
        let mut psi = self.expectation.psi(self.kernel, q, self.z)?;
        psi.psi2 = kzz.whiten(&psi.psi2);
        Ok(psi)
    }

    fn group_psi(&self, q: &Gaussians, kzz: &Cholesky, whiten: Option<&Cholesky>) -> Result<GroupPsi> {
        let m = self.z.rows();
        if self.outputs.is_complete() {
            let psi = self.psi(q, kzz, whiten)?;
            return Ok(GroupPsi { psi1: psi.psi1, each: GroupStats::one(psi.psi0, psi.psi2) });
        }
        let mut psi1 = scratch::zeros(q.n(), m);
        let mut each = GroupStats::zeros(self.outputs.groups.len(), m);
        for pattern in self.outputs.patterns.iter().filter(|p| !p.groups.is_empty()) {
            let psi = self.psi(&q.select_rows(&pattern.rows), kzz, whiten)?;
            for (i, &n) in pattern.rows.iter().enumerate() {
                psi1.row_mut(n).copy_from_slice(psi.psi1.row(i));
            }
            for &g in &pattern.groups {
                each.psi0[g] += psi.psi0;
                each.psi2_mut(g).iter_mut().zip(psi.psi2.as_slice()).for_each(|(to, own)| *to += own);
            }
        }
        Ok(GroupPsi { psi1, each })
    }

    /// Ψ0 and L⁻¹Ψ2L⁻ᵀ of each group, and P of all columns.
    fn group_psi_y(&self, q: &Gaussians, kzz: &Cholesky) -> Result<GroupSums> {
        let GroupPsi { psi1, each } = self.group_psi(q, kzz, self.whiten(kzz))?;
        Ok((each, blocks::mul_tn(&psi1, &self.y())))
    }

    /// Errs where rounding would spoil the bound whatever the outputs.
    fn check_rounding(&self, q: &Gaussians, kzz: &Cholesky) -> Result<()> {
        if self.rounding(kzz) > MAX_LOSS && !self.expectation.keeps_digits(self.kernel, q) {
            let what = "Kzz, to the digits that so little noise needs,".into();
            return Err(Error::NotPositiveDefinite { what, jitter: self.jitter.kzz + kzz.jitter() });
        }
        Ok(())
    }

    /// β of an output.
    fn beta(&self, output: usize) -> f64 {
        1.0 / if self.noise.len() == 1 { self.noise[0] } else { self.noise[output] }
    }

    /// Y with zeros for missing cells. Where all outputs share a noise, wide data are replaced by a root of
    /// YYᵀ.
    fn y(&self) -> Cow<'_, Mat> {
        self.outputs.cells(self.noise.len() > 1)
    }

    /// Errs where rounding has spoilt the bound of a group.
    fn check_digits(&self, of: &GroupBound<'_>) -> Result<()> {
        let nonnegative = || self.expectation.nonnegative(self.z.cols());
        match of {
            GroupBound::Shared(of, _) => of.check_digits(nonnegative),
            GroupBound::Columns(of, _) => of.check_digits(nonnegative),
        }
    }

    /// Computes the bound of every group in parallel; `add` receives the results of `then` in the order of
    /// the groups.
    fn collapse<T: Send>(
        &self,
        each: &GroupStats,
        p: &Mat,
        kzz: &Cholesky,
        then: impl Fn(GroupBound<'_>) -> Result<T> + Sync,
        mut add: impl FnMut(usize, T),
    ) -> Result<()> {
        let (m, complete, all) = (self.z.rows(), self.outputs.is_complete(), &self.outputs.groups);
        let one = |g: usize| {
            let group = &all[g];
            let own = (!complete)
                .then(|| (p.select_cols(&group.columns), each.psi2.slice_rows(g * m, (g + 1) * m)));
            let (p, a) = own.as_ref().map_or((p, &each.psi2), |(p, a)| (p, a));
            let (rows, psi0, jitter) = (group.rows, each.psi0[g], self.jitter.b);
            if self.noise.len() == 1 || group.columns.len() == 1 {
                let (outputs, yy, beta) = (group.columns.len(), group.yy, self.beta(group.columns[0]));
                let of = Collapse { rows, outputs, yy, p, psi0, a, kzz, beta, jitter };
                let found = collapsed(&of)?;
                return then(GroupBound::Shared(of, found));
            }
            let beta: Vec<f64> = group.columns.iter().map(|&j| self.beta(j)).collect();
            let of = CollapseColumns { rows, yy: &group.squares, p, psi0, a, kzz, beta: &beta, jitter };
            let found = collapsed_columns(&of)?;
            then(GroupBound::Columns(of, found))
        };
        for some in groups(0..all.len(), blocks::PARTS) {
            let found = blocks::each_of(some.clone(), all.len() == 1, one);
            for (g, found) in some.zip(found) {
                add(g, found?);
            }
        }
        Ok(())
    }

    /// The log Jacobian of the scaling, which is part of F for the data as given.
    pub fn jacobian(&self) -> f64 {
        self.scaling.log_jacobian(&self.outputs.observed())
    }

    /// F at q(X).
    pub fn value(&self, q: &Gaussians) -> Result<f64> {
        let kzz = self.kzz()?;
        self.check_rounding(q, &kzz)?;
        let (whiten, y) = (self.whiten(&kzz), &*self.y());
        let (each, p) = match self.outputs.is_complete() {
            true => one_group(self.expectation.psi_y(&self.psi_inputs(q, whiten), y)?, whiten, &kzz),
            false => self.group_psi_y(q, &kzz)?,
        };
        let mut value = 0.0;
        let one = |of: GroupBound<'_>| self.check_digits(&of).map(|()| of.value());
        self.collapse(&each, &p, &kzz, one, |_, own| value += own)?;
        Ok(value)
    }

    /// F at q(X); adds its gradients. `meanwhile` gets μ̄ and S̄ before anything is added to them and runs
    /// while another thread computes the evidence; it is not called after an earlier error.
    pub fn gradient<A: Send>(
        &self,
        q: &Gaussians,
        grad: BoundGrad<'_>,
        meanwhile: impl FnOnce(&mut Mat, &mut Mat) -> A + Send,
    ) -> Result<(f64, A)> {
        let cost = q.n().saturating_mul(self.z.rows() * self.z.rows());
        let BoundGrad { theta, noise, z, mean, var, outputs } = grad;
        let factor = self.kernel.factor().map(|place| (place, theta[place]));
        let grad = BoundGrad { theta: &mut *theta, noise, z, mean, var, outputs };
        let here = || self.gradient_here(q, grad, cost, meanwhile);
        let done = if self.is_large() { blocks::together(here) } else { blocks::step(cost, here) };
        let (value, slope, other) = done?;
        if let (Some(slope), Some((place, before))) = (slope, factor) {
            let mut at = 0;
            self.kernel.each_param(&mut |p| {
                if at == place {
                    theta[place] = before + slope / p.get();
                }
                at += p.len();
            });
        }
        Ok((value, other))
    }

    /// Whether the matrices are so large that all threads of the pool work on one factorisation.
    fn is_large(&self) -> bool {
        self.z.rows() > linalg::SMALL
    }

    /// How many parts threads can share: parts of the rows, and of the groups where cells are missing.
    pub fn parts(&self) -> usize {
        match self.is_large() {
            true => 1,
            false => blocks::parts(self.outputs.n()).max(self.outputs.groups.len().min(blocks::PARTS)),
        }
    }

    fn gradient_here<A: Send>(
        &self,
        q: &Gaussians,
        mut grad: BoundGrad<'_>,
        cost: usize,
        meanwhile: impl FnOnce(&mut Mat, &mut Mat) -> A + Send,
    ) -> Result<Done<A>> {
        let y = &*self.y();
        let kzz = self.kzz()?;
        self.check_rounding(q, &kzz)?;
        if let Some(outputs) = grad.outputs.take() {
            return self.gradient_of_outputs(q, &kzz, (grad, outputs), cost, meanwhile);
        }
        if !self.outputs.is_complete() {
            let sums = self.group_psi_y(q, &kzz)?;
            let (value, (each, p)) = self.evidence_adjoint(sums, &kzz, &mut grad, cost, meanwhile)?;
            self.pull_psi(q, &each, blocks::mul_nt(1.0, y, &p), &mut grad)?;
            return Ok(value);
        }
        let (whiten, mut value, mut once) = (self.whiten(&kzz), None, Some((grad, meanwhile)));
        self.expectation.psi_y_and_back(&self.psi_inputs(q, whiten), y, &mut |found| {
            let (mut grad, meanwhile) = once.take().expect("called once");
            let sums = one_group(found, whiten, &kzz);
            let (own, (each, p)) = self.evidence_adjoint(sums, &kzz, &mut grad, cost, meanwhile)?;
            value = Some(own);
            let to = PsiGrad { theta: grad.theta, z: grad.z, mean: grad.mean, var: grad.var };
            Ok((PsiY { psi0: each.psi0[0], p, psi2: each.psi2 }, to))
        })?;
        Ok(value.expect("called once"))
    }

    /// [`evidence_adjoint`](Self::evidence_adjoint) with the adjoints of uncertain outputs, which need Ψ1.
    fn gradient_of_outputs<'g, A: Send>(
        &self,
        q: &Gaussians,
        kzz: &Cholesky,
        (mut grad, to): (BoundGrad<'g>, OutputsGrad<'g>),
        cost: usize,
        meanwhile: impl FnOnce(&mut Mat, &mut Mat) -> A + Send,
    ) -> Result<Done<A>> {
        // Wide data have a root of YYᵀ instead of Y.
        let whole = (self.outputs.filled.cols() != self.outputs.d()).then(|| self.outputs.zero_filled());
        let y = whole.as_ref().unwrap_or(&self.outputs.filled);
        let add = |psi1: &Mat, p_bar: &Mat, to: OutputsGrad<'_>| {
            let pulled = blocks::mul_nt(1.0, psi1, &p_bar.t());
            let beta: SmallVec<[f64; 1]> = self.noise.iter().map(|noise| 1.0 / noise).collect();
            outputs_adjoint(&self.outputs.y, &pulled, &beta, to);
        };
        let whiten = self.whiten(kzz);
        if !self.outputs.is_complete() {
            let GroupPsi { psi1, each } = self.group_psi(q, kzz, whiten)?;
            let sums = (each, blocks::mul_tn(&psi1, y));
            let (value, (each, p)) = self.evidence_adjoint(sums, kzz, &mut grad, cost, meanwhile)?;
            add(&psi1, &p, to);
            self.pull_psi(q, &each, blocks::mul_nt(1.0, y, &p), &mut grad)?;
            return Ok(value);
        }
        let (mut value, mut once) = (None, Some((grad, to, meanwhile)));
        self.expectation.psi_and_back(&self.psi_inputs(q, whiten), &mut |Psi { psi0, psi1, psi2 }| {
            let (mut grad, to, meanwhile) = once.take().expect("called once");
            let sums = one_group(PsiY { psi0, p: blocks::mul_tn(&psi1, y), psi2 }, whiten, kzz);
            let (own, (each, p)) = self.evidence_adjoint(sums, kzz, &mut grad, cost, meanwhile)?;
            value = Some(own);
            add(&psi1, &p, to);
            let bar = Psi { psi0: each.psi0[0], psi1: blocks::mul_nt(1.0, y, &p), psi2: each.psi2 };
            Ok((bar, PsiGrad { theta: grad.theta, z: grad.z, mean: grad.mean, var: grad.var }))
        })?;
        Ok(value.expect("called once"))
    }

    /// F, and Ψ̄0, Ψ̄2 and P̄ from Ψ0 and L⁻¹Ψ2L⁻ᵀ of each group and P. Adds the gradients that do not pass through Ψ.
    fn evidence_adjoint<A: Send>(
        &self,
        (each, p): GroupSums,
        kzz: &Cholesky,
        grad: &mut BoundGrad<'_>,
        cost: usize,
        meanwhile: impl FnOnce(&mut Mat, &mut Mat) -> A + Send,
    ) -> Result<(Done<A>, GroupSums)> {
        let (m, complete) = (self.z.rows(), self.outputs.is_complete());
        let mut p_bar = scratch::any(p.rows(), p.cols());
        let mut each_bar = if complete {
            GroupStats::one(0.0, Mat::default())
        } else {
            GroupStats::zeros(each.psi0.len(), m)
        };
        let mut kzz_bar = Mat::zeros(m, m);
        let (mut value, mut factor) = (0.0, 0.0);
        let mut beta_bar: SmallVec<[f64; 1]> = SmallVec::from_elem(0.0, self.noise.len());
        let one = |of: GroupBound<'_>| self.check_digits(&of).map(|()| of.into_bar());
        let add = |g: usize, bar: GroupBar| {
            let columns = &self.outputs.groups[g].columns;
            value += bar.value;
            factor += bar.factor;
            match &bar.beta[..] {
                [own] => beta_bar[if self.noise.len() == 1 { 0 } else { columns[0] }] += own,
                each => columns.iter().zip(each).for_each(|(&column, own)| beta_bar[column] += own),
            }
            kzz_bar.add_scaled(1.0, &bar.kzz);
            // P̄ = βα.
            for i in 0..m {
                let row = p_bar.row_mut(i);
                match (complete, self.noise.len()) {
                    (true, 1) => {
                        let beta = self.beta(0);
                        row.iter_mut().zip(bar.alpha.row(i)).for_each(|(to, own)| *to = beta * own);
                    }
                    _ => {
                        let own = columns.iter().zip(bar.alpha.row(i));
                        own.for_each(|(&column, own)| row[column] = self.beta(column) * own);
                    }
                }
            }
            each_bar.psi0[g] = bar.psi0;
            match complete {
                true => each_bar.psi2 = bar.psi2,
                false => each_bar.psi2_mut(g).copy_from_slice(bar.psi2.as_slice()),
            }
        };
        let collapse = || self.collapse(&each, &p, kzz, one, add);
        let meanwhile = || meanwhile(grad.mean, grad.var);
        // Several groups already keep all threads busy.
        let (done, other) = match complete {
            true => blocks::join(cost, collapse, meanwhile),
            false => (collapse(), meanwhile()),
        };
        done?;
        for (j, (to, beta_bar)) in grad.noise.iter_mut().zip(&beta_bar).enumerate() {
            let beta = self.beta(j);
            *to -= beta * beta * beta_bar;
        }
        let grads = KernelGrad { theta: grad.theta, x: Some(grad.z), z: None };
        let held = kzz::adjoint(self.kernel, self.z, self.jitter.kzz, &kzz_bar, grads) + kzz.jitter();
        let slope = self.whiten(kzz).map(|_| factor - held * kzz_bar.trace());
        Ok(((value, slope, other), (each_bar, p_bar)))
    }

    /// Adds the gradients through Ψ, pattern by pattern; `each` holds Ψ̄0 and Ψ̄2 of each group.
    fn pull_psi(
        &self,
        q: &Gaussians,
        each: &GroupStats,
        psi1_bar: Mat,
        grad: &mut BoundGrad<'_>,
    ) -> Result<()> {
        let m = self.z.rows();
        for pattern in self.outputs.patterns.iter().filter(|p| !p.groups.is_empty()) {
            let own = q.select_rows(&pattern.rows);
            let mut bar =
                Psi { psi0: 0.0, psi1: psi1_bar.select_rows(&pattern.rows), psi2: Mat::zeros(m, m) };
            pattern.groups.iter().for_each(|&g| each.add_to(g, &mut bar));
            let (mut mean, mut var) = (Mat::zeros(own.n(), own.dim()), Mat::zeros(own.n(), own.dim()));
            let to = PsiGrad { theta: grad.theta, z: grad.z, mean: &mut mean, var: &mut var };
            self.expectation.psi_adjoint(self.kernel, &own, self.z, &bar, to)?;
            for (i, &n) in pattern.rows.iter().enumerate() {
                let add = |to: &mut [f64], from: &[f64]| to.iter_mut().zip(from).for_each(|(a, b)| *a += b);
                add(grad.mean.row_mut(n), mean.row(i));
                add(grad.var.row_mut(n), var.row(i));
            }
        }
        Ok(())
    }

    /// The posterior from which the model predicts.
    pub fn posterior(&self, q: &Gaussians) -> Result<Posterior> {
        let kzz = self.kzz()?;
        let psi = self.group_psi(q, &kzz, self.whiten_once(&kzz))?;
        // Wide data are trained on a root of YYᵀ, but predictions need Y itself.
        let p = blocks::mul_tn(&psi.psi1, &self.outputs.zero_filled());
        let mut factors = Vec::new();
        let one = |of: GroupBound<'_>| {
            Ok(match of {
                GroupBound::Shared(_, c) => (Explained::Same(c.c()), c.alpha),
                GroupBound::Columns(of, c) => {
                    let (alpha, u, c) = c.into_c(&of);
                    (Explained::Each { u, c }, alpha)
                }
            })
        };
        self.collapse(&psi.each, &p, &kzz, one, |g, (c, alpha)| {
            factors.push(Factors::with(self.outputs.groups[g].columns.clone(), alpha, c, &kzz));
        })?;
        Ok(Posterior {
            kernel: self.kernel.boxed(),
            z: self.z.clone(),
            noise: self.noise.iter().copied().cycle().take(self.outputs.d()).collect(),
            l: kzz.into(),
            factors,
            expectation: self.expectation.boxed(),
            scaling: self.scaling.clone(),
            mean: Mean::Zero,
            inputs: None,
            map: InputMap::AsIs,
        })
    }
}

#[cfg(test)]
mod tests;
