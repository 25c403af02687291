//! GP-NARX: the next values of one or several series from windows of past ones and of exogenous inputs.
//!
//! ```text
//! y_t = f(x_t) + ε,   x_t = (y_(t−1) … y_(t−L), u_t …),   f_d ~ GP(0, k),   ε ~ N(0, σ²)
//! ```
//!
//! The regression is exact or sparse, with any kernel. A series is scaled by the mean and the (population)
//! standard deviation of its training targets, in targets and lags alike; the evidence is for the data as
//! given. [`Narx::simulate`] forecasts many steps ahead: see [`Simulation`].
//!
//! Values of series and of exogenous inputs may be missing, and series may be read with an error. Such values
//! are latent ([`Gapped`]), and the regression maximises the collapsed bound.

mod backtest;
mod forecast;
mod gaps;
mod simulate;
mod start;
mod storage;
mod trajectories;
mod window;

pub use backtest::{Backtest, Backtested, Refit};
pub use forecast::{Forecast, LEVELS, Score};
pub use gaps::{Cells, Gapped};
pub use simulate::{Propagation, Simulation, StartVariance, UncertainTraining};
pub use trajectories::Draws;

use crate::data::lags::{Lagged, Lags, Source};
use crate::data::{Scale, Scaling};
use crate::error::{Error, Result};
use crate::fit::{Fitted, OnIteration, Restarts};
use crate::kernel::Kernel;
use crate::mat::Mat;
use crate::model::shared::noise::noise_param;
use crate::model::{
    Model, Outputs, Regression, RegressionOptions, Regressor, SparseOptions, SparseRegression,
    UncertainInputs,
};
use crate::param::{Param, Parameterized};
use crate::posterior::Posterior;
use gaps::Given;
use rand_chacha::ChaCha8Rng;

/// The options of a GP-NARX besides data, lags and kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct NarxOptions {
    /// How series and exogenous inputs are scaled.
    pub scale: Scale,
    /// The start of σ², as a part of the mean square of the scaled targets.
    pub noise: f64,
    /// M of a sparse regression; `None` is exact regression, or at most 200 where values are latent.
    pub inducing: Option<usize>,
    /// s², the variance of the reading errors of the series, in the units of the scaled series; unless it is
    /// 0, all values of the series are latent.
    pub error: f64,
    /// Seed of the choice of inducing inputs.
    pub seed: u64,
}

impl Default for NarxOptions {
    fn default() -> Self {
        NarxOptions { scale: Scale::Standardize, noise: 0.1, inducing: None, error: 0.0, seed: 0 }
    }
}

/// The regression inside.
#[derive(Clone)]
pub enum Process {
    /// Exact.
    Exact(Box<Regression>),
    /// Sparse.
    Sparse(Box<SparseRegression>),
    /// Sparse, with latent values.
    Gapped(Box<Gapped>),
}

/// The most inducing inputs of a model with latent values, where no number is given.
const GAPPED_INDUCING: usize = 200;

/// A model of series in time.
///
/// ```
/// use latentgp::{Mat, data::{airline, lags::Lags}, expectation::Unscented, kernel::{Linear, Rbf}};
/// use latentgp::model::{Restarts, narx::{Narx, NarxOptions, Simulation}};
/// use std::ops::ControlFlow;
///
/// let series = Mat::column(&airline::PASSENGERS[..60]);
/// let mut model =
///     Narx::new(&series, None, Lags::new(12), Rbf::new(12) + Linear::new(12), &NarxOptions::default())?;
/// model.wide_start();
/// let how = Restarts { max_iterations: 20, ..Default::default() };
/// let fitted = model.fit(&how, &|_| ControlFlow::Continue(()))?.model;
/// let next = fitted.simulate(&series, None, 12, &Simulation::correlated(Unscented))?;
/// assert_eq!((next.mean.rows(), next.var.rows()), (12, 12));
/// # Ok::<(), latentgp::Error>(())
/// ```
#[derive(Clone)]
pub struct Narx {
    /// The regression, in scaled units.
    pub process: Process,
    /// The lags of a window.
    pub lags: Lags,
    /// The units of the series.
    pub scaling: Scaling,
    /// The units of the exogenous inputs.
    pub exogenous: Option<Scaling>,
}

impl Narx {
    /// A model of `series` (T×D, a row each time step) with the exogenous inputs (T×E) that the lags ask for.
    ///
    /// NaN is a missing value; rows before the first value of any series and after the last are not used. Errs when the
    /// series is no longer than the longest lag, has fewer than two targets, or is constant; when the exogenous inputs have
    /// another length; and where the regression errs.
    pub fn new(
        series: &Mat,
        exogenous: Option<&Mat>,
        lags: Lags,
        kernel: impl Kernel + 'static,
        options: &NarxOptions,
    ) -> Result<Self> {
        if !(options.error.is_finite() && options.error >= 0.0) {
            let expected = "a finite number, not negative";
            return Err(Error::invalid("variance of the errors of a series", expected, options.error));
        }
        if options.error > 0.0 || has_gaps(series) || exogenous.is_some_and(has_gaps) {
            return Self::with_gaps(series, exogenous, lags, kernel, options);
        }
        let table = lags.table(series, exogenous)?;
        varies(&table.y)?;
        let scaling = Scaling::fit(&table.y, options.scale)?;
        let inputs = exogenous.map(|u| Scaling::fit(u, options.scale)).transpose()?;
        let columns = column_scaling(&lags, &scaling, inputs.as_ref());
        let x = columns.apply(&table.x)?;
        let process = match options.inducing {
            None => {
                let own =
                    RegressionOptions { scale: options.scale, noise: options.noise, ..Default::default() };
                let mut model = Regression::with(x, table.y, kernel, &own)?;
                model.inputs = Some(columns);
                Process::Exact(Box::new(model))
            }
            Some(inducing) => {
                let (scale, noise, seed) = (options.scale, options.noise, options.seed);
                let own = SparseOptions { inducing, scale, noise, seed, ..Default::default() };
                let mut model = SparseRegression::new(x, None, table.y, kernel, &own)?;
                model.inputs = Some(columns);
                Process::Sparse(Box::new(model))
            }
        };
        Ok(Narx { process, lags, scaling, exogenous: inputs })
    }

    /// [`new`](Self::new) where values are latent.
    fn with_gaps(
        series: &Mat,
        exogenous: Option<&Mat>,
        lags: Lags,
        kernel: impl Kernel + 'static,
        options: &NarxOptions,
    ) -> Result<Self> {
        lags.check_with_gaps(series, exogenous, 0)?;
        let given = Given::new(series, exogenous)?;
        lags.check_length(given.series.rows())?;
        let targets = given.series.slice_rows(lags.longest(), given.series.rows());
        varies(&targets)?;
        let scaling = Scaling::fit(&targets, options.scale)?;
        let inputs = given.exogenous.as_ref().map(|u| Scaling::fit(u, options.scale)).transpose()?;
        let table = gaps::scaled(&given, &scaling, inputs.as_ref())?;
        let base = gapped_base(&lags, &table, kernel, options)?;
        let mut model = Narx {
            process: Process::Gapped(Box::new(Gapped::new(base, &lags, given, &table, options.error)?)),
            lags,
            scaling,
            exogenous: inputs,
        };
        model.take_units();
        Ok(model)
    }

    /// Gives the regression the units of the series and of the windows.
    fn take_units(&mut self) {
        let columns = self.columns();
        if let Process::Gapped(model) = &mut self.process {
            (model.base.scaling, model.base.inputs) = (self.scaling.clone(), Some(columns));
        }
    }

    /// A model with the same hyperparameters and units and other training data; its latent values are
    /// inferred.
    ///
    /// Errs as [`new`](Self::new) does, but accepts a constant series.
    pub fn conditioned(&self, series: &Mat, exogenous: Option<&Mat>) -> Result<Self> {
        let latent = matches!(self.process, Process::Gapped(_));
        if latent || has_gaps(series) || exogenous.is_some_and(has_gaps) {
            return self.conditioned_with_gaps(series, exogenous);
        }
        let Lagged { x, y } = self.lags.table(series, exogenous)?;
        let mut moved = self.clone();
        let x = self.columns().apply(&x)?;
        let outputs = Outputs::new(self.scaling.apply(&y)?);
        match &mut moved.process {
            Process::Exact(model) => (model.x, model.outputs) = (x, outputs),
            Process::Sparse(model) => (model.x, model.outputs) = (UncertainInputs::new(&x, None)?, outputs),
            Process::Gapped(_) => unreachable!("it is conditioned with gaps"),
        }
        Ok(moved)
    }

    fn conditioned_with_gaps(&self, series: &Mat, exogenous: Option<&Mat>) -> Result<Self> {
        self.lags.check_with_gaps(series, exogenous, 0)?;
        let given = Given::new(series, exogenous)?;
        self.lags.check_length(given.series.rows())?;
        let table = gaps::scaled(&given, &self.scaling, self.exogenous.as_ref())?;
        let error = self.error();
        let base = match &self.process {
            Process::Gapped(model) => model.base.clone(),
            Process::Sparse(model) => (**model).clone(),
            Process::Exact(model) => {
                let kernel = self.kernel().boxed();
                let mut base = gapped_base(&self.lags, &table, kernel, &NarxOptions::default())?;
                base.noise = model.noise.clone();
                base
            }
        };
        let mut moved = self.clone();
        moved.process = Process::Gapped(Box::new(Gapped::new(base, &self.lags, given, &table, error)?));
        moved.take_units();
        if let Process::Gapped(model) = moved.process {
            moved.process = Process::Gapped(Box::new(model.infer()?));
        }
        Ok(moved)
    }

    /// s², the variance of the reading errors of the series, in the units of the scaled series.
    pub fn error(&self) -> f64 {
        match &self.process {
            Process::Gapped(model) => model.error,
            _ => 0.0,
        }
    }

    /// The latent values of the training series; `None` where all are known.
    pub fn latent(&self) -> Option<&Gapped> {
        match &self.process {
            Process::Gapped(model) => Some(&**model),
            _ => None,
        }
    }

    /// Fits by type-II maximum likelihood, from the model as it is and from shaken hyperparameters.
    pub fn fit(&self, how: &Restarts, watch: &OnIteration<'_>) -> Result<Fitted<Narx>> {
        how.fit(self, watch)
    }

    /// The kernel, of scaled windows.
    pub fn kernel(&self) -> &dyn Kernel {
        self.regression().kernel()
    }

    /// Number of series.
    pub fn series(&self) -> usize {
        self.scaling.scale.len()
    }

    /// σ², in the units of the scaled series.
    pub fn noise(&self) -> &Param {
        match &self.process {
            Process::Exact(model) => &model.noise,
            Process::Sparse(model) => &model.noise,
            Process::Gapped(model) => &model.base.noise,
        }
    }

    /// σ², mutable.
    pub fn noise_mut(&mut self) -> &mut Param {
        match &mut self.process {
            Process::Exact(model) => &mut model.noise,
            Process::Sparse(model) => &mut model.noise,
            Process::Gapped(model) => &mut model.base.noise,
        }
    }

    /// The training windows, scaled, N×Q.
    pub fn inputs(&self) -> Mat {
        match &self.process {
            Process::Exact(model) => model.x.clone(),
            Process::Sparse(model) => model.latent().mean,
            Process::Gapped(model) => model.latent().mean,
        }
    }

    /// The training targets, scaled, N×D.
    pub fn outputs(&self) -> &Outputs {
        match &self.process {
            Process::Exact(model) => &model.outputs,
            Process::Sparse(model) => &model.outputs,
            Process::Gapped(model) => &model.base.outputs,
        }
    }

    fn columns(&self) -> Scaling {
        column_scaling(&self.lags, &self.scaling, self.exogenous.as_ref())
    }

    /// The regression inside.
    pub fn regression(&self) -> &dyn Regressor {
        match &self.process {
            Process::Exact(model) => &**model,
            Process::Sparse(model) => &**model,
            Process::Gapped(model) => &model.base,
        }
    }

    fn model(&self) -> &dyn Model {
        match &self.process {
            Process::Exact(model) => &**model,
            Process::Sparse(model) => &**model,
            Process::Gapped(model) => &**model,
        }
    }

    fn model_mut(&mut self) -> &mut dyn Model {
        match &mut self.process {
            Process::Exact(model) => &mut **model,
            Process::Sparse(model) => &mut **model,
            Process::Gapped(model) => &mut **model,
        }
    }

    /// Restores the latent values of a regression that was read from a file.
    pub(crate) fn restore_gaps(
        &mut self,
        series: &Mat,
        exogenous: Option<&Mat>,
        error: f64,
        (mean, var): (Mat, Mat),
    ) -> Result<()> {
        let Process::Sparse(base) = &self.process else {
            return Err(Error::invalid("regression of a series with gaps", "a sparse one", "another"));
        };
        let given = Given::new(series, exogenous)?;
        self.lags.check_length(given.series.rows())?;
        let table = gaps::scaled(&given, &self.scaling, self.exogenous.as_ref())?;
        let mut model = Gapped::new((**base).clone(), &self.lags, given, &table, error)?;
        model.take(mean, var)?;
        self.process = Process::Gapped(Box::new(model));
        Ok(())
    }

    /// Sets the start of σ² as a part of the mean square of the scaled targets.
    fn start_noise(&mut self, part: f64) {
        let noise = noise_param(part, self.outputs());
        *self.noise_mut() = noise;
    }
}

fn has_gaps(table: &Mat) -> bool {
    table.as_slice().iter().any(|v| v.is_nan())
}

/// A sparse regression of the windows of a scaled, gap-filled table, which provides the start of Z.
fn gapped_base(
    lags: &Lags,
    table: &Mat,
    kernel: impl Kernel + 'static,
    options: &NarxOptions,
) -> Result<SparseRegression> {
    let (x, y) = gaps::windows(lags, &gaps::filled(table));
    let own = SparseOptions {
        inducing: options.inducing.unwrap_or(GAPPED_INDUCING),
        scale: Scale::None,
        noise: options.noise,
        seed: options.seed,
        ..Default::default()
    };
    SparseRegression::new(x, None, y, kernel, &own)
}

/// The units of every column of a window.
fn column_scaling(lags: &Lags, series: &Scaling, exogenous: Option<&Scaling>) -> Scaling {
    let of = |source: &Source| match *source {
        Source::Series(d, _) => (series.mean[d], series.scale[d]),
        Source::Exogenous(e, _) => exogenous.map_or((0.0, 1.0), |s| (s.mean[e], s.scale[e])),
    };
    let (mean, scale) = lags.columns().iter().map(of).unzip();
    Scaling { mean, scale }
}

/// Errs unless every column varies.
fn varies(y: &Mat) -> Result<()> {
    if y.rows() < 2 {
        let reason = "there is only one time step after the longest lag; give more of them";
        return Err(Error::data("the series", reason));
    }
    for d in 0..y.cols() {
        let column: Vec<f64> = y.col(d).into_iter().filter(|v| !v.is_nan()).collect();
        if column.len() < 2 {
            let reason = "fewer than two values follow the longest lag; give more of them";
            return Err(Error::data(format!("series {}", d + 1), reason));
        }
        let (lo, hi) = column.iter().fold((f64::MAX, f64::MIN), |(lo, hi), v| (lo.min(*v), hi.max(*v)));
        if hi - lo <= 8.0 * f64::EPSILON * lo.abs().max(hi.abs()) {
            let reason = format!("all training targets are {lo}: there is nothing to learn; leave it out");
            return Err(Error::data(format!("series {}", d + 1), reason));
        }
    }
    Ok(())
}

impl Parameterized for Narx {
    fn params(&self) -> Vec<(String, &Param)> {
        self.model().params()
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        self.model_mut().params_mut()
    }

    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.model().each_param(visit);
    }

    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        self.model_mut().each_param_mut(visit);
    }
}

impl Model for Narx {
    fn varying_evidence(&self, grad: Option<&mut [f64]>) -> Result<f64> {
        self.model().varying_evidence(grad)
    }

    fn constant(&self) -> f64 {
        self.model().constant()
    }

    /// Predicts the next values from windows in the units of the data.
    fn posterior(&self) -> Result<Posterior> {
        self.model().posterior()
    }

    fn renew(&mut self, step: u64) {
        self.model_mut().renew(step);
    }

    fn is_stochastic(&self) -> bool {
        self.model().is_stochastic()
    }

    fn choose_inducing(&mut self, rng: &mut ChaCha8Rng) -> Result<()> {
        self.model_mut().choose_inducing(rng)
    }

    fn parts(&self) -> usize {
        self.model().parts()
    }
}
