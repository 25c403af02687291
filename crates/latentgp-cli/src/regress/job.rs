//! What a regression is about, with options checked: those without effect for the chosen model are refused.

use super::rows::Rows;
use super::{Args, LinkName, MeanName, ModelName, Noise, PriorName};
use crate::args::Common;
use crate::failure::{Failure, Outcome};
use clap::ValueEnum;
use latentgp::data::Scale;
use latentgp::expectation::{self, Expectation};
use latentgp::likelihood::Link;
use latentgp::model::{MeanKind, WeightPrior};

/// Shape and rate of the Gamma prior of the weights' precisions, which say little.
const GAMMA: (f64, f64) = (1.0, 1e-6);

/// The settings of a fit.
pub struct Job {
    pub model: ModelName,
    pub likelihood: Noise,
    pub kernel: String,
    pub inducing: usize,
    pub latent_dim: usize,
    pub mean: MeanKind,
    pub link: Link,
    pub prior: WeightPrior,
    pub fitc: bool,
    pub expectation: Box<dyn Expectation>,
    pub scale: Scale,
    pub restarts: usize,
    pub max_iterations: usize,
    pub seed: u64,
}

fn name(of: &impl ValueEnum) -> String {
    of.to_possible_value().map(|v| v.get_name().to_string()).unwrap_or_default()
}

impl Job {
    /// From the options.
    pub fn new(args: &Args, common: &Common) -> Outcome<Self> {
        use ModelName::{Gp, Sparse, SpgpDr, Vdmgp};
        let (model, gaussian) = (args.model, args.likelihood == Noise::Gaussian);
        if !gaussian && !matches!(model, Gp | Sparse) {
            return Err(Failure::usage(format!(
                "--likelihood {} works with --model gp and --model sparse, found --model {}",
                name(&args.likelihood),
                name(&model)
            )));
        }
        let what = match gaussian {
            true => format!("--model {}", name(&model)),
            false => format!("--model {} with --likelihood {}", name(&model), name(&args.likelihood)),
        };
        let what = if args.fitc && model == Sparse { format!("{what} --fitc") } else { what };
        for (given, works, option) in [
            (args.inducing.is_some(), model != Gp, "--inducing"),
            (args.latent_dim.is_some(), matches!(model, SpgpDr | Vdmgp), "--latent-dim"),
            (args.mean.is_some(), model == Gp && gaussian, "--mean"),
            (args.link.is_some(), args.likelihood == Noise::Bernoulli, "--link"),
            (args.weight_prior.is_some(), model == Vdmgp, "--weight-prior"),
            (args.fitc, model == Sparse && gaussian, "--fitc"),
            (args.loo, model == Gp && gaussian, "--loo"),
            (!args.input_std.is_empty(), model != Gp && gaussian, "--input-std"),
            (
                args.expectation.is_some(),
                model == Vdmgp || (model == Sparse && gaussian && !args.fitc),
                "--expectation",
            ),
            (args.scale.is_some(), gaussian, "--scale"),
        ] {
            if given && !works {
                return Err(Failure::usage(format!("{option} has no effect on {what}; leave it out")));
            }
        }
        if !gaussian && args.target.len() > 1 {
            return Err(Failure::usage(format!("{what} has one target, found {}", args.target.len())));
        }
        let job = Job {
            model,
            likelihood: args.likelihood,
            kernel: args.kernel.clone().unwrap_or_else(|| "rbf".into()),
            inducing: args.inducing.unwrap_or(if model == Sparse { 50 } else { 20 }),
            latent_dim: args.latent_dim.unwrap_or(if model == Vdmgp { 5 } else { 2 }),
            mean: match args.mean {
                None | Some(MeanName::Zero) => MeanKind::Zero,
                Some(MeanName::Constant) => MeanKind::Constant,
                Some(MeanName::Linear) => MeanKind::Linear,
            },
            link: match args.link {
                Some(LinkName::Probit) => Link::Probit,
                None | Some(LinkName::Logit) => Link::Logit,
            },
            prior: match args.weight_prior {
                Some(PriorName::Gamma) => WeightPrior::Gamma { shape: GAMMA.0, rate: GAMMA.1 },
                None | Some(PriorName::TypeIi) => WeightPrior::TypeII,
            },
            fitc: args.fitc,
            expectation: rule(args)?,
            scale: args.scale.as_deref().map_or(Ok(Scale::Standardize), str::parse)?,
            restarts: args.restarts.unwrap_or(1),
            max_iterations: args.max_iter.unwrap_or(if model == Vdmgp { 600 } else { 1000 }),
            seed: common.seed(),
        };
        for (value, option, least) in [
            (job.inducing, "--inducing", 1),
            (job.latent_dim, "--latent-dim", 1),
            (job.restarts, "--restarts", 1),
            (job.max_iterations, "--max-iter", 1),
            (args.folds.unwrap_or(2), "--folds", 2),
        ] {
            if value < least {
                return Err(Failure::usage(format!("{option}: expected at least {least}, found {value}")));
            }
        }
        Ok(job)
    }

    /// Whether classes are the target.
    pub fn classes(&self) -> bool {
        matches!(self.likelihood, Noise::Bernoulli | Noise::Categorical)
    }

    /// Whether inputs may be missing.
    pub fn takes_gaps(&self) -> bool {
        self.model == ModelName::Sparse && self.likelihood == Noise::Gaussian && !self.fitc
    }

    /// Reads DATA, and errs where it does not go with the options.
    pub fn rows(&self, args: &Args) -> Outcome<Rows> {
        let mut rows = Rows::read(args, self)?;
        let n = rows.y.rows();
        if let Some(k) = args.folds.filter(|k| *k > n) {
            return Err(Failure::usage(format!(
                "--folds: expected a number from 2 to the {n} rows, found {k}"
            )));
        }
        let (k, inputs) = (self.latent_dim, rows.inputs.len());
        if matches!(self.model, ModelName::SpgpDr | ModelName::Vdmgp) && k > inputs {
            rows.notes.push(format!(
                "the projection has {k} directions of {}: more than {inputs} cannot help; see --latent-dim",
                crate::words::count(inputs, "input")
            ));
        }
        Ok(rows)
    }
}
/// The expectation, with its limit.
fn rule(args: &Args) -> Outcome<Box<dyn Expectation>> {
    let mut rule = expectation::parse(args.expectation.as_deref().unwrap_or("auto"))?;
    if let Some(limit) = args.max_nodes {
        rule.set_max_nodes(limit);
    }
    Ok(rule)
}
