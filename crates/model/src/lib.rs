//! Plain data that every room shares, and the few small traits between rooms: Plan (what to do), Record (what was
//! seen), Event and Watch (what is happening), Clock (what time is). It does no I/O, reads no clock and draws nothing.

pub mod block_activity;
pub mod block_layer;
pub mod cell;
pub mod clock;
mod contradiction;
pub mod copy;
pub mod diskstat;
pub mod event;
pub mod evidence;
mod evidence_plus;
pub mod finding;
pub mod job_result;
pub mod latency;
pub mod load;
pub mod need;
pub mod nvme;
pub mod output_flags;
pub mod plan;
pub mod problem;
pub mod processor;
pub mod promise;
pub mod ranks;
pub mod record;
mod requests;
pub mod result;
pub mod stalled;
mod status;
mod target;
mod unknown;
mod untold;
pub mod watch;
pub mod watch_document;
pub mod workload;
pub mod workload_words;

pub use block_activity::BlockActivity;
pub use block_layer::{Bio, BpfEvidence, CountedDevice, CrossCheck, Origin, Request, is_write_call};
pub use cell::{CellRecord, Verdict, VerdictCode};
pub use clock::{Clock, StopFlag};
pub use contradiction::Contradiction;
pub use copy::{Copy, CopyEnd, CopyRun, EndKind, StableBy};
pub use diskstat::{DiskStat, SECTOR_BYTES};
pub use event::{CellsSoFar, Event, Watch};
pub use evidence::{
    Counted, DeviceEvidence, Evidence, EvidenceSource, ExtentEvidence, IntervalCounters, IoControl, Limit,
    LoopFile, PageCache, PageCacheState, ProcessIo,
};
pub use finding::{Confidence, Effect, Finding, Severity, Stake};
pub use job_result::{JobResult, KindResult, LatencyWindow, RateResult};
pub use latency::{Estimate, Latency, PercentileRange, PercentileRanges, RoundLatency};
pub use load::{Arrivals, Flush, FlushCall, LoadJob, Rate, check_together};
pub use need::{Need, Statistic, Strength, Subject, Threshold};
pub use nvme::is_nvme_path;
pub use output_flags::{OUTPUT_FLAGS, OUTPUT_SWITCHES, without_output};
pub use plan::{Cell, Endurance, Experiment, Extent, Plan, STREAM_WINDOW_BYTES, UNLIMITED_NS};
pub use problem::{Problem, ProblemKind};
pub use processor::{ProcessorUse, QuotaUse};
pub use promise::Promise;
pub use ranks::{AtOnce, ClockOffset, Peers, RankRun, RankVisit, SharedTurn};
pub use record::{ClockFacts, Host, ObserverFacts, Record, Source};
pub use requests::{BlockShare, OffsetRule, Requests, Zone};
pub use result::{
    AfterIdle, CellResult, ColdCheck, CpuTime, FirstAccess, IoError, Issuing, Overlap, OwnGap, PointRun,
    RateSamples, ReadContent, Samples, StopReason, StreamResult, Trial, Visit, Windows,
};
pub use stalled::{Stall, StallBasis, Stalls};
pub use status::Status;
pub use target::{ArrayFacts, Device, Filesystem, LaidOut, Layer, Target, TargetKind};
pub use unknown::UNKNOWN_OFFSET;
pub use watch::{
    CommandFlush, CommandRun, CommandVerdict, GrowthState, ProcessCalls, Uncounted, WatchInterval,
    WatchedDevice,
};
pub use watch_document::{DeviceInterval, WatchCommand, WatchLine};
pub use workload::{Points, Workload};
pub use workload_words::{
    BufferPages, CacheState, EngineKind, IoPath, NEEDS_OF_DONTCACHE, Op, Pattern, StreamRange, Sync,
    UnknownWord, Untold,
};

/// The schema name that every Record carries; a renamed or removed key needs a new number.
pub const SCHEMA: &str = "rdsk.record/2";

/// The schemas whose documents are read. Those of the first one may have keys that have gone since, which count nothing: what the
/// members of an array did for each request of `stripe`.
pub const READABLE_SCHEMAS: [&str; 2] = ["rdsk.record/1", SCHEMA];

#[cfg(feature = "schema")]
pub(crate) const ID_PATTERN: &str = "^[0-7][0-9A-HJKMNP-TV-Z]{25}$";
#[cfg(feature = "schema")]
pub(crate) const TIME_PATTERN: &str =
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,9})?Z$";
#[cfg(feature = "schema")]
pub(crate) const CODE_PATTERN: &str = "^[a-z0-9]+(-[a-z0-9]+)*$";
