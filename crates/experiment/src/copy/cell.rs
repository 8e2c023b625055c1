//! One end of a copy as a cell: the sums over its runs, and whose the counters are that both ends share. It judges nothing.

use rdsk_analysis::metrics::{self, PAGE_BYTES};
use rdsk_dd::{Calls, Failure};
use rdsk_model::{
    Bio, CellRecord, CellResult, CopyRun, CpuTime, DeviceEvidence, EngineKind, Estimate, Experiment,
    ExtentEvidence, IoError, IoPath, Latency, Op, PageCache, PageCacheState, ReadContent, StopReason,
    StreamResult, Visit, Workload, is_write_call,
};
use rdsk_observe::{EvidenceSum, VisitEvidence};
use rdsk_stats::{Histogram, SparseHistogram, rounds_interval};
use std::collections::BTreeMap;

/// What one end did in one run.
pub(super) struct Visited<'a> {
    pub(super) run: &'a CopyRun,
    pub(super) calls: &'a Calls,
    pub(super) result: Result<(), Failure>,
    pub(super) cpu: Option<CpuTime>,
    /// Before and after.
    pub(super) cache: (PageCacheState, PageCacheState),
    pub(super) evidence: VisitEvidence,
    pub(super) extents: Option<ExtentEvidence>,
    /// What a device holds where it was read.
    pub(super) content: Option<ReadContent>,
}

/// One end over the runs so far.
pub(super) struct CellSum {
    workload: Workload,
    visits: Vec<Visit>,
    evidence: EvidenceSum,
    page_cache: Option<PageCache>,
    extents: Option<ExtentEvidence>,
    content: Option<ReadContent>,
    /// Of all runs and of each; `None` if it is not known of one.
    latency: Option<(Histogram, BTreeMap<u32, SparseHistogram>)>,
    in_calls_ns: Option<u64>,
    cpu: Option<CpuTime>,
    errors: Vec<IoError>,
    ended: Result<(), Failure>,
}

impl CellSum {
    pub(super) fn new(workload: Workload) -> Self {
        Self {
            workload,
            visits: Vec::new(),
            evidence: EvidenceSum::default(),
            page_cache: None,
            extents: None,
            content: None,
            latency: Some(Default::default()),
            in_calls_ns: Some(0),
            cpu: Some(CpuTime::default()),
            errors: Vec::new(),
            ended: Ok(()),
        }
    }

    pub(super) fn add(&mut self, seen: Visited<'_>) {
        let Visited { run, calls, result, cpu, cache, evidence, extents, content } = seen;
        if let Some((offset_bytes, errno)) = calls.error.filter(|_| self.errors.is_empty()) {
            let message = std::io::Error::from_raw_os_error(errno).to_string();
            let target = self.workload.targets.first().copied().unwrap_or(0);
            self.errors.push(IoError { target, stream: Some(0), offset_bytes, errno, message });
        }
        self.ended = self.ended.and(result);
        // Among whole runs, one that was cut short would make the others look shorter.
        if result.is_err() && !self.visits.is_empty() {
            return;
        }
        self.workload.span_bytes = self.workload.span_bytes.max(calls.bytes);
        self.workload.offset_bytes = calls.start.unwrap_or(self.workload.offset_bytes);
        let is_write = self.workload.op == Op::Write;
        self.visits.push(Visit {
            round: run.round,
            start_ns: run.start_ns,
            elapsed_ns: run.to_close_ns,
            bytes: calls.bytes,
            ops: calls.count,
            to_return_ns: Some(run.to_return_ns),
            to_close_ns: Some(run.to_close_ns),
            to_stable_ns: run.to_stable_ns.filter(|_| is_write),
            ..Visit::default()
        });
        self.evidence.add(evidence);
        let sum = self.page_cache.get_or_insert(PageCache { before: NOTHING, after: NOTHING, stable: None });
        (sum.before, sum.after) = (added(sum.before, cache.0), added(sum.after, cache.1));
        self.extents = extents.or(self.extents);
        // Every run reads the same places, and what is looked at may be the same: they are not added up.
        let most_data = |seen: &ReadContent| (seen.pages - seen.zero_pages, seen.pages);
        self.content = self.content.into_iter().chain(content).max_by_key(most_data);
        self.latency = self.latency.take().zip(calls.times.as_ref()).map(|((mut all, mut rounds), times)| {
            all.merge(&times.latency_ns);
            rounds.entry(run.round).or_default().merge(&times.latency_ns);
            (all, rounds)
        });
        // The flush and the close of the output are calls in which its data is in flight.
        let after_ns = run.flush_ns + run.to_close_ns.saturating_sub(run.to_return_ns);
        let in_calls_ns = if is_write { run.write_ns.map(|ns| ns + after_ns) } else { run.read_ns };
        self.in_calls_ns = self.in_calls_ns.zip(in_calls_ns).map(|(sum, more)| sum + more);
        self.cpu = self
            .cpu
            .zip(cpu)
            .map(|(sum, more)| CpuTime { user: sum.user + more.user, system: sum.system + more.system });
    }

    /// The cell of the line with this name, without its verdict.
    pub(super) fn cell(self, line: &str) -> CellRecord {
        let id = format!("{line}/{}", self.workload.op);
        let result = self.result();
        let mut evidence = self.evidence.finish();
        evidence.page_cache = self.page_cache;
        evidence.extents = self.extents;
        CellRecord {
            id,
            experiment: Experiment::Dd,
            workload: self.workload,
            result,
            evidence,
            verdict: None,
        }
    }

    fn result(&self) -> CellResult {
        let sum = |of: fn(&Visit) -> Option<u64>| self.visits.iter().map(of).sum::<Option<u64>>();
        let bytes: u64 = self.visits.iter().map(|visit| visit.bytes).sum();
        let ops: u64 = self.visits.iter().map(|visit| visit.ops).sum();
        let elapsed_ns: u64 = self.visits.iter().map(|visit| visit.elapsed_ns).sum();
        let target = self.workload.targets.first().copied().unwrap_or(0);
        let (stop, why) = self.reason();
        CellResult {
            stop,
            why: why.into(),
            elapsed_ns: Some(elapsed_ns),
            engine: Some(EngineKind::Sync),
            issuing: None,
            asked_bytes: Some(bytes),
            pass_bytes: None,
            bytes: Some(bytes),
            ops: Some(ops),
            bytes_per_s: self.rate(|visit| visit.bytes),
            ops_per_s: self.rate(|visit| visit.ops),
            samples: None,
            sync_latency_ns: None,
            latency_ns: self.latency.as_ref().map(|(all, rounds)| Latency::from(all).with_rounds(rounds)),
            to_return_ns: sum(|visit| visit.to_return_ns),
            to_close_ns: sum(|visit| visit.to_close_ns),
            to_stable_ns: sum(|visit| visit.to_stable_ns),
            windows: None,
            streams: vec![StreamResult {
                index: 0,
                target,
                start_ns: 0,
                end_ns: elapsed_ns,
                bytes,
                ops,
                active_ns: Some(elapsed_ns),
            }],
            cpu_ns: self.cpu,
            errors: self.errors.clone(),
            in_flight_mean: self
                .in_calls_ns
                .filter(|_| elapsed_ns > 0)
                .map(|in_calls_ns| metrics::ratio(in_calls_ns.min(elapsed_ns), elapsed_ns)),
            warmup_ns: Some(0),
            warmup_bytes: Some(0),
            warmup_ops: Some(0),
            stalls: None,
            interrupted_calls: None,
            after_idle: Vec::new(),
            content: self.content,
            visits: self.visits.clone(),
            points: Vec::new(),
        }
    }

    fn reason(&self) -> (StopReason, &'static str) {
        match self.ended {
            Err(Failure::Interrupted(_)) => (StopReason::Interrupted, "a signal ended the copy"),
            _ if !self.errors.is_empty() => (StopReason::Error, "a call of this end failed"),
            Err(_) => (StopReason::Error, "the copy failed"),
            Ok(()) => (StopReason::Complete, "the copy is complete"),
        }
    }

    /// A rate over all runs, with the interval that two runs or more give.
    fn rate(&self, amount: fn(&Visit) -> u64) -> Option<Estimate> {
        let timed: Vec<&Visit> =
            self.visits.iter().filter(|visit| visit.elapsed_ns > 0 && amount(visit) > 0).collect();
        let all: u64 = timed.iter().map(|visit| amount(visit)).sum();
        let elapsed_ns: u64 = timed.iter().map(|visit| visit.elapsed_ns).sum();
        if all == 0 {
            return None;
        }
        let mean = all as f64 / metrics::seconds(elapsed_ns);
        let rate = |visit: &&Visit| amount(visit) as f64 / metrics::seconds(visit.elapsed_ns);
        let rates: Vec<(f64, f64)> =
            timed.iter().map(|visit| (metrics::seconds(visit.start_ns), rate(visit))).collect();
        let half = rounds_interval(&rates, &[])
            .map(|of_runs| ((of_runs.high - of_runs.low) / 2.0).max((of_runs.mean - mean).abs()));
        Some(Estimate {
            mean,
            low: half.map(|half| (mean - half).max(0.0)),
            high: half.map(|half| mean + half),
        })
    }
}

const NOTHING: PageCacheState = PageCacheState { cached_bytes: Some(0), dirty_bytes: Some(0) };

fn added(one: PageCacheState, other: PageCacheState) -> PageCacheState {
    let both = |one: Option<u64>, other: Option<u64>| one?.checked_add(other?);
    PageCacheState {
        cached_bytes: both(one.cached_bytes, other.cached_bytes),
        dirty_bytes: both(one.dirty_bytes, other.dirty_bytes),
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
    let is_of = |cell: &CellRecord, name: &str| cell.evidence.device.iter().any(|device| device.name == name);
    let shared: Vec<String> = read.evidence.device.iter().map(|device| device.name.clone()).collect();
    let shared: Vec<String> = shared.into_iter().filter(|name| is_of(write, name)).collect();
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
    of_read.requests.retain(|one| one.device != *name || one.op == Op::Read && !causes_reads);
    of_write.requests.retain(|one| one.device != *name || one.op == Op::Write);
    (of_read.device_latency_ns, of_write.device_latency_ns) = (None, None);
}

fn forget_reads(device: &mut DeviceEvidence) {
    (device.reads, device.read_bytes, device.read_merges) = (None, None, None);
}

fn forget_writes(device: &mut DeviceEvidence) {
    (device.writes, device.write_bytes, device.write_merges) = (None, None, None);
    (device.flushes, device.discards) = (None, None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_analysis::fixtures::{self, with};
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

    /// What each call became is told by the call, also where both ends lie on one device.
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
}
