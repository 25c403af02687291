//! The standings as a table, as JSON and as a picture.

use crate::failure::Outcome;
use crate::figure::{self, Figure, Lines};
use crate::words::short;
use latentgp::recipe::{Contest, Recipe, Standing};
use serde_json::{Value, json};
use std::path::Path;

/// More entries than this have no names of their own in the picture.
const NAMED: usize = 12;

/// A recipe in a few words.
pub fn named(of: &Recipe) -> String {
    let mut words = vec![of.kernel_text().to_string()];
    words.extend(of.latent_dim.map(|q| format!("Q {q}")));
    words.extend(of.inducing.map(|m| format!("M {m}")));
    words.join(", ")
}

fn number(of: Option<f64>) -> String {
    of.map_or("–".into(), short)
}

/// The table.
pub fn text(contest: &Contest, (fits, of): (usize, usize), seconds: f64, out: Option<&Path>) -> String {
    let standings = contest.standings();
    let kernel = |s: &&Standing| s.recipe.kernel_text().chars().count();
    let wide = standings.iter().map(kernel).max().unwrap_or(0).max("kernel".len());
    let place = |n: Option<usize>| n.map_or("–".into(), |n| n.to_string());
    let mut lines = vec![
        format!("{} recipes, {fits} of {of} fits, {seconds:.1} s", standings.len()),
        format!(
            "  {:<wide$} {:>3} {:>4} {:>6} {:>10} {:>12} {:>8}",
            "kernel", "Q", "M", "rounds", "density", "evidence", "seconds"
        ),
    ];
    for s in &standings {
        let end = match &s.failure {
            Some(why) => format!("  {why}"),
            None => String::new(),
        };
        lines.push(format!(
            "  {:<wide$} {:>3} {:>4} {:>6} {:>10} {:>12} {:>8.1}{end}",
            s.recipe.kernel_text(),
            place(s.recipe.latent_dim),
            place(s.recipe.inducing),
            s.rounds,
            number(s.density),
            number(s.evidence),
            s.seconds
        ));
    }
    lines.push("  density: the mean log density of a row held out; evidence: that of the others".into());
    if let Some(winner) = contest.winner() {
        let saved =
            out.map_or("add `--out model.lgp` to keep it".into(), |p| format!("saved in {}", p.display()));
        lines.push(format!("  best          {}; {saved}", named(&winner.recipe)));
    }
    lines.join("\n")
}

fn entry(s: &Standing) -> Value {
    json!({
        "model": s.recipe.model,
        "kernel": s.recipe.kernel_text(),
        "latent_dim": s.recipe.latent_dim,
        "inducing": s.recipe.inducing,
        "rounds": s.rounds,
        "density": s.density,
        "evidence": s.evidence,
        "iterations": s.iterations,
        "seconds": s.seconds,
        "failure": s.failure,
    })
}

/// The standings with stable keys, best first.
pub fn json(contest: &Contest, (fits, of): (usize, usize), seconds: f64, out: Option<&Path>) -> Value {
    json!({
        "candidates": contest.standings().into_iter().map(entry).collect::<Vec<_>>(),
        "best": contest.winner().map(entry),
        "fits": fits,
        "fits_of": of,
        "seconds": seconds,
        "out": out,
    })
}

/// Densities against seconds: what more time buys.
pub fn picture(contest: &Contest) -> Outcome<Figure> {
    let shown: Vec<&Standing> = contest.standings().into_iter().filter(|s| s.density.is_some()).collect();
    let name = |s: &Standing| match shown.len() > NAMED {
        true => s.recipe.kernel_text().to_string(),
        false => named(&s.recipe),
    };
    // A gap after every point: nothing lies between two recipes.
    let x: Vec<f64> = shown.iter().flat_map(|s| [s.seconds.max(1e-3); 2]).collect();
    let mut lines: Vec<(String, Vec<f64>)> = Vec::new();
    for (k, s) in shown.iter().enumerate() {
        let own = name(s);
        if !lines.iter().any(|(known, _)| *known == own) {
            lines.push((own.clone(), vec![f64::NAN; x.len()]));
        }
        if let Some((_, values)) = lines.iter_mut().find(|(known, _)| *known == own) {
            values[2 * k] = s.density.unwrap_or(f64::NAN);
        }
    }
    Ok(figure::lines(&Lines {
        title: "What the fits predict, and what they take".into(),
        x_title: "seconds".into(),
        y_title: "mean log density of a row held out".into(),
        x,
        lines,
        log_x: true,
        log_y: false,
    })?)
}
