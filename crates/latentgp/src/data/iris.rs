//! Fisher's irises: four lengths in centimetres of 150 flowers of three species.
//!
//! R. A. Fisher, "The use of multiple measurements in taxonomic problems", Annals of Eugenics 7 (1936).

use crate::mat::Mat;

const CSV: &str = include_str!("iris.csv");

/// The names of the four measurements.
pub const COLUMNS: [&str; 4] = ["sepal_length_cm", "sepal_width_cm", "petal_length_cm", "petal_width_cm"];

/// The 150 × 4 measurements and the species of each row, fifty rows a species.
pub fn load() -> (Mat, Vec<String>) {
    let rows: Vec<Vec<&str>> = CSV.lines().skip(1).map(|line| line.split(',').collect()).collect();
    // The file is part of the program, and a test reads all of it.
    let values = Mat::from_fn(rows.len(), COLUMNS.len(), |i, j| rows[i][j].parse().unwrap_or(f64::NAN));
    (values, rows.iter().map(|row| row[COLUMNS.len()].to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        let (values, species) = load();
        assert_eq!(CSV.lines().next(), Some(format!("{},species", COLUMNS.join(",")).as_str()));
        assert_eq!((values.rows(), values.cols(), species.len()), (150, 4, 150));
        for (start, name) in [(0, "setosa"), (50, "versicolor"), (100, "virginica")] {
            assert!(species[start..start + 50].iter().all(|s| s == name));
        }
        // The sums that scikit-learn's copy has.
        for (j, sum) in [876.5, 458.6, 563.7, 179.9].into_iter().enumerate() {
            let total: f64 = values.col(j).iter().sum();
            assert!((total - sum).abs() < 1e-9, "{} {total}", COLUMNS[j]);
        }
    }
}
