//! k(x_i, x_j) = σ² δ_ij: noise that no two occurrences share.

use super::{ClosedForm, Kernel, KernelGrad, PointGrad, Term, expression, parameters};
use crate::mat::Mat;
use crate::param::{Param, Transform};

/// White noise, for inputs of any number of columns.
///
/// An occurrence of a point has noise of its own, even where another lies at the same place: between two
/// sets of points, training and test, data and inducing, nothing is shared. So `eval` and `cross` are 0;
/// `gram`, which sees one set, is σ²I and `diag` is σ².
#[derive(Clone, Debug)]
pub struct White {
    /// σ², the variance of the noise.
    pub variance: Param,
}

impl White {
    /// Variance 1.
    pub fn new() -> Self {
        White { variance: Param::scalar(1.0) }
    }
}

impl Default for White {
    fn default() -> Self {
        Self::new()
    }
}

parameters!(White: variance);

impl Kernel for White {
    fn eval(&self, _: &[f64], _: &[f64]) -> f64 {
        0.0
    }

    fn eval_adjoint(&self, _: &[f64], _: &[f64], _: f64, _: PointGrad<'_>) {}

    fn expression(&self) -> String {
        expression::call("white", &[], &[("variance", &self.variance, Transform::Exp)])
    }

    fn cross(&self, _: &Mat, _: &Mat, out: &mut Mat) {
        out.fill(0.0);
    }

    fn cross_adjoint(&self, _: &Mat, _: &Mat, _: &Mat, _: KernelGrad<'_>) {}

    fn gram(&self, x: &Mat, out: &mut Mat) {
        out.fill(0.0);
        (0..x.rows()).for_each(|n| out[(n, n)] = self.variance.get());
    }

    fn gram_adjoint(&self, _: &Mat, bar: &Mat, grad: KernelGrad<'_>) {
        grad.theta[0] += bar.trace();
    }

    fn diag(&self, _: &Mat, out: &mut [f64]) {
        out.fill(self.variance.get());
    }

    fn diag_adjoint(&self, _: &Mat, bar: &[f64], grad: KernelGrad<'_>) {
        grad.theta[0] += bar.iter().sum::<f64>();
    }

    fn closed_form(&self) -> Option<ClosedForm> {
        Some(ClosedForm::new([Term { white: true, ..Term::new(&[0], &[], &[]) }]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_shares_its_noise_with_itself_only() {
        let x = Mat::filled(3, 2, 0.5);
        let (mut gram, mut cross) = (Mat::zeros(3, 3), Mat::filled(3, 3, 9.0));
        White::new().gram(&x, &mut gram);
        White::new().cross(&x, &x, &mut cross);
        assert_eq!(gram, Mat::eye(3));
        assert_eq!(cross, Mat::zeros(3, 3));
    }
}
