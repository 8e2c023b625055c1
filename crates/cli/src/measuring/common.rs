//! Arguments of every command that measures: targets, time, permission, directions, evidence, and what becomes of the Record. They allow
//! nothing by themselves: the crate `targets` judges.

use crate::cli_args::{Form, JsonPlace, Verbosity};
use crate::completion;
use crate::grammar::{COMMON, EXPERT, OUTPUT, WHAT};
use crate::history::Place;
use crate::output_args::OutputArgs;
use crate::value;
use clap::Args;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};
use rdsk_experiment::{BudgetSource, EvidenceChoice, PlanOptions};
use rdsk_model::{Op, Problem};
use rdsk_targets::{Overwrite, Permission};
use rdsk_units::Nanos;

/// Shortest budget: two windows; below that no rate has an interval.
const MIN_BUDGET: Nanos = Nanos(100_000_000);
/// Longest time: a week.
pub(super) const MAX_TIME: Nanos = Nanos(7 * 24 * 3_600_000_000_000);
/// Largest offset and size of the kernel's file interface (`loff_t`).
pub(super) const MAX_FILE_BYTES: u64 = i64::MAX as u64;
pub(crate) const SOURCES: &[(&str, EvidenceChoice)] =
    &[("auto", EvidenceChoice::Auto), ("bpf", EvidenceChoice::Bpf), ("sysfs", EvidenceChoice::Sysfs)];

/// Arguments of every command that measures.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = COMMON)]
pub(crate) struct Common {
    /// Directories, files, block devices or sim:NAME [default: .]
    #[arg(
        value_name = "TARGET",
        help_heading = None::<&str>,
        value_parser = value::name("target", "name a directory, a file or a block device"),
        add = ArgValueCompleter::new(completion::targets)
    )]
    pub(crate) targets: Vec<String>,
    /// Time for the whole run, such as 20s or 5m [default: 60s]
    ///
    /// Less time gives wider intervals.
    #[arg(long, value_name = "TIME", value_parser = value::time(MIN_BUDGET, MAX_TIME))]
    pub(crate) budget: Option<u64>,
    /// Allow writing to the block device with this identity, which destroys its data
    ///
    /// IDENTITY is a name that stays with the device whatever the order of disks: serial number, WWN, UUID, vg/lv or
    /// backing file; rdsk info shows it. A kernel name such as /dev/sdb is not accepted.
    #[arg(long, value_name = "IDENTITY", value_parser = value::text, conflicts_with = "overwrite")]
    pub(super) destroy: Option<String>,
    /// Allow overwriting the regular file that is the target
    #[arg(long)]
    pub(super) overwrite: bool,
    /// Size of the test file [default: up to 1G, less on a slow disk]
    ///
    /// The test file is created in a target that is a directory; where paths, stream or align get --bytes, it holds those.
    #[arg(long, help_heading = WHAT, value_name = "SIZE", value_parser = value::size(MAX_FILE_BYTES))]
    pub(crate) size: Option<u64>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// What counts beside the I/O [default: auto]
    ///
    /// auto: BPF where the kernel permits it, in the first repeat of a test and in as many more as take no more than
    /// 0.5% of its time, and for a part of each above 100 000 I/Os per second; bpf: BPF throughout, or an error;
    /// sysfs: the counters of /sys alone.
    #[arg(long, help_heading = EXPERT, value_name = "SOURCE", value_parser = value::words(SOURCES))]
    evidence: Option<EvidenceChoice>,
    /// CPUs to pin the streams to, assigned in turn, such as 0-3,8
    #[arg(long, help_heading = EXPERT, value_name = "CPULIST", value_parser = value::cpu_list)]
    pin: Option<CpuList>,
    /// Seed of offsets and data; the same seed gives the same offsets [default: another one each time, 1 for sim:]
    #[arg(long, help_heading = EXPERT, value_name = "N", value_parser = value::whole)]
    seed: Option<u64>,
}

/// Which directions are measured.
#[derive(Args, Clone, Debug)]
pub(super) struct OpsArgs {
    /// Measure reads, writes or both
    ///
    /// Writing is allowed in the test file of a directory; any other target needs --overwrite or --destroy.
    #[arg(
        long,
        help_heading = WHAT,
        value_name = "OP,...",
        value_delimiter = ',',
        value_parser = value::one_of(Op::ALL, Op::as_str)
    )]
    rw: Vec<Op>,
}

impl OpsArgs {
    pub(super) fn set(&self, options: &mut PlanOptions) {
        options.ops = value::unique(&self.rw);
    }
}

/// A list that is one value, which clap would take for several.
type CpuList = std::sync::Arc<[usize]>;

/// What becomes of a run.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = OUTPUT)]
pub(crate) struct RunArgs {
    /// Write a page with the figures of the run to FILE, for a browser
    #[arg(long, value_name = "FILE", value_parser = value::page_place)]
    report: Option<JsonPlace>,
    /// Show what would be measured, without writing to any target
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Name for the run, stored in the JSON
    #[arg(long, value_name = "TEXT", value_parser = value::label, add = ArgValueCandidates::new(completion::labels))]
    pub(crate) label: Option<String>,
    /// Go on with a run that was cut short: an id, the word last, a label, or a file of --json
    ///
    /// Finished tests are taken over, the others measured, with the command line of that run unless targets or flags are
    /// given. The sweeps of rdsk zones are continued where they stopped.
    #[arg(long, value_name = "RUN", value_parser = value::text, add = ArgValueCompleter::new(completion::runs_and_files))]
    pub(crate) resume: Option<String>,
    /// Do not keep the run in the history
    #[arg(long, conflicts_with = "history")]
    no_history: bool,
    /// Show no progress and no warnings on standard error
    #[arg(long, short)]
    quiet: bool,
}

impl Common {
    /// Sets what these arguments say of the plan.
    pub(super) fn set(&self, options: &mut PlanOptions) {
        options.evidence = self.evidence.unwrap_or(EvidenceChoice::Auto);
        options.pin_cpus = self.pin.as_deref().unwrap_or_default().to_vec();
        options.seed = self.seed;
        if let Some(budget_ns) = self.budget {
            options.budget_ns = budget_ns;
            options.budget_source = BudgetSource::Requested;
        }
    }

    /// What may be overwritten.
    pub(crate) fn permission(&self) -> Permission {
        let overwrite = if self.overwrite { Overwrite::Allowed } else { Overwrite::Refused };
        Permission { destroy: self.destroy.clone(), overwrite, ..Permission::default() }
    }

    /// Whether anything may be overwritten.
    pub(crate) const fn may_overwrite(&self) -> bool {
        self.overwrite || self.destroy.is_some()
    }

    /// Whether a block device may be overwritten.
    #[cfg(feature = "mpi")]
    pub(crate) const fn may_destroy(&self) -> bool {
        self.destroy.is_some()
    }

    /// Where further forms of the Record go.
    pub(crate) fn forms(&self) -> Vec<(Form, JsonPlace)> {
        self.output.forms(self.run.report.as_ref())
    }

    /// The history, where the line names one; `Off` where it wants none.
    pub(crate) fn place(&self) -> Option<Place> {
        let file = self.output.history.history.clone().map(Place::File);
        if self.run.no_history { Some(Place::Off) } else { file }
    }

    /// As one rank of several: a line on the screen would come from each of them. The place of the JSON is given back, as that is where
    /// all ranks keep their parts.
    #[cfg(feature = "mpi")]
    pub(crate) fn as_rank(&mut self, rank: u32) -> Option<JsonPlace> {
        self.run.quiet |= rank > 0;
        self.output.take_json()
    }

    pub(crate) const fn verbosity(&self) -> Verbosity {
        if self.run.quiet { Verbosity::Quiet } else { Verbosity::Normal }
    }

    /// # Errors
    /// As [`OutputArgs::check`].
    pub(super) fn check_output(&self) -> Result<(), Problem> {
        self.output.check(self.run.report.as_ref())
    }
}
