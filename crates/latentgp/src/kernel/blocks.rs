//! Blocks of a kernel between the same Z and many sets of points.
//!
//! Points lie in lanes: coordinate q of all of them is contiguous, and so is what the kernel says of one z. What is known of
//! Z is computed once; what a block is made of is kept for its adjoint, and the gradients of Z and of the parameters are
//! handed over when all blocks are done. The room for both is the caller's, so that threads share the rest.

use super::{Kernel, KernelGrad};
use crate::mat::Mat;
use crate::param;
use crate::scratch;
use smallvec::{SmallVec, smallvec};

/// The points of a block come in multiples of this.
pub const BLOCK_POINTS: usize = 16;

/// What [`CrossBlocks`] may rely on.
pub(super) const MADE: &str = "what is kept and gathered is as `cross` and `gather` made it";

/// Some matrices, the first few of which need no room but their numbers.
pub type Mats = SmallVec<[Mat; 6]>;

/// A kernel with Z.
pub trait CrossBlocks: Sync {
    /// Writes K = k(z, x), M×L, at the points x, Q×L, to `out`, which has that shape; L is a multiple of [`BLOCK_POINTS`].
    /// What the adjoint needs is left in `kept`, whatever was there before.
    fn cross(&self, x: &Mat, kept: &mut Mats, out: &mut Mat);

    /// Adds ∂F/∂x, Q×L, for the x, the K and what was kept of a [`cross`](Self::cross), with `bar` = ∂F/∂K; and to what is
    /// gathered. Lanes that only fill the multiple have 0 in K and in `bar`.
    fn pull(&self, x: &Mat, kept: &[Mat], k: &Mat, bar: &Mat, x_bar: &mut Mat, gathered: &mut [Mat]);

    /// How many numbers a block keeps for each of its points.
    fn kept(&self) -> usize;

    /// Whether a block is computed again sooner than read, once it has left the cache.
    fn is_cheap(&self) -> bool {
        false
    }

    /// Zeros, in which the gradients of some blocks are gathered.
    fn gather(&self) -> Mats;

    /// Adds ∂F/∂θ, in the order of `params()`, and ∂F/∂Z of all that was gathered.
    fn finish(&self, gathered: &[Mat], theta: &mut [f64], z_bar: &mut Mat);
}

/// Blocks by [`cross`](Kernel::cross) and [`cross_adjoint`](Kernel::cross_adjoint).
pub(super) struct Plain<'a, K: ?Sized> {
    pub kernel: &'a K,
    pub z: &'a Mat,
}

impl<K: Kernel + ?Sized> CrossBlocks for Plain<'_, K> {
    fn cross(&self, x: &Mat, _: &mut Mats, out: &mut Mat) {
        let mut k = scratch::any(x.cols(), self.z.rows());
        self.kernel.cross(&x.t(), self.z, &mut k);
        k.transpose_into(out);
        scratch::give(&mut k);
    }

    fn pull(&self, x: &Mat, _: &[Mat], _: &Mat, bar: &Mat, x_bar: &mut Mat, gathered: &mut [Mat]) {
        let [theta, z_bar] = gathered else { panic!("{MADE}") };
        let (mut k_bar, mut own) = (scratch::any(bar.cols(), bar.rows()), Mat::zeros(x.cols(), x.rows()));
        bar.transpose_into(&mut k_bar);
        let to = KernelGrad { theta: theta.as_mut_slice(), x: Some(&mut own), z: Some(z_bar) };
        self.kernel.cross_adjoint(&x.t(), self.z, &k_bar, to);
        scratch::give(&mut k_bar);
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
