//! Stationary kernels at many points.

mod block;
mod shapes;
mod star;
mod tile;
mod wide;

pub(crate) use block::{LANES, pack};
pub use shapes::Form;
pub(crate) use shapes::kappa;

use super::FastKernel;
use super::cross_blocks::CrossBlocks;
use super::star::StarKernel;
use super::vmath::{in_lanes, vectorize};
use crate::kernel::{KernelGrad, Shape, Stationary};
use crate::mat::Mat;

/// K = k(x, z); z has columns.
pub(crate) fn cross<S: Shape>(kernel: &Stationary<S>, x: &Mat, z: &Mat, out: &mut Mat) {
    vectorize(block::Cross { kernel, x, z, out });
}

/// Adds the gradient of Σ bar ∘ k(x, z); z has columns.
pub(crate) fn cross_adjoint<S: Shape>(
    kernel: &Stationary<S>,
    x: &Mat,
    z: &Mat,
    bar: &Mat,
    grad: KernelGrad<'_>,
) {
    match kernel.dim >= wide::WIDE && kernel.variance.get().is_normal() {
        true => wide::cross_adjoint(kernel, x, z, bar, grad),
        false => in_lanes(block::CrossAdjoint { kernel, x, z, bar, grad }),
    }
}

/// Both ways divide K by σ_f² to get κ.
impl<S: Shape> FastKernel for Stationary<S> {
    fn star(&self) -> Option<&dyn StarKernel> {
        self.variance.get().is_normal().then_some(self)
    }

    fn blocks(&self, z: &Mat, work: &mut dyn FnMut(&dyn CrossBlocks)) -> bool {
        let fast = !z.is_empty() && self.variance.get().is_normal();
        if fast {
            work(&tile::Tile::new(self, z));
        }
        fast
    }
}
