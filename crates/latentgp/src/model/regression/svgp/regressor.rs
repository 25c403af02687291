//! The sparse variational process as a regression, and its part of a model file.

use super::{PointInputs, Svgp};
use crate::data::Scaling;
use crate::error::Result;
use crate::expectation::Gaussians;
use crate::file::{ModelFile, damaged};
use crate::kernel::{Kernel, Own};
use crate::likelihood::Observations;
use crate::mat::Mat;
use crate::model::regression::joint;
use crate::model::regression::regressor::{averaged_classes, given_inputs, observed};
use crate::model::shared::uncertain_inputs::{weigh_errors, with_latent_units, without_latent_units};
use crate::model::{Answers, Jitter, Model, Regressor, UncertainInputs};
use crate::posterior::Posterior;

impl Svgp {
    /// The inverse of [`store`](Regressor::store), without the parameters.
    pub(crate) fn restore(file: &mut ModelFile, own: &Own) -> Result<Box<Self>> {
        let (x, observations, inputs) = file.take_observed()?;
        let z = file.tensor("z")?.clone();
        if file.tensors.contains_key("x.var") {
            let uncertain = PointInputs::new(UncertainInputs::restore(x, file)?, &observations);
            let kernel = file.kernel(own, z.cols())?;
            let mut model =
                Svgp::at(uncertain.points(), observations.repeated(uncertain.count()), kernel, z)?;
            model.inputs = inputs.map(|of| with_latent_units(of, uncertain.x.latent()));
            (model.uncertain, model.jitter) = (Some(uncertain), file.jitter()?.kzz);
            return Ok(Box::new(model));
        }
        let mut model = Svgp::at(x.clone(), observations, file.kernel(own, x.cols())?, z)?;
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
        match &self.uncertain {
            None => (self.x.rows(), self.x.cols(), 1),
            Some(u) => (u.rows.n(), self.x.cols() - u.x.latent(), 1),
        }
    }

    fn data(&self) -> Result<(Mat, Mat)> {
        if let Some(u) = &self.uncertain {
            let x = given_inputs(self.observed_units().as_ref(), &u.x.given().mean)?;
            return Ok((x, u.rows.column()));
        }
        Ok((given_inputs(self.inputs.as_ref(), &self.x)?, self.observations.column()))
    }

    fn store(&self, file: &mut ModelFile) -> Result<()> {
        match &self.uncertain {
            None => file.put_observed(&self.x, &self.observations, self.inputs.as_ref())?,
            Some(u) => {
                file.put_observed(&u.x.given().mean, &u.rows, self.observed_units().as_ref())?;
                u.x.store(file)?;
            }
        }
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

    fn takes_missing_inputs(&self) -> bool {
        true
    }

    fn uncertain_inputs(&self) -> Option<&UncertainInputs> {
        self.uncertain.as_ref().map(|u| &u.x)
    }

    fn input_units(&self) -> Option<&Scaling> {
        self.inputs.as_ref()
    }

    fn weigh_errors(&mut self) -> Result<()> {
        fn inputs(m: &mut Svgp) -> &mut UncertainInputs {
            &mut m.uncertain.as_mut().expect("asked for where there are some").x
        }
        if self.uncertain.is_some() {
            inputs(self).evidence = weigh_errors(self, inputs)?;
        }
        Ok(())
    }

    fn infer_inputs(&self, x: &Mat, var: Option<&Mat>, y: &Mat) -> Result<Gaussians> {
        let q = self.infer_scaled(&self.priors(x, var)?, y)?;
        let Some(s) = &self.inputs else { return Ok(q) };
        Gaussians::new(s.undo_mean(&q.mean)?, s.undo_var(&q.var)?)
    }

    fn predict_with(&self, posterior: &Posterior, x: &Mat, var: Option<&Mat>) -> Result<Answers> {
        let holes = x.as_slice().iter().any(|v| v.is_nan());
        let plain = !holes && self.latent_inputs() == 0 && (var.is_none() || self.uncertain.is_none());
        if plain && (var.is_none() || self.observations.latents() == 1) {
            return observed(Some(&self.observations), posterior, x, var);
        }
        let q = self.priors(x, var)?;
        let scaled = Posterior { inputs: None, ..posterior.clone() };
        match self.observations.latents() {
            1 => observed(Some(&self.observations), &scaled, &q.mean, Some(&q.var)),
            _ => averaged_classes(&q, &|x| observed(Some(&self.observations), &scaled, x, None)),
        }
    }

    fn joint_covariance(&self, x: &Mat, output: usize) -> Result<Mat> {
        self.check_joint()?;
        let posterior = self.posterior()?;
        let latents = || Ok(posterior.predict(x)?.into());
        joint::observed_covariance(&self.observations, &posterior, &latents, x, output)
    }

    fn sample_with(&self, posterior: &Posterior, x: &Mat, count: usize, seed: u64) -> Result<Vec<Mat>> {
        self.check_joint()?;
        joint::draws(Some(&self.observations), posterior, x, count, seed)
    }
}

impl Svgp {
    fn observed_units(&self) -> Option<Scaling> {
        let latent = self.uncertain.as_ref().map_or(0, |u| u.x.latent());
        self.inputs.as_ref().map(|s| without_latent_units(s, latent))
    }

    /// The priors of new inputs, scaled.
    fn priors(&self, x: &Mat, var: Option<&Mat>) -> Result<Gaussians> {
        match &self.uncertain {
            Some(u) => u.x.priors_in(self.observed_units().as_ref(), x, var),
            None => UncertainInputs::new(&self.x, None)?.priors_in(self.inputs.as_ref(), x, var),
        }
    }

    fn check_joint(&self) -> Result<()> {
        joint::check_latent(self.latent_inputs())
    }
}
