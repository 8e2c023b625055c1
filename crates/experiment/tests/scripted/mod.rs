//! A scripted disk of constant rate in virtual time, and a run of the runner over it.

use rdsk_engine::{
    Control, Ended, Engine, EngineError, Flow, Job, PAGES_LOOKED_AT, Prepared, Progress, Run, Session,
    Settled, WarmUp,
};
use rdsk_experiment::{RunOutcome, Runner};
use rdsk_model::{
    Cell, CellRecord, Clock, Event, Experiment, Extent, IoError, IoPath, Op, PageCacheState, Plan,
    ReadContent, StopFlag, StreamResult, Watch, Workload,
};
use rdsk_observe::{Observer, VisitEvidence};
use rdsk_stats::Histogram;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const SECOND: u64 = 1_000_000_000;

/// Virtual time, shared by engine and runner.
#[derive(Clone, Default)]
pub(crate) struct VirtualClock(Arc<AtomicU64>);

impl VirtualClock {
    fn pass(&self, ns: u64) {
        self.0.fetch_add(ns, Ordering::Relaxed);
    }
}

impl Clock for VirtualClock {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn sleep_until_ns(&self, at_ns: u64, _stop: &StopFlag) {
        self.0.fetch_max(at_ns, Ordering::Relaxed);
    }
}

/// A disk of constant rate; buffered writes return at memory's rate and cost the disk's at the flush.
pub(crate) struct Scripted {
    pub(crate) clock: VirtualClock,
    pub(crate) bytes_per_s: f64,
    pub(crate) memory_bytes_per_s: f64,
    /// After this many I/Os of a visit each takes this long: a used-up burst.
    pub(crate) stall: Option<(u64, u64)>,
    /// Begin and end of each time in which nothing completes, in order.
    pub(crate) pauses: Vec<(u64, u64)>,
    /// Errno by cell offset 0 or by path.
    pub(crate) fail: Option<fn(&Workload) -> Option<i32>>,
    /// The time of preparing a visit.
    pub(crate) prepare_ns: u64,
    /// Extra time of a flush.
    pub(crate) hang_ns: u64,
    /// Raised after this many visits.
    pub(crate) raise_after: Option<(usize, StopFlag)>,
    /// The time that a look at each page takes; without it nothing is looked at.
    pub(crate) look_page_ns: Option<u64>,
    /// Pages that a visit leaves in its buffers; none if 0.
    pub(crate) in_buffers: u64,
    /// The block sizes of the visits, in order: each test gives every cell its own size.
    pub(crate) log: Rc<RefCell<Vec<u64>>>,
    /// The number of each visit within its cell, and where it begins.
    pub(crate) begins: Rc<RefCell<Vec<(u32, u64)>>>,
}

struct Visit<'a> {
    disk: &'a mut Scripted,
    workload: Workload,
    limits: rdsk_engine::Limits,
    window_ns: u64,
    bytes: u64,
}

impl Engine for Scripted {
    fn open<'a>(&'a mut self, job: &Job<'a>) -> Result<Box<dyn Session + 'a>, EngineError> {
        self.log.borrow_mut().push(job.workload.block_bytes);
        self.begins.borrow_mut().push((job.visit, job.begin_bytes));
        if let Some((visits, stop)) = &self.raise_after
            && self.log.borrow().len() > *visits
        {
            stop.raise();
        }
        Ok(Box::new(Visit {
            disk: self,
            workload: job.workload.clone(),
            limits: job.limits,
            window_ns: job.window_ns,
            bytes: 0,
        }))
    }

    fn look_at(
        &mut self,
        _job: &Job<'_>,
        _run: &Run,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<ReadContent> {
        let page_ns = self.look_page_ns?;
        let mut content = ReadContent::default();
        while content.pages < PAGES_LOOKED_AT && goes_on() {
            self.clock.pass(page_ns);
            content.pages += 1;
        }
        (content.pages > 0).then_some(content)
    }
}

impl Session for Visit<'_> {
    fn prepare(&mut self) -> Result<Prepared, EngineError> {
        self.disk.clock.pass(self.disk.prepare_ns);
        Ok(Prepared { page_cache: PageCacheState::default(), reached: Some(true) })
    }

    fn run(&mut self, control: &mut dyn Control) -> Result<Run, EngineError> {
        let workload = &self.workload;
        let errno = self.disk.fail.and_then(|fail| fail(workload));
        let in_memory = workload.path == IoPath::Buffered && workload.op == Op::Write;
        let rate = if in_memory { self.disk.memory_bytes_per_s } else { self.disk.bytes_per_s };
        let io_ns = time_ns(workload.block_bytes, rate).max(1);
        let (mut ops, mut elapsed_ns, mut windows) = (0_u64, 0_u64, Vec::new());
        let mut histogram = Histogram::new();
        let begin_ns = self.disk.clock.now_ns();
        let until_ns = control.warm_up_ns();
        let mut warm_up = WarmUp { until_ns, bytes: 0, ops: 0, histogram: Histogram::new() };
        let ended = loop {
            if errno.is_some() {
                break Ended::Failed;
            }
            if self.limits.max_ops.is_some_and(|most| ops >= most)
                || self.limits.max_bytes.is_some_and(|most| ops * workload.block_bytes >= most)
            {
                break Ended::Complete;
            }
            if elapsed_ns >= self.limits.max_elapsed_ns {
                break Ended::OutOfTime;
            }
            let io_ns = self.disk.stall.filter(|&(burst, _)| ops >= burst).map_or(io_ns, |(_, ns)| ns);
            let io_ns = io_ns + pause_ns(&self.disk.pauses, begin_ns + elapsed_ns, io_ns);
            ops += 1;
            elapsed_ns += io_ns;
            let is_early = elapsed_ns < until_ns;
            if is_early { &mut warm_up.histogram } else { &mut histogram }.record(io_ns);
            warm_up.ops += u64::from(is_early);
            let window = usize::try_from(elapsed_ns / self.window_ns).expect("a test has few windows");
            let full = windows.len().saturating_sub(1);
            if windows.len() <= window {
                windows.resize(window + 1, 0);
            }
            windows[window] += workload.block_bytes;
            if window > full {
                let progress = Progress { elapsed_ns, bytes: ops * workload.block_bytes, ops };
                if control.window(&progress) == Flow::Stop {
                    break Ended::Stopped;
                }
            }
        };
        self.disk.clock.pass(elapsed_ns);
        self.bytes = ops * workload.block_bytes;
        let streams = one_after_another(workload.streams, self.bytes, ops, elapsed_ns);
        Ok(Run {
            elapsed_ns,
            bytes: self.bytes,
            asked_bytes: self.bytes,
            ops,
            latency_sum_ns: u128::from(ops * io_ns),
            to_return_ns: elapsed_ns,
            histogram,
            first: None,
            warm_up: (until_ns > 0)
                .then_some(WarmUp { bytes: warm_up.ops * workload.block_bytes, ..warm_up }),
            windows,
            window_ns: self.window_ns,
            streams,
            errors: errno.map(failed).into_iter().collect(),
            content: (self.disk.in_buffers > 0)
                .then_some(ReadContent { pages: self.disk.in_buffers, zero_pages: 0 }),
            ..Run::without_io(ended, workload.engine)
        })
    }

    fn settle(self: Box<Self>) -> Result<Settled, EngineError> {
        if self.workload.op == Op::Read {
            return Ok(Settled::default());
        }
        let flush_ns = time_ns(self.bytes, self.disk.bytes_per_s) + self.disk.hang_ns;
        self.disk.clock.pass(flush_ns);
        let page_cache = Some(PageCacheState::default());
        Ok(Settled { to_close_ns: Some(flush_ns), to_stable_ns: Some(flush_ns), page_cache, away_ns: 0 })
    }
}

/// Streams of which each begins when the one before it ends.
fn one_after_another(streams: u32, bytes: u64, ops: u64, elapsed_ns: u64) -> Vec<StreamResult> {
    let count = u64::from(streams);
    let part = |index: u32| StreamResult {
        index,
        start_ns: elapsed_ns * u64::from(index) / count,
        end_ns: elapsed_ns * u64::from(index + 1) / count,
        bytes: bytes / count,
        ops: ops / count,
        ..StreamResult::default()
    };
    (0..streams).map(part).collect()
}

fn failed(errno: i32) -> IoError {
    let message = std::io::Error::from_raw_os_error(errno).to_string();
    IoError { target: 0, stream: Some(0), offset_bytes: 27, errno, message }
}

/// How much longer an I/O takes that begins at a time, because of pauses.
fn pause_ns(pauses: &[(u64, u64)], begin_ns: u64, io_ns: u64) -> u64 {
    let first = pauses.partition_point(|&(_, end_ns)| end_ns <= begin_ns);
    let mut longer_ns = 0;
    for &(from_ns, until_ns) in &pauses[first..] {
        if from_ns >= begin_ns + io_ns + longer_ns {
            break;
        }
        longer_ns += until_ns - from_ns.max(begin_ns);
    }
    longer_ns
}

/// The time that bytes take at a rate.
#[allow(clippy::cast_possible_truncation, reason = "times of a test stay far below 2^53 ns")]
fn time_ns(bytes: u64, bytes_per_s: f64) -> u64 {
    (bytes as f64 / bytes_per_s * 1e9) as u64
}

struct NoObserver;

impl Observer for NoObserver {
    fn begin(&mut self) {}
    fn end_io(&mut self) {}
    fn end(&mut self) -> VisitEvidence {
        VisitEvidence::none()
    }
    fn describe(&self) -> rdsk_model::ObserverFacts {
        rdsk_model::ObserverFacts {
            source: rdsk_model::EvidenceSource::None,
            why_not_higher: None,
            lost_events: 0,
            cost_ns_per_io: None,
        }
    }
}

pub(crate) fn cell(block_bytes: u64, extent: Extent) -> Cell {
    let workload = Workload { block_bytes, align_bytes: block_bytes, ..Workload::sequential_read(1 << 40) };
    Cell {
        id: format!("cell/{block_bytes}"),
        experiment: Experiment::Stream,
        workload,
        extent,
        weight: 1.0,
        not_applicable: None,
    }
}

pub(crate) fn plan(cells: Vec<Cell>, budget_ns: u64) -> Plan {
    Plan { cells, budget_ns, runtime_ns: None, precision: 0.02, rounds: 2, notes: Vec::new() }
}

pub(crate) struct Seen {
    pub(crate) outcome: RunOutcome,
    pub(crate) visits: Vec<u64>,
    pub(crate) begins: Vec<(u32, u64)>,
    pub(crate) elapsed_ns: u64,
    /// Events of flushes.
    pub(crate) flush_events: Vec<String>,
    /// The cell of each turn as far as it was at its end.
    pub(crate) turns: Vec<CellRecord>,
}

/// A watch that keeps the events of flushes and of turns.
#[derive(Default)]
struct Log {
    flushes: Vec<String>,
    turns: Vec<CellRecord>,
}

impl Watch for Log {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Settling { id, left_ns } => self.flushes.push(format!("{id} settles, {left_ns} ns left")),
            Event::Settled => self.flushes.push("settled".into()),
            Event::TurnEnded { position, cells } => self.turns.push(cells.get(*position)),
            _ => {}
        }
    }
}

pub(crate) fn run(plan: &Plan, bytes_per_s: f64, shape: impl FnOnce(&mut Scripted, &StopFlag)) -> Seen {
    run_after(&[], plan, bytes_per_s, shape)
}

/// A run that goes on with one of which these cells are known, none of which is finished.
pub(crate) fn run_after(
    earlier: &[CellRecord],
    plan: &Plan,
    bytes_per_s: f64,
    shape: impl FnOnce(&mut Scripted, &StopFlag),
) -> Seen {
    let clock = VirtualClock::default();
    let (log, begins) = (Rc::new(RefCell::new(Vec::new())), Rc::new(RefCell::new(Vec::new())));
    let stop = StopFlag::new();
    let mut disk = Scripted {
        clock: clock.clone(),
        bytes_per_s,
        memory_bytes_per_s: 4e9,
        stall: None,
        pauses: Vec::new(),
        fail: None,
        prepare_ns: 1_000_000,
        hang_ns: 0,
        look_page_ns: None,
        in_buffers: 0,
        raise_after: None,
        log: Rc::clone(&log),
        begins: Rc::clone(&begins),
    };
    shape(&mut disk, &stop);
    let mut events = Log::default();
    let runner = Runner {
        resumed: &[],
        earlier,
        plan,
        targets: &[],
        claims: &[],
        engine: &mut disk,
        clock: &clock,
        observer: &|_| Box::new(NoObserver),
        cpu_count: Some(1),
        pin_cpus: &[],
        watch: &mut events,
        peers: None,
        rank: None,
        stop: &stop,
    };
    let outcome = runner.run();
    let (visits, begins) = (log.borrow().clone(), begins.borrow().clone());
    let Log { flushes, turns } = events;
    Seen { outcome, visits, begins, elapsed_ns: clock.now_ns(), flush_events: flushes, turns }
}
