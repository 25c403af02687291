//! Exact regression as a [`Regressor`], and its part of a model file.

use super::Regression;
use crate::data::Scaling;
use crate::error::Result;
use crate::expectation::{Expectation, Gaussians};
use crate::file::{ModelFile, damaged};
use crate::kernel::{Kernel, Own};
use crate::mat::Mat;
use crate::mean::Mean;
use crate::model::regression::infer::infer;
use crate::model::regression::regressor::{given_inputs, scaled_gaussians};
use crate::model::{Model, Outputs, Regressor};
use crate::param::Param;
use crate::posterior::Prediction;

impl Regression {
    /// The inverse of [`store`](Regressor::store), without the parameters.
    pub(crate) fn restore(file: &mut ModelFile, own: &Own) -> Result<Box<Self>> {
        let (x, y) = file.take_pairs_of_known_inputs()?;
        let (q, d) = (x.cols(), y.cols());
        let mean = match file.field::<String>("mean")?.as_str() {
            "zero" => Mean::Zero,
            "constant" => Mean::constant(d),
            "linear" => Mean::linear(q, d),
            other => return Err(damaged(format!("its mean function `{other}` is not known"))),
        };
        Ok(Box::new(Regression {
            kernel: file.kernel(own, q)?,
            noise: Param::scalar(1.0),
            mean,
            expectation: file.expectation()?,
            scaling: file.scaling("scaling", d)?,
            inputs: file.units("input_scaling", q)?,
            x,
            outputs: Outputs::new(y),
        }))
    }
}

impl Regressor for Regression {
    fn name(&self) -> &'static str {
        "gp"
    }

    fn title(&self) -> &'static str {
        "Exact regression"
    }

    fn kernel(&self) -> &dyn Kernel {
        &*self.kernel
    }

    fn sizes(&self) -> (usize, usize, usize) {
        (self.x.rows(), self.x.cols(), self.outputs.y.cols())
    }

    fn data(&self) -> Result<(Mat, Mat)> {
        Ok((given_inputs(self.inputs.as_ref(), &self.x)?, self.scaling.undo_mean(&self.outputs.y)?))
    }

    fn store(&self, file: &mut ModelFile) -> Result<()> {
        file.put_pairs(&self.x, &self.outputs.y, &self.scaling, self.inputs.as_ref())?;
        file.set("mean", self.mean.name())?;
        file.set_expectation(&*self.expectation)
    }

    fn boxed(&self) -> Box<dyn Regressor> {
        Box::new(self.clone())
    }

    fn noise(&self) -> Option<(&Param, &Scaling)> {
        Some((&self.noise, &self.scaling))
    }

    fn expectation(&self) -> Option<&dyn Expectation> {
        Some(&*self.expectation)
    }

    fn mean(&self) -> Option<&Mean> {
        Some(&self.mean)
    }

    fn infer_inputs(&self, x: &Mat, var: Option<&Mat>, y: &Mat) -> Result<Gaussians> {
        let none = Mat::zeros(x.rows(), x.cols());
        let prior = scaled_gaussians(self.inputs.as_ref(), x, var.unwrap_or(&none))?;
        let q = infer(&self.posterior()?, &prior, y)?;
        let Some(s) = &self.inputs else { return Ok(q) };
        Gaussians::new(s.undo_mean(&q.mean)?, s.undo_var(&q.var)?)
    }

    fn leaves_one_out(&self) -> bool {
        true
    }

    fn left_out(&self) -> Result<Option<Prediction>> {
        self.leave_one_out().map(Some)
    }
}
