//! Points that differ from a centre in one coordinate, as sigma points do.
//!
//! A stationary kernel has their distances from that of the centre with one term exchanged, so that a pair costs the same in
//! any number of dimensions. Centres lie in lanes: coordinate q of all of them is contiguous, and so is what the kernel says
//! of one arm of some of them and one z, so that nothing is summed or padded across a vector register.

use super::Kernel;
use crate::mat::Mat;
use smallvec::SmallVec;
use std::ops::Range;

/// The centres of a [`Star`] come in multiples of this.
pub const LANES: usize = 8;

/// ξ along one axis; the centre itself is an arm with ξ = 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arm {
    /// q, the coordinate that moves.
    pub axis: usize,
    /// By how many standard deviations.
    pub xi: f64,
    /// w, what the kernel there counts.
    pub weight: f64,
}

/// Arms in the order of their axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Arms {
    arms: SmallVec<[Arm; FEW]>,
    /// Those along q are `starts[q]..starts[q + 1]`.
    starts: SmallVec<[usize; FEW]>,
}

/// So many arms lie where they are used.
const FEW: usize = 64;

impl Arms {
    /// The arms of nodes that have at most one coordinate each, some at a time; `None` where one has more, or none has any.
    pub(crate) fn of(nodes: &Mat, weights: &[f64], together: usize) -> Option<SmallVec<[Self; 1]>> {
        let arm = |s: usize| {
            let mut moved = nodes.row(s).iter().enumerate().filter(|(_, xi)| **xi != 0.0);
            let (axis, xi) = moved.next().map_or((0, 0.0), |(q, xi)| (q, *xi));
            moved.next().is_none().then_some(Arm { axis, xi, weight: weights[s] })
        };
        let mut arms: SmallVec<[Arm; FEW]> = (0..nodes.rows()).map(arm).collect::<Option<_>>()?;
        arms.sort_by_key(|arm| arm.axis);
        let some = |arms: &[Arm]| Arms {
            arms: arms.into(),
            starts: (0..=nodes.cols()).map(|q| arms.partition_point(|arm| arm.axis < q)).collect(),
        };
        arms.iter().any(|arm| arm.xi != 0.0).then(|| arms.chunks(together).map(some).collect())
    }

    /// All of them.
    pub fn all(&self) -> &[Arm] {
        &self.arms
    }

    /// The places of those along axis q.
    pub fn along(&self, q: usize) -> Range<usize> {
        self.starts[q]..self.starts[q + 1]
    }
}

/// The points μ_i + ξ_s √S_iq e_q of B centres i and all arms s = (q, ξ_s). [`LANES`] centres go together, all arms of them
/// before those of the next: place (cS + s)·LANES + l is arm s of centre c·LANES + l.
#[derive(Clone, Copy, Debug)]
pub struct Star<'a> {
    /// μ, Q×B; B is a multiple of [`LANES`].
    pub mean: &'a Mat,
    /// √S, Q×B.
    pub std: &'a Mat,
    /// The arms.
    pub arms: &'a Arms,
}

impl Star<'_> {
    /// SB, how many places there are.
    pub fn places(&self) -> usize {
        self.arms.all().len() * self.mean.cols()
    }
}

/// ∂F/∂K at the places of a star, each divided by the weight of its arm, as the sum of two.
#[derive(Clone, Copy, Debug)]
pub struct StarBar<'a> {
    /// What every place has of its own, M×SB.
    pub each: &'a [f64],
    /// What all arms of a centre have in common, M×B.
    pub shared: &'a [f64],
}

/// Where the gradient of stars is added.
pub struct StarGrad<'a> {
    /// ∂F/∂μ, Q×B.
    pub mean: &'a mut Mat,
    /// ∂F/∂√S, Q×B.
    pub std: &'a mut Mat,
    /// What [`star_finish`](StarKernel::star_finish) makes ∂F/∂θ and ∂F/∂Z of: [`star_gathered`](StarKernel::star_gathered) numbers.
    pub gathered: &'a mut [f64],
}

/// A kernel that has blocks at stars for less than at as many other points, and the same k(x, x) everywhere.
///
/// K = k(z, x) at the places of a star is M×SB, row by row. The room that it takes is the caller's.
pub trait StarKernel: Kernel {
    /// How many numbers the way back needs for each of K.
    fn star_kept(&self) -> usize;

    /// How many numbers the gradient of many stars is gathered in, from zeros, with M inducing inputs.
    fn star_gathered(&self, m: usize) -> usize;

    /// Writes K to `out`, and [`star_kept`](Self::star_kept) numbers for each of it where `kept` has room for them.
    fn star_cross(&self, z: &Mat, at: &Star<'_>, kept: &mut [f64], out: &mut [f64]);

    /// Adds the gradient of Σ w_s bar ∘ K at the star that K was kept of.
    fn star_pull(
        &self,
        z: &Mat,
        at: &Star<'_>,
        kept: &[f64],
        k: &[f64],
        bar: StarBar<'_>,
        grad: StarGrad<'_>,
    );

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
