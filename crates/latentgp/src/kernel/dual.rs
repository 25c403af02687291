//! Numbers that carry derivatives along: v + Σ_i d_i ε_i, ε_i ε_j = 0.
//!
//! At the edge of a domain a slope that does not exist is taken as 0, so that one such point does not turn a
//! whole gradient into NaN: `sqrt`, `powf` and `abs` at 0 have derivative 0. For a distance r = √(r²) at
//! x = z this is the symmetric choice, and the true one wherever k depends on r smoothly in r².

use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// What a formula may do with a number: `f64` for values, [`Dual`] for derivatives.
pub trait Scalar:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + Add<f64, Output = Self>
    + Sub<f64, Output = Self>
    + Mul<f64, Output = Self>
    + Div<f64, Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + Sum
    + From<f64>
{
    /// The number without its derivatives.
    fn value(self) -> f64;
    /// e^a.
    fn exp(self) -> Self;
    /// ln a.
    fn ln(self) -> Self;
    /// √a.
    fn sqrt(self) -> Self;
    /// sin a.
    fn sin(self) -> Self;
    /// cos a.
    fn cos(self) -> Self;
    /// tanh a.
    fn tanh(self) -> Self;
    /// asin a.
    fn asin(self) -> Self;
    /// a^n.
    fn powi(self, n: i32) -> Self;
    /// a^p, of a constant exponent.
    fn powf(self, p: f64) -> Self;
    /// |a|.
    fn abs(self) -> Self;
    /// The larger of the two; the first where they are equal.
    fn max(self, other: Self) -> Self;
    /// The smaller of the two; the first where they are equal.
    fn min(self, other: Self) -> Self;
}

macro_rules! plain {
    ($($name:ident),+) => {$(
        #[inline(always)]
        fn $name(self) -> Self {
            f64::$name(self)
        }
    )+};
}

impl Scalar for f64 {
    plain!(exp, ln, sqrt, sin, cos, tanh, asin, abs);
    #[inline(always)]
    fn value(self) -> f64 {
        self
    }
    #[inline(always)]
    fn powi(self, n: i32) -> Self {
        f64::powi(self, n)
    }
    #[inline(always)]
    fn powf(self, p: f64) -> Self {
        f64::powf(self, p)
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        if other > self { other } else { self }
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        if other < self { other } else { self }
    }
}

/// A number and its derivatives in `P` directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dual<const P: usize> {
    /// The value.
    pub value: f64,
    /// The derivatives.
    pub slope: [f64; P],
}

impl<const P: usize> Dual<P> {
    /// The variable that direction `i` moves.
    pub fn variable(value: f64, i: usize) -> Self {
        let mut slope = [0.0; P];
        slope[i] = 1.0;
        Dual { value, slope }
    }

    /// f(a), of value `value` and derivative `by` in a.
    #[inline(always)]
    fn chain(self, value: f64, by: f64) -> Self {
        Dual { value, slope: self.slope.map(|d| d * by) }
    }

    /// f(a, b), with the two derivatives.
    #[inline(always)]
    fn join(self, other: Self, value: f64, by: f64, by_other: f64) -> Self {
        let mut slope = self.slope;
        for i in 0..P {
            slope[i] = slope[i] * by + other.slope[i] * by_other;
        }
        Dual { value, slope }
    }
}

impl<const P: usize> From<f64> for Dual<P> {
    #[inline(always)]
    fn from(value: f64) -> Self {
        Dual { value, slope: [0.0; P] }
    }
}

impl<const P: usize> Add for Dual<P> {
    type Output = Self;
    #[inline(always)]
    fn add(self, o: Self) -> Self {
        self.join(o, self.value + o.value, 1.0, 1.0)
    }
}

impl<const P: usize> Sub for Dual<P> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, o: Self) -> Self {
        self.join(o, self.value - o.value, 1.0, -1.0)
    }
}

impl<const P: usize> Mul for Dual<P> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, o: Self) -> Self {
        self.join(o, self.value * o.value, o.value, self.value)
    }
}

impl<const P: usize> Div for Dual<P> {
    type Output = Self;
    #[inline(always)]
    fn div(self, o: Self) -> Self {
        let value = self.value / o.value;
        self.join(o, value, 1.0 / o.value, -value / o.value)
    }
}

impl<const P: usize> Neg for Dual<P> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.chain(-self.value, -1.0)
    }
}

impl<const P: usize> Add<f64> for Dual<P> {
    type Output = Self;
    #[inline(always)]
    fn add(self, o: f64) -> Self {
        Dual { value: self.value + o, slope: self.slope }
    }
}

impl<const P: usize> Sub<f64> for Dual<P> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, o: f64) -> Self {
        Dual { value: self.value - o, slope: self.slope }
    }
}

impl<const P: usize> Mul<f64> for Dual<P> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, o: f64) -> Self {
        self.chain(self.value * o, o)
    }
}

impl<const P: usize> Div<f64> for Dual<P> {
    type Output = Self;
    #[inline(always)]
    fn div(self, o: f64) -> Self {
        self.chain(self.value / o, 1.0 / o)
    }
}

impl<const P: usize> AddAssign for Dual<P> {
    #[inline(always)]
    fn add_assign(&mut self, o: Self) {
        *self = *self + o;
    }
}

impl<const P: usize> SubAssign for Dual<P> {
    #[inline(always)]
    fn sub_assign(&mut self, o: Self) {
        *self = *self - o;
    }
}

impl<const P: usize> MulAssign for Dual<P> {
    #[inline(always)]
    fn mul_assign(&mut self, o: Self) {
        *self = *self * o;
    }
}

impl<const P: usize> Sum for Dual<P> {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::from(0.0), |a, b| a + b)
    }
}

impl<const P: usize> Scalar for Dual<P> {
    #[inline(always)]
    fn value(self) -> f64 {
        self.value
    }
    #[inline(always)]
    fn exp(self) -> Self {
        let e = self.value.exp();
        self.chain(e, e)
    }
    #[inline(always)]
    fn ln(self) -> Self {
        self.chain(self.value.ln(), 1.0 / self.value)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        let root = self.value.sqrt();
        self.chain(root, if root == 0.0 { 0.0 } else { 0.5 / root })
    }
    #[inline(always)]
    fn sin(self) -> Self {
        let (sin, cos) = self.value.sin_cos();
        self.chain(sin, cos)
    }
    #[inline(always)]
    fn cos(self) -> Self {
        let (sin, cos) = self.value.sin_cos();
        self.chain(cos, -sin)
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        let t = self.value.tanh();
        self.chain(t, 1.0 - t * t)
    }
    #[inline(always)]
    fn asin(self) -> Self {
        let rest = (1.0 - self.value) * (1.0 + self.value);
        self.chain(self.value.asin(), if rest == 0.0 { 0.0 } else { 1.0 / rest.sqrt() })
    }
    #[inline(always)]
    fn powi(self, n: i32) -> Self {
        if n == 0 {
            return Self::from(1.0);
        }
        self.chain(self.value.powi(n), f64::from(n) * self.value.powi(n - 1))
    }
    #[inline(always)]
    fn powf(self, p: f64) -> Self {
        if p == 0.0 {
            return Self::from(1.0);
        }
        let slope = if self.value == 0.0 && p < 1.0 { 0.0 } else { p * self.value.powf(p - 1.0) };
        self.chain(self.value.powf(p), slope)
    }
    #[inline(always)]
    fn abs(self) -> Self {
        let sign = if self.value == 0.0 { 0.0 } else { self.value.signum() };
        self.chain(self.value.abs(), sign)
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        if other.value > self.value { other } else { self }
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        if other.value < self.value { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{differences, relative_error};

    fn everything<S: Scalar>(a: S, b: S) -> S {
        let c = (a * b + 1.5).sqrt() / (b.abs() + 2.0) - a.sin() * b.cos();
        let d = (-a).exp().max(b) + b.tanh().min(a) * 3.0 - (a * 0.1).asin() / 2.0;
        (c * c + d * d + 0.5).ln() + a.powi(3) - b.abs().powf(1.7) + [a, b].into_iter().sum::<S>()
    }

    #[test]
    fn every_operation_is_differentiated() {
        for (a, b) in [(0.7, 0.4), (1.3, -0.6), (0.2, 2.0)] {
            let d = everything(Dual::<2>::variable(a, 0), Dual::variable(b, 1));
            let fd = differences(&[a, b], |u| everything(u[0], u[1]));
            assert!(relative_error(&d.slope, &fd, 1e-3) < 1e-9, "{:?} against {fd:?}", d.slope);
            assert_eq!(d.value, everything(a, b));
        }
    }

    #[test]
    fn slopes_that_do_not_exist_are_zero() {
        let zero = Dual::<1>::variable(0.0, 0);
        for d in [zero.sqrt(), zero.abs(), zero.powf(0.5), (zero + 1.0).asin()] {
            assert_eq!(d.slope, [0.0]);
        }
    }
}
