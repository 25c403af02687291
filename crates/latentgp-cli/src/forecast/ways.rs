//! The ways to simulate, by name.

use super::job::MOST_PATHS;
use super::{Args, WindowName};
use crate::failure::{Failure, Outcome};
use latentgp::expectation::{
    self, Analytic, Auto, Cubature5, Expectation, GaussHermite, MonteCarlo, QuasiMonteCarlo, Unscented,
};
use latentgp::kernel::Kernel;
use latentgp::model::narx::{Propagation, Simulation};

/// The longest window of which a grid of two points a lag has at most 4096 nodes.
const GRID_LAGS: usize = 12;
/// Draws of the Monte Carlo rows of a comparison: those of the papers.
const DRAWS: [usize; 3] = [24, 200, 4096];
/// Futures of a comparison.
const FUTURES: usize = 1000;

/// One way to simulate, with as many runs as it has seeds.
pub struct Way {
    pub name: String,
    pub runs: Vec<Simulation>,
}

impl Way {
    fn one(name: impl Into<String>, run: Simulation) -> Self {
        Way { name: name.into(), runs: vec![run] }
    }
}

/// Whether windows carry their covariance: the default is yes, and no by the papers' protocol.
pub fn correlated(args: &Args) -> bool {
    args.window.map_or(!args.papers, |w| w == WindowName::Correlated)
}

/// What was asked for; `own` is the number of uncertain columns of a window.
pub fn ways(args: &Args, seed: u64, kernel: &dyn Kernel, own: usize) -> Outcome<Vec<Way>> {
    if args.no_propagate {
        return Ok(vec![certain()]);
    }
    if let Some(count) = args.trajectories {
        if !(2..=MOST_PATHS).contains(&count) {
            return Err(Failure::usage(format!(
                "--trajectories: expected from 2 to {MOST_PATHS}, found {count}"
            )));
        }
        return Ok(vec![trajectories(count, seed)]);
    }
    if args.compare {
        return Ok(compared(args, seed, kernel, own));
    }
    let mut rule = expectation::parse(args.expectation.as_deref().unwrap_or("auto"))?;
    if let Some(limit) = args.max_nodes {
        rule.set_max_nodes(limit);
    }
    rule.check(kernel, own)?;
    Ok(vec![Way::one(rule.expression(), by(args, rule))])
}

fn certain() -> Way {
    Way::one("no propagation", Simulation::certain())
}

fn trajectories(count: usize, seed: u64) -> Way {
    Way::one(format!("trajectories({count})"), Simulation::trajectories(count, seed))
}

fn by(args: &Args, rule: Box<dyn Expectation>) -> Simulation {
    let like = if args.papers { Simulation::papers(Auto) } else { Simulation::default() };
    let propagation = match correlated(args) {
        true => Propagation::Correlated(rule),
        false => Propagation::Independent(rule),
    };
    Simulation { propagation, ..like }
}

/// Every rule that can run; Monte Carlo as often as --runs says, or once from each origin of a backtest.
fn compared(args: &Args, seed: u64, kernel: &dyn Kernel, own: usize) -> Vec<Way> {
    let rule = |of: Box<dyn Expectation>| Way::one(of.expression(), by(args, of));
    let mut all = vec![certain()];
    if Analytic.check(kernel, own).is_ok() {
        all.push(rule(Box::new(Analytic)));
    }
    all.push(rule(Box::new(Unscented)));
    if own <= GRID_LAGS {
        all.push(rule(Box::new(GaussHermite::new(2))));
    }
    all.push(rule(Box::new(Cubature5)));
    all.push(rule(Box::new(QuasiMonteCarlo::new(256, seed))));
    let runs = if args.backtest { 1 } else { args.runs.unwrap_or(10) as u64 };
    for samples in DRAWS.into_iter().filter(|&n| !args.backtest || n < DRAWS[2]) {
        let run = |k: u64| by(args, Box::new(MonteCarlo::new(samples, seed.wrapping_add(k))));
        all.push(Way { name: format!("monte_carlo(samples={samples})"), runs: (0..runs).map(run).collect() });
    }
    all.push(trajectories(FUTURES, seed));
    all
}
