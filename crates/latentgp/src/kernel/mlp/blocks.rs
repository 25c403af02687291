//! Blocks of the network kernel at many sets of points and the same Z: Z goes through the network once, there and
//! back, and the layers of a block are kept for its adjoint.

use super::{Mlp, zeros_like};
use crate::kernel::blocks::{CrossBlocks, at};
use crate::mat::Mat;
use crate::scratch::Room;

/// The blocks of a network with some Z.
pub(super) struct Blocks<'a> {
    network: &'a Mlp,
    base: Box<dyn CrossBlocks + 'a>,
    z: Mat,
    /// The layers at Z, and what each block keeps.
    z_layers: Vec<Mat>,
    kept: Vec<Kept>,
    /// ∂F/∂W and ∂F/∂b of all blocks.
    theta: Room<f64>,
    /// Room for the way back.
    features_bar: Mat,
    bar: Mat,
    spare: Mat,
    x_bar: Mat,
}

/// The points of a block, one a row, the layers there, and the features in lanes.
#[derive(Default)]
struct Kept {
    x: Mat,
    layers: Vec<Mat>,
    features: Mat,
}

impl<'a> Blocks<'a> {
    /// `None` where the base has no blocks.
    pub fn new(network: &'a Mlp, z: &Mat) -> Option<Self> {
        let z_layers = network.forward(z);
        let base = network.base.blocks(z_layers.last()?)?;
        Some(Blocks {
            network,
            base,
            z: z.clone(),
            z_layers,
            kept: Vec::new(),
            theta: Room::filled(0.0, network.own()),
            features_bar: Mat::default(),
            bar: Mat::default(),
            spare: Mat::default(),
            x_bar: Mat::default(),
        })
    }
}

impl CrossBlocks for Blocks<'_> {
    fn cross(&mut self, place: usize, x: &Mat, out: &mut Mat) {
        let kept = at(&mut self.kept, place);
        x.transpose_into(&mut kept.x);
        self.network.forward_into(&kept.x, &mut kept.layers);
        kept.layers[kept.layers.len() - 1].transpose_into(&mut kept.features);
        self.base.cross(place, &kept.features, out);
    }

    fn cross_adjoint(&mut self, place: usize, _: &Mat, k: &Mat, bar: &Mat, x_bar: &mut Mat) {
        let Kept { x, layers, features } = &self.kept[place];
        self.features_bar.resize(features.rows(), features.cols());
        self.features_bar.fill(0.0);
        self.base.cross_adjoint(place, features, k, bar, &mut self.features_bar);
        self.features_bar.transpose_into(&mut self.bar);
        self.x_bar.resize(x.rows(), x.cols());
        self.x_bar.fill(0.0);
        let room = (&mut self.bar, &mut self.spare);
        self.network.backward(x, layers, room, &mut self.theta, Some(&mut self.x_bar));
        self.x_bar.transpose_into(&mut self.spare);
        x_bar.add_scaled(1.0, &self.spare);
    }

    fn kept(&self) -> usize {
        let layers: usize = self.z_layers.iter().map(Mat::cols).sum();
        let features = self.z_layers.last().map_or(0, Mat::cols);
        self.z.cols() + layers + features + self.base.kept()
    }

    fn finish(&mut self, theta: &mut [f64], z_bar: &mut Mat) {
        let (own, of_base) = theta.split_at_mut(self.theta.len());
        let features = &self.z_layers[self.z_layers.len() - 1];
        let mut bar = zeros_like(features);
        self.base.finish(of_base, &mut bar);
        let room = (&mut bar, &mut self.spare);
        self.network.backward(&self.z, &self.z_layers, room, &mut self.theta, Some(z_bar));
        own.iter_mut().zip(&self.theta).for_each(|(a, b)| *a += b);
        self.theta.fill(0.0);
    }
}
