//! The options that shape a plan, with their defaults and ranges. Plain data.

use rdsk_model::{EngineKind, Op, Pattern};

/// What the plan is to look like. `None` leaves the choice to the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOptions {
    /// Wall time of everything, test file included; positive.
    pub budget_ns: u64,
    /// Time per cell in all its visits; replaces the share of the budget.
    pub runtime_ns: Option<u64>,
    /// Wanted relative half-width of the interval, between 0 and 1.
    pub precision: f64,
    /// Directions asked for; `None` means reads, and writes where they are allowed.
    pub ops: Option<Vec<Op>>,
    /// Block sizes (`--bs`); each at least 1.
    pub block_bytes: Option<Vec<u64>>,
    /// Bytes of one pass (`--bytes`).
    pub pass_bytes: Option<u64>,
    /// First byte of the span (`--offset`).
    pub offset_bytes: u64,
    /// I/Os in flight (`--iodepth`): of `stream`'s direct cells (default 1) and of the headline's deep cells (default 32).
    pub queue_depth: Option<u32>,
    /// Threads (`--streams`) of `stream`'s cells, default 1.
    pub streams: u32,
    /// Order of offsets of `stream`'s cells.
    pub pattern: Pattern,
    /// Who issues the I/O (`--engine`); `None` takes sync at depth 1 and `io_uring` above.
    pub engine: Option<EngineKind>,
    /// Processors to pin streams to (`--pin`); empty leaves them free.
    pub pin_cpus: Vec<usize>,
    /// Seed of offsets and data.
    pub seed: u64,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            budget_ns: 60_000_000_000,
            runtime_ns: None,
            precision: 0.02,
            ops: None,
            block_bytes: None,
            pass_bytes: None,
            offset_bytes: 0,
            queue_depth: None,
            streams: 1,
            pattern: Pattern::Sequential,
            engine: None,
            pin_cpus: Vec::new(),
            seed: 1,
        }
    }
}
