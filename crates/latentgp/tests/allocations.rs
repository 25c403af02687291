//! Inner loops allocate nothing: the number of allocations of an evaluation follows from the parts that rows go in, not from
//! the rows.

use latentgp::Mat;
use latentgp::expectation::{Analytic, Expectation, Gaussians, PsiGrad, Unscented};
use latentgp::kernel::{Kernel, Matern32, Rbf};
use latentgp::param;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

struct Counting;
static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; they are only counted beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, SeqCst);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const DIM: usize = 4;
const INDUCING: usize = 20;
/// Allocations of one part of the rows, forward or backward, at the most.
const A_PART: usize = 60;
/// The parts that many rows go in.
const PARTS: usize = 32;

/// Allocations of Ψ and of its adjoint, after a first evaluation.
fn allocations(n: usize, kernel: &dyn Kernel, rule: &dyn Expectation) -> [usize; 2] {
    let mean = Mat::from_fn(n, DIM, |i, j| ((i * DIM + j) as f64).sin());
    let q = Gaussians::new(mean, Mat::filled(n, DIM, 0.1)).unwrap();
    let z = Mat::from_fn(INDUCING, DIM, |i, j| ((i * DIM + j) as f64).cos());
    let mut theta = vec![0.0; param::count(kernel)];
    let mut bars = [Mat::zeros(INDUCING, DIM), Mat::zeros(n, DIM), Mat::zeros(n, DIM)];
    let mut counts = [0; 2];
    for _ in 0..2 {
        let start = COUNT.load(SeqCst);
        let psi = rule.psi(kernel, &q, &z).unwrap();
        let between = COUNT.load(SeqCst);
        let [z_bar, mean, var] = &mut bars;
        let grad = PsiGrad { theta: &mut theta, z: z_bar, mean, var };
        rule.psi_adjoint(kernel, &q, &z, &psi, grad).unwrap();
        counts = [between - start, COUNT.load(SeqCst) - between];
    }
    counts
}

#[test]
fn rows_cost_no_allocations() {
    let (rbf, matern) = (Rbf::new(DIM), Matern32::new(DIM));
    let cases: [(&dyn Kernel, &dyn Expectation); 2] = [(&rbf, &Analytic), (&matern, &Unscented)];
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| {
        for (kernel, rule) in cases {
            let (few, many) = (allocations(2048, kernel, rule), allocations(8192, kernel, rule));
            println!("{rule}: {few:?} allocations for 2048 rows, {many:?} for 8192");
            assert_eq!(few, many, "{rule}");
            assert!(many.iter().all(|count| *count < A_PART * PARTS), "{rule}: {many:?}");
        }
    });
}
