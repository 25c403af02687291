//! k(x, z) = base(h(x), h(z)): a kernel on the features of a network whose weights are kernel parameters.
//!
//! h = layers in order, layer i being X W_i + b_i, then relu on the hidden ones and tanh on the last. Blocks
//! go through the network once, as matrix products; the base sees the features as any other inputs.

mod blocks;

use super::{Kernel, KernelGrad, PointGrad, expression};
use crate::error::{Error, Result};
use crate::fast::cross_blocks::{CrossBlocks, Mats};
use crate::fast::vmath::{Instructions, Vectorized, exp, vectorize};
use crate::fast::{self, FastKernel};
use crate::linalg::{Op, gemm};
use crate::mat::Mat;
use crate::param::{self, Param, Parameterized, Transform};
use crate::scratch::Buffer;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use smallvec::smallvec;

/// How many biases a layer has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bias {
    /// One for all its units.
    #[default]
    Layer,
    /// One a unit.
    Unit,
}

/// A kernel on the output of a network. The slope of relu at 0 is taken as 0.
#[derive(Clone)]
pub struct Mlp {
    /// W_i, fan-in × width.
    pub weights: Vec<Param>,
    /// b_i, 1×1 or 1×width.
    pub biases: Vec<Param>,
    /// The kernel on the features.
    pub base: Box<dyn Kernel>,
    bias: Bias,
    dim: usize,
}

/// What every bias starts from.
const START_BIAS: f64 = 0.01;

impl Mlp {
    /// A network on `dim` columns with one bias a layer, its weights drawn with seed 0.
    ///
    /// `widths` lists the layers, the last being the number of features: the columns that `base` takes.
    pub fn new(dim: usize, widths: &[usize], base: impl Kernel + 'static) -> Result<Self> {
        Self::with(dim, widths, base, Bias::Layer, 0)
    }

    /// Weights ~ N(0, 2/fan-in) by `seed`, biases 0.01. Errs without layers, with an empty one, and when
    /// `base` takes another number of columns.
    pub fn with(
        dim: usize,
        widths: &[usize],
        base: impl Kernel + 'static,
        bias: Bias,
        seed: u64,
    ) -> Result<Self> {
        if dim == 0 || widths.is_empty() || widths.contains(&0) {
            let found = format!("{dim} columns and widths {widths:?}");
            return Err(Error::invalid("layers of an mlp kernel", "input columns, layers, units", found));
        }
        super::check_dim(&base, widths[widths.len() - 1])?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let fans = std::iter::once(&dim).chain(widths);
        let weights = fans.zip(widths).map(|(&fan_in, &width)| {
            let std = (2.0 / fan_in as f64).sqrt();
            let draw = |_, _| {
                let normal: f64 = StandardNormal.sample(&mut rng);
                std * normal
            };
            Param::free(Mat::from_fn(fan_in, width, draw))
        });
        let weights = weights.collect();
        let len = |width: usize| if bias == Bias::Unit { width } else { 1 };
        let biases = widths.iter().map(|&w| Param::free(Mat::filled(1, len(w), START_BIAS))).collect();
        Ok(Mlp { weights, biases, base: Box::new(base), bias, dim })
    }

    /// The widths of the layers.
    pub fn widths(&self) -> Vec<usize> {
        self.weights.iter().map(|w| w.value.cols()).collect()
    }

    /// h(x), one row a point.
    pub fn features(&self, x: &Mat) -> Mat {
        self.forward(x).pop().expect("a network has a layer")
    }

    /// The output of every layer; the sign of a relu output tells its slope.
    fn forward(&self, x: &Mat) -> Mats {
        let mut outputs = smallvec![Mat::default(); self.weights.len()];
        self.forward_into(x, &mut outputs);
        outputs
    }

    /// The same in the memory of `outputs`, one for each layer.
    fn forward_into(&self, x: &Mat, outputs: &mut [Mat]) {
        for (i, (w, b)) in self.weights.iter().zip(&self.biases).enumerate() {
            let (before, from) = outputs.split_at_mut(i);
            let (input, h) = (before.last().unwrap_or(x), &mut from[0]);
            h.resize(x.rows(), w.value.cols());
            h.fill(0.0);
            gemm(1.0, input, Op::N, &w.value, Op::N, h);
            let bias = Buffer::of((0..h.cols()).map(|j| b.as_slice()[super::place(b.len(), j)]));
            let last = i + 1 == self.weights.len();
            vectorize(Activate { h: h.as_mut_slice(), bias: &bias, last });
        }
    }

    /// Adds ∂F/∂W and ∂F/∂b to `theta`, and ∂F/∂x to `x_bar`, from ∂F/∂h in `bar`. `spare` is working memory.
    fn backward(
        &self,
        x: &Mat,
        outputs: &[Mat],
        (bar, spare): (&mut Mat, &mut Mat),
        theta: &mut [f64],
        mut x_bar: Option<&mut Mat>,
    ) {
        let mut w_bar = Mat::default();
        let mut at: usize = self.own();
        for i in (0..self.weights.len()).rev() {
            let (w, b) = (&self.weights[i], &self.biases[i]);
            let last = i + 1 == self.weights.len();
            vectorize(Slope { bar: bar.as_mut_slice(), h: outputs[i].as_slice(), last });
            at -= w.len() + b.len();
            let (w_sum, b_sum) = theta[at..at + w.len() + b.len()].split_at_mut(w.len());
            let input = if i == 0 { x } else { &outputs[i - 1] };
            w_bar.resize(w.value.rows(), w.value.cols());
            w_bar.fill(0.0);
            gemm(1.0, input, Op::T, bar, Op::N, &mut w_bar);
            w_sum.iter_mut().zip(w_bar.as_slice()).for_each(|(a, b)| *a += b);
            for row in bar.as_slice().chunks_exact(w.value.cols()) {
                match b_sum {
                    [shared] => *shared += row.iter().sum::<f64>(),
                    _ => b_sum.iter_mut().zip(row).for_each(|(a, v)| *a += v),
                }
            }
            if i > 0 {
                spare.resize(bar.rows(), w.value.rows());
                spare.fill(0.0);
                gemm(1.0, bar, Op::N, &w.value, Op::T, spare);
                std::mem::swap(bar, spare);
            } else if let Some(x_bar) = x_bar.as_deref_mut() {
                gemm(1.0, bar, Op::N, &w.value, Op::T, x_bar);
            }
        }
    }

    /// Features to ask a base whose diagonal is constant for it, without a pass through the network.
    fn anywhere(&self, rows: usize) -> Mat {
        Mat::zeros(rows, self.weights.last().map_or(0, |w| w.value.cols()))
    }

    /// How many parameters the network has; those of the base come after them.
    fn own(&self) -> usize {
        self.weights.iter().chain(&self.biases).map(Param::len).sum()
    }
}

/// h ← f(h + b) in every row, f being tanh on the last layer and relu elsewhere.
struct Activate<'a> {
    h: &'a mut [f64],
    bias: &'a [f64],
    last: bool,
}

impl Vectorized for Activate<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions>(self) {
        for row in self.h.chunks_exact_mut(self.bias.len()) {
            if self.last {
                row.iter_mut().zip(self.bias).for_each(|(h, b)| *h = tanh::<I>(*h + b));
            } else {
                row.iter_mut().zip(self.bias).for_each(|(h, b)| *h = (*h + b).max(0.0));
            }
        }
    }
}

/// bar ← bar ∘ f', by the output h of f: 1 − h² on the last layer, and elsewhere whether h is above 0.
struct Slope<'a> {
    bar: &'a mut [f64],
    h: &'a [f64],
    last: bool,
}

impl Vectorized for Slope<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions>(self) {
        let both = self.bar.iter_mut().zip(self.h);
        if self.last {
            both.for_each(|(bar, h)| *bar *= 1.0 - h * h);
        } else {
            both.for_each(|(bar, h)| *bar = if *h > 0.0 { *bar } else { 0.0 });
        }
    }
}

/// tanh |x| = (1 − e^{−2|x|}) / (1 + e^{−2|x|}), with the sign of x; absolutely, not relatively, as good as the
/// standard library's, which is all that features need.
#[inline(always)]
fn tanh<I: Instructions>(x: f64) -> f64 {
    let e = exp::<I>(-2.0 * x.abs());
    ((1.0 - e) / (1.0 + e)).copysign(x)
}

fn row(x: &[f64]) -> Mat {
    Mat::from_rows(&[x])
}

fn zeros_like(x: &Mat) -> Mat {
    Mat::zeros(x.rows(), x.cols())
}

impl Parameterized for Mlp {
    fn params(&self) -> Vec<(String, &Param)> {
        let mut all = Vec::new();
        for (i, (w, b)) in self.weights.iter().zip(&self.biases).enumerate() {
            all.extend([(format!("weights{i}"), w), (format!("bias{i}"), b)]);
        }
        all.extend(param::prefixed("base", self.base.params()));
        all
    }
    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        let mut all = Vec::new();
        for (i, (w, b)) in self.weights.iter_mut().zip(&mut self.biases).enumerate() {
            all.extend([(format!("weights{i}"), w), (format!("bias{i}"), b)]);
        }
        all.extend(param::prefixed("base", self.base.params_mut()));
        all
    }
    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.weights.iter().zip(&self.biases).for_each(|(w, b)| [w, b].into_iter().for_each(&mut *visit));
        self.base.each_param(visit);
    }
    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        let layers = self.weights.iter_mut().zip(&mut self.biases);
        layers.for_each(|(w, b)| [w, b].into_iter().for_each(&mut *visit));
        self.base.each_param_mut(visit);
    }
}

impl Kernel for Mlp {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        self.base.eval(self.features(&row(x)).row(0), self.features(&row(z)).row(0))
    }

    fn eval_adjoint(&self, x: &[f64], z: &[f64], bar: f64, grad: PointGrad<'_>) {
        let (mut gx, mut gz) = (Mat::zeros(1, x.len()), Mat::zeros(1, z.len()));
        let block = KernelGrad { theta: grad.theta, x: Some(&mut gx), z: Some(&mut gz) };
        self.cross_adjoint(&row(x), &row(z), &Mat::filled(1, 1, bar), block);
        grad.x.iter_mut().zip(gx.as_slice()).for_each(|(a, b)| *a += b);
        grad.z.iter_mut().zip(gz.as_slice()).for_each(|(a, b)| *a += b);
    }

    fn expression(&self) -> String {
        let widths: Vec<String> = self.widths().iter().map(usize::to_string).collect();
        let mut options = vec![format!("hidden=[{}]", widths.join(", "))];
        options.push(format!("base={}", self.base.expression()));
        if self.bias == Bias::Unit {
            options.push("bias=unit".to_string());
        }
        let params = self.params();
        let own = params.iter().take(2 * self.weights.len());
        let own: Vec<_> = own.map(|(name, p)| (name.as_str(), *p, Transform::Identity)).collect();
        expression::call("mlp", &options, &own)
    }

    fn input_dim(&self) -> Option<usize> {
        Some(self.dim)
    }

    fn cross(&self, x: &Mat, z: &Mat, out: &mut Mat) {
        self.base.cross(&self.features(x), &self.features(z), out);
    }

    fn cross_adjoint(&self, x: &Mat, z: &Mat, bar: &Mat, grad: KernelGrad<'_>) {
        let (hx, hz) = (self.forward(x), self.forward(z));
        let (fx, fz) = (&hx[hx.len() - 1], &hz[hz.len() - 1]);
        let (mut bx, mut bz) = (zeros_like(fx), zeros_like(fz));
        let (own, theta) = grad.theta.split_at_mut(self.own());
        self.base.cross_adjoint(fx, fz, bar, KernelGrad { theta, x: Some(&mut bx), z: Some(&mut bz) });
        self.backward(x, &hx, (&mut bx, &mut Mat::default()), own, grad.x);
        self.backward(z, &hz, (&mut bz, &mut Mat::default()), own, grad.z);
    }

    fn gram(&self, x: &Mat, out: &mut Mat) {
        self.base.gram(&self.features(x), out);
    }

    fn gram_adjoint(&self, x: &Mat, bar: &Mat, grad: KernelGrad<'_>) {
        let hx = self.forward(x);
        let fx = &hx[hx.len() - 1];
        let mut bx = zeros_like(fx);
        let (own, theta) = grad.theta.split_at_mut(self.own());
        self.base.gram_adjoint(fx, bar, KernelGrad { theta, x: Some(&mut bx), z: None });
        self.backward(x, &hx, (&mut bx, &mut Mat::default()), own, grad.x);
    }

    fn fast(&self) -> Option<&dyn FastKernel> {
        Some(self)
    }

    fn constant_diag(&self) -> bool {
        self.base.constant_diag()
    }

    fn diag(&self, x: &Mat, out: &mut [f64]) {
        match self.constant_diag() {
            true => self.base.diag(&self.anywhere(x.rows()), out),
            false => self.base.diag(&self.features(x), out),
        }
    }

    fn diag_adjoint(&self, x: &Mat, bar: &[f64], grad: KernelGrad<'_>) {
        let (own, theta) = grad.theta.split_at_mut(self.own());
        if self.constant_diag() {
            let features = self.anywhere(x.rows());
            return self.base.diag_adjoint(&features, bar, KernelGrad { theta, x: None, z: None });
        }
        let hx = self.forward(x);
        let fx = &hx[hx.len() - 1];
        let mut bx = zeros_like(fx);
        self.base.diag_adjoint(fx, bar, KernelGrad { theta, x: Some(&mut bx), z: None });
        self.backward(x, &hx, (&mut bx, &mut Mat::default()), own, grad.x);
    }
}

impl FastKernel for Mlp {
    fn blocks(&self, z: &Mat, work: &mut dyn FnMut(&dyn CrossBlocks)) -> bool {
        let z_layers = self.forward(z);
        let features = &z_layers[z_layers.len() - 1];
        fast::with_blocks(&*self.base, features, &mut |base| {
            work(&blocks::Blocks { network: self, base, z, z_layers: &z_layers });
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::vmath::Portable;
    use crate::kernel::Rbf;

    #[test]
    fn features_are_those_of_the_definition() {
        let mut k = Mlp::with(2, &[4, 3], Rbf::new(3), Bias::Unit, 7).unwrap();
        for (i, (_, p)) in k.params_mut().into_iter().enumerate() {
            p.value.as_mut_slice().iter_mut().enumerate().for_each(|(j, v)| *v += 0.1 * (i + j) as f64);
        }
        let x = [0.4, -1.2];
        let layer = |x: &[f64], i: usize, f: fn(f64) -> f64| -> Vec<f64> {
            let w = &k.weights[i].value;
            let unit = |j| f((0..x.len()).map(|q| x[q] * w[(q, j)]).sum::<f64>() + k.biases[i].as_slice()[j]);
            (0..w.cols()).map(unit).collect()
        };
        let slow = layer(&layer(&x, 0, |a| a.max(0.0)), 1, f64::tanh);
        let fast = k.features(&row(&x));
        assert!(fast.row(0).iter().zip(&slow).all(|(a, b)| (a - b).abs() < 1e-14));
    }

    #[test]
    fn tanh_is_that_of_the_standard_library() {
        for x in [0.0, 1e-300, 1e-9, -0.1, 0.5, -1.0, 3.0, 19.0, -40.0, 800.0, f64::INFINITY] {
            assert!((tanh::<Portable>(x) - x.tanh()).abs() <= 2.0 * f64::EPSILON, "{x}");
        }
        assert!(tanh::<Portable>(f64::NAN).is_nan());
    }

    #[test]
    fn weights_have_the_variance_of_their_fan_in_and_follow_the_seed() {
        let k = Mlp::new(50, &[200, 3], Rbf::new(3)).unwrap();
        let w = &k.weights[0].value;
        let variance = w.dot(w) / w.len() as f64;
        assert!((variance - 2.0 / 50.0).abs() < 0.05 * 2.0 / 50.0, "{variance}");
        assert_eq!(k.weights, Mlp::new(50, &[200, 3], Rbf::new(3)).unwrap().weights);
        assert_ne!(k.weights, Mlp::with(50, &[200, 3], Rbf::new(3), Bias::Layer, 1).unwrap().weights);
        assert!(Mlp::new(2, &[4, 3], Rbf::new(2)).is_err() && Mlp::new(2, &[], Rbf::new(2)).is_err());
    }
}
