//! k = Σ_i k_i.

use super::{ClosedForm, Kernel, KernelGrad, PointGrad, Structure};
use crate::fast::star::{Star, StarBar, StarGrad, StarKernel};
use crate::fast::{self, FastKernel};
use crate::mat::Mat;
use crate::param::{self, Param, Parameterized};
use crate::scratch::Buffer;
use smallvec::{SmallVec, smallvec};

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
pub(super) fn offsets(parts: &[Box<dyn Kernel>]) -> SmallVec<[usize; 8]> {
    let mut at = smallvec![0];
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
        let mut one = Buffer::filled(0.0, out.len());
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

    fn fast(&self) -> Option<&dyn FastKernel> {
        Some(self)
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

impl Sum {
    /// The summands that are cheap at stars; all of them where the sum is used as one.
    fn stars(&self) -> impl Iterator<Item = &dyn StarKernel> {
        self.parts.iter().filter_map(|k| fast::star(&**k))
    }
}

impl FastKernel for Sum {
    fn star(&self) -> Option<&dyn StarKernel> {
        (self.stars().count() == self.parts.len()).then_some(self)
    }
}

/// Each summand keeps its own K, and what it needs for each number of that.
impl StarKernel for Sum {
    fn star_kept(&self) -> usize {
        self.stars().map(|k| 1 + k.star_kept()).sum()
    }

    fn star_gathered(&self, m: usize) -> usize {
        self.stars().map(|k| k.star_gathered(m)).sum()
    }

    fn star_cross(&self, z: &Mat, at: &Star<'_>, kept: &mut [f64], out: &mut [f64]) {
        out.fill(0.0);
        let len = out.len();
        let mut add = |k: &[f64]| out.iter_mut().zip(k).for_each(|(sum, k)| *sum += k);
        if kept.is_empty() {
            let mut k = Buffer::filled(0.0, len);
            for part in self.stars() {
                part.star_cross(z, at, &mut [], &mut k);
                add(&k);
            }
            return;
        }
        let mut rest = kept;
        for part in self.stars() {
            let (own, others) = rest.split_at_mut(len * (1 + part.star_kept()));
            let (k, kept) = own.split_at_mut(len);
            part.star_cross(z, at, kept, k);
            add(k);
            rest = others;
        }
    }

    fn star_pull(&self, of: StarBar<'_>, grad: StarGrad<'_>) {
        let StarGrad { mean, std, gathered } = grad;
        let (mut rest, mut gathered, len) = (of.kept, gathered, of.k.len());
        for part in self.stars() {
            let (own, others) = rest.split_at(len * (1 + part.star_kept()));
            let (k, kept) = own.split_at(len);
            let (to, more) = gathered.split_at_mut(part.star_gathered(of.z.rows()));
            part.star_pull(StarBar { kept, k, ..of }, StarGrad { mean, std, gathered: to });
            (rest, gathered) = (others, more);
        }
    }

    fn star_finish(&self, gathered: &[f64], theta: &mut [f64], z: &mut Mat) {
        let (mut gathered, mut theta) = (gathered, theta);
        for part in self.stars() {
            let (own, others) = gathered.split_at(part.star_gathered(z.rows()));
            let (to, more) = theta.split_at_mut(param::count(part));
            part.star_finish(own, to, z);
            (gathered, theta) = (others, more);
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
