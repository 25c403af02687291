//! The sparse variational process as one of the regressions, and its part of a model file.

use super::Svgp;
use crate::error::Result;
use crate::file::{ModelFile, damaged};
use crate::kernel::{Kernel, Own};
use crate::likelihood::Observations;
use crate::mat::Mat;
use crate::model::regression::regressor::{averaged_classes, given_inputs, observed, scaled_gaussians};
use crate::model::{Answers, Jitter, Regressor};
use crate::posterior::Posterior;

impl Svgp {
    /// The inverse of [`store`](Regressor::store), but for the parameters.
    pub(crate) fn restore(file: &mut ModelFile, own: &Own) -> Result<Box<Self>> {
        let (x, observations, inputs) = file.take_observed()?;
        let (kernel, z) = (file.kernel(own, x.cols())?, file.tensor("z")?.clone());
        let mut model = Svgp::at(x, observations, kernel, z)?;
        (model.inputs, model.jitter) = (inputs, file.jitter()?.kzz);
        // Files of version 0.1 have no weight: it was 1.
        model.weight = file.field::<Option<f64>>("weight")?.unwrap_or(1.0);
        match model.weight > 0.0 && model.weight.is_finite() {
            true => Ok(Box::new(model)),
            false => Err(damaged("the weight of its rows is outside its domain")),
        }
    }
}

impl Regressor for Svgp {
    fn name(&self) -> &'static str {
        "sparse"
    }

    fn title(&self) -> &'static str {
        "Sparse variational Gaussian process"
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
        file.put_observed(&self.x, &self.observations, self.inputs.as_ref())?;
        file.set_jitter(Jitter { kzz: self.jitter, b: 0.0 })?;
        file.set("weight", self.weight)
    }

    fn boxed(&self) -> Box<dyn Regressor> {
        Box::new(self.clone())
    }

    fn observations(&self) -> Option<&Observations> {
        Some(&self.observations)
    }

    fn inducing(&self) -> Option<usize> {
        Some(self.z.value.rows())
    }

    fn predict_with(&self, posterior: &Posterior, x: &Mat, var: Option<&Mat>) -> Result<Answers> {
        match var.filter(|_| self.observations.latents() > 1) {
            None => observed(Some(&self.observations), posterior, x, var),
            Some(var) => {
                let q = scaled_gaussians(self.inputs.as_ref(), x, var)?;
                let scaled = Posterior { inputs: None, ..posterior.clone() };
                averaged_classes(&q, &|x| observed(Some(&self.observations), &scaled, x, None))
            }
        }
    }
}
