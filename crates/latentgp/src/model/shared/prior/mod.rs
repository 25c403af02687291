//! Priors of X: what is known of the inputs before the outputs are seen.
//!
//! ```text
//! normal                               x_n ~ N(0, I)
//! times(column=day, std=0.1, dim=0)    x_n,dim ~ N(t_n, std²), the other columns N(0, 1)
//! ```
//!
//! [`parse`] reads such an expression. What it gives has no rows yet: [`InputPrior::bind`] gives it the rows of a
//! table, with the columns that [`InputPrior::columns`] names.
//!
//! A further prior is one file with an [`InputPrior`] and its [`Entry`], and its line in the list of [`names`].

mod arguments;
mod kl;
mod normal;
mod stored;
mod times;

pub use arguments::Arguments;
pub use kl::gaussian_kl;
pub use normal::Normal;
pub(crate) use stored::{USUAL, put_prior, take_prior};
pub use times::Times;

use crate::error::{Error, Result};
use crate::expectation::Gaussians;
use crate::mat::Mat;
use crate::nearest::nearest;
use crate::param::Parameterized;
use std::fmt;

/// The priors that expressions can name.
static NAMES: [Entry; 2] = [normal::ENTRY, times::ENTRY];

/// A prior of N×Q inputs.
///
/// Its parameters, if it has any, are fitted with those of the model.
pub trait InputPrior: Parameterized + ClonePrior + Send + Sync {
    /// What [`parse`] reads to the same prior, without rows.
    fn expression(&self) -> String;

    /// The columns of the table that it needs.
    fn columns(&self) -> Vec<String> {
        Vec::new()
    }

    /// The prior of N rows and Q columns; `columns` holds what [`columns`](Self::columns) names, N numbers each, with
    /// NaN where one is missing.
    ///
    /// Errs when a column is missing, has another length or cannot be used.
    fn bind(&self, n: usize, q: usize, columns: &[Vec<f64>]) -> Result<Box<dyn InputPrior>>;

    /// N and Q; N is 0 before [`bind`](Self::bind).
    fn sizes(&self) -> (usize, usize);

    /// KL(q(X) ‖ p(X)) of q(X) = ΠN(μ, S), both N×Q; adds −∂KL to the gradients.
    fn kl(&self, mean: &Mat, var: &Mat, grads: Option<KlGrad<'_>>) -> Result<f64>;

    /// The marginals p(x_nq) of the rows it has.
    fn marginals(&self) -> Gaussians;

    /// The marginals of `n` new rows, whose `columns` are as in [`bind`](Self::bind), or empty where nothing is known
    /// of them.
    fn new_rows(&self, n: usize, columns: &[Vec<f64>]) -> Result<Gaussians>;

    /// The prior of some of its rows.
    fn select_rows(&self, rows: &[usize]) -> Box<dyn InputPrior>;

    /// Moves the start of μ and S, both N×Q, to where the prior expects X.
    fn start(&self, _mean: &mut Mat, _var: &mut Mat) -> Result<()> {
        Ok(())
    }

    /// Names and values of the arrays that the expression and the parameters do not tell.
    fn arrays(&self) -> Vec<(&'static str, Mat)>;

    /// The inverse of [`arrays`](Self::arrays) for N rows and Q columns; `take` gives the array of the name and the
    /// shape asked for.
    fn restore(&self, n: usize, q: usize, take: &mut Take<'_>) -> Result<Box<dyn InputPrior>>;
}

/// Gives an array by its name, its rows and its columns.
pub type Take<'a> = dyn FnMut(&str, usize, usize) -> Result<Mat> + 'a;

/// Where −∂KL is added.
pub struct KlGrad<'a> {
    /// ∂μ, N·Q numbers by rows.
    pub mean: &'a mut [f64],
    /// ∂S, N·Q numbers by rows.
    pub var: &'a mut [f64],
    /// ∂θ of the prior's own parameters, in the order of `params()`.
    pub params: &'a mut [f64],
}

/// A prior that [`parse`] knows.
pub struct Entry {
    /// Its name in expressions.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// An expression that uses it.
    pub example: &'static str,
    /// The arguments that it takes.
    pub arguments: &'static [&'static str],
    /// Makes it, without rows, from its arguments.
    make: fn(&Arguments<'_>) -> Result<Box<dyn InputPrior>>,
}

/// Every prior by name.
pub fn names() -> &'static [Entry] {
    &NAMES
}

/// Reads a prior: a name, and arguments in parentheses. It has no rows yet.
///
/// ```
/// use latentgp::model::prior::{self, InputPrior};
/// let prior = prior::parse("normal")?.bind(3, 2, &[])?;
/// assert_eq!((prior.expression().as_str(), prior.sizes()), ("normal", (3, 2)));
/// # Ok::<(), latentgp::Error>(())
/// ```
pub fn parse(expression: &str) -> Result<Box<dyn InputPrior>> {
    let (name, arguments) = Arguments::read(expression)?;
    let Some(entry) = NAMES.iter().find(|entry| entry.name == name) else {
        let known: Vec<&str> = NAMES.iter().map(|entry| entry.name).collect();
        let guess = nearest(name, &known).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        let reason = format!("no prior is called `{name}`; known are {}{guess}", known.join(", "));
        return Err(Error::Parse { expression: expression.to_string(), reason });
    };
    arguments.check(entry)?;
    (entry.make)(&arguments)
}

/// Errs unless the prior is bound to as many rows and columns as X has.
pub(crate) fn check_sizes(prior: &dyn InputPrior, x: &Mat) -> Result<()> {
    let (n, q) = prior.sizes();
    match (n, q) == (x.rows(), x.cols()) {
        true => Ok(()),
        false => Err(Error::shape(format!("rows of the prior `{prior}`"), x.shape(), format!("{n} × {q}"))),
    }
}

/// Errs unless the columns are as many as the names, with `n` numbers each.
fn check_columns(names: &[String], n: usize, columns: &[Vec<f64>]) -> Result<()> {
    if columns.len() != names.len() {
        return Err(Error::shape("columns for the prior", names.len(), columns.len()));
    }
    match names.iter().zip(columns).find(|(_, column)| column.len() != n) {
        Some((name, column)) => {
            Err(Error::shape(format!("column `{name}` for the prior"), format!("{n} rows"), column.len()))
        }
        None => Ok(()),
    }
}

/// Cloning behind a `Box<dyn InputPrior>`; every `Clone` prior has it.
pub trait ClonePrior {
    /// A copy in a box.
    fn boxed(&self) -> Box<dyn InputPrior>;
}

impl<P: InputPrior + Clone + 'static> ClonePrior for P {
    fn boxed(&self) -> Box<dyn InputPrior> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn InputPrior> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

impl fmt::Display for dyn InputPrior + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expression())
    }
}

impl fmt::Debug for dyn InputPrior + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expression())
    }
}

#[cfg(test)]
mod tests;
