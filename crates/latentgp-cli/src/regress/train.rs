//! Fits any of the regressions, once or for every fold.

use super::job::Job;
use super::rows::Rows;
use crate::failure::{Failure, Outcome};
use crate::train::{Checkpoint, Done, Task, train};
use latentgp::file::{Report, TrainedRegression};
use latentgp::recipe::{Data, Learnt};

/// What is maximised.
pub const WHAT: &str = "log evidence";

/// The rows as the library takes them.
pub fn pairs(job: &Job, rows: &Rows) -> Data {
    Data::Pairs {
        x: rows.x.clone(),
        x_std: rows.std.clone(),
        y: rows.y.clone(),
        classes: if job.classes() { rows.classes.len() } else { 0 },
    }
}

/// What came of a fit, as its model file holds it.
pub fn trained(job: &Job, rows: &Rows, done: Done) -> Outcome<TrainedRegression> {
    let report = Report::new(&done.fitted, &job.recipe, done.seconds);
    let Learnt::Regression(model) = done.fitted.model else {
        return Err(Failure::work("the model is no regression; this is a fault of latentgp"));
    };
    Ok(TrainedRegression {
        model,
        inputs: rows.inputs.clone(),
        input_std: rows.input_std.clone(),
        targets: rows.targets.clone(),
        classes: rows.classes.clone(),
        report,
        unfinished: done.unfinished,
    })
}

/// Fits the model to the rows; tells of its progress unless `quiet`.
pub fn fit(
    task: Task,
    job: &Job,
    rows: &Rows,
    quiet: bool,
    checkpoint: Option<Checkpoint>,
) -> Outcome<TrainedRegression> {
    trained(job, rows, train(task, WHAT, quiet, checkpoint)?)
}
