//! Ψ-statistics: expectations of a kernel under Gaussian inputs q(x_n) = N(μ_n, diag S_n).
//!
//! ```text
//! Ψ0 = Σ_n E[k(x_n, x_n)]     Ψ1_nm = E[k(x_n, z_m)]     Ψ2_mm' = Σ_n E[k(x_n, z_m) k(x_n, z_m')]
//! ```
//!
//! [`Analytic`] has them in closed form for some kernels; every other method is a set of weighted nodes,
//! and works for any kernel (see [`rule`]). Memory is O(NM + M²): an N×M×M array exists nowhere.
//!
//! ```
//! use latentgp::{Mat, expectation::{Analytic, Expectation, Gaussians, Unscented}, kernel::Rbf};
//! let q = Gaussians::new(Mat::from_rows(&[[0.0, 1.0]]), Mat::filled(1, 2, 0.05))?;
//! let z = Mat::from_rows(&[[0.2, 0.7], [1.0, -1.0]]);
//! let exact = Analytic.psi(&Rbf::new(2), &q, &z)?;
//! let close = Unscented.psi(&Rbf::new(2), &q, &z)?;
//! assert!((exact.psi1[(0, 0)] - close.psi1[(0, 0)]).abs() < 1e-3);
//! # Ok::<(), latentgp::Error>(())
//! ```

mod analytic;
mod auto;
mod certain;
pub mod correlated;
mod cubature;
mod gauss_hermite;
mod monte_carlo;
pub(crate) mod node_sums;
mod nodes;
mod normals;
mod parse;
mod quasi_monte_carlo;
pub mod rule;
mod sobol;
mod unscented;

pub use analytic::Analytic;
pub use auto::{Auto, stronger};
pub use certain::{Certain, Mixed};
pub use correlated::Correlated;
pub use cubature::Cubature5;
pub use gauss_hermite::GaussHermite;
pub use monte_carlo::{GivenDraws, MonteCarlo};
pub use parse::{names, parse};
pub use quasi_monte_carlo::QuasiMonteCarlo;
pub(crate) use rule::DEFAULT_MAX_NODES;
pub use rule::Rule;
pub use unscented::{MinimalSkew, ScaledUnscented, Unscented};

use crate::blocks;
use crate::error::{Error, Result};
use crate::kernel::{self, Kernel};
use crate::linalg::Cholesky;
use crate::mat::Mat;
use crate::scratch;
use std::fmt;

/// Independent Gaussians, one a row: means and variances, both N×Q.
#[derive(Clone, Debug, PartialEq)]
pub struct Gaussians {
    /// μ.
    pub mean: Mat,
    /// S, variances, ≥ 0.
    pub var: Mat,
}

impl Gaussians {
    /// Checks that the shapes agree, the means are finite and the variances finite and not negative.
    pub fn new(mean: Mat, var: Mat) -> Result<Self> {
        if mean.shape() != var.shape() {
            return Err(Error::shape("variances of the inputs", mean.shape(), var.shape()));
        }
        if !mean.is_finite() {
            return Err(Error::not_finite("a mean of the inputs"));
        }
        if let Some(bad) = var.as_slice().iter().find(|v| !(v.is_finite() && **v >= 0.0)) {
            return Err(Error::invalid("variance of an input", "a finite number, not negative", bad));
        }
        Ok(Gaussians { mean, var })
    }

    /// Points without uncertainty.
    pub fn certain(x: Mat) -> Self {
        let var = Mat::zeros(x.rows(), x.cols());
        Gaussians { mean: x, var }
    }

    /// Number of points.
    pub fn n(&self) -> usize {
        self.mean.rows()
    }

    /// Number of input columns.
    pub fn dim(&self) -> usize {
        self.mean.cols()
    }

    /// The rows listed.
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        Gaussians { mean: self.mean.select_rows(rows), var: self.var.select_rows(rows) }
    }
}

/// Ψ-statistics, or adjoints of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Psi {
    /// Σ_n E[k(x_n, x_n)].
    pub psi0: f64,
    /// E[k(x_n, z_m)], N×M.
    pub psi1: Mat,
    /// Σ_n E[k(x_n, z_m) k(x_n, z_m')], M×M, symmetric.
    pub psi2: Mat,
}

impl Psi {
    /// All zero, for N points and M inducing inputs.
    pub fn zeros(n: usize, m: usize) -> Self {
        Psi { psi0: 0.0, psi1: scratch::zeros(n, m), psi2: Mat::zeros(m, m) }
    }
}

/// Where the gradient of Ψ-statistics is added.
pub struct PsiGrad<'a> {
    /// ∂F/∂θ of the kernel.
    pub theta: &'a mut [f64],
    /// ∂F/∂Z.
    pub z: &'a mut Mat,
    /// ∂F/∂μ.
    pub mean: &'a mut Mat,
    /// ∂F/∂S.
    pub var: &'a mut Mat,
}

/// θ̄, Z̄, μ̄ and S̄ of what `add` adds.
#[cfg(test)]
fn gradient(
    kernel: &dyn Kernel,
    q: &Gaussians,
    z: &Mat,
    add: impl FnOnce(PsiGrad<'_>),
) -> (Vec<f64>, Mat, Mat, Mat) {
    let like = |rows| Mat::zeros(rows, q.dim());
    let mut to = (vec![0.0; crate::param::count(kernel)], like(z.rows()), like(q.n()), like(q.n()));
    add(PsiGrad { theta: &mut to.0, z: &mut to.1, mean: &mut to.2, var: &mut to.3 });
    to
}

/// Ψ, or what is made of it, and the gradient that a forward pass followed by its backward pass gives for `bar`.
#[cfg(test)]
fn forward_and_backward<P: Clone>(
    of: &PsiInputs<'_>,
    bar: &P,
    run: impl for<'g> FnOnce(&mut AdjointFn<'_, 'g, P>) -> Result<()>,
) -> (P, (Vec<f64>, Mat, Mat, Mat)) {
    let mut found = None;
    let back = gradient(of.kernel, of.q, of.z, |grad| {
        let mut grad = Some(grad);
        run(&mut |psi| {
            found = Some(psi);
            Ok((bar.clone(), grad.take().expect("called once")))
        })
        .unwrap();
    });
    (found.expect("called once"), back)
}

/// Computes the adjoint of Ψ between the forward and the backward pass: takes Ψ, returns Ψ̄ = ∂F/∂Ψ and where the gradient is
/// added. It is called once.
pub type AdjointFn<'b, 'g, P> = dyn FnMut(P) -> Result<(P, PsiGrad<'g>)> + 'b;

/// What Ψ-statistics are computed from.
#[derive(Clone, Copy)]
pub struct PsiInputs<'a> {
    /// k.
    pub kernel: &'a dyn Kernel,
    /// q(x_n) = N(μ_n, diag S_n), N points of Q columns.
    pub q: &'a Gaussians,
    /// Z, the inducing inputs, M×Q.
    pub z: &'a Mat,
    /// L, the Cholesky factor of Kzz. Where it is given, Ψ2 is whitened: L⁻¹Ψ2L⁻ᵀ.
    pub whiten: Option<&'a Cholesky>,
}

impl<'a> PsiInputs<'a> {
    /// Inputs of a Ψ2 that is not whitened.
    pub fn new(kernel: &'a dyn Kernel, q: &'a Gaussians, z: &'a Mat) -> Self {
        PsiInputs { kernel, q, z, whiten: None }
    }

    /// Errs unless a factor that is given is one of Kzz.
    fn check_factor(&self) -> Result<()> {
        match self.whiten.map(|l| l.l().rows()) {
            Some(rows) if rows != self.z.rows() => {
                Err(Error::shape("rows of the factor of Kzz", self.z.rows(), rows))
            }
            _ => Ok(()),
        }
    }

    /// Errs unless kernel, inputs and inducing inputs fit each other.
    fn check_shapes(&self) -> Result<()> {
        if self.z.cols() != self.q.dim() {
            return Err(Error::shape("columns of the inducing inputs", self.q.dim(), self.z.cols()));
        }
        kernel::check_dim(self.kernel, self.q.dim())
    }

    /// Errs unless there is a row of outputs for each of the inputs.
    fn check_outputs(&self, y: &Mat) -> Result<()> {
        match y.rows() == self.q.n() {
            true => Ok(()),
            false => Err(Error::shape("rows of the outputs", self.q.n(), y.rows())),
        }
    }

    /// Ψ by an expectation.
    fn psi<E: Expectation + ?Sized>(&self, by: &E) -> Result<Psi> {
        match self.whiten {
            Some(l) => by.psi_whitened(self.kernel, self.q, self.z, l),
            None => by.psi(self.kernel, self.q, self.z),
        }
    }

    /// Both passes by an expectation; the second computes again what the first did.
    fn psi_and_back_anew<'g, E: Expectation + ?Sized>(
        &self,
        by: &E,
        adjoint: &mut AdjointFn<'_, 'g, Psi>,
    ) -> Result<()> {
        let (bar, grad) = adjoint(self.psi(by)?)?;
        by.psi_adjoint(self.kernel, self.q, self.z, &bar, grad)
    }

    /// Both passes of P = Ψ1ᵀY by way of Ψ1 and Ψ̄1 = Y P̄ᵀ.
    fn project_and_back<'g, E: Expectation + ?Sized>(
        &self,
        by: &E,
        y: &Mat,
        adjoint: &mut AdjointFn<'_, 'g, PsiY>,
    ) -> Result<()> {
        by.psi_and_back(self, &mut |psi| {
            let (bar, grad) = adjoint(project(psi, y))?;
            let psi1 = blocks::mul_nt(1.0, y, &bar.p);
            Ok((Psi { psi0: bar.psi0, psi1, psi2: bar.psi2 }, grad))
        })
    }
}

/// All of Ψ that the bound of outputs Y needs, or adjoints of it.
#[derive(Clone, Debug, PartialEq)]
pub struct PsiY {
    /// Ψ0.
    pub psi0: f64,
    /// P = Ψ1ᵀY, M×D.
    pub p: Mat,
    /// Ψ2.
    pub psi2: Mat,
}

/// P = Ψ1ᵀY by way of Ψ1.
fn project(psi: Psi, y: &Mat) -> PsiY {
    PsiY { psi0: psi.psi0, p: blocks::mul_tn(&psi.psi1, y), psi2: psi.psi2 }
}

/// What an expectation will take, known before it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Nodes a point; 0 for a closed form.
    pub nodes: f64,
    /// Kernel evaluations of one pass over all points.
    pub evaluations: f64,
    /// Working memory in bytes, besides the inputs, and besides the 40 MB at the most that a fit keeps for the backward pass.
    pub bytes: f64,
}

/// A way to compute Ψ-statistics.
pub trait Expectation: CloneExpectation + Send + Sync {
    /// Ψ0, Ψ1, Ψ2.
    fn psi(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat) -> Result<Psi>;

    /// The same with L⁻¹Ψ2L⁻ᵀ in the place of Ψ2, for the factor L of Kzz.
    ///
    /// Rules whiten the kernel's blocks before they are squared: where Kzz is ill-conditioned that loses
    /// half as many digits as whitening Ψ2 does.
    fn psi_whitened(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat, l: &Cholesky) -> Result<Psi> {
        PsiInputs { kernel, q, z, whiten: Some(l) }.check_factor()?;
        let mut psi = self.psi(kernel, q, z)?;
        psi.psi2 = l.whiten(&psi.psi2);
        Ok(psi)
    }

    /// Whether [`psi_whitened`](Self::psi_whitened) whitens before it squares, and keeps the digits where Kzz is
    /// ill-conditioned.
    fn keeps_digits(&self, _kernel: &dyn Kernel, _q: &Gaussians) -> bool {
        false
    }

    /// Adds the gradient of bar.psi0·Ψ0 + Σ bar.psi1 ∘ Ψ1 + Σ bar.psi2 ∘ Ψ2.
    fn psi_adjoint(
        &self,
        kernel: &dyn Kernel,
        q: &Gaussians,
        z: &Mat,
        bar: &Psi,
        grad: PsiGrad<'_>,
    ) -> Result<()>;

    /// The forward pass, `adjoint` of its Ψ, and the backward pass, which adds the gradient. Ψ̄2 is that of Ψ2 itself, also
    /// where Ψ2 was whitened. The forward pass may keep what it computed for the backward pass.
    fn psi_and_back<'g>(&self, of: &PsiInputs<'_>, adjoint: &mut AdjointFn<'_, 'g, Psi>) -> Result<()> {
        of.psi_and_back_anew(self, adjoint)
    }

    /// Ψ0, P = Ψ1ᵀY and Ψ2 for outputs Y, N×D, where Ψ1 itself is not wanted. Provided: by way of Ψ1.
    fn psi_y(&self, of: &PsiInputs<'_>, y: &Mat) -> Result<PsiY> {
        of.check_outputs(y)?;
        Ok(project(of.psi(self)?, y))
    }

    /// [`psi_y`](Self::psi_y), to the bit, and the gradient of bar.psi0·Ψ0 + Σ bar.p ∘ P + Σ bar.psi2 ∘ Ψ2, as
    /// [`psi_and_back`](Self::psi_and_back) has it.
    fn psi_y_and_back<'g>(
        &self,
        of: &PsiInputs<'_>,
        y: &Mat,
        adjoint: &mut AdjointFn<'_, 'g, PsiY>,
    ) -> Result<()> {
        of.check_outputs(y)?;
        of.project_and_back(self, y, adjoint)
    }

    /// The expectation as an expression, as [`parse`] reads it.
    fn expression(&self) -> String;

    /// What N points of Q columns and M inducing inputs will take.
    fn cost(&self, n: usize, q: usize, m: usize) -> Cost;

    /// Errs when the rule cannot or should not run in `dim` dimensions: too many nodes, no such rule.
    fn check(&self, kernel: &dyn Kernel, dim: usize) -> Result<()>;

    /// Whether all weights are ≥ 0 in `dim` dimensions, so that Ψ0 − tr Kzz⁻¹Ψ2 ≥ 0.
    fn nonnegative(&self, dim: usize) -> bool;

    /// The largest number of nodes that this expectation accepts.
    fn set_max_nodes(&mut self, _limit: usize) {}

    /// The number of nodes beyond which it refuses to run; `None` where there are no nodes.
    fn max_nodes(&self) -> Option<usize> {
        None
    }

    /// Draws new nodes for the given step, where nodes are drawn afresh.
    fn renew(&mut self, _step: u64) {}

    /// The step of the last [`renew`](Self::renew) that changed the nodes.
    fn step(&self) -> u64 {
        0
    }

    /// Whether [`renew`](Self::renew) changes the nodes: the objective is then noisy, and wants Adam.
    fn is_stochastic(&self) -> bool {
        false
    }
}

/// Cloning behind a `Box<dyn Expectation>`; every `Clone` expectation has it.
pub trait CloneExpectation {
    /// A copy in a box.
    fn boxed(&self) -> Box<dyn Expectation>;
}

impl<E: Expectation + Clone + 'static> CloneExpectation for E {
    fn boxed(&self) -> Box<dyn Expectation> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Expectation> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

impl fmt::Display for dyn Expectation + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expression())
    }
}

impl fmt::Debug for dyn Expectation + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expression())
    }
}
