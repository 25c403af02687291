//! The points of a latent map.
//!
//! They are drawn in one shuffled order, the same every time, small and somewhat transparent where there are many:
//! no class lies above another, however the rows are sorted.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::axes::Axes;
use super::canvas::{Canvas, num};
use super::classes::Class;
use super::latent::{Coordinate, LatentMap};
use super::marker;

/// How markers look: smaller and more transparent where there are many.
struct Look {
    radius: f64,
    outline: f64,
    opacity: f64,
}

impl Look {
    fn new(n: usize) -> Look {
        let many = (n as f64 / 50.0).max(1.0).log10();
        let radius = (4.6 - 1.5 * many).max(1.3);
        let outline = if n > 2000 { 0.0 } else { 0.16 * radius };
        Look { radius, outline, opacity: (0.9 - 0.12 * many).max(0.6) }
    }

    /// The attributes of a group of markers, but for its colour.
    fn style(&self) -> String {
        format!(
            "fill=\"currentColor\" fill-opacity=\"{}\" stroke=\"#ffffff\" stroke-width=\"{}\"",
            num(self.opacity),
            num(self.outline)
        )
    }
}

/// Points in the order in which they are drawn, each with its class.
fn shuffled(classes: &[Class]) -> Vec<(usize, &Class)> {
    let mut order: Vec<_> = classes.iter().flat_map(|c| c.points.iter().map(move |&n| (n, c))).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(0));
    order
}

/// Draws each of `order` in the colour of its class, all with the attributes of `style`.
fn coloured(
    canvas: &mut Canvas,
    style: &str,
    order: &[(usize, &Class)],
    one: &dyn Fn(&mut Canvas, usize, &Class),
) {
    canvas.open(style);
    for run in order.chunk_by(|a, b| a.1.colour == b.1.colour) {
        canvas.open(&format!("color=\"{}\"", run[0].1.colour));
        run.iter().for_each(|&(n, class)| one(canvas, n, class));
        canvas.close();
    }
    canvas.close();
}

/// Two dimensions: ellipses, points and inducing inputs.
pub fn plane(canvas: &mut Canvas, axes: &Axes, map: &LatentMap, y: &Coordinate, classes: &[Class]) {
    let n = map.x.mean.len();
    let order = shuffled(classes);
    // Ellipses add up where points are dense: the more of them, the fainter.
    let faint = (14.0 / (n as f64).powf(0.7)).clamp(0.02, 0.5);
    if !map.x.variance.is_empty() || !y.variance.is_empty() {
        let unit = (axes.px(1.0) - axes.px(0.0), axes.py(0.0) - axes.py(1.0));
        let style = format!(
            "fill=\"currentColor\" fill-opacity=\"{}\" stroke=\"currentColor\" stroke-opacity=\"{}\" \
             stroke-width=\"0.7\"",
            num(0.35 * faint),
            num(faint)
        );
        coloured(canvas, &style, &order, &|canvas, n, _| {
            let half = (map.x.std(n) * unit.0, y.std(n) * unit.1);
            if half.0 > 0.0 || half.1 > 0.0 {
                canvas.ellipse(axes.at(map.x.mean[n], y.mean[n]), half);
            }
        });
    }
    let look = Look::new(n);
    coloured(canvas, &look.style(), &order, &|canvas, n, class| {
        marker::draw(canvas, class.shape, axes.at(map.x.mean[n], y.mean[n]), look.radius);
    });
    let inside = |(x, y): (f64, f64)| {
        (axes.area.x..=axes.area.right()).contains(&x) && (axes.area.y..=axes.area.bottom()).contains(&y)
    };
    for z in map.inducing.iter().filter(|z| inside(axes.at(z[0], z[1]))) {
        marker::cross(canvas, axes.at(z[0], z[1]), 3.2);
    }
}

/// One dimension: a strip for each class, points shifted up and down so that they do not hide another.
pub fn strips(canvas: &mut Canvas, axes: &Axes, map: &LatentMap, classes: &[Class]) {
    let look = Look::new(map.x.mean.len());
    for (k, class) in classes.iter().enumerate() {
        let row = (classes.len() - 1 - k) as f64;
        let places: Vec<_> = class
            .points
            .iter()
            .enumerate()
            .map(|(i, &n)| (n, axes.at(map.x.mean[n], row + 0.64 * (golden(i) - 0.5))))
            .collect();
        canvas.open(&format!(
            "stroke=\"{}\" stroke-opacity=\"0.35\" stroke-width=\"1\" stroke-linecap=\"butt\"",
            class.colour
        ));
        for &(n, (_, y)) in &places {
            let (mean, std) = (map.x.mean[n], map.x.std(n));
            if std > 0.0 {
                canvas.line((axes.px(mean - std), y), (axes.px(mean + std), y), "");
            }
        }
        canvas.close();
        canvas.open(&format!("color=\"{}\" {}", class.colour, look.style()));
        for &(_, at) in &places {
            marker::draw(canvas, class.shape, at, look.radius);
        }
        canvas.close();
    }
}

/// The i-th of evenly spread numbers in 0 to 1, beginning with a half.
fn golden(i: usize) -> f64 {
    (0.5 + i as f64 * 0.618_033_988_749_894_9).fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_points_are_smaller_and_fainter_than_few() {
        let (few, many) = (Look::new(50), Look::new(5000));
        assert!(many.radius < 0.4 * few.radius && many.opacity < few.opacity && many.outline == 0.0);
    }
}
