//! Stationary kernels: k(x, z) = σ_f² κ(r²), r² = Σ_q ((x_q − z_q)/ℓ_q)².
//!
//! The distance and its adjoint are written once; a kernel is its [`Shape`] κ. Derivatives are taken in
//! r², where those of Matérn 3/2 and 5/2 stay finite at zero.

use super::{ClosedForm, InlineVec, Kernel, KernelGrad, PointGrad, Term, expression, place};
use crate::fast::FastKernel;
use crate::fast::stationary::{self, Form};
use crate::mat::Mat;
use crate::param::{Param, Parameterized, Transform};
use crate::scratch::Buffer;
use std::marker::PhantomData;

/// κ(r²) of a stationary kernel and its derivatives. `alpha` is a parameter of the shape, where it
/// [has one](Self::HAS_ALPHA).
///
/// ```
/// use latentgp::kernel::{Kernel, Shape, Stationary};
/// #[derive(Clone, Copy, Default)]
/// struct Cauchy;
/// impl Shape for Cauchy {
///     const NAME: &'static str = "cauchy";
///     fn kappa(r2: f64, _: f64) -> (f64, f64) {
///         (1.0 / (1.0 + r2), -1.0 / (1.0 + r2).powi(2))
///     }
/// }
/// assert_eq!(Stationary::<Cauchy>::new(2).eval(&[0.0, 1.0], &[0.0, 0.0]), 0.5);
/// ```
pub trait Shape: Copy + Default + Send + Sync + 'static {
    /// The name in expressions.
    const NAME: &'static str;
    /// Whether the shape has a parameter `alpha`.
    const HAS_ALPHA: bool = false;
    /// κ and ∂κ/∂r².
    fn kappa(r2: f64, alpha: f64) -> (f64, f64);
    /// ∂κ/∂α.
    fn kappa_alpha(_r2: f64, _alpha: f64) -> f64 {
        0.0
    }
    /// How loops compute κ; by [`kappa`](Self::kappa) unless the shape is one of this crate.
    #[doc(hidden)]
    const FORM: Form = Form::Plain;
}

/// The shapes of the stationary kernels here.
pub mod shape {
    use super::{Form, Shape, stationary};

    macro_rules! shapes {
        ($($kappa:literal $shape:ident $name:literal)+) => {$(
            #[doc = concat!("κ = ", $kappa, ".")]
            #[derive(Clone, Copy, Debug, Default)]
            pub struct $shape;

            impl Shape for $shape {
                const NAME: &'static str = $name;
                const FORM: Form = Form::$shape;
                fn kappa(r2: f64, alpha: f64) -> (f64, f64) {
                    stationary::kappa::<Self, crate::fast::vmath::Portable>(r2, alpha)
                }
            }
        )+};
    }
    shapes! {
        "exp(−r²/2)" Rbf "rbf"
        "exp(−r)" Matern12 "matern12"
        "(1 + √3 r) exp(−√3 r)" Matern32 "matern32"
        "(1 + √5 r + 5r²/3) exp(−√5 r)" Matern52 "matern52"
    }

    /// κ = (1 + r²/2α)^(−α).
    #[derive(Clone, Copy, Debug, Default)]
    pub struct RationalQuadratic;

    impl Shape for RationalQuadratic {
        const NAME: &'static str = "rational_quadratic";
        const HAS_ALPHA: bool = true;
        #[inline(always)]
        fn kappa(r2: f64, alpha: f64) -> (f64, f64) {
            let log_base = (r2 / (2.0 * alpha)).ln_1p();
            let k = (-alpha * log_base).exp();
            (k, -0.5 * k / (1.0 + r2 / (2.0 * alpha)))
        }
        fn kappa_alpha(r2: f64, alpha: f64) -> f64 {
            let t = r2 / (2.0 * alpha);
            (-alpha * t.ln_1p()).exp() * (t / (1.0 + t) - t.ln_1p())
        }
    }
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

/// A stationary kernel of the shape `S`, with one lengthscale a column (ARD) or one for all.
#[derive(Clone, Debug)]
pub struct Stationary<S: Shape> {
    /// σ_f², the variance of the function.
    pub variance: Param,
    /// ℓ: 1×Q with ARD, 1×1 without.
    pub lengthscale: Param,
    /// α, of the rational quadratic kernel.
    pub alpha: Option<Param>,
    pub(crate) dim: usize,
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

    /// 1/ℓ of every column.
    pub(crate) fn inverse_lengthscales(&self) -> Buffer<f64> {
        let l = self.lengthscale.as_slice();
        Buffer::of((0..self.dim).map(|q| 1.0 / l[place(l.len(), q)]))
    }

    /// α, or 0 where the shape has none.
    pub(crate) fn alpha(&self) -> f64 {
        self.alpha.as_ref().map_or(0.0, Param::get)
    }

    /// Adds ∂F/∂σ_f², ∂F/∂ℓ of every column, and ∂F/∂α to θ̄.
    pub(crate) fn add_theta(&self, theta: &mut [f64], variance_bar: f64, l_bar: &[f64], alpha_bar: f64) {
        let lengthscales = self.lengthscale.len();
        theta[0] += variance_bar;
        for (q, bar) in l_bar.iter().enumerate() {
            theta[1 + place(lengthscales, q)] += bar;
        }
        if S::HAS_ALPHA {
            theta[1 + lengthscales] += alpha_bar;
        }
    }

    fn r2(&self, x: &[f64], z: &[f64]) -> f64 {
        let l = self.lengthscale.as_slice();
        let scaled = |q: usize| (x[q] - z[q]) / l[place(l.len(), q)];
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
        self.variance.get() * S::kappa(self.r2(x, z), self.alpha()).0
    }

    fn eval_adjoint(&self, x: &[f64], z: &[f64], bar: f64, grad: PointGrad<'_>) {
        let (r2, alpha) = (self.r2(x, z), self.alpha());
        let (kappa, slope) = S::kappa(r2, alpha);
        let h = 2.0 * bar * self.variance.get() * slope;
        let lengthscales = self.lengthscale.len();
        grad.theta[0] += bar * kappa;
        for (q, inverse) in self.inverse_lengthscales().iter().enumerate() {
            let e = (x[q] - z[q]) * inverse;
            grad.x[q] += h * e * inverse;
            grad.z[q] -= h * e * inverse;
            grad.theta[1 + place(lengthscales, q)] -= h * e * e * inverse;
        }
        if S::HAS_ALPHA {
            grad.theta[1 + lengthscales] += bar * self.variance.get() * S::kappa_alpha(r2, alpha);
        }
    }

    fn factor(&self) -> Option<usize> {
        Some(0)
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
            false => stationary::cross(self, x, z, out),
        }
    }

    fn cross_adjoint(&self, x: &Mat, z: &Mat, bar: &Mat, grad: KernelGrad<'_>) {
        match z.is_empty() {
            true => grad.theta[0] += bar.as_slice().iter().sum::<f64>(),
            false => stationary::cross_adjoint(self, x, z, bar, grad),
        }
    }

    fn fast(&self) -> Option<&dyn FastKernel> {
        Some(self)
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
        let gauss: InlineVec<_> = (0..self.dim).map(|q| (q, 1 + place(lengthscales, q))).collect();
        matches!(S::FORM, Form::Rbf).then(|| ClosedForm::new([Term::new(&[0], &gauss, &[])]))
    }

    fn relevance(&self) -> Option<Vec<f64>> {
        let variance = self.variance.get();
        self.is_ard().then(|| self.inverse_lengthscales().iter().map(|i| variance * i * i).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use crate::expectation::{Expectation, Gaussians, MonteCarlo, Unscented};

    /// That of [`shape::Rbf`], as a user would write it.
    #[derive(Clone, Copy, Default)]
    struct Own;

    impl Shape for Own {
        const NAME: &'static str = "own";
        fn kappa(r2: f64, _: f64) -> (f64, f64) {
            ((-0.5 * r2).exp(), -0.5 * (-0.5 * r2).exp())
        }
    }

    #[test]
    fn a_users_shape_needs_kappa_alone() {
        let point = |by: f64| move |i: usize, j: usize| (by * (3 * i + j) as f64).sin();
        let (x, z) = (Mat::from_fn(23, 3, point(0.7)), Mat::from_fn(5, 3, point(1.3)));
        let (own, ours) = (Stationary::<Own>::new(3), Rbf::new(3));
        let q = Gaussians::new(x.clone(), Mat::filled(23, 3, 0.1)).unwrap();
        let rules: [&dyn Expectation; 2] = [&Unscented, &MonteCarlo::new(5, 0)];
        for rule in rules {
            let (found, expected) = (rule.psi(&own, &q, &z).unwrap(), rule.psi(&ours, &q, &z).unwrap());
            let error = check::relative_error(found.psi2.as_slice(), expected.psi2.as_slice(), 0.0);
            assert!(error < 1e-12, "{rule}: {error:e}");
            check::psi_adjoint(rule, &own, &q, &z, 1e-7).unwrap();
        }
        assert!(own.closed_form().is_none() && ours.closed_form().is_some());
    }
}
