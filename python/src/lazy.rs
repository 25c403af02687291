//! What a model predicts from, worked out when it is first asked for.

use latentgp::Result;
use latentgp::posterior::Posterior;
use std::sync::OnceLock;

/// A posterior, once somebody has asked for it.
#[derive(Default)]
pub struct Lazy(OnceLock<Posterior>);

impl Lazy {
    /// The posterior that is there, or else the one that is made.
    ///
    /// Nobody waits for another one's: those who ask at the same time make the same posterior, and the first of them
    /// is kept.
    pub fn get_or(&self, make: impl FnOnce() -> Result<Posterior>) -> Result<&Posterior> {
        match self.0.get() {
            Some(made) => Ok(made),
            None => {
                let made = make()?;
                Ok(self.0.get_or_init(|| made))
            }
        }
    }
}
