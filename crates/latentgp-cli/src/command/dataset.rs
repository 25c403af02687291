//! `latentgp dataset [NAME]`.

use crate::args::Common;
use crate::failure::{Failure, Outcome};
use crate::out;
use latentgp::data;
use serde_json::json;
use std::path::PathBuf;

/// Which data set, and how much of it.
#[derive(clap::Args)]
#[command(before_help = "\
Examples:
  latentgp dataset                                  the list
  latentgp dataset oil-flow --n 300 --seed 1        300 simulated measurements as CSV
  latentgp dataset oil-flow --fractions --out oil.parquet
  latentgp dataset iris | latentgp fit - --labels species --out iris.lgp")]
pub struct Args {
    /// The data set; without one, all are listed
    name: Option<String>,
    /// How many rows; of a fixed set, the first ones
    #[arg(long, value_name = "N", requires = "name")]
    n: Option<usize>,
    /// Three more columns with the true fractions of oil, water and gas (oil-flow only)
    #[arg(long, requires = "name")]
    fractions: bool,
    /// Write a file instead (.csv, .tsv, .npy, .parquet)
    #[arg(long, value_name = "FILE", requires = "name")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long, conflicts_with = "out")]
    json: bool,
}

/// Lists the sets or prints one.
pub fn run(args: &Args, common: &Common) -> Outcome {
    out::check(args.out.as_deref(), &out::TABLES)?;
    let Some(name) = &args.name else {
        let list = data::datasets();
        if args.json {
            return out::json(&json!(list.map(|(name, about)| json!({ "name": name, "about": about }))));
        }
        return out::text(&list.map(|(name, about)| format!("{name:<10} {about}")).join("\n"));
    };
    if args.fractions && name != "oil-flow" {
        return Err(Failure::usage(format!("--fractions has no effect on `{name}`; only oil-flow has them")));
    }
    let set = match args.fractions {
        true => data::oil_flow_with_fractions(args.n, common.seed()),
        false => data::dataset(name, args.n, common.seed()),
    }
    .map_err(Failure::usage)?;
    if args.json {
        let rows: Vec<&[f64]> = (0..set.values.rows()).map(|i| set.values.row(i)).collect();
        let label = set.label.map(|(name, of)| json!({ "name": name, "values": of }));
        return out::json(&json!({ "name": set.name, "columns": set.columns, "rows": rows, "label": label }));
    }
    out::table(&set.table().map_err(Failure::work)?, args.out.as_deref())
}
