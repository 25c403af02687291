//! The winner, fitted to all rows and written to its file.

use super::data::Given;
use crate::failure::{Failure, Outcome};
use crate::train::{Task, train};
use latentgp::file::{self, Report, TrainedRegression, TrainedSeries, TrainedSpace};
use latentgp::recipe::{Data, Learnt, Recipe};
use std::path::Path;

/// Fits the recipe and writes the model.
pub fn winner(given: &Given, recipe: &Recipe, quiet: bool, path: &Path) -> Outcome {
    let done = train(Task::new(recipe.clone(), given.data.clone()), "log evidence", quiet, None)?;
    if done.interrupted() {
        return Err(Failure::interrupted("interrupted while the winner was fitted; nothing is kept"));
    }
    let report = Report::new(&done.fitted, recipe, done.seconds);
    let (names, unfinished) = (given.columns.clone(), done.unfinished);
    let saved = match (done.fitted.model, &given.data) {
        (Learnt::Space(model), _) => {
            let report = report.certified(&*model)?;
            let labels = given.labels.clone();
            file::save(path, &TrainedSpace { model, columns: names, labels, id: None, report, unfinished })
        }
        (Learnt::Regression(model), _) => {
            let (input_std, classes, targets) = (Vec::new(), Vec::new(), given.targets.clone());
            let inputs = names;
            file::save(
                path,
                &TrainedRegression { model, inputs, input_std, targets, classes, report, unfinished },
            )
        }
        (Learnt::Series(model), Data::Series { series, .. }) => {
            let (series, exogenous_names) = (series.clone(), Vec::new());
            file::save(
                path,
                &TrainedSeries { model, series, exogenous: None, names, exogenous_names, report },
            )
        }
        _ => return Err(Failure::work("the model is none of series; this is a fault of latentgp")),
    };
    saved.map_err(Failure::work)
}
