//! `latentgp impute MODEL DATA`.

use super::reconstruct::table;
use super::transform::rows;
use crate::args::Common;
use crate::failure::{Failure, Outcome};
use crate::{data, out, trained};
use latentgp::data::table::Table;
use serde_json::json;
use std::path::PathBuf;

/// Which model, which rows.
#[derive(clap::Args)]
#[command(
    before_help = "\
Examples:
  latentgp impute oil.lgp holes.csv --out filled.csv
  latentgp impute oil.lgp holes.csv --id sample
  latentgp impute oil.lgp holes.csv --json",
    after_help = "\
The result has the columns of the model, missing cells filled with their predictive mean, and for each column
its variance with the ending _var: that of a measurement, and 0 where a cell was observed. Columns of DATA are
found by name; those that the model was not trained on are left out, but for that of --id, which comes first."
)]
pub struct Args {
    /// A model file
    model: PathBuf,
    /// Rows with missing cells, with the columns that the model was trained on
    data: String,
    /// A column of DATA that is copied to the result
    #[arg(long, value_name = "COL")]
    id: Option<String>,
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
    let id = args.id.as_deref();
    let trained = trained::load(&args.model)?;
    let columns = other(id, &trained.columns)?;
    let (y, id) = data::for_model(&args.data, columns, id)?;
    let filled = trained.model.impute(&y)?;
    let missing = y.as_slice().iter().filter(|v| v.is_nan()).count();
    out::note(common.quiet, format!("{missing} of {} cells filled", y.len()));
    if args.out.is_some() || !args.json {
        out::table(&table(id, columns, &filled)?, args.out.as_deref())?;
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

/// The columns of the model, among which the id must not be: they are in the result as they are.
fn other<'a>(id: Option<&str>, columns: &'a [String]) -> Outcome<&'a [String]> {
    match id.filter(|id| columns.iter().any(|c| c == id)) {
        Some(id) => Err(Failure::usage(format!(
            "--id {id}: this column is one of the model's and in the result without it; leave --id out"
        ))),
        None => Ok(columns),
    }
}
