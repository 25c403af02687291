//! The values, constraints and priors of a parsed kernel's parameters.

use super::Kernel;
use super::options::wrong;
use super::parse::{Built, COMMON, hint};
use super::syntax::{Expr, Item, Value};
use crate::param::{Param, Prior, Transform};

/// What the messages say about a kernel, and whose it is.
pub(super) struct Named<'a> {
    /// Its name in expressions.
    pub name: &'a str,
    /// The arguments that decide its form.
    pub options: &'a [&'a str],
    /// Whether it is a user's own: then a constraint in the expression replaces its own.
    pub own: bool,
}

/// Sets values, constraints and priors, and checks that they go together.
pub(super) fn apply(entry: &Named<'_>, items: Vec<(String, Value)>, kernel: &mut dyn Kernel) -> Built<()> {
    // A part's parameters, such as `base.variance`, are set where the part is written.
    let mut params: Vec<(String, &mut Param)> = kernel.params_mut();
    params.retain(|(name, _)| !name.contains('.'));
    let mut own: Vec<Transform> = params.iter().map(|(_, p)| p.transform).collect();
    let mut bounded = vec![false; params.len()];
    for (name, value) in &items {
        if let Some((_, p)) = params.iter_mut().find(|(n, _)| n == name) {
            set_value(entry.name, name, p, value)?;
            continue;
        }
        let Some(&key) = COMMON.iter().find(|c| *c == name) else {
            let names = params.iter().map(|(n, _)| n.as_str());
            let takes: Vec<&str> = names.chain(entry.options.iter().copied()).chain(COMMON).collect();
            let hint = hint(name, &takes);
            return Err(format!(
                "`{}` has no argument `{name}`{hint}; it takes {}",
                entry.name,
                takes.join(", ")
            ));
        };
        let Value::List(list) = value else {
            return Err(wrong(entry.name, key, "a list", value.describe()));
        };
        for item in list {
            let named = if key == "fix" { item.value.word() } else { item.name.as_deref() };
            let Some(at) = params.iter().position(|(n, _)| Some(n.as_str()) == named) else {
                let known: Vec<&str> = params.iter().map(|(n, _)| n.as_str()).collect();
                let entry_form = if key == "fix" { "" } else { "=…" };
                let expected = format!("entries `parameter{entry_form}` with one of {}", known.join(", "));
                let found = named.map_or_else(|| item.value.describe(), |n| format!("`{n}`"));
                return Err(wrong(entry.name, key, expected, found));
            };
            let (name, p) = &mut params[at];
            match key {
                "fix" => p.fixed = true,
                "prior" => p.prior = Some(prior(entry.name, &item.value)?),
                _ if std::mem::replace(&mut bounded[at], true) => {
                    return Err(format!("`{name}` of `{}` is given bounds or a transform twice", entry.name));
                }
                "bounds" => p.transform = bounds(entry.name, name, &item.value)?,
                _ => p.transform = transform(entry.name, &item.value)?,
            }
        }
    }
    for (own, _) in own.iter_mut().zip(&bounded).filter(|(_, bounded)| entry.own && **bounded) {
        *own = Transform::Identity;
    }
    params.iter().zip(own).try_for_each(|((name, p), own)| check(entry.name, name, p, own))
}

fn set_value(kernel: &str, name: &str, p: &mut Param, value: &Value) -> Built<()> {
    let (rows, cols) = (p.value.rows(), p.value.cols());
    let expected = || match (rows, cols) {
        (1, 1) => "a number".to_string(),
        (1, _) => format!("a number or a list of {cols}"),
        _ => format!("a number or a list of {rows} lists of {cols}"),
    };
    let fill = |to: &mut [f64], items: &[Item]| -> Built<()> {
        if items.len() != to.len() {
            return Err(wrong(kernel, name, expected(), format!("a list of {}", items.len())));
        }
        for (to, item) in to.iter_mut().zip(items) {
            match (&item.name, &item.value) {
                (None, Value::Number(v)) => *to = *v,
                _ => return Err(wrong(kernel, name, expected(), item.value.describe())),
            }
        }
        Ok(())
    };
    match value {
        Value::Number(v) => p.set(*v),
        Value::List(items) if rows == 1 => fill(p.value.as_mut_slice(), items)?,
        Value::List(items) if items.len() == rows => {
            for (i, item) in items.iter().enumerate() {
                match &item.value {
                    Value::List(inner) if item.name.is_none() => fill(p.value.row_mut(i), inner)?,
                    other => return Err(wrong(kernel, name, expected(), other.describe())),
                }
            }
        }
        other => return Err(wrong(kernel, name, expected(), other.describe())),
    }
    Ok(())
}

fn bounds(kernel: &str, name: &str, value: &Value) -> Built<Transform> {
    if let Value::List(items) = value
        && let [a, b] = &items[..]
        && let (Value::Number(lo), Value::Number(hi)) = (&a.value, &b.value)
        && a.name.is_none()
        && b.name.is_none()
        && lo < hi
    {
        return Ok(Transform::Interval { lo: *lo, hi: *hi });
    }
    Err(wrong(kernel, "bounds", format!("{name}=[lower, upper] with lower < upper"), value.describe()))
}

/// `name(numbers…)`, or `name` alone.
fn function(value: &Value) -> Option<(&str, Vec<f64>)> {
    let Value::Expr(Expr::Call { name, items }) = value else { return None };
    let number = |i: &Item| match (&i.name, &i.value) {
        (None, Value::Number(v)) => Some(*v),
        _ => None,
    };
    Some((name, items.iter().map(number).collect::<Option<_>>()?))
}

fn transform(kernel: &str, value: &Value) -> Built<Transform> {
    match function(value) {
        Some(("exp", args)) if args.is_empty() => Ok(Transform::Exp),
        Some(("identity", args)) if args.is_empty() => Ok(Transform::Identity),
        Some(("softplus", args)) if args.len() < 2 => {
            Ok(Transform::Softplus { lo: args.first().copied().unwrap_or(0.0) })
        }
        Some(("above", args)) if args.len() == 1 => Ok(Transform::Above { lo: args[0] }),
        _ => Err(wrong(
            kernel,
            "transform",
            "exp, identity, above(lower) or softplus(lower)",
            value.describe(),
        )),
    }
}

fn prior(kernel: &str, value: &Value) -> Built<Prior> {
    let (name, args) = function(value).unwrap_or_default();
    match (name, &args[..]) {
        ("gamma", &[shape, rate]) if shape > 0.0 && rate > 0.0 => Ok(Prior::Gamma { shape, rate }),
        ("log_normal", &[mean, std]) if std > 0.0 => Ok(Prior::LogNormal { mean, std }),
        ("normal", &[mean, std]) if std > 0.0 => Ok(Prior::Normal { mean, std }),
        _ => {
            let expected =
                "gamma(shape, rate), log_normal(mean, std) or normal(mean, std) with shape, rate, std > 0";
            let found = if args.is_empty() { value.describe() } else { format!("{name}{args:?}") };
            Err(wrong(kernel, "prior", expected, found))
        }
    }
}

/// Whether value, constraint and prior go together; `own` is the constraint that the kernel itself needs.
fn check(kernel: &str, name: &str, p: &Param, own: Transform) -> Built<()> {
    let (lo, hi) = range(p.transform);
    for v in p.as_slice() {
        if !own.admits(*v) {
            let expected = if own == Transform::Exp { "a number above 0" } else { "a finite number" };
            return Err(wrong(kernel, name, expected, v));
        }
        if !(lo..=hi).contains(v) {
            let limit = if hi.is_finite() { format!("between {lo} and {hi}") } else { format!("above {lo}") };
            let expected = format!("a number {limit}, by its bounds or transform");
            return Err(format!("{}; give {name}=… inside or change them", wrong(kernel, name, expected, v)));
        }
    }
    // The identity has no range of its own: whoever asks for it minds the sign.
    if own == Transform::Exp && p.transform != Transform::Identity && lo < 0.0 {
        return Err(wrong(kernel, name, "bounds of at least 0", lo));
    }
    match p.prior {
        Some(Prior::Gamma { .. }) if lo < 0.0 => negative(kernel, name, "gamma"),
        Some(Prior::LogNormal { .. }) if lo < 0.0 => negative(kernel, name, "log_normal"),
        _ => Ok(()),
    }
}

fn negative(kernel: &str, name: &str, prior: &str) -> Built<()> {
    Err(wrong(kernel, "prior", format!("normal(mean, std), as `{name}` may be negative"), prior))
}

/// The closed range of a transform.
fn range(transform: Transform) -> (f64, f64) {
    match transform {
        Transform::Identity => (f64::NEG_INFINITY, f64::INFINITY),
        Transform::Exp => (0.0, f64::INFINITY),
        Transform::Above { lo } | Transform::Softplus { lo } => (lo, f64::INFINITY),
        Transform::Interval { lo, hi } => (lo, hi),
    }
}
