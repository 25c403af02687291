//! Fits of several stages, for models that are learnt from inputs and targets.

use crate::error::Result;
use crate::mat::Mat;
use crate::model::latent::bayesian_gplvm::training::{OnProgress, Progress};
use crate::model::{Fitted, Model};
use crate::optim::{Adam, Lbfgs, Optimizer, Report, Step, StopReason};

/// What the stages of a run add up to.
pub(crate) struct Stages<'a> {
    restart: usize,
    watch: &'a OnProgress<'a>,
    iterations: usize,
    evaluations: usize,
    trace: Vec<f64>,
    last: Option<Report>,
}

impl<'a> Stages<'a> {
    pub(crate) fn new(restart: usize, watch: &'a OnProgress<'a>) -> Self {
        Stages { restart, watch, iterations: 0, evaluations: 0, trace: Vec::new(), last: None }
    }

    /// One more stage, unless an earlier one was asked to stop or `limit` is 0.
    pub(crate) fn stage(
        &mut self,
        model: &mut dyn Model,
        limit: usize,
        held: bool,
        noisy: bool,
    ) -> Result<()> {
        if self.asked() || limit == 0 {
            return Ok(());
        }
        let (before, restart, watch, trace) = (self.iterations, self.restart, self.watch, &mut self.trace);
        let mut see = |step: &Step<'_>| {
            trace.push(-step.value);
            let (iteration, bound) = (before + step.iteration, -step.value);
            watch(&Progress { restart, held, iteration, bound, u: step.u.into() })
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

    /// Whether the last stage was asked to stop.
    pub(crate) fn asked(&self) -> bool {
        self.last.is_some_and(|r| r.stop_reason == StopReason::Asked)
    }

    /// The model as the stages left it.
    pub(crate) fn done<M: Model>(self, model: M) -> Result<Fitted<M>> {
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
pub(crate) fn spread_along_dominant(x: &Mat, m: usize) -> Mat {
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
