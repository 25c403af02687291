//! k(x, z) = Σ_q v_q x_q z_q: Bayesian linear regression through the origin.

use super::{ClosedForm, Kernel, KernelGrad, PointGrad, Term, expression, inner, parameters, place};
use crate::mat::Mat;
use crate::param::{Param, Transform};

/// The linear kernel, with one variance a column (ARD) or one for all.
#[derive(Clone, Debug)]
pub struct Linear {
    /// v, the prior variance of the slopes: 1×Q with ARD, 1×1 without.
    pub variance: Param,
    dim: usize,
}

impl Linear {
    /// One variance of 1 for each of `dim` input columns.
    pub fn new(dim: usize) -> Self {
        Linear { variance: Param::row(dim, 1.0), dim }
    }

    /// One variance of 1 shared by all `dim` input columns.
    pub fn isotropic(dim: usize) -> Self {
        Linear { variance: Param::scalar(1.0), dim }
    }

    /// Whether each column has its own variance.
    pub fn is_ard(&self) -> bool {
        self.variance.len() == self.dim
    }

    fn weights(&self) -> &[f64] {
        self.variance.as_slice()
    }
}

parameters!(Linear: variance);

impl Kernel for Linear {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        inner::dot(self.weights(), x, z)
    }

    fn eval_adjoint(&self, x: &[f64], z: &[f64], bar: f64, grad: PointGrad<'_>) {
        inner::dot_adjoint(self.weights(), x, z, bar, grad.theta, grad.x, grad.z);
    }

    fn expression(&self) -> String {
        let options = if self.is_ard() { vec![] } else { vec!["ard=false".to_string()] };
        expression::call("linear", &options, &[("variance", &self.variance, Transform::Exp)])
    }

    fn input_dim(&self) -> Option<usize> {
        Some(self.dim)
    }

    fn cross(&self, x: &Mat, z: &Mat, out: &mut Mat) {
        inner::cross(self.weights(), x, z, out);
    }

    fn cross_adjoint(&self, x: &Mat, z: &Mat, bar: &Mat, grad: KernelGrad<'_>) {
        inner::cross_adjoint(self.weights(), x, z, bar, grad.theta, grad.x, grad.z);
    }

    fn closed_form(&self) -> Option<ClosedForm> {
        let term = |q| Term::new(&[place(self.variance.len(), q)], &[], &[q]);
        Some(ClosedForm::new((0..self.dim).map(term)))
    }

    fn relevance(&self) -> Option<Vec<f64>> {
        self.is_ard().then(|| self.weights().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_the_closed_form_and_the_relevance_are_those_of_the_variances() {
        let mut k = Linear::new(2);
        k.variance.value.as_mut_slice().copy_from_slice(&[2.0, 3.0]);
        assert_eq!(k.eval(&[1.0, 2.0], &[5.0, 7.0]), 52.0);
        assert_eq!(k.relevance(), Some(vec![2.0, 3.0]));
        let terms = k.closed_form().unwrap().terms;
        assert_eq!(terms.len(), 2);
        assert_eq!((terms[1].scale[0], terms[1].powers[0]), (1, 1));
        assert_eq!(Linear::isotropic(2).relevance(), None);
        assert_eq!(Linear::isotropic(2).closed_form().unwrap().terms[1].scale, [0].into());
    }
}
