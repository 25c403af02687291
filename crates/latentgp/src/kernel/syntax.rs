//! The grammar of kernel expressions, from text to a tree that knows nothing of kernels.
//!
//! ```text
//! expression = term { "+" term }           term  = factor { "*" factor }
//! factor     = name [ arguments ] | "(" expression ")" [ arguments ]
//! arguments  = "(" [ item { "," item } ] ")"
//! item       = [ name "=" ] value          value = number | list | expression
//! list       = "[" [ item { "," item } ] "]"
//! ```
//!
//! A word such as `true` or `softplus` is an expression that consists of a name. A comma may end a list.

/// The longest expression that is read, in bytes.
pub(super) const MAX_LENGTH: usize = 1 << 24;
/// How deep brackets may nest.
pub(super) const MAX_DEPTH: usize = 64;

/// Why an expression cannot be read.
pub(super) type Reason = String;

/// A composition of calls.
#[derive(Debug)]
pub(super) enum Expr {
    Sum(Vec<Expr>),
    Product(Vec<Expr>),
    Call {
        name: String,
        items: Vec<Item>,
    },
    /// `(…)(…)`: arguments of a whole expression.
    Apply {
        inner: Box<Expr>,
        items: Vec<Item>,
    },
}

/// A value, with a name or without.
#[derive(Debug)]
pub(super) struct Item {
    pub name: Option<String>,
    pub value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    Number(f64),
    List(Vec<Item>),
    Expr(Expr),
}

impl Value {
    /// For messages: what it is, not all of what it says.
    pub fn describe(&self) -> String {
        match self {
            Value::Number(v) => format!("{v}"),
            Value::List(items) => format!("a list of {}", items.len()),
            Value::Expr(Expr::Call { name, items }) if items.is_empty() => format!("`{name}`"),
            Value::Expr(Expr::Call { name, .. }) => format!("`{name}(…)`"),
            Value::Expr(_) => "a composed expression".to_string(),
        }
    }

    /// The name, of a value that is one.
    pub fn word(&self) -> Option<&str> {
        match self {
            Value::Expr(Expr::Call { name, items }) if items.is_empty() => Some(name),
            _ => None,
        }
    }
}

/// Reads a whole expression.
pub(super) fn read(text: &str) -> Result<Expr, Reason> {
    if text.len() > MAX_LENGTH {
        return Err(format!("it has {} bytes, at most {MAX_LENGTH} are read", text.len()));
    }
    let mut reader = Reader { text, at: 0, depth: 0 };
    let expr = reader.expression()?;
    match reader.peek() {
        None => Ok(expr),
        Some(_) => Err(reader.expected("`+`, `*` or the end")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// The next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn expected(&mut self, what: &str) -> Reason {
        match self.peek() {
            Some(c) => {
                let column = self.text[..self.at].chars().count() + 1;
                format!("expected {what} at character {column}, found `{}`", c.escape_debug())
            }
            None => format!("expected {what}, found the end"),
        }
    }

    /// `inner`, one level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Reason>) -> Result<T, Reason> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("brackets nest deeper than {MAX_DEPTH}"));
        }
        let done = inner(self);
        self.depth -= 1;
        done
    }

    fn expression(&mut self) -> Result<Expr, Reason> {
        let mut parts = vec![self.term()?];
        while self.take('+') {
            parts.push(self.term()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::Sum(parts) })
    }

    fn term(&mut self) -> Result<Expr, Reason> {
        let mut parts = vec![self.factor()?];
        while self.take('*') {
            parts.push(self.factor()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::Product(parts) })
    }

    fn factor(&mut self) -> Result<Expr, Reason> {
        if self.take('(') {
            let inner = self.nested(Self::expression)?;
            if !self.take(')') {
                return Err(self.expected("`)`"));
            }
            if !self.take('(') {
                return Ok(inner);
            }
            let items = self.nested(|r| r.items(')'))?;
            return Ok(Expr::Apply { inner: Box::new(inner), items });
        }
        let Some(name) = self.name() else { return Err(self.expected("a kernel")) };
        let items = if self.take('(') { self.nested(|r| r.items(')'))? } else { vec![] };
        Ok(Expr::Call { name, items })
    }

    fn name(&mut self) -> Option<String> {
        self.peek().filter(|c| c.is_ascii_alphabetic() || *c == '_')?;
        let rest = &self.text[self.at..];
        let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.at += len;
        Some(rest[..len].to_string())
    }

    /// Items up to and including the closing bracket.
    fn items(&mut self, close: char) -> Result<Vec<Item>, Reason> {
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(self.item()?);
            if !self.take(',') {
                if self.take(close) {
                    break;
                }
                return Err(self.expected(&format!("`,` or `{close}`")));
            }
        }
        Ok(items)
    }

    fn item(&mut self) -> Result<Item, Reason> {
        let start = self.at;
        if let Some(name) = self.name() {
            if self.take('=') {
                return Ok(Item { name: Some(name), value: self.value()? });
            }
            self.at = start;
        }
        Ok(Item { name: None, value: self.value()? })
    }

    fn value(&mut self) -> Result<Value, Reason> {
        match self.peek() {
            Some('[') => {
                self.take('[');
                Ok(Value::List(self.nested(|r| r.items(']'))?))
            }
            Some(c) if c.is_ascii_digit() || "+-.".contains(c) => Ok(Value::Number(self.number()?)),
            _ => Ok(Value::Expr(self.expression()?)),
        }
    }

    fn number(&mut self) -> Result<f64, Reason> {
        let rest = &self.text[self.at..];
        let bytes = rest.as_bytes();
        let part = |i: usize| {
            let c = bytes[i];
            let sign = c == b'+' || c == b'-';
            c.is_ascii_alphanumeric()
                || c == b'.'
                || (sign && (i == 0 || matches!(bytes[i - 1], b'e' | b'E')))
        };
        let len = (0..bytes.len()).find(|&i| !part(i)).unwrap_or(bytes.len());
        match rest[..len].parse::<f64>() {
            Ok(v) if v.is_finite() => {
                self.at += len;
                Ok(v)
            }
            _ => Err(self.expected("a finite number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_binds_tighter_and_parentheses_tighter_still() {
        let Ok(Expr::Sum(parts)) = read("a + b*(c+d) + e(x=1)") else { panic!() };
        assert_eq!(parts.len(), 3);
        let Expr::Product(factors) = &parts[1] else { panic!() };
        assert!(matches!(&factors[1], Expr::Sum(inner) if inner.len() == 2));
    }

    #[test]
    fn numbers_and_lists_and_words() {
        let Ok(Expr::Call { items, .. }) = read("k(a=-2, b=[1e-3, .5, x=[2.,]], c=softplus(1E+2), d=true,)")
        else {
            panic!()
        };
        assert!(matches!(items[0].value, Value::Number(-2.0)));
        let Value::List(list) = &items[1].value else { panic!() };
        assert!(matches!(list[0].value, Value::Number(1e-3)) && list[2].name.as_deref() == Some("x"));
        assert_eq!(items[3].value.word(), Some("true"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, says) in [
            ("", "expected a kernel, found the end"),
            ("a +", "expected a kernel, found the end"),
            ("a ) b", "at character 3, found `)`"),
            ("k(a=1", "expected `,` or `)`, found the end"),
            ("k(a=1e999)", "expected a finite number"),
            ("k(a=1_2x)", "expected"),
            ("k(a=--1)", "expected a finite number"),
            ("2 * a", "expected a kernel at character 1"),
            ("é", "expected a kernel at character 1"),
        ] {
            let reason = read(text).unwrap_err();
            assert!(reason.contains(says), "{text}: {reason}");
        }
        assert!(read(&"(".repeat(100_000)).unwrap_err().contains("deeper"));
        assert!(read(&"k(a=".repeat(100_000)).unwrap_err().contains("deeper"));
        assert!(read(&"k(a=[".repeat(100_000)).unwrap_err().contains("deeper"));
        assert!(read(&"a".repeat(MAX_LENGTH + 1)).unwrap_err().contains("bytes"));
    }
}
