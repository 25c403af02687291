//! Standard normal draws, many at a time: Box–Muller on the bits of ChaCha.
//!
//! ```text
//! r = √(−2 ln u)     (r cos 2πv, r sin 2πv)     u = (k + ½)/2³², v = l/2³²
//! ```
//!
//! Each pair takes 64 bits, 32 for u and 32 for v: draws go to 6.8 standard deviations.

use crate::fast::vmath::{Instructions, Vectorized, from_low_bits, ln, sin_cos_pi, vectorize};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Pairs at a time: what ChaCha makes at once.
const PAIRS: usize = 32;

/// A stream of draws.
pub(super) struct Normals {
    bits: ChaCha8Rng,
    ready: [f64; 2 * PAIRS],
    /// How many of the draws in the buffer are used up.
    used: usize,
}

impl Normals {
    /// One of many streams of a seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut bits = ChaCha8Rng::seed_from_u64(seed);
        bits.set_stream(stream);
        Normals { bits, ready: [0.0; 2 * PAIRS], used: 2 * PAIRS }
    }

    /// Goes to draw `from`, counted from the first.
    pub fn skip_to(&mut self, from: usize) {
        // A draw takes 32 bits, two of them go together, and 2·PAIRS are made at once.
        let (made, rest) = (from / (2 * PAIRS), from % (2 * PAIRS));
        self.bits.set_word_pos((made * 2 * PAIRS) as u128);
        self.used = 2 * PAIRS;
        if rest > 0 {
            self.fill(&mut [0.0; 2 * PAIRS][..rest]);
        }
    }

    /// The next draws.
    pub fn fill(&mut self, mut out: &mut [f64]) {
        while !out.is_empty() {
            if self.used == self.ready.len() {
                let bits = std::array::from_fn(|_| self.bits.next_u64());
                vectorize(Pairs { bits: &bits, out: &mut self.ready });
                self.used = 0;
            }
            let some = out.len().min(self.ready.len() - self.used);
            let (now, later) = out.split_at_mut(some);
            now.copy_from_slice(&self.ready[self.used..self.used + some]);
            self.used += some;
            out = later;
        }
    }
}

struct Pairs<'a> {
    bits: &'a [u64; PAIRS],
    out: &'a mut [f64; 2 * PAIRS],
}

impl Vectorized for Pairs<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions>(self) {
        const UNIT: f64 = 1.0 / 4_294_967_296.0;
        // In passes of their own, as the long chains of each would fill the machine's queues.
        let mut r = [0.0; PAIRS];
        for (r, bits) in r.iter_mut().zip(self.bits) {
            *r = -2.0 * ln::<I>((from_low_bits(bits >> 32) + 0.5) * UNIT);
        }
        for r in &mut r {
            *r = r.sqrt();
        }
        let (cosines, sines) = self.out.split_at_mut(PAIRS);
        for (((bits, r), cos), sin) in self.bits.iter().zip(&r).zip(cosines).zip(sines) {
            let (s, c) = sin_cos_pi::<I>(2.0 * UNIT * from_low_bits(bits & 0xFFFF_FFFF));
            (*cos, *sin) = (r * c, r * s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_standard_normal_and_streams_differ() {
        const COUNT: usize = 400_000;
        let mut draws = vec![0.0; COUNT];
        Normals::new(7, 3).fill(&mut draws);
        let moment = |k: i32| draws.iter().map(|x| x.powi(k)).sum::<f64>() / COUNT as f64;
        // Each within four of its standard errors.
        for (k, truth, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)] {
            let error = (moment(k) - truth).abs() / (variance / COUNT as f64).sqrt();
            assert!(error < 4.0, "moment {k}: {error} standard errors");
        }
        for from in [0, 64, 70, 1000] {
            let mut later = [0.0; 130];
            let mut normals = Normals::new(7, 3);
            normals.skip_to(from);
            normals.fill(&mut later);
            assert_eq!(later, draws[from..from + 130]);
        }
        let inside = |by: f64| draws.iter().filter(|x| x.abs() < by).count() as f64 / COUNT as f64;
        for (by, truth) in [(0.5, 0.382_925), (1.0, 0.682_689), (2.0, 0.954_500), (3.0, 0.997_300)] {
            let error = (inside(by) - truth).abs() / (truth * (1.0 - truth) / COUNT as f64).sqrt();
            assert!(error < 4.0, "within {by}: {error} standard errors");
        }
        for lag in [1, PAIRS] {
            let together = draws.iter().zip(&draws[lag..]).map(|(a, b)| a * b).sum::<f64>() / COUNT as f64;
            assert!(together.abs() < 4.0 / (COUNT as f64).sqrt(), "{lag} apart: {together}");
        }
        let mut other = vec![0.0; COUNT];
        Normals::new(7, 4).fill(&mut other);
        let both = draws.iter().zip(&other).map(|(a, b)| a * b).sum::<f64>() / COUNT as f64;
        assert!(both.abs() < 4.0 / (COUNT as f64).sqrt(), "{both}");
    }

    #[test]
    fn draws_are_those_of_the_formula() {
        let mut draws = [0.0; 6 * PAIRS];
        Normals::new(5, 9).fill(&mut draws);
        let mut bits = ChaCha8Rng::seed_from_u64(5);
        bits.set_stream(9);
        for block in draws.chunks_exact(2 * PAIRS) {
            for k in 0..PAIRS {
                let bits = bits.next_u64();
                let unit = |part: u64, shift: f64| (part as f64 + shift) / 2f64.powi(32);
                let r = (-2.0 * unit(bits >> 32, 0.5).ln()).sqrt();
                let (sin, cos) = (std::f64::consts::TAU * unit(bits & 0xFFFF_FFFF, 0.0)).sin_cos();
                let near = |a: f64, b: f64| (a - b).abs() < 1e-14 * (1.0 + r);
                assert!(near(block[k], r * cos) && near(block[PAIRS + k], r * sin), "{k}");
            }
        }
    }

    #[test]
    fn a_stream_is_the_same_in_any_pieces() {
        let mut whole = [0.0; 300];
        Normals::new(1, 2).fill(&mut whole);
        let (mut pieces, mut normals) = ([0.0; 300], Normals::new(1, 2));
        let mut rest = &mut pieces[..];
        for len in [1, 63, 0, 64, 65, 7, 100] {
            let (now, later) = rest.split_at_mut(len);
            normals.fill(now);
            rest = later;
        }
        assert!(rest.is_empty());
        assert_eq!(whole, pieces);
    }
}
