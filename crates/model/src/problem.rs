//! What went wrong, in one shape for every room: a stable code, a message, a hint. It prints nothing.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The class of a problem; the command line maps it to an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// The command line does not make sense (exit 2).
    Usage,
    /// rdsk refuses, or the environment lacks something (exit 3).
    Refused,
    /// I/O failed (exit 4).
    Io,
    /// A signal ended the run (exit 130).
    Interrupted,
}

/// One problem. `code` is stable and kebab-case, `message` says what and where in lower case, `hint` what to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{message}")]
pub struct Problem {
    /// The class.
    pub kind: ProblemKind,
    /// Stable name: `mounted`, `no-space`, `eio`.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = crate::CODE_PATTERN)))]
    pub code: String,
    /// What and where, causes included, in one line.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub message: String,
    /// What the user can do about it; `None` when nothing helps.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem with a hint.
    pub fn new(kind: ProblemKind, code: &str, message: impl fmt::Display, hint: impl fmt::Display) -> Self {
        Self { kind, code: code.into(), message: message.to_string(), hint: Some(hint.to_string()) }
    }

    /// A problem that no hint helps with.
    pub fn plain(kind: ProblemKind, code: &str, message: impl fmt::Display) -> Self {
        Self { kind, code: code.into(), message: message.to_string(), hint: None }
    }
}
