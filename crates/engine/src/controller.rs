//! The calling thread's part of a run: start the streams, look at them window by window, ask the Control, stop them, and
//! add up what they did. It issues no I/O but the `fdatasync` at the end.

use crate::EngineError;
use crate::board::{Board, WINDOWS};
use crate::clock::now_ns;
use crate::gate::{Gate, Opened};
use crate::job::{Control, Ended, Flow, Progress, Run};
use crate::lane::{Lane, Outcome, StreamEnd, errno_words};
use crate::stream::{Course, Done, live};
use rdsk_model::{ColdCheck, CpuTime, EngineKind, IoError, Issuing, PageCacheState, StopFlag, StreamResult};
use rdsk_stats::Histogram;
use rdsk_sys::usage::{Usage, process_usage};
use std::any::Any;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The controller looks at the stop flag at least this often.
const LONGEST_SLEEP_NS: u64 = 20_000_000;

/// The control is called at least this often, however wide the windows are, so that whoever watches sees the run go on.
const LONGEST_SILENCE_NS: u64 = 200_000_000;

/// Windows before the current one that are read again, because a completion may be published after its window ended.
const REREAD: usize = 8;

/// A file that is synchronised when the streams have ended.
pub(crate) struct ToSync<'a> {
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
pub(crate) fn conduct(
    course: &Course,
    lanes: &[Lane<'_>],
    cpus: &[usize],
    to_sync: &[ToSync<'_>],
    stop: &StopFlag,
    control: &mut dyn Control,
) -> Result<(Run, u64), EngineError> {
    let boards: Vec<Board> = lanes.iter().map(|_| Board::new()).collect();
    let (dones, halted, cpu_before) = std::thread::scope(|scope| {
        // Should the Control panic, the scope waits for the streams before the panic goes on.
        let _halts = HaltOnPanic(&course.gate);
        let mut handles = Vec::with_capacity(lanes.len());
        let mut failed = None;
        for (index, (&lane, board)) in lanes.iter().zip(&boards).enumerate() {
            let cpu = (!cpus.is_empty()).then(|| cpus[index % cpus.len()]);
            let builder = std::thread::Builder::new().name(format!("rdsk-stream-{index}"));
            match builder.spawn_scoped(scope, move || live(course, lane, board, cpu)) {
                Ok(handle) => handles.push(handle),
                Err(source) => {
                    failed = Some(EngineError::Thread { stream: lane.stream, source });
                    break;
                }
            }
        }
        let all_ready = course.gate.wait_until_ready(handles.len()) == lanes.len();
        let cpu_before = process_usage().ok();
        course.gate.open(if all_ready { Opened::Start } else { Opened::Abort });
        let halted = watch(course, &boards, handles.len(), stop, control);
        let mut dones = Vec::with_capacity(handles.len());
        for (handle, lane) in handles.into_iter().zip(lanes) {
            match handle.join() {
                Ok(Ok(done)) => dones.push(done),
                Ok(Err(error)) => _ = failed.get_or_insert(error),
                Err(panic) => _ = failed.get_or_insert(panicked(lane.stream, panic.as_ref())),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok((dones, halted, cpu_before)),
        }
    })?;
    let begin_ns = issued(&dones).map(|outcome| outcome.start_ns).min().unwrap_or_else(now_ns);
    let mut run = add_up(lanes, &dones, halted, begin_ns);
    run.windows = windows_of(&boards, course, run.to_return_ns);
    run.window_ns = course.window_ns;
    if !to_sync.is_empty() && run.ended != Ended::Failed {
        synchronise(to_sync, &mut run.errors);
        run.elapsed_ns = now_ns().saturating_sub(begin_ns);
    }
    run.cpu = cpu_between(cpu_before, process_usage().ok());
    Ok((run, begin_ns))
}

/// Sends the streams home when the controller itself unwinds.
struct HaltOnPanic<'a>(&'a Gate);

impl Drop for HaltOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.halt();
            self.0.open(Opened::Abort);
        }
    }
}

/// Sleeps from window to window until all streams have ended.
fn watch(
    course: &Course,
    boards: &[Board],
    streams: usize,
    stop: &StopFlag,
    control: &mut dyn Control,
) -> Halted {
    let gate = &course.gate;
    let mut halted = Halted::No;
    let mut windows: Vec<u64> = Vec::with_capacity(WINDOWS);
    let mut shown_ns = 0;
    loop {
        let timeout_ns = match gate.begun_ns() {
            Some(begin_ns) if halted == Halted::No => {
                let full = u64::try_from(windows.len()).unwrap_or(u64::MAX);
                let next_ns = begin_ns.saturating_add((full + 1).saturating_mul(course.window_ns));
                next_ns.saturating_sub(now_ns()).clamp(1, LONGEST_SLEEP_NS)
            }
            Some(_) => LONGEST_SLEEP_NS,
            // The streams are on their way through the gate.
            None => 1_000_000,
        };
        if gate.wait_finished(streams, Duration::from_nanos(timeout_ns)) {
            return halted;
        }
        if halted != Halted::No {
            continue;
        }
        if stop.is_raised() {
            halted = Halted::ByFlag;
            gate.halt();
            continue;
        }
        if look(course, boards, &mut windows, &mut shown_ns, control) == Flow::Stop {
            halted = Halted::ByControl;
            gate.halt();
        }
    }
}

/// Shows the Control the windows that are full by now, if any became full since it was shown them last, or if that is long
/// ago.
fn look(
    course: &Course,
    boards: &[Board],
    windows: &mut Vec<u64>,
    shown_ns: &mut u64,
    control: &mut dyn Control,
) -> Flow {
    let Some(begin_ns) = course.gate.begun_ns() else { return Flow::Continue };
    let elapsed_ns = now_ns().saturating_sub(begin_ns);
    let full = usize::try_from(elapsed_ns / course.window_ns).unwrap_or(usize::MAX).min(WINDOWS - 1);
    if full <= windows.len() && elapsed_ns < *shown_ns + LONGEST_SILENCE_NS {
        return Flow::Continue;
    }
    *shown_ns = elapsed_ns;
    windows.truncate(windows.len().saturating_sub(REREAD));
    for index in windows.len()..full {
        windows.push(boards.iter().map(|board| board.window(index)).sum());
    }
    let (bytes, ops) =
        boards.iter().map(Board::totals).fold((0, 0), |(b, o), (bytes, ops)| (b + bytes, o + ops));
    control.window(&Progress { elapsed_ns, windows, window_ns: course.window_ns, bytes, ops })
}

fn add_up(lanes: &[Lane<'_>], dones: &[Done], halted: Halted, begin_ns: u64) -> Run {
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
        streams: lanes
            .iter()
            .zip(outcomes())
            .map(|(lane, outcome)| stream(lane, outcome, begin_ns))
            .collect(),
        errors: outcomes().flat_map(|outcome| outcome.missed.iter().chain(&outcome.error).cloned()).collect(),
        cpu: CpuTime::default(),
        page_cache: PageCacheState::default(),
        check: ColdCheck {
            cached_bytes: None,
            ranges_checked: outcomes().map(|outcome| outcome.look.checked).sum(),
            ranges_wrong: outcomes().map(|outcome| outcome.look.wrong).sum(),
        },
        interrupted_calls: outcomes().map(|outcome| outcome.interrupted_calls).sum(),
        engine: dones.iter().map(|done| done.engine).min().unwrap_or(EngineKind::Sync),
        issuing: Issuing { within_submit, ..Issuing::default() },
        notes,
    }
}

/// The streams that issued anything.
fn issued(dones: &[Done]) -> impl Iterator<Item = &Outcome> {
    dones.iter().map(|done| &done.outcome).filter(|outcome| outcome.asked_bytes > 0)
}

fn stream(lane: &Lane<'_>, outcome: &Outcome, begin_ns: u64) -> StreamResult {
    StreamResult {
        index: lane.stream,
        target: lane.target,
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
fn windows_of(boards: &[Board], course: &Course, to_return_ns: u64) -> Vec<u64> {
    let sum = |index: usize| -> u64 { boards.iter().map(|board| board.window(index)).sum() };
    let needed = usize::try_from(to_return_ns.div_ceil(course.window_ns)).unwrap_or(usize::MAX).min(WINDOWS);
    let mut windows: Vec<u64> = (0..WINDOWS).map(sum).collect();
    let used = windows.iter().rposition(|&bytes| bytes > 0).map_or(0, |last| last + 1);
    windows.truncate(needed.max(used));
    windows
}

/// Synchronises every target, all at once.
fn synchronise(to_sync: &[ToSync<'_>], errors: &mut Vec<IoError>) {
    let results: Vec<(u32, rustix::io::Result<()>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = to_sync
            .iter()
            .skip(1)
            .map(|one| (one.target, scope.spawn(|| rustix::fs::fdatasync(one.fd))))
            .collect();
        let first = to_sync.iter().take(1).map(|one| (one.target, rustix::fs::fdatasync(one.fd)));
        let mut results: Vec<_> = first.collect();
        for (target, thread) in threads {
            results.push((target, thread.join().unwrap_or(Err(rustix::io::Errno::IO))));
        }
        results
    });
    for (target, result) in results {
        if let Err(errno) = result {
            let message = format!("fdatasync: {}", errno_words(errno.raw_os_error()));
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
