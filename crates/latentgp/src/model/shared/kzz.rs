//! Kzz with a jitter on its diagonal, and its adjoint.
//!
//! ```text
//! Kzz + max(jitter, 10⁻¹⁰ tr Kzz / M) I
//! ```
//!
//! A constant jitter becomes negligible as Kzz grows. The condition number would then be unbounded, and an
//! optimiser would exploit that.

use crate::error::{Error, Result};
use crate::kernel::{Kernel, KernelGrad};
use crate::linalg::Cholesky;
use crate::mat::Mat;
use crate::scratch::Buffer;

/// The least jitter relative to the mean diagonal, unless the jitter is 0.
const LEAST: f64 = 1e-10;

/// Whether the jitter is below the least one for a diagonal of this mean.
fn is_least(jitter: f64, mean: f64) -> bool {
    jitter > 0.0 && LEAST * mean > jitter
}

/// The Cholesky factor of Kzz with its jitter.
pub(crate) fn factor(kernel: &dyn Kernel, z: &Mat, jitter: f64) -> Result<Cholesky> {
    let m = z.rows();
    let sum = || {
        let mut kzz = Mat::zeros(m, m);
        kernel.gram(z, &mut kzz);
        let mean = kzz.trace() / m as f64;
        let added = if is_least(jitter, mean) { LEAST * mean } else { jitter };
        (0..m).for_each(|i| kzz[(i, i)] += added);
        kzz
    };
    let kzz = sum();
    if !kzz.is_finite() {
        return Err(Error::not_finite("Kzz"));
    }
    Cholesky::in_place(kzz, sum, "Kzz")
}

/// Propagates `bar`, the adjoint of Kzz with jitter. Returns the part of the jitter that does not grow with
/// the kernel.
pub(crate) fn adjoint(kernel: &dyn Kernel, z: &Mat, jitter: f64, bar: &Mat, grad: KernelGrad<'_>) -> f64 {
    let m = z.rows();
    let mut diag = Buffer::filled(0.0, m);
    kernel.diag(z, &mut diag);
    if !is_least(jitter, diag.iter().sum::<f64>() / m as f64) {
        kernel.gram_adjoint(z, bar, grad);
        return jitter;
    }
    let (mut all, share) = (bar.clone(), LEAST / m as f64 * bar.trace());
    (0..m).for_each(|i| all[(i, i)] += share);
    kernel.gram_adjoint(z, &all, grad);
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use crate::kernel::Linear;
    use crate::model::{Jitter, SparseOptions, SparseRegression};

    #[test]
    fn inducing_inputs_of_any_size_have_the_same_bound_and_no_slope_to_grow() {
        let x = Mat::from_fn(30, 2, |i, j| (1.3 * i as f64 + j as f64).sin());
        let y = Mat::from_fn(30, 1, |i, _| x[(i, 0)] - 0.5 * x[(i, 1)] + 0.1 * (7.0 * i as f64).cos());
        let options = SparseOptions { inducing: 2, noise: 0.1, ..Default::default() };
        let mut model = SparseRegression::new(x, None, y, Linear::new(2), &options).unwrap();
        model.z.value = Mat::from_rows(&[[400.0, 100.0], [-50.0, 300.0]]);
        check::model(&model, 1e-6).unwrap();
        let value = |factor: f64| {
            let mut grown = model.clone();
            grown.z.value.scale(factor);
            crate::model::Model::log_evidence(&grown, None).unwrap()
        };
        assert!((value(1.0) - value(1e6)).abs() < 1e-6, "{} against {}", value(1.0), value(1e6));
        model.jitter = Jitter { kzz: 0.0, b: 0.0 };
        let bare = factor(&*model.kernel, &model.z.value, 0.0).unwrap();
        let known = factor(&*model.kernel, &model.z.value, 1e-6).unwrap();
        assert!(bare.l()[(0, 0)] < known.l()[(0, 0)]);
    }
}
