//! `name(option=value, …)`: how expectations and likelihoods are written.

use crate::error::{Error, Result};
use std::str::FromStr;

/// Options of a name, each with its default.
pub(crate) type Options = &'static [(&'static str, &'static str)];

/// A call of a known name, with a value for each of its options.
pub(crate) struct Call<'a> {
    /// Its place in the list of names.
    pub place: usize,
    name: &'static str,
    given: Vec<(&'static str, &'a str)>,
    expression: &'a str,
}

impl<'a> Call<'a> {
    /// Reads a call of one of the names; `what` is the word for them in messages.
    ///
    /// Errs for an unknown name, with the known ones and the nearest of them, and for an unknown option.
    pub fn read(expression: &'a str, what: &str, known: &[(&'static str, Options)]) -> Result<Self> {
        let fail = |reason: String| Error::Parse { expression: expression.to_string(), reason };
        let text = expression.trim();
        let (name, args) = match text.split_once('(') {
            None => (text, ""),
            Some((name, rest)) => match rest.trim_end().strip_suffix(')') {
                Some(args) => (name.trim_end(), args),
                None => return Err(fail("the parenthesis after the name is not closed".into())),
            },
        };
        let Some(place) = known.iter().position(|(n, _)| *n == name) else {
            let all: Vec<&str> = known.iter().map(|n| n.0).collect();
            let guess = crate::nearest::nearest(name, &all)
                .map_or(String::new(), |n| format!("; did you mean `{n}`?"));
            let all = all.join(", ");
            return Err(fail(format!("no {what} is called `{name}`; known are {all}{guess}")));
        };
        let (name, options) = known[place];
        let mut given: Vec<(&str, &str)> = options.to_vec();
        for arg in args.split(',').map(str::trim).filter(|a| !a.is_empty()) {
            let (key, value) =
                arg.split_once('=').ok_or_else(|| fail(format!("`{arg}` is not of the form name=value")))?;
            let option = options.iter().position(|(k, _)| *k == key.trim()).ok_or_else(|| {
                let takes: Vec<&str> = options.iter().map(|o| o.0).collect();
                let takes = if takes.is_empty() { "none".into() } else { takes.join(", ") };
                fail(format!("`{name}` has no argument `{}`; it takes {takes}", key.trim()))
            })?;
            given[option].1 = value.trim();
        }
        Ok(Call { place, name, given, expression })
    }

    /// The value of an option as it is written; empty where nothing is given and there is no default.
    pub fn text(&self, option: &str) -> &'a str {
        self.given.iter().find(|(k, _)| *k == option).map_or("", |(_, value)| value)
    }

    /// The value of an option.
    pub fn get<T: FromStr>(&self, option: &str, expected: &str) -> Result<T> {
        self.text(option).parse().map_err(|_| self.wrong(option, expected))
    }

    /// An option with another value than it takes.
    pub fn wrong(&self, option: &str, expected: &str) -> Error {
        let (name, value) = (self.name, self.text(option));
        let reason = format!("`{option}` of `{name}` must be {expected}, not `{value}`");
        Error::Parse { expression: self.expression.to_string(), reason }
    }
}
