//! What can go wrong between ranks.

use rdsk_model::{Problem, ProblemKind};

/// Why ranks do not understand each other.
#[derive(Debug, thiserror::Error)]
pub enum RanksError {
    /// A rank is gone.
    #[error("rank {0} is gone")]
    Gone(u32),
    /// A signal came while this rank waited for another one.
    #[error("interrupted while waiting for rank {0}")]
    Interrupted(u32),
    /// A message means nothing.
    #[error("rank {rank} said something else than expected: {why}")]
    Message {
        /// Who sent it.
        rank: u32,
        /// What is wrong with it.
        why: String,
    },
}

impl RanksError {
    /// The error as the Record and the command line show it.
    pub fn problem(&self) -> Problem {
        let (kind, code) = match self {
            Self::Gone(_) => (ProblemKind::Io, "rank-gone"),
            Self::Interrupted(_) => (ProblemKind::Interrupted, "interrupted"),
            Self::Message { .. } => (ProblemKind::Io, "rank-message"),
        };
        Problem::new(
            kind,
            code,
            self.to_string(),
            "every rank has stored its part: rdsk report DIR merges them",
        )
    }
}
