//! What the text of a kernel says of its parameters.

use super::Kernel;

/// Whether the text sets a parameter, such as `period=12`; what is in square brackets says other things.
pub fn gives_values(text: &str, kernel: &dyn Kernel) -> bool {
    let mut depth = 0usize;
    let mut outside = String::new();
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => outside.push(c),
            _ => {}
        }
    }
    let names = kernel.params().into_iter().map(|(name, _)| name);
    names.into_iter().any(|name| {
        let own = name.rsplit('.').next().unwrap_or_default();
        ["(", ","].iter().any(|before| outside.contains(&format!("{before}{own}=")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel;

    #[test]
    fn values_in_a_kernel_are_seen() {
        for (text, values) in [
            ("rbf + linear", false),
            ("rbf(fix=[variance], bounds=[lengthscale=[0.1, 10]])", false),
            ("rbf(dims=[0, 1]) * linear", false),
            ("periodic( period = 2 ) + linear", true),
            ("rbf(fix=[variance], lengthscale=[1, 2, 3])", true),
        ] {
            let kernel = kernel::parse(text, 3).or_else(|_| kernel::parse(text, 12)).unwrap();
            assert_eq!(gives_values(text, &*kernel), values, "{text}");
        }
    }
}
