//! `latentgp regress DATA --target COL…`.

mod job;
pub mod picture;
mod rows;
mod tell;
mod train;

pub use rows::{missing_input, std_columns, targets};
pub use tell::{put_scores, scores_text, summary, summary_json};

use crate::args::Common;
use crate::failure::{Failure, Outcome};
use crate::{interrupt, out};
use clap::ValueEnum;
use job::Job;
use latentgp::file::{self, TrainedRegression};
use latentgp::optim::StopReason;
use serde_json::json;
use std::path::PathBuf;

/// What is learnt from what, how, and where it goes.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "\
Examples:
  latentgp regress house.csv --target price --out house.lgp
  latentgp regress house.csv --target price --model vdmgp --latent-dim 5 --folds 5
  latentgp regress iris.csv --target species --likelihood categorical --test new.csv --json
  latentgp regress sky.csv --target mag --model sparse --input-std ra=ra_err,dec=dec_err --out sky.lgp",
    after_help = "\
All columns of numbers but the targets are inputs, which are standardised inside. Rows without a target are
left out. Scores are those of rows that the model has not seen: --test, or each of --folds predicted from the
others; the model that is kept has learnt from all rows of DATA. RMSE, NMSE (1: no better than the mean), NLPD
and the shares of observations inside the 50, 90 and 95 % intervals; accuracy and log loss of classes. The log
evidence is that of the data as given: exact for gp, a lower bound for sparse and vdmgp, that of FITC for
spgp-dr, and for classes and counts Laplace's approximation (gp) or a lower bound (sparse)."
)]
pub struct Args {
    /// A table: CSV, TSV, .npy, .npz:KEY, .mat:KEY, .parquet, or - for CSV on standard input
    data: String,
    /// The columns to predict, separated by commas
    #[arg(long, short, value_name = "COL,…", value_delimiter = ',', required = true, help_heading = "Data")]
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
    /// Columns with the standard deviations of the inputs: one for each input in order, or INPUT=COL
    #[arg(long, value_name = "COL,…", value_delimiter = ',', help_heading = "Data")]
    input_std: Vec<String>,
    /// How targets are scaled: standardize (each), global (all alike), center, none [default: standardize]
    #[arg(long, value_name = "HOW", value_parser = ["standardize", "global", "center", "none"], help_heading = "Data")]
    scale: Option<String>,

    /// The model
    #[arg(long, value_enum, default_value = "gp", help_heading = "Model")]
    model: ModelName,
    /// What is observed
    #[arg(long, value_enum, default_value = "gaussian", help_heading = "Model")]
    likelihood: Noise,
    /// A kernel expression, such as matern32 or "rbf + linear" [default: rbf]
    #[arg(long, short, value_name = "KERNEL", help_heading = "Model")]
    kernel: Option<String>,
    /// Number of inducing inputs, at most one a row [default: 50 for sparse, 20 for spgp-dr and vdmgp]
    #[arg(long, short = 'M', value_name = "M", help_heading = "Model")]
    inducing: Option<usize>,
    /// Directions of the projection [default: 2 for spgp-dr, 5 for vdmgp]
    #[arg(long, short = 'Q', value_name = "K", help_heading = "Model")]
    latent_dim: Option<usize>,
    /// The mean function: zero, constant, linear [default: zero]
    #[arg(long, value_enum, value_name = "MEAN", help_heading = "Model")]
    mean: Option<MeanName>,
    /// How Ψ-statistics are computed, of vdmgp and of inputs with errors [default: auto]
    #[arg(long, short, value_name = "RULE", help_heading = "Model")]
    expectation: Option<String>,

    /// Runs from different starts, of which the best is kept [default: 1]
    #[arg(long, value_name = "N", help_heading = "Training", value_parser = crate::args::restarts)]
    restarts: Option<usize>,
    /// Most iterations of a run [default: 1000, 600 for vdmgp]
    #[arg(long, value_name = "N", help_heading = "Training")]
    max_iter: Option<usize>,

    /// Score on the rows of this table
    #[arg(long, value_name = "DATA", help_heading = "Results", conflicts_with = "folds")]
    test: Option<String>,
    /// Score each of K parts of the rows, predicted from the others
    #[arg(long, value_name = "K", help_heading = "Results")]
    folds: Option<usize>,
    /// The model file to write
    #[arg(long, short, value_name = "FILE.lgp", help_heading = "Results")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long, help_heading = "Results")]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum ModelName {
    /// Exact, for up to a few thousand rows
    Gp,
    /// Inducing inputs; inputs may be missing or have errors
    Sparse,
    /// Inducing inputs on a learned projection
    SpgpDr,
    /// Inducing inputs on a projection that is integrated out; tells which inputs matter
    Vdmgp,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Noise {
    /// Numbers with noise
    Gaussian,
    /// Two classes
    Bernoulli,
    /// Several classes
    Categorical,
    /// Counts
    Poisson,
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

/// Learns, scores, saves and tells.
pub fn run(args: &Args, common: &Common) -> Outcome {
    out::check(args.out.as_deref(), &[])?;
    let job = Job::new(args, common)?;
    interrupt::listen()?;
    let rows = job.rows(args)?;
    for note in &rows.notes {
        out::note(common.quiet, note);
    }
    let test = args.test.as_deref().map(|spec| rows.test(spec, &job)).transpose()?;
    let mut trained = train::fit(&job, &rows, common.quiet)?;
    if trained.report.stop_reason == StopReason::Asked {
        return Err(stopped(args, &trained)?);
    }
    trained.report.scores = match (test, args.folds) {
        (Some(test), _) => {
            let there = trained.model.predict(&test.x, test.variances().as_ref())?;
            there.scores(&test.y).map_err(Failure::data)?
        }
        (None, Some(k)) => train::folds(&job, &rows, k)?,
        (None, None) => Vec::new(),
    };
    if let Some(path) = &args.out {
        file::save(path, &trained).map_err(Failure::work)?;
    }
    if args.json {
        let mut all = summary_json(&trained)?;
        all["out"] = json!(args.out);
        return out::json(&all);
    }
    let saved = match &args.out {
        Some(path) => format!("  saved in      {}", path.display()),
        None => "  not saved     add `--out model.lgp` to keep it".into(),
    };
    out::text(&format!("{}\n{saved}", summary(&trained)?))
}

/// Saves what there is of an interrupted fit, where it was to be saved.
fn stopped(args: &Args, trained: &TrainedRegression) -> Outcome<Failure> {
    let at = format!(
        "interrupted after {} at the log evidence {}",
        crate::summary::count(trained.report.iterations, "iteration"),
        crate::summary::short(trained.report.log_evidence)
    );
    Ok(match &args.out {
        Some(path) => {
            file::save(path, trained).map_err(Failure::work)?;
            Failure::interrupted(format!("{at}; the best state is in {}", path.display()))
        }
        None => Failure::interrupted(format!("{at}; nothing is kept without `--out`")),
    })
}
