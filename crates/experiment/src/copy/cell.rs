//! One end of a copy as a cell: the sums over its runs are those of every cell, and whose the counters are that both ends share is
//! decided here; and the times of a copy without those in which this process did not run: it was stopped, or the machine was. It judges
//! nothing.

use crate::cell_result::ResultContext;
use crate::cell_totals::CellTotals;
use rdsk_analysis::metrics::{self, PAGE_BYTES};
use rdsk_dd::{Calls, Failure};
use rdsk_engine::{Ended, Gap, Prepared, Run, Settled};
use rdsk_model::{
    Bio, Cell, CellRecord, CopyRun, CpuTime, DeviceEvidence, EngineKind, Experiment, Extent, ExtentEvidence,
    IoError, IoPath, Op, OwnGap, PageCacheState, ReadContent, StopReason, StreamResult, Workload,
    is_write_call,
};
use rdsk_observe::VisitEvidence;
use rdsk_stats::Histogram;

/// What one end did in one run.
pub(super) struct Visited<'a> {
    pub(super) run: &'a CopyRun,
    pub(super) calls: &'a Calls,
    pub(super) pauses: &'a Pauses,
    pub(super) result: Result<(), Failure>,
    pub(super) cpu: CpuTime,
    /// Before and after.
    pub(super) cache: (PageCacheState, PageCacheState),
    pub(super) evidence: VisitEvidence,
    pub(super) extents: Option<ExtentEvidence>,
    /// What a device holds where it was read.
    pub(super) content: Option<ReadContent>,
}

/// One end over the runs so far.
pub(super) struct CellSum {
    cell: Cell,
    totals: CellTotals,
    extents: Option<ExtentEvidence>,
    ended: Result<(), Failure>,
}

impl CellSum {
    pub(super) fn new(workload: Workload) -> Self {
        let cell = Cell {
            id: String::new(),
            experiment: Experiment::Dd,
            workload,
            extent: Extent::Timed,
            weight: 1.0,
            not_applicable: None,
        };
        Self { cell, totals: CellTotals::default(), extents: None, ended: Ok(()) }
    }

    pub(super) fn add(&mut self, visited: Visited<'_>) {
        self.ended = self.ended.and(visited.result);
        let Self { cell: Cell { workload, .. }, totals, .. } = self;
        let CopyRun { round, start_ns, to_close_ns, to_stable_ns, .. } = *visited.run;
        let run = as_run(workload, &visited);
        // Among whole runs, one that was cut short would make the others look shorter.
        if visited.result.is_err() && !totals.visits.is_empty() {
            totals.errors.extend(run.errors);
            return;
        }
        workload.span_bytes = workload.span_bytes.max(run.bytes);
        workload.offset_bytes = visited.calls.start.unwrap_or(workload.offset_bytes);
        (totals.round, totals.start_ns) = (round, start_ns);
        let prepared = Prepared { page_cache: visited.cache.0, reached: None };
        let settled = Settled {
            to_close_ns: Some(to_close_ns),
            to_stable_ns: to_stable_ns.filter(|_| workload.op == Op::Write),
            ..Settled::default()
        };
        totals.add_visit(&prepared, &run, &settled);
        totals.evidence.add(visited.evidence);
        self.extents = visited.extents.or(self.extents);
        // Every run reads the same places, and what is looked at may be the same: they are not added up.
        let most_data = |content: &ReadContent| (content.pages - content.zero_pages, content.pages);
        totals.content = totals.content.into_iter().chain(visited.content).max_by_key(most_data);
    }

    /// The cell of the line with this name, without its verdict.
    pub(super) fn cell(self, line: &str) -> CellRecord {
        let Self { cell, totals, extents, ended } = self;
        let context = ResultContext { precision: 0.0, slice_ns: 0, interrupted: false, align_bytes: None };
        let mut result = totals.result(&cell, &context);
        let (stop, why) = match ended {
            Err(Failure::Interrupted(_)) => (StopReason::Interrupted, "a signal ended the copy"),
            Err(Failure::Refused) => (StopReason::Error, "the output came into use while rdsk did not run"),
            _ if !totals.errors.is_empty() => (StopReason::Error, "a call of this end failed"),
            Err(_) => (StopReason::Error, "the copy failed"),
            Ok(()) => (StopReason::Complete, "the copy is complete"),
        };
        (result.stop, result.why) = (stop, why.into());
        // A copy ends with its last call, so that its rate is sure to a byte.
        result.bytes_per_s = totals.estimate(cell.extent, 1, false);
        // Calls may move less than a block.
        let each = metrics::ratio(result.bytes.unwrap_or(0), result.ops.unwrap_or(0).max(1));
        result.ops_per_s = result.bytes_per_s.map(|rate| rate.over(each));
        // Nothing chose an engine, looked at windows, or counted what signals interrupted.
        (result.issuing, result.windows, result.interrupted_calls) = (None, None, None);
        result.errors.truncate(1);
        let mut evidence = totals.evidence.finish();
        (evidence.page_cache, evidence.extents) = (totals.page_cache, extents);
        let Cell { experiment, workload, .. } = cell;
        CellRecord {
            id: format!("{line}/{}", workload.op),
            experiment,
            workload,
            result,
            evidence,
            verdict: None,
        }
    }
}

/// A run of a copy as the visit of a cell: one stream, whose time is that of the whole copy.
fn as_run(workload: &Workload, visited: &Visited<'_>) -> Run {
    let Visited { run, calls, pauses, cpu, cache, .. } = visited;
    let target = workload.targets.first().copied().unwrap_or(0);
    let (bytes, ops, elapsed_ns) = (calls.bytes, calls.count, run.to_close_ns);
    let error = calls.error.map(|(offset_bytes, errno)| IoError {
        target,
        stream: Some(0),
        offset_bytes,
        errno,
        message: std::io::Error::from_raw_os_error(errno).to_string(),
    });
    // The flush and the close of the output are calls in which its data is in flight.
    let in_calls_ns = match workload.op {
        Op::Read => run.read_ns,
        Op::Write => {
            run.write_ns.map(|ns| ns + run.flush_ns + run.to_close_ns.saturating_sub(run.to_return_ns))
        }
    };
    let ended = if visited.result.is_ok() { Ended::Complete } else { Ended::Failed };
    Run {
        elapsed_ns,
        to_return_ns: run.to_return_ns,
        asked_bytes: bytes,
        bytes,
        ops,
        histogram: pauses.latencies(calls),
        latency_sum_ns: u128::from(in_calls_ns.unwrap_or(0).min(elapsed_ns)),
        window_ns: 0,
        streams: vec![StreamResult {
            index: 0,
            target,
            start_ns: 0,
            end_ns: elapsed_ns,
            bytes,
            ops,
            active_ns: Some(elapsed_ns),
        }],
        errors: error.into_iter().collect(),
        cpu: *cpu,
        page_cache: cache.1,
        gaps: pauses.as_gaps(),
        ..Run::without_io(ended, EngineKind::Sync)
    }
}

/// Leaves each end of a copy what is surely its own. The kernel charges reads to the process, whether the input or a partial
/// page of the output asked for them; and a device that both ends lie on counts the I/O of both.
pub(super) fn separate(read: &mut CellRecord, write: &mut CellRecord) {
    let causes_reads =
        write.workload.path == IoPath::Buffered && metrics::writes_partial_pages(&write.workload, PAGE_BYTES);
    write.evidence.process.read_bytes = None;
    if causes_reads {
        read.evidence.process.read_bytes = None;
    }
    let has = |cell: &CellRecord, name: &str| cell.evidence.device.iter().any(|device| device.name == name);
    let shared: Vec<String> = read.evidence.device.iter().map(|device| device.name.clone()).collect();
    let shared: Vec<String> = shared.into_iter().filter(|name| has(write, name)).collect();
    for name in &shared {
        tell_apart(read, write, name, causes_reads);
        for device in read.evidence.device.iter_mut().filter(|device| device.name == *name) {
            forget_writes(device);
            device.in_flight_max = None;
            device.splits = None;
            device.reads_caused_by_writes = None;
            if causes_reads {
                forget_reads(device);
            }
        }
        for device in write.evidence.device.iter_mut().filter(|device| device.name == *name) {
            forget_reads(device);
            device.in_flight_max = None;
            device.splits = None;
        }
    }
}

/// Of what BPF counted at a device that both ends lie on: bios by their call, requests by their direction. A request does not say
/// which call it is of, and its latency not even that.
fn tell_apart(read: &mut CellRecord, write: &mut CellRecord, name: &str, causes_reads: bool) {
    let is_of_output = |bio: &Bio| bio.op == Op::Write || bio.syscall.as_deref().is_some_and(is_write_call);
    let (of_read, of_write) = (&mut read.evidence, &mut write.evidence);
    of_read.bios.retain(|bio| bio.device != *name || !is_of_output(bio));
    of_write.bios.retain(|bio| bio.device != *name || is_of_output(bio));
    of_read.requests.retain(|request| request.device != *name || request.op == Op::Read && !causes_reads);
    of_write.requests.retain(|request| request.device != *name || request.op == Op::Write);
    (of_read.device_latency_ns, of_write.device_latency_ns) = (None, None);
}

fn forget_reads(device: &mut DeviceEvidence) {
    (device.reads, device.read_bytes, device.read_merges) = (None, None, None);
}

fn forget_writes(device: &mut DeviceEvidence) {
    (device.writes, device.write_bytes, device.write_merges) = (None, None, None);
    (device.flushes, device.discards) = (None, None);
}

/// When a copy began, and the pauses since then.
pub(super) struct Pauses {
    began_ns: u64,
    gaps: Vec<Gap>,
}

impl Pauses {
    /// The gaps are known to a beat. Where one lies in a call, this process ran before that and after it.
    pub(super) fn new(began_ns: u64, mut gaps: Vec<Gap>, ends: [&Calls; 2]) -> Self {
        for gap in &mut gaps {
            let mut long = ends.iter().flat_map(|calls| &calls.long);
            if let Some(call) = long.find(|call| call.begin_ns < gap.end_ns && call.end_ns > gap.begin_ns) {
                gap.begin_ns = gap.begin_ns.max(call.begin_ns);
                gap.end_ns = gap.end_ns.min(call.end_ns);
            }
        }
        Self { began_ns, gaps }
    }

    /// How long this process ran between two readings of the clock.
    pub(super) fn between(&self, begin_ns: u64, end_ns: u64) -> u64 {
        let overlap = |gap: &Gap| gap.end_ns.min(end_ns).saturating_sub(gap.begin_ns.max(begin_ns));
        end_ns.saturating_sub(begin_ns).saturating_sub(self.gaps.iter().map(overlap).sum())
    }

    /// The same since the copy began.
    pub(super) fn since_start(&self, at_ns: u64) -> u64 {
        self.between(self.began_ns, at_ns)
    }

    /// The time in the calls of one end.
    pub(super) fn in_calls(&self, calls: &Calls) -> u64 {
        calls.spent_ns + calls.long.iter().map(|call| self.between(call.begin_ns, call.end_ns)).sum::<u64>()
    }

    /// How long each call took that moved bytes. Of one in whose time there was a pause that is not known.
    pub(super) fn latencies(&self, calls: &Calls) -> Histogram {
        let mut latencies = calls.latency_ns.clone();
        for call in calls.long.iter().filter(|call| call.has_moved) {
            let ns = call.end_ns - call.begin_ns;
            if self.between(call.begin_ns, call.end_ns) == ns {
                latencies.record(ns);
            }
        }
        latencies
    }

    /// As a visit has them.
    pub(super) fn as_gaps(&self) -> Vec<OwnGap> {
        let gap = |gap: &Gap| OwnGap {
            at_ns: self.since_start(gap.begin_ns),
            lasts_ns: gap.end_ns - gap.begin_ns + gap.asleep_ns,
        };
        self.gaps.iter().map(gap).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_analysis::fixtures::{self, with};
    use rdsk_dd::LongCall;
    use rdsk_model::{Request, Target, VerdictCode};

    /// Both ends of a copy within one disk, which counts 64 MiB read and 64 MiB written; the kernel charges both to us.
    fn within_one_disk(block_bytes: u64) -> (CellRecord, CellRecord, Vec<Target>) {
        let cell = |op| {
            fixtures::cell("dd", op, IoPath::Buffered, block_bytes, (64 << 20) / block_bytes, 1_000_000_000)
        };
        let (mut read, mut write) = (cell(Op::Read), cell(Op::Write));
        write.result.to_stable_ns = Some(1_000_000_000);
        let (of_read, of_write) = (&mut read.evidence.device[0], &mut write.evidence.device[0]);
        (of_read.writes, of_read.write_bytes) = (of_write.writes, of_write.write_bytes);
        (of_write.reads, of_write.read_bytes) = (of_read.reads, of_read.read_bytes);
        for cell in [&mut read, &mut write] {
            cell.evidence.process =
                rdsk_model::ProcessIo { read_bytes: Some(64 << 20), write_bytes: Some(64 << 20) };
        }
        let targets = vec![fixtures::disk()];
        (read, write, targets)
    }

    fn code(cell: &CellRecord, targets: &[Target]) -> VerdictCode {
        rdsk_analysis::verdict(cell, targets, Some(2)).code
    }

    #[test]
    fn one_end_of_a_copy_does_not_disturb_the_other() {
        let (mut read, mut write, targets) = within_one_disk(16 << 10);
        assert_eq!(code(&read, &targets), VerdictCode::Disturbed, "as it would be without a copy");
        separate(&mut read, &mut write);
        assert_eq!([&read, &write].map(|cell| code(cell, &targets)), [VerdictCode::Device; 2]);
        assert_eq!(metrics::device_bytes(&read, Op::Read), Some(64 << 20));
        assert_eq!(metrics::device_bytes(&write, Op::Write), Some(64 << 20));
        assert_eq!(metrics::device_bytes(&read, Op::Write), None);
        assert_eq!(
            (read.evidence.process.read_bytes, write.evidence.process.read_bytes),
            (Some(64 << 20), None)
        );
    }

    /// What each call became is reported by the call, also where both ends lie on one device.
    #[test]
    fn bios_of_a_shared_device_belong_to_the_end_whose_call_they_are() {
        let (mut read, mut write, _) = within_one_disk(512);
        let bio = |op, syscall: Option<&str>, task: &str, count| Bio {
            target: 0,
            device: read.evidence.device[0].name.clone(),
            op,
            syscall: syscall.map(str::to_owned),
            task: task.to_owned(),
            nowait: false,
            read_ahead: false,
            flush: false,
            count,
            bytes: count * 4096,
        };
        let bios = vec![
            bio(Op::Read, Some("read"), "this", 7),
            bio(Op::Read, Some("write"), "this", 5),
            bio(Op::Write, None, "kernel", 3),
            bio(Op::Write, Some("close"), "this", 2),
        ];
        let requests: Vec<Request> = [(Op::Read, 12), (Op::Write, 5)]
            .map(|(op, count)| Request {
                target: 0,
                device: read.evidence.device[0].name.clone(),
                op,
                bytes: 4096,
                fua: false,
                count,
            })
            .to_vec();
        for cell in [&mut read, &mut write] {
            (cell.evidence.bios, cell.evidence.requests) = (bios.clone(), requests.clone());
            (cell.evidence.device[0].in_flight_max, cell.evidence.device[0].splits) = (Some(9), Some(64));
        }
        separate(&mut read, &mut write);
        let counts = |cell: &CellRecord| cell.evidence.bios.iter().map(|bio| bio.count).collect::<Vec<_>>();
        assert_eq!((counts(&read), counts(&write)), (vec![7], vec![5, 3, 2]));
        assert!(read.evidence.requests.is_empty(), "five of them are not of read(2)");
        assert_eq!(write.evidence.requests, [requests[1].clone()]);
        for cell in [&read, &write] {
            let device = &cell.evidence.device[0];
            assert_eq!((device.in_flight_max, device.splits), (None, None), "those of both ends together");
        }
        let (mut read, mut write, _) = within_one_disk(4096);
        read.evidence.requests = requests.clone();
        separate(&mut read, &mut write);
        assert_eq!(read.evidence.requests, [requests[0].clone()]);
    }

    #[test]
    fn reads_that_may_be_of_parts_of_pages_are_nobodys() {
        let (mut read, mut write, targets) = within_one_disk(512);
        separate(&mut read, &mut write);
        assert_eq!(metrics::device_bytes(&read, Op::Read), None);
        assert_eq!((read.evidence.process.read_bytes, write.evidence.process.read_bytes), (None, None));
        assert_eq!(code(&read, &targets), VerdictCode::Unverified);
        // On another disk the counters are the input's own.
        let (mut read, mut write, targets) = within_one_disk(512);
        write.evidence.device[0].name = "sdb".into();
        separate(&mut read, &mut write);
        assert_eq!(
            code(&with(read, |cell| forget_writes(&mut cell.evidence.device[0])), &targets),
            VerdictCode::Device
        );
    }

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_pause_is_no_time_of_the_copy() {
        let gap = |begin_ns, end_ns| Gap { begin_ns, end_ns, asleep_ns: 0 };
        let long = |begin_ns, end_ns| LongCall { begin_ns, end_ns, has_moved: true };
        // One was under way when the process was stopped, and one took so long by itself.
        let calls = Calls {
            spent_ns: 7,
            long: vec![long(12 * S - 5, 17 * S), long(10 * S, 11 * S)],
            ..Calls::default()
        };
        // The last beat before the stop came earlier than the call, and the first one after it later.
        let gaps = vec![gap(12 * S - 100, 17 * S + 100), gap(18 * S, 19 * S)];
        let pauses = Pauses::new(10 * S, gaps, [&calls, &Calls::default()]);
        assert_eq!((pauses.since_start(11 * S), pauses.since_start(14 * S)), (S, 2 * S - 5));
        assert_eq!(pauses.since_start(20 * S), 4 * S - 5);
        assert_eq!(pauses.in_calls(&calls), 7 + S);
        assert_eq!(pauses.latencies(&calls).count(), 1);
        let gaps = pauses.as_gaps();
        assert_eq!((gaps[0].at_ns, gaps[0].lasts_ns), (2 * S - 5, 5 * S + 5));
        assert_eq!((gaps[1].at_ns, gaps[1].lasts_ns), (3 * S - 5, S));
    }
}
