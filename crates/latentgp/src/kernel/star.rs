//! Points that differ from a centre in one coordinate, as sigma points do.
//!
//! A stationary kernel has their distances from that of the centre with one term exchanged, so that a pair costs the same in
//! any number of dimensions.

use super::Kernel;
use crate::mat::Mat;
use std::ops::Range;

/// ξ along one axis; the centre itself is an arm with ξ = 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arm {
    /// q, the coordinate that moves.
    pub axis: usize,
    /// By how many standard deviations.
    pub xi: f64,
}

/// The points μ_n + ξ_s √S_nq e_q of some rows n and all arms s = (q, ξ_s), arm after arm.
#[derive(Clone, Debug)]
pub struct Star<'a> {
    /// μ of all rows, N×Q.
    pub mean: &'a Mat,
    /// √S of all rows, N×Q.
    pub std: &'a Mat,
    /// The rows meant.
    pub points: Range<usize>,
    /// The arms.
    pub arms: &'a [Arm],
}

/// Where the gradient of a star is added; `mean` and `var` have the rows meant only.
pub struct StarGrad<'a> {
    /// ∂F/∂θ, in the order of `params()`.
    pub theta: &'a mut [f64],
    /// ∂F/∂Z.
    pub z: &'a mut Mat,
    /// ∂F/∂μ.
    pub mean: &'a mut [f64],
    /// ∂F/∂S.
    pub var: &'a mut [f64],
}

/// A kernel that has blocks at stars for less than at as many other points, and the same k(x, x) everywhere.
pub trait StarKernel: Kernel {
    /// The kernel with Z, and with room to work in: one serves many stars.
    fn at<'a>(&'a self, z: &'a Mat) -> Box<dyn StarBlocks + 'a>;
}

/// Blocks between stars and the same Z.
pub trait StarBlocks {
    /// K = k(x, z) at the points of a star.
    fn cross(&mut self, at: &Star<'_>, out: &mut Mat);

    /// Adds the gradient of Σ bar ∘ k(x, z).
    fn cross_adjoint(&mut self, at: &Star<'_>, bar: &Mat, grad: StarGrad<'_>);
}

impl Star<'_> {
    /// The arms of nodes that have at most one coordinate each; `None` where one has more, or none has any.
    pub(crate) fn arms(nodes: &Mat) -> Option<Vec<Arm>> {
        let arm = |s: usize| {
            let mut moved = nodes.row(s).iter().enumerate().filter(|(_, xi)| **xi != 0.0);
            let (axis, xi) = moved.next().map_or((0, 0.0), |(q, xi)| (q, *xi));
            moved.next().is_none().then_some(Arm { axis, xi })
        };
        let arms: Vec<Arm> = (0..nodes.rows()).map(arm).collect::<Option<_>>()?;
        arms.iter().any(|a| a.xi != 0.0).then_some(arms)
    }
}
