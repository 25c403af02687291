//! A GP-NARX as a model of series, and its part of a model file: the regression and the latent values.

use super::{Forecast, Narx, Process, Simulation};
use crate::data::Scaling;
use crate::data::lags::Lags;
use crate::error::Result;
use crate::expectation::Expectation;
use crate::file::{ModelFile, damaged, put_regression, take_regression};
use crate::kernel::{Kernel, Own};
use crate::mat::Mat;
use crate::model::series::{SeriesModel, Windows};
use crate::model::{Regression, SparseRegression};

impl SeriesModel for Narx {
    fn name(&self) -> &'static str {
        "narx"
    }

    fn lags(&self) -> &Lags {
        &self.lags
    }

    fn scaling(&self) -> &Scaling {
        &self.scaling
    }

    fn input_scaling(&self) -> Option<&Scaling> {
        self.exogenous.as_ref()
    }

    fn kernel(&self) -> &dyn Kernel {
        self.kernel()
    }

    fn noise(&self) -> f64 {
        self.noise().get()
    }

    fn inducing(&self) -> Option<usize> {
        self.regression().inducing()
    }

    fn simulate(
        &self,
        history: &Mat,
        exogenous: Option<&Mat>,
        steps: usize,
        how: &Simulation,
    ) -> Result<Forecast> {
        self.simulate(history, exogenous, steps, how)
    }

    fn rule(&self, how: &Simulation) -> Result<Option<Box<dyn Expectation>>> {
        self.rule(how)
    }

    fn store(&self, file: &mut ModelFile) -> Result<()> {
        put_regression(self.regression(), file)?;
        let Some(latent) = self.latent() else { return Ok(()) };
        file.header["narx"]["gaps"] = self.error().into();
        file.put("gaps.mean", &latent.cells.mean.value);
        file.put("gaps.var", &latent.cells.var.value);
        Ok(())
    }

    fn boxed(&self) -> Box<dyn SeriesModel> {
        Box::new(self.clone())
    }
}

impl Narx {
    /// Restores the model from a file with its training series.
    pub(crate) fn restore(
        file: &mut ModelFile,
        own: &Own,
        windows: Windows,
        series: &Mat,
        exogenous: Option<&Mat>,
    ) -> Result<Self> {
        let Windows { lags, scaling, exogenous: inputs } = windows;
        // The variance of the reading errors, where some values of the series are latent.
        let gaps = match &file.header["narx"]["gaps"] {
            serde_json::Value::Null => None,
            value => Some(value.as_f64().unwrap_or(f64::NAN)),
        };
        match gaps {
            Some(error) if !(error >= 0.0 && error.is_finite()) => {
                return Err(damaged("the variance of its errors is outside its domain"));
            }
            Some(_) => lags.check_with_gaps(series, exogenous, 0)?,
            None => lags.check(series, exogenous, 0)?,
        }
        let (name, likelihood): (String, String) = (file.field("model")?, file.field("likelihood")?);
        let process = match (name.as_str(), likelihood.as_str()) {
            ("gp", "gaussian") => {
                Process::Exact(take_regression(file, |_, _, file| Regression::restore(file, own))?)
            }
            ("sparse", "gaussian") => {
                Process::Sparse(take_regression(file, |_, _, file| SparseRegression::restore(file, own))?)
            }
            _ => return Err(damaged(format!("its regression `{name}` is none of series"))),
        };
        let mut model = Narx { process, lags, scaling, exogenous: inputs };
        let (_, q, d) = model.regression().sizes();
        if (q, d) != (model.lags.width(), model.lags.series.len()) {
            return Err(damaged("its regression does not fit its windows"));
        }
        if let Some(error) = gaps {
            let cells = (file.tensor("gaps.mean")?.clone(), file.tensor("gaps.var")?.clone());
            model.restore_gaps(series, exogenous, error, cells)?;
        }
        Ok(model)
    }
}
