//! `latentgp fit DATA`.

mod checkpoint;
mod job;
mod progress;
mod space;
mod train;

pub use job::Job;
pub use progress::Progress;
pub use train::{Watching, train};

use crate::args::Common;
use crate::failure::{Failure, Outcome};
use crate::trained::Ready;
use crate::{interrupt, out, summary, words};
use clap::ValueEnum;
use latentgp::data::table::{Column, Table};
use latentgp::file;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the state goes when a fit without `--out` is interrupted.
const RESCUE: &str = "latentgp-interrupted.lgp";

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

    /// The model
    #[arg(long, value_enum, default_value = "bayesian-gplvm", help_heading = "Model")]
    model: ModelName,
    /// Number of latent dimensions [default: 2]
    #[arg(long, short = 'Q', value_name = "Q", help_heading = "Model")]
    latent_dim: Option<usize>,
    /// Number of inducing inputs, at most one a row [default: 20]
    #[arg(long, short = 'M', value_name = "M", help_heading = "Model")]
    inducing: Option<usize>,
    /// A kernel expression, such as matern32 or "rbf + linear" [default: rbf]
    #[arg(long, short, value_name = "KERNEL", help_heading = "Model")]
    kernel: Option<String>,
    /// How Ψ-statistics are computed: auto, analytic, unscented, gauss_hermite(points=3), … [default: auto]
    #[arg(long, short, value_name = "RULE", help_heading = "Model")]
    expectation: Option<String>,
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

    /// Runs from different starts, of which the best is kept [default: 1]
    #[arg(long, value_name = "N", help_heading = "Training", value_parser = crate::args::restarts)]
    restarts: Option<usize>,
    /// Most iterations of a run, after the first ones with the noise held [default: 1000]
    #[arg(long, value_name = "N", help_heading = "Training")]
    max_iter: Option<usize>,
    /// Write the state regularly to this file, from which --resume goes on
    #[arg(long, value_name = "FILE", help_heading = "Training")]
    checkpoint: Option<PathBuf>,
    /// Seconds between two such writes
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "checkpoint",
        default_value_t = 60.0,
        help_heading = "Training"
    )]
    checkpoint_every: f64,
    /// Go on from a checkpoint or from the file of an interrupted fit; settings are those stored there
    #[arg(long, value_name = "FILE", help_heading = "Training")]
    resume: Option<PathBuf>,

    /// The model file to write
    #[arg(long, short, value_name = "FILE.lgp", help_heading = "Results")]
    out: Option<PathBuf>,
    /// The bound after every iteration, as a table
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    trace: Option<PathBuf>,
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

/// Errs where a file to be written would take the place of one that is needed. A fit may go on writing to the
/// file it was resumed from, and the model may take the place of its checkpoint.
fn apart(args: &Args) -> Outcome {
    let (out, checkpoint) = (args.out.as_deref(), args.checkpoint.as_deref());
    let data = args.data.as_deref().and_then(Table::file);
    let labels = args.labels.as_deref().and_then(Table::file).filter(|file| file.is_file());
    let trace = ("--trace", args.trace.as_deref());
    let read = [("DATA", data), ("--labels", labels)];
    out::apart(&read, &[("--out", out)])?;
    out::apart(&read, &[("--checkpoint", checkpoint)])?;
    let state = [("--resume", args.resume.as_deref()), ("--out", out), ("--checkpoint", checkpoint)];
    out::apart(&[&read[..], &state[..]].concat(), &[trace])
}

/// Fits, saves and tells.
pub fn run(args: &Args, common: &Common) -> Outcome {
    apart(args)?;
    if args.model != ModelName::BayesianGplvm {
        return space::run(args, common);
    }
    out::check(args.out.as_deref(), &[])?;
    out::check(args.trace.as_deref(), &out::TABLES)?;
    out::check(args.checkpoint.as_deref(), &[])?;
    if !(args.checkpoint_every >= 0.0 && args.checkpoint_every <= 1e9) {
        return Err(Failure::usage("--checkpoint-every: expected a number of seconds, not negative"));
    }
    let job = Job::new(args, common)?;
    interrupt::listen()?;
    let watching = Watching {
        quiet: common.quiet,
        checkpoint: args
            .checkpoint
            .clone()
            .map(|path| (path, Duration::from_secs_f64(args.checkpoint_every))),
    };
    let trained = train(job, &watching)?;
    let stopped = trained.unfinished.is_some();
    let rescue = stopped.then(|| PathBuf::from(RESCUE));
    let to: Option<&Path> = args.out.as_deref().or(rescue.as_deref());
    if let Some(path) = to {
        file::save(path, &trained).map_err(Failure::work)?;
    }
    if let Some(path) = &args.trace {
        let values = &trained.report.trace;
        let iterations = (1..=values.len()).map(|i| i as f64).collect();
        let columns =
            vec![Column::numbers("iteration", iterations), Column::numbers("bound", values.clone())];
        let table = Table::new("trace", columns).map_err(Failure::work)?;
        out::table(&table, Some(path))?;
    }
    if stopped {
        let path = to.expect("an interrupted fit is saved").display();
        return Err(Failure::interrupted(format!(
            "interrupted after {} at the bound {}; the best state is in {path}, go on with \
             `latentgp fit --resume {path} --out {path}`",
            words::count(trained.report.iterations, "iteration"),
            words::short(trained.report.bound)
        )));
    }
    if let Some((path, _)) = &watching.checkpoint {
        checkpoint::finish(path, to)?;
    }
    tell(args, common, &Ready::new(trained)?)
}

fn tell(args: &Args, common: &Common, ready: &Ready) -> Outcome {
    for warning in summary::warnings(&ready.trained) {
        out::note(common.quiet, format!("warning: {warning}"));
    }
    if args.json {
        let mut all = summary::json(ready)?;
        all["out"] = json!(args.out);
        return out::json(&all);
    }
    let saved = match &args.out {
        Some(path) => format!("  saved in      {}", path.display()),
        None => "  not saved     add `--out model.lgp` to keep it".into(),
    };
    out::text(&format!("{}\n{saved}", summary::text(ready)?))
}
