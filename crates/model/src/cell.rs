//! One cell of a Record: what was requested, what was measured, what was counted beside it, and what the figure means.

use crate::evidence::Evidence;
use crate::plan::Experiment;
use crate::result::CellResult;
use crate::workload::Workload;
use crate::workload_words::words;
use serde::{Deserialize, Serialize};
use std::fmt;

words!(
    /// What a figure really measured.
    VerdictCode {
        /// The device moved the bytes.
        Device = "device",
        /// Memory did, wholly or in part.
        PageCache = "page-cache",
        /// None did: the blocks were never written.
        Hole = "hole",
        /// The processor is the limit.
        CpuBound = "cpu-bound",
        /// The time went into data generation.
        SourceBound = "source-bound",
        /// A limit of the control group is the limit.
        Throttled = "throttled",
        /// Others used the device at the same time.
        Disturbed = "disturbed",
        /// No counters reach the device.
        Unverified = "unverified",
        /// The cell ended before that was known.
        Incomplete = "incomplete",
    }
);

/// What the figure measured, reconciled with the block layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// The code.
    pub code: VerdictCode,
    /// Bytes that the device moved for each byte completed; `None` where no counters reach it.
    pub device_share: Option<f64>,
    /// One sentence with the counters it rests on.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub text: String,
}

/// One cell of a Record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellRecord {
    /// Unique in the Record.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub id: String,
    /// The question.
    pub experiment: Experiment,
    /// What was asked.
    pub workload: Workload,
    /// What was measured.
    pub result: CellResult,
    /// What was counted beside it.
    pub evidence: Evidence,
    /// What it means; `None` for a cell that never ran.
    pub verdict: Option<Verdict>,
}

impl CellRecord {
    /// The id without its target: what the same cell of two targets has in common.
    pub fn name(&self) -> &str {
        self.id.split_once('@').map_or(&self.id, |(name, _)| name)
    }

    /// How many runs before this one it was measured, or its first pass made: see [`crate::Visit::sitting`].
    pub fn sitting(&self) -> u32 {
        self.result.visits.first().map_or(0, |visit| visit.sitting)
    }

    /// Whether no run went on with what another one had begun of it.
    pub fn is_of_one_sitting(&self) -> bool {
        self.result.visits.iter().all(|visit| visit.sitting == self.sitting())
    }
}
