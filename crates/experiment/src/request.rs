//! What the user requested, parsed and checked, before any target is examined, and the options that shape a plan, with their defaults and
//! ranges. Plain data.

use rdsk_model::{
    AtOnce, BufferPages, EngineKind, Experiment, LoadJob, Need, Op, Pattern, Promise, Record, StopFlag,
    StreamRange,
};
use rdsk_targets::{Permission, Roots};

/// The seed where none is chosen, as for simulated targets, whose runs can be repeated.
const DEFAULT_SEED: u64 = 1;

/// Where the budget comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetSource {
    /// No `--budget` was given.
    Default,
    /// `--budget`.
    Requested,
}

/// How many positions `zones` visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Positions {
    /// As many as the time allows, up to 200.
    Default,
    /// Exactly this many, at least 1 (`--points`).
    Count(u64),
    /// Every block (`--full`).
    Full,
}

/// In which order `zones` visits its positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionOrder {
    /// Shuffled anew in every pass.
    Shuffled,
    /// From the first to the last, as the report did.
    Ascending,
}

/// How often the phases of a load are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadRuns {
    /// In repeats that share the budget.
    #[default]
    Repeated,
    /// Once each, until their jobs are done.
    Once,
}

/// The place of a rank among those of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankPlace {
    /// All hosts; where there is a single one, its ranks.
    pub peers: AtOnce,
    /// Which of them this rank belongs to, from 0.
    pub index: u32,
    /// Bytes from the offset on that are this rank's, of what it did not make itself; `None` where all is every rank's.
    pub part_bytes: Option<u64>,
}

impl RankPlace {
    /// Whether this rank waits while others issue.
    pub fn waits_while(&self, others: Option<AtOnce>) -> bool {
        others.is_some_and(|others| self.index >= others.count())
    }
}

/// The options of a plan. `None` leaves the choice to the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOptions {
    /// Wall time of the whole run, test file included; positive.
    pub budget_ns: u64,
    /// Where the budget comes from.
    pub budget_source: BudgetSource,
    /// Time per cell in all its visits; replaces the share of the budget.
    pub runtime_ns: Option<u64>,
    /// Requested relative half-width of the interval, between 0 and 1.
    pub precision: f64,
    /// Requested directions; `None` means reads, and writes if they are allowed.
    pub ops: Option<Vec<Op>>,
    /// Block sizes (`--bs`); each at least 1.
    pub block_bytes: Option<Vec<u64>>,
    /// Bytes of one pass (`--bytes`); of `scale`, of each stream.
    pub pass_bytes: Option<u64>,
    /// First byte of the span (`--offset`).
    pub offset_bytes: u64,
    /// I/Os in flight (`--iodepth`): of `stream`'s direct cells (default 1) and of the headline's deep cells (default 32).
    pub queue_depth: Option<u32>,
    /// Thread counts (`--streams`): the first of them for `stream` (default 1), all of them for `scale`.
    pub stream_counts: Option<Vec<u32>>,
    /// Time between the starts of two streams of `scale` (`--stagger`); 0 starts all at once.
    pub stagger_ns: Option<u64>,
    /// Whether each stream of `scale` has a range of its own (`--shared-range`).
    pub range: StreamRange,
    /// Positions of `zones`.
    pub positions: Positions,
    /// Order of the positions of `zones` (`--order`); shuffled where it does not matter otherwise.
    pub position_order: Option<PositionOrder>,
    /// Passes of `zones` (`--runs`), at least 1.
    pub runs: Option<u32>,
    /// Order of offsets of `stream`'s cells.
    pub pattern: Pattern,
    /// Whether `stream` also measures buffered writes that end with `fsync`, inside their time (`--end-fsync`).
    pub end_fsync: bool,
    /// What issues the I/O (`--engine`); `None` takes sync at depth 1 and `io_uring` above, or what is faster on the target.
    pub engine: Option<EngineKind>,
    /// Where the evidence comes from (`--evidence`).
    pub evidence: EvidenceChoice,
    /// Processors to pin streams to (`--pin`); empty leaves them free.
    pub pin_cpus: Vec<usize>,
    /// Where buffers of more than a page lie (`--memory`).
    pub buffers: BufferPages,
    /// Whether real targets are written until the rate has settled (`--sustained`); simulated ones always are.
    pub is_sustained: bool,
    /// The jobs of each phase of a load, on spans that count from `offset_bytes`, where a length of 0 is all that is left; empty for
    /// other experiments.
    pub phases: Vec<Vec<LoadJob>>,
    /// How often these are run.
    pub load_runs: LoadRuns,
    /// What the reader of the run should know of the load.
    pub load_notes: Vec<String>,
    /// What the load is to show.
    pub need: Option<Need>,
    /// What is held while the highest rate of the load is looked for.
    pub promise: Option<Promise>,
    /// The place of this process among others that measure on the same targets at the same time: ranks of one run.
    pub rank: Option<RankPlace>,
    /// Seed of offsets and data (`--seed`); `None` stands for that of simulated targets, 1.
    pub seed: Option<u64>,
}

impl PlanOptions {
    /// Bytes of a target on which every job of the load has the span that it names; 0 without a load.
    pub fn load_bytes(&self) -> u64 {
        let of_phase = |jobs: &Vec<LoadJob>| -> u64 {
            let fresh = |is_fresh: bool| jobs.iter().filter(move |job| job.fresh_space == is_fresh);
            let shared = fresh(false).map(|job| job.offset_bytes + job.span_bytes).max().unwrap_or(0);
            shared + fresh(true).map(|job| job.span_bytes).sum::<u64>()
        };
        self.phases.iter().map(of_phase).max().unwrap_or(0)
    }

    /// The seed that counts.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(DEFAULT_SEED)
    }
}

/// Which sources of evidence a run uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvidenceChoice {
    /// BPF where the kernel permits it, for a part of each visit where it would slow the I/O down; sysfs otherwise.
    #[default]
    Auto,
    /// BPF throughout.
    Bpf,
    /// The counters of sysfs alone.
    Sysfs,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            budget_ns: 60_000_000_000,
            budget_source: BudgetSource::Default,
            runtime_ns: None,
            precision: 0.02,
            ops: None,
            block_bytes: None,
            pass_bytes: None,
            offset_bytes: 0,
            queue_depth: None,
            stream_counts: None,
            stagger_ns: None,
            range: StreamRange::Disjoint,
            positions: Positions::Default,
            position_order: None,
            runs: None,
            pattern: Pattern::Sequential,
            end_fsync: false,
            engine: None,
            evidence: EvidenceChoice::Auto,
            pin_cpus: Vec::new(),
            buffers: BufferPages::Ordinary,
            is_sustained: false,
            phases: Vec::new(),
            load_runs: LoadRuns::Repeated,
            load_notes: Vec::new(),
            need: None,
            promise: None,
            rank: None,
            seed: None,
        }
    }
}

/// One invocation of a measuring command.
#[derive(Clone, Debug)]
pub struct Request {
    /// The command line as typed, for the Record.
    pub command: Vec<String>,
    /// The user's name for the run.
    pub label: Option<String>,
    /// The experiments, in order; never empty.
    pub experiments: Vec<Experiment>,
    /// Names of targets as typed; never empty.
    pub targets: Vec<String>,
    /// What the user allowed.
    pub permission: Permission,
    /// Size of the test file; `None` makes it as large as the requested pass, else adapts it to the disk, up to 1 GiB.
    pub size_bytes: Option<u64>,
    /// A Record whose finished cells are taken over, and whose passes over chosen positions are continued.
    pub resume: Option<Box<Record>>,
    /// The options of the plan.
    pub options: PlanOptions,
    /// Where the kernel's files are; only tests use others than the real ones.
    pub roots: Roots,
    /// Raised by signals.
    pub stop: StopFlag,
}
