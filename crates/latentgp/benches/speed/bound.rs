//! One bound of the Bayesian GPLVM with its whole gradient: what an optimiser pays a step.

use crate::sizes::{METHODS, Size};
use crate::timing::Bench;
use latentgp::model::Model;
use latentgp::param;

pub fn run(bench: &mut Bench) {
    for size in Size::all(bench.quick) {
        for method in METHODS {
            let name = method.case("bound", size);
            if bench.wants(&name) {
                let model = size.model(&method);
                let mut grad = vec![0.0; param::count(&model)];
                bench.case(&name, method.bound(size), || {
                    model.log_evidence(Some(&mut grad)).expect("a bound");
                });
            }
        }
    }
}
