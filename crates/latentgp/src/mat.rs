//! A dense matrix, row-major as in NumPy.

use crate::error::{Error, Result};
use crate::scratch::Pooled;
use std::ops::{Index, IndexMut};

/// Whether none of them is NaN or infinite. All are looked at, several at a time.
pub(crate) fn all_finite(numbers: &[f64]) -> bool {
    numbers.iter().fold(true, |all, v| all & v.is_finite())
}

/// A dense `rows × cols` matrix of `f64`; `row(n)` is a slice.
///
/// ```
/// use latentgp::Mat;
/// let a = Mat::from_rows(&[[1.0, 2.0], [3.0, 4.0]]);
/// assert_eq!(a.row(1), &[3.0, 4.0]);
/// assert_eq!(a.t()[(0, 1)], 3.0);
/// ```
#[derive(Debug, Default, PartialEq)]
pub struct Mat {
    rows: usize,
    cols: usize,
    data: Pooled,
}

impl Clone for Mat {
    fn clone(&self) -> Self {
        self.slice_rows(0, self.rows)
    }
}

impl Mat {
    /// A matrix of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self::filled(rows, cols, 0.0)
    }

    /// A matrix whose every entry is `value`.
    pub fn filled(rows: usize, cols: usize, value: f64) -> Self {
        Mat { rows, cols, data: Pooled::filled(rows * cols, value) }
    }

    /// The identity.
    pub fn eye(n: usize) -> Self {
        Self::from_fn(n, n, |i, j| f64::from(i == j))
    }

    /// Entry (i, j) is `f(i, j)`.
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> f64) -> Self {
        let mut data = Pooled::with_capacity(rows * cols);
        for i in 0..rows {
            for j in 0..cols {
                data.push(f(i, j));
            }
        }
        Mat { rows, cols, data }
    }

    /// Takes a row-major vector; errs when its length is not `rows · cols`.
    pub fn from_vec(rows: usize, cols: usize, data: Vec<f64>) -> Result<Self> {
        if Some(data.len()) != rows.checked_mul(cols) {
            return Err(Error::shape("matrix data", format!("{rows} × {cols} numbers"), data.len()));
        }
        Ok(Mat { rows, cols, data: data.into() })
    }

    /// `rows · cols` numbers.
    pub(crate) fn from_pooled(rows: usize, cols: usize, data: Pooled) -> Self {
        debug_assert_eq!(data.len(), rows * cols);
        Mat { rows, cols, data }
    }

    /// Copies rows of equal length.
    ///
    /// # Panics
    /// When the rows differ in length.
    pub fn from_rows<R: AsRef<[f64]>>(rows: &[R]) -> Self {
        let cols = rows.first().map_or(0, |r| r.as_ref().len());
        let mut data = Pooled::with_capacity(rows.len() * cols);
        for r in rows {
            assert_eq!(r.as_ref().len(), cols, "rows of equal length");
            data.extend_from_slice(r.as_ref());
        }
        Mat { rows: rows.len(), cols, data }
    }

    /// One column.
    pub fn column(values: &[f64]) -> Self {
        Mat { rows: values.len(), cols: 1, data: Pooled::copied(values) }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Row `i`.
    #[inline]
    pub fn row(&self, i: usize) -> &[f64] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Row `i`, to write to.
    #[inline]
    pub fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Column `j`, copied.
    pub fn col(&self, j: usize) -> Vec<f64> {
        (0..self.rows).map(|i| self[(i, j)]).collect()
    }

    /// All entries, row by row.
    #[inline]
    pub fn as_slice(&self) -> &[f64] {
        &self.data
    }

    /// All entries, row by row, to write to.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        &mut self.data
    }

    /// The entries, row by row.
    pub fn into_vec(self) -> Vec<f64> {
        self.data.into_vec()
    }

    /// The transpose, copied.
    pub fn t(&self) -> Mat {
        let mut out = Mat { rows: 0, cols: 0, data: Pooled::with_capacity(self.len()) };
        self.transpose_into(&mut out);
        out
    }

    /// The transpose, in the memory of `out`.
    pub(crate) fn transpose_into(&self, out: &mut Mat) {
        out.resize(self.cols, self.rows);
        const SIDE: usize = 4;
        let (rows, cols) = (self.rows / SIDE * SIDE, self.cols / SIDE * SIDE);
        // Squares that registers hold, and what they leave.
        for i in (0..rows).step_by(SIDE) {
            for j in (0..cols).step_by(SIDE) {
                let mut square = [[0.0; SIDE]; SIDE];
                for (k, row) in square.iter_mut().enumerate() {
                    row.copy_from_slice(&self.data[(i + k) * self.cols + j..][..SIDE]);
                }
                for k in 0..SIDE {
                    let column = [square[0][k], square[1][k], square[2][k], square[3][k]];
                    out.data[(j + k) * self.rows + i..][..SIDE].copy_from_slice(&column);
                }
            }
        }
        for i in 0..self.rows {
            for j in if i < rows { cols } else { 0 }..self.cols {
                out.data[j * self.rows + i] = self.data[i * self.cols + j];
            }
        }
    }

    /// The rows listed, in that order, copied.
    pub fn select_rows(&self, rows: &[usize]) -> Mat {
        let mut data = Pooled::with_capacity(rows.len() * self.cols);
        for &i in rows {
            data.extend_from_slice(self.row(i));
        }
        Mat { rows: rows.len(), cols: self.cols, data }
    }

    /// Rows `from..to`, copied.
    pub fn slice_rows(&self, from: usize, to: usize) -> Mat {
        Mat {
            rows: to - from,
            cols: self.cols,
            data: Pooled::copied(&self.data[from * self.cols..to * self.cols]),
        }
    }

    /// The columns listed, in that order, copied.
    pub fn select_cols(&self, cols: &[usize]) -> Mat {
        Mat::from_fn(self.rows, cols.len(), |i, j| self[(i, cols[j])])
    }

    /// Makes it `rows × cols`, in the memory that it has where that suffices; the entries are arbitrary.
    pub fn resize(&mut self, rows: usize, cols: usize) {
        self.data.resize_any(rows * cols);
        (self.rows, self.cols) = (rows, cols);
    }

    /// Sets every entry.
    pub fn fill(&mut self, value: f64) {
        self.data.fill(value);
    }

    /// Adds `scale · other`.
    pub fn add_scaled(&mut self, scale: f64, other: &Mat) {
        debug_assert_eq!((self.rows, self.cols), (other.rows, other.cols));
        for (a, b) in self.data.iter_mut().zip(&other.data[..]) {
            *a += scale * b;
        }
    }

    /// Multiplies every entry.
    pub fn scale(&mut self, by: f64) {
        self.data.iter_mut().for_each(|a| *a *= by);
    }

    /// Applies `f` to every entry.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Mat {
        let mut data = Pooled::with_capacity(self.len());
        data.extend(self.data.iter().map(|&a| f(a)));
        Mat { rows: self.rows, cols: self.cols, data }
    }

    /// Σ_ij A_ij B_ij.
    pub fn dot(&self, other: &Mat) -> f64 {
        debug_assert_eq!((self.rows, self.cols), (other.rows, other.cols));
        self.data.iter().zip(&other.data[..]).map(|(a, b)| a * b).sum()
    }

    /// The sum of the diagonal.
    pub fn trace(&self) -> f64 {
        (0..self.rows.min(self.cols)).map(|i| self[(i, i)]).sum()
    }

    /// Whether no entry is NaN or infinite.
    pub fn is_finite(&self) -> bool {
        all_finite(&self.data)
    }

    /// `"rows × cols"`, for messages.
    pub fn shape(&self) -> String {
        format!("{} × {}", self.rows, self.cols)
    }
}

impl Index<(usize, usize)> for Mat {
    type Output = f64;
    #[inline]
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        debug_assert!(i < self.rows && j < self.cols);
        &self.data[i * self.cols + j]
    }
}

impl IndexMut<(usize, usize)> for Mat {
    #[inline]
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        debug_assert!(i < self.rows && j < self.cols);
        &mut self.data[i * self.cols + j]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transpose_in_place_of_another_is_the_transpose() {
        let mut out = Mat::filled(3, 7, f64::NAN);
        for (rows, cols) in [(0, 3), (3, 0), (1, 1), (4, 4), (5, 9), (16, 3), (3, 16), (12, 8)] {
            let a = Mat::from_fn(rows, cols, |i, j| (100 * i + j) as f64);
            a.transpose_into(&mut out);
            assert_eq!(out, Mat::from_fn(cols, rows, |i, j| a[(j, i)]));
        }
    }
}
