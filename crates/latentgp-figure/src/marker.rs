//! Colours and shapes that tell classes apart, also for the colour-blind and in print without colour.
//!
//! The first six colours are those of Okabe and Ito (2008), the others of Tol's "muted" scheme (2021)
//! with a grey and a brown; shapes alternate, so that no two neighbours differ in colour alone.

use super::canvas::{Canvas, polyline};

/// The colours of the classes.
pub const COLOURS: [&str; 12] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#332288", "#882255", "#999933",
    "#117733", "#333333", "#661100",
];
/// The colour of whatever has no class of its own.
pub const OTHER: &str = "#9a9a9a";

/// The outline of a marker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// A disc.
    Disc,
    /// A square.
    Square,
    /// A triangle that points upwards.
    Triangle,
    /// A diamond.
    Diamond,
}

/// The shape of class `k`.
pub fn shape(k: usize) -> Shape {
    // The offset from the ninth on keeps colours that some eyes confuse on different shapes.
    [Shape::Disc, Shape::Triangle, Shape::Square, Shape::Diamond][(k + 2 * (k / 8)) % 4]
}

/// Draws a marker of the area of a disc of radius `r`.
pub fn draw(canvas: &mut Canvas, shape: Shape, (x, y): (f64, f64), r: f64) {
    match shape {
        Shape::Disc => canvas.ellipse((x, y), (r, r)),
        Shape::Square => {
            let a = 0.886 * r;
            canvas
                .path(&polyline(&[(x - a, y - a), (x + a, y - a), (x + a, y + a), (x - a, y + a)], true), "");
        }
        Shape::Triangle => {
            let a = 1.35 * r;
            canvas
                .path(&polyline(&[(x, y - 1.15 * a), (x + a, y + 0.6 * a), (x - a, y + 0.6 * a)], true), "");
        }
        Shape::Diamond => {
            let a = 1.254 * r;
            canvas.path(&polyline(&[(x, y - a), (x + a, y), (x, y + a), (x - a, y)], true), "");
        }
    }
}

/// Draws a small diagonal cross, dark on a white rim, so that it is seen on any ground.
pub fn cross(canvas: &mut Canvas, (x, y): (f64, f64), r: f64) {
    let path = format!(
        "{}{}",
        polyline(&[(x - r, y - r), (x + r, y + r)], false),
        polyline(&[(x - r, y + r), (x + r, y - r)], false)
    );
    canvas.path(&path, "stroke=\"#ffffff\" stroke-width=\"3\" stroke-opacity=\"0.8\"");
    canvas.path(&path, "stroke=\"#111111\" stroke-width=\"1.3\"");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Colour blindness as a matrix on linear RGB: Machado, Oliveira and Fernandes (2009), severity 1.
    const BLINDNESS: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    ];
    /// Least distance in CIELAB, where about 2 is just noticeable.
    const APART: f64 = 25.0;

    fn times(m: &[[f64; 3]; 3], v: [f64; 3]) -> [f64; 3] {
        m.map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum())
    }

    fn linear(colour: &str) -> [f64; 3] {
        [1, 3, 5].map(|at| {
            let s = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if s <= 0.04045 { s / 12.92 } else { ((s + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn lab(rgb: [f64; 3]) -> [f64; 3] {
        const XYZ: [[f64; 3]; 3] =
            [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]];
        let xyz = times(&XYZ, rgb.map(|v| v.clamp(0.0, 1.0)));
        let f = |t: f64| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
        let [x, y, z] = [f(xyz[0] / 0.9505), f(xyz[1]), f(xyz[2] / 1.089)];
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    #[test]
    fn classes_of_one_shape_differ_in_colour_for_every_eye() {
        for (k, blindness) in BLINDNESS.iter().enumerate() {
            let seen: Vec<_> = COLOURS.iter().map(|c| lab(times(blindness, linear(c)))).collect();
            let other = lab(times(blindness, linear(OTHER)));
            let distance =
                |a: [f64; 3], b: [f64; 3]| (0..3).map(|c| (a[c] - b[c]).powi(2)).sum::<f64>().sqrt();
            for i in 0..seen.len() {
                for j in (0..i).filter(|&j| shape(i) == shape(j)) {
                    let apart = distance(seen[i], seen[j]);
                    assert!(apart > APART, "eye {k}: {} and {} are {apart:.1} apart", COLOURS[i], COLOURS[j]);
                }
                assert!(shape(i) != Shape::Disc || distance(seen[i], other) > APART, "{}", COLOURS[i]);
            }
        }
    }
}
