//! How much memory and work may be used: what a table, a fit or a model file needs is estimated before it is begun.
//!
//! The limit is [`MAX_MEMORY`] in the environment, such as `64GB`, or three quarters of what the machine, or the container,
//! has, where the system tells (Linux does).
//! [`MAX_NODES`] is the limit of the nodes that an expectation of a model file may use.

use crate::error::{Error, Result};
use crate::expectation::DEFAULT_MAX_NODES;
use std::sync::OnceLock;

/// The variable of the environment that sets the limit.
pub const MAX_MEMORY: &str = "LATENTGP_MAX_MEMORY";

/// The variable of the environment that sets how many nodes an expectation of a model file may use a point.
pub const MAX_NODES: &str = "LATENTGP_MAX_NODES";

/// The part of a machine's memory that may be used.
const PART: f64 = 0.75;
/// The units of a limit, and their bytes.
const UNITS: [(&str, f64); 4] = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("B", 1.0)];

/// Errs where `what` takes more memory than may be used; `advice` says what would take less.
///
/// ```no_run
/// use latentgp::budget;
/// assert!(budget::check("a table", 1e3, "fewer rows").is_ok());
/// let error = budget::check("a table", 1e18, "fewer rows").unwrap_err().to_string();
/// assert!(error.contains("1000000 TB") && error.contains("fewer rows"));
/// ```
pub fn check(what: &str, bytes: f64, advice: &str) -> Result<()> {
    let limit = limit()?;
    match bytes <= limit {
        true => Ok(()),
        false => Err(Error::TooLarge {
            what: what.into(),
            needs: size(bytes),
            limit: size(limit),
            advice: advice.into(),
        }),
    }
}

/// The limit in bytes; errs where the environment has one that cannot be read.
pub fn limit() -> Result<f64> {
    static LIMIT: OnceLock<Result<f64>> = OnceLock::new();
    let read = || match std::env::var(MAX_MEMORY) {
        Ok(text) => {
            bytes_of(&text).ok_or_else(|| Error::invalid(MAX_MEMORY, "a size such as 64GB or 500MB", text))
        }
        Err(_) => Ok(installed().map_or(f64::INFINITY, |bytes| PART * bytes)),
    };
    LIMIT.get_or_init(read).clone()
}

/// How many nodes a point an expectation may use that comes from a model file; errs where the environment has a limit that
/// cannot be read.
pub fn max_nodes() -> Result<usize> {
    match std::env::var(MAX_NODES) {
        Ok(text) => text.trim().parse().map_err(|_| Error::invalid(MAX_NODES, "a whole number", text)),
        Err(_) => Ok(DEFAULT_MAX_NODES),
    }
}

/// `64GB`, `1.5 TB`, `1e9`.
fn bytes_of(text: &str) -> Option<f64> {
    let upper = text.trim().to_uppercase();
    let (number, unit) = UNITS
        .iter()
        .find_map(|(name, bytes)| Some((upper.strip_suffix(name)?, *bytes)))
        .unwrap_or((&upper, 1.0));
    let value: f64 = number.trim().parse().ok()?;
    (value > 0.0 && value.is_finite()).then_some(value * unit)
}

/// A size for a message.
fn size(bytes: f64) -> String {
    let (name, unit) = UNITS.into_iter().find(|(_, unit)| bytes >= *unit).unwrap_or(("B", 1.0));
    let value = bytes / unit;
    if value < 100.0 { format!("{value:.1} {name}") } else { format!("{value:.0} {name}") }
}

/// The bytes of memory that this process could have, where the system tells.
fn installed() -> Option<f64> {
    let text = |path: &str| std::fs::read_to_string(path).ok();
    let machine = text("/proc/meminfo").and_then(|all| {
        let line = all.lines().find(|l| l.starts_with("MemTotal:"))?.to_string();
        Some(1024.0 * line.split_whitespace().nth(1)?.parse::<f64>().ok()?)
    });
    let container = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .into_iter()
        .find_map(|path| text(path)?.trim().parse::<f64>().ok());
    match (machine, container) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes) in [("64GB", 64e9), ("1.5 tb", 1.5e12), ("500MB", 5e8), ("12", 12.0), ("7B", 7.0)] {
            assert_eq!(bytes_of(text), Some(bytes), "{text}");
        }
        for text in ["", "GB", "-1GB", "0", "lots", "1e999", "nan"] {
            assert_eq!(bytes_of(text), None, "{text}");
        }
        assert_eq!(
            (size(64e9), size(1.234e6), size(12.0), size(5e14)),
            ("64.0 GB".into(), "1.2 MB".into(), "12.0 B".into(), "500 TB".into())
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_limit_is_part_of_the_machine() {
        let limit = limit().unwrap();
        assert!(
            limit > 0.0 && installed().is_none_or(|all| limit <= all || std::env::var(MAX_MEMORY).is_ok())
        );
        let error = check("the covariance", 1e30, "fewer rows").unwrap_err().to_string();
        assert!(error.contains("the covariance") && error.contains(MAX_MEMORY), "{error}");
    }
}
