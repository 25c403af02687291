//! One bound of the Bayesian GPLVM with its whole gradient: what an optimiser pays a step. `whitened` is the same where Kzz is
//! ill-conditioned, as in most fits, and Ψ2 is whitened block by block.

use crate::sizes::{METHODS, Size};
use crate::timing::Bench;
use latentgp::model::{BayesianGplvm, Model};
use latentgp::param::{self, Parameterized};

pub fn run(bench: &mut Bench) {
    for suite in ["bound", "whitened"] {
        for size in Size::all(bench.quick) {
            for method in METHODS {
                let name = method.case(suite, size);
                if bench.wants(&name) {
                    let mut model = size.model(&method);
                    if suite == "whitened" {
                        worsen(&mut model);
                    }
                    let mut grad = vec![0.0; param::count(&model)];
                    bench.case(&name, method.bound(size), || {
                        model.log_evidence(Some(&mut grad)).expect("a bound");
                    });
                }
            }
        }
    }
}

/// Ten times the lengthscales, a tenth of the noise.
fn worsen(model: &mut BayesianGplvm) {
    for (name, p) in model.kernel.params_mut() {
        if name == "lengthscale" {
            p.value.scale(10.0);
        }
    }
    model.noise.set(0.1 * model.noise.get());
}
