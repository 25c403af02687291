//! `latentgp regress DATA --target COL…`.

mod folds;
mod job;
pub mod picture;
mod rows;
mod tell;
mod train;

pub use rows::{LEARN, missing_input, std_columns, targets, variances, within_range};
pub use tell::{put_scores, scores_text, summary, summary_json, warnings};

use crate::args::Common;
use crate::failure::{Failure, Outcome};
use crate::train::{RESCUE, Task};
use crate::{doubts, interrupt, out};
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser};
use job::Job;
use latentgp::data::doubts::Use;
use latentgp::data::table::Table;
use latentgp::file::{self, TrainedRegression};
use latentgp::model::MeanKind;
use latentgp::optim::StopReason;
use latentgp::recipe::REGRESSIONS;
use rows::Rows;
use serde_json::json;
use std::path::{Path, PathBuf};

/// What is learnt from what, how, and where it goes.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "\
Examples:
  latentgp regress house.csv --target price --out house.lgp
  latentgp regress house.csv --target price --model vdmgp --latent-dim 5 --folds 5
  latentgp regress iris.csv --target species --likelihood categorical --test new.csv --json
  latentgp regress sky.csv --target mag --input-std ra=ra_err,dec=dec_err --out sky.lgp
  latentgp regress dose.csv --target effect --input-std dose=learn --out dose.lgp",
    after_help = "\
All columns but the targets are inputs, which must be numbers and are standardised inside; columns of text are
left out with --exclude or --id, or are targets as classes. `--likelihood student_t` is for values with outliers (--model sparse). Rows without a target are left out; inputs may be
missing with --model sparse, here and in predictions, where a missing cell has the mean and the variance of its
column. Where inputs have errors (--input-std) or were never observed (--latent-inputs), the model is sparse unless
another is asked for. Ctrl-C stops the fit, saves the best state to --out and says how to go on.

Classes and counts have a constant mean, which is fitted. Where --model gp learns classes, a log-normal prior with
median 10 holds those variances of the kernel that are free; it is no part of the log evidence, but of what the
fit maximises. The first iterations of vdmgp, 200 at most, hold noise and variance and do not count for --max-iter.

Scores are those of rows that the model has not seen: --test, or each of --folds predicted from the others (classes
in equal shares), or --loo; the model that is kept, and written before any fold is fitted, has learnt from all rows
of DATA. RMSE, NMSE (1: no better than the mean), NLPD and the shares of observations inside the 50, 90 and 95 %
intervals; accuracy and log loss of classes. The log evidence is that of the data as given: exact for gp, a lower
bound for sparse and vdmgp, that of FITC for spgp-dr, and for classes and counts Laplace's approximation (gp) or a
lower bound (sparse)."
)]
pub struct Args {
    /// A table: CSV, TSV, .npy, .npz:KEY, .mat:KEY, .parquet, or - for CSV on standard input
    #[arg(required_unless_present = "resume")]
    data: Option<String>,
    /// The columns to predict, separated by commas
    #[arg(
        long,
        short,
        value_name = "COL,…",
        value_delimiter = ',',
        required_unless_present = "resume",
        help_heading = "Data"
    )]
    target: Vec<String>,
    /// Only these columns as inputs, separated by commas
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
    /// A column that identifies rows and is not learnt from
    #[arg(long, value_name = "COL", help_heading = "Data")]
    id: Option<String>,
    /// Columns with the standard deviations of the inputs' errors: one for each input in order, or INPUT=COL; `learn` in
    /// the place of a column where they are not known but all alike
    #[arg(long, value_name = "COL,…", value_delimiter = ',', help_heading = "Data")]
    input_std: Vec<String>,
    /// What is done about these errors: inferred, each input has a posterior, or averaged, which is cheaper, but the noise
    /// pays for the slope across every error bar [default: inferred by sparse; spgp-dr, vdmgp and --fitc average]
    #[arg(long, value_name = "HOW", value_parser = ["inferred", "averaged"], help_heading = "Model")]
    inputs: Option<String>,
    /// Inputs that were never observed, inferred from the targets (sparse)
    #[arg(long, value_name = "K", help_heading = "Model")]
    latent_inputs: Option<usize>,
    /// How targets are scaled: standardize (each), global (all alike), center, none [default: standardize]
    #[arg(long, value_name = "HOW", value_parser = ["standardize", "global", "center", "none"], help_heading = "Data")]
    scale: Option<String>,

    /// The model [default: gp, or sparse where inputs are uncertain]
    #[arg(long, value_name = "MODEL", help_heading = "Model", value_parser = models())]
    model: Option<String>,
    /// What is observed: gaussian, bernoulli, categorical, poisson, student_t, … [default: gaussian]
    #[arg(long, value_name = "LIKELIHOOD", help_heading = "Model", value_parser = likelihood)]
    likelihood: Option<String>,
    /// A kernel expression, such as matern32 or "rbf + linear" [default: rbf]
    #[arg(long, short, value_name = "KERNEL", help_heading = "Model")]
    kernel: Option<String>,
    /// Whose noise variance is: shared by all targets, or columns, one each (sparse) [default: shared]
    #[arg(long, value_name = "WHOSE", value_parser = ["shared", "columns"], help_heading = "Model")]
    noise: Option<String>,
    /// Number of inducing inputs, at most one a row [default: 50 for sparse, 20 for spgp-dr and vdmgp]
    #[arg(long, short = 'M', value_name = "M", help_heading = "Model")]
    inducing: Option<usize>,
    /// Directions of the projection [default: 2 for spgp-dr, 5 for vdmgp]
    #[arg(long, short = 'Q', value_name = "K", help_heading = "Model")]
    latent_dim: Option<usize>,
    /// The mean function: zero, constant, linear [default: zero; classes and counts fit a constant]
    #[arg(long, value_enum, value_name = "MEAN", help_heading = "Model")]
    mean: Option<MeanName>,
    /// How a latent value becomes the probability of a class, of bernoulli [default: logit]
    #[arg(long, value_enum, value_name = "LINK", help_heading = "Model")]
    link: Option<LinkName>,
    /// What is assumed of the weights of vdmgp [default: type-ii]
    #[arg(long, value_enum, value_name = "PRIOR", help_heading = "Model")]
    weight_prior: Option<PriorName>,
    /// FITC in place of the variational bound, of sparse
    #[arg(long, help_heading = "Model")]
    fitc: bool,
    /// How Ψ-statistics are computed, of vdmgp and of inputs with errors [default: auto]
    #[arg(long, short, value_name = "RULE", help_heading = "Model")]
    expectation: Option<String>,
    /// Most nodes that an expectation may use a row [default: 100000]
    #[arg(long, value_name = "N", help_heading = "Model", requires = "expectation")]
    max_nodes: Option<usize>,

    #[command(flatten)]
    doubts: crate::args::DoubtArgs,
    #[command(flatten)]
    search: crate::args::SearchArgs,
    /// Most iterations of a run; of vdmgp after the first ones with the noise held [default: 1000, 600 for vdmgp]
    #[arg(long, value_name = "N", help_heading = "Training")]
    max_iter: Option<usize>,
    #[command(flatten)]
    training: crate::train::TrainingArgs,

    /// Score on the rows of this table
    #[arg(long, value_name = "DATA", help_heading = "Results", conflicts_with = "folds")]
    test: Option<String>,
    /// Score each of K parts of the rows, predicted from the others
    #[arg(long, value_name = "K", help_heading = "Results")]
    folds: Option<usize>,
    /// Score each row as the others predict it, with the model as it is: closed form, of gp
    #[arg(long, help_heading = "Results", conflicts_with_all = ["folds", "test"])]
    loo: bool,
    /// The model file to write
    #[arg(long, short, value_name = "FILE.lgp", help_heading = "Results")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long, help_heading = "Results")]
    json: bool,
}

/// The regressions that the library knows.
fn models() -> PossibleValuesParser {
    PossibleValuesParser::new(REGRESSIONS.map(|entry| PossibleValue::new(entry.name).help(entry.about)))
}

/// `gaussian`, or a likelihood that the library knows.
fn likelihood(text: &str) -> Result<String, String> {
    match text == "gaussian" {
        true => Ok(text.into()),
        false => latentgp::likelihood::named(text).map(|_| text.into()).map_err(|e| e.to_string()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum LinkName {
    /// 1/(1 + exp(−f))
    Logit,
    /// The normal distribution function
    Probit,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum PriorName {
    /// Variances by maximum likelihood
    TypeIi,
    /// Full Bayes: a vague Gamma distribution of the precisions
    Gamma,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum MeanName {
    /// None
    Zero,
    /// One number for each target
    Constant,
    /// A plane for each target
    Linear,
}

impl From<MeanName> for MeanKind {
    fn from(name: MeanName) -> Self {
        match name {
            MeanName::Zero => MeanKind::Zero,
            MeanName::Constant => MeanKind::Constant,
            MeanName::Linear => MeanKind::Linear,
        }
    }
}

/// Errs where a file to be written would take the place of one that is needed.
fn apart(args: &Args) -> Outcome {
    let file = |spec: &'_ Option<String>| spec.as_deref().and_then(Table::file).map(Path::to_path_buf);
    let (data, test) = (file(&args.data), file(&args.test));
    let read = [("DATA", data.as_deref()), ("--test", test.as_deref())];
    let (out, checkpoint) = (args.out.as_deref(), args.training.checkpoint.as_deref());
    out::apart(&read, &[("--out", out)])?;
    out::apart(&read, &[("--checkpoint", checkpoint)])?;
    let resume = args.training.resume.as_deref();
    let state = [("--resume", resume), ("--out", out), ("--checkpoint", checkpoint)];
    out::apart(&[&read[..], &state[..]].concat(), &[("--trace", args.training.trace.as_deref())])
}

/// The fit, from the options or from the file to go on from.
fn begin(args: &Args, common: &Common) -> Outcome<(Job, Rows, Task)> {
    let Some(path) = &args.training.resume else {
        let mut job = Job::new(args, common)?;
        let spec = args.data.as_deref().ok_or_else(|| Failure::usage("DATA is missing"))?;
        let rows = job.rows(args, spec)?;
        let source = Table::file(spec).map_or("standard input".into(), |p| p.display().to_string());
        doubts::tell(&args.doubts, common.quiet, &source, (&rows.inputs, &rows.x, Use::Inputs))?;
        if !job.classes() {
            doubts::tell(&args.doubts, common.quiet, &source, (&rows.targets, &rows.y, Use::Values))?;
        }
        let task = Task::new(job.recipe.clone(), train::pairs(&job, &rows));
        return Ok((job, rows, task));
    };
    let mut stored = crate::trained::load_regression(path)?;
    let Some(left) = stored.unfinished.take() else {
        return Err(Failure::usage(format!(
            "{}: this fit is over ({}), there is nothing to resume",
            path.display(),
            stored.report.stop_reason
        )));
    };
    crate::train::agree(&args.recipe(common)?, common.seed, &left.recipe, path)?;
    let mut job = Job { recipe: left.recipe.clone() };
    let rows = Rows::stored(&stored, &left.data)?;
    job.check_folds(args, &rows)?;
    if let Some(spec) = &args.data {
        let again = job.rows(args, spec)?;
        crate::train::same_data(&[&again.x, &again.y], &[&rows.x, &rows.y], spec, path)?;
    }
    let task = Task::resume(left, stored.report.stop_reason, args.max_iter)?;
    Ok((Job { recipe: task.recipe.clone() }, rows, task))
}

/// Learns, scores, saves and tells.
pub fn run(args: &Args, common: &Common) -> Outcome {
    out::check(args.out.as_deref(), &[])?;
    args.training.check()?;
    apart(args)?;
    let (job, rows, task) = begin(args, common)?;
    interrupt::listen()?;
    for note in &rows.notes {
        out::note(common.quiet, note);
    }
    let test = args.test.as_deref().map(|spec| rows.test(spec, &job)).transpose()?;
    let (own, of) = (job.clone(), rows.clone());
    let checkpoint = args.training.checkpoint(move |path, done| {
        file::save(path, &train::trained(&own, &of, done)?).map_err(Failure::work)
    });
    let mut trained = train::fit(task, &job, &rows, common.quiet, checkpoint)?;
    args.training.write_trace(&trained.report.trace)?;
    if trained.report.stop_reason == StopReason::Asked {
        let path = args.out.clone().unwrap_or_else(|| PathBuf::from(RESCUE));
        file::save(&path, &trained).map_err(Failure::work)?;
        let at = (trained.report.iterations, trained.report.evidence);
        return Err(crate::train::interrupted("regress", at, train::WHAT, &path));
    }
    // Before it is scored, which may take longer than the fit and may fail.
    save(args, &trained)?;
    args.training.finish(args.out.as_deref())?;
    let mut notes = warnings(&trained);
    trained.report.scores = match (test, args.folds) {
        (Some(test), _) => {
            let there = trained.model.predict(&test.x, test.variances(&*trained.model).as_ref())?;
            there.scores(&test.y).map_err(Failure::data)?
        }
        (None, Some(k)) => {
            let (scores, more) = folds::folds(&job, &rows, k).map_err(|e| kept(args, e))?;
            notes.extend(more);
            scores
        }
        (None, None) if args.loo => folds::leave_one_out(&*trained.model, &rows)?,
        (None, None) => Vec::new(),
    };
    if !trained.report.scores.is_empty() {
        save(args, &trained)?;
    }
    for note in &notes {
        out::note(common.quiet, format!("warning: {note}"));
    }
    if args.json {
        let mut all = summary_json(&trained)?;
        (all["out"], all["warnings"]) = (json!(args.out), json!(notes));
        return out::json(&all);
    }
    let saved = match &args.out {
        Some(path) => format!("  saved in      {}", path.display()),
        None => "  not saved     add `--out model.lgp` to keep it".into(),
    };
    out::text(&format!("{}\n{saved}", summary(&trained)?))
}

fn save(args: &Args, trained: &TrainedRegression) -> Outcome {
    match &args.out {
        Some(path) => file::save(path, trained).map_err(Failure::work),
        None => Ok(()),
    }
}

/// Says that the model is not lost with its scores.
fn kept(args: &Args, failure: Failure) -> Failure {
    match &args.out {
        Some(path) => {
            failure.adding(&format!("the model of all rows is in {}, without scores", path.display()))
        }
        None => failure,
    }
}
