//! Kernels by name with a flat table of parameters, as the files of regression and the GPLVM have them.

use super::Errors;
use super::read::{number, numbers};
use latentgp::kernel::*;
use latentgp::param::Param;
use serde_json::Value;

/// A kernel, and the field of the table that each of its parameters came from, in the order of `params()`;
/// `None` for one that the table does not have.
pub struct Named {
    pub kernel: Box<dyn Kernel>,
    pub fields: Vec<(Option<String>, usize)>,
}

/// The kernel `name` of `dim` input columns.
pub fn kernel(name: &str, params: &Value, dim: usize) -> Named {
    match name.starts_with("sum_") || name.starts_with("product_") {
        true => composed(name, params, dim),
        false => leaf(name, "", params, dim),
    }
}

/// `sum_a_b` and `product_a_b`: each part's parameters have its name in front, unless no other part has one of that name.
fn composed(name: &str, params: &Value, dim: usize) -> Named {
    let whole = name.replace("rational_quadratic", "rq");
    let parts = whole.split('_').skip(1).map(|p| if p == "rq" { "rational_quadratic" } else { p });
    let (mut kernels, mut fields) = (Vec::new(), Vec::new());
    for part in parts {
        let prefix = format!("{part}_");
        let own = leaf(part, &prefix, params, dim);
        kernels.push(own.kernel);
        fields.extend(own.fields);
    }
    let kernel: Box<dyn Kernel> = match name.starts_with("product") {
        true => Box::new(Product::new(kernels)),
        false => Box::new(Sum::new(kernels)),
    };
    Named { kernel, fields }
}

fn leaf(name: &str, prefix: &str, params: &Value, dim: usize) -> Named {
    let field = |key: &str| {
        let short = if prefix == "periodic_" { "per_" } else { prefix };
        let names = [prefix, short, ""].map(|p| [format!("{p}{key}"), format!("{p}{key}s")]).concat();
        names.into_iter().find(|n| params.get(n).is_some())
    };
    let shared = |key: &str| field(key).is_none_or(|f| numbers(&params[&f]).len() == 1);
    let mut fields = Vec::new();
    let mut set = |p: &mut Param, key: &str| {
        let from = field(key);
        if let Some(from) = &from {
            let values = numbers(&params[from]);
            assert_eq!(p.len(), values.len(), "{from}: as many values as the parameter has");
            p.value.as_mut_slice().copy_from_slice(&values);
        }
        fields.push((from, p.len()));
    };
    macro_rules! stationary {
        ($shape:ty) => {{
            let one = shared("lengthscale") && dim != 1;
            let mut k =
                if one { Stationary::<$shape>::isotropic(dim) } else { Stationary::<$shape>::new(dim) };
            set(&mut k.variance, "variance");
            set(&mut k.lengthscale, "lengthscale");
            if let Some(alpha) = k.alpha.as_mut() {
                set(alpha, "alpha");
            }
            Box::new(k) as Box<dyn Kernel>
        }};
    }
    let kernel: Box<dyn Kernel> = match name {
        "rbf" => stationary!(shape::Rbf),
        "matern12" => stationary!(shape::Matern12),
        "matern32" => stationary!(shape::Matern32),
        "matern52" => stationary!(shape::Matern52),
        "rational_quadratic" => stationary!(shape::RationalQuadratic),
        "periodic" => {
            let mut k = if shared("lengthscale") { Periodic::new(dim) } else { Periodic::ard(dim) };
            // A factor without a variance of its own has unit variance.
            let own = format!("{prefix}variance");
            match params.get(&own) {
                Some(v) => {
                    k.variance.set(number(v));
                    fields.push((Some(own), 1));
                }
                None => fields.push((None, 1)),
            }
            let mut set = |p: &mut Param, key: &str| {
                let from = field(key).unwrap_or_else(|| panic!("no {prefix}{key} in {params}"));
                p.value.as_mut_slice().copy_from_slice(&numbers(&params[&from]));
                fields.push((Some(from), p.len()));
            };
            set(&mut k.lengthscale, "lengthscale");
            set(&mut k.period, "period");
            Box::new(k)
        }
        "linear" => {
            let one = shared("variance") && dim != 1;
            let mut k = if one { Linear::isotropic(dim) } else { Linear::new(dim) };
            set(&mut k.variance, "variance");
            Box::new(k)
        }
        "bias" | "constant" => {
            let mut k = Constant::new();
            set(&mut k.variance, "variance");
            Box::new(k)
        }
        other => panic!("a kernel that this test does not know: {other}"),
    };
    Named { kernel, fields }
}

/// Compares the gradient of each kernel parameter with the field of its name.
pub fn compare_gradient(
    grad: &[f64],
    fields: &[(Option<String>, usize)],
    theirs: &Value,
    tolerance: f64,
    errors: &mut Errors,
) {
    let known = fields.iter().filter(|(field, _)| field.is_some()).count();
    let others = ["noise_variance", "X"].iter().filter(|key| theirs.get(**key).is_some()).count();
    assert_eq!(theirs.as_object().expect("a table").len(), known + others, "every gradient is compared");
    let mut rest = grad;
    for (field, len) in fields {
        let (own, others) = rest.split_at(*len);
        if let Some(field) = field {
            errors.compare(&format!("gradient of {field}"), own, &numbers(&theirs[field]), tolerance);
        }
        rest = others;
    }
}
