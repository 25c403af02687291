//! Powers of two, with AVX2 of four registers abreast.
//!
//! A polynomial is a chain of steps that each wait for the one before. Taken one register after the other, those that wait
//! fill the machine's queues; four chains go side by side in the time of little more than one. The compiler would order the
//! steps its own way: after each of them, an assembly of no instructions needs all four. Other machines take a plain loop.

use super::exp2_decay;

/// y ← 2^y, as [`exp2_decay`] has it but for rounding, for y ≤ 0. What comes out depends on neither how many there are nor
/// where they stand.
///
/// On x86-64, `FMA` with four lanes is only for loops that [`in_lanes`](super::in_lanes) runs.
#[inline(always)]
pub(crate) fn exp2_decays<const FMA: bool, const L: usize>(y: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if FMA && L == 4 {
        debug_assert!(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"));
        let (fours, rest) = y.as_chunks_mut();
        for four in fours {
            // SAFETY: such loops are run where AVX2 and FMA were detected.
            unsafe { avx2::exp2(four) };
        }
        if !rest.is_empty() {
            let mut four = [0.0; 16];
            four[..rest.len()].copy_from_slice(rest);
            // SAFETY: as above.
            unsafe { avx2::exp2(&mut four) };
            rest.copy_from_slice(&four[..rest.len()]);
        }
        return;
    }
    y.iter_mut().for_each(|y| *y = exp2_decay::<FMA>(*y));
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::super::{EXP2, EXP2_LEAST, ROUND};
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

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub fn exp2(numbers: &mut [f64; 16]) {
        let (least, round) = (_mm256_set1_pd(EXP2_LEAST), _mm256_set1_pd(ROUND));
        let at = numbers.as_mut_ptr();
        // SAFETY: four times four numbers.
        let y: [__m256d; 4] = std::array::from_fn(|i| unsafe { _mm256_loadu_pd(at.add(4 * i)) });
        // The second is taken where one is not a number.
        let y = y.map(|y| _mm256_max_pd(least, y));
        let shifted = y.map(|y| _mm256_add_pd(y, round));
        let f: [__m256d; 4] = std::array::from_fn(|i| _mm256_sub_pd(y[i], _mm256_sub_pd(shifted[i], round)));
        let mut sums = [_mm256_set1_pd(EXP2[EXP2.len() - 1]); 4];
        for c in EXP2[..EXP2.len() - 1].iter().rev() {
            let c = _mm256_set1_pd(*c);
            (0..4).for_each(|i| sums[i] = _mm256_fmadd_pd(sums[i], f[i], c));
            abreast(&mut sums);
        }
        for i in 0..4 {
            let sum = _mm256_fmadd_pd(sums[i], f[i], _mm256_set1_pd(1.0));
            let power = _mm256_slli_epi64::<52>(_mm256_castpd_si256(shifted[i]));
            // SAFETY: as above.
            unsafe { _mm256_storeu_pd(at.add(4 * i), _mm256_mul_pd(sum, _mm256_castsi256_pd(power))) };
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::vmath::exp2_decay_in_place;

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
