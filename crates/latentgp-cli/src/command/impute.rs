//! `latentgp impute MODEL DATA`.

use super::reconstruct::table;
use super::transform::rows;
use crate::args::Common;
use crate::failure::Outcome;
use crate::{data, out, trained};
use latentgp::data::table::Table;
use latentgp::model::Model;
use latentgp::posterior::Prediction;
use serde_json::json;
use std::path::PathBuf;

/// Which model, which rows.
#[derive(clap::Args)]
#[command(
    before_help = "\
Examples:
  latentgp impute oil.lgp holes.csv --out filled.csv
  latentgp impute oil.lgp holes.csv --json",
    after_help = "\
The result has the columns of the data, missing cells filled with their predictive mean, and for each column
its variance with the ending _var: that of a measurement, and 0 where a cell was observed."
)]
pub struct Args {
    /// A model file
    model: PathBuf,
    /// Rows with missing cells, with the columns that the model was trained on
    data: String,
    /// Write a file instead (.csv, .tsv, .npy, .parquet)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Fills the cells.
pub fn run(args: &Args, common: &Common) -> Outcome {
    out::check(args.out.as_deref(), &out::TABLES)?;
    let read = [("MODEL", Some(args.model.as_path())), ("DATA", Table::file(&args.data))];
    out::apart(&read, &[("--out", args.out.as_deref())])?;
    let (columns, y, filled) = match trained::load_space(&args.model)? {
        Some(space) => {
            let (y, _) = data::for_model(&args.data, &space.columns, None)?;
            let filled = space.model.impute(&y)?;
            (space.columns, y, filled)
        }
        None => {
            let trained = trained::load(&args.model)?;
            let (y, _) = data::for_model(&args.data, &trained.columns, None)?;
            let filled = trained.model.impute(&trained.model.posterior()?, &y)?;
            (trained.columns, y, Prediction { mean: filled.y, var: filled.var })
        }
    };
    let missing = y.as_slice().iter().filter(|v| v.is_nan()).count();
    out::note(common.quiet, format!("{missing} of {} cells filled", y.len()));
    if args.out.is_some() || !args.json {
        out::table(&table(&columns, &filled)?, args.out.as_deref())?;
    }
    if args.json {
        return out::json(&json!({
            "columns": columns,
            "missing": missing,
            "values": rows(&filled.mean),
            "variance": rows(&filled.var),
            "out": args.out,
        }));
    }
    Ok(())
}
