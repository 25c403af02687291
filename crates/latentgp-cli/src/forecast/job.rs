//! What is forecast and how, with options checked.

use super::series::{LEAST, Series};
use super::ways::{Way, ways};
use super::{Args, TransformName};
use crate::args::Common;
use crate::failure::{Failure, Outcome};
use latentgp::data::lags::Lags;
use latentgp::fit::Effort;
use latentgp::kernel::{self, gives_values};
use latentgp::model::Restarts;
use latentgp::model::narx::NarxOptions;
use latentgp::recipe::Recipe;

/// Steps ahead where SERIES has no truth to reach and says nothing of the future.
const AHEAD: usize = 24;
/// Steps ahead of an origin.
const BACKTEST_AHEAD: usize = 12;
/// Past values: a year of months and one more, since a season that moves on by a trend is
/// y(t−12) + y(t−1) − y(t−13).
const LAG: usize = 13;
/// Those of the papers.
const PAPERS_LAG: usize = 12;
/// More steps than this are a slip of the keyboard.
const MOST_STEPS: usize = 100_000;
/// The same of lags.
const MOST_LAGS: usize = 10_000;
/// The same of sampled futures.
pub const MOST_PATHS: usize = 1_000_000;
/// The same of runs.
const MOST_RUNS: usize = 10_000;

/// The settings of a forecast.
pub struct Job {
    pub kernel: String,
    pub lags: Lags,
    /// Targets of the training.
    pub train: usize,
    pub horizon: usize,
    /// Whether hyperparameters start wide.
    pub wide: bool,
    pub papers: bool,
    pub transform: TransformName,
    pub options: NarxOptions,
    pub fitting: Restarts,
    pub ways: Vec<Way>,
    /// Of the training inputs, where it is not that of the protocol.
    pub training: Option<TrainingVariance>,
}

/// The variance of training inputs, in standardised units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrainingVariance {
    Noise,
    Value(f64),
}

fn training_variance(text: &str) -> Outcome<TrainingVariance> {
    match (text, text.parse::<f64>()) {
        ("noise", _) => Ok(TrainingVariance::Noise),
        (_, Ok(v)) if v.is_finite() && v >= 0.0 => Ok(TrainingVariance::Value(v)),
        _ => Err(Failure::usage(format!(
            "--training-variance: expected `noise` or a number that is not negative, found `{text}`"
        ))),
    }
}

/// Errs on numbers that are wrong whatever the series is.
pub fn check(args: &Args) -> Outcome {
    let lag = |of: fn(usize, usize) -> usize| args.lag.iter().copied().reduce(of).unwrap_or(LAG);
    for (value, option, least, most) in [
        (lag(usize::min), "--lag", 1, MOST_LAGS),
        (lag(usize::max), "--lag", 1, MOST_LAGS),
        (args.train.unwrap_or(LEAST), "--train", LEAST, usize::MAX),
        (args.horizon.unwrap_or(1), "--horizon", 1, MOST_STEPS),
        (args.stride.unwrap_or(1), "--stride", 1, usize::MAX),
        (args.search.restarts.unwrap_or(1), "--restarts", 1, MOST_RUNS),
        (args.runs.unwrap_or(1), "--runs", 1, MOST_RUNS),
        (args.inducing.unwrap_or(1), "--inducing", 1, usize::MAX),
        (args.max_iter.unwrap_or(1), "--max-iter", 1, usize::MAX),
    ] {
        if value < least {
            return Err(Failure::usage(format!("{option}: expected at least {least}, found {value}")));
        }
        if value > most {
            return Err(Failure::usage(format!("{option}: expected at most {most}, found {value}")));
        }
    }
    Ok(())
}

/// Of a list, an entry for each of `count` things; one entry is for all.
fn each<T: Clone>(given: &[T], usual: T, count: usize, option: &str, what: &str) -> Outcome<Vec<T>> {
    match given {
        [] => Ok(vec![usual; count]),
        [one] => Ok(vec![one.clone(); count]),
        several if several.len() == count => Ok(several.to_vec()),
        several => Err(Failure::usage(format!(
            "{option}: expected one value, or one for each of the {count} {what}, found {}",
            several.len()
        ))),
    }
}

/// Delays of an exogenous input: `2` is the present value and two past ones, `1-3` the delays 1, 2, 3.
fn delays(text: &str) -> Outcome<Vec<usize>> {
    let number = |t: &str| t.trim().parse::<usize>().ok().filter(|n| *n <= MOST_LAGS);
    let found = match text.split_once('-') {
        None => number(text).map(|last| (0, last)),
        Some((first, last)) => number(first).zip(number(last)).filter(|(a, b)| a <= b),
    };
    match found {
        Some((first, last)) => Ok((first..=last).collect()),
        None => Err(Failure::usage(format!(
            "--exogenous-lag: expected a number of past values such as 2, or a range of delays such as 1-3, up to \
             {MOST_LAGS}; found `{text}`"
        ))),
    }
}

fn lags(args: &Args, series: &Series) -> Outcome<Lags> {
    let usual = if args.papers { PAPERS_LAG } else { LAG };
    let of_series = each(&args.lag, usual, series.names.len(), "--lag", "targets")?;
    let inputs = series.inputs.len();
    let of_inputs = each(&args.exogenous_lag, "0".into(), inputs, "--exogenous-lag", "exogenous inputs")?;
    of_inputs.iter().try_fold(Lags::of_series(&of_series), |all, text| Ok(all.with_exogenous(delays(text)?)))
}

impl Job {
    /// From the options, for the series.
    pub fn new(args: &Args, common: &Common, series: &Series) -> Outcome<Self> {
        let lags = lags(args, series)?;
        let kernel = kernel::parse(&args.kernel, lags.width())?;
        let wide = !gives_values(&args.kernel, &*kernel);
        if args.papers && !wide {
            return Err(Failure::usage(
                "--papers starts the parameters of the kernel itself: give the kernel without values",
            ));
        }
        series.check_length(lags.longest())?;
        let (train, horizon) = extent(args, series, &lags)?;
        series.check_varies(lags.longest()..lags.longest() + train)?;
        let training = args.training_variance.as_deref().map(training_variance).transpose()?;
        let (training, error) = match (args.inputs.as_deref(), training) {
            (Some("inferred"), Some(TrainingVariance::Value(v))) => (None, v),
            (Some("inferred"), _) => {
                let expected = "--inputs inferred: expected a number as --training-variance, found `noise`";
                return Err(Failure::usage(expected));
            }
            (_, training) => (training, 0.0),
        };
        let options = NarxOptions {
            inducing: args.inducing.map(|m| m.min(train)),
            error,
            seed: common.seed(),
            ..Default::default()
        };
        let usual = if args.papers { TransformName::None } else { TransformName::Auto };
        Ok(Job {
            kernel: args.kernel.clone(),
            ways: ways(args, common.seed(), &*kernel, lags.own())?,
            lags,
            train,
            horizon,
            wide,
            papers: args.papers,
            transform: args.transform.unwrap_or(usual),
            options,
            training,
            fitting: Restarts {
                runs: args.search.restarts.unwrap_or(1),
                effort: args.search.chosen(),
                max_iterations: args.max_iter.unwrap_or(1000),
                seed: common.seed(),
                ..Restarts::default()
            },
        })
    }

    /// Rows that the model knows.
    pub fn known(&self) -> usize {
        self.lags.longest() + self.train
    }

    /// What the library is told of the fit.
    pub fn recipe(&self) -> Recipe {
        Recipe {
            kernel: Some(self.kernel.clone()),
            lags: Some(self.lags.clone()),
            inducing: self.options.inducing,
            error: Some(self.options.error).filter(|e| *e > 0.0),
            restarts: (self.fitting.effort == Effort::Quick).then_some(self.fitting.runs),
            effort: Some(self.fitting.effort).filter(|e| *e != Effort::Quick),
            max_iterations: Some(self.fitting.max_iterations),
            seed: self.options.seed,
            ..Recipe::of("narx")
        }
    }

    /// The row of the first simulated step.
    pub fn begin(&self) -> usize {
        if self.papers { self.lags.longest() } else { self.known() }
    }

    /// The row after the last simulated step.
    pub fn end(&self) -> usize {
        self.known() + self.horizon
    }
}

/// Targets of the training and steps beyond them.
fn extent(args: &Args, series: &Series, lags: &Lags) -> Outcome<(usize, usize)> {
    let longest = lags.longest();
    let rows = series.values.rows();
    let targets = rows - longest;
    let most = if args.backtest { targets - 1 } else { targets };
    let train = args.train.unwrap_or(if args.backtest { (targets / 2).max(LEAST) } else { targets });
    if train > most {
        return Err(Failure::usage(format!(
            "--train: expected at most {most} of the {rows} values, which leaves the first window of {longest}{}, \
             found {train}",
            if args.backtest { " and a value to score" } else { "" }
        )));
    }
    let usual = match (args.backtest, targets - train, series.ahead) {
        (true, ..) => BACKTEST_AHEAD,
        (false, 0, 0) => AHEAD,
        (false, 0, ahead) => ahead,
        (false, left, _) => left,
    };
    let horizon = args.horizon.unwrap_or(usual);
    if !args.backtest {
        series.check_future(longest + train + horizon.saturating_sub(lags.shortest_delay()))?;
    }
    Ok((train, horizon))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_read() {
        assert_eq!(delays("2").unwrap(), [0, 1, 2]);
        assert_eq!(delays("1-3").unwrap(), [1, 2, 3]);
        for wrong in ["", "-1", "3-1", "1-", "x", "99999999999"] {
            assert!(delays(wrong).is_err(), "{wrong}");
        }
    }
}
