//! `latentgp fit DATA`.

mod start;

use crate::args::{Common, Dimensions, InitArgs, dimensions};
use crate::data::{self, Choice};
use crate::failure::{Failure, Outcome};
use crate::train::{self, Done, RESCUE, Task, train};
use crate::trained::Ready;
use crate::{doubts, interrupt, out, summary, trained};
use clap::ValueEnum;
use latentgp::Mat;
use latentgp::data::doubts::Use;
use latentgp::data::table::Table;
use latentgp::file::{self, Labels, Report, TrainedSpace};
use latentgp::model::prior;
use latentgp::recipe::{Data, Learnt, Recipe};
use serde_json::json;
use std::path::{Path, PathBuf};

/// What is learnt, how, and where it goes.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "\
Examples:
  latentgp fit data.csv --out model.lgp
  latentgp fit data.csv --labels class --latent-dim 5 --kernel matern32 --out model.lgp
  latentgp fit data.npz:Y --labels data.npz:labels --scale none --kernel \"rbf + linear\" --json
  latentgp dataset oil-flow | latentgp fit - --labels regime --restarts 4 --out oil.lgp
  latentgp fit big.parquet --inducing 100 --checkpoint state.lgp --out big.lgp
  latentgp fit --resume state.lgp --out big.lgp         after a crash or Ctrl-C",
    after_help = "\
Ctrl-C stops the fit, saves the best state to --out and says how to go on. The bound is that of the data as
given, whatever the scaling; of gplvm it is the log density of data and positions, of ppca the log evidence."
)]
pub struct Args {
    /// A table: CSV, TSV, .npy, .npz:KEY, .mat:KEY, .parquet, or - for CSV on standard input
    #[arg(required_unless_present = "resume")]
    data: Option<String>,

    /// The model [default: bayesian-gplvm]
    #[arg(long, value_enum, help_heading = "Model")]
    model: Option<ModelName>,
    /// Number of latent dimensions; auto: as many as matter to a first short fit [default: as auto, or 2 where a map of two
    /// would hide a third that matters much; 2 for gplvm and ppca]
    #[arg(long, short = 'Q', value_name = "Q", value_parser = dimensions, help_heading = "Model")]
    latent_dim: Option<Dimensions>,
    /// Number of inducing inputs, at most one a row [default: from 20 to 60 by the number of rows]
    #[arg(long, short = 'M', value_name = "M", help_heading = "Model")]
    inducing: Option<usize>,
    /// A kernel expression, such as matern32 or "rbf + linear" [default: rbf]
    #[arg(long, short, value_name = "KERNEL", help_heading = "Model")]
    kernel: Option<String>,
    /// How Ψ-statistics are computed: auto, analytic, unscented, gauss_hermite(points=3), … [default: auto]
    #[arg(long, short, value_name = "RULE", help_heading = "Model")]
    expectation: Option<String>,
    /// Whose noise variance is: shared by all columns, or columns, one each [default: shared]
    #[arg(long, value_name = "WHOSE", value_parser = ["shared", "columns"], help_heading = "Model")]
    noise: Option<String>,
    /// What is known of latent positions: normal, "times(column=day, std=0.1)" [default: normal]
    #[arg(long, value_name = "PRIOR", help_heading = "Model")]
    prior: Option<String>,
    /// Most nodes that an expectation may use a point [default: 100000]
    #[arg(long, value_name = "N", help_heading = "Model")]
    max_nodes: Option<usize>,

    /// A column with the class of each row, or a file with one: for the colours and the 1-NN accuracy
    #[arg(long, value_name = "COL|FILE", help_heading = "Data")]
    labels: Option<String>,
    /// A column that identifies rows and is not learnt from
    #[arg(long, value_name = "COL", help_heading = "Data")]
    id: Option<String>,
    /// Only these columns, separated by commas
    #[arg(long, value_name = "COL,…", value_delimiter = ',', help_heading = "Data")]
    columns: Vec<String>,
    /// Not these columns
    #[arg(
        long,
        value_name = "COL,…",
        value_delimiter = ',',
        help_heading = "Data",
        conflicts_with = "columns"
    )]
    exclude: Vec<String>,
    /// How columns are scaled: standardize (each), global (all alike), center, none [default: standardize]
    #[arg(long, value_name = "HOW", value_parser = ["standardize", "global", "center", "none"], help_heading = "Data")]
    scale: Option<String>,

    #[command(flatten)]
    doubts: crate::args::DoubtArgs,
    #[command(flatten)]
    search: crate::args::SearchArgs,
    #[command(flatten)]
    init: InitArgs,
    /// Most iterations of a run, after the first ones with the noise held [default: 1000]
    #[arg(long, value_name = "N", help_heading = "Training")]
    max_iter: Option<usize>,
    #[command(flatten)]
    training: train::TrainingArgs,

    /// The model file to write
    #[arg(long, short, value_name = "FILE.lgp", help_heading = "Results")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long, help_heading = "Results")]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum ModelName {
    /// Latent positions with uncertainty, integrated out
    BayesianGplvm,
    /// Latent positions as points
    Gplvm,
    /// Probabilistic principal components
    Ppca,
}

/// Whose rows and columns they are.
#[derive(Clone)]
struct Names {
    columns: Vec<String>,
    labels: Option<Labels>,
    id: Option<String>,
}

/// Errs where a file to be written would take the place of one that is needed. A fit may go on writing to the
/// file it was resumed from, and the model may take the place of its checkpoint.
fn apart(args: &Args) -> Outcome {
    let (out, checkpoint) = (args.out.as_deref(), args.training.checkpoint.as_deref());
    let data = args.data.as_deref().and_then(Table::file);
    let labels = args.labels.as_deref().and_then(Table::file).filter(|file| file.is_file());
    let trace = ("--trace", args.training.trace.as_deref());
    let read = [("DATA", data), ("--labels", labels)];
    out::apart(&read, &[("--out", out)])?;
    out::apart(&read, &[("--checkpoint", checkpoint)])?;
    let resume = args.training.resume.as_deref();
    let state = [("--resume", resume), ("--out", out), ("--checkpoint", checkpoint)];
    out::apart(&[&read[..], &state[..]].concat(), &[trace])
}

impl Args {
    /// What was asked for; the model's name is empty where it was not given.
    fn recipe(&self, common: &Common) -> Outcome<Recipe> {
        Ok(Recipe {
            model: self.model.map_or(String::new(), |m| name(&m)),
            kernel: self.kernel.clone(),
            expectation: self.expectation.clone(),
            max_nodes: self.max_nodes,
            noise_kind: self.noise.as_deref().map(str::parse).transpose()?,
            prior: self.prior.clone(),
            latent_dim: match self.latent_dim {
                Some(Dimensions::Of(q)) => Some(q),
                _ => None,
            },
            inducing: self.inducing,
            init: self.init.init.as_deref().map(start::positions).transpose()?,
            inducing_init: self.init.inducing_init.as_deref().map(start::inducing).transpose()?,
            scale: self.scale.as_deref().map(str::parse).transpose()?,
            effort: self.search.effort,
            restarts: self.search.restarts,
            max_iterations: self.max_iter,
            seed: common.seed(),
            ..Recipe::default()
        })
    }

    fn choice<'a>(&'a self, known: &'a [String]) -> Choice<'a> {
        Choice {
            known,
            labels: self.labels.as_deref(),
            id: self.id.as_deref(),
            columns: &self.columns,
            exclude: &self.exclude,
        }
    }
}

fn name(of: &ModelName) -> String {
    of.to_possible_value().map(|v| v.get_name().to_string()).unwrap_or_default()
}

/// The columns that the prior of X asks for.
fn asked_for(recipe: &Recipe) -> Outcome<Vec<String>> {
    Ok(recipe.prior.as_deref().map(prior::parse).transpose()?.map_or(Vec::new(), |p| p.columns()))
}

/// The fit, from the options or from the file to go on from, and the names of its rows and columns.
fn task(args: &Args, common: &Common) -> Outcome<(Task, Names)> {
    let asked = args.recipe(common)?;
    match &args.training.resume {
        Some(path) => resume(args, common, &asked, path),
        None => {
            let model = if asked.model.is_empty() { "bayesian-gplvm".into() } else { asked.model.clone() };
            let recipe = Recipe { model, ..asked };
            recipe.check()?;
            if args.latent_dim == Some(Dimensions::Auto) && recipe.model != "bayesian-gplvm" {
                return Err(Failure::usage(format!(
                    "--latent-dim auto has no effect on --model {}; give a number",
                    recipe.model
                )));
            }
            if recipe.model == "ppca" && args.training.trace.is_some() {
                return Err(Failure::usage("--trace has no effect on --model ppca; leave it out"));
            }
            let spec = args.data.as_deref().ok_or_else(|| Failure::usage("DATA is missing"))?;
            let chosen = data::choose(spec, &args.choice(&asked_for(&recipe)?))?;
            let used = Use::Rows { labelled: chosen.labels.is_some() };
            doubts::tell(&args.doubts, common.quiet, &chosen.source, (&chosen.columns, &chosen.y, used))?;
            let names = Names { columns: chosen.columns, labels: chosen.labels, id: args.id.clone() };
            let task = Task::new(recipe, Data::Table { y: chosen.y, known: chosen.known });
            Ok((start::settled(task, args.latent_dim.is_none(), common.quiet)?, names))
        }
    }
}

fn resume(args: &Args, common: &Common, asked: &Recipe, path: &Path) -> Outcome<(Task, Names)> {
    let TrainedSpace { report, unfinished: left, columns, labels, id, .. } = trained::load(path)?;
    let names = Names { columns, labels, id };
    let Some(left) = left else {
        return Err(Failure::usage(format!(
            "{}: this fit is over ({}), there is nothing to resume",
            path.display(),
            report.stop_reason
        )));
    };
    train::agree(asked, common.seed, &left.recipe, path)?;
    match (&args.data, &left.data) {
        (Some(spec), Data::Table { y, .. }) => {
            let known = asked_for(&left.recipe)?;
            train::same_data(&[&data::choose(spec, &args.choice(&known))?.y], &[y], spec, path)?;
        }
        _ if args.labels.is_none() && args.columns.is_empty() && args.exclude.is_empty() => {}
        _ => {
            return Err(Failure::usage(
                "--labels, --columns and --exclude have no effect with --resume unless DATA is given again",
            ));
        }
    }
    Ok((Task::resume(left, report.stop_reason, args.max_iter)?, names))
}

/// What came of a fit, as its model file holds it.
fn learned(recipe: &Recipe, names: Names, done: Done) -> Outcome<TrainedSpace> {
    let report = Report::new(&done.fitted, recipe, done.seconds);
    let Names { columns, labels, id } = names;
    let Learnt::Space(model) = done.fitted.model else {
        return Err(Failure::work("the model is no latent space; this is a fault of latentgp"));
    };
    let report = report.certified(&*model)?;
    Ok(TrainedSpace { model, columns, labels, id, report, unfinished: done.unfinished })
}

/// A Bayesian GPLVM of a table with such columns and labels.
pub fn bayesian(
    recipe: Recipe,
    y: Mat,
    columns: Vec<String>,
    labels: Option<Labels>,
    quiet: bool,
) -> Outcome<TrainedSpace> {
    let done = train(Task::new(recipe.clone(), Data::Table { y, known: None }), "bound", quiet, None)?;
    learned(&recipe, Names { columns, labels, id: None }, done)
}

fn save(trained: &TrainedSpace, path: &Path) -> Outcome {
    file::save(path, trained).map_err(Failure::work)
}

/// Fits, saves and tells.
pub fn run(args: &Args, common: &Common) -> Outcome {
    apart(args)?;
    out::check(args.out.as_deref(), &[])?;
    args.training.check()?;
    interrupt::listen()?;
    let (task, names) = task(args, common)?;
    let (recipe, what) = (task.recipe.clone(), task.recipe.objective());
    let (own, of) = (recipe.clone(), names.clone());
    let checkpoint =
        args.training.checkpoint(move |path, done| save(&learned(&own, of.clone(), done)?, path));
    let done = train(task, what, common.quiet, checkpoint)?;
    let stopped = done.interrupted();
    let learned = learned(&recipe, names, done)?;
    let rescue = stopped.then(|| PathBuf::from(RESCUE));
    let to: Option<&Path> = args.out.as_deref().or(rescue.as_deref());
    if let Some(path) = to {
        save(&learned, path)?;
    }
    args.training.write_trace(&learned.report.trace)?;
    if let (true, Some(path)) = (stopped, to) {
        let report = &learned.report;
        return Err(train::interrupted("fit", (report.iterations, report.evidence), what, path));
    }
    args.training.finish(to)?;
    tell(args, common, learned)
}

fn tell(args: &Args, common: &Common, learned: TrainedSpace) -> Outcome {
    let ready = Ready::new(learned)?;
    let warnings = summary::warnings(&ready.trained);
    for warning in &warnings {
        out::note(common.quiet, format!("warning: {warning}"));
    }
    if args.json {
        let mut json = summary::json(&ready)?;
        json["out"] = json!(args.out);
        return out::json(&json);
    }
    let saved = match &args.out {
        Some(path) => format!("  saved in      {}", path.display()),
        None => "  not saved     add `--out model.lgp` to keep it".into(),
    };
    out::text(&format!("{}\n{saved}", summary::text(&ready)?))
}
