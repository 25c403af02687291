//! A fitted latent space: Bayesian GPLVM, GPLVM or PPCA.

use crate::convert::{Array, Given, Moments, moments, to_array, to_dict, to_mat, told};
use crate::error::{Outcome, Raise};
use crate::kernel::Kernel;
use crate::lazy::Lazy;
use crate::work::Done;
use crate::{load, work};
use latentgp::Result;
use latentgp::expectation::Gaussians;
use latentgp::file::{Store, Trained, TrainedSpace};
use latentgp::model::Model;
use latentgp::posterior::{Posterior, Prediction};
use latentgp::recipe::{Data, Learnt};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::json;
use std::sync::Arc;

/// What a fit gives back: the model, and the exception to raise once it is stored.
type Fitted = (LatentModel, Option<PyErr>);

/// Positions, and how well each row is explained where that comes with them.
type Placed<'py> = (Given<'py>, Given<'py>, Vec<f64>);

/// A fitted latent space.
#[pyclass(frozen, module = "latentgp._native")]
pub struct LatentModel(Arc<Space>);

enum Space {
    /// With what it predicts from, once that was asked for.
    Bayesian(Box<Trained>, Box<Lazy>),
    Other(Box<TrainedSpace>),
}

fn posterior<'a>(of: &'a Trained, lazy: &'a Lazy) -> Result<&'a Posterior> {
    lazy.get_or(|| of.model.posterior())
}

impl LatentModel {
    pub fn bayesian(trained: Trained) -> Self {
        LatentModel(Arc::new(Space::Bayesian(Box::new(trained), Box::default())))
    }

    pub fn space(trained: TrainedSpace) -> Self {
        LatentModel(Arc::new(Space::Other(Box::new(trained))))
    }

    /// Something worked out from the model on a thread of its own.
    fn work<T: Send + 'static>(
        &self,
        py: Python<'_>,
        of: impl FnOnce(&Space) -> Result<T> + Send + 'static,
    ) -> Outcome<T> {
        let space = Arc::clone(&self.0);
        work::run(py, move || of(&space))
    }
}

#[pymethods]
impl LatentModel {
    /// Fits by a recipe; the exception is to be raised once the model is stored.
    #[staticmethod]
    fn fit(
        py: Python<'_>,
        y: Array<'_>,
        known: Option<Array<'_>>,
        kernel: Option<&Kernel>,
        recipe: &str,
        columns: Vec<String>,
        callback: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<Fitted> {
        let known = known.as_ref().map(to_mat).transpose()?;
        let (data, kernel) = (Data::Table { y: to_mat(&y)?, known }, kernel.map(|k| k.0.clone()));
        let (Done { fitted, report }, raised) = work::fit(py, callback, recipe, data, kernel)?;
        let (labels, unfinished) = (None, None);
        let model = match fitted.model {
            Learnt::BayesianGplvm(model) => {
                let report = py.detach(|| work::caught(|| report.certified(&model)))?;
                LatentModel::bayesian(Trained {
                    model: *model,
                    columns,
                    labels,
                    id: None,
                    report,
                    unfinished,
                })
            }
            Learnt::Space(model) => {
                LatentModel::space(TrainedSpace { model, columns, labels, report, unfinished })
            }
            _ => return Err(Raise::fault("the model is no latent space")),
        };
        Ok((model, raised))
    }

    /// `bayesian-gplvm`, `gplvm` or `ppca`.
    #[getter]
    fn name(&self) -> &'static str {
        match &*self.0 {
            Space::Bayesian(..) => "bayesian-gplvm",
            Space::Other(t) => t.model.name(),
        }
    }

    /// The names of the columns of the data.
    #[getter]
    fn columns(&self) -> Vec<String> {
        match &*self.0 {
            Space::Bayesian(t, _) => t.columns.clone(),
            Space::Other(t) => t.columns.clone(),
        }
    }

    /// The fitted kernel as an expression.
    #[getter]
    fn kernel(&self) -> String {
        match &*self.0 {
            Space::Bayesian(t, _) => t.model.kernel.expression(),
            Space::Other(t) => {
                t.model.parameters().map_or_else(|| "linear".into(), |(kernel, _)| kernel.expression())
            }
        }
    }

    /// σ² of every column, in the units of the data.
    #[getter]
    fn noise_variance(&self) -> Vec<f64> {
        match &*self.0 {
            Space::Bayesian(t, _) => t.model.scaling.variances(t.model.noise.as_slice()),
            Space::Other(t) => t.model.noise_variance(),
        }
    }

    /// Whose the noise is: `shared` or `columns`.
    #[getter]
    fn noise_kind(&self) -> &'static str {
        let noise = match &*self.0 {
            Space::Bayesian(t, _) => t.model.noise.as_slice(),
            Space::Other(t) => t.model.noise(),
        };
        if noise.len() > 1 { "columns" } else { "shared" }
    }

    /// The inducing inputs, of a Bayesian GPLVM.
    #[getter]
    fn inducing<'py>(&self, py: Python<'py>) -> Outcome<Option<Given<'py>>> {
        match &*self.0 {
            Space::Bayesian(t, _) => Ok(Some(to_array(py, t.model.z.value.clone())?)),
            Space::Other(_) => Ok(None),
        }
    }

    /// The loadings, D×Q in the units of the data, and the mean, of a PPCA.
    #[getter]
    fn loadings<'py>(&self, py: Python<'py>) -> Outcome<Option<(Given<'py>, Vec<f64>)>> {
        let Space::Other(trained) = &*self.0 else { return Ok(None) };
        let loadings = trained.model.loadings()?;
        loadings.map(|(w, mean)| Ok((to_array(py, w)?, mean))).transpose()
    }

    /// Latent dimensions.
    #[getter]
    fn latent_dim(&self) -> usize {
        match &*self.0 {
            Space::Bayesian(t, _) => t.model.sizes().2,
            Space::Other(t) => t.model.sizes().2,
        }
    }

    /// How far the expectations of a Bayesian GPLVM are from those of a stronger rule.
    fn certificate<'py>(&self, py: Python<'py>) -> Outcome<Option<Bound<'py, PyDict>>> {
        let found = self.work(py, |space| match space {
            // That of a fit that was interrupted is not known yet.
            Space::Bayesian(t, _) => match t.report.known_certificate() {
                Some(known) => Ok(Some(known.clone())),
                None => t.model.certificate().map(Some),
            },
            Space::Other(_) => Ok(None),
        })?;
        found.map(|c| to_dict(py, &json!(c))).transpose()
    }

    /// How the fit went.
    fn report<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyDict>> {
        let (report, expectation) = match &*self.0 {
            Space::Bayesian(t, _) => (&t.report, t.model.expectation.expression()),
            Space::Other(t) => (&t.report, t.model.expectation()),
        };
        let mut report = told(report);
        report["expectation"] = json!(expectation);
        to_dict(py, &report)
    }

    /// Means and variances of the positions of the training rows.
    fn latent<'py>(&self, py: Python<'py>) -> Outcome<Moments<'py>> {
        let q = match &*self.0 {
            Space::Bayesian(t, _) => t.model.latent(),
            Space::Other(t) => t.model.latent()?,
        };
        moments(py, q.mean, q.var)
    }

    /// How much each latent dimension matters.
    fn relevance(&self, py: Python<'_>) -> Outcome<Vec<f64>> {
        self.work(py, |space| match space {
            Space::Bayesian(t, p) => t.model.relevance(posterior(t, p)?),
            Space::Other(t) => t.model.relevance(),
        })
    }

    /// Means and variances of the positions of rows, and of a Bayesian GPLVM a bound of the log density of each.
    fn transform<'py>(&self, py: Python<'py>, y: Array<'py>) -> Outcome<Placed<'py>> {
        let y = to_mat(&y)?;
        let (q, bound) = self.work(py, move |space| match space {
            Space::Bayesian(t, p) => t.model.project_with(posterior(t, p)?, &y).map(|l| (l.q, l.bound)),
            Space::Other(t) => t.model.project(&y).map(|q| (q, Vec::new())),
        })?;
        Ok((to_array(py, q.mean)?, to_array(py, q.var)?, bound))
    }

    /// Data at latent positions, certain or Gaussian, without the noise: means and variances.
    fn reconstruct<'py>(&self, py: Python<'py>, mean: Array<'py>, var: Array<'py>) -> Outcome<Moments<'py>> {
        let q = Gaussians::new(to_mat(&mean)?, to_mat(&var)?)?;
        let there = self.work(py, move |space| match space {
            Space::Bayesian(t, p) => t.model.reconstruct(posterior(t, p)?, &q),
            Space::Other(t) => t.model.reconstruct(&q),
        })?;
        moments(py, there.mean, there.var)
    }

    /// Rows with their missing cells filled, and the variances of these, noise included.
    fn impute<'py>(&self, py: Python<'py>, y: Array<'py>) -> Outcome<Moments<'py>> {
        let y = to_mat(&y)?;
        let filled = self.work(py, move |space| match space {
            Space::Bayesian(t, p) => {
                t.model.impute(posterior(t, p)?, &y).map(|i| Prediction { mean: i.y, var: i.var })
            }
            Space::Other(t) => t.model.impute(&y),
        })?;
        moments(py, filled.mean, filled.var)
    }

    /// The log density of each row, given the training data; `samples` and `seed` are those of the importance
    /// sampling of a Bayesian GPLVM.
    fn log_density(&self, py: Python<'_>, y: Array<'_>, samples: usize, seed: u64) -> Outcome<Vec<f64>> {
        let y = to_mat(&y)?;
        self.work(py, move |space| match space {
            Space::Bayesian(t, p) => t.model.log_density(posterior(t, p)?, &y, samples, seed),
            Space::Other(t) => t.model.log_density(&y),
        })
    }

    /// `n` draws of the model: positions from N(0, I), and data there, noise included.
    fn sample<'py>(&self, py: Python<'py>, n: usize, seed: u64) -> Outcome<Moments<'py>> {
        let (x, y) = self.work(py, move |space| match space {
            Space::Bayesian(t, p) => t.model.sample(posterior(t, p)?, n, seed),
            Space::Other(t) => t.model.sample(n, seed),
        })?;
        moments(py, x, y)
    }

    /// The content of its `.lgp` file, with settings in its header where they are given.
    #[pyo3(signature = (settings=None))]
    fn to_bytes<'py>(&self, py: Python<'py>, settings: Option<&str>) -> Outcome<Bound<'py, PyBytes>> {
        let file = match &*self.0 {
            Space::Bayesian(t, _) => t.to_file()?,
            Space::Other(t) => t.to_file()?,
        };
        load::to_bytes(py, file, settings)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Outcome<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let rebuild = py.import("latentgp._native")?.getattr("from_bytes")?;
        Ok((rebuild, (self.to_bytes(py, None)?,)))
    }
}
