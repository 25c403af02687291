//! What is searched: a table, inputs with targets, or series.

use super::Args;
use crate::data::{Choice, choose, once};
use crate::failure::{Failure, Outcome};
use latentgp::data::lags::Lags;
use latentgp::data::table::Table;
use latentgp::file::Labels;
use latentgp::recipe::{Data, Family, Recipe, family_of};

/// The data, their names, and what every recipe has in common.
pub struct Given {
    pub data: Data,
    /// Of a table its columns, of regressions the inputs, of series these.
    pub columns: Vec<String>,
    pub targets: Vec<String>,
    pub labels: Option<Labels>,
    pub recipe: Recipe,
}

/// Reads DATA.
pub fn read(args: &Args, recipe: Recipe) -> Outcome<Given> {
    let family = family_of(&recipe.model)?;
    let (expected, needs) = match family {
        Family::Latent => (args.target.is_empty() && args.series.is_empty(), "neither --target nor --series"),
        Family::Regression => (!args.target.is_empty(), "--target"),
        Family::Series => (!args.series.is_empty(), "--series"),
    };
    if !expected {
        return Err(Failure::usage(format!("--model {} goes with {needs}", recipe.model)));
    }
    match family {
        Family::Latent => {
            let choice =
                Choice { labels: args.labels.as_deref(), exclude: &args.exclude, ..Choice::default() };
            let chosen = choose(&args.data, &choice)?;
            let data = Data::Table { y: chosen.y, known: None };
            Ok(Given { data, columns: chosen.columns, targets: Vec::new(), labels: chosen.labels, recipe })
        }
        Family::Regression => regression(args, recipe),
        Family::Series => {
            once("--series", &args.series)?;
            let table = Table::read(&args.data).map_err(Failure::data)?;
            let series = table.numeric(&args.series).map_err(Failure::data)?;
            if !series.is_finite() {
                return Err(Failure::data(format!("{}: a search needs series without gaps", table.source())));
            }
            let lags = args.lag.map(|lag| Lags::of_series(&vec![lag; args.series.len()]));
            let data = Data::Series { series, exogenous: None };
            let recipe = Recipe { lags, ..recipe };
            Ok(Given { data, columns: args.series.clone(), targets: Vec::new(), labels: None, recipe })
        }
    }
}

fn regression(args: &Args, recipe: Recipe) -> Outcome<Given> {
    once("--target", &args.target)?;
    once("--exclude", &args.exclude)?;
    let mut table = Table::read(&args.data).map_err(Failure::data)?;
    let y = table.numeric(&args.target).map_err(Failure::data)?;
    for name in args.target.iter().chain(&args.exclude) {
        table.take(name).map_err(Failure::data)?;
    }
    let columns: Vec<String> = table.columns().iter().map(|c| c.to_string()).collect();
    if columns.is_empty() {
        return Err(Failure::data(format!("{}: no column is left as an input", table.source())));
    }
    let x = table.numeric(&columns).map_err(Failure::data)?;
    crate::regress::missing_input(table.source(), &x, &columns, "leave the row out")?;
    let known: Vec<usize> = (0..y.rows()).filter(|i| y.row(*i).iter().all(|v| !v.is_nan())).collect();
    let (x, y) = (x.select_rows(&known), y.select_rows(&known));
    let data = Data::Pairs { x, x_std: None, y, classes: 0 };
    Ok(Given { data, columns, targets: args.target.clone(), labels: None, recipe })
}
