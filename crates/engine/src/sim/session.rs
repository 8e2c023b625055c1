//! One visit on simulated hosts: prepare, run, settle, each a sequence of the host's own calls.

use super::SimEngine;
use super::streams::{End, Stream};
use crate::EngineError;
use crate::counters::WINDOWS;
use crate::job::{CacheCheck, Control, Ended, Flow, Job, Prepared, Progress, Run, Session, Settled};
use crate::positions::{MemberDeltas, Position};
use rdsk_disk::{Call, CallId, Done, LunId, Operation, Route, SharedLab, Stability};
use rdsk_model::{
    CacheState, ChosenIo, ColdCheck, CpuTime, EngineKind, IoError, IoPath, Issuing, Op, PageCacheState,
    PointRun, StreamResult, Sync,
};
use rdsk_stats::Histogram;
use std::collections::HashMap;

/// Streams of one open that the hosts' read-ahead can tell apart.
const STREAMS_PER_OPEN: usize = 1 << 16;
/// The numbers that a kernel gives for what simulated calls answer.
const EIO: i32 = libc::EIO;

/// A session of the simulated engine.
#[derive(Debug)]
pub(crate) struct SimSession<'a> {
    lab: SharedLab,
    job: Job<'a>,
    /// Index in the Record and LUN of each used target.
    luns: Vec<(u32, LunId)>,
    page_bytes: u64,
    resolution_ns: u64,
    open: usize,
    cached_before: PageCacheState,
    begin_ns: Option<u64>,
}

/// What is summed while the streams run.
#[derive(Default)]
struct Totals {
    histogram: Histogram,
    latency_sum_ns: u128,
    windows: Vec<u64>,
    /// Width of a window; doubled whenever there are too many.
    width_ns: u64,
    points: PointRun,
    member_deltas: MemberDeltas,
    check: ColdCheck,
}

impl Totals {
    /// Makes the windows so wide that this time lies in one of them. Nobody knows beforehand how long a virtual visit takes,
    /// so they are folded in pairs as often as there are too many.
    fn fit(&mut self, at_ns: u64) {
        while at_ns / self.width_ns >= WINDOWS as u64 {
            self.width_ns = self.width_ns.saturating_mul(2);
            self.windows = self.windows.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }

    /// Counts bytes that completed so long after the begin.
    fn count(&mut self, at_ns: u64, bytes: u64) {
        self.fit(at_ns);
        let window = usize::try_from(at_ns / self.width_ns).expect("below the number of windows");
        if self.windows.len() <= window {
            self.windows.resize(window + 1, 0);
        }
        self.windows[window] += bytes;
    }
}

/// A call in flight.
struct Pending {
    stream: usize,
    bytes: u64,
    offset_bytes: u64,
    begin_ns: u64,
    /// Position among the listed places; `None` for one that the members' counters asked for, and for the next of a span.
    point: Option<u32>,
}

impl<'a> SimSession<'a> {
    pub(crate) fn new(engine: &SimEngine, job: &Job<'a>, luns: Vec<(u32, LunId)>, page_bytes: u64) -> Self {
        Self {
            lab: engine.lab.clone(),
            job: job.clone(),
            luns,
            page_bytes,
            resolution_ns: engine.resolution_ns,
            open: engine.opens,
            cached_before: PageCacheState::default(),
            begin_ns: None,
        }
    }

    /// A reading of the hosts' clock.
    fn read_ns(&self, true_ns: u64) -> u64 {
        true_ns - true_ns % self.resolution_ns
    }

    fn now_ns(&self) -> u64 {
        self.read_ns(self.lab.lock().now_ns())
    }

    fn page_cache(&self) -> PageCacheState {
        let (lab, workload) = (self.lab.lock(), self.job.workload);
        let mut sum = (0, 0);
        for (_, lun) in &self.luns {
            let host = lab.host(lun.host);
            sum.0 += host.cached_bytes(lun.lun, workload.offset_bytes, workload.span_bytes);
            sum.1 += host.dirty_bytes(lun.lun);
        }
        PageCacheState { cached_bytes: Some(sum.0), dirty_bytes: Some(sum.1) }
    }

    /// A call that belongs to no stream, waited for.
    fn call(&self, lun: LunId, operation: Operation) -> Done {
        let call = Call {
            operation,
            route: Route::Buffered,
            stability: Stability::Any,
            lun: lun.lun,
            offset_bytes: 0,
            bytes: 0,
            stream: 0,
        };
        self.lab.lock().run(lun.host, call).expect("sync and close are never refused")
    }

    fn streams(&self) -> Result<Vec<Stream<'a>>, EngineError> {
        (0..self.job.workload.streams)
            .map(|index| Stream::new(&self.job, index, &self.luns, self.page_bytes))
            .collect()
    }

    /// Makes the next call of a stream, unless it is through.
    fn issue(
        &self,
        streams: &mut [Stream<'_>],
        index: usize,
        totals: &mut Totals,
        pending: &mut HashMap<(usize, CallId), Pending>,
    ) {
        let workload = self.job.workload;
        let stream = &mut streams[index];
        let Some(Position { index: point, offset_bytes, bytes }) = stream.next(&totals.points.chosen) else {
            return;
        };
        let call = Call {
            operation: if workload.op == Op::Read { Operation::Read } else { Operation::Write },
            route: if workload.path == IoPath::Direct { Route::Direct } else { Route::Buffered },
            stability: if workload.sync == Sync::Dsync { Stability::Durable } else { Stability::Any },
            lun: stream.lun.lun,
            offset_bytes,
            bytes,
            stream: self.open * STREAMS_PER_OPEN + index,
        };
        let mut lab = self.lab.lock();
        if self.job.cache_check == CacheCheck::EachRange && workload.cache != CacheState::Any {
            let cached = lab.host(stream.lun.host).cached_bytes(stream.lun.lun, offset_bytes, bytes);
            let right = match workload.cache {
                CacheState::Cold => cached == 0,
                CacheState::Warm => cached >= bytes,
                CacheState::Any => true,
            };
            totals.check.ranges_checked += 1;
            totals.check.ranges_wrong += u64::from(!right);
        }
        stream.asked_bytes += bytes;
        let begin_ns = self.read_ns(lab.now_ns());
        match lab.submit(stream.lun.host, call) {
            Ok(id) => {
                stream.in_flight += 1;
                pending.insert(
                    (stream.lun.host, id),
                    Pending { stream: index, bytes, offset_bytes, begin_ns, point },
                );
            }
            Err(error) => {
                stream.fail(offset_bytes, libc::EINVAL, format!("Invalid argument: {error}"), begin_ns);
            }
        }
    }

    /// A call came back: counts it and makes the stream's next one.
    fn returned(
        &self,
        streams: &mut [Stream<'_>],
        done: &Done,
        one: &Pending,
        begin_ns: u64,
        totals: &mut Totals,
    ) {
        let end_ns = self.read_ns(done.end_ns);
        let stream = &mut streams[one.stream];
        stream.in_flight -= 1;
        stream.end_ns = end_ns;
        if let Err(fault) = done.outcome {
            stream.fail(one.offset_bytes, EIO, format!("Input/output error: {fault}"), end_ns);
            return;
        }
        stream.bytes += one.bytes;
        stream.ops += 1;
        totals.histogram.record(end_ns - one.begin_ns);
        let latency_ns = end_ns - one.begin_ns;
        match (one.point, self.job.workload.points.is_some()) {
            (Some(index), _) => {
                totals.points.order.push(index);
                totals.points.latency_ns.push(latency_ns);
                totals.member_deltas.note(self.job.members);
            }
            (None, true) => {
                let members = totals.member_deltas.note_chosen(self.job.members);
                let (offset_bytes, bytes) = (one.offset_bytes, one.bytes);
                totals.points.chosen.push(ChosenIo { offset_bytes, bytes, latency_ns, members });
            }
            (None, false) => {}
        }
        totals.latency_sum_ns += u128::from(end_ns - one.begin_ns);
        totals.count(end_ns - begin_ns, one.bytes);
    }

    /// Lets the streams run until none has anything in flight or to come.
    fn drive(
        &self,
        streams: &mut [Stream<'_>],
        begin_ns: u64,
        totals: &mut Totals,
        control: &mut dyn Control,
    ) -> Ended {
        let stop_at_ns = begin_ns.saturating_add(self.job.limits.max_elapsed_ns);
        let mut pending: HashMap<(usize, CallId), Pending> = HashMap::new();
        let mut waiting: Vec<usize> = (0..streams.len()).rev().collect();
        let mut halted = None;
        let mut shown = 0;
        loop {
            let now_ns = self.lab.lock().now_ns();
            if halted.is_none() && self.job.stop.is_raised() {
                halted = Some(Ended::Interrupted);
            }
            totals.fit(now_ns - begin_ns);
            let full = (now_ns - begin_ns) / totals.width_ns;
            if halted.is_none() && full != shown {
                shown = full;
                if self.show_progress(streams, now_ns - begin_ns, full, totals, control) == Flow::Stop {
                    halted = Some(Ended::Stopped);
                }
            }
            if halted.is_some() {
                streams.iter_mut().for_each(|stream| stream.end(End::Halted));
            } else if now_ns >= stop_at_ns {
                streams.iter_mut().for_each(|stream| stream.end(End::OutOfTime));
            }
            while let Some(index) = waiting.pop_if(|index| streams[*index].turn_ns <= now_ns - begin_ns) {
                streams[index].start(self.read_ns(now_ns));
                for _ in 0..self.job.workload.queue_depth {
                    self.issue(streams, index, totals, &mut pending);
                }
            }
            let turn_ns = waiting
                .last()
                .filter(|&&index| !streams[index].is_over())
                .map(|&index| begin_ns + streams[index].turn_ns);
            let event_ns = if pending.is_empty() { None } else { self.lab.lock().next_ns() };
            match (turn_ns, event_ns) {
                (None, None) => return halted.unwrap_or(Ended::Complete),
                (Some(turn_ns), event_ns) if event_ns.is_none_or(|event_ns| turn_ns < event_ns) => {
                    self.lab.lock().advance(turn_ns.min(stop_at_ns));
                }
                _ => {
                    let (host, done) = self.lab.lock().advance_one();
                    for done in done {
                        let Some(one) = pending.remove(&(host, done.id)) else { continue };
                        self.returned(streams, &done, &one, begin_ns, totals);
                        if done.end_ns < stop_at_ns {
                            self.issue(streams, one.stream, totals, &mut pending);
                        }
                    }
                }
            }
        }
    }

    /// Shows the control the windows that are full.
    fn show_progress(
        &self,
        streams: &[Stream<'_>],
        elapsed_ns: u64,
        full: u64,
        totals: &mut Totals,
        control: &mut dyn Control,
    ) -> Flow {
        let full = usize::try_from(full).unwrap_or(usize::MAX);
        if totals.windows.len() < full {
            totals.windows.resize(full, 0);
        }
        control.window(&Progress {
            elapsed_ns,
            windows: &totals.windows[..full],
            window_ns: totals.width_ns,
            bytes: streams.iter().map(|stream| stream.bytes).sum(),
            ops: streams.iter().map(|stream| stream.ops).sum(),
        })
    }

    /// Synchronises every target at the end of the I/O; gives what failed.
    fn synchronise(&self) -> Vec<IoError> {
        let failed = |(target, lun): &(u32, LunId)| {
            let fault = self.call(*lun, Operation::Sync).outcome.err()?;
            let message = format!("fdatasync: {fault}");
            Some(IoError { target: *target, stream: None, offset_bytes: 0, errno: EIO, message })
        };
        self.luns.iter().filter_map(failed).collect()
    }

    fn flush_error(&self, action: &'static str, target: u32) -> EngineError {
        let claim = self.job.claims.get(target as usize);
        EngineError::Flush {
            action,
            target: claim.map_or_else(String::new, |claim| claim.target.name.clone()),
            source: std::io::Error::from_raw_os_error(EIO),
        }
    }
}

impl Session for SimSession<'_> {
    fn prepare(&mut self) -> Result<Prepared, EngineError> {
        let workload = self.job.workload;
        let mut reached = None;
        for &(target, lun) in &self.luns {
            if workload.cache == CacheState::Any {
                continue;
            }
            if self.call(lun, Operation::Sync).outcome.is_err() {
                return Err(self.flush_error("flush", target));
            }
            let mut lab = self.lab.lock();
            let host = lab.host_mut(lun.host);
            let (begin, len) = (workload.offset_bytes, workload.span_bytes);
            let cached = |host: &rdsk_disk::Host| host.cached_bytes(lun.lun, begin, len);
            let this = match workload.cache {
                CacheState::Warm => {
                    host.fill_cache(lun.lun, begin, len);
                    cached(host) >= len
                }
                _ => {
                    host.drop_cache(lun.lun, begin, len);
                    cached(host) == 0
                }
            };
            reached = Some(reached.unwrap_or(true) && this);
        }
        self.cached_before = self.page_cache();
        Ok(Prepared { page_cache: self.cached_before, reached })
    }

    fn run(&mut self, control: &mut dyn Control) -> Result<Run, EngineError> {
        let mut streams = self.streams()?;
        let (begin_ns, cpu_before_ns) = {
            let lab = self.lab.lock();
            (lab.now_ns(), lab.cpu_ns())
        };
        let positions = self.job.workload.points.as_ref().map_or(0, rdsk_model::Points::len);
        let member_deltas = MemberDeltas::of(self.job.members, positions);
        let mut totals = Totals { width_ns: self.job.window_ns.max(1), member_deltas, ..Totals::default() };
        let halted = self.drive(&mut streams, begin_ns, &mut totals, control);
        let begun_ns = self.read_ns(begin_ns);
        self.begin_ns = Some(begun_ns);
        let last_ns =
            streams.iter().filter(|stream| stream.asked_bytes > 0).map(|stream| stream.end_ns).max();
        let to_return_ns = last_ns.unwrap_or(begun_ns) - begun_ns;
        let mut errors: Vec<IoError> = streams.iter().filter_map(|stream| stream.error.clone()).collect();
        let ended = ended(&streams, halted);
        let mut elapsed_ns = to_return_ns;
        if self.job.workload.sync == Sync::FsyncAtEnd && ended != Ended::Failed {
            errors.extend(self.synchronise());
            elapsed_ns = self.now_ns() - begun_ns;
        }
        totals.points.members = std::mem::take(&mut totals.member_deltas).finish();
        let cpu_ns = self.lab.lock().cpu_ns() - cpu_before_ns;
        totals.check.cached_bytes = self.cached_before.cached_bytes;
        Ok(Run {
            ended,
            elapsed_ns,
            to_return_ns,
            asked_bytes: streams.iter().map(|stream| stream.asked_bytes).sum(),
            bytes: streams.iter().map(|stream| stream.bytes).sum(),
            ops: streams.iter().map(|stream| stream.ops).sum(),
            histogram: totals.histogram,
            latency_sum_ns: totals.latency_sum_ns,
            windows: totals.windows,
            window_ns: totals.width_ns,
            points: self.job.workload.points.is_some().then_some(totals.points),
            streams: streams.iter().map(|stream| result_of(stream, begun_ns)).collect(),
            errors,
            cpu: CpuTime { user: 0, system: cpu_ns },
            page_cache: self.page_cache(),
            check: totals.check,
            interrupted_calls: 0,
            engine: EngineKind::Sim,
            issuing: Issuing::default(),
            notes: Vec::new(),
        })
    }

    fn settle(self: Box<Self>) -> Result<Settled, EngineError> {
        for &(target, lun) in &self.luns {
            if self.call(lun, Operation::Close).outcome.is_err() {
                return Err(self.flush_error("close", target));
            }
        }
        let Some(begin_ns) = self.begin_ns else { return Ok(Settled::default()) };
        let to_close_ns = Some(self.now_ns() - begin_ns);
        if self.job.workload.op == Op::Read {
            return Ok(Settled { to_close_ns, to_stable_ns: None });
        }
        for &(target, lun) in &self.luns {
            if self.call(lun, Operation::Sync).outcome.is_err() {
                return Err(self.flush_error("flush", target));
            }
        }
        Ok(Settled { to_close_ns, to_stable_ns: Some(self.now_ns() - begin_ns) })
    }
}

/// Why the visit ended: the strongest reason that holds.
fn ended(streams: &[Stream<'_>], halted: Ended) -> Ended {
    let any = |end: End| streams.iter().any(|stream| stream.ended == Some(end));
    if streams.iter().all(|stream| stream.ended == Some(End::Failed)) {
        Ended::Failed
    } else if any(End::Halted) {
        halted
    } else if any(End::OutOfTime) {
        Ended::OutOfTime
    } else {
        Ended::Complete
    }
}

fn result_of(stream: &Stream<'_>, begin_ns: u64) -> StreamResult {
    StreamResult {
        index: stream.index,
        target: stream.target,
        start_ns: stream.start_ns.saturating_sub(begin_ns),
        end_ns: stream.end_ns.saturating_sub(begin_ns),
        bytes: stream.bytes,
        ops: stream.ops,
    }
}
