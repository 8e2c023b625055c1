//! Times without progress, and what they make of an interval. It holds data and finds none of them.

use crate::workload_words::Op;
use serde::{Deserialize, Serialize};

/// A time in which no I/O of a cell completed although some waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stall {
    /// When it began, from the start of the run over all cells.
    pub start_ns: u64,
    /// The same in the cell's own I/O time, one visit right after the other.
    pub cell_ns: u64,
    /// How long it lasted.
    pub lasts_ns: u64,
}

/// The stalls that the width of a rate's interval takes into account.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StallBasis {
    /// How many.
    pub count: u64,
    /// Their lengths together.
    pub stalled_ns: u64,
    /// The time in which they were seen, they included.
    pub elapsed_ns: u64,
    /// The least share of all time that stalls may take in the long run, at 95 %: see [`rdsk_stats::StallsSeen`].
    pub share_low: f64,
    /// The largest.
    pub share_high: f64,
    /// The direction of the cells that count together; `None` for both.
    pub op: Option<Op>,
}

/// Stalls of a cell, and what they make of its interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stalls {
    /// Those that the cell's own windows show; empty where only other cells met some.
    pub seen: Vec<Stall>,
    /// Those of all cells of the same targets, or of the same direction too, if the cell's may be of their kind; else its own.
    pub basis: StallBasis,
}
