//! `latentgp search DATA`.

mod data;
mod keep;
mod tell;

use crate::args::Common;
use crate::failure::{Failure, Outcome};
use crate::{interrupt, out};
use latentgp::data::table::Table;
use latentgp::fit::Effort;
use latentgp::recipe::{Contest, Recipe};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What is compared, for how long, and where the winner goes.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "\
Examples:
  latentgp search data.csv --labels class --budget 60 --out best.lgp
  latentgp search data.csv -k rbf -k matern32 -k \"rbf + linear\" -Q 2,5 -M 20,50 --plot search.svg
  latentgp search house.csv --target price --budget 30 --out house.lgp
  latentgp search sales.csv --series units --lag 12 -k rbf -k \"periodic * rbf + linear\" --json",
    after_help = "\
A fifth of the rows is held out, of series the last fifth, which is simulated. All recipes have a few iterations, the
better half more, the better half of these run to their end. The mean log density of a row held out decides; it compares
recipes of any kind, and the evidence of the other rows is told beside it. No fit begins once the budget is spent, so
that the results of a search with a budget of time depend on the machine; with --fits they depend on nothing but the
data, the options and the seed. The winner is then fitted to all rows, which the budget does not count."
)]
pub struct Args {
    /// A table: CSV, TSV, .npy, .npz:KEY, .mat:KEY, .parquet, or - for CSV on standard input
    data: String,
    /// Regressions of these columns on the others, in place of latent spaces; separated by commas
    #[arg(
        long,
        short,
        value_name = "COL,…",
        value_delimiter = ',',
        help_heading = "Data",
        conflicts_with = "series"
    )]
    target: Vec<String>,
    /// Forecasts of these columns, a row each time step, in place of latent spaces; separated by commas
    #[arg(long, value_name = "COL,…", value_delimiter = ',', help_heading = "Data")]
    series: Vec<String>,
    /// A column with the class of each row, which is kept with the model and not learnt from
    #[arg(long, value_name = "COL|FILE", help_heading = "Data", conflicts_with_all = ["target", "series"])]
    labels: Option<String>,
    /// Not these columns, separated by commas
    #[arg(
        long,
        value_name = "COL,…",
        value_delimiter = ',',
        help_heading = "Data",
        conflicts_with = "series"
    )]
    exclude: Vec<String>,

    /// The model [default: bayesian-gplvm, gp for --target, narx for --series]
    #[arg(long, value_name = "MODEL", help_heading = "Compared")]
    model: Option<String>,
    /// A kernel expression; may be given several times [default: a few usual ones]
    #[arg(long, short, value_name = "KERNEL", help_heading = "Compared")]
    kernel: Vec<String>,
    /// Numbers of latent dimensions, separated by commas [default: 2,5]
    #[arg(long, short = 'Q', value_name = "Q,…", value_delimiter = ',', help_heading = "Compared")]
    latent_dim: Vec<usize>,
    /// Numbers of inducing inputs, separated by commas [default: 20,50 where the model has them]
    #[arg(long, short = 'M', value_name = "M,…", value_delimiter = ',', help_heading = "Compared")]
    inducing: Vec<usize>,
    /// Past values that a step of --series follows from [default: 13]
    #[arg(long, value_name = "N", help_heading = "Compared", requires = "series")]
    lag: Option<usize>,

    /// Seconds after which no fit begins [default: 60, unlimited with --fits]
    #[arg(long, value_name = "SECONDS", help_heading = "Training")]
    budget: Option<f64>,
    /// Most fits
    #[arg(long, value_name = "N", help_heading = "Training")]
    fits: Option<usize>,
    /// Most iterations of a run [default: 1000]
    #[arg(long, value_name = "N", help_heading = "Training")]
    max_iter: Option<usize>,
    /// How hard the best optimum of the winner is looked for, once it is known: quick, normal, thorough [default: normal]
    #[arg(long, value_name = "HOW", help_heading = "Training")]
    effort: Option<Effort>,

    /// The model file of the winner
    #[arg(long, short, value_name = "FILE.lgp", help_heading = "Results")]
    out: Option<PathBuf>,
    /// A picture of the densities against the seconds that they took, .svg or .png
    #[arg(long, value_name = "FIG", help_heading = "Results")]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long, help_heading = "Results")]
    json: bool,
}

/// Seconds, where neither these nor a number of fits are given.
const SECONDS: f64 = 60.0;

impl Args {
    fn recipe(&self, common: &Common) -> Recipe {
        let usual = match (self.target.is_empty(), self.series.is_empty()) {
            (false, _) => "gp",
            (_, false) => "narx",
            _ => "bayesian-gplvm",
        };
        Recipe {
            model: self.model.clone().unwrap_or(usual.into()),
            max_iterations: self.max_iter,
            effort: self.effort,
            seed: common.seed(),
            ..Recipe::default()
        }
    }

    fn check(&self) -> Outcome {
        let read = [("DATA", Table::file(&self.data))];
        out::apart(&read, &[("--out", self.out.as_deref()), ("--plot", self.plot.as_deref())])?;
        out::check(self.out.as_deref(), &[])?;
        out::check(self.plot.as_deref(), &["svg", "png"])?;
        match self.budget {
            Some(s) if !(s > 0.0 && s <= 1e9) => {
                Err(Failure::usage("--budget: expected a number of seconds above 0"))
            }
            _ if self.fits == Some(0) => Err(Failure::usage("--fits: expected at least 1, found 0")),
            _ => Ok(()),
        }
    }
}

/// Compares, tells, draws and keeps the winner.
pub fn run(args: &Args, common: &Common) -> Outcome {
    args.check()?;
    let asked = args.recipe(common);
    let given = data::read(args, asked)?;
    let recipes =
        given.recipe.worth_comparing(&given.data, &args.kernel, &args.latent_dim, &args.inducing)?;
    let mut contest = Contest::new(&given.data, recipes, common.seed())?;
    interrupt::listen()?;
    let (began, of) = (Instant::now(), contest.fits());
    let seconds = args.budget.or(args.fits.is_none().then_some(SECONDS)).map(Duration::from_secs_f64);
    let most = args.fits.unwrap_or(usize::MAX);
    let mut begun = 0;
    let mut more = |recipe: &Recipe, round: usize| {
        let spent = seconds.is_some_and(|s| began.elapsed() >= s) || begun >= most;
        if !(spent || interrupt::asked()) {
            begun += 1;
            out::note(common.quiet, format!("round {round}, fit {begun} of {of}: {}", tell::named(recipe)));
            return true;
        }
        false
    };
    let watch = |_: &_| if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let fits = contest.run(&mut more, &watch);
    if interrupt::asked() {
        return Err(Failure::interrupted("interrupted before the search ended; nothing is kept"));
    }
    let Some(winner) = contest.winner() else {
        let why = contest.standings().iter().find_map(|s| s.failure.clone());
        return Err(Failure::work(why.unwrap_or("no recipe could be fitted; try a larger --budget".into())));
    };
    if let Some(path) = &args.plot {
        tell::picture(&contest)?.save(path).map_err(Failure::work)?;
    }
    if let Some(path) = &args.out {
        keep::winner(&given, &winner.recipe, common.quiet, path)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    match args.json {
        true => out::json(&tell::json(&contest, (fits, of), seconds, args.out.as_deref())),
        false => out::text(&tell::text(&contest, (fits, of), seconds, args.out.as_deref())),
    }
}
