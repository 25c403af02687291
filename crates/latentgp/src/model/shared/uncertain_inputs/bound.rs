//! The part of uncertain inputs in a bound: their KL, and the gradients of their parameters.

use super::UncertainInputs;
use crate::error::Result;
use crate::mat::Mat;
use crate::model::shared::prior::{InputPrior, KlGrad, gaussian_kl};

impl UncertainInputs {
    /// The KL of all cells.
    pub(crate) fn kl(&self) -> Result<f64> {
        let missing = self.prior.kl(&self.mean.value, &self.var.value, None)?;
        Ok(missing + self.read_kl(None))
    }

    fn read_kl(&self, grads: Option<(&mut [f64], &mut [f64])>) -> f64 {
        let n = self.read.cells.len();
        if n == 0 {
            return 0.0;
        }
        let (zeros, ones) = (Mat::zeros(1, n), Mat::filled(1, n, 1.0));
        let (offset, ratio) = (self.read.offset.as_slice(), self.read.ratio.as_slice());
        gaussian_kl(offset, ratio, zeros.as_slice(), ones.as_slice(), grads)
    }

    /// From μ̄ and S̄ of all rows to the gradients of the parameters, those of −KL included, which are written to `slots`;
    /// the KL.
    pub(crate) fn pull(&self, mean_bar: &Mat, var_bar: &Mat, slots: &mut [f64]) -> Result<f64> {
        let (mean, rest) = slots.split_at_mut(self.cells.len());
        let (var, rest) = rest.split_at_mut(self.cells.len());
        for (c, &at) in self.cells.iter().enumerate() {
            mean[c] = mean_bar[at];
            var[c] = var_bar[at];
        }
        let grads = KlGrad { mean, var, params: &mut [] };
        let missing = self.prior.kl(&self.mean.value, &self.var.value, Some(grads))?;
        let (offset, rest) = rest.split_at_mut(self.read.cells.len());
        let (ratio, std) = rest.split_at_mut(self.read.cells.len());
        std.fill(0.0);
        let (nu, r) = (self.read.offset.as_slice(), self.read.ratio.as_slice());
        for (c, &at) in self.read.cells.iter().enumerate() {
            let prior = self.prior_of(at);
            let (m, s) = (mean_bar[at], var_bar[at]);
            let root = prior.var.sqrt();
            offset[c] = m * root;
            ratio[c] = s * prior.var;
            if let Some(k) = self.read.learnt(at.1) {
                let (m_slope, p_slope) = prior.slopes;
                let own = self.read.std.as_slice()[k];
                std[k] +=
                    m * (2.0 * own * m_slope + nu[c] * prior.root_slope) + s * r[c] * 2.0 * own * p_slope;
            }
        }
        Ok(missing + self.read_kl(Some((offset, ratio))))
    }
}
