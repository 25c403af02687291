//! The trait that all regressions implement; model files, the command line and Python use it.
//!
//! ```text
//! values              answers are means and variances of observations, σ² included
//! classes, counts     answers are class probabilities, or means and variances of counts
//! ```
//!
//! Each model has a file or folder with its [`Regressor`] and its part of a model file. Methods that only
//! some models support have defaults for the others.

use super::infer::refused;
use super::joint;
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::expectation::correlated::uncertain_columns;
use crate::expectation::{Expectation, GaussHermite, Gaussians, Rule, Unscented};
use crate::file::ModelFile;
use crate::kernel::Kernel;
use crate::likelihood::{Kind, Observations};
use crate::mat::Mat;
use crate::mean::Mean;
use crate::model::{Answers, ErrorEvidence, Model, UncertainInputs, WeightRelevance, noise_at_floor};
use crate::param::Param;
use crate::posterior::{Posterior, Prediction};

/// Gauss-Hermite points in each uncertain column.
const POINTS: usize = 5;

/// A regression of any kind. Inputs and predictions are in the units of the data.
pub trait Regressor: Model + Send + Sync {
    /// The name, such as `gp` or `sparse`.
    fn name(&self) -> &'static str;

    /// A title for reports.
    fn title(&self) -> &'static str;

    /// The kernel.
    fn kernel(&self) -> &dyn Kernel;

    /// N, number of inputs, number of outputs (columns of Y; one for classes or counts).
    fn sizes(&self) -> (usize, usize, usize);

    /// X and Y of the training as given, to rounding; NaN where a cell is missing. A class is given by its
    /// number.
    fn data(&self) -> Result<(Mat, Mat)>;

    /// Writes the model's own part of a model file: its data, and in the header what is not a parameter.
    fn store(&self, file: &mut ModelFile) -> Result<()>;

    /// A boxed copy.
    fn boxed(&self) -> Box<dyn Regressor>;

    /// σ², one for all targets or one for each, in the units of the scaled targets, with these units; `None`
    /// for noise that is not Gaussian.
    fn noise(&self) -> Option<(&Param, &Scaling)> {
        None
    }

    /// The observations of a likelihood that is not Gaussian: classes, counts or values.
    fn observations(&self) -> Option<&Observations> {
        None
    }

    /// The name of the likelihood: `gaussian`, or one of [`names`](crate::likelihood::names).
    fn likelihood(&self) -> &'static str {
        self.observations().map_or("gaussian", Observations::name)
    }

    /// The kind of observations.
    fn observed(&self) -> Kind {
        self.observations().map_or(Kind::Values, Observations::kind)
    }

    /// M; `None` without inducing inputs.
    fn inducing(&self) -> Option<usize> {
        None
    }

    /// K; `None` where inputs are not projected.
    fn latent_dim(&self) -> Option<usize> {
        None
    }

    /// Means and variances of the projection matrix of scaled inputs, K×Q, if there is one.
    fn projection(&self) -> Option<Gaussians> {
        None
    }

    /// The relevance of directions and inputs, if the model has uncertain weights of a projection.
    fn weight_relevance(&self) -> Result<Option<WeightRelevance>> {
        Ok(None)
    }

    /// Whether the model is plain FITC: the projection is the identity and fixed.
    fn is_fitc(&self) -> bool {
        false
    }

    /// The expectation that computes Ψ-statistics, if the model has one.
    fn expectation(&self) -> Option<&dyn Expectation> {
        None
    }

    /// The mean function, if the model has one.
    fn mean(&self) -> Option<&Mean> {
        None
    }

    /// The leave-one-out prediction of the noise-free function at every training row, if it has a closed
    /// form.
    fn left_out(&self) -> Result<Option<Prediction>> {
        Ok(None)
    }

    /// Whether [`left_out`](Self::left_out) is available.
    fn leaves_one_out(&self) -> bool {
        false
    }

    /// σ² of every output in the units of the data; `None` for noise that is not Gaussian.
    fn noise_variance(&self) -> Option<Vec<f64>> {
        let (noise, units) = self.noise()?;
        Some(units.variances(noise.as_slice()))
    }

    /// Whether the noise ended at its lower bound, see [`noise_at_floor`]: there is none, or the fit is
    /// degenerate.
    fn noise_at_floor(&self) -> bool {
        self.noise().is_some_and(|(noise, _)| noise_at_floor(noise))
    }

    /// Whether inputs may have missing cells, in the training and in predictions.
    fn takes_missing_inputs(&self) -> bool {
        false
    }

    /// The uncertain inputs of the training rows, scaled; `None` if the model takes none.
    fn uncertain_inputs(&self) -> Option<&UncertainInputs> {
        None
    }

    /// The units of the inputs, latent ones included; `None` where inputs are not scaled.
    fn input_units(&self) -> Option<&Scaling> {
        None
    }

    /// The posterior of the true inputs of the training rows, in the units of the data; latent inputs come
    /// last. `None` where the model does not infer inputs.
    fn inputs_posterior(&self) -> Result<Option<Gaussians>> {
        let Some(inputs) = self.uncertain_inputs() else { return Ok(None) };
        let q = inputs.gaussians();
        let Some(s) = self.input_units() else { return Ok(Some(q)) };
        Gaussians::new(s.undo_mean(&q.mean)?, s.undo_var(&q.var)?).map(Some)
    }

    /// The posterior of the true inputs of new rows with known outputs, in the units of the data. X comes
    /// with the variances of its errors; X and Y have NaN where a cell is missing. Latent inputs come last.
    ///
    /// Errs when shapes disagree, and where the model has no such posterior.
    fn infer_inputs(&self, _x: &Mat, _var: Option<&Mat>, _y: &Mat) -> Result<Gaussians> {
        Err(refused())
    }

    /// The number of input columns that were never observed.
    fn latent_inputs(&self) -> usize {
        self.uncertain_inputs().map_or(0, UncertainInputs::latent)
    }

    /// The indices of inputs with learnt errors, and the standard deviations of the errors in the units of
    /// the data.
    fn learnt_errors(&self) -> Vec<(usize, f64)> {
        let scale = |j: usize| self.input_units().map_or(1.0, |s| s.scale[j]);
        let learnt = self.uncertain_inputs().into_iter().flat_map(UncertainInputs::learnt);
        learnt.map(|(j, std)| (j, std * scale(j))).collect()
    }

    /// Computes the evidence of the learnt errors with a few short fits, see [`ErrorEvidence`].
    fn weigh_errors(&mut self) -> Result<()> {
        Ok(())
    }

    /// The evidence of learnt errors as computed by [`weigh_errors`](Self::weigh_errors).
    fn error_evidence(&self) -> &[ErrorEvidence] {
        self.uncertain_inputs().map_or(&[], |x| &x.evidence)
    }

    /// Predicts observations at x, N×Q; `var`, where it is given, has the variances of the errors of x.
    ///
    /// NaN is a missing cell, for which sparse regression uses the prior of its column. Errs when shapes
    /// disagree and when an input is missing that the model needs.
    fn predict(&self, x: &Mat, var: Option<&Mat>) -> Result<Answers> {
        self.predict_with(&self.posterior()?, x, var)
    }

    /// [`predict`](Self::predict) with an available posterior of the model.
    fn predict_with(&self, posterior: &Posterior, x: &Mat, var: Option<&Mat>) -> Result<Answers> {
        observed(self.observations(), posterior, x, var)
    }

    /// Whether [`predict`](Self::predict) uses only the posterior, as [`predict_with`](Self::predict_with)
    /// does.
    fn predicts_from_posterior(&self) -> bool {
        true
    }

    /// The N×N covariance of observations of one output at the rows of x.
    ///
    /// Errs when shapes disagree, an input is missing, the output does not exist, and for classes.
    fn joint_covariance(&self, x: &Mat, output: usize) -> Result<Mat> {
        let posterior = self.posterior()?;
        match self.observations() {
            None => joint::covariance(&posterior, x, output),
            Some(observations) => {
                let latents = || Ok(posterior.predict(x)?.into());
                joint::observed_covariance(observations, &posterior, &latents, x, output)
            }
        }
    }

    /// `count` draws of the noise-free function at the rows of x, N×D each: of values, or of the rates of
    /// counts.
    ///
    /// A draw depends on the seed and its number alone. Errs when shapes disagree, an input is missing, and for
    /// classes.
    fn sample(&self, x: &Mat, count: usize, seed: u64) -> Result<Vec<Mat>> {
        self.sample_with(&self.posterior()?, x, count, seed)
    }

    /// [`sample`](Self::sample) with an available posterior.
    fn sample_with(&self, posterior: &Posterior, x: &Mat, count: usize, seed: u64) -> Result<Vec<Mat>> {
        joint::draws(self.observations(), posterior, x, count, seed)
    }
}

impl Clone for Box<dyn Regressor> {
    fn clone(&self) -> Self {
        self.boxed()
    }
}

/// Predictions of observations at x from a posterior; without observations the noise is Gaussian.
pub(super) fn observed(
    observations: Option<&Observations>,
    posterior: &Posterior,
    x: &Mat,
    var: Option<&Mat>,
) -> Result<Answers> {
    let mut there = match var {
        None => posterior.predict(x)?,
        Some(var) => posterior.predict_uncertain(&Gaussians::new(x.clone(), var.clone())?)?,
    };
    if let Some(observations) = observations {
        return Answers::of(observations, there.into());
    }
    let noise = posterior.noise_variance();
    for i in 0..there.var.rows() {
        there.var.row_mut(i).iter_mut().zip(&noise).for_each(|(v, s)| *v += s);
    }
    Ok(Answers::Values(there))
}

/// Class probabilities at uncertain inputs, scaled: averages over nodes around each row, since the latent
/// functions of the classes vary together there.
pub(super) fn averaged_classes(q: &Gaussians, answers: &dyn Fn(&Mat) -> Result<Answers>) -> Result<Answers> {
    let nodes: Vec<(Vec<f64>, Mat)> = (0..q.n()).map(|n| nodes_around(q.mean.row(n), q.var.row(n))).collect();
    let mut at = Mat::zeros(nodes.iter().map(|(w, _)| w.len()).sum(), q.dim());
    let rows = nodes.iter().flat_map(|(_, nodes)| (0..nodes.rows()).map(|r| nodes.row(r)));
    rows.enumerate().for_each(|(i, row)| at.row_mut(i).copy_from_slice(row));
    let Answers::Classes(each) = answers(&at)? else { unreachable!("classes") };
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

/// Inputs with variances in the scaled units of a model.
pub(super) fn scaled_gaussians(s: Option<&Scaling>, x: &Mat, var: &Mat) -> Result<Gaussians> {
    if var.shape() != x.shape() {
        return Err(Error::shape("variances of the inputs", x.shape(), var.shape()));
    }
    let Some(s) = s else { return Gaussians::new(x.clone(), var.clone()) };
    let x = s.apply(x)?;
    let var = Mat::from_fn(x.rows(), x.cols(), |i, j| var[(i, j)] / s.scale[j] / s.scale[j]);
    Gaussians::new(x, var)
}

/// X in the units of the data.
pub(super) fn given_inputs(s: Option<&Scaling>, x: &Mat) -> Result<Mat> {
    s.map_or_else(|| Ok(x.clone()), |s| s.undo_mean(x))
}

/// Weights and nodes around an input: Gauss-Hermite where few columns are uncertain, else sigma points.
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
    use crate::data::Scale;
    use crate::kernel::Rbf;
    use crate::likelihood::Observations;
    use crate::model::{Laplace, Regression, SparseOptions, SparseRegression, Svgp};

    #[test]
    fn a_missing_input_is_the_prior_of_its_column() {
        let x = Mat::from_fn(30, 2, |i, j| (1.7 * i as f64 + j as f64).sin() * (1.0 + j as f64) + 5.0);
        let y = Mat::from_fn(30, 1, |i, _| x[(i, 0)].sin() + x[(i, 1)]);
        let options = SparseOptions { inducing: 10, scale_inputs: Scale::Standardize, ..Default::default() };
        let sparse = SparseRegression::new(x.clone(), None, y.clone(), Rbf::new(2), &options).unwrap();
        let model = sparse;
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
        // The prediction of the complete row does not depend on the rows with missing cells.
        let Answers::Values(alone) = model.predict(&holed.slice_rows(1, 2), None).unwrap() else {
            panic!("values");
        };
        assert!((a.var[(1, 0)] - alone.var[(0, 0)]).abs() < 1e-6 && a.var[(0, 0)] > 2.0 * a.var[(1, 0)]);
        assert!(model.predict(&Mat::filled(1, 3, f64::NAN), None).is_err());
        let exact = Regression::new(x, y, Rbf::new(2)).unwrap();
        assert!(exact.predict(&holed, None).is_err());
    }

    #[test]
    fn classes_at_uncertain_inputs_are_averages_over_them() {
        let x = Mat::from_fn(45, 2, |i, j| if j == 0 { 0.2 * i as f64 } else { (3.7 * i as f64).sin() });
        let labels: Vec<usize> = (0..45).map(|i| (i / 15 + usize::from(i % 7 == 0)) % 3).collect();
        let observed = Observations::categorical(&labels, 3).unwrap();
        let scaling = Scaling { mean: vec![4.0, 0.0], scale: vec![2.0, 0.5] };
        let inputs = scaling.apply(&x).unwrap();
        let mut laplace = Laplace::new(inputs.clone(), observed.clone(), Rbf::new(2)).unwrap();
        let mut svgp = Svgp::new(inputs, observed, Rbf::new(2), 10, 0).unwrap();
        svgp.q_mean.value = Mat::from_fn(3, 10, |c, m| 3.0 * (1.7 * m as f64 + 2.0 * c as f64).sin());
        laplace.inputs = Some(scaling.clone());
        svgp.inputs = Some(scaling);
        let models: [Box<dyn Regressor>; 2] = [Box::new(laplace), Box::new(svgp)];
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
            // The reference is an average over a fine grid in the first column.
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
