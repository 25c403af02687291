//! Blocks of a kernel between many sets of points and the same Z.
//!
//! What is known of Z is computed once; what a block is made of is kept for its adjoint, and the gradients of Z and of
//! the parameters are handed over when all blocks are done.

use crate::mat::Mat;

/// A kernel with Z, and with room to work in.
pub trait CrossBlocks {
    /// K = k(x, z), N×M.
    fn cross(&mut self, x: &Mat, out: &mut Mat);

    /// Adds ∂F/∂x for the x of the last [`cross`](Self::cross), with `bar` = ∂F/∂K.
    fn cross_adjoint(&mut self, x: &Mat, bar: &Mat, x_bar: &mut Mat);

    /// Adds ∂F/∂θ, in the order of `params()`, and ∂F/∂Z of all adjoints since the last call.
    fn finish(&mut self, theta: &mut [f64], z_bar: &mut Mat);
}
