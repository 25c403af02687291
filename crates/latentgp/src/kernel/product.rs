//! k = ∏_i k_i.

use super::{ClosedForm, InlineVec, Kernel, KernelGrad, PointGrad, Structure, sum};
use crate::mat::Mat;
use crate::param::{Param, Parameterized};

/// The product of kernels. Its parameters are named `"0.variance"`, `"1.lengthscale"`, …; a product of one
/// part is that part, names included.
#[derive(Clone)]
pub struct Product {
    /// The factors.
    pub parts: Vec<Box<dyn Kernel>>,
}

impl Product {
    /// The product of the parts. A part that is itself a product becomes its factors.
    ///
    /// # Panics
    /// Without parts.
    pub fn new(parts: Vec<Box<dyn Kernel>>) -> Self {
        assert!(!parts.is_empty(), "a product has at least one part");
        Product {
            parts: sum::flat(parts, |k| if let Structure::Product(inner) = k { Some(inner) } else { None }),
        }
    }

    /// K of every part, one after the other.
    fn blocks(&self, rows: usize, cols: usize, block: impl Fn(&dyn Kernel, &mut Mat)) -> InlineVec<Mat> {
        self.parts
            .iter()
            .map(|k| {
                let mut out = Mat::zeros(rows, cols);
                block(&**k, &mut out);
                out
            })
            .collect()
    }
}

fn multiply(out: &mut [f64], by: &[f64]) {
    out.iter_mut().zip(by).for_each(|(a, b)| *a *= b);
}

/// bar ∘ the product of all blocks but the i-th.
fn bar_of(i: usize, mut bar: Mat, blocks: &[Mat]) -> Mat {
    let others = blocks.iter().enumerate().filter(|(j, _)| *j != i);
    others.for_each(|(_, block)| multiply(bar.as_mut_slice(), block.as_slice()));
    bar
}

impl Parameterized for Product {
    fn params(&self) -> Vec<(String, &Param)> {
        sum::params(&self.parts)
    }
    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        sum::params_mut(&mut self.parts)
    }
    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.parts.iter().for_each(|part| part.each_param(visit));
    }
    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        self.parts.iter_mut().for_each(|part| part.each_param_mut(visit));
    }
}

impl Kernel for Product {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        self.parts.iter().map(|k| k.eval(x, z)).product()
    }

    fn eval_adjoint(&self, x: &[f64], z: &[f64], bar: f64, grad: PointGrad<'_>) {
        let at = sum::offsets(&self.parts);
        let values: InlineVec<f64> = self.parts.iter().map(|k| k.eval(x, z)).collect();
        for (i, k) in self.parts.iter().enumerate() {
            let others: f64 = values.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, v)| v).product();
            let theta = &mut grad.theta[at[i]..at[i + 1]];
            k.eval_adjoint(x, z, bar * others, PointGrad { theta, x: grad.x, z: grad.z });
        }
    }

    /// Sums inside a product stand in parentheses.
    fn expression(&self) -> String {
        if let [only] = &self.parts[..] {
            return only.expression();
        }
        let print = |k: &dyn Kernel| match k.structure() {
            Structure::Sum(_) => format!("({})", k.expression()),
            _ => k.expression(),
        };
        let parts: Vec<String> = self.parts.iter().map(|k| print(&**k)).collect();
        parts.join(" * ")
    }

    fn input_dim(&self) -> Option<usize> {
        sum::input_dim(&self.parts)
    }

    fn cross(&self, x: &Mat, z: &Mat, out: &mut Mat) {
        let blocks = self.blocks(x.rows(), z.rows(), |k, out| k.cross(x, z, out));
        out.fill(1.0);
        blocks.iter().for_each(|b| multiply(out.as_mut_slice(), b.as_slice()));
    }

    fn cross_adjoint(&self, x: &Mat, z: &Mat, bar: &Mat, mut grad: KernelGrad<'_>) {
        let at = sum::offsets(&self.parts);
        let blocks = self.blocks(x.rows(), z.rows(), |k, out| k.cross(x, z, out));
        for (i, k) in self.parts.iter().enumerate() {
            k.cross_adjoint(x, z, &bar_of(i, bar.clone(), &blocks), grad.part(at[i], at[i + 1]));
        }
    }

    fn gram(&self, x: &Mat, out: &mut Mat) {
        let blocks = self.blocks(x.rows(), x.rows(), |k, out| k.gram(x, out));
        out.fill(1.0);
        blocks.iter().for_each(|b| multiply(out.as_mut_slice(), b.as_slice()));
    }

    fn gram_adjoint(&self, x: &Mat, bar: &Mat, mut grad: KernelGrad<'_>) {
        let at = sum::offsets(&self.parts);
        let blocks = self.blocks(x.rows(), x.rows(), |k, out| k.gram(x, out));
        for (i, k) in self.parts.iter().enumerate() {
            k.gram_adjoint(x, &bar_of(i, bar.clone(), &blocks), grad.part(at[i], at[i + 1]));
        }
    }

    fn diag(&self, x: &Mat, out: &mut [f64]) {
        let blocks = self.blocks(1, x.rows(), |k, out| k.diag(x, out.as_mut_slice()));
        out.fill(1.0);
        blocks.iter().for_each(|b| multiply(out, b.as_slice()));
    }

    fn diag_adjoint(&self, x: &Mat, bar: &[f64], mut grad: KernelGrad<'_>) {
        let at = sum::offsets(&self.parts);
        let blocks = self.blocks(1, x.rows(), |k, out| k.diag(x, out.as_mut_slice()));
        for (i, k) in self.parts.iter().enumerate() {
            k.diag_adjoint(x, bar_of(i, Mat::column(bar), &blocks).as_slice(), grad.part(at[i], at[i + 1]));
        }
    }

    fn closed_form(&self) -> Option<ClosedForm> {
        let at = sum::offsets(&self.parts);
        let mut all: Option<ClosedForm> = None;
        for (i, k) in self.parts.iter().enumerate() {
            let mine = k.closed_form()?.shifted(at[i]);
            all = Some(match all {
                None => mine,
                Some(before) => before.times(&mine)?,
            });
        }
        all
    }

    fn structure(&self) -> Structure<'_> {
        match &self.parts[..] {
            [only] => only.structure(),
            parts => Structure::Product(parts),
        }
    }

    fn relevance(&self) -> Option<Vec<f64>> {
        // The slope of a product in a column is that of one part times the size of the others.
        let ones = vec![1.0; sum::input_dim(&self.parts)?];
        let sizes: Vec<f64> = self.parts.iter().map(|part| part.eval(&ones, &ones)).collect();
        let others = |k: usize| {
            sizes.iter().enumerate().filter(|(j, _)| *j != k).map(|(_, size)| size).product::<f64>()
        };
        let mut total = vec![0.0; ones.len()];
        for (k, part) in self.parts.iter().enumerate().filter(|(_, part)| part.input_dim().is_some()) {
            total.iter_mut().zip(part.relevance()?).for_each(|(t, r)| *t += others(k) * r);
        }
        Some(total)
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::parse;

    #[test]
    fn relevance_is_the_prior_variance_of_slopes() {
        for text in [
            "rbf(variance=3, lengthscale=[0.5, 2])",
            "rbf(variance=3, lengthscale=[0.5, 2]) * rbf(variance=0.5, lengthscale=[1, 4])",
            "rbf(variance=3, lengthscale=[0.5, 2]) + linear(variance=[0.1, 2])",
            "constant(variance=7) * periodic(ard=true, variance=2, lengthscale=[0.7, 3], period=1.5)",
            "cosine(variance=2, period=[3, 5]) * rbf(variance=3, lengthscale=[0.5, 2])",
        ] {
            let k = parse(text, 2).unwrap();
            for (q, told) in k.relevance().unwrap().into_iter().enumerate() {
                let (h, at) = (1e-3, [1.0, 1.0]);
                let moved = |by: f64| {
                    let mut x = at;
                    x[q] += by;
                    x
                };
                let (up, down) = (moved(h), moved(-h));
                let cross = k.eval(&up, &up) - k.eval(&up, &down) - k.eval(&down, &up) + k.eval(&down, &down);
                let slope = cross / (4.0 * h * h);
                assert!((told - slope).abs() < 1e-3 * slope, "{text}, column {q}: {told}, {slope}");
            }
        }
    }
}
