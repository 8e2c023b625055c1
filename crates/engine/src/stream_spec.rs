//! What one stream has to do in a job: its target, its offsets, its share of the limits. Plain data; it issues nothing.

use crate::arena::pages_of;
use crate::error::EngineError;
use crate::job::{CacheCheck, Job};
use crate::offsets::{Offsets, ends_with_cycle, placement_of, share};
use crate::open_target::OpenTarget;
use crate::places::Places;
use crate::positions::PositionSource;
use crate::random::mix;
use crate::ring::Issue;
use rdsk_model::{BufferPages, CacheState, IoPath, LoadJob, Op};
use rdsk_sys::io::{DONTCACHE, Flags};
use std::os::fd::BorrowedFd;

/// Which stream of which job of a load a stream is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadSpec<'a> {
    pub(crate) job: &'a LoadJob,
    /// Index of the job in its load.
    pub(crate) job_index: usize,
    /// Number of the stream among those of the job.
    pub(crate) stream_of_job: u32,
}

impl<'a> LoadSpec<'a> {
    /// Of a stream of the load, whose streams are numbered job by job; `None` for one beyond the last.
    pub(crate) fn of(jobs: &'a [LoadJob], stream: u32) -> Option<Self> {
        let mut stream_of_job = stream;
        for (job_index, job) in jobs.iter().enumerate() {
            if stream_of_job < job.streams {
                return Some(Self { job, job_index, stream_of_job });
            }
            stream_of_job -= job.streams;
        }
        None
    }
}

/// What one stream has to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamSpec<'a> {
    pub(crate) stream: u32,
    /// Index of the target, as in the Record.
    pub(crate) target: u32,
    pub(crate) fd: BorrowedFd<'a>,
    pub(crate) open: &'a OpenTarget<'a>,
    pub(crate) op: Op,
    pub(crate) offsets: Offsets,
    /// Chosen positions instead of the offsets.
    pub(crate) positions: Option<PositionSource<'a>>,
    /// The stream of a job instead of all that; `None` for a plain workload.
    pub(crate) load: Option<LoadSpec<'a>>,
    /// I/Os of a whole block; `u64::MAX` without a limit.
    pub(crate) full_ops: u64,
    /// Length of the last, shorter I/O; 0 for none.
    pub(crate) tail_bytes: usize,
    pub(crate) block_bytes: usize,
    /// Of its buffers.
    pub(crate) pages: BufferPages,
    pub(crate) depth: usize,
    /// Where the first accesses of the target's places are noted; `None` if the visit can make none.
    pub(crate) places: Option<&'a Places>,
    /// Cache state that is checked for the range of every I/O; `None` for no check.
    pub(crate) check: Option<CacheState>,
    /// Of the data: an array that stores equal blocks once must find none on two targets.
    pub(crate) seed: u64,
    pub(crate) visit: u32,
    pub(crate) issue: Issue,
    /// The flags of each I/O.
    pub(crate) flags: Flags,
    /// Alignment that direct I/O needs, for the text of an error; `None` for buffered I/O.
    pub(crate) direct_align_bytes: Option<u64>,
}

impl<'a> StreamSpec<'a> {
    pub(crate) fn new(
        job: &Job<'a>,
        stream: u32,
        targets: &'a [OpenTarget<'_>],
    ) -> Result<Self, EngineError> {
        let workload = job.workload;
        let load = LoadSpec::of(&workload.jobs, stream);
        // Each job of a load has opened the target in its own way.
        let position = match load {
            Some(load) => load.job_index,
            None => placement_of(workload, stream)?.target_position,
        };
        let target = &targets[position];
        let facts = &target.claim.target;
        let offsets = Offsets::new(workload, job.visit, stream, rdsk_sys::cache::page_size())?
            .beginning_at(job.begin_bytes);
        let Quota { full_ops, tail_bytes } = Quota::new(job, stream, &offsets)?;
        let check = (job.cache_check == CacheCheck::EachRange && workload.cache != CacheState::Any)
            .then_some(workload.cache);
        let align = facts
            .direct_align_bytes
            .or_else(|| facts.device.as_ref().and_then(|device| device.logical_block_bytes));
        let path = load.map_or(workload.path, |load| load.job.path);
        let op = match load {
            Some(load) if !load.job.changes_data() => Op::Read,
            _ => workload.op,
        };
        let block_bytes = load.map_or(workload.block_bytes, |load| load.job.max_block_bytes());
        let depth = load.map_or(workload.queue_depth, |load| load.job.queue_depth);
        Ok(Self {
            stream,
            target: target.index,
            fd: target.fd(),
            open: target,
            op,
            load,
            offsets,
            positions: PositionSource::new(job),
            full_ops,
            tail_bytes: usize::try_from(tail_bytes).expect("shorter than a block"),
            block_bytes: usize::try_from(block_bytes).expect("at most 1 GiB"),
            pages: pages_of(workload),
            depth: depth as usize,
            places: target.places.as_deref(),
            check,
            seed: mix(workload.seed, target.index.into()),
            visit: job.visit,
            flags: if path == IoPath::DontCache { DONTCACHE } else { Flags::empty() },
            issue: if facts.nowait == Some(false) { Issue::Workers } else { Issue::Inline },
            direct_align_bytes: (path == IoPath::Direct).then(|| align.unwrap_or(512)),
        })
    }
}

impl StreamSpec<'_> {
    /// Notes an I/O, and how many places of the target it reaches first.
    #[inline]
    pub(crate) fn touch(&self, offset: u64, len: usize) -> u64 {
        self.places.map_or(0, |places| places.touch(self.op, offset, len))
    }
}

/// How much one stream does at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quota {
    /// Whole blocks; `u64::MAX` without a limit.
    pub(crate) full_ops: u64,
    /// Length of the last, shorter I/O; 0 for none.
    pub(crate) tail_bytes: u64,
}

impl Quota {
    /// A stream's share of the job's limits, at most one cycle if the visit ends with its cycle.
    pub(crate) fn new(job: &Job<'_>, stream: u32, offsets: &Offsets) -> Result<Self, EngineError> {
        let quota = Self::share_of_limits(job, stream)?;
        if ends_with_cycle(job.workload) && quota.full_ops >= offsets.cycle() {
            return Ok(Self { full_ops: offsets.cycle(), tail_bytes: 0 });
        }
        Ok(quota)
    }

    /// Streams get equal shares; if every target has the same number of streams, equal shares of their target's share, so
    /// that a pass over the span fits the parts exactly.
    fn share_of_limits(job: &Job<'_>, stream: u32) -> Result<Self, EngineError> {
        let workload = job.workload;
        let by_bytes = job.limits.max_bytes.map(|bytes| bytes / workload.block_bytes);
        let total = match (by_bytes, job.limits.max_ops) {
            (Some(blocks), Some(ops)) => blocks.min(ops),
            (Some(blocks), None) => blocks,
            (None, Some(ops)) => ops,
            (None, None) => return Ok(Self { full_ops: u64::MAX, tail_bytes: 0 }),
        };
        let streams = u64::from(workload.streams);
        let part = |total, part, parts| share(total, part + 1, parts) - share(total, part, parts);
        let placement = placement_of(workload, stream)?;
        let targets = u64::try_from(workload.targets.len()).unwrap_or(u64::MAX).min(streams);
        let full_ops = if streams.is_multiple_of(targets) {
            let position = u64::try_from(placement.target_position).unwrap_or(u64::MAX);
            part(part(total, position, targets), placement.part, placement.parts)
        } else {
            part(total, u64::from(stream), streams)
        };
        let rest = job.limits.max_bytes.map_or(0, |bytes| bytes % workload.block_bytes);
        let rest_allowed = by_bytes.is_some_and(|blocks| job.limits.max_ops.is_none_or(|ops| ops > blocks));
        let is_last = u64::from(stream) + 1 == streams;
        Ok(Self { full_ops, tail_bytes: if is_last && rest_allowed { rest } else { 0 } })
    }
}
