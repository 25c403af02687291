//! A plotting area with its title, axes, ticks and grid, laid out so that no two texts touch.

use super::canvas::{Anchor, Canvas, Font, INK, QUIET, Rect};
use super::scale::Scale;
use super::text::{shorten, width};

/// The font of tick labels and legends.
pub const SMALL: Font = Font { size: 12.0, bold: false, colour: INK };
/// The font of axis titles.
pub const MEDIUM: Font = Font { size: 13.0, bold: false, colour: INK };
/// The font of a figure's title.
pub const TITLE: Font = Font { size: 14.0, bold: true, colour: INK };
/// The font of notes inside the plotting area.
pub const NOTE: Font = Font { size: 11.0, bold: false, colour: QUIET };

/// Space between a cell's edge and what is inside.
const EDGE: f64 = 10.0;
/// Length of a tick mark.
const MARK: f64 = 4.0;
/// Space between texts.
const GAP: f64 = 6.0;
/// Least space between two labels of the x axis.
const BETWEEN: f64 = 12.0;

/// What the ticks of an axis say.
pub enum Ticks {
    /// Round numbers.
    Numbers,
    /// These names at these values; on the x axis some are left out where they would touch.
    Names(Vec<(f64, String)>),
    /// Nothing.
    None,
}

/// One axis.
pub struct Axis<'a> {
    /// What it shows.
    pub scale: Scale,
    /// What it says below or beside the ticks.
    pub title: &'a str,
    /// Its ticks.
    pub ticks: Ticks,
}

/// Space kept free for a legend.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reserve {
    /// Above the plotting area.
    pub top: f64,
    /// To the right of it.
    pub right: f64,
}

/// A plotting area and its two scales.
pub struct Axes {
    /// The plotting area.
    pub area: Rect,
    cell: Rect,
    x: Scale,
    y: Scale,
    x_ticks: Vec<(f64, String)>,
    y_ticks: Vec<(f64, String)>,
    numbers: [bool; 2],
    x_title: String,
    y_title: String,
    y_line: bool,
    title: String,
    legend_top: f64,
}

impl Axes {
    /// Places everything inside `cell`.
    pub fn layout(cell: Rect, title: &str, x: Axis<'_>, y: Axis<'_>, reserve: Reserve) -> Axes {
        let line = |text: &str, font: Font| if text.is_empty() { 0.0 } else { font.size + GAP };
        let legend_top = cell.y + EDGE + line(title, TITLE);
        let top = legend_top + reserve.top + GAP;
        let x_labels = if matches!(x.ticks, Ticks::None) { 0.0 } else { MARK + SMALL.size + GAP };
        let bottom = cell.bottom() - EDGE - line(x.title, MEDIUM) - x_labels;
        let height = (bottom - top).max(1.0);
        let numbers = [&x.ticks, &y.ticks].map(|ticks| matches!(ticks, Ticks::Numbers));
        let y_ticks = match y.ticks {
            Ticks::Numbers => upright_ticks(y.scale, height),
            Ticks::Names(names) => {
                names.into_iter().map(|(at, name)| (at, shorten(&name, SMALL, 0.25 * cell.w))).collect()
            }
            Ticks::None => Vec::new(),
        };
        let widest = y_ticks.iter().map(|t| width(&t.1, SMALL)).fold(0.0, f64::max);
        let labels = if y_ticks.is_empty() { 0.0 } else { widest + MARK + GAP };
        let left = cell.x + EDGE + line(y.title, MEDIUM) + labels;
        let right = cell.right() - EDGE - reserve.right.max(GAP);
        let area = Rect { x: left, y: top, w: (right - left).max(1.0), h: height };
        let x_ticks = match x.ticks {
            Ticks::Numbers => number_ticks(x.scale, area.w),
            Ticks::Names(names) => thin_out(names, x.scale, area.w),
            Ticks::None => Vec::new(),
        };
        Axes {
            area,
            cell,
            x: x.scale,
            y: y.scale,
            x_ticks,
            y_line: !y_ticks.is_empty(),
            y_ticks,
            numbers,
            x_title: shorten(x.title, MEDIUM, cell.right() - EDGE - left),
            y_title: shorten(y.title, MEDIUM, cell.h - 2.0 * EDGE),
            title: shorten(title, TITLE, cell.right() - EDGE - left),
            legend_top,
        }
    }

    /// The same with a unit as long along x as along y: the plotting area becomes narrower or lower.
    pub fn with_one_scale(mut self) -> Axes {
        let unit = (self.area.w / self.x.span()).min(self.area.h / self.y.span());
        let (w, h) = ((unit * self.x.span()).max(1.0), (unit * self.y.span()).max(1.0));
        self.area = Rect { y: self.area.bottom() - h, w, h, ..self.area };
        if self.numbers[0] {
            self.x_ticks = number_ticks(self.x, w);
        }
        if self.numbers[1] {
            self.y_ticks = upright_ticks(self.y, h);
        }
        self
    }

    /// The width of a page that ends where the texts and, `right` of the plotting area, the legend do.
    pub fn page_width(&self, right: f64) -> f64 {
        let title = self.area.x + width(&self.title, TITLE);
        let below = self.area.x + self.area.w / 2.0 + width(&self.x_title, MEDIUM) / 2.0;
        let width = (self.area.right() + right.max(GAP)).max(title).max(below) + EDGE;
        width.ceil().min(self.cell.w)
    }

    /// The place of a value on the x axis.
    pub fn px(&self, value: f64) -> f64 {
        self.area.x + self.area.w * self.x.part(value)
    }

    /// The place of a value on the y axis.
    pub fn py(&self, value: f64) -> f64 {
        self.area.bottom() - self.area.h * self.y.part(value)
    }

    /// The place of a point.
    pub fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.px(x), self.py(y))
    }

    /// The upper edge of the space kept free above the plotting area.
    pub fn legend_top(&self) -> f64 {
        self.legend_top
    }

    /// Draws the grid: thin lines at the ticks.
    pub fn grid(&self, canvas: &mut Canvas, vertical: bool) {
        canvas.open("stroke=\"#000000\" stroke-opacity=\"0.1\" stroke-width=\"0.7\"");
        for (value, _) in &self.y_ticks {
            let y = self.py(*value);
            canvas.line((self.area.x, y), (self.area.right(), y), "");
        }
        if vertical {
            for (value, _) in &self.x_ticks {
                let x = self.px(*value);
                canvas.line((x, self.area.y), (x, self.area.bottom()), "");
            }
        }
        canvas.close();
    }

    /// Draws axis lines, ticks and all texts; after the data, so that nothing covers them.
    pub fn frame(&self, canvas: &mut Canvas) {
        let Rect { x: left, .. } = self.area;
        let bottom = self.area.bottom();
        canvas.open(&format!("stroke=\"{QUIET}\" stroke-width=\"1\" stroke-linecap=\"square\""));
        if self.y_line {
            canvas.line((left, self.area.y), (left, bottom), "");
        }
        canvas.line((left, bottom), (self.area.right(), bottom), "");
        for (value, _) in &self.x_ticks {
            canvas.line((self.px(*value), bottom), (self.px(*value), bottom + MARK), "");
        }
        for (value, _) in &self.y_ticks {
            canvas.line((left - MARK, self.py(*value)), (left, self.py(*value)), "");
        }
        canvas.close();
        for (value, label) in &self.x_ticks {
            let at = (self.px(*value), bottom + MARK + SMALL.size + 1.0);
            canvas.text(at, label, SMALL, Anchor::Middle, false);
        }
        for (value, label) in &self.y_ticks {
            let at = (left - MARK - 4.0, self.py(*value) + 0.36 * SMALL.size);
            canvas.text(at, label, SMALL, Anchor::End, false);
        }
        self.titles(canvas);
    }

    fn titles(&self, canvas: &mut Canvas) {
        let keep_inside = |centre: f64, half: f64, lo: f64, hi: f64| centre.min(hi - half).max(lo + half);
        if !self.x_title.is_empty() {
            let half = width(&self.x_title, MEDIUM) / 2.0;
            let centre = self.area.x + self.area.w / 2.0;
            let x = keep_inside(centre, half, self.cell.x + EDGE, self.cell.right() - EDGE);
            let y = self.cell.bottom() - EDGE - 1.0;
            canvas.text((x, y), &self.x_title, MEDIUM, Anchor::Middle, false);
        }
        if !self.y_title.is_empty() {
            let half = width(&self.y_title, MEDIUM) / 2.0;
            let centre = self.area.y + self.area.h / 2.0;
            let y = keep_inside(centre, half, self.cell.y + EDGE, self.cell.bottom() - EDGE);
            let x = self.cell.x + EDGE + 0.8 * MEDIUM.size;
            canvas.text((x, y), &self.y_title, MEDIUM, Anchor::Middle, true);
        }
        if !self.title.is_empty() {
            let at = (self.area.x, self.cell.y + EDGE + 0.85 * TITLE.size);
            canvas.text(at, &self.title, TITLE, Anchor::Start, false);
        }
    }
}

/// Round numbers one above another, at least three of them where there is room.
fn upright_ticks(scale: Scale, length: f64) -> Vec<(f64, String)> {
    let count = ((length / 50.0) as usize).clamp(2, 8);
    let most = (length / (1.6 * SMALL.size)) as usize;
    (count..=most.max(count))
        .map(|count| scale.ticks(count))
        .find(|ticks| ticks.len() >= 3)
        .unwrap_or_else(|| scale.ticks(count))
}

/// As many round numbers as fit side by side.
fn number_ticks(scale: Scale, length: f64) -> Vec<(f64, String)> {
    let mut count = ((length / 60.0) as usize).clamp(2, 10);
    loop {
        let ticks = scale.ticks(count);
        let widest = ticks.iter().map(|t| width(&t.1, SMALL)).fold(0.0, f64::max);
        let fits = ticks.len() as f64 * (widest + BETWEEN) <= length + BETWEEN;
        if fits || count == 1 {
            return ticks;
        }
        count -= 1;
    }
}

/// Every k-th name, with the smallest k at which none touches the next.
fn thin_out(names: Vec<(f64, String)>, scale: Scale, length: f64) -> Vec<(f64, String)> {
    let names: Vec<_> =
        names.into_iter().map(|(at, name)| (at, shorten(&name, SMALL, 0.3 * length))).collect();
    let touches = |a: &(f64, String), b: &(f64, String)| {
        let apart = length * (scale.part(b.0) - scale.part(a.0)).abs();
        apart < (width(&a.1, SMALL) + width(&b.1, SMALL)) / 2.0 + 0.5 * BETWEEN
    };
    for every in 1..=names.len().max(1) {
        let kept: Vec<_> = names.iter().step_by(every).cloned().collect();
        if !kept.windows(2).any(|pair| touches(&pair[0], &pair[1])) {
            return kept;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_the_x_axis_never_touch() {
        for hi in [1.0, 123456.0, 1e9 + 1.0] {
            for length in [60.0, 150.0, 500.0] {
                let scale = Scale::new(if hi > 1e9 { 1e9 } else { 0.0 }, hi);
                let ticks = number_ticks(scale, length);
                for pair in ticks.windows(2) {
                    let apart = length * (scale.part(pair[1].0) - scale.part(pair[0].0));
                    let half = (width(&pair[0].1, SMALL) + width(&pair[1].1, SMALL)) / 2.0;
                    assert!(apart > half || ticks.len() <= 3, "{hi} in {length}: {ticks:?}");
                }
            }
        }
        let names: Vec<_> = (1..=200).map(|k| (f64::from(k), k.to_string())).collect();
        let kept = thin_out(names, Scale::new(0.5, 200.5), 300.0);
        assert!((5..30).contains(&kept.len()), "{} labels", kept.len());
    }

    #[test]
    fn one_scale_keeps_the_limits_and_fits_the_longer_side() {
        let cell = Rect { x: 0.0, y: 0.0, w: 600.0, h: 400.0 };
        for (x, y) in [(1.0, 1.0), (100.0, 1.0), (1.0, 100.0)] {
            let axis = |hi| Axis { scale: Scale::new(0.0, hi), title: "t", ticks: Ticks::Numbers };
            let free = Axes::layout(cell, "t", axis(x), axis(y), Reserve::default());
            let (whole, axes) = (free.area, free.with_one_scale());
            let units = (axes.px(x) - axes.px(0.0), axes.py(0.0) - axes.py(y));
            assert!((units.0 / x - units.1 / y).abs() < 1e-9, "{units:?}");
            assert!(axes.area.w <= whole.w && axes.area.h <= whole.h);
            assert!(axes.area.w == whole.w || axes.area.h == whole.h);
            assert_eq!((axes.area.x, axes.area.bottom()), (whole.x, whole.bottom()));
            assert!(axes.page_width(50.0) <= cell.w && axes.page_width(0.0) > axes.area.right());
        }
    }

    #[test]
    fn a_huge_title_leaves_the_plotting_area_alone() {
        let cell = Rect { x: 0.0, y: 0.0, w: 300.0, h: 200.0 };
        let axis = |title| Axis { scale: Scale::new(0.0, 1.0), title, ticks: Ticks::Numbers };
        let long = "very long ".repeat(100);
        let axes = Axes::layout(cell, &long, axis(&long), axis(&long), Reserve::default());
        let short = Axes::layout(cell, "t", axis("x"), axis("y"), Reserve::default());
        assert_eq!(axes.area, short.area);
        assert!(width(&axes.title, TITLE) <= cell.w);
    }
}
