//! k(x, z) = σ_f² (c + xᵀz)^degree.

use super::{Kernel, KernelGrad, PointGrad, expression, inner, parameters};
use crate::error::{Error, Result};
use crate::mat::Mat;
use crate::param::{Param, Transform};

/// The polynomial kernel: all monomials up to `degree`. The offset c > 0 weighs the lower ones.
#[derive(Clone, Debug)]
pub struct Polynomial {
    /// σ_f².
    pub variance: Param,
    /// c.
    pub offset: Param,
    degree: u32,
    dim: usize,
}

impl Polynomial {
    /// The highest degree that is taken.
    pub const MAX_DEGREE: u32 = 100;

    /// Variance 1, offset 1; errs unless the degree is in 1..=[`MAX_DEGREE`](Self::MAX_DEGREE).
    pub fn new(dim: usize, degree: u32) -> Result<Self> {
        if !(1..=Self::MAX_DEGREE).contains(&degree) {
            let allowed = format!("an integer from 1 to {}", Self::MAX_DEGREE);
            return Err(Error::invalid("degree of a polynomial kernel", allowed, degree));
        }
        Ok(Polynomial { variance: Param::scalar(1.0), offset: Param::scalar(1.0), degree, dim })
    }

    /// The exponent.
    pub fn degree(&self) -> u32 {
        self.degree
    }

    /// (c + s)^degree, and its slope in s.
    fn power(&self, s: f64) -> (f64, f64) {
        let base = self.offset.get() + s;
        let lower = base.powi(self.degree as i32 - 1);
        (lower * base, f64::from(self.degree) * lower)
    }
}

parameters!(Polynomial: variance, offset);

impl Kernel for Polynomial {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        self.variance.get() * self.power(inner::dot(&[1.0], x, z)).0
    }

    fn eval_adjoint(&self, x: &[f64], z: &[f64], bar: f64, grad: PointGrad<'_>) {
        let (value, slope) = self.power(inner::dot(&[1.0], x, z));
        let bar_s = bar * self.variance.get() * slope;
        grad.theta[0] += bar * value;
        grad.theta[1] += bar_s;
        inner::dot_adjoint(&[1.0], x, z, bar_s, &mut [0.0], grad.x, grad.z);
    }

    fn expression(&self) -> String {
        let options = [format!("degree={}", self.degree)];
        let params = [("variance", &self.variance, Transform::Exp), ("offset", &self.offset, Transform::Exp)];
        expression::call("polynomial", &options, &params)
    }

    fn input_dim(&self) -> Option<usize> {
        Some(self.dim)
    }

    fn cross(&self, x: &Mat, z: &Mat, out: &mut Mat) {
        inner::cross(&[1.0], x, z, out);
        let variance = self.variance.get();
        out.as_mut_slice().iter_mut().for_each(|s| *s = variance * self.power(*s).0);
    }

    fn cross_adjoint(&self, x: &Mat, z: &Mat, bar: &Mat, grad: KernelGrad<'_>) {
        let mut bar_s = Mat::zeros(x.rows(), z.rows());
        inner::cross(&[1.0], x, z, &mut bar_s);
        let variance = self.variance.get();
        for (s, bar) in bar_s.as_mut_slice().iter_mut().zip(bar.as_slice()) {
            let (value, slope) = self.power(*s);
            *s = bar * variance * slope;
            grad.theta[0] += bar * value;
            grad.theta[1] += *s;
        }
        inner::cross_adjoint(&[1.0], x, z, &bar_s, &mut [0.0], grad.x, grad.z);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_square_is_a_square_and_degrees_have_limits() {
        let k = Polynomial::new(2, 2).unwrap();
        assert_eq!(k.eval(&[1.0, 2.0], &[3.0, -0.5]), 9.0);
        assert!(Polynomial::new(2, 0).is_err() && Polynomial::new(2, 101).is_err());
    }
}
