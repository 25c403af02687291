//! The shapes κ(r²) of stationary kernels.

use crate::scratch::Numbers;
use crate::vmath::{EXP2_LEAST, Lanes, exp2_decay, exp2_decays, fma};
use std::f64::consts::{LN_2, LOG2_E};

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
    /// Whether κ is made of a power of two.
    const HAS_POWER: bool = true;
    /// c, where the exponent of its power of two is −log₂e √(c r²).
    const ROOT_OF: Option<f64> = None;
    /// What κ is computed from: the exponent of its power of two, at most 0, or r² where it has none. Where that takes a
    /// root, loops may take it ahead, as processors take roots beside other work but not if it waits for them.
    #[inline(always)]
    fn argument(r2: f64) -> f64 {
        const { assert!(!Self::HAS_POWER || Self::ROOT_OF.is_some(), "a shape with a power says its argument") };
        Self::ROOT_OF.map_or(r2, |by| root(by, r2))
    }
    /// κ and ∂κ/∂r² from the [`argument`](Self::argument) and its power of two.
    fn kappa_of<const FMA: bool>(argument: f64, power: f64, alpha: f64) -> (f64, f64);
    /// κ and ∂κ/∂r².
    #[inline(always)]
    fn kappa<const FMA: bool>(r2: f64, alpha: f64) -> (f64, f64) {
        let argument = Self::argument(r2);
        let power = if Self::HAS_POWER { exp2_decay::<FMA>(argument) } else { 1.0 };
        Self::kappa_of::<FMA>(argument, power, alpha)
    }
    /// ∂κ/∂α.
    fn kappa_alpha(_r2: f64, _alpha: f64) -> f64 {
        0.0
    }
    /// Whether Ψ is known exactly: true of the Gaussian shape.
    const GAUSSIAN: bool = false;
}

/// −log₂e · √(by r²), or an exponent at which the power is nothing, however large the factor before it. NaN stays NaN.
#[inline(always)]
fn root(by: f64, r2: f64) -> f64 {
    let y = -(by * LOG2_E * LOG2_E * r2).sqrt();
    if EXP2_LEAST > y { EXP2_LEAST } else { y }
}

/// The same of a register.
#[inline(always)]
fn root_lanes<const FMA: bool, const L: usize>(by: f64, r2: Lanes<FMA, L>) -> Lanes<FMA, L> {
    Lanes::all(EXP2_LEAST).max(-(r2 * (by * LOG2_E * LOG2_E)).root())
}

/// From r² to arguments.
#[inline(always)]
pub(super) fn arguments<S: Shape, const FMA: bool, const L: usize>(r2: &mut [f64]) {
    let Some(by) = S::ROOT_OF else {
        r2.iter_mut().for_each(|v| *v = S::argument(*v));
        return;
    };
    let (whole, rest) = r2.split_at_mut(r2.len() - r2.len() % L);
    for r2 in <Lanes<FMA, L> as Numbers>::read_mut(whole) {
        *r2 = root_lanes(by, *r2);
    }
    let mut last = Lanes::<FMA, L>::ZERO;
    last.0[..rest.len()].copy_from_slice(rest);
    rest.copy_from_slice(&root_lanes(by, last).0[..rest.len()]);
}

impl Shape for shape::Rbf {
    const NAME: &'static str = "rbf";
    const GAUSSIAN: bool = true;
    #[inline(always)]
    fn argument(r2: f64) -> f64 {
        -0.5 * LOG2_E * r2
    }
    #[inline(always)]
    fn kappa_of<const FMA: bool>(_: f64, power: f64, _: f64) -> (f64, f64) {
        (power, -0.5 * power)
    }
}

impl Shape for shape::Matern12 {
    const NAME: &'static str = "matern12";
    const ROOT_OF: Option<f64> = Some(1.0);
    #[inline(always)]
    fn kappa_of<const FMA: bool>(y: f64, power: f64, _: f64) -> (f64, f64) {
        (power, if y < 0.0 { 0.5 * power / (LN_2 * y) } else { 0.0 })
    }
}

impl Shape for shape::Matern32 {
    const NAME: &'static str = "matern32";
    const ROOT_OF: Option<f64> = Some(3.0);
    #[inline(always)]
    fn kappa_of<const FMA: bool>(y: f64, power: f64, _: f64) -> (f64, f64) {
        (fma::<FMA>(-LN_2 * y, power, power), -1.5 * power)
    }
}

impl Shape for shape::Matern52 {
    const NAME: &'static str = "matern52";
    const ROOT_OF: Option<f64> = Some(5.0);
    #[inline(always)]
    fn kappa_of<const FMA: bool>(y: f64, power: f64, _: f64) -> (f64, f64) {
        let a = -LN_2 * y;
        (power * (1.0 + a + a * a * (1.0 / 3.0)), -5.0 / 6.0 * power * (1.0 + a))
    }
}

impl Shape for shape::RationalQuadratic {
    const NAME: &'static str = "rational_quadratic";
    const HAS_ALPHA: bool = true;
    const HAS_POWER: bool = false;
    #[inline(always)]
    fn kappa_of<const FMA: bool>(r2: f64, _: f64, alpha: f64) -> (f64, f64) {
        let log_base = (r2 / (2.0 * alpha)).ln_1p();
        let k = (-alpha * log_base).exp();
        (k, -0.5 * k / (1.0 + r2 / (2.0 * alpha)))
    }
    fn kappa_alpha(r2: f64, alpha: f64) -> f64 {
        let t = r2 / (2.0 * alpha);
        (-alpha * t.ln_1p()).exp() * (t / (1.0 + t) - t.ln_1p())
    }
}

/// Takes a row from arguments to σ²κ, with σ²∂κ/∂r² in `slopes` unless that is empty, while the `next` row, which may be empty,
/// goes from r² to arguments: its roots are taken beside the powers. Four registers go together.
#[inline(always)]
pub(super) fn advance<S: Shape, const FMA: bool, const L: usize>(
    row: &mut [f64],
    next: &mut [f64],
    slopes: &mut [f64],
    scales: (f64, f64),
) {
    match L {
        8 => advance_some::<S, FMA, L, 32>(row, next, slopes, scales),
        _ => advance_some::<S, FMA, L, 16>(row, next, slopes, scales),
    }
}

#[inline(always)]
fn advance_some<S: Shape, const FMA: bool, const L: usize, const SOME: usize>(
    row: &mut [f64],
    next: &mut [f64],
    slopes: &mut [f64],
    (variance, alpha): (f64, f64),
) {
    let (some, last) = row.as_chunks_mut::<SOME>();
    let (next, last_next) = next.as_chunks_mut::<SOME>();
    let (slopes, last_slopes) = slopes.as_chunks_mut::<SOME>();
    let (mut next, mut slopes) = (next.iter_mut(), slopes.iter_mut());
    for row in some {
        if let Some(next) = next.next() {
            arguments::<S, FMA, L>(next);
        }
        scaled::<S, FMA, L, SOME>(row, slopes.next(), variance, alpha);
    }
    if !last.is_empty() {
        arguments::<S, FMA, L>(last_next);
        let (mut all, mut own) = ([0.0; SOME], [0.0; SOME]);
        all[..last.len()].copy_from_slice(last);
        scaled::<S, FMA, L, SOME>(&mut all, Some(&mut own), variance, alpha);
        last.copy_from_slice(&all[..last.len()]);
        last_slopes.copy_from_slice(&own[..last_slopes.len()]);
    }
}

/// From some arguments to σ²κ, with σ²∂κ/∂r² where it is wanted.
#[inline(always)]
fn scaled<S: Shape, const FMA: bool, const L: usize, const SOME: usize>(
    row: &mut [f64; SOME],
    slopes: Option<&mut [f64; SOME]>,
    variance: f64,
    alpha: f64,
) {
    let (arguments, mut powers) = (*row, [1.0; SOME]);
    if S::HAS_POWER {
        powers = arguments;
        exp2_decays::<FMA, L>(&mut powers);
    }
    for i in 0..SOME {
        row[i] = variance * S::kappa_of::<FMA>(arguments[i], powers[i], alpha).0;
    }
    if let Some(slopes) = slopes {
        for i in 0..SOME {
            slopes[i] = variance * S::kappa_of::<FMA>(arguments[i], powers[i], alpha).1;
        }
    }
}
