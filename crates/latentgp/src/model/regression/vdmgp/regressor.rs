//! VDMGP as a regression, its joint predictions, and its part of a model file.
//!
//! ```text
//! Cov[f_i, f_j]     √v_i √v_j ρ_ij     variances v as predicted; correlations ρ from draws of the weights:
//!                   E_W[Cov[f | W]] + Cov_W[E[f | W]] + σ²I
//! ```
//!
//! Each draw of the function uses its own draw of the weights.

use super::{Vdmgp, WeightPrior, WeightRelevance};
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::expectation::{Expectation, Gaussians, QuasiMonteCarlo, Rule};
use crate::file::{ModelFile, damaged};
use crate::input_map::InputMap;
use crate::kernel::{Kernel, Own};
use crate::mat::Mat;
use crate::model::regression::joint;
use crate::model::{Answers, Model, Regressor};
use crate::param::Param;
use crate::posterior::Posterior;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Draws of the weights for a joint covariance.
const DRAWS: usize = 64;

/// The prior of the weights as stored in a header.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PriorSpec {
    None,
    TypeII,
    Given,
    Gamma(f64, f64),
}

impl Vdmgp {
    /// The inverse of [`store`](Regressor::store), without the parameters.
    pub(crate) fn restore(file: &mut ModelFile, own: &Own) -> Result<Box<Self>> {
        let (data, x_var) = file.take_supervised()?;
        let array = |name: &str| file.tensor(name).cloned();
        let (weights, z) = (Gaussians::new(array("mean")?, array("var")?)?, array("z")?);
        let prior = match file.field("prior")? {
            PriorSpec::TypeII => WeightPrior::TypeII,
            PriorSpec::Given => WeightPrior::fixed(array("ell2")?.as_slice()),
            PriorSpec::Gamma(shape, rate) => WeightPrior::Gamma { shape, rate },
            PriorSpec::None => return Err(damaged("the prior of its weights is missing")),
        };
        let kernel = file.kernel(own, weights.n())?;
        let mut model = Vdmgp::new(data, kernel, file.expectation()?, prior, weights, z, 1.0)?;
        (model.jitter, model.x_var) = (file.jitter()?, x_var);
        Ok(Box::new(model))
    }

    /// A draw of the weights.
    fn drawn_weights(&self, rng: &mut ChaCha8Rng) -> Mat {
        let (w, v) = (&self.mean.value, &self.var.value);
        Mat::from_fn(w.rows(), w.cols(), |i, j| {
            let xi: f64 = StandardNormal.sample(rng);
            w[(i, j)] + v[(i, j)].sqrt() * xi
        })
    }
}

impl Regressor for Vdmgp {
    fn name(&self) -> &'static str {
        "vdmgp"
    }

    fn title(&self) -> &'static str {
        "Variational Mahalanobis regression (VDMGP)"
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
        file.set_expectation(&*self.expectation)?;
        file.set_jitter(self.jitter)?;
        let prior = match self.prior {
            WeightPrior::TypeII => PriorSpec::TypeII,
            WeightPrior::Given(_) => PriorSpec::Given,
            WeightPrior::Gamma { shape, rate } => PriorSpec::Gamma(shape, rate),
        };
        file.set("prior", prior)
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
        Some(self.mean.value.rows())
    }

    fn projection(&self) -> Option<Gaussians> {
        Some(Gaussians { mean: self.mean.value.clone(), var: self.var.value.clone() })
    }

    fn weight_relevance(&self) -> Result<Option<WeightRelevance>> {
        self.relevance().map(Some)
    }

    fn expectation(&self) -> Option<&dyn Expectation> {
        Some(&*self.expectation)
    }

    fn joint_covariance(&self, x: &Mat, output: usize) -> Result<Mat> {
        let posterior = self.posterior()?;
        let Answers::Values(there) = self.predict_with(&posterior, x, None)? else {
            return Err(Error::invalid("joint covariance", "values", "something else"));
        };
        let (n, w, v) = (x.rows(), &self.mean.value, &self.var.value);
        let rule = QuasiMonteCarlo::new(DRAWS, 0);
        rule.check_rule(w.len())?;
        let xi = rule.nodes(w.len());
        let mut at = posterior.clone();
        let (mut cov, mut first) = (Mat::zeros(n, n), Mat::zeros(n, 1));
        for t in 0..DRAWS {
            let p = Mat::from_fn(w.rows(), w.cols(), |i, j| {
                w[(i, j)] + v[(i, j)].sqrt() * xi[(t, i * w.cols() + j)]
            });
            at.map = InputMap::Projected { p };
            cov.add_scaled(1.0 / DRAWS as f64, &at.joint_covariance(x, output)?);
            let mean = at.predict(x)?.mean.col(output);
            (0..n).for_each(|i| first[(i, 0)] += mean[i] / DRAWS as f64);
            (0..n).for_each(|i| (0..n).for_each(|j| cov[(i, j)] += mean[i] * mean[j] / DRAWS as f64));
        }
        let noise = posterior.noise_variance()[output];
        let joint = Mat::from_fn(n, n, |i, j| {
            cov[(i, j)] - first[(i, 0)] * first[(j, 0)] + if i == j { noise } else { 0.0 }
        });
        Ok(Mat::from_fn(n, n, |i, j| {
            let wanted = (there.var[(i, output)] * there.var[(j, output)]).sqrt();
            if i == j { wanted } else { joint[(i, j)] / (joint[(i, i)] * joint[(j, j)]).sqrt() * wanted }
        }))
    }

    fn sample_with(&self, posterior: &Posterior, x: &Mat, count: usize, seed: u64) -> Result<Vec<Mat>> {
        let one = |t: usize| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(t as u64);
            let mut at = posterior.clone();
            at.map = InputMap::Projected { p: self.drawn_weights(&mut rng) };
            Ok(at.sample(x, 1, rng.next_u64())?.remove(0))
        };
        joint::finite((0..count).into_par_iter().map(one).collect::<Result<_>>()?)
    }
}
