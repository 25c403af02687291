//! Rolling-origin evaluation: forecasts from many origins in the past, each scored on what came after.
//!
//! The model at origin t knows only the rows before t. From one origin to the next it is conditioned on the
//! new rows; its hyperparameters and units are kept, or fitted again.

use super::{Forecast, Narx, NarxOptions, Score, Simulation};
use crate::data::lags::Lags;
use crate::error::{Error, Result};
use crate::fit::OnIteration;
use crate::kernel::Kernel;
use crate::mat::Mat;
use crate::model::Restarts;

/// When hyperparameters are fitted in a backtest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refit {
    /// Once, at the first origin.
    #[default]
    Once,
    /// At every origin.
    Always,
}

/// A rolling-origin evaluation: its origins and how the model is fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Backtest {
    /// The first origin: the number of rows known there.
    pub first: usize,
    /// Steps ahead of each origin; fewer where the series ends before.
    pub horizon: usize,
    /// Rows from an origin to the next.
    pub stride: usize,
    /// When hyperparameters are fitted.
    pub refit: Refit,
    /// How many of the latest rows are known at an origin; `None` is all.
    pub memory: Option<usize>,
    /// How hyperparameters are fitted.
    pub fitting: Restarts,
}

/// The forecasts of one way to simulate, from all origins, and their scores.
#[derive(Clone, Debug)]
pub struct Backtested {
    /// The row of the first forecast step of each origin.
    pub origins: Vec<usize>,
    /// The forecast of each origin.
    pub forecasts: Vec<Forecast>,
    /// The scores of each series over all origins and steps.
    pub overall: Vec<Score>,
    /// The scores of each step ahead: `by_step[h][d]`.
    pub by_step: Vec<Vec<Score>>,
}

impl Backtest {
    /// Evaluates each of the ways to simulate, on the same fits.
    ///
    /// `wide` starts hyperparameters with [`Narx::wide_start`]. Errs when the origins do not fit the series,
    /// and where fitting or simulating errs.
    pub fn run(
        &self,
        series: &Mat,
        exogenous: Option<&Mat>,
        lags: &Lags,
        kernel: &dyn Kernel,
        options: &NarxOptions,
        wide: bool,
        ways: &[Simulation],
        watch: &OnIteration<'_>,
    ) -> Result<Vec<Backtested>> {
        let origins = self.origins(series.rows(), lags)?;
        lags.check_with_gaps(series, exogenous, 0)?;
        let mut forecasts: Vec<Vec<Forecast>> = vec![Vec::new(); ways.len()];
        let mut fitted: Option<Narx> = None;
        for &origin in &origins {
            let from = self.memory.map_or(0, |m| origin.saturating_sub(m));
            let steps = self.horizon.min(series.rows() - origin);
            let known = series.slice_rows(from, origin);
            let inputs = exogenous.map(|u| u.slice_rows(from, origin));
            let model = match &fitted {
                Some(model) if self.refit == Refit::Once => model.conditioned(&known, inputs.as_ref())?,
                _ => {
                    let mut start =
                        Narx::new(&known, inputs.as_ref(), lags.clone(), kernel.boxed(), options)?;
                    if wide {
                        start.wide_start();
                    }
                    start.fit(&self.fitting, watch)?.model
                }
            };
            let ahead = exogenous.map(|u| u.slice_rows(from, origin + steps));
            for (way, to) in ways.iter().zip(&mut forecasts) {
                to.push(model.simulate(&known, ahead.as_ref(), steps, way)?);
            }
            fitted = Some(model);
        }
        forecasts.into_iter().map(|of| self.score(series, &origins, of)).collect()
    }

    fn origins(&self, rows: usize, lags: &Lags) -> Result<Vec<usize>> {
        for (what, value) in [("horizon", self.horizon), ("stride", self.stride)] {
            if value == 0 {
                return Err(Error::invalid(what, "at least 1", 0));
            }
        }
        let least = lags.longest() + 2;
        if self.first < least || self.first >= rows {
            let expected =
                format!("from {least} (the longest lag and two targets) to {}", rows.saturating_sub(1));
            return Err(Error::invalid("first origin", expected, self.first));
        }
        if self.memory.is_some_and(|m| m < least) {
            return Err(Error::invalid("memory", format!("at least {least}"), self.memory.unwrap_or(0)));
        }
        Ok((self.first..rows).step_by(self.stride).collect())
    }

    fn score(&self, series: &Mat, origins: &[usize], forecasts: Vec<Forecast>) -> Result<Backtested> {
        let d = series.cols();
        let cells = |steps: std::ops::Range<usize>, j: usize| {
            let (mut y, mut mean, mut var) = (Vec::new(), Vec::new(), Vec::new());
            for (&origin, f) in origins.iter().zip(&forecasts) {
                for h in steps.start..steps.end.min(f.mean.rows()) {
                    y.push(series[(origin + h, j)]);
                    mean.push(f.mean[(h, j)]);
                    var.push(f.var[(h, j)]);
                }
            }
            Score::new(&y, &mean, &var)
        };
        let longest = forecasts.iter().map(|f| f.mean.rows()).max().unwrap_or(0);
        let overall = (0..d).map(|j| cells(0..longest, j)).collect::<Result<_>>()?;
        let by_step = (0..longest)
            .map(|h| (0..d).map(|j| cells(h..h + 1, j)).collect::<Result<_>>())
            .collect::<Result<_>>()?;
        Ok(Backtested { origins: origins.to_vec(), forecasts, overall, by_step })
    }
}

impl Default for Backtest {
    fn default() -> Self {
        Backtest {
            first: 60,
            horizon: 12,
            stride: 12,
            refit: Refit::Once,
            memory: None,
            fitting: Restarts::default(),
        }
    }
}
