//! Fits of several stages from several starts, for models that are learnt from inputs and targets.

use super::Model;
use super::training::{OnProgress, Progress};
use crate::error::Result;
use crate::mat::Mat;
use crate::optim::{Adam, Lbfgs, Optimizer, Report, Step, StopReason};
use rayon::prelude::*;

/// A fitted model and how it got there.
#[derive(Clone, Debug)]
pub struct Fitted<M> {
    /// The model.
    pub model: M,
    /// The log evidence, or its bound, of the data as given.
    pub evidence: f64,
    /// Iterations of the run that was kept, all stages.
    pub iterations: usize,
    /// Evaluations of that run.
    pub evaluations: usize,
    /// Whether its last stage converged.
    pub converged: bool,
    /// Why that stage stopped.
    pub stop_reason: StopReason,
    /// The evidence after each iteration of that run.
    pub trace: Vec<f64>,
    /// The evidence that each restart reached; `None` where one failed.
    pub runs: Vec<Option<f64>>,
}

/// Makes `restarts` runs, at least one, in parallel; keeps the best, and errs when all fail.
pub(super) fn best_of<M: Send>(
    restarts: usize,
    run: impl Fn(usize) -> Result<Fitted<M>> + Sync,
) -> Result<Fitted<M>> {
    let runs: Vec<Result<Fitted<M>>> = (0..restarts.max(1)).into_par_iter().map(&run).collect();
    let all = runs.iter().map(|r| r.as_ref().ok().map(|f| f.evidence)).collect();
    let mut best: Option<Fitted<M>> = None;
    let mut failure = None;
    for run in runs {
        match run {
            Ok(fit) if best.as_ref().is_none_or(|b| fit.evidence > b.evidence) => best = Some(fit),
            Ok(_) => {}
            Err(e) => failure = failure.or(Some(e)),
        }
    }
    let mut best = best.ok_or_else(|| failure.expect("at least one run"))?;
    best.runs = all;
    Ok(best)
}

/// What the stages of a run add up to.
pub(super) struct Stages<'a> {
    restart: usize,
    watch: &'a OnProgress<'a>,
    iterations: usize,
    evaluations: usize,
    trace: Vec<f64>,
    last: Option<Report>,
}

impl<'a> Stages<'a> {
    pub(super) fn new(restart: usize, watch: &'a OnProgress<'a>) -> Self {
        Stages { restart, watch, iterations: 0, evaluations: 0, trace: Vec::new(), last: None }
    }

    /// One more stage, unless an earlier one was asked to stop or `limit` is 0.
    pub(super) fn stage(
        &mut self,
        model: &mut dyn Model,
        limit: usize,
        held: bool,
        noisy: bool,
    ) -> Result<()> {
        let asked = self.last.is_some_and(|r| r.stop_reason == StopReason::Asked);
        if asked || limit == 0 {
            return Ok(());
        }
        let (before, restart, watch, trace) = (self.iterations, self.restart, self.watch, &mut self.trace);
        let mut see = |step: &Step<'_>| {
            trace.push(-step.value);
            watch(&Progress { restart, held, iteration: before + step.iteration, bound: -step.value })
        };
        let how: Box<dyn Optimizer> = match noisy {
            true => Box::new(Adam { max_iterations: limit, ..Adam::default() }),
            false => Box::new(Lbfgs { max_iterations: limit, ..Lbfgs::default() }),
        };
        let report = super::fit(model, &*how, &mut see)?;
        self.iterations += report.iterations;
        self.evaluations += report.evaluations;
        self.last = Some(report);
        Ok(())
    }

    /// The model as the stages left it.
    pub(super) fn done<M: Model>(self, model: M) -> Result<Fitted<M>> {
        let evidence = model.log_evidence(None)?;
        Ok(Fitted {
            evidence,
            model,
            iterations: self.iterations,
            evaluations: self.evaluations,
            converged: self.last.is_some_and(|r| r.converged),
            stop_reason: self.last.map_or(StopReason::MaxIterations, |r| r.stop_reason),
            trace: self.trace,
            runs: vec![Some(evidence)],
        })
    }
}

/// `m` rows of `x`, evenly spread along the column of the largest variance.
pub(super) fn spread_along_dominant(x: &Mat, m: usize) -> Mat {
    let n = x.rows();
    let variance = |k: usize| {
        let column = x.col(k);
        let mean = column.iter().sum::<f64>() / n as f64;
        column.iter().map(|v| (v - mean).powi(2)).sum::<f64>()
    };
    let variances: Vec<f64> = (0..x.cols()).map(variance).collect();
    let dominant = (0..x.cols()).fold(0, |best, k| if variances[k] > variances[best] { k } else { best });
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| x[(*a, dominant)].total_cmp(&x[(*b, dominant)]).then(a.cmp(b)));
    let rows: Vec<usize> = (0..m).map(|j| order[(2 * j + 1) * n / (2 * m)]).collect();
    x.select_rows(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_spread_along_the_widest_column() {
        let x =
            Mat::from_fn(
                8,
                2,
                |i, j| if j == 0 { 0.1 * (i as f64) } else { [5., 1., 7., 3., 0., 6., 2., 4.][i] },
            );
        assert_eq!(spread_along_dominant(&x, 4).col(1), [1.0, 3.0, 5.0, 7.0]);
        assert_eq!(spread_along_dominant(&x, 8).col(1), (0..8).map(f64::from).collect::<Vec<_>>());
    }
}
