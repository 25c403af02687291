//! Elementary functions on slices, and the choice of instructions at run time.
//!
//! A loop written as a [`Vectorized`] is compiled once for each instruction set; [`vectorize`] takes the
//! widest that the machine has. With fused multiply-add the exponential is within 1 ulp, without within 2.

/// A loop that is compiled for several instruction sets. `run` must be `#[inline(always)]`.
pub(crate) trait Vectorized {
    type Out;
    /// `FMA` says whether `f64::mul_add` is one instruction.
    fn run<const FMA: bool>(self) -> Self::Out;
}

/// Runs the loop with the widest instructions of this machine.
#[inline]
pub(crate) fn vectorize<V: Vectorized>(v: V) -> V::Out {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi1,bmi2")]
        fn avx512<V: Vectorized>(v: V) -> V::Out {
            v.run::<true>()
        }
        #[target_feature(enable = "avx2,fma,bmi1,bmi2")]
        fn avx2<V: Vectorized>(v: V) -> V::Out {
            v.run::<true>()
        }
        let has_avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        if has_avx2 && is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512vl") {
            // SAFETY: the features were detected on the line above.
            return unsafe { avx512(v) };
        }
        if has_avx2 {
            // SAFETY: the features were detected above.
            return unsafe { avx2(v) };
        }
    }
    if cfg!(target_arch = "aarch64") { v.run::<true>() } else { v.run::<false>() }
}

/// a·b + c, fused where that is one instruction.
#[inline(always)]
pub(crate) fn fma<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// exp x, by e^x = 2^k e^r with |r| ≤ ½ ln 2 and the series of e^r to r¹³; 0 below −708, ∞ above 709.78.
#[inline(always)]
pub(crate) fn exp<const FMA: bool>(x: f64) -> f64 {
    const LN2_HI: f64 = 6.931_471_803_691_238e-1;
    const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;
    const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 · 2⁵²: adding it rounds to an integer in the low bits
    let inside = x.clamp(-708.0, 709.78);
    let shifted = fma::<FMA>(inside, std::f64::consts::LOG2_E, ROUND);
    let k = shifted - ROUND;
    let r = fma::<FMA>(k, -LN2_LO, fma::<FMA>(k, -LN2_HI, inside));
    let mut p = 1.0 / 6_227_020_800.0;
    for c in [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        p = fma::<FMA>(p, r, c);
    }
    // 2^k in two factors, so that k = 1024 does not overflow before the product does.
    let half = f64::from_bits((shifted.to_bits() << 51) & 0xFFF0_0000_0000_0000).to_bits();
    let scale = f64::from_bits(half.wrapping_add(0x3FF0_0000_0000_0000));
    let rest = f64::from_bits(
        (shifted.to_bits().wrapping_shl(52)).wrapping_sub(half).wrapping_add(0x3FF0_0000_0000_0000),
    );
    let value = p * scale * rest;
    let value = if x < -708.0 { 0.0 } else { value };
    let value = if x > 709.78 { f64::INFINITY } else { value };
    if x.is_nan() { x } else { value }
}

struct Exp<'a>(&'a mut [f64]);

impl Vectorized for Exp<'_> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for x in self.0.iter_mut() {
            *x = exp::<FMA>(*x);
        }
    }
}

/// x ← exp x for every entry.
pub(crate) fn exp_in_place(x: &mut [f64]) {
    vectorize(Exp(x));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_two_ulp() {
        let mut worst = 0.0f64;
        let xs: Vec<f64> = (0..200_000).map(|i| -708.0 + 1417.7 * i as f64 / 199_999.0).collect();
        let mut ours = xs.clone();
        exp_in_place(&mut ours);
        for (x, y) in xs.iter().zip(&ours) {
            let truth = x.exp();
            let portable = exp::<false>(*x);
            let ulp = (truth.next_up() - truth).max(f64::MIN_POSITIVE);
            worst = worst.max((y - truth).abs() / ulp).max((portable - truth).abs() / ulp);
        }
        assert!(worst <= 2.0, "{worst} ulp");
    }

    #[test]
    fn exp_at_the_ends() {
        let mut x = [0.0, -0.0, -1e300, f64::NEG_INFINITY, 1e300, f64::INFINITY, -709.0];
        exp_in_place(&mut x);
        assert_eq!(x, [1.0, 1.0, 0.0, 0.0, f64::INFINITY, f64::INFINITY, 0.0]);
        let mut nan = [f64::NAN];
        exp_in_place(&mut nan);
        assert!(nan[0].is_nan());
    }
}
