//! The collapsed bound of outputs that share inducing inputs: what sparse regression and the Bayesian GPLVM
//! have in common.
//!
//! ```text
//! F = Σ_groups collapsed(Y, Ψ, Kzz, β)
//! ```
//!
//! Ψ of every row is computed once: a group's Ψ0 and Ψ2 are sums over the patterns of rows that it has.

use super::outputs::Group;
use super::{Outputs, kzz};
use crate::blocks;
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::evidence::{Collapse, Collapsed, collapsed};
use crate::expectation::{Expectation, Gaussians, Psi, PsiGrad, PsiY};
use crate::kernel::{Kernel, KernelGrad};
use crate::linalg::Cholesky;
use crate::mat::Mat;
use crate::mean::Mean;
use crate::posterior::{Factors, InputMap, Posterior};
use crate::scratch;
use rayon::prelude::*;
use smallvec::{SmallVec, smallvec};

/// What is added to diagonals before they are factored.
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

/// All that the bound is made of but the inputs.
pub(crate) struct SparseBound<'a> {
    pub kernel: &'a dyn Kernel,
    pub expectation: &'a dyn Expectation,
    pub z: &'a Mat,
    pub noise: f64,
    pub jitter: Jitter,
    pub outputs: &'a Outputs,
    pub scaling: &'a Scaling,
}

/// Where gradients are added.
pub(crate) struct BoundGrad<'g> {
    pub theta: &'g mut [f64],
    pub noise: &'g mut f64,
    pub z: &'g mut Mat,
    pub mean: &'g mut Mat,
    pub var: &'g mut Mat,
}

/// Above this estimate of the rounding error that ill-conditioning brings into the bound of one cell,
/// Ψ2 is whitened block by block.
const ROUNDING: f64 = 1e-10;
/// The same of all rows together where nodes are drawn anew at every step: what they differ by is far more.
const DRAWN_ROUNDING: f64 = 1e-3;
/// Above this one the bound is refused where Ψ2 cannot be whitened so.
const LOST: f64 = 1e-2;

/// One for each group, of which there is one unless cells are missing.
type Each<T> = SmallVec<[T; 1]>;

/// Ψ0 and L⁻¹Ψ2L⁻ᵀ of each group, and P of all; or adjoints of Ψ0, Ψ2 and P.
type GroupSums = (Each<(f64, Mat)>, Mat);

/// Ψ of all rows: Ψ1 whole, Ψ0 and L⁻¹Ψ2L⁻ᵀ of each group.
struct GroupPsi {
    psi1: Mat,
    each: Each<(f64, Mat)>,
}

/// Ψ0 and L⁻¹Ψ2L⁻ᵀ of the only group, and P, of what may be whitened already.
fn one_group(found: PsiY, whiten: Option<&Cholesky>, kzz: &Cholesky) -> GroupSums {
    let a = if whiten.is_some() { found.psi2 } else { kzz.whiten(&found.psi2) };
    (smallvec![(found.psi0, a)], found.p)
}

impl SparseBound<'_> {
    /// The factor of Kzz, jitter included.
    pub fn kzz(&self) -> Result<Cholesky> {
        kzz::factor(self.kernel, self.z, self.jitter.kzz)
    }

    /// An estimate of the rounding error that whitening Ψ2 as a whole brings into the bound of one cell.
    fn rounding(&self, kzz: &Cholesky) -> f64 {
        let m = self.z.rows();
        let squares = |i: usize| kzz.l().row(i).iter().map(|v| v * v).sum::<f64>();
        let size = (0..m).map(squares).sum::<f64>() / m as f64;
        f64::EPSILON * kzz.condition() * size / self.noise
    }

    /// The factor by which Ψ2 is to be whitened block by block at a step, unless it may be whitened as a whole.
    fn whiten<'l>(&self, kzz: &'l Cholesky) -> Option<&'l Cholesky> {
        let drawn = DRAWN_ROUNDING / self.outputs.n() as f64;
        let most = if self.expectation.is_stochastic() { drawn.max(ROUNDING) } else { ROUNDING };
        (self.rounding(kzz) > most).then_some(kzz)
    }

    /// The same for what is computed once and kept.
    fn whiten_once<'l>(&self, kzz: &'l Cholesky) -> Option<&'l Cholesky> {
        (self.rounding(kzz) > ROUNDING).then_some(kzz)
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
            return Ok(GroupPsi { psi1: psi.psi1, each: smallvec![(psi.psi0, psi.psi2)] });
        }
        let mut psi1 = Mat::zeros(q.n(), m);
        let mut each: Each<_> = smallvec![(0.0, Mat::zeros(m, m)); self.outputs.groups.len()];
        for pattern in self.outputs.patterns.iter().filter(|p| !p.groups.is_empty()) {
            let psi = self.psi(&q.select_rows(&pattern.rows), kzz, whiten)?;
            for (i, &n) in pattern.rows.iter().enumerate() {
                psi1.row_mut(n).copy_from_slice(psi.psi1.row(i));
            }
            for &g in &pattern.groups {
                each[g].0 += psi.psi0;
                each[g].1.add_scaled(1.0, &psi.psi2);
            }
        }
        Ok(GroupPsi { psi1, each })
    }

    /// Ψ0 and L⁻¹Ψ2L⁻ᵀ of each group, and P of all.
    fn group_psi_y(&self, q: &Gaussians, kzz: &Cholesky) -> Result<GroupSums> {
        let GroupPsi { mut psi1, each } = self.group_psi(q, kzz, self.whiten(kzz))?;
        let p = blocks::mul_tn(&psi1, &self.outputs.filled);
        scratch::give(&mut psi1);
        Ok((each, p))
    }

    /// Errs where rounding would spoil the bound, whatever it is of.
    fn check_rounding(&self, q: &Gaussians, kzz: &Cholesky) -> Result<()> {
        if self.rounding(kzz) > LOST && !self.expectation.keeps_digits(self.kernel, q) {
            let what = "Kzz, to the digits that so little noise needs,".into();
            return Err(Error::NotPositiveDefinite { what, jitter: self.jitter.kzz + kzz.jitter() });
        }
        Ok(())
    }

    /// Errs where rounding has spoilt the bound of a group.
    fn check_digits(&self, of: &Collapse<'_>) -> Result<()> {
        of.check_digits(|| self.expectation.nonnegative(self.z.cols()))
    }

    /// The bound of every group: P of its columns, what went in, what came out.
    fn collapse<T: Send>(
        &self,
        each: &[(f64, Mat)],
        p: &Mat,
        kzz: &Cholesky,
        then: impl Fn(&Collapse<'_>, Collapsed) -> T + Sync,
    ) -> Result<Each<T>> {
        let complete = self.outputs.is_complete();
        let one = |(g, group): (usize, &Group)| {
            let own = (!complete).then(|| p.select_cols(&group.columns));
            let of = Collapse {
                rows: group.rows,
                outputs: group.columns.len(),
                yy: group.yy,
                p: own.as_ref().unwrap_or(p),
                psi0: each[g].0,
                a: &each[g].1,
                kzz,
                beta: 1.0 / self.noise,
                jitter: self.jitter.b,
            };
            Ok(then(&of, collapsed(&of)?))
        };
        match &self.outputs.groups[..] {
            [only] => Ok(smallvec![one((0, only))?]),
            groups => Ok(groups.par_iter().enumerate().map(one).collect::<Result<Vec<T>>>()?.into()),
        }
    }

    /// The Jacobian of the scaling, which F of the data as given has in addition.
    pub fn jacobian(&self) -> f64 {
        self.scaling.log_jacobian(&self.outputs.observed())
    }

    /// F at q(X).
    pub fn value(&self, q: &Gaussians) -> Result<f64> {
        let kzz = self.kzz()?;
        self.check_rounding(q, &kzz)?;
        let (whiten, y) = (self.whiten(&kzz), &self.outputs.filled);
        let (each, p) = match self.outputs.is_complete() {
            true => one_group(self.expectation.psi_y(self.kernel, q, self.z, y, whiten)?, whiten, &kzz),
            false => self.group_psi_y(q, &kzz)?,
        };
        let values = self.collapse(&each, &p, &kzz, |of, c| self.check_digits(of).map(|()| c.value))?;
        values.into_iter().sum()
    }

    /// F at q(X); adds its gradients. `aside` gets μ̄ and S̄ before anything is added to them, beside a step that one thread does
    /// alone; it is not called where an earlier step errs.
    pub fn gradient<A: Send>(
        &self,
        q: &Gaussians,
        grad: BoundGrad<'_>,
        aside: impl FnOnce(&mut Mat, &mut Mat) -> A + Send,
    ) -> Result<(f64, A)> {
        let cost = q.n().saturating_mul(self.z.rows() * self.z.rows());
        blocks::together(cost, || self.gradient_here(q, grad, cost, aside))
    }

    fn gradient_here<A: Send>(
        &self,
        q: &Gaussians,
        mut grad: BoundGrad<'_>,
        cost: usize,
        aside: impl FnOnce(&mut Mat, &mut Mat) -> A + Send,
    ) -> Result<(f64, A)> {
        let y = &self.outputs.filled;
        let kzz = self.kzz()?;
        self.check_rounding(q, &kzz)?;
        if !self.outputs.is_complete() {
            let sums = self.group_psi_y(q, &kzz)?;
            let (there, (each, p)) = self.turn(sums, &kzz, &mut grad, cost, aside)?;
            self.pull_psi(q, &each, blocks::mul_nt(1.0, y, &p), &mut grad)?;
            return Ok(there);
        }
        let (whiten, mut there, mut once) = (self.whiten(&kzz), None, Some((grad, aside)));
        self.expectation.psi_y_and_back(self.kernel, q, self.z, y, whiten, &mut |found| {
            let (mut grad, aside) = once.take().expect("one way there");
            let sums = one_group(found, whiten, &kzz);
            let (value, (mut each, p)) = self.turn(sums, &kzz, &mut grad, cost, aside)?;
            there = Some(value);
            let (psi0, psi2) = each.remove(0);
            let to = PsiGrad { theta: grad.theta, z: grad.z, mean: grad.mean, var: grad.var };
            Ok((PsiY { psi0, p, psi2 }, to))
        })?;
        Ok(there.expect("one way there"))
    }

    /// F, where the way there ends and the way back begins: turns Ψ0 and L⁻¹Ψ2L⁻ᵀ of each group and P into Ψ̄0, Ψ̄2 and P̄, and
    /// adds the gradients that do not pass through Ψ.
    fn turn<A: Send>(
        &self,
        (mut each, p): GroupSums,
        kzz: &Cholesky,
        grad: &mut BoundGrad<'_>,
        cost: usize,
        aside: impl FnOnce(&mut Mat, &mut Mat) -> A + Send,
    ) -> Result<((f64, A), GroupSums)> {
        let m = self.z.rows();
        let collapse = || {
            self.collapse(&each, &p, kzz, |of, c| {
                let bar = c.bar(of);
                self.check_digits(of).map(|()| (c.value, c.alpha, bar))
            })
        };
        let (bars, aside) = blocks::beside(cost, collapse, || aside(grad.mean, grad.var));
        let bars = bars?.into_iter().collect::<Result<Each<_>>>()?;
        let beta = 1.0 / self.noise;

        // P̄ = βα.
        let mut p_bar = p;
        let mut kzz_bar = Mat::zeros(m, m);
        let (mut value, mut beta_bar) = (0.0, 0.0);
        for (group, (f, alpha, bar)) in self.outputs.groups.iter().zip(&bars) {
            value += f;
            beta_bar += bar.beta;
            kzz_bar.add_scaled(1.0, &bar.kzz);
            for i in 0..m {
                let (row, own) = (p_bar.row_mut(i), alpha.row(i).iter().map(|own| beta * own));
                match self.outputs.is_complete() {
                    true => row.iter_mut().zip(own).for_each(|(to, own)| *to = own),
                    false => group.columns.iter().zip(own).for_each(|(&column, own)| row[column] = own),
                }
            }
        }
        for (each, (_, _, bar)) in each.iter_mut().zip(bars) {
            *each = (bar.psi0, bar.psi2);
        }
        *grad.noise -= beta * beta * beta_bar;
        let grads = KernelGrad { theta: grad.theta, x: Some(grad.z), z: None };
        kzz::adjoint(self.kernel, self.z, self.jitter.kzz, &kzz_bar, grads);
        Ok(((value, aside), (each, p_bar)))
    }

    /// Chains Ψ̄ back pattern by pattern; `each` holds Ψ̄0 and Ψ̄2 of each group.
    fn pull_psi(
        &self,
        q: &Gaussians,
        each: &[(f64, Mat)],
        psi1_bar: Mat,
        grad: &mut BoundGrad<'_>,
    ) -> Result<()> {
        let m = self.z.rows();
        for pattern in self.outputs.patterns.iter().filter(|p| !p.groups.is_empty()) {
            let own = q.select_rows(&pattern.rows);
            let mut bar =
                Psi { psi0: 0.0, psi1: psi1_bar.select_rows(&pattern.rows), psi2: Mat::zeros(m, m) };
            for &g in &pattern.groups {
                bar.psi0 += each[g].0;
                bar.psi2.add_scaled(1.0, &each[g].1);
            }
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

    /// What predictions are made from, for inputs as they are.
    pub fn posterior(&self, q: &Gaussians) -> Result<Posterior> {
        let kzz = self.kzz()?;
        let psi = self.group_psi(q, &kzz, self.whiten_once(&kzz))?;
        // Wide data are trained on a root of YYᵀ; predictions need Y itself.
        let p = blocks::mul_tn(&psi.psi1, &self.outputs.zero_filled());
        let parts = self.collapse(&psi.each, &p, &kzz, |_, c| (c.c(), c.alpha))?;
        let groups = self.outputs.groups.iter().zip(parts);
        let factors = groups.map(|(g, (c, alpha))| Factors::new(g.columns.clone(), alpha, c, &kzz)).collect();
        Ok(Posterior {
            kernel: self.kernel.boxed(),
            z: self.z.clone(),
            noise: self.noise,
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
