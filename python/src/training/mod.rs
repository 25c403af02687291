//! From data and settings to trained models: the same steps as those of the command line.

mod latent;
mod narx;
mod regression;

pub use latent::{BayesianGplvmJob, GplvmJob, PpcaJob};
pub use narx::NarxJob;
pub use regression::RegressionJob;

use latentgp::data::Scale;
use latentgp::file::RegressionReport;
use latentgp::model::Fitted;
use std::time::Instant;

fn report<M>(
    of: &Fitted<M>,
    kernel: &str,
    scale: Option<Scale>,
    seed: u64,
    began: Instant,
) -> RegressionReport {
    RegressionReport {
        log_evidence: of.evidence,
        iterations: of.iterations,
        evaluations: of.evaluations,
        converged: of.converged,
        stop_reason: of.stop_reason,
        seconds: began.elapsed().as_secs_f64(),
        restarts: of.runs.clone(),
        kernel: kernel.into(),
        scale,
        seed,
        scores: Vec::new(),
        trace: of.trace.clone(),
    }
}
