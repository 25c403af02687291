//! Scores of rows that a model has not seen: fold by fold, or each row as the others predict it.

use super::job::Job;
use super::rows::Rows;
use super::train;
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::train::Task;
use crate::words::count;
use latentgp::Mat;
use latentgp::metrics::{kfold, stratified_kfold};
use latentgp::model::{Answers, Regressor, Scores};
use latentgp::optim::StopReason;

/// Scores of every row, predicted by a model of the other folds, and what the user should know of them.
///
/// The rows of a class are dealt to the folds in equal shares. A class of a single row is not known where that row
/// is predicted: it has no probability there.
pub fn folds(job: &Job, rows: &Rows, k: usize) -> Outcome<(Vec<Option<Scores>>, Vec<String>)> {
    let n = rows.y.rows();
    let folds = match job.classes() {
        true => stratified_kfold(&labels(rows), k, job.recipe.seed)?,
        false => kfold(n, k, job.recipe.seed)?,
    };
    let (mut answers, mut notes) = (Vec::with_capacity(k), Vec::new());
    for (number, fold) in folds.iter().enumerate() {
        let rest: Vec<usize> = (0..n).filter(|i| fold.binary_search(i).is_err()).collect();
        let place = format!("fold {} of {k}", number + 1);
        if interrupt::asked() {
            return Err(Failure::interrupted(format!("interrupted before {place}")));
        }
        let (learnt, held) = (rows.part(&rest), rows.part(fold));
        let there = predicted(job, &learnt, &held, &place, &mut notes).map_err(|e| e.within(&place))?;
        answers.push(there.ok_or_else(|| Failure::interrupted(format!("interrupted in {place}")))?);
    }
    let all = Answers::gather(answers, &folds.concat())?;
    Ok((all.scores(&rows.y)?, notes))
}

fn labels(rows: &Rows) -> Vec<usize> {
    rows.y.as_slice().iter().map(|c| *c as usize).collect()
}

/// The rows held out as those learnt from predict them; `None` when the fit was interrupted.
fn predicted(
    job: &Job,
    learnt: &Rows,
    held: &Rows,
    place: &str,
    notes: &mut Vec<String>,
) -> Outcome<Option<Answers>> {
    let fit = |rows: &Rows| -> Outcome<Option<Answers>> {
        let task = Task::new(job.recipe.clone(), train::pairs(job, rows));
        let trained = train::fit(task, job, rows, true, None)?;
        match trained.report.stop_reason {
            StopReason::Asked => Ok(None),
            _ => Ok(Some(trained.model.predict(&held.x, held.variances(&*trained.model).as_ref())?)),
        }
    };
    let here = labels(learnt);
    let known: Vec<usize> = match job.classes() {
        true => (0..learnt.classes.len()).filter(|c| here.contains(c)).collect(),
        false => return fit(learnt),
    };
    if known.len() == learnt.classes.len() {
        return fit(learnt);
    }
    for class in (0..learnt.classes.len()).filter(|c| !known.contains(c)) {
        let rows = labels(held).iter().filter(|l| **l == class).count();
        notes.push(format!(
            "{place}: no other row is of the class `{}`, whose {} here can only be wrong; leave the class out, or \
             gather more of it",
            learnt.classes[class],
            count(rows, "row")
        ));
    }
    let few = match known[..] {
        [_] => Answers::Classes(Mat::filled(held.y.rows(), 1, 1.0)),
        _ => {
            let code = |c: &usize| known.iter().position(|k| k == c).unwrap_or(0) as f64;
            let fewer = Rows {
                y: Mat::column(&here.iter().map(code).collect::<Vec<_>>()),
                classes: known.iter().map(|&c| learnt.classes[c].clone()).collect(),
                ..learnt.part(&(0..here.len()).collect::<Vec<_>>())
            };
            match fit(&fewer)? {
                Some(few) => few,
                None => return Ok(None),
            }
        }
    };
    let Answers::Classes(few) = few else { return Err(Failure::work("classes have probabilities")) };
    let mut all = Mat::zeros(few.rows(), learnt.classes.len());
    for i in 0..few.rows() {
        known.iter().enumerate().for_each(|(k, &c)| all[(i, c)] = few[(i, k)]);
    }
    Ok(Some(Answers::Classes(all)))
}

/// Scores of every row as the others predict it, with the parameters of all.
pub fn leave_one_out(model: &dyn Regressor, rows: &Rows) -> Outcome<Vec<Option<Scores>>> {
    let (Some(mut there), Some(noise)) = (model.left_out()?, model.noise_variance()) else {
        return Err(Failure::usage("--loo works with --model gp"));
    };
    for i in 0..there.var.rows() {
        there.var.row_mut(i).iter_mut().zip(&noise).for_each(|(v, s)| *v += s);
    }
    Ok(Answers::Values(there).scores(&rows.y)?)
}
