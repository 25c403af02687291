//! What is forecast and how, with options checked.

use super::Args;
use super::series::{LEAST, Series};
use crate::args::Common;
use crate::failure::{Failure, Outcome};
use latentgp::expectation::{
    self, Analytic, Auto, Cubature5, Expectation, GaussHermite, MonteCarlo, QuasiMonteCarlo, Unscented,
};
use latentgp::kernel::{self, Kernel};
use latentgp::model::Restarts;
use latentgp::model::narx::{Propagation, Simulation};

/// Steps ahead where SERIES has no truth to reach.
const AHEAD: usize = 24;
/// Steps ahead of an origin.
const BACKTEST_AHEAD: usize = 12;
/// More steps than this are a slip of the keyboard.
const MOST_STEPS: usize = 100_000;
/// The same of lags.
const MOST_LAGS: usize = 10_000;
/// The longest window of which a grid of two points a lag has at most 4096 nodes.
const GRID_LAGS: usize = 12;

/// The settings of a forecast.
pub struct Job {
    pub kernel: String,
    pub lag: usize,
    /// Targets of the training.
    pub train: usize,
    pub horizon: usize,
    /// Whether hyperparameters start wide.
    pub wide: bool,
    pub papers: bool,
    pub fitting: Restarts,
    /// The ways to simulate, with their names.
    pub ways: Vec<(String, Simulation)>,
}

/// Errs on numbers that are wrong whatever the series is.
pub fn check(args: &Args) -> Outcome {
    for (value, option, least) in [
        (args.lag, "--lag", 1),
        (args.train.unwrap_or(LEAST), "--train", LEAST),
        (args.horizon.unwrap_or(1), "--horizon", 1),
        (args.stride.unwrap_or(1), "--stride", 1),
        (args.restarts.unwrap_or(1), "--restarts", 1),
        (args.max_iter.unwrap_or(1), "--max-iter", 1),
    ] {
        if value < least {
            return Err(Failure::usage(format!("{option}: expected at least {least}, found {value}")));
        }
    }
    for (value, option, most) in
        [(args.horizon.unwrap_or(1), "--horizon", MOST_STEPS), (args.lag, "--lag", MOST_LAGS)]
    {
        if value > most {
            return Err(Failure::usage(format!("{option}: expected at most {most}, found {value}")));
        }
    }
    Ok(())
}

impl Job {
    /// From the options, for the series.
    pub fn new(args: &Args, common: &Common, series: &Series) -> Outcome<Self> {
        let targets = series.values.len() - args.lag;
        let most = if args.backtest { targets - 1 } else { targets };
        let usual = if args.backtest { (targets / 2).max(LEAST) } else { targets };
        let train = args.train.unwrap_or(usual);
        if train > most {
            return Err(Failure::usage(format!(
                "--train: expected at most {most} of the {} values, which leaves the first window of {}{}, found \
                 {train}",
                series.values.len(),
                args.lag,
                if args.backtest { " and a value to score" } else { "" }
            )));
        }
        let usual = match (args.backtest, targets - train) {
            (true, _) => BACKTEST_AHEAD,
            (false, 0) => AHEAD,
            (false, left) => left,
        };
        let kernel = kernel::parse(&args.kernel, args.lag)?;
        let wide = !gives_values(&args.kernel, &*kernel);
        if args.papers && !wide {
            return Err(Failure::usage(
                "--papers starts the parameters of the kernel itself: give the kernel without values",
            ));
        }
        Ok(Job {
            kernel: args.kernel.clone(),
            lag: args.lag,
            train,
            horizon: args.horizon.unwrap_or(usual),
            wide,
            papers: args.papers,
            fitting: Restarts {
                runs: args.restarts.unwrap_or(1),
                max_iterations: args.max_iter.unwrap_or(1000),
                seed: common.seed(),
                ..Restarts::default()
            },
            ways: ways(args, common.seed(), &*kernel)?,
        })
    }

    /// Rows that the model knows.
    pub fn known(&self) -> usize {
        self.lag + self.train
    }

    /// The row of the first simulated step.
    pub fn begin(&self) -> usize {
        if self.papers { self.lag } else { self.known() }
    }
}

/// Whether the text sets a parameter, such as `period=12`; what is in square brackets says other things.
fn gives_values(text: &str, kernel: &dyn Kernel) -> bool {
    let mut depth = 0usize;
    let mut outside = String::new();
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => outside.push(c),
            _ => {}
        }
    }
    let names = kernel.params().into_iter().map(|(name, _)| name);
    names.into_iter().any(|name| {
        let own = name.rsplit('.').next().unwrap_or_default();
        ["(", ","].iter().any(|before| outside.contains(&format!("{before}{own}=")))
    })
}

fn ways(args: &Args, seed: u64, kernel: &dyn Kernel) -> Outcome<Vec<(String, Simulation)>> {
    let certain = || ("certain".to_string(), Simulation::certain());
    if args.no_propagate {
        return Ok(vec![certain()]);
    }
    let by = |rule: Box<dyn Expectation>| {
        let name = rule.to_string();
        let like = if args.papers { Simulation::papers(Auto) } else { Simulation::default() };
        let propagation = match args.correlated {
            true => Propagation::Correlated(rule),
            false => Propagation::Independent(rule),
        };
        (name, Simulation { propagation, ..like })
    };
    if !args.compare {
        let rule = expectation::parse(args.expectation.as_deref().unwrap_or("auto"))?;
        rule.check(kernel, args.lag)?;
        return Ok(vec![by(rule)]);
    }
    let analytic = Analytic.check(kernel, args.lag).is_ok();
    let rules: [Option<Box<dyn Expectation>>; 6] = [
        if analytic { Some(Box::new(Analytic)) } else { None },
        Some(Box::new(Unscented)),
        if args.lag <= GRID_LAGS { Some(Box::new(GaussHermite::new(2))) } else { None },
        Some(Box::new(Cubature5)),
        Some(Box::new(QuasiMonteCarlo::new(256, seed))),
        Some(Box::new(MonteCarlo::new(200, seed))),
    ];
    Ok(std::iter::once(certain()).chain(rules.into_iter().flatten().map(by)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_a_kernel_are_seen() {
        for (text, values) in [
            ("rbf + linear", false),
            ("rbf(fix=[variance], bounds=[lengthscale=[0.1, 10]])", false),
            ("rbf(dims=[0, 1]) * linear", false),
            ("periodic( period = 2 ) + linear", true),
            ("rbf(fix=[variance], lengthscale=[1, 2, 3])", true),
        ] {
            let kernel = kernel::parse(text, 3).or_else(|_| kernel::parse(text, 12)).unwrap();
            assert_eq!(gives_values(text, &*kernel), values, "{text}");
        }
    }
}
