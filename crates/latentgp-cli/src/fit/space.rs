//! `latentgp fit --model gplvm` and `--model ppca`.

use super::progress::Progress;
use super::{Args, ModelName};
use crate::args::Common;
use crate::data::{self, Choice};
use crate::failure::{Failure, Outcome};
use crate::space::{self, Space};
use crate::words::{count, short};
use crate::{interrupt, out};
use latentgp::Mat;
use latentgp::data::Scale;
use latentgp::data::table::{Column, Table};
use latentgp::file::{self, LatentReport, TrainedSpace};
use latentgp::kernel;
use latentgp::model::{GplvmTraining, LatentSpace, Ppca, PpcaOptions};
use latentgp::optim::StopReason;
use serde_json::json;
use std::ops::ControlFlow;
use std::time::Instant;

/// Fits, saves and tells.
pub fn run(args: &Args, common: &Common) -> Outcome {
    check(args)?;
    let scale: Scale = args.scale.as_deref().map_or(Ok(Scale::Standardize), str::parse)?;
    let choice = Choice {
        labels: args.labels.as_deref(),
        id: args.id.as_deref(),
        columns: &args.columns,
        exclude: &args.exclude,
    };
    let spec = args.data.as_deref().ok_or_else(|| Failure::usage("DATA is missing"))?;
    let ppca = args.model == ModelName::Ppca;
    let latent_dim = args.latent_dim.unwrap_or(2);
    let text = args.kernel.clone().unwrap_or_else(|| if ppca { "linear".into() } else { "rbf".into() });
    let kernel = kernel::parse(&text, latent_dim)?;
    let chosen = data::choose(spec, &choice)?;
    interrupt::listen()?;
    let began = Instant::now();
    let (model, mut report) = match ppca {
        true => principal(args, common, &chosen.y, latent_dim, scale)?,
        false => points(args, common, &chosen.y, &*kernel, latent_dim, scale)?,
    };
    (report.kernel, report.seed) = (text, common.seed());
    report.seconds = began.elapsed().as_secs_f64();
    let stopped = report.stop_reason == StopReason::Asked || interrupt::asked();
    let trained = TrainedSpace { model, columns: chosen.columns, labels: chosen.labels, report };
    if let Some(path) = &args.out {
        file::save(path, &trained).map_err(Failure::work)?;
    }
    if let Some(path) = &args.trace {
        let values = trained.report.trace.clone();
        let iterations = (1..=values.len()).map(|i| i as f64).collect();
        let columns = vec![Column::numbers("iteration", iterations), Column::numbers("bound", values)];
        out::table(&Table::new("trace", columns).map_err(Failure::work)?, Some(path))?;
    }
    if stopped {
        let at = format!("interrupted after {}", count(trained.report.iterations, "iteration"));
        return Err(Failure::interrupted(match &args.out {
            Some(path) => format!("{at}; the best state is in {}", path.display()),
            None => format!("{at}; nothing is kept without `--out`"),
        }));
    }
    let space = Space::new(trained)?;
    for warning in space::warnings(&space) {
        out::note(common.quiet, format!("warning: {warning}"));
    }
    if args.json {
        let mut all = space::json(&space)?;
        all["out"] = json!(args.out);
        return out::json(&all);
    }
    let saved = match &args.out {
        Some(path) => format!("  saved in      {}", path.display()),
        None => "  not saved     add `--out model.lgp` to keep it".into(),
    };
    out::text(&format!("{}\n{saved}", space::text(&space)?))
}

/// Refuses what has no effect.
fn check(args: &Args) -> Outcome {
    let ppca = args.model == ModelName::Ppca;
    let name = if ppca { "ppca" } else { "gplvm" };
    out::check(args.out.as_deref(), &[])?;
    out::check(args.trace.as_deref(), &out::TABLES)?;
    for (given, option) in [
        (args.inducing.is_some(), "--inducing"),
        (args.expectation.is_some(), "--expectation"),
        (args.max_nodes.is_some(), "--max-nodes"),
        (args.checkpoint.is_some(), "--checkpoint"),
        (args.resume.is_some(), "--resume"),
        (ppca && args.kernel.is_some(), "--kernel"),
        (ppca && args.restarts.is_some(), "--restarts"),
        (ppca && args.trace.is_some(), "--trace"),
    ] {
        if given {
            return Err(Failure::usage(format!("{option} has no effect on --model {name}; leave it out")));
        }
    }
    for (value, option) in
        [(args.latent_dim, "--latent-dim"), (args.restarts, "--restarts"), (args.max_iter, "--max-iter")]
    {
        if value == Some(0) {
            return Err(Failure::usage(format!("{option}: expected at least 1, found 0")));
        }
    }
    Ok(())
}

fn principal(
    args: &Args,
    common: &Common,
    y: &Mat,
    latent_dim: usize,
    scale: Scale,
) -> Outcome<(LatentSpace, LatentReport)> {
    let usual = PpcaOptions::default();
    let max_iterations = args.max_iter.unwrap_or(usual.max_iterations);
    let progress = Progress::new(common.quiet, 1, max_iterations);
    let watch = |p: &latentgp::model::Progress| {
        progress.see(p.restart, p.iteration, p.bound);
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let model = Ppca::fit_watched(y, &PpcaOptions { latent_dim, scale, max_iterations, ..usual }, &watch)?;
    let reason = match (model.trace.is_empty(), model.converged) {
        (true, _) => StopReason::ClosedForm,
        (_, true) => StopReason::Value,
        (_, false) if interrupt::asked() => StopReason::Asked,
        (_, false) => StopReason::MaxIterations,
    };
    let bound = model.log_likelihood(y)?;
    progress.finish(&format!(
        "{}, log evidence {}: {reason}",
        count(model.trace.len(), "iteration"),
        short(bound)
    ));
    let report = LatentReport {
        bound,
        iterations: model.trace.len(),
        evaluations: model.trace.len(),
        converged: model.converged,
        stop_reason: reason,
        seconds: 0.0,
        restarts: vec![Some(bound)],
        kernel: String::new(),
        scale,
        seed: 0,
        trace: model.trace.clone(),
    };
    Ok((LatentSpace::Ppca(Box::new(model), y.clone()), report))
}

fn points(
    args: &Args,
    common: &Common,
    y: &Mat,
    kernel: &dyn kernel::Kernel,
    latent_dim: usize,
    scale: Scale,
) -> Outcome<(LatentSpace, LatentReport)> {
    let usual = GplvmTraining::default();
    let training = GplvmTraining {
        latent_dim,
        scale,
        max_iterations: args.max_iter.unwrap_or(usual.max_iterations),
        restarts: args.restarts.unwrap_or(usual.restarts),
        seed: common.seed(),
        ..usual
    };
    let progress = Progress::new(common.quiet, training.restarts, training.hold + training.max_iterations);
    let watch = |p: &latentgp::model::Progress| {
        progress.see(p.restart, p.iteration, p.bound);
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let fitted = training.fit(y, kernel, &watch)?;
    progress.finish(&format!(
        "{}, log density {}: {}",
        count(fitted.iterations, "iteration"),
        short(fitted.evidence),
        fitted.stop_reason
    ));
    let report = LatentReport {
        bound: fitted.evidence,
        iterations: fitted.iterations,
        evaluations: fitted.evaluations,
        converged: fitted.converged,
        stop_reason: fitted.stop_reason,
        seconds: 0.0,
        restarts: fitted.runs,
        kernel: String::new(),
        scale,
        seed: common.seed(),
        trace: fitted.trace,
    };
    Ok((LatentSpace::Gplvm(Box::new(fitted.model)), report))
}
