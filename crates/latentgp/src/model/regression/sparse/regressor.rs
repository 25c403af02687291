//! Sparse regression as a [`Regressor`], and its part of a model file.

use super::SparseRegression;
use crate::data::Scaling;
use crate::error::Result;
use crate::expectation::{Expectation, Gaussians, Mixed};
use crate::file::{ModelFile, damaged};
use crate::kernel::{Kernel, Own};
use crate::mat::Mat;
use crate::model::regression::joint;
use crate::model::regression::regressor::{given_inputs, observed};
use crate::model::shared::uncertain_inputs::{weigh_errors, with_latent_units};
use crate::model::{Answers, Model, Outputs, Regressor, Treatment, UncertainInputs};
use crate::param::Param;
use crate::posterior::Posterior;

impl SparseRegression {
    /// The inverse of [`store`](Regressor::store), without the parameters.
    pub(crate) fn restore(file: &mut ModelFile, own: &Own) -> Result<Box<Self>> {
        let (x, y) = file.take_pairs()?;
        let (q, d) = (x.cols(), y.cols());
        let x = UncertainInputs::restore(x, file)?;
        let (z, latent) = (file.tensor("z")?.clone(), x.latent());
        if z.cols() != q + latent || z.is_empty() {
            return Err(damaged("its inducing inputs do not fit its inputs"));
        }
        Ok(Box::new(SparseRegression {
            kernel: file.kernel(own, q + latent)?,
            noise: file.noise(d)?,
            z: Param::free(z),
            x,
            expectation: Mixed(file.expectation()?),
            jitter: file.jitter()?,
            outputs: Outputs::new(y),
            scaling: file.scaling("scaling", d)?,
            inputs: file.units("input_scaling", q)?.map(|of| with_latent_units(of, latent)),
        }))
    }

    /// The prior of new inputs in the units of the data; `None` where all are numbers with variances.
    fn uncertain(&self, x: &Mat, var: Option<&Mat>) -> Result<Option<Gaussians>> {
        let inferred = var.is_some() && self.x.treatment() == Treatment::Inferred;
        match inferred || self.x.latent() > 0 || x.as_slice().iter().any(|v| v.is_nan()) {
            true => self.new_inputs(x, var).map(Some),
            false => Ok(None),
        }
    }
}

impl Regressor for SparseRegression {
    fn name(&self) -> &'static str {
        "sparse"
    }

    fn title(&self) -> &'static str {
        "Sparse regression"
    }

    fn kernel(&self) -> &dyn Kernel {
        &*self.kernel
    }

    fn sizes(&self) -> (usize, usize, usize) {
        (self.outputs.y.rows(), self.z.value.cols() - self.x.latent(), self.outputs.y.cols())
    }

    fn data(&self) -> Result<(Mat, Mat)> {
        let x = given_inputs(self.observed_units().as_ref(), &self.x.given().mean)?;
        Ok((x, self.scaling.undo_mean(&self.outputs.y)?))
    }

    fn store(&self, file: &mut ModelFile) -> Result<()> {
        self.x.store(file)?;
        file.put("y", &self.outputs.y);
        file.set("scaling", &self.scaling)?;
        file.set("input_scaling", self.observed_units())?;
        file.set_expectation(&*self.expectation.0)?;
        file.set_jitter(self.jitter)
    }

    fn boxed(&self) -> Box<dyn Regressor> {
        Box::new(self.clone())
    }

    fn noise(&self) -> Option<(&Param, &Scaling)> {
        Some((&self.noise, &self.scaling))
    }

    fn inducing(&self) -> Option<usize> {
        Some(self.z.value.rows())
    }

    fn expectation(&self) -> Option<&dyn Expectation> {
        Some(&*self.expectation.0)
    }

    fn takes_missing_inputs(&self) -> bool {
        true
    }

    fn predict_with(&self, posterior: &Posterior, x: &Mat, var: Option<&Mat>) -> Result<Answers> {
        match self.uncertain(x, var)? {
            Some(q) => observed(None, posterior, &q.mean, Some(&q.var)),
            None => observed(None, posterior, x, var),
        }
    }

    fn joint_covariance(&self, x: &Mat, output: usize) -> Result<Mat> {
        joint::check_latent(self.x.latent())?;
        joint::covariance(&self.posterior()?, x, output)
    }

    fn sample_with(&self, posterior: &Posterior, x: &Mat, count: usize, seed: u64) -> Result<Vec<Mat>> {
        joint::check_latent(self.x.latent())?;
        joint::draws(None, posterior, x, count, seed)
    }

    fn uncertain_inputs(&self) -> Option<&UncertainInputs> {
        Some(&self.x)
    }

    fn input_units(&self) -> Option<&Scaling> {
        self.inputs.as_ref()
    }

    fn weigh_errors(&mut self) -> Result<()> {
        self.x.evidence = weigh_errors(self, |m| &mut m.x)?;
        Ok(())
    }

    fn infer_inputs(&self, x: &Mat, var: Option<&Mat>, y: &Mat) -> Result<Gaussians> {
        SparseRegression::infer_inputs(self, x, var, y)
    }
}
