//! `latentgp plot MODEL --out FIG.svg`.

use crate::args::Common;
use crate::failure::{Failure, Outcome};
use crate::figure::Figure;
use crate::regress::picture as picture_of_regression;
use crate::summary::{maximised, objective};
use crate::trained::Ready;
use crate::{figure, out, picture, trained};
use clap::ValueEnum;
use latentgp::file::{Store, TrainedRegression};
use serde_json::json;
use std::path::PathBuf;

/// What is drawn, and where to.
#[derive(clap::Args)]
#[command(before_help = "\
Examples:
  latentgp plot oil.lgp --out oil.svg               map, relevance and bound side by side
  latentgp plot oil.lgp --what map --out map.png    the latent map alone, 1200 × 800 pixels
  latentgp plot house.lgp --out house.svg           of a regression: bands of one input, or predicted
                                                    against observed values; of classes their
                                                    probabilities, or how often each is taken for which")]
pub struct Args {
    /// A model file
    model: PathBuf,
    /// The figure, .svg or .png
    #[arg(long, value_name = "FIG")]
    out: PathBuf,
    /// What to draw
    #[arg(long, value_enum, default_value = "all")]
    what: What,
    /// Of a regression with several targets, the one to draw [default: the first]
    #[arg(long, value_name = "COL")]
    target: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum What {
    /// Map, relevance and trace side by side; the map of gplvm and ppca; the predictions of a regression
    All,
    /// The latent map of the two most relevant dimensions, with uncertainty
    Map,
    /// The relevance of each latent dimension
    Relevance,
    /// What the fit maximised, iteration by iteration: the bound or log evidence, with the log prior of the kernel
    /// where it has one, as that of classes has
    Trace,
}

/// Draws the figure.
pub fn run(args: &Args, common: &Common) -> Outcome {
    out::check(Some(&args.out), &["svg", "png"])?;
    out::apart(&[("MODEL", Some(&args.model))], &[("--out", Some(&args.out))])?;
    let drawn = match trained::kind(&args.model)?.as_str() {
        TrainedRegression::KIND => regression(args)?,
        _ => latent(args)?,
    };
    drawn.save(&args.out).map_err(Failure::work)?;
    out::note(common.quiet, format!("the figure is in {}", args.out.display()));
    if args.json { out::json(&json!({ "out": args.out })) } else { Ok(()) }
}

fn regression(args: &Args) -> Outcome<Figure> {
    let trained = trained::load_regression(&args.model)?;
    match args.what {
        What::All => picture_of_regression::draw(&trained, args.target.as_deref(), ""),
        What::Trace => {
            let what = maximised("log evidence", trained.model.kernel());
            Ok(figure::trace(&what, &trained.report.trace)?)
        }
        What::Map | What::Relevance => Err(Failure::usage(
            "a regression has no latent map and no relevance of latent dimensions; leave --what out, or use \
             `--what trace`",
        )),
    }
}

fn latent(args: &Args) -> Outcome<Figure> {
    if args.target.is_some() {
        return Err(Failure::usage("--target has no effect on a latent space; leave it out"));
    }
    let ready = Ready::load(&args.model)?;
    let report = &ready.trained.report;
    Ok(match args.what {
        What::All if ready.trained.model.inducing().is_some() => picture::panel(&ready)?,
        What::All | What::Map => figure::latent_map(&picture::map(&ready, "")?)?,
        What::Relevance => figure::relevance_bars(&picture::relevance(&ready, ""))?,
        What::Trace if report.trace.is_empty() && report.iterations == 0 => {
            return Err(Failure::usage(
                "this model has a closed form: there was no fit to draw; leave --what out",
            ));
        }
        What::Trace => figure::trace(&objective(&ready), &report.trace)?,
    })
}
