//! Where fits start: latent positions and inducing inputs.

use super::pca;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::mat::Mat;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Principal components, each scaled to unit variance; restarts after the first are shaken.
pub(crate) fn start_positions(y: &Mat, q: usize, restart: usize, rng: &mut ChaCha8Rng) -> Result<Mat> {
    let mut x = pca::scores(y, q)?;
    let n = y.rows();
    let std = |x: &Mat, k: usize| ((0..n).map(|i| x[(i, k)].powi(2)).sum::<f64>() / n as f64).sqrt();
    let first = std(&x, 0);
    for k in 0..q {
        let own = std(&x, k);
        let empty = own <= 1e-9 * first.max(f64::MIN_POSITIVE);
        for i in 0..n {
            let noise: f64 = StandardNormal.sample(rng);
            x[(i, k)] = if empty { 0.1 * noise } else { x[(i, k)] / own };
            if restart > 0 && !empty {
                x[(i, k)] += 0.3 * noise;
            }
        }
    }
    Ok(x)
}

/// Multiplies the free lengthscales of a kernel.
pub(crate) fn scale_lengthscales(kernel: &mut dyn Kernel, factor: f64) {
    for (name, p) in kernel.params_mut() {
        if name.ends_with("lengthscale") && !p.fixed {
            let start = p.value.map(|l| l * factor);
            if start.as_slice().iter().all(|l| p.transform.admits(*l)) {
                p.value = start;
            }
        }
    }
}

/// `m` rows of x that are far apart: k-means++ seeding, each next row drawn in proportion to its squared
/// distance from those taken.
pub(crate) fn spread_out(x: &Mat, m: usize, rng: &mut ChaCha8Rng) -> Mat {
    let n = x.rows();
    let square =
        |i: usize, j: usize| -> f64 { x.row(i).iter().zip(x.row(j)).map(|(a, b)| (a - b).powi(2)).sum() };
    let mut taken = vec![rng.random_range(0..n)];
    let mut nearest: Vec<f64> = (0..n).map(|i| square(i, taken[0])).collect();
    while taken.len() < m {
        let total: f64 = nearest.iter().sum();
        let mut left = rng.random::<f64>() * total;
        let mut next = (0..n).find(|i| !taken.contains(i)).expect("m is at most n");
        for i in (0..n).filter(|i| !taken.contains(i)) {
            next = i;
            left -= nearest[i];
            if left <= 0.0 {
                break;
            }
        }
        taken.push(next);
        (0..n).for_each(|i| nearest[i] = nearest[i].min(square(i, next)));
    }
    // Rows that coincide would make Kzz singular; a small shift keeps them apart.
    let mut z = x.select_rows(&taken);
    for v in z.as_mut_slice() {
        let noise: f64 = StandardNormal.sample(rng);
        *v += 1e-3 * noise;
    }
    z
}

/// `m` rows of `x`, evenly spread along the column of the largest variance.
pub(crate) fn spread_along_dominant(x: &Mat, m: usize) -> Mat {
    let n = x.rows();
    let variance = |k: usize| {
        let column = x.col(k);
        let mean = column.iter().sum::<f64>() / n as f64;
        column.iter().map(|v| (v - mean).powi(2)).sum::<f64>()
    };
    let variances: Vec<f64> = (0..x.cols()).map(variance).collect();
    let dominant = (0..x.cols()).fold(0, |best, k| if variances[k] > variances[best] { k } else { best });
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| x[(*a, dominant)].total_cmp(&x[(*b, dominant)]).then(a.cmp(b)));
    let rows: Vec<usize> = (0..m).map(|j| order[(2 * j + 1) * n / (2 * m)]).collect();
    x.select_rows(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_spread_along_the_widest_column() {
        let x =
            Mat::from_fn(
                8,
                2,
                |i, j| if j == 0 { 0.1 * (i as f64) } else { [5., 1., 7., 3., 0., 6., 2., 4.][i] },
            );
        assert_eq!(spread_along_dominant(&x, 4).col(1), [1.0, 3.0, 5.0, 7.0]);
        assert_eq!(spread_along_dominant(&x, 8).col(1), (0..8).map(f64::from).collect::<Vec<_>>());
    }
}
