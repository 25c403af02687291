//! Points that differ from a centre in one coordinate, as sigma points do.
//!
//! A stationary kernel gets their distances from that of the centre by exchanging one term, so that a pair costs the same in
//! any number of dimensions. A centre is a column: coordinate q of all centres is contiguous, and so are the kernel's values
//! for one arm, one z and [`LANES`] centres, which are a whole number of vector registers.

use crate::kernel::Kernel;
use crate::mat::Mat;
use smallvec::SmallVec;
use std::ops::Range;

/// The number of centres of a [`Star`] is a multiple of this: the numbers of the widest vector register.
pub(crate) const LANES: usize = 8;

/// A node on one axis. The centre itself is an arm with ξ = 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arm {
    /// q, the coordinate that moves.
    pub axis: usize,
    /// By how many standard deviations it moves.
    pub xi: f64,
    /// w, the weight of the node.
    pub weight: f64,
}

/// The arms, sorted by axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Arms {
    arms: SmallVec<[Arm; INLINE_ARMS]>,
    /// Axis q has the arms `starts[q]..starts[q + 1]`.
    starts: SmallVec<[usize; INLINE_ARMS]>,
}

/// So many arms are stored inline, without a heap allocation.
const INLINE_ARMS: usize = 64;

impl Arms {
    /// The arms of a rule, `together` at a time; `None` where a node moves more than one coordinate, or none moves any.
    pub(crate) fn of(nodes: &Mat, weights: &[f64], together: usize) -> Option<SmallVec<[Self; 1]>> {
        let arm = |s: usize| {
            let mut moved = nodes.row(s).iter().enumerate().filter(|(_, xi)| **xi != 0.0);
            let (axis, xi) = moved.next().map_or((0, 0.0), |(q, xi)| (q, *xi));
            moved.next().is_none().then_some(Arm { axis, xi, weight: weights[s] })
        };
        let mut arms: SmallVec<[Arm; INLINE_ARMS]> = (0..nodes.rows()).map(arm).collect::<Option<_>>()?;
        arms.sort_by_key(|arm| arm.axis);
        let some = |arms: &[Arm]| Arms {
            arms: arms.into(),
            starts: (0..=nodes.cols()).map(|q| arms.partition_point(|arm| arm.axis < q)).collect(),
        };
        arms.iter().any(|arm| arm.xi != 0.0).then(|| arms.chunks(together).map(some).collect())
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Arm] {
        &self.arms
    }

    /// The indices of those along axis q.
    pub(crate) fn along(&self, q: usize) -> Range<usize> {
        self.starts[q]..self.starts[q + 1]
    }
}

/// The nodes μ_i + ξ_s √S_iq e_q of B centres i and S arms s = (q, ξ_s). All arms of [`LANES`] centres come before those of
/// the next: column (cS + s)·LANES + l of K is arm s of centre c·LANES + l.
#[derive(Clone, Copy)]
pub struct Star<'a> {
    /// μ, Q×B; B is a multiple of [`LANES`].
    pub mean: &'a Mat,
    /// √S, Q×B.
    pub std: &'a Mat,
    /// The arms.
    pub arms: &'a Arms,
}

impl Star<'_> {
    /// SB, the number of nodes.
    pub(crate) fn nodes(&self) -> usize {
        self.arms.all().len() * self.mean.cols()
    }
}

/// K at a star and its adjoint, from which the gradient follows.
#[derive(Clone, Copy)]
pub struct StarBar<'a> {
    /// Z, M×Q.
    pub z: &'a Mat,
    /// The nodes.
    pub at: Star<'a>,
    /// What [`star_cross`](StarKernel::star_cross) kept.
    pub kept: &'a [f64],
    /// K, M×SB.
    pub k: &'a [f64],
    /// ∂F/∂K of each node, divided by the weight of its arm, less what is shared; M×SB.
    pub bar: &'a [f64],
    /// The part of it that all arms of a centre share, M×B.
    pub shared_bar: &'a [f64],
}

/// Where the gradient of stars is added.
pub struct StarGrad<'a> {
    /// ∂F/∂μ, Q×B.
    pub mean: &'a mut Mat,
    /// ∂F/∂√S, Q×B.
    pub std: &'a mut Mat,
    /// Sums from which [`star_finish`](StarKernel::star_finish) computes ∂F/∂θ and ∂F/∂Z:
    /// [`star_gathered`](StarKernel::star_gathered) numbers.
    pub gathered: &'a mut [f64],
}

/// A kernel that is cheaper at stars than at as many other points, and has the same k(x, x) everywhere.
///
/// K = k(z, x) at the nodes of a star is M×SB, row by row. All memory is the caller's.
pub trait StarKernel: Kernel {
    /// How many numbers the backward pass needs for each number of K.
    fn star_kept(&self) -> usize;

    /// How many numbers the gradient of many stars is gathered in, from zeros, with M inducing inputs.
    fn star_gathered(&self, m: usize) -> usize;

    /// Writes K to `out`, and what the backward pass needs to `kept`, unless that is empty.
    fn star_cross(&self, z: &Mat, at: &Star<'_>, kept: &mut [f64], out: &mut [f64]);

    /// Adds the gradient of Σ w_s bar ∘ K.
    fn star_pull(&self, of: StarBar<'_>, grad: StarGrad<'_>);

    /// Adds ∂F/∂θ, in the order of `params()`, and ∂F/∂Z of all that was gathered.
    fn star_finish(&self, gathered: &[f64], theta: &mut [f64], z: &mut Mat);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_are_the_nodes_along_axes() {
        let nodes = Mat::from_rows(&[[0.0, 2.0], [-1.0, 0.0], [0.0, 0.0], [0.0, -3.0]]);
        let all = Arms::of(&nodes, &[0.1, 0.2, 0.3, 0.4], 3).unwrap();
        let arm = |axis: usize, xi: f64, weight: f64| Arm { axis, xi, weight };
        assert_eq!(all[0].all(), [arm(0, -1.0, 0.2), arm(0, 0.0, 0.3), arm(1, 2.0, 0.1)]);
        assert_eq!(all[1].all(), [arm(1, -3.0, 0.4)]);
        assert_eq!(
            [all[0].along(0), all[0].along(1), all[1].along(0), all[1].along(1)],
            [0..2, 2..3, 0..0, 0..1]
        );
        assert_eq!(Arms::of(&Mat::from_rows(&[[1.0, 1.0]]), &[1.0], 8), None);
        assert_eq!(Arms::of(&Mat::zeros(1, 2), &[1.0], 8), None);
    }
}
