//! Where a fit starts: what the user gives, and what follows from the data.

use crate::failure::{Failure, Outcome};
use crate::train::{Task, train};
use crate::{out, trained};
use latentgp::Mat;
use latentgp::data::table::Table;
use latentgp::model::{InducingInit, Init};
use latentgp::recipe::{Choice, Data, Learnt};
use std::path::Path;

/// Latent dimensions of a map.
const MAP: usize = 2;

/// The positions of a table, or of the rows of a model.
fn read(file: &str, inducing: bool) -> Outcome<Mat> {
    if Path::new(file).extension().is_some_and(|e| e == "lgp") {
        let model = trained::load(Path::new(file))?.model;
        return match (inducing, model.inducing()) {
            (false, _) => Ok(model.latent()?.mean),
            (true, Some(z)) => Ok(z.clone()),
            (true, None) => Err(Failure::data(format!("{file}: this model has no inducing inputs"))),
        };
    }
    let table = Table::read(file).map_err(Failure::data)?;
    table.numeric(&table.numeric_columns()).map_err(Failure::data)
}

/// Whether it is a file rather than a name.
fn is_file(text: &str) -> bool {
    Table::file(text).is_some_and(Path::is_file)
}

/// `--init`.
pub fn positions(text: &str) -> Outcome<Init> {
    match is_file(text) {
        true => Ok(Init::given(&read(text, false)?)),
        false => Ok(text.parse()?),
    }
}

/// `--inducing-init`.
pub fn inducing(text: &str) -> Outcome<InducingInit> {
    match is_file(text) {
        true => Ok(InducingInit::given(&read(text, true)?)),
        false => Ok(text.parse()?),
    }
}

/// The task with what follows from its data, which is told in one line each; `map` where a picture of two dimensions is to
/// show what there is.
pub fn settled(mut task: Task, map: bool, quiet: bool) -> Outcome<Task> {
    let Data::Table { y, .. } = &task.data else { return Ok(task) };
    let (recipe, mut choices) = task.recipe.chosen(y);
    task.recipe = recipe;
    let pilot = task.recipe.pilot(y);
    // A map does without it where more dimensions are more than the rule can take.
    if map && pilot.as_ref().is_some_and(|pilot| pilot.job(task.data.clone(), None).is_err()) {
        task.recipe.latent_dim = Some(MAP);
    } else if let Some(pilot) = pilot {
        let first = train(Task::new(pilot, task.data.clone()), task.recipe.objective(), true, None)?;
        let Learnt::Space(space) = &first.fitted.model else {
            return Err(Failure::work("the model is no latent space; this is a fault of latentgp"));
        };
        let (recipe, choice) = task.recipe.with_relevant(&space.relevance()?, map);
        task.recipe = recipe;
        choices.insert(0, choice);
    }
    // What cannot be fitted is told of alone.
    task.recipe.job(task.data.clone(), None)?;
    for Choice { option, value, reason } in choices {
        out::note(quiet, format!("--{} {value}: {reason}", option.replace('_', "-")));
    }
    Ok(task)
}
