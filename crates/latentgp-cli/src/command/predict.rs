//! `latentgp predict MODEL DATA`.

use super::transform::rows;
use crate::args::Common;
use crate::data::{id_column, matched};
use crate::failure::{Failure, Outcome};
use crate::regress::{
    LEARN, missing_input, put_scores, scores_text, std_columns, targets, variances, within_range,
};
use crate::{out, trained};
use latentgp::Mat;
use latentgp::data::table::{Column, Table};
use latentgp::expectation::Gaussians;
use latentgp::file::TrainedRegression;
use latentgp::metrics::most_probable;
use latentgp::model::Answers;
use serde_json::json;
use std::path::PathBuf;

/// Which model, which rows.
#[derive(clap::Args)]
#[command(
    before_help = "\
Examples:
  latentgp predict house.lgp new.csv                   means and variances as CSV
  latentgp predict house.lgp new.csv --out price.npy
  latentgp predict iris.lgp flowers.csv --json         class probabilities, and scores if the class is there
  latentgp predict sky.lgp --inputs                    where the inputs of the training rows truly are
  latentgp predict sky.lgp new.csv --inputs            and those of new rows, whose targets are known",
    after_help = "\
Columns of the result: each target with its predicted mean, and with the ending _var the variance of an
observation, noise included. Of classes: the target with the most probable class (not in .npy files) and p_CLASS
for every class. Of counts: their mean and variance. Columns of DATA are found by name, others are ignored; DATA
without names is taken in order. If DATA has the targets too, the predictions are scored. Where the model was
trained with --input-std and DATA has these columns, the errors of the inputs are part of the variances, and so are
errors that were learnt. --inputs gives the posterior of the true inputs instead, which the targets of DATA narrow: each
input with its mean, and with the ending _var its variance; latent inputs come last. A
missing input of a sparse regression has the mean and the variance that its column had in the training.
--samples adds draws of the noise-free function, all rows of a draw at once: TARGET_1, TARGET_2, and so on."
)]
pub struct Args {
    /// A model file of `latentgp regress`
    model: PathBuf,
    /// New rows, with the inputs that the model was trained on; with --inputs those of the training without it
    #[arg(required_unless_present = "inputs")]
    data: Option<String>,
    /// A column of DATA that is copied to the result; the predictions of one of that name are COL_predicted
    #[arg(long, value_name = "COL")]
    id: Option<String>,
    /// The true inputs of the rows in the place of their targets: means and variances
    #[arg(long, conflicts_with = "samples")]
    inputs: bool,
    /// Draws of the noise-free function, from the joint posterior of all rows
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    samples: usize,
    /// Write a file instead (.csv, .tsv, .npy, .parquet)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Predicts.
pub fn run(args: &Args, common: &Common) -> Outcome {
    out::check(args.out.as_deref(), &out::TABLES)?;
    let file = args.data.as_deref().and_then(Table::file);
    let read = [("MODEL", Some(args.model.as_path())), ("DATA", file)];
    out::apart(&read, &[("--out", args.out.as_deref())])?;
    let trained = trained::load_regression(&args.model)?;
    let Some(data) = &args.data else { return of_training(&trained, args) };
    let mut table = Table::read(data).map_err(Failure::data)?;
    let errors = || trained.input_std.iter().flatten().filter(|name| name.as_str() != LEARN);
    let needed = trained.inputs.iter().chain(&trained.targets).chain(errors());
    let id = id_column(&mut table, args.id.as_deref(), needed)?;
    let (x, named) = matched(&table, &trained.inputs)?;
    if !trained.model.takes_missing_inputs() {
        missing_input(table.source(), &x, &trained.inputs, "leave the row out, or fill it in")?;
    }
    within_range(table.source(), &x, &trained.inputs)?;
    let has = |name: &String| named && table.columns().contains(&name.as_str());
    let std = match errors().all(has) {
        true => std_columns(&table, &trained.input_std, &x)?,
        false => None,
    };
    let var = variances(&*trained.model, &x, std.as_ref());
    if args.inputs {
        if let Some(name) = trained.targets.iter().find(|name| !has(name)) {
            return Err(Failure::data(format!(
                "{}: has no column `{name}`; inputs are inferred from the targets of their rows, which may be empty",
                table.source()
            )));
        }
        let classes = (!trained.classes.is_empty()).then_some(&trained.classes);
        let y = targets(&table, &trained.targets, classes)?;
        return told(&trained, &trained.model.infer_inputs(&x, var.as_ref(), &y)?, id, args);
    }
    let answers = trained.model.predict(&x, var.as_ref())?;
    let samples = draws(&trained, &x, args, common)?;
    let classes = (!trained.classes.is_empty()).then_some(&trained.classes);
    let scores = match trained.targets.iter().all(has) {
        true => answers.scores(&targets(&table, &trained.targets, classes)?).map_err(Failure::data)?,
        false => Vec::new(),
    };
    for line in scores_text("", &scores, &trained.targets) {
        out::note(common.quiet || args.json, line);
    }
    if args.out.is_some() || !args.json {
        let words = args.out.as_ref().is_none_or(|p| p.extension().is_none_or(|e| e != "npy"));
        let more = samples.iter().enumerate().flat_map(|(s, draw)| {
            let named = trained.targets.iter().enumerate();
            named.map(move |(j, name)| Column::numbers(format!("{name}_{}", s + 1), draw.col(j)))
        });
        let mut predicted = columns(&trained, &answers, words);
        // The observed value keeps the name; its prediction stands beside it.
        for column in predicted.iter_mut().filter(|c| id.as_ref().is_some_and(|id| id.name == c.name)) {
            column.name += "_predicted";
        }
        let columns = id.into_iter().chain(predicted).chain(more).collect();
        out::table(&Table::new("result", columns).map_err(Failure::work)?, args.out.as_deref())?;
    }
    if !args.json {
        return Ok(());
    }
    let mut all = json!({
        "model": trained.model.name(),
        "likelihood": trained.model.likelihood(),
        "targets": trained.targets,
        "n": x.rows(),
        "out": args.out,
    });
    match &answers {
        Answers::Values(p) => {
            all["mean"] = json!(rows(&p.mean));
            all["variance"] = json!(rows(&p.var));
        }
        Answers::Classes(p) => {
            all["classes"] = json!(trained.classes);
            all["probabilities"] = json!(rows(p));
            all["class"] = most_probable(p).iter().map(|c| trained.classes[*c].clone()).collect();
        }
        Answers::Counts { mean, var, .. } => {
            all["mean"] = mean.iter().map(|v| vec![*v]).collect();
            all["variance"] = var.iter().map(|v| vec![*v]).collect();
        }
    }
    if args.samples > 0 {
        all["samples"] = samples.iter().map(rows).collect();
    }
    put_scores(&mut all, &scores, &trained.targets);
    out::json(&all)
}

/// What the model knows of the inputs of the training rows.
fn of_training(trained: &TrainedRegression, args: &Args) -> Outcome {
    if let Some(id) = &args.id {
        return Err(Failure::usage(format!("--id {id} is a column of DATA, which is missing")));
    }
    match trained.model.inputs_posterior()? {
        Some(q) => told(trained, &q, None, args),
        None => Err(Failure::usage(format!(
            "--inputs: {} takes its inputs for what they are; `latentgp regress --model sparse` infers them",
            trained.model.title()
        ))),
    }
}

/// Writes means and variances of inputs.
fn told(trained: &TrainedRegression, q: &Gaussians, id: Option<Column>, args: &Args) -> Outcome {
    let latent = (1..=trained.model.latent_inputs()).map(|k| format!("latent{k}"));
    let names: Vec<String> = trained.inputs.iter().cloned().chain(latent).collect();
    if args.out.is_some() || !args.json {
        let each = names.iter().enumerate().flat_map(|(j, name)| {
            [
                Column::numbers(name.clone(), q.mean.col(j)),
                Column::numbers(format!("{name}_var"), q.var.col(j)),
            ]
        });
        let mut each: Vec<Column> = each.collect();
        for column in each.iter_mut().filter(|c| id.as_ref().is_some_and(|id| id.name == c.name)) {
            column.name += "_inferred";
        }
        let columns = id.into_iter().chain(each).collect();
        out::table(&Table::new("result", columns).map_err(Failure::work)?, args.out.as_deref())?;
    }
    match args.json {
        true => out::json(&json!({
            "model": trained.model.name(),
            "likelihood": trained.model.likelihood(),
            "inputs": names,
            "n": q.n(),
            "mean": rows(&q.mean),
            "variance": rows(&q.var),
            "out": args.out,
        })),
        false => Ok(()),
    }
}

/// The most draws that may be asked for.
const MOST_SAMPLES: usize = 10_000;
/// The most rows of a joint draw.
const MOST_ROWS: usize = 10_000;

/// Draws of the noise-free function at certain inputs.
fn draws(trained: &TrainedRegression, x: &Mat, args: &Args, common: &Common) -> Outcome<Vec<Mat>> {
    if args.samples == 0 {
        return Ok(Vec::new());
    }
    if args.samples > MOST_SAMPLES || x.rows() > MOST_ROWS {
        return Err(Failure::usage(format!(
            "--samples: expected at most {MOST_SAMPLES} draws of at most {MOST_ROWS} rows, found {} of {}",
            args.samples,
            x.rows()
        )));
    }
    if trained.model.noise_variance().is_none() {
        return Err(Failure::usage(
            "--samples has no effect on classes and counts, whose rows have no joint Gaussian posterior; leave it out",
        ));
    }
    if x.as_slice().iter().any(|v| v.is_nan()) {
        return Err(Failure::data("--samples: expected inputs without gaps, found a missing one"));
    }
    Ok(trained.model.sample(x, args.samples, common.seed())?)
}

/// The predictions as columns.
fn columns(trained: &TrainedRegression, answers: &Answers, words: bool) -> Vec<Column> {
    let var = |name: &String| format!("{name}_var");
    match answers {
        Answers::Values(p) => {
            let mut all: Vec<Column> = Vec::new();
            for (j, name) in trained.targets.iter().enumerate() {
                all.push(Column::numbers(name.clone(), p.mean.col(j)));
                all.push(Column::numbers(var(name), p.var.col(j)));
            }
            all
        }
        Answers::Classes(p) => {
            let best = most_probable(p);
            let class =
                Column::words(trained.targets[0].clone(), best.iter().map(|c| trained.classes[*c].as_str()));
            let each = trained.classes.iter().enumerate();
            let each = each.map(|(c, name)| Column::numbers(format!("p_{name}"), p.col(c)));
            words.then_some(class).into_iter().chain(each).collect()
        }
        Answers::Counts { mean, var: v, .. } => {
            let name = &trained.targets[0];
            vec![Column::numbers(name.clone(), mean.clone()), Column::numbers(var(name), v.clone())]
        }
    }
}
