//! The calling thread's part of a run: start the streams, look at them window by window, ask the Control, stop them, and
//! add up what they did. It issues no I/O but the `fdatasync` at the end.

use crate::EngineError;
use crate::clock::now_ns;
use crate::counters::{SharedCounters, WINDOWS};
use crate::job::{Control, Ended, Flow, Progress, Run};
use crate::start_barrier::{Release, StartBarrier};
use crate::stream::{RunConfig, StreamDone, run_stream};
use crate::stream_spec::{Outcome, StreamEnd, StreamSpec, errno_text};
use rdsk_model::{ColdCheck, CpuTime, EngineKind, IoError, Issuing, PageCacheState, StopFlag, StreamResult};
use rdsk_stats::Histogram;
use rdsk_sys::usage::{Usage, process_usage};
use std::any::Any;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The controller looks at the stop flag at least this often.
const MAX_SLEEP_NS: u64 = 20_000_000;

/// The control is called at least this often, however wide the windows are, so that whoever watches sees the run go on.
const MAX_SILENCE_NS: u64 = 200_000_000;

/// Windows before the current one that are read again, because a completion may be published after its window ended.
const REREAD: usize = 8;

/// A file that is synchronised when the streams have ended.
pub(crate) struct SyncTarget<'a> {
    /// Index of the target, as in the Record.
    pub(crate) target: u32,
    pub(crate) fd: BorrowedFd<'a>,
}

/// Why the controller stopped the streams, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Halted {
    No,
    ByControl,
    ByFlag,
}

/// Runs all lanes to their end. Gives the Run, and the clock's reading at its start.
pub(crate) fn run_streams(
    config: &RunConfig,
    specs: &[StreamSpec<'_>],
    cpus: &[usize],
    sync_targets: &[SyncTarget<'_>],
    stop: &StopFlag,
    control: &mut dyn Control,
) -> Result<(Run, u64), EngineError> {
    let counters: Vec<SharedCounters> = specs.iter().map(|_| SharedCounters::new()).collect();
    let (dones, halted, cpu_before) = std::thread::scope(|scope| {
        // Should the Control panic, the scope waits for the streams before the panic goes on.
        let _halts = HaltOnPanic(&config.barrier);
        let mut handles = Vec::with_capacity(specs.len());
        let mut failed = None;
        for (index, (&spec, shared)) in specs.iter().zip(&counters).enumerate() {
            let cpu = (!cpus.is_empty()).then(|| cpus[index % cpus.len()]);
            let builder = std::thread::Builder::new().name(format!("rdsk-stream-{index}"));
            match builder.spawn_scoped(scope, move || run_stream(config, spec, shared, cpu)) {
                Ok(handle) => handles.push(handle),
                Err(source) => {
                    failed = Some(EngineError::Thread { stream: spec.stream, source });
                    break;
                }
            }
        }
        let all_ready = config.barrier.wait_until_ready(handles.len()) == specs.len();
        let cpu_before = process_usage().ok();
        config.barrier.release(if all_ready { Release::Start } else { Release::Abort });
        let halted = watch(config, &counters, handles.len(), stop, control);
        let mut dones = Vec::with_capacity(handles.len());
        for (handle, spec) in handles.into_iter().zip(specs) {
            match handle.join() {
                Ok(Ok(done)) => dones.push(done),
                Ok(Err(error)) => _ = failed.get_or_insert(error),
                Err(panic) => _ = failed.get_or_insert(panicked(spec.stream, panic.as_ref())),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok((dones, halted, cpu_before)),
        }
    })?;
    let begin_ns = issued(&dones).map(|outcome| outcome.start_ns).min().unwrap_or_else(now_ns);
    let mut run = add_up(specs, &dones, halted, begin_ns);
    run.windows = windows_of(&counters, config, run.to_return_ns);
    run.window_ns = config.window_ns;
    if !sync_targets.is_empty() && run.ended != Ended::Failed {
        synchronise(sync_targets, &mut run.errors);
        run.elapsed_ns = now_ns().saturating_sub(begin_ns);
    }
    run.cpu = cpu_between(cpu_before, process_usage().ok());
    Ok((run, begin_ns))
}

/// Sends the streams home when the controller itself unwinds.
struct HaltOnPanic<'a>(&'a StartBarrier);

impl Drop for HaltOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.halt();
            self.0.release(Release::Abort);
        }
    }
}

/// Sleeps from window to window until all streams have ended.
fn watch(
    config: &RunConfig,
    counters: &[SharedCounters],
    streams: usize,
    stop: &StopFlag,
    control: &mut dyn Control,
) -> Halted {
    let barrier = &config.barrier;
    let mut halted = Halted::No;
    let mut windows: Vec<u64> = Vec::with_capacity(WINDOWS);
    let mut shown_ns = 0;
    loop {
        let timeout_ns = match barrier.started_ns() {
            Some(begin_ns) if halted == Halted::No => {
                let full = u64::try_from(windows.len()).unwrap_or(u64::MAX);
                let next_ns = begin_ns.saturating_add((full + 1).saturating_mul(config.window_ns));
                next_ns.saturating_sub(now_ns()).clamp(1, MAX_SLEEP_NS)
            }
            Some(_) => MAX_SLEEP_NS,
            // The streams are on their way through the gate.
            None => 1_000_000,
        };
        if barrier.wait_finished(streams, Duration::from_nanos(timeout_ns)) {
            return halted;
        }
        if halted != Halted::No {
            continue;
        }
        if stop.is_raised() {
            halted = Halted::ByFlag;
            barrier.halt();
            continue;
        }
        if show_progress(config, counters, &mut windows, &mut shown_ns, control) == Flow::Stop {
            halted = Halted::ByControl;
            barrier.halt();
        }
    }
}

/// Shows the Control the windows that are full by now, if any became full since it was shown them last, or if that is long
/// ago.
fn show_progress(
    config: &RunConfig,
    counters: &[SharedCounters],
    windows: &mut Vec<u64>,
    shown_ns: &mut u64,
    control: &mut dyn Control,
) -> Flow {
    let Some(begin_ns) = config.barrier.started_ns() else { return Flow::Continue };
    let elapsed_ns = now_ns().saturating_sub(begin_ns);
    let full = usize::try_from(elapsed_ns / config.window_ns).unwrap_or(usize::MAX).min(WINDOWS - 1);
    if full <= windows.len() && elapsed_ns < *shown_ns + MAX_SILENCE_NS {
        return Flow::Continue;
    }
    *shown_ns = elapsed_ns;
    windows.truncate(windows.len().saturating_sub(REREAD));
    for index in windows.len()..full {
        windows.push(counters.iter().map(|shared| shared.window(index)).sum());
    }
    let (bytes, ops) =
        counters.iter().map(SharedCounters::totals).fold((0, 0), |(b, o), (bytes, ops)| (b + bytes, o + ops));
    control.window(&Progress { elapsed_ns, windows, window_ns: config.window_ns, bytes, ops })
}

fn add_up(specs: &[StreamSpec<'_>], dones: &[StreamDone], halted: Halted, begin_ns: u64) -> Run {
    let mut histogram = Histogram::new();
    for done in dones {
        histogram.merge(&done.outcome.latencies.histogram);
    }
    let outcomes = || dones.iter().map(|done| &done.outcome);
    let to_return_ns = issued(dones).map(|outcome| outcome.end_ns).max().unwrap_or(begin_ns) - begin_ns;
    let mut notes: Vec<String> = dones.iter().filter_map(|done| done.note.clone()).collect();
    notes.dedup();
    let within_submit = outcomes().map(|outcome| outcome.within_submit).sum();
    Run {
        ended: ended(outcomes().map(|outcome| outcome.end), halted),
        elapsed_ns: to_return_ns,
        to_return_ns,
        asked_bytes: outcomes().map(|outcome| outcome.asked_bytes).sum(),
        bytes: outcomes().map(|outcome| outcome.bytes).sum(),
        ops: outcomes().map(|outcome| outcome.ops).sum(),
        histogram,
        latency_sum_ns: outcomes().map(|outcome| u128::from(outcome.latencies.sum_ns)).sum(),
        windows: Vec::new(),
        window_ns: 0,
        points: outcomes().find_map(|outcome| outcome.points.clone()),
        streams: specs
            .iter()
            .zip(outcomes())
            .map(|(spec, outcome)| stream(spec, outcome, begin_ns))
            .collect(),
        errors: outcomes().flat_map(|outcome| outcome.missed.iter().chain(&outcome.error).cloned()).collect(),
        cpu: CpuTime::default(),
        page_cache: PageCacheState::default(),
        check: ColdCheck {
            cached_bytes: None,
            ranges_checked: outcomes().map(|outcome| outcome.cache_probe.checked).sum(),
            ranges_wrong: outcomes().map(|outcome| outcome.cache_probe.wrong).sum(),
        },
        interrupted_calls: outcomes().map(|outcome| outcome.interrupted_calls).sum(),
        engine: dones.iter().map(|done| done.engine).min().unwrap_or(EngineKind::Sync),
        issuing: Issuing { within_submit, ..Issuing::default() },
        notes,
    }
}

/// The streams that issued anything.
fn issued(dones: &[StreamDone]) -> impl Iterator<Item = &Outcome> {
    dones.iter().map(|done| &done.outcome).filter(|outcome| outcome.asked_bytes > 0)
}

fn stream(spec: &StreamSpec<'_>, outcome: &Outcome, begin_ns: u64) -> StreamResult {
    StreamResult {
        index: spec.stream,
        target: spec.target,
        start_ns: outcome.start_ns.saturating_sub(begin_ns),
        end_ns: outcome.end_ns.saturating_sub(begin_ns),
        bytes: outcome.bytes,
        ops: outcome.ops,
    }
}

/// Why a visit ended: the strongest reason that holds.
fn ended(ends: impl Iterator<Item = StreamEnd>, halted: Halted) -> Ended {
    let mut seen = [0usize; 4];
    let mut streams = 0;
    for end in ends {
        seen[end as usize] += 1;
        streams += 1;
    }
    let count = |end: StreamEnd| seen[end as usize];
    if count(StreamEnd::Failed) == streams {
        Ended::Failed
    } else if count(StreamEnd::Halted) > 0 {
        if halted == Halted::ByControl { Ended::Stopped } else { Ended::Interrupted }
    } else if count(StreamEnd::OutOfTime) > 0 {
        Ended::OutOfTime
    } else {
        Ended::Complete
    }
}

/// All windows up to the last return.
fn windows_of(counters: &[SharedCounters], config: &RunConfig, to_return_ns: u64) -> Vec<u64> {
    let sum = |index: usize| -> u64 { counters.iter().map(|shared| shared.window(index)).sum() };
    let needed = usize::try_from(to_return_ns.div_ceil(config.window_ns)).unwrap_or(usize::MAX).min(WINDOWS);
    let mut windows: Vec<u64> = (0..WINDOWS).map(sum).collect();
    let used = windows.iter().rposition(|&bytes| bytes > 0).map_or(0, |last| last + 1);
    windows.truncate(needed.max(used));
    windows
}

/// Synchronises every target, all at once.
fn synchronise(sync_targets: &[SyncTarget<'_>], errors: &mut Vec<IoError>) {
    let results: Vec<(u32, rustix::io::Result<()>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = sync_targets
            .iter()
            .skip(1)
            .map(|one| (one.target, scope.spawn(|| rustix::fs::fdatasync(one.fd))))
            .collect();
        let first = sync_targets.iter().take(1).map(|one| (one.target, rustix::fs::fdatasync(one.fd)));
        let mut results: Vec<_> = first.collect();
        for (target, thread) in threads {
            results.push((target, thread.join().unwrap_or(Err(rustix::io::Errno::IO))));
        }
        results
    });
    for (target, result) in results {
        if let Err(errno) = result {
            let message = format!("fdatasync: {}", errno_text(errno.raw_os_error()));
            errors.push(IoError {
                target,
                stream: None,
                offset_bytes: 0,
                errno: errno.raw_os_error(),
                message,
            });
        }
    }
}

fn cpu_between(before: Option<Usage>, after: Option<Usage>) -> CpuTime {
    match (before, after) {
        (Some(before), Some(after)) => CpuTime {
            user: after.user_ns.saturating_sub(before.user_ns),
            system: after.system_ns.saturating_sub(before.system_ns),
        },
        _ => CpuTime::default(),
    }
}

fn panicked(stream: u32, panic: &(dyn Any + Send)) -> EngineError {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".into());
    EngineError::Panicked { stream, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_reason_wins() {
        use StreamEnd::{Complete, Failed, Halted as StreamHalted, OutOfTime};
        for (ends, halted, expected) in [
            (vec![Complete, Complete], Halted::No, Ended::Complete),
            (vec![Complete, OutOfTime], Halted::No, Ended::OutOfTime),
            (vec![Failed, Failed], Halted::No, Ended::Failed),
            (vec![Failed, OutOfTime], Halted::No, Ended::OutOfTime),
            (vec![Failed, Complete], Halted::No, Ended::Complete),
            (vec![StreamHalted, Failed], Halted::ByControl, Ended::Stopped),
            (vec![StreamHalted, OutOfTime], Halted::ByFlag, Ended::Interrupted),
            (vec![Complete, Complete], Halted::ByFlag, Ended::Complete),
        ] {
            assert_eq!(ended(ends.iter().copied(), halted), expected, "{ends:?}");
        }
    }

    #[test]
    fn the_words_of_a_panic_survive() {
        let panic =
            std::panic::catch_unwind(|| panic!("slot {} is taken (part of the test)", 7)).unwrap_err();
        let error = panicked(3, panic.as_ref());
        assert_eq!(error.to_string(), "the thread of stream 3 panicked: slot 7 is taken (part of the test)");
    }
}
