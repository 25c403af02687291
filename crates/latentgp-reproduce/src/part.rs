//! What an experiment yields, and the files it becomes.
//!
//! ```text
//! NAME.json    NAME.csv, NAME-SLUG.csv    NAME-SLUG.svg, NAME-SLUG.png
//! ```

use super::table::{Curves, Grid, Table};
use latentgp_figure::Figure;
use latentgp_terminal::failure::{Failure, Outcome};
use latentgp_terminal::out;
use serde_json::{Value, json};
use std::path::Path;

/// A figure with its place in file names and what is said below it.
pub struct Picture {
    /// What follows the experiment's name.
    pub slug: String,
    /// What is to be seen.
    pub caption: String,
    /// The figure.
    pub figure: Figure,
}

/// An experiment's results.
#[derive(Default)]
pub struct Part {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its heading.
    pub title: String,
    /// How it was done: data, protocol, settings.
    pub about: Vec<String>,
    /// Ours beside theirs.
    pub tables: Vec<Table>,
    /// Curves.
    pub curves: Vec<Curves>,
    /// Figures.
    pub pictures: Vec<Picture>,
    /// Where ours differ and why, and what was skipped.
    pub notes: Vec<String>,
    /// How long it took.
    pub seconds: f64,
    /// Whether somebody asked to stop before all rows were done.
    pub interrupted: bool,
}

impl Part {
    /// Writes the files into a folder.
    pub fn write(&self, folder: &Path) -> Outcome {
        let path = |slug: &str, ending: &str| match slug {
            "" => folder.join(format!("{}.{ending}", self.name)),
            _ => folder.join(format!("{}-{slug}.{ending}", self.name)),
        };
        let text = serde_json::to_string_pretty(&self.json()).map_err(Failure::work)?;
        out::file(&path("", "json"), (text + "\n").as_bytes())?;
        for table in &self.tables {
            out::file(&path(table.slug, "csv"), table.csv().as_bytes())?;
        }
        for curves in &self.curves {
            out::file(&path(curves.slug, "csv"), curves.csv().as_bytes())?;
        }
        for picture in &self.pictures {
            out::file(&path(&picture.slug, "svg"), picture.figure.svg().as_bytes())?;
            out::file(&path(&picture.slug, "png"), &picture.figure.png().map_err(Failure::work)?)?;
        }
        Ok(())
    }

    /// Everything but the figures.
    pub fn json(&self) -> Value {
        json!({
            "name": self.name,
            "title": self.title,
            "about": self.about,
            "tables": self.tables.iter().map(Table::json).collect::<Vec<_>>(),
            "curves": self.curves.iter().map(Curves::json).collect::<Vec<_>>(),
            "notes": self.remarks(),
            "seconds": self.seconds,
        })
    }

    /// The verdicts of the tables, then the notes.
    pub fn remarks(&self) -> Vec<String> {
        self.tables.iter().filter_map(Table::verdict).chain(self.notes.iter().cloned()).collect()
    }

    /// All tables and curves as text.
    pub fn grids(&self) -> Vec<Grid> {
        self.tables.iter().map(Table::grid).chain(self.curves.iter().map(Curves::grid)).collect()
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("{} ({:.1} s)\n", self.title, self.seconds);
        for about in &self.about {
            text += &format!("\n{about}\n");
        }
        for grid in self.grids().iter().filter(|grid| !grid.rows.is_empty()) {
            text += &format!("\n{}\n{}", grid.title, aligned(grid));
        }
        for remark in self.remarks() {
            text += &format!("\n{remark}\n");
        }
        text
    }
}

/// Columns side by side, as wide as they need.
fn aligned(Grid { heads, rows, .. }: &Grid) -> String {
    let width = |j: usize| rows.iter().chain([heads]).map(|r| r[j].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let line = |cells: &Vec<String>| {
        let padded = cells.iter().zip(&widths).map(|(c, w)| format!("{c:<w$}"));
        format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    std::iter::once(heads).chain(rows).map(line).collect()
}
