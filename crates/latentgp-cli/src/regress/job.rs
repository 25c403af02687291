//! What a regression is about: the recipe that the options fill.

use super::Args;
use super::rows::Rows;
use crate::args::Common;
use crate::failure::{Failure, Outcome};
use clap::ValueEnum;
use latentgp::likelihood::Kind;
use latentgp::recipe::Recipe;

/// Directions of a projection where none are asked for.
fn usual_directions(model: &str) -> usize {
    if model == "vdmgp" { 5 } else { 2 }
}

/// The model of inputs with errors, or that were never observed, where none is asked for.
const UNCERTAIN: &str = "sparse";

/// The settings of a fit.
#[derive(Clone)]
pub struct Job {
    /// All that the library is told.
    pub recipe: Recipe,
}

/// The name of a value of an option.
pub fn name(of: &impl ValueEnum) -> String {
    of.to_possible_value().map(|v| v.get_name().to_string()).unwrap_or_default()
}

impl Args {
    /// What was asked for; the model's name is empty where it was not given.
    pub fn recipe(&self, common: &Common) -> Outcome<Recipe> {
        Ok(Recipe {
            model: self.model.clone().unwrap_or_default(),
            likelihood: match (&self.likelihood, &self.link) {
                (Some(text), Some(link)) if text == "bernoulli" => {
                    Some(format!("bernoulli(link={})", name(link)))
                }
                (likelihood, _) => likelihood.clone(),
            },
            kernel: self.kernel.clone(),
            expectation: self.expectation.clone(),
            max_nodes: self.max_nodes,
            latent_dim: self.latent_dim,
            inducing: self.inducing,
            noise_kind: self.noise.as_deref().map(str::parse).transpose()?,
            scale: self.scale.as_deref().map(str::parse).transpose()?,
            mean: self.mean.map(Into::into),
            weight_prior: self.weight_prior.as_ref().map(name),
            inputs: self.inputs.as_deref().map(str::parse).transpose()?,
            latent_inputs: self.latent_inputs,
            fitc: self.fitc,
            max_iterations: self.max_iter,
            effort: self.search.effort,
            restarts: self.search.restarts,
            seed: common.seed(),
            ..Recipe::default()
        })
    }
}

impl Job {
    /// From the options, with those refused that have no effect.
    pub fn new(args: &Args, common: &Common) -> Outcome<Self> {
        let asked = args.recipe(common)?;
        let uncertain = !args.input_std.is_empty() || asked.latent_inputs.is_some();
        let model = match asked.model.as_str() {
            "" if uncertain => UNCERTAIN.into(),
            "" => "gp".into(),
            model => model.into(),
        };
        let recipe = Recipe { model, ..asked };
        let gaussian = recipe.is_gaussian();
        if !gaussian && !matches!(recipe.model.as_str(), "gp" | "sparse") {
            return Err(Failure::usage(format!(
                "--likelihood {} works with --model gp and --model sparse, found --model {}",
                recipe.likelihood(),
                recipe.model
            )));
        }
        recipe.check()?;
        let what = format!("--model {}", recipe.model);
        for (given, works, option) in [
            (args.link.is_some(), args.likelihood.as_deref() == Some("bernoulli"), "--link"),
            (args.loo, recipe.model == "gp" && gaussian, "--loo"),
            (!args.input_std.is_empty(), !matches!(recipe.model.as_str(), "gp" | "linear"), "--input-std"),
            (args.inputs.is_some(), !args.input_std.is_empty(), "--inputs without --input-std"),
        ] {
            if given && !works {
                return Err(Failure::usage(format!("{option} has no effect on {what}; leave it out")));
            }
        }
        if !gaussian && args.target.len() > 1 {
            return Err(Failure::usage(format!(
                "{what} with --likelihood {} has one target, found {}",
                recipe.likelihood(),
                args.target.len()
            )));
        }
        if let Some(k) = args.folds.filter(|k| *k < 2) {
            return Err(Failure::usage(format!("--folds: expected at least 2, found {k}")));
        }
        Ok(Job { recipe })
    }

    /// Whether classes are the target.
    pub fn classes(&self) -> bool {
        self.recipe.observed() == Ok(Kind::Classes)
    }

    /// Whether there are two classes.
    pub fn two_classes(&self) -> bool {
        self.recipe.likelihood() == "bernoulli"
    }

    /// Whether inputs may be missing.
    pub fn takes_gaps(&self) -> bool {
        self.recipe.model == "sparse" && self.recipe.is_gaussian() && !self.recipe.fitc
    }

    /// Reads DATA, and errs where it does not go with the options; the inputs whose errors are learnt become those of the
    /// recipe.
    pub fn rows(&mut self, args: &Args, spec: &str) -> Outcome<Rows> {
        let mut rows = Rows::read(args, spec, self)?;
        self.check_folds(args, &rows)?;
        self.recipe.learn_errors = rows.learnt();
        self.recipe.check()?;
        rows.notes.extend(self.treatment(args));
        let inputs = rows.inputs.len();
        let k = self.recipe.latent_dim.unwrap_or_else(|| usual_directions(&self.recipe.model));
        if matches!(self.recipe.model.as_str(), "spgp-dr" | "vdmgp") && k > inputs {
            rows.notes.push(format!(
                "the projection has {k} directions of {}: more than {inputs} cannot help; see --latent-dim",
                crate::words::count(inputs, "input")
            ));
        }
        Ok(rows)
    }

    /// What is done about uncertain inputs, where that is not what was asked for in so many words.
    fn treatment(&self, args: &Args) -> Option<String> {
        if args.model.is_none() && self.recipe.model == UNCERTAIN {
            let can = if self.recipe.is_gaussian() { "gp" } else { "Laplace's approximation" };
            return Some(format!("--model {UNCERTAIN}, which can use uncertain inputs; {can} cannot"));
        }
        let averaged = !args.input_std.is_empty() && args.inputs.is_none() && !self.recipe.infers_inputs();
        averaged.then(|| {
            let fitc = if self.recipe.fitc { " --fitc" } else { "" };
            let own = format!("--model {}{fitc}", self.recipe.model);
            format!("{own} averages over the errors of inputs, for which the noise pays; --model {UNCERTAIN} infers inputs")
        })
    }

    /// Errs where there are more folds than rows.
    pub fn check_folds(&self, args: &Args, rows: &Rows) -> Outcome {
        let n = rows.y.rows();
        match args.folds.filter(|k| *k > n) {
            Some(k) => {
                Err(Failure::usage(format!("--folds: expected a number from 2 to the {n} rows, found {k}")))
            }
            None => Ok(()),
        }
    }
}
