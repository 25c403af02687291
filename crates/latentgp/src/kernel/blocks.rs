//! Blocks of a kernel between the same Z and many sets of points.
//!
//! Points lie in lanes: coordinate q of all of them is contiguous, and so is what the kernel says of one z. What is known of
//! Z is computed once; what a block is made of is kept for its adjoint, and the gradients of Z and of the parameters are
//! handed over when all blocks are done.

use super::{Kernel, KernelGrad};
use crate::mat::Mat;
use crate::param;
use crate::scratch::Room;

/// The points of a block come in multiples of this.
pub const BLOCK_POINTS: usize = 16;

/// A kernel with Z, and with room to work in.
pub trait CrossBlocks: Send {
    /// Writes K = k(z, x), M×L, at the points x, Q×L, to `out`, which has that shape; L is a multiple of [`BLOCK_POINTS`].
    /// Block `place` is kept until the next of that place; places are counted from 0.
    fn cross(&mut self, place: usize, x: &Mat, out: &mut Mat);

    /// Adds ∂F/∂x, Q×L, for the x and the K of the last [`cross`](Self::cross) of that place, with `bar` = ∂F/∂K. Lanes that
    /// only fill the multiple have 0 in K and in `bar`.
    fn cross_adjoint(&mut self, place: usize, x: &Mat, k: &Mat, bar: &Mat, x_bar: &mut Mat);

    /// How many numbers a block keeps for each of its points.
    fn kept(&self) -> usize;

    /// Whether a block is computed again sooner than read, once it has left the cache.
    fn is_cheap(&self) -> bool {
        false
    }

    /// Adds ∂F/∂θ, in the order of `params()`, and ∂F/∂Z of all adjoints since the last call.
    fn finish(&mut self, theta: &mut [f64], z_bar: &mut Mat);
}

/// The blocks of any kernel: its own, or those of [`cross`](Kernel::cross) and [`cross_adjoint`](Kernel::cross_adjoint).
pub(crate) fn blocks_of<'a>(kernel: &'a dyn Kernel, z: &'a Mat) -> Box<dyn CrossBlocks + 'a> {
    kernel.blocks(z).unwrap_or_else(|| Box::new(Plain::new(kernel, z)))
}

/// Blocks row by row.
struct Plain<'a> {
    kernel: &'a dyn Kernel,
    z: &'a Mat,
    theta: Room<f64>,
    z_bar: Mat,
    /// Room for x, K or K̄, and x̄, one point a row.
    x: Mat,
    k: Mat,
    x_bar: Mat,
    lanes: Mat,
}

impl<'a> Plain<'a> {
    fn new(kernel: &'a dyn Kernel, z: &'a Mat) -> Self {
        Plain {
            kernel,
            z,
            theta: Room::filled(0.0, param::count(kernel)),
            z_bar: Mat::zeros(z.rows(), z.cols()),
            x: Mat::default(),
            k: Mat::default(),
            x_bar: Mat::default(),
            lanes: Mat::default(),
        }
    }
}

impl CrossBlocks for Plain<'_> {
    fn cross(&mut self, _: usize, x: &Mat, out: &mut Mat) {
        x.transpose_into(&mut self.x);
        self.k.resize(x.cols(), self.z.rows());
        self.kernel.cross(&self.x, self.z, &mut self.k);
        self.k.transpose_into(out);
    }

    fn cross_adjoint(&mut self, _: usize, x: &Mat, _: &Mat, bar: &Mat, x_bar: &mut Mat) {
        x.transpose_into(&mut self.x);
        bar.transpose_into(&mut self.k);
        self.x_bar.resize(self.x.rows(), self.x.cols());
        self.x_bar.fill(0.0);
        let to = KernelGrad { theta: &mut self.theta, x: Some(&mut self.x_bar), z: Some(&mut self.z_bar) };
        self.kernel.cross_adjoint(&self.x, self.z, &self.k, to);
        self.x_bar.transpose_into(&mut self.lanes);
        x_bar.add_scaled(1.0, &self.lanes);
    }

    fn kept(&self) -> usize {
        0
    }

    fn finish(&mut self, theta: &mut [f64], z_bar: &mut Mat) {
        theta.iter_mut().zip(&self.theta).for_each(|(a, b)| *a += b);
        z_bar.add_scaled(1.0, &self.z_bar);
        self.theta.fill(0.0);
        self.z_bar.fill(0.0);
    }
}

/// What is kept at a place; places before it are made where there are none.
pub(super) fn at<T: Default>(kept: &mut Vec<T>, place: usize) -> &mut T {
    if kept.len() <= place {
        kept.resize_with(place + 1, T::default);
    }
    &mut kept[place]
}
