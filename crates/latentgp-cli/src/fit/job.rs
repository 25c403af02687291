//! What a fit is about: data, settings and, when it goes on, where it stands.

use super::Args;
use crate::args::Common;
use crate::data::{self, Choice};
use crate::failure::{Failure, Outcome};
use crate::trained;
use latentgp::expectation::{self, Auto, Expectation};
use latentgp::file::{Labels, Unfinished};
use latentgp::kernel::{self, Kernel};
use latentgp::model::{Place, Run, Stage, Training};
use latentgp::optim::StopReason;
use latentgp::{Error, Mat};
use std::path::Path;

/// Everything that a fit needs.
#[derive(Clone)]
pub struct Job {
    /// Y as given.
    pub y: Mat,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// The class of each row, if known.
    pub labels: Option<Labels>,
    /// The name of the column that identifies rows.
    pub id: Option<String>,
    /// The settings.
    pub training: Training,
    /// The kernel as asked for.
    pub kernel_text: String,
    /// The kernel at the start.
    pub kernel: Box<dyn Kernel>,
    /// Restarts that have begun.
    pub runs: Vec<Run>,
    /// Seconds spent before.
    pub seconds: f64,
}

impl Job {
    /// From the options, or from the file to go on from.
    pub fn new(args: &Args, common: &Common) -> Outcome<Self> {
        match &args.resume {
            None => Job::begin(args, common),
            Some(path) => Job::resume(args, common, path),
        }
    }

    fn begin(args: &Args, common: &Common) -> Outcome<Self> {
        let usual = Training::default();
        let mut training = Training {
            latent_dim: args.latent_dim.unwrap_or(usual.latent_dim),
            inducing: args.inducing.unwrap_or(usual.inducing),
            restarts: args.restarts.unwrap_or(usual.restarts),
            max_iterations: args.max_iter.unwrap_or(usual.max_iterations),
            seed: common.seed(),
            ..usual
        };
        for (value, name) in [
            (training.latent_dim, "--latent-dim"),
            (training.inducing, "--inducing"),
            (training.restarts, "--restarts"),
            (training.max_iterations, "--max-iter"),
        ] {
            if value == 0 {
                return Err(Failure::usage(format!("{name}: expected at least 1, found 0")));
            }
        }
        if let Some(scale) = &args.scale {
            training.scale = scale.parse()?;
        }
        let kernel_text = args.kernel.clone().unwrap_or_else(|| "rbf".into());
        let kernel = kernel::parse(&kernel_text, training.latent_dim)?;
        training.expectation = rule(args, &*kernel, training.latent_dim)?;
        let choice = Choice {
            labels: args.labels.as_deref(),
            id: args.id.as_deref(),
            columns: &args.columns,
            exclude: &args.exclude,
        };
        let spec = args.data.as_deref().ok_or_else(|| Failure::usage("DATA is missing"))?;
        let chosen = data::choose(spec, &choice)?;
        Ok(Job {
            y: chosen.y,
            columns: chosen.columns,
            labels: chosen.labels,
            id: args.id.clone(),
            training,
            kernel_text,
            kernel,
            runs: Vec::new(),
            seconds: 0.0,
        })
    }

    fn resume(args: &Args, common: &Common, path: &Path) -> Outcome<Self> {
        let stored = trained::load(path)?;
        let Some(left) = stored.unfinished else {
            return Err(Failure::usage(format!(
                "{}: this fit is over ({}), there is nothing to resume",
                path.display(),
                stored.report.stop_reason
            )));
        };
        let Unfinished { training, kernel: kernel_text, y, runs, seconds } = left;
        let kernel = kernel::parse(&kernel_text, training.latent_dim)?;
        let mut job = Job {
            y,
            columns: stored.columns,
            labels: stored.labels,
            id: stored.id,
            training,
            kernel_text,
            kernel,
            runs,
            seconds,
        };
        job.agree(args, common, path)?;
        if let Some(limit) = args.max_iter {
            job.allow(limit)?;
        }
        Ok(job)
    }

    /// Errs when an option says other than what is stored: it would have no effect.
    fn agree(&self, args: &Args, common: &Common, path: &Path) -> Outcome {
        let t = &self.training;
        let number = |n: usize| n.to_string();
        let expectation = match &args.expectation {
            Some(text) => Some(expectation::parse(text)?.expression()),
            None => None,
        };
        let asked: [(&str, Option<String>, String); 7] = [
            ("--latent-dim", args.latent_dim.map(number), number(t.latent_dim)),
            ("--inducing", args.inducing.map(number), number(t.inducing)),
            ("--kernel", args.kernel.clone(), self.kernel_text.clone()),
            ("--expectation", expectation, t.expectation.expression()),
            ("--scale", args.scale.clone(), t.scale.to_string()),
            ("--restarts", args.restarts.map(number), number(t.restarts)),
            ("--seed", common.seed.map(|s| s.to_string()), t.seed.to_string()),
        ];
        for (option, asked, stored) in asked {
            if asked.as_ref().is_some_and(|a| *a != stored) {
                return Err(Failure::usage(format!(
                    "{option} {} contradicts {}, which has {stored}; leave the option out, or begin a new fit \
                     without --resume",
                    asked.unwrap_or_default(),
                    path.display()
                )));
            }
        }
        let Some(spec) = &args.data else {
            return match (&args.labels, args.columns.is_empty() && args.exclude.is_empty()) {
                (None, true) => Ok(()),
                _ => Err(Failure::usage(
                    "--labels, --columns and --exclude have no effect with --resume unless DATA is given again",
                )),
            };
        };
        let choice = Choice {
            labels: args.labels.as_deref(),
            id: args.id.as_deref(),
            columns: &args.columns,
            exclude: &args.exclude,
        };
        let chosen = data::choose(spec, &choice)?;
        let bits = |m: &Mat| m.as_slice().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        let missing = |m: &Mat| m.as_slice().iter().map(|v| v.is_nan()).collect::<Vec<_>>();
        let seen = |m: &Mat| bits(&m.map(|v| if v.is_nan() { 0.0 } else { v }));
        let same = chosen.y.shape() == self.y.shape()
            && missing(&chosen.y) == missing(&self.y)
            && seen(&chosen.y) == seen(&self.y);
        if !same {
            return Err(Failure::data(format!(
                "{spec}: these are not the data that {} was made from; leave DATA out, or begin a new fit \
                 without --resume",
                path.display()
            )));
        }
        Ok(())
    }

    /// Another limit of iterations; runs that ended at the old one go on.
    fn allow(&mut self, limit: usize) -> Outcome {
        if limit == 0 {
            return Err(Failure::usage("--max-iter: expected at least 1, found 0"));
        }
        let more = limit > self.training.max_iterations;
        self.training.max_iterations = limit;
        for run in &mut self.runs {
            if more && run.stage == Stage::Free && run.stopped == Some(StopReason::MaxIterations) {
                run.stopped = None;
                run.place = Place::Point(run.place.u().to_vec());
            }
        }
        Ok(())
    }
}

/// The expectation, with its limit; errs where the limit is exceeded or has no effect.
fn rule(args: &Args, kernel: &dyn Kernel, dim: usize) -> Outcome<Box<dyn Expectation>> {
    let mut rule = expectation::parse(args.expectation.as_deref().unwrap_or("auto"))?;
    if let Some(limit) = args.max_nodes {
        let used: &dyn Expectation = if rule.expression() == "auto" { Auto::choice(kernel) } else { &*rule };
        let nodes = used.cost(1, dim, 1).nodes;
        if nodes == 0.0 {
            return Err(Failure::usage(format!(
                "--max-nodes has no effect on `{used}`, which uses no nodes; leave it out"
            )));
        }
        if nodes > limit as f64 {
            return Err(Error::TooManyNodes {
                rule: used.expression(),
                nodes,
                dim,
                megabytes: (nodes * dim as f64 * 8e-6).ceil(),
                limit,
                cheaper: cheaper(kernel, dim, limit),
            }
            .into());
        }
        rule.set_max_nodes(limit);
    }
    rule.check(kernel, dim)?;
    Ok(rule)
}

/// What stays within the limit.
fn cheaper(kernel: &dyn Kernel, dim: usize, limit: usize) -> String {
    if kernel.closed_form().is_some() {
        return "`analytic` (no nodes)".into();
    }
    let nodes =
        |rule: &str| expectation::parse(rule).map_or(f64::INFINITY, |rule| rule.cost(1, dim, 1).nodes);
    match ["unscented", "minimal_skew"].into_iter().find(|rule| nodes(rule) <= limit as f64) {
        Some(rule) => format!("`{rule}` ({} nodes)", nodes(rule)),
        None => "fewer latent dimensions".into(),
    }
}
