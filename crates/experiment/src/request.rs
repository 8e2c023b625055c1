//! What the user asked for, parsed and checked, before any target was looked at. Plain data; it looks at nothing.

use crate::PlanOptions;
use rdsk_model::{Experiment, Record, StopFlag};
use rdsk_targets::{Permission, Roots};

/// One invocation of a measuring command.
#[derive(Clone, Debug)]
pub struct Request {
    /// The command line as typed, for the Record.
    pub command: Vec<String>,
    /// The user's name for the run.
    pub label: Option<String>,
    /// The questions, in order; never empty.
    pub experiments: Vec<Experiment>,
    /// Names of targets as typed; never empty.
    pub targets: Vec<String>,
    /// What the user allowed.
    pub permission: Permission,
    /// Size of the test file; `None` adapts it to the disk, up to 1 GiB.
    pub size_bytes: Option<u64>,
    /// A Record whose passes over chosen places are continued.
    pub resume: Option<Box<Record>>,
    /// What the plan is to look like.
    pub options: PlanOptions,
    /// Where the kernel's files are; the real ones but in tests.
    pub roots: Roots,
    /// Raised by signals.
    pub stop: StopFlag,
}
