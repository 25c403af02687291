//! The history of L-BFGS: the last few pairs of changes, and the inverse Hessian they imply.
//!
//! ```text
//! s = u₊ − u    y = g₊ − g    ρ = 1/sᵀy    γ = sᵀy/yᵀy
//! H₊ = (I − ρsyᵀ) H (I − ρysᵀ) + ρssᵀ, from H₀ = γI with the last pair's γ
//! ```
//!
//! Hg takes two loops over the pairs: Nocedal and Wright, *Numerical Optimization*, algorithm 7.4.

use super::dot;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// A ring of pairs (s, y) of n numbers each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// How many pairs there is room for.
    pub memory: usize,
    /// How many pairs are kept.
    pub pairs: usize,
    /// The place of the next pair.
    pub next: usize,
    /// The changes of u, `memory` × n.
    pub s: Vec<f64>,
    /// The changes of the gradient, `memory` × n.
    pub y: Vec<f64>,
    /// 1/sᵀy of each pair.
    pub rho: Vec<f64>,
    /// sᵀy/yᵀy of the last pair.
    pub gamma: f64,
}

impl History {
    /// Room for `memory` pairs of n numbers.
    pub(super) fn new(memory: usize, n: usize) -> Result<Self> {
        let room = memory.checked_mul(n).filter(|room| *room <= isize::MAX as usize / 8);
        let room = room.ok_or_else(|| {
            Error::invalid("memory of L-BFGS", "a number of pairs that fits in memory", memory)
        })?;
        let zeros = vec![0.0; room];
        Ok(History {
            memory,
            pairs: 0,
            next: 0,
            s: zeros.clone(),
            y: zeros,
            rho: vec![0.0; memory],
            gamma: 1.0,
        })
    }

    /// Errs when a history that was read cannot be one of n numbers.
    pub(super) fn check(&self, n: usize) -> Result<()> {
        let room = self.memory.checked_mul(n);
        let fits = Some(self.s.len()) == room
            && Some(self.y.len()) == room
            && self.rho.len() == self.memory
            && self.pairs <= self.memory
            && self.next < self.memory;
        if fits {
            return Ok(());
        }
        let expected = format!("{} pairs of {n} numbers", self.memory);
        let found = format!("{}, {} and {} numbers", self.s.len(), self.y.len(), self.rho.len());
        Err(Error::shape("the history of L-BFGS", expected, found))
    }

    /// g ← Hg; `alpha` is room for `memory` numbers.
    pub(super) fn apply(&self, g: &mut [f64], alpha: &mut [f64]) {
        let n = g.len();
        let pair = |age: usize| {
            let at = (self.next + self.memory - 1 - age) % self.memory;
            (&self.s[at * n..][..n], &self.y[at * n..][..n], self.rho[at])
        };
        for age in 0..self.pairs {
            let (s, y, rho) = pair(age);
            alpha[age] = rho * dot(s, g);
            add_scaled(g, -alpha[age], y);
        }
        g.iter_mut().for_each(|g| *g *= self.gamma);
        for age in (0..self.pairs).rev() {
            let (s, y, rho) = pair(age);
            let beta = rho * dot(y, g);
            add_scaled(g, alpha[age] - beta, s);
        }
    }

    /// Keeps a pair in place of the oldest, unless its curvature sᵀy is not positive beside `descent` = −sᵀg.
    pub(super) fn push(&mut self, s: &[f64], y: &[f64], descent: f64) {
        let n = s.len();
        let (sy, yy) = (dot(s, y), dot(y, y));
        let (rho, gamma) = (1.0 / sy, sy / yy);
        let usable = sy > f64::EPSILON * descent && rho.is_finite() && gamma.is_finite() && gamma > 0.0;
        if usable {
            self.s[self.next * n..][..n].copy_from_slice(s);
            self.y[self.next * n..][..n].copy_from_slice(y);
            self.rho[self.next] = rho;
            self.gamma = gamma;
            self.next = (self.next + 1) % self.memory;
            self.pairs = (self.pairs + 1).min(self.memory);
        }
    }

    /// Drops every pair.
    pub(super) fn clear(&mut self) {
        self.pairs = 0;
        self.next = 0;
    }
}

fn add_scaled(to: &mut [f64], scale: f64, from: &[f64]) {
    for (a, b) in to.iter_mut().zip(from) {
        *a += scale * b;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{mul, mul_nt};
    use crate::mat::Mat;

    const N: usize = 5;
    const TOLERANCE: f64 = 1e-12;

    fn pair(k: usize) -> (Vec<f64>, Vec<f64>) {
        let s: Vec<f64> = (0..N).map(|i| ((3 * i + 7 * k) as f64).sin()).collect();
        let y = s.iter().enumerate().map(|(i, s)| (1.0 + i as f64) * s).collect();
        (s, y)
    }

    /// The update of H written out with matrices.
    fn dense(pairs: &[(Vec<f64>, Vec<f64>)]) -> Mat {
        let (s, y) = pairs.last().unwrap();
        let mut h = Mat::eye(N);
        h.scale(dot(s, y) / dot(y, y));
        for (s, y) in pairs {
            let rho = 1.0 / dot(s, y);
            let (s, y) = (Mat::column(s), Mat::column(y));
            let mut left = Mat::eye(N);
            left.add_scaled(-rho, &mul_nt(&s, &y));
            h = mul_nt(&mul(&left, &h), &left);
            h.add_scaled(rho, &mul_nt(&s, &s));
        }
        h
    }

    #[test]
    fn two_loops_are_the_dense_update_of_the_pairs_kept() {
        let pairs: Vec<_> = (0..7).map(pair).collect();
        let mut history = History::new(3, N).unwrap();
        for (k, (s, y)) in pairs.iter().enumerate() {
            history.push(s, y, 0.0);
            let kept = &pairs[(k + 1).saturating_sub(3)..=k];
            let mut g: Vec<f64> = (0..N).map(|i| (i as f64).cos()).collect();
            let expected = mul(&dense(kept), &Mat::column(&g));
            history.apply(&mut g, &mut [0.0; 3]);
            for (a, b) in g.iter().zip(expected.as_slice()) {
                assert!((a - b).abs() < TOLERANCE, "after {} pairs: {a} {b}", k + 1);
            }
        }
    }

    #[test]
    fn a_pair_without_curvature_is_left_out() {
        let mut history = History::new(2, 2).unwrap();
        for y in [[-1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [f64::NAN, 0.0], [1e-300, 0.0], [1e200, 0.0]] {
            history.push(&[1e-10, 0.0], &y, 1.0);
        }
        assert_eq!((history.pairs, history.next), (0, 0));
    }

    #[test]
    fn a_history_that_does_not_fit_is_an_error() {
        let good = History::new(2, 3).unwrap();
        assert!(good.check(3).is_ok() && good.check(4).is_err());
        assert!(History { next: 2, ..good.clone() }.check(3).is_err());
        assert!(History { pairs: 3, ..good.clone() }.check(3).is_err());
        assert!(History { memory: 0, ..good.clone() }.check(3).is_err());
        assert!(History { rho: vec![], ..good }.check(3).is_err());
        assert!(History::new(usize::MAX, 3).is_err());
    }
}
