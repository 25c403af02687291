//! What was given of uncertain inputs, in a model file and out of it.

use super::{ErrorEvidence, InputOptions, MOST_LATENT, Treatment, UncertainInputs};
use crate::error::{Error, Result};
use crate::expectation::Gaussians;
use crate::file::{ModelFile, damaged};
use crate::mat::Mat;
use crate::model::shared::prior::Normal;

impl UncertainInputs {
    /// Writes all that was given into a model file.
    pub(crate) fn store(&self, file: &mut ModelFile) -> Result<()> {
        let given = self.given();
        file.put("x", &given.mean);
        file.put("x.var", &given.var);
        file.put("prior.mean", &self.prior.mean);
        file.put("prior.var", &self.prior.var);
        let options = self.options();
        if options.treatment == Treatment::Inferred || options.latent > 0 {
            file.set("uncertain", Some(options))?;
        }
        if !self.evidence.is_empty() {
            file.set("error_evidence", &self.evidence)?;
        }
        Ok(())
    }

    /// The inverse of [`store`](Self::store), but for x itself; files of version 0.1 have averages.
    pub(crate) fn restore(x: Mat, file: &mut ModelFile) -> Result<Self> {
        let given = Gaussians { var: file.take("x.var", x.rows(), x.cols())?, mean: x };
        let array = |name: &str| file.tensor(name).cloned();
        let prior = Normal { mean: array("prior.mean")?, var: array("prior.var")? };
        let averaged = InputOptions { treatment: Treatment::Averaged, ..InputOptions::default() };
        let how: InputOptions = file.field::<Option<InputOptions>>("uncertain")?.unwrap_or(averaged);
        if prior.mean.len() != prior.var.len()
            || !prior.mean.is_finite()
            || prior.var.as_slice().iter().any(|v| !(*v > 0.0 && v.is_finite()))
            || given.var.as_slice().iter().any(|v| !(*v >= 0.0 && v.is_finite()))
            || how.learn.iter().any(|j| *j >= given.dim())
            || how.latent > MOST_LATENT
        {
            return Err(damaged("its inputs or their variances are outside their domain"));
        }
        let mut all = Self::of_given(given, prior, &how)?;
        all.evidence = file.field::<Option<Vec<ErrorEvidence>>>("error_evidence")?.unwrap_or_default();
        match all.evidence.iter().all(|e| how.learn.contains(&e.column)) {
            true => Ok(all),
            false => Err(damaged("its errors of inputs are those of other columns")),
        }
    }

    /// What is known of the observed columns of X, with NaN in the means of missing cells; with [`prior`](Self::prior)
    /// it is all that was given.
    pub(crate) fn given(&self) -> Gaussians {
        let mut known = self.known.clone();
        self.cells.iter().for_each(|&at| known.mean[at] = f64::NAN);
        if self.latent == 0 {
            return known;
        }
        let observed: Vec<usize> = (0..known.dim() - self.latent).collect();
        Gaussians { mean: known.mean.select_cols(&observed), var: known.var.select_cols(&observed) }
    }

    /// The inverse of [`given`](Self::given) and [`options`](Self::options), to the bit.
    pub(crate) fn of_given(given: Gaussians, prior: Normal, how: &InputOptions) -> Result<Self> {
        let mut all = UncertainInputs::of(&given.mean, given.var, how.learn.clone(), how)?;
        if prior.mean.len() != all.cells.len() {
            return Err(Error::shape("priors of missing inputs", all.cells.len(), prior.mean.len()));
        }
        all.prior = prior;
        Ok(all)
    }
}
