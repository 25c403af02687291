//! The GPLVM as one of the latent spaces, and its part of a model file.

use super::{Gplvm, LatentPrior};
use crate::data::Scaling;
use crate::error::Result;
use crate::expectation::Gaussians;
use crate::file::{ModelFile, damaged, written};
use crate::kernel::{Kernel, Own};
use crate::mat::Mat;
use crate::model::latent::decoded;
use crate::model::latent::space::put_usual;
use crate::model::{LatentSpace, Model, Outputs, Placed, noise_at_floor};
use crate::param::Parameterized;
use crate::posterior::{Posterior, Prediction};

impl Gplvm {
    /// The inverse of [`store`](LatentSpace::store) for data and their units.
    pub(crate) fn restore(file: &mut ModelFile, own: &Own, y: Mat, scaling: Scaling) -> Result<Self> {
        let dim: usize = file.field("latent_dim")?;
        let x = file.tensor("x")?.clone();
        if (x.rows(), x.cols()) != (y.rows(), dim) {
            return Err(damaged("its positions do not fit its data"));
        }
        let prior = match file.field("standard_normal")? {
            true => LatentPrior::StandardNormal,
            false => LatentPrior::None,
        };
        let mut model = Gplvm::new(Outputs::new(y), scaling, file.kernel(own, dim)?, x, prior, 0.1)?;
        model.noise = file.noise(model.outputs.d())?;
        file.take_parameters(&mut model)?;
        model.expectation = file.expectation()?;
        Ok(model)
    }
}

impl LatentSpace for Gplvm {
    fn name(&self) -> &'static str {
        "gplvm"
    }

    fn title(&self) -> &'static str {
        "GPLVM"
    }

    fn objective(&self) -> &'static str {
        "log density"
    }

    fn y(&self) -> &Mat {
        &self.outputs.y
    }

    fn latent_dim(&self) -> usize {
        self.x.value.cols()
    }

    fn scaling(&self) -> &Scaling {
        &self.scaling
    }

    fn noise(&self) -> &[f64] {
        self.noise.as_slice()
    }

    fn evidence(&self) -> Result<f64> {
        self.log_evidence(None)
    }

    fn latent(&self) -> Result<Gaussians> {
        Ok(Gaussians::certain(self.x.value.clone()))
    }

    fn transform(&self, y: &Mat) -> Result<Placed> {
        let (at, log_density) = self.place(&self.posterior()?, y, true)?;
        Ok(Placed { q: Gaussians::certain(at.x), log_density })
    }

    fn project(&self, y: &Mat) -> Result<Gaussians> {
        Ok(Gaussians::certain(self.project_with(&self.posterior()?, y)?.x))
    }

    fn log_density(&self, y: &Mat, _: usize, _: u64) -> Result<Vec<f64>> {
        Gplvm::log_density(self, &self.posterior()?, y)
    }

    fn reconstruct(&self, q: &Gaussians) -> Result<Prediction> {
        decoded::reconstruct(&self.posterior()?, q)
    }

    fn impute(&self, y: &Mat) -> Result<Prediction> {
        let posterior = self.posterior()?;
        let there = posterior.predict(&self.project_with(&posterior, y)?.x)?;
        Ok(decoded::fill(&posterior, y, &there))
    }

    fn relevance(&self) -> Result<Vec<f64>> {
        Ok(decoded::slopes(&self.posterior()?, &self.x.value))
    }

    fn store(&self, file: &mut ModelFile) -> Result<()> {
        put_usual(self.name(), file)?;
        file.set("kernel", written(&*self.kernel, self.latent_dim())?)?;
        file.set("standard_normal", self.prior == LatentPrior::StandardNormal)?;
        file.set_expectation(&*self.expectation)?;
        file.put_parameters(self)
    }

    fn boxed(&self) -> Box<dyn LatentSpace> {
        Box::new(self.clone())
    }

    fn parameters(&self) -> Option<(&dyn Kernel, &dyn Parameterized)> {
        Some((&*self.kernel, self))
    }

    fn decoder(&self) -> Result<Option<Posterior>> {
        self.posterior().map(Some)
    }

    fn is_certain(&self) -> bool {
        true
    }

    fn noise_at_floor(&self) -> bool {
        noise_at_floor(&self.noise)
    }

    fn expectation(&self) -> String {
        self.expectation.expression()
    }
}
