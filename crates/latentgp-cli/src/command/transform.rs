//! `latentgp transform MODEL DATA`.

use crate::args::Common;
use crate::failure::{Failure, Outcome};
use crate::{data, out, trained};
use latentgp::Mat;
use latentgp::data::table::{Column, Table};
use serde_json::json;
use std::path::PathBuf;

/// Which model, which rows.
#[derive(clap::Args)]
#[command(
    before_help = "\
Examples:
  latentgp transform oil.lgp new.csv                    latent means and variances as CSV
  latentgp transform oil.lgp new.csv --out latent.npy
  latentgp transform oil.lgp new.parquet --id sample --json",
    after_help = "\
Columns of the result: x1 … xQ, the posterior means; x1_var … xQ_var, their variances; bound, how well the
model explains the row (a lower bound of the log density of its observed cells). Columns of DATA are found
by name, others are ignored; DATA without names is taken in order. Each row is placed on its own. In the
place of bound, gplvm and ppca have log_density, that of the observed cells over all positions x ~ N(0, I);
positions of gplvm are points, without variances."
)]
pub struct Args {
    /// A model file
    model: PathBuf,
    /// New rows, with the columns that the model was trained on; cells may be missing
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

/// Places the rows.
pub fn run(args: &Args, _: &Common) -> Outcome {
    out::check(args.out.as_deref(), &out::TABLES)?;
    let read = [("MODEL", Some(args.model.as_path())), ("DATA", Table::file(&args.data))];
    out::apart(&read, &[("--out", args.out.as_deref())])?;
    let trained = trained::load(&args.model)?;
    let (y, id) = data::for_model(&args.data, &trained.columns, args.id.as_deref())?;
    let placed = trained.model.transform(&y)?;
    let (certain, density) = (trained.model.is_certain(), trained.model.density());
    let mut columns: Vec<Column> = id.into_iter().collect();
    let dims = placed.q.dim();
    columns.extend((0..dims).map(|k| Column::numbers(format!("x{}", k + 1), placed.q.mean.col(k))));
    if !certain {
        columns.extend((0..dims).map(|k| Column::numbers(format!("x{}_var", k + 1), placed.q.var.col(k))));
    }
    columns.push(Column::numbers(density, placed.log_density.clone()));
    if args.out.is_some() || !args.json {
        out::table(&Table::new("result", columns).map_err(Failure::work)?, args.out.as_deref())?;
    }
    if args.json {
        let mut all = json!({
            "n": y.rows(),
            "latent_dim": dims,
            "mean": rows(&placed.q.mean),
            density: placed.log_density,
            "out": args.out,
        });
        if !certain {
            all["variance"] = json!(rows(&placed.q.var));
        }
        return out::json(&all);
    }
    Ok(())
}

/// The rows of a matrix, for JSON.
pub fn rows(m: &Mat) -> Vec<&[f64]> {
    (0..m.rows()).map(|i| m.row(i)).collect()
}
