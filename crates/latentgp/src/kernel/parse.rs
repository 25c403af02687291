//! `"rbf + periodic(period=12) * linear"` to a kernel: the inverse of [`Kernel::expression`].
//!
//! Every argument is `name=value`. Besides its options and parameters a kernel takes
//!
//! ```text
//! fix=[variance]                        parameters that the fit leaves alone
//! bounds=[lengthscale=[0.1, 10]]        strictly between the two
//! transform=[variance=softplus(1e-6)]   or exp, identity, above(1e-6)
//! prior=[lengthscale=gamma(2, 1)]       or log_normal(mean, std), normal(mean, std)
//! dims=[0, 2]                           the input columns it sees; also (a + b)(dims=[0, 2])
//! ```
//!
//! A sum within a sum is the same sum, in text as in [`Sum::new`], and a product within a product likewise:
//! parentheses decide nothing there. A value at the very end of its bounds is read; a model
//! refuses it.

use super::names::names;
use super::options::{MAX_NUMBERS, Options};
use super::settings::{self, Named};
use super::syntax::{self, Expr, Item, Reason};
use super::{Kernel, Own, Product, Select, Sum};
use crate::error::{Error, Result};
use crate::nearest::nearest;

/// What a kernel weighs besides its numbers, counted in them.
const OVERHEAD: usize = 64;
/// How much of a long expression a message repeats.
const EXCERPT: usize = 120;

/// The arguments that every kernel takes.
pub(super) const COMMON: [&str; 5] = ["fix", "bounds", "transform", "prior", "dims"];

/// The kernel that the expression describes, for inputs of `dim` columns.
///
/// `parse(&k.expression(), dim)` equals `k` for every kernel made of those in [`names`], to the last bit of
/// every parameter. Errs, naming what is wrong and what would be right, on anything else; on text longer
/// than 16 MiB, on brackets deeper than 64, on more than 256 kernels, and on more than about 2²⁰ parameters.
///
/// ```
/// use latentgp::kernel::{Kernel, parse};
/// let k = parse("periodic(period=12) * rbf + linear(dims=[1])", 2)?;
/// assert_eq!(&*k, &*parse(&k.expression(), 2)?);
/// assert!(parse("rbff", 2).unwrap_err().to_string().contains("did you mean `rbf`"));
/// # Ok::<(), latentgp::Error>(())
/// ```
pub fn parse(expression: &str, dim: usize) -> Result<Box<dyn Kernel>> {
    parse_own(expression, dim, &Own::default())
}

/// The kernel that the expression describes, where it may name those of `own` as well.
pub(super) fn parse_own(expression: &str, dim: usize, own: &Own) -> Result<Box<dyn Kernel>> {
    let build = || {
        if dim == 0 {
            return Err("a kernel needs inputs of at least one column, found 0".to_string());
        }
        build(syntax::read(expression)?, dim, &mut Context { own, budget: MAX_NUMBERS, terms: 0 })
    };
    build().map_err(|reason| Error::Parse { expression: excerpt(expression), reason })
}

fn excerpt(expression: &str) -> String {
    match expression.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", &expression[..end]),
        None => expression.to_string(),
    }
}

/// What building gives, or why it fails.
pub(super) type Built<T> = std::result::Result<T, Reason>;

/// What all parts of an expression share.
pub(super) struct Context<'a> {
    /// The kernels that are not the library's.
    pub own: &'a Own,
    /// How many numbers the rest may hold.
    pub budget: usize,
    /// How many kernels there are so far.
    pub terms: usize,
}

/// The kernel of a tree, for `dim` columns, of no more numbers than the budget, which it uses up.
pub(super) fn build(expr: Expr, dim: usize, context: &mut Context<'_>) -> Built<Box<dyn Kernel>> {
    let mut all =
        |parts: Vec<Expr>| parts.into_iter().map(|e| build(e, dim, context)).collect::<Built<Vec<_>>>();
    match expr {
        Expr::Sum(parts) => Ok(Box::new(Sum::new(all(parts)?))),
        Expr::Product(parts) => Ok(Box::new(Product::new(all(parts)?))),
        Expr::Apply { inner, items } => {
            let mut options = Options::new("(…)", items, dim, context)?;
            let Some(dims) = options.dims()? else {
                return Err("an expression in parentheses takes the argument dims=[…] alone".to_string());
            };
            if let Some((name, _)) = options.items.first() {
                return Err(format!("an expression in parentheses has no argument `{name}`; it takes dims"));
            }
            Ok(Box::new(Select::new(build(*inner, dims.len(), context)?, &dims, dim)))
        }
        Expr::Call { name, items } => call(&name, items, dim, context),
    }
}

/// The kernel of the name and the arguments.
pub(super) fn call(
    name: &str,
    items: Vec<Item>,
    dim: usize,
    context: &mut Context<'_>,
) -> Built<Box<dyn Kernel>> {
    let own = context.own.get(name).map(|kernel| kernel.boxed());
    let entry = names().iter().find(|e| e.name == name);
    if own.is_none() && entry.is_none() {
        let known: Vec<&str> = names().iter().map(|e| e.name).chain(context.own.names()).collect();
        return Err(format!("unknown kernel `{name}`{}; known are {}", hint(name, &known), known.join(", ")));
    }
    let mut options = Options::new(name, items, dim, context)?;
    options.count()?;
    let dims = options.dims()?;
    options.dim = dims.as_ref().map_or(dim, Vec::len);
    options.spend(options.dim.saturating_add(OVERHEAD))?;
    let kernel = match (entry, own) {
        (Some(entry), _) => {
            let mut kernel = (entry.make)(&mut options)?;
            settings::apply(
                &Named { name, options: entry.options, own: false },
                options.items,
                &mut *kernel,
            )?;
            kernel
        }
        (None, Some(mut kernel)) => {
            if let Some(takes) = kernel.input_dim().filter(|takes| *takes != options.dim) {
                return Err(format!("`{name}` takes inputs of {takes} columns, found {}", options.dim));
            }
            settings::apply(&Named { name, options: &[], own: true }, options.items, &mut *kernel)?;
            kernel
        }
        (None, None) => return Err(format!("unknown kernel `{name}`")),
    };
    Ok(match dims {
        Some(dims) => Box::new(Select::new(kernel, &dims, dim)),
        None => kernel,
    })
}

/// "; did you mean …" where a known name is near.
pub(super) fn hint(name: &str, known: &[&str]) -> String {
    nearest(name, known).map_or(String::new(), |k| format!("; did you mean `{k}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Linear, Matern32, Periodic, Rbf, White};
    use crate::param::{self, Param, Parameterized, Prior, Transform};
    use proptest::prelude::*;
    use rand::{Rng, RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn reason(expression: &str, dim: usize) -> String {
        match parse(expression, dim) {
            Err(e @ Error::Parse { .. }) => e.to_string(),
            Err(e) => panic!("{expression}: {e:?}"),
            Ok(k) => panic!("{expression} was read as {k}"),
        }
    }

    fn param_names(k: &dyn Kernel) -> Vec<String> {
        k.params().into_iter().map(|(name, _)| name).collect()
    }

    /// Equal in text and in every parameter, names included.
    fn same(a: &dyn Kernel, b: &dyn Kernel) {
        assert_eq!(a.expression(), b.expression());
        assert_eq!(a.params(), b.params(), "{a}");
        let bits = |k: &dyn Kernel| param::values(k).into_iter().map(f64::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(a), bits(b), "{a}");
        assert_eq!(a.input_dim(), b.input_dim(), "{a}");
    }

    #[test]
    fn the_words_of_the_interface_are_read() {
        for text in [
            "rbf + linear",
            "periodic(period=12) * rbf + linear",
            "rbf(dims=[0,1]) * matern32(dims=[2])",
            "rbf(variance=2.0, lengthscale=[1.0,0.5,3.0])",
            "rbf(ard=false)",
            "rbf(variance=1.0, fix=[variance])",
            "spectral_mixture(components=4)",
            "mlp(hidden=[30,60], base=rbf)",
            "mlp(hidden=[3], base=(rbf + white) * linear(dims=[1]), bias=unit, seed=3)",
            "rbf(bounds=[lengthscale=[0.1, 10]], transform=[variance=softplus(1e-6)])",
            "rbf(transform=[variance=above(1e-6)])",
            "rbf(prior=[lengthscale=gamma(2, 1), variance=log_normal(0, 1)]) + white",
            "(rbf + linear)(dims=[2, 0]) * ((linear)(dims=[0, 1]))(dims=[1, 2])",
        ] {
            let k = parse(text, 3).unwrap();
            same(&*k, &*parse(&k.expression(), 3).unwrap());
        }
        for entry in names() {
            let k = parse(entry.example, 2).unwrap();
            same(&*k, &*parse(&k.expression(), 2).unwrap());
            assert!(parse(entry.name, 2).is_ok() && !entry.about.is_empty());
        }
    }

    #[test]
    fn sums_are_flat_however_they_are_made() {
        let by_operators = Rbf::new(2) + Linear::new(2) + Periodic::new(2);
        let names = ["0.variance", "0.lengthscale", "1.variance", "2.variance", "2.lengthscale", "2.period"];
        assert_eq!(param_names(&by_operators), names);
        same(&by_operators, &*parse("rbf + (linear + periodic)", 2).unwrap());
        let product = Rbf::new(1) * (Linear::new(1) * White::new());
        same(&product, &*parse("(rbf * linear) * white", 1).unwrap());
        let one = Sum::new(vec![Box::new(Product::new(vec![Box::new(by_operators)]))]);
        same(&one, &*parse(&one.expression(), 2).unwrap());
        let boxed = parse("rbf + linear", 2).unwrap() + parse("white", 2).unwrap();
        assert_eq!(boxed.parts.len(), 3);
        let selected = Select::new(Rbf::new(1) + Matern32::new(1), &[1], 2) * (Linear::new(2) + White::new());
        same(&selected, &*parse(&selected.expression(), 2).unwrap());
    }

    #[test]
    fn values_constraints_and_priors_arrive() {
        let text = "rbf(lengthscale=0.5, fix=[variance], bounds=[lengthscale=[0.1, 10]], \
                    prior=[lengthscale=gamma(2, 1)], dims=[2, 0])";
        let k = parse(text, 3).unwrap();
        let params = k.params();
        assert!(params[0].1.fixed && !params[1].1.fixed);
        assert_eq!(params[1].1.as_slice(), [0.5, 0.5]);
        assert_eq!(params[1].1.transform, Transform::Interval { lo: 0.1, hi: 10.0 });
        assert_eq!(params[1].1.prior, Some(Prior::Gamma { shape: 2.0, rate: 1.0 }));
        assert_eq!(k.eval(&[1.0, 9.0, 2.0], &[1.0, -9.0, 2.0]), 1.0);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, says) in [
            ("rbff", "unknown kernel `rbff`; did you mean `rbf`; known are rbf, matern12"),
            ("zzzzzzzzz", "unknown kernel `zzzzzzzzz`; known are"),
            ("rbf(lengthscales=1)", "`rbf` has no argument `lengthscales`; did you mean `lengthscale`"),
            (
                "rbf(lengthscales=1)",
                "it takes variance, lengthscale, ard, fix, bounds, transform, prior, dims",
            ),
            ("rbf(2)", "`rbf` takes its arguments as name=value, found 2"),
            ("rbf(variance=1, variance=2)", "`variance` twice"),
            ("rbf(variance=-1)", "argument `variance` of `rbf`: expected a number above 0, found -1"),
            ("rbf(variance=true)", "expected a number, found `true`"),
            (
                "rbf(lengthscale=[1, 2])",
                "`lengthscale` of `rbf`: expected a number or a list of 3, found a list of 2",
            ),
            ("rbf(ard=3)", "argument `ard` of `rbf`: expected true or false, found 3"),
            ("rbf(dims=[3])", "argument `dims` of `rbf`: expected a list of input columns from 0 to 2"),
            ("rbf(dims=[0, 0])", "found 0 twice"),
            ("rbf(dims=[])", "found a list of 0"),
            ("rbf(dims=[0.5])", "argument `dims` of `rbf`"),
            ("(rbf + linear)(variance=1)", "takes the argument dims"),
            ("(rbf + linear)(dims=[0], variance=1)", "no argument `variance`"),
            ("rbf(fix=[alpha])", "argument `fix` of `rbf`"),
            ("rbf(fix=variance)", "argument `fix` of `rbf`: expected a list"),
            ("rbf(bounds=[lengthscale=[2, 10]])", "between 2 and 10, by its bounds or transform, found 1"),
            ("rbf(bounds=[lengthscale=[10, 2]])", "lengthscale=[lower, upper] with lower < upper"),
            ("rbf(bounds=[variance=[-1, 2]])", "bounds of at least 0, found -1"),
            ("rbf(bounds=[variance=[0, 2]], transform=[variance=exp])", "bounds or a transform twice"),
            (
                "rbf(transform=[variance=log])",
                "expected exp, identity, above(lower) or softplus(lower), found `log`",
            ),
            ("rbf(prior=[variance=gamma(0, 1)])", "found gamma[0.0, 1.0]"),
            ("rbf(prior=[variance=cauchy(0, 1)])", "found cauchy[0.0, 1.0]"),
            ("spectral_mixture(prior=[frequency=gamma(1, 1)])", "`frequency` may be negative"),
            ("spectral_mixture(components=0)", "an integer from 1 to 1000, found 0"),
            ("polynomial(degree=1.5)", "argument `degree` of `polynomial`"),
            ("mlp(hidden=[])", "argument `hidden` of `mlp`: expected a list of 1 to 100 positive integers"),
            ("mlp(hidden=[100000, 100000])", "more than 1048576 numbers"),
            ("mlp(base=3)", "argument `base` of `mlp`: expected a kernel, found 3"),
            ("rbf rbf", "expected `+`, `*` or the end at character 5"),
        ] {
            let found = reason(text, 3);
            assert!(found.contains(says), "{text}: {found}");
        }
        assert!(reason(&format!("{}rbf", "rbf+".repeat(400_000)), 1).contains("more than 256 kernels"));
        assert!(reason(&format!("rbf({})", "a=1,".repeat(2000)), 1).contains("2000 arguments"));
        assert!(reason("rbf(dims=[0]) + rbf", usize::MAX).contains("numbers"));
        assert!(reason("rbf", 0).contains("at least one column"));
        assert!(reason(&"rbf + ".repeat(1000), 1).len() < 400);
    }

    #[test]
    fn an_end_of_the_bounds_is_read() {
        let k = parse("rbf(variance=2.0, bounds=[variance=[0.5, 2.0]])", 1).unwrap();
        same(&*k, &*parse(&k.expression(), 1).unwrap());
    }

    /// A kernel of random structure, with random values, constraints and priors.
    fn random(rng: &mut ChaCha8Rng, dim: usize, depth: usize) -> Box<dyn Kernel> {
        let kind = if depth == 0 { 0 } else { rng.random_range(0..6) };
        let parts = |rng: &mut ChaCha8Rng| {
            let count = rng.random_range(1..4);
            (0..count).map(|_| random(rng, dim, depth - 1)).collect::<Vec<_>>()
        };
        match kind {
            1 => Box::new(Sum::new(parts(rng))),
            2 => Box::new(Product::new(parts(rng))),
            3 => {
                let mut dims: Vec<usize> = (0..dim).collect();
                dims.rotate_left(rng.random_range(0..dim));
                dims.truncate(rng.random_range(1..=dim));
                Box::new(Select::new(random(rng, dims.len(), depth - 1), &dims, dim))
            }
            _ => {
                let entries = names();
                let entry = &entries[rng.random_range(0..entries.len())];
                let ard = rng.random_range(0..3);
                let mut options = match (entry.name, ard) {
                    ("mlp", _) => format!("hidden=[3, 2], base={}", random(rng, 2, 0).expression()),
                    ("spectral_mixture", n) => format!("components={}", n + 1),
                    ("polynomial", n) => format!("degree={}", n + 1),
                    (_, 1) if entry.options.contains(&"ard") => "ard=false".to_string(),
                    (_, 2) if entry.options.contains(&"ard") => "ard=true".to_string(),
                    _ => String::new(),
                };
                if entry.name == "mlp" && ard == 0 {
                    options += ", bias=unit";
                }
                let mut kernel = parse(&format!("{}({options})", entry.name), dim).unwrap();
                kernel.params_mut().into_iter().for_each(|(_, p)| shake(rng, p));
                kernel
            }
        }
    }

    fn shake(rng: &mut ChaCha8Rng, p: &mut Param) {
        for v in p.value.as_mut_slice() {
            *v = f64::from_bits(rng.next_u64()).abs().clamp(1e-300, 1e300);
            if v.is_nan() || rng.random_range(0..2) == 0 {
                *v = rng.random_range(1e-6..5.0);
            }
        }
        p.fixed = rng.random_range(0..3) == 0;
        p.transform = match rng.random_range(0..6) {
            0 => Transform::Identity,
            1 => Transform::Exp,
            2 => Transform::Softplus { lo: rng.random_range(0.0..1e-301) },
            3 => Transform::Interval { lo: 0.0, hi: rng.random_range(2e300..1e308) },
            _ => p.transform,
        };
        p.prior = match rng.random_range(0..6) {
            0 if p.transform != Transform::Identity => {
                Some(Prior::Gamma { shape: 2.0, rate: rng.random_range(0.1..3.0) })
            }
            1 if p.transform != Transform::Identity => Some(Prior::LogNormal { mean: -0.1, std: 1.0 / 3.0 }),
            2 => Some(Prior::Normal { mean: rng.random_range(-1.0..1.0), std: 1e-7 }),
            _ => None,
        };
    }

    proptest! {
        #[test]
        fn random_kernels_are_read_back_to_the_bit(seed: u64, dim in 1usize..4) {
            let k = random(&mut ChaCha8Rng::seed_from_u64(seed), dim, 3);
            let back = parse(&k.expression(), dim).map_err(|e| TestCaseError::fail(format!("{k}: {e}")))?;
            prop_assert_eq!(k.expression(), back.expression());
            prop_assert_eq!(k.params(), back.params());
        }

        #[test]
        fn garbage_never_panics(text in "\\PC{0,80}", dim in 0usize..4) {
            let _ = parse(&text, dim);
        }

        #[test]
        fn near_misses_never_panic(
            tokens in prop::collection::vec(
                prop::sample::select(vec![
                    "rbf", "mlp", "linear", "white", "(", ")", "[", "]", ",", "=", "+", "*", "dims", "fix", "bounds",
                    "variance", "lengthscale", "prior", "gamma", "hidden", "base", "1", "-2", "1e-3", "0", "true", "é",
                ]),
                0..40,
            ),
            dim in 0usize..3,
        ) {
            let _ = parse(&tokens.concat(), dim);
        }
    }
}
