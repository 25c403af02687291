//! The shapes κ(r²) of stationary kernels.

use crate::vmath::{exp_decay, exp_near, fma};

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

/// κ(r²) and its derivatives; `alpha` is the shape's own parameter where [`HAS_ALPHA`](Self::HAS_ALPHA).
pub trait Shape: Copy + Default + Send + Sync + 'static {
    /// The name in expressions.
    const NAME: &'static str;
    /// Whether the shape has a parameter `alpha`.
    const HAS_ALPHA: bool = false;
    /// What κ is computed from: r², or a multiple of r. Where that takes a root, loops may take it ahead, as processors
    /// take roots beside other work but not if it waits for them.
    #[inline(always)]
    fn argument(r2: f64) -> f64 {
        r2
    }
    /// κ and ∂κ/∂r² from the [`argument`](Self::argument).
    fn kappa_at<const FMA: bool>(argument: f64, alpha: f64) -> (f64, f64);
    /// κ and ∂κ/∂r².
    #[inline(always)]
    fn kappa<const FMA: bool>(r2: f64, alpha: f64) -> (f64, f64) {
        Self::kappa_at::<FMA>(Self::argument(r2), alpha)
    }
    /// ∂κ/∂α.
    fn kappa_alpha(_r2: f64, _alpha: f64) -> f64 {
        0.0
    }
    /// Whether Ψ is known exactly: true of the Gaussian shape.
    const GAUSSIAN: bool = false;
}

/// A distance, or one at which e^−a is nothing, however large the factor before it. NaN stays NaN.
#[inline(always)]
fn near(a: f64) -> f64 {
    const FAR: f64 = 708.0;
    if a > FAR { FAR } else { a }
}

impl Shape for shape::Rbf {
    const NAME: &'static str = "rbf";
    const GAUSSIAN: bool = true;
    #[inline(always)]
    fn kappa_at<const FMA: bool>(r2: f64, _: f64) -> (f64, f64) {
        let k = exp_decay::<FMA>(-0.5 * r2);
        (k, -0.5 * k)
    }
}

impl Shape for shape::Matern12 {
    const NAME: &'static str = "matern12";
    #[inline(always)]
    fn argument(r2: f64) -> f64 {
        near(r2.sqrt())
    }
    #[inline(always)]
    fn kappa_at<const FMA: bool>(r: f64, _: f64) -> (f64, f64) {
        let k = exp_near::<FMA>(-r);
        (k, if r > 0.0 { -0.5 * k / r } else { 0.0 })
    }
}

impl Shape for shape::Matern32 {
    const NAME: &'static str = "matern32";
    #[inline(always)]
    fn argument(r2: f64) -> f64 {
        near((3.0 * r2).sqrt())
    }
    #[inline(always)]
    fn kappa_at<const FMA: bool>(a: f64, _: f64) -> (f64, f64) {
        let e = exp_near::<FMA>(-a);
        (fma::<FMA>(a, e, e), -1.5 * e)
    }
}

impl Shape for shape::Matern52 {
    const NAME: &'static str = "matern52";
    #[inline(always)]
    fn argument(r2: f64) -> f64 {
        near((5.0 * r2).sqrt())
    }
    #[inline(always)]
    fn kappa_at<const FMA: bool>(a: f64, _: f64) -> (f64, f64) {
        let e = exp_near::<FMA>(-a);
        (e * (1.0 + a + a * a / 3.0), -5.0 / 6.0 * e * (1.0 + a))
    }
}

impl Shape for shape::RationalQuadratic {
    const NAME: &'static str = "rational_quadratic";
    const HAS_ALPHA: bool = true;
    #[inline(always)]
    fn kappa_at<const FMA: bool>(r2: f64, alpha: f64) -> (f64, f64) {
        let log_base = (r2 / (2.0 * alpha)).ln_1p();
        let k = (-alpha * log_base).exp();
        (k, -0.5 * k / (1.0 + r2 / (2.0 * alpha)))
    }
    fn kappa_alpha(r2: f64, alpha: f64) -> f64 {
        let t = r2 / (2.0 * alpha);
        (-alpha * t.ln_1p()).exp() * (t / (1.0 + t) - t.ln_1p())
    }
}

/// σ²κ and σ²∂κ/∂r².
#[inline(always)]
pub(super) fn scaled<S: Shape, const FMA: bool>(argument: f64, variance: f64, alpha: f64) -> (f64, f64) {
    let (kappa, slope) = S::kappa_at::<FMA>(argument, alpha);
    (variance * kappa, variance * slope)
}
