//! `rdsk stream`, and how many I/Os are in flight.

use super::Measurement;
use super::common::Common;
use super::passes::PassArgs;
use crate::grammar::default;
use crate::value;
use clap::Args;
use rdsk_experiment::PlanOptions;
use rdsk_model::{Experiment, Pattern};

/// Deepest queue of one stream; devices take at most a few thousand requests (NVMe: 65 536 by its standard, 1023 in
/// Linux's default).
const MAX_DEPTH: u32 = 4096;
const MAX_STREAMS: u32 = 1024;

const EXAMPLES: &str = "Examples:
  rdsk stream --bs 16k
      one writer and one reader, 16 KiB each
  rdsk stream /dev/sdb --rw read --iodepth 32
      direct reads, 32 in flight
  rdsk stream --pattern random --bs 4k
      random offsets";

/// How many I/Os of one stream are in flight.
#[derive(Args, Clone, Debug)]
pub(super) struct DepthArgs {
    /// I/Os in flight per stream in the direct tests [default: 1]
    #[arg(long, value_name = "N", value_parser = value::count(MAX_DEPTH))]
    iodepth: Option<u32>,
}

/// How many streams issue I/O at once.
#[derive(Args, Clone, Debug)]
pub(super) struct StreamsArgs {
    /// Threads that issue I/O, each on its own part of the target; one number [default: 1]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = value::count(MAX_STREAMS))]
    streams: Vec<u32>,
}

/// Measure one reader or writer, and show what iostat would show.
///
/// Reads are buffered, dontcache and direct; so are writes, and buffered and direct with O_DSYNC too. Each is shown with
/// the columns of iostat -x, including the queue depth.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("rw", default("both if writing is allowed, else read")),
    mut_arg("bs", default("16k")),
    mut_arg("bytes", default("as many as the time allows")),
    mut_arg("offset", default("0"))
)]
pub(crate) struct Stream {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    passes: PassArgs,
    /// Order of the offsets [default: sequential]
    #[arg(long, value_name = "PATTERN", value_parser = value::one_of(Pattern::ALL, Pattern::as_str))]
    pattern: Option<Pattern>,
    /// Also measure buffered writes that end with fsync, inside their time
    ///
    /// This is dd's conv=fsync and fio's end_fsync=1.
    #[arg(long)]
    end_fsync: bool,
    #[command(flatten)]
    depth: DepthArgs,
    #[command(flatten)]
    streams: StreamsArgs,
}

impl DepthArgs {
    pub(super) fn set(&self, options: &mut PlanOptions) {
        options.queue_depth = self.iodepth;
    }
}

impl StreamsArgs {
    pub(super) fn set(&self, options: &mut PlanOptions) {
        options.stream_counts = value::unique(&self.streams);
    }
}

impl Stream {
    pub(super) fn measurement(self) -> Measurement {
        let mut asked = Measurement::new(Experiment::Stream, self.common);
        let options = &mut asked.options;
        self.passes.set(options);
        self.depth.set(options);
        self.streams.set(options);
        options.pattern = self.pattern.unwrap_or(Pattern::Sequential);
        options.end_fsync = self.end_fsync;
        asked
    }
}
