//! Numbers that one register of the machine holds, and what it does with all of them at once.
//!
//! A compiler that is given loops over small arrays finds the registers by itself, or does not: with eight lanes it took them
//! apart in places, ten times as slow. Where it matters, [`Lanes`] leave it no choice.

use crate::scratch::Numbers;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

/// `L` numbers. `FMA` with eight lanes is AVX-512 on x86-64, with four AVX2, and only for loops that
/// [`in_lanes`](super::in_lanes) runs; everything else is left to the compiler.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Lanes<const FMA: bool, const L: usize>(pub [f64; L]);

/// What one instruction does to every lane, of some operands.
macro_rules! lanewise {
    ($wide:ident, $narrow:ident, $plain:expr, $($operand:ident),+) => {{
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{$narrow, $wide};
            use std::mem::transmute_copy as seen;
            // SAFETY: as many numbers on either side, and instructions of the machine that the lanes are those of.
            match (FMA, L) {
                (true, 8) => return unsafe { seen(&$wide($(seen(&$operand)),+)) },
                (true, 4) => return unsafe { seen(&$narrow($(seen(&$operand)),+)) },
                _ => {}
            }
        }
        let plain = $plain;
        let mut out = [0.0; L];
        for l in 0..L {
            out[l] = plain($($operand.0[l]),+);
        }
        Lanes(out)
    }};
}

macro_rules! operator {
    ($name:ident, $method:ident, $wide:ident, $narrow:ident) => {
        impl<const FMA: bool, const L: usize> $name for Lanes<FMA, L> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                lanewise!($wide, $narrow, |a: f64, b: f64| a.$method(b), self, other)
            }
        }
    };
}

operator!(Add, add, _mm512_add_pd, _mm256_add_pd);
operator!(Sub, sub, _mm512_sub_pd, _mm256_sub_pd);
operator!(Mul, mul, _mm512_mul_pd, _mm256_mul_pd);
operator!(Div, div, _mm512_div_pd, _mm256_div_pd);

impl<const FMA: bool, const L: usize> Lanes<FMA, L> {
    pub const ZERO: Self = Lanes([0.0; L]);
    pub const ONE: Self = Lanes([1.0; L]);

    /// The same number in every lane.
    #[inline(always)]
    pub fn all(value: f64) -> Self {
        Lanes([value; L])
    }

    /// self · by + plus, fused where that is one instruction.
    #[inline(always)]
    pub fn mul_add(self, by: Self, plus: Self) -> Self {
        let plain = |a: f64, b: f64, c: f64| super::fma::<FMA>(a, b, c);
        lanewise!(_mm512_fmadd_pd, _mm256_fmadd_pd, plain, self, by, plus)
    }

    /// plus − self · by, fused where that is one instruction.
    #[inline(always)]
    pub fn neg_mul_add(self, by: Self, plus: Self) -> Self {
        let plain = |a: f64, b: f64, c: f64| super::fma::<FMA>(-a, b, c);
        lanewise!(_mm512_fnmadd_pd, _mm256_fnmadd_pd, plain, self, by, plus)
    }

    #[inline(always)]
    pub fn sqrt(self) -> Self {
        lanewise!(_mm512_sqrt_pd, _mm256_sqrt_pd, f64::sqrt, self)
    }

    /// The larger of both; other's lane where one is not a number.
    #[inline(always)]
    pub fn max(self, other: Self) -> Self {
        lanewise!(_mm512_max_pd, _mm256_max_pd, |a: f64, b: f64| if a > b { a } else { b }, self, other)
    }

    /// The smaller of both; other's lane where one is not a number.
    #[inline(always)]
    pub fn min(self, other: Self) -> Self {
        lanewise!(_mm512_min_pd, _mm256_min_pd, |a: f64, b: f64| if a < b { a } else { b }, self, other)
    }

    /// The power of 2 whose exponent, 1023 added to it, is in the low bits.
    #[inline(always)]
    pub fn power_of_low_bits(self) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_mm256_slli_epi64, _mm512_slli_epi64};
            use std::mem::transmute_copy as seen;
            // SAFETY: as in `lanewise`.
            match (FMA, L) {
                (true, 8) => return unsafe { seen(&_mm512_slli_epi64::<52>(seen(&self))) },
                (true, 4) => return unsafe { seen(&_mm256_slli_epi64::<52>(seen(&self))) },
                _ => {}
            }
        }
        let mut out = [0.0; L];
        for l in 0..L {
            out[l] = f64::from_bits(self.0[l].to_bits() << 52);
        }
        Lanes(out)
    }

    /// Σ over the lanes.
    pub fn sum(self) -> f64 {
        self.0.iter().sum()
    }
}

impl<const FMA: bool, const L: usize> Mul<f64> for Lanes<FMA, L> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, by: f64) -> Self {
        self * Self::all(by)
    }
}

impl<const FMA: bool, const L: usize> Neg for Lanes<FMA, L> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self * -1.0
    }
}

impl<const FMA: bool, const L: usize> AddAssign for Lanes<FMA, L> {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl<const FMA: bool, const L: usize> SubAssign for Lanes<FMA, L> {
    #[inline(always)]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl<const FMA: bool, const L: usize> Numbers for Lanes<FMA, L> {
    const SIZE: usize = L;
    #[inline(always)]
    fn read(numbers: &[f64]) -> &[Self] {
        let arrays = numbers.as_chunks::<L>().0;
        // SAFETY: `Lanes` are such arrays.
        unsafe { std::slice::from_raw_parts(arrays.as_ptr().cast(), arrays.len()) }
    }
    #[inline(always)]
    fn read_mut(numbers: &mut [f64]) -> &mut [Self] {
        let arrays = numbers.as_chunks_mut::<L>().0;
        // SAFETY: `Lanes` are such arrays.
        unsafe { std::slice::from_raw_parts_mut(arrays.as_mut_ptr().cast(), arrays.len()) }
    }
}
