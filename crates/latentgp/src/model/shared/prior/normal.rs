//! Independent normal inputs: x_nq ~ N(m_nq, p_nq), by default N(0, 1).

use super::{Arguments, Entry, InputPrior, KlGrad, Take, check_columns, gaussian_kl};
use crate::error::{Error, Result};
use crate::expectation::Gaussians;
use crate::mat::Mat;
use crate::param::{Param, Parameterized};

pub(super) const ENTRY: Entry = Entry {
    name: "normal",
    about: "N(0, I): every latent column has mean 0 and variance 1",
    example: "normal",
    arguments: &[],
    make,
};

fn make(_: &Arguments<'_>) -> Result<Box<dyn InputPrior>> {
    Ok(Box::new(Normal::standard(0, 0)))
}

/// x_nq ~ N(m_nq, p_nq), independent. New rows have N(0, I) whatever the others have.
#[derive(Clone, Debug, PartialEq)]
pub struct Normal {
    /// m, N×Q.
    pub mean: Mat,
    /// p, N×Q, above 0.
    pub var: Mat,
}

impl Normal {
    /// N(0, I) for all rows.
    pub fn standard(n: usize, q: usize) -> Self {
        let Gaussians { mean, var } = standard(n, q);
        Normal { mean, var }
    }

    /// Means and variances of every row.
    ///
    /// Errs when shapes disagree, a number is not finite or a variance is not above 0.
    ///
    /// ```
    /// use latentgp::{Mat, expectation::Gaussians, model::prior::Normal};
    /// let known = Gaussians::new(Mat::filled(3, 2, 0.5), Mat::filled(3, 2, 0.1))?;
    /// assert_eq!(Normal::new(known)?.var[(2, 1)], 0.1);
    /// # Ok::<(), latentgp::Error>(())
    /// ```
    pub fn new(of: Gaussians) -> Result<Self> {
        let Gaussians { mean, var } = Gaussians::new(of.mean, of.var)?;
        match var.as_slice().iter().find(|v| **v <= 0.0) {
            Some(bad) => Err(Error::invalid("a variance of the prior", "a number above 0", bad)),
            None => Ok(Normal { mean, var }),
        }
    }
}

/// N(0, I).
pub(super) fn standard(n: usize, q: usize) -> Gaussians {
    Gaussians { mean: Mat::zeros(n, q), var: Mat::filled(n, q, 1.0) }
}

impl Parameterized for Normal {
    fn params(&self) -> Vec<(String, &Param)> {
        Vec::new()
    }
    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        Vec::new()
    }
}

impl InputPrior for Normal {
    fn expression(&self) -> String {
        ENTRY.name.into()
    }

    fn bind(&self, n: usize, q: usize, columns: &[Vec<f64>]) -> Result<Box<dyn InputPrior>> {
        check_columns(&self.columns(), n, columns)?;
        Ok(Box::new(Normal::standard(n, q)))
    }

    fn sizes(&self) -> (usize, usize) {
        (self.mean.rows(), self.mean.cols())
    }

    fn kl(&self, mean: &Mat, var: &Mat, grads: Option<KlGrad<'_>>) -> Result<f64> {
        let (m, p) = (self.mean.as_slice(), self.var.as_slice());
        Ok(gaussian_kl(mean.as_slice(), var.as_slice(), m, p, grads.map(|to| (to.mean, to.var))))
    }

    fn marginals(&self) -> Gaussians {
        Gaussians { mean: self.mean.clone(), var: self.var.clone() }
    }

    fn new_rows(&self, n: usize, columns: &[Vec<f64>]) -> Result<Gaussians> {
        check_columns(&self.columns(), n, columns)?;
        Ok(standard(n, self.mean.cols()))
    }

    fn select_rows(&self, rows: &[usize]) -> Box<dyn InputPrior> {
        Box::new(Normal { mean: self.mean.select_rows(rows), var: self.var.select_rows(rows) })
    }

    fn arrays(&self) -> Vec<(&'static str, Mat)> {
        vec![("mean", self.mean.clone()), ("var", self.var.clone())]
    }

    fn restore(&self, n: usize, q: usize, take: &mut Take<'_>) -> Result<Box<dyn InputPrior>> {
        let (mean, var) = (take("mean", n, q)?, take("var", n, q)?);
        Ok(Box::new(Normal::new(Gaussians { mean, var })?))
    }
}
