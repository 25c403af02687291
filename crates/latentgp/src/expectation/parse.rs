//! Expectations as text.
//!
//! ```text
//! auto  analytic  unscented  scaled_unscented(alpha=1, kappa=0)  minimal_skew(w0=0.25)  cubature5
//! gauss_hermite(points=2)  monte_carlo(samples=200, seed=0, fresh=false)  quasi_monte_carlo(samples=256, seed=0)
//! ```

use super::{
    Analytic, Auto, Cubature5, Expectation, GaussHermite, MinimalSkew, MonteCarlo, QuasiMonteCarlo,
    ScaledUnscented, Unscented,
};
use crate::error::{Error, Result};

/// Name, arguments with their defaults, and what it is.
type Entry = (&'static str, &'static [(&'static str, &'static str)], &'static str);

const NAMES: [Entry; 9] = [
    ("auto", &[], "closed form where the kernel has one, unscented elsewhere"),
    ("analytic", &[], "closed form: rbf, linear, constant, white, their sums, products on separate dims"),
    ("unscented", &[], "2Q sigma points"),
    ("scaled_unscented", &[("alpha", "1"), ("kappa", "0")], "2Q + 1 sigma points with a spread"),
    ("minimal_skew", &[("w0", "0.25")], "Q + 2 sigma points"),
    ("gauss_hermite", &[("points", "2")], "a tensor grid of points^Q nodes"),
    ("cubature5", &[], "2Q² + 1 nodes, exact to degree 5"),
    (
        "monte_carlo",
        &[("samples", "200"), ("seed", "0"), ("fresh", "false")],
        "random draws, fixed or fresh at every step",
    ),
    ("quasi_monte_carlo", &[("samples", "256"), ("seed", "0")], "scrambled Sobol points"),
];

/// Every expectation by name, with one line on what it is.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    NAMES.iter().map(|(name, _, what)| (*name, *what))
}

/// Reads an expectation: a name, and arguments in parentheses.
///
/// ```
/// let rule = latentgp::expectation::parse("gauss_hermite(points=3)")?;
/// assert_eq!(rule.to_string(), "gauss_hermite(points=3)");
/// # Ok::<(), latentgp::Error>(())
/// ```
pub fn parse(expression: &str) -> Result<Box<dyn Expectation>> {
    let fail = |reason: String| Error::Parse { expression: expression.to_string(), reason };
    let text = expression.trim();
    let (name, args) = match text.split_once('(') {
        None => (text, ""),
        Some((name, rest)) => match rest.trim_end().strip_suffix(')') {
            Some(args) => (name.trim_end(), args),
            None => return Err(fail("the parenthesis after the name is not closed".into())),
        },
    };
    let Some((_, known, _)) = NAMES.iter().find(|(n, ..)| *n == name) else {
        let all: Vec<&str> = NAMES.iter().map(|n| n.0).collect();
        let guess =
            crate::nearest::nearest(name, &all).map_or(String::new(), |n| format!("; did you mean `{n}`?"));
        return Err(fail(format!("no expectation is called `{name}`; known are {}{guess}", all.join(", "))));
    };
    let mut given: Vec<(&str, &str)> = known.to_vec();
    for arg in args.split(',').map(str::trim).filter(|a| !a.is_empty()) {
        let (key, value) =
            arg.split_once('=').ok_or_else(|| fail(format!("`{arg}` is not of the form name=value")))?;
        let takes: Vec<&str> = known.iter().map(|k| k.0).collect();
        let place = takes.iter().position(|k| *k == key.trim()).ok_or_else(|| {
            let takes = if takes.is_empty() { "none".into() } else { takes.join(", ") };
            fail(format!("`{name}` has no argument `{}`; it takes {takes}", key.trim()))
        })?;
        given[place].1 = value.trim();
    }
    let args = Args { name, given, expression };
    let rule: Box<dyn Expectation> = match name {
        "auto" => Box::new(Auto),
        "analytic" => Box::new(Analytic),
        "unscented" => Box::new(Unscented),
        "scaled_unscented" => {
            Box::new(ScaledUnscented { alpha: args.read(0, "a number")?, kappa: args.read(1, "a number")? })
        }
        "minimal_skew" => Box::new(MinimalSkew { w0: args.read(0, "a number")? }),
        "gauss_hermite" => Box::new(GaussHermite::new(args.read(0, "a whole number")?)),
        "cubature5" => Box::new(Cubature5),
        "monte_carlo" => {
            let mut rule = MonteCarlo::new(args.read(0, "a whole number")?, args.read(1, "a whole number")?);
            rule.fresh = args.read(2, "true or false")?;
            Box::new(rule)
        }
        _ => Box::new(QuasiMonteCarlo::new(args.read(0, "a whole number")?, args.read(1, "a whole number")?)),
    };
    Ok(rule)
}

struct Args<'a> {
    name: &'a str,
    given: Vec<(&'a str, &'a str)>,
    expression: &'a str,
}

impl Args<'_> {
    fn read<T: std::str::FromStr>(&self, place: usize, expected: &str) -> Result<T> {
        let (key, value) = self.given[place];
        value.parse().map_err(|_| Error::Parse {
            expression: self.expression.to_string(),
            reason: format!("`{key}` of `{}` must be {expected}, not `{value}`", self.name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_and_printed_back() {
        for (name, _) in names() {
            let rule = parse(name).unwrap();
            let printed = rule.to_string();
            assert!(printed.starts_with(name));
            assert_eq!(parse(&printed).unwrap().to_string(), printed);
        }
        let rule = "monte_carlo(samples=7, seed=3, fresh=true)";
        assert_eq!(parse(rule).unwrap().to_string(), rule);
        assert_eq!(
            parse("scaled_unscented ( kappa = 1.5 )").unwrap().to_string(),
            "scaled_unscented(alpha=1.0, kappa=1.5)"
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("unscentd", "did you mean `unscented`?"),
            ("gauss_hermite(point=2)", "it takes points"),
            ("gauss_hermite(points=x)", "must be a whole number"),
            ("gauss_hermite(points=2", "not closed"),
            ("monte_carlo(5)", "name=value"),
            ("unscented(a=1)", "it takes none"),
            ("", "no expectation is called"),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
