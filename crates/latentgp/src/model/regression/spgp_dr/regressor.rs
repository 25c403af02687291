//! SPGP-DR as a regression, and its part of a model file.

use super::SpgpDr;
use crate::data::Scaling;
use crate::error::Result;
use crate::expectation::Gaussians;
use crate::file::ModelFile;
use crate::kernel::{Kernel, Own};
use crate::mat::Mat;
use crate::model::{Jitter, Regressor};
use crate::param::Param;

impl SpgpDr {
    /// The inverse of [`store`](Regressor::store), without the parameters.
    pub(crate) fn restore(file: &mut ModelFile, own: &Own) -> Result<Box<Self>> {
        let (data, x_var) = file.take_supervised()?;
        let (p, z) = (file.tensor("p")?.clone(), file.tensor("z")?.clone());
        let mut model = SpgpDr::new(data, file.kernel(own, p.rows())?, p, z, 1.0)?;
        (model.jitter, model.x_var) = (file.jitter()?.kzz, x_var);
        Ok(Box::new(model))
    }
}

impl Regressor for SpgpDr {
    fn name(&self) -> &'static str {
        "spgp-dr"
    }

    fn title(&self) -> &'static str {
        match self.is_fitc() {
            true => "Sparse regression (FITC)",
            false => "Sparse regression on a projection (SPGP-DR)",
        }
    }

    fn kernel(&self) -> &dyn Kernel {
        &*self.kernel
    }

    fn sizes(&self) -> (usize, usize, usize) {
        self.data.sizes()
    }

    fn data(&self) -> Result<(Mat, Mat)> {
        self.data.given()
    }

    fn store(&self, file: &mut ModelFile) -> Result<()> {
        file.put_supervised(&self.data, self.x_var.as_ref())?;
        file.set_jitter(Jitter { kzz: self.jitter, b: 0.0 })
    }

    fn boxed(&self) -> Box<dyn Regressor> {
        Box::new(self.clone())
    }

    fn noise(&self) -> Option<(&Param, &Scaling)> {
        Some((&self.noise, &self.data.outputs))
    }

    fn inducing(&self) -> Option<usize> {
        Some(self.z.value.rows())
    }

    fn latent_dim(&self) -> Option<usize> {
        Some(self.p.value.rows())
    }

    fn projection(&self) -> Option<Gaussians> {
        Some(Gaussians::certain(self.p.value.clone()))
    }

    fn is_fitc(&self) -> bool {
        self.p.fixed
    }
}
