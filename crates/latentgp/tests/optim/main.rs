//! Promises of the optimisers that span files; here L-BFGS beside SciPy's L-BFGS-B: no more evaluations, no
//! higher minima.

mod checkpoint;
mod problems;
mod walls;

use latentgp::optim::{Lbfgs, Optimizer, quiet};
use problems::Problem;
use serde::Deserialize;

/// The most evaluations, as a multiple of SciPy's.
const MORE: f64 = 1.2;
/// Both stop by the same tolerances; what is left above the minimum is of their size.
const VALUE: f64 = 1e-5;

#[derive(Deserialize)]
struct Stored {
    value_tolerance: f64,
    gradient_tolerance: f64,
    runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Run {
    problem: String,
    n: usize,
    memory: usize,
    iterations: usize,
    evaluations: usize,
    value: f64,
}

#[test]
fn needs_no_more_evaluations_than_scipy() {
    let stored: Stored = serde_json::from_str(include_str!("lbfgsb.json")).unwrap();
    let problems = problems::all();
    let mut slow = Vec::new();
    println!("problem         n  memory   iterations    evaluations       value");
    for run in &stored.runs {
        let fits = |p: &&Problem| p.name == run.problem && p.start.len() == run.n;
        let problem = problems.iter().find(fits).expect("every stored run has its problem");
        let how = Lbfgs {
            memory: run.memory,
            max_iterations: 100_000,
            max_evaluations: 100_000,
            value_tolerance: stored.value_tolerance,
            gradient_tolerance: stored.gradient_tolerance,
            ..Lbfgs::default()
        };
        let mut u = problem.start.clone();
        let mut f = problem.function;
        let report = how.minimize(&mut u, &mut f, &mut quiet).unwrap();
        println!(
            "{:14} {:4} {:4}  {:5} ({:5})  {:5} ({:5})  {:10.3e} ({:10.3e})  {}",
            run.problem,
            run.n,
            run.memory,
            report.iterations,
            run.iterations,
            report.evaluations,
            run.evaluations,
            report.value,
            run.value,
            report.stop_reason
        );
        assert!(report.converged, "{}: {}", run.problem, report.stop_reason);
        assert!(report.value <= run.value + VALUE * run.value.abs().max(1.0), "{}", run.problem);
        if let Some(least) = problem.least {
            assert!((report.value - least).abs() < VALUE, "{}", run.problem);
        }
        if report.evaluations as f64 > MORE * run.evaluations as f64 {
            slow.push(format!("{} {} {}", run.problem, run.n, run.memory));
        }
    }
    assert!(slow.is_empty(), "too many evaluations: {slow:?}");
}

#[test]
fn the_default_memory_takes_the_fewest_evaluations_of_three() {
    let total = |memory: usize| -> usize {
        let how = Lbfgs { memory, ..Lbfgs::default() };
        let problems = problems::all();
        let run = |p: &Problem, shift: f64| {
            let mut u: Vec<f64> = p.start.iter().map(|u| u + shift * u.abs().max(0.1)).collect();
            let mut f = p.function;
            how.minimize(&mut u, &mut f, &mut quiet).unwrap().evaluations
        };
        let short = |p: &&Problem| p.start.len() < 1000;
        let shifts = [-0.1, 0.0, 0.1, 0.2];
        problems.iter().filter(short).map(|p| shifts.iter().map(|s| run(p, *s)).sum::<usize>()).sum()
    };
    let totals = [10, 20, 30].map(|memory| (total(memory), memory));
    println!("(evaluations, memory): {totals:?}");
    assert_eq!(totals.iter().min().unwrap().1, Lbfgs::default().memory);
}
