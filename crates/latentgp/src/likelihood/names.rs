//! Likelihoods as text: `bernoulli(link=probit)`, `poisson`, `categorical(classes=3)`.
//!
//! The file of a likelihood has its [`Entry`], and the module a list of all. The parser, model files, the laws and
//! whoever asks for a likelihood by name read that list.

use super::{Categorical, ENTRIES, Kind, Likelihood, Observations};
use crate::call::Call;
use crate::error::{Error, Result};
use crate::mat::Mat;

/// Classes in a column have numbers below this.
const MOST_CLASSES: f64 = 1e9;

/// A likelihood that [`parse`] knows.
pub struct Entry {
    /// Its name in expressions.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// An expression that uses it.
    pub example: &'static str,
    /// Its options with their defaults; an empty default follows from the data.
    pub options: &'static [(&'static str, &'static str)],
    /// What is observed.
    pub kind: Kind,
    /// Builds it from its options.
    pub(super) make: fn(&Asked<'_>) -> Result<Parsed>,
}

/// What an expression and the data say.
pub(super) struct Asked<'a> {
    /// The options.
    pub call: Call<'a>,
    /// The number of classes in the data; 0 where it is not known, or where there are none.
    pub classes: usize,
}

/// A likelihood without observations.
#[derive(Clone, Debug)]
pub enum Parsed {
    /// Of one latent function.
    One {
        /// p(y | f).
        likelihood: Box<dyn Likelihood>,
        /// Whether observations only need a density, as by [`Likelihood::check_density`].
        lenient: bool,
    },
    /// Of one latent function a class.
    Classes(Categorical),
}

/// Every likelihood that expressions can name.
///
/// ```
/// let known: Vec<&str> = latentgp::likelihood::names().iter().map(|l| l.name).collect();
/// assert!(known.contains(&"poisson") && known.contains(&"categorical"));
/// ```
pub fn names() -> &'static [Entry] {
    &ENTRIES
}

fn call(expression: &str) -> Result<Call<'_>> {
    let known: Vec<_> = ENTRIES.iter().map(|e| (e.name, e.options)).collect();
    Call::read(expression, "likelihood", &known)
}

/// The entry of the likelihood that an expression names; errs as [`parse`] does for names and options.
pub fn named(expression: &str) -> Result<&'static Entry> {
    Ok(&ENTRIES[call(expression)?.place])
}

/// Reads a likelihood, of so many classes where it has classes; 0 is a number that is not known.
///
/// ```
/// use latentgp::likelihood::parse;
/// assert_eq!(parse("bernoulli", 0)?.expression(), "bernoulli(link=logit)");
/// assert_eq!(parse("categorical", 3)?.expression(), "categorical(classes=3)");
/// assert!(parse("poison", 0).unwrap_err().to_string().contains("did you mean `poisson`?"));
/// # Ok::<(), latentgp::Error>(())
/// ```
pub fn parse(expression: &str, classes: usize) -> Result<Parsed> {
    let call = call(expression)?;
    (ENTRIES[call.place].make)(&Asked { call, classes })
}

impl Parsed {
    /// Of one latent function, with observations that it can learn from.
    pub(super) fn one(likelihood: impl Likelihood + 'static) -> Self {
        Parsed::One { likelihood: Box::new(likelihood), lenient: false }
    }

    /// Its name, with its options: what [`parse`] reads.
    pub fn expression(&self) -> String {
        match self {
            Parsed::One { likelihood, .. } => likelihood.expression(),
            Parsed::Classes(likelihood) => likelihood.expression(),
        }
    }

    /// What is observed.
    pub fn kind(&self) -> Kind {
        match self {
            Parsed::One { likelihood, .. } => likelihood.kind(),
            Parsed::Classes(_) => Kind::Classes,
        }
    }

    /// With the observations in a column, N×1; classes are their numbers, from 0.
    ///
    /// Errs for more than a column, and for observations that the likelihood refuses.
    pub fn observe(self, y: &Mat) -> Result<Observations> {
        if y.cols() != 1 {
            return Err(Error::shape("columns of the observations", 1, y.cols()));
        }
        match self {
            Parsed::One { likelihood, lenient } => {
                Observations::of(y.as_slice().to_vec(), likelihood, lenient)
            }
            Parsed::Classes(likelihood) => {
                let whole = |v: &f64| *v >= 0.0 && v.fract() == 0.0 && *v < MOST_CLASSES;
                if let Some(at) = y.as_slice().iter().position(|v| !whole(v)) {
                    let (what, found) = (format!("label of row {}", at + 1), y[(at, 0)]);
                    return Err(Error::invalid(what, "the number of a class", found));
                }
                let labels: Vec<usize> = y.as_slice().iter().map(|v| *v as usize).collect();
                Observations::categorical(&labels, likelihood.classes)
            }
        }
    }

    /// With observations that were accepted before, such as those of a model file: they only need a density.
    pub fn restore(mut self, y: &Mat) -> Result<Observations> {
        if let Parsed::One { lenient, .. } = &mut self {
            *lenient = true;
        }
        self.observe(y)
    }
}

impl Asked<'_> {
    /// An option that is true or false.
    pub fn flag(&self, option: &str) -> Result<bool> {
        self.call.get(option, "true or false")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_read_and_printed_back() {
        for entry in names() {
            let seen = if entry.kind == Kind::Classes { 2 } else { 0 };
            for (text, classes) in [(entry.name, seen), (entry.example, 0)] {
                let read = parse(text, classes).unwrap();
                assert_eq!(read.kind(), entry.kind, "{text}");
                let printed = read.expression();
                assert!(printed.starts_with(entry.name), "{printed}");
                assert_eq!(parse(&printed, 0).unwrap().expression(), printed);
                assert_eq!(named(&printed).unwrap().name, entry.name);
            }
        }
        for (i, a) in names().iter().enumerate() {
            assert!(names()[..i].iter().all(|b| a.name != b.name));
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, classes, part) in [
            ("bernouli", 0, "did you mean `bernoulli`?"),
            ("weibull", 0, "known are bernoulli, categorical, poisson"),
            ("bernoulli(link=cauchit)", 0, "`link` of `bernoulli` must be logit or probit"),
            ("bernoulli(n=2)", 0, "it takes link"),
            ("bernoulli", 3, "2 classes"),
            ("poisson(whole=maybe)", 0, "must be true or false"),
            ("categorical", 0, "classes"),
            ("categorical(classes=1)", 0, "at least 2"),
            ("categorical(classes=3)", 4, "4"),
            ("categorical(classes=3", 3, "not closed"),
        ] {
            let message = parse(text, classes).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn observations_are_those_of_the_constructors() {
        let of =
            |text: &str, y: &[f64], classes| Observations::from_expression(text, &Mat::column(y), classes);
        assert_eq!(
            of("bernoulli(link=probit)", &[0.0, 1.0], 2).unwrap().expression(),
            "bernoulli(link=probit)"
        );
        let three = of("categorical", &[2.0, 0.0, 1.0], 3).unwrap();
        assert_eq!((three.latents(), three.column().as_slice()), (3, &[2.0, 0.0, 1.0][..]));
        for bad in [&[0.5, 1.0][..], &[-1.0, 1.0], &[f64::NAN, 1.0], &[0.0, 0.0], &[0.0, 1.0, 7.0]] {
            assert!(of("bernoulli", bad, 2).is_err() && of("categorical", bad, 2).is_err(), "{bad:?}");
        }
        let two_columns = Observations::from_expression("poisson", &Mat::zeros(3, 2), 0);
        assert!(matches!(two_columns, Err(Error::Shape { .. })));
    }

    #[test]
    fn counts_are_whole_unless_told_otherwise() {
        let half = Mat::column(&[0.5, 2.0]);
        let of = |text: &str| Observations::from_expression(text, &half, 0);
        assert!(of("poisson").is_err() && of("poisson(whole=true)").is_err());
        let averages = of("poisson(whole=false)").unwrap();
        assert_eq!(averages.expression(), "poisson");
        // What a file says of them is enough to restore them.
        let again = Observations::restored(&averages.expression(), &averages.column(), 0).unwrap();
        assert_eq!(again.column(), half);
        assert!(Observations::restored("poisson", &Mat::column(&[-0.5]), 0).is_err());
        assert!(Observations::restored("bernoulli", &half, 0).is_err());
    }
}
