//! All parts on one page: HTML with every figure in it, and Markdown with the tables.

use super::part::Part;
use super::table::Grid;
use latentgp_figure::page::{document, escape, prose};
use std::fmt::Write;

/// What the pages say of the run.
pub struct Run {
    /// The finished parts.
    pub parts: Vec<Part>,
    /// What was left out, and why.
    pub skipped: Vec<String>,
    /// The command and the machine.
    pub made_by: String,
}

const TITLE: &str = "The papers, reproduced";
const LEAD: &str = "Every table and figure of the sources with our numbers beside theirs. Seconds, and the times of \
    psi-cost, are of this run; all other numbers are the same for the same seed on any number of threads.";

impl Run {
    /// One HTML page that needs nothing else.
    pub fn html(&self) -> String {
        let mut body =
            format!("<h1>{TITLE}</h1><p class=\"lead\">{LEAD}</p><p>{}</p>\n", prose(&self.made_by));
        body += "<nav><ul>";
        for part in &self.parts {
            let (name, title) = (part.name, escape(&part.title));
            let _ = write!(body, "<li><a href=\"#{name}\">{title}</a> ({:.0} s)</li>", part.seconds);
        }
        for line in &self.skipped {
            let _ = write!(body, "<li>{}</li>", prose(line));
        }
        body += "</ul></nav>\n";
        for part in &self.parts {
            let _ = writeln!(body, "<h2 id=\"{}\">{}</h2>", part.name, escape(&part.title));
            part.about.iter().for_each(|p| body += &format!("<p>{}</p>\n", prose(p)));
            part.grids().iter().for_each(|g| body += &table(g));
            for picture in &part.pictures {
                let (svg, caption) = (picture.figure.svg(), prose(&picture.caption));
                let _ = writeln!(body, "<figure>{svg}<figcaption>{caption}</figcaption></figure>");
            }
            part.remarks().iter().for_each(|p| body += &format!("<p>{}</p>\n", prose(p)));
        }
        document(TITLE, &body)
    }

    /// The same without figures, for the repository.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {TITLE}\n\n{LEAD}\n\n{}\n", self.made_by);
        for line in &self.skipped {
            let _ = write!(text, "\n- {line}\n");
        }
        for part in &self.parts {
            let _ = write!(
                text,
                "\n## {}\n\n`latentgp reproduce {}`, {:.0} s.",
                part.title, part.name, part.seconds
            );
            part.about.iter().for_each(|p| text += &format!(" {p}"));
            text += "\n";
            for Grid { title, heads, rows } in part.grids() {
                let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
                let rule = vec!["---".to_string(); heads.len()];
                let _ = write!(text, "\n**{title}**\n\n{}{}", line(&heads), line(&rule));
                rows.iter().for_each(|r| text += &line(r));
            }
            part.remarks().iter().for_each(|p| text += &format!("\n{p}\n"));
        }
        text
    }
}

fn table(grid: &Grid) -> String {
    let cell = |tag: &str, text: &String| format!("<{tag}>{}</{tag}>", escape(text));
    let line = |tag: &str, cells: &[String]| {
        format!("<tr>{}</tr>\n", cells.iter().map(|c| cell(tag, c)).collect::<String>())
    };
    let body: String = grid.rows.iter().map(|r| line("td", r)).collect();
    format!(
        "<h3>{}</h3>\n<div class=\"results\"><table>{}{body}</table></div>\n",
        escape(&grid.title),
        line("th", &grid.heads)
    )
}
