//! How loops compute κ(r²): the exponent of its power of two first, then the power, then κ and its slope.
//!
//! Processors take square roots beside other work, but not if that work waits for them. So loops take the roots of the
//! exponents one row ahead.

use crate::fast::vmath::{EXP2_LEAST, Instructions, Lanes, Numbers, exp2_decay, exp2_decays, fma};
use crate::kernel::Shape;
use std::f64::consts::{LN_2, LOG2_E};

/// How κ of a shape is computed: from a power of two, for the shapes of this crate that have one, or by
/// [`Shape::kappa`].
#[derive(Clone, Copy, Debug)]
pub enum Form {
    Plain,
    Rbf,
    Matern12,
    Matern32,
    Matern52,
}

impl Form {
    /// c, where the exponent is y = −log₂e √(c r²).
    const fn root_of(self) -> Option<f64> {
        match self {
            Form::Matern12 => Some(1.0),
            Form::Matern32 => Some(3.0),
            Form::Matern52 => Some(5.0),
            Form::Plain | Form::Rbf => None,
        }
    }

    const fn has_power(self) -> bool {
        !matches!(self, Form::Plain)
    }
}

/// What κ is computed from: the exponent y ≤ 0 of its power of two, or r² where it has none.
#[inline(always)]
fn argument<S: Shape>(r2: f64) -> f64 {
    match (S::FORM, S::FORM.root_of()) {
        (_, Some(c)) => root(c, r2),
        (Form::Rbf, _) => -0.5 * LOG2_E * r2,
        _ => r2,
    }
}

/// κ and ∂κ/∂r² from the [`argument`] and its power of two.
#[inline(always)]
fn kappa_of<S: Shape, I: Instructions>(y: f64, power: f64, alpha: f64) -> (f64, f64) {
    match S::FORM {
        Form::Plain => S::kappa(y, alpha),
        Form::Rbf => (power, -0.5 * power),
        Form::Matern12 => (power, if y < 0.0 { 0.5 * power / (LN_2 * y) } else { 0.0 }),
        Form::Matern32 => (fma::<I>(-LN_2 * y, power, power), -1.5 * power),
        Form::Matern52 => {
            let a = -LN_2 * y;
            (power * (1.0 + a + a * a * (1.0 / 3.0)), -5.0 / 6.0 * power * (1.0 + a))
        }
    }
}

/// κ and ∂κ/∂r².
#[inline(always)]
pub(crate) fn kappa<S: Shape, I: Instructions>(r2: f64, alpha: f64) -> (f64, f64) {
    let y = argument::<S>(r2);
    let power = if S::FORM.has_power() { exp2_decay::<I>(y) } else { 1.0 };
    kappa_of::<S, I>(y, power, alpha)
}

/// −log₂e · √(c r²), but no less than `EXP2_LEAST`: there the power is negligible, however large the factor before it. NaN stays
/// NaN.
#[inline(always)]
fn root(c: f64, r2: f64) -> f64 {
    let y = -(c * LOG2_E * LOG2_E * r2).sqrt();
    if EXP2_LEAST > y { EXP2_LEAST } else { y }
}

/// [`root`] of every number of a register.
#[inline(always)]
fn root_lanes<I: Instructions, const L: usize>(c: f64, r2: Lanes<I, L>) -> Lanes<I, L> {
    Lanes::all(EXP2_LEAST).max(-(r2 * (c * LOG2_E * LOG2_E)).root())
}

/// Turns r² into arguments.
#[inline(always)]
pub(super) fn arguments<S: Shape, I: Instructions, const L: usize>(r2: &mut [f64]) {
    let Some(c) = S::FORM.root_of() else {
        r2.iter_mut().for_each(|v| *v = argument::<S>(*v));
        return;
    };
    let (whole, rest) = r2.split_at_mut(r2.len() - r2.len() % L);
    for r2 in <Lanes<I, L> as Numbers>::read_mut(whole) {
        *r2 = root_lanes(c, *r2);
    }
    let mut last = Lanes::<I, L>::ZERO;
    last.0[..rest.len()].copy_from_slice(rest);
    rest.copy_from_slice(&root_lanes(c, last).0[..rest.len()]);
}

/// Turns a row of arguments into σ²κ, with σ²∂κ/∂r² in `slopes` unless that is empty. Meanwhile the `next` row, which may be
/// empty, goes from r² to arguments: the processor takes its square roots beside the powers of this row. Four registers go
/// together.
#[inline(always)]
pub(super) fn advance<S: Shape, I: Instructions, const L: usize>(
    row: &mut [f64],
    next: &mut [f64],
    slopes: &mut [f64],
    scales: (f64, f64),
) {
    match L {
        8 => advance_chunks::<S, I, L, 32>(row, next, slopes, scales),
        _ => advance_chunks::<S, I, L, 16>(row, next, slopes, scales),
    }
}

#[inline(always)]
fn advance_chunks<S: Shape, I: Instructions, const L: usize, const CHUNK: usize>(
    row: &mut [f64],
    next: &mut [f64],
    slopes: &mut [f64],
    (variance, alpha): (f64, f64),
) {
    let (chunks, last) = row.as_chunks_mut::<CHUNK>();
    let (next, last_next) = next.as_chunks_mut::<CHUNK>();
    let (slopes, last_slopes) = slopes.as_chunks_mut::<CHUNK>();
    let (mut next, mut slopes) = (next.iter_mut(), slopes.iter_mut());
    for row in chunks {
        if let Some(next) = next.next() {
            arguments::<S, I, L>(next);
        }
        scaled::<S, I, L, CHUNK>(row, slopes.next(), variance, alpha);
    }
    if !last.is_empty() {
        arguments::<S, I, L>(last_next);
        let (mut all, mut own) = ([0.0; CHUNK], [0.0; CHUNK]);
        all[..last.len()].copy_from_slice(last);
        scaled::<S, I, L, CHUNK>(&mut all, Some(&mut own), variance, alpha);
        last.copy_from_slice(&all[..last.len()]);
        last_slopes.copy_from_slice(&own[..last_slopes.len()]);
    }
}

/// Turns arguments into σ²κ, with σ²∂κ/∂r² where it is wanted.
#[inline(always)]
fn scaled<S: Shape, I: Instructions, const L: usize, const CHUNK: usize>(
    row: &mut [f64; CHUNK],
    slopes: Option<&mut [f64; CHUNK]>,
    variance: f64,
    alpha: f64,
) {
    let (arguments, mut powers) = (*row, [1.0; CHUNK]);
    if S::FORM.has_power() {
        powers = arguments;
        exp2_decays::<I, L>(&mut powers);
    }
    for i in 0..CHUNK {
        row[i] = variance * kappa_of::<S, I>(arguments[i], powers[i], alpha).0;
    }
    if let Some(slopes) = slopes {
        for i in 0..CHUNK {
            slopes[i] = variance * kappa_of::<S, I>(arguments[i], powers[i], alpha).1;
        }
    }
}
