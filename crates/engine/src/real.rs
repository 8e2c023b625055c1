//! The engine of real targets: checks a job, opens each of its targets once, chooses the engine that issues, and creates
//! the session. It issues nothing itself.

use crate::aio::Contexts;
use crate::clock::MonotonicClock;
use crate::content::{Stretch, look_at_device};
use crate::counters::window_width_ns;
use crate::engine_choice::{self, Available, EngineChoice, EnginePolicy, Reason};
use crate::engine_trial::{self, MAX_WRITTEN_BLOCK_BYTES};
use crate::error::{EngineError, Unavailable};
use crate::job::{Engine, Job, Prepared, Run, Session};
use crate::load::{self, RequestSource};
use crate::offsets::Offsets;
use crate::open_target::OpenTarget;
use crate::places::AllPlaces;
use crate::prepare::SpanOnly;
use crate::random::mix;
use crate::ring::{QueueSource, WaitBatch};
use crate::session::RealSession;
use crate::stream::RunConfig;
use crate::stream_spec::LoadSpec;
use crate::thread_pool;
use crate::validate::{check_shape, used_targets};
use crate::watchdog::Watchdog;
use rdsk_model::{
    CacheState, EngineKind, IoPath, Issuing, LoadJob, Op, Pattern, ReadContent, Requests, StreamResult, Sync,
    Target, Workload,
};
use rdsk_targets::{Access, Claim, OpenMode};
use rustix::fs::Advice;
use std::os::fd::BorrowedFd;

/// What probes, trials and attempts to empty the cache found, so that each runs once.
#[derive(Clone, Debug, Default)]
pub struct ChoiceCache {
    /// Whether rings are available; `None` before the probe.
    ring: Option<Result<(), Unavailable>>,
    choices: Vec<(TrialKey, EngineChoice)>,
    span_only: SpanOnly,
}

/// What workloads share a trial by: what it does and how that is made durable; first target, block size, offset, span, depth, and the
/// share of reads in a mix.
type TrialKey = (Op, Sync, Option<u32>, u64, u64, u64, u32, Option<u32>);

/// The engine of real targets, in real time.
#[derive(Clone, Debug, Default)]
pub struct RealEngine {
    /// Its clock.
    pub clock: MonotonicClock,
    /// Completions per wait on a ring or an AIO context.
    pub wait_batch: WaitBatch,
    /// Where rings come from.
    pub ring_source: QueueSource,
    /// Where AIO contexts come from.
    pub aio_source: QueueSource,
    /// Idle AIO contexts.
    pub contexts: Contexts,
    /// Whether a faster engine may replace the workload's.
    pub policy: EnginePolicy,
    /// Results of probes and trials so far.
    pub choice_cache: ChoiceCache,
    /// Which places of the targets it has accessed.
    pub places: AllPlaces,
    /// Notices when this process does not run.
    pub watchdog: Watchdog,
}

impl Engine for RealEngine {
    fn open<'a>(&'a mut self, job: &Job<'a>) -> Result<Box<dyn Session + 'a>, EngineError> {
        let workload = job.workload;
        check_workload(workload)?;
        self.watchdog.start().map_err(|source| EngineError::Thread { stream: 0, source })?;
        let mut targets = Vec::new();
        let used = used_targets(job)?;
        for job_of_load in &workload.jobs {
            let &(index, claim) =
                used.first().ok_or_else(|| EngineError::Workload("it names no target".into()))?;
            if let Some(why) = load::why_not(job_of_load, &claim.target) {
                return Err(EngineError::Workload(format!("job {} trims: {why}", job_of_load.name)));
            }
            let target = OpenTarget::open(index, claim, open_mode_of(job_of_load), &self.watchdog)?;
            advise_of(job_of_load, target.fd());
            targets.push(target);
        }
        for (index, claim) in used.into_iter().filter(|_| workload.jobs.is_empty()) {
            let mut target = OpenTarget::open(index, claim, open_mode(workload), &self.watchdog)?;
            // All of a file that rdsk has made was written when it was made.
            if !claim.target.made_by_rdsk {
                target.places = self.places.of_visit(index, claim.target.size_bytes, workload);
            }
            advise(workload, target.fd());
            targets.push(target);
        }
        // Offsets are created once here, so that a span without room is refused before anything is prepared.
        for stream in 0..workload.streams {
            if let Some(LoadSpec { job: load, stream_of_job, .. }) = LoadSpec::of(&workload.jobs, stream) {
                RequestSource::new(load, workload.seed, job.visit, stream_of_job)?;
                continue;
            }
            Offsets::new(workload, job.visit, stream, rdsk_sys::cache::page_size())?;
        }
        let EngineChoice { engine, issuing } = self.choose(job, &targets)?;
        Ok(Box::new(RealSession {
            config: self.config(engine, job),
            issuing,
            job: job.clone(),
            targets,
            prepared: Prepared::default(),
            unallocated: None,
            span_only: &mut self.choice_cache.span_only,
            begin_ns: None,
            returned_ns: 0,
        }))
    }

    fn look_at(
        &mut self,
        job: &Job<'_>,
        run: &Run,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<ReadContent> {
        let workload = job.workload;
        if workload.op != Op::Read || run.bytes == 0 {
            return None;
        }
        let targets = used_targets(job).ok()?;
        let mode = OpenMode { path: IoPath::Direct, ..OpenMode::READ };
        let seed = mix(workload.seed, u64::from(job.visit));
        let mut look = |(index, claim): (u32, &Claim)| {
            let stretches = looked_at(job, run, index);
            look_at_device(&claim.target, &stretches, seed, goes_on, || claim.open(mode))
        };
        // Some of the targets alone do not stand for all.
        let contents: Vec<ReadContent> = targets.into_iter().map(&mut look).collect::<Option<_>>()?;
        contents.into_iter().reduce(ReadContent::plus)
    }
}

/// Where to look at a target of a visit: what each stream of a sequence has gone through there, or all.
fn looked_at(job: &Job<'_>, run: &Run, target: u32) -> Vec<Stretch> {
    let workload = job.workload;
    let whole_span = || vec![Stretch::whole(workload.offset_bytes, workload.span_bytes)];
    if workload.pattern != Pattern::Sequential {
        return whole_span();
    }
    let streams = run.streams.iter().filter(|stream| stream.target == target && stream.bytes > 0);
    let gone_through = |stream: &StreamResult| {
        let offsets = Offsets::new(workload, job.visit, stream.index, rdsk_sys::cache::page_size()).ok()?;
        match offsets.beginning_at(job.begin_bytes) {
            Offsets::Sequential(sequence) => Some(sequence.stretch(stream.bytes)),
            Offsets::Uniform(_) | Offsets::Permuted(_) => None,
        }
    };
    streams.map(gone_through).collect::<Option<_>>().unwrap_or_else(whole_span)
}

impl RealEngine {
    /// The engine of a visit: the workload's or its replacement.
    fn choose(&mut self, job: &Job<'_>, targets: &[OpenTarget<'_>]) -> Result<EngineChoice, EngineError> {
        let workload = job.workload;
        let ring_source = self.ring_source;
        let ring_choice = &mut self.choice_cache.ring;
        let ring = || ring_choice.get_or_insert_with(|| engine_choice::ring_available(ring_source)).clone();
        let (contexts, aio_source) = (&self.contexts, self.aio_source);
        let available = Available::probe(workload, ring, |depth| {
            engine_choice::aio_available(contexts, aio_source, depth)
        });
        let mut first = engine_choice::initial(workload, &available);
        if first.engine != EngineKind::Sync && workload.jobs.iter().any(LoadJob::has_trims) {
            first.engine = EngineKind::Threads;
            first.issuing.why = Some(engine_choice::WHY_NOT_QUEUED.to_owned());
        }
        let Some(reason) = self.reason_to_try(&first, job) else { return Ok(first) };
        let key = (
            workload.op,
            workload.sync,
            workload.targets.first().copied(),
            workload.block_bytes,
            workload.offset_bytes,
            workload.span_bytes,
            workload.queue_depth,
            mix_of(workload).map(|mix| mix.read_percent),
        );
        if let Some((_, choice)) = self.choice_cache.choices.iter().find(|(chosen_for, _)| *chosen_for == key)
        {
            return Ok(choice.clone());
        }
        let mut trials = engine_trial::trials(job, targets, reason, |engine, job| self.config(engine, job))?;
        // The trial was of the first job only.
        let needs_queue = |load: &LoadJob| load.queue_depth > 1 && !load.may_be_shared_by_threads();
        if workload.jobs.iter().any(needs_queue) {
            trials.best.retain(|trial| trial.engine != EngineKind::Threads);
        }
        let fastest = match reason {
            Reason::BusyProcessor => engine_choice::fastest_beside_ring(&trials.best),
            Reason::NoNowait | Reason::OneAtATime => engine_choice::fastest(&trials.best),
        };
        let choice = match fastest {
            None => first,
            Some(engine) => {
                let why =
                    (engine != workload.engine).then(|| engine_choice::why_chosen(engine, reason, &trials));
                EngineChoice { engine, issuing: Issuing { why, trials: trials.best, within_submit: None } }
            }
        };
        self.choice_cache.choices.push((key, choice.clone()));
        Ok(choice)
    }

    /// How this engine issues the I/O of a job as `engine`.
    fn config(&self, engine: EngineKind, job: &Job<'_>) -> RunConfig {
        let workload = job.workload;
        RunConfig {
            engine,
            path: workload.path,
            pool_threads: thread_pool::size(workload.queue_depth as usize, workload.streams as usize),
            ring_source: self.ring_source,
            aio_source: self.aio_source,
            contexts: self.contexts.clone(),
            wait_batch: self.wait_batch,
            window_ns: window_width_ns(job.window_ns, job.limits.max_elapsed_ns),
            max_elapsed_ns: job.limits.max_elapsed_ns,
            stagger_ns: workload.stagger_ns,
        }
    }

    /// Why `io_uring` may be slower than another engine on every target, where a trial is small enough.
    fn reason_to_try(&self, first: &EngineChoice, job: &Job<'_>) -> Option<Reason> {
        let workload = job.workload;
        let slow_ring = |&index: &u32| {
            let claim = job.claims.get(index as usize)?;
            why_ring_may_be_slow(&claim.target, workload.op)
        };
        let is_small = workload.op == Op::Read || workload.block_bytes <= MAX_WRITTEN_BLOCK_BYTES;
        let is_of_use = self.policy == EnginePolicy::Fastest
            && first.engine == EngineKind::Uring
            && workload.path == IoPath::Direct
            && workload.queue_depth > 1
            && is_small
            // Of jobs that end with their bytes, a trial would move some of them twice.
            && workload.jobs.iter().all(|load| load.max_bytes.is_none());
        let reasons: Option<Vec<Reason>> = workload.targets.iter().map(slow_ring).collect();
        let of_mix = || mix_of(workload).map(|_| Reason::BusyProcessor);
        reasons.and_then(|reasons| reasons.first().copied()).or_else(of_mix).filter(|_| is_of_use)
    }
}

/// Why `io_uring` works through threads here, or its threads may write one I/O at a time. What was seen of reads says nothing of
/// writes: a filesystem that copies what is overwritten refuses each that must not wait.
fn why_ring_may_be_slow(target: &Target, op: Op) -> Option<Reason> {
    if target.nowait == Some(false) {
        return Some(Reason::NoNowait);
    }
    (op == Op::Write && target.may_be_written_one_at_a_time()).then_some(Reason::OneAtATime)
}

/// The one job of a load that is a closed loop of reads and writes in one stream.
fn mix_of(workload: &Workload) -> Option<&LoadJob> {
    let [job] = &workload.jobs[..] else { return None };
    let is_mix = job.reads.is_some() && job.writes.is_some() && job.streams == 1;
    (is_mix && job.keeps_its_depth()).then_some(job)
}

fn open_mode(workload: &Workload) -> OpenMode {
    let access = match workload.op {
        Op::Read => Access::Read,
        Op::Write => Access::Write,
    };
    OpenMode { access, path: workload.path, sync: workload.sync }
}

fn open_mode_of(load: &LoadJob) -> OpenMode {
    let access = if load.changes_data() { Access::Write } else { Access::Read };
    let sync = if load.dsync { Sync::Dsync } else { Sync::None };
    OpenMode { access, path: load.path, sync }
}

/// Random reads of a cold file must not fetch the pages of other I/Os: the kernel reads ahead if it finds neighbouring
/// pages cached, which happens in every random cycle.
fn advise(workload: &Workload, fd: BorrowedFd<'_>) {
    let random = workload.pattern == Pattern::Random;
    if random && workload.path.uses_page_cache() && workload.cache == CacheState::Cold {
        // A target that rejects the advice has no read-ahead; the check of the cache shows the effect.
        let _ = rustix::fs::fadvise(fd, 0, None, Advice::Random);
    }
}

/// Gives the kernel the order of a job's requests, where it asks for that.
fn advise_of(load: &LoadJob, fd: BorrowedFd<'_>) {
    if !load.advised || !load.path.uses_page_cache() {
        return;
    }
    let mut sides = load.reads.iter().chain(&load.writes);
    let is_sequence = sides.all(Requests::is_in_order);
    let advice = if is_sequence { Advice::Sequential } else { Advice::Random };
    // A target that rejects the advice has no read-ahead.
    let _ = rustix::fs::fadvise(fd, 0, None, advice);
}

fn check_workload(workload: &Workload) -> Result<(), EngineError> {
    if workload.engine == EngineKind::Sim {
        return Err(EngineError::Workload("a real target cannot use the simulated engine".into()));
    }
    if workload.engine != EngineKind::Sync && workload.points.is_some() {
        return Err(EngineError::Workload("chosen positions need the sync engine".into()));
    }
    check_shape(workload)
}
