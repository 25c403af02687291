//! A quantity on a grid, in greys, behind the points of a latent map.

use std::fmt::Write;

use latentgp::Result;

use super::axes::Axes;
use super::canvas::{Canvas, num};
use super::check;

/// Greys of the background.
const LEVELS: usize = 48;
/// The darkest grey of the background, 0 to 255.
const DARKEST: f64 = 184.0;
/// Columns and rows that the background is interpolated to.
const FINE: usize = 96;

/// A quantity on a regular grid, drawn in greys behind the points.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Background {
    /// From where to where the grid reaches along x; its outermost cells are centred there.
    pub x: (f64, f64),
    /// The same along y.
    pub y: (f64, f64),
    /// How many columns it has.
    pub columns: usize,
    /// The values, row by row, the row of the smallest y first.
    pub values: Vec<f64>,
    /// What the legend calls it; "variance" if empty.
    pub label: String,
}

impl Background {
    /// The same on a finer grid, by bilinear interpolation: no steps to be seen.
    fn refined(&self) -> Background {
        let (columns, rows) = (self.columns, self.values.len() / self.columns);
        let finer = |count: usize| if (2..FINE).contains(&count) { FINE } else { count };
        let (wide, high) = (finer(columns), finer(rows));
        let place = |k: usize, fine: usize, count: usize| {
            let at = if fine > 1 { k as f64 * (count - 1) as f64 / (fine - 1) as f64 } else { 0.0 };
            let from = (at as usize).min(count.saturating_sub(2));
            (from, (from + 1).min(count - 1), at - from as f64)
        };
        let mut values = Vec::with_capacity(wide * high);
        for row in 0..high {
            let (r0, r1, v) = place(row, high, rows);
            for column in 0..wide {
                let (c0, c1, u) = place(column, wide, columns);
                let mix =
                    |r: usize| (1.0 - u) * self.values[r * columns + c0] + u * self.values[r * columns + c1];
                values.push((1.0 - v) * mix(r0) + v * mix(r1));
            }
        }
        Background { columns: wide, values, ..self.clone() }
    }

    pub(super) fn check(&self) -> Result<()> {
        let what = "latent map, background";
        check::some(what, self.values.len().min(self.columns))?;
        check::length(what, self.values.len().div_ceil(self.columns) * self.columns, self.values.len())?;
        check::finite(what, &self.values)?;
        check::finite(what, &[self.x.0, self.x.1, self.y.0, self.y.1])
    }
}

/// A grey: white for 0, the darkest for 1.
pub fn grey(part: f64) -> String {
    let value = (255.0 - (255.0 - DARKEST) * part.clamp(0.0, 1.0)).round() as u8;
    format!("#{value:02x}{value:02x}{value:02x}")
}

/// Draws the background. Cells of equal grey in a row are joined and all of one grey are one path: the file stays small.
pub fn draw(canvas: &mut Canvas, axes: &Axes, background: &Background) {
    let background = &background.refined();
    let (columns, rows) = (background.columns, background.values.len() / background.columns);
    let lo = background.values.iter().copied().fold(f64::INFINITY, f64::min);
    let hi = background.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let level = |v: f64| {
        let part = if hi > lo { (v - lo) / (hi - lo) } else { 0.0 };
        (part * (LEVELS - 1) as f64).round() as usize
    };
    let edge = |(from, to): (f64, f64), count: usize, k: usize| {
        let step = if count > 1 { (to - from) / (count - 1) as f64 } else { to - from };
        from + step * (k as f64 - 0.5)
    };
    let mut paths = vec![String::new(); LEVELS];
    for row in 0..rows {
        let cells = &background.values[row * columns..(row + 1) * columns];
        let (y0, y1) = (edge(background.y, rows, row), edge(background.y, rows, row + 1));
        let mut start = 0;
        for run in cells.chunk_by(|a, b| level(*a) == level(*b)) {
            let (x0, x1) =
                (edge(background.x, columns, start), edge(background.x, columns, start + run.len()));
            start += run.len();
            let (left, right) = (num(axes.px(x0)), num(axes.px(x1)));
            let _ = write!(
                paths[level(run[0])],
                "M{left} {top}H{right}V{bottom}H{left}Z",
                top = num(axes.py(y1)),
                bottom = num(axes.py(y0))
            );
        }
    }
    canvas.clip(axes.area);
    for (k, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        let fill = grey(k as f64 / (LEVELS - 1) as f64);
        canvas.path(path, &format!("fill=\"{fill}\" shape-rendering=\"crispEdges\""));
    }
    canvas.unclip();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finer_background_keeps_its_values() {
        let coarse = Background { columns: 2, values: vec![0.0, 1.0, 2.0, 3.0], ..Background::default() };
        let fine = coarse.refined();
        assert_eq!(fine.values.len(), FINE * FINE);
        let corners = [0, FINE - 1, FINE * (FINE - 1), FINE * FINE - 1].map(|k| fine.values[k]);
        assert_eq!(corners, [0.0, 1.0, 2.0, 3.0]);
        let sum: f64 = fine.values.iter().sum();
        assert!((sum / (FINE * FINE) as f64 - 1.5).abs() < 1e-9);
        let line = Background { columns: 1, values: vec![1.0, 2.0, 3.0], ..Background::default() };
        assert_eq!(line.refined().values.len(), FINE);
    }
}
