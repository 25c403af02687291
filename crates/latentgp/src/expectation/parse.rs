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
use crate::call::{Call, Options};
use crate::error::Result;

/// Name, arguments with their defaults, and what it is.
type Entry = (&'static str, Options, &'static str);

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
    let call = Call::read(expression, "expectation", &NAMES.map(|(name, options, _)| (name, options)))?;
    let whole = |option: &str| call.get(option, "a whole number");
    let number = |option: &str| call.get(option, "a number");
    let rule: Box<dyn Expectation> = match NAMES[call.place].0 {
        "auto" => Box::new(Auto),
        "analytic" => Box::new(Analytic),
        "unscented" => Box::new(Unscented),
        "scaled_unscented" => Box::new(ScaledUnscented { alpha: number("alpha")?, kappa: number("kappa")? }),
        "minimal_skew" => Box::new(MinimalSkew { w0: number("w0")? }),
        "gauss_hermite" => Box::new(GaussHermite::new(whole("points")?)),
        "cubature5" => Box::new(Cubature5),
        "monte_carlo" => {
            let mut rule = MonteCarlo::new(whole("samples")?, call.get("seed", "a whole number")?);
            rule.fresh = call.get("fresh", "true or false")?;
            Box::new(rule)
        }
        _ => Box::new(QuasiMonteCarlo::new(whole("samples")?, call.get("seed", "a whole number")?)),
    };
    Ok(rule)
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
