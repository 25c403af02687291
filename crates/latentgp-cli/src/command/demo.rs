//! `latentgp demo [NAME]`: the first thing a newcomer types.

use crate::args::Common;
use crate::failure::{Failure, Outcome};
use crate::trained::Ready;
use crate::{fit, html, interrupt, out, picture, summary};
use clap::ValueEnum;
use latentgp::data;
use latentgp::data::Scale;
use latentgp::file::{self, Labels};
use latentgp::fit::Effort;
use latentgp::optim::StopReason;
use latentgp::recipe::Recipe;
use serde_json::json;
use std::path::PathBuf;

/// Which example, and where its results go.
#[derive(clap::Args)]
#[command(before_help = "\
Examples:
  latentgp demo
  latentgp demo iris --out /tmp/iris")]
pub struct Args {
    /// The example
    #[arg(value_enum, default_value = "oil-flow")]
    name: Example,
    /// The folder for the picture, the report and the model; it is made where there is none
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Example {
    /// 200 simulated measurements of oil, water and gas in a pipe: which flow regime is it?
    OilFlow,
    /// Four lengths of 150 irises: which species is it?
    Iris,
    /// A spiral in the plane, seen in ten dimensions with noise
    Spiral,
}

/// What an example is and how it is fitted.
struct Plan {
    set: &'static str,
    rows: usize,
    about: &'static str,
    kernel: &'static str,
    expectation: &'static str,
    latent_dim: usize,
    inducing: usize,
    scale: Scale,
}

impl Example {
    fn plan(self) -> Plan {
        match self {
            Example::OilFlow => Plan {
                set: "oil-flow",
                rows: 200,
                about: "Gamma rays cross a pipe in six places; 200 times, 12 numbers were measured. Which of three\n\
                        flow regimes it was is not told: the model has to find what distinguishes them.",
                kernel: "matern32",
                expectation: "unscented",
                latent_dim: 5,
                inducing: 25,
                scale: Scale::None,
            },
            Example::Iris => Plan {
                set: "iris",
                rows: 150,
                about: "Four lengths were measured of 150 irises. Their species is not told to the model.",
                kernel: "rbf",
                expectation: "auto",
                latent_dim: 3,
                inducing: 20,
                scale: Scale::Standardize,
            },
            Example::Spiral => Plan {
                set: "spiral",
                rows: 100,
                about: "A spiral in the plane was turned into ten dimensions, and noise was added.",
                kernel: "rbf",
                expectation: "auto",
                latent_dim: 4,
                inducing: 20,
                scale: Scale::Standardize,
            },
        }
    }
}

/// Learns, prints, draws.
pub fn run(args: &Args, common: &Common) -> Outcome {
    std::fs::create_dir_all(&args.out)
        .map_err(|e| Failure::work(format!("--out {}: {e}", args.out.display())))?;
    let plan = args.name.plan();
    let set = data::dataset(plan.set, Some(plan.rows), common.seed())?;
    if !args.json {
        out::text(plan.about)?;
    }
    interrupt::listen()?;
    let recipe = Recipe {
        kernel: Some(plan.kernel.into()),
        expectation: Some(plan.expectation.into()),
        latent_dim: Some(plan.latent_dim),
        inducing: Some(plan.inducing),
        scale: Some(plan.scale),
        max_iterations: Some(3000),
        effort: Some(Effort::Quick),
        seed: common.seed(),
        ..Recipe::of("bayesian-gplvm")
    };
    let labels = set.label.map(|(name, of)| Labels { name, of });
    let trained = fit::bayesian(recipe, set.values, set.columns, labels, common.quiet)?;
    let stopped = trained.report.stop_reason == StopReason::Asked;
    let ready = Ready::new(trained)?;
    let path = |ending: &str| args.out.join(format!("latentgp-demo.{ending}"));
    let drawn = picture::panel(&ready)?;
    for ending in ["svg", "png"] {
        drawn.save(&path(ending)).map_err(Failure::work)?;
    }
    file::save(path("lgp"), &ready.trained).map_err(Failure::work)?;
    let title = format!("latentgp demo: {}", plan.set);
    let page = html::page(&ready, &title, &path("lgp").display().to_string())?;
    out::file(&path("html"), page.as_bytes())?;
    for warning in summary::warnings(&ready.trained) {
        out::note(common.quiet, format!("warning: {warning}"));
    }
    if args.json {
        let mut all = summary::json(&ready)?;
        all["picture"] = json!([path("svg"), path("png")]);
        all["report"] = json!(path("html"));
        all["out"] = json!(path("lgp"));
        out::json(&all)?;
    } else {
        out::text(&format!("\n{}", words(&ready, &plan, &path)?))?;
    }
    match stopped {
        true => Err(Failure::interrupted("interrupted; the results are those of the best state so far")),
        false => Ok(()),
    }
}

fn words(ready: &Ready, plan: &Plan, path: &dyn Fn(&str) -> PathBuf) -> Outcome<String> {
    let mut text = summary::text(ready)?;
    text += &format!(
        "\n  picture       {} and {}\n  report        {}\n  model         {}\n",
        path("svg").display(),
        path("png").display(),
        path("html").display(),
        path("lgp").display()
    );
    text += "\nA long bar is a dimension that the data need; short ones were switched off.";
    if ready.trained.labels.is_some() {
        text +=
            " The 1-NN accuracy tells\nhow often the nearest other row in the picture is of the same class.";
    }
    text += &format!(
        "\n\nLook at it in the browser: latentgp explore {}\nNext, your own data: latentgp fit DATA.csv --latent-dim {} --kernel {} --out model.lgp",
        path("lgp").display(),
        plan.latent_dim,
        plan.kernel
    );
    Ok(text)
}
