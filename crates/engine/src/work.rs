//! What a stream counts and returns while an engine issues its I/O, and why it ended. Small steps that all engines share;
//! it issues nothing.

use crate::arena::Arena;
use crate::cache_probe::CacheProbe;
use crate::clock::{now_ns, sleep_until};
use crate::counters::StreamCounters;
use crate::error::errno_text;
use crate::job::Ended;
use crate::job_run::JobRun;
use crate::latencies::{Early, Latencies};
use crate::offsets::Offsets;
use crate::places::Firsts;
use crate::stamper::Stamper;
use crate::start_barrier::StartBarrier;
use crate::stream_spec::StreamSpec;
use crate::watchdog::SHORT_NS;
use rdsk_model::{EngineKind, IoError, Op, PointRun, ReadContent, StreamResult};
use rdsk_sys::usage::thread_wait_ns;

/// Why a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// It did everything that was requested.
    Complete,
    /// The time ran out.
    OutOfTime,
    /// It was asked to stop.
    Halted,
    /// An I/O failed.
    Failed,
}

/// Why a visit ended: the strongest reason that holds. `halted` is why the streams were asked to stop, if they were.
pub(crate) fn ended(ends: &(impl Iterator<Item = StreamEnd> + Clone), halted: Option<Ended>) -> Ended {
    let any = |wanted| ends.clone().any(|end| end == wanted);
    if ends.clone().all(|end| end == StreamEnd::Failed) {
        Ended::Failed
    } else if any(StreamEnd::Halted) {
        halted.unwrap_or(Ended::Interrupted)
    } else if any(StreamEnd::OutOfTime) {
        Ended::OutOfTime
    } else {
        Ended::Complete
    }
}

/// The result of a stream with its times from the start of the visit instead of readings of the clock.
pub(crate) fn since(begin_ns: u64, mut result: StreamResult) -> StreamResult {
    for time_ns in [&mut result.start_ns, &mut result.end_ns] {
        *time_ns = time_ns.saturating_sub(begin_ns);
    }
    result
}

/// What one stream did. Times are readings of the clock.
#[derive(Debug)]
pub(crate) struct StreamOutcome {
    pub(crate) end: StreamEnd,
    pub(crate) error: Option<IoError>,
    /// Errors at positions that could not be read or written while the stream went on.
    pub(crate) missed: Vec<IoError>,
    /// Of what completed after the warm-up.
    pub(crate) latencies: Latencies,
    /// What completed in the warm-up, if there is one.
    pub(crate) early: Option<Box<Early>>,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) asked_bytes: u64,
    pub(crate) bytes: u64,
    pub(crate) ops: u64,
    pub(crate) interrupted_calls: u64,
    /// What the last reads returned.
    pub(crate) content: Option<ReadContent>,
    pub(crate) cache_probe: CacheProbe,
    /// What was the first I/O at its place; `None` where it is not examined.
    pub(crate) firsts: Option<Box<Firsts>>,
    /// The latencies at chosen positions.
    pub(crate) positions: Option<PointRun>,
    /// What a stream of a load counted.
    pub(crate) job_run: Option<Box<JobRun>>,
    /// I/Os that were complete when the call that submitted them returned; `None` if the engine does not know.
    pub(crate) within_submit: Option<u64>,
    /// Time in which its threads were ready and waited for a processor; `None` if the kernel does not count it.
    pub(crate) processor_wait_ns: Option<u64>,
    /// The same of the stream's own thread until it started.
    pub(crate) waited_before_ns: Option<u64>,
    pub(crate) engine: EngineKind,
    /// Why it was another engine than planned, or a shallower queue.
    pub(crate) note: Option<String>,
}

impl StreamOutcome {
    /// Looks at what the last reads left in their buffers, once the stream's time is over.
    pub(crate) fn look_at(&mut self, arena: &mut Arena, spec: &StreamSpec<'_>) {
        // The last blocks of a sequence are neighbours and do not stand for the rest, and often nothing is stored at the end of a
        // disk: `content` looks at the device, from the start of the span on.
        let is_sequence = match spec.offsets {
            Offsets::Sequential(sequential) => sequential.is_alone() || self.ops >= spec.full_ops,
            _ => false,
        };
        if spec.op == Op::Read && self.ops > 0 && !is_sequence {
            // Free slots are taken in order, so that the first ones have been read into.
            let read_into = usize::try_from(self.ops).unwrap_or(usize::MAX).min(spec.depth);
            self.content = Some(arena.content(read_into, spec.block_bytes));
        }
    }

    /// The outcome of a stream that never started.
    pub(crate) fn nothing(now_ns: u64) -> Self {
        Self {
            end: StreamEnd::Halted,
            error: None,
            missed: Vec::new(),
            latencies: Latencies::default(),
            early: None,
            start_ns: now_ns,
            end_ns: now_ns,
            asked_bytes: 0,
            bytes: 0,
            ops: 0,
            interrupted_calls: 0,
            content: None,
            cache_probe: CacheProbe::default(),
            firsts: None,
            positions: None,
            job_run: None,
            within_submit: None,
            processor_wait_ns: None,
            waited_before_ns: None,
            engine: EngineKind::Sync,
            note: None,
        }
    }
}

/// What happens when, from the start of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    /// When the stream's turn is.
    pub(crate) turn_ns: u64,
    pub(crate) max_elapsed_ns: u64,
    /// How long the warm-up takes; 0 without one.
    pub(crate) warm_up_ns: u64,
}

/// What lies between two I/Os, and what every engine counts.
#[derive(Debug)]
pub(crate) struct Work<'a> {
    pub(crate) spec: StreamSpec<'a>,
    pub(crate) barrier: &'a StartBarrier,
    schedule: Schedule,
    /// No submission at or after this time, but for the first one of a stream that was due before it.
    pub(crate) deadline_ns: u64,
    is_due: bool,
    /// End of the warm-up; the end of time when there is none or it is over.
    warm_up_end_ns: u64,
    /// The same, also when it is over.
    ramp_end_ns: u64,
    pub(crate) counters: StreamCounters<'a>,
    pub(crate) stamper: Stamper,
    /// When the last I/O might be written; 0 before the first. A stop may hide between any other two readings of the clock.
    allowed_ns: u64,
    /// What was done so far, without `end`, `bytes` and `ops`.
    pub(crate) outcome: StreamOutcome,
}

impl<'a> Work<'a> {
    /// Everything that is prepared before the stream starts.
    pub(crate) fn new(
        spec: StreamSpec<'a>,
        barrier: &'a StartBarrier,
        schedule: Schedule,
        counters: StreamCounters<'a>,
    ) -> Self {
        let stamper = Stamper::new(spec.seed, spec.visit, spec.stream);
        // Made here, since the loops allocate nothing.
        let early = (schedule.warm_up_ns > 0).then(Box::default);
        let firsts = spec.places.map(|_| Box::default());
        Self {
            spec,
            barrier,
            schedule,
            deadline_ns: u64::MAX,
            // What arrives at a rate may well not arrive in so short a time.
            is_due: schedule.turn_ns < schedule.max_elapsed_ns
                && spec.load.is_none_or(|load| {
                    // Trims move nothing.
                    load.job.rate.is_none() && (load.job.reads.is_some() || load.job.writes.is_some())
                }),
            warm_up_end_ns: u64::MAX,
            ramp_end_ns: u64::MAX,
            counters,
            stamper,
            allowed_ns: 0,
            outcome: StreamOutcome { early, firsts, ..StreamOutcome::nothing(now_ns()) },
        }
    }

    /// Counts an I/O that completed at `now_ns`; times must not go backwards.
    #[inline]
    pub(crate) fn count(&mut self, now_ns: u64, latency_ns: u64, bytes: u64) {
        self.enter(now_ns);
        if latency_ns <= SHORT_NS || !self.was_away(now_ns - latency_ns, now_ns, now_ns - latency_ns) {
            self.outcome.latencies.record(latency_ns);
        }
        self.counters.add(now_ns, bytes, 1);
    }

    /// Counts an I/O that reached so many new places, unless this process was away in its time, which then is not known.
    #[inline]
    pub(crate) fn count_first(&mut self, new_places: u64, begin_ns: u64, end_ns: u64, bytes: u64) {
        if self.outcome.firsts.is_none() {
            return;
        }
        let latency_ns = end_ns - begin_ns;
        if latency_ns > SHORT_NS && self.was_away(begin_ns, end_ns, begin_ns) {
            return;
        }
        if let Some(firsts) = &mut self.outcome.firsts {
            firsts.count(new_places, latency_ns, bytes);
        }
    }

    /// Whether this process did not run for a part of the time of an I/O: when it completed is not known then. `own_ns` is this thread's
    /// last reading of the clock before the second.
    #[cold]
    pub(crate) fn was_away(&self, begin_ns: u64, now_ns: u64, own_ns: u64) -> bool {
        self.spec.open.guard.watchdog.was_away(begin_ns, now_ns, own_ns)
    }

    /// When an I/O may be written for which all is ready at `now_ns`: at once, or, after a time in which this process did not run, when the
    /// claim has been judged again. `None` if it is refused: then no stream issues anything more.
    #[inline]
    pub(crate) fn may_write(&mut self, now_ns: u64) -> Option<u64> {
        if self.spec.open.guard.is_due(now_ns) {
            return self.judge(now_ns);
        }
        self.allowed_ns = now_ns;
        Some(now_ns)
    }

    #[cold]
    fn judge(&mut self, now_ns: u64) -> Option<u64> {
        if !self.spec.open.judge(now_ns, self.allowed_ns) {
            self.barrier.halt();
            return None;
        }
        self.allowed_ns = crate::clock::now_ns();
        Some(self.allowed_ns)
    }

    /// Ends the warm-up if it is over at `now_ns`, before anything is counted that completed then.
    #[inline]
    pub(crate) fn enter(&mut self, now_ns: u64) {
        if now_ns >= self.warm_up_end_ns {
            self.end_warm_up();
        }
    }

    /// The same for the stream of a job: what it did in the ramp is in no figure of it.
    #[inline]
    pub(crate) fn enter_job(&mut self, now_ns: u64, run: &mut JobRun) {
        if now_ns >= self.warm_up_end_ns {
            // The one moment in which a stream allocates.
            self.outcome.latencies = Latencies::of(&std::mem::take(run));
            self.end_warm_up();
        }
    }

    /// When the figures of a job's stream begin that began at a time: then, or when the ramp is over.
    pub(crate) const fn counts_from_ns(&self, began_ns: u64) -> u64 {
        if self.schedule.warm_up_ns == 0 { began_ns } else { self.ramp_end_ns }
    }

    #[cold]
    fn end_warm_up(&mut self) {
        self.warm_up_end_ns = u64::MAX;
        if let Some(early) = &mut self.outcome.early {
            std::mem::swap(&mut self.outcome.latencies, &mut early.latencies);
            (early.bytes, early.ops) = (self.counters.bytes, self.counters.ops);
        }
    }

    /// Why nothing more may be submitted at `now_ns`, if that is so. A stream that was due in time does something, however late
    /// a busy machine lets it begin.
    #[inline]
    pub(crate) fn must_stop(&self, now_ns: u64) -> Option<StreamEnd> {
        if self.barrier.is_halted() {
            return Some(StreamEnd::Halted);
        }
        let owes_one = || self.is_due && self.outcome.asked_bytes == 0;
        (now_ns >= self.deadline_ns && !owes_one()).then_some(StreamEnd::OutOfTime)
    }

    /// Starts the stream's own time when its turn has come, and that of the run if its turn is the first; returns it. Everything is prepared,
    /// so that the I/O follows at once; windows, warm-up and deadline count from the start of the run. A stream that is halted before its
    /// turn finds that out before its first I/O.
    pub(crate) fn start(&mut self) -> u64 {
        let Schedule { turn_ns, max_elapsed_ns, warm_up_ns } = self.schedule;
        self.barrier.wait_for_time();
        // To be woken is no part of the time that is measured.
        self.outcome.waited_before_ns = thread_wait_ns();
        if self.barrier.is_started_by_others(turn_ns) {
            self.barrier.wait_for_start();
        }
        let mut start_ns = now_ns();
        let begin_ns = self.barrier.start_at(start_ns);
        self.counters.begin(begin_ns);
        self.deadline_ns = begin_ns.saturating_add(max_elapsed_ns);
        if warm_up_ns > 0 {
            self.warm_up_end_ns = begin_ns.saturating_add(warm_up_ns);
            self.ramp_end_ns = self.warm_up_end_ns;
        }
        if turn_ns > 0 {
            let turn_ns = begin_ns.saturating_add(turn_ns).min(self.deadline_ns);
            sleep_until(turn_ns, || self.barrier.is_halted());
            start_ns = now_ns();
        }
        let start_ns = start_ns.max(begin_ns);
        (self.outcome.start_ns, self.outcome.end_ns) = (start_ns, start_ns);
        start_ns
    }

    /// Keeps what a stream of a load counted; its latencies together are those of the stream.
    pub(crate) fn keep_job_run(&mut self, mut run: JobRun) {
        // A stream that ended in the ramp has no figures.
        self.enter_job(u64::MAX - 1, &mut run);
        self.outcome.latencies = Latencies::of(&run);
        self.outcome.job_run = Some(Box::new(run));
    }

    pub(crate) fn finish(mut self, end: StreamEnd) -> StreamOutcome {
        // A stream that completed nothing later than the warm-up has not noticed its end.
        self.enter(u64::MAX - 1);
        StreamOutcome { end, bytes: self.counters.bytes, ops: self.counters.ops, ..self.outcome }
    }

    /// Keeps the first error of the stream. `result` is what the system returned: a negative errno, or the bytes of a
    /// transfer that was shorter than requested.
    #[cold]
    pub(crate) fn fail(&mut self, offset_bytes: u64, wanted: usize, result: i64) {
        if self.outcome.error.is_none() {
            self.outcome.error = Some(self.error_of(offset_bytes, wanted, result));
        }
    }

    /// Keeps the error at one position when the stream goes on.
    #[cold]
    pub(crate) fn miss(&mut self, offset_bytes: u64, wanted: usize, result: i64) {
        let error = self.error_of(offset_bytes, wanted, result);
        self.outcome.missed.push(error);
    }

    fn error_of(&self, offset_bytes: u64, wanted: usize, result: i64) -> IoError {
        let (errno, message) = match i32::try_from(-result) {
            Ok(errno) if errno > 0 => (errno, self.errno_message(errno)),
            _ => {
                let verb = if self.spec.op == Op::Read { "read" } else { "write" };
                (0, format!("short {verb}: {result} of {wanted} bytes"))
            }
        };
        let (target, stream) = (self.spec.target, Some(self.spec.stream));
        IoError { target, stream, offset_bytes, errno, message }
    }

    fn errno_message(&self, errno: i32) -> String {
        let text = errno_text(errno);
        match self.spec.direct_align_bytes {
            Some(align) if errno == libc::EINVAL => format!(
                "{text}: direct I/O needs block sizes and offsets that are multiples of {align} bytes here"
            ),
            _ => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_reason_wins() {
        use StreamEnd::{Complete, Failed, Halted, OutOfTime};
        for (ends, halted, expected) in [
            (vec![Complete, Complete], None, Ended::Complete),
            (vec![Complete, OutOfTime], None, Ended::OutOfTime),
            (vec![Failed, Failed], None, Ended::Failed),
            (vec![Failed, OutOfTime], None, Ended::OutOfTime),
            (vec![Failed, Complete], None, Ended::Complete),
            (vec![Halted, Failed], Some(Ended::Stopped), Ended::Stopped),
            (vec![Halted, OutOfTime], Some(Ended::Interrupted), Ended::Interrupted),
            (vec![Complete, Complete], Some(Ended::Interrupted), Ended::Complete),
        ] {
            assert_eq!(ended(&ends.iter().copied(), halted), expected, "{ends:?}");
        }
    }
}
