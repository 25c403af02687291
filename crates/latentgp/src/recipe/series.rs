//! Recipes of models of series.

use super::{Job, Learnt, Recipe, job};
use crate::data::lags::Lags;
use crate::error::Result;
use crate::fit::Restarts;
use crate::kernel::Kernel;
use crate::mat::Mat;
use crate::model::{Narx, NarxOptions};

/// Lags of a series by default: twelve months and one more, since a seasonal series with a trend follows
/// y(t−12) + y(t−1) − y(t−13).
const LAG: usize = 13;

impl Recipe {
    pub(super) fn series(
        &self,
        series: &Mat,
        exogenous: Option<&Mat>,
        kernel: Option<Box<dyn Kernel>>,
    ) -> Result<Box<dyn Job>> {
        let lags = self.lags.clone().unwrap_or_else(|| Lags::of_series(&vec![LAG; series.cols()]));
        let kernel = self.kernel_on(lags.width(), kernel)?;
        let (usual, how) = (NarxOptions::default(), Restarts::default());
        let options = NarxOptions {
            scale: self.scale(),
            noise: self.noise.unwrap_or(usual.noise),
            inducing: self.inducing,
            seed: self.seed,
            error: self.error.unwrap_or(usual.error),
        };
        let wide = self.wide(&*kernel);
        let mut start = Narx::new(series, exogenous, lags, kernel, &options)?;
        if wide {
            start.wide_start();
        }
        let how = Restarts {
            runs: self.restarts.unwrap_or(how.runs),
            effort: self.effort(),
            max_iterations: self.max_iterations.unwrap_or(how.max_iterations),
            seed: self.seed,
            ..how
        };
        job(how.plan(start), |m| Learnt::Series(Box::new(m)))
    }
}
