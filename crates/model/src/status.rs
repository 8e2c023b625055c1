//! How a run ended, as a word. It holds data and draws nothing.

use crate::workload_words::words;
use serde::{Deserialize, Serialize};
use std::fmt;

words!(
    /// How a whole run ended.
    Status {
        /// Every cell was visited.
        Complete = "complete",
        /// A signal ended it; the cells so far are kept.
        Interrupted = "interrupted",
        /// An error ended it, or a cell failed.
        Failed = "failed",
    }
);
impl Default for Status {
    /// That of a run that nothing went wrong in so far.
    fn default() -> Self {
        Self::Complete
    }
}
