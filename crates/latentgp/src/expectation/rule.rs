//! Weighted nodes: E[f(x)] ≈ Σ_s w_s f(μ + √S ∘ ξ_s), the one loop behind every method but the closed forms.
//!
//! ```text
//! forward    x_s = μ + √S ∘ ξ_s     K_s = k(Z, x_s)     Ψ0 = Σ w_s Σ_n k(x_ns, x_ns)
//!            Ψ1 = Σ w_s K_sᵀ        Ψ2 = Σ w_s K_sK_sᵀ
//! backward   K̄_s = w_s (Ψ̄1ᵀ + (Ψ̄2 + Ψ̄2ᵀ) K_s)  ──pull──▶  x̄_s, Z̄, θ̄
//!            μ̄ += x̄_s               S̄ += x̄_s ∘ ξ_s / (2√S)
//! ```
//!
//! The [sums](super::node_sums) go over tiles of points and nodes. Nodes that move one coordinate each, with kernels that are
//! cheap there, have sums of their own: [`star_sums`](crate::fast::star_sums).

use super::node_sums::{Keep, NodeSums};
use super::nodes::{TILE, padded};
use super::{AdjointFn, Cost, Expectation, Gaussians, Psi, PsiGrad, PsiInputs};
use crate::blocks::part_rows;
use crate::error::{Error, Result};
use crate::fast::star_sums::Stars;
use crate::kernel::Kernel;
use crate::linalg::Cholesky;
use crate::mat::Mat;

/// Nodes ξ_s and weights w_s for N(0, I).
pub trait Rule: Clone + Send + Sync + 'static {
    /// The rule as an expression.
    fn expression(&self) -> String;

    /// How many nodes in `dim` dimensions; a float, as it may be beyond any integer.
    fn count(&self, dim: usize) -> f64;

    /// w_s, as many as nodes; they sum to 1.
    fn weights(&self, dim: usize) -> Vec<f64>;

    /// ξ_s, one a row, the same for every point.
    fn nodes(&self, dim: usize) -> Mat;

    /// Whether each point has nodes of its own, which [`draw`](Self::draw) writes.
    fn has_own_nodes(&self) -> bool {
        false
    }

    /// Writes nodes of point `row` in `dim` dimensions, one after the other, from node `from` on: as many as `out` has room for.
    fn draw(&self, dim: usize, _row: usize, from: usize, out: &mut [f64]) {
        out.copy_from_slice(&self.nodes(dim).as_slice()[from * dim..from * dim + out.len()]);
    }

    /// Above so many nodes the rule refuses to run.
    fn max_nodes(&self) -> usize {
        DEFAULT_MAX_NODES
    }

    /// Sets [`max_nodes`](Self::max_nodes), where it can be reached.
    fn set_max_nodes(&mut self, _limit: usize) {}

    /// Errs where there is no such rule in `dim` dimensions.
    fn check_rule(&self, _dim: usize) -> Result<()> {
        Ok(())
    }

    /// New nodes for each step; see [`Expectation::renew`].
    fn renew(&mut self, _step: u64) {}

    /// See [`Expectation::step`].
    fn step(&self) -> u64 {
        0
    }

    /// See [`Expectation::is_stochastic`].
    fn is_stochastic(&self) -> bool {
        false
    }
}

/// The limit of nodes unless the caller sets another.
pub const DEFAULT_MAX_NODES: usize = 100_000;

const ONCE: &str = "`with_blocks` calls once";

/// w, 1×S.
pub(crate) fn weights(rule: &impl Rule, dim: usize) -> Mat {
    let weights = rule.weights(dim);
    Mat::from_vec(1, weights.len(), weights).expect("as many as there are")
}

fn check_all(rule: &impl Rule, of: &PsiInputs<'_>) -> Result<()> {
    of.check_shapes()?;
    of.check_factor()?;
    rule.check(of.kernel, of.q.dim())
}

/// Ψ: by stars where rule and kernel allow, else by all nodes.
fn psi(rule: &impl Rule, of: &PsiInputs<'_>) -> Result<Psi> {
    check_all(rule, of)?;
    if let Some(stars) = Stars::new(rule, of) {
        return Ok(stars.psi());
    }
    let mut psi = None;
    NodeSums::make(rule, of, &mut |sums| psi = Some(sums.psi(Keep::Nothing).0));
    Ok(psi.expect(ONCE))
}

impl<R: Rule> Expectation for R {
    fn psi(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat) -> Result<Psi> {
        psi(self, &PsiInputs::new(kernel, q, z))
    }

    fn psi_whitened(&self, kernel: &dyn Kernel, q: &Gaussians, z: &Mat, l: &Cholesky) -> Result<Psi> {
        psi(self, &PsiInputs { kernel, q, z, whiten: Some(l) })
    }

    fn keeps_digits(&self, _: &dyn Kernel, _: &Gaussians) -> bool {
        true
    }

    fn psi_and_back<'g>(&self, of: &PsiInputs<'_>, adjoint: &mut AdjointFn<'_, 'g, Psi>) -> Result<()> {
        check_all(self, of)?;
        if let Some(stars) = Stars::new(self, of) {
            return stars.psi_and_back(adjoint);
        }
        let mut done = None;
        NodeSums::make(self, of, &mut |sums| {
            let (psi, kept) = sums.psi(sums.keeps());
            done = Some(adjoint(psi).map(|(bar, grad)| sums.psi_adjoint(&kept, &bar, grad)));
        });
        done.expect(ONCE)
    }

    fn psi_adjoint(
        &self,
        kernel: &dyn Kernel,
        q: &Gaussians,
        z: &Mat,
        bar: &Psi,
        grad: PsiGrad<'_>,
    ) -> Result<()> {
        let of = PsiInputs::new(kernel, q, z);
        check_all(self, &of)?;
        if let Some(stars) = Stars::new(self, &of) {
            stars.psi_adjoint(bar, grad);
            return Ok(());
        }
        let mut grad = Some(grad);
        NodeSums::make(self, &of, &mut |sums| {
            sums.psi_adjoint(&[], bar, grad.take().expect(ONCE));
        });
        Ok(())
    }

    fn expression(&self) -> String {
        Rule::expression(self)
    }

    fn cost(&self, n: usize, q: usize, m: usize) -> Cost {
        let nodes = self.count(q);
        let shared = if self.has_own_nodes() { 0.0 } else { nodes * q as f64 };
        let parts = n.div_ceil(part_rows(n.max(1))) as f64;
        let tile = (padded(TILE) * (5 * m + 6 * q)) as f64;
        let numbers = shared + (n * m + m * m) as f64 + parts * ((m * m + 6 * m * q) as f64 + tile);
        Cost { nodes, evaluations: nodes * n as f64 * m as f64, bytes: 8.0 * numbers }
    }

    fn check(&self, _: &dyn Kernel, dim: usize) -> Result<()> {
        self.check_rule(dim)?;
        let (nodes, limit) = (self.count(dim), self.max_nodes());
        if nodes <= limit as f64 {
            return Ok(());
        }
        let rules = [("cubature5", 2 * dim * dim + 1), ("unscented", 2 * dim), ("minimal_skew", dim + 2)];
        let fits: Vec<String> = rules
            .iter()
            .filter(|(_, count)| *count <= limit)
            .map(|(name, count)| format!("`{name}` ({count} nodes)"))
            .collect();
        let cheaper = if fits.is_empty() { "fewer dimensions".to_string() } else { fits.join(" or ") };
        let megabytes = (nodes * dim as f64 * 8e-6).ceil();
        Err(Error::TooManyNodes { rule: Rule::expression(self), nodes, dim, megabytes, limit, cheaper })
    }

    fn nonnegative(&self, dim: usize) -> bool {
        weights(self, dim).as_slice().iter().all(|w| *w >= 0.0)
    }

    fn set_max_nodes(&mut self, limit: usize) {
        Rule::set_max_nodes(self, limit);
    }

    fn max_nodes(&self) -> Option<usize> {
        Some(Rule::max_nodes(self))
    }

    fn step(&self) -> u64 {
        Rule::step(self)
    }

    fn renew(&mut self, step: u64) {
        Rule::renew(self, step);
    }

    fn is_stochastic(&self) -> bool {
        Rule::is_stochastic(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cubature5, MonteCarlo, Unscented, forward_and_backward};
    use super::*;
    use crate::kernel::Constant;

    #[test]
    fn without_columns_all_points_are_one() {
        let kernel = crate::kernel::Matern32::new(0);
        let q = Gaussians { mean: Mat::zeros(4, 0), var: Mat::zeros(4, 0) };
        drop(Mat::filled(3, 16, 7.0));
        for rule in [&MonteCarlo::new(4, 0) as &dyn Expectation, &Cubature5] {
            let psi = rule.psi(&kernel, &q, &Mat::zeros(3, 0)).unwrap();
            assert!(psi.psi1.as_slice().iter().all(|v| (v - 1.0).abs() < 1e-12), "{rule}: {psi:?}");
            assert!(psi.psi2.as_slice().iter().all(|v| (v - 4.0).abs() < 1e-12), "{rule}: {psi:?}");
        }
    }

    #[test]
    fn nothing_has_no_gradient() {
        for (n, m, dim) in [(0, 3, 2), (4, 0, 2), (4, 3, 0)] {
            let q = Gaussians { mean: Mat::zeros(n, dim), var: Mat::zeros(n, dim) };
            let z = Mat::zeros(m, dim);
            let kernel = Constant::new();
            for rule in [&Unscented as &dyn Expectation, &MonteCarlo::new(4, 0), &Cubature5] {
                let bar = Psi { psi0: 1.0, psi1: Mat::filled(n, m, 1.0), psi2: Mat::filled(m, m, 1.0) };
                let of = PsiInputs::new(&kernel, &q, &z);
                let (psi, (theta, z_bar, mean, var)) =
                    forward_and_backward(&of, &bar, |adjoint| rule.psi_and_back(&of, adjoint));
                assert_eq!((psi.psi1.rows(), psi.psi1.cols(), psi.psi2.rows()), (n, m, m));
                assert!([z_bar, mean, var].iter().all(|g| g.as_slice().iter().all(|v| *v == 0.0)));
                assert!(theta == [0.0] || n > 0 && m == 0 || dim == 0, "{rule}: {theta:?}");
            }
        }
    }
}
