//! Covariance functions k(x, z): points to matrices, and adjoints of matrices to gradients of points.
//!
//! A kernel is a value with readable parameters; `+` and `*` compose them. Its gradient is an adjoint:
//! given Ā = ∂F/∂K, a method *adds* ∂F/∂θ, ∂F/∂x and ∂F/∂z to what it is handed.
//!
//! ```
//! use latentgp::kernel::{Kernel, Matern32, Rbf};
//! let k = Rbf::new(2) + Matern32::new(2);
//! assert_eq!(k.eval(&[0.0, 0.0], &[0.0, 0.0]), 2.0);
//! assert_eq!(k.expression(), "rbf(variance=1.0, lengthscale=[1.0, 1.0]) + matern32(variance=1.0, lengthscale=[1.0, 1.0])");
//! ```

mod arc_sine;
mod auto;
mod closed_form;
mod constant;
mod cosine;
mod dual;
mod expression;
mod given;
mod inner;
mod linear;
mod mlp;
mod names;
mod options;
mod own;
mod parse;
mod periodic;
mod polynomial;
mod product;
mod select;
mod settings;
mod spectral_mixture;
mod stationary;
mod sum;
mod syntax;
mod white;

pub use arc_sine::ArcSine;
pub use auto::{Auto, Formula};
pub(crate) use closed_form::InlineVec;
pub use closed_form::{ClosedForm, Term};
pub use constant::Constant;
pub use cosine::Cosine;
pub use dual::{Dual, Scalar};
pub use given::gives_values;
pub use linear::Linear;
pub use mlp::{Bias, Mlp};
pub use names::{Entry, names};
pub use own::{Own, expression_of};
pub use parse::parse;
pub use periodic::Periodic;
pub use polynomial::Polynomial;
pub use product::Product;
pub use select::Select;
pub use spectral_mixture::SpectralMixture;
pub use stationary::{Matern12, Matern32, Matern52, RationalQuadratic, Rbf, Shape, Stationary, shape};
pub use sum::Sum;
pub use white::White;

use crate::error::{Error, Result};
use crate::fast::FastKernel;
use crate::mat::Mat;
use crate::param::{Param, Parameterized};
use crate::scratch::Buffer;
use std::fmt;

/// Where the gradient of one pair of points is added.
pub struct PointGrad<'a> {
    /// ∂F/∂θ, in the order of `params()`.
    pub theta: &'a mut [f64],
    /// ∂F/∂x.
    pub x: &'a mut [f64],
    /// ∂F/∂z.
    pub z: &'a mut [f64],
}

/// Where the gradient of a block is added. Points whose gradient nobody needs are `None`.
pub struct KernelGrad<'a> {
    /// ∂F/∂θ, in the order of `params()`.
    pub theta: &'a mut [f64],
    /// ∂F/∂x, as large as x.
    pub x: Option<&'a mut Mat>,
    /// ∂F/∂z, as large as z.
    pub z: Option<&'a mut Mat>,
}

impl KernelGrad<'_> {
    /// Where the gradient of a part of the kernel is added: the part's parameters are `theta[from..to]`.
    pub fn part(&mut self, from: usize, to: usize) -> KernelGrad<'_> {
        KernelGrad { theta: &mut self.theta[from..to], x: self.x.as_deref_mut(), z: self.z.as_deref_mut() }
    }
}

/// How a kernel is put together from others.
#[derive(Clone, Copy)]
pub enum Structure<'a> {
    /// A kernel by itself.
    Leaf,
    /// The sum of two or more.
    Sum(&'a [Box<dyn Kernel>]),
    /// The product of two or more.
    Product(&'a [Box<dyn Kernel>]),
    /// A kernel on some of the columns.
    Select(&'a Select),
}

/// A covariance function.
///
/// A kernel of one's own needs `eval`, `eval_adjoint` and `expression`, besides its parameters; the block
/// methods are loops over the first two, to be overridden where a kernel can do better.
pub trait Kernel: Parameterized + CloneKernel + Send + Sync {
    /// k(x, z).
    fn eval(&self, x: &[f64], z: &[f64]) -> f64;

    /// Adds `bar` times the gradient of k(x, z).
    fn eval_adjoint(&self, x: &[f64], z: &[f64], bar: f64, grad: PointGrad<'_>);

    /// The kernel as an expression, parameters included: what [`parse`] reads back.
    fn expression(&self) -> String;

    /// The number of input columns the kernel is made for; `None` where any will do.
    fn input_dim(&self) -> Option<usize> {
        None
    }

    /// K = k(x, z), N×M.
    fn cross(&self, x: &Mat, z: &Mat, out: &mut Mat) {
        for n in 0..x.rows() {
            for m in 0..z.rows() {
                out[(n, m)] = self.eval(x.row(n), z.row(m));
            }
        }
    }

    /// Adds the gradient of Σ bar ∘ k(x, z).
    fn cross_adjoint(&self, x: &Mat, z: &Mat, bar: &Mat, mut grad: KernelGrad<'_>) {
        let (mut gx, mut gz) = (Buffer::filled(0.0, x.cols()), Buffer::filled(0.0, z.cols()));
        for n in 0..x.rows() {
            for m in 0..z.rows() {
                if bar[(n, m)] == 0.0 {
                    continue;
                }
                gx.fill(0.0);
                gz.fill(0.0);
                let point = PointGrad { theta: grad.theta, x: &mut gx, z: &mut gz };
                self.eval_adjoint(x.row(n), z.row(m), bar[(n, m)], point);
                add_row(grad.x.as_deref_mut(), n, &gx);
                add_row(grad.z.as_deref_mut(), m, &gz);
            }
        }
    }

    /// K = k(x, x), N×N.
    fn gram(&self, x: &Mat, out: &mut Mat) {
        self.cross(x, x, out);
    }

    /// Adds the gradient of Σ bar ∘ k(x, x); `grad.z` is not used.
    fn gram_adjoint(&self, x: &Mat, bar: &Mat, grad: KernelGrad<'_>) {
        match grad.x {
            None => self.cross_adjoint(x, x, bar, KernelGrad { theta: grad.theta, x: None, z: None }),
            Some(gx) => {
                let mut gz = Mat::zeros(x.rows(), x.cols());
                self.cross_adjoint(
                    x,
                    x,
                    bar,
                    KernelGrad { theta: grad.theta, x: Some(gx), z: Some(&mut gz) },
                );
                gx.add_scaled(1.0, &gz);
            }
        }
    }

    /// k(x_n, x_n) for every n.
    fn diag(&self, x: &Mat, out: &mut [f64]) {
        for (n, out) in out.iter_mut().enumerate() {
            *out = self.eval(x.row(n), x.row(n));
        }
    }

    /// Adds the gradient of Σ bar_n k(x_n, x_n); `grad.z` is not used.
    fn diag_adjoint(&self, x: &Mat, bar: &[f64], mut grad: KernelGrad<'_>) {
        let (mut gx, mut gz) = (Buffer::filled(0.0, x.cols()), Buffer::filled(0.0, x.cols()));
        for (n, &bar) in bar.iter().enumerate() {
            gx.fill(0.0);
            gz.fill(0.0);
            let point = PointGrad { theta: grad.theta, x: &mut gx, z: &mut gz };
            self.eval_adjoint(x.row(n), x.row(n), bar, point);
            add_row(grad.x.as_deref_mut(), n, &gx);
            add_row(grad.x.as_deref_mut(), n, &gz);
        }
    }

    /// The fast paths that this crate has for its own kernels.
    #[doc(hidden)]
    fn fast(&self) -> Option<&dyn FastKernel> {
        None
    }

    /// Whether k(x, x) is the same everywhere, so that nobody need know x to compute it.
    fn constant_diag(&self) -> bool {
        false
    }

    /// The kernel as a sum of products for which Ψ is known exactly; `None` where it is not.
    fn closed_form(&self) -> Option<ClosedForm> {
        None
    }

    /// The place among the parameters of a factor of the whole kernel, if it has one; its slope is then computed to all digits
    /// where Kzz is nearly singular.
    fn factor(&self) -> Option<usize> {
        None
    }

    /// What the kernel is put together from; a kernel of one's own is a leaf.
    fn structure(&self) -> Structure<'_> {
        Structure::Leaf
    }

    /// How much each input column matters, by the kernel's own parameters: the prior variance of a function's slope in it,
    /// v/ℓ² of a stationary kernel (without the factor of its shape), the variances of a linear one; `None` where they do
    /// not tell.
    fn relevance(&self) -> Option<Vec<f64>> {
        None
    }
}

fn add_row(to: Option<&mut Mat>, row: usize, from: &[f64]) {
    if let Some(to) = to {
        to.row_mut(row).iter_mut().zip(from).for_each(|(a, b)| *a += b);
    }
}

/// Cloning behind a `Box<dyn Kernel>`; every `Clone` kernel has it.
pub trait CloneKernel {
    /// A copy in a box.
    fn boxed(&self) -> Box<dyn Kernel>;
}

impl<K: Kernel + Clone + 'static> CloneKernel for K {
    fn boxed(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Kernel> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

impl fmt::Display for dyn Kernel + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expression())
    }
}

impl fmt::Debug for dyn Kernel + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expression())
    }
}

/// Kernels are equal when their expressions are: the same structure and the same parameters, to the bit.
impl PartialEq for dyn Kernel + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.expression() == other.expression()
    }
}

impl Parameterized for Box<dyn Kernel> {
    fn params(&self) -> Vec<(String, &Param)> {
        (**self).params()
    }
    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        (**self).params_mut()
    }
    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        (**self).each_param(visit);
    }
    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        (**self).each_param_mut(visit);
    }
}

/// A boxed kernel is a kernel, so that parsed and composed ones mix freely.
impl Kernel for Box<dyn Kernel> {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        (**self).eval(x, z)
    }
    fn eval_adjoint(&self, x: &[f64], z: &[f64], bar: f64, grad: PointGrad<'_>) {
        (**self).eval_adjoint(x, z, bar, grad);
    }
    fn expression(&self) -> String {
        (**self).expression()
    }
    fn input_dim(&self) -> Option<usize> {
        (**self).input_dim()
    }
    fn cross(&self, x: &Mat, z: &Mat, out: &mut Mat) {
        (**self).cross(x, z, out);
    }
    fn cross_adjoint(&self, x: &Mat, z: &Mat, bar: &Mat, grad: KernelGrad<'_>) {
        (**self).cross_adjoint(x, z, bar, grad);
    }
    fn gram(&self, x: &Mat, out: &mut Mat) {
        (**self).gram(x, out);
    }
    fn gram_adjoint(&self, x: &Mat, bar: &Mat, grad: KernelGrad<'_>) {
        (**self).gram_adjoint(x, bar, grad);
    }
    fn diag(&self, x: &Mat, out: &mut [f64]) {
        (**self).diag(x, out);
    }
    fn diag_adjoint(&self, x: &Mat, bar: &[f64], grad: KernelGrad<'_>) {
        (**self).diag_adjoint(x, bar, grad);
    }
    fn fast(&self) -> Option<&dyn FastKernel> {
        (**self).fast()
    }
    fn constant_diag(&self) -> bool {
        (**self).constant_diag()
    }
    fn closed_form(&self) -> Option<ClosedForm> {
        (**self).closed_form()
    }
    fn factor(&self) -> Option<usize> {
        (**self).factor()
    }
    fn structure(&self) -> Structure<'_> {
        (**self).structure()
    }
    fn relevance(&self) -> Option<Vec<f64>> {
        (**self).relevance()
    }
}

/// Errs unless the kernel, and every part of it, takes inputs of `q` columns.
pub fn check_dim(kernel: &dyn Kernel, q: usize) -> Result<()> {
    match kernel.input_dim() {
        Some(dim) if dim != q => {
            return Err(Error::shape(format!("input columns of the kernel `{kernel}`"), dim, q));
        }
        _ => {}
    }
    match kernel.structure() {
        Structure::Leaf => Ok(()),
        Structure::Sum(parts) | Structure::Product(parts) => {
            parts.iter().try_for_each(|part| check_dim(&**part, q))
        }
        Structure::Select(select) => check_dim(&*select.kernel, select.dims.len()),
    }
}

/// Where column q finds its value in a parameter of `len` entries: its own, or the one that all share.
#[inline(always)]
pub(crate) fn place(len: usize, q: usize) -> usize {
    if len == 1 { 0 } else { q }
}

/// Names a kernel's parameters after its fields, in the order given.
macro_rules! parameters {
    ($kernel:ty: $($field:ident),+) => {
        impl $crate::param::Parameterized for $kernel {
            fn params(&self) -> Vec<(String, &$crate::param::Param)> {
                vec![$((stringify!($field).to_string(), &self.$field)),+]
            }
            fn params_mut(&mut self) -> Vec<(String, &mut $crate::param::Param)> {
                vec![$((stringify!($field).to_string(), &mut self.$field)),+]
            }
            fn each_param(&self, visit: &mut dyn FnMut(&$crate::param::Param)) {
                $(visit(&self.$field);)+
            }
            fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut $crate::param::Param)) {
                $(visit(&mut self.$field);)+
            }
        }
    };
}
pub(crate) use parameters;

/// Gives a kernel type `+` and `*` with any other kernel.
macro_rules! operators {
    (impl[$($generics:tt)*] for $kernel:ty) => {
        impl<K: $crate::kernel::Kernel + 'static, $($generics)*> std::ops::Add<K> for $kernel {
            type Output = $crate::kernel::Sum;
            fn add(self, other: K) -> $crate::kernel::Sum {
                $crate::kernel::Sum::new(vec![Box::new(self), Box::new(other)])
            }
        }
        impl<K: $crate::kernel::Kernel + 'static, $($generics)*> std::ops::Mul<K> for $kernel {
            type Output = $crate::kernel::Product;
            fn mul(self, other: K) -> $crate::kernel::Product {
                $crate::kernel::Product::new(vec![Box::new(self), Box::new(other)])
            }
        }
    };
    ($($kernel:ty),+) => {$($crate::kernel::operators!(impl[] for $kernel);)+};
}
pub(crate) use operators;

operators!(impl[S: Shape] for Stationary<S>);
operators!(Sum, Product, Select, Box<dyn Kernel>);
operators!(ArcSine, Constant, Cosine, Linear, Mlp, Periodic, Polynomial, SpectralMixture, White);
operators!(impl[F: Formula] for Auto<F>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_asked_for_its_columns() {
        check_dim(&(Rbf::new(2) + White::new() * Select::new(Linear::new(1), &[1], 2)), 2).unwrap();
        for bad in [
            Rbf::new(2) + Linear::new(3),
            White::new() + Rbf::new(2) * Linear::new(3),
            Rbf::new(2) + Select::new(Linear::new(2), &[1], 2),
            Rbf::new(2) + Select::new(Linear::new(1), &[1], 3),
        ] {
            assert!(matches!(check_dim(&bad, 2), Err(Error::Shape { .. })), "{}", bad.expression());
        }
    }
}
