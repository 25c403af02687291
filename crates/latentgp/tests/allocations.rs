//! The loop of an optimiser allocates no numbers, by closed forms and by sigma points: after the first steps all of them lie
//! in room that is used again. What is left of an evaluation is a handful of descriptions, and with sigma points two of each
//! part that rows go in, whatever N, D, Q and M are.

use latentgp::model::{Model, PapersTraining};
use latentgp::{Mat, expectation, kernel, param};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

struct Counting;
static COUNT: AtomicUsize = AtomicUsize::new(0);
static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; they are only counted beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, SeqCst);
        LARGEST.fetch_max(layout.size(), SeqCst);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of an evaluation at the most, besides those of its parts.
const AN_EVALUATION: usize = 12;
/// Bytes of the largest.
const BYTES: usize = 16 << 10;
/// Rows go in parts of 64 or more, 32 at the most.
const PARTS: usize = 32;

/// Allocations of one evaluation of the bound and its gradient, as an optimiser asks for them, and the largest of them.
fn allocations(of: &str, by: &str, [n, d, q, m]: [usize; 4], noise: f64) -> (usize, usize) {
    let y = Mat::from_fn(n, d, |i, j| ((7 * i + 13 * j) as f64 * 0.37).sin());
    let how = PapersTraining { latent_dim: q, inducing: m, noise, ..Default::default() };
    let (kernel, rule) = (kernel::parse(of, q).unwrap(), expectation::parse(by).unwrap());
    let mut model = how.start(&y, &*kernel, rule).unwrap();
    let u = param::flatten(&model);
    let (mut grad, mut out) = (vec![0.0; param::count(&model)], vec![0.0; u.len()]);
    let mut evaluate = || {
        param::unflatten(&mut model, &u);
        let value =
            model.varying_evidence(Some(&mut grad)).unwrap() + param::log_prior(&model, Some(&mut grad));
        param::chain(&model, &grad, &mut out);
        value
    };
    for _ in 0..3 {
        evaluate();
    }
    COUNT.store(0, SeqCst);
    LARGEST.store(0, SeqCst);
    evaluate();
    (COUNT.load(SeqCst), LARGEST.load(SeqCst))
}

#[test]
fn an_evaluation_allocates_no_numbers() {
    const SIZES: [[usize; 4]; 3] = [[100, 12, 5, 20], [3000, 12, 10, 50], [2500, 256, 5, 100]];
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| {
        for (of, by, a_part) in [("rbf", "analytic", 0), ("matern32", "unscented", 2)] {
            // Ψ2 is whitened as a whole, and block by block.
            for (size, noise) in SIZES.into_iter().flat_map(|size| [(size, 1e6), (size, 1e-7)]) {
                let (count, largest) = allocations(of, by, size, noise);
                println!(
                    "{of} {by} {size:?}, noise {noise}: {count} allocations of {largest} bytes at the most"
                );
                let most = AN_EVALUATION + a_part * size[0].div_ceil(64).min(PARTS);
                assert!(count <= most, "{of} {by} {size:?}: {count} allocations, expected {most}");
                assert!(largest <= BYTES, "{of} {by} {size:?}: {largest} bytes at once");
            }
        }
    });
}
