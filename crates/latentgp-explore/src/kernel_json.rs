//! A kernel as JSON that the page can evaluate, where it knows all of its parts.

use latentgp::kernel::{Kernel, Structure};
use serde_json::{Value, json};

/// The parts that the page knows.
const KNOWN: [&str; 11] = [
    "rbf",
    "matern12",
    "matern32",
    "matern52",
    "rational_quadratic",
    "periodic",
    "cosine",
    "linear",
    "polynomial",
    "constant",
    "white",
];

/// The kernel, or the name of a part that the page does not know.
pub fn kernel_json(kernel: &dyn Kernel) -> Result<Value, String> {
    let all =
        |parts: &[Box<dyn Kernel>]| parts.iter().map(|p| kernel_json(&**p)).collect::<Result<Vec<_>, _>>();
    match kernel.structure() {
        Structure::Sum(parts) => Ok(json!({ "name": "sum", "parts": all(parts)? })),
        Structure::Product(parts) => Ok(json!({ "name": "product", "parts": all(parts)? })),
        Structure::Select(select) => {
            Ok(json!({ "name": "select", "dims": select.dims, "part": kernel_json(&*select.kernel)? }))
        }
        Structure::Leaf => {
            let text = kernel.expression();
            let name = text.split('(').next().unwrap_or_default();
            if !KNOWN.contains(&name) {
                return Err(name.into());
            }
            let mut leaf = json!({ "name": name });
            for (parameter, p) in kernel.params() {
                leaf[parameter] = json!(p.as_slice());
            }
            if let Some((_, degree)) = text.split_once("degree=") {
                let digits: String = degree.chars().take_while(char::is_ascii_digit).collect();
                leaf["degree"] = json!(digits.parse::<u32>().map_err(|_| name.to_string())?);
            }
            Ok(leaf)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latentgp::kernel::{names, parse};

    #[test]
    fn parts_are_told_with_their_parameters_and_others_are_named() {
        let text = "rbf(lengthscale=[1.0, 2.0]) * polynomial(degree=3) + linear(dims=[1]) + white";
        let told = kernel_json(&parse(text, 2).unwrap()).unwrap();
        assert_eq!(told["parts"][0]["parts"][0]["lengthscale"], json!([1.0, 2.0]));
        assert_eq!(told["parts"][0]["parts"][1]["degree"], 3);
        assert_eq!(
            (&told["parts"][1]["dims"], &told["parts"][1]["part"]["name"]),
            (&json!([1]), &json!("linear"))
        );
        for entry in names() {
            let told = kernel_json(&parse(entry.example, 2).unwrap());
            assert_eq!(told.is_ok(), KNOWN.contains(&entry.name), "{}", entry.name);
        }
    }
}
