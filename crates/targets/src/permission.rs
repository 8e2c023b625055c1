//! What a plan does to a target, what the user has allowed, and the refusal. Data only; `authorize` decides.

use crate::device_hold::DeviceHold;
use rdsk_model::{Problem, ProblemKind};
use std::sync::Arc;

/// What a plan does to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads only.
    Read,
    /// Writes, and may read.
    Write,
}

/// Whether a regular file may be overwritten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overwrite {
    /// `--overwrite` was given.
    Allowed,
    /// It was not.
    #[default]
    Refused,
}

/// Who else may have the target open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// No process.
    #[default]
    Alone,
    /// Other ranks of the same run may have a regular file open, each of which writes to a part of its own. Every rank has found the file
    /// unused before the first of them opened it.
    Ranks,
    /// The same of this block device, which this process and the others of its host hold together.
    Held(Arc<DeviceHold>),
}

/// What the user allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// The value of `--destroy`: the identity of the one device that may be overwritten.
    pub destroy: Option<String>,
    /// Whether a regular file may be overwritten.
    pub overwrite: Overwrite,
    /// Who else may have it open.
    pub sharing: Sharing,
}

/// A refusal, safe to print.
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
