//! Airline passengers by the protocol of the unscented GPLVM paper: a forecast that carries its uncertainty.
//!
//! Twelve lags; months 13 to 60 are the training targets; free simulation of 132 months from the first window,
//! the last 84 scored in thousands of passengers: `cargo run --release --example airline`. The whole of Table 3
//! beside the paper's is `latentgp reproduce airline`.

use latentgp::data::{airline, lags::Lags};
use latentgp::expectation::Unscented;
use latentgp::kernel::{Linear, Periodic, Rbf};
use latentgp::model::narx::{Narx, NarxOptions, Simulation};
use latentgp::{Mat, Result};
use std::ops::ControlFlow;

const LAG: usize = 12;
const TRAINING: usize = 48;

fn main() -> Result<()> {
    let series = Mat::column(&airline::PASSENGERS[..LAG + TRAINING]);
    let kernel = Periodic::new(LAG) + Rbf::new(LAG) + Linear::new(LAG);
    let start = Narx::new(&series, None, Lags::new(LAG), kernel, &NarxOptions::default())?;
    let model = start.papers_fit(&|_| ControlFlow::Continue(()))?.model;
    let (known, after) = airline::PASSENGERS.split_at(LAG);
    for (name, how) in [
        ("certain lags", Simulation::certain()),
        ("unscented", Simulation::papers(Unscented)),
        ("unscented, correlated lags", Simulation::correlated(Unscented)),
    ] {
        let forecast = model.simulate(&Mat::column(known), None, after.len(), &how)?;
        let score = forecast.score(&Mat::column(after), TRAINING)?.remove(0);
        println!("{name:<28} NLPD {:>6.2}   RMSE {:>6.2}", score.nlpd, score.rmse);
    }
    Ok(())
}
