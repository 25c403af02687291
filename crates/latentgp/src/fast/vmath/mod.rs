//! Vector registers, the choice of instructions at run time, and elementary functions.
//!
//! A loop written as a [`Vectorized`], or as a [`Laned`] where it needs to know how many numbers a register
//! holds, is compiled once for each instruction set; [`vectorize`] and [`in_lanes`] run the widest that the
//! machine has, and give the loop its name as a type, [`Instructions`]. Exponentials, logarithms, and sine and cosine of πu, are within 2 ulp on every path, 2^y − 1 within 3.

mod exp2;
mod instructions;
mod lanes;

pub(crate) use exp2::{exp2_decay_lanes, exp2_decays, exp2_m1_lanes};
pub(crate) use instructions::{Instructions, Laned, Portable, Vectorized, in_lanes, vectorize};
pub(crate) use lanes::{Lanes, Numbers};

use std::ops::Range;

/// Consecutive groups of at most `most` indices.
pub(crate) fn groups(all: Range<usize>, most: usize) -> impl Iterator<Item = Range<usize>> {
    let end = all.end;
    all.step_by(most).map(move |from| from..(from + most).min(end))
}

/// Consecutive groups of at most `most` indices, with about as many each.
pub(crate) fn even_groups(all: Range<usize>, most: usize) -> impl Iterator<Item = Range<usize>> {
    let count = all.len().div_ceil(most).max(1);
    let each = all.len().div_ceil(count).max(1);
    groups(all, each)
}

/// The numbers in a cache line of most machines.
pub(crate) const CACHE_LINE: usize = 8;

/// Prefetches the cache line of number `at`, counted from the first; it may be beyond the last.
#[inline(always)]
pub(crate) fn prefetch<T>(numbers: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint that is allowed for any address, and `wrapping_add` is too.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(numbers.as_ptr().cast::<f64>().wrapping_add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (numbers, at);
}

/// a·b + c, fused where that is one instruction.
#[inline(always)]
pub(crate) fn fma<I: Instructions>(a: f64, b: f64, c: f64) -> f64 {
    if I::FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// x = k ln 2 + r, |r| ≤ ½ ln 2, and e^r = 1 + r + r² (even + r odd): what all powers of e are made of.
///
/// The polynomial, of degree 9, goes through (e^r − 1 − r)/r² at the Chebyshev points: 2·10⁻¹⁷ off at the most. Its even and
/// odd terms are summed apart, a chain half as long.
struct Split {
    /// k + 1023, in its low bits: those of the exponent of 2^k.
    k: u64,
    r: f64,
    r2: f64,
    even: f64,
    odd: f64,
}

/// Adding 1.5 · 2⁵² rounds to an integer in the low bits, which 1023 makes the exponent of a power of 2.
const ROUND: f64 = 6_755_399_441_055_744.0 + 1023.0;

/// ln 2: the first has so few digits that its products with exponents are exact.
const LN2_HI: f64 = 6.931_471_803_691_238e-1;
const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;

#[inline(always)]
fn split_exp<I: Instructions>(x: f64) -> Split {
    let shifted = fma::<I>(x, std::f64::consts::LOG2_E, ROUND);
    let k = shifted - ROUND;
    let r = fma::<I>(k, -LN2_LO, fma::<I>(k, -LN2_HI, x));
    let r2 = r * r;
    let even = sum_powers::<I, 5>(
        r2,
        &[
            5.000_000_000_000_001e-1,
            4.166_666_666_662_399e-2,
            1.388_888_891_728_179_4e-3,
            2.480_152_119_021_773e-5,
            2.762_013_871_973_400_4e-7,
        ],
    );
    let odd = sum_powers::<I, 5>(
        r2,
        &[
            1.666_666_666_666_666_9e-1,
            8.333_333_333_330_051e-3,
            1.984_126_986_310_596_8e-4,
            2.755_726_837_868_419_2e-6,
            2.510_042_415_700_507_3e-8,
        ],
    );
    Split { k: shifted.to_bits(), r, r2, even, odd }
}

/// x clamped to where 2^(k−1) is finite, so that nothing overflows before the result does. NaN stays NaN.
#[inline(always)]
fn within(x: f64) -> f64 {
    let x = if LEAST > x { LEAST } else { x };
    if MOST < x { MOST } else { x }
}

/// Below this exp x is 0, as e^x would soon have fewer digits.
const LEAST: f64 = -708.0;
/// Above this exp x is ∞.
const MOST: f64 = 709.79;

/// exp x; 0 below −708, ∞ above 709.78.
#[inline(always)]
pub(crate) fn exp<I: Instructions>(x: f64) -> f64 {
    let Split { k, r, r2, even, odd } = split_exp::<I>(within(x));
    let rest = r * fma::<I>(even, r, fma::<I>(odd, r2, 1.0));
    let half = f64::from_bits(k.wrapping_sub(1) << 52);
    let value = 2.0 * fma::<I>(half, rest, half);
    if x < LEAST { 0.0 } else { value }
}

/// Below this 2^y is taken for 2⁻¹⁰²¹, which is negligible.
pub(crate) const EXP2_LEAST: f64 = -1021.0;
/// 2^f = 1 + f Σ c_k fᵏ for |f| ≤ ½: the sum goes through (2^f − 1)/f at the Chebyshev points, and 2^f is 2·10⁻¹⁷ off at the
/// most.
const EXP2: [f64; 11] = [
    std::f64::consts::LN_2,
    2.402_265_069_591_009_7e-1,
    5.550_410_866_482_16e-2,
    9.618_129_107_606_888e-3,
    1.333_355_814_641_693_6e-3,
    1.540_353_044_173_605e-4,
    1.525_273_382_983_612e-5,
    1.321_544_258_792_169e-6,
    1.017_806_244_584_577_4e-7,
    7.072_585_949_269_223e-9,
    4.454_960_598_186_518_6e-10,
];

/// 2^y for y ≤ 0, 2⁻¹⁰²¹ below −1021: cheaper than exp, which has to split x first. Even and odd terms are summed apart.
#[inline(always)]
pub(crate) fn exp2_decay<I: Instructions>(y: f64) -> f64 {
    let y = if EXP2_LEAST > y { EXP2_LEAST } else { y };
    let shifted = y + ROUND;
    let f = y - (shifted - ROUND);
    let f2 = f * f;
    let odd = sum_powers::<I, 6>(f2, &std::array::from_fn(|k| EXP2[2 * k]));
    let even = sum_powers::<I, 5>(f2, &std::array::from_fn(|k| EXP2[2 * k + 1]));
    fma::<I>(fma::<I>(even, f, odd), f, 1.0) * f64::from_bits(shifted.to_bits() << 52)
}

/// Above this 2^y is 2¹⁰²³.
const EXP2_MOST: f64 = 1023.0;

/// 2^y − 1, with all its digits where y is small; 2¹⁰²³ above 1023.
#[inline(always)]
pub(crate) fn exp2_m1<I: Instructions>(y: f64) -> f64 {
    let y = if EXP2_LEAST > y { EXP2_LEAST } else { y };
    let y = if EXP2_MOST < y { EXP2_MOST } else { y };
    let shifted = y + ROUND;
    let f = y - (shifted - ROUND);
    let power = f64::from_bits(shifted.to_bits() << 52);
    fma::<I>(f * sum_powers::<I, 11>(f, &EXP2), power, power - 1.0)
}

/// Σ c_k xᵏ.
#[inline(always)]
fn sum_powers<I: Instructions, const K: usize>(x: f64, c: &[f64; K]) -> f64 {
    c[..K - 1].iter().rev().fold(c[K - 1], |sum, c| fma::<I>(sum, x, *c))
}

/// (sin πu, cos πu), for every u: with q the integer nearest 2u, f = u − q/2 is exact and |f| ≤ ¼, where the
/// series to f¹⁷ and f¹⁶ suffice; q mod 4 then swaps and negates. Beyond 2⁵³ every u is an even integer.
#[inline(always)]
pub(crate) fn sin_cos_pi<I: Instructions>(u: f64) -> (f64, f64) {
    const EVEN: f64 = 9_007_199_254_740_992.0;
    const PI_LO: f64 = 1.224_646_799_147_353_2e-16;
    // 0 for a large u; an infinite one becomes NaN.
    let u = if u.abs() >= EVEN { 0.0 * u } else { u };
    let q = (2.0 * u).round_ties_even();
    let f = fma::<I>(q, -0.5, u);
    let f2 = f * f;
    let mut s = 7.952_054_001_475_513e-7;
    for c in [
        -2.191_535_344_783_021_7e-5,
        4.663_028_057_676_125_5e-4,
        -7.370_430_945_714_35e-3,
        8.214_588_661_112_823e-2,
        -5.992_645_293_207_921e-1,
        2.550_164_039_877_345_5,
        -5.167_712_780_049_97,
        PI_LO,
    ] {
        s = fma::<I>(s, f2, c);
    }
    let s = fma::<I>(f, std::f64::consts::PI, f * s);
    let mut c = 4.303_069_587_032_947e-6;
    for d in [
        -1.046_381_049_248_457e-4,
        1.929_574_309_403_923e-3,
        -2.580_689_139_001_406e-2,
        2.353_306_303_588_932e-1,
        -1.335_262_768_854_589_5,
        4.058_712_126_416_768_5,
        -4.934_802_200_544_679,
        1.0,
    ] {
        c = fma::<I>(c, f2, d);
    }
    let quadrant = fma::<I>((0.25 * q).round_ties_even(), -4.0, q);
    let odd = quadrant.abs() == 1.0;
    let half_turn = quadrant.abs() == 2.0;
    let (sin, cos) = if odd { (c, s) } else { (s, c) };
    let sin = if half_turn || quadrant == -1.0 { -sin } else { sin };
    let cos = if half_turn || quadrant == 1.0 { -cos } else { cos };
    (sin, cos)
}

/// Converts an integer below 2⁵² by way of the low bits of 2⁵², which every machine does for a whole register.
#[inline(always)]
pub(crate) fn from_low_bits(integer: u64) -> f64 {
    const POWER: f64 = 4_503_599_627_370_496.0;
    f64::from_bits(integer | POWER.to_bits()) - POWER
}

/// ln x of a normal number above 0: x = 2^k m with m from √½ to √2, and with s = (m − 1)/(m + 1)
/// ln m = 2 artanh s = 2s (1 + s² Σ c_k s²ᵏ). The sum goes through that function at the Chebyshev points: 5·10⁻¹⁸ off at the most.
#[inline(always)]
pub(crate) fn ln<I: Instructions>(x: f64) -> f64 {
    const ROOT_HALF: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    const ONE: u64 = 1.0f64.to_bits();
    const C: [f64; 7] = [
        3.333_333_333_333_335e-1,
        1.999_999_999_994_975_2e-1,
        1.428_571_431_298_774_3e-1,
        1.111_110_556_739_754e-1,
        9.091_444_562_630_861e-2,
        7.665_860_800_278_021e-2,
        7.308_224_842_521_703e-2,
    ];
    let exponent = x.to_bits().wrapping_sub(ROOT_HALF).wrapping_add(ONE) >> 52;
    let m = f64::from_bits(x.to_bits().wrapping_sub(exponent << 52).wrapping_add(ONE));
    let k = from_low_bits(exponent) - 1023.0;
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let twice = 2.0 * s;
    let rest = twice * s2 * sum_powers::<I, 7>(s2, &C);
    fma::<I>(k, LN2_HI, twice + fma::<I>(k, LN2_LO, rest))
}

/// Σ ln x of numbers above 0: mantissas are multiplied and exponents added, and few logarithms are taken.
#[derive(Clone, Copy)]
pub(crate) struct LnSum {
    mantissas: [f64; LnSum::LANES],
    exponents: [i64; LnSum::LANES],
    count: usize,
    sum: f64,
}

impl LnSum {
    pub const LANES: usize = 8;
    /// A product of this many numbers below 2 does not overflow.
    const MAX_FACTORS: usize = 512;

    pub fn new() -> Self {
        LnSum { mantissas: [1.0; Self::LANES], exponents: [0; Self::LANES], count: 0, sum: 0.0 }
    }

    #[inline(always)]
    pub fn add(&mut self, x: [f64; Self::LANES]) {
        const FRACTION: u64 = (1 << 52) - 1;
        if !x.iter().all(|x| (f64::MIN_POSITIVE..f64::INFINITY).contains(x)) {
            self.sum += x.iter().map(|x| x.ln()).sum::<f64>();
            return;
        }
        for i in 0..Self::LANES {
            let bits = x[i].to_bits();
            self.mantissas[i] *= f64::from_bits(bits & FRACTION | 1.0f64.to_bits());
            self.exponents[i] += (bits >> 52) as i64 - 1023;
        }
        self.count += 1;
        if self.count == Self::MAX_FACTORS {
            *self = LnSum { sum: self.total(), ..Self::new() };
        }
    }

    pub fn total(&self) -> f64 {
        let exponents: i64 = self.exponents.iter().sum();
        let mantissas: f64 = self.mantissas.iter().map(|m| m.ln()).sum();
        self.sum + std::f64::consts::LN_2 * exponents as f64 + mantissas
    }
}

struct Exp<'a>(&'a mut [f64]);

impl Vectorized for Exp<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions>(self) {
        for x in self.0.iter_mut() {
            *x = exp::<I>(*x);
        }
    }
}

/// x ← exp x for every entry.
pub(crate) fn exp_in_place(x: &mut [f64]) {
    vectorize(Exp(x));
}

#[cfg(test)]
mod tests {
    use super::instructions::PortableFused;
    use super::*;

    #[test]
    fn exp_is_within_two_ulp() {
        let mut worst = 0.0f64;
        let xs: Vec<f64> = (0..200_000).map(|i| -708.0 + 1417.7 * i as f64 / 199_999.0).collect();
        let mut ours = xs.clone();
        exp_in_place(&mut ours);
        for (x, y) in xs.iter().zip(&ours) {
            let truth = x.exp();
            let portable = exp::<Portable>(*x);
            let ulp = (truth.next_up() - truth).max(f64::MIN_POSITIVE);
            worst = worst.max((y - truth).abs() / ulp).max((portable - truth).abs() / ulp);
        }
        assert!(worst <= 2.0, "{worst} ulp");
    }

    #[test]
    fn powers_of_two_are_within_two_ulp() {
        let mut worst = 0.0f64;
        for i in 0..200_000 {
            let y = -1021.0 * i as f64 / 199_999.0;
            let truth = y.exp2();
            for ours in [exp2_decay::<PortableFused>(y), exp2_decay::<Portable>(y)] {
                worst = worst.max((ours - truth).abs() / (truth.next_up() - truth));
            }
        }
        assert!(worst <= 2.0, "{worst} ulp");
        for (y, truth) in [(0.0, 1.0), (-0.0, 1.0), (-1.0, 0.5), (-1021.0, 2f64.powi(-1021))] {
            assert_eq!(exp2_decay::<PortableFused>(y), truth);
        }
        assert!(
            exp2_decay::<PortableFused>(f64::NEG_INFINITY) < 1e-307
                && exp2_decay::<Portable>(-1e300) < 1e-307
        );
        for bits in [f64::NAN.to_bits(), 0x7FF0_0000_0000_07A2, 0x7FF8_0000_0000_0001, u64::MAX] {
            assert!(exp2_decay::<PortableFused>(f64::from_bits(bits)).is_nan());
        }
    }

    #[test]
    fn logarithms_are_summed() {
        let x: Vec<[f64; LnSum::LANES]> = (0..3000)
            .map(|k| std::array::from_fn(|i| 10f64.powf(40.0 * ((k * LnSum::LANES + i) as f64).sin())))
            .collect();
        let mut sum = LnSum::new();
        x.iter().for_each(|x| sum.add(*x));
        let slow: f64 = x.as_flattened().iter().map(|x| x.ln()).sum();
        assert!((sum.total() - slow).abs() < 1e-9, "{} against {slow}", sum.total());
        for odd in [5e-324, f64::INFINITY, f64::NAN, 0.0, -1.0] {
            let (mut sum, mut x) = (LnSum::new(), [1.0; LnSum::LANES]);
            x[3] = odd;
            sum.add(x);
            let (ours, truth) = (sum.total(), odd.ln());
            assert!(ours == truth || ours.is_nan() && truth.is_nan(), "{odd}: {ours}");
        }
    }

    #[test]
    fn exp_at_the_ends() {
        let mut x = [0.0, -0.0, -1e300, f64::NEG_INFINITY, 1e300, f64::INFINITY, -709.0, 709.783];
        exp_in_place(&mut x);
        let inf = f64::INFINITY;
        assert_eq!(x, [1.0, 1.0, 0.0, 0.0, inf, inf, 0.0, inf]);
        let mut nan = [f64::NAN];
        exp_in_place(&mut nan);
        assert!(nan[0].is_nan());
        // Any NaN: the missing value of R has bits of its own.
        for bits in [f64::NAN.to_bits(), 0x7FF0_0000_0000_07A2, 0x7FF8_0000_0000_0001, u64::MAX] {
            let nan = f64::from_bits(bits);
            assert!([exp::<Portable>(nan), exp::<PortableFused>(nan)].iter().all(|v| v.is_nan()));
        }
    }

    #[test]
    fn logarithms_are_within_two_ulp() {
        let mut worst = 0.0f64;
        let near = (0..20_000).map(|i| 0.5 + 1e-4 * f64::from(i));
        let wide = (0..20_000).map(|i| (0.07 * f64::from(i - 10_000)).exp());
        let least =
            [f64::MIN_POSITIVE, f64::MAX, 0.5 / 4_294_967_296.0, 1.0 - f64::EPSILON, 1.0 + f64::EPSILON];
        for x in near.chain(wide).chain(least).filter(|x| *x != 1.0) {
            let truth = x.ln();
            for ours in [ln::<PortableFused>(x), ln::<Portable>(x)] {
                worst = worst.max((ours - truth).abs() / (truth.abs().next_up() - truth.abs()));
            }
        }
        assert!(worst <= 2.0, "{worst} ulp");
        assert_eq!([ln::<PortableFused>(1.0), ln::<Portable>(1.0)], [0.0; 2]);
    }

    /// sin πf and cos πf for |f| ≤ ¼, with the rounding of πf carried along to first order.
    fn truth(f: f64) -> (f64, f64) {
        let t = std::f64::consts::PI * f;
        let low = std::f64::consts::PI.mul_add(f, -t) + 1.224_646_799_147_353_2e-16 * f;
        (t.sin() + low * t.cos(), t.cos() - low * t.sin())
    }

    #[test]
    fn sine_and_cosine_of_pi_u_are_within_two_ulp() {
        let ulps = |a: f64, b: f64| (a - b).abs() / (b.abs().next_up() - b.abs());
        let mut worst = 0.0f64;
        for i in 0..100_001 {
            let f = -0.25 + 0.5 * i as f64 / 100_000.0;
            let (sin, cos) = truth(f);
            // Whole quarter turns added to f leave a number with fewer bits, whose own f is exact.
            for quarters in [0.0, 1.0, 2.0, 3.0, -1.0, -2.0, 1001.0] {
                let u = f + 0.5 * quarters;
                let (sin, cos) = if quarters == 0.0 { (sin, cos) } else { truth(u - 0.5 * quarters) };
                let (sin, cos) = match (quarters as i64).rem_euclid(4) {
                    0 => (sin, cos),
                    1 => (cos, -sin),
                    2 => (-sin, -cos),
                    _ => (-cos, sin),
                };
                for (s, c) in [sin_cos_pi::<PortableFused>(u), sin_cos_pi::<Portable>(u)] {
                    worst = worst.max(ulps(s, sin)).max(ulps(c, cos));
                }
            }
        }
        assert!(worst <= 2.0, "{worst} ulp");
    }

    #[test]
    fn sine_and_cosine_at_the_ends() {
        assert_eq!(sin_cos_pi::<Portable>(0.0), (0.0, 1.0));
        assert_eq!(sin_cos_pi::<Portable>(0.5), (1.0, 0.0));
        assert_eq!(sin_cos_pi::<Portable>(4_503_599_627_370_497.0), (0.0, -1.0));
        assert_eq!(sin_cos_pi::<PortableFused>(-1e300), (0.0, 1.0));
        assert_eq!(sin_cos_pi::<PortableFused>(f64::MAX), (0.0, 1.0));
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let (s, c) = sin_cos_pi::<PortableFused>(bad);
            assert!(s.is_nan() && c.is_nan());
        }
    }
}
