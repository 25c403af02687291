//! What the machine can do: peak rates of the matrix product and of the vectorised functions that the library uses.

use crate::timing::best_of;
use latentgp::linalg::{self, Op};
use latentgp::{Mat, vmath};

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

/// Operations a second.
pub struct Limit {
    pub exps: f64,
    pub roots: f64,
    pub flops: f64,
}

/// Numbers that stay in the first-level cache.
const LINE: usize = 1024;
/// The side of the matrices: two of them stay in the second-level cache.
const SIDE: usize = 192;
/// Times that the functions run over their numbers, so that starting a thread costs nothing.
const TIMES: usize = 2000;

impl Limit {
    /// All threads of the pool at once, each on numbers of its own.
    pub fn measure(pool: &rayon::ThreadPool, seconds: f64) -> Self {
        let threads = pool.current_num_threads() as f64;
        let rate = |count: f64, each: &(dyn Fn() + Sync)| {
            let once = &mut || {
                pool.broadcast(|_| each());
            };
            threads * count / best_of(seconds, once).as_secs_f64()
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
            for _ in 0..TIMES / 40 {
                linalg::gemm(1e-3, &a, Op::N, &a, Op::N, &mut c);
            }
            std::hint::black_box(c);
        };
        Limit {
            exps: rate((LINE * TIMES) as f64, &apply(vmath::exp2_decay_in_place, -0.5)),
            roots: rate((LINE * TIMES) as f64, &apply(vmath::sqrt_in_place, 0.5)),
            flops: rate(2.0 * (SIDE * SIDE * SIDE * (TIMES / 40)) as f64, &product),
        }
    }

    /// The time of some work at these rates.
    pub fn time(&self, work: &Work) -> f64 {
        work.exps / self.exps + work.roots / self.roots + work.flops / self.flops
    }
}
