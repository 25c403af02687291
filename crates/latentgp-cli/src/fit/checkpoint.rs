//! The state of a fit, written while it runs.

use super::Job;
use crate::failure::{Failure, Outcome};
use crate::out;
use latentgp::file::{self, Report, Trained, Unfinished};
use latentgp::model::{BayesianGplvm, Certificate, Run};
use latentgp::optim::StopReason;
use std::path::Path;

/// The best state so far, reached from `start`, as a model that can be used, and all that is needed to go on.
pub fn unfinished(job: &Job, start: &BayesianGplvm, runs: Vec<Run>, seconds: f64) -> Outcome<Trained> {
    let best = runs.iter().max_by(|a, b| bound(a).total_cmp(&bound(b)));
    let (model, trace) = match best {
        Some(run) => (run.model(start)?, run.trace.clone()),
        None => (start.clone(), Vec::new()),
    };
    let reached = match best.and_then(Run::bound) {
        Some(bound) => bound,
        None => latentgp::model::Model::log_evidence(&model, None)?,
    };
    let restarts = (0..job.training.restarts)
        .map(|k| runs.iter().find(|r| r.restart == k).and_then(Run::bound))
        .collect();
    Ok(Trained {
        report: Report {
            bound: reached,
            iterations: best.map_or(0, Run::total_iterations),
            evaluations: best.map_or(0, Run::total_evaluations),
            converged: false,
            stop_reason: StopReason::Asked,
            seconds,
            restarts,
            extra_jitter: 0.0,
            certificate: Certificate::default(),
            kernel: job.kernel_text.clone(),
            scale: job.training.scale,
            seed: job.training.seed,
            trace,
        },
        model,
        columns: job.columns.clone(),
        labels: job.labels.clone(),
        id: job.id.clone(),
        unfinished: Some(Unfinished {
            training: job.training.clone(),
            kernel: job.kernel_text.clone(),
            y: job.y.clone(),
            runs,
            seconds,
        }),
    })
}

fn bound(run: &Run) -> f64 {
    run.bound().unwrap_or(f64::NEG_INFINITY)
}

/// Writes the state, whole or not at all.
pub fn write(path: &Path, job: &Job, start: &BayesianGplvm, runs: Vec<Run>, seconds: f64) -> Outcome {
    file::save(path, &unfinished(job, start, runs, seconds)?).map_err(Failure::work)
}

/// Removes a checkpoint that the finished model has made superfluous; without a model file it stays.
pub fn finish(path: &Path, model: Option<&Path>) -> Outcome {
    match model {
        Some(model) if !out::same_file(model, path) => std::fs::remove_file(path)
            .map_err(|e| Failure::work(format!("{}: cannot be removed: {e}", path.display()))),
        _ => Ok(()),
    }
}
