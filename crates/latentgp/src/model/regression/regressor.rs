//! Any of the regressions behind one door: what a model file holds and a command line predicts from.
//!
//! ```text
//! gp, sparse, spgp-dr, vdmgp      answers are means and variances of observations, σ² included
//! laplace, svgp                   answers are class probabilities, or means and variances of counts
//! ```

use crate::data::{Scale, Scaling};
use crate::error::{Error, Result};
use crate::expectation::correlated::uncertain_columns;
use crate::expectation::{GaussHermite, Gaussians, Rule, Unscented};
use crate::kernel::Kernel;
use crate::likelihood::{Latents, Observations};
use crate::mat::Mat;
use crate::model::{
    Answers, Laplace, Model, Regression, SparseRegression, SpgpDr, Svgp, Vdmgp, noise_at_floor,
};
use crate::param::Parameterized;
use crate::posterior::Posterior;

/// Points of Gauss-Hermite in each uncertain column.
const POINTS: usize = 5;

/// A regression of any kind. The inputs of all are in the units of the data.
#[derive(Clone)]
pub enum Regressor {
    /// Exact, Gaussian noise.
    Gp(Box<Regression>),
    /// Collapsed bound, Gaussian noise.
    Sparse(Box<SparseRegression>),
    /// FITC on a learned projection.
    SpgpDr(Box<SpgpDr>),
    /// A projection that is integrated out.
    Vdmgp(Box<Vdmgp>),
    /// Classes or counts by Laplace's approximation, on inputs in these units.
    Laplace(Box<Laplace>, Scaling),
    /// Classes or counts by a sparse variational posterior, on inputs in these units.
    Svgp(Box<Svgp>, Scaling),
}

impl Regressor {
    /// The model's name: `gp`, `sparse`, `spgp-dr` or `vdmgp`.
    pub fn name(&self) -> &'static str {
        match self {
            Regressor::Gp(_) | Regressor::Laplace(..) => "gp",
            Regressor::Sparse(_) | Regressor::Svgp(..) => "sparse",
            Regressor::SpgpDr(_) => "spgp-dr",
            Regressor::Vdmgp(_) => "vdmgp",
        }
    }

    /// As a model.
    pub fn model(&self) -> &dyn Model {
        match self {
            Regressor::Gp(m) => &**m,
            Regressor::Sparse(m) => &**m,
            Regressor::SpgpDr(m) => &**m,
            Regressor::Vdmgp(m) => &**m,
            Regressor::Laplace(m, _) => &**m,
            Regressor::Svgp(m, _) => &**m,
        }
    }

    /// As a set of parameters, to be changed.
    pub fn parameters_mut(&mut self) -> &mut dyn Parameterized {
        match self {
            Regressor::Gp(m) => &mut **m,
            Regressor::Sparse(m) => &mut **m,
            Regressor::SpgpDr(m) => &mut **m,
            Regressor::Vdmgp(m) => &mut **m,
            Regressor::Laplace(m, _) => &mut **m,
            Regressor::Svgp(m, _) => &mut **m,
        }
    }

    /// The kernel.
    pub fn kernel(&self) -> &dyn Kernel {
        match self {
            Regressor::Gp(m) => &*m.kernel,
            Regressor::Sparse(m) => &*m.kernel,
            Regressor::SpgpDr(m) => &*m.kernel,
            Regressor::Vdmgp(m) => &*m.kernel,
            Regressor::Laplace(m, _) => &*m.kernel,
            Regressor::Svgp(m, _) => &*m.kernel,
        }
    }

    /// Classes or counts, where that is what was observed.
    pub fn observations(&self) -> Option<&Observations> {
        match self {
            Regressor::Laplace(m, _) => Some(&m.observations),
            Regressor::Svgp(m, _) => Some(&m.observations),
            _ => None,
        }
    }

    /// The name of the likelihood: `gaussian`, or one of [`names`](crate::likelihood::names).
    pub fn likelihood(&self) -> &'static str {
        self.observations().map_or("gaussian", Observations::name)
    }

    /// N, inputs and outputs (columns of Y; one where classes or counts are observed).
    pub fn sizes(&self) -> (usize, usize, usize) {
        match self {
            Regressor::Gp(m) => (m.x.rows(), m.x.cols(), m.outputs.y.cols()),
            Regressor::Sparse(m) => (m.outputs.y.rows(), m.z.value.cols(), m.outputs.y.cols()),
            Regressor::SpgpDr(m) => m.data.sizes(),
            Regressor::Vdmgp(m) => m.data.sizes(),
            Regressor::Laplace(m, _) => (m.x.rows(), m.x.cols(), 1),
            Regressor::Svgp(m, _) => (m.x.rows(), m.x.cols(), 1),
        }
    }

    /// M, where there are inducing inputs.
    pub fn inducing(&self) -> Option<usize> {
        match self {
            Regressor::Gp(_) | Regressor::Laplace(..) => None,
            Regressor::Sparse(m) => Some(m.z.value.rows()),
            Regressor::SpgpDr(m) => Some(m.z.value.rows()),
            Regressor::Vdmgp(m) => Some(m.z.value.rows()),
            Regressor::Svgp(m, _) => Some(m.z.value.rows()),
        }
    }

    /// K, where the inputs are projected.
    pub fn latent_dim(&self) -> Option<usize> {
        match self {
            Regressor::SpgpDr(m) => Some(m.p.value.rows()),
            Regressor::Vdmgp(m) => Some(m.mean.value.rows()),
            _ => None,
        }
    }

    /// X and Y of the training as they were given, to rounding; NaN where a cell is missing. Classes are
    /// their numbers.
    pub fn data(&self) -> Result<(Mat, Mat)> {
        let undo = |s: &Option<Scaling>, x: &Mat| match s {
            Some(s) => s.undo_mean(x),
            None => Ok(x.clone()),
        };
        match self {
            Regressor::Gp(m) => Ok((undo(&m.inputs, &m.x)?, m.scaling.undo_mean(&m.outputs.y)?)),
            Regressor::Sparse(m) => {
                Ok((undo(&m.inputs, &m.x.given().mean)?, m.scaling.undo_mean(&m.outputs.y)?))
            }
            Regressor::SpgpDr(m) => {
                Ok((m.data.inputs.undo_mean(&m.data.x)?, m.data.outputs.undo_mean(&m.data.y)?))
            }
            Regressor::Vdmgp(m) => {
                Ok((m.data.inputs.undo_mean(&m.data.x)?, m.data.outputs.undo_mean(&m.data.y)?))
            }
            Regressor::Laplace(m, s) => Ok((s.undo_mean(&m.x)?, m.observations.column())),
            Regressor::Svgp(m, s) => Ok((s.undo_mean(&m.x)?, m.observations.column())),
        }
    }

    /// σ² of every output in the units of the data, where the noise is Gaussian.
    pub fn noise_variance(&self) -> Option<Vec<f64>> {
        let of = |noise: f64, s: &Scaling| Some(s.scale.iter().map(|scale| noise * scale * scale).collect());
        match self {
            Regressor::Gp(m) => of(m.noise.get(), &m.scaling),
            Regressor::Sparse(m) => of(m.noise.get(), &m.scaling),
            Regressor::SpgpDr(m) => of(m.noise.get(), &m.data.outputs),
            Regressor::Vdmgp(m) => of(m.noise.get(), &m.data.outputs),
            Regressor::Laplace(..) | Regressor::Svgp(..) => None,
        }
    }

    /// Whether the noise ended at its floor, see [`noise_at_floor`]: there is none, or the fit is degenerate.
    pub fn noise_at_floor(&self) -> bool {
        match self {
            Regressor::Gp(m) => noise_at_floor(&m.noise),
            Regressor::Sparse(m) => noise_at_floor(&m.noise),
            Regressor::SpgpDr(m) => noise_at_floor(&m.noise),
            Regressor::Vdmgp(m) => noise_at_floor(&m.noise),
            Regressor::Laplace(..) | Regressor::Svgp(..) => false,
        }
    }

    /// Whether inputs may have missing cells, in the training and in predictions.
    pub fn takes_missing_inputs(&self) -> bool {
        matches!(self, Regressor::Sparse(_))
    }

    /// x with every missing cell as N(m, v), mean and variance of what was observed in its column: the prior
    /// that the training gave it. `None` where no cell is missing.
    fn filled(&self, x: &Mat, var: Option<&Mat>) -> Result<Option<Gaussians>> {
        let missing = x.as_slice().iter().any(|v| v.is_nan());
        if !missing || !self.takes_missing_inputs() {
            return Ok(None);
        }
        let columns = Scaling::fit(&self.data()?.0, Scale::Standardize)?;
        if x.cols() != columns.mean.len() {
            return Err(Error::shape("columns of the inputs", columns.mean.len(), x.cols()));
        }
        if let Some(var) = var.filter(|v| v.shape() != x.shape()) {
            return Err(Error::shape("variances of the inputs", x.shape(), var.shape()));
        }
        let cell = |i: usize, j: usize| match x[(i, j)].is_nan() {
            true => (columns.mean[j], columns.scale[j] * columns.scale[j]),
            false => (x[(i, j)], var.map_or(0.0, |v| v[(i, j)])),
        };
        let mean = Mat::from_fn(x.rows(), x.cols(), |i, j| cell(i, j).0);
        Gaussians::new(mean, Mat::from_fn(x.rows(), x.cols(), |i, j| cell(i, j).1)).map(Some)
    }

    /// Predicts observations at x, N×Q; where `var` is given, x is only known up to these variances.
    ///
    /// NaN is a missing cell, which sparse regression takes at the prior of its column. Errs when shapes
    /// disagree and when an input is missing that must not be.
    pub fn predict(&self, x: &Mat, var: Option<&Mat>) -> Result<Answers> {
        match self {
            // The approximation knows how the functions of classes vary together, which a posterior does not.
            Regressor::Laplace(m, s) if var.is_none() || self.has_classes() => {
                let approximation = m.approximation()?;
                self.around(s, x, var, &|x| approximation.latents(x))
            }
            _ => self.predict_with(&self.model().posterior()?, x, var),
        }
    }

    /// Whether one of several classes is observed, each with a function of its own.
    fn has_classes(&self) -> bool {
        self.observations().is_some_and(|o| o.latents() > 1)
    }

    /// Answers from latent values at certain inputs; at uncertain ones the average of probabilities over nodes around each,
    /// as the functions of classes then vary together.
    fn around(
        &self,
        s: &Scaling,
        x: &Mat,
        var: Option<&Mat>,
        latents: &dyn Fn(&Mat) -> Result<Latents>,
    ) -> Result<Answers> {
        let Some(var) = var else { return self.answers(latents(&s.apply(x)?)?) };
        let q = scaled(s, x, var)?;
        let nodes: Vec<(Vec<f64>, Mat)> =
            (0..q.n()).map(|n| nodes_around(q.mean.row(n), q.var.row(n))).collect();
        let mut at = Mat::zeros(nodes.iter().map(|(w, _)| w.len()).sum(), q.dim());
        let rows = nodes.iter().flat_map(|(_, nodes)| (0..nodes.rows()).map(|r| nodes.row(r)));
        rows.enumerate().for_each(|(i, row)| at.row_mut(i).copy_from_slice(row));
        let Answers::Classes(each) = self.answers(latents(&at)?)? else { unreachable!("classes") };
        let (mut average, mut from) = (Mat::zeros(q.n(), each.cols()), 0);
        for (n, (weights, _)) in nodes.iter().enumerate() {
            for (i, weight) in weights.iter().enumerate() {
                let sum = average.row_mut(n).iter_mut().zip(each.row(from + i));
                sum.for_each(|(sum, p)| *sum += weight * p);
            }
            from += weights.len();
        }
        Ok(Answers::Classes(average))
    }

    /// The same with a posterior of the model that is there already.
    pub fn predict_with(&self, posterior: &Posterior, x: &Mat, var: Option<&Mat>) -> Result<Answers> {
        if let Some(q) = self.filled(x, var)? {
            return self.predict_with(posterior, &q.mean, Some(&q.var));
        }
        let Some(s) = self.outer_scaling() else {
            let mut there = match var {
                None => posterior.predict(x)?,
                Some(var) => posterior.predict_uncertain(&Gaussians::new(x.clone(), var.clone())?)?,
            };
            let noise = posterior.noise_variance();
            for i in 0..there.var.rows() {
                there.var.row_mut(i).iter_mut().zip(&noise).for_each(|(v, s)| *v += s);
            }
            return Ok(Answers::Values(there));
        };
        match var {
            Some(var) if !self.has_classes() => {
                self.answers(posterior.predict_uncertain(&scaled(s, x, var)?)?.into())
            }
            _ => self.around(s, x, var, &|x| Ok(posterior.predict(x)?.into())),
        }
    }

    /// The units of the inputs, where the model itself does not know them.
    pub(crate) fn outer_scaling(&self) -> Option<&Scaling> {
        match self {
            Regressor::Laplace(_, s) | Regressor::Svgp(_, s) => Some(s),
            _ => None,
        }
    }

    fn answers(&self, latents: Latents) -> Result<Answers> {
        Answers::of(self.observations().expect("a likelihood that is not Gaussian"), latents)
    }
}

/// Inputs with variances, scaled.
fn scaled(s: &Scaling, x: &Mat, var: &Mat) -> Result<Gaussians> {
    if var.shape() != x.shape() {
        return Err(Error::shape("variances of the inputs", x.shape(), var.shape()));
    }
    let x = s.apply(x)?;
    let var = Mat::from_fn(x.rows(), x.cols(), |i, j| var[(i, j)] / s.scale[j] / s.scale[j]);
    Gaussians::new(x, var)
}

/// Weights and nodes around an input: of Gauss-Hermite where few columns are uncertain, else the sigma points.
fn nodes_around(mean: &[f64], var: &[f64]) -> (Vec<f64>, Mat) {
    let uncertain = uncertain_columns(var);
    let rule = GaussHermite::new(POINTS);
    let (weights, xi) = match uncertain.len() {
        0 => (vec![1.0], Mat::zeros(1, 0)),
        r @ 1..=2 => (rule.weights(r), rule.nodes(r)),
        r => (Unscented.weights(r), Unscented.nodes(r)),
    };
    let mut nodes = Mat::from_fn(weights.len(), mean.len(), |_, j| mean[j]);
    for (k, &j) in uncertain.iter().enumerate() {
        (0..nodes.rows()).for_each(|s| nodes[(s, j)] += var[j].sqrt() * xi[(s, k)]);
    }
    (weights, nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Rbf;
    use crate::likelihood::Observations;
    use crate::model::{Regression, SparseOptions};

    #[test]
    fn a_missing_input_is_the_prior_of_its_column() {
        let x = Mat::from_fn(30, 2, |i, j| (1.7 * i as f64 + j as f64).sin() * (1.0 + j as f64) + 5.0);
        let y = Mat::from_fn(30, 1, |i, _| x[(i, 0)].sin() + x[(i, 1)]);
        let options = SparseOptions { inducing: 10, scale_inputs: Scale::Standardize, ..Default::default() };
        let sparse = SparseRegression::new(x.clone(), None, y.clone(), Rbf::new(2), &options).unwrap();
        let model = Regressor::Sparse(Box::new(sparse));
        let column: Vec<f64> = x.col(1);
        let m = column.iter().sum::<f64>() / 30.0;
        let v = column.iter().map(|c| (c - m).powi(2)).sum::<f64>() / 30.0;
        let filled = Mat::from_rows(&[[5.2, m], [4.9, 5.5]]);
        let spread = Mat::from_rows(&[[0.0, v], [0.0, 0.0]]);
        let holed = Mat::from_rows(&[[5.2, f64::NAN], [4.9, 5.5]]);
        let (Answers::Values(a), Answers::Values(b)) =
            (model.predict(&holed, None).unwrap(), model.predict(&filled, Some(&spread)).unwrap())
        else {
            panic!("values");
        };
        assert!(
            (a.mean[(0, 0)] - b.mean[(0, 0)]).abs() < 1e-9 && (a.var[(0, 0)] - b.var[(0, 0)]).abs() < 1e-9
        );
        // The complete row of the same table is as certain as it was.
        let Answers::Values(alone) = model.predict(&holed.slice_rows(1, 2), None).unwrap() else {
            panic!("values");
        };
        assert!((a.var[(1, 0)] - alone.var[(0, 0)]).abs() < 1e-6 && a.var[(0, 0)] > 2.0 * a.var[(1, 0)]);
        assert!(model.predict(&Mat::filled(1, 3, f64::NAN), None).is_err());
        let exact = Regressor::Gp(Box::new(Regression::new(x, y, Rbf::new(2)).unwrap()));
        assert!(exact.predict(&holed, None).is_err());
    }

    #[test]
    fn classes_at_uncertain_inputs_are_averages_over_them() {
        let x = Mat::from_fn(45, 2, |i, j| if j == 0 { 0.2 * i as f64 } else { (3.7 * i as f64).sin() });
        let labels: Vec<usize> = (0..45).map(|i| (i / 15 + usize::from(i % 7 == 0)) % 3).collect();
        let observed = Observations::categorical(&labels, 3).unwrap();
        let scaling = Scaling { mean: vec![4.0, 0.0], scale: vec![2.0, 0.5] };
        let inputs = scaling.apply(&x).unwrap();
        let laplace = Laplace::new(inputs.clone(), observed.clone(), Rbf::new(2)).unwrap();
        let mut svgp = Svgp::new(inputs, observed, Rbf::new(2), 10, 0).unwrap();
        svgp.q_mean.value = Mat::from_fn(3, 10, |c, m| 3.0 * (1.7 * m as f64 + 2.0 * c as f64).sin());
        let models = [
            Regressor::Laplace(Box::new(laplace), scaling.clone()),
            Regressor::Svgp(Box::new(svgp), scaling),
        ];
        for model in models {
            let classes = |x: &Mat, var: Option<&Mat>| match model.predict(x, var).unwrap() {
                Answers::Classes(p) => p,
                _ => panic!("classes"),
            };
            let at = Mat::from_rows(&[[2.9, 0.1], [6.0, -0.4]]);
            let apart = |a: &Mat, b: &Mat| {
                a.as_slice().iter().zip(b.as_slice()).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()))
            };
            assert_eq!(classes(&at, Some(&Mat::zeros(2, 2))), classes(&at, None));
            // An average over many steps of the first column.
            let std: f64 = 0.6;
            let (mut slow, mut total) = (Mat::zeros(2, 3), 0.0);
            for k in -40..=40 {
                let xi = 0.1 * f64::from(k);
                let moved = Mat::from_fn(2, 2, |i, j| at[(i, j)] + if j == 0 { std * xi } else { 0.0 });
                let weight = (-0.5 * xi * xi).exp();
                slow.add_scaled(weight, &classes(&moved, None));
                total += weight;
            }
            slow.scale(1.0 / total);
            let var = Mat::from_rows(&[[std * std, 0.0], [std * std, 0.0]]);
            assert!(apart(&classes(&at, Some(&var)), &slow) < 5e-3);
            assert!(model.predict(&at, Some(&Mat::zeros(2, 3))).is_err());
        }
    }

    #[test]
    fn numbers_that_cannot_be_squared_are_refused() {
        let (x, y) = (Mat::from_fn(4, 1, |i, _| i as f64), Mat::column(&[1.0, 2.0, 4.0, 3.0]));
        for factor in [1e300, 1e-300] {
            for (x, y) in [(x.map(|v| v * factor), y.clone()), (x.clone(), y.map(|v| v * factor))] {
                let e = Regression::new(x.clone(), y.clone(), Rbf::new(1)).err().unwrap().to_string();
                assert!(e.contains("row ") && e.contains("power of ten") && e.len() < 160, "{e}");
                let options = SparseOptions::default();
                assert!(SparseRegression::new(x, None, y, Rbf::new(1), &options).is_err());
            }
        }
        assert!(Regression::new(x, y.map(|v| v * 1e60), Rbf::new(1)).is_ok());
    }
}
