//! `rdsk run`.

use super::Measurement;
use super::common::Common;
use super::passes::CellArgs;
use super::stream::DepthArgs;
use crate::cli_args::Detail;
use crate::grammar::{COMMON, OUTPUT, WHAT, default, help};
use crate::value;
use clap::Args;
use rdsk_experiment::{BudgetSource, IN_RUN};
use rdsk_model::Experiment;

/// The budget of a run that sustains its writes, unless one is requested.
const SUSTAINED_BUDGET_NS: u64 = 600_000_000_000;

const EXAMPLES: &str = "Examples:
  rdsk run
      the filesystem of the current directory, one minute
  rdsk run /mnt/data --budget 20s
      another filesystem, faster but less precisely
  rdsk run /dev/sdb
      a block device, only reading
  rdsk run --only headline --json result.json
      the headline figures, kept as JSON
  rdsk run /dev/sdb --dry-run
      what would be measured, without measuring it";

/// Measure as much as fits into the time budget, and explain the result.
///
/// The result is one screen: the headline, what to know, and a line for each topic; --details prints the screens of all
/// topics. A target that is a directory gets a test file, which is removed at the end. A file of
/// yours or a block device is only read, unless --overwrite or --destroy allows writing.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("rw", default("what each experiment does by itself")),
    mut_arg("iodepth", help("I/Os in flight: deep random tests of headline, direct tests of stream [default: 32 and 1]"))
)]
pub(crate) struct Run {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    cells: CellArgs,
    #[command(flatten, next_help_heading = WHAT)]
    depth: DepthArgs,
    /// Run only these topics [default: all of them]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = value::one_of(IN_RUN, Experiment::as_str))]
    only: Vec<Experiment>,
    /// Write on until the rate has settled, and show what lasts
    ///
    /// After everything else the writes of the headline go on, each until its rate fell and settled, for the rest of the
    /// budget at most, which is 10m unless --budget says otherwise. A drive with a large cache takes hundreds of GiB.
    /// Simulated systems always do so.
    #[arg(long, help_heading = COMMON)]
    sustained: bool,
    /// Print the screens of all topics instead of the short page
    #[arg(long, help_heading = OUTPUT)]
    details: bool,
}

impl Run {
    pub(super) fn measurement(self) -> Measurement {
        let experiments = value::unique(&self.only).unwrap_or_else(|| IN_RUN.to_vec());
        let detail = if self.details { Detail::Full } else { Detail::Short };
        let mut asked = Measurement::new(Experiment::Headline, self.common);
        let options = &mut asked.options;
        self.depth.set(options);
        self.cells.set(options);
        options.is_sustained = self.sustained;
        if self.sustained && options.budget_source == BudgetSource::Default {
            options.budget_ns = SUSTAINED_BUDGET_NS;
        }
        Measurement { command: "run", experiments, detail, ..asked }
    }
}
