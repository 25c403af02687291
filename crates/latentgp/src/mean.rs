//! Mean functions: what a process is around before it sees the kernel.
//!
//! ```text
//! zero  m(x) = 0     constant  m(x) = a     linear  m(x) = a + Bᵀx
//! ```

use crate::linalg::{self, Op};
use crate::mat::Mat;
use crate::param::{Param, Parameterized};

/// A mean function of Q inputs and D outputs, with its parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Mean {
    /// m(x) = 0.
    #[default]
    Zero,
    /// m(x) = a.
    Constant {
        /// a, 1×D.
        intercept: Param,
    },
    /// m(x) = a + Bᵀx.
    Linear {
        /// a, 1×D.
        intercept: Param,
        /// B, Q×D.
        slope: Param,
    },
}

impl Mean {
    /// A constant, starting at 0.
    pub fn constant(outputs: usize) -> Self {
        Mean::Constant { intercept: Param::free(Mat::zeros(1, outputs)) }
    }

    /// A plane, starting at 0.
    pub fn linear(inputs: usize, outputs: usize) -> Self {
        Mean::Linear {
            intercept: Param::free(Mat::zeros(1, outputs)),
            slope: Param::free(Mat::zeros(inputs, outputs)),
        }
    }

    /// `zero`, `constant` or `linear`.
    pub fn name(&self) -> &'static str {
        match self {
            Mean::Zero => "zero",
            Mean::Constant { .. } => "constant",
            Mean::Linear { .. } => "linear",
        }
    }

    /// B, where there is one.
    pub fn slope(&self) -> Option<&Mat> {
        match self {
            Mean::Linear { slope, .. } => Some(&slope.value),
            _ => None,
        }
    }

    /// Adds `scale` · m(x) to every row of `out`, N×D.
    pub fn add(&self, scale: f64, x: &Mat, out: &mut Mat) {
        if let Mean::Constant { intercept } | Mean::Linear { intercept, .. } = self {
            for n in 0..out.rows() {
                out.row_mut(n).iter_mut().zip(intercept.as_slice()).for_each(|(o, a)| *o += scale * a);
            }
        }
        if let Some(slope) = self.slope() {
            linalg::gemm(scale, x, Op::N, slope, Op::N, out);
        }
    }

    /// Adds the gradient of Σ bar ∘ m(x), in the order of `params()`.
    pub fn adjoint(&self, x: &Mat, bar: &Mat, grad: &mut [f64]) {
        let d = bar.cols();
        if *self == Mean::Zero {
            return;
        }
        for n in 0..bar.rows() {
            grad[..d].iter_mut().zip(bar.row(n)).for_each(|(g, b)| *g += b);
        }
        if self.slope().is_some() {
            let slope_bar = linalg::mul_tn(x, bar);
            grad[d..].iter_mut().zip(slope_bar.as_slice()).for_each(|(g, b)| *g += b);
        }
    }
}

impl Parameterized for Mean {
    fn params(&self) -> Vec<(String, &Param)> {
        match self {
            Mean::Zero => vec![],
            Mean::Constant { intercept } => vec![("intercept".into(), intercept)],
            Mean::Linear { intercept, slope } => {
                vec![("intercept".into(), intercept), ("slope".into(), slope)]
            }
        }
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        match self {
            Mean::Zero => vec![],
            Mean::Constant { intercept } => vec![("intercept".into(), intercept)],
            Mean::Linear { intercept, slope } => {
                vec![("intercept".into(), intercept), ("slope".into(), slope)]
            }
        }
    }

    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        match self {
            Mean::Zero => {}
            Mean::Constant { intercept } => visit(intercept),
            Mean::Linear { intercept, slope } => [intercept, slope].into_iter().for_each(visit),
        }
    }

    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        match self {
            Mean::Zero => {}
            Mean::Constant { intercept } => visit(intercept),
            Mean::Linear { intercept, slope } => [intercept, slope].into_iter().for_each(visit),
        }
    }
}
