//! The choice of vector instructions at run time, as a type that proves that the machine has them.

/// The vector instructions that a loop is compiled for.
///
/// The types of instructions that not every machine has are private to this file. [`in_lanes`] alone gives them to a loop, once
/// it has detected the instructions, and the trait is sealed. So code that was given such a type may use its instructions:
/// nobody else could have named it.
pub(crate) trait Instructions: Copy + Send + Sync + Sealed {
    /// Whether `f64::mul_add` is one instruction.
    const FUSED: bool;
    /// The registers that intrinsics may be used for.
    const REGISTERS: Registers = Registers::Any;
}

/// Vector registers, and the intrinsics for them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Registers {
    /// What the compiler makes of plain code.
    Any,
    /// Four numbers: AVX2 and FMA.
    Avx2,
    /// Eight numbers: AVX-512 F, DQ, BW and VL; also all of [`Avx2`](Self::Avx2).
    Avx512,
}

pub(crate) trait Sealed {}

/// The instructions that every machine has.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

/// The instructions that every machine has, compiled where `mul_add` is one of them.
#[derive(Clone, Copy)]
pub(crate) struct PortableFused;

#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Avx2;

#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Avx512;

impl Sealed for Portable {}
impl Instructions for Portable {
    const FUSED: bool = false;
}

impl Sealed for PortableFused {}
impl Instructions for PortableFused {
    const FUSED: bool = true;
}

#[cfg(target_arch = "x86_64")]
impl Sealed for Avx2 {}
#[cfg(target_arch = "x86_64")]
impl Instructions for Avx2 {
    const FUSED: bool = true;
    const REGISTERS: Registers = Registers::Avx2;
}

#[cfg(target_arch = "x86_64")]
impl Sealed for Avx512 {}
#[cfg(target_arch = "x86_64")]
impl Instructions for Avx512 {
    const FUSED: bool = true;
    const REGISTERS: Registers = Registers::Avx512;
}

/// A loop that is compiled for several instruction sets. `run` must be `#[inline(always)]`.
pub(crate) trait Vectorized {
    type Out;
    fn run<I: Instructions>(self) -> Self::Out;
}

/// A [`Vectorized`] loop over groups of `L` numbers, one register of the machine. `run` must be `#[inline(always)]`.
pub(crate) trait Laned {
    type Out;
    fn run<I: Instructions, const L: usize>(self) -> Self::Out;
}

struct AnyLanes<V>(V);

impl<V: Vectorized> Laned for AnyLanes<V> {
    type Out = V::Out;
    #[inline(always)]
    fn run<I: Instructions, const L: usize>(self) -> V::Out {
        self.0.run::<I>()
    }
}

/// Runs the loop with the widest instructions of this machine.
#[inline]
pub(crate) fn vectorize<V: Vectorized>(v: V) -> V::Out {
    in_lanes(AnyLanes(v))
}

/// Runs the loop with the widest instructions of this machine, and with `L` the numbers of its registers.
#[inline]
pub(crate) fn in_lanes<V: Laned>(v: V) -> V::Out {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
        fn avx512<V: Laned>(v: V) -> V::Out {
            v.run::<Avx512, 8>()
        }
        #[target_feature(enable = "avx2,fma")]
        fn avx2<V: Laned>(v: V) -> V::Out {
            v.run::<Avx2, 4>()
        }
        let portable = cfg!(latentgp_lanes = "portable");
        let narrow = portable || cfg!(latentgp_lanes = "avx2");
        let has_avx2 = !portable && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let has_avx512 = !narrow
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl");
        if has_avx2 && has_avx512 {
            // SAFETY: the features of `avx512` were detected on the lines above.
            return unsafe { avx512(v) };
        }
        if has_avx2 {
            // SAFETY: the features of `avx2` were detected on the lines above.
            return unsafe { avx2(v) };
        }
    }
    match cfg!(target_arch = "aarch64") {
        true => v.run::<PortableFused, 4>(),
        false => v.run::<Portable, 4>(),
    }
}
