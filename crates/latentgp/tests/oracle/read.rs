//! Numbers, matrices and kernels out of a case.

use latentgp::Mat;
use latentgp::kernel::*;
use latentgp::param::{self, Param};
use serde_json::Value;

/// All numbers below a value, in order; of an object those of its fields in the order asked for.
pub fn numbers(v: &Value) -> Vec<f64> {
    match v {
        Value::Number(n) => vec![n.as_f64().expect("a number")],
        Value::Array(a) => a.iter().flat_map(numbers).collect(),
        other => panic!("expected numbers, found {other}"),
    }
}

pub fn number(v: &Value) -> f64 {
    v.as_f64().unwrap_or_else(|| panic!("expected a number, found {v}"))
}

pub fn mat(v: &Value) -> Mat {
    let rows: Vec<Vec<f64>> = v.as_array().expect("a list of rows").iter().map(numbers).collect();
    Mat::from_rows(&rows)
}

/// A kernel of `dim` input columns from its nested description.
pub fn kernel(v: &Value, dim: usize) -> Box<dyn Kernel> {
    let parts = || -> Vec<Box<dyn Kernel>> {
        v["parts"].as_array().expect("parts").iter().map(|p| kernel(p, dim)).collect()
    };
    match v["type"].as_str().expect("a kernel type") {
        "sum" => Box::new(Sum::new(parts())),
        "product" => Box::new(Product::new(parts())),
        "rbf" => stationary::<shape::Rbf>(v, dim),
        "matern12" => stationary::<shape::Matern12>(v, dim),
        "matern32" => stationary::<shape::Matern32>(v, dim),
        "matern52" => stationary::<shape::Matern52>(v, dim),
        "rational_quadratic" => {
            let mut k = RationalQuadratic::new(dim);
            set(&mut k.variance, &v["variance"]);
            set(&mut k.lengthscale, &v["lengthscales"]);
            set(k.alpha.as_mut().expect("alpha"), &v["alpha"]);
            Box::new(k)
        }
        "linear" => {
            let mut k = Linear::new(dim);
            set(&mut k.variance, &v["variances"]);
            Box::new(k)
        }
        "periodic" => {
            let shared = numbers(&v["lengthscales"]).len() == 1;
            let mut k = if shared { Periodic::new(dim) } else { Periodic::ard(dim) };
            set(&mut k.variance, &v["variance"]);
            set(&mut k.lengthscale, &v["lengthscales"]);
            set(&mut k.period, &v["period"]);
            Box::new(k)
        }
        "mlp_rbf" => {
            let layers: Vec<Mat> = v["W"].as_array().expect("layers").iter().map(mat).collect();
            let widths: Vec<usize> = layers.iter().map(Mat::cols).collect();
            let mut base = Rbf::new(widths[widths.len() - 1]);
            set(&mut base.variance, &v["variance"]);
            set(&mut base.lengthscale, &v["lengthscales"]);
            let mut k = Mlp::new(dim, &widths, base).expect("a network");
            let biases = numbers(&v["b"]);
            for (name, p) in param::Parameterized::params_mut(&mut k) {
                if let Some(i) = name.strip_prefix("weights").and_then(|i| i.parse::<usize>().ok()) {
                    p.value = layers[i].clone();
                } else if let Some(i) = name.strip_prefix("bias").and_then(|i| i.parse::<usize>().ok()) {
                    p.set(biases[i]);
                }
            }
            Box::new(k)
        }
        other => panic!("a kernel that this test does not know: {other}"),
    }
}

fn stationary<S: Shape>(v: &Value, dim: usize) -> Box<dyn Kernel> {
    let shared = numbers(&v["lengthscales"]).len() == 1 && dim != 1;
    let mut k = if shared { Stationary::<S>::isotropic(dim) } else { Stationary::<S>::new(dim) };
    set(&mut k.variance, &v["variance"]);
    set(&mut k.lengthscale, &v["lengthscales"]);
    Box::new(k)
}

fn set(p: &mut Param, v: &Value) {
    let values = numbers(v);
    assert_eq!(p.len(), values.len(), "as many values as the parameter has");
    p.value.as_mut_slice().copy_from_slice(&values);
}

/// The numbers of a kernel description, in the order of our parameters.
pub fn theta(v: &Value) -> Vec<f64> {
    let fields = |names: &[&str]| names.iter().flat_map(|n| numbers(&v[*n])).collect();
    match v["type"].as_str().expect("a kernel type") {
        "sum" | "product" => v["parts"].as_array().expect("parts").iter().flat_map(theta).collect(),
        "linear" => fields(&["variances"]),
        "periodic" => fields(&["variance", "lengthscales", "period"]),
        "rational_quadratic" => fields(&["variance", "lengthscales", "alpha"]),
        "mlp_rbf" => {
            let layers = v["W"].as_array().expect("layers").iter().zip(v["b"].as_array().expect("biases"));
            let mut all: Vec<f64> = layers.flat_map(|(w, b)| [numbers(w), numbers(b)].concat()).collect();
            all.extend(fields(&["variance", "lengthscales"]) as Vec<f64>);
            all
        }
        _ => fields(&["variance", "lengthscales"]),
    }
}
