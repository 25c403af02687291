//! The kernels that expressions can name: one table for the parser, the laws and the docs.

use super::options::Options;
use super::syntax::Reason;
use super::*;

/// A kernel that [`parse`](super::parse) knows.
pub struct Entry {
    /// Its name in expressions.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// An expression that uses it.
    pub example: &'static str,
    /// The arguments that decide its form, besides its parameters.
    pub options: &'static [&'static str],
    /// Builds it from its options; the parameters are set afterwards.
    pub(super) make: fn(&mut Options<'_, '_>) -> std::result::Result<Box<dyn Kernel>, Reason>,
}

/// Every kernel that expressions can name.
///
/// ```
/// let known: Vec<&str> = latentgp::kernel::names().iter().map(|k| k.name).collect();
/// assert!(known.contains(&"rbf") && known.contains(&"spectral_mixture"));
/// ```
pub fn names() -> &'static [Entry] {
    &ENTRIES
}

macro_rules! isotropic_or_ard {
    ($kernel:ty) => {
        |o| {
            let ard = o.flag("ard", true)?;
            Ok(if ard { Box::new(<$kernel>::new(o.dim)) } else { Box::new(<$kernel>::isotropic(o.dim)) })
        }
    };
}

/// The features of a network that is not told otherwise.
const HIDDEN: [usize; 2] = [30, 60];
/// The most layers that a network in an expression has.
const MAX_LAYERS: usize = 100;
/// The largest seed that a number in an expression holds exactly.
const MAX_SEED: usize = 1 << 53;

static ENTRIES: [Entry; 14] = [
    Entry {
        name: "rbf",
        about: "squared exponential: smooth functions",
        example: "rbf(variance=2.0, lengthscale=0.5)",
        options: &["ard"],
        make: isotropic_or_ard!(Rbf),
    },
    Entry {
        name: "matern12",
        about: "Matérn 1/2, exponential: continuous, rough functions",
        example: "matern12(lengthscale=2.0)",
        options: &["ard"],
        make: isotropic_or_ard!(Matern12),
    },
    Entry {
        name: "matern32",
        about: "Matérn 3/2: functions with one derivative",
        example: "matern32(ard=false)",
        options: &["ard"],
        make: isotropic_or_ard!(Matern32),
    },
    Entry {
        name: "matern52",
        about: "Matérn 5/2: functions with two derivatives",
        example: "matern52(fix=[variance])",
        options: &["ard"],
        make: isotropic_or_ard!(Matern52),
    },
    Entry {
        name: "rational_quadratic",
        about: "squared exponentials of many lengthscales",
        example: "rational_quadratic(alpha=0.7)",
        options: &["ard"],
        make: isotropic_or_ard!(RationalQuadratic),
    },
    Entry {
        name: "periodic",
        about: "functions that repeat; one lengthscale unless ard=true",
        example: "periodic(period=12.0)",
        options: &["ard"],
        make: |o| {
            let ard = o.flag("ard", false)?;
            Ok(if ard { Box::new(Periodic::ard(o.dim)) } else { Box::new(Periodic::new(o.dim)) })
        },
    },
    Entry {
        name: "cosine",
        about: "one plane wave",
        example: "cosine(period=4.0)",
        options: &["ard"],
        make: isotropic_or_ard!(Cosine),
    },
    Entry {
        name: "linear",
        about: "linear functions through the origin",
        example: "linear(variance=0.5)",
        options: &["ard"],
        make: isotropic_or_ard!(Linear),
    },
    Entry {
        name: "polynomial",
        about: "polynomials up to a degree (2 by default)",
        example: "polynomial(degree=3, offset=0.5)",
        options: &["degree"],
        make: |o| {
            let degree = o.integer("degree", 2, 1, Polynomial::MAX_DEGREE as usize)?;
            Ok(Box::new(Polynomial::new(o.dim, degree as u32).map_err(|e| e.to_string())?))
        },
    },
    Entry {
        name: "constant",
        about: "an unknown offset",
        example: "constant(variance=10.0)",
        options: &[],
        make: |_| Ok(Box::new(Constant::new())),
    },
    Entry {
        name: "white",
        about: "noise that no two points share",
        example: "white(variance=0.01)",
        options: &[],
        make: |_| Ok(Box::new(White::new())),
    },
    Entry {
        name: "spectral_mixture",
        about: "a mixture of Gaussians as the spectral density (4 components by default)",
        example: "spectral_mixture(components=2)",
        options: &["components"],
        make: |o| {
            let components = o.integer("components", 4, 1, SpectralMixture::MAX_COMPONENTS)?;
            o.spend(o.dim.saturating_mul(2 * components))?;
            Ok(Box::new(SpectralMixture::new(o.dim, components).map_err(|e| e.to_string())?))
        },
    },
    Entry {
        name: "arc_sine",
        about: "a network of infinitely many erf units",
        example: "arc_sine(bias_variance=0.5)",
        options: &["ard"],
        make: isotropic_or_ard!(ArcSine),
    },
    Entry {
        name: "mlp",
        about: "a base kernel on the output of a network (hidden=[30, 60], base=rbf by default)",
        example: "mlp(hidden=[4, 3], base=rbf)",
        options: &["hidden", "base", "bias", "seed"],
        make: |o| {
            let hidden = o.integers("hidden", &HIDDEN, MAX_LAYERS)?;
            let fans = std::iter::once(&o.dim).chain(&hidden).copied().collect::<Vec<_>>();
            for pair in fans.windows(2) {
                o.spend(pair[0].saturating_mul(pair[1]))?;
            }
            let bias = match o.word("bias", &["layer", "unit"])? {
                Some("unit") => Bias::Unit,
                _ => Bias::Layer,
            };
            let seed = o.integer("seed", 0, 0, MAX_SEED)? as u64;
            let base = o.kernel("base", "rbf", fans[fans.len() - 1])?;
            Ok(Box::new(Mlp::with(o.dim, &hidden, base, bias, seed).map_err(|e| e.to_string())?))
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;

    const TOLERANCE: f64 = 1e-7;

    fn points(dim: usize) -> (Mat, Mat) {
        let x = Mat::from_fn(7, dim, |i, j| (2.3 * i as f64 + 1.1 * j as f64 + 0.2).sin());
        let z = Mat::from_fn(5, dim, |i, j| (1.3 * i as f64 - 0.7 * j as f64 - 0.4).cos());
        (x, z)
    }

    /// Parameters without structure, inside every domain.
    fn generic(mut kernel: Box<dyn Kernel>) -> Box<dyn Kernel> {
        for (i, (_, p)) in kernel.params_mut().into_iter().enumerate() {
            let values = p.value.as_mut_slice().iter_mut().enumerate();
            values.for_each(|(j, v)| *v *= 1.0 + 0.3 * (1.9 * i as f64 + 2.7 * j as f64).sin());
        }
        kernel
    }

    fn obeys(expression: &str, dim: usize) {
        let (x, z) = points(dim);
        let kernel = generic(parse(expression, dim).unwrap());
        check::kernel(&*kernel, &x, &z, TOLERANCE).unwrap_or_else(|e| panic!("{expression}, {dim}: {e}"));
    }

    #[test]
    fn every_kernel_obeys_the_laws() {
        for entry in names() {
            for dim in 1..=3 {
                obeys(entry.example, dim);
                if entry.options.contains(&"ard") {
                    obeys(&format!("{}(ard=true)", entry.name), dim);
                    obeys(&format!("{}(ard=false)", entry.name), dim);
                }
            }
        }
    }

    #[test]
    fn compositions_obey_the_laws() {
        for expression in [
            "rbf * periodic + linear + white",
            "(polynomial(degree=3) + constant) * cosine(dims=[1])",
            "(rbf + white)(dims=[2, 0]) * arc_sine + spectral_mixture(components=2, dims=[1, 2])",
            "mlp(hidden=[3, 2], base=matern32 * rbf(dims=[1]) + white, bias=unit, seed=2) + linear(ard=false)",
        ] {
            obeys(expression, 3);
        }
    }

    #[test]
    fn names_are_unique_and_closed_forms_are_those_of_the_error_message() {
        let closed: Vec<&str> = names()
            .iter()
            .filter(|e| parse(e.name, 2).unwrap().closed_form().is_some())
            .map(|e| e.name)
            .collect();
        assert_eq!(closed, ["rbf", "linear", "constant", "white"]);
        for (i, a) in names().iter().enumerate() {
            assert!(names()[..i].iter().all(|b| a.name != b.name));
        }
    }
}
