//! Stationary kernels: k(x, z) = σ_f² κ(r²), r² = Σ_q ((x_q − z_q)/ℓ_q)².
//!
//! The distance and its adjoint are written once; a kernel is its [`Shape`] κ. Derivatives are taken in
//! r², where those of Matérn 3/2 and 5/2 stay finite at zero. Z is packed as Q×M, so that the inner loop
//! runs along m.

use super::expression;
use super::wide::{self, WIDE};
use super::{ClosedForm, Kernel, KernelGrad, PointGrad, Term};
use crate::mat::Mat;
use crate::param::{Param, Parameterized, Transform};
use crate::vmath::{Vectorized, exp, fma, vectorize};
use std::marker::PhantomData;

/// The shapes of the stationary kernels here.
pub mod shape {
    /// κ = exp(−r²/2).
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Rbf;
    /// κ = exp(−r).
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Matern12;
    /// κ = (1 + √3 r) exp(−√3 r).
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Matern32;
    /// κ = (1 + √5 r + 5r²/3) exp(−√5 r).
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Matern52;
    /// κ = (1 + r²/2α)^(−α).
    #[derive(Clone, Copy, Debug, Default)]
    pub struct RationalQuadratic;
}

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

/// κ(r²) and its derivatives; `alpha` is the shape's own parameter where [`HAS_ALPHA`](Self::HAS_ALPHA).
pub trait Shape: Copy + Default + Send + Sync + 'static {
    /// The name in expressions.
    const NAME: &'static str;
    /// Whether the shape has a parameter `alpha`.
    const HAS_ALPHA: bool = false;
    /// κ and ∂κ/∂r².
    fn kappa<const FMA: bool>(r2: f64, alpha: f64) -> (f64, f64);
    /// ∂κ/∂α.
    fn kappa_alpha(_r2: f64, _alpha: f64) -> f64 {
        0.0
    }
    /// Whether Ψ is known exactly: true of the Gaussian shape.
    const GAUSSIAN: bool = false;
}

impl Shape for shape::Rbf {
    const NAME: &'static str = "rbf";
    const GAUSSIAN: bool = true;
    #[inline(always)]
    fn kappa<const FMA: bool>(r2: f64, _: f64) -> (f64, f64) {
        let k = exp::<FMA>(-0.5 * r2);
        (k, -0.5 * k)
    }
}

impl Shape for shape::Matern12 {
    const NAME: &'static str = "matern12";
    #[inline(always)]
    fn kappa<const FMA: bool>(r2: f64, _: f64) -> (f64, f64) {
        let r = r2.sqrt();
        let k = exp::<FMA>(-r);
        (k, if r > 0.0 { -0.5 * k / r } else { 0.0 })
    }
}

impl Shape for shape::Matern32 {
    const NAME: &'static str = "matern32";
    #[inline(always)]
    fn kappa<const FMA: bool>(r2: f64, _: f64) -> (f64, f64) {
        let a = (3.0 * r2).sqrt();
        let e = exp::<FMA>(-a);
        (fma::<FMA>(a, e, e), -1.5 * e)
    }
}

impl Shape for shape::Matern52 {
    const NAME: &'static str = "matern52";
    #[inline(always)]
    fn kappa<const FMA: bool>(r2: f64, _: f64) -> (f64, f64) {
        let a = (5.0 * r2).sqrt();
        let e = exp::<FMA>(-a);
        (e * (1.0 + a + a * a / 3.0), -5.0 / 6.0 * e * (1.0 + a))
    }
}

impl Shape for shape::RationalQuadratic {
    const NAME: &'static str = "rational_quadratic";
    const HAS_ALPHA: bool = true;
    #[inline(always)]
    fn kappa<const FMA: bool>(r2: f64, alpha: f64) -> (f64, f64) {
        let log_base = (r2 / (2.0 * alpha)).ln_1p();
        let k = (-alpha * log_base).exp();
        (k, -0.5 * k / (1.0 + r2 / (2.0 * alpha)))
    }
    fn kappa_alpha(r2: f64, alpha: f64) -> f64 {
        let t = r2 / (2.0 * alpha);
        (-alpha * t.ln_1p()).exp() * (t / (1.0 + t) - t.ln_1p())
    }
}

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

    pub(super) fn inverse_lengthscales(&self) -> Vec<f64> {
        let l = self.lengthscale.as_slice();
        (0..self.dim).map(|q| 1.0 / l[if l.len() == 1 { 0 } else { q }]).collect()
    }

    pub(super) fn alpha(&self) -> f64 {
        self.alpha.as_ref().map_or(0.0, Param::get)
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
}

/// Lanes of the inner loops: sums run in this many independent accumulators, in a fixed order.
pub(super) const LANES: usize = 8;

/// Z as Q×M', M' the next multiple of [`LANES`]; the columns beyond M repeat the last point.
pub(crate) fn pack(z: &Mat) -> (Vec<f64>, usize) {
    let padded = z.rows().next_multiple_of(LANES);
    let mut zt = vec![0.0; z.cols() * padded];
    for q in 0..z.cols() {
        for m in 0..padded {
            zt[q * padded + m] = z[(m.min(z.rows() - 1), q)];
        }
    }
    (zt, padded)
}

/// r2[m] = Σ_q ((x_q − z_qm)/ℓ_q)².
#[inline(always)]
pub(super) fn distances<const FMA: bool>(x: &[f64], zt: &[f64], inverse: &[f64], r2: &mut [f64]) {
    r2.fill(0.0);
    for (q, z) in zt.chunks_exact(r2.len()).enumerate() {
        let (x, inverse) = (x[q], inverse[q]);
        for (r2, z) in r2.iter_mut().zip(z) {
            let e = (x - z) * inverse;
            *r2 = fma::<FMA>(e, e, *r2);
        }
    }
}

struct Cross<'a, S: Shape> {
    kernel: &'a Stationary<S>,
    x: &'a Mat,
    z: &'a Mat,
    out: &'a mut Mat,
}

impl<S: Shape> Vectorized for Cross<'_, S> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let (zt, padded) = pack(self.z);
        let inverse = self.kernel.inverse_lengthscales();
        let (variance, alpha) = (self.kernel.variance.get(), self.kernel.alpha());
        let mut r2 = vec![0.0; padded];
        for n in 0..self.x.rows() {
            distances::<FMA>(self.x.row(n), &zt, &inverse, &mut r2);
            for (out, r2) in self.out.row_mut(n).iter_mut().zip(&r2) {
                *out = variance * S::kappa::<FMA>(*r2, alpha).0;
            }
        }
    }
}

struct CrossAdjoint<'a, 'g, S: Shape> {
    kernel: &'a Stationary<S>,
    x: &'a Mat,
    z: &'a Mat,
    bar: &'a Mat,
    grad: KernelGrad<'g>,
}

impl<S: Shape> Vectorized for CrossAdjoint<'_, '_, S> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(mut self) {
        let (m, dim) = (self.z.rows(), self.kernel.dim);
        let (zt, padded) = pack(self.z);
        let inverse = self.kernel.inverse_lengthscales();
        let (variance, alpha) = (self.kernel.variance.get(), self.kernel.alpha());
        let (mut r2, mut h) = (vec![0.0; padded], vec![0.0; padded]);
        let mut z_bar = vec![0.0; dim * padded];
        let mut l_bar = vec![0.0; dim];
        let (mut variance_bar, mut alpha_bar) = (0.0, 0.0);
        for n in 0..self.x.rows() {
            let x = self.x.row(n);
            distances::<FMA>(x, &zt, &inverse, &mut r2);
            h[..m].copy_from_slice(self.bar.row(n));
            let mut kappa_sum = [0.0; LANES];
            for (h, r2) in h.chunks_exact_mut(LANES).zip(r2.chunks_exact(LANES)) {
                for i in 0..LANES {
                    let (kappa, slope) = S::kappa::<FMA>(r2[i], alpha);
                    kappa_sum[i] = fma::<FMA>(h[i], kappa, kappa_sum[i]);
                    if S::HAS_ALPHA {
                        alpha_bar += h[i] * variance * S::kappa_alpha(r2[i], alpha);
                    }
                    h[i] *= variance * slope;
                }
            }
            variance_bar += kappa_sum.iter().sum::<f64>();
            for q in 0..dim {
                let (xq, inverse) = (x[q], inverse[q]);
                let z = zt[q * padded..(q + 1) * padded].chunks_exact(LANES);
                let z_bar = z_bar[q * padded..(q + 1) * padded].chunks_exact_mut(LANES);
                let (mut x_sum, mut l_sum) = ([0.0; LANES], [0.0; LANES]);
                for ((h, z), z_bar) in h.chunks_exact(LANES).zip(z).zip(z_bar) {
                    for i in 0..LANES {
                        let e = (xq - z[i]) * inverse;
                        let he = h[i] * e;
                        x_sum[i] += he;
                        z_bar[i] -= he;
                        l_sum[i] = fma::<FMA>(he, e, l_sum[i]);
                    }
                }
                if let Some(gx) = self.grad.x.as_deref_mut() {
                    gx[(n, q)] += 2.0 * inverse * x_sum.iter().sum::<f64>();
                }
                l_bar[q] -= 2.0 * inverse * l_sum.iter().sum::<f64>();
            }
        }
        if let Some(gz) = self.grad.z {
            for q in 0..dim {
                for m in 0..m {
                    gz[(m, q)] += 2.0 * inverse[q] * z_bar[q * padded + m];
                }
            }
        }
        let lengthscales = self.kernel.lengthscale.len();
        self.grad.theta[0] += variance_bar;
        for (q, bar) in l_bar.iter().enumerate() {
            self.grad.theta[1 + if lengthscales == 1 { 0 } else { q }] += bar;
        }
        if S::HAS_ALPHA {
            self.grad.theta[1 + lengthscales] += alpha_bar;
        }
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
        for (q, inverse) in self.inverse_lengthscales().into_iter().enumerate() {
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
        if !z.is_empty() {
            vectorize(Cross { kernel: self, x, z, out });
        }
    }

    fn cross_adjoint(&self, x: &Mat, z: &Mat, bar: &Mat, grad: KernelGrad<'_>) {
        match z.is_empty() {
            true => {}
            false if self.dim >= WIDE => wide::cross_adjoint(self, x, z, bar, grad),
            false => vectorize(CrossAdjoint { kernel: self, x, z, bar, grad }),
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
        S::GAUSSIAN.then(|| ClosedForm { terms: vec![Term { scale: vec![0], gauss, ..Term::default() }] })
    }

    fn relevance(&self) -> Option<Vec<f64>> {
        let squares = self.inverse_lengthscales().into_iter().map(|i| i * i);
        self.is_ard().then(|| squares.collect())
    }
}
