//! The arguments of a prior's expression: `name(key=value, key="two words")`.

use super::Entry;
use crate::error::{Error, Result};
use std::str::FromStr;

/// Arguments by name. A value in double quotes may hold any characters but a double quote.
pub struct Arguments<'a> {
    expression: &'a str,
    given: Vec<(&'a str, &'a str)>,
}

impl<'a> Arguments<'a> {
    /// The name and the arguments of an expression.
    pub(super) fn read(expression: &'a str) -> Result<(&'a str, Self)> {
        let mut arguments = Arguments { expression, given: Vec::new() };
        let text = expression.trim();
        let Some((name, rest)) = text.split_once('(') else { return Ok((text, arguments)) };
        let Some(mut rest) = rest.strip_suffix(')') else {
            return Err(arguments.wrong("the parenthesis after the name is not closed"));
        };
        while !rest.trim().is_empty() {
            let (item, after) = first_item(rest);
            rest = after;
            let Some((key, value)) = item.split_once('=') else {
                return Err(arguments.wrong(format!("`{}` is not of the form name=value", item.trim())));
            };
            let (key, value) = (key.trim(), value.trim());
            let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
            if bare.contains('"') || bare.is_empty() {
                return Err(
                    arguments.wrong(format!("`{key}` must be a word or a text in quotes, not {value}"))
                );
            }
            if arguments.text(key).is_some() {
                return Err(arguments.wrong(format!("`{key}` is given twice")));
            }
            arguments.given.push((key, bare));
        }
        Ok((name.trim_end(), arguments))
    }

    /// Errs when an argument is none of the entry's.
    pub(super) fn check(&self, entry: &Entry) -> Result<()> {
        match self.given.iter().find(|(key, _)| !entry.arguments.contains(key)) {
            Some((key, _)) => {
                let takes = entry.arguments.join(", ");
                let takes = if takes.is_empty() { "none" } else { &takes };
                Err(self.wrong(format!("`{}` has no argument `{key}`; it takes {takes}", entry.name)))
            }
            None => Ok(()),
        }
    }

    /// The value of an argument, if it was given.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.given.iter().find(|(own, _)| *own == key).map(|(_, value)| *value)
    }

    /// The same, read as what is `expected` of it.
    pub fn value<T: FromStr>(&self, key: &str, expected: &str) -> Result<Option<T>> {
        let read = |text: &str| {
            text.parse().map_err(|_| self.wrong(format!("`{key}` must be {expected}, not `{text}`")))
        };
        self.text(key).map(read).transpose()
    }

    /// An error about the expression.
    pub fn wrong(&self, reason: impl Into<String>) -> Error {
        Error::Parse { expression: self.expression.to_string(), reason: reason.into() }
    }
}

/// The text up to the first comma that is in no quotes, and what comes after it.
fn first_item(text: &str) -> (&str, &str) {
    let mut quoted = false;
    let end = text.find(|c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    });
    end.map_or((text, ""), |end| (&text[..end], &text[end + 1..]))
}

/// A text as an argument that is read back to it.
pub(super) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    if text.chars().all(plain) { text.to_string() } else { format!("\"{text}\"") }
}
