//! NumPy's legacy generator, as far as published experiments drew rows and folds with it.
//!
//! `RandomState(seed)` is the Mersenne twister MT19937 of Matsumoto and Nishimura (1998), seeded by a linear
//! recurrence. A shuffle goes from the last row to the second, and swaps each with a row drawn by rejection
//! from the smallest power of two that covers it. [`permutation`] and [`kfold`] give the same rows as
//! `RandomState(seed).permutation(n)` and scikit-learn's `KFold(k, shuffle=True, random_state=seed)`, so that
//! others' runs can be repeated on the same rows.
//!
//! ```
//! let rows = latentgp::numpy::permutation(100, 42);
//! assert_eq!(rows[..4], [83, 53, 70, 45]);
//! ```

use crate::error::{Error, Result};

const WORDS: usize = 624;
const MIDDLE: usize = 397;

/// MT19937.
struct Twister {
    state: [u32; WORDS],
    at: usize,
}

impl Twister {
    fn new(seed: u32) -> Self {
        let mut state = [seed; WORDS];
        for i in 1..WORDS {
            let before = state[i - 1];
            state[i] = 1_812_433_253u32.wrapping_mul(before ^ (before >> 30)).wrapping_add(i as u32);
        }
        Twister { state, at: WORDS }
    }

    fn renew(&mut self) {
        for i in 0..WORDS {
            let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % WORDS] & 0x7fff_ffff);
            let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + MIDDLE) % WORDS] ^ (y >> 1) ^ odd;
        }
        self.at = 0;
    }

    fn next(&mut self) -> u32 {
        if self.at == WORDS {
            self.renew();
        }
        let mut y = self.state[self.at];
        self.at += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// A whole number from 0 to `most`, of at most 32 bits.
    fn up_to(&mut self, most: usize) -> usize {
        let mask = (most + 1).next_power_of_two() - 1;
        loop {
            let drawn = self.next() as usize & mask;
            if drawn <= most {
                return drawn;
            }
        }
    }
}

/// The rows 0..n in the order of `numpy.random.RandomState(seed).permutation(n)`.
pub fn permutation(n: usize, seed: u32) -> Vec<usize> {
    let mut twister = Twister::new(seed);
    let mut rows: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        rows.swap(i, twister.up_to(i));
    }
    rows
}

/// The test rows of each fold of `sklearn.model_selection.KFold(k, shuffle=True, random_state=seed)`.
///
/// Errs unless 2 ≤ k ≤ n.
pub fn kfold(n: usize, k: usize, seed: u32) -> Result<Vec<Vec<usize>>> {
    if k < 2 || k > n {
        return Err(Error::invalid("the number of folds", format!("from 2 to the {n} rows"), k));
    }
    let order = permutation(n, seed);
    let mut rest = order.as_slice();
    let fold = |fold: usize| {
        let (head, tail) = rest.split_at(n / k + usize::from(fold < n % k));
        rest = tail;
        let mut rows = head.to_vec();
        rows.sort_unstable();
        rows
    };
    Ok((0..k).map(fold).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NumPy 2.4: `RandomState(42).permutation(n)[:20]`, the inducing rows of the published experiments.
    const HUNDRED: [usize; 20] =
        [83, 53, 70, 45, 44, 39, 22, 80, 10, 0, 18, 30, 73, 33, 90, 4, 76, 77, 12, 31];
    const THOUSANDS: [usize; 20] = [
        1501, 2586, 2653, 1055, 705, 106, 589, 2468, 2413, 1600, 2464, 228, 915, 794, 3021, 3543, 1073, 3351,
        1744, 1084,
    ];
    /// NumPy 2.4: `RandomState(7).permutation(9)`, which crosses powers of two.
    const NINE: [usize; 9] = [2, 7, 0, 8, 5, 3, 6, 1, 4];

    #[test]
    fn rows_are_those_that_numpy_draws() {
        assert_eq!(permutation(100, 42)[..20], HUNDRED);
        assert_eq!(permutation(5000, 42)[..20], THOUSANDS);
        assert_eq!(permutation(9, 7), NINE);
        assert_eq!((permutation(0, 1), permutation(1, 1)), (vec![], vec![0]));
    }

    #[test]
    fn folds_are_those_of_scikit_learn() {
        let folds = kfold(100, 5, 42).unwrap();
        assert_eq!(folds[0], [0, 4, 10, 12, 18, 22, 30, 31, 33, 39, 44, 45, 53, 70, 73, 76, 77, 80, 83, 90]);
        assert_eq!(folds[4][..5], [1, 2, 14, 20, 21]);
        assert_eq!(kfold(7, 3, 0).unwrap().iter().map(Vec::len).collect::<Vec<_>>(), [3, 2, 2]);
        assert!(kfold(4, 5, 0).is_err() && kfold(4, 1, 0).is_err());
    }
}
