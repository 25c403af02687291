//! Latent spaces.

use crate::settings::{LatentSettings, rule, scale};
use crate::work::{Job, Seen};
use latentgp::file::{LatentReport, Report, Trained, TrainedSpace};
use latentgp::kernel::Kernel;
use latentgp::model::{
    Certificate, Fit, Fitted, Gplvm, GplvmTraining, LatentSpace, OnProgress, Ppca, PpcaOptions, Training,
};
use latentgp::optim::StopReason;
use latentgp::{Mat, Result};
use std::time::Instant;

/// A Bayesian GPLVM of Y.
pub struct BayesianGplvmJob {
    y: Mat,
    kernel: Box<dyn Kernel>,
    settings: LatentSettings,
    training: Training,
    began: Instant,
}

impl BayesianGplvmJob {
    pub fn new(y: Mat, kernel: Box<dyn Kernel>, settings: LatentSettings) -> Result<Self> {
        let s = &settings;
        let training = Training {
            latent_dim: s.latent_dim,
            inducing: s.inducing,
            expectation: rule(&s.expectation)?,
            scale: scale(&s.scale)?,
            max_iterations: s.max_iter,
            restarts: s.restarts,
            seed: s.seed,
            ..Training::default()
        };
        training.expectation.check(&*kernel, s.latent_dim)?;
        Ok(BayesianGplvmJob { y, kernel, settings, training, began: Instant::now() })
    }

    fn trained(&self, fit: Fit) -> Trained {
        let seconds = self.began.elapsed().as_secs_f64();
        Trained {
            report: Report::new(&fit, &self.training, &self.settings.kernel, seconds),
            model: fit.model,
            columns: self.settings.columns.clone(),
            labels: None,
            id: None,
            unfinished: None,
        }
    }
}

impl Job for BayesianGplvmJob {
    type Trained = Trained;

    fn fit(&self, watch: &OnProgress<'_>) -> Result<Trained> {
        Ok(self.trained(self.training.fit(&self.y, &*self.kernel, watch)?))
    }

    fn at(&self, seen: &Seen) -> Result<Trained> {
        let mut model = self.training.start(&self.y, &*self.kernel, seen.progress.restart)?;
        seen.progress.place_in(&mut model);
        let of = seen.fitted(model);
        Ok(self.trained(Fit {
            // It takes longer than a user who asked to stop waits; it is worked out when somebody asks for it.
            certificate: Certificate::default(),
            model: of.model,
            bound: of.evidence,
            iterations: of.iterations,
            evaluations: of.evaluations,
            converged: of.converged,
            stop_reason: of.stop_reason,
            trace: of.trace,
            restarts: of.runs,
            extra_jitter: 0.0,
            runs: Vec::new(),
        }))
    }
}

/// A GPLVM of Y.
pub struct GplvmJob {
    y: Mat,
    kernel: Box<dyn Kernel>,
    settings: LatentSettings,
    training: GplvmTraining,
    began: Instant,
}

impl GplvmJob {
    pub fn new(y: Mat, kernel: Box<dyn Kernel>, settings: LatentSettings) -> Result<Self> {
        let s = &settings;
        let training = GplvmTraining {
            latent_dim: s.latent_dim,
            scale: scale(&s.scale)?,
            max_iterations: s.max_iter,
            restarts: s.restarts,
            seed: s.seed,
            ..GplvmTraining::default()
        };
        rule(&s.expectation)?.check(&*kernel, s.latent_dim)?;
        Ok(GplvmJob { y, kernel, settings, training, began: Instant::now() })
    }

    fn trained(&self, mut fitted: Fitted<Gplvm>) -> Result<TrainedSpace> {
        let s = &self.settings;
        fitted.model.expectation = rule(&s.expectation)?;
        Ok(TrainedSpace {
            report: LatentReport {
                bound: fitted.evidence,
                iterations: fitted.iterations,
                evaluations: fitted.evaluations,
                converged: fitted.converged,
                stop_reason: fitted.stop_reason,
                seconds: self.began.elapsed().as_secs_f64(),
                restarts: fitted.runs,
                kernel: s.kernel.clone(),
                scale: self.training.scale,
                seed: s.seed,
                trace: fitted.trace,
            },
            model: LatentSpace::Gplvm(Box::new(fitted.model)),
            columns: s.columns.clone(),
            labels: None,
        })
    }
}

impl Job for GplvmJob {
    type Trained = TrainedSpace;

    fn fit(&self, watch: &OnProgress<'_>) -> Result<TrainedSpace> {
        self.trained(self.training.fit(&self.y, &*self.kernel, watch)?)
    }

    fn at(&self, seen: &Seen) -> Result<TrainedSpace> {
        let mut model = self.training.start(&self.y, &*self.kernel, seen.progress.restart)?;
        seen.progress.place_in(&mut model);
        self.trained(seen.fitted(model))
    }
}

/// A probabilistic PCA of Y.
pub struct PpcaJob {
    y: Mat,
    settings: LatentSettings,
    options: PpcaOptions,
    began: Instant,
}

impl PpcaJob {
    pub fn new(y: Mat, settings: LatentSettings) -> Result<Self> {
        let options = PpcaOptions {
            latent_dim: settings.latent_dim,
            scale: scale(&settings.scale)?,
            max_iterations: settings.max_iter,
            ..PpcaOptions::default()
        };
        Ok(PpcaJob { y, settings, options, began: Instant::now() })
    }

    fn trained(&self, model: Ppca, bound: f64, asked: bool) -> TrainedSpace {
        let stop_reason = match (model.trace.is_empty(), model.converged) {
            (true, _) => StopReason::ClosedForm,
            (_, true) => StopReason::Value,
            (_, false) if asked => StopReason::Asked,
            (_, false) => StopReason::MaxIterations,
        };
        TrainedSpace {
            report: LatentReport {
                bound,
                iterations: model.trace.len(),
                evaluations: model.trace.len(),
                converged: model.converged,
                stop_reason,
                seconds: self.began.elapsed().as_secs_f64(),
                restarts: vec![Some(bound)],
                kernel: self.settings.kernel.clone(),
                scale: self.options.scale,
                seed: self.settings.seed,
                trace: model.trace.clone(),
            },
            model: LatentSpace::Ppca(Box::new(model), self.y.clone()),
            columns: self.settings.columns.clone(),
            labels: None,
        }
    }
}

impl Job for PpcaJob {
    type Trained = TrainedSpace;

    fn fit(&self, watch: &OnProgress<'_>) -> Result<TrainedSpace> {
        let model = Ppca::fit_watched(&self.y, &self.options, watch)?;
        let asked = model.trace.len() < self.options.max_iterations;
        let bound = model.log_likelihood(&self.y)?;
        Ok(self.trained(model, bound, asked))
    }

    fn at(&self, seen: &Seen) -> Result<TrainedSpace> {
        let model = Ppca::at(&self.y, &self.options, &seen.progress, seen.trace.clone())?;
        Ok(self.trained(model, seen.progress.bound, true))
    }
}
