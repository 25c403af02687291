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
//! flow back the same way. A [`model`] is a choice of what enters the kernel and which evidence comes out.
//!
//! A latent space of 60 measurements of oil flow, with a kernel that has no closed form:
//!
//! ```
//! use latentgp::{data, kernel::Matern32, model::{Model, Training}};
//! use std::ops::ControlFlow;
//!
//! let y = data::oil_flow::simulate(60, 1).y;                                // 60 × 12
//! let training = Training { latent_dim: 2, inducing: 10, max_iterations: 30, ..Training::default() };
//! let fit = training.fit(&y, &Matern32::new(2), &|_| ControlFlow::Continue(()))?;
//! let posterior = fit.model.posterior()?;
//! let back = posterior.predict_uncertain(&fit.model.latent())?;            // reconstruction, with variances
//! let new = fit.model.project(&data::oil_flow::simulate(3, 2).y)?;         // latent positions of new rows
//! assert_eq!((back.mean.rows(), new.q.mean.rows()), (60, 3));
//! # Ok::<(), latentgp::Error>(())
//! ```

mod blocks;
mod call;
pub mod check;
pub mod data;
pub mod error;
pub mod evidence;
pub mod expectation;
#[cfg(feature = "files")]
pub mod file;
pub mod fit;
mod gram;
mod input_map;
pub mod kernel;
pub mod likelihood;
pub mod linalg;
pub mod mat;
pub mod mean;
pub mod metrics;
pub mod model;
pub mod nearest;
pub mod numpy;
pub mod optim;
pub mod param;
pub mod posterior;
mod scratch;
pub mod special;
pub mod vmath;

pub use error::{Error, Result};
pub use mat::Mat;
pub use smallvec;
