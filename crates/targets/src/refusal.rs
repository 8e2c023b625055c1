//! A refusal to write to a target: code, message and hint. Data only; `authorize` decides.

use rdsk_model::{Problem, ProblemKind};

/// A refusal, fit to print.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Stable name: `mounted`, `wrong-identity`.
    pub code: &'static str,
    /// What is refused and why.
    pub message: String,
    /// What the user can do.
    pub hint: String,
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::new(ProblemKind::Refused, refusal.code, refusal.message, refusal.hint)
    }
}
