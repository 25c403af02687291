//! Legends: a column to the right of the plotting area, or rows above it; never over the data.

use super::axes::{Reserve, SMALL};
use super::canvas::{Anchor, Canvas, polyline};
use super::marker::{self, Shape};
use super::text::{shorten, width};

/// Width of a legend's sample.
const SAMPLE: f64 = 22.0;
/// Space between a sample and its label.
const GAP: f64 = 6.0;
/// Space between two entries in a row.
const BETWEEN: f64 = 18.0;
/// Height of a row.
const ROW: f64 = 19.0;

/// What stands beside a label.
#[derive(Debug, Clone, PartialEq)]
pub enum Sample {
    /// A marker, with these attributes.
    Marker(Shape, String),
    /// A cross, as for inducing inputs.
    Cross,
    /// A line, with these attributes.
    Line(String),
    /// A filled patch, with these attributes.
    Patch(String),
    /// A row of greys, from the first to the last.
    Greys(Vec<String>),
}

/// One line of a legend.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What stands beside the label.
    pub sample: Sample,
    /// The label.
    pub label: String,
}

impl Entry {
    /// An entry.
    pub fn new(sample: Sample, label: impl Into<String>) -> Entry {
        Entry { sample, label: label.into() }
    }
}

/// A legend in one column, its labels cut to `limit`.
pub struct Column {
    entries: Vec<Entry>,
}

impl Column {
    /// Cuts the labels; `limit` is the width that the whole column may take.
    pub fn new(mut entries: Vec<Entry>, limit: f64) -> Column {
        for entry in &mut entries {
            entry.label = shorten(&entry.label, SMALL, limit - SAMPLE - GAP - BETWEEN);
        }
        Column { entries }
    }

    /// The space that it needs.
    pub fn reserve(&self) -> Reserve {
        if self.entries.is_empty() {
            return Reserve::default();
        }
        let widest = self.entries.iter().map(|e| width(&e.label, SMALL)).fold(0.0, f64::max);
        Reserve { top: 0.0, right: BETWEEN + SAMPLE + GAP + widest }
    }

    /// Draws it, its upper left corner near `(x, y)`, within `height`.
    pub fn draw(&self, canvas: &mut Canvas, x: f64, y: f64, height: f64) {
        let row = ROW.min(height / self.entries.len().max(1) as f64);
        for (k, entry) in self.entries.iter().enumerate() {
            draw_entry(canvas, entry, x + BETWEEN - 4.0, y + row * (k as f64 + 0.5));
        }
    }
}

/// A legend in rows.
pub struct Rows {
    rows: Vec<Vec<Entry>>,
}

impl Rows {
    /// Fills rows of at most `limit`.
    pub fn new(entries: Vec<Entry>, limit: f64) -> Rows {
        let mut rows: Vec<Vec<Entry>> = Vec::new();
        let mut used = f64::INFINITY;
        for mut entry in entries {
            entry.label = shorten(&entry.label, SMALL, limit - SAMPLE - GAP);
            let takes = entry_width(&entry) + BETWEEN;
            if used + takes > limit + BETWEEN {
                rows.push(Vec::new());
                used = 0.0;
            }
            used += takes;
            if let Some(row) = rows.last_mut() {
                row.push(entry);
            }
        }
        Rows { rows }
    }

    /// The space that it needs.
    pub fn reserve(&self) -> Reserve {
        Reserve { top: ROW * self.rows.len() as f64, right: 0.0 }
    }

    /// Draws it, its upper left corner at `(x, y)`.
    pub fn draw(&self, canvas: &mut Canvas, x: f64, y: f64) {
        for (k, row) in self.rows.iter().enumerate() {
            let mut left = x;
            for entry in row {
                draw_entry(canvas, entry, left, y + ROW * (k as f64 + 0.5));
                left += entry_width(entry) + BETWEEN;
            }
        }
    }
}

fn entry_width(entry: &Entry) -> f64 {
    SAMPLE + GAP + width(&entry.label, SMALL)
}

fn draw_entry(canvas: &mut Canvas, entry: &Entry, x: f64, y: f64) {
    let middle = x + SAMPLE / 2.0;
    match &entry.sample {
        Sample::Marker(shape, attributes) => {
            canvas.open(attributes);
            marker::draw(canvas, *shape, (middle, y), 4.2);
            canvas.close();
        }
        Sample::Cross => marker::cross(canvas, (middle, y), 3.2),
        Sample::Line(attributes) => canvas.line((x, y), (x + SAMPLE, y), attributes),
        Sample::Patch(attributes) => {
            let (left, right, top, bottom) = (x, x + SAMPLE, y - 5.5, y + 5.5);
            let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
            canvas.path(&polyline(&corners, true), attributes);
        }
        Sample::Greys(greys) => {
            let step = SAMPLE / greys.len().max(1) as f64;
            for (k, grey) in greys.iter().enumerate() {
                let area = super::canvas::Rect { x: x + step * k as f64, y: y - 5.5, w: step, h: 11.0 };
                canvas.rect(area, &format!("fill=\"{grey}\" shape-rendering=\"crispEdges\""));
            }
        }
    }
    canvas.text((x + SAMPLE + GAP, y + 0.36 * SMALL.size), &entry.label, SMALL, Anchor::Start, false);
}
