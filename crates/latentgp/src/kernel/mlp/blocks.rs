//! Blocks of the network kernel at many sets of points and the same Z: Z goes through the network once, there and
//! back, and the layers of a block are kept for its adjoint.

use super::{Mlp, zeros_like};
use crate::kernel::blocks::{CrossBlocks, at};
use crate::mat::Mat;

/// The blocks of a network with some Z.
pub(super) struct Blocks<'a> {
    network: &'a Mlp,
    base: Box<dyn CrossBlocks + 'a>,
    z: Mat,
    /// The layers at Z, and at the points of each block.
    z_layers: Vec<Mat>,
    kept: Vec<Vec<Mat>>,
    /// ∂F/∂W and ∂F/∂b of all blocks.
    theta: Vec<f64>,
    /// Room for the way back.
    bar: Mat,
    spare: Mat,
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
            theta: vec![0.0; network.own()],
            bar: Mat::default(),
            spare: Mat::default(),
        })
    }
}

impl CrossBlocks for Blocks<'_> {
    fn cross(&mut self, place: usize, x: &Mat, out: &mut Mat) {
        let layers = at(&mut self.kept, place);
        self.network.forward_into(x, layers);
        self.base.cross(place, &layers[layers.len() - 1], out);
    }

    fn cross_adjoint(&mut self, place: usize, x: &Mat, bar: &Mat, x_bar: &mut Mat) {
        let layers = &self.kept[place];
        let features = &layers[layers.len() - 1];
        self.bar.resize(features.rows(), features.cols());
        self.bar.fill(0.0);
        self.base.cross_adjoint(place, features, bar, &mut self.bar);
        let room = (&mut self.bar, &mut self.spare);
        self.network.backward(x, layers, room, &mut self.theta, Some(x_bar));
    }

    fn kept(&self) -> usize {
        self.z_layers.iter().map(Mat::cols).sum::<usize>() + self.base.kept()
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
