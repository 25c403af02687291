//! The start of the inducing inputs.

use crate::mat::Mat;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// `m` different rows of x that are far apart by k-means++ seeding: each next row is drawn in proportion to
/// its squared distance from the drawn rows.
pub(super) fn spread_out(x: &Mat, m: usize, rng: &mut ChaCha8Rng) -> Mat {
    let n = x.rows();
    let mut nearest = vec![f64::INFINITY; n];
    let mut taken = vec![rng.random_range(0..n)];
    loop {
        let last = taken[taken.len() - 1];
        for (i, near) in nearest.iter_mut().enumerate() {
            let square: f64 = x.row(i).iter().zip(x.row(last)).map(|(a, b)| (a - b) * (a - b)).sum();
            // Distances that overflow are replaced by large finite ones.
            *near = near.min(square.min(f64::MAX / n as f64));
        }
        // A drawn row and its duplicates have distance 0 and cannot be drawn again.
        let total: f64 = nearest.iter().sum();
        if taken.len() == m || total <= 0.0 {
            return x.select_rows(&taken);
        }
        let mut left = rng.random::<f64>() * total;
        let drawn = nearest.iter().position(|d| {
            left -= d;
            *d > 0.0 && left <= 0.0
        });
        let farthest = || (0..n).max_by(|a, b| nearest[*a].total_cmp(&nearest[*b]));
        taken.extend(drawn.or_else(farthest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn rows_are_distinct_and_fewer_where_they_repeat() {
        let x = Mat::from_fn(40, 2, |i, j| ((i % 5) * (j + 1)) as f64);
        let z = spread_out(&x, 12, &mut ChaCha8Rng::seed_from_u64(1));
        let mut rows: Vec<String> = (0..z.rows()).map(|i| format!("{:?}", z.row(i))).collect();
        rows.sort();
        rows.dedup();
        assert_eq!((z.rows(), rows.len()), (5, 5));
        let wide = Mat::column(&[-1e308, 0.0, 1e308]);
        assert_eq!(spread_out(&wide, 3, &mut ChaCha8Rng::seed_from_u64(1)).rows(), 3);
    }
}
