//! `latentgp report MODEL --out FILE.html`.

use crate::args::Common;
use crate::failure::Outcome;
use crate::trained::Ready;
use crate::{html, out, trained};
use latentgp::file::{Store, TrainedRegression};
use serde_json::json;
use std::path::PathBuf;

/// Of what, and where to.
#[derive(clap::Args)]
#[command(before_help = "\
Examples:
  latentgp report oil.lgp --out oil.html
  latentgp report oil.lgp --title \"Oil flow, pipe 3\" --out oil.html")]
pub struct Args {
    /// A model file
    model: PathBuf,
    /// The page
    #[arg(long, value_name = "FILE.html")]
    out: PathBuf,
    /// Its title [default: the name of the model file]
    #[arg(long)]
    title: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Writes the page.
pub fn run(args: &Args, common: &Common) -> Outcome {
    out::check(Some(&args.out), &["html", "htm"])?;
    out::apart(&[("MODEL", Some(&args.model))], &[("--out", Some(&args.out))])?;
    let name = args.model.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let title = args.title.clone().unwrap_or(name);
    let source = args.model.display().to_string();
    let page = if trained::kind(&args.model)? == TrainedRegression::KIND {
        html::regression(&trained::load_regression(&args.model)?, &title, &source)?
    } else {
        html::page(&Ready::load(&args.model)?, &title, &source)?
    };
    out::file(&args.out, page.as_bytes())?;
    out::note(common.quiet, format!("the report is in {}", args.out.display()));
    if args.json { out::json(&json!({ "out": args.out })) } else { Ok(()) }
}
