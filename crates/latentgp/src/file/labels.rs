//! Classes of training rows in a model file: the words in the header, and for each row the place of its word.

use super::{ModelFile, damaged};
use crate::data::words::Words;
use crate::error::Result;
use crate::mat::Mat;
use serde::{Deserialize, Serialize};

/// A class for each training row.
#[derive(Clone, Debug, PartialEq)]
pub struct Labels {
    /// The name of the column.
    pub name: String,
    /// The label of each row; empty where it is missing.
    pub of: Vec<String>,
}

/// Labels in a header.
#[derive(Serialize, Deserialize)]
pub(super) struct LabelSpec {
    name: String,
    distinct: Vec<String>,
}

impl LabelSpec {
    pub(super) fn put(labels: &Labels, file: &mut ModelFile) -> Self {
        let words: Words = labels.of.iter().collect();
        let codes: Vec<f64> = words.codes().iter().map(|&c| f64::from(c)).collect();
        file.put("labels", &Mat::column(&codes));
        LabelSpec { name: labels.name.clone(), distinct: words.distinct().to_vec() }
    }

    /// The labels of `n` rows.
    pub(super) fn take(self, n: usize, file: &mut ModelFile) -> Result<Labels> {
        let word = |&c: &f64| {
            let known = c >= 0.0 && c.fract() == 0.0 && c < self.distinct.len() as f64;
            if known { Ok(self.distinct[c as usize].clone()) } else { Err(damaged("a label is unknown")) }
        };
        let of = file.take("labels", n, 1)?.as_slice().iter().map(word).collect::<Result<_>>()?;
        Ok(Labels { name: self.name, of })
    }
}
