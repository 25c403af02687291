//! What makes the crate fast, behind one door: nothing here is public.
//!
//! - [`vmath`]: vector registers, the choice of instructions at run time, elementary functions on slices.
//! - [`scratch`]: buffers that are used again.
//! - [`blocks`]: work on all threads, with the same digits on any number of them.
//! - [`cross_blocks`], [`stationary`]: kernels at many points at a time.
//! - [`star`], [`star_sums`]: kernels at sigma points, and the Ψ-statistics from them.
//!
//! A kernel of this crate says what it has here by [`Kernel::fast`]; any other kernel, a user's for instance, takes the plain way.

pub(crate) mod blocks;
pub(crate) mod cross_blocks;
pub(crate) mod points;
pub(crate) mod scratch;
pub(crate) mod star;
pub(crate) mod star_sums;
pub(crate) mod stationary;
pub(crate) mod vmath;

use crate::kernel::Kernel;
use crate::mat::Mat;
use cross_blocks::{CrossBlocks, Plain};
use star::StarKernel;

/// What a kernel has here.
pub trait FastKernel {
    /// The kernel as one that is cheap at sigma points; `None` where it is not.
    fn star(&self) -> Option<&dyn StarKernel> {
        None
    }

    /// Calls `work` once, with the kernel's blocks between Z and other points; false where it has none.
    fn blocks(&self, _z: &Mat, _work: &mut dyn FnMut(&dyn CrossBlocks)) -> bool {
        false
    }
}

/// The kernel as one that is cheap at sigma points; `None` where it is not.
pub(crate) fn star(kernel: &dyn Kernel) -> Option<&dyn StarKernel> {
    kernel.fast()?.star()
}

/// Calls `work` once, with the kernel's blocks between Z and other points: its own, or else those by
/// [`cross`](Kernel::cross) and [`cross_adjoint`](Kernel::cross_adjoint).
pub(crate) fn with_blocks(kernel: &dyn Kernel, z: &Mat, work: &mut dyn FnMut(&dyn CrossBlocks)) {
    if !kernel.fast().is_some_and(|fast| fast.blocks(z, work)) {
        work(&Plain { kernel, z });
    }
}
