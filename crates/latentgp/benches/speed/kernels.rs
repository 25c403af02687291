//! Blocks of kernels, 2000 × 100 points of 8 columns, and their adjoints.

use crate::limit::Work;
use crate::sizes::Size;
use crate::timing::Bench;
use latentgp::Mat;
use latentgp::kernel::{Kernel, KernelGrad, Matern32, Matern52, Periodic, Rbf};
use latentgp::param;

pub fn run(bench: &mut Bench) {
    const DIM: usize = 8;
    let (n, m) = if bench.quick { (64, 8) } else { (2000, 100) };
    let (x, z) = (Size::numbers(n, DIM, 1), Size::numbers(m, DIM, 2));
    let kernels: [(&str, Box<dyn Kernel>, f64); 4] = [
        ("rbf", Box::new(Rbf::new(DIM)), 0.0),
        ("matern32", Box::new(Matern32::new(DIM)), 1.0),
        ("matern52", Box::new(Matern52::new(DIM)), 1.0),
        ("periodic", Box::new(Periodic::new(DIM)), 0.0),
    ];
    let pairs = (n * m) as f64;
    for (name, kernel, roots) in kernels {
        let mut out = Mat::zeros(n, m);
        let work = Work { exps: pairs, roots: roots * pairs, flops: 3.0 * pairs * DIM as f64 };
        bench.case(&format!("kernel/{name}"), work, || kernel.cross(&x, &z, &mut out));
        let bar = Size::numbers(n, m, 3);
        let mut theta = vec![0.0; param::count(&*kernel)];
        let (mut x_bar, mut z_bar) = (Mat::zeros(n, DIM), Mat::zeros(m, DIM));
        let work = Work { flops: 10.0 * pairs * DIM as f64, ..work };
        bench.case(&format!("kernel/{name} adjoint"), work, || {
            let grad = KernelGrad { theta: &mut theta, x: Some(&mut x_bar), z: Some(&mut z_bar) };
            kernel.cross_adjoint(&x, &z, &bar, grad);
        });
    }
}
