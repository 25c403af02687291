//! What the machine can do: peak rates of the matrix product and of the vectorised functions that the library uses.

use crate::timing::seconds_of;
use latentgp::Mat;
use latentgp::linalg::{self, Op};
use vmath::{Instructions, Laned, Lanes, Numbers, exp2_decays, in_lanes};

/// The library's own source, which it does not make public.
#[allow(dead_code, unused_imports)]
#[path = "../../src/fast/vmath/mod.rs"]
mod vmath;

/// x ← 2^x.
struct Powers<'a>(&'a mut [f64]);

impl Laned for Powers<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions, const L: usize>(self) {
        exp2_decays::<I, L>(self.0);
    }
}

/// x ← √x, of a multiple of the lanes.
struct Roots<'a>(&'a mut [f64]);

impl Laned for Roots<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions, const L: usize>(self) {
        Lanes::<I, L>::read_mut(self.0).iter_mut().for_each(|x| *x = x.root());
    }
}

/// Operations that a computation asks for.
#[derive(Clone, Copy, Default)]
pub struct Work {
    /// Exponentials: powers of two, as kernels take them.
    pub exps: f64,
    /// Square roots.
    pub roots: f64,
    /// Additions and multiplications.
    pub flops: f64,
}

/// Operations a second, the most that were seen.
#[derive(Clone, Copy, Default)]
pub struct Limit {
    pub exps: f64,
    pub roots: f64,
    pub flops: f64,
}

/// Numbers that stay in the first-level cache.
const LINE: usize = 1024;
/// The side of the matrices: two of them stay in the second-level cache.
const SIDE: usize = 192;
/// Times that the functions run over their numbers, so that what begins and ends costs next to nothing.
const TIMES: usize = 8000;
/// Products of a thread.
const PRODUCTS: usize = 50;

impl Limit {
    /// Measures again, all threads of the pool at once, each on numbers of its own: some twenty milliseconds.
    pub fn raise(&mut self, pool: &rayon::ThreadPool) {
        let threads = pool.current_num_threads() as f64;
        // All of them are awake then.
        pool.broadcast(|_| ());
        let rate = |count: f64, each: &(dyn Fn() + Sync)| {
            threads * count / seconds_of(|| drop(pool.broadcast(|_| each())))
        };
        let line = |i: usize| (i as f64 * 0.01).sin().abs() * 40.0;
        let apply = |f: fn(&mut [f64]), by: f64| {
            move || {
                let (from, mut x) = ((0..LINE).map(line).collect::<Vec<_>>(), vec![0.0; LINE]);
                for _ in 0..TIMES {
                    // Not a plain copy: that would be a call, which on some virtual machines is slow.
                    x.iter_mut().zip(&from).for_each(|(x, from)| *x = by * from);
                    f(&mut x);
                    std::hint::black_box(&mut x);
                }
            }
        };
        let product = || {
            let a = Mat::from_fn(SIDE, SIDE, |i, j| (i + j) as f64 * 1e-3);
            let mut c = Mat::zeros(SIDE, SIDE);
            for _ in 0..PRODUCTS {
                linalg::gemm(1e-3, &a, Op::N, &a, Op::N, &mut c);
            }
            std::hint::black_box(c);
        };
        let numbers = (LINE * TIMES) as f64;
        self.exps = self.exps.max(rate(numbers, &apply(|x| in_lanes(Powers(x)), -0.5)));
        self.roots = self.roots.max(rate(numbers, &apply(|x| in_lanes(Roots(x)), 0.5)));
        self.flops = self.flops.max(rate(2.0 * (SIDE * SIDE * SIDE * PRODUCTS) as f64, &product));
    }

    /// The time of some work at these rates.
    pub fn time(&self, work: &Work) -> f64 {
        work.exps / self.exps + work.roots / self.roots + work.flops / self.flops
    }
}
