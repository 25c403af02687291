//! Ψ-statistics and their adjoints.

use crate::sizes::{METHODS, Size};
use crate::timing::Bench;
use latentgp::Mat;
use latentgp::expectation::{Psi, PsiGrad};
use latentgp::param;

pub fn run(bench: &mut Bench) {
    for size in Size::all(bench.quick) {
        for method in METHODS {
            let names = [method.case("psi", size), method.case("adjoint", size)];
            if !names.iter().any(|name| bench.wants(name)) {
                continue;
            }
            let (q, z, rule) = (size.gaussians(), size.z(), method.expectation());
            let kernel = method.kernel(size.q);
            bench.case(&names[0], method.psi(size), || {
                std::hint::black_box(rule.psi(&*kernel, &q, &z).expect("Ψ"));
            });
            let bar = Psi {
                psi0: 0.3,
                psi1: Size::numbers(size.n, size.m, 5),
                psi2: Size::numbers(size.m, size.m, 6),
            };
            let mut theta = vec![0.0; param::count(&*kernel)];
            let mut z_bar = Mat::zeros(size.m, size.q);
            let (mut mean, mut var) = (Mat::zeros(size.n, size.q), Mat::zeros(size.n, size.q));
            bench.case(&names[1], method.psi_adjoint(size), || {
                let grad = PsiGrad { theta: &mut theta, z: &mut z_bar, mean: &mut mean, var: &mut var };
                rule.psi_adjoint(&*kernel, &q, &z, &bar, grad).expect("an adjoint of Ψ");
            });
        }
    }
}
