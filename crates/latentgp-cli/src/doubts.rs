//! What may be no data: a note before the fit, or with `--strict` an error.

use crate::args::DoubtArgs;
use crate::failure::{Failure, Outcome};
use crate::out;
use latentgp::Mat;
use latentgp::data::doubts::{Doubt, Kind, Use, doubts};

/// What to do if a doubt is true, by the options of a command that has `--exclude`.
fn cure(doubt: &Doubt, used: Use) -> String {
    let column = &doubt.column;
    match (&doubt.kind, used) {
        (Kind::Identifier, _) => {
            format!("leave it out with `--exclude {column}`, or name it with `--id {column}`")
        }
        (Kind::Dates, Use::Rows { .. } | Use::Inputs) => {
            format!("leave it out with `--exclude {column}`, or turn it into days since the first")
        }
        (Kind::Classes(_), _) => {
            format!("name it with `--labels {column}`, or leave it out with `--exclude {column}`")
        }
        _ => doubt.cure().into(),
    }
}

/// Tells what there is to doubt in columns of `source`; with `--strict` the first doubt is an error.
pub fn tell<S: AsRef<str>>(
    how: &DoubtArgs,
    quiet: bool,
    source: &str,
    (names, values, used): (&[S], &Mat, Use),
) -> Outcome {
    for doubt in doubts(names, values, used) {
        let text = format!("{source}, {doubt}; {}", cure(&doubt, used));
        match how.strict {
            true => return Err(Failure::data(format!("{text} (--strict)"))),
            false => out::note(quiet, format!("note: {text}")),
        }
    }
    Ok(())
}
