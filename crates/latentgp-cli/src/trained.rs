//! A model file, and what every command wants to know of a latent space: positions, the relevance, the best two dimensions.

use crate::failure::{Failure, Outcome};
use latentgp::Mat;
use latentgp::expectation::Gaussians;
use latentgp::file::{Labels, ModelFile, Store, TrainedRegression, TrainedSpace, in_file};
use latentgp::metrics::{Accuracy, kfold, knn_accuracy};
use std::collections::BTreeMap;
use std::path::Path;

/// Folds of the 1-NN accuracy, and the seed that divides the rows.
const FOLDS: (usize, u64) = (5, 0);

/// A trained latent space, ready to be shown.
pub struct Ready {
    /// What the file holds.
    pub trained: TrainedSpace,
    /// Positions of the training rows.
    pub latent: Gaussians,
    /// How much each latent dimension matters.
    pub relevance: Vec<f64>,
    /// The dimensions, the most relevant first.
    pub order: Vec<usize>,
}

/// What a model file holds.
pub fn kind(path: &Path) -> Outcome<String> {
    Ok(ModelFile::read(path).map_err(Failure::data)?.kind)
}

/// Reads the file of a latent space.
pub fn load(path: &Path) -> Outcome<TrainedSpace> {
    let file = ModelFile::read(path).map_err(Failure::data)?;
    match file.kind.as_str() {
        kind if TrainedSpace::holds(kind) => {
            in_file(path, TrainedSpace::from_file(file).and_then(Store::verified)).map_err(Failure::data)
        }
        TrainedRegression::KIND => Err(Failure::data(format!(
            "{}: holds a regression, which has no latent positions of rows; use `latentgp predict`",
            path.display()
        ))),
        other => Err(unknown(path, other, "bayesian-gplvm")),
    }
}

/// Reads the file of a regression.
pub fn load_regression(path: &Path) -> Outcome<TrainedRegression> {
    let file = ModelFile::read(path).map_err(Failure::data)?;
    match file.kind.as_str() {
        TrainedRegression::KIND => {
            in_file(path, TrainedRegression::from_file(file).and_then(Store::verified)).map_err(Failure::data)
        }
        kind if TrainedSpace::holds(kind) => Err(Failure::data(format!(
            "{}: holds a latent space (`{}`), which predicts no targets; use `latentgp transform`, \
             `reconstruct` or `impute`, or learn a regression with `latentgp regress`",
            path.display(),
            file.kind
        ))),
        other => Err(unknown(path, other, TrainedRegression::KIND)),
    }
}

fn unknown(path: &Path, kind: &str, expected: &str) -> Failure {
    Failure::data(format!(
        "{}: holds a `{kind}`, which this command does not know; it works on a `{expected}`",
        path.display()
    ))
}

impl Ready {
    /// Works out what follows from the parameters.
    pub fn new(trained: TrainedSpace) -> Outcome<Self> {
        let (latent, relevance) = (trained.model.latent()?, trained.model.relevance()?);
        let mut order: Vec<usize> = (0..relevance.len()).collect();
        order.sort_by(|&a, &b| relevance[b].total_cmp(&relevance[a]).then(a.cmp(&b)));
        Ok(Ready { trained, latent, relevance, order })
    }

    /// Reads a model file and works out the rest.
    pub fn load(path: &Path) -> Outcome<Self> {
        Ready::new(load(path)?)
    }

    /// The two most relevant dimensions, or the only one.
    pub fn shown(&self) -> &[usize] {
        &self.order[..self.order.len().min(2)]
    }

    /// 1-NN accuracy of the labels on the two most relevant dimensions, see [`accuracy`].
    pub fn accuracy(&self) -> Outcome<Option<Accuracy>> {
        accuracy(self.trained.labels.as_ref(), &self.latent.mean.select_cols(self.shown()))
    }

    /// The same on all dimensions, where there are more than two.
    pub fn accuracy_of_all(&self) -> Outcome<Option<Accuracy>> {
        match self.relevance.len() > 2 {
            true => accuracy(self.trained.labels.as_ref(), &self.latent.mean),
            false => Ok(None),
        }
    }
}

/// 1-NN accuracy of the labels at the positions given; `None` without labels, or with fewer labelled rows than
/// folds.
fn accuracy(labels: Option<&Labels>, x: &Mat) -> Outcome<Option<Accuracy>> {
    let Some(labels) = labels else { return Ok(None) };
    let rows: Vec<usize> = (0..labels.of.len()).filter(|&i| !labels.of[i].is_empty()).collect();
    if rows.len() < FOLDS.0 {
        return Ok(None);
    }
    let mut codes = BTreeMap::new();
    let labels: Vec<usize> = rows
        .iter()
        .map(|&i| {
            let next = codes.len();
            *codes.entry(labels.of[i].as_str()).or_insert(next)
        })
        .collect();
    let folds = kfold(rows.len(), FOLDS.0, FOLDS.1)?;
    Ok(Some(knn_accuracy(&x.select_rows(&rows), &labels, 1, &folds)?))
}
