//! What the user requested, parsed and checked, before any target is examined. Plain data.

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
    /// The experiments, in order; never empty.
    pub experiments: Vec<Experiment>,
    /// Names of targets as typed; never empty.
    pub targets: Vec<String>,
    /// What the user allowed.
    pub permission: Permission,
    /// Size of the test file; `None` makes it as large as the requested pass, else adapts it to the disk, up to 1 GiB.
    pub size_bytes: Option<u64>,
    /// A Record whose finished cells are taken over, and whose passes over chosen positions are continued.
    pub resume: Option<Box<Record>>,
    /// The options of the plan.
    pub options: PlanOptions,
    /// Where the kernel's files are; only tests use others than the real ones.
    pub roots: Roots,
    /// Raised by signals.
    pub stop: StopFlag,
}
