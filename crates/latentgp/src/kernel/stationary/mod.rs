//! Stationary kernels: k(x, z) = σ_f² κ(r²), r² = Σ_q ((x_q − z_q)/ℓ_q)².
//!
//! The distance and its adjoint are written once; a kernel is its [`Shape`] κ. Derivatives are taken in
//! r², where those of Matérn 3/2 and 5/2 stay finite at zero.

mod block;
mod shapes;
mod star;
mod tile;
mod wide;

pub(crate) use block::{LANES, pack};
pub use shapes::{Shape, shape};

use super::blocks::Plain;
use super::expression;
use super::{ClosedForm, CrossBlocks, Kernel, KernelGrad, PointGrad, StarKernel, Term};
use crate::mat::Mat;
use crate::param::{Param, Parameterized, Transform};
use crate::scratch::Room;
use crate::vmath::{in_lanes, vectorize};
use block::{Cross, CrossAdjoint};
use smallvec::smallvec;
use std::marker::PhantomData;
use tile::Tile;
use wide::WIDE;

/// Squared exponential: σ_f² exp(−r²/2).
pub type Rbf = Stationary<shape::Rbf>;
/// Matérn ν = 1/2: σ_f² exp(−r). Its gradient in x at x = z, which does not exist, is taken as 0.
pub type Matern12 = Stationary<shape::Matern12>;
/// Matérn ν = 3/2: σ_f² (1 + √3 r) exp(−√3 r).
pub type Matern32 = Stationary<shape::Matern32>;
/// Matérn ν = 5/2: σ_f² (1 + √5 r + 5r²/3) exp(−√5 r).
pub type Matern52 = Stationary<shape::Matern52>;
/// Rational quadratic: σ_f² (1 + r²/2α)^(−α).
pub type RationalQuadratic = Stationary<shape::RationalQuadratic>;

/// A stationary kernel of the shape `S`, with one lengthscale a column (ARD) or one for all.
#[derive(Clone, Debug)]
pub struct Stationary<S: Shape> {
    /// σ_f², the variance of the function.
    pub variance: Param,
    /// ℓ: 1×Q with ARD, 1×1 without.
    pub lengthscale: Param,
    /// α, of the rational quadratic kernel.
    pub alpha: Option<Param>,
    dim: usize,
    shape: PhantomData<S>,
}

impl<S: Shape> Stationary<S> {
    /// Variance 1 and one lengthscale of 1 for each of `dim` input columns.
    pub fn new(dim: usize) -> Self {
        Self::with_lengthscales(dim, dim)
    }

    /// Variance 1 and one lengthscale of 1 shared by all `dim` input columns.
    pub fn isotropic(dim: usize) -> Self {
        Self::with_lengthscales(dim, 1)
    }

    fn with_lengthscales(dim: usize, lengthscales: usize) -> Self {
        Stationary {
            variance: Param::scalar(1.0),
            lengthscale: Param::row(lengthscales, 1.0),
            alpha: S::HAS_ALPHA.then(|| Param::scalar(1.0)),
            dim,
            shape: PhantomData,
        }
    }

    /// Whether each column has its own lengthscale.
    pub fn is_ard(&self) -> bool {
        self.lengthscale.len() == self.dim
    }

    fn inverse_lengthscales(&self) -> Room<f64> {
        let l = self.lengthscale.as_slice();
        Room::of((0..self.dim).map(|q| 1.0 / l[if l.len() == 1 { 0 } else { q }]))
    }

    fn alpha(&self) -> f64 {
        self.alpha.as_ref().map_or(0.0, Param::get)
    }

    /// Adds ∂F/∂σ_f², ∂F/∂ℓ of every column, and ∂F/∂α to θ̄.
    fn add_theta(&self, theta: &mut [f64], variance_bar: f64, l_bar: &[f64], alpha_bar: f64) {
        let lengthscales = self.lengthscale.len();
        theta[0] += variance_bar;
        for (q, bar) in l_bar.iter().enumerate() {
            theta[1 + if lengthscales == 1 { 0 } else { q }] += bar;
        }
        if S::HAS_ALPHA {
            theta[1 + lengthscales] += alpha_bar;
        }
    }

    fn r2(&self, x: &[f64], z: &[f64]) -> f64 {
        let l = self.lengthscale.as_slice();
        let scaled = |q: usize| (x[q] - z[q]) / l[if l.len() == 1 { 0 } else { q }];
        (0..self.dim).map(|q| scaled(q) * scaled(q)).sum()
    }
}

impl<S: Shape> Parameterized for Stationary<S> {
    fn params(&self) -> Vec<(String, &Param)> {
        let mut all =
            vec![("variance".to_string(), &self.variance), ("lengthscale".to_string(), &self.lengthscale)];
        all.extend(self.alpha.as_ref().map(|a| ("alpha".to_string(), a)));
        all
    }
    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        let mut all = vec![
            ("variance".to_string(), &mut self.variance),
            ("lengthscale".to_string(), &mut self.lengthscale),
        ];
        all.extend(self.alpha.as_mut().map(|a| ("alpha".to_string(), a)));
        all
    }
    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        [&self.variance, &self.lengthscale].into_iter().chain(&self.alpha).for_each(visit);
    }
    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        [&mut self.variance, &mut self.lengthscale].into_iter().chain(&mut self.alpha).for_each(visit);
    }
}

impl<S: Shape> Kernel for Stationary<S> {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        self.variance.get() * S::kappa::<false>(self.r2(x, z), self.alpha()).0
    }

    fn eval_adjoint(&self, x: &[f64], z: &[f64], bar: f64, grad: PointGrad<'_>) {
        let (r2, alpha) = (self.r2(x, z), self.alpha());
        let (kappa, slope) = S::kappa::<false>(r2, alpha);
        let h = 2.0 * bar * self.variance.get() * slope;
        let lengthscales = self.lengthscale.len();
        grad.theta[0] += bar * kappa;
        for (q, inverse) in self.inverse_lengthscales().iter().enumerate() {
            let e = (x[q] - z[q]) * inverse;
            grad.x[q] += h * e * inverse;
            grad.z[q] -= h * e * inverse;
            grad.theta[1 + if lengthscales == 1 { 0 } else { q }] -= h * e * e * inverse;
        }
        if S::HAS_ALPHA {
            grad.theta[1 + lengthscales] += bar * self.variance.get() * S::kappa_alpha(r2, alpha);
        }
    }

    fn expression(&self) -> String {
        let options = if self.is_ard() { vec![] } else { vec!["ard=false".to_string()] };
        let mut params = vec![
            ("variance", &self.variance, Transform::Exp),
            ("lengthscale", &self.lengthscale, Transform::Exp),
        ];
        params.extend(self.alpha.as_ref().map(|a| ("alpha", a, Transform::Exp)));
        expression::call(S::NAME, &options, &params)
    }

    fn input_dim(&self) -> Option<usize> {
        Some(self.dim)
    }

    fn cross(&self, x: &Mat, z: &Mat, out: &mut Mat) {
        match z.is_empty() {
            // Without columns all points are one.
            true => out.fill(self.variance.get()),
            false => vectorize(Cross { kernel: self, x, z, out }),
        }
    }

    fn cross_adjoint(&self, x: &Mat, z: &Mat, bar: &Mat, grad: KernelGrad<'_>) {
        match z.is_empty() {
            true => grad.theta[0] += bar.as_slice().iter().sum::<f64>(),
            false if self.dim >= WIDE && self.variance.get().is_normal() => {
                wide::cross_adjoint(self, x, z, bar, grad)
            }
            false => in_lanes(CrossAdjoint { kernel: self, x, z, bar, grad }),
        }
    }

    fn star(&self) -> Option<&dyn StarKernel> {
        // There κ is read off K.
        self.variance.get().is_normal().then_some(self)
    }

    fn blocks(&self, z: &Mat, work: &mut dyn FnMut(&dyn CrossBlocks)) {
        // There κ is read off K.
        match !z.is_empty() && self.variance.get().is_normal() {
            true => work(&Tile::new(self, z)),
            false => work(&Plain { kernel: self, z }),
        }
    }

    fn diag(&self, _: &Mat, out: &mut [f64]) {
        out.fill(self.variance.get());
    }

    fn diag_adjoint(&self, _: &Mat, bar: &[f64], grad: KernelGrad<'_>) {
        grad.theta[0] += bar.iter().sum::<f64>();
    }

    fn constant_diag(&self) -> bool {
        true
    }

    fn closed_form(&self) -> Option<ClosedForm> {
        let lengthscales = self.lengthscale.len();
        let place = |q: usize| 1 + if lengthscales == 1 { 0 } else { q };
        let gauss = (0..self.dim).map(|q| (q, place(q))).collect();
        S::GAUSSIAN
            .then(|| ClosedForm { terms: smallvec![Term { scale: smallvec![0], gauss, ..Term::default() }] })
    }

    fn relevance(&self) -> Option<Vec<f64>> {
        self.is_ard().then(|| self.inverse_lengthscales().iter().map(|i| i * i).collect())
    }
}
