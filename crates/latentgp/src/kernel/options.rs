//! The arguments that decide a kernel's form: `ard=false`, `degree=3`, `dims=[0, 2]`, `base=rbf`.

use super::Kernel;
use super::parse::{Built, Context, build, call};
use super::syntax::{Item, Reason, Value};

/// How many numbers a parsed kernel may hold: gradients and the memory of an optimiser are some twenty times as many.
pub(super) const MAX_NUMBERS: usize = 1 << 20;
/// How many kernels an expression may put together.
pub(super) const MAX_TERMS: usize = 256;
/// How many arguments a call may have.
const MAX_ARGUMENTS: usize = 1000;

/// The arguments of a call that are not used up yet.
pub(super) struct Options<'a, 'c> {
    kernel: &'a str,
    /// Names, each once, and values.
    pub items: Vec<(String, Value)>,
    /// The number of input columns.
    pub dim: usize,
    context: &'a mut Context<'c>,
}

impl<'a, 'c> Options<'a, 'c> {
    pub fn new(kernel: &'a str, items: Vec<Item>, dim: usize, context: &'a mut Context<'c>) -> Built<Self> {
        if items.len() > MAX_ARGUMENTS {
            return Err(format!(
                "`{kernel}` has {} arguments, at most {MAX_ARGUMENTS} are read",
                items.len()
            ));
        }
        let mut named: Vec<(String, Value)> = Vec::with_capacity(items.len());
        for item in items {
            let Some(name) = item.name else {
                let found = item.value.describe();
                return Err(format!("`{kernel}` takes its arguments as name=value, found {found}"));
            };
            if named.iter().any(|(n, _)| *n == name) {
                return Err(format!("`{kernel}` is given the argument `{name}` twice"));
            }
            named.push((name, item.value));
        }
        Ok(Options { kernel, items: named, dim, context })
    }

    /// Errs when the kernel would hold more numbers than a parsed one may.
    pub fn spend(&mut self, numbers: usize) -> Built<()> {
        match self.context.budget.checked_sub(numbers) {
            Some(rest) => {
                self.context.budget = rest;
                Ok(())
            }
            None => Err(format!(
                "`{}` would hold more than {MAX_NUMBERS} numbers, with those of the kernels before it; take fewer columns or \
                 smaller layers",
                self.kernel
            )),
        }
    }

    /// Errs when there are more kernels than an expression may have.
    pub fn count(&mut self) -> Built<()> {
        self.context.terms += 1;
        match self.context.terms > MAX_TERMS {
            true => Err(format!("puts more than {MAX_TERMS} kernels together; take fewer")),
            false => Ok(()),
        }
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.items.iter().position(|(n, _)| n == name)?;
        Some(self.items.remove(at).1)
    }

    fn wrong<T>(&self, name: &str, expected: impl std::fmt::Display, found: &Value) -> Built<T> {
        Err(wrong(self.kernel, name, expected, found.describe()))
    }

    /// `name=true` or `name=false`.
    pub fn flag(&mut self, name: &str, default: bool) -> Built<bool> {
        match self.word(name, &["true", "false"])? {
            Some(word) => Ok(word == "true"),
            None => Ok(default),
        }
    }

    /// One of the words.
    pub fn word(&mut self, name: &str, allowed: &[&'static str]) -> Built<Option<&'static str>> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match allowed.iter().find(|w| value.word() == Some(w)) {
            Some(word) => Ok(Some(word)),
            None => self.wrong(name, allowed.join(" or "), &value),
        }
    }

    /// An integer from `lo` to `hi`.
    pub fn integer(&mut self, name: &str, default: usize, lo: usize, hi: usize) -> Built<usize> {
        let Some(value) = self.take(name) else { return Ok(default) };
        match integer(&value) {
            Some(v) if (lo..=hi).contains(&v) => Ok(v),
            _ => self.wrong(name, format!("an integer from {lo} to {hi}"), &value),
        }
    }

    /// A list of one to `most` positive integers.
    pub fn integers(&mut self, name: &str, default: &[usize], most: usize) -> Built<Vec<usize>> {
        let Some(value) = self.take(name) else { return Ok(default.to_vec()) };
        match integer_list(&value) {
            Some(all) if (1..=most).contains(&all.len()) && all.iter().all(|v| *v > 0) => Ok(all),
            _ => self.wrong(name, format!("a list of 1 to {most} positive integers"), &value),
        }
    }

    /// A kernel on `dim` columns.
    pub fn kernel(&mut self, name: &str, default: &str, dim: usize) -> Built<Box<dyn Kernel>> {
        match self.take(name) {
            None => call(default, vec![], dim, self.context),
            Some(Value::Expr(expr)) => build(expr, dim, self.context),
            Some(value) => self.wrong(name, "a kernel", &value),
        }
    }

    /// Columns that are there, each once.
    pub fn dims(&mut self) -> Built<Option<Vec<usize>>> {
        let Some(value) = self.take("dims") else { return Ok(None) };
        let expected = format!("a list of input columns from 0 to {}, each once", self.dim - 1);
        let Some(dims) = integer_list(&value).filter(|d| !d.is_empty()) else {
            return self.wrong("dims", expected, &value);
        };
        let mut sorted = dims.clone();
        sorted.sort_unstable();
        if sorted[sorted.len() - 1] >= self.dim {
            return Err(wrong(self.kernel, "dims", expected, sorted[sorted.len() - 1]));
        }
        if let Some(pair) = sorted.windows(2).find(|w| w[0] == w[1]) {
            return Err(wrong(self.kernel, "dims", expected, format!("{} twice", pair[0])));
        }
        Ok(Some(dims))
    }
}

/// A value that is not what its argument takes.
pub(super) fn wrong(
    kernel: &str,
    name: &str,
    expected: impl std::fmt::Display,
    found: impl std::fmt::Display,
) -> Reason {
    format!("argument `{name}` of `{kernel}`: expected {expected}, found {found}")
}

fn integer(value: &Value) -> Option<usize> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(v) if v.fract() == 0.0 && (0.0..=EXACT).contains(v) => Some(*v as usize),
        _ => None,
    }
}

fn integer_list(value: &Value) -> Option<Vec<usize>> {
    match value {
        Value::List(items) => {
            items.iter().map(|i| if i.name.is_none() { integer(&i.value) } else { None }).collect()
        }
        _ => None,
    }
}
