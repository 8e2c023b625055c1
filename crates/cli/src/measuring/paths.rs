//! `rdsk paths`.

use super::Measurement;
use super::common::Common;
use super::passes::PassArgs;
use crate::grammar::default;
use clap::Args;
use rdsk_model::Experiment;

const EXAMPLES: &str = "Examples:
  rdsk paths
      a test file in the current directory
  rdsk paths /dev/sdb --rw read --bytes 1G
      a block device, 1 GiB on each path
  rdsk paths --bs 64k --runtime 5s
      another block size, 5 seconds per test";

/// Compare direct with buffered I/O on the same bytes.
///
/// All paths transfer the same bytes sequentially, as dd does: direct, buffered, and buffered without leaving pages in
/// the cache (dontcache, Linux 6.14). Writes are timed until the data is on disk.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("rw", default("both if writing is allowed, else read")),
    mut_arg("bs", default("1M")),
    mut_arg("bytes", default("100M")),
    mut_arg("offset", default("0"))
)]
pub(crate) struct Paths {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    passes: PassArgs,
}

impl Paths {
    pub(super) fn measurement(self) -> Measurement {
        let mut asked = Measurement::new(Experiment::Paths, self.common);
        self.passes.set(&mut asked.options);
        asked
    }
}
