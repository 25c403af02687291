//! Numbers as binary files store them, streamed into `f64`.

use std::io::{self, Read};

/// A stored number type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
}

impl Scalar {
    /// Bytes a number.
    pub(crate) fn size(self) -> usize {
        match self {
            Scalar::Bool | Scalar::I8 | Scalar::U8 => 1,
            Scalar::I16 | Scalar::U16 | Scalar::F16 => 2,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
        }
    }

    /// The number in `bytes`, of which there are [`size`](Scalar::size).
    fn get(self, bytes: &[u8], big_endian: bool) -> f64 {
        let mut b = [0u8; 8];
        b[..bytes.len()].copy_from_slice(bytes);
        if big_endian {
            b[..bytes.len()].reverse();
        }
        let bits = u64::from_le_bytes(b);
        match self {
            Scalar::Bool => f64::from(bits != 0),
            Scalar::I8 => f64::from(bits as i8),
            Scalar::I16 => f64::from(bits as i16),
            Scalar::I32 => f64::from(bits as i32),
            Scalar::I64 => bits as i64 as f64,
            Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => bits as f64,
            Scalar::F16 => half(bits as u16),
            Scalar::F32 => f64::from(f32::from_bits(bits as u32)),
            Scalar::F64 => f64::from_bits(bits),
        }
    }

    /// Reads `count` numbers and hands each to `take`; memory does not depend on `count`.
    pub(crate) fn read(
        self,
        from: &mut dyn Read,
        count: usize,
        big_endian: bool,
        mut take: impl FnMut(f64),
    ) -> io::Result<()> {
        const CHUNK: usize = 4096;
        let mut buffer = [0u8; CHUNK * 8];
        let mut left = count;
        while left > 0 {
            let n = left.min(CHUNK);
            let bytes = &mut buffer[..n * self.size()];
            from.read_exact(bytes)?;
            bytes.chunks_exact(self.size()).for_each(|b| take(self.get(b, big_endian)));
            left -= n;
        }
        Ok(())
    }
}

/// IEEE half precision: 1 sign, 5 exponent and 10 fraction bits.
pub(crate) fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        e => (1024.0 + fraction) * 2f64.powi(e - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(s: Scalar, bytes: &[u8], big: bool) -> f64 {
        let mut v = f64::NAN;
        s.read(&mut &bytes[..], 1, big, |x| v = x).unwrap();
        v
    }

    #[test]
    fn every_type_in_both_orders() {
        assert_eq!(one(Scalar::I16, &[0xfe, 0xff], false), -2.0);
        assert_eq!(one(Scalar::I16, &[0xff, 0xfe], true), -2.0);
        assert_eq!(one(Scalar::U16, &[0xfe, 0xff], false), 65534.0);
        assert_eq!(one(Scalar::I8, &[0x80], true), -128.0);
        assert_eq!(one(Scalar::U32, &[0, 0, 0, 1], true), 1.0);
        assert_eq!(one(Scalar::I32, &[0xff; 4], false), -1.0);
        assert_eq!(one(Scalar::I64, &[0xff; 8], false), -1.0);
        assert_eq!(one(Scalar::U64, &[0xff; 8], false), u64::MAX as f64);
        assert_eq!(one(Scalar::F32, &0.1f32.to_be_bytes(), true), f64::from(0.1f32));
        assert_eq!(one(Scalar::F64, &0.1f64.to_le_bytes(), false), 0.1);
        assert_eq!(one(Scalar::Bool, &[7], false), 1.0);
    }

    #[test]
    fn half_precision() {
        let cases =
            [(0x3c00, 1.0), (0xc000, -2.0), (0x7bff, 65504.0), (1, 2f64.powi(-24)), (0x3555, 0.333251953125)];
        for (bits, value) in cases {
            assert_eq!(half(bits), value);
        }
        assert_eq!(half(0xfc00), f64::NEG_INFINITY);
        assert!(half(0x7e00).is_nan());
    }

    #[test]
    fn too_few_bytes_err_after_chunks() {
        let bytes = vec![0u8; 8 * 5000 - 1];
        let mut n = 0;
        assert!(Scalar::F64.read(&mut &bytes[..], 5000, false, |_| n += 1).is_err());
        assert_eq!(n, 4096);
    }
}
