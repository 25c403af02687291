//! A training that is not over, in its model file: the settings, the data as given, and every restart's state.
//!
//! The arrays of restart k are called `run.k.…`; the numbers beside them are in the header.

use super::parts::ExpectationSpec;
use super::{ModelFile, damaged};
use crate::data::Scale;
use crate::error::Result;
use crate::fit::{Place, Run};
use crate::mat::Mat;
use crate::model::Treatment;
use crate::recipe::{Data, Recipe};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is needed to go on: see [`Job::fit`](crate::recipe::Job::fit).
#[derive(Clone)]
pub struct Unfinished {
    /// The settings.
    pub recipe: Recipe,
    /// The data as given.
    pub data: Data,
    /// Where the restarts stand; those that are missing have not begun.
    pub runs: Vec<Run>,
    /// Seconds that were spent before.
    pub seconds: f64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct UnfinishedSpec {
    #[serde(flatten)]
    how: How,
    /// Each run without its arrays.
    runs: Vec<Value>,
    seconds: f64,
}

/// The settings: a recipe, or what version 0.1 wrote of a Bayesian GPLVM.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum How {
    Recipe { recipe: Box<Recipe>, classes: usize },
    Training { training: TrainingSpec, kernel: String },
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
}

impl TrainingSpec {
    fn recipe(self, kernel: String) -> Recipe {
        Recipe {
            kernel: Some(kernel),
            latent_dim: Some(self.latent_dim),
            inducing: Some(self.inducing),
            expectation: Some(self.expectation.expression),
            max_nodes: self.expectation.max_nodes,
            scale: Some(self.scale),
            noise: Some(self.noise),
            variance: Some(self.variance),
            hold: Some(self.hold),
            max_iterations: Some(self.max_iterations),
            restarts: Some(self.restarts),
            seed: self.seed,
            jitter: Some(self.jitter),
            ..Recipe::of("bayesian-gplvm")
        }
    }
}

/// The arrays of the data, by name.
fn arrays(data: &Data) -> Vec<(&'static str, &Mat)> {
    match data {
        Data::Table { y, known } => {
            let known = known.iter().map(|k| ("resume.known", k));
            std::iter::once(("resume.y", y)).chain(known).collect()
        }
        Data::Pairs { x, x_std, y, .. } => {
            let std = x_std.iter().map(|std| ("resume.x_std", std));
            [("resume.x", x), ("resume.y", y)].into_iter().chain(std).collect()
        }
        Data::Series { series, exogenous } => {
            let inputs = exogenous.iter().map(|u| ("resume.exogenous", u));
            std::iter::once(("resume.series", series)).chain(inputs).collect()
        }
    }
}

fn data_of(file: &mut ModelFile, classes: usize) -> Result<Data> {
    let mut take = |name: &str| file.tensors.remove(name);
    let data = match (take("resume.series"), take("resume.x"), take("resume.y")) {
        (Some(series), ..) => Data::Series { series, exogenous: take("resume.exogenous") },
        (None, Some(x), Some(y)) => Data::Pairs { x, x_std: take("resume.x_std"), y, classes },
        (None, None, Some(y)) => Data::Table { y, known: take("resume.known") },
        _ => return Err(damaged("the data of its training are missing")),
    };
    match arrays(&data).iter().any(|(_, a)| a.is_empty()) {
        true => Err(damaged("the data of its training are empty")),
        false => Ok(data),
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
        for (name, of) in arrays(&self.data) {
            file.tensors.insert(name.into(), of.clone());
        }
        let mut put = |(k, run): (usize, &Run)| {
            let mut run = run.clone();
            for (name, of) in vectors(&mut run) {
                let values = std::mem::take(of);
                let row = Mat::from_vec(1, values.len(), values).expect("one row");
                file.tensors.insert(format!("run.{k}.{name}"), row);
            }
            serde_json::to_value(run).expect("numbers and names")
        };
        let mut recipe = self.recipe.clone();
        if has_errors(&self.data) && recipe.infers_inputs() {
            recipe.inputs = Some(recipe.treatment());
        }
        let classes = if let Data::Pairs { classes, .. } = &self.data { *classes } else { 0 };
        UnfinishedSpec {
            runs: self.runs.iter().enumerate().map(&mut put).collect(),
            how: How::Recipe { recipe: Box::new(recipe), classes },
            seconds: self.seconds,
        }
    }
}

/// Whether inputs are known up to errors.
fn has_errors(data: &Data) -> bool {
    matches!(data, Data::Pairs { x_std: Some(_), .. })
}

impl UnfinishedSpec {
    pub(super) fn take(self, file: &mut ModelFile) -> Result<Unfinished> {
        let (mut recipe, classes) = match self.how {
            How::Recipe { recipe, classes } => (*recipe, classes),
            How::Training { training, kernel } => (training.recipe(kernel), 0),
        };
        recipe.check()?;
        let data = data_of(file, classes)?;
        // Where a file does not tell, errors were averaged over.
        if has_errors(&data) && recipe.infers_inputs() && recipe.learn_errors.is_empty() {
            recipe.inputs.get_or_insert(Treatment::Averaged);
        }
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
        Ok(Unfinished { recipe, data, runs, seconds: self.seconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::oil_flow;
    use crate::file::{Report, Store, TrainedSpace};
    use crate::fit::go_on;
    use crate::recipe::Learnt;
    use std::ops::ControlFlow;

    #[test]
    fn a_training_stored_half_way_ends_at_the_same_bits() {
        for rule in ["unscented", "monte_carlo(samples=3, seed=1, fresh=true)"] {
            let recipe = Recipe {
                kernel: Some("matern32".into()),
                inducing: Some(5),
                hold: Some(3),
                max_iterations: Some(8),
                restarts: Some(2),
                expectation: Some(rule.into()),
                ..Recipe::of("bayesian-gplvm")
            };
            let data = Data::Table { y: oil_flow::simulate(14, 1).y, known: None };
            let job = recipe.job(data.clone(), None).unwrap();
            let whole = job.fit(Vec::new(), &go_on).unwrap();
            let stop = |run: &Run| match run.total_iterations() >= 5 {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            let part = job.fit(Vec::new(), &stop).unwrap();
            let report = Report::new(&part, &recipe, 1.0);
            let Learnt::Space(model) = part.model else { panic!("another model") };
            let report = report.certified(&*model).unwrap();
            let stored = TrainedSpace {
                columns: (0..12).map(|j| j.to_string()).collect(),
                labels: None,
                id: None,
                unfinished: Some(Unfinished { recipe, data, runs: part.runs, seconds: 1.0 }),
                model,
                report,
            };
            let bytes = stored.to_file().unwrap().to_bytes().unwrap();
            let read = TrainedSpace::from_file(ModelFile::from_bytes(&bytes).unwrap()).unwrap();
            assert!(read.model.evidence().unwrap().is_finite());
            let Unfinished { recipe, data, runs, .. } = read.unfinished.unwrap();
            let rest = recipe.job(data, None).unwrap().fit(runs, &go_on).unwrap();
            assert_eq!((rest.evidence, &rest.trace), (whole.evidence, &whole.trace), "{rule}");
        }
    }
}
