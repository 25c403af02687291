//! Series in time.

use super::report;
use crate::settings::{NarxSettings, scale};
use crate::work::{Job, Seen};
use latentgp::data::lags::Lags;
use latentgp::file::TrainedNarx;
use latentgp::kernel::Kernel;
use latentgp::model::{Fitted, Narx, NarxOptions, OnProgress, Restarts};
use latentgp::{Mat, Result};
use std::time::Instant;

/// A GP-NARX of series, with exogenous inputs where there are any.
pub struct NarxJob {
    series: Mat,
    exogenous: Option<Mat>,
    settings: NarxSettings,
    start: Narx,
    began: Instant,
}

impl NarxJob {
    pub fn new(
        series: Mat,
        exogenous: Option<Mat>,
        kernel: Box<dyn Kernel>,
        settings: NarxSettings,
    ) -> Result<Self> {
        let s = &settings;
        let lags = Lags {
            series: vec![s.lags; series.cols()],
            exogenous: vec![s.delays.clone(); exogenous.as_ref().map_or(0, Mat::cols)],
        };
        let (scale, inducing, seed) = (scale(&s.scale)?, s.inducing, s.seed);
        let options = NarxOptions { scale, inducing, seed, ..NarxOptions::default() };
        let mut start = Narx::new(&series, exogenous.as_ref(), lags, kernel, &options)?;
        if s.wide {
            start.wide_start();
        }
        Ok(NarxJob { series, exogenous, settings, start, began: Instant::now() })
    }

    fn trained(&self, fitted: Fitted<Narx>) -> Result<TrainedNarx> {
        let s = &self.settings;
        Ok(TrainedNarx {
            report: report(&fitted, &s.kernel, Some(scale(&s.scale)?), s.seed, self.began),
            model: fitted.model,
            series: self.series.clone(),
            exogenous: self.exogenous.clone(),
            names: s.names.clone(),
            exogenous_names: s.exogenous_names.clone(),
        })
    }
}

impl Job for NarxJob {
    type Trained = TrainedNarx;

    fn fit(&self, watch: &OnProgress<'_>) -> Result<TrainedNarx> {
        let (runs, max_iterations, seed) =
            (self.settings.restarts, self.settings.max_iter, self.settings.seed);
        let how = Restarts { runs, max_iterations, seed, ..Restarts::default() };
        self.trained(self.start.fit(&how, watch)?)
    }

    fn at(&self, seen: &Seen) -> Result<TrainedNarx> {
        let mut model = self.start.clone();
        seen.progress.place_in(&mut model);
        self.trained(seen.fitted(model))
    }
}
