//! A command of which only the kernel's counters are known, as the cells of a copy: the verdict of what it read and of what it wrote, and
//! the flush of what it left in memory. It starts no command, and opens a device only to flush it after the command has ended.

use super::cell::{CellSum, Pauses, Visited};
use super::flush::problem;
use rdsk_dd::Calls;
use rdsk_engine::MonotonicClock;
use rdsk_model::{
    Clock as _, CommandFlush, CommandVerdict, CopyRun, CpuTime, EngineKind, IoPath, Op, PageCacheState,
    ProcessCalls, ProcessIo, StableBy, Target, TargetKind, VerdictCode, Workload,
};
use rdsk_observe::watch::family;
use rdsk_observe::{KernelObserver, Observer as _, VisitEvidence};
use rdsk_targets::{Roots, Witness};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How often it is asked whether to wait for a flush any longer.
const LOOK: Duration = Duration::from_millis(20);
/// Reads are judged from this share on of what the read calls returned: pipes and /dev/zero return the rest, or memory does, and the
/// counters do not distinguish these.
const LEAST_READ: f64 = 0.5;
/// Bytes charged to a command without a write call from which it wrote by a mapping. Less is an access time or the like.
const MIN_MAPPED_BYTES: u64 = 1 << 20;

/// Bytes fetched above this multiple of what the read calls returned are page faults on programs and libraries.
const MOST_FETCHED: u64 = 2;
/// Most bytes that a command writes to standard error or a log, and the least multiple of them that it then read.
const MOST_OF_A_LOG: u64 = 64 << 10;
const LEAST_BESIDE_A_LOG: u64 = 16;

/// Share of what was charged to a command from which on the places that are named had all of its I/O.
const NEARLY_ALL: f64 = 0.95;

/// The places that a command may read and write, observed from before its start.
pub struct CommandPlaces {
    witnesses: Vec<Witness>,
    observer: KernelObserver,
    /// Places with a lower index are named by the command line, the others are a guess.
    named: u32,
    /// The control groups in which processes of the command were, as procfs has them.
    groups: HashSet<String>,
}

/// What the kernel says of a command that has ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommandCounts {
    /// From its start to its end.
    pub elapsed_ns: u64,
    /// Its read and write calls.
    pub calls: ProcessCalls,
    /// What was charged to it.
    pub charged: ProcessIo,
    /// Its time on processors.
    pub cpu: CpuTime,
}

/// The end of the flush of one place.
struct Ended {
    index: usize,
    at_ns: u64,
    result: Result<(), Errno>,
}

/// The flush of all places.
pub struct PlacesFlushed {
    since_ns: u64,
    ends: Vec<Ended>,
    is_whole: bool,
}

impl PlacesFlushed {
    fn has_failed(&self) -> bool {
        self.ends.iter().any(|end| end.result.is_err())
    }
}

impl CommandPlaces {
    /// Begins to observe these directories and block devices; the command must start now. What cannot be looked at is left out. The
    /// command line names the first `named` of them. The others, such as the directory in which the command starts, do not count where
    /// the named ones had all of its I/O: what other programs do there is not the command's.
    pub fn begin(places: &[PathBuf], named: usize, roots: &Roots) -> Self {
        let witness = |(index, place): (u32, &PathBuf)| {
            let fd = rustix::fs::open(place, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
            let mut witness = Witness::of(&fd, &place.to_string_lossy(), roots)?;
            witness.target.index = index;
            Some(witness)
        };
        let witnesses: Vec<Witness> = (0..).zip(places).filter_map(witness).collect();
        let targets: Vec<Target> = witnesses.iter().map(|witness| witness.target.clone()).collect();
        let observer = KernelObserver::new(&targets, &roots.sys, &roots.proc, Arc::new(MonotonicClock));
        let mut observer = observer.without_series();
        observer.begin();
        Self { witnesses, observer, named: u32::try_from(named).unwrap_or(u32::MAX), groups: HashSet::new() }
    }

    /// Notes what holds back the command with this directory in procfs, or what it started: it may have entered a control group.
    pub fn look_at(&mut self, process: &Path) {
        for member in family(process) {
            let Ok(groups) = std::fs::read_to_string(member.join("cgroup")) else { continue };
            if self.groups.insert(groups) {
                self.observer.note_limits_of(&member);
            }
        }
    }

    /// The command has ended.
    pub fn command_ended(&mut self) {
        self.observer.end_io();
    }

    /// Flushes all places at once, filesystems by syncfs(2) and devices by fsync(2), as long as `goes_on`: what hangs then is left to the
    /// kernel.
    pub fn flush(&self, goes_on: &mut dyn FnMut() -> bool) -> PlacesFlushed {
        let since_ns = MonotonicClock.now_ns();
        let (sender, ends) = mpsc::channel();
        for (index, witness) in self.witnesses.iter().enumerate() {
            let Ok(fd) = witness.open() else { continue };
            let (sender, kind) = (sender.clone(), witness.target.kind);
            std::thread::spawn(move || {
                let result = match kind {
                    TargetKind::Block => rustix::fs::fsync(&fd),
                    TargetKind::File | TargetKind::Sim => rustix::fs::syncfs(&fd),
                };
                // The receiver has gone where the wait was cut short.
                let _ = sender.send(Ended { index, at_ns: MonotonicClock.now_ns(), result });
            });
        }
        drop(sender);
        let mut flushed = PlacesFlushed { since_ns, ends: Vec::new(), is_whole: false };
        while goes_on() {
            match ends.recv_timeout(LOOK) {
                Ok(end) => flushed.ends.push(end),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    flushed.is_whole = true;
                    break;
                }
            }
        }
        flushed
    }

    /// What the command's I/O measured, in each direction in which it reached the places or their page cache, and how the flush ended.
    pub fn finish(
        mut self,
        counts: &CommandCounts,
        flushed: Option<&PlacesFlushed>,
    ) -> (Vec<CommandVerdict>, Option<CommandFlush>) {
        let evidence = self.observer.end();
        let written = self.moved(&evidence, Op::Write, counts);
        let has_written =
            counts.calls.writes > 0 || counts.charged.write_bytes.unwrap_or(0) >= MIN_MAPPED_BYTES;
        // Of a command that wrote nothing, or nothing to a device, no time says when it was on disk.
        let flush = flushed
            .filter(|flushed| {
                has_written && (!written.is_empty() || flushed.has_failed() || !flushed.is_whole)
            })
            .map(|flushed| self.flush_of(flushed, &written));
        let later_ns = flush.as_ref().and_then(|flush| flush.took_ns);
        let read = counts
            .charged
            .read_bytes
            .filter(|&bytes| bytes > 0 && bytes as f64 >= LEAST_READ * counts.calls.read_bytes as f64);
        let of_reads = until_return(&evidence);
        // Of what was read only a part may have come from a device.
        let read = read.map(|bytes| (Op::Read, bytes.max(counts.calls.read_bytes), counts.calls.reads));
        let wrote = counts.charged.write_bytes.filter(|&bytes| bytes > 0 && has_written);
        let has_places = !self.witnesses.is_empty();
        let wrote = wrote.map(|bytes| (Op::Write, bytes, counts.calls.writes));
        let judged = [read, wrote].into_iter().flatten().filter(|_| has_places);
        let verdicts = judged.map(|(op, bytes, calls)| {
            let evidence = if op == Op::Read { &of_reads } else { &evidence };
            let moved = self.moved(evidence, op, counts);
            // What is in memory still, or came from there, is of all of them.
            let places = if moved.is_empty() { self.indices() } else { moved };
            let evidence = VisitEvidence { process: counts.charged, ..evidence.clone() };
            self.judged(counts, (op, bytes, calls.max(1)), places, later_ns, evidence)
        });
        (verdicts.filter(|verdict| !is_of_itself(counts, verdict)).collect(), flush)
    }

    fn indices(&self) -> Vec<u32> {
        self.witnesses.iter().map(|witness| witness.target.index).collect()
    }

    /// The places whose devices moved anything in this direction. Where the named ones moved all that was charged to the command, a guess
    /// counts only if it moved as much.
    fn moved(&self, evidence: &VisitEvidence, op: Op, counts: &CommandCounts) -> Vec<u32> {
        let bytes_of = |target: u32| {
            let devices = evidence.devices.iter().filter(|device| device.target == target);
            let grown = devices.filter_map(|device| Some(device.counts.as_ref().ok()?.until_stable));
            grown.map(|counts| if op == Op::Read { counts.read_bytes() } else { counts.write_bytes() }).max()
        };
        let moved = self.indices().into_iter().filter_map(|target| Some((target, bytes_of(target)?)));
        let moved: Vec<(u32, u64)> = moved.filter(|(_, bytes)| *bytes > 0).collect();
        let charged = if op == Op::Read { counts.charged.read_bytes } else { counts.charged.write_bytes };
        let named = moved.iter().filter(|(target, _)| *target < self.named);
        let named_bytes: u64 = named.map(|(_, bytes)| bytes).sum();
        let has_all = |bytes: u64| {
            charged.is_some_and(|charged| charged > 0 && bytes as f64 >= NEARLY_ALL * charged as f64)
        };
        // Where another place moved as much, either may have been the command's.
        let is_left =
            |(target, bytes): &&(u32, u64)| !has_all(named_bytes) || *target < self.named || has_all(*bytes);
        moved.iter().filter(is_left).map(|(target, _)| *target).collect()
    }

    /// Until the last place was flushed that anything was written to.
    fn flush_of(&self, flushed: &PlacesFlushed, written: &[u32]) -> CommandFlush {
        let target = |end: &Ended| &self.witnesses[end.index].target;
        let of_written = flushed.ends.iter().filter(|end| written.contains(&target(end).index));
        let last_ns = of_written.map(|end| end.at_ns).max().unwrap_or(flushed.since_ns);
        let failed = flushed.ends.iter().find_map(|end| Some((end, end.result.err()?)));
        CommandFlush {
            took_ns: (flushed.is_whole && failed.is_none()).then(|| last_ns - flushed.since_ns),
            places: self
                .witnesses
                .iter()
                .filter(|witness| written.is_empty() || written.contains(&witness.target.index))
                .map(|witness| witness.target.name.clone())
                .collect(),
            error: failed.map(|(end, errno)| problem(&target(end).name, errno).message),
        }
    }

    fn judged(
        &self,
        counts: &CommandCounts,
        (op, bytes, calls): (Op, u64, u64),
        places: Vec<u32>,
        later_ns: Option<u64>,
        evidence: VisitEvidence,
    ) -> CommandVerdict {
        let block_bytes = bytes.div_ceil(calls).max(1);
        let workload = Workload {
            op,
            block_bytes,
            align_bytes: block_bytes,
            path: IoPath::Buffered,
            engine: EngineKind::Sync,
            targets: places,
            ..Workload::sequential_read(0)
        };
        let (run, of_calls) = as_copy(counts, (op, bytes, calls), later_ns);
        let mut sum = CellSum::new(workload);
        sum.add(Visited {
            run: &run,
            calls: &of_calls,
            pauses: &Pauses::new(0, Vec::new(), [&of_calls; 2]),
            result: Ok(()),
            cpu: counts.cpu,
            cache: (PageCacheState::default(), PageCacheState::default()),
            evidence,
            extents: None,
            content: None,
        });
        let targets: Vec<Target> = self.witnesses.iter().map(|witness| witness.target.clone()).collect();
        let mut cell = sum.cell("command");
        // What its device had at the command's end is judged at that end, below a loop device too, as direct writes are.
        if rdsk_analysis::metrics::returned_bytes(&cell, Op::Write)
            .is_some_and(|wrote| op == Op::Write && wrote >= bytes)
        {
            cell.workload.path = IoPath::Direct;
        }
        CommandVerdict { op, verdict: rdsk_analysis::verdict(&cell, &targets, None) }
    }
}

/// Whether a verdict is of what a command needs for itself: its programs and libraries, which no read call asks for, or the lines of its
/// log. Where these lie is none of the places that it is watched for.
fn is_of_itself(counts: &CommandCounts, CommandVerdict { op, verdict }: &CommandVerdict) -> bool {
    let bytes = |charged: Option<u64>| charged.unwrap_or(0);
    let (fetched, wrote) = (bytes(counts.charged.read_bytes), bytes(counts.charged.write_bytes));
    match op {
        Op::Read => {
            verdict.code == VerdictCode::Unverified
                && fetched > counts.calls.read_bytes.saturating_mul(MOST_FETCHED)
        }
        Op::Write => {
            verdict.code == VerdictCode::PageCache
                && wrote <= MOST_OF_A_LOG
                && fetched >= wrote.saturating_mul(LEAST_BESIDE_A_LOG)
        }
    }
}

/// What the devices had when the command ended: its reads were complete then, and those after it are of others, or of processes that it did
/// not wait for.
fn until_return(evidence: &VisitEvidence) -> VisitEvidence {
    let mut evidence = evidence.clone();
    for counts in evidence.devices.iter_mut().filter_map(|device| device.counts.as_mut().ok()) {
        counts.until_stable = counts.during_io.diskstat;
    }
    evidence
}

/// One direction as a run of a copy, whose calls are known by their number and bytes alone.
fn as_copy(
    counts: &CommandCounts,
    (op, bytes, calls): (Op, u64, u64),
    later_ns: Option<u64>,
) -> (CopyRun, Calls) {
    let run = CopyRun {
        round: 0,
        start_ns: 0,
        open_ns: 0,
        read_ns: None,
        write_ns: None,
        flush_ns: 0,
        to_return_ns: counts.elapsed_ns,
        to_close_ns: counts.elapsed_ns,
        to_stable_ns: later_ns.map(|ns| counts.elapsed_ns + ns),
        stable_by: if later_ns.is_some() { StableBy::Rdsk } else { StableBy::Nobody },
        read_bytes: if op == Op::Read { bytes } else { 0 },
        written_bytes: if op == Op::Write { bytes } else { 0 },
        full_blocks_in: 0,
        partial_blocks_in: 0,
        full_blocks_out: 0,
        partial_blocks_out: 0,
        is_complete: true,
    };
    (run, Calls { start: Some(0), count: calls, bytes, ..Calls::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::Verdict;

    fn is_of_itself_with(charged: ProcessIo, read_bytes: u64, op: Op, code: VerdictCode) -> bool {
        let calls = ProcessCalls { read_bytes, ..ProcessCalls::default() };
        let counts = CommandCounts { calls, charged, ..CommandCounts::default() };
        let verdict = Verdict { code, device_share: None, text: String::new() };
        is_of_itself(&counts, &CommandVerdict { op, verdict })
    }

    /// Found by a user: fio's own libraries were "its counters do not follow this I/O", and a line of dd was "memory took the data".
    #[test]
    fn what_a_command_needs_for_itself_has_no_verdict() {
        let charged = |read_bytes: u64, write_bytes: u64| ProcessIo {
            read_bytes: Some(read_bytes),
            write_bytes: Some(write_bytes),
        };
        let (libraries, data) = (charged(60 << 20, 4096), charged(60 << 20, 60 << 20));
        let reads = |read_bytes, code| is_of_itself_with(libraries, read_bytes, Op::Read, code);
        assert!(reads(64_000, VerdictCode::Unverified));
        assert!(!reads(60 << 20, VerdictCode::Unverified) && !reads(64_000, VerdictCode::Device));
        let writes = |charged, code| is_of_itself_with(charged, 60 << 20, Op::Write, code);
        assert!(writes(libraries, VerdictCode::PageCache) && !writes(libraries, VerdictCode::Device));
        assert!(!writes(data, VerdictCode::PageCache));
        assert!(!writes(charged(0, 4096), VerdictCode::PageCache), "a command that only writes a little");
    }
}
