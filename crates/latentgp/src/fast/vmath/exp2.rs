//! Powers of two, with AVX2 and AVX-512 of four registers at a time.
//!
//! A polynomial is a chain of operations that each wait for the one before. Four interleaved chains take little longer than one,
//! as each fills the waiting times of the others. Compilers tend to undo the interleaving; an empty assembly block after each
//! step, which takes all four registers, keeps it. Other machines take a plain loop.

use super::instructions::{Instructions, Registers};
use super::lanes::{Lanes, Numbers};
use super::{EXP2, EXP2_LEAST, EXP2_MOST, ROUND, exp2_decay, exp2_m1};

/// The number of interleaved registers.
const INTERLEAVED: usize = 4;

/// y ← 2^y for y ≤ 0: [`exp2_decay`], but for rounding. The result depends neither on how many numbers there are nor on their
/// order.
#[inline(always)]
pub(crate) fn exp2_decays<I: Instructions, const L: usize>(y: &mut [f64]) {
    each::<I, L, false>(y);
}

/// [`exp2_decays`] of registers.
#[inline(always)]
pub(crate) fn exp2_decay_lanes<I: Instructions, const L: usize>(y: &mut [Lanes<I, L>]) {
    each_lanes::<I, L, false>(y);
}

/// y ← 2^y − 1 of registers: [`exp2_m1`], but for rounding; see [`exp2_decays`].
#[inline(always)]
pub(crate) fn exp2_m1_lanes<I: Instructions, const L: usize>(y: &mut [Lanes<I, L>]) {
    each_lanes::<I, L, true>(y);
}

#[inline(always)]
fn each<I: Instructions, const L: usize, const LESS_ONE: bool>(y: &mut [f64]) {
    let whole = y.len() - y.len() % L;
    let (whole, rest) = y.split_at_mut(whole);
    each_lanes::<I, L, LESS_ONE>(Lanes::read_mut(whole));
    if !rest.is_empty() {
        let mut last = [Lanes::<I, L>::ZERO];
        last[0].0[..rest.len()].copy_from_slice(rest);
        each_lanes::<I, L, LESS_ONE>(&mut last);
        rest.copy_from_slice(&last[0].0[..rest.len()]);
    }
}

#[inline(always)]
fn each_lanes<I: Instructions, const L: usize, const LESS_ONE: bool>(y: &mut [Lanes<I, L>]) {
    let (fours, rest) = y.as_chunks_mut::<INTERLEAVED>();
    for four in fours {
        exp2::<I, L, LESS_ONE, INTERLEAVED>(four);
    }
    for one in rest.as_chunks_mut::<1>().0 {
        exp2::<I, L, LESS_ONE, 1>(one);
    }
}

/// 2^y, for y ≤ 0; or 2^y − 1, for any.
#[inline(always)]
fn exp2<I: Instructions, const L: usize, const LESS_ONE: bool, const K: usize>(y: &mut [Lanes<I, L>; K]) {
    if matches!(I::REGISTERS, Registers::Any) {
        for y in y {
            for l in 0..L {
                y.0[l] = if LESS_ONE { exp2_m1::<I>(y.0[l]) } else { exp2_decay::<I>(y.0[l]) };
            }
        }
        return;
    }
    if L == 8 && !LESS_ONE {
        return exp2_of_sixteenths(y);
    }
    let all = Lanes::<I, L>::all;
    let (mut f, mut powers, mut sums) = ([all(0.0); K], [all(0.0); K], [all(EXP2[EXP2.len() - 1]); K]);
    for i in 0..K {
        // `max` takes its argument where either is NaN.
        let own = all(EXP2_LEAST).max(y[i]);
        let own = if LESS_ONE { all(EXP2_MOST).min(own) } else { own };
        let shifted = own + all(ROUND);
        f[i] = own - (shifted - all(ROUND));
        powers[i] = shifted.power_of_low_bits();
    }
    for k in (0..EXP2.len() - 1).rev() {
        for i in 0..K {
            sums[i] = sums[i].mul_add(f[i], all(EXP2[k]));
        }
        interleave(&mut sums);
    }
    for i in 0..K {
        y[i] = match LESS_ONE {
            true => (sums[i] * f[i]).mul_add(powers[i], powers[i] - all(1.0)),
            false => sums[i].mul_add(f[i], all(1.0)) * powers[i],
        };
    }
}

/// 2^f = 1 + f Σ c_k fᵏ for |f| ≤ 1/32: the sum goes through (2^f − 1)/f at the Chebyshev points, and 2^f is 2·10⁻¹⁷ off at the
/// most.
const EXP2_SMALL: [f64; 6] = [
    6.931_471_805_599_457e-1,
    2.402_265_069_591_007_5e-1,
    5.550_410_865_663_93e-2,
    9.618_129_106_919_537e-3,
    1.333_378_157_678_426_8e-3,
    1.540_372_398_074_925_6e-4,
];

/// Adding 1.5 · 2⁴⁸ rounds to sixteenths; the last four bits are those of the fraction.
const ROUND_SIXTEENTHS: f64 = 422_212_465_065_984.0 + 1023.0;

/// 2^y, for y ≤ 0: the power of the nearest sixteenth, which a machine of eight lanes looks up in two registers, times that of
/// the rest, for which half the polynomial is enough.
#[inline(always)]
fn exp2_of_sixteenths<I: Instructions, const L: usize, const K: usize>(y: &mut [Lanes<I, L>; K]) {
    let all = Lanes::<I, L>::all;
    let (mut f, mut powers) = ([all(0.0); K], [all(0.0); K]);
    let mut sums = [all(EXP2_SMALL[EXP2_SMALL.len() - 1]); K];
    for i in 0..K {
        // `max` takes its argument where either is NaN.
        let own = all(EXP2_LEAST).max(y[i]);
        let shifted = own + all(ROUND_SIXTEENTHS);
        f[i] = own - (shifted - all(ROUND_SIXTEENTHS));
        powers[i] = shifted.power_of_low_sixteenths();
    }
    for k in (0..EXP2_SMALL.len() - 1).rev() {
        for i in 0..K {
            sums[i] = sums[i].mul_add(f[i], all(EXP2_SMALL[k]));
        }
        interleave(&mut sums);
    }
    for i in 0..K {
        y[i] = (sums[i] * f[i]).mul_add(powers[i], powers[i]);
    }
}

/// Keeps four registers interleaved: all of them are needed at this point. Does nothing for other numbers of them.
#[inline(always)]
fn interleave<I: Instructions, const L: usize, const K: usize>(registers: &mut [Lanes<I, L>; K]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in `lanewise` of `Lanes`: both sides have K · L numbers, and `I` proves the registers.
    unsafe {
        use std::mem::transmute_copy as seen;
        match (I::REGISTERS, K, L) {
            (Registers::Avx512, INTERLEAVED, 8) => *registers = seen(&x86::interleave_wide(seen(registers))),
            (Registers::Avx512 | Registers::Avx2, INTERLEAVED, 4) => {
                *registers = seen(&x86::interleave(seen(registers)));
            }
            _ => {}
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::{__m256d, __m512d};

    macro_rules! interleave {
        ($name:ident, $register:ty, $class:ident, $features:literal) => {
            #[inline]
            #[target_feature(enable = $features)]
            pub fn $name([mut a, mut b, mut c, mut d]: [$register; 4]) -> [$register; 4] {
                // SAFETY: the assembly has no instruction.
                unsafe {
                    asm!(
                        "/* {} {} {} {} */",
                        inout($class) a,
                        inout($class) b,
                        inout($class) c,
                        inout($class) d,
                        options(pure, nomem, nostack, preserves_flags)
                    );
                }
                [a, b, c, d]
            }
        };
    }
    interleave!(interleave, __m256d, ymm_reg, "avx2,fma");
    interleave!(interleave_wide, __m512d, zmm_reg, "avx512f");
}

#[cfg(test)]
mod tests {
    use super::super::instructions::PortableFused;
    use super::super::{Laned, Portable, in_lanes};
    use super::*;

    /// 2^y, or 2^y − 1.
    struct Powers<'a, const LESS_ONE: bool>(&'a mut [f64]);

    impl<const LESS_ONE: bool> Laned for Powers<'_, LESS_ONE> {
        type Out = ();
        #[inline(always)]
        fn run<I: Instructions, const L: usize>(self) {
            each::<I, L, LESS_ONE>(self.0);
        }
    }

    #[test]
    fn powers_less_one_keep_their_digits() {
        let wide = (0..4001).map(|i| f64::from(i - 2000) * 0.4987);
        let small = (0..4001).flat_map(|i| [1e-3, 1e-9, 1e-300].map(|by| by * f64::from(i - 2000)));
        let y: Vec<f64> = wide.chain(small).collect();
        let mut fast = y.clone();
        in_lanes(Powers::<true>(&mut fast));
        for (y, fast) in y.iter().zip(fast) {
            // y ln 2, with what its rounding loses to first order.
            let (ln_2, low) = (std::f64::consts::LN_2, 2.319_046_813_846_3e-17);
            let t = y * ln_2;
            let truth = t.exp_m1() + (y.mul_add(ln_2, -t) + y * low) * t.exp();
            for ours in [fast, exp2_m1::<PortableFused>(*y), exp2_m1::<Portable>(*y)] {
                let ulp = truth.abs().next_up() - truth.abs();
                assert!((ours - truth).abs() <= 3.0 * ulp, "{y}: {ours:e} {truth:e}");
            }
        }
        let mut ends = [0.0, -0.0, -1e300, f64::NEG_INFINITY, 1e300, f64::INFINITY, f64::NAN, 1.0];
        in_lanes(Powers::<true>(&mut ends));
        assert_eq!((ends[..4].to_vec(), ends[7]), (vec![0.0, 0.0, -1.0, -1.0], 1.0));
        assert!(ends[4] > 1e307 && ends[5] > 1e307 && ends[6].is_nan());
    }

    fn powers(y: &[f64]) -> Vec<f64> {
        let mut y = y.to_vec();
        in_lanes(Powers::<false>(&mut y));
        y
    }

    #[test]
    fn powers_are_within_two_ulp_in_any_order() {
        let y: Vec<f64> = (0..40_000).map(|i| -1021.0 * i as f64 / 39_999.0).collect();
        let whole = powers(&y);
        for (y, power) in y.iter().zip(&whole) {
            let truth = y.exp2();
            assert!((power - truth).abs() <= 2.0 * (truth.next_up() - truth), "{y}");
        }
        for len in 0..=70 {
            for from in [0, 8, 9] {
                assert_eq!(powers(&y[from..from + len]), whole[from..from + len], "{len} from {from}");
            }
        }
    }

    #[test]
    fn powers_at_the_ends() {
        let mut y = [0.0, -0.0, -1.0, -1021.0, -1e300, f64::NEG_INFINITY, f64::NAN, -0.5];
        y[6] = f64::from_bits(0x7FF0_0000_0000_07A2);
        let powers = powers(&y);
        assert_eq!(powers[..4], [1.0, 1.0, 0.5, 2f64.powi(-1021)]);
        assert!(powers[4] < 1e-307 && powers[5] < 1e-307 && powers[6].is_nan());
    }
}
