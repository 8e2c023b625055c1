//! Copies of `rdsk dd` as a Record: both ends are looked at before a copy begins, watched while it runs, and flushed after
//! dd's last line. The copy itself is that of `rdsk-dd`; nothing is opened for writing here, and nothing is printed.

mod cell;
mod command;
mod end;
mod flush;

pub use command::{CommandCounts, CommandPlaces};

use crate::execute::{elapsed_ns, empty_record};
use cell::{CellSum, Pauses, Visited};
use flush::{Flushed, Stable, flush};
use rdsk_analysis::Analysis;
use rdsk_dd::{Calls, Failure, Finished, Operands, Side};
use rdsk_engine::{MonotonicClock, Watchdog, measure_clock};
use rdsk_model::{
    Clock as _, Copy, CopyRun, CpuTime, EndKind, ExtentEvidence, Op, PageCacheState, Problem, ProblemKind,
    Record, StableBy, Status,
};
use rdsk_observe::bpf::Attachment;
use rdsk_observe::{KernelObserver, Observer};
use rdsk_sys::cache::cachestat;
use rdsk_sys::usage::{Usage, process_usage};
use rdsk_targets::{Roots, Witness};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// What is done about data that dd leaves in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// They are flushed after dd's last line, and the time that this takes is recorded.
    Flush,
    /// They stay.
    Leave,
}

/// What a run is waited for after dd's last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// The flush of what dd left in memory.
    Flush,
    /// A short look at what a device holds where it was read.
    Look,
}

/// How the last run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopiesEnd {
    /// All runs are done.
    Done,
    /// An error that dd said ended it.
    Failed,
    /// This signal did.
    Signal(i32),
}

/// The copies of one command: one line of operands or two, each run once or more.
pub struct Copies {
    record: Record,
    roots: Roots,
    began: Instant,
    /// Notices when this process does not run.
    watchdog: Watchdog,
    leftovers: Leftovers,
    /// The sums of both ends of each line, where they are storage.
    sums: Vec<[Option<CellSum>; 2]>,
    /// What ended the copies, or was lost: that a device left before its copy came to its end, which dd may not notice, since beyond the
    /// end of a device reads return nothing; that the flush after a copy failed; that a copy was refused.
    problem: Option<Problem>,
}

/// A run that is being watched.
pub struct Watching {
    line: usize,
    open_ns: u64,
    start_ns: u64,
    ends: [Option<WatchedEnd>; 2],
    usage: Option<Usage>,
}

struct WatchedEnd {
    witness: Witness,
    before: CacheBefore,
    observer: KernelObserver,
}

/// The page cache before a run, over all that the operands may copy.
#[derive(Clone, Copy)]
struct CacheBefore {
    state: PageCacheState,
    bytes: u64,
}

impl CacheBefore {
    /// Over what was copied in the end. Of a copy that was cut short it is known only where all or nothing was cached.
    fn over(self, copied_bytes: u64) -> PageCacheState {
        let part = |of_all: Option<u64>| match of_all? {
            of_all if copied_bytes >= self.bytes => Some(of_all),
            0 => Some(0),
            of_all => (of_all >= self.bytes).then_some(copied_bytes),
        };
        PageCacheState {
            cached_bytes: part(self.state.cached_bytes),
            dirty_bytes: part(self.state.dirty_bytes),
        }
    }
}

impl Copies {
    /// Nothing copied yet; `command` is the command line for the Record, and the watchdog is that of the copy.
    pub fn new(command: Vec<String>, roots: Roots, leftovers: Leftovers, watchdog: Watchdog) -> Self {
        // Without its thread, a pause would count as the copy's.
        let _ = watchdog.start();
        let mut record = empty_record(command, None);
        record.host = Some(rdsk_observe::host(&roots.proc, &roots.sys, measure_clock()));
        Self { record, roots, began: Instant::now(), watchdog, leftovers, sums: Vec::new(), problem: None }
    }

    /// Looks at both ends of a run of a line and begins to watch them; the copy must begin now. Lines count from 0, in the
    /// order of their first runs. `open_ns` is what opening both ends took.
    pub fn begin(
        &mut self,
        line: usize,
        (words, operands): (&[String], &Operands),
        (input, output): (&Side, &Side),
        open_ns: u64,
    ) -> Watching {
        let from_bytes = input.first_read(end::total(operands.skip, operands.input_block_bytes));
        let to_bytes = output.first_write(end::total(operands.seek, operands.output_block_bytes));
        let most_bytes = operands.count.map(|count| end::total(count, operands.input_block_bytes));
        let mut read_end = self.look_at(input, from_bytes, most_bytes);
        let mut write_end = self.look_at(output, to_bytes, None);
        if line == self.sums.len() {
            let target = |end: &Option<WatchedEnd>| end.as_ref().map(|end| end.witness.target.index);
            let (from, to) = (target(&read_end), target(&write_end));
            let sum = |op, target, start| CellSum::new(end::workload(operands, op, (target, start)));
            self.sums.push([
                from.map(|target| sum(Op::Read, target, from_bytes)),
                to.map(|target| sum(Op::Write, target, to_bytes)),
            ]);
            self.record.copies.push(Copy {
                operands: words.to_vec(),
                input: end::describe(input, from, operands.input_block_bytes),
                output: end::describe(output, to, operands.output_block_bytes),
                runs: Vec::new(),
            });
        }
        for end in [&mut read_end, &mut write_end].into_iter().flatten() {
            end.observer.begin();
        }
        Watching {
            line,
            open_ns,
            start_ns: elapsed_ns(self.began),
            ends: [read_end, write_end],
            usage: process_usage().ok(),
        }
    }

    fn look_at(&mut self, side: &Side, offset: u64, length: Option<u64>) -> Option<WatchedEnd> {
        let witness = Witness::of(side.fd(), &side.name, &self.roots);
        let mut witness = witness.filter(|_| end::kind(side.fd()) != EndKind::Directory)?;
        let target = &mut witness.target;
        let targets = &mut self.record.targets;
        let earlier =
            targets.iter().find(|earlier| (earlier.kind, &earlier.path) == (target.kind, &target.path));
        target.index =
            earlier.map_or(u32::try_from(targets.len()).unwrap_or(u32::MAX), |earlier| earlier.index);
        if earlier.is_none() {
            targets.push(target.clone());
        }
        let left_bytes = target.size_bytes.saturating_sub(offset);
        let bytes = length.map_or(left_bytes, |length| length.min(left_bytes));
        let before = CacheBefore { state: page_cache(side.fd(), offset, length), bytes };
        let watched = std::slice::from_ref(&*target);
        let observer =
            KernelObserver::new(watched, &self.roots.sys, &self.roots.proc, Arc::new(MonotonicClock))
                .without_series();
        // A tree that stands for /sys says nothing about the devices of the running kernel.
        let observer = if self.roots.sys == Path::new("/sys") && target.device.is_some() {
            observer.with_bpf(Attachment::Timed)
        } else {
            observer
        };
        Some(WatchedEnd { witness, before, observer })
    }

    /// Takes in what a run did, after dd's last line. Unless the data is stable or is to be left alone, it is flushed here, as
    /// long as `goes_on`, which is asked now and then and given what is waited for. A device that was read is looked at only after a copy
    /// that came to its end.
    ///
    /// The answer is what is wrong where the flush failed: the kernel says that once, and reported it here.
    pub fn end(
        &mut self,
        watching: Watching,
        operands: &Operands,
        finished: &Finished,
        goes_on: &mut dyn FnMut(WaitFor) -> bool,
    ) -> Option<Problem> {
        let Watching { line, open_ns, start_ns, mut ends, usage } = watching;
        let cpu = usage.zip(process_usage().ok()).map_or_else(CpuTime::default, |(before, after)| CpuTime {
            user: after.user_ns.saturating_sub(before.user_ns),
            system: after.system_ns.saturating_sub(before.system_ns),
        });
        for end in ends.iter_mut().flatten() {
            end.observer.end_io();
        }
        let calls = [&finished.input, &finished.output];
        self.problem =
            self.problem.take().or_else(|| end::device_that_left(&ends, finished, &self.roots.sys));
        let after: Vec<PageCacheState> = ends
            .iter()
            .zip(calls)
            .map(|(end, calls)| end.as_ref().map_or_else(Default::default, |end| after(end, calls)))
            .collect();
        let stable = self.make_stable(ends[1].as_ref(), operands, finished, goes_on);
        let evidence = ends.each_mut().map(|end| end.as_mut().map(|end| end.observer.end()));
        let began_ns = finished.times.began_ns;
        let gaps = self.watchdog.gaps_until(began_ns, MonotonicClock.now_ns());
        let pauses = Pauses::new(began_ns, gaps, calls);
        let copy = &mut self.record.copies[line];
        let run = run_of(copy.runs.len(), [start_ns, open_ns], finished, &stable, &pauses);
        for (index, (end, evidence)) in ends.into_iter().zip(evidence).enumerate() {
            let sum = self.sums[line][index].as_mut();
            let (Some(end), Some(evidence), Some(sum)) = (end, evidence, sum) else { continue };
            let calls = calls[index];
            let before = end.before.over(calls.bytes);
            if let Some(target) =
                self.record.targets.iter_mut().find(|target| target.index == end.witness.target.index)
            {
                target.size_bytes = end.witness.size_bytes().unwrap_or(target.size_bytes);
            }
            let allocation = || end.witness.allocation(calls.start.unwrap_or(0), calls.bytes);
            sum.add(Visited {
                run: &run,
                calls,
                pauses: &pauses,
                result: finished.result,
                cpu,
                cache: (before, after[index]),
                evidence,
                extents: (index == 0).then(allocation).flatten().filter(|lies| are_sure(*lies, before)),
                content: (index == 0)
                    .then(|| end::content_after(&end.witness, calls, &run, goes_on))
                    .flatten(),
            });
            self.record.observer = end.observer.describe();
        }
        copy.runs.push(run);
        let problem = stable.error.map(|errno| flush::problem(&copy.output.name, errno));
        if finished.result.is_ok() {
            self.problem = self.problem.take().or(problem.clone());
        } else {
            // The copy's own failure came first, and is the error of the Record.
            self.record.notes.extend(problem.iter().map(ToString::to_string));
        }
        problem
    }

    /// Sees to it that the output is stable, and gives the time from the start of the copy until it is.
    fn make_stable(
        &self,
        output: Option<&WatchedEnd>,
        operands: &Operands,
        finished: &Finished,
        goes_on: &mut dyn FnMut(WaitFor) -> bool,
    ) -> Stable {
        let Some(output) = output.filter(|_| finished.output.bytes > 0) else {
            return Stable::UNKNOWN;
        };
        if end::is_durable(operands) && finished.result.is_ok() {
            return Stable { at_ns: Some(finished.times.closed_ns), by: StableBy::Operands, error: None };
        }
        if self.leftovers == Leftovers::Leave || finished.result == Err(Failure::Refused) {
            return Stable::UNKNOWN;
        }
        // Who may write a file may not always read it.
        let Ok(fd) = output.witness.open() else { return Stable::UNKNOWN };
        let calls = &finished.output;
        match flush(&fd, calls.start.unwrap_or(0), calls.bytes, goes_on) {
            Flushed::Whole => {
                Stable { at_ns: Some(MonotonicClock.now_ns()), by: StableBy::Rdsk, error: None }
            }
            Flushed::CutShort | Flushed::Impossible => Stable::UNKNOWN,
            Flushed::Failed(errno) => Stable { error: Some(errno), ..Stable::UNKNOWN },
        }
    }

    /// A copy does not begin: this is what the Record says of it.
    pub fn refuse(&mut self, problem: Problem) {
        self.problem.get_or_insert(problem);
    }

    /// The Record of all runs, with verdicts and findings.
    pub fn finish(mut self, end: CopiesEnd) -> Record {
        let cpus = self.record.host.as_ref().map(|host| host.cpu_count);
        let is_only = self.sums.len() == 1;
        for (index, ends) in self.sums.into_iter().enumerate() {
            let line = if is_only { "dd".to_owned() } else { format!("dd/{}", index + 1) };
            let mut cells: Vec<_> = ends.into_iter().flatten().map(|sum| sum.cell(&line)).collect();
            if let [read, write] = &mut cells[..] {
                cell::separate(read, write);
            }
            for cell in &mut cells {
                cell.verdict = Some(rdsk_analysis::verdict(cell, &self.record.targets, cpus));
            }
            self.record.cells.extend(cells);
        }
        let problem = |kind, code, message: &str| Some(Problem::plain(kind, code, message));
        (self.record.status, self.record.error) = match (end, self.problem) {
            (CopiesEnd::Signal(number), _) => {
                let message = format!("signal {number} ended the copy");
                (Status::Interrupted, problem(ProblemKind::Interrupted, "interrupted", &message))
            }
            (_, Some(problem)) => (Status::Failed, Some(problem)),
            (CopiesEnd::Done, None) => (Status::Complete, None),
            (CopiesEnd::Failed, None) => {
                let message = "the copy failed; the message on standard error says why";
                (Status::Failed, problem(ProblemKind::Io, "copy-failed", message))
            }
        };
        self.record.elapsed_ns = elapsed_ns(self.began);
        self.record.findings = rdsk_finding::findings(&Analysis::of(&self.record));
        self.record
    }
}

/// Whether an allocation says what was read. Data that was not written out when it was read may lie in memory above extents that
/// were only reserved.
fn are_sure(lies: ExtentEvidence, before: PageCacheState) -> bool {
    lies.unwritten_bytes == 0 || before.dirty_bytes == Some(0)
}

/// A run as the Record has it; its times leave out the pauses.
fn run_of(
    runs: usize,
    [start_ns, open_ns]: [u64; 2],
    finished: &Finished,
    stable: &Stable,
    pauses: &Pauses,
) -> CopyRun {
    let (times, counts) = (finished.times, finished.counts);
    CopyRun {
        round: u32::try_from(runs).unwrap_or(u32::MAX),
        start_ns,
        open_ns,
        read_ns: Some(pauses.in_calls(&finished.input)),
        write_ns: Some(pauses.in_calls(&finished.output)),
        flush_ns: pauses.between(times.flush_from_ns, times.returned_ns),
        to_return_ns: pauses.since_start(times.returned_ns),
        to_close_ns: pauses.since_start(times.closed_ns),
        to_stable_ns: stable.at_ns.map(|at_ns| pauses.since_start(at_ns)),
        stable_by: stable.by,
        read_bytes: finished.input.bytes,
        written_bytes: counts.written_bytes,
        full_blocks_in: counts.full_in,
        partial_blocks_in: counts.partial_in,
        full_blocks_out: counts.full_out,
        partial_blocks_out: counts.partial_out,
        is_complete: finished.result.is_ok(),
    }
}

/// The page cache over what was transferred.
fn after(end: &WatchedEnd, calls: &Calls) -> PageCacheState {
    let Ok(fd) = end.witness.open() else { return PageCacheState::default() };
    page_cache(fd, calls.start.unwrap_or(0), Some(calls.bytes))
}

/// The page cache over a part of a file, to its end without a length.
fn page_cache(fd: impl AsFd, offset: u64, length: Option<u64>) -> PageCacheState {
    // No length and a length of nothing are the same to the kernel.
    if length == Some(0) {
        return PageCacheState { cached_bytes: Some(0), dirty_bytes: Some(0) };
    }
    cachestat(fd, offset, length.unwrap_or(0)).map_or_else(
        |_| PageCacheState::default(),
        |stat| PageCacheState {
            cached_bytes: Some(stat.cached_bytes()),
            dirty_bytes: stat.dirty_bytes().zip(stat.writeback_bytes()).map(|(dirty, more)| dirty + more),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_before_a_copy_that_was_cut_short_is_known_only_where_it_is_sure() {
        let before = |cached| CacheBefore {
            state: PageCacheState { cached_bytes: cached, dirty_bytes: Some(0) },
            bytes: 100_000,
        };
        let over = |cached, copied| before(cached).over(copied).cached_bytes;
        assert_eq!(over(Some(40_960), 100_000), Some(40_960));
        assert_eq!(over(Some(40_960), 50_000), None, "these pages may lie behind the end of the copy");
        assert_eq!(over(Some(102_400), 50_000), Some(50_000));
        assert_eq!(over(Some(0), 50_000), Some(0));
        assert_eq!(over(None, 100_000), None);
    }
}
