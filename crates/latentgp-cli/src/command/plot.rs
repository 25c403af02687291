//! `latentgp plot MODEL --out FIG.svg`.

use crate::args::Common;
use crate::failure::Outcome;
use crate::trained::Ready;
use crate::{figure, out, picture};
use clap::ValueEnum;
use serde_json::json;
use std::path::PathBuf;

/// What is drawn, and where to.
#[derive(clap::Args)]
#[command(before_help = "\
Examples:
  latentgp plot oil.lgp --out oil.svg               map, relevance and bound side by side
  latentgp plot oil.lgp --what map --out map.png    the latent map alone, 1200 × 800 pixels")]
pub struct Args {
    /// A model file
    model: PathBuf,
    /// The figure, .svg or .png
    #[arg(long, value_name = "FIG")]
    out: PathBuf,
    /// What to draw
    #[arg(long, value_enum, default_value = "all")]
    what: What,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// Map, relevance and trace side by side
    All,
    /// The latent map of the two most relevant dimensions, with uncertainty
    Map,
    /// The relevance of each latent dimension
    Relevance,
    /// The bound, iteration by iteration
    Trace,
}

/// Draws the figure.
pub fn run(args: &Args, common: &Common) -> Outcome {
    out::check(Some(&args.out), &["svg", "png"])?;
    let ready = Ready::load(&args.model)?;
    let drawn = match args.what {
        What::All => picture::panel(&ready)?,
        What::Map => figure::latent_map(&picture::map(&ready, "")?)?,
        What::Relevance => figure::relevance_bars(&picture::relevance(&ready, ""))?,
        What::Trace => figure::trace(&ready.trained.report.trace)?,
    };
    drawn.save(&args.out).map_err(crate::failure::Failure::work)?;
    out::note(common.quiet, format!("the figure is in {}", args.out.display()));
    if args.json { out::json(&json!({ "out": args.out })) } else { Ok(()) }
}
