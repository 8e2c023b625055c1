//! Arguments of several commands that measure: sizes of blocks and the part of the target, how cells are issued, and passes over the
//! target.

use super::common::{MAX_FILE_BYTES, MAX_TIME};
use crate::grammar::{EXPERT, WHAT};
use crate::value;
use clap::Args;
use rdsk_experiment::PlanOptions;
use rdsk_model::{BufferPages, EngineKind};
use rdsk_units::Nanos;

/// Largest block: every I/O in flight needs a buffer of this size.
const MAX_BLOCK_BYTES: u64 = 1 << 30;
/// Shortest time of one cell.
const MIN_RUNTIME: Nanos = Nanos(10_000_000);
/// The last word is the Record's own spelling.
const ENGINES: &[(&str, EngineKind)] = &[
    ("sync", EngineKind::Sync),
    ("threads", EngineKind::Threads),
    ("aio", EngineKind::Aio),
    ("io_uring", EngineKind::Uring),
    ("uring", EngineKind::Uring),
];

/// Where the blocks lie.
#[derive(Args, Clone, Debug)]
pub(super) struct OffsetArgs {
    /// Skip this many bytes at the start of the target
    #[arg(long, value_name = "SIZE", value_parser = value::size_or_zero(MAX_FILE_BYTES))]
    pub(super) offset: Option<u64>,
}

/// How large the blocks are, and where they lie.
#[derive(Args, Clone, Debug)]
pub(super) struct BlockArgs {
    /// Block sizes
    ///
    /// k, M, G and T are powers of 1024 (4k is 4096 bytes); kB, MB, GB and TB are powers of 1000.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = value::size(MAX_BLOCK_BYTES))]
    bs: Vec<u64>,
    #[command(flatten)]
    offset: OffsetArgs,
}

/// Where the data of I/O lie in memory.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = EXPERT)]
pub(super) struct MemoryArgs {
    /// Pages of buffers larger than a page [default: ordinary]
    ///
    /// ordinary: pages of 4 KiB, which dd, fio and most programs have; a device that takes few segments gets a large
    /// block in several requests. huge: transparent huge pages, from which it gets each block in one piece.
    #[arg(long, value_name = "PAGES", value_parser = value::one_of(BufferPages::ALL, BufferPages::as_str))]
    memory: Option<BufferPages>,
}

/// How cells are issued, and for how long.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = EXPERT)]
pub(super) struct CellArgs {
    /// How I/O is issued [default: sync for one I/O in flight, io_uring for more]
    ///
    /// If io_uring is unavailable or slower on the target, the default falls back to aio or threads.
    #[arg(long, value_name = "ENGINE", value_parser = value::words(ENGINES))]
    engine: Option<EngineKind>,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Give no more repeats to tests whose 95% interval is this narrow [default: 2%]
    ///
    /// The margin of the interval relative to the mean, such as 1% or 0.01.
    #[arg(long, value_name = "PERCENT", value_parser = value::share)]
    precision: Option<f64>,
}

/// Passes over the target, of cells that all take the same.
#[derive(Args, Clone, Debug)]
pub(super) struct PassArgs {
    #[command(flatten)]
    cells: CellArgs,
    #[command(flatten, next_help_heading = WHAT)]
    blocks: BlockArgs,
    /// Bytes to transfer in one sweep
    #[arg(long, value_name = "SIZE", value_parser = value::size(MAX_FILE_BYTES))]
    bytes: Option<u64>,
    /// Time for each test in all its repeats, instead of a share of the budget
    ///
    /// A test is one workload: one line or one column of the result.
    #[arg(long, value_name = "TIME", value_parser = value::time(MIN_RUNTIME, MAX_TIME))]
    runtime: Option<u64>,
}

impl OffsetArgs {
    pub(super) fn set(&self, options: &mut PlanOptions) {
        options.offset_bytes = self.offset.unwrap_or(0);
    }
}

impl BlockArgs {
    pub(super) fn set(&self, options: &mut PlanOptions) {
        options.block_bytes = value::unique(&self.bs);
        self.offset.set(options);
    }
}

impl MemoryArgs {
    pub(super) fn set(&self, options: &mut PlanOptions) {
        options.buffers = self.memory.unwrap_or(BufferPages::Ordinary);
    }
}

impl CellArgs {
    pub(super) fn set(&self, options: &mut PlanOptions) {
        options.engine = self.engine;
        options.precision = self.precision.unwrap_or(options.precision);
        self.memory.set(options);
    }
}

impl PassArgs {
    pub(super) fn set(&self, options: &mut PlanOptions) {
        options.pass_bytes = self.bytes;
        options.runtime_ns = self.runtime;
        self.blocks.set(options);
        self.cells.set(options);
    }
}
