//! Y with missing cells: each output uses the rows at which it was observed.
//!
//! Rows with the same observed columns form a *pattern*, columns with the same observed rows a *group*.
//! Ψ0 and Ψ2 of a group are sums over the patterns that it contains, so that the Ψ-statistics of every
//! row are computed once, whatever is missing.

use crate::error::{Error, Result};
use crate::linalg;
use crate::mat::Mat;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Outputs that were observed at the same rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The columns of Y.
    pub columns: Vec<usize>,
    /// The number of observed rows.
    pub rows: usize,
    /// The observed rows.
    pub(crate) at: Vec<usize>,
    /// tr YᵀY of these columns; Σ(μ² + λ) for uncertain outputs.
    pub yy: f64,
    /// The contribution of each of these columns to `yy`.
    pub squares: Vec<f64>,
}

/// Rows at which the same columns were observed.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// The rows.
    pub rows: Vec<usize>,
    /// The groups observed there.
    pub groups: Vec<usize>,
}

/// The outputs of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Outputs {
    /// Y, N×D, with NaN where a cell is missing.
    pub y: Mat,
    /// Y with zeros where a cell is missing; for complete data with D > N, an N×N matrix with the same YYᵀ.
    pub(crate) filled: Mat,
    /// Columns grouped by the rows at which they were observed.
    pub groups: Vec<Group>,
    /// Rows grouped by the columns observed.
    pub patterns: Vec<Pattern>,
}

impl Outputs {
    /// Groups rows and columns by their missing cells.
    pub fn new(y: Mat) -> Self {
        let mut outputs = Outputs::sorted(y);
        if outputs.is_complete()
            && outputs.d() > outputs.n()
            && let Some(root) = root_of_outer_product(&outputs.filled)
        {
            outputs.filled = root;
        }
        outputs
    }

    /// Outputs that are themselves uncertain, y_nd ~ N(μ_nd, λ_nd), both N×D, with NaN in μ where a cell is missing: see
    /// [`evidence::Collapse`](crate::evidence::Collapse).
    ///
    /// Errs when shapes disagree, or a variance of an observed cell is negative or not finite.
    pub fn uncertain(mean: &Mat, var: &Mat) -> Result<Self> {
        let mut outputs = Outputs::sorted(mean.clone());
        outputs.add_variances(var)?;
        Ok(outputs)
    }

    /// Replaces means and variances with others that have the same missing cells, as
    /// [`uncertain`](Self::uncertain) does but without grouping again.
    pub fn set_uncertain(&mut self, mean: &Mat, var: &Mat) -> Result<()> {
        let missing = |of: &Mat| of.as_slice().iter().map(|v| v.is_nan()).collect::<Vec<_>>();
        if mean.shape() != self.y.shape() || missing(mean) != missing(&self.y) {
            let expected = format!("{}, with the same cells missing", self.y.shape());
            return Err(Error::shape("means of the outputs", expected, mean.shape()));
        }
        self.y.as_mut_slice().copy_from_slice(mean.as_slice());
        self.filled = self.zero_filled();
        for group in &mut self.groups {
            (group.yy, group.squares) = squares(&self.filled, &group.columns);
        }
        self.add_variances(var)
    }

    /// Adds Σλ of the observed cells to tr YᵀY of each group.
    fn add_variances(&mut self, var: &Mat) -> Result<()> {
        if var.shape() != self.y.shape() {
            return Err(Error::shape("variances of the outputs", self.y.shape(), var.shape()));
        }
        for group in &mut self.groups {
            let cells = group.at.iter().flat_map(|i| group.columns.iter().enumerate().map(move |j| (i, j)));
            for (&i, (place, &j)) in cells {
                if !(var[(i, j)] >= 0.0 && var[(i, j)].is_finite()) {
                    let what = "variance of an output";
                    return Err(Error::invalid(what, "a finite number, not negative", var[(i, j)]));
                }
                group.yy += var[(i, j)];
                group.squares[place] += var[(i, j)];
            }
        }
        Ok(())
    }

    fn sorted(y: Mat) -> Self {
        let (n, d) = (y.rows(), y.cols());
        let mut by_column: BTreeMap<Vec<bool>, Vec<usize>> = BTreeMap::new();
        for j in 0..d {
            let seen = (0..n).map(|i| !y[(i, j)].is_nan()).collect();
            by_column.entry(seen).or_default().push(j);
        }
        let mut groups: Vec<(Vec<bool>, Vec<usize>)> = by_column.into_iter().collect();
        groups.sort_by_key(|(_, columns)| columns[0]);
        let mut by_row: BTreeMap<Vec<bool>, Vec<usize>> = BTreeMap::new();
        for i in 0..n {
            by_row.entry(groups.iter().map(|(seen, _)| seen[i]).collect()).or_default().push(i);
        }
        let mut patterns: Vec<Pattern> = by_row
            .into_iter()
            .map(|(seen, rows)| Pattern { rows, groups: (0..groups.len()).filter(|g| seen[*g]).collect() })
            .collect();
        patterns.sort_by_key(|p| p.rows[0]);
        let filled = y.map(|v| if v.is_nan() { 0.0 } else { v });
        let groups = groups
            .into_iter()
            .map(|(seen, columns)| {
                let (yy, squares) = squares(&filled, &columns);
                let at: Vec<usize> = (0..n).filter(|i| seen[*i]).collect();
                Group { columns, rows: at.len(), at, yy, squares }
            })
            .collect();
        Outputs { y, filled, groups, patterns }
    }

    /// Whether no cell is missing.
    pub fn is_complete(&self) -> bool {
        self.groups.len() == 1 && self.patterns.len() == 1 && self.groups[0].rows == self.y.rows()
    }

    /// Number of rows.
    pub fn n(&self) -> usize {
        self.y.rows()
    }

    /// Number of columns.
    pub fn d(&self) -> usize {
        self.y.cols()
    }

    /// The rows at which a group was observed.
    pub fn rows_of(&self, group: usize) -> Vec<usize> {
        self.groups[group].at.clone()
    }

    /// How many cells of each column were observed.
    pub fn observed(&self) -> Vec<usize> {
        let mut counts = vec![0; self.d()];
        self.groups.iter().for_each(|g| g.columns.iter().for_each(|&j| counts[j] = g.rows));
        counts
    }

    /// The `count` rows nearest to a row in the cells that both have, and a row that equals it in all cells.
    pub(crate) fn nearest_rows(&self, y: &[f64], count: usize) -> (Vec<usize>, Option<usize>) {
        let mut distances: Vec<(f64, usize)> = Vec::with_capacity(self.n());
        let mut exact = None;
        for n in 0..self.n() {
            let row = self.y.row(n);
            let both = || y.iter().zip(row).filter(|(a, b)| !a.is_nan() && !b.is_nan());
            let cells = both().count();
            if cells > 0 {
                let square: f64 = both().map(|(a, b)| (a - b).powi(2)).sum();
                distances.push((square / cells as f64, n));
            }
            let same = || y.iter().zip(row).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()));
            if exact.is_none() && cells > 0 && same() {
                exact = Some(n);
            }
        }
        distances.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        (distances.iter().take(count).map(|d| d.1).collect(), exact)
    }

    /// Y with zeros for missing cells. Unless `columns` is set, wide data are replaced by a root of YYᵀ.
    pub(crate) fn cells(&self, columns: bool) -> Cow<'_, Mat> {
        match columns && self.filled.cols() != self.d() {
            true => Cow::Owned(self.zero_filled()),
            false => Cow::Borrowed(&self.filled),
        }
    }

    /// Y with zeros for missing cells, all columns.
    pub(crate) fn zero_filled(&self) -> Mat {
        self.y.map(|v| if v.is_nan() { 0.0 } else { v })
    }
}

/// The sum of squares of some columns, and the sum of each column.
fn squares(y: &Mat, columns: &[usize]) -> (f64, Vec<f64>) {
    let square = |j: &usize| (0..y.rows()).map(|i| y[(i, *j)].powi(2)).sum::<f64>();
    let each: Vec<f64> = columns.iter().map(square).collect();
    (each.iter().sum(), each)
}

/// R with RRᵀ = YYᵀ, N×N.
fn root_of_outer_product(y: &Mat) -> Option<Mat> {
    let (values, vectors) = linalg::eigh(&linalg::mul_nt(y, y)).ok()?;
    Some(Mat::from_fn(y.rows(), y.rows(), |i, j| vectors[(i, j)] * values[j].max(0.0).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_are_grouped_by_what_is_missing() {
        let nan = f64::NAN;
        let y = Mat::from_rows(&[[1.0, 2.0, 3.0], [4.0, nan, 6.0], [7.0, 8.0, 9.0], [nan, nan, nan]]);
        let o = Outputs::new(y);
        assert!(!o.is_complete());
        assert_eq!(
            o.groups.iter().map(|g| (g.columns.clone(), g.rows)).collect::<Vec<_>>(),
            [(vec![0, 2], 3), (vec![1], 2)]
        );
        assert_eq!(o.groups[0].yy, 1.0 + 16.0 + 49.0 + 9.0 + 36.0 + 81.0);
        assert_eq!(
            o.patterns.iter().map(|p| p.rows.clone()).collect::<Vec<_>>(),
            [vec![0, 2], vec![1], vec![3]]
        );
        assert_eq!(o.patterns[1].groups, [0]);
        assert!(o.patterns[2].groups.is_empty());
        assert_eq!(o.observed(), [3, 2, 3]);
    }

    #[test]
    fn variances_of_observed_cells_are_counted() {
        let mean = Mat::from_rows(&[[1.0, 2.0, 3.0], [4.0, f64::NAN, 6.0]]);
        let var = Mat::from_rows(&[[0.1, 0.2, 0.3], [0.4, f64::NAN, 0.5]]);
        let (certain, o) = (Outputs::new(mean.clone()), Outputs::uncertain(&mean, &var).unwrap());
        let added: Vec<f64> = o.groups.iter().zip(&certain.groups).map(|(a, b)| a.yy - b.yy).collect();
        assert!((added[0] - 1.3).abs() < 1e-12 && (added[1] - 0.2).abs() < 1e-12, "{added:?}");
        let mut again = Outputs::uncertain(&mean.map(|v| 2.0 - v), &Mat::filled(2, 3, 7.0)).unwrap();
        again.set_uncertain(&mean, &var).unwrap();
        assert_eq!((again.filled, again.groups, again.patterns), (o.filled, o.groups, o.patterns));
        assert!(Outputs::uncertain(&var, &var).unwrap().set_uncertain(&Mat::zeros(2, 3), &var).is_err());
        // Uncertain outputs keep all columns, however wide.
        let wide = Mat::from_fn(2, 5, |i, j| (i + j) as f64);
        assert_eq!(Outputs::uncertain(&wide, &Mat::zeros(2, 5)).unwrap().filled, wide);
        assert!(Outputs::uncertain(&mean, &Mat::zeros(2, 2)).is_err());
        assert!(Outputs::uncertain(&mean, &var.map(|v| -v)).is_err());
    }

    #[test]
    fn wide_data_shrink_to_the_root_of_their_outer_product() {
        let y = Mat::from_fn(4, 9, |i, j| ((i * 9 + j) as f64).sin());
        let o = Outputs::new(y.clone());
        assert_eq!(o.filled.cols(), 4);
        let (a, b) = (linalg::mul_nt(&o.filled, &o.filled), linalg::mul_nt(&y, &y));
        assert!(a.as_slice().iter().zip(b.as_slice()).all(|(a, b)| (a - b).abs() < 1e-12));
    }
}
