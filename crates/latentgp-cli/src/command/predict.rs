//! `latentgp predict MODEL DATA`.

use super::transform::rows;
use crate::args::Common;
use crate::data::{id_column, matched};
use crate::failure::{Failure, Outcome};
use crate::regress::{missing_input, put_scores, scores_text, std_columns, targets, within_range};
use crate::{out, trained};
use latentgp::Mat;
use latentgp::data::table::{Column, Table};
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
  latentgp predict iris.lgp flowers.csv --json         class probabilities, and scores if the class is there",
    after_help = "\
Columns of the result: each target with its predicted mean, and with the ending _var the variance of an
observation, noise included. Of classes: the target with the most probable class (not in .npy files) and p_CLASS
for every class. Of counts: their mean and variance. Columns of DATA are found by name, others are ignored; DATA
without names is taken in order. If DATA has the targets too, the predictions are scored. Where the model was
trained with --input-std and DATA has these columns, the errors of the inputs are part of the variances. A
missing input of a sparse regression has the mean and the variance that its column had in the training.
--samples adds draws of the noise-free function, all rows of a draw at once: TARGET_1, TARGET_2, and so on."
)]
pub struct Args {
    /// A model file of `latentgp regress`
    model: PathBuf,
    /// New rows, with the inputs that the model was trained on
    data: String,
    /// A column of DATA that is copied to the result; the predictions of one of that name are COL_predicted
    #[arg(long, value_name = "COL")]
    id: Option<String>,
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
    let read = [("MODEL", Some(args.model.as_path())), ("DATA", Table::file(&args.data))];
    out::apart(&read, &[("--out", args.out.as_deref())])?;
    let trained = trained::load_regression(&args.model)?;
    let mut table = Table::read(&args.data).map_err(Failure::data)?;
    let needed = trained.inputs.iter().chain(&trained.targets).chain(trained.input_std.iter().flatten());
    let id = id_column(&mut table, args.id.as_deref(), needed)?;
    let (x, named) = matched(&table, &trained.inputs)?;
    if !trained.model.takes_missing_inputs() {
        missing_input(table.source(), &x, &trained.inputs, "leave the row out, or fill it in")?;
    }
    within_range(table.source(), &x, &trained.inputs)?;
    let has = |name: &String| named && table.columns().contains(&name.as_str());
    let std = match trained.input_std.iter().flatten().all(has) {
        true => std_columns(&table, &trained.input_std, &x)?,
        false => None,
    };
    let answers = trained.model.predict(&x, std.map(|s| s.map(|v| v * v)).as_ref())?;
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
