//! What can go wrong, once for the whole crate.

use thiserror::Error;

/// Every way in which a call of this crate can fail.
///
/// A message says what was expected, what was found and what to try.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// Two sizes that must agree do not.
    #[error("{what}: expected {expected}, found {found}")]
    Shape {
        /// The array or the argument.
        what: String,
        /// What would have fitted.
        expected: String,
        /// What came.
        found: String,
    },
    /// A matrix has no Cholesky factor, even with the largest jitter that is tried.
    #[error(
        "{what} is not positive definite, even with {jitter:.1e} added to its diagonal; \
         try fewer inducing points, a larger noise variance or a larger jitter"
    )]
    NotPositiveDefinite {
        /// The matrix.
        what: String,
        /// The largest jitter that was tried.
        jitter: f64,
    },
    /// The kernel has no closed-form Ψ-statistics.
    #[error(
        "the kernel `{kernel}` has no closed-form Ψ-statistics (rbf, linear, constant, white, their sums, \
         and products of them on separate dims have); try the expectation `unscented`"
    )]
    NoClosedForm {
        /// The kernel expression.
        kernel: String,
    },
    /// A number is NaN or infinite where it must not be.
    #[error("{what} is not finite; check the data for infinities and extreme values, or rescale them")]
    NotFinite {
        /// The array or the value.
        what: String,
    },
    /// A parameter or an option has a value outside its domain.
    #[error("{what}: expected {expected}, found {found}")]
    Invalid {
        /// The parameter or the option.
        what: String,
        /// What is allowed.
        expected: String,
        /// What came.
        found: String,
    },
    /// An option was given that the model does not have.
    #[error("{option} has no effect with {}; leave it out", listed(.settings))]
    NoEffect {
        /// The option.
        option: String,
        /// The options that leave it without effect, and their values; a switch has none.
        settings: Vec<(String, String)>,
    },
    /// A kernel or expectation expression cannot be read.
    #[error("cannot read `{expression}`: {reason}")]
    Parse {
        /// The text as given.
        expression: String,
        /// What is wrong and where.
        reason: String,
    },
    /// A rule would need more nodes than the limit allows.
    #[error(
        "`{rule}` needs {nodes} nodes in {dim} dimensions and about {megabytes} MB, above the limit of {limit} nodes; try {cheaper}, or raise the limit"
    )]
    TooManyNodes {
        /// The expectation.
        rule: String,
        /// How many nodes it needs a point.
        nodes: f64,
        /// The number of input dimensions.
        dim: usize,
        /// Memory it would take.
        megabytes: f64,
        /// The limit in force.
        limit: usize,
        /// A rule that would fit.
        cheaper: String,
    },
    /// More memory would be taken than may be used.
    #[error(
        "{what} would take about {needs} of memory, more than the limit of {limit}; take {advice}, or raise the limit by \
         LATENTGP_MAX_MEMORY in the environment"
    )]
    TooLarge {
        /// What takes it.
        what: String,
        /// How much it takes.
        needs: String,
        /// The limit in force.
        limit: String,
        /// What takes less.
        advice: String,
    },
    /// The data cannot be used as they are.
    #[error("{what}: {reason}")]
    Data {
        /// The table, row or column.
        what: String,
        /// What is wrong and what to try.
        reason: String,
    },
    /// A table file cannot be read.
    #[error("{path}, line {line}, column {column}: {reason}")]
    Csv {
        /// The file.
        path: String,
        /// Its line, from 1.
        line: usize,
        /// The column's name or number.
        column: String,
        /// What is wrong and what to try.
        reason: String,
    },
    /// A file cannot be opened, read or written.
    #[error("{path}: {reason}")]
    Io {
        /// The file.
        path: String,
        /// The system's words.
        reason: String,
    },
    /// A model file is damaged, newer than this program, or not a model file.
    #[error("{path}: {reason}")]
    ModelFile {
        /// The file.
        path: String,
        /// What is wrong and what to try.
        reason: String,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// The result of anything that can fail here.
pub type Result<T> = std::result::Result<T, Error>;

/// A number that was written with more digits than anyone reads, in scientific notation.
fn brief(text: String) -> String {
    const LONGEST: usize = 24;
    match text.parse::<f64>() {
        Ok(value) if text.len() > LONGEST => number(value),
        _ => text,
    }
}

/// A number for a message, never of many digits.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        a if (1e-5..1e15).contains(&a) => value.to_string(),
        _ => format!("{value:e}"),
    }
}

impl Error {
    /// Two sizes that do not agree.
    pub fn shape(what: impl Into<String>, expected: impl ToString, found: impl ToString) -> Self {
        Error::Shape { what: what.into(), expected: expected.to_string(), found: found.to_string() }
    }

    /// A value outside its domain.
    pub fn invalid(what: impl Into<String>, expected: impl ToString, found: impl ToString) -> Self {
        Error::Invalid { what: what.into(), expected: expected.to_string(), found: brief(found.to_string()) }
    }

    /// A number that is NaN or infinite where it must not be.
    pub fn not_finite(what: impl Into<String>) -> Self {
        Error::NotFinite { what: what.into() }
    }

    /// Data that cannot be used, and why.
    pub fn data(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Error::Data { what: what.into(), reason: reason.into() }
    }
}

/// Errs where a count is 0.
pub(crate) fn at_least_one(what: &str, count: usize) -> Result<()> {
    if count > 0 { Ok(()) } else { Err(Error::invalid(what, "at least 1", count)) }
}

/// `model=sparse, fitc`.
fn listed(settings: &[(String, String)]) -> String {
    let one = |(name, value): &(String, String)| match value.is_empty() {
        true => name.clone(),
        false => format!("{name}={value}"),
    };
    settings.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_no_endless_numbers() {
        for value in [1e300, -1e-300, f64::MAX, 0.1 + 0.2] {
            let message = Error::invalid("a thing", "another", value).to_string();
            assert!(message.len() < 60, "{message}");
            assert_eq!(number(value).parse::<f64>(), Ok(value));
        }
        assert_eq!(Error::invalid("a", "b", 12.5).to_string(), "a: expected b, found 12.5");
        assert_eq!((number(0.0), number(1e-6), number(3.0)), ("0".into(), "1e-6".into(), "3".into()));
    }
}
