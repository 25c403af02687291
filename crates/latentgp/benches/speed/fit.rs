//! Whole fits: 100 rows of oil flow, Q = 5, M = 20, from PCA to convergence.

use crate::sizes::{METHODS, Size};
use crate::timing::Bench;
use latentgp::data::oil_flow;
use latentgp::model::Training;
use std::ops::ControlFlow;

pub fn run(bench: &mut Bench) {
    let y = oil_flow::simulate(100, 1).y;
    for method in METHODS {
        let size = Size { n: 100, d: 12, q: 5, m: 20 };
        let name = method.case("fit", &size);
        if !bench.wants(&name) {
            continue;
        }
        let training = Training {
            latent_dim: size.q,
            inducing: size.m,
            expectation: method.expectation(),
            max_iterations: if bench.quick { 2 } else { 1000 },
            hold: if bench.quick { 2 } else { 50 },
            ..Training::default()
        };
        let kernel = method.kernel(size.q);
        let fit = || training.fit(&y, &*kernel, &|_| ControlFlow::Continue(())).expect("a fit");
        let first = fit();
        println!("{name}: {} evaluations to a bound of {:.2}", first.evaluations, first.evidence);
        let mut work = method.bound(&size);
        let times = first.evaluations as f64;
        work.exps *= times;
        work.roots *= times;
        work.flops *= times;
        bench.case(&name, work, || {
            std::hint::black_box(fit().model.certificate().expect("a certificate"));
        });
    }
}
