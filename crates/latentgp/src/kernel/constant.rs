//! k(x, z) = σ²: a function that is the same everywhere, an unknown offset.

use super::{ClosedForm, Kernel, KernelGrad, PointGrad, Term, expression, parameters};
use crate::mat::Mat;
use crate::param::{Param, Transform};

/// The constant kernel, for inputs of any number of columns.
#[derive(Clone, Debug)]
pub struct Constant {
    /// σ², the variance of the offset.
    pub variance: Param,
}

impl Constant {
    /// Variance 1.
    pub fn new() -> Self {
        Constant { variance: Param::scalar(1.0) }
    }
}

impl Default for Constant {
    fn default() -> Self {
        Self::new()
    }
}

parameters!(Constant: variance);

impl Kernel for Constant {
    fn eval(&self, _: &[f64], _: &[f64]) -> f64 {
        self.variance.get()
    }

    fn eval_adjoint(&self, _: &[f64], _: &[f64], bar: f64, grad: PointGrad<'_>) {
        grad.theta[0] += bar;
    }

    fn expression(&self) -> String {
        expression::call("constant", &[], &[("variance", &self.variance, Transform::Exp)])
    }

    fn cross(&self, _: &Mat, _: &Mat, out: &mut Mat) {
        out.fill(self.variance.get());
    }

    fn cross_adjoint(&self, _: &Mat, _: &Mat, bar: &Mat, grad: KernelGrad<'_>) {
        grad.theta[0] += bar.as_slice().iter().sum::<f64>();
    }

    fn diag(&self, _: &Mat, out: &mut [f64]) {
        out.fill(self.variance.get());
    }

    fn diag_adjoint(&self, _: &Mat, bar: &[f64], grad: KernelGrad<'_>) {
        grad.theta[0] += bar.iter().sum::<f64>();
    }

    fn closed_form(&self) -> Option<ClosedForm> {
        Some(ClosedForm::new([Term::new(&[0], &[], &[])]))
    }
}
