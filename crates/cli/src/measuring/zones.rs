//! `rdsk zones`, and how many positions are visited.

use super::Measurement;
use super::common::Common;
use super::passes::{BlockArgs, MemoryArgs};
use crate::grammar::{WHAT, default};
use crate::value;
use clap::Args;
use rdsk_experiment::{PositionOrder, Positions};
use rdsk_model::Experiment;

/// Most positions: with ten passes, a Record of more is too large to work with.
pub(super) const MAX_POINTS: u32 = 500_000;
const MAX_RUNS: u32 = 10_000;
const ORDERS: &[(&str, PositionOrder)] =
    &[("shuffled", PositionOrder::Shuffled), ("ascending", PositionOrder::Ascending)];

const EXAMPLES: &str = "Examples:
  rdsk zones /dev/sdb
      the whole disk, as many positions and sweeps as a minute allows
  rdsk zones /dev/sdb --bs 1M,5M --runs 10 --points 200
      these block sizes, sweeps and positions, however long they take
  rdsk zones /dev/sdb --full --runs 1 --bs 20M --json z.json
      every block once, kept as JSON
  rdsk zones sim:freebsd-wd800jd
      a simulated disk";

/// Measure speed by position: zones of the disk, drift, bands of slow requests.
///
/// Every sweep reads the same positions in an order of its own, and the time of each request is kept. A step in the rate
/// marks a zone. Requests that are late by a fixed time form a band, whose cause is tested for.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("rw", default("read")),
    mut_arg("bs", default("1M,5M,10M,20M, fewer if the budget is short")),
    mut_arg("offset", default("0"))
)]
pub(crate) struct Zones {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten, next_help_heading = WHAT)]
    blocks: BlockArgs,
    /// Positions to measure in each sweep [default: up to 200, as the budget allows]
    #[arg(long, value_name = "N", value_parser = value::count(MAX_POINTS), conflicts_with = "full")]
    points: Option<u32>,
    /// Measure every block of the target in each sweep, however long it takes
    #[arg(long)]
    full: bool,
    /// Complete sweeps over the positions [default: up to 10, as the budget allows]
    #[arg(long, value_name = "N", value_parser = value::count(MAX_RUNS))]
    runs: Option<u32>,
    /// Order of the positions in a sweep [default: shuffled]
    #[arg(long, value_name = "ORDER", value_parser = value::words(ORDERS))]
    order: Option<PositionOrder>,
}

impl Zones {
    pub(super) fn measurement(self) -> Measurement {
        let mut asked = Measurement::new(Experiment::Zones, self.common);
        let options = &mut asked.options;
        self.blocks.set(options);
        self.memory.set(options);
        options.positions = match self.points {
            _ if self.full => Positions::Full,
            Some(count) => Positions::Count(u64::from(count)),
            None => Positions::Default,
        };
        options.runs = self.runs;
        options.position_order = self.order;
        asked
    }
}
