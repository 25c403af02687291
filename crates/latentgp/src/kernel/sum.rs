//! k = Σ_i k_i.

use super::{ClosedForm, Kernel, KernelGrad, PointGrad, Star, StarBlocks, StarKernel, Structure};
use crate::mat::Mat;
use crate::param::{self, Param, Parameterized};

/// The sum of kernels. Its parameters are named `"0.variance"`, `"1.lengthscale"`, …; a sum of one part is
/// that part, names included.
#[derive(Clone)]
pub struct Sum {
    /// The summands.
    pub parts: Vec<Box<dyn Kernel>>,
}

impl Sum {
    /// The sum of the parts. A part that is itself a sum becomes its summands, so that `a + b + c` has the
    /// parts 0, 1 and 2 however it was put together.
    ///
    /// # Panics
    /// Without parts.
    pub fn new(parts: Vec<Box<dyn Kernel>>) -> Self {
        assert!(!parts.is_empty(), "a sum has at least one part");
        Sum { parts: flat(parts, |k| if let Structure::Sum(inner) = k { Some(inner) } else { None }) }
    }
}

/// The parts, where those of the same kind are replaced by their own.
pub(super) fn flat(
    parts: Vec<Box<dyn Kernel>>,
    same: impl for<'a> Fn(Structure<'a>) -> Option<&'a [Box<dyn Kernel>]>,
) -> Vec<Box<dyn Kernel>> {
    let mut all = Vec::with_capacity(parts.len());
    for part in parts {
        match same(part.structure()) {
            Some(inner) => all.extend_from_slice(inner),
            None => all.push(part),
        }
    }
    all
}

/// `parts[i]` has its parameters at `offsets[i]..offsets[i + 1]`.
pub(super) fn offsets(parts: &[Box<dyn Kernel>]) -> Vec<usize> {
    let mut at = vec![0];
    for part in parts {
        at.push(at[at.len() - 1] + param::count(part));
    }
    at
}

pub(super) fn params(parts: &[Box<dyn Kernel>]) -> Vec<(String, &Param)> {
    if let [only] = parts {
        return only.params();
    }
    parts.iter().enumerate().flat_map(|(i, p)| param::prefixed(&i.to_string(), p.params())).collect()
}

pub(super) fn params_mut(parts: &mut [Box<dyn Kernel>]) -> Vec<(String, &mut Param)> {
    if let [only] = parts {
        return only.params_mut();
    }
    parts.iter_mut().enumerate().flat_map(|(i, p)| param::prefixed(&i.to_string(), p.params_mut())).collect()
}

/// The one input dimension that the parts agree on; a part that takes any follows the others.
pub(super) fn input_dim(parts: &[Box<dyn Kernel>]) -> Option<usize> {
    parts.iter().find_map(|p| p.input_dim())
}

/// Σ of the parts' relevances; `None` where a part that reads the inputs cannot tell.
pub(super) fn relevance(parts: &[Box<dyn Kernel>]) -> Option<Vec<f64>> {
    let mut sum: Option<Vec<f64>> = None;
    for part in parts.iter().filter(|p| p.input_dim().is_some()) {
        let mine = part.relevance()?;
        match &mut sum {
            None => sum = Some(mine),
            Some(sum) => sum.iter_mut().zip(&mine).for_each(|(a, b)| *a += b),
        }
    }
    sum
}

impl Parameterized for Sum {
    fn params(&self) -> Vec<(String, &Param)> {
        params(&self.parts)
    }
    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        params_mut(&mut self.parts)
    }
    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.parts.iter().for_each(|part| part.each_param(visit));
    }
    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        self.parts.iter_mut().for_each(|part| part.each_param_mut(visit));
    }
}

impl Kernel for Sum {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        self.parts.iter().map(|k| k.eval(x, z)).sum()
    }

    fn eval_adjoint(&self, x: &[f64], z: &[f64], bar: f64, grad: PointGrad<'_>) {
        let at = offsets(&self.parts);
        for (i, k) in self.parts.iter().enumerate() {
            let theta = &mut grad.theta[at[i]..at[i + 1]];
            k.eval_adjoint(x, z, bar, PointGrad { theta, x: grad.x, z: grad.z });
        }
    }

    fn expression(&self) -> String {
        let parts: Vec<String> = self.parts.iter().map(|k| k.expression()).collect();
        parts.join(" + ")
    }

    fn input_dim(&self) -> Option<usize> {
        input_dim(&self.parts)
    }

    fn cross(&self, x: &Mat, z: &Mat, out: &mut Mat) {
        add_blocks(&self.parts, out, |k, out| k.cross(x, z, out));
    }

    fn cross_adjoint(&self, x: &Mat, z: &Mat, bar: &Mat, mut grad: KernelGrad<'_>) {
        let at = offsets(&self.parts);
        for (i, k) in self.parts.iter().enumerate() {
            k.cross_adjoint(x, z, bar, grad.part(at[i], at[i + 1]));
        }
    }

    fn gram(&self, x: &Mat, out: &mut Mat) {
        add_blocks(&self.parts, out, |k, out| k.gram(x, out));
    }

    fn gram_adjoint(&self, x: &Mat, bar: &Mat, mut grad: KernelGrad<'_>) {
        let at = offsets(&self.parts);
        for (i, k) in self.parts.iter().enumerate() {
            k.gram_adjoint(x, bar, grad.part(at[i], at[i + 1]));
        }
    }

    fn diag(&self, x: &Mat, out: &mut [f64]) {
        let mut one = vec![0.0; out.len()];
        out.fill(0.0);
        for k in &self.parts {
            k.diag(x, &mut one);
            out.iter_mut().zip(&one).for_each(|(a, b)| *a += b);
        }
    }

    fn diag_adjoint(&self, x: &Mat, bar: &[f64], mut grad: KernelGrad<'_>) {
        let at = offsets(&self.parts);
        for (i, k) in self.parts.iter().enumerate() {
            k.diag_adjoint(x, bar, grad.part(at[i], at[i + 1]));
        }
    }

    fn star(&self) -> Option<&dyn StarKernel> {
        self.parts.iter().all(|k| k.star().is_some()).then_some(self)
    }

    fn closed_form(&self) -> Option<ClosedForm> {
        let at = offsets(&self.parts);
        let mut all = ClosedForm::default();
        for (i, k) in self.parts.iter().enumerate() {
            all.terms.extend(k.closed_form()?.shifted(at[i]).terms);
        }
        Some(all)
    }

    fn structure(&self) -> Structure<'_> {
        match &self.parts[..] {
            [only] => only.structure(),
            parts => Structure::Sum(parts),
        }
    }

    fn relevance(&self) -> Option<Vec<f64>> {
        relevance(&self.parts)
    }
}

impl StarKernel for Sum {
    fn at<'a>(&'a self, z: &'a Mat) -> Box<dyn StarBlocks + 'a> {
        let stars = self.parts.iter().filter_map(|k| k.star());
        let parts = stars.map(|k| (k.at(z), Mat::default())).collect();
        Box::new(SumAtStars { parts, offsets: offsets(&self.parts) })
    }
}

/// The summands, each with its own K.
struct SumAtStars<'a> {
    parts: Vec<(Box<dyn StarBlocks + 'a>, Mat)>,
    offsets: Vec<usize>,
}

impl StarBlocks for SumAtStars<'_> {
    fn cross(&mut self, at: &Star<'_>, keep: bool, out: &mut Mat) {
        out.fill(0.0);
        for (part, k) in &mut self.parts {
            k.resize(out.rows(), out.cols());
            part.cross(at, keep, k);
            out.add_scaled(1.0, k);
        }
    }

    fn pull(&mut self, at: &Star<'_>, _: &Mat, bar: &Mat, mean: &mut Mat, std: &mut Mat) {
        self.parts.iter_mut().for_each(|(part, k)| part.pull(at, k, bar, mean, std));
    }

    fn finish(&mut self, theta: &mut [f64], z: &mut Mat) {
        for (i, (part, _)) in self.parts.iter_mut().enumerate() {
            part.finish(&mut theta[self.offsets[i]..self.offsets[i + 1]], z);
        }
    }
}

fn add_blocks(parts: &[Box<dyn Kernel>], out: &mut Mat, block: impl Fn(&dyn Kernel, &mut Mat)) {
    block(&*parts[0], out);
    let mut one = Mat::zeros(out.rows(), out.cols());
    for k in &parts[1..] {
        block(&**k, &mut one);
        out.add_scaled(1.0, &one);
    }
}
