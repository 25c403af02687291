//! A user's kernel from one generic function, differentiated by dual numbers.
//!
//! The gradient in θ, x and z is taken [`CHUNK`] directions at a time, so that any number of parameters and
//! columns works with numbers of a fixed size.

use super::dual::{Dual, Scalar};
use super::{Kernel, KernelGrad, PointGrad, expression};
use crate::mat::Mat;
use crate::param::{self, Param, Parameterized};

/// Directions that one evaluation differentiates.
const CHUNK: usize = 8;

/// A kernel's formula: its name, its parameters and k(x, z; θ) for any [`Scalar`].
///
/// ```
/// use latentgp::kernel::{Auto, Formula, Kernel, Scalar};
/// use latentgp::{Mat, check, param::Param};
///
/// #[derive(Clone)]
/// struct Cauchy;
///
/// impl Formula for Cauchy {
///     fn name(&self) -> &str {
///         "cauchy"
///     }
///     fn params(&self) -> Vec<(&'static str, Param)> {
///         vec![("variance", Param::scalar(1.0)), ("lengthscale", Param::scalar(2.0))]
///     }
///     fn k<S: Scalar>(&self, x: &[S], z: &[S], theta: &[S]) -> S {
///         let r2: S = x.iter().zip(z).map(|(&x, &z)| ((x - z) / theta[1]).powi(2)).sum();
///         theta[0] / (r2 + 1.0)
///     }
/// }
///
/// let x = Mat::from_fn(5, 2, |i, j| (i * 2 + j) as f64 * 0.3);
/// let z = Mat::from_fn(4, 2, |i, j| 1.0 - (i + 3 * j) as f64 * 0.2);
/// check::kernel(&Auto::new(Cauchy, 2), &x, &z, 1e-7)?;
/// # Ok::<(), latentgp::Error>(())
/// ```
pub trait Formula: Clone + Send + Sync + 'static {
    /// The name in expressions.
    fn name(&self) -> &str;

    /// The parameters with their names, initial values and transforms; θ is all their entries in this order.
    fn params(&self) -> Vec<(&'static str, Param)>;

    /// k(x, z; θ), symmetric in x and z and positive semi-definite.
    ///
    /// `sqrt`, `abs` and `powf` have derivative 0 at 0 (see [`Dual`]): a kernel of r = √(r²) needs no case
    /// for x = z. A division by 0 stays the formula's own affair.
    fn k<S: Scalar>(&self, x: &[S], z: &[S], theta: &[S]) -> S;
}

/// A [`Formula`] as a kernel on `dim` input columns.
///
/// Its expression is `name(parameter=…)`; [`parse`](super::parse) knows only the kernels of
/// [`names`](super::names), and [`Own`](super::Own) reads it back.
#[derive(Clone, Debug)]
pub struct Auto<F> {
    /// The formula.
    pub formula: F,
    /// Its parameters.
    pub params: Vec<(&'static str, Param)>,
    dim: usize,
}

impl<F: Formula> Auto<F> {
    /// The formula at its initial parameters.
    pub fn new(formula: F, dim: usize) -> Self {
        let params = formula.params();
        Auto { formula, params, dim }
    }

    fn duals(&self) -> Duals {
        let constants = |values: &[f64]| values.iter().map(|&v| v.into()).collect();
        let theta: Vec<Dual<CHUNK>> = constants(&param::values(self));
        let zeros = vec![Dual::from(0.0); self.dim];
        Duals { theta, x: zeros.clone(), z: zeros }
    }

    /// Adds `bar` times the gradient at a pair; θ is set in `duals` already.
    fn pair(&self, x: &[f64], z: &[f64], bar: f64, duals: &mut Duals, grad: PointGrad<'_>) {
        duals.x.iter_mut().zip(x).for_each(|(d, &v)| *d = v.into());
        duals.z.iter_mut().zip(z).for_each(|(d, &v)| *d = v.into());
        let total = duals.theta.len() + 2 * self.dim;
        for from in (0..total).step_by(CHUNK) {
            let chunk = from..(from + CHUNK).min(total);
            chunk.clone().for_each(|i| duals.at(i).slope[i - from] = 1.0);
            let k = self.formula.k(&duals.x, &duals.z, &duals.theta);
            for i in chunk {
                duals.at(i).slope[i - from] = 0.0;
                let (theta, inputs) = (duals.theta.len(), self.dim);
                let to = match i {
                    i if i < theta => &mut grad.theta[i],
                    i if i < theta + inputs => &mut grad.x[i - theta],
                    i => &mut grad.z[i - theta - inputs],
                };
                *to += bar * k.slope[i - from];
            }
        }
    }
}

struct Duals {
    theta: Vec<Dual<CHUNK>>,
    x: Vec<Dual<CHUNK>>,
    z: Vec<Dual<CHUNK>>,
}

impl Duals {
    /// Variable i of (θ, x, z).
    fn at(&mut self, i: usize) -> &mut Dual<CHUNK> {
        let (theta, x) = (self.theta.len(), self.x.len());
        match i {
            i if i < theta => &mut self.theta[i],
            i if i < theta + x => &mut self.x[i - theta],
            i => &mut self.z[i - theta - x],
        }
    }
}

impl<F: Formula> Parameterized for Auto<F> {
    fn params(&self) -> Vec<(String, &Param)> {
        self.params.iter().map(|(name, p)| (name.to_string(), p)).collect()
    }
    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        self.params.iter_mut().map(|(name, p)| (name.to_string(), p)).collect()
    }
    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.params.iter().for_each(|(_, p)| visit(p));
    }
    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        self.params.iter_mut().for_each(|(_, p)| visit(p));
    }
}

impl<F: Formula> Kernel for Auto<F> {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        self.formula.k(x, z, &param::values(self))
    }

    fn eval_adjoint(&self, x: &[f64], z: &[f64], bar: f64, grad: PointGrad<'_>) {
        self.pair(x, z, bar, &mut self.duals(), grad);
    }

    fn expression(&self) -> String {
        let defaults = self.formula.params();
        let params: Vec<_> =
            self.params.iter().zip(&defaults).map(|((name, p), (_, d))| (*name, p, d.transform)).collect();
        expression::call(self.formula.name(), &[], &params)
    }

    fn input_dim(&self) -> Option<usize> {
        Some(self.dim)
    }

    fn cross(&self, x: &Mat, z: &Mat, out: &mut Mat) {
        let theta = param::values(self);
        for n in 0..x.rows() {
            for m in 0..z.rows() {
                out[(n, m)] = self.formula.k(x.row(n), z.row(m), &theta);
            }
        }
    }

    fn cross_adjoint(&self, x: &Mat, z: &Mat, bar: &Mat, mut grad: KernelGrad<'_>) {
        let mut duals = self.duals();
        let (mut gx, mut gz) = (vec![0.0; self.dim], vec![0.0; self.dim]);
        for n in 0..x.rows() {
            for m in 0..z.rows() {
                gx.fill(0.0);
                gz.fill(0.0);
                let point = PointGrad { theta: grad.theta, x: &mut gx, z: &mut gz };
                self.pair(x.row(n), z.row(m), bar[(n, m)], &mut duals, point);
                super::add_row(grad.x.as_deref_mut(), n, &gx);
                super::add_row(grad.z.as_deref_mut(), m, &gz);
            }
        }
    }

    fn diag(&self, x: &Mat, out: &mut [f64]) {
        let theta = param::values(self);
        out.iter_mut().enumerate().for_each(|(n, out)| *out = self.formula.k(x.row(n), x.row(n), &theta));
    }

    fn diag_adjoint(&self, x: &Mat, bar: &[f64], mut grad: KernelGrad<'_>) {
        let mut duals = self.duals();
        let (mut gx, mut gz) = (vec![0.0; self.dim], vec![0.0; self.dim]);
        for (n, &bar) in bar.iter().enumerate() {
            gx.fill(0.0);
            gz.fill(0.0);
            let point = PointGrad { theta: grad.theta, x: &mut gx, z: &mut gz };
            self.pair(x.row(n), x.row(n), bar, &mut duals, point);
            super::add_row(grad.x.as_deref_mut(), n, &gx);
            super::add_row(grad.x.as_deref_mut(), n, &gz);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;

    /// Matérn 3/2 with one lengthscale a column: more directions than one chunk holds, and a root at 0.
    #[derive(Clone)]
    struct Ard(usize);

    impl Formula for Ard {
        fn name(&self) -> &str {
            "ard"
        }
        fn params(&self) -> Vec<(&'static str, Param)> {
            vec![("variance", Param::scalar(1.3)), ("lengthscale", Param::row(self.0, 0.8))]
        }
        fn k<S: Scalar>(&self, x: &[S], z: &[S], theta: &[S]) -> S {
            let r2: S = (0..x.len()).map(|q| ((x[q] - z[q]) / theta[1 + q]).powi(2)).sum();
            let a = (r2 * 3.0).sqrt();
            theta[0] * (a + 1.0) * (-a).exp()
        }
    }

    #[test]
    fn any_number_of_directions_obeys_the_laws_and_composes() {
        for dim in [1, 3, 7] {
            let x = Mat::from_fn(6, dim, |i, j| (2.3 * i as f64 + 1.1 * j as f64).sin());
            let z = Mat::from_fn(4, dim, |i, j| (1.3 * i as f64 - 0.7 * j as f64).cos());
            let k = Auto::new(Ard(dim), dim);
            check::kernel(&k, &x, &z, 1e-7).unwrap();
            check::kernel(&(k.clone() * super::super::Linear::new(dim) + k), &x, &z, 1e-7).unwrap();
        }
    }

    #[test]
    fn a_root_at_zero_does_not_poison_the_gradient() {
        let x = Mat::filled(2, 2, 0.5);
        let (mut theta, mut gx, mut gz) = (vec![0.0; 3], Mat::zeros(2, 2), Mat::zeros(2, 2));
        let grad = KernelGrad { theta: &mut theta, x: Some(&mut gx), z: Some(&mut gz) };
        Auto::new(Ard(2), 2).cross_adjoint(&x, &x, &Mat::filled(2, 2, 1.0), grad);
        assert!(theta.iter().chain(gx.as_slice()).chain(gz.as_slice()).all(|g| g.is_finite()));
        assert_eq!(Auto::new(Ard(2), 2).expression(), "ard(variance=1.3, lengthscale=[0.8, 0.8])");
    }
}
