//! The posteriors of cells that are known up to errors.

use crate::mat::Mat;
use crate::param::Param;

/// A posterior starts with this part of its prior's variance: one that starts narrow finds the side of a slope on which its
/// row lies before it widens.
const NARROW: f64 = 0.05;

/// Cells that are known up to errors, with a posterior each.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadCells {
    /// Row and column of each.
    pub(super) cells: Vec<(usize, usize)>,
    /// ν, one row.
    pub offset: Param,
    /// r, one row.
    pub ratio: Param,
    /// The columns whose s is learnt.
    pub(super) learn: Vec<usize>,
    /// Their s, one row.
    pub std: Param,
}

impl ReadCells {
    pub(super) fn new(cells: Vec<(usize, usize)>, learn: Vec<usize>, std: Vec<f64>) -> Self {
        let n = cells.len();
        ReadCells {
            cells,
            offset: Param::free(Mat::zeros(1, n)),
            ratio: Param::positive(Mat::filled(1, n, NARROW)),
            learn,
            std: Param::positive(Mat::from_fn(1, std.len(), |_, k| std[k])),
        }
    }

    /// The place of a column among those whose s is learnt.
    pub(super) fn learnt(&self, column: usize) -> Option<usize> {
        self.learn.iter().position(|l| *l == column)
    }
}
