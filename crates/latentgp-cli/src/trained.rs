//! A model file, and what every command wants to know of it: the posterior, the relevance, the best two dimensions.

use crate::failure::{Failure, Outcome};
use latentgp::Mat;
use latentgp::file::{Labels, ModelFile, Store, Trained, TrainedRegression, TrainedSpace, in_file};
use latentgp::metrics::{Accuracy, kfold, knn_accuracy};
use latentgp::model::Model;
use latentgp::posterior::Posterior;
use std::collections::BTreeMap;
use std::path::Path;

/// Folds of the 1-NN accuracy, and the seed that divides the rows.
const FOLDS: (usize, u64) = (5, 0);

/// A trained model, ready to be used.
pub struct Ready {
    /// What the file holds.
    pub trained: Trained,
    /// What predictions are made from.
    pub posterior: Posterior,
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
pub fn load(path: &Path) -> Outcome<Trained> {
    let file = ModelFile::read(path).map_err(Failure::data)?;
    match file.kind.as_str() {
        Trained::KIND => in_file(path, Trained::from_file(file)).map_err(Failure::data),
        TrainedRegression::KIND => Err(Failure::data(format!(
            "{}: holds a regression, which has no latent positions of rows; use `latentgp predict`",
            path.display()
        ))),
        other => Err(unknown(path, other, Trained::KIND)),
    }
}

/// Reads the file of a regression.
pub fn load_regression(path: &Path) -> Outcome<TrainedRegression> {
    let file = ModelFile::read(path).map_err(Failure::data)?;
    match file.kind.as_str() {
        TrainedRegression::KIND => in_file(path, TrainedRegression::from_file(file)).map_err(Failure::data),
        Trained::KIND | TrainedSpace::KIND => Err(Failure::data(format!(
            "{}: holds a latent space (`{}`), which predicts no targets; use `latentgp transform`, \
             `reconstruct` or `impute`, or learn a regression with `latentgp regress`",
            path.display(),
            file.kind
        ))),
        other => Err(unknown(path, other, TrainedRegression::KIND)),
    }
}

/// Reads the file of a GPLVM or a PPCA; `None` for a file of another kind.
pub fn load_space(path: &Path) -> Outcome<Option<TrainedSpace>> {
    let file = ModelFile::read(path).map_err(Failure::data)?;
    match file.kind.as_str() {
        TrainedSpace::KIND => in_file(path, TrainedSpace::from_file(file)).map(Some).map_err(Failure::data),
        _ => Ok(None),
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
    pub fn new(trained: Trained) -> Outcome<Self> {
        let posterior = trained.model.posterior()?;
        let relevance = trained.model.relevance(&posterior)?;
        let mut order: Vec<usize> = (0..relevance.len()).collect();
        order.sort_by(|&a, &b| relevance[b].total_cmp(&relevance[a]).then(a.cmp(&b)));
        Ok(Ready { trained, posterior, relevance, order })
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
        accuracy(self.trained.labels.as_ref(), &self.trained.model.mean.value.select_cols(self.shown()))
    }
}

/// 1-NN accuracy of the labels at the positions given; `None` without labels, or with fewer labelled rows than
/// folds.
pub fn accuracy(labels: Option<&Labels>, x: &Mat) -> Outcome<Option<Accuracy>> {
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
