//! The runner against a scripted disk in virtual time: order of visits, budget, stopping, failures.

use rdsk_engine::{
    Control, Ended, Engine, EngineError, Flow, Job, Prepared, Progress, Run, Session, Settled,
};
use rdsk_experiment::{Outcome, Runner};
use rdsk_model::{
    CacheState, Cell, Clock, ColdCheck, CpuTime, EngineKind, Experiment, Extent, IoError, IoPath, Op,
    PageCacheState, Plan, ProblemKind, Silent, StopFlag, StopReason, StreamResult, Workload,
};
use rdsk_observe::{Observer, VisitEvidence};
use rdsk_stats::Histogram;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SECOND: u64 = 1_000_000_000;

/// Virtual time, shared by engine and runner.
#[derive(Clone, Default)]
struct Hands(Arc<AtomicU64>);

impl Hands {
    fn pass(&self, ns: u64) {
        self.0.fetch_add(ns, Ordering::Relaxed);
    }
}

impl Clock for Hands {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn sleep_until_ns(&self, at_ns: u64, _stop: &StopFlag) {
        self.0.fetch_max(at_ns, Ordering::Relaxed);
    }
}

/// A disk of constant rate; buffered writes return at memory's rate and cost the disk's at the flush.
struct Scripted {
    clock: Hands,
    bytes_per_s: f64,
    memory_bytes_per_s: f64,
    /// Errno by cell offset 0 or by path.
    fail: Option<fn(&Workload) -> Option<i32>>,
    /// Raised after this many visits.
    raise_after: Option<(usize, StopFlag)>,
    /// The block sizes of the visits, in order: each test gives every cell its own size.
    log: Rc<RefCell<Vec<u64>>>,
}

struct Visit<'a> {
    disk: &'a mut Scripted,
    workload: Workload,
    limits: rdsk_engine::Limits,
    window_ns: u64,
    bytes: u64,
}

impl Engine for Scripted {
    fn clock(&self) -> &dyn Clock {
        &self.clock
    }
    fn open<'a>(&'a mut self, job: &Job<'a>) -> Result<Box<dyn Session + 'a>, EngineError> {
        self.log.borrow_mut().push(job.workload.block_bytes);
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
}

impl Session for Visit<'_> {
    fn prepare(&mut self) -> Result<Prepared, EngineError> {
        self.disk.clock.pass(1_000_000);
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
            ops += 1;
            elapsed_ns += io_ns;
            histogram.record(io_ns);
            let window = usize::try_from(elapsed_ns / self.window_ns).expect("a test has few windows");
            let full = windows.len().saturating_sub(1);
            if windows.len() <= window {
                windows.resize(window + 1, 0);
            }
            windows[window] += workload.block_bytes;
            if window > full {
                let progress = Progress {
                    elapsed_ns,
                    windows: &windows[..window],
                    window_ns: self.window_ns,
                    bytes: ops * workload.block_bytes,
                    ops,
                };
                if control.window(&progress) == Flow::Stop {
                    break Ended::Stopped;
                }
            }
        };
        self.disk.clock.pass(elapsed_ns);
        self.bytes = ops * workload.block_bytes;
        let streams =
            vec![StreamResult { bytes: self.bytes, ops, end_ns: elapsed_ns, ..StreamResult::default() }];
        Ok(Run {
            ended,
            elapsed_ns,
            bytes: self.bytes,
            asked_bytes: self.bytes,
            ops,
            latency_sum_ns: u128::from(ops * io_ns),
            to_return_ns: elapsed_ns,
            histogram,
            windows,
            window_ns: self.window_ns,
            streams,
            errors: errno.map(failed).into_iter().collect(),
            ..nothing(workload.engine)
        })
    }

    fn settle(self: Box<Self>) -> Result<Settled, EngineError> {
        if self.workload.op == Op::Read {
            return Ok(Settled::default());
        }
        let flush_ns = time_ns(self.bytes, self.disk.bytes_per_s);
        self.disk.clock.pass(flush_ns);
        Ok(Settled { to_close_ns: Some(flush_ns), to_stable_ns: Some(flush_ns) })
    }
}

fn failed(errno: i32) -> IoError {
    let message = std::io::Error::from_raw_os_error(errno).to_string();
    IoError { target: 0, offset_bytes: 27, errno, message }
}

/// A visit in which nothing happened.
fn nothing(engine: EngineKind) -> Run {
    Run {
        ended: Ended::Complete,
        elapsed_ns: 0,
        to_return_ns: 0,
        asked_bytes: 0,
        bytes: 0,
        ops: 0,
        histogram: Histogram::new(),
        latency_sum_ns: 0,
        windows: Vec::new(),
        window_ns: 1,
        streams: Vec::new(),
        errors: Vec::new(),
        cpu: CpuTime::default(),
        page_cache: PageCacheState::default(),
        check: ColdCheck::default(),
        interrupted_calls: 0,
        engine,
        notes: Vec::new(),
    }
}

/// The time that bytes take at a rate.
#[allow(clippy::cast_possible_truncation, reason = "times of a test stay far below 2^53 ns")]
fn time_ns(bytes: u64, bytes_per_s: f64) -> u64 {
    (bytes as f64 / bytes_per_s * 1e9) as u64
}

struct Blind;

impl Observer for Blind {
    fn begin(&mut self) {}
    fn end_io(&mut self) {}
    fn end(&mut self) -> VisitEvidence {
        VisitEvidence {
            rung: rdsk_model::Rung::None,
            devices: Vec::new(),
            process: rdsk_model::ProcessIo::default(),
            limits: Vec::new(),
        }
    }
    fn describe(&self) -> rdsk_model::Observer {
        rdsk_model::Observer {
            rung: rdsk_model::Rung::None,
            why_not_higher: None,
            lost_events: 0,
            cost_ns_per_io: None,
        }
    }
}

fn cell(block_bytes: u64, extent: Extent) -> Cell {
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

fn plan(cells: Vec<Cell>, budget_ns: u64) -> Plan {
    Plan { cells, budget_ns, runtime_ns: None, precision: 0.02, rounds: 2 }
}

struct Seen {
    outcome: Outcome,
    visits: Vec<u64>,
    elapsed_ns: u64,
}

fn run(plan: &Plan, bytes_per_s: f64, shape: impl FnOnce(&mut Scripted, &StopFlag)) -> Seen {
    let clock = Hands::default();
    let log = Rc::new(RefCell::new(Vec::new()));
    let stop = StopFlag::new();
    let mut disk = Scripted {
        clock: clock.clone(),
        bytes_per_s,
        memory_bytes_per_s: 4e9,
        fail: None,
        raise_after: None,
        log: Rc::clone(&log),
    };
    shape(&mut disk, &stop);
    let runner = Runner {
        plan,
        targets: &[],
        claims: &[],
        engine: &mut disk,
        clock: &clock,
        observer: &|_| Box::new(Blind),
        cpu_count: Some(1),
        pin_cpus: &[],
        watch: &mut Silent,
        stop: &stop,
    };
    let outcome = runner.run();
    let visits = log.borrow().clone();
    Seen { outcome, visits, elapsed_ns: clock.now_ns() }
}

#[test]
fn visits_go_there_and_back() {
    let cells = vec![cell(4096, Extent::Timed), cell(8192, Extent::Timed), cell(16384, Extent::Timed)];
    let seen = run(&plan(cells, 6 * SECOND), 1e8, |_, _| ());
    assert_eq!(seen.visits, [4096, 8192, 16384, 16384, 8192, 4096]);
}

#[test]
fn a_steady_disk_is_known_long_before_the_time_is_up() {
    let seen = run(&plan(vec![cell(1 << 16, Extent::Timed)], 60 * SECOND), 1e8, |_, _| ());
    let result = &seen.outcome.cells[0].result;
    assert_eq!(result.stop, StopReason::Precision, "{}", result.why);
    assert!(seen.elapsed_ns < 10 * SECOND, "took {} ns", seen.elapsed_ns);
    let rate = result.bytes_per_s.unwrap();
    assert!((rate.mean / 1e8 - 1.0).abs() < 0.001, "{rate:?}");
    assert!(rate.low.unwrap() <= 1e8 && rate.high.unwrap() >= 1e8, "{rate:?}");
}

#[test]
fn every_cell_gets_something_within_the_budget_whatever_the_disk() {
    for bytes_per_s in [1e6, 3e7, 1e9] {
        let mut cells: Vec<Cell> = (0..6).map(|n| cell(4096 << n, Extent::Timed)).collect();
        for (index, cell) in cells.iter_mut().enumerate() {
            cell.workload.op = if index % 2 == 0 { Op::Write } else { Op::Read };
            cell.workload.path = if index < 4 { IoPath::Buffered } else { IoPath::Direct };
        }
        let budget_ns = 12 * SECOND;
        let seen = run(&plan(cells, budget_ns), bytes_per_s, |_, _| ());
        for cell in &seen.outcome.cells {
            assert!(cell.result.ops.unwrap() > 0, "{} at {bytes_per_s}", cell.id);
        }
        let used = seen.elapsed_ns as f64 / budget_ns as f64;
        assert!(used < 1.5, "a disk of {bytes_per_s} B/s took {used} of the budget");
    }
}

#[test]
fn a_runtime_is_each_cells_own() {
    // A disk that is noisy to no end, so that no precision ends a cell early; the first cell overruns, the others do not pay.
    let mut cells = vec![cell(1 << 30, Extent::Timed), cell(4096, Extent::Timed), cell(8192, Extent::Timed)];
    cells.iter_mut().for_each(|cell| cell.weight = 1.0);
    let mut plan = plan(cells, 6 * SECOND);
    plan.runtime_ns = Some(2 * SECOND);
    plan.precision = 1e-12;
    let seen = run(&plan, 3e8, |_, _| ());
    for cell in &seen.outcome.cells[1..] {
        let elapsed_ns = cell.result.elapsed_ns.unwrap();
        assert!(elapsed_ns.abs_diff(2 * SECOND) < SECOND / 10, "{}: {elapsed_ns} ns", cell.id);
    }
}

#[test]
fn a_pass_is_complete_or_says_that_it_is_not() {
    let bytes = 64 << 20;
    let passes = |bytes_per_s| {
        let seen =
            run(&plan(vec![cell(1 << 20, Extent::Pass { bytes })], 10 * SECOND), bytes_per_s, |_, _| ());
        seen.outcome.cells[0].result.clone()
    };
    let quick = passes(1e9);
    assert_eq!((quick.stop, quick.bytes), (StopReason::Complete, Some(2 * bytes)));
    let slow = passes(1e6);
    assert_eq!(slow.stop, StopReason::Budget, "{}", slow.why);
    assert!(slow.bytes.unwrap() < bytes);
}

#[test]
fn passes_are_repeated_until_their_mean_is_known() {
    let bytes = 64 << 20;
    let passes = |bytes_per_s| {
        let seen =
            run(&plan(vec![cell(1 << 20, Extent::Passes { bytes })], 20 * SECOND), bytes_per_s, |_, _| ());
        (seen.outcome.cells[0].result.clone(), seen.elapsed_ns)
    };
    let (quick, elapsed_ns) = passes(1e9);
    assert_eq!(quick.stop, StopReason::Precision, "{}", quick.why);
    assert!(quick.visits.len() >= 8 && quick.visits.iter().all(|visit| visit.bytes == bytes));
    assert!(elapsed_ns < 10 * SECOND);
    let (slow, elapsed_ns) = passes(1.2e7);
    assert_eq!(slow.visits.len(), 3, "three passes of 5.6 s fit into 20 s, a fourth does not");
    assert!(slow.visits.iter().all(|visit| visit.bytes == bytes) && elapsed_ns < 20 * SECOND);
}

#[test]
fn samples_are_visited_until_their_mean_is_known() {
    let mut samples = cell(512, Extent::Samples { first_ops: 32 });
    samples.workload.cache = CacheState::Cold;
    let seen = run(&plan(vec![samples], 10 * SECOND), 1e6, |_, _| ());
    let result = &seen.outcome.cells[0].result;
    assert_eq!(result.stop, StopReason::Precision, "{}", result.why);
    assert!(result.visits.len() >= 8, "{} visits", result.visits.len());
}

#[test]
fn a_dead_disk_is_given_up_after_three_cells() {
    let cells = (0..6).map(|n| cell(4096 << n, Extent::Timed)).collect();
    let seen = run(&plan(cells, 6 * SECOND), 1e8, |disk, _| disk.fail = Some(|_| Some(5)));
    assert_eq!(seen.visits.len(), 3);
    assert!(seen.outcome.cells.iter().all(|cell| cell.result.stop == StopReason::Error));
    let problem = seen.outcome.problem.unwrap();
    assert_eq!(problem.kind, ProblemKind::Io);
    assert!(problem.message.contains("cell/4096"), "{}", problem.message);
}

#[test]
fn one_failing_cell_does_not_stop_the_others() {
    let cells = vec![cell(4096, Extent::Timed), cell(8192, Extent::Timed)];
    let seen = run(&plan(cells, 6 * SECOND), 1e8, |disk, _| {
        disk.fail = Some(|workload| (workload.block_bytes == 4096).then_some(5));
    });
    assert_eq!(seen.visits, [4096, 8192, 8192], "a cell that failed is not visited again");
    assert_eq!(seen.outcome.cells[0].result.stop, StopReason::Error);
    assert!(seen.outcome.cells[1].result.bytes.unwrap() > 0);
}

#[test]
fn direct_io_that_the_kernel_refuses_is_not_applicable() {
    let seen =
        run(&plan(vec![cell(27, Extent::Timed)], SECOND), 1e8, |disk, _| disk.fail = Some(|_| Some(22)));
    let cell = &seen.outcome.cells[0];
    assert_eq!(cell.result.stop, StopReason::NotApplicable);
    assert!(cell.result.why.contains("EINVAL"), "{}", cell.result.why);
    assert!(seen.outcome.problem.is_none() && cell.verdict.is_none() && cell.result.errors.is_empty());
}

#[test]
fn a_signal_keeps_what_was_measured() {
    let cells = vec![cell(4096, Extent::Timed), cell(8192, Extent::Timed), cell(16384, Extent::Timed)];
    let seen = run(&plan(cells, 6 * SECOND), 1e8, |disk, stop| disk.raise_after = Some((1, stop.clone())));
    assert!(seen.outcome.interrupted);
    assert_eq!(seen.outcome.cells.len(), 3);
    assert!(seen.outcome.cells[0].result.bytes.unwrap() > 0);
    assert_eq!(seen.outcome.cells[2].result.stop, StopReason::Interrupted);
    assert_eq!(seen.outcome.cells[2].result.bytes, None, "what was not measured is null, never 0");
    assert!(seen.outcome.cells.iter().all(|cell| cell.verdict.is_some()));
}
