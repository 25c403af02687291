//! The history of L-BFGS: the last few pairs of changes, and the inverse Hessian they imply.
//!
//! ```text
//! s = u₊ − u    y = g₊ − g    ρ = 1/sᵀy    γ = sᵀy/yᵀy
//! H₊ = (I − ρsyᵀ) H (I − ρysᵀ) + ρssᵀ, from H₀ = γI with the last pair's γ
//! ```
//!
//! Hg takes two loops over the pairs: Nocedal and Wright, *Numerical Optimization*, algorithm 7.4. Each step of theirs waits for
//! the one before, over all n numbers. But all that they need of the vectors is products of them, sᵢᵀyⱼ, yᵢᵀyⱼ, sᵢᵀg and yᵢᵀg, and
//! all that they decide is the weights with which Hg is summed:
//!
//! ```text
//! αᵢ = ρᵢ (sᵢᵀg − Σ_{j newer} αⱼ sᵢᵀyⱼ)     βᵢ = ρᵢ (γ (yᵢᵀg − Σ_j αⱼ yᵢᵀyⱼ) + Σ_{j older} (αⱼ − βⱼ) sⱼᵀyᵢ)
//! Hg = γg + Σᵢ (αᵢ − βᵢ) sᵢ − γαᵢ yᵢ
//! ```
//!
//! So long vectors, which must come from main memory, are multiplied and summed piece by piece, on all threads.

use super::dot;
use crate::blocks;
use crate::error::{Error, Result};
use crate::fast::vmath::Numbers;
use crate::fast::vmath::{Instructions, Laned, Lanes, Vectorized, fma, in_lanes, vectorize};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Vectors of at least this many numbers are multiplied and summed by several threads: a history of them does not fit the
/// caches.
const LONG: usize = 1 << 15;
/// Numbers in a piece of the vectors. All products of a piece are taken while it is in the cache.
const PIECE: usize = 1024;
/// A product is summed in this many independent accumulators.
const LANES: usize = 8;
/// What a pair is multiplied with: sᵀg, yᵀg, and s and y with the newest y.
const PRODUCTS: usize = 4;

/// A ring of pairs (s, y) of n numbers each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// How many pairs there is room for.
    pub memory: usize,
    /// How many pairs are kept.
    pub pairs: usize,
    /// The slot of the next pair.
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
    /// Memory for `memory` pairs of n numbers.
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
            && self.next < self.memory
            && (self.pairs == self.memory || self.next == self.pairs);
        if fits {
            return Ok(());
        }
        let expected = format!("{} pairs of {n} numbers", self.memory);
        let found = format!("{}, {} and {} numbers", self.s.len(), self.y.len(), self.rho.len());
        Err(Error::shape("the history of L-BFGS", expected, found))
    }

    /// The slots of the pairs, the newest first.
    fn slots(&self) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.pairs).map(|age| self.at(age))
    }

    /// The slot of the pair of that age; the newest has age 0.
    fn at(&self, age: usize) -> usize {
        (self.next + self.memory - 1 - age) % self.memory
    }

    /// g ← Hg, of at least one pair.
    pub(super) fn apply(&self, g: &mut [f64], work: &mut Products) {
        match g.len() < LONG {
            true => in_lanes(TwoLoops { of: self, g, alpha: &mut work.alpha }),
            false => self.by_products(g, work),
        }
    }

    fn by_products(&self, g: &mut [f64], work: &mut Products) {
        let newest = self.at(0);
        for slot in self.slots().filter(|slot| *slot != newest) {
            if work.rho[slot] != self.rho[slot] {
                work.multiply(self, g, slot);
            }
        }
        work.multiply(self, g, newest);
        work.weigh(self);
        work.combine(self, g);
    }

    /// Keeps a pair in slot of the oldest, unless its curvature sᵀy is not positive beside `descent` = −sᵀg.
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

/// The two loops as they are written, except that one pass adds a vector and takes the product with the next one.
struct TwoLoops<'a> {
    of: &'a History,
    g: &'a mut [f64],
    alpha: &'a mut [f64],
}

impl Laned for TwoLoops<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions, const L: usize>(self) {
        match L {
            LANES => self.pairs::<I, L, 1>(),
            _ => self.pairs::<I, L, 2>(),
        }
    }
}

impl TwoLoops<'_> {
    #[inline(always)]
    fn pairs<I: Instructions, const L: usize, const V: usize>(self) {
        let TwoLoops { of, g, alpha } = self;
        let n = g.len();
        let (s, y) = (|i: usize| &of.s[i * n..][..n], |i: usize| &of.y[i * n..][..n]);
        // The weight of the vector that the next pass adds, and the vector.
        let (mut by, mut to_add) = (0.0, y(of.at(0)));
        for i in of.slots() {
            alpha[i] = of.rho[i] * add_and_dot::<I, L, V>(g, by, to_add, 1.0, s(i));
            (by, to_add) = (-alpha[i], y(i));
        }
        let mut scale = of.gamma;
        for i in of.slots().rev() {
            let beta = of.rho[i] * add_and_dot::<I, L, V>(g, by, to_add, scale, y(i));
            (by, to_add, scale) = (alpha[i] - beta, s(i), 1.0);
        }
        add_and_dot::<I, L, V>(g, by, to_add, scale, to_add);
    }
}

/// g ← scale (g + by · add), and the product of that with another vector, in [`LANES`] interleaved sums.
#[inline(always)]
fn add_and_dot<I: Instructions, const L: usize, const V: usize>(
    g: &mut [f64],
    by: f64,
    add: &[f64],
    scale: f64,
    with: &[f64],
) -> f64 {
    let read = <[Lanes<I, L>; V]>::read;
    let mut sums = [Lanes::<I, L>::ZERO; V];
    let whole: &mut [[Lanes<I, L>; V]] = Numbers::read_mut(g);
    for ((g, add), with) in whole.iter_mut().zip(read(add)).zip(read(with)) {
        for v in 0..V {
            g[v] = (g[v] + add[v] * by) * scale;
            sums[v] += with[v] * g[v];
        }
    }
    let mut rest = 0.0;
    for i in g.len() - g.len() % LANES..g.len() {
        g[i] = (g[i] + add[i] * by) * scale;
        rest += with[i] * g[i];
    }
    sums.iter().flat_map(|sums| sums.0).sum::<f64>() + rest
}

/// Products of the pairs with each other, by slots, and working memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Products {
    /// sᵢᵀyⱼ where j is not older than i, and yᵢᵀyⱼ.
    sy: Vec<f64>,
    yy: Vec<f64>,
    /// ρ of each pair when its products were taken. A slot with another ρ has a new pair, whose products are missing.
    rho: Vec<f64>,
    /// The products of each pair, and those of each piece.
    sums: Vec<[f64; PRODUCTS]>,
    parts: Vec<[f64; PRODUCTS]>,
    /// The slots, the newest first; by slots, α and the weights of s and y.
    order: Vec<usize>,
    alpha: Vec<f64>,
    weights: Vec<[f64; 2]>,
}

impl Products {
    /// Makes room for `memory` pairs of n numbers.
    pub fn prepare(&mut self, memory: usize, n: usize) {
        self.alpha.resize(memory, 0.0);
        if n >= LONG && (self.sums.len() != memory || self.parts.len() != memory * n.div_ceil(PIECE)) {
            *self = Products::new(memory, n);
        }
    }

    fn new(memory: usize, n: usize) -> Self {
        let square = vec![0.0; memory * memory];
        Products {
            sy: square.clone(),
            yy: square,
            rho: vec![f64::NAN; memory],
            sums: vec![[0.0; PRODUCTS]; memory],
            parts: vec![[0.0; PRODUCTS]; memory * n.div_ceil(PIECE)],
            order: vec![0; memory],
            alpha: vec![0.0; memory],
            weights: vec![[0.0; 2]; memory],
        }
    }

    /// The products of all pairs with g and with y of the pair in a slot, piece by piece.
    fn multiply(&mut self, of: &History, g: &[f64], slot: usize) {
        let (n, m) = (g.len(), of.memory);
        let y = &of.y[slot * n..][..n];
        let one = |piece: usize, sums: &mut [[f64; PRODUCTS]]| {
            let at = piece * PIECE..((piece + 1) * PIECE).min(n);
            vectorize(Multiply { of, g, y, at, sums: &mut sums[..of.pairs] });
        };
        blocks::each_chunk(&mut self.parts, m, !blocks::in_a_pool(), one);
        self.sums.fill([0.0; PRODUCTS]);
        for part in self.parts.chunks_exact(m) {
            for (sum, part) in self.sums.iter_mut().zip(part) {
                (0..PRODUCTS).for_each(|k| sum[k] += part[k]);
            }
        }
        self.rho[slot] = of.rho[slot];
        for (i, [_, _, sy, yy]) in self.sums[..of.pairs].iter().enumerate() {
            self.sy[i * m + slot] = *sy;
            self.yy[i * m + slot] = *yy;
            self.yy[slot * m + i] = *yy;
        }
    }

    /// The two loops.
    fn weigh(&mut self, of: &History) {
        let Products { sy, yy, sums, order, alpha, weights, .. } = self;
        let (m, order) = (of.memory, &mut order[..of.pairs]);
        order.iter_mut().zip(of.slots()).for_each(|(to, slot)| *to = slot);
        for (age, &i) in order.iter().enumerate() {
            let newer = order[..age].iter();
            let rest = newer.fold(sums[i][0], |rest, &j| rest - alpha[j] * sy[i * m + j]);
            alpha[i] = of.rho[i] * rest;
        }
        for (age, &i) in order.iter().enumerate().rev() {
            let rest = order.iter().fold(sums[i][1], |rest, &j| rest - alpha[j] * yy[i * m + j]);
            let older = order[age + 1..].iter();
            let back = older.fold(of.gamma * rest, |sum, &j| sum + weights[j][0] * sy[j * m + i]);
            weights[i] = [alpha[i] - of.rho[i] * back, -of.gamma * alpha[i]];
        }
    }

    /// g ← γg + Σ of the pairs with their weights.
    fn combine(&self, of: &History, g: &mut [f64]) {
        let n = g.len();
        let one = |piece: usize, out: &mut [f64]| {
            let at = piece * PIECE..piece * PIECE + out.len();
            vectorize(Combine { of, weights: &self.weights[..of.pairs], n, at, out });
        };
        blocks::each_chunk(g, PIECE, !blocks::in_a_pool(), one);
    }
}

struct Multiply<'a> {
    of: &'a History,
    g: &'a [f64],
    y: &'a [f64],
    at: Range<usize>,
    sums: &'a mut [[f64; PRODUCTS]],
}

impl Vectorized for Multiply<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions>(self) {
        let n = self.g.len();
        let (g, g_rest) = self.g[self.at.clone()].as_chunks::<LANES>();
        let (new, new_rest) = self.y[self.at.clone()].as_chunks::<LANES>();
        for (i, sums) in self.sums.iter_mut().enumerate() {
            let own = i * n + self.at.start..i * n + self.at.end;
            let (s, s_rest) = self.of.s[own.clone()].as_chunks::<LANES>();
            let (y, y_rest) = self.of.y[own].as_chunks::<LANES>();
            let mut lanes = [[0.0; LANES]; PRODUCTS];
            for (((s, y), g), new) in s.iter().zip(y).zip(g).zip(new) {
                for k in 0..LANES {
                    lanes[0][k] = fma::<I>(s[k], g[k], lanes[0][k]);
                    lanes[1][k] = fma::<I>(y[k], g[k], lanes[1][k]);
                    lanes[2][k] = fma::<I>(s[k], new[k], lanes[2][k]);
                    lanes[3][k] = fma::<I>(y[k], new[k], lanes[3][k]);
                }
            }
            *sums = lanes.map(|lanes| lanes.iter().sum());
            for (((s, y), g), new) in s_rest.iter().zip(y_rest).zip(g_rest).zip(new_rest) {
                sums[0] += s * g;
                sums[1] += y * g;
                sums[2] += s * new;
                sums[3] += y * new;
            }
        }
    }
}

struct Combine<'a> {
    of: &'a History,
    weights: &'a [[f64; 2]],
    n: usize,
    at: Range<usize>,
    out: &'a mut [f64],
}

impl Vectorized for Combine<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions>(self) {
        self.out.iter_mut().for_each(|out| *out *= self.of.gamma);
        for (i, [a, b]) in self.weights.iter().enumerate() {
            let own = i * self.n + self.at.start..i * self.n + self.at.end;
            let pair = self.of.s[own.clone()].iter().zip(&self.of.y[own]);
            for (out, (s, y)) in self.out.iter_mut().zip(pair) {
                *out = fma::<I>(*a, *s, fma::<I>(*b, *y, *out));
            }
        }
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
        let (mut history, mut work) = (History::new(3, N).unwrap(), Products::default());
        work.prepare(3, N);
        for (k, (s, y)) in pairs.iter().enumerate() {
            history.push(s, y, 0.0);
            let kept = &pairs[(k + 1).saturating_sub(3)..=k];
            let mut g: Vec<f64> = (0..N).map(|i| (i as f64).cos()).collect();
            let expected = mul(&dense(kept), &Mat::column(&g));
            history.apply(&mut g, &mut work);
            for (a, b) in g.iter().zip(expected.as_slice()) {
                assert!((a - b).abs() < TOLERANCE, "after {} pairs: {a} {b}", k + 1);
            }
        }
    }

    /// The two loops, step by step.
    fn two_loops(of: &History, g: &mut [f64]) {
        let n = g.len();
        let pair = |i: usize| (&of.s[i * n..][..n], &of.y[i * n..][..n], of.rho[i]);
        let add =
            |g: &mut [f64], by: f64, from: &[f64]| g.iter_mut().zip(from).for_each(|(g, v)| *g += by * v);
        let mut alpha = vec![0.0; of.memory];
        for i in of.slots() {
            let (s, y, rho) = pair(i);
            alpha[i] = rho * dot(s, g);
            add(g, -alpha[i], y);
        }
        g.iter_mut().for_each(|g| *g *= of.gamma);
        for i in of.slots().rev() {
            let (s, y, rho) = pair(i);
            add(g, alpha[i] - rho * dot(y, g), s);
        }
    }

    #[test]
    fn registers_have_the_bits_of_the_loops_step_by_step() {
        for n in [1, 7, 8, 29, 1107] {
            let mut history = History::new(4, n).unwrap();
            for k in 0..7 {
                let s: Vec<f64> = (0..n).map(|i| ((3 * i + 17 * k) as f64 * 0.37).sin()).collect();
                let y: Vec<f64> =
                    s.iter().enumerate().map(|(i, s)| (1.0 + 0.2 * (i % 7) as f64) * s).collect();
                history.push(&s, &y, 0.0);
                let g: Vec<f64> = (0..n).map(|i| (i as f64).cos()).collect();
                let (mut fast, mut slow) = (g.clone(), g);
                in_lanes(TwoLoops { of: &history, g: &mut fast, alpha: &mut [0.0; 4] });
                two_loops(&history, &mut slow);
                assert_eq!(fast, slow, "{n}, {k}");
            }
        }
    }

    #[test]
    fn products_give_what_the_vectors_give_to_the_same_bits_on_any_number_of_threads() {
        for n in [1, 7, PIECE, PIECE + 13, 9 * PIECE + 5] {
            let at = |k: usize, i: usize| ((3 * i + 17 * k) as f64 * 0.37).sin();
            let (mut history, mut kept) = (History::new(6, n).unwrap(), Products::new(6, n));
            for k in 0..16 {
                // A history that was dropped, and pairs that are left out, in the middle of it.
                match k {
                    9 => history.clear(),
                    4 | 12 => history.push(&vec![1.0; n], &vec![-1.0; n], 0.0),
                    _ => {}
                }
                let s: Vec<f64> = (0..n).map(|i| at(k, i)).collect();
                let y: Vec<f64> =
                    s.iter().enumerate().map(|(i, s)| (1.0 + 0.2 * (i % 7) as f64) * s).collect();
                history.push(&s, &y, 0.0);
                let g: Vec<f64> = (0..n).map(|i| at(100 + k, i)).collect();
                let (mut fast, mut slow) = (g.clone(), g.clone());
                history.by_products(&mut fast, &mut kept);
                in_lanes(TwoLoops { of: &history, g: &mut slow, alpha: &mut [0.0; 6] });
                let size = slow.iter().fold(0.0, |size: f64, v| size.max(v.abs()));
                assert!(fast.iter().zip(&slow).all(|(a, b)| (a - b).abs() <= 1e-11 * size), "{n}, {k}");
                // A history that was read has no products yet.
                let again = |threads: usize| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    let (mut g, mut work) = (g.clone(), Products::new(6, n));
                    pool.install(|| history.by_products(&mut g, &mut work));
                    g
                };
                assert_eq!(again(1), fast);
                assert_eq!(again(3), fast);
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
