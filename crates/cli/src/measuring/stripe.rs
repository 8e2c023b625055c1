//! `rdsk stripe`.

use super::Measurement;
use super::common::{Common, OpsArgs};
use super::passes::OffsetArgs;
use super::zones::MAX_POINTS;
use crate::grammar::{WHAT, default, help};
use crate::value;
use clap::Args;
use rdsk_experiment::Positions;
use rdsk_model::Experiment;

const EXAMPLES: &str = "Examples:
  rdsk stripe /dev/md0
      an array that is only read
  rdsk stripe /dev/md0 --rw write --destroy IDENTITY
      an empty array that is written: what partial stripes cost, too
  rdsk stripe sim:raid5
      a simulated array";

/// Find the chunk and the full stripe of an array, and what partial stripes cost.
///
/// Where the kernel describes the array (md, device mapper, LVM), its words give chunk, full stripe, level and where the
/// first stripe begins, and whole stripes are compared with parts of them. Where it does not (hardware RAID, a SAN),
/// requests of chosen sizes at chosen offsets show them: their cost steps at the boundaries of chunks and stripes.
/// Requests are direct, one at a time: O_DSYNC writes if writing is allowed, else reads, whose cost leaves the stripe
/// uncertain.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("rw", default("write if writing is allowed, else read")),
    mut_arg("offset", help("Skip this many bytes at the start of the target, rounded up to 4M [default: 0]"))
)]
pub(crate) struct Stripe {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    ops: OpsArgs,
    #[command(flatten, next_help_heading = WHAT)]
    offset: OffsetArgs,
    /// Requests to issue [default: 1500, or up to 768 where the kernel describes the array]
    #[arg(long, value_name = "N", value_parser = value::count(MAX_POINTS))]
    points: Option<u32>,
}

impl Stripe {
    pub(super) fn measurement(self) -> Measurement {
        let mut asked = Measurement::new(Experiment::Stripe, self.common);
        self.ops.set(&mut asked.options);
        self.offset.set(&mut asked.options);
        if let Some(count) = self.points {
            asked.options.positions = Positions::Count(u64::from(count));
        }
        asked
    }
}
