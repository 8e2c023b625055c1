//! What an engine is given and what it returns: Job in, Run and Settled out, and the traits between the runner and every
//! engine, real or simulated. It issues nothing itself.

use crate::error::EngineError;
use crate::job_run::JobRun;
use rdsk_model::{
    ColdCheck, CpuTime, EngineKind, FirstAccess, IoError, Issuing, OwnGap, PageCacheState, PointRun,
    ReadContent, StopFlag, StreamResult, Workload,
};
use rdsk_stats::Histogram;
use rdsk_targets::Claim;

/// How the cache state is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheCheck {
    /// The whole span once, after preparing.
    Span,
    /// Also the range of every I/O just before it, outside its latency.
    EachRange,
}

/// When a visit ends by itself, over all streams together. The elapsed time is always limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes to request. Need not be a multiple of the block size; the rest is one shorter I/O.
    pub max_bytes: Option<u64>,
    /// I/Os to issue.
    pub max_ops: Option<u64>,
    /// Time after which no further I/O is submitted.
    pub max_elapsed_ns: u64,
}

/// One visit of one cell.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// What to issue.
    pub workload: &'a Workload,
    /// The workload's targets, indexed by [`Workload::targets`].
    pub claims: &'a [Claim],
    /// When it ends.
    pub limits: Limits,
    /// Number of the visit within its cell; mixed into the seed, so that visits draw different offsets.
    pub visit: u32,
    /// Where in its part of the span each stream of a sequence begins, in bytes from the start of that part; what lies beyond the
    /// part's end goes round. 0 begins at the start.
    pub begin_bytes: u64,
    /// Chosen positions to skip at the start of the visit's order, because an earlier run has visited them.
    pub first_position: u32,
    /// How the cache state is checked.
    pub cache_check: CacheCheck,
    /// Width of a rate window. The engine doubles it as long as a run needs too many windows.
    pub window_ns: u64,
    /// Stream n runs on the n-th of these processors, round robin; if there are none, wherever the scheduler puts it.
    pub pin_cpus: &'a [usize],
    /// Raised by signals.
    pub stop: StopFlag,
}

/// Whether to go on after a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// Submit nothing more, wait for what is in flight, return.
    Stop,
}

/// The runner's view of a visit in progress.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time since the first submission.
    pub elapsed_ns: u64,
    /// Bytes completed so far.
    pub bytes: u64,
    /// I/Os completed so far.
    pub ops: u64,
}

/// Called by an engine at the end of every window.
pub trait Control {
    /// Looks at the progress and decides whether to go on.
    fn window(&mut self, progress: &Progress) -> Flow;

    /// When the streams start, which are ready if `is_ready`, on the engine's clock; `None` if they must not. Asked once.
    fn starts_at_ns(&mut self, is_ready: bool) -> Option<u64> {
        is_ready.then_some(0)
    }

    /// Called when the I/O is over: its first submission and the return of its last I/O on the engine's clock.
    fn ended(&mut self, _begin_ns: u64, _run: &Run) {}

    /// How much of the visit's start is kept apart as [`Run::warm_up`]; read once, right before the first submission.
    fn warm_up_ns(&self) -> u64 {
        0
    }
}

impl<F: FnMut(&Progress) -> Flow> Control for F {
    fn window(&mut self, progress: &Progress) -> Flow {
        self(progress)
    }
}

/// What preparing found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prepared {
    /// The page cache over the span, right before the first I/O; summed over targets.
    pub page_cache: PageCacheState,
    /// Whether the requested state was reached; `None` if the workload requests none.
    pub reached: Option<bool>,
}

/// Why the I/O of a visit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// `max_bytes` or `max_ops` was reached.
    Complete,
    /// `max_elapsed_ns` was reached.
    OutOfTime,
    /// The Control stopped it.
    Stopped,
    /// The stop flag was raised.
    Interrupted,
    /// Every stream ended with an error, or the only one did.
    Failed,
}

/// What completed at the start of a visit, kept apart so that rate and latencies can leave out the same I/Os.
#[derive(Clone, Debug)]
pub struct WarmUp {
    /// Its end, from the start of the visit. What completed earlier is in it, what completed then or later is not.
    pub until_ns: u64,
    /// Bytes completed.
    pub bytes: u64,
    /// I/Os completed.
    pub ops: u64,
    /// Their latencies.
    pub histogram: Histogram,
}

/// The result of the I/O of one visit.
#[derive(Clone, Debug)]
pub struct Run {
    /// Why it ended.
    pub ended: Ended,
    /// From just before the first submission to the last completion, including the `fdatasync` of `fsync_at_end`.
    pub elapsed_ns: u64,
    /// The part of `elapsed_ns` up to the return of the last I/O, without the `fdatasync` at the end.
    pub to_return_ns: u64,
    /// Bytes requested by submitted I/Os.
    pub asked_bytes: u64,
    /// Bytes completed.
    pub bytes: u64,
    /// I/Os completed.
    pub ops: u64,
    /// Latency of every completed I/O but those of the warm-up.
    pub histogram: Histogram,
    /// The start of the visit, as long as the Control asked for; `None` if it did not, all of a shorter visit.
    pub warm_up: Option<WarmUp>,
    /// Sum of all latencies, those of the warm-up too, exact; over `elapsed_ns` it is the mean in flight.
    pub latency_sum_ns: u128,
    /// Bytes completed per window, the last one possibly partial.
    pub windows: Vec<u64>,
    /// Width of a window.
    pub window_ns: u64,
    /// The I/Os that were the first at their place; `None` without any.
    pub first: Option<FirstAccess>,
    /// The latencies at chosen positions; `None` for a workload without any.
    pub positions: Option<PointRun>,
    /// What each job of a load did, in their order; empty for a plain workload.
    pub jobs: Vec<JobRun>,
    /// The streams; times from the first submission of the visit.
    pub streams: Vec<StreamResult>,
    /// The first error of each stream that failed.
    pub errors: Vec<IoError>,
    /// Processor time of the process during the I/O, workers included.
    pub cpu: CpuTime,
    /// Time in which the threads that issue the I/O were ready and waited for a processor, summed over them; `None` if the
    /// kernel does not count it.
    pub processor_wait_ns: Option<u64>,
    /// The page cache over the span after the last return.
    pub page_cache: PageCacheState,
    /// What the checks of the cache found.
    pub check: ColdCheck,
    /// Calls that a signal interrupted and that were repeated.
    pub interrupted_calls: u64,
    /// What the last reads returned; `None` for writes and for simulated hosts, whose reads return nothing.
    pub content: Option<ReadContent>,
    /// The engine that issued the I/O; if streams differ, the first of them in the order of [`EngineKind`].
    pub engine: EngineKind,
    /// How that engine was chosen.
    pub issuing: Issuing,
    /// What the user should know: a fallback and its reason.
    pub notes: Vec<String>,
    /// When this process did not run, which all times here leave out.
    pub gaps: Vec<OwnGap>,
    /// How much of the visit's time they leave out.
    pub left_out_ns: u64,
}

/// When the data of a visit was on stable storage, counted from its first submission.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settled {
    /// Return of the last close; on a block device it flushes the page cache. `None` if this process did not run for a part of that.
    pub to_close_ns: Option<u64>,
    /// Everything on stable storage. `None` for reads, and if this process did not run for a part of that.
    pub to_stable_ns: Option<u64>,
    /// The page cache over the span after that, summed over targets. `None` for reads.
    pub page_cache: Option<PageCacheState>,
    /// How long this process did not run meanwhile.
    pub away_ns: u64,
}

impl Run {
    /// A visit that ended so without any I/O, for what sets a part of its fields.
    pub fn without_io(ended: Ended, engine: EngineKind) -> Self {
        Self {
            ended,
            elapsed_ns: 0,
            to_return_ns: 0,
            asked_bytes: 0,
            bytes: 0,
            ops: 0,
            histogram: Histogram::new(),
            warm_up: None,
            latency_sum_ns: 0,
            windows: Vec::new(),
            window_ns: 1,
            first: None,
            positions: None,
            jobs: Vec::new(),
            streams: Vec::new(),
            errors: Vec::new(),
            cpu: CpuTime::default(),
            processor_wait_ns: None,
            page_cache: PageCacheState::default(),
            check: ColdCheck::default(),
            interrupted_calls: 0,
            content: None,
            engine,
            issuing: Issuing::default(),
            notes: Vec::new(),
            gaps: Vec::new(),
            left_out_ns: 0,
        }
    }
}

/// Runs jobs: the real engine or the simulated one.
pub trait Engine {
    /// Opens what the job needs. Nothing is read or written yet.
    ///
    /// # Errors
    /// When the target is gone, is in use by now, or rejects the flags (`EINVAL` for `O_DIRECT`).
    fn open<'a>(&'a mut self, job: &Job<'a>) -> Result<Box<dyn Session + 'a>, EngineError>;

    /// Looks at a few pages of what a visit has read, where [`Run::content`] shows nothing or too little. It reads, so that it comes
    /// after everything was counted; before each page it asks whether to go on.
    fn look_at(
        &mut self,
        job: &Job<'_>,
        run: &Run,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<ReadContent> {
        let _ = (job, run, goes_on);
        None
    }
}

/// One visit under way: prepare, run, settle, in this order.
pub trait Session {
    /// Brings the page cache over the span into the wanted state and checks it.
    ///
    /// # Errors
    /// When the cache cannot be changed or the warm-up reads fail.
    fn prepare(&mut self) -> Result<Prepared, EngineError>;
    /// Issues the I/O until a limit, the Control or the stop flag ends it. I/O errors are data, not `Err`.
    ///
    /// # Errors
    /// When nothing could be issued at all: no threads, no ring, no memory.
    fn run(&mut self, control: &mut dyn Control) -> Result<Run, EngineError>;
    /// Closes, then makes everything stable.
    ///
    /// # Errors
    /// When the close or the flush fails: written data may be lost.
    fn settle(self: Box<Self>) -> Result<Settled, EngineError>;
}
