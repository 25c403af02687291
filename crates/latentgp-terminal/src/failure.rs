//! Exit codes: 1 the work failed, 2 wrong usage, 3 bad input data, 130 interrupted.

use latentgp::Error;
use latentgp::recipe::OPTIONS;
use std::fmt;

/// Why the program ends with a code other than 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    message: String,
}

/// What a command returns.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// The work failed: exit code 1.
    pub fn work(message: impl fmt::Display) -> Self {
        Failure { code: 1, message: message.to_string() }
    }

    /// Wrong usage: exit code 2.
    pub fn usage(message: impl fmt::Display) -> Self {
        Failure { code: 2, message: message.to_string() }
    }

    /// Bad input data: exit code 3.
    pub fn data(message: impl fmt::Display) -> Self {
        Failure { code: 3, message: message.to_string() }
    }

    /// The same, with where it happened in front.
    pub fn within(self, place: &str) -> Self {
        Failure { message: format!("{place}: {}", self.message), ..self }
    }

    /// The same, with more behind it.
    pub fn adding(self, more: &str) -> Self {
        Failure { message: format!("{}; {more}", self.message), ..self }
    }

    /// Whether somebody asked to stop.
    pub fn is_interruption(&self) -> bool {
        self.code == 130
    }

    /// Interrupted: exit code 130.
    pub fn interrupted(message: impl fmt::Display) -> Self {
        Failure { code: 130, message: message.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// By what an error is about; where that is not enough, the caller says which it is.
impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        let e = match e {
            Error::NoEffect { option, settings } => return Failure::usage(no_effect(&option, &settings)),
            Error::Invalid { what, expected, found } => Error::Invalid { what: flag(&what), expected, found },
            other => other,
        };
        let code = match e {
            Error::Invalid { .. }
            | Error::Parse { .. }
            | Error::TooManyNodes { .. }
            | Error::NoClosedForm { .. } => 2,
            Error::Csv { .. }
            | Error::Data { .. }
            | Error::Io { .. }
            | Error::Shape { .. }
            | Error::ModelFile { .. }
            | Error::TooLarge { .. } => 3,
            Error::Interrupted => 130,
            _ => 1,
        };
        Failure { code, message: e.to_string() }
    }
}

/// An option of a recipe as it is on the command line; other words stay as they are.
fn flag(name: &str) -> String {
    match name {
        "max_iterations" => "--max-iter".into(),
        name if OPTIONS.contains(&name) => format!("--{}", name.replace('_', "-")),
        other => other.into(),
    }
}

fn no_effect(option: &str, settings: &[(String, String)]) -> String {
    let one = |(name, value): &(String, String)| format!("{} {value}", flag(name)).trim_end().to_string();
    let with = settings.iter().map(one).collect::<Vec<_>>().join(" with ");
    format!("{} has no effect on {with}; leave it out", flag(option))
}
