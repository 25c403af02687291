//! Principal components of data with missing cells: the usual start of latent positions.

use crate::error::Result;
use crate::linalg;
use crate::mat::Mat;

/// Rounds of filling missing cells from the components.
const FILL_ROUNDS: usize = 20;

/// Scores of Y on its `q` leading principal components, N×q, leading first; zero columns where Y has fewer.
/// Each component's sign is such that its largest score is positive. Missing cells are filled with the column
/// mean at first and then with the reconstruction from the leading components.
pub(crate) fn scores(y: &Mat, q: usize) -> Result<Mat> {
    let (n, d) = (y.rows(), y.cols());
    let missing = y.as_slice().iter().any(|v| v.is_nan());
    let mut filled = centred(&fill_with_means(y));
    let mut scores = leading(&filled, q)?;
    for _ in 0..if missing { FILL_ROUNDS } else { 0 } {
        let norms: Vec<f64> = (0..q).map(|k| (0..n).map(|i| scores[(i, k)].powi(2)).sum()).collect();
        let loadings = linalg::mul_tn(&scores, &filled);
        for i in 0..n {
            for j in 0..d {
                if y[(i, j)].is_nan() {
                    let part = |k: usize| {
                        if norms[k] > 0.0 { scores[(i, k)] * loadings[(k, j)] / norms[k] } else { 0.0 }
                    };
                    filled[(i, j)] = (0..q).map(part).sum();
                }
            }
        }
        filled = centred(&filled);
        scores = leading(&filled, q)?;
    }
    Ok(scores)
}

fn fill_with_means(y: &Mat) -> Mat {
    let mut filled = y.clone();
    for j in 0..y.cols() {
        let seen: Vec<f64> = (0..y.rows()).map(|i| y[(i, j)]).filter(|v| !v.is_nan()).collect();
        let mean = if seen.is_empty() { 0.0 } else { seen.iter().sum::<f64>() / seen.len() as f64 };
        (0..y.rows()).filter(|i| y[(*i, j)].is_nan()).for_each(|i| filled[(i, j)] = mean);
    }
    filled
}

fn centred(y: &Mat) -> Mat {
    let mut out = y.clone();
    for j in 0..y.cols() {
        let mean = (0..y.rows()).map(|i| y[(i, j)]).sum::<f64>() / y.rows() as f64;
        (0..y.rows()).for_each(|i| out[(i, j)] -= mean);
    }
    out
}

/// Leading scores of centred Y, from the smaller of YᵀY and YYᵀ.
fn leading(y: &Mat, q: usize) -> Result<Mat> {
    let (n, d) = (y.rows(), y.cols());
    let mut scores = Mat::zeros(n, q);
    if d <= n {
        let (_, vectors) = linalg::eigh(&linalg::mul_tn(y, y))?;
        for k in 0..q.min(d) {
            let direction = Mat::column(&vectors.col(d - 1 - k));
            let score = linalg::mul(y, &direction);
            (0..n).for_each(|i| scores[(i, k)] = score[(i, 0)]);
        }
    } else {
        let (values, vectors) = linalg::eigh(&linalg::mul_nt(y, y))?;
        for k in 0..q.min(n) {
            let length = values[n - 1 - k].max(0.0).sqrt();
            (0..n).for_each(|i| scores[(i, k)] = vectors[(i, n - 1 - k)] * length);
        }
    }
    for k in 0..q {
        let largest =
            (0..n).map(|i| scores[(i, k)]).fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
        if largest < 0.0 {
            (0..n).for_each(|i| scores[(i, k)] = -scores[(i, k)]);
        }
    }
    Ok(scores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_the_eigenproblem_agree_and_missing_cells_are_bridged() {
        let t: Vec<f64> = (0..12).map(|i| (i as f64 * 0.9).sin() * 2.0).collect();
        let y = Mat::from_fn(12, 5, |i, j| t[i] * (1.0 + j as f64) + 0.01 * ((i * 5 + j) as f64).cos());
        let tall = leading(&centred(&y), 2).unwrap();
        let wide_of_same = {
            let padded = Mat::from_fn(12, 20, |i, j| if j < 5 { centred(&y)[(i, j)] } else { 0.0 });
            leading(&padded, 2).unwrap()
        };
        assert!(tall.as_slice().iter().zip(wide_of_same.as_slice()).all(|(a, b)| (a - b).abs() < 1e-6));
        let mut holed = y.clone();
        holed[(3, 1)] = f64::NAN;
        holed[(7, 4)] = f64::NAN;
        let bridged = scores(&holed, 1).unwrap();
        let full = scores(&y, 1).unwrap();
        assert!(bridged.as_slice().iter().zip(full.as_slice()).all(|(a, b)| (a - b).abs() < 0.1));
    }
}
