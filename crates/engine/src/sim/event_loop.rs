//! The I/O of a simulated visit, event by event: each stream makes its calls, the lab goes on to the next completion, and
//! what completed is counted. It neither prepares nor settles anything.

use super::clock::SimClock;
use super::streams::{NextCall, Stream};
use crate::cache_probe::CacheProbe;
use crate::counters::widened_to;
use crate::job::{CacheCheck, Control, Ended, Flow, Job, Progress, WarmUp};
use crate::load::Request;
use crate::places::Firsts;
use crate::positions::Position;
use crate::work::StreamEnd;
use rdsk_disk::{Call, CallId, Done, Operation, Route, Stability};
use rdsk_model::{CacheState, IoPath, Op, PointRun, Sync};
use rdsk_stats::Histogram;
use std::collections::{BTreeSet, HashMap};

/// The error number of a simulated call that failed.
pub(super) const EIO: i32 = libc::EIO;

/// What is summed while the streams run.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) histogram: Histogram,
    pub(super) warm_up: Option<WarmUp>,
    pub(super) firsts: Firsts,
    pub(super) latency_sum_ns: u128,
    /// Bytes completed in each window.
    pub(super) windows: Vec<u64>,
    /// Width of a window; doubled whenever there are too many.
    pub(super) width_ns: u64,
    pub(super) positions: PointRun,
    pub(super) cache_probe: CacheProbe,
}

impl Totals {
    /// How long the jobs of a load are not counted, from the start of the visit.
    pub(super) fn ramp_ns(&self) -> u64 {
        self.warm_up.as_ref().map_or(0, |warm_up| warm_up.until_ns)
    }

    /// Makes the windows wide enough for this time to lie in one of them. It is unknown beforehand how long a virtual visit
    /// takes, so they are merged in pairs as long as there are too many.
    fn widen_to(&mut self, at_ns: u64) {
        let width_ns = widened_to(self.width_ns, at_ns);
        while self.width_ns < width_ns {
            self.width_ns *= 2;
            self.windows = self.windows.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }

    /// Counts bytes that completed at a time since the start.
    fn count(&mut self, at_ns: u64, bytes: u64) {
        self.widen_to(at_ns);
        let window = usize::try_from(at_ns / self.width_ns).expect("below the number of windows");
        if self.windows.len() <= window {
            self.windows.resize(window + 1, 0);
        }
        self.windows[window] += bytes;
    }

    /// Counts the latency of an I/O that completed at a time since the start.
    fn record(&mut self, at_ns: u64, latency_ns: u64, bytes: u64) {
        self.latency_sum_ns += u128::from(latency_ns);
        match self.warm_up.as_mut().filter(|early| at_ns < early.until_ns) {
            Some(early) => {
                early.histogram.record(latency_ns);
                early.bytes += bytes;
                early.ops += 1;
            }
            None => self.histogram.record(latency_ns),
        }
    }
}

/// A call in flight.
struct Pending {
    stream: usize,
    position: Position,
    /// Places of the target that it reaches first.
    new_places: u64,
    /// Of a stream of a job: what it is, and when it arrived where the job has a rate.
    load: Option<(LoadCall, Option<u64>)>,
}

/// What a call of a job's stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadCall {
    Request(Op),
    Flush,
}

/// The streams of one visit and what they did.
pub(super) struct EventLoop<'s, 'a> {
    clock: &'s SimClock,
    job: &'s Job<'a>,
    /// Number of the first stream among all readers that the hosts' read-ahead distinguishes.
    first_reader: usize,
    /// When the visit began, in the lab's time.
    begin_ns: u64,
    pub(super) streams: Vec<Stream<'a>>,
    pub(super) totals: Totals,
    pending: HashMap<(usize, CallId), Pending>,
    /// When streams of jobs have something to do, and which.
    timers: BTreeSet<(u64, usize)>,
}

impl<'s, 'a> EventLoop<'s, 'a> {
    pub(super) fn new(
        clock: &'s SimClock,
        job: &'s Job<'a>,
        first_reader: usize,
        begin_ns: u64,
        streams: Vec<Stream<'a>>,
    ) -> Self {
        let totals = Totals { width_ns: job.window_ns.max(1), ..Totals::default() };
        Self {
            clock,
            job,
            first_reader,
            begin_ns,
            streams,
            totals,
            pending: HashMap::new(),
            timers: BTreeSet::new(),
        }
    }

    /// Lets the streams run until nothing is in flight or to come; returns why they were asked to stop, if they were.
    pub(super) fn run(&mut self, control: &mut dyn Control) -> Option<Ended> {
        let (lab, begin_ns) = (&self.clock.lab, self.begin_ns);
        let stop_at_ns = begin_ns.saturating_add(self.job.limits.max_elapsed_ns);
        let until_ns = control.warm_up_ns();
        let warm_up = || WarmUp { until_ns, bytes: 0, ops: 0, histogram: Histogram::new() };
        self.totals.warm_up = (until_ns > 0).then(warm_up);
        let mut waiting: Vec<usize> = (0..self.streams.len()).rev().collect();
        let mut halted = None;
        let mut shown = 0;
        loop {
            let now_ns = lab.lock().now_ns();
            let elapsed_ns = now_ns - begin_ns;
            self.totals.widen_to(elapsed_ns);
            if halted.is_none() {
                halted = self.reason_to_halt(elapsed_ns, &mut shown, control);
            }
            if halted.is_some() {
                self.streams.iter_mut().for_each(|stream| stream.end(StreamEnd::Halted));
            } else if now_ns >= stop_at_ns {
                self.streams.iter_mut().for_each(|stream| stream.end(StreamEnd::OutOfTime));
            }
            while let Some(index) = waiting.pop_if(|index| self.streams[*index].turn_ns <= elapsed_ns) {
                self.streams[index].start(self.clock.reading_ns(now_ns));
                if self.streams[index].load.is_some() {
                    self.issue_load(index, stop_at_ns);
                    continue;
                }
                for _ in 0..self.job.workload.queue_depth {
                    self.issue(index);
                }
            }
            while let Some(&(_, index)) = self.timers.first().filter(|(at_ns, _)| *at_ns <= now_ns) {
                self.timers.pop_first();
                self.issue_load(index, stop_at_ns);
            }
            let turn_ns = waiting
                .last()
                .filter(|&&index| !self.streams[index].is_over())
                .map(|&index| begin_ns + self.streams[index].turn_ns);
            let is_live = |timer: &&(u64, usize)| !self.streams[timer.1].is_over();
            let timer_ns = self.timers.iter().find(is_live).map(|timer| timer.0);
            let turn_ns = turn_ns.into_iter().chain(timer_ns).min();
            let event_ns = if self.pending.is_empty() { None } else { lab.lock().next_ns() };
            match (turn_ns, event_ns) {
                (None, None) => return halted,
                (Some(turn_ns), event_ns) if event_ns.is_none_or(|event_ns| turn_ns < event_ns) => {
                    lab.lock().advance(turn_ns.min(stop_at_ns));
                }
                _ => {
                    let (host, done) = lab.lock().advance_one();
                    for done in done {
                        let Some(call) = self.pending.remove(&(host, done.id)) else { continue };
                        self.complete(&done, &call);
                        if done.end_ns >= stop_at_ns {
                            continue;
                        }
                        match call.load {
                            Some(_) => self.issue_load(call.stream, stop_at_ns),
                            None => self.issue(call.stream),
                        }
                    }
                }
            }
        }
    }

    fn reason_to_halt(
        &mut self,
        elapsed_ns: u64,
        shown: &mut u64,
        control: &mut dyn Control,
    ) -> Option<Ended> {
        if self.job.stop.is_raised() {
            return Some(Ended::Interrupted);
        }
        let full = elapsed_ns / self.totals.width_ns;
        if full == *shown {
            return None;
        }
        *shown = full;
        (self.show_progress(elapsed_ns, control) == Flow::Stop).then_some(Ended::Stopped)
    }

    /// Calls the Control.
    fn show_progress(&self, elapsed_ns: u64, control: &mut dyn Control) -> Flow {
        control.window(&Progress {
            elapsed_ns,
            bytes: self.streams.iter().map(|stream| stream.result.bytes).sum(),
            ops: self.streams.iter().map(|stream| stream.result.ops).sum(),
        })
    }

    /// Makes the next call of a stream, unless it has ended.
    fn issue(&mut self, index: usize) {
        let workload = self.job.workload;
        let stream = &mut self.streams[index];
        let Some(position) = stream.next() else { return };
        let Position { offset_bytes, bytes, .. } = position;
        let call = Call {
            operation: if workload.op == Op::Read { Operation::Read } else { Operation::Write },
            route: if workload.path == IoPath::Direct { Route::Direct } else { Route::Buffered },
            stability: if workload.sync == Sync::Dsync { Stability::Durable } else { Stability::Any },
            lun: stream.lun.lun,
            offset_bytes,
            bytes,
            stream: self.first_reader + index,
        };
        let mut lab = self.clock.lab.lock();
        if self.job.cache_check == CacheCheck::EachRange && workload.cache != CacheState::Any {
            let cached = lab.host(stream.lun.host).cached_bytes(stream.lun.lun, offset_bytes, bytes);
            self.totals.cache_probe.count(workload.cache, cached, bytes);
        }
        stream.asked_bytes += bytes;
        let len = usize::try_from(bytes).unwrap_or(usize::MAX);
        let new_places =
            stream.places.as_ref().map_or(0, |places| places.touch(workload.op, offset_bytes, len));
        match lab.submit(stream.lun.host, call) {
            Ok(id) => {
                self.pending.insert(
                    (stream.lun.host, id),
                    Pending { stream: index, position, new_places, load: None },
                );
            }
            Err(error) => {
                let now_ns = self.clock.reading_ns(lab.now_ns());
                stream.fail(offset_bytes, libc::EINVAL, format!("Invalid argument: {error}"), now_ns);
            }
        }
    }

    /// Makes the calls that a stream of a job has to make now, and notes when it has more to do.
    fn issue_load(&mut self, index: usize, stop_at_ns: u64) {
        let now_ns = self.clock.lab.lock().now_ns();
        if now_ns >= stop_at_ns {
            return;
        }
        let ramp_ns = self.totals.ramp_ns();
        let is_counted = now_ns >= self.begin_ns + ramp_ns;
        loop {
            let stream = &mut self.streams[index];
            let Some(load) = stream.load.as_mut().filter(|_| stream.ended.is_none()) else { return };
            let (call, due_ns) = match load.next_call(self.begin_ns + load.job.delay_ns, ramp_ns, now_ns) {
                NextCall::Request(request, due_ns) => {
                    if request.op == Op::Write
                        && let Some(flush) = &mut load.flush
                    {
                        flush.note_write();
                    }
                    if let Some(due_ns) = due_ns.filter(|_| is_counted) {
                        load.run.lag.record(now_ns - due_ns);
                    }
                    (Some(request), due_ns)
                }
                NextCall::Flush => {
                    if let Some(flush) = &mut load.flush {
                        flush.restart();
                    }
                    (None, None)
                }
                NextCall::At(at_ns) => {
                    self.timers.insert((at_ns, index));
                    return;
                }
                NextCall::AfterCompletion => return,
                NextCall::Over => {
                    stream.end(StreamEnd::Complete);
                    return;
                }
            };
            load.in_flight += 1;
            self.submit_load(index, call, due_ns);
        }
    }

    /// Makes a call of a job's stream: a request, or a flush where there is none.
    fn submit_load(&mut self, index: usize, request: Option<Request>, due_ns: Option<u64>) {
        let stream = &mut self.streams[index];
        let Some(load) = &stream.load else { return };
        let (operation, offset_bytes, bytes, kind) = match request {
            Some(Request { op: Op::Read, offset_bytes, bytes, .. }) => {
                (Operation::Read, offset_bytes, bytes, LoadCall::Request(Op::Read))
            }
            Some(Request { op: Op::Write, offset_bytes, bytes, .. }) => {
                (Operation::Write, offset_bytes, bytes, LoadCall::Request(Op::Write))
            }
            None => (Operation::Sync, 0, 0, LoadCall::Flush),
        };
        let call = Call {
            operation,
            route: if load.job.path == IoPath::Direct { Route::Direct } else { Route::Buffered },
            stability: if load.job.dsync { Stability::Durable } else { Stability::Any },
            lun: stream.lun.lun,
            offset_bytes,
            bytes,
            stream: self.first_reader + index,
        };
        stream.asked_bytes += bytes;
        let position = Position { index: None, offset_bytes, bytes };
        let mut lab = self.clock.lab.lock();
        match lab.submit(stream.lun.host, call) {
            Ok(id) => {
                let load = Some((kind, due_ns));
                let pending = Pending { stream: index, position, new_places: 0, load };
                self.pending.insert((stream.lun.host, id), pending);
            }
            Err(error) => {
                let now_ns = self.clock.reading_ns(lab.now_ns());
                stream.fail(offset_bytes, libc::EINVAL, format!("Invalid argument: {error}"), now_ns);
            }
        }
    }

    /// Counts a call of a job's stream beside what is counted of every stream; its latency, from the arrival where the job has a rate.
    /// `None` for a flush, which is no I/O.
    fn complete_load(&mut self, done: &Done, call: &Pending) -> Option<u64> {
        let (kind, due_ns) = call.load?;
        let load = self.streams[call.stream].load.as_mut()?;
        load.in_flight -= 1;
        load.last_end_ns = done.end_ns;
        load.note_completion(matches!(kind, LoadCall::Request(_)), done.end_ns);
        let latency_ns = done.end_ns - due_ns.unwrap_or(done.start_ns);
        let at_ns = done.end_ns.checked_sub(self.begin_ns + load.job.delay_ns + self.totals.ramp_ns());
        match (kind, at_ns) {
            (LoadCall::Request(op), Some(at_ns)) => {
                load.run.kind(op).count(at_ns, latency_ns, call.position.bytes);
            }
            (LoadCall::Flush, Some(at_ns)) => load.run.flushes.count(at_ns, latency_ns, 0),
            // In the ramp.
            (_, None) => {}
        }
        matches!(kind, LoadCall::Request(_)).then_some(latency_ns)
    }

    /// Counts a call that completed.
    fn complete(&mut self, done: &Done, call: &Pending) {
        let end_ns = self.clock.reading_ns(done.end_ns);
        let Position { index, offset_bytes, bytes } = call.position;
        let stream = &mut self.streams[call.stream];
        stream.result.end_ns = end_ns;
        if let Err(fault) = done.outcome {
            stream.fail(offset_bytes, EIO, format!("Input/output error: {fault}"), end_ns);
            return;
        }
        let load_latency_ns = self.complete_load(done, call);
        let (stream, totals) = (&mut self.streams[call.stream], &mut self.totals);
        if call.load.is_some() && load_latency_ns.is_none() {
            return;
        }
        stream.result.bytes += bytes;
        stream.result.ops += 1;
        let latency_ns = load_latency_ns.unwrap_or_else(|| end_ns - self.clock.reading_ns(done.start_ns));
        // The host's clock has steps: what ends within the step in which the visit began ends with it.
        let since_begin_ns = end_ns.saturating_sub(self.begin_ns);
        totals.record(since_begin_ns, latency_ns, bytes);
        totals.firsts.count(call.new_places, latency_ns, bytes);
        totals.count(since_begin_ns, bytes);
        if let Some(index) = index {
            totals.positions.order.push(index);
            totals.positions.latency_ns.push(latency_ns);
        }
    }
}
