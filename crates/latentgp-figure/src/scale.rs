//! Linear scales: limits that cover the data, and round ticks.

use std::fmt::Write;

/// Below this part of the magnitude a range counts as a single value.
const NARROW: f64 = 1e-9;
/// Magnitudes below this one count as zero.
const TINY: f64 = 1e-290;

/// The interval that an axis shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// The value at the beginning of the axis.
    pub lo: f64,
    /// The value at its end; larger than `lo`.
    pub hi: f64,
}

impl Scale {
    /// The interval from `lo` to `hi`, made wider if it is empty.
    pub fn new(lo: f64, hi: f64) -> Scale {
        let (lo, hi) = if lo <= hi { (lo, hi) } else { (hi, lo) };
        let magnitude = lo.abs().max(hi.abs());
        if magnitude < TINY {
            return Scale { lo: -1.0, hi: 1.0 };
        }
        if hi - lo > NARROW * magnitude {
            return Scale { lo, hi };
        }
        let middle = lo / 2.0 + hi / 2.0;
        Scale { lo: middle - 0.1 * magnitude, hi: middle + 0.1 * magnitude }
    }

    /// The interval that covers the values; −1 to 1 if there is none.
    pub fn covering(values: impl IntoIterator<Item = f64>) -> Scale {
        let limits = values.into_iter().filter(|v| v.is_finite()).fold(None, |limits, v| match limits {
            None => Some((v, v)),
            Some((lo, hi)) => Some((v.min(lo), v.max(hi))),
        });
        let (lo, hi) = limits.unwrap_or((-1.0, 1.0));
        Scale::new(lo, hi)
    }

    /// The same interval, longer by `part` of its length at both ends.
    pub fn padded(self, part: f64) -> Scale {
        let pad = part * self.span();
        Scale { lo: self.lo - pad, hi: self.hi + pad }
    }

    /// The length of the interval.
    pub fn span(&self) -> f64 {
        self.hi - self.lo
    }

    /// Where a value lies: 0 at the beginning, 1 at the end.
    pub fn part(&self, value: f64) -> f64 {
        (value - self.lo) / self.span()
    }

    /// Round values inside the interval, about `count` of them, each with its label.
    pub fn ticks(&self, count: usize) -> Vec<(f64, String)> {
        let step = round_step(self.span() / count.max(1) as f64);
        let first = (self.lo / step - 1e-6).ceil() as i64;
        let last = (self.hi / step + 1e-6).floor() as i64;
        let values: Vec<f64> = (first..=last).map(|k| k as f64 * step).collect();
        values.iter().map(|&v| (v, label(v, step, self.lo.abs().max(self.hi.abs())))).collect()
    }
}

/// The one of 1, 2 and 5 times a power of ten that is nearest to `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let nearest = [(1.0, 1.41), (2.0, 3.16), (5.0, 7.07)].into_iter().find(|(_, below)| step < below * power);
    nearest.map_or(10.0, |(factor, _)| factor) * power
}

/// A label with the decimals that `step` needs; powers of ten where `magnitude` is extreme.
pub fn label(value: f64, step: f64, magnitude: f64) -> String {
    if value.abs() < 0.5 * step {
        return "0".into();
    }
    let digits = (step.log10() + 1e-9).floor() as i32;
    let exponent = (magnitude.log10() + 1e-9).floor() as i32;
    if (-3..6).contains(&exponent) {
        return minus(format!("{value:.*}", (-digits).max(0) as usize));
    }
    // Two divisions, because 10 to a large negative power is not a normal number.
    let half = exponent / 2;
    let scaled = value / 10f64.powi(half) / 10f64.powi(exponent - half);
    let decimals = (exponent - digits).max(0) as usize;
    minus(format!("{scaled:.decimals$}×10{}", superscript(exponent)))
}

/// A number for a reader: about `digits` significant digits, with a true minus sign.
pub fn plain(value: f64, digits: i32) -> String {
    if value.abs() < TINY {
        return "0".into();
    }
    let exponent = value.abs().log10().floor() as i32;
    label(value, 10f64.powi(exponent - digits + 1), value.abs())
}

fn minus(text: String) -> String {
    text.replace('-', "−")
}

fn superscript(exponent: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let mut out = String::new();
    for c in exponent.to_string().chars() {
        let _ = write!(out, "{}", c.to_digit(10).map_or('⁻', |d| DIGITS[d as usize]));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(lo: f64, hi: f64, count: usize) -> Vec<String> {
        Scale::new(lo, hi).ticks(count).into_iter().map(|t| t.1).collect()
    }

    #[test]
    fn ticks_are_round_and_labels_have_the_decimals_they_need() {
        assert_eq!(labels(-1.2, 1.2, 5), ["−1.0", "−0.5", "0", "0.5", "1.0"]);
        assert_eq!(labels(1949.0, 1961.0, 6), ["1950", "1952", "1954", "1956", "1958", "1960"]);
        assert_eq!(labels(0.0, 3e7, 3), ["0", "1×10⁷", "2×10⁷", "3×10⁷"]);
        assert_eq!(labels(0.0, 2.5e-5, 3), ["0", "1×10⁻⁵", "2×10⁻⁵"]);
    }

    #[test]
    fn extreme_ranges_give_a_few_different_ticks() {
        for (lo, hi) in
            [(0.0, 0.0), (5.0, 5.0), (-1e300, 1e300), (1e-300, 2e-300), (1e9, 1e9 + 1e-6), (1e12, 1e12 + 2e4)]
        {
            let labels = labels(lo, hi, 6);
            assert!((2..=8).contains(&labels.len()), "{lo} to {hi}: {labels:?}");
            let mut different = labels.clone();
            different.dedup();
            assert_eq!(labels, different);
        }
    }

    #[test]
    fn plain_numbers_keep_their_significant_digits() {
        assert_eq!(plain(0.8123, 2), "0.81");
        assert_eq!(plain(-1234.56, 5), "−1234.6");
        assert_eq!(plain(-1.5e8, 2), "−1.5×10⁸");
        assert_eq!(plain(0.0, 2), "0");
        assert_eq!(plain(1e-310, 2), "0");
    }

    #[test]
    fn values_that_are_not_numbers_do_not_count() {
        assert_eq!(Scale::covering([f64::NAN, 1.0, f64::INFINITY, 3.0]), Scale { lo: 1.0, hi: 3.0 });
        assert_eq!(Scale::covering([]), Scale { lo: -1.0, hi: 1.0 });
    }
}
