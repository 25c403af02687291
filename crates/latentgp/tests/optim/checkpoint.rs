//! A run that is stored and read back goes on to the same bits, and a step allocates nothing.

use crate::problems::{self, gplvm, rosenbrock};
use latentgp::optim::{Adam, AdamState, Lbfgs, LbfgsState, StopReason, quiet};
use latentgp::{Error, Result};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

fn text(state: &impl serde::Serialize) -> String {
    serde_json::to_string(state).unwrap()
}

fn bits(a: &[f64]) -> Vec<u64> {
    a.iter().map(|a| a.to_bits()).collect()
}

#[test]
fn lbfgs_goes_on_to_the_same_bits_from_any_iteration() {
    let start = problems::all().pop().unwrap().start;
    let how = Lbfgs { memory: 7, max_iterations: 60, ..Lbfgs::default() };
    let mut whole = how.start(&start, &mut gplvm).unwrap();
    let report = how.resume(&mut whole, &mut gplvm, &mut quiet).unwrap();
    for k in [0, 1, 5, 20, 41] {
        let first = Lbfgs { max_iterations: k, ..how.clone() };
        let mut state = first.start(&start, &mut gplvm).unwrap();
        let part = first.resume(&mut state, &mut gplvm, &mut quiet).unwrap();
        assert_eq!((part.iterations, part.stop_reason), (k, StopReason::MaxIterations));
        let mut read: LbfgsState = serde_json::from_str(&text(&state)).unwrap();
        assert_eq!(how.resume(&mut read, &mut gplvm, &mut quiet).unwrap(), report);
        assert_eq!(bits(&read.u), bits(&whole.u), "stored after {k}");
        assert_eq!(text(&read), text(&whole), "stored after {k}");
    }
}

/// Σ w (u − 1)² + (u − 1)⁴, of which every seventh weight is the same.
fn bowl(u: &[f64], g: &mut [f64]) -> Result<f64> {
    let weight = |i: usize| 1.0 + 30.0 * (i % 7) as f64;
    let terms = u.iter().zip(g).enumerate().map(|(i, (u, g))| {
        let d = u - 1.0;
        *g = 2.0 * weight(i) * d + 4.0 * d.powi(3);
        weight(i) * d * d + d.powi(4)
    });
    Ok(terms.sum())
}

#[test]
fn long_vectors_end_in_the_same_bits_on_any_number_of_threads_and_after_a_pause() {
    const LONG: usize = 40_000;
    let start: Vec<f64> = (0..LONG).map(|i| 3.0 * (i as f64).sin()).collect();
    let how = Lbfgs { memory: 5, max_iterations: 25, value_tolerance: 0.0, ..Lbfgs::default() };
    let on = |threads: usize, pause: Option<usize>| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut state = how.start(&start, &mut bowl).unwrap();
            if let Some(k) = pause {
                let first = Lbfgs { max_iterations: k, ..how.clone() };
                first.resume(&mut state, &mut bowl, &mut quiet).unwrap();
                state = serde_json::from_str(&text(&state)).unwrap();
            }
            how.resume(&mut state, &mut bowl, &mut quiet).unwrap();
            (state.iteration, bits(&state.u))
        })
    };
    let whole = on(1, None);
    assert!(whole.0 > 12, "{} iterations", whole.0);
    assert!(on(2, None) == whole && on(3, Some(9)) == whole && on(1, Some(4)) == whole);
}

#[test]
fn an_interrupted_step_can_be_taken_again() {
    let how = Lbfgs::default();
    let mut whole = how.start(&[-1.2, 1.0], &mut rosenbrock).unwrap();
    let report = how.resume(&mut whole, &mut rosenbrock, &mut quiet).unwrap();
    for stop_at in 2..report.evaluations {
        let mut calls = 0;
        let mut fragile = |u: &[f64], g: &mut [f64]| {
            calls += 1;
            if calls == stop_at { Err(Error::Interrupted) } else { rosenbrock(u, g) }
        };
        let mut state = how.start(&[-1.2, 1.0], &mut fragile).unwrap();
        assert_eq!(how.resume(&mut state, &mut fragile, &mut quiet), Err(Error::Interrupted));
        let mut read: LbfgsState = serde_json::from_str(&text(&state)).unwrap();
        assert_eq!(how.resume(&mut read, &mut rosenbrock, &mut quiet).unwrap(), report);
        assert_eq!(text(&read), text(&whole), "interrupted at evaluation {stop_at}");
    }
}

#[test]
fn adam_goes_on_to_the_same_bits_from_any_iteration() {
    let how = Adam { max_iterations: 300, decay: 0.01, ..Adam::default() };
    let mut whole = how.start(&[-1.2, 1.0], &mut rosenbrock).unwrap();
    let report = how.resume(&mut whole, &mut rosenbrock, &mut quiet).unwrap();
    for k in [0, 1, 99, 100, 250] {
        let first = Adam { max_iterations: k, ..how.clone() };
        let mut state = first.start(&[-1.2, 1.0], &mut rosenbrock).unwrap();
        first.resume(&mut state, &mut rosenbrock, &mut quiet).unwrap();
        let mut read: AdamState = serde_json::from_str(&text(&state)).unwrap();
        assert_eq!(how.resume(&mut read, &mut rosenbrock, &mut quiet).unwrap(), report);
        assert_eq!(text(&read), text(&whole), "stored after {k}");
    }
}

#[test]
fn a_state_whose_parts_do_not_fit_is_an_error() {
    let how = Lbfgs::default();
    let mut state = how.start(&[-1.2, 1.0], &mut rosenbrock).unwrap();
    state.u.push(0.0);
    assert!(matches!(how.step(&mut state, &mut rosenbrock), Err(Error::Shape { .. })));
    state.gradient.push(0.0);
    assert!(matches!(how.step(&mut state, &mut rosenbrock), Err(Error::Shape { .. })));
    let how = Adam::default();
    let mut state = how.start(&[-1.2, 1.0], &mut rosenbrock).unwrap();
    state.v.clear();
    assert!(matches!(how.step(&mut state, &mut rosenbrock), Err(Error::Shape { .. })));
}

thread_local!(static ALLOCATIONS: Cell<usize> = const { Cell::new(0) });

/// Counts the allocations of each thread.
struct Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|a| a.set(a.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn a_step_after_the_first_allocates_nothing() -> Result<()> {
    let start = [-1.2, 1.0].repeat(20);
    let (lbfgs, adam) = (Lbfgs::default(), Adam::default());
    let (mut a, mut b) = (lbfgs.start(&start, &mut rosenbrock)?, adam.start(&start, &mut rosenbrock)?);
    lbfgs.step(&mut a, &mut rosenbrock)?;
    adam.step(&mut b, &mut rosenbrock)?;
    let before = ALLOCATIONS.get();
    for _ in 0..80 {
        assert_eq!(lbfgs.step(&mut a, &mut rosenbrock)?, None);
        assert_eq!(adam.step(&mut b, &mut rosenbrock)?, None);
    }
    assert_eq!(ALLOCATIONS.get(), before);
    Ok(())
}
