//! The time that Ψ1 takes, relative to the unscented rule: Figure 1 of the unscented GPLVM paper.

use super::context::Context;
use super::part::{Part, Picture};
use super::psi::{Sample, psi1};
use super::table::Curves;
use latentgp::Mat;
use latentgp::expectation::{GaussHermite, MonteCarlo, Unscented};
use latentgp::kernel::Matern32;
use latentgp_terminal::failure::Outcome;
use std::time::Instant;

/// The largest D, in full and quickly.
const LARGEST: [usize; 2] = [12, 8];
/// Each time is the shortest of so many,
const TRIES: usize = 100;
/// unless all rules together take longer than this, in seconds.
const PATIENCE: f64 = 2.0;

/// Runs the experiment.
pub fn run(context: &Context) -> Outcome<Part> {
    let mut lines: Vec<(String, Vec<f64>)> =
        ["Gauss-Hermite 2^D", "Monte Carlo 2D", "Monte Carlo 2^D", "Monte Carlo 200"]
            .map(|name| (name.to_string(), Vec::new()))
            .to_vec();
    let mut unscented = Vec::new();
    let dims: Vec<usize> = (1..=LARGEST[usize::from(context.quick)]).collect();
    for &dim in &dims {
        context.doing(&format!("psi-cost: D = {dim}"))?;
        let sample = Sample::new(dim, 0.1, context.seed)?;
        let kernel = Matern32::new(dim);
        let draws = |samples| {
            let rule = MonteCarlo::new(samples, context.seed);
            let (kernel, sample) = (&kernel, &sample);
            move || psi1(&rule, kernel, sample)
        };
        let [base, times @ ..] = time([
            &|| psi1(&Unscented, &kernel, &sample),
            &|| psi1(&GaussHermite::new(2), &kernel, &sample),
            &draws(2 * dim),
            &draws(1 << dim),
            &draws(200),
        ]);
        unscented.push(1e6 * base);
        lines.iter_mut().zip(times).for_each(|(line, t)| line.1.push(t / base));
    }
    let x: Vec<f64> = dims.iter().map(|d| *d as f64).collect();
    let ratio = |name: &str, d: usize| lines.iter().find(|l| l.0 == name).map_or(f64::NAN, |l| l.1[d - 1]);
    let note = format!(
        "At D = {last} Gauss-Hermite takes {:.0} times as long as the unscented rule, which has {} nodes to its {}.",
        ratio("Gauss-Hermite 2^D", dims.len()),
        2 * dims.len(),
        1u64 << dims.len(),
        last = dims.len(),
    );
    let curves = Curves {
        slug: "",
        title: "Time of Ψ1 relative to the unscented rule".into(),
        x_title: "D".into(),
        y_title: "time / unscented".into(),
        x: x.clone(),
        lines,
        log_x: false,
    };
    let figure = curves.figure(None)?;
    let absolute = Curves {
        slug: "unscented",
        title: "Time of the unscented rule itself".into(),
        y_title: "microseconds".into(),
        lines: vec![("unscented 2D, microseconds".into(), unscented)],
        ..curves.clone()
    };
    Ok(Part {
        name: "psi-cost",
        title: "The cost of Ψ1: Figure 1".into(),
        about: vec![format!(
            "N = 40 points, M = 20 inducing inputs, Matérn 3/2, one thread; each time is the shortest of {TRIES}, \
             or of as many as all rules make in {PATIENCE} s, which take turns; drawing of the nodes is included. The same plain loop over nodes serves every \
             rule, so that their number is compared and nothing else. Times, and their ratios, vary a little from run \
             to run."
        )],
        curves: vec![curves, absolute],
        pictures: vec![Picture {
            slug: "ratio".into(),
            caption:
                "As Figure 1: the cost of quadrature grows exponentially with the dimension, that of the \
                      unscented rule at most as its square: 2D nodes of D coordinates each."
                    .into(),
            figure,
        }],
        notes: vec![note],
        ..Part::default()
    })
}

/// The shortest time of each. They take turns, so that a slow moment of the machine is one of all.
fn time(all: [&dyn Fn() -> Mat; 5]) -> [f64; 5] {
    let begin = Instant::now();
    let mut best = [f64::INFINITY; 5];
    for _ in 0..TRIES {
        for (best, one) in best.iter_mut().zip(all) {
            let clock = Instant::now();
            std::hint::black_box(one());
            *best = best.min(clock.elapsed().as_secs_f64());
        }
        if begin.elapsed().as_secs_f64() > PATIENCE {
            break;
        }
    }
    best
}
