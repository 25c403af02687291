//! The few SVG elements that the figures need, written into a string.
//!
//! Clipping is done with nested `<svg>` elements, which need no ids.

use std::fmt::Write;

use super::Figure;

/// The font list: the embedded font first, then common ones that are no wider.
const FONT: &str = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";
/// The colour of titles and tick labels.
pub const INK: &str = "#262626";
/// The colour of axis lines and quiet notes.
pub const QUIET: &str = "#595959";

/// A rectangle in SVG units; y grows downwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rect {
    /// The left edge.
    pub x: f64,
    /// The upper edge.
    pub y: f64,
    /// The width.
    pub w: f64,
    /// The height.
    pub h: f64,
}

impl Rect {
    /// The right edge.
    pub fn right(&self) -> f64 {
        self.x + self.w
    }

    /// The lower edge.
    pub fn bottom(&self) -> f64 {
        self.y + self.h
    }
}

/// Where a text sits relative to its point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

/// How a text looks.
#[derive(Debug, Clone, Copy)]
pub struct Font {
    /// Its height in SVG units.
    pub size: f64,
    /// Its weight.
    pub bold: bool,
    /// Its colour.
    pub colour: &'static str,
}

/// A picture in the making.
pub struct Canvas {
    svg: String,
    width: f64,
    height: f64,
}

impl Canvas {
    /// A white page; `description` is what a screen reader says.
    pub fn new(width: f64, height: f64, description: &str) -> Self {
        let mut svg = String::new();
        let _ = write!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
             role=\"img\" aria-label=\"{}\" font-family=\"{FONT}\">\n<rect width=\"{w}\" height=\"{h}\" \
             fill=\"#ffffff\"/>\n",
            escape(description),
            w = num(width),
            h = num(height),
        );
        Canvas { svg, width, height }
    }

    /// The finished picture.
    pub fn finish(mut self) -> Figure {
        self.svg.push_str("</svg>\n");
        Figure { svg: self.svg, width: self.width, height: self.height }
    }

    /// Opens a group whose attributes hold for all that follows until [`Canvas::close`].
    pub fn open(&mut self, attributes: &str) {
        let _ = writeln!(self.svg, "<g {attributes}>");
    }

    /// Closes the group.
    pub fn close(&mut self) {
        self.svg.push_str("</g>\n");
    }

    /// Opens a region outside of which nothing is drawn, until [`Canvas::unclip`].
    pub fn clip(&mut self, area: Rect) {
        let (x, y, w, h) = (num(area.x), num(area.y), num(area.w), num(area.h));
        let _ = writeln!(
            self.svg,
            "<svg x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" viewBox=\"{x} {y} {w} {h}\" \
             overflow=\"hidden\">"
        );
    }

    /// Ends the region.
    pub fn unclip(&mut self) {
        self.svg.push_str("</svg>\n");
    }

    /// A line; its look comes from the attributes or from the group.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), attributes: &str) {
        let _ = writeln!(
            self.svg,
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {attributes}/>",
            num(from.0),
            num(from.1),
            num(to.0),
            num(to.1)
        );
    }

    /// A filled rectangle.
    pub fn rect(&mut self, area: Rect, attributes: &str) {
        let _ = writeln!(
            self.svg,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {attributes}/>",
            num(area.x),
            num(area.y),
            num(area.w),
            num(area.h)
        );
    }

    /// An ellipse with its axes along those of the page.
    pub fn ellipse(&mut self, centre: (f64, f64), radius: (f64, f64)) {
        let _ = writeln!(
            self.svg,
            "<ellipse cx=\"{}\" cy=\"{}\" rx=\"{}\" ry=\"{}\"/>",
            num(centre.0),
            num(centre.1),
            num(radius.0),
            num(radius.1)
        );
    }

    /// A path given in SVG's path language.
    pub fn path(&mut self, path: &str, attributes: &str) {
        let _ = writeln!(self.svg, "<path d=\"{path}\" {attributes}/>");
    }

    /// A text, horizontal or, with `upwards`, turned by a quarter.
    pub fn text(&mut self, at: (f64, f64), text: &str, font: Font, anchor: Anchor, upwards: bool) {
        let (x, y) = (num(at.0), num(at.1));
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if font.bold { " font-weight=\"bold\"" } else { "" };
        let turn = if upwards { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
        let _ = writeln!(
            self.svg,
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" text-anchor=\"{anchor}\" fill=\"{}\"{weight}{turn}>{}</text>",
            num(font.size),
            font.colour,
            escape(text)
        );
    }
}

/// The path through `points`, in SVG's path language; closed if `closed`.
pub fn polyline(points: &[(f64, f64)], closed: bool) -> String {
    let mut path = String::new();
    for (k, &(x, y)) in points.iter().enumerate() {
        let _ = write!(path, "{}{} {}", if k == 0 { "M" } else { "L" }, num(x), num(y));
    }
    if closed {
        path.push('Z');
    }
    path
}

/// A number with two decimals at most; what lies far outside the page is drawn in at its edge.
pub fn num(value: f64) -> String {
    const FAR: f64 = 1e5;
    let text = format!("{:.2}", value.clamp(-FAR, FAR));
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// The text with XML's own characters escaped and those that XML forbids left out.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\r' | '\t' => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_always_written_plainly() {
        assert_eq!(num(1.0), "1");
        assert_eq!(num(-0.001), "0");
        assert_eq!(num(2.346), "2.35");
        assert_eq!(num(1e300), "100000");
    }

    #[test]
    fn xml_characters_are_escaped_and_forbidden_ones_dropped() {
        assert_eq!(escape("a<b>&\"c\"'\n\u{0}\u{1b}"), "a&lt;b&gt;&amp;&quot;c&quot;&#39; ");
    }
}
