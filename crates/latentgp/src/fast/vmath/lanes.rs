//! A vector register as a value, with the instructions that work on all its numbers at once.
//!
//! Compilers turn loops over small arrays into vector instructions, but not reliably: with eight lanes they split registers in
//! places, at a tenth of the speed. [`Lanes`] leave them no choice.

use super::instructions::{Instructions, Registers};
use std::marker::PhantomData;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

/// `L` numbers. Where `I` proves that the machine has AVX-512 or AVX2, eight or four of them are one register; everything else
/// is left to the compiler.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Lanes<I: Instructions, const L: usize>(pub [f64; L], PhantomData<I>);

/// Entry j is what must be added to j << 48 so that the mantissa is that of 2^(j/16).
const SIXTEENTHS: [u64; 16] = {
    /// 2^(j/16).
    const POWERS: [f64; 16] = [
        1.0,
        1.044_273_782_427_413_8,
        1.090_507_732_665_257_7,
        1.138_788_634_756_691_6,
        1.189_207_115_002_721,
        1.241_857_812_073_484,
        1.296_839_554_651_009_6,
        1.354_255_546_936_892_7,
        std::f64::consts::SQRT_2,
        1.476_826_145_939_499_3,
        1.542_210_825_407_940_7,
        1.610_490_331_949_254_3,
        1.681_792_830_507_429,
        1.756_252_160_373_299_5,
        1.834_008_086_409_342_4,
        1.915_206_561_397_147_4,
    ];
    let mut bits = [0; 16];
    let mut j = 0;
    while j < 16 {
        bits[j] = POWERS[j].to_bits().wrapping_sub(1f64.to_bits()).wrapping_sub((j as u64) << 48);
        j += 1;
    }
    bits
};

/// Applies one instruction to some operands: the wide or the narrow one, or else `plain` to each lane.
macro_rules! lanewise {
    ($wide:ident, $narrow:ident, $plain:expr, $($operand:ident),+) => {{
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{$narrow, $wide};
            use std::mem::transmute_copy as seen;
            // SAFETY: `Lanes<_, L>` and the register have the same size, as L is 8 or 4. The machine has the instructions: `I`
            // is a type that `in_lanes` alone gives, after it has detected them.
            match (I::REGISTERS, L) {
                (Registers::Avx512, 8) => return unsafe { seen(&$wide($(seen(&$operand)),+)) },
                (Registers::Avx512 | Registers::Avx2, 4) => return unsafe { seen(&$narrow($(seen(&$operand)),+)) },
                _ => {}
            }
        }
        let plain = $plain;
        let mut out = [0.0; L];
        for l in 0..L {
            out[l] = plain($($operand.0[l]),+);
        }
        Lanes::of(out)
    }};
}

macro_rules! operator {
    ($name:ident, $method:ident, $wide:ident, $narrow:ident) => {
        impl<I: Instructions, const L: usize> $name for Lanes<I, L> {
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

impl<I: Instructions, const L: usize> Lanes<I, L> {
    pub const ZERO: Self = Lanes([0.0; L], PhantomData);
    pub const ONE: Self = Lanes([1.0; L], PhantomData);

    /// A number in each lane.
    #[inline(always)]
    pub fn of(numbers: [f64; L]) -> Self {
        Lanes(numbers, PhantomData)
    }

    /// The same number in every lane.
    #[inline(always)]
    pub fn all(value: f64) -> Self {
        Lanes::of([value; L])
    }

    /// self · by + plus, fused where that is one instruction.
    #[inline(always)]
    pub fn mul_add(self, by: Self, plus: Self) -> Self {
        let plain = |a: f64, b: f64, c: f64| super::fma::<I>(a, b, c);
        lanewise!(_mm512_fmadd_pd, _mm256_fmadd_pd, plain, self, by, plus)
    }

    /// plus − self · by, fused where that is one instruction.
    #[inline(always)]
    pub fn neg_mul_add(self, by: Self, plus: Self) -> Self {
        let plain = |a: f64, b: f64, c: f64| super::fma::<I>(-a, b, c);
        lanewise!(_mm512_fnmadd_pd, _mm256_fnmadd_pd, plain, self, by, plus)
    }

    #[inline(always)]
    pub fn sqrt(self) -> Self {
        lanewise!(_mm512_sqrt_pd, _mm256_sqrt_pd, f64::sqrt, self)
    }

    /// √ within 1 ulp; of subnormal numbers to 8 digits. With eight lanes it is found by two Newton steps from 14 bits of 1/√x, in
    /// a third of the time of the instruction for it.
    #[inline(always)]
    pub fn root(self) -> Self {
        #[cfg(target_arch = "x86_64")]
        if matches!(I::REGISTERS, Registers::Avx512) && L == 8 {
            use std::arch::x86_64::{_mm512_fpclass_pd_mask, _mm512_mask_mov_pd, _mm512_rsqrt14_pd};
            use std::mem::transmute_copy as seen;
            /// The classes of +0, −0 and +∞, which are their own roots.
            const OWN_ROOT: i32 = 0x02 | 0x04 | 0x08;
            // SAFETY: as in `lanewise`.
            let about: Self = unsafe { seen(&_mm512_rsqrt14_pd(seen(&self))) };
            // √x and ½/√x.
            let (mut root, mut half) = (self * about, about * 0.5);
            let error = root.neg_mul_add(half, Self::all(0.5));
            (root, half) = (root.mul_add(error, root), half.mul_add(error, half));
            root = root.neg_mul_add(root, self).mul_add(half, root);
            // SAFETY: as in `lanewise`.
            return unsafe {
                let own = _mm512_fpclass_pd_mask::<OWN_ROOT>(seen(&self));
                seen(&_mm512_mask_mov_pd(seen(&root), own, seen(&self)))
            };
        }
        self.sqrt()
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

    /// 2^e, where the low bits of a number hold e + 1023.
    #[inline(always)]
    pub fn power_of_low_bits(self) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_mm256_slli_epi64, _mm512_slli_epi64};
            use std::mem::transmute_copy as seen;
            // SAFETY: as in `lanewise`.
            match (I::REGISTERS, L) {
                (Registers::Avx512, 8) => return unsafe { seen(&_mm512_slli_epi64::<52>(seen(&self))) },
                (Registers::Avx512 | Registers::Avx2, 4) => {
                    return unsafe { seen(&_mm256_slli_epi64::<52>(seen(&self))) };
                }
                _ => {}
            }
        }
        let mut out = [0.0; L];
        for l in 0..L {
            out[l] = f64::from_bits(self.0[l].to_bits() << 52);
        }
        Lanes::of(out)
    }

    /// 2^e, where the low bits of a number hold e + 1023 in sixteenths.
    #[inline(always)]
    pub fn power_of_low_sixteenths(self) -> Self {
        #[cfg(target_arch = "x86_64")]
        if matches!(I::REGISTERS, Registers::Avx512) && L == 8 {
            use std::arch::x86_64::{_mm512_add_epi64, _mm512_permutex2var_epi64, _mm512_slli_epi64};
            use std::mem::transmute_copy as seen;
            let (low, high) = SIXTEENTHS.split_at(8);
            // SAFETY: as in `lanewise`; `low` and `high` have eight entries each.
            return unsafe {
                let (low, high) = (low.as_ptr().cast::<[u64; 8]>(), high.as_ptr().cast::<[u64; 8]>());
                let own = _mm512_permutex2var_epi64(seen(&*low), seen(&self), seen(&*high));
                seen(&_mm512_add_epi64(own, _mm512_slli_epi64::<48>(seen(&self))))
            };
        }
        Lanes::of(self.0.map(|v| {
            let bits = v.to_bits();
            f64::from_bits(SIXTEENTHS[bits as usize % 16].wrapping_add(bits << 48))
        }))
    }

    /// Σ over the lanes, in order. It needs no vector instructions, and may be used anywhere.
    pub fn sum(self) -> f64 {
        self.0.iter().sum()
    }

    /// Σ over the lanes, half by half.
    #[inline(always)]
    pub fn fold(self) -> f64 {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::*;
            use std::mem::transmute_copy as seen;
            // SAFETY: as in `lanewise`.
            let four: Option<__m256d> = unsafe {
                match (I::REGISTERS, L) {
                    (Registers::Avx512, 8) => {
                        let all: __m512d = seen(&self);
                        Some(_mm256_add_pd(_mm512_castpd512_pd256(all), _mm512_extractf64x4_pd::<1>(all)))
                    }
                    (Registers::Avx512 | Registers::Avx2, 4) => Some(seen(&self)),
                    _ => None,
                }
            };
            if let Some(four) = four {
                // SAFETY: as in `lanewise`.
                return unsafe {
                    let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
                    _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
                };
            }
        }
        self.0.iter().sum()
    }
}

impl<I: Instructions, const L: usize> Mul<f64> for Lanes<I, L> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, by: f64) -> Self {
        self * Self::all(by)
    }
}

impl<I: Instructions, const L: usize> Neg for Lanes<I, L> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self * -1.0
    }
}

impl<I: Instructions, const L: usize> AddAssign for Lanes<I, L> {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl<I: Instructions, const L: usize> SubAssign for Lanes<I, L> {
    #[inline(always)]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl<I: Instructions, const L: usize> Numbers for Lanes<I, L> {
    const SIZE: usize = L;
    #[inline(always)]
    fn read(numbers: &[f64]) -> &[Self] {
        let arrays = numbers.as_chunks::<L>().0;
        // SAFETY: `Lanes` is a transparent wrapper of such an array.
        unsafe { std::slice::from_raw_parts(arrays.as_ptr().cast(), arrays.len()) }
    }
    #[inline(always)]
    fn read_mut(numbers: &mut [f64]) -> &mut [Self] {
        let arrays = numbers.as_chunks_mut::<L>().0;
        // SAFETY: `Lanes` is a transparent wrapper of such an array.
        unsafe { std::slice::from_raw_parts_mut(arrays.as_mut_ptr().cast(), arrays.len()) }
    }
}

/// Plain data made of numbers: a slice of numbers can be read as a slice of it.
pub(crate) trait Numbers: Copy {
    /// How many numbers it is made of.
    const SIZE: usize;
    fn read(numbers: &[f64]) -> &[Self];
    fn read_mut(numbers: &mut [f64]) -> &mut [Self];
}

impl Numbers for f64 {
    const SIZE: usize = 1;
    #[inline(always)]
    fn read(numbers: &[f64]) -> &[f64] {
        numbers
    }
    #[inline(always)]
    fn read_mut(numbers: &mut [f64]) -> &mut [f64] {
        numbers
    }
}

impl<T: Numbers, const K: usize> Numbers for [T; K] {
    const SIZE: usize = K * T::SIZE;
    #[inline(always)]
    fn read(numbers: &[f64]) -> &[[T; K]] {
        T::read(numbers).as_chunks().0
    }
    #[inline(always)]
    fn read_mut(numbers: &mut [f64]) -> &mut [[T; K]] {
        T::read_mut(numbers).as_chunks_mut().0
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Laned, in_lanes};
    use super::*;

    struct Roots<'a>(&'a mut [f64]);

    impl Laned for Roots<'_> {
        type Out = ();
        #[inline(always)]
        fn run<I: Instructions, const L: usize>(self) {
            Lanes::<I, L>::read_mut(self.0).iter_mut().for_each(|x| *x = x.root());
        }
    }

    #[test]
    fn roots_are_within_an_ulp() {
        let wide = (-1400..1400)
            .flat_map(|e| (0..40).map(move |i| (0.5 * f64::from(e)).exp2() * (1.0 + 0.025 * f64::from(i))));
        let ends = [
            0.0,
            -0.0,
            f64::INFINITY,
            f64::MAX,
            f64::MIN_POSITIVE,
            5e-324,
            1e-310,
            3e-320,
            1e-300,
            3e-308,
            4.0,
            1.0,
        ];
        let mut x: Vec<f64> = wide.chain(ends).collect();
        x.resize(x.len().next_multiple_of(8), 2.0);
        let mut roots = x.clone();
        in_lanes(Roots(&mut roots));
        for (x, root) in x.iter().zip(roots) {
            let truth = x.sqrt();
            if *x > 0.0 && *x < f64::MIN_POSITIVE {
                assert!((root - truth).abs() < 1e-8 * truth, "{x:e}: {root:e} {truth:e}");
                continue;
            }
            assert!(
                root == truth || (root - truth).abs() <= truth.next_up() - truth,
                "{x:e}: {root:e} {truth:e}"
            );
        }
        let mut none = [f64::NAN, -1.0, f64::NEG_INFINITY, f64::from_bits(0x7FF0_0000_0000_07A2)].repeat(2);
        in_lanes(Roots(&mut none));
        assert!(none.iter().all(|v| v.is_nan()), "{none:?}");
    }

    struct Arithmetic([[f64; 8]; 3]);

    /// What every operation gives, beside plain numbers.
    impl Laned for Arithmetic {
        type Out = ();
        #[inline(always)]
        fn run<I: Instructions, const L: usize>(self) {
            let of = |k: usize| Lanes::<I, L>::of(std::array::from_fn(|l| self.0[k][l]));
            let (a, b, c) = (of(0), of(1), of(2));
            let all = |found: Lanes<I, L>, plain: &dyn Fn(f64, f64, f64) -> f64| {
                for l in 0..L {
                    let expected = plain(a.0[l], b.0[l], c.0[l]);
                    assert!(
                        (found.0[l] - expected).abs() <= 1e-15 * expected.abs().max(1.0),
                        "{l}: {expected}"
                    );
                }
            };
            all(a + b, &|a, b, _| a + b);
            all(a - b, &|a, b, _| a - b);
            all(a * b, &|a, b, _| a * b);
            all(a / b, &|a, b, _| a / b);
            all(-a, &|a, _, _| -a);
            all(a * 3.0, &|a, _, _| 3.0 * a);
            all(a.mul_add(b, c), &|a, b, c| a * b + c);
            all(a.neg_mul_add(b, c), &|a, b, c| c - a * b);
            all(a.max(b), &|a, b, _| a.max(b));
            all(a.min(b), &|a, b, _| a.min(b));
            all((a * a).sqrt(), &|a, _, _| a.abs());
            all((a * a).root(), &|a, _, _| a.abs());
            let bits = Lanes::<I, L>::all(f64::from_bits(1023 + 5));
            all(bits.power_of_low_bits(), &|_, _, _| 32.0);
            for j in 0..16 {
                let bits = Lanes::<I, L>::all(f64::from_bits(((1023 - 3) << 4) + j));
                all(bits.power_of_low_sixteenths(), &|_, _, _| (j as f64 / 16.0 - 3.0).exp2());
            }
            assert!((a.fold() - a.sum()).abs() < 1e-14);
            let nan = Lanes::<I, L>::all(f64::NAN);
            all(nan.max(a), &|a, _, _| a);
            assert!(a.max(nan).0[0].is_nan() && a.min(nan).0[L - 1].is_nan());
        }
    }

    #[test]
    fn registers_do_what_numbers_do() {
        in_lanes(Arithmetic(std::array::from_fn(|k| {
            std::array::from_fn(|l| ((3 * k + 7 * l) as f64 + 0.5).sin() + 0.1)
        })));
    }
}
