//! The columns of a table that a model was trained on.

use super::nearest;
use super::table::Table;
use crate::error::{Error, Result};
use crate::mat::Mat;

impl Table {
    /// The columns that a model needs, in its order, and whether they were found by their names; where the table or the
    /// model has no names, they are taken by position.
    ///
    /// Errs when one is missing or holds words.
    pub fn matched(&self, columns: &[String]) -> Result<(Mat, bool)> {
        let names = self.columns();
        let missing: Vec<&String> = columns.iter().filter(|c| !names.contains(&c.as_str())).collect();
        if missing.is_empty() {
            return Ok((self.numeric(columns)?, true));
        }
        let numbered =
            |names: &mut dyn Iterator<Item = &str>| names.enumerate().all(|(j, n)| n == j.to_string());
        let unnamed =
            numbered(&mut names.iter().copied()) || numbered(&mut columns.iter().map(String::as_str));
        let numbers = self.numeric_columns();
        if unnamed && numbers.len() == columns.len() {
            return Ok((self.numeric(&numbers)?, false));
        }
        if unnamed {
            let reason =
                format!("the model has {} columns, found {} of numbers", columns.len(), numbers.len());
            return Err(Error::data(self.source(), reason));
        }
        let hint = nearest(missing[0], &names)
            .map_or(String::new(), |near| format!(" (is `{near}` the one meant?)"));
        let reason = format!(
            "has no column `{}`{hint}; the model needs its {} columns: {}",
            missing[0],
            columns.len(),
            columns.join(", ")
        );
        Err(Error::data(self.source(), reason))
    }
}
