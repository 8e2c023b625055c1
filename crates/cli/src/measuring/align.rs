//! `rdsk align`.

use super::Measurement;
use super::common::{Common, OpsArgs};
use super::passes::PassArgs;
use crate::grammar::{default, help};
use clap::Args;
use rdsk_model::Experiment;

const EXAMPLES: &str = "Examples:
  rdsk align
      all sizes, on a test file
  rdsk align --bs 512,4k,64k
      these sizes only";

/// Measure the cost of small and misaligned writes.
///
/// Latency by size and by alignment, cached and uncached, buffered, dontcache and direct, and which writes make the
/// kernel read first.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("rw", default("write if writing is allowed, else read")),
    mut_arg("bs", default("1,27,512,2k,4k,8k,16k,64k")),
    mut_arg("bytes", help("Length of the part of the target that is used [default: 64M]")),
    mut_arg("offset", default("0"))
)]
pub(crate) struct Align {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    ops: OpsArgs,
    #[command(flatten)]
    passes: PassArgs,
}

impl Align {
    pub(super) fn measurement(self) -> Measurement {
        let mut asked = Measurement::new(Experiment::Align, self.common);
        self.ops.set(&mut asked.options);
        self.passes.set(&mut asked.options);
        asked
    }
}
