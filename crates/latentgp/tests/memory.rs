//! Ψ-statistics and their adjoints take O(NM + M²) memory, and no more than they say.

use latentgp::Mat;
use latentgp::expectation::{
    Analytic, Cubature5, Expectation, GaussHermite, Gaussians, MonteCarlo, PsiGrad, PsiInputs,
    QuasiMonteCarlo, Unscented,
};
use latentgp::kernel::{Kernel, Linear, Matern32, Rbf};
use latentgp::linalg::Cholesky;
use latentgp::param;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

struct Counting;
static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; only sizes are counted beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(NOW.fetch_add(layout.size(), SeqCst) + layout.size(), SeqCst);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), SeqCst);
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn peak(work: impl FnOnce()) -> f64 {
    let before = NOW.load(SeqCst);
    PEAK.store(before, SeqCst);
    work();
    (PEAK.load(SeqCst) - before) as f64
}

#[test]
fn memory_grows_as_nm_plus_m_squared() {
    // One thread, as the matrix product keeps a buffer of its own on every thread that runs it.
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(measure);
}

/// Bytes that a step may keep beyond that for its way back.
const MOST_KEPT: f64 = 40e6;

fn measure() {
    const Q: usize = 3;
    let rules: [&dyn Expectation; 7] = [
        &Analytic,
        &Analytic,
        &Unscented,
        &GaussHermite::new(3),
        &Cubature5,
        &MonteCarlo::new(50, 0),
        &QuasiMonteCarlo::new(64, 0),
    ];
    let (single, closed) = (Rbf::new(Q), Rbf::new(Q) + Linear::new(Q));
    let open = Matern32::new(Q) + Linear::new(Q);
    for (k, rule) in rules.into_iter().enumerate() {
        let kernel: &dyn Kernel = match k {
            0 => &single,
            1 => &closed,
            _ => &open,
        };
        for (n, m) in [(500, 16), (4000, 16), (4000, 64)] {
            let mean = Mat::from_fn(n, Q, |i, j| ((i * Q + j) as f64).sin());
            let q = Gaussians::new(mean, Mat::filled(n, Q, 0.1)).unwrap();
            let z = Mat::from_fn(m, Q, |i, j| ((i * Q + j) as f64).cos());
            // The first call also pays for that buffer.
            let mut psi = rule.psi(kernel, &q, &z).unwrap();
            let forward = peak(|| psi = rule.psi(kernel, &q, &z).unwrap());
            let mut theta = vec![0.0; param::count(kernel)];
            let mut grads = [Mat::zeros(m, Q), Mat::zeros(n, Q), Mat::zeros(n, Q)];
            let backward = peak(|| {
                let [z_bar, mean, var] = &mut grads;
                let grad = PsiGrad { theta: &mut theta, z: z_bar, mean, var };
                rule.psi_adjoint(kernel, &q, &z, &psi, grad).unwrap();
            });
            let said = rule.cost(n, Q, m).bytes;
            println!(
                "{rule:<36} N {n:>5} M {m:>3}: forward {forward:>9} backward {backward:>9} said {said:>9} bytes"
            );
            assert!(forward < said && backward < said, "{rule} at N = {n}, M = {m}");
            let mut kzz = Mat::zeros(m, m);
            kernel.gram(&z, &mut kzz);
            (0..m).for_each(|i| kzz[(i, i)] += 0.1);
            let l = Cholesky::new(&kzz, "Kzz").unwrap();
            let of = PsiInputs::new(kernel, &q, &z);
            for whiten in [None, Some(&l)] {
                let kept = peak(|| {
                    let [z_bar, mean, var] = &mut grads;
                    let mut to = Some(PsiGrad { theta: &mut theta, z: z_bar, mean, var });
                    let mut adjoint = |psi| Ok((psi, to.take().unwrap()));
                    rule.psi_and_back(&PsiInputs { whiten, ..of }, &mut adjoint).unwrap();
                });
                assert!(kept < said + MOST_KEPT, "{rule} at N = {n}, M = {m} kept {kept} bytes");
            }
            let y = Mat::filled(n, 3, 1.0);
            let kept = peak(|| {
                let [z_bar, mean, var] = &mut grads;
                let mut to = Some(PsiGrad { theta: &mut theta, z: z_bar, mean, var });
                let mut adjoint = |found| Ok((found, to.take().unwrap()));
                rule.psi_y_and_back(&of, &y, &mut adjoint).unwrap();
            });
            assert!(kept < said + MOST_KEPT, "{rule} at N = {n}, M = {m} kept {kept} bytes with outputs");
            let cube = 8.0 * (n * m * m) as f64;
            assert!(m < 64 || (forward < 0.15 * cube && backward < 0.15 * cube), "{rule}: an N×M×M array?");
        }
    }
}
