//! Terms with the values of their parameters, pairs of them, and sums of their gradients.

use super::tile::Shape;
use crate::expectation::Gaussians;
use crate::kernel::Term;
use crate::mat::Mat;
use crate::scratch::Buffer;
use std::ops::Range;

/// A term with the values of its parameters.
pub(super) struct Factor {
    pub term: Term,
    pub scale: f64,
    /// 1/ℓ_q², 0 where there is no Gaussian factor.
    pub precision: Buffer<f64>,
}

impl Factor {
    pub fn new(term: Term, theta: &[f64], dim: usize) -> Self {
        let mut precision = Buffer::filled(0.0, dim);
        term.gauss.iter().for_each(|&(q, i)| precision[q] = theta[i].powi(-2));
        let scale = term.scale.iter().map(|&i| theta[i]).product();
        Factor { term, scale, precision }
    }

    /// The term 1, with which a pair becomes a single term.
    pub fn unit(dim: usize) -> Self {
        Factor { term: Term::default(), scale: 1.0, precision: Buffer::filled(0.0, dim) }
    }

    pub fn is_gaussian(&self) -> bool {
        !self.term.gauss.is_empty()
    }

    /// ∏ z_q over the powers, without `but`.
    pub fn monomial(&self, z: &[f64], but: Option<usize>) -> f64 {
        self.term.powers.iter().filter(|q| Some(**q) != but).map(|&q| z[q]).product()
    }

    /// Adds ∂F/∂θ from ∂F/∂(1/ℓ²) and from Σ F̄∘value, which the scales divide.
    pub fn add_theta(&self, theta: &[f64], precision_bar: &[f64], total: f64, grad: &mut [f64]) {
        self.term.scale.iter().for_each(|&i| grad[i] += total / theta[i]);
        self.term.gauss.iter().for_each(|&(q, i)| grad[i] -= 2.0 * precision_bar[q] * theta[i].powi(-3));
    }
}

/// Two terms, t at z and u at z'. Their expectation is `rows × cols`: M of either, or 1 for a term without Gaussian factor,
/// which is the same for all inducing inputs.
pub(super) struct Pair<'a> {
    pub t: &'a Factor,
    pub u: &'a Factor,
    pub rows: usize,
    pub cols: usize,
    /// Whether t and u are the same term: the lower triangle is enough.
    pub same: bool,
}

impl<'a> Pair<'a> {
    pub fn new(t: &'a Factor, u: &'a Factor, m: usize, same: bool) -> Self {
        let size = |f: &Factor| if f.is_gaussian() { m } else { 1 };
        Pair { t, u, rows: size(t), cols: size(u), same }
    }

    /// Whether the fast tile serves: no monomials at all, and a dimension to be Gaussian in.
    pub fn is_pure(&self) -> bool {
        !self.t.precision.is_empty() && self.t.term.powers.is_empty() && self.u.term.powers.is_empty()
    }

    /// Whether it is nothing but Gaussian, with one value for each of `m` inducing inputs.
    pub fn is_plain(&self, m: usize) -> bool {
        self.is_pure() && self.cols == m
    }

    /// The shape of its values.
    pub fn shape(&self) -> Shape {
        Shape { rows: self.rows, cols: self.cols, same: self.same }
    }

    pub fn scale(&self) -> f64 {
        self.t.scale * self.u.scale
    }
}

/// A pair at some points of the inputs.
#[derive(Clone)]
pub(super) struct PairAt<'a> {
    pub pair: &'a Pair<'a>,
    pub q: &'a Gaussians,
    pub z: &'a Mat,
    pub points: Range<usize>,
}

/// Gradients of a pair, summed over points.
pub(super) struct Slopes {
    /// Σ F̄ ∘ value.
    pub total: f64,
    pub t_precision: Buffer<f64>,
    pub u_precision: Buffer<f64>,
    /// Q×rows and Q×cols.
    pub t_z: Buffer<f64>,
    pub u_z: Buffer<f64>,
}

impl Slopes {
    pub fn new(pair: &Pair<'_>, dim: usize) -> Self {
        Slopes {
            total: 0.0,
            t_precision: Buffer::filled(0.0, dim),
            u_precision: Buffer::filled(0.0, dim),
            t_z: Buffer::filled(0.0, dim * pair.rows),
            u_z: Buffer::filled(0.0, dim * pair.cols),
        }
    }
}
