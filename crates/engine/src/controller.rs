//! The calling thread's part of a run: start the streams, follow them window by window, call the Control, stop them, and
//! add up what they did. It issues no I/O except the `fdatasync` at the end.

use crate::at_once::at_once;
use crate::clock::now_ns;
use crate::counters::{SharedCounters, window_end_ns, windows_of};
use crate::error::{EngineError, errno_text};
use crate::job::{Control, Ended, Flow, Progress, Run, WarmUp};
use crate::job_run::JobRun;
use crate::open_target::OpenTarget;
use crate::own_gaps::cut_out;
use crate::places::{Firsts, largest};
use crate::start_barrier::{HaltOnPanic, Release, StartBarrier};
use crate::stream::{RunConfig, run_stream, turn_ns};
use crate::stream_spec::StreamSpec;
use crate::work::{StreamOutcome, ended, since};
use rdsk_model::{ColdCheck, CpuTime, EngineKind, IoError, Issuing, ReadContent, StopFlag, StreamResult};
use rdsk_stats::Histogram;
use rdsk_sys::usage::{Usage, process_usage};
use std::any::Any;
use std::time::Duration;

/// The controller checks the stop flag at least this often.
const MAX_SLEEP_NS: u64 = 20_000_000;

/// The Control is called at least this often, however wide the windows are, so that a progress display keeps moving.
const MAX_SILENCE_NS: u64 = 200_000_000;

/// Runs all streams to their end. Returns the Run and the reading of the clock at its start.
pub(crate) fn run_streams(
    config: &RunConfig,
    specs: &[StreamSpec<'_>],
    cpus: &[usize],
    sync_targets: &[OpenTarget<'_>],
    stop: &StopFlag,
    control: &mut dyn Control,
) -> Result<(Run, u64), EngineError> {
    let barrier = StartBarrier::default();
    let warm_up_ns = control.warm_up_ns();
    let counters: Vec<SharedCounters> = specs.iter().map(|_| SharedCounters::new(config.window_ns)).collect();
    let (outcomes, halted, cpu_before) = std::thread::scope(|scope| {
        // If the Control panics, the scope waits for the streams before the panic continues.
        let barrier = &barrier;
        let _halts = HaltOnPanic(barrier);
        let mut handles = Vec::with_capacity(specs.len());
        let mut failed = None;
        for (index, (&spec, shared)) in specs.iter().zip(&counters).enumerate() {
            let cpu = (!cpus.is_empty()).then(|| cpus[index % cpus.len()]);
            let streams = specs.len();
            let builder = std::thread::Builder::new().name(format!("rdsk-stream-{index}"));
            match builder.spawn_scoped(scope, move || {
                run_stream(config, barrier, spec, shared, warm_up_ns, streams, cpu)
            }) {
                Ok(handle) => handles.push(handle),
                Err(source) => {
                    failed = Some(EngineError::Thread { stream: spec.stream, source });
                    break;
                }
            }
        }
        // Where all are delayed, the first ones start the time that all wait for.
        barrier.start_with_turn(specs.iter().map(|spec| turn_ns(config, spec)).min().unwrap_or(0));
        let all_ready = barrier.wait_until_ready(handles.len()) == specs.len();
        let starts = control.starts_at_ns(all_ready && failed.is_none());
        if let Some(at_ns) = starts {
            barrier.start_not_before(at_ns);
        } else if all_ready {
            failed.get_or_insert(EngineError::NotStarted);
        }
        let cpu_before = process_usage().ok();
        barrier.release(if starts.is_some() { Release::Start } else { Release::Abort });
        let full_ns = window_end_ns(config.window_ns, 0);
        let mut watcher = Watcher { config, barrier, counters: &counters, full_ns, shown_ns: 0 };
        let halted = watcher.watch(handles.len(), stop, control);
        let mut outcomes = Vec::with_capacity(handles.len());
        for (handle, spec) in handles.into_iter().zip(specs) {
            match handle.join() {
                Ok(Ok(outcome)) => outcomes.push(outcome),
                Ok(Err(error)) => _ = failed.get_or_insert(error),
                Err(panic) => _ = failed.get_or_insert(panicked(spec.stream, panic.as_ref())),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok((outcomes, halted, cpu_before)),
        }
    })?;
    if let Some(refusal) = specs.iter().find_map(|spec| spec.open.guard.take_refusal()) {
        return Err(refusal.into());
    }
    let begin_ns = barrier.started_ns().unwrap_or_else(now_ns);
    let mut run = add_up(specs, &outcomes, halted, begin_ns);
    (run.window_ns, run.windows) = windows_of(&counters, run.to_return_ns);
    run.warm_up = (warm_up_ns > 0).then(|| warm_up(&outcomes, warm_up_ns));
    let firsts = outcomes.iter().filter_map(|outcome| outcome.firsts.as_deref());
    run.first = Firsts::of_visit(firsts, &run, largest(specs.iter().filter_map(|spec| spec.places)));
    if !sync_targets.is_empty() && run.ended != Ended::Failed {
        synchronise(sync_targets, &mut run.errors);
        run.elapsed_ns = now_ns().saturating_sub(begin_ns);
    }
    if let Some(spec) = specs.first() {
        let gaps = spec.open.guard.watchdog.gaps(begin_ns, begin_ns + run.elapsed_ns);
        if !gaps.is_empty() {
            cut_out(&mut run, begin_ns, &gaps);
        }
    }
    let cpu = cpu_before.zip(process_usage().ok());
    run.cpu = cpu.map(|(before, after)| cpu_between(before, after)).unwrap_or_default();
    Ok((run, begin_ns))
}

struct Watcher<'a> {
    config: &'a RunConfig,
    barrier: &'a StartBarrier,
    counters: &'a [SharedCounters],
    /// When the current window is full, from the start of the run.
    full_ns: u64,
    /// When the Control was called last, from the start of the run.
    shown_ns: u64,
}

impl Watcher<'_> {
    /// Sleeps from window to window until all streams have ended; returns why it halted them, if it did.
    fn watch(&mut self, streams: usize, stop: &StopFlag, control: &mut dyn Control) -> Option<Ended> {
        let barrier = self.barrier;
        let mut halted = None;
        loop {
            let timeout_ns = match barrier.started_ns() {
                Some(begin_ns) if halted.is_none() => {
                    let elapsed_ns = now_ns().saturating_sub(begin_ns);
                    self.full_ns.saturating_sub(elapsed_ns).clamp(1, MAX_SLEEP_NS)
                }
                Some(_) => MAX_SLEEP_NS,
                // The streams are just passing the barrier.
                None => 1_000_000,
            };
            if barrier.wait_finished(streams, Duration::from_nanos(timeout_ns)) {
                return halted;
            }
            if halted.is_none() {
                halted = self.reason_to_halt(stop, control);
                if halted.is_some() {
                    barrier.halt();
                }
            }
        }
    }

    fn reason_to_halt(&mut self, stop: &StopFlag, control: &mut dyn Control) -> Option<Ended> {
        if stop.is_raised() {
            return Some(Ended::Interrupted);
        }
        (self.show_progress(control) == Flow::Stop).then_some(Ended::Stopped)
    }

    /// Calls the Control if a window became full since the last call, or if the last call is long ago.
    fn show_progress(&mut self, control: &mut dyn Control) -> Flow {
        let Some(begin_ns) = self.barrier.started_ns() else { return Flow::Continue };
        let elapsed_ns = now_ns().saturating_sub(begin_ns);
        if elapsed_ns < self.full_ns && elapsed_ns < self.shown_ns + MAX_SILENCE_NS {
            return Flow::Continue;
        }
        self.shown_ns = elapsed_ns;
        self.full_ns = window_end_ns(self.config.window_ns, elapsed_ns);
        let totals = || self.counters.iter().map(SharedCounters::totals);
        let bytes = totals().map(|(bytes, _)| bytes).sum();
        let ops = totals().map(|(_, ops)| ops).sum();
        control.window(&Progress { elapsed_ns, bytes, ops })
    }
}

fn add_up(specs: &[StreamSpec<'_>], outcomes: &[StreamOutcome], halted: Option<Ended>, begin_ns: u64) -> Run {
    let mut histogram = Histogram::new();
    for outcome in outcomes {
        histogram.merge(&outcome.latencies.histogram);
    }
    let last_ns =
        issued(outcomes).map(|outcome| outcome.end_ns).chain(outcomes.iter().map(offered_until_ns)).max();
    let to_return_ns = last_ns.unwrap_or(begin_ns).saturating_sub(begin_ns);
    let mut notes: Vec<String> = outcomes.iter().filter_map(|outcome| outcome.note.clone()).collect();
    notes.dedup();
    let sum = |count: fn(&StreamOutcome) -> u64| outcomes.iter().map(count).sum();
    let within_submit = outcomes.iter().map(|outcome| outcome.within_submit).sum();
    let ended = ended(&outcomes.iter().map(|outcome| outcome.end), halted);
    let engine = outcomes.iter().map(|outcome| outcome.engine).min().unwrap_or(EngineKind::Sync);
    Run {
        elapsed_ns: to_return_ns,
        to_return_ns,
        asked_bytes: sum(|outcome| outcome.asked_bytes),
        bytes: sum(|outcome| outcome.bytes),
        ops: sum(|outcome| outcome.ops),
        histogram,
        latency_sum_ns: outcomes.iter().map(latency_sum_ns).sum(),
        positions: outcomes.iter().find_map(|outcome| outcome.positions.clone()),
        jobs: jobs_of(specs, outcomes),
        streams: specs.iter().zip(outcomes).map(|(spec, outcome)| stream(spec, outcome, begin_ns)).collect(),
        errors: outcomes
            .iter()
            .flat_map(|outcome| outcome.missed.iter().chain(&outcome.error).cloned())
            .collect(),
        processor_wait_ns: issued(outcomes).map(|outcome| outcome.processor_wait_ns).sum(),
        check: ColdCheck {
            cached_bytes: None,
            ranges_checked: sum(|outcome| outcome.cache_probe.checked),
            ranges_wrong: sum(|outcome| outcome.cache_probe.wrong),
        },
        interrupted_calls: sum(|outcome| outcome.interrupted_calls),
        content: outcomes.iter().filter_map(|outcome| outcome.content).reduce(ReadContent::plus),
        issuing: Issuing { within_submit, ..Issuing::default() },
        notes,
        ..Run::without_io(ended, engine)
    }
}

/// When the time of a stream with a rate was over, whether or not anything arrived; 0 without one.
fn offered_until_ns(outcome: &StreamOutcome) -> u64 {
    outcome.job_run.as_ref().map_or(0, |run| run.over_ns)
}

/// Of all I/Os of a stream.
fn latency_sum_ns(outcome: &StreamOutcome) -> u128 {
    let early_ns = outcome.early.as_ref().map_or(0, |early| early.latencies.sum_ns);
    u128::from(early_ns) + u128::from(outcome.latencies.sum_ns)
}

/// What each job of a load did: its streams together.
fn jobs_of(specs: &[StreamSpec<'_>], outcomes: &[StreamOutcome]) -> Vec<JobRun> {
    let mut jobs: Vec<JobRun> = Vec::new();
    for (spec, outcome) in specs.iter().zip(outcomes) {
        let (Some(load), Some(run)) = (spec.load, &outcome.job_run) else { continue };
        if jobs.len() <= load.job_index {
            jobs.resize_with(load.job_index + 1, JobRun::default);
        }
        jobs[load.job_index].add(run);
    }
    jobs
}

/// What all streams completed in the warm-up.
fn warm_up(outcomes: &[StreamOutcome], until_ns: u64) -> WarmUp {
    let mut sum = WarmUp { until_ns, bytes: 0, ops: 0, histogram: Histogram::new() };
    for early in outcomes.iter().filter_map(|outcome| outcome.early.as_deref()) {
        sum.bytes += early.bytes;
        sum.ops += early.ops;
        sum.histogram.merge(&early.latencies.histogram);
    }
    sum
}

/// The streams that issued any I/O.
fn issued(outcomes: &[StreamOutcome]) -> impl Iterator<Item = &StreamOutcome> {
    outcomes.iter().filter(|outcome| outcome.asked_bytes > 0)
}

fn stream(spec: &StreamSpec<'_>, outcome: &StreamOutcome, begin_ns: u64) -> StreamResult {
    let &StreamOutcome { start_ns, bytes, ops, .. } = outcome;
    let end_ns = outcome.end_ns.max(offered_until_ns(outcome));
    since(
        begin_ns,
        StreamResult {
            index: spec.stream,
            target: spec.target,
            start_ns,
            end_ns,
            bytes,
            ops,
            active_ns: None,
        },
    )
}

/// Synchronises every target, all at once.
fn synchronise(targets: &[OpenTarget<'_>], errors: &mut Vec<IoError>) {
    let results = at_once(targets.iter().collect(), |target| rustix::fs::fdatasync(target.fd()));
    for (target, result) in targets.iter().zip(results) {
        let Err(errno) = result else { continue };
        let errno = errno.raw_os_error();
        let message = format!("fdatasync: {}", errno_text(errno));
        errors.push(IoError { target: target.index, stream: None, offset_bytes: 0, errno, message });
    }
}

fn cpu_between(before: Usage, after: Usage) -> CpuTime {
    CpuTime {
        user: after.user_ns.saturating_sub(before.user_ns),
        system: after.system_ns.saturating_sub(before.system_ns),
    }
}

fn panicked(stream: u32, panic: &(dyn Any + Send)) -> EngineError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    EngineError::Panicked { stream, message: text.unwrap_or("no message").to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_panic_survive() {
        let panic =
            std::panic::catch_unwind(|| panic!("slot {} is taken (part of the test)", 7)).unwrap_err();
        let error = panicked(3, panic.as_ref());
        assert_eq!(error.to_string(), "the thread of stream 3 panicked: slot 7 is taken (part of the test)");
    }
}
