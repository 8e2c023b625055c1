//! A run of several processes, its ranks, on one host or many: what each says of its clock and its part, and what measuring code asks of
//! the others. A part's Record has one rank, the result of all has each. Raw readings; what follows from them is derived when drawn.

use crate::problem::Problem;
use crate::status::Status;
use serde::{Deserialize, Serialize};

/// How far the clock of a rank is ahead of that of rank 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockOffset {
    /// The distance of the midpoints of the shortest round trips; negative where the clock is behind.
    pub offset_ns: i64,
    /// The true offset is no farther from that: half of these round trips, summed over the ranks between.
    pub uncertainty_ns: u64,
    /// When, on the clock of the rank.
    pub at_ns: u64,
}

/// What one rank did in one turn of a test. Times are those of its own clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankVisit {
    /// Id of the cell.
    pub cell: String,
    /// Its clock against that of rank 0, right before.
    pub clock: ClockOffset,
    /// When all ranks were to begin.
    pub agreed_ns: u64,
    /// When its first stream began.
    pub start_ns: u64,
    /// When its last I/O had returned.
    pub end_ns: u64,
    /// Bytes completed.
    pub bytes: u64,
    /// I/Os completed.
    pub ops: u64,
    /// Width of a part of the time; the last one ends with the turn.
    pub part_ns: u64,
    /// Bytes completed in each, at most 32.
    pub parts: Vec<u64>,
}

/// One rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankRun {
    /// Its number, from 0.
    pub rank: u32,
    /// What the parts of one run have in common.
    pub run: String,
    /// How many there are.
    pub ranks: u32,
    /// Its host (uname's node name); untrusted text.
    pub host: String,
    /// The boot of the kernel that it runs on: ranks of the same one share devices and their counters. Empty where it is not known.
    pub boot: String,
    /// Names of its targets and, where known, of the device below each; untrusted text.
    pub targets: Vec<String>,
    /// How its part ended; `None` where it ended without a word.
    pub status: Option<Status>,
    /// Why it failed.
    pub error: Option<Problem>,
    /// Its clock before the first turn; `None` where it was not measured.
    pub clock_before: Option<ClockOffset>,
    /// Its clock after the last one.
    pub clock_after: Option<ClockOffset>,
    /// Messages that it had sent to other ranks when its part ended, before the parts were collected; 0 for one that is not over.
    pub sent_messages: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Its turns, in their order.
    pub visits: Vec<RankVisit>,
}

/// The hosts that issue a workload at once while those behind them wait; of ranks of a single host, ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AtOnce {
    /// This number of hosts, each with all of its ranks.
    Hosts(u32),
    /// This number of ranks, all on one host.
    Ranks(u32),
}

impl AtOnce {
    /// How many.
    pub const fn count(self) -> u32 {
        match self {
            Self::Hosts(count) | Self::Ranks(count) => count,
        }
    }

    /// As many others of the same kind.
    #[must_use]
    pub const fn with_count(self, count: u32) -> Self {
        match self {
            Self::Hosts(_) => Self::Hosts(count),
            Self::Ranks(_) => Self::Ranks(count),
        }
    }

    /// `host`, `rank`.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Hosts(_) => "host",
            Self::Ranks(_) => "rank",
        }
    }
}

/// What all ranks do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedTurn {
    /// Position of the cell in the plan.
    pub position: usize,
    /// The round.
    pub round: u32,
    /// Time for its I/O.
    pub run_ns: u64,
    /// Time after which it ends, whatever it has completed.
    pub most_ns: u64,
}

/// The other ranks, as measuring code sees them. Every rank makes the same calls in the same order; each waits for all.
pub trait Peers {
    /// Before the first turn: compares the plans, given by the ids of their tests, and measures the clocks. A rank that has none says why.
    ///
    /// # Errors
    /// When the plans differ, or a rank is gone.
    fn begin(&mut self, plan: Result<&[&str], &Problem>) -> Result<(), Problem>;
    /// The next turn, that of rank 0; `None` ends the run on all. `is_well` is whether this rank can go on: if one cannot, none does.
    fn turn(&mut self, mine: Option<SharedTurn>, is_well: bool) -> Option<SharedTurn>;
    /// Waits until all ranks have prepared their turn, so that none counts what another one does before; false where one could not.
    fn prepared(&mut self, is_ready: bool) -> bool;
    /// When all begin, on the own clock; `None` where some rank cannot (`is_ready` is false there).
    fn start(&mut self, is_ready: bool) -> Option<u64>;
    /// After the I/O of a turn, before anything is counted: returns when all ranks are done with it. `None` where it failed.
    fn done(&mut self, visit: Option<RankVisit>);
    /// After the last turn: measures the clocks again.
    fn end(&mut self);
}
