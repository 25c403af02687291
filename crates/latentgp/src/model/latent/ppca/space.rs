//! Probabilistic PCA with its table as one of the latent spaces, and its part of a model file.

use super::Ppca;
use crate::data::Scaling;
use crate::error::Result;
use crate::expectation::Gaussians;
use crate::file::{ModelFile, damaged};
use crate::mat::Mat;
use crate::model::latent::space::put_usual;
use crate::model::{LatentSpace, Placed};
use crate::posterior::Prediction;

/// Principal components, and the table that they are of.
#[derive(Clone)]
pub struct PpcaSpace {
    /// The model.
    pub model: Ppca,
    /// Y as given, N×D, NaN where a cell is missing.
    pub y: Mat,
}

impl PpcaSpace {
    /// The inverse of [`store`](LatentSpace::store) for data and their units.
    pub(crate) fn restore(file: &mut ModelFile, y: Mat, scaling: Scaling) -> Result<Self> {
        let (d, latent_dim): (usize, usize) = (y.cols(), file.field("latent_dim")?);
        let (w, mean) = (file.take("w", d, latent_dim)?, file.take("mean", 1, d)?);
        let noise = file.noise(d)?.value.into_vec();
        let eigenvalues = file.tensor("eigenvalues")?.clone();
        let finite = w.is_finite() && mean.is_finite() && eigenvalues.is_finite();
        let positive = noise.iter().all(|v| *v > 0.0 && v.is_finite());
        if !(finite && positive && latent_dim > 0) {
            return Err(damaged("a number of it is outside its domain"));
        }
        let model = Ppca {
            w,
            mean: mean.into_vec(),
            noise,
            scaling,
            eigenvalues: eigenvalues.into_vec(),
            trace: file.tensor("trace")?.as_slice().to_vec(),
            converged: file.field("converged")?,
        };
        Ok(PpcaSpace { model, y })
    }
}

impl LatentSpace for PpcaSpace {
    fn name(&self) -> &'static str {
        "ppca"
    }

    fn title(&self) -> &'static str {
        "Probabilistic PCA"
    }

    fn objective(&self) -> &'static str {
        "log evidence"
    }

    fn y(&self) -> &Mat {
        &self.y
    }

    fn latent_dim(&self) -> usize {
        self.model.latent_dim()
    }

    fn scaling(&self) -> &Scaling {
        &self.model.scaling
    }

    fn noise(&self) -> &[f64] {
        &self.model.noise
    }

    fn noise_variance(&self) -> Vec<f64> {
        self.model.noise_variance()
    }

    fn evidence(&self) -> Result<f64> {
        self.model.log_likelihood(&self.y)
    }

    fn latent(&self) -> Result<Gaussians> {
        self.project(&self.y)
    }

    fn transform(&self, y: &Mat) -> Result<Placed> {
        Ok(Placed { q: self.project(y)?, log_density: self.log_density(y, 0, 0)? })
    }

    fn project(&self, y: &Mat) -> Result<Gaussians> {
        let at = self.model.transform(y)?;
        let var = Mat::from_fn(y.rows(), self.latent_dim(), |i, k| at.cov[i][(k, k)]);
        Gaussians::new(at.mean, var)
    }

    fn log_density(&self, y: &Mat, _: usize, _: u64) -> Result<Vec<f64>> {
        (0..y.rows()).map(|i| self.model.log_likelihood(&y.slice_rows(i, i + 1))).collect()
    }

    fn reconstruct(&self, q: &Gaussians) -> Result<Prediction> {
        self.model.reconstruct_uncertain(q)
    }

    fn impute(&self, y: &Mat) -> Result<Prediction> {
        self.model.impute(y)
    }

    /// ‖w_k‖².
    fn relevance(&self) -> Result<Vec<f64>> {
        Ok((0..self.latent_dim()).map(|k| self.model.w.col(k).iter().map(|w| w * w).sum()).collect())
    }

    fn store(&self, file: &mut ModelFile) -> Result<()> {
        put_usual(self.name(), file)?;
        let (m, row) = (&self.model, |v: &[f64]| Mat::from_vec(1, v.len(), v.to_vec()));
        file.set("converged", m.converged)?;
        file.put("mean", &row(&m.mean)?);
        file.put("eigenvalues", &row(&m.eigenvalues)?);
        file.put("w", &m.w);
        file.put("noise", &row(&m.noise)?);
        Ok(())
    }

    fn boxed(&self) -> Box<dyn LatentSpace> {
        Box::new(self.clone())
    }

    fn loadings(&self) -> Result<Option<(Mat, Vec<f64>)>> {
        let m = &self.model;
        let w = Mat::from_fn(m.w.rows(), m.w.cols(), |i, k| m.w[(i, k)] * m.scaling.scale[i]);
        Ok(Some((w, m.scaling.undo_mean(&Mat::from_rows(&[&m.mean[..]]))?.into_vec())))
    }
}
