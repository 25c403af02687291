//! Blocks of a kernel between the same Z and many sets of points.
//!
//! A matrix of points is Q×L, one point a column: coordinate q of all of them is contiguous, and so is a row of K = k(z, x).
//! What is known of Z is computed once. A block keeps what its adjoint needs; the gradients of Z and of the parameters are
//! summed over blocks and handed over at the end. Both are the caller's memory, so that threads share the rest.

use crate::kernel::{Kernel, KernelGrad};
use crate::mat::Mat;
use crate::param;
use crate::scratch;
use smallvec::{SmallVec, smallvec};

/// The number of points of a block is a multiple of this.
pub(crate) const BLOCK_POINTS: usize = 16;

/// The message of a panic where an implementation of [`CrossBlocks`] gets other matrices than it made itself.
pub(crate) const NOT_ITS_OWN: &str = "the matrices are those that `cross` kept and `gather` made";

/// A short list of matrices, stored inline.
pub type Mats = SmallVec<[Mat; 6]>;

/// A block and its adjoint.
#[derive(Clone, Copy)]
pub struct BlockBar<'a> {
    /// The points, Q×L.
    pub x: &'a Mat,
    /// What [`cross`](CrossBlocks::cross) kept.
    pub kept: &'a [Mat],
    /// K, M×L.
    pub k: &'a Mat,
    /// ∂F/∂K, M×L.
    pub bar: &'a Mat,
}

/// A kernel with Z.
pub trait CrossBlocks: Sync {
    /// Writes K = k(z, x), M×L, at the points x, Q×L, to `out`, which has that shape; L is a multiple of `BLOCK_POINTS`.
    /// Overwrites `kept` with what the adjoint needs.
    fn cross(&self, x: &Mat, kept: &mut Mats, out: &mut Mat);

    /// Adds ∂F/∂x, Q×L, to `x_bar`, and the rest of the gradient to what is gathered. Columns that only fill the multiple
    /// have 0 in K and in its adjoint.
    fn pull(&self, block: BlockBar<'_>, x_bar: &mut Mat, gathered: &mut [Mat]);

    /// How many numbers a block keeps for each of its points.
    fn kept(&self) -> usize;

    /// Whether computing a block again is faster than reading it from main memory.
    fn is_cheap(&self) -> bool {
        false
    }

    /// Zeros, to which the gradients of some blocks are added.
    fn gather(&self) -> Mats;

    /// Adds ∂F/∂θ, in the order of `params()`, and ∂F/∂Z of all that was gathered.
    fn finish(&self, gathered: &[Mat], theta: &mut [f64], z_bar: &mut Mat);
}

/// Blocks by [`cross`](Kernel::cross) and [`cross_adjoint`](Kernel::cross_adjoint), for any kernel.
pub(crate) struct Plain<'a> {
    pub kernel: &'a dyn Kernel,
    pub z: &'a Mat,
}

impl CrossBlocks for Plain<'_> {
    fn cross(&self, x: &Mat, _: &mut Mats, out: &mut Mat) {
        let mut k = scratch::any(x.cols(), self.z.rows());
        self.kernel.cross(&x.t(), self.z, &mut k);
        k.transpose_into(out);
    }

    fn pull(&self, block: BlockBar<'_>, x_bar: &mut Mat, gathered: &mut [Mat]) {
        let ([theta, z_bar], BlockBar { x, bar, .. }) = (gathered, block) else { panic!("{NOT_ITS_OWN}") };
        let (mut k_bar, mut own) = (scratch::any(bar.cols(), bar.rows()), Mat::zeros(x.cols(), x.rows()));
        bar.transpose_into(&mut k_bar);
        let to = KernelGrad { theta: theta.as_mut_slice(), x: Some(&mut own), z: Some(z_bar) };
        self.kernel.cross_adjoint(&x.t(), self.z, &k_bar, to);
        x_bar.add_scaled(1.0, &own.t());
    }

    fn kept(&self) -> usize {
        0
    }

    fn gather(&self) -> Mats {
        smallvec![Mat::zeros(1, param::count(self.kernel)), Mat::zeros(self.z.rows(), self.z.cols())]
    }

    fn finish(&self, gathered: &[Mat], theta: &mut [f64], z_bar: &mut Mat) {
        theta.iter_mut().zip(gathered[0].as_slice()).for_each(|(a, b)| *a += b);
        z_bar.add_scaled(1.0, &gathered[1]);
    }
}
