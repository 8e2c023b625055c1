//! `rdsk scale`.

use super::Measurement;
use super::common::Common;
use super::passes::PassArgs;
use super::stream::StreamsArgs;
use crate::grammar::{default, help};
use crate::value;
use clap::Args;
use rdsk_model::{Experiment, StreamRange};
use rdsk_units::Nanos;

/// Longest pause between the starts of two streams: an hour.
const MAX_STAGGER: Nanos = Nanos(3_600_000_000_000);

const EXAMPLES: &str = "Examples:
  rdsk scale
      a test file in the current directory, one minute
  rdsk scale /dev/sdb /dev/sdc --rw read --streams 1,2,4
      two disks, streams distributed over them
  rdsk scale --bs 64k,1M --runtime 5s --stagger 0s
      five seconds per test, all streams started together";

const BYTES: &str = "Bytes that each stream transfers in one sweep, starting over at the end of its part [default: as many as the time \
                     allows]";
const RUNTIME: &str = "Time for each test in all its repeats, without the starts of its streams, instead of a share of the budget";
const STREAMS: &str =
    "Numbers of streams to compare; each stream is a thread that issues I/O [default: 1,3,10]";

/// Measure the gain from more streams, larger blocks and more targets.
///
/// Sequential readers and writers, each on its own part of a target, are distributed over the targets in turn and
/// started one after the other. The total rate is that of the time in which all of them ran.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("rw", default("both if writing is allowed, else read")),
    mut_arg("bs", default("16k to 2M in powers of 2, fewer if the budget is short")),
    mut_arg("bytes", help(BYTES)),
    mut_arg("offset", default("0")),
    mut_arg("runtime", help(RUNTIME)),
    mut_arg("streams", help(STREAMS))
)]
pub(crate) struct Scale {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    passes: PassArgs,
    #[command(flatten)]
    streams: StreamsArgs,
    /// Pause between the starts of two streams; 0s starts all at once [default: 5s, less if the budget is short]
    #[arg(long, value_name = "TIME", value_parser = value::time(Nanos(0), MAX_STAGGER))]
    stagger: Option<u64>,
    /// Let every stream use the whole target instead of a part of its own
    #[arg(long)]
    shared_range: bool,
}

impl Scale {
    pub(super) fn measurement(self) -> Measurement {
        let mut asked = Measurement::new(Experiment::Scale, self.common);
        let options = &mut asked.options;
        self.passes.set(options);
        self.streams.set(options);
        options.stagger_ns = self.stagger;
        options.range = if self.shared_range { StreamRange::Shared } else { StreamRange::Disjoint };
        asked
    }
}
