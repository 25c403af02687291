//! Any of the regressions behind one door: what a model file holds and a command line predicts from.
//!
//! ```text
//! gp, sparse, spgp-dr, vdmgp      answers are means and variances of observations, σ² included
//! laplace, svgp                   answers are class probabilities, or means and variances of counts
//! ```

use super::{Answers, Laplace, Model, Regression, SparseRegression, SpgpDr, Svgp, Vdmgp};
use crate::data::Scaling;
use crate::error::Result;
use crate::expectation::Gaussians;
use crate::kernel::Kernel;
use crate::likelihood::{Kind, Latents, Observations};
use crate::mat::Mat;
use crate::param::Parameterized;
use crate::posterior::{Posterior, Prediction};

/// A regression of any kind. The inputs of all are in the units of the data.
#[derive(Clone)]
pub enum Regressor {
    /// Exact, Gaussian noise.
    Gp(Box<Regression>),
    /// Collapsed bound, Gaussian noise.
    Sparse(Box<SparseRegression>),
    /// FITC on a learned projection.
    SpgpDr(Box<SpgpDr>),
    /// A projection that is integrated out.
    Vdmgp(Box<Vdmgp>),
    /// Classes or counts by Laplace's approximation, on inputs in these units.
    Laplace(Box<Laplace>, Scaling),
    /// Classes or counts by a sparse variational posterior, on inputs in these units.
    Svgp(Box<Svgp>, Scaling),
}

impl Regressor {
    /// The model's name: `gp`, `sparse`, `spgp-dr` or `vdmgp`.
    pub fn name(&self) -> &'static str {
        match self {
            Regressor::Gp(_) | Regressor::Laplace(..) => "gp",
            Regressor::Sparse(_) | Regressor::Svgp(..) => "sparse",
            Regressor::SpgpDr(_) => "spgp-dr",
            Regressor::Vdmgp(_) => "vdmgp",
        }
    }

    /// As a model.
    pub fn model(&self) -> &dyn Model {
        match self {
            Regressor::Gp(m) => &**m,
            Regressor::Sparse(m) => &**m,
            Regressor::SpgpDr(m) => &**m,
            Regressor::Vdmgp(m) => &**m,
            Regressor::Laplace(m, _) => &**m,
            Regressor::Svgp(m, _) => &**m,
        }
    }

    /// As a set of parameters, to be changed.
    pub fn parameters_mut(&mut self) -> &mut dyn Parameterized {
        match self {
            Regressor::Gp(m) => &mut **m,
            Regressor::Sparse(m) => &mut **m,
            Regressor::SpgpDr(m) => &mut **m,
            Regressor::Vdmgp(m) => &mut **m,
            Regressor::Laplace(m, _) => &mut **m,
            Regressor::Svgp(m, _) => &mut **m,
        }
    }

    /// The kernel.
    pub fn kernel(&self) -> &dyn Kernel {
        match self {
            Regressor::Gp(m) => &*m.kernel,
            Regressor::Sparse(m) => &*m.kernel,
            Regressor::SpgpDr(m) => &*m.kernel,
            Regressor::Vdmgp(m) => &*m.kernel,
            Regressor::Laplace(m, _) => &*m.kernel,
            Regressor::Svgp(m, _) => &*m.kernel,
        }
    }

    /// Classes or counts, where that is what was observed.
    pub fn observations(&self) -> Option<&Observations> {
        match self {
            Regressor::Laplace(m, _) => Some(&m.observations),
            Regressor::Svgp(m, _) => Some(&m.observations),
            _ => None,
        }
    }

    /// The likelihood: `gaussian`, `bernoulli`, `categorical` or `poisson`.
    pub fn likelihood(&self) -> &'static str {
        match self.observations() {
            None => "gaussian",
            Some(Observations::Classes { .. }) => "categorical",
            Some(Observations::One { likelihood, .. }) => match likelihood.kind() {
                Kind::TwoClasses(_) => "bernoulli",
                Kind::Counts => "poisson",
                Kind::Other => "other",
            },
        }
    }

    /// N, inputs and outputs (columns of Y; one where classes or counts are observed).
    pub fn sizes(&self) -> (usize, usize, usize) {
        match self {
            Regressor::Gp(m) => (m.x.rows(), m.x.cols(), m.outputs.y.cols()),
            Regressor::Sparse(m) => (m.outputs.y.rows(), m.z.value.cols(), m.outputs.y.cols()),
            Regressor::SpgpDr(m) => m.data.sizes(),
            Regressor::Vdmgp(m) => m.data.sizes(),
            Regressor::Laplace(m, _) => (m.x.rows(), m.x.cols(), 1),
            Regressor::Svgp(m, _) => (m.x.rows(), m.x.cols(), 1),
        }
    }

    /// M, where there are inducing inputs.
    pub fn inducing(&self) -> Option<usize> {
        match self {
            Regressor::Gp(_) | Regressor::Laplace(..) => None,
            Regressor::Sparse(m) => Some(m.z.value.rows()),
            Regressor::SpgpDr(m) => Some(m.z.value.rows()),
            Regressor::Vdmgp(m) => Some(m.z.value.rows()),
            Regressor::Svgp(m, _) => Some(m.z.value.rows()),
        }
    }

    /// K, where the inputs are projected.
    pub fn latent_dim(&self) -> Option<usize> {
        match self {
            Regressor::SpgpDr(m) => Some(m.p.value.rows()),
            Regressor::Vdmgp(m) => Some(m.mean.value.rows()),
            _ => None,
        }
    }

    /// X and Y of the training as they were given, to rounding; NaN where a cell is missing. Classes are
    /// their numbers.
    pub fn data(&self) -> Result<(Mat, Mat)> {
        let undo = |s: &Option<Scaling>, x: &Mat| match s {
            Some(s) => s.undo_mean(x),
            None => Ok(x.clone()),
        };
        let observed = |o: &Observations| match o {
            Observations::One { y, .. } => Mat::column(y),
            Observations::Classes { labels, .. } => {
                Mat::column(&labels.iter().map(|l| *l as f64).collect::<Vec<_>>())
            }
        };
        match self {
            Regressor::Gp(m) => Ok((undo(&m.inputs, &m.x)?, m.scaling.undo_mean(&m.outputs.y)?)),
            Regressor::Sparse(m) => {
                Ok((undo(&m.inputs, &m.x.given().mean)?, m.scaling.undo_mean(&m.outputs.y)?))
            }
            Regressor::SpgpDr(m) => {
                Ok((m.data.inputs.undo_mean(&m.data.x)?, m.data.outputs.undo_mean(&m.data.y)?))
            }
            Regressor::Vdmgp(m) => {
                Ok((m.data.inputs.undo_mean(&m.data.x)?, m.data.outputs.undo_mean(&m.data.y)?))
            }
            Regressor::Laplace(m, s) => Ok((s.undo_mean(&m.x)?, observed(&m.observations))),
            Regressor::Svgp(m, s) => Ok((s.undo_mean(&m.x)?, observed(&m.observations))),
        }
    }

    /// σ² of every output in the units of the data, where the noise is Gaussian.
    pub fn noise_variance(&self) -> Option<Vec<f64>> {
        let of = |noise: f64, s: &Scaling| Some(s.scale.iter().map(|scale| noise * scale * scale).collect());
        match self {
            Regressor::Gp(m) => of(m.noise.get(), &m.scaling),
            Regressor::Sparse(m) => of(m.noise.get(), &m.scaling),
            Regressor::SpgpDr(m) => of(m.noise.get(), &m.data.outputs),
            Regressor::Vdmgp(m) => of(m.noise.get(), &m.data.outputs),
            Regressor::Laplace(..) | Regressor::Svgp(..) => None,
        }
    }

    /// Predicts observations at x, N×Q; where `var` is given, x is only known up to these variances.
    ///
    /// Errs when shapes disagree and when an input is missing.
    pub fn predict(&self, x: &Mat, var: Option<&Mat>) -> Result<Answers> {
        match self {
            // The approximation knows how the functions of classes vary together, which a posterior does not.
            Regressor::Laplace(m, s) if var.is_none() => {
                self.answers(m.approximation()?.latents(&s.apply(x)?)?)
            }
            _ => self.predict_with(&self.model().posterior()?, x, var),
        }
    }

    /// The same with a posterior of the model that is there already.
    pub fn predict_with(&self, posterior: &Posterior, x: &Mat, var: Option<&Mat>) -> Result<Answers> {
        let Some(s) = self.outer_scaling() else {
            let mut there = match var {
                None => posterior.predict(x)?,
                Some(var) => posterior.predict_uncertain(&Gaussians::new(x.clone(), var.clone())?)?,
            };
            let noise = posterior.noise_variance();
            for i in 0..there.var.rows() {
                there.var.row_mut(i).iter_mut().zip(&noise).for_each(|(v, s)| *v += s);
            }
            return Ok(Answers::Values(there));
        };
        let x = s.apply(x)?;
        self.answers(match var {
            None => posterior.predict(&x)?.into(),
            Some(var) => {
                let scaled =
                    Mat::from_fn(var.rows(), var.cols(), |i, j| var[(i, j)] / s.scale[j] / s.scale[j]);
                posterior.predict_uncertain(&Gaussians::new(x, scaled)?)?.into()
            }
        })
    }

    /// The units of the inputs, where the model itself does not know them.
    pub(super) fn outer_scaling(&self) -> Option<&Scaling> {
        match self {
            Regressor::Laplace(_, s) | Regressor::Svgp(_, s) => Some(s),
            _ => None,
        }
    }

    fn answers(&self, latents: Latents) -> Result<Answers> {
        let observations = self.observations().expect("classes or counts");
        if self.likelihood() != "poisson" {
            return Ok(Answers::Classes(observations.probabilities(&latents)?));
        }
        let rates = observations.rates(&latents)?;
        let latent = Prediction { mean: latents.mean, var: latents.var };
        Ok(Answers::Counts { mean: rates.mean, var: rates.count_var, latent })
    }
}
