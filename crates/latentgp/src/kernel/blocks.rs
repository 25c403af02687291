//! Blocks of a kernel between many sets of points and the same Z.
//!
//! What is known of Z is computed once; what a block is made of is kept for its adjoint, and the gradients of Z and of
//! the parameters are handed over when all blocks are done.

use crate::mat::Mat;

/// A kernel with Z, and with room to work in.
pub trait CrossBlocks: Send {
    /// K = k(x, z), N×M. Block `place` is kept until the next of that place; places are counted from 0.
    fn cross(&mut self, place: usize, x: &Mat, out: &mut Mat);

    /// Adds ∂F/∂x for the x of the last [`cross`](Self::cross) of that place, with `bar` = ∂F/∂K.
    fn cross_adjoint(&mut self, place: usize, x: &Mat, bar: &Mat, x_bar: &mut Mat);

    /// How many numbers a block keeps for each of its rows.
    fn kept(&self) -> usize;

    /// Adds ∂F/∂θ, in the order of `params()`, and ∂F/∂Z of all adjoints since the last call.
    fn finish(&mut self, theta: &mut [f64], z_bar: &mut Mat);
}

/// What is kept at a place; places before it are made where there are none.
pub(super) fn at<T: Default>(kept: &mut Vec<T>, place: usize) -> &mut T {
    if kept.len() <= place {
        kept.resize_with(place + 1, T::default);
    }
    &mut kept[place]
}
