//! `latentgp reconstruct MODEL LATENT`.

use super::transform::rows;
use crate::args::Common;
use crate::failure::{Failure, Outcome};
use crate::{out, trained};
use latentgp::data::table::{Column, Table};
use latentgp::expectation::Gaussians;
use latentgp::posterior::Prediction;
use serde_json::json;
use std::path::PathBuf;

/// Which model, which positions.
#[derive(clap::Args)]
#[command(
    before_help = "\
Examples:
  latentgp transform oil.lgp new.csv | latentgp reconstruct oil.lgp - --out decoded.csv
  latentgp reconstruct oil.lgp grid.npy --json",
    after_help = "\
LATENT has the columns x1 … xQ, or Q columns without names, for certain positions; with x1_var … xQ_var, or
2Q columns without names, positions are Gaussians with these variances. The result has the columns of the
data, and for each its variance with the ending _var: that of the noise-free value, or with --noise that of a
measurement."
)]
pub struct Args {
    /// A model file
    model: PathBuf,
    /// Latent positions: any format of DATA
    latent: String,
    /// Variances of measurements: those of the noise included
    #[arg(long)]
    noise: bool,
    /// Write a file instead (.csv, .tsv, .npy, .parquet)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Decodes the positions.
pub fn run(args: &Args, _: &Common) -> Outcome {
    out::check(args.out.as_deref(), &out::TABLES)?;
    let read = [("MODEL", Some(args.model.as_path())), ("LATENT", Table::file(&args.latent))];
    out::apart(&read, &[("--out", args.out.as_deref())])?;
    let trained = trained::load(&args.model)?;
    let (columns, noise) = (&trained.columns, trained.model.noise_variance());
    let positions = positions(&args.latent, trained.model.latent_dim())?;
    let mut decoded = trained.model.reconstruct(&positions)?;
    if args.noise {
        for i in 0..decoded.var.rows() {
            decoded.var.row_mut(i).iter_mut().zip(&noise).for_each(|(v, s)| *v += s);
        }
    }
    if args.out.is_some() || !args.json {
        out::table(&table(None, columns, &decoded)?, args.out.as_deref())?;
    }
    if args.json {
        return out::json(&json!({
            "columns": columns,
            "mean": rows(&decoded.mean),
            "variance": rows(&decoded.var),
            "noise_variance": noise,
            "out": args.out,
        }));
    }
    Ok(())
}

/// The id, if there is one, each column and, after all of them, its variance.
pub fn table(id: Option<Column>, columns: &[String], of: &Prediction) -> Outcome<Table> {
    let mut all: Vec<Column> = id.into_iter().collect();
    all.extend(columns.iter().enumerate().map(|(j, name)| Column::numbers(name.clone(), of.mean.col(j))));
    all.extend(
        columns.iter().enumerate().map(|(j, name)| Column::numbers(format!("{name}_var"), of.var.col(j))),
    );
    Table::new("result", all).map_err(Failure::work)
}

/// Names of columns in a message.
const SHOWN: usize = 8;

/// Q or 2Q columns as Gaussians.
fn positions(spec: &str, q: usize) -> Outcome<Gaussians> {
    let table = Table::read(spec).map_err(Failure::data)?;
    let names = table.columns();
    let means: Vec<String> = (1..=q).map(|k| format!("x{k}")).collect();
    let vars: Vec<String> = (1..=q).map(|k| format!("x{k}_var")).collect();
    let has = |wanted: &[String]| wanted.iter().filter(|w| names.contains(&w.as_str())).count();
    let named = has(&means) > 0;
    // Columns of other names are something else, however many there are.
    let unnamed = names.iter().enumerate().all(|(j, name)| *name == j.to_string());
    let (mean, var) = match (named, has(&vars)) {
        (true, 0) => (table.numeric(&means).map_err(Failure::data)?, None),
        (true, _) => {
            let var = table.numeric(&vars).map_err(Failure::data)?;
            (table.numeric(&means).map_err(Failure::data)?, Some(var))
        }
        (false, _) if unnamed && names.len() == q => (table.to_mat().map_err(Failure::data)?, None),
        (false, _) if unnamed && names.len() == 2 * q => {
            let all = table.to_mat().map_err(Failure::data)?;
            let half = |from: usize| all.select_cols(&(from..from + q).collect::<Vec<_>>());
            (half(0), Some(half(q)))
        }
        _ => {
            return Err(Failure::data(format!(
                "{}: expected latent positions: the columns {} as `latentgp transform` writes them, or {q} columns \
                 without names, or {} (positions, then their variances), found {}",
                table.source(),
                if q == 1 { "x1".to_string() } else { format!("x1 … x{q}") },
                2 * q,
                match unnamed {
                    true => format!("{} without names", names.len()),
                    false if names.len() > SHOWN => {
                        format!("{} and {} more", names[..SHOWN].join(", "), names.len() - SHOWN)
                    }
                    false => names.join(", "),
                }
            )));
        }
    };
    if !mean.is_finite() {
        return Err(Failure::data(format!("{}: a latent position is missing", table.source())));
    }
    let var = var.unwrap_or_else(|| mean.map(|_| 0.0));
    Gaussians::new(mean, var).map_err(|e| Failure::data(format!("{}: {e}", table.source())))
}
