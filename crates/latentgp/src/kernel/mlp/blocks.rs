//! Blocks of the network kernel at many sets of points and the same Z: Z goes through the network once in either pass, and
//! the layers of a block are kept for its adjoint.

use super::{Mlp, zeros_like};
use crate::fast::cross_blocks::{BlockBar, CrossBlocks, Mats, NOT_ITS_OWN};
use crate::mat::Mat;

/// The blocks of a network with some Z.
pub(super) struct Blocks<'a> {
    pub network: &'a Mlp,
    /// The blocks of the base kernel at the features of Z.
    pub base: &'a dyn CrossBlocks,
    pub z: &'a Mat,
    /// The layers at Z.
    pub z_layers: &'a [Mat],
}

impl Blocks<'_> {
    fn layers(&self) -> usize {
        self.z_layers.len()
    }
}

/// Keeps the layers at a block's points, the points as rows, the features as columns, and what the base keeps. Gathers ∂F/∂W
/// and ∂F/∂b, and what the base gathers.
impl CrossBlocks for Blocks<'_> {
    fn cross(&self, x: &Mat, kept: &mut Mats, out: &mut Mat) {
        let own = self.layers() + 2;
        let mut of_base: Mats = kept.drain(own.min(kept.len())..).collect();
        kept.resize(own, Mat::default());
        let (layers, rest) = kept.split_at_mut(self.layers());
        let [rows, features] = rest else { panic!("{NOT_ITS_OWN}") };
        x.transpose_into(rows);
        self.network.forward_into(rows, layers);
        layers[layers.len() - 1].transpose_into(features);
        self.base.cross(features, &mut of_base, out);
        kept.extend(of_base);
    }

    fn pull(&self, block: BlockBar<'_>, x_bar: &mut Mat, gathered: &mut [Mat]) {
        let (layers, rest) = block.kept.split_at(self.layers());
        let ([rows, features, of_base @ ..], Some((theta, sums))) = (rest, gathered.split_first_mut()) else {
            panic!("{NOT_ITS_OWN}")
        };
        let mut features_bar = zeros_like(features);
        let of_base = BlockBar { x: features, kept: of_base, ..block };
        self.base.pull(of_base, &mut features_bar, sums);
        let (mut bar, mut spare, mut own) = (features_bar.t(), Mat::default(), zeros_like(rows));
        self.network.backward(rows, layers, (&mut bar, &mut spare), theta.as_mut_slice(), Some(&mut own));
        x_bar.add_scaled(1.0, &own.t());
    }

    fn kept(&self) -> usize {
        let layers: usize = self.z_layers.iter().map(Mat::cols).sum();
        let features = self.z_layers.last().map_or(0, Mat::cols);
        self.z.cols() + layers + features + self.base.kept()
    }

    fn gather(&self) -> Mats {
        let mut all = self.base.gather();
        all.insert(0, Mat::zeros(1, self.network.own()));
        all
    }

    fn finish(&self, gathered: &[Mat], theta: &mut [f64], z_bar: &mut Mat) {
        let (Some((sums, of_base)), Some(features)) = (gathered.split_first(), self.z_layers.last()) else {
            panic!("{NOT_ITS_OWN}")
        };
        let (own, theta) = theta.split_at_mut(sums.len());
        let (mut bar, mut spare) = (zeros_like(features), Mat::default());
        self.base.finish(of_base, theta, &mut bar);
        own.iter_mut().zip(sums.as_slice()).for_each(|(a, b)| *a += b);
        self.network.backward(self.z, self.z_layers, (&mut bar, &mut spare), own, Some(z_bar));
    }
}
