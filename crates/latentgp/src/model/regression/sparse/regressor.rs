//! Sparse regression as one of the regressions, and its part of a model file.

use super::SparseRegression;
use crate::data::{Scale, Scaling};
use crate::error::{Error, Result};
use crate::expectation::{Expectation, Gaussians, Mixed};
use crate::file::{ModelFile, damaged};
use crate::kernel::{Kernel, Own};
use crate::mat::Mat;
use crate::model::prior::Normal;
use crate::model::regression::regressor::{given_inputs, observed};
use crate::model::{Answers, Outputs, Regressor, UncertainInputs};
use crate::param::Param;
use crate::posterior::Posterior;

impl SparseRegression {
    /// The inverse of [`store`](Regressor::store), but for the parameters.
    pub(crate) fn restore(file: &mut ModelFile, own: &Own) -> Result<Box<Self>> {
        let (x, y) = file.take_pairs()?;
        let (n, q, d) = (x.rows(), x.cols(), y.cols());
        let z = file.tensor("z")?.clone();
        if z.cols() != q || z.is_empty() {
            return Err(damaged("its inducing inputs do not fit its inputs"));
        }
        let array = |name: &str| file.tensor(name).cloned();
        let prior = Normal { mean: array("prior.mean")?, var: array("prior.var")? };
        let given = Gaussians { mean: x, var: file.take("x.var", n, q)? };
        if prior.mean.len() != prior.var.len()
            || !prior.mean.is_finite()
            || prior.var.as_slice().iter().any(|v| !(*v > 0.0 && v.is_finite()))
            || given.var.as_slice().iter().any(|v| !(*v >= 0.0 && v.is_finite()))
        {
            return Err(damaged("its inputs or their variances are outside their domain"));
        }
        Ok(Box::new(SparseRegression {
            kernel: file.kernel(own, q)?,
            noise: file.noise(d)?,
            z: Param::free(z),
            x: UncertainInputs::of_given(given, prior)?,
            expectation: Mixed(file.expectation()?),
            jitter: file.jitter()?,
            outputs: Outputs::new(y),
            scaling: file.scaling("scaling", d)?,
            inputs: file.units("input_scaling", q)?,
        }))
    }

    /// x with every missing cell as N(m, v), mean and variance of what was observed in its column: the prior
    /// that the training gave it. `None` where no cell is missing.
    fn filled(&self, x: &Mat, var: Option<&Mat>) -> Result<Option<Gaussians>> {
        if !x.as_slice().iter().any(|v| v.is_nan()) {
            return Ok(None);
        }
        let columns = Scaling::fit(&self.data()?.0, Scale::Standardize)?;
        if x.cols() != columns.mean.len() {
            return Err(Error::shape("columns of the inputs", columns.mean.len(), x.cols()));
        }
        if let Some(var) = var.filter(|v| v.shape() != x.shape()) {
            return Err(Error::shape("variances of the inputs", x.shape(), var.shape()));
        }
        let cell = |i: usize, j: usize| match x[(i, j)].is_nan() {
            true => (columns.mean[j], columns.scale[j] * columns.scale[j]),
            false => (x[(i, j)], var.map_or(0.0, |v| v[(i, j)])),
        };
        let mean = Mat::from_fn(x.rows(), x.cols(), |i, j| cell(i, j).0);
        Gaussians::new(mean, Mat::from_fn(x.rows(), x.cols(), |i, j| cell(i, j).1)).map(Some)
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
        (self.outputs.y.rows(), self.z.value.cols(), self.outputs.y.cols())
    }

    fn data(&self) -> Result<(Mat, Mat)> {
        let x = given_inputs(self.inputs.as_ref(), &self.x.given().mean)?;
        Ok((x, self.scaling.undo_mean(&self.outputs.y)?))
    }

    fn store(&self, file: &mut ModelFile) -> Result<()> {
        let given = self.x.given();
        file.put("x", &given.mean);
        file.put("x.var", &given.var);
        file.put("prior.mean", &self.x.prior.mean);
        file.put("prior.var", &self.x.prior.var);
        file.put("y", &self.outputs.y);
        file.set("scaling", &self.scaling)?;
        file.set("input_scaling", &self.inputs)?;
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
        match self.filled(x, var)? {
            Some(q) => observed(None, posterior, &q.mean, Some(&q.var)),
            None => observed(None, posterior, x, var),
        }
    }
}
