//! The evidence of an exact process with its gradient, 8 lengthscales.

use crate::limit::Work;
use crate::sizes::Size;
use crate::timing::Bench;
use latentgp::kernel::Rbf;
use latentgp::model::{Model, Regression};
use latentgp::{Mat, param};

pub const DIM: usize = 8;

/// A smooth function of the inputs, with noise.
pub fn regression(n: usize) -> Regression {
    let (x, noise) = (Size::numbers(n, DIM, 1), Size::numbers(n, 1, 2));
    let y = Mat::from_fn(n, 1, |i, _| (x[(i, 0)] + 0.5 * x[(i, 1)]).sin() + 0.1 * noise[(i, 0)]);
    let mut kernel = Rbf::new(DIM);
    kernel.lengthscale.set((DIM as f64).sqrt());
    Regression::new(x, y, kernel).expect("shapes agree")
}

pub fn run(bench: &mut Bench) {
    let sizes: &[usize] = if bench.quick { &[50] } else { &[500, 2000, 5000] };
    for &n in sizes {
        let name = format!("exact/evidence and gradient, N = {n}");
        if bench.wants(&name) {
            let model = regression(n);
            let mut grad = vec![0.0; param::count(&model)];
            let size = n as f64;
            let pairs = size * (size + 1.0) / 2.0;
            // Cholesky N³/3, its inverse N³/3, their product N³/3; distances and their adjoint 10 a pair and column.
            let work = Work { exps: pairs, roots: 0.0, flops: size.powi(3) + 10.0 * pairs * DIM as f64 };
            bench.case(&name, work, || {
                model.log_evidence(Some(&mut grad)).expect("an evidence");
            });
        }
    }
}
