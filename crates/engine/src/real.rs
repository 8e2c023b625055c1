//! The engine of real targets: validates a job, opens each of its targets once, and hands out the session. It issues
//! nothing itself.

use crate::EngineError;
use crate::aio::{AioSource, Contexts};
use crate::clock::MonotonicClock;
use crate::engine_choice::{self, Available, EngineChoice, EnginePolicy};
use crate::engine_trial;
use crate::job::{Engine, Job, Session};
use crate::offsets::{Offsets, ends_with_cycle, placement_of, share};
use crate::positions::{self, PositionSource};
use crate::ring::{Issue, RingSource, UringTuning};
use crate::session::{OpenTarget, RealSession};
use crate::stream_spec::StreamSpec;
use rdsk_model::{CacheState, EngineKind, IoPath, Issuing, Op, Sync, Workload};
use rdsk_targets::{Access, Claim, OpenMode};
use std::os::fd::BorrowedFd;

/// Whether latencies are recorded; switched off only to measure what recording costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recording {
    /// Every one.
    #[default]
    On,
    /// None: the histogram of the Run stays empty.
    Off,
}

/// What was found out of the machine and of targets, so that each probe and each trial is made once.
#[derive(Clone, Debug, Default)]
pub struct ChoiceCache {
    /// Whether rings are to be had; `None` before it was tried.
    ring: Option<Result<(), String>>,
    choices: Vec<(TrialKey, EngineChoice)>,
}

/// Workloads for which one trial stands: same first target, block size, span and depth.
type TrialKey = (Option<u32>, u64, u64, u64, u32);

/// The real engines, in real time.
#[derive(Clone, Debug, Default)]
pub struct RealEngine {
    /// Its clock.
    pub clock: MonotonicClock,
    /// How rings are used.
    pub tuning: UringTuning,
    /// Where rings come from.
    pub ring_source: RingSource,
    /// Where AIO contexts come from.
    pub aio_source: AioSource,
    /// AIO contexts that are made and idle.
    pub contexts: Contexts,
    /// Whether a workload's engine may give way to a faster one.
    pub policy: EnginePolicy,
    /// What was chosen so far.
    pub choice_cache: ChoiceCache,
    /// Whether latencies are recorded.
    pub recording: Recording,
}

/// Blocks are counted in 32 bits by `io_uring`, and no device takes as much at once.
const MAX_BLOCK_BYTES: u64 = 1 << 30;

/// I/Os in flight per stream; the kernel's own limit for a ring.
const MAX_DEPTH: u32 = 32_768;

/// Streams, each a thread.
const MAX_STREAMS: u32 = 4_096;

impl Engine for RealEngine {
    fn open<'a>(&'a mut self, job: &Job<'a>) -> Result<Box<dyn Session + 'a>, EngineError> {
        let workload = job.workload;
        validate(workload)?;
        let mut targets = Vec::new();
        let used = workload.targets.len().min(workload.streams as usize);
        for &index in &workload.targets[..used] {
            let claim: &Claim = job
                .claims
                .get(index as usize)
                .ok_or(EngineError::NoClaim { index, claims: job.claims.len() })?;
            check_span(workload, claim)?;
            let fd = claim.open(mode_of(workload))?;
            advise(workload, &fd);
            targets.push(OpenTarget { index, claim, fd: Some(fd) });
        }
        // Offsets are made once here, so that a span without room is refused before anything is prepared.
        for stream in 0..workload.streams {
            Offsets::new(workload, job.visit, stream)?;
        }
        let engine_choice = self.engine_choice(job)?;
        Ok(Box::new(RealSession::new(self.clone(), engine_choice, job, targets)))
    }
}

impl RealEngine {
    /// The engine of a visit: the workload's or what takes its place.
    fn engine_choice(&mut self, job: &Job<'_>) -> Result<EngineChoice, EngineError> {
        let workload = job.workload;
        let ring_source = self.ring_source;
        let known = &mut self.choice_cache.ring;
        let ring = || known.get_or_insert_with(|| engine_choice::ring_available(ring_source)).clone();
        let (contexts, aio_source) = (&self.contexts, self.aio_source);
        let available =
            Available::of(workload, ring, |depth| engine_choice::aio_available(contexts, aio_source, depth));
        let first = engine_choice::initial(workload, &available);
        if !self.wants_trial(&first, job) {
            return Ok(first);
        }
        let key = (
            workload.targets.first().copied(),
            workload.block_bytes,
            workload.offset_bytes,
            workload.span_bytes,
            workload.queue_depth,
        );
        if let Some((_, engine_choice)) = self.choice_cache.choices.iter().find(|(known, _)| *known == key) {
            return Ok(engine_choice.clone());
        }
        let trials = engine_trial::trials(self, job)?;
        let engine = engine_choice::fastest(&trials).unwrap_or(first.engine);
        let why = (engine != workload.engine).then(|| engine_choice::why_chosen(engine, trials.len()));
        let engine_choice = EngineChoice { engine, issuing: Issuing { why, trials, within_submit: None } };
        self.choice_cache.choices.push((key, engine_choice.clone()));
        Ok(engine_choice)
    }

    /// Whether rings go through worker threads on every target, and another engine may be faster.
    fn wants_trial(&self, first: &EngineChoice, job: &Job<'_>) -> bool {
        let workload = job.workload;
        let waits = |&index: &u32| {
            let claim = job.claims.get(index as usize);
            claim.is_some_and(|claim| claim.target.nowait == Some(false))
        };
        self.policy == EnginePolicy::Fastest
            && first.engine == EngineKind::Uring
            && workload.path == IoPath::Direct
            && workload.queue_depth > 1
            && workload.targets.iter().all(waits)
    }
}

fn mode_of(workload: &Workload) -> OpenMode {
    let access = match workload.op {
        Op::Read => Access::Read,
        Op::Write => Access::Write,
    };
    OpenMode { access, path: workload.path, sync: workload.sync }
}

/// Random reads of a cold file must not fetch the pages of other I/Os: the kernel reads ahead where it finds neighbours
/// cached, which every random cycle leads to.
fn advise(workload: &Workload, fd: &std::os::fd::OwnedFd) {
    let random = workload.pattern == rdsk_model::Pattern::Random;
    if random && workload.path == IoPath::Buffered && workload.cache == CacheState::Cold {
        // A target that takes no advice has no read-ahead to fear; the check of the cache shows what happened.
        let _ = rustix::fs::fadvise(fd, 0, None, rustix::fs::Advice::Random);
    }
}

/// The span lies inside the target.
pub(crate) fn check_span(workload: &Workload, claim: &Claim) -> Result<(), EngineError> {
    let size_bytes = claim.size_bytes();
    if workload.offset_bytes.saturating_add(workload.span_bytes) <= size_bytes {
        return Ok(());
    }
    Err(EngineError::Workload {
        why: format!(
            "{} bytes from offset {} reach beyond the {size_bytes} bytes of {}",
            workload.span_bytes, workload.offset_bytes, claim.target.name
        ),
    })
}

fn validate(workload: &Workload) -> Result<(), EngineError> {
    if workload.engine == EngineKind::Sim {
        return Err(EngineError::Workload { why: "the real engines do not simulate".into() });
    }
    if workload.engine != EngineKind::Sync && workload.points.is_some() {
        return Err(EngineError::Workload { why: "chosen places need the sync engine".into() });
    }
    validate_shape(workload)
}

/// What no engine can do.
pub(crate) fn validate_shape(workload: &Workload) -> Result<(), EngineError> {
    let invalid = |why: String| Err(EngineError::Workload { why });
    if workload.streams == 0 || workload.streams > MAX_STREAMS {
        return invalid(format!("{} streams; 1 to {MAX_STREAMS} are possible", workload.streams));
    }
    if workload.queue_depth == 0 || workload.queue_depth > MAX_DEPTH {
        return invalid(format!("a queue depth of {}; 1 to {MAX_DEPTH} are possible", workload.queue_depth));
    }
    if workload.engine == EngineKind::Sync && workload.queue_depth > 1 {
        return invalid(format!(
            "the sync engine has one I/O in flight per stream, not {}",
            workload.queue_depth
        ));
    }
    if workload.block_bytes > MAX_BLOCK_BYTES {
        return invalid(format!("blocks of {} bytes; {MAX_BLOCK_BYTES} are possible", workload.block_bytes));
    }
    if workload.op == Op::Read && workload.sync == Sync::FsyncAtEnd {
        return invalid("a read leaves nothing to synchronise".into());
    }
    positions::check(workload)
}

/// What one stream has to do in a job.
pub(crate) fn stream_spec<'a>(
    job: &Job<'a>,
    stream: u32,
    targets: &[(u32, &Claim, BorrowedFd<'a>)],
) -> Result<StreamSpec<'a>, EngineError> {
    let workload = job.workload;
    let placement = placement_of(workload, stream)?;
    let (target, claim, fd) = targets[placement.target_position];
    let offsets = Offsets::new(workload, job.visit, stream)?;
    let (mut full_ops, mut tail_bytes) = share_of(job, stream)?;
    if ends_with_cycle(workload) && full_ops >= offsets.cycle() {
        (full_ops, tail_bytes) = (offsets.cycle(), 0);
    }
    let check = (job.cache_check == crate::job::CacheCheck::EachRange && workload.cache != CacheState::Any)
        .then_some(workload.cache);
    let align = claim
        .target
        .direct_align_bytes
        .or_else(|| claim.target.device.as_ref().and_then(|device| device.logical_block_bytes));
    Ok(StreamSpec {
        stream,
        target,
        fd,
        op: workload.op,
        offsets,
        positions: PositionSource::of(job),
        full_ops,
        tail_bytes: usize::try_from(tail_bytes).expect("shorter than a block"),
        block_bytes: usize::try_from(workload.block_bytes).expect("at most 1 GiB"),
        depth: workload.queue_depth as usize,
        check,
        seed: workload.seed,
        visit: job.visit,
        issue: if claim.target.nowait == Some(false) { Issue::Workers } else { Issue::Inline },
        direct_align_bytes: (workload.path == IoPath::Direct).then(|| align.unwrap_or(512)),
    })
}

/// Whole blocks of a stream, and the length of a last, shorter one. Streams get equal shares, and where every target has
/// as many streams, equal shares of its target's share, so that a pass over the span fits the parts exactly.
pub(crate) fn share_of(job: &Job<'_>, stream: u32) -> Result<(u64, u64), EngineError> {
    let workload = job.workload;
    let by_bytes = job.limits.max_bytes.map(|bytes| bytes / workload.block_bytes);
    let total = match (by_bytes, job.limits.max_ops) {
        (Some(blocks), Some(ops)) => blocks.min(ops),
        (Some(blocks), None) => blocks,
        (None, Some(ops)) => ops,
        (None, None) => return Ok((u64::MAX, 0)),
    };
    let streams = u64::from(workload.streams);
    let part = |total: u64, part: u64, parts: u64| share(total, part + 1, parts) - share(total, part, parts);
    let placement = placement_of(workload, stream)?;
    let targets = u64::try_from(workload.targets.len()).unwrap_or(u64::MAX).min(streams);
    let full = if streams.is_multiple_of(targets) {
        let position = u64::try_from(placement.target_position).unwrap_or(u64::MAX);
        part(part(total, position, targets), placement.part, placement.parts)
    } else {
        part(total, u64::from(stream), streams)
    };
    let rest = job.limits.max_bytes.map_or(0, |bytes| bytes % workload.block_bytes);
    let rest_allowed = by_bytes.is_some_and(|blocks| job.limits.max_ops.is_none_or(|ops| ops > blocks));
    let is_last = u64::from(stream) + 1 == streams;
    Ok((full, if is_last && rest_allowed { rest } else { 0 }))
}
