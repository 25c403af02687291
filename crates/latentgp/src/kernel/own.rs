//! Kernels of one's own, by name: what an expression may call besides the kernels of [`names`].
//!
//! A kernel of one's own prints itself as `name(parameter=…)`. Reading that back needs the kernel itself, which
//! [`Own`] holds: the parser takes a copy and sets its parameters.

use super::names::names;
use super::parse::parse_own;
use super::{Kernel, Structure, expression};
use crate::error::{Error, Result};
use crate::param::{Param, Transform};

/// Kernels of one's own that expressions and model files name.
///
/// ```
/// use latentgp::kernel::{Auto, Formula, Kernel, Own, Scalar};
/// use latentgp::param::Param;
///
/// #[derive(Clone)]
/// struct Cauchy;
///
/// impl Formula for Cauchy {
///     fn name(&self) -> &str {
///         "cauchy"
///     }
///     fn params(&self) -> Vec<(&'static str, Param)> {
///         vec![("lengthscale", Param::scalar(1.0))]
///     }
///     fn k<S: Scalar>(&self, x: &[S], z: &[S], theta: &[S]) -> S {
///         let r2: S = x.iter().zip(z).map(|(&x, &z)| ((x - z) / theta[0]).powi(2)).sum();
///         (r2 + 1.0).powi(-1)
///     }
/// }
///
/// let own = Own::new(vec![Box::new(Auto::new(Cauchy, 2))])?;
/// let k = own.parse("cauchy(lengthscale=3) + linear", 2)?;
/// assert_eq!(k.expression(), "cauchy(lengthscale=3.0) + linear(variance=[1.0, 1.0])");
/// # Ok::<(), latentgp::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Own(Vec<(String, Box<dyn Kernel>)>);

impl Own {
    /// These kernels, each under the name that its expression begins with.
    ///
    /// Errs when a name is not one word, is that of a kernel of the library, or is there twice.
    pub fn new(kernels: Vec<Box<dyn Kernel>>) -> Result<Self> {
        let mut own = Own::default();
        for kernel in kernels {
            let name = name_of(&*kernel);
            if own.get(&name).is_some() || !is_word(&name) || is_known(&name) {
                let expected = "one word, which no other kernel has";
                return Err(Error::invalid("the name of a kernel", expected, format!("`{name}`")));
            }
            own.0.push((name, kernel));
        }
        Ok(own)
    }

    /// The parts of a kernel that are not the library's; of parts with one name the first.
    pub fn of(kernel: &dyn Kernel) -> Self {
        let mut own = Own::default();
        own.collect(kernel);
        own
    }

    fn collect(&mut self, kernel: &dyn Kernel) {
        match kernel.structure() {
            Structure::Sum(parts) | Structure::Product(parts) => {
                parts.iter().for_each(|part| self.collect(&**part));
            }
            Structure::Select(select) => self.collect(&*select.kernel),
            Structure::Leaf => {
                let name = name_of(kernel);
                if is_word(&name) && !is_known(&name) && self.get(&name).is_none() {
                    self.0.push((name, kernel.boxed()));
                }
            }
        }
    }

    /// The kernel of a name.
    pub fn get(&self, name: &str) -> Option<&dyn Kernel> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, kernel)| &**kernel)
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// As [`parse`](super::parse), with these kernels besides the library's.
    pub fn parse(&self, expression: &str, dim: usize) -> Result<Box<dyn Kernel>> {
        parse_own(expression, dim, self)
    }
}

/// `name(parameter=…)`, the expression of a kernel whose parameters are positive where they do not say otherwise.
pub fn expression_of(name: &str, params: &[(String, &Param)]) -> String {
    let params: Vec<_> = params.iter().map(|(name, p)| (name.as_str(), *p, Transform::Exp)).collect();
    expression::call(name, &[], &params)
}

fn name_of(kernel: &dyn Kernel) -> String {
    let expression = kernel.expression();
    expression.split('(').next().unwrap_or_default().to_string()
}

fn is_word(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_known(name: &str) -> bool {
    names().iter().any(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Auto, Formula, Linear, Rbf, Scalar, Select, parse};
    use crate::param::Parameterized;

    #[derive(Clone)]
    struct Named(&'static str);

    impl Formula for Named {
        fn name(&self) -> &str {
            self.0
        }
        fn params(&self) -> Vec<(&'static str, Param)> {
            vec![("variance", Param::scalar(1.0)), ("slope", Param::scalar(2.0))]
        }
        fn k<S: Scalar>(&self, x: &[S], z: &[S], theta: &[S]) -> S {
            x.iter().zip(z).map(|(&x, &z)| x * z * theta[0]).sum::<S>() + theta[1]
        }
    }

    fn mine(name: &'static str, dim: usize) -> Box<dyn Kernel> {
        Box::new(Auto::new(Named(name), dim))
    }

    #[test]
    fn own_kernels_are_read_back_with_everything_about_them() {
        let own = Own::new(vec![mine("mine", 2)]).unwrap();
        for text in [
            "mine",
            "mine(variance=3.5, slope=0.25) * rbf + linear(dims=[1])",
            "rbf + mine(slope=-1, transform=[slope=identity], fix=[variance])",
            "mine(slope=-0.5, bounds=[slope=[-1, 1]], prior=[variance=gamma(2, 1)])",
            "mlp(hidden=[3, 2], base=mine)",
        ] {
            let kernel = own.parse(text, 2).unwrap_or_else(|e| panic!("{text}: {e}"));
            let again = own.parse(&kernel.expression(), 2).unwrap();
            assert_eq!(again.expression(), kernel.expression());
            assert_eq!(again.params(), kernel.params());
        }
        let there = own.parse("mine(variance=3.5, slope=0.25)", 2).unwrap();
        assert_eq!(there.eval(&[1.0, 2.0], &[3.0, 4.0]), 3.5 * 11.0 + 0.25);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let own = Own::new(vec![mine("mine", 2)]).unwrap();
        for (text, says) in [
            ("mine(slope=-1)", "a number above 0"),
            ("mine(slop=1)", "did you mean `slope`"),
            ("mine(dims=[0])", "`mine` takes inputs of 2 columns"),
            ("mini", "did you mean `mine`"),
            ("mine(slope=0, transform=[slope=softplus(0.5)])", "above 0.5"),
        ] {
            let found = own.parse(text, 2).unwrap_err().to_string();
            assert!(found.contains(says), "{text}: {found}");
        }
        assert!(parse("mine", 2).unwrap_err().to_string().contains("unknown kernel `mine`"));
        for bad in [vec!["rbf"], vec!["a", "a"], vec!["two words"], vec![""]] {
            assert!(Own::new(bad.iter().map(|name| mine(name, 2)).collect()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_own_parts_of_a_kernel_are_found() {
        let whole = Rbf::new(2) * mine("a", 2) + Select::new(mine("b", 1), &[1], 2) + Linear::new(2);
        let own = Own::of(&whole);
        assert_eq!(own.names().collect::<Vec<_>>(), ["a", "b"]);
        assert!(*own.parse(&whole.expression(), 2).unwrap() == *(&whole as &dyn Kernel));
    }
}
