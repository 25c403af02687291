//! A model in the browser: its page, what the page asks for, and the server on the loopback that answers.
//!
//! ```text
//! TrainedSpace, TrainedRegression, TrainedSeries ──Explorer──▶ answers as JSON and arrays
//!                                                    ├──server::serve──▶ http://127.0.0.1:PORT/TOKEN/
//!                                                    └──static_page──▶ one HTML file that decodes by itself
//! ```
//!
//! The page is plain HTML, CSS and JavaScript in `web/`, embedded as it is. It asks for `api/NAME` with JSON and gets JSON,
//! or rows of 32-bit floats.

mod answer;
mod assets;
mod kernel_json;
mod metric;
mod regression;
mod series;
#[cfg(feature = "server")]
pub mod server;
mod space;
mod static_page;

pub use answer::{Refused, Reply};

use latentgp::data::table::Table;
use latentgp::file::{TrainedRegression, TrainedSeries, TrainedSpace};
use latentgp::{Error, Result};
use regression::Regression;
use series::Series;
use space::Space;

/// What a page may show beside the model.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Its title.
    pub title: String,
    /// More columns of the training rows, a row each.
    pub data: Option<Table>,
    /// Rows and columns of the images that the rows of a latent space are.
    pub images: Option<(usize, usize)>,
}

/// A model with what its page needs.
pub struct Explorer {
    title: String,
    subject: Subject,
}

enum Subject {
    Space(Box<Space>),
    Regression(Box<Regression>),
    Series(Box<Series>),
}

impl Explorer {
    /// Of a latent space. Errs where the table has not a row for each training row, and where images have not a pixel for
    /// each column.
    pub fn space(of: TrainedSpace, options: Options) -> Result<Self> {
        let subject = Subject::Space(Box::new(Space::new(of, options.data.as_ref(), options.images)?));
        Ok(Explorer { title: options.title, subject })
    }

    /// Of a regression.
    pub fn regression(of: TrainedRegression, options: Options) -> Result<Self> {
        options.only_of_spaces()?;
        Ok(Explorer { title: options.title, subject: Subject::Regression(Box::new(Regression::new(of)?)) })
    }

    /// Of a model of series.
    pub fn series(of: TrainedSeries, options: Options) -> Result<Self> {
        options.only_of_spaces()?;
        Ok(Explorer { title: options.title, subject: Subject::Series(Box::new(Series::new(of))) })
    }

    /// Answers what the page asks: a name, and what comes with it as JSON.
    pub fn answer(&self, name: &str, body: &[u8]) -> std::result::Result<Reply, Refused> {
        match (name, &self.subject) {
            ("model", _) => Ok(Reply::json(&self.about())),
            (_, Subject::Space(space)) => space.answer(name, body),
            (_, Subject::Regression(regression)) => regression.answer(name, body),
            (_, Subject::Series(series)) => series.answer(name, body),
        }
    }

    /// The page as one file that needs nothing else.
    pub fn static_page(&self) -> Result<String> {
        match &self.subject {
            Subject::Space(space) => static_page::page(&self.title, &self.about(), &space.arrays()?),
            _ => Err(Error::invalid(
                "a page as one file",
                "a latent space",
                "a regression or a model of series; leave --static out, or write a report",
            )),
        }
    }

    fn about(&self) -> serde_json::Value {
        let mut all = match &self.subject {
            Subject::Space(space) => space.about(),
            Subject::Regression(regression) => regression.about(),
            Subject::Series(series) => series.about(),
        };
        all["title"] = self.title.as_str().into();
        all
    }
}

impl Options {
    fn only_of_spaces(&self) -> Result<()> {
        let given = match (&self.data, self.images) {
            (Some(_), _) => "--data",
            (_, Some(_)) => "--images",
            _ => return Ok(()),
        };
        Err(Error::invalid(given, "a latent space", "another model; leave it out"))
    }
}
