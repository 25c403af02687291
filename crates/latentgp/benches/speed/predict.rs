//! 10,000 predictions with variances, from 100 inducing inputs and from an exact process of 2000 rows.

use crate::exact::{DIM, regression};
use crate::limit::Work;
use crate::sizes::Size;
use crate::timing::Bench;
use latentgp::kernel::Rbf;
use latentgp::model::{Model, SparseOptions, SparseRegression};

pub fn run(bench: &mut Bench) {
    let (points, m, n) = if bench.quick { (50, 8, 50) } else { (10_000, 100, 2000) };
    let x = Size::numbers(points, DIM, 7);
    // K∗, the mean, the triangular solve and, for the sparse one, the product with C.
    let work = |m: f64, square: f64| {
        let pairs = points as f64 * m;
        Work { exps: pairs, roots: 0.0, flops: pairs * (3.0 * DIM as f64 + 4.0 + square * m) }
    };
    let name = format!("predict/sparse, M = {m}");
    if bench.wants(&name) {
        let exact = regression(if bench.quick { 50 } else { 2000 });
        let options = SparseOptions { inducing: m, ..SparseOptions::default() };
        let model = SparseRegression::new(exact.x, None, exact.outputs.y, Rbf::new(DIM), &options);
        let posterior = model.and_then(|m| m.posterior()).expect("a posterior");
        bench.case(&name, work(m as f64, 1.0), || {
            std::hint::black_box(posterior.predict(&x).expect("predictions"));
        });
    }
    let name = format!("predict/exact, N = {n}");
    if bench.wants(&name) {
        let posterior = regression(n).posterior().expect("a posterior");
        bench.case(&name, work(n as f64, 1.0), || {
            std::hint::black_box(posterior.predict(&x).expect("predictions"));
        });
    }
}
