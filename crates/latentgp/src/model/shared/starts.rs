//! Where fits start: latent positions and inducing inputs.

use super::init::Init;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::linalg;
use crate::mat::Mat;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// The kinds of starts after the first, in turn: the initial positions, the width of their shaking, and
/// whether the noise starts high.
///
/// A fit with high noise rises fast and mostly ends high. A spectral start with little noise rises slowly and
/// sometimes ends highest. A race does not compare the two kinds with each other.
static KINDS: [(Init, f64, bool); 12] = [
    (Init::Rotated, 0.0, true),
    (Init::Pca, 0.3, true),
    (Init::Random, 0.0, true),
    (Init::PcaRaw, 0.0, true),
    (Init::Pca, 0.0, true),
    (Init::Rotated, 0.0, true),
    (Init::Spectral, 0.0, true),
    (Init::Pca, 1.0, true),
    (Init::Spectral, 0.0, false),
    (Init::Rotated, 0.0, false),
    (Init::Random, 0.0, false),
    (Init::Pca, 1.0, false),
];

/// The group of a start; a race compares the starts within a group.
pub(crate) fn group(restart: usize) -> usize {
    restart.checked_sub(1).map_or(0, |later| usize::from(KINDS[later % KINDS.len()].2))
}

/// The noise of high starts, as a part of the variance: it explains half of it, which prevents early
/// overfitting.
pub(crate) const HIGH_NOISE: f64 = 0.5;

/// Positions at the start of run `restart`, and its noise as a part of the variance.
///
/// The first run starts as a single fit does, at `first`; the others differ in kind.
pub(crate) fn start(
    y: &Mat,
    q: usize,
    restart: usize,
    (first, noise): (&Init, f64),
    rng: &mut ChaCha8Rng,
) -> Result<(Mat, f64)> {
    let Some(later) = restart.checked_sub(1) else { return Ok((first.positions(y, q, rng)?, noise)) };
    let (kind, width, high) = &KINDS[later % KINDS.len()];
    let mut x = kind.positions(y, q, rng)?;
    shake(&mut x, *width, rng);
    // A noise that is no positive number stays as it is, for the check of the parameters to name.
    Ok((x, if *high && noise > 0.0 { noise.max(HIGH_NOISE) } else { noise }))
}

/// How far a hop shakes positions, whose prior is N(0, I).
pub(crate) const HOP: f64 = 1.0;

pub(crate) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// Draws from N(0, width²).
pub(crate) fn normals(rows: usize, cols: usize, width: f64, rng: &mut ChaCha8Rng) -> Mat {
    Mat::from_fn(rows, cols, |_, _| width * normal(rng))
}

/// Adds N(0, width²) to every entry.
pub(crate) fn shake(x: &mut Mat, width: f64, rng: &mut ChaCha8Rng) {
    for v in x.as_mut_slice() {
        *v += width * normal(rng);
    }
}

/// X R with a random rotation R: Gram–Schmidt of normal draws.
pub(crate) fn rotated(x: &Mat, rng: &mut ChaCha8Rng) -> Mat {
    let q = x.cols();
    let mut r = Mat::zeros(q, q);
    for k in 0..q {
        loop {
            let mut v: Vec<f64> = (0..q).map(|_| StandardNormal.sample(rng)).collect();
            for j in 0..k {
                let along: f64 = r.row(j).iter().zip(&v).map(|(a, b)| a * b).sum();
                v.iter_mut().zip(r.row(j)).for_each(|(v, a)| *v -= along * a);
            }
            let length = v.iter().map(|v| v * v).sum::<f64>().sqrt();
            if length > 1e-3 {
                (0..q).for_each(|i| r[(k, i)] = v[i] / length);
                break;
            }
        }
    }
    linalg::mul_nt(x, &r)
}

/// Laplacian eigenmaps: eigenvectors of D^-½ W D^-½ after the first, where W is 1 between rows of which one
/// is among the other's nearest neighbours. With many rows only a part is decomposed; each other row is
/// placed at the mean of its nearest ones.
pub(crate) fn spectral(y: &Mat, q: usize) -> Result<Mat> {
    /// The most rows in the decomposed graph.
    const MOST: usize = 1000;
    /// Neighbours of a row.
    const NEIGHBOURS: usize = 10;
    let (n, d) = (y.rows(), y.cols());
    // Missing cells are replaced by the mean of their column, which is 0 up to scaling.
    let value = |i: usize, j: usize| if y[(i, j)].is_nan() { 0.0 } else { y[(i, j)] };
    let square = |a: usize, b: usize| (0..d).map(|j| (value(a, j) - value(b, j)).powi(2)).sum::<f64>();
    let step = n.div_ceil(MOST);
    let rows: Vec<usize> = (0..n).step_by(step).collect();
    let near = |i: usize, most: usize| {
        let mut all: Vec<(f64, usize)> =
            rows.iter().enumerate().filter(|(_, r)| **r != i).map(|(k, r)| (square(i, *r), k)).collect();
        let most = most.min(all.len());
        if most > 0 && most < all.len() {
            all.select_nth_unstable_by(most - 1, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        }
        all.truncate(most);
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        all
    };
    let m = rows.len();
    let mut w = Mat::zeros(m, m);
    for (a, row) in rows.iter().enumerate() {
        for (_, b) in near(*row, NEIGHBOURS) {
            (w[(a, b)], w[(b, a)]) = (1.0, 1.0);
        }
    }
    // A small weight between all rows joins separate parts of the graph.
    let little = 1e-3 * NEIGHBOURS as f64 / m as f64;
    w.as_mut_slice().iter_mut().for_each(|v| *v += little);
    let root: Vec<f64> = (0..m).map(|i| w.row(i).iter().sum::<f64>().sqrt()).collect();
    let scaled = Mat::from_fn(m, m, |i, j| w[(i, j)] / (root[i] * root[j]));
    let (_, vectors) = linalg::eigh(&scaled)?;
    let own = Mat::from_fn(m, q, |i, k| if k + 2 <= m { vectors[(i, m - 2 - k)] / root[i] } else { 0.0 });
    let mut x = Mat::zeros(n, q);
    for i in 0..n {
        if i % step == 0 {
            (0..q).for_each(|k| x[(i, k)] = own[(i / step, k)]);
        } else {
            let near = near(i, 3);
            for k in 0..q {
                x[(i, k)] = near.iter().map(|(_, r)| own[(*r, k)]).sum::<f64>() / near.len().max(1) as f64;
            }
        }
    }
    for k in 0..q {
        let mean = x.col(k).iter().sum::<f64>() / n as f64;
        (0..n).for_each(|i| x[(i, k)] -= mean);
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

/// `m` rows of x that are far apart by k-means++ seeding: each next row is drawn in proportion to its squared
/// distance from the drawn rows.
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

    /// Two noisy arcs in five columns, far apart.
    fn arcs() -> Mat {
        Mat::from_fn(40, 5, |i, j| {
            let (t, side) = (0.15 * (i / 2) as f64, (i % 2) as f64);
            (t + j as f64).sin() + 4.0 * side + 0.01 * ((i * 7 + j * 3) as f64).sin()
        })
    }

    #[test]
    fn starts_differ_in_kind_and_repeat() {
        let y = arcs();
        let at = |k: usize| {
            let mut rng = crate::fit::rng_of(3, k);
            start(&y, 2, k, (&Init::Pca, 0.05), &mut rng).unwrap()
        };
        let all: Vec<(Mat, f64)> = (0..=KINDS.len()).map(at).collect();
        for (k, (x, noise)) in all.iter().enumerate() {
            assert!(x.is_finite() && (x.rows(), x.cols()) == (40, 2));
            assert_eq!((x, noise), (&at(k).0, &at(k).1), "start {k} repeats");
            assert_eq!(*noise > 0.05, group(k) == 1, "start {k}");
            assert!(all[..k].iter().all(|(other, level)| other != x || level != noise), "start {k} is new");
        }
        assert!(at(1).1 == HIGH_NOISE && at(0).1 == 0.05);
    }

    #[test]
    fn a_spectral_start_separates_what_is_apart() {
        let x = Init::Spectral.positions(&arcs(), 2, &mut crate::fit::rng_of(0, 0)).unwrap();
        let side = |i: usize| x[(i, 0)].signum();
        assert!((2..40).all(|i| side(i) == side(i % 2)) && side(0) != side(1), "{x:?}");
    }

    #[test]
    fn a_rotation_keeps_lengths() {
        let x = Mat::from_fn(7, 3, |i, j| ((i * 3 + j) as f64).cos());
        let turned = rotated(&x, &mut crate::fit::rng_of(1, 1));
        for i in 0..7 {
            let square = |m: &Mat| m.row(i).iter().map(|v| v * v).sum::<f64>();
            assert!((square(&x) - square(&turned)).abs() < 1e-12);
        }
        assert!(turned != x);
    }

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
