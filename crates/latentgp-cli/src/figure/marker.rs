//! Colours and shapes that tell classes apart, also for the colour-blind and in print without colour.
//!
//! The first colours are those of Okabe and Ito (2008), the others of Tol's "muted" scheme (2021);
//! shapes alternate, so that no two neighbours differ in colour alone.

use super::canvas::{Canvas, polyline};

/// The colours of the classes.
pub const COLOURS: [&str; 12] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#332288", "#882255", "#999933",
    "#117733", "#444444", "#c9a94b",
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
    // Offset by one after each round, so that a colour close to an earlier one has another shape.
    [Shape::Disc, Shape::Triangle, Shape::Square, Shape::Diamond][(k + k / 4) % 4]
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
