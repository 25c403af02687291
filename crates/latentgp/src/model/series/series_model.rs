//! The trait that all models of series implement; model files, the command line and Python use it.

use super::narx::{Forecast, Simulation};
use crate::data::Scaling;
use crate::data::lags::Lags;
use crate::error::Result;
use crate::expectation::Expectation;
use crate::file::ModelFile;
use crate::kernel::Kernel;
use crate::mat::Mat;
use crate::model::Model;

/// A model of series in time, of any kind.
pub trait SeriesModel: Model + Send + Sync {
    /// The name, such as `narx`: the kind of its model file.
    fn name(&self) -> &'static str;

    /// The lags of a window.
    fn lags(&self) -> &Lags;

    /// The units of the series.
    fn scaling(&self) -> &Scaling;

    /// The units of the exogenous inputs.
    fn input_scaling(&self) -> Option<&Scaling>;

    /// The kernel, of scaled windows.
    fn kernel(&self) -> &dyn Kernel;

    /// σ², in the units of the scaled series.
    fn noise(&self) -> f64;

    /// Number of inducing inputs, where there are any.
    fn inducing(&self) -> Option<usize>;

    /// Forecasts `steps` steps after `history`, which has a row each time step; `exogenous` extends to the
    /// last of the steps.
    fn simulate(
        &self,
        history: &Mat,
        exogenous: Option<&Mat>,
        steps: usize,
        how: &Simulation,
    ) -> Result<Forecast>;

    /// The rule that such a simulation uses, if any.
    fn rule(&self, how: &Simulation) -> Result<Option<Box<dyn Expectation>>>;

    /// Writes the model's own part of a model file.
    fn store(&self, file: &mut ModelFile) -> Result<()>;

    /// A boxed copy.
    fn boxed(&self) -> Box<dyn SeriesModel>;

    /// σ² of every series, in the units of the data.
    fn noise_variance(&self) -> Vec<f64> {
        self.scaling().scale.iter().map(|s| self.noise() * s.powi(2)).collect()
    }
}

impl Clone for Box<dyn SeriesModel> {
    fn clone(&self) -> Self {
        self.boxed()
    }
}

/// The definition of windows, and their units.
#[derive(Clone, Debug, PartialEq)]
pub struct Windows {
    /// The lags of a window.
    pub lags: Lags,
    /// The units of the series.
    pub scaling: Scaling,
    /// The units of the exogenous inputs.
    pub exogenous: Option<Scaling>,
}
