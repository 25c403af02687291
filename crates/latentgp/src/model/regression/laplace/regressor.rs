//! Laplace's approximation as a regression, and its part of a model file.

use super::Laplace;
use crate::error::Result;
use crate::file::ModelFile;
use crate::kernel::{Kernel, Own};
use crate::likelihood::Observations;
use crate::mat::Mat;
use crate::model::regression::joint;
use crate::model::regression::regressor::{averaged_classes, given_inputs, observed, scaled_gaussians};
use crate::model::{Answers, Model, Regressor};

impl Laplace {
    /// The inverse of [`store`](Regressor::store), without the parameters.
    pub(crate) fn restore(file: &mut ModelFile, own: &Own) -> Result<Box<Self>> {
        let (x, observations, inputs) = file.take_observed()?;
        let kernel = file.kernel(own, x.cols())?;
        Ok(Box::new(Laplace { inputs, ..Laplace::new(x, observations, kernel)? }))
    }
}

impl Regressor for Laplace {
    fn name(&self) -> &'static str {
        "gp"
    }

    fn title(&self) -> &'static str {
        "Gaussian process by Laplace's approximation"
    }

    fn kernel(&self) -> &dyn Kernel {
        &*self.kernel
    }

    fn sizes(&self) -> (usize, usize, usize) {
        (self.x.rows(), self.x.cols(), 1)
    }

    fn data(&self) -> Result<(Mat, Mat)> {
        Ok((given_inputs(self.inputs.as_ref(), &self.x)?, self.observations.column()))
    }

    fn store(&self, file: &mut ModelFile) -> Result<()> {
        file.put_observed(&self.x, &self.observations, self.inputs.as_ref())
    }

    fn boxed(&self) -> Box<dyn Regressor> {
        Box::new(self.clone())
    }

    fn observations(&self) -> Option<&Observations> {
        Some(&self.observations)
    }

    /// The approximation has the covariances between the latent functions of classes, unlike a posterior.
    fn predict(&self, x: &Mat, var: Option<&Mat>) -> Result<Answers> {
        let several = self.observations.latents() > 1;
        match var {
            None => Answers::of(&self.observations, self.approximation()?.latents(x)?),
            Some(var) if several => {
                let at = self.approximation()?;
                let q = scaled_gaussians(self.inputs.as_ref(), x, var)?;
                averaged_classes(&q, &|x| Answers::of(&self.observations, at.scaled_latents(x)?))
            }
            Some(_) => observed(Some(&self.observations), &self.posterior()?, x, var),
        }
    }

    fn predicts_from_posterior(&self) -> bool {
        false
    }

    fn joint_covariance(&self, x: &Mat, output: usize) -> Result<Mat> {
        let (posterior, at) = (self.posterior()?, self.approximation()?);
        joint::observed_covariance(&self.observations, &posterior, &|| at.latents(x), x, output)
    }
}
