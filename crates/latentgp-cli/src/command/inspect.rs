//! `latentgp inspect MODEL`.

use crate::failure::{Failure, Outcome};
use crate::trained::Ready;
use crate::{out, regress, summary, trained, words};
use latentgp::Mat;
use latentgp::file::{ModelFile, Report, Store, TrainedRegression, TrainedSpace, Unfinished, VERSION};
use latentgp::param::Parameterized;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Of which model.
#[derive(clap::Args)]
#[command(before_help = "\
Examples:
  latentgp inspect oil.lgp
  latentgp inspect oil.lgp --json | jq .header.report")]
pub struct Args {
    /// A model file
    model: PathBuf,
    /// Print JSON: the header of the file and the shape and range of every array
    #[arg(long)]
    json: bool,
}

/// Prints what is in the file.
pub fn run(args: &Args) -> Outcome {
    let file = ModelFile::read(&args.model).map_err(Failure::data)?;
    if args.json {
        let arrays: Value = file.tensors.iter().map(|(name, m)| (name.clone(), array(m))).collect();
        return out::json(&json!({
            "version": VERSION,
            "kind": file.kind,
            "header": file.header,
            "arrays": arrays,
        }));
    }
    let mut text = format!("{}: {}, format version {VERSION}\n", args.model.display(), file.kind);
    if TrainedSpace::holds(&file.kind) {
        let ready = Ready::load(&args.model)?;
        let trained = &ready.trained;
        text += &(summary::text(&ready)? + "\n");
        text += &format!("  scaling       {}, seed {}\n", scaling(&trained.report), trained.report.seed);
        text += &format!("  columns       {}\n", trained.columns.join(", "));
        if let Some(labels) = &trained.labels {
            text += &format!("  labels        {}\n", labels.name);
        }
        text += &unfinished(trained.unfinished.as_ref(), "fit", &args.model);
        text += &match trained.model.parameters() {
            Some((_, parameters)) => arrays(parameters, &file),
            None => {
                let all = file.tensors.iter().map(|(name, m)| line(name, m, "")).collect::<String>();
                format!("\narrays\n{all}")
            }
        };
    } else if file.kind == TrainedRegression::KIND {
        let trained = trained::load_regression(&args.model)?;
        text += &(regress::summary(&trained)? + "\n");
        text += &format!("  inputs        {}\n", trained.inputs.join(", "));
        text += &format!("  seed          {}\n", trained.report.seed);
        text += &unfinished(trained.unfinished.as_ref(), "regress", &args.model);
        text += &arrays(&*trained.model, &file);
    } else {
        for (name, m) in &file.tensors {
            text += &line(name, m, "");
        }
    }
    out::text(&text)
}

/// Every parameter, then every other array.
fn arrays(of: &(impl Parameterized + ?Sized), file: &ModelFile) -> String {
    let mut text = String::from("\nparameters\n");
    for (name, p) in of.params() {
        let fixed = if p.fixed { ", fixed" } else { "" };
        text += &line(&name, &p.value, &format!("{fixed}{}", constraint(&p.transform)));
    }
    text += "\nother arrays\n";
    let parameters: Vec<String> = of.params().into_iter().map(|(name, _)| name).collect();
    for (name, m) in file.tensors.iter().filter(|(name, _)| !parameters.contains(name)) {
        text += &line(name, m, "");
    }
    text
}

fn constraint(transform: &latentgp::param::Transform) -> String {
    use latentgp::param::Transform;
    match transform {
        Transform::Identity => String::new(),
        Transform::Exp => ", positive".into(),
        Transform::Softplus { lo } | Transform::Above { lo } => format!(", above {}", words::short(*lo)),
        Transform::Interval { lo, hi } => {
            format!(", between {} and {}", words::short(*lo), words::short(*hi))
        }
    }
}

/// Smallest, largest and missing entries of an array.
fn range(m: &Mat) -> (f64, f64, usize) {
    let seen = || m.as_slice().iter().copied().filter(|v| !v.is_nan());
    (seen().fold(f64::INFINITY, f64::min), seen().fold(f64::NEG_INFINITY, f64::max), m.len() - seen().count())
}

fn array(m: &Mat) -> Value {
    let (lo, hi, missing) = range(m);
    json!({ "shape": [m.rows(), m.cols()], "min": lo, "max": hi, "missing": missing })
}

fn line(name: &str, m: &Mat, also: &str) -> String {
    const MAX_LISTED: usize = 8;
    let (lo, hi, missing) = range(m);
    let values = match m.len() {
        0 => "empty".to_string(),
        1..=MAX_LISTED => m.as_slice().iter().map(|v| words::short(*v)).collect::<Vec<_>>().join(", "),
        _ => format!("from {} to {}", words::short(lo), words::short(hi)),
    };
    let missing = if missing > 0 { format!(", {missing} missing") } else { String::new() };
    format!("  {name:<24} {:>12}  {values}{missing}{also}\n", m.shape())
}

/// How data were scaled, by its name.
fn scaling(report: &Report) -> String {
    report.scale.map_or("none".into(), |s| s.to_string())
}

/// How far a fit that is not over has come, and how to go on.
fn unfinished(left: Option<&Unfinished>, command: &str, path: &Path) -> String {
    let Some(left) = left else { return String::new() };
    let over = left.runs.iter().filter(|r| r.is_over()).count();
    let (begun, path) = (left.runs.len(), path.display());
    if over == begun {
        return format!(
            "  unfinished    the limit of iterations was reached; go on with `latentgp {command} --resume {path} --max-iter N \
             --out FILE`\n"
        );
    }
    format!(
        "  unfinished    {over} of {begun} runs that began are over; go on with `latentgp {command} --resume {path} --out FILE`\n"
    )
}
