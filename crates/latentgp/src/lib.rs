//! Gaussian processes with uncertain inputs, for any kernel.
//!
//! ```text
//!  CSV ──data──▶ X, Y ──kernel, expectation──▶ Kzz, Ψ0, Ψ1, Ψ2 ──evidence──▶ F = log p(Y) or its bound
//!                                                                               │
//!  optimiser ◀──transforms── θ̄, Z̄, μ̄, S̄ ◀──adjoints of the same functions── K̄zz, Ψ̄0, Ψ̄1, Ψ̄2
//!      │
//!  fitted model ──posterior──▶ mean, variance ──▶ CSV, plot
//! ```
//!
//! A [`kernel`] turns points into matrices; an [`expectation`] averages it over Gaussian inputs, in closed
//! form or by weighted nodes such as the 2Q sigma points of the unscented transformation, which works for
//! any kernel; an [`evidence`] turns the matrices into a number. Each has its adjoint, so that gradients
//! flow back the same way. A [`model`] is a choice of what enters the kernel and which evidence comes out, a [`recipe`] a
//! choice of a model and its options, and [`fit`] the loop that trains any of them.
//!
//! From a CSV file to predictions: a recipe says what is fitted, and `latentgp plot wave.lgp` draws the file.
//!
//! ```
//! # #[cfg(feature = "files")] {
//! use latentgp::data::table::Table;
//! use latentgp::file::{self, Report, TrainedRegression};
//! use latentgp::recipe::{Data, Learnt, Recipe};
//! use latentgp::{Mat, fit};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let (csv, lgp) = (folder.path().join("wave.csv"), folder.path().join("wave.lgp"));
//! # let rows: String = (0..50).map(|i| format!("{},{}\n", 0.1 * i as f64, (0.1 * i as f64).sin())).collect();
//! # std::fs::write(&csv, format!("x,y\n{rows}")).unwrap();
//! let table = Table::read(csv.to_str().unwrap())?;                            // CSV
//! let (x, y) = (table.numeric(&["x"])?, table.numeric(&["y"])?);
//! let recipe = Recipe { kernel: Some("matern52".into()), ..Recipe::of("gp") };
//! let job = recipe.job(Data::Pairs { x, x_std: None, y, classes: 0 }, None)?;
//! let fitted = job.fit(Vec::new(), &fit::go_on)?;                             // fit
//! let report = Report::new(&fitted, &recipe, 0.0);
//! let Learnt::Regression(model) = fitted.model else { unreachable!() };
//! let next = model.predict(&Mat::column(&[5.2]), None)?;                      // predict, with variances
//! assert_eq!(next.rows(), 1);
//! let trained = TrainedRegression {
//!     model,
//!     inputs: vec!["x".into()],
//!     input_std: Vec::new(),
//!     targets: vec!["y".into()],
//!     classes: Vec::new(),
//!     report,
//!     unfinished: None,
//! };
//! file::save(&lgp, &trained)?;                                                // then: latentgp plot wave.lgp
//! # }
//! # Ok::<(), latentgp::Error>(())
//! ```
//!
//! A latent space of 60 measurements of oil flow, with a kernel that has no closed form:
//!
//! ```
//! use latentgp::{data, fit, kernel::Matern32, model::{Model, Training}};
//!
//! let y = data::oil_flow::simulate(60, 1).y;                                // 60 × 12
//! let training = Training { latent_dim: 2, inducing: 10, max_iterations: 30, ..Training::default() };
//! let fit = training.fit(&y, &Matern32::new(2), &fit::go_on)?;
//! let posterior = fit.model.posterior()?;
//! let back = posterior.predict_uncertain(&fit.model.latent())?;            // reconstruction, with variances
//! let new = fit.model.project(&data::oil_flow::simulate(3, 2).y)?;         // latent positions of new rows
//! assert_eq!((back.mean.rows(), new.q.mean.rows()), (60, 3));
//! # Ok::<(), latentgp::Error>(())
//! ```

pub mod budget;
mod call;
pub mod check;
pub mod data;
pub mod error;
pub mod evidence;
pub mod expectation;
mod fast;
pub mod file;
pub mod fit;
mod gram;
#[cfg(doctest)]
mod guide;
mod input_map;
pub mod kernel;
pub mod likelihood;
pub mod linalg;
pub mod mat;
pub mod mean;
pub mod metrics;
pub mod model;
mod nearest;
pub mod numpy;
pub mod optim;
pub mod param;
pub mod posterior;
pub mod recipe;
mod special;

pub use error::{Error, Result};
pub use mat::Mat;

use fast::{blocks, scratch};
