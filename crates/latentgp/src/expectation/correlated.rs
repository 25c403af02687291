//! Moments of a kernel at one Gaussian input whose coordinates are correlated: x = μ + Rξ, ξ ~ N(0, I).
//!
//! ```text
//! φ(x) = L⁻¹k(Z, x)     ψ0 = E[k(x, x)]     ψ1 = E[φ]     A = E[φφᵀ]     Cov[x, φ]
//! nodes     x_s = μ + Rξ_s     Cov[x, φ] = R Σ w_s ξ_s φ(x_s)ᵀ
//! ```
//!
//! Every rule serves: it sees N(0, I) and, as its kernel, the features [φ(μ + Rξ), ξ], whose second moments
//! hold A and the covariance with ξ from the same nodes. Coordinates that are certain have no column in R and
//! take no nodes. Closed forms are those of [`Analytic`](super::Analytic), with R inside.

use super::analytic::correlated::raw;
use super::{Auto, Expectation, Gaussians};
use crate::error::Result;
use crate::kernel::{Kernel, PointGrad};
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;
use crate::param::{Param, Parameterized};
use std::sync::Arc;

/// Eigenvalues below this part of the largest are taken for zero where a covariance has no Cholesky factor.
const RANK: f64 = 1e-14;

/// One Gaussian input: mean μ and a root R of the covariance RRᵀ, Q×r with r ≤ Q.
#[derive(Clone, Debug, PartialEq)]
pub struct Correlated {
    /// μ.
    pub mean: Vec<f64>,
    /// R.
    pub root: Mat,
}

impl Correlated {
    /// Independent coordinates; those of variance 0 have no column in R.
    pub fn independent(mean: Vec<f64>, var: &[f64]) -> Self {
        let uncertain = uncertain_columns(var);
        let at = |i: usize, j: usize| if uncertain[j] == i { var[i].sqrt() } else { 0.0 };
        let root = Mat::from_fn(mean.len(), uncertain.len(), at);
        Correlated { mean, root }
    }

    /// The covariance of the first coordinates; the others are certain.
    ///
    /// R is the Cholesky factor of the coordinates that vary, or a root by eigenvectors where there is none.
    pub fn new(mean: Vec<f64>, cov: &Mat) -> Result<Self> {
        let varying: Vec<usize> = (0..cov.rows()).filter(|&i| cov[(i, i)] > 0.0).collect();
        let part = Mat::from_fn(varying.len(), varying.len(), |i, j| cov[(varying[i], varying[j])]);
        let own = match Cholesky::new(&part, "the covariance of the window") {
            Ok(factor) => factor.l().clone(),
            Err(_) => eigen_root(&part)?,
        };
        let mut root = Mat::zeros(mean.len(), own.cols());
        varying.iter().enumerate().for_each(|(i, &at)| root.row_mut(at).copy_from_slice(own.row(i)));
        Ok(Correlated { mean, root })
    }

    /// r, the coordinates that nodes have.
    pub fn rank(&self) -> usize {
        self.root.cols()
    }
}

/// The columns of an input that have a variance.
pub(crate) fn uncertain_columns(var: &[f64]) -> Vec<usize> {
    (0..var.len()).filter(|&j| var[j] > 0.0).collect()
}

fn eigen_root(cov: &Mat) -> Result<Mat> {
    let (values, vectors) = linalg::eigh(cov)?;
    let floor = RANK * values.iter().fold(0.0, |m: f64, v| m.max(*v));
    let kept: Vec<usize> = (0..values.len()).filter(|&j| values[j] > floor).collect();
    Ok(Mat::from_fn(cov.rows(), kept.len(), |i, j| vectors[(i, kept[j])] * values[kept[j]].sqrt()))
}

/// What moments are taken of: a kernel, inducing inputs and the factor that whitens them.
#[derive(Clone, Debug)]
pub struct Basis {
    /// The kernel.
    pub kernel: Box<dyn Kernel>,
    /// Z, M×Q.
    pub z: Mat,
    /// L.
    pub l: Arc<Cholesky>,
}

/// Moments of φ = L⁻¹k(Z, x) at one input.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// E[k(x, x)].
    pub psi0: f64,
    /// E[φ], 1×M.
    pub psi1: Mat,
    /// A = E[φφᵀ], M×M.
    pub psi2: Mat,
    /// Cov[x, φ], Q×M.
    pub cross: Mat,
}

/// Moments by the expectation given; `auto` is the closed form where the kernel has one.
///
/// Errs when a closed form is asked for that does not exist, or the rule cannot run in so many dimensions.
pub fn moments(by: &dyn Expectation, of: &Arc<Basis>, q: &Correlated) -> Result<Moments> {
    let chosen = resolve(by, &*of.kernel);
    if q.rank() == 0 {
        return Ok(certain(of, q));
    }
    if is_closed(chosen) {
        return closed(of, q);
    }
    let (m, r) = (of.z.rows(), q.rank());
    let features = Features { of: of.clone(), q: q.clone() };
    let standard = Gaussians { mean: Mat::zeros(1, r), var: Mat::filled(1, r, 1.0) };
    let psi = chosen.psi(&features, &standard, &Mat::zeros(m + r, r))?;
    let with_xi = Mat::from_fn(r, m, |i, j| psi.psi2[(m + i, j)]);
    let centre = Mat::from_fn(r, m, |i, j| with_xi[(i, j)] - psi.psi1[(0, m + i)] * psi.psi1[(0, j)]);
    Ok(Moments {
        psi0: psi.psi0,
        psi1: Mat::from_fn(1, m, |_, j| psi.psi1[(0, j)]),
        psi2: Mat::from_fn(m, m, |i, j| psi.psi2[(i, j)]),
        cross: linalg::mul(&q.root, &centre),
    })
}

/// `auto` as what it comes to, anything else as it is.
pub(crate) fn resolve<'a>(by: &'a dyn Expectation, kernel: &dyn Kernel) -> &'a dyn Expectation {
    if by.expression() == "auto" { Auto::choice(kernel) } else { by }
}

/// Whether an expectation is the closed form, which has no nodes.
pub(crate) fn is_closed(by: &dyn Expectation) -> bool {
    by.expression() == "analytic"
}

fn closed(of: &Basis, q: &Correlated) -> Result<Moments> {
    let mut raw = raw(&*of.kernel, q, &of.z)?;
    of.l.solve_rows(&mut raw.psi1);
    of.l.solve_rows(&mut raw.cross);
    Ok(Moments { psi0: raw.psi0, psi1: raw.psi1, psi2: of.l.whiten(&raw.psi2), cross: raw.cross })
}

/// At a certain input.
pub(crate) fn certain(of: &Basis, q: &Correlated) -> Moments {
    let x = Mat::from_rows(&[&q.mean[..]]);
    let (phi, diag) = of.features(&x);
    Moments {
        psi0: diag[0],
        psi2: linalg::mul_tn(&phi, &phi),
        cross: Mat::zeros(x.cols(), phi.cols()),
        psi1: phi,
    }
}

impl Basis {
    /// φ of every row of x, and k(x, x).
    pub fn features(&self, x: &Mat) -> (Mat, Vec<f64>) {
        let mut phi = Mat::zeros(x.rows(), self.z.rows());
        self.kernel.cross(x, &self.z, &mut phi);
        self.l.solve_rows(&mut phi);
        let mut diag = vec![0.0; x.rows()];
        self.kernel.diag(x, &mut diag);
        (phi, diag)
    }
}

/// [φ(μ + Rξ), ξ] in the place of a kernel's row: of a kernel, rules use `cross` and `diag` alone.
#[derive(Clone)]
struct Features {
    of: Arc<Basis>,
    q: Correlated,
}

impl Features {
    fn inputs(&self, xi: &Mat) -> Mat {
        let mut x = linalg::mul_nt(xi, &self.q.root);
        for n in 0..x.rows() {
            x.row_mut(n).iter_mut().zip(&self.q.mean).for_each(|(x, m)| *x += m);
        }
        x
    }
}

impl Parameterized for Features {
    fn params(&self) -> Vec<(String, &Param)> {
        Vec::new()
    }
    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        Vec::new()
    }
}

impl Kernel for Features {
    fn eval(&self, xi: &[f64], _: &[f64]) -> f64 {
        let x = self.inputs(&Mat::from_rows(&[xi]));
        self.of.kernel.eval(x.row(0), x.row(0))
    }

    fn eval_adjoint(&self, _: &[f64], _: &[f64], _: f64, _: PointGrad<'_>) {}

    fn expression(&self) -> String {
        self.of.kernel.expression()
    }

    fn cross(&self, xi: &Mat, _: &Mat, out: &mut Mat) {
        let m = self.of.z.rows();
        let mut phi = Mat::zeros(xi.rows(), m);
        self.of.kernel.cross(&self.inputs(xi), &self.of.z, &mut phi);
        self.of.l.solve_rows(&mut phi);
        for n in 0..xi.rows() {
            let (first, last) = out.row_mut(n).split_at_mut(m);
            first.copy_from_slice(phi.row(n));
            last.copy_from_slice(xi.row(n));
        }
    }

    fn diag(&self, xi: &Mat, out: &mut [f64]) {
        self.of.kernel.diag(&self.inputs(xi), out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::relative_error;
    use crate::expectation::{Analytic, GaussHermite, MonteCarlo, Unscented};
    use crate::kernel::{Constant, Linear, Matern32, Rbf, Select};

    const Q: usize = 3;

    fn basis(kernel: impl Kernel + 'static) -> Arc<Basis> {
        let z = Mat::from_fn(6, Q, |i, j| ((3 * i + 2 * j) as f64 * 0.7).sin());
        let mut gram = Mat::zeros(6, 6);
        kernel.gram(&z, &mut gram);
        (0..6).for_each(|i| gram[(i, i)] += 0.1);
        let l = Cholesky::new(&gram, "test").unwrap();
        Arc::new(Basis { kernel: Box::new(kernel), z, l: l.into() })
    }

    fn input() -> Correlated {
        let cov = Mat::from_rows(&[[0.3, 0.1, -0.05], [0.1, 0.2, 0.08], [-0.05, 0.08, 0.25]]);
        Correlated::new(vec![0.2, -0.4, 0.7], &cov).unwrap()
    }

    fn same(a: &Moments, b: &Moments, tolerance: f64) {
        assert!((a.psi0 - b.psi0).abs() < tolerance * b.psi0.abs());
        for (a, b) in [(&a.psi1, &b.psi1), (&a.psi2, &b.psi2), (&a.cross, &b.cross)] {
            let error = relative_error(a.as_slice(), b.as_slice(), 1e-6);
            assert!(error < tolerance, "{error:.1e}");
        }
    }

    #[test]
    fn closed_forms_are_the_limit_of_quadrature() {
        let product = Select::new(Linear::new(1), &[0], Q) * Select::new(Rbf::new(2), &[1, 2], Q);
        let square = Select::new(Linear::new(1), &[0], Q) * Select::new(Linear::new(1), &[2], Q);
        for of in [
            basis(Rbf::new(Q)),
            basis(Linear::new(Q)),
            basis(Rbf::new(Q) + Linear::new(Q) + Constant::new()),
            basis(product + Rbf::new(Q)),
            basis(square),
        ] {
            let exact = moments(&Analytic, &of, &input()).unwrap();
            let close = moments(&GaussHermite::new(14), &of, &input()).unwrap();
            same(&exact, &close, 1e-7);
        }
    }

    #[test]
    fn a_diagonal_covariance_is_the_independent_input() {
        let of = basis(Rbf::new(Q) + Linear::new(Q));
        let (mean, var) = (vec![0.2, -0.4, 0.7], [0.3, 0.2, 0.25]);
        let q = Correlated::independent(mean.clone(), &var);
        let row = Gaussians::new(Mat::from_rows(&[&mean[..]]), Mat::from_rows(&[var])).unwrap();
        let rules: [Box<dyn Expectation>; 4] = [
            Box::new(Analytic),
            Box::new(Unscented),
            Box::new(GaussHermite::new(3)),
            Box::new(MonteCarlo::new(50, 3)),
        ];
        for rule in rules {
            let ours = moments(&*rule, &of, &q).unwrap();
            let plain = rule.psi_whitened(&*of.kernel, &row, &of.z, &of.l).unwrap();
            let mut psi1 = plain.psi1.clone();
            of.l.solve_rows(&mut psi1);
            assert!((ours.psi0 - plain.psi0).abs() < 1e-12 * plain.psi0);
            assert!(relative_error(ours.psi1.as_slice(), psi1.as_slice(), 1e-9) < 1e-11);
            assert!(relative_error(ours.psi2.as_slice(), plain.psi2.as_slice(), 1e-9) < 1e-10);
        }
    }

    #[test]
    fn certain_coordinates_take_no_nodes() {
        let of = basis(Matern32::new(Q));
        let mut cov = Mat::zeros(2, 2);
        cov[(1, 1)] = 0.3;
        let q = Correlated::new(vec![0.2, -0.4, 0.7], &cov).unwrap();
        assert_eq!(q.rank(), 1);
        let found = moments(&GaussHermite::new(5), &of, &q).unwrap();
        assert!(found.cross.row(0).iter().chain(found.cross.row(2)).all(|v| *v == 0.0));
        let still = Correlated::new(q.mean.clone(), &Mat::zeros(2, 2)).unwrap();
        let here = moments(&Unscented, &of, &still).unwrap();
        let (phi, _) = of.features(&Mat::from_rows(&[&q.mean[..]]));
        assert_eq!(here.psi1, phi);
        assert!(moments(&Analytic, &of, &q).unwrap_err().to_string().contains("no closed-form"));
    }

    #[test]
    fn a_singular_covariance_has_a_root() {
        let q = Correlated::new(vec![0.0; 2], &Mat::filled(2, 2, 0.5)).unwrap();
        let back = linalg::mul_nt(&q.root, &q.root);
        assert!(relative_error(back.as_slice(), &[0.5; 4], 0.0) < 1e-12);
    }
}
