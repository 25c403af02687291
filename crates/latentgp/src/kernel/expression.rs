//! Kernels as text: `name(option=…, parameter=…, fix=[…], bounds=[…], transform=[…], prior=[…])`.
//!
//! Numbers are printed with the fewest digits that read back to the same bits.

use crate::param::{Param, Prior, Transform};

/// `name(…)` with the options first, then the parameters and whatever of them is not the default.
///
/// Each parameter comes with the transform it has by default, which is not printed.
pub(crate) fn call(name: &str, options: &[String], params: &[(&str, &Param, Transform)]) -> String {
    let mut args: Vec<String> = options.to_vec();
    args.extend(params.iter().map(|(name, p, _)| format!("{name}={}", value(p))));
    let listed = |args: &mut Vec<String>, key: &str, items: Vec<String>| {
        if !items.is_empty() {
            args.push(format!("{key}=[{}]", items.join(", ")));
        }
    };
    let fixed = params.iter().filter(|(_, p, _)| p.fixed).map(|(name, ..)| name.to_string());
    listed(&mut args, "fix", fixed.collect());
    let mut bounds = Vec::new();
    let mut transforms = Vec::new();
    for (name, p, default) in params {
        match p.transform {
            t if t == *default => {}
            Transform::Interval { lo, hi } => bounds.push(format!("{name}=[{lo:?}, {hi:?}]")),
            Transform::Softplus { lo } => transforms.push(format!("{name}=softplus({lo:?})")),
            Transform::Above { lo } => transforms.push(format!("{name}=above({lo:?})")),
            Transform::Exp => transforms.push(format!("{name}=exp")),
            Transform::Identity => transforms.push(format!("{name}=identity")),
        }
    }
    listed(&mut args, "bounds", bounds);
    listed(&mut args, "transform", transforms);
    let priors = params.iter().filter_map(|(name, p, _)| Some(format!("{name}={}", prior(p.prior?))));
    listed(&mut args, "prior", priors.collect());
    format!("{name}({})", args.join(", "))
}

/// A scalar as a number, a row as a list, anything taller as a list of rows.
pub(crate) fn value(p: &Param) -> String {
    match (p.value.rows(), p.value.cols()) {
        (1, 1) => format!("{:?}", p.get()),
        (1, _) => list(p.as_slice()),
        (rows, _) => {
            let rows: Vec<String> = (0..rows).map(|i| list(p.value.row(i))).collect();
            format!("[{}]", rows.join(", "))
        }
    }
}

fn list(values: &[f64]) -> String {
    let items: Vec<String> = values.iter().map(|v| format!("{v:?}")).collect();
    format!("[{}]", items.join(", "))
}

fn prior(prior: Prior) -> String {
    match prior {
        Prior::Gamma { shape, rate } => format!("gamma({shape:?}, {rate:?})"),
        Prior::LogNormal { mean, std } => format!("log_normal({mean:?}, {std:?})"),
        Prior::Normal { mean, std } => format!("normal({mean:?}, {std:?})"),
    }
}
