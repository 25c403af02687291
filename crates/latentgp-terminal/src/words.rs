//! Numbers, bars and counts as a reader likes them.

/// The longest bar.
const BAR: f64 = 24.0;

/// A number with about five digits.
pub fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        a if (1e-3..1e5).contains(&a) => {
            let places = (4 - a.log10().floor() as i32).clamp(0, 6) as usize;
            format!("{value:.places$}")
        }
        a if (1e5..1e15).contains(&a) => format!("{value:.0}"),
        _ => format!("{value:.3e}"),
    }
}

/// `part` of the longest bar in eighths of a block.
pub fn bar(part: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (part.clamp(0.0, 1.0) * BAR * 8.0).round() as usize;
    let text = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
    if text.is_empty() { "▏".into() } else { text }
}

/// `3 rows`, `1 row`.
pub fn count(n: usize, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_bars_are_as_long_as_they_should_be() {
        assert_eq!(short(155.3123), "155.31");
        assert_eq!(short(-0.012345678), "-0.012346");
        assert_eq!(short(1234567.8), "1234568");
        assert_eq!(short(1e-9), "1.000e-9");
        assert_eq!(short(0.0), "0");
        assert_eq!(bar(1.0).chars().count(), 24);
        assert_eq!(bar(0.5 / 24.0), "▌");
        assert_eq!(bar(0.0), "▏");
    }
}
