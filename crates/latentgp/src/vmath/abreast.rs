//! Powers of two, with AVX2 of four registers abreast.
//!
//! A polynomial is a chain of steps that each wait for the one before. Taken one register after the other, those that wait
//! fill the machine's queues; four chains go side by side in the time of little more than one. The compiler would order the
//! steps its own way: after each of them, an assembly of no instructions needs all four. Other machines take a plain loop.

use super::{exp2_decay, exp2_m1};

/// y ← 2^y, as [`exp2_decay`] has it but for rounding, for y ≤ 0. What comes out depends on neither how many there are nor
/// where they stand.
///
/// On x86-64, `FMA` with four lanes is only for loops that [`in_lanes`](super::in_lanes) runs.
#[inline(always)]
pub(crate) fn exp2_decays<const FMA: bool, const L: usize>(y: &mut [f64]) {
    each::<FMA, L, false>(y, exp2_decay::<FMA>);
}

/// y ← 2^y − 1, as [`exp2_m1`] has it but for rounding, likewise.
#[inline(always)]
pub(crate) fn exp2_m1s<const FMA: bool, const L: usize>(y: &mut [f64]) {
    each::<FMA, L, true>(y, exp2_m1::<FMA>);
}

#[inline(always)]
fn each<const FMA: bool, const L: usize, const LESS_ONE: bool>(y: &mut [f64], plain: impl Fn(f64) -> f64) {
    #[cfg(target_arch = "x86_64")]
    if FMA && L == 4 {
        debug_assert!(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"));
        let (fours, rest) = y.as_chunks_mut();
        for four in fours {
            // SAFETY: such loops are run where AVX2 and FMA were detected.
            unsafe { avx2::exp2::<LESS_ONE>(four) };
        }
        if !rest.is_empty() {
            let mut four = [0.0; 16];
            four[..rest.len()].copy_from_slice(rest);
            // SAFETY: as above.
            unsafe { avx2::exp2::<LESS_ONE>(&mut four) };
            rest.copy_from_slice(&four[..rest.len()]);
        }
        return;
    }
    y.iter_mut().for_each(|y| *y = plain(*y));
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::super::{EXP2, EXP2_LEAST, EXP2_MOST, ROUND};
    use std::arch::asm;
    use std::arch::x86_64::*;

    /// All four are in registers here.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn abreast([a, b, c, d]: &mut [__m256d; 4]) {
        // SAFETY: there is no instruction.
        unsafe {
            asm!(
                "/* {} {} {} {} */",
                inout(ymm_reg) * a,
                inout(ymm_reg) * b,
                inout(ymm_reg) * c,
                inout(ymm_reg) * d,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
    }

    /// 2^y, for y ≤ 0; or 2^y − 1, for any.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub fn exp2<const LESS_ONE: bool>(numbers: &mut [f64; 16]) {
        let (least, round) = (_mm256_set1_pd(EXP2_LEAST), _mm256_set1_pd(ROUND));
        let at = numbers.as_mut_ptr();
        // SAFETY: four times four numbers.
        let y: [__m256d; 4] = std::array::from_fn(|i| unsafe { _mm256_loadu_pd(at.add(4 * i)) });
        // The second is taken where one is not a number.
        let y = y.map(|y| _mm256_max_pd(least, y));
        let y = if LESS_ONE { y.map(|y| _mm256_min_pd(_mm256_set1_pd(EXP2_MOST), y)) } else { y };
        let shifted = y.map(|y| _mm256_add_pd(y, round));
        let f: [__m256d; 4] = std::array::from_fn(|i| _mm256_sub_pd(y[i], _mm256_sub_pd(shifted[i], round)));
        let mut sums = [_mm256_set1_pd(EXP2[EXP2.len() - 1]); 4];
        for c in EXP2[..EXP2.len() - 1].iter().rev() {
            let c = _mm256_set1_pd(*c);
            (0..4).for_each(|i| sums[i] = _mm256_fmadd_pd(sums[i], f[i], c));
            abreast(&mut sums);
        }
        for i in 0..4 {
            let one = _mm256_set1_pd(1.0);
            let power = _mm256_castsi256_pd(_mm256_slli_epi64::<52>(_mm256_castpd_si256(shifted[i])));
            let value = match LESS_ONE {
                true => _mm256_fmadd_pd(_mm256_mul_pd(sums[i], f[i]), power, _mm256_sub_pd(power, one)),
                false => _mm256_mul_pd(_mm256_fmadd_pd(sums[i], f[i], one), power),
            };
            // SAFETY: as above.
            unsafe { _mm256_storeu_pd(at.add(4 * i), value) };
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::vmath::{Laned, exp2_decay_in_place, exp2_m1, in_lanes};

    struct LessOne<'a>(&'a mut [f64]);

    impl Laned for LessOne<'_> {
        type Out = ();
        #[inline(always)]
        fn run<const FMA: bool, const L: usize>(self) {
            super::exp2_m1s::<FMA, L>(self.0);
        }
    }

    #[test]
    fn powers_less_one_keep_their_digits() {
        let wide = (0..4001).map(|i| f64::from(i - 2000) * 0.4987);
        let small = (0..4001).flat_map(|i| [1e-3, 1e-9, 1e-300].map(|by| by * f64::from(i - 2000)));
        let y: Vec<f64> = wide.chain(small).collect();
        let mut fast = y.clone();
        in_lanes(LessOne(&mut fast));
        for (y, fast) in y.iter().zip(fast) {
            // y ln 2, with what its rounding loses to first order.
            let (ln_2, low) = (std::f64::consts::LN_2, 2.319_046_813_846_3e-17);
            let t = y * ln_2;
            let truth = t.exp_m1() + (y.mul_add(ln_2, -t) + y * low) * t.exp();
            for ours in [fast, exp2_m1::<true>(*y), exp2_m1::<false>(*y)] {
                let ulp = truth.abs().next_up() - truth.abs();
                assert!((ours - truth).abs() <= 3.0 * ulp, "{y}: {ours:e} {truth:e}");
            }
        }
        let mut ends = [0.0, -0.0, -1e300, f64::NEG_INFINITY, 1e300, f64::INFINITY, f64::NAN, 1.0];
        in_lanes(LessOne(&mut ends));
        assert_eq!((ends[..4].to_vec(), ends[7]), (vec![0.0, 0.0, -1.0, -1.0], 1.0));
        assert!(ends[4] > 1e307 && ends[5] > 1e307 && ends[6].is_nan());
    }

    fn powers(y: &[f64]) -> Vec<f64> {
        let mut y = y.to_vec();
        exp2_decay_in_place(&mut y);
        y
    }

    #[test]
    fn powers_are_within_two_ulp_wherever_they_stand() {
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
