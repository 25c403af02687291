//! A training that is not over, in its model file: the settings, the data as given, and every restart's state.
//!
//! The arrays of restart k are called `run.k.…`; the numbers beside them are in the header.

use super::gplvm::ExpectationSpec;
use super::prior::{put_prior, take_prior};
use super::{ModelFile, damaged};
use crate::data::Scale;
use crate::error::Result;
use crate::mat::Mat;
use crate::model::{Jitter, Place, Run, Training};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is needed to go on: see [`Training::resume`].
#[derive(Clone)]
pub struct Unfinished {
    /// The settings.
    pub training: Training,
    /// The kernel at the start, as it was asked for.
    pub kernel: String,
    /// Y as given.
    pub y: Mat,
    /// Where the restarts stand; those that are missing have not begun.
    pub runs: Vec<Run>,
    /// Seconds that were spent before.
    pub seconds: f64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct UnfinishedSpec {
    training: TrainingSpec,
    kernel: String,
    /// Each run without its arrays.
    runs: Vec<Value>,
    seconds: f64,
}

#[derive(Serialize, Deserialize)]
struct TrainingSpec {
    latent_dim: usize,
    inducing: usize,
    expectation: ExpectationSpec,
    scale: Scale,
    noise: f64,
    variance: f64,
    hold: usize,
    max_iterations: usize,
    restarts: usize,
    seed: u64,
    jitter: [f64; 2],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prior: Option<String>,
}

/// The arrays of the prior that a training starts with begin so.
const PRIOR: &str = "resume.prior";

impl TrainingSpec {
    fn of(t: &Training, file: &mut ModelFile) -> Self {
        TrainingSpec {
            latent_dim: t.latent_dim,
            inducing: t.inducing,
            expectation: ExpectationSpec::of(&*t.expectation),
            scale: t.scale,
            noise: t.noise,
            variance: t.variance,
            hold: t.hold,
            max_iterations: t.max_iterations,
            restarts: t.restarts,
            seed: t.seed,
            jitter: [t.jitter.kzz, t.jitter.b],
            prior: t.prior.as_ref().map(|prior| put_prior(&**prior, PRIOR, file)),
        }
    }

    fn training(&self, file: &mut ModelFile, n: usize) -> Result<Training> {
        let prior = match &self.prior {
            Some(prior) => Some(take_prior(prior, PRIOR, (n, self.latent_dim), file)?),
            None => None,
        };
        Ok(Training {
            latent_dim: self.latent_dim,
            inducing: self.inducing,
            expectation: self.expectation.parse()?,
            scale: self.scale,
            noise: self.noise,
            variance: self.variance,
            hold: self.hold,
            max_iterations: self.max_iterations,
            restarts: self.restarts,
            seed: self.seed,
            jitter: Jitter { kzz: self.jitter[0], b: self.jitter[1] },
            prior,
        })
    }
}

/// The vectors of a run, by name, in one order.
fn vectors(run: &mut Run) -> Vec<(&'static str, &mut Vec<f64>)> {
    let mut all = vec![("trace", &mut run.trace)];
    match &mut run.place {
        Place::Point(u) => all.push(("u", u)),
        Place::Lbfgs(state) => all.extend([
            ("u", &mut state.u),
            ("gradient", &mut state.gradient),
            ("s", &mut state.history.s),
            ("y", &mut state.history.y),
            ("rho", &mut state.history.rho),
        ]),
        Place::Adam(state) => all.extend([
            ("u", &mut state.u),
            ("gradient", &mut state.gradient),
            ("m", &mut state.m),
            ("v", &mut state.v),
        ]),
    }
    all
}

impl Unfinished {
    pub(super) fn put(&self, file: &mut ModelFile) -> UnfinishedSpec {
        file.tensors.insert("resume.y".into(), self.y.clone());
        let training = TrainingSpec::of(&self.training, file);
        let mut put = |(k, run): (usize, &Run)| {
            let mut run = run.clone();
            for (name, of) in vectors(&mut run) {
                let values = std::mem::take(of);
                let row = Mat::from_vec(1, values.len(), values).expect("one row");
                file.tensors.insert(format!("run.{k}.{name}"), row);
            }
            serde_json::to_value(run).expect("numbers and names")
        };
        UnfinishedSpec {
            training,
            kernel: self.kernel.clone(),
            runs: self.runs.iter().enumerate().map(&mut put).collect(),
            seconds: self.seconds,
        }
    }
}

impl UnfinishedSpec {
    pub(super) fn take(self, file: &mut ModelFile, n: usize, d: usize) -> Result<Unfinished> {
        let y = file.take("resume.y", n, d)?;
        let mut runs = Vec::with_capacity(self.runs.len());
        for (k, value) in self.runs.into_iter().enumerate() {
            let mut run: Run = serde_json::from_value(value)
                .map_err(|e| damaged(format!("the state of restart {k} cannot be read: {e}")))?;
            for (name, to) in vectors(&mut run) {
                let name = format!("run.{k}.{name}");
                let row = file.tensors.remove(&name);
                *to = row.ok_or_else(|| damaged(format!("the array `{name}` is missing")))?.into_vec();
            }
            runs.push(run);
        }
        Ok(Unfinished {
            training: self.training.training(file, n)?,
            kernel: self.kernel,
            y,
            runs,
            seconds: self.seconds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::oil_flow;
    use crate::expectation;
    use crate::file::{Report, Store, Trained};
    use crate::kernel;
    use crate::model::prior::{self, ClonePrior};
    use crate::param;
    use std::ops::ControlFlow;

    #[test]
    fn a_training_stored_half_way_ends_at_the_same_bits() {
        let days: Vec<f64> = (0..14).map(f64::from).collect();
        let times =
            prior::parse("times(column=day, std=0.2, learn=true)").unwrap().bind(14, 2, &[days]).unwrap();
        for (rule, prior) in [
            ("unscented", None),
            ("monte_carlo(samples=3, seed=1, fresh=true)", None),
            ("unscented", Some(times)),
            ("unscented", Some(prior::Normal::standard(14, 2).boxed())),
        ] {
            let training = Training {
                inducing: 5,
                hold: 3,
                max_iterations: 8,
                restarts: 2,
                expectation: expectation::parse(rule).unwrap(),
                prior,
                ..Training::default()
            };
            let y = oil_flow::simulate(14, 1).y;
            let kernel = kernel::parse("matern32", 2).unwrap();
            let whole = training.fit(&y, &*kernel, &|_| ControlFlow::Continue(())).unwrap();
            let stop = |p: &crate::model::Progress| match p.iteration >= 5 {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            let part = training.fit(&y, &*kernel, &stop).unwrap();
            let stored = Trained {
                report: Report::new(&part, &training, "matern32", 1.0),
                columns: (0..y.cols()).map(|j| j.to_string()).collect(),
                labels: None,
                id: None,
                unfinished: Some(Unfinished {
                    training,
                    kernel: "matern32".into(),
                    y,
                    runs: part.runs,
                    seconds: 1.0,
                }),
                model: part.model,
            };
            let bytes = stored.to_file().unwrap().to_bytes().unwrap();
            let read = Trained::from_file(ModelFile::from_bytes(&bytes).unwrap()).unwrap();
            let Unfinished { training, kernel, y, runs, .. } = read.unfinished.unwrap();
            let kernel = kernel::parse(&kernel, training.latent_dim).unwrap();
            let rest = training.resume(&y, &*kernel, runs, &|_| ControlFlow::Continue(())).unwrap();
            assert_eq!((rest.bound, &rest.trace), (whole.bound, &whole.trace), "{rule}");
            assert_eq!(rest.model.mean.value, whole.model.mean.value);
            assert_eq!(param::values(&*rest.model.prior), param::values(&*whole.model.prior));
        }
    }
}
