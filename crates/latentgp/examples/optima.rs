//! How good the optima are that a Bayesian GPLVM finds, and what they cost: docs/optima.md has the table.
//!
//! ```text
//! python benches/optima.py tables
//! cargo run --release --example optima -- tables DATA [--tables iris,wine] [--kernels rbf,matern32] [--seeds 10]
//!     [--effort normal] [--each]
//! ```
//!
//! `tables` has the CSV files that `benches/optima.py` writes; DATA the files three_phase_oil_flow.npz and
//! singlecell/guo_qpcr.csv. Tables that are missing are passed over. All are standardised; M = 25, Q = 5, of iris 3.

use latentgp::data::table::Table;
use latentgp::data::{Scale, Scaling};
use latentgp::fit::{Effort, Fitted, Run, go_on};
use latentgp::model::{BayesianGplvm, Collapse, Training};
use latentgp::{Mat, Result, kernel};
use std::time::Instant;

/// Name, best bound known with rbf and best value known with matern32 by the unscented rule, from some thousand fits of
/// several programs. Nothing was tuned on the last two.
const TABLES: [(&str, [f64; 2]); 9] = [
    ("oil_flow", [-798.9, -866.4]),
    ("iris", [-529.89, -417.5]),
    ("wine", [-2715.3, -2765.4]),
    ("breast_cancer", [-11721.65, -12489.7]),
    ("digits", [-36229.3, f64::NEG_INFINITY]),
    ("diabetes", [-6010.2, -5805.3]),
    ("guo_qpcr", [-20179.1, -20314.8]),
    ("friedman1", [f64::NEG_INFINITY; 2]),
    ("swiss_roll", [f64::NEG_INFINITY; 2]),
];

struct Args {
    folders: Vec<String>,
    tables: Option<Vec<String>>,
    kernels: Vec<String>,
    seeds: u64,
    effort: Effort,
    each: bool,
}

impl Args {
    fn read() -> Result<Self> {
        let list = |text: String| text.split(',').map(String::from).collect::<Vec<_>>();
        let mut args = Args {
            folders: Vec::new(),
            tables: None,
            kernels: list("rbf,matern32".into()),
            seeds: 10,
            effort: Effort::Normal,
            each: false,
        };
        let mut given = std::env::args().skip(1);
        while let Some(word) = given.next() {
            let mut value = || given.next().unwrap_or_default();
            match word.as_str() {
                "--tables" => args.tables = Some(list(value())),
                "--kernels" => args.kernels = list(value()),
                "--seeds" => args.seeds = value().parse().unwrap_or(10),
                "--effort" => args.effort = value().parse()?,
                "--each" => args.each = true,
                _ => args.folders.push(word),
            }
        }
        Ok(args)
    }
}

/// A standardised table; none where its file is missing.
fn table(name: &str, folders: &[String]) -> Option<Mat> {
    let read = |file: String, skip: usize| {
        let path = folders.iter().map(|f| format!("{f}/{file}")).find(|p| Table::read(p).is_ok())?;
        let table = Table::read(&path).ok()?;
        let columns: Vec<&str> = table.columns().into_iter().skip(skip).filter(|c| *c != "class").collect();
        table.numeric(&columns).ok()
    };
    let y = match name {
        "oil_flow" => read("three_phase_oil_flow.npz:Y".into(), 0),
        "guo_qpcr" => read("singlecell/guo_qpcr.csv".into(), 1),
        _ => read(format!("{name}.csv"), 0),
    }?;
    Scaling::fit(&y, Scale::Standardize).ok()?.apply(&y).ok()
}

/// A fit, its evaluations in all, and its seconds.
fn fit(
    y: &Mat,
    kernel: &str,
    effort: Effort,
    q: usize,
    seed: u64,
) -> Result<(Fitted<BayesianGplvm>, usize, f64)> {
    let how = Training { latent_dim: q, inducing: 25, seed, effort, ..Training::default() };
    let began = Instant::now();
    let fitted = how.fit(y, &*kernel::parse(kernel, q)?, &go_on)?;
    let seconds = began.elapsed().as_secs_f64();
    let evaluations = fitted.runs.iter().map(Run::total_evaluations).sum();
    Ok((fitted, evaluations, seconds))
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn main() -> Result<()> {
    let args = Args::read()?;
    println!(
        "{:<14} {:<9} {:>11} {:>11} {:>11} {:>11} {:>6} {:>6} {:>6} {:>6} {:>9}",
        "table",
        "kernel",
        "one start",
        "worst",
        "median",
        "best known",
        "< 1",
        "< 10",
        "evals",
        "time",
        "collapsed"
    );
    for (name, known) in TABLES {
        if args.tables.as_ref().is_some_and(|tables| !tables.iter().any(|t| t == name)) {
            continue;
        }
        let Some(y) = table(name, &args.folders) else { continue };
        let q = if name == "iris" { 3 } else { 5 };
        for kernel in &args.kernels {
            let (mut single, mut ends, mut evaluations, mut seconds) = (vec![], vec![], vec![], vec![]);
            let mut collapsed = 0;
            for seed in 0..args.seeds {
                let (one, plain, plain_seconds) = fit(&y, kernel, Effort::Quick, q, seed)?;
                let (best, spent, took) = fit(&y, kernel, args.effort, q, seed)?;
                single.push(one.evidence);
                ends.push(best.evidence);
                evaluations.push(spent as f64 / plain as f64);
                seconds.push(took / plain_seconds);
                let lost = |c: &Collapse| matches!(c, Collapse::Noise(_) | Collapse::Linear(..));
                collapsed += usize::from(best.model.collapses().iter().any(lost));
                if args.each {
                    for (what, of) in [("one start", &one), ("search", &best)] {
                        println!(
                            "  {name} {kernel} seed {seed}, {what}: {:.2} after {} iterations, {}, gradient {:.1e}, {} began, \
                             noise {:.4}, {}",
                            of.evidence,
                            of.iterations,
                            of.stop_reason,
                            of.gradient_norm.unwrap_or(f64::NAN),
                            of.begun,
                            of.model.noise.get(),
                            of.model.kernel
                        );
                    }
                }
            }
            let listed = known[usize::from(kernel != "rbf")];
            let best = ends.iter().chain(&single).copied().fold(listed, f64::max);
            let within = |nats: f64| {
                let near = ends.iter().filter(|e| best - **e <= nats).count();
                format!("{:.0} %", 100.0 * near as f64 / ends.len() as f64)
            };
            println!(
                "{name:<14} {kernel:<9} {:>11.2} {:>11.2} {:>11.2} {best:>11.2} {:>6} {:>6} {:>6.1} {:>6.1} {collapsed:>9}",
                median(single),
                ends.iter().copied().fold(f64::INFINITY, f64::min),
                median(ends.clone()),
                within(1.0),
                within(10.0),
                median(evaluations),
                median(seconds)
            );
        }
    }
    Ok(())
}
