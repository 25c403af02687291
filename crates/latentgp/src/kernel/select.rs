//! k(x[dims], z[dims]): a kernel on some of the input columns.

use super::{ClosedForm, Kernel, KernelGrad, PointGrad, Structure};
use crate::mat::Mat;
use crate::param::{Param, Parameterized};

/// A kernel that sees the columns `dims` of inputs that have `input_dim` columns.
#[derive(Clone)]
pub struct Select {
    /// The kernel on the chosen columns.
    pub kernel: Box<dyn Kernel>,
    /// The columns, from 0.
    pub dims: Vec<usize>,
    /// How many columns the whole input has.
    pub input_dim: usize,
}

impl Select {
    /// `kernel` on the columns `dims` of inputs with `input_dim` columns.
    ///
    /// # Panics
    /// When a column is not there or is listed twice.
    pub fn new(kernel: impl Kernel + 'static, dims: &[usize], input_dim: usize) -> Self {
        assert!(dims.iter().all(|&q| q < input_dim), "dims below the number of input columns");
        let mut sorted = dims.to_vec();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|w| w[0] != w[1]), "every column of dims once");
        Select { kernel: Box::new(kernel), dims: dims.to_vec(), input_dim }
    }

    fn pick(&self, x: &[f64]) -> Vec<f64> {
        self.dims.iter().map(|&q| x[q]).collect()
    }

    fn scatter(&self, from: &Mat, to: &mut Mat) {
        for n in 0..from.rows() {
            for (j, &q) in self.dims.iter().enumerate() {
                to[(n, q)] += from[(n, j)];
            }
        }
    }
}

impl Parameterized for Select {
    fn params(&self) -> Vec<(String, &Param)> {
        self.kernel.params()
    }
    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        self.kernel.params_mut()
    }
    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.kernel.each_param(visit);
    }
    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        self.kernel.each_param_mut(visit);
    }
}

impl Kernel for Select {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        self.kernel.eval(&self.pick(x), &self.pick(z))
    }

    fn eval_adjoint(&self, x: &[f64], z: &[f64], bar: f64, grad: PointGrad<'_>) {
        let (mut gx, mut gz) = (vec![0.0; self.dims.len()], vec![0.0; self.dims.len()]);
        let inner = PointGrad { theta: grad.theta, x: &mut gx, z: &mut gz };
        self.kernel.eval_adjoint(&self.pick(x), &self.pick(z), bar, inner);
        for (j, &q) in self.dims.iter().enumerate() {
            grad.x[q] += gx[j];
            grad.z[q] += gz[j];
        }
    }

    /// `dims=[…]` as the last argument of a kernel by itself, as an argument of `(…)` of a composed one.
    fn expression(&self) -> String {
        let inner = self.kernel.expression();
        let dims: Vec<String> = self.dims.iter().map(|q| q.to_string()).collect();
        let dims = format!("dims=[{}]", dims.join(", "));
        if !matches!(self.kernel.structure(), Structure::Leaf) {
            return format!("({inner})({dims})");
        }
        match inner.strip_suffix(')') {
            Some(head) if head.ends_with('(') => format!("{head}{dims})"),
            Some(head) => format!("{head}, {dims})"),
            None => format!("{inner}({dims})"),
        }
    }

    fn input_dim(&self) -> Option<usize> {
        Some(self.input_dim)
    }

    fn cross(&self, x: &Mat, z: &Mat, out: &mut Mat) {
        self.kernel.cross(&x.select_cols(&self.dims), &z.select_cols(&self.dims), out);
    }

    fn cross_adjoint(&self, x: &Mat, z: &Mat, bar: &Mat, grad: KernelGrad<'_>) {
        let (x, z) = (x.select_cols(&self.dims), z.select_cols(&self.dims));
        let (mut gx, mut gz) = (Mat::zeros(x.rows(), x.cols()), Mat::zeros(z.rows(), z.cols()));
        let inner = KernelGrad { theta: grad.theta, x: Some(&mut gx), z: Some(&mut gz) };
        self.kernel.cross_adjoint(&x, &z, bar, inner);
        if let Some(to) = grad.x {
            self.scatter(&gx, to);
        }
        if let Some(to) = grad.z {
            self.scatter(&gz, to);
        }
    }

    fn gram(&self, x: &Mat, out: &mut Mat) {
        self.kernel.gram(&x.select_cols(&self.dims), out);
    }

    fn gram_adjoint(&self, x: &Mat, bar: &Mat, grad: KernelGrad<'_>) {
        let x = x.select_cols(&self.dims);
        let mut gx = Mat::zeros(x.rows(), x.cols());
        self.kernel.gram_adjoint(&x, bar, KernelGrad { theta: grad.theta, x: Some(&mut gx), z: None });
        if let Some(to) = grad.x {
            self.scatter(&gx, to);
        }
    }

    fn diag(&self, x: &Mat, out: &mut [f64]) {
        self.kernel.diag(&x.select_cols(&self.dims), out);
    }

    fn diag_adjoint(&self, x: &Mat, bar: &[f64], grad: KernelGrad<'_>) {
        let x = x.select_cols(&self.dims);
        let mut gx = Mat::zeros(x.rows(), x.cols());
        self.kernel.diag_adjoint(&x, bar, KernelGrad { theta: grad.theta, x: Some(&mut gx), z: None });
        if let Some(to) = grad.x {
            self.scatter(&gx, to);
        }
    }

    fn closed_form(&self) -> Option<ClosedForm> {
        Some(self.kernel.closed_form()?.on_dims(&self.dims))
    }

    fn structure(&self) -> Structure<'_> {
        Structure::Select(self)
    }

    fn relevance(&self) -> Option<Vec<f64>> {
        let inner = self.kernel.relevance()?;
        let mut all = vec![0.0; self.input_dim];
        self.dims.iter().zip(&inner).for_each(|(&q, r)| all[q] += r);
        Some(all)
    }
}
