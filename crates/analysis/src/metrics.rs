//! Metrics of a cell from its counters: sums over its devices, shares, rates until stable. Derived on request, never
//! stored, and `None` if one of the counters is missing. It judges nothing.

use crate::iostat::{Iostat, iostat_row};
use rdsk_model::{
    CellRecord, Device, DeviceEvidence, EvidenceSource, Latency, Op, Pattern, Record, Request, SECTOR_BYTES,
    StopReason, Target, VerdictCode, Visit, Workload, is_nvme_path,
};

/// The unit in which the page cache holds files on most machines, in bytes; see [`page_bytes`].
pub const PAGE_BYTES: u64 = 4096;

/// The unit in which the host of a Record caches: a page, or the buffer of a simulated host (4 or 8 KiB on HP-UX). Records
/// that do not say count as [`PAGE_BYTES`].
pub fn page_bytes(record: &Record) -> u64 {
    let told = record.host.as_ref().and_then(|host| host.page_bytes);
    told.filter(|&bytes| bytes > 0).unwrap_or(PAGE_BYTES)
}

/// A target of the Record by its index.
pub fn target(record: &Record, index: u32) -> Option<&Target> {
    // Targets stand in the order of their indices; a document from elsewhere may have them otherwise.
    let is_it = |target: &&Target| target.index == index;
    let here = record.targets.get(index as usize).filter(is_it);
    here.or_else(|| record.targets.iter().find(is_it))
}

/// The first target of a cell.
pub fn first_target<'a>(record: &'a Record, cell: &CellRecord) -> Option<&'a Target> {
    target(record, *cell.workload.targets.first()?)
}

/// The device under it.
pub fn first_device<'a>(record: &'a Record, cell: &CellRecord) -> Option<&'a Device> {
    first_target(record, cell)?.device.as_ref()
}

/// The devices whose counters stand for the cell's targets, each once even when two targets share it: a target's own device,
/// all those that its filesystem spreads over, or those below if the own one counts nothing. `None` when a target has
/// none that counts.
pub fn devices(cell: &CellRecord) -> Option<Vec<&DeviceEvidence>> {
    let mut devices: Vec<&DeviceEvidence> = Vec::new();
    for &target in &cell.workload.targets {
        let counters = cell.evidence.counters_of(target);
        // Of a device that both ends of a copy share, each end has the counters of its own direction only.
        let are_known =
            counters.iter().all(|device| device.read_bytes.is_some() || device.write_bytes.is_some());
        (are_known && !counters.is_empty()).then_some(())?;
        for device in counters {
            if !devices.iter().any(|earlier| earlier.name == device.name) {
                devices.push(device);
            }
        }
    }
    (!devices.is_empty()).then_some(devices)
}

/// Bytes that the cell's devices together have to write per byte of the cell: 2 if each byte is stored on two of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Written {
    /// Minimum.
    pub least: f64,
    /// Maximum; `None` if it depends on the writes.
    pub most: Option<f64>,
}

impl Written {
    pub(crate) const ONCE: Written = Written { least: 1.0, most: Some(1.0) };
}

/// What the cell's devices write per byte; 1 unless the Record says otherwise.
pub fn written(cell: &CellRecord) -> Written {
    let counted = cell.workload.targets.iter().map(|&target| cell.evidence.counted_for(target));
    let each = counted.map(|counted| {
        counted.map_or(Written::ONCE, |device| Written {
            least: device.written_least,
            most: device.written_most,
        })
    });
    let both = |a: Written, b: Written| Written {
        least: a.least.min(b.least),
        most: a.most.zip(b.most).map(|(a, b)| a.max(b)),
    };
    let written = each.reduce(both).unwrap_or(Written::ONCE);
    // A Record may come from anywhere; a factor below one cannot be.
    Written { least: if written.least >= 1.0 { written.least } else { 1.0 }, ..written }
}

/// Whether this is the verdict of a cell.
pub fn has_verdict(cell: &CellRecord, code: VerdictCode) -> bool {
    cell.verdict.as_ref().is_some_and(|verdict| verdict.code == code)
}

/// Whether the cell's I/O did not reach the device, so that its times say nothing about the device.
pub fn is_of_memory(cell: &CellRecord) -> bool {
    let code = cell.verdict.as_ref().map(|verdict| verdict.code);
    matches!(code, Some(VerdictCode::PageCache | VerdictCode::Hole))
}

/// Whether the cell completed something.
pub fn ran(cell: &CellRecord) -> bool {
    cell.result.stop != StopReason::NotApplicable && cell.result.ops.is_some_and(|ops| ops > 0)
}

/// Whether the I/O of the cell reached the device, so that the device, a limit or the processor set its speed.
pub fn reached_device(cell: &CellRecord) -> bool {
    use VerdictCode::{CpuBound, Device, SourceBound, Throttled};
    let code = cell.verdict.as_ref().map(|verdict| verdict.code);
    code.is_some_and(|code| [Device, Throttled, CpuBound, SourceBound].contains(&code))
}

/// Shortest visit with a usable busy time: the kernel counts it in whole jiffies of 1 to 10 ms, at both ends.
const MIN_BUSY_NS: u64 = 200_000_000;

/// Share of the I/O time in which a device was busy, 0 to 1, by its own counters. `None` if it was not counted, and if the
/// visits were too short for the kernel's resolution.
pub fn busy_share(cell: &CellRecord, device: &DeviceEvidence) -> Option<f64> {
    let is_counted = cell.evidence.source <= EvidenceSource::Sim && device.busy_ns.is_some();
    let interval_ns = device.interval_ns.filter(|_| is_counted)?;
    let visits = (cell.result.visits.len() as u64).max(1);
    let is_exact = cell.evidence.source == EvidenceSource::Sim;
    let is_long = is_exact || interval_ns >= MIN_BUSY_NS * visits;
    (is_long && !keeps_no_times(device)).then_some((iostat_row(device)?.util_percent / 100.0).min(1.0))
}

/// Whether the kernel counts the I/O of a device and none of its times, as those before 5.10 do for md.
fn keeps_no_times(device: &DeviceEvidence) -> bool {
    const MANY: u64 = 1000;
    device.diskstat.is_some_and(|counted| {
        let times =
            [counted.read_ticks_ms, counted.write_ticks_ms, counted.io_ticks_ms, counted.time_in_queue_ms];
        counted.read_ios.saturating_add(counted.write_ios) >= MANY && times == [0; 4]
    })
}

/// Bytes that one device moved in one direction.
pub fn bytes_of(device: &DeviceEvidence, op: Op) -> Option<u64> {
    op.select(device.read_bytes, device.write_bytes)
}

/// Whether device mapper made the device.
pub fn is_mapped(device: &rdsk_model::Device) -> bool {
    device.kind.as_deref().is_some_and(|kind| kind.starts_with("dm"))
}

/// Bytes that the devices moved in one direction, until everything was stable.
pub fn device_bytes(cell: &CellRecord, op: Op) -> Option<u64> {
    devices(cell)?.into_iter().map(|device| bytes_of(device, op)).sum()
}

/// More flushes than this per write, and it is not known how many of the writes they are.
const MOST_FLUSHES: f64 = 0.01;

/// Requests with data that the devices completed in one direction, until everything was stable: writes by BPF where its programs
/// missed nothing, all else by sysfs. The kernel counts an empty flush among the writes too, with no sectors (measured on 6.18, loop
/// and virtio), so flushes are taken off. A flush after a write that must be durable at once is not among them; where nothing
/// would be left, the number is not known, and neither where BPF followed some visits only and flushes are many.
pub fn device_requests(cell: &CellRecord, op: Op) -> Option<u64> {
    let requests = |device: &DeviceEvidence| match op {
        Op::Read => read_requests(cell, device),
        // A simulated host counts its flushes apart.
        Op::Write if cell.evidence.source == EvidenceSource::Sim => device.writes,
        Op::Write => requests_by_bpf(cell, device, op).or_else(|| {
            let is_part = cell.evidence.bpf.as_ref().is_some_and(|bpf| bpf.followed.is_some());
            let (writes, flushes) = (device.writes?, device.flushes.unwrap_or(0));
            if is_part && flushes as f64 > MOST_FLUSHES * writes as f64 {
                return None;
            }
            let rest = writes.saturating_sub(flushes);
            (rest > 0 || device.write_bytes == Some(0)).then_some(rest)
        }),
    };
    devices(cell)?.into_iter().map(requests).sum()
}

/// Requests of a device by the programs in the block layer; `None` where they were not attached all the time, or where the bytes
/// of these requests are not those that sysfs counted.
fn requests_by_bpf(cell: &CellRecord, device: &DeviceEvidence, op: Op) -> Option<u64> {
    cell.evidence.bpf.as_ref().filter(|bpf| bpf.is_whole())?;
    let is_its = |request: &&Request| {
        (request.target, &request.device, request.op) == (device.target, &device.name, op)
    };
    let with_data = cell.evidence.requests.iter().filter(is_its).filter(|request| request.bytes > 0);
    let (count, bytes) = with_data.fold((0_u64, 0_u64), |(count, bytes), request| {
        (
            count.saturating_add(request.count),
            bytes.saturating_add(request.count.saturating_mul(request.bytes)),
        )
    });
    (bytes_of(device, op) == Some(bytes)).then_some(count)
}

/// Bytes that the devices moved in one direction by the time the last I/O returned.
pub fn returned_bytes(cell: &CellRecord, op: Op) -> Option<u64> {
    devices(cell)?
        .into_iter()
        .map(|device| {
            let during_io = device.diskstat.filter(|_| device.interval_ns.is_some_and(|ns| ns > 0))?;
            Some(op.select(during_io.read_bytes(), during_io.write_bytes()))
        })
        .sum()
}

/// The iostat row of the first target's device.
pub fn row(cell: &CellRecord) -> Option<Iostat> {
    iostat_row(devices(cell)?.first()?)
}

/// What the kernel charged to this process in one direction.
pub fn process_bytes(cell: &CellRecord, op: Op) -> Option<u64> {
    op.select(cell.evidence.process.read_bytes, cell.evidence.process.write_bytes)
}

/// Flushes that the cell's I/O waited for. If several devices carry a target, each of them is flushed every time, so the
/// one with the most counts. Drivers without requests of their own (device-mapper, md) do not count flushes; they send each to
/// every device below, so there those count.
pub fn flushes(cell: &CellRecord) -> Option<u64> {
    devices(cell)?;
    let mut counted: Vec<Vec<&str>> = Vec::new();
    let mut sum: u64 = 0;
    for &target in &cell.workload.targets {
        let own = cell.evidence.counters_of(target);
        let names: Vec<&str> = own.iter().map(|device| device.name.as_str()).collect();
        if counted.contains(&names) {
            continue;
        }
        counted.push(names);
        let below = cell.evidence.device.iter().filter(|device| device.target == target);
        let of_own = own.iter().filter_map(|device| device.flushes).max();
        sum += of_own.or_else(|| below.filter_map(|device| device.flushes).max())?;
    }
    Some(sum)
}

/// Requests that the block layer merged into a neighbour, in one direction.
pub fn merges(cell: &CellRecord, op: Op) -> Option<u64> {
    devices(cell)?.into_iter().map(|device| op.select(device.read_merges, device.write_merges)).sum()
}

/// Mean bytes of all requests in one direction until everything was stable; `None` without requests.
pub fn mean_request_bytes(cell: &CellRecord, op: Op) -> Option<f64> {
    let requests = device_requests(cell, op).filter(|&requests| requests > 0)?;
    Some(ratio(device_bytes(cell, op)?, requests))
}

/// Bytes that the kernel read for this process, per I/O of the cell: the reads that writes cause.
pub fn read_bytes_per_io(cell: &CellRecord) -> Option<f64> {
    let ops = cell.result.ops.filter(|&ops| ops > 0)?;
    Some(ratio(process_bytes(cell, Op::Read)?, ops))
}

/// What the visits of a cell left in the page cache over its span, and what they could have left there: both in bytes, summed
/// over visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftInCache {
    /// Bytes in cached pages: at the return of reads, once everything was stable of writes. Of a direct cell only what it added,
    /// since it may begin with what other cells left.
    pub cached_bytes: u64,
    /// Bytes in the pages of the span that the I/O touched.
    pub touched_bytes: u64,
}

impl LeftInCache {
    /// The share of the touched pages, 0 to 1. Where pages were cached before, it may be too large, not too small.
    pub fn share(self) -> f64 {
        ratio(self.cached_bytes.min(self.touched_bytes), self.touched_bytes.max(1))
    }
}

/// What a cell left in the page cache; `None` if the kernel did not say, and for writes of Records before that was recorded.
pub fn left_in_cache(cell: &CellRecord) -> Option<LeftInCache> {
    let cache = cell.evidence.page_cache?;
    let state = cell.workload.op.select(Some(cache.after), cache.stable)?;
    let workload = &cell.workload;
    let of_others = if workload.path.uses_page_cache() { 0 } else { cache.before.cached_bytes? };
    let span_bytes = workload.span_bytes.saturating_mul(workload.targets.len().max(1) as u64);
    let touched = |visit: &Visit| match workload.pattern {
        Pattern::Sequential => visit.bytes,
        Pattern::Random => visit.ops.saturating_mul(workload.block_bytes.next_multiple_of(PAGE_BYTES)),
    };
    let touched_bytes = cell.result.visits.iter().map(|visit| touched(visit).min(span_bytes)).sum();
    Some(LeftInCache { cached_bytes: state.cached_bytes?.saturating_sub(of_others), touched_bytes })
}

/// Flushes per I/O of the cell.
pub fn flushes_per_io(cell: &CellRecord) -> Option<f64> {
    Some(ratio(flushes(cell)?, cell.result.ops.filter(|&ops| ops > 0)?))
}

/// Visits of the cell, at least 1.
pub fn visits(cell: &CellRecord) -> u64 {
    cell.result.visits.len().max(1) as u64
}

/// Bytes per second until everything is on stable storage; `None` for reads.
pub fn stable_rate(cell: &CellRecord) -> Option<f64> {
    let seconds = seconds(cell.result.to_stable_ns?);
    (seconds > 0.0).then_some(ratio(cell.result.bytes?, 1) / seconds)
}

/// Share of the file's span that lies in holes or unwritten extents; `None` without FIEMAP.
pub fn hole_share(cell: &CellRecord) -> Option<f64> {
    let extents = cell.evidence.extents?;
    let empty = extents.hole_bytes + extents.unwritten_bytes;
    let file_bytes = empty + extents.mapped_bytes;
    (file_bytes > 0).then_some(ratio(empty, file_bytes))
}

/// Whether writes of this workload change pages of this size partially.
pub fn writes_partial_pages(workload: &Workload, page_bytes: u64) -> bool {
    [workload.block_bytes, workload.align_bytes, workload.shift_bytes]
        .iter()
        .any(|bytes| !bytes.is_multiple_of(page_bytes))
}

/// Processor time, user and system, of the cell.
pub fn cpu_ns(cell: &CellRecord) -> Option<u64> {
    cell.result.cpu_ns.map(|cpu| cpu.user + cpu.system)
}

/// I/Os that the workload may have in flight in all its streams together.
pub fn wanted_depth(workload: &Workload) -> u64 {
    workload.wanted_depth()
}

/// Minimum share of I/Os completed within their own submission for the queue to count as absent.
const WITHIN_SHARE: f64 = 0.9;

/// Whether the I/Os completed one after the other within the calls that submitted them, whatever depth was requested.
pub fn is_done_within_submit(cell: &CellRecord) -> bool {
    let within = cell.result.issuing.as_ref().and_then(|issuing| issuing.within_submit);
    within.zip(cell.result.ops).is_some_and(|(within, ops)| ops > 0 && ratio(within, ops) >= WITHIN_SHARE)
}

/// The mean number of I/Os that a cell had in flight at its target; `None` if nothing completed. If each I/O completes
/// within its submission, the latencies include the wait for the others of the same call, and a stream has one in flight
/// however many it submits.
pub fn depth_had(cell: &CellRecord) -> Option<f64> {
    let mean = cell.result.in_flight_mean.filter(|_| cell.result.ops.is_some_and(|ops| ops > 0))?;
    if is_done_within_submit(cell) { Some(mean.min(f64::from(cell.workload.streams))) } else { Some(mean) }
}

/// Share of the wanted depth from which a queue counts as filled.
pub const REACHED_SHARE: f64 = 0.9;

/// Whether a cell reached the requested depth; true for a cell that measured nothing, and where the depth is only a limit.
pub fn has_reached_depth(cell: &CellRecord) -> bool {
    cell.workload.depth_is_limit()
        || depth_had(cell).is_none_or(|had| had >= REACHED_SHARE * wanted_depth(&cell.workload) as f64)
}

/// One count over another as a plain figure; callers check for zero.
pub fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

/// The latency of an ordinary I/O.
pub fn typical_ns(latency: &Latency) -> Option<u64> {
    latency.p50.or(latency.mean.map(whole))
}

/// The whole part of a count of bytes or nanoseconds that was computed.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "far below 2^53, and what is negative counts as 0"
)]
pub fn whole(count: f64) -> u64 {
    count as u64
}

/// Nanoseconds as seconds.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Completed reads of a device; `None` if they are not known. An NVMe multipath device counts a flush of one of its paths as a read of
/// no sectors (drivers/nvme/host/multipath.c goes by the operation, and an even one is none that writes). The paths count their
/// flushes by themselves, so these are taken off; and each read that is left has a sector at least.
pub(crate) fn read_requests(cell: &CellRecord, device: &DeviceEvidence) -> Option<u64> {
    let is_path =
        |other: &&DeviceEvidence| other.target == device.target && is_nvme_path(&other.name, &device.name);
    let mut paths = cell.evidence.device.iter().filter(is_path).peekable();
    if paths.peek().is_none() {
        return device.reads;
    }
    let flushes = paths.filter_map(|path| path.flushes).fold(0, u64::saturating_add);
    let reads = device.reads?.saturating_sub(flushes);
    Some(device.read_bytes.map_or(reads, |bytes| reads.min(bytes / SECTOR_BYTES)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, cell, with};
    use crate::metrics::device_requests;
    use crate::verdict::verdict;
    use rdsk_model::{BpfEvidence, DiskStat, IoPath, Op, Verdict, VerdictCode};

    /// 1000 durable writes of 4 KiB; the device flushes after each.
    #[test]
    fn programs_that_missed_nothing_tell_writes_from_flushes() {
        let mut cell = fixtures::cell("x", Op::Write, IoPath::Direct, 4096, 1000, 500_000_000);
        let device = &mut cell.evidence.device[0];
        (device.writes, device.flushes) = (Some(1000), Some(1000));
        let name = device.name.clone();
        let unknown = device_requests(&cell, Op::Write);
        assert_eq!(unknown, None, "empty flushes or flushes after writes: the counters do not say");
        let request = |bytes, count| Request {
            target: 0,
            device: name.clone(),
            op: Op::Write,
            bytes,
            fua: false,
            count,
        };
        cell.evidence.requests = vec![request(4096, 998), request(8192, 1), request(0, 7)];
        cell.evidence.bpf = Some(BpfEvidence { observed_ns: 5, visits_ns: 5, ..BpfEvidence::default() });
        assert_eq!(device_requests(&cell, Op::Write), Some(999));
        assert_eq!(mean_request_bytes(&cell, Op::Write), Some(4_096_000.0 / 999.0));
        let missed =
            |change: fn(&mut CellRecord)| device_requests(&fixtures::with(cell.clone(), change), Op::Write);
        assert_eq!(missed(|cell| cell.evidence.requests[0].count -= 1), None, "other bytes than sysfs");
        assert_eq!(
            missed(|cell| cell.evidence.bpf.as_mut().unwrap().observed_ns = 4),
            None,
            "a part of the time"
        );
        let few = |flushes: u64| {
            let mut cell = cell.clone();
            cell.evidence.bpf.as_mut().unwrap().followed = Some(vec![0]);
            cell.evidence.requests[0].count -= 1;
            (cell.evidence.device[0].writes, cell.evidence.device[0].flushes) = (Some(1010), Some(flushes));
            device_requests(&cell, Op::Write)
        };
        assert_eq!(
            [few(10), few(500)],
            [Some(1000), None],
            "how many of the writes are flushes is not known"
        );
    }

    #[test]
    fn two_targets_on_one_device_count_it_once() {
        let mut cell = fixtures::cell("x", Op::Read, IoPath::Direct, 1 << 20, 64, 500_000_000);
        let mut twin = cell.evidence.device[0].clone();
        twin.target = 1;
        cell.evidence.device.push(twin.clone());
        cell.workload.targets = vec![0, 1];
        assert_eq!(device_bytes(&cell, Op::Read), Some(64 << 20));
        twin.name = "sdb".into();
        cell.evidence.device[1] = twin;
        assert_eq!(device_bytes(&cell, Op::Read), Some(128 << 20));
    }

    #[test]
    fn busy_time_is_unknown_where_the_kernel_counts_io_and_no_times() {
        let cell = fixtures::cell("x", Op::Read, IoPath::Direct, 4096, 5000, 2_000_000_000);
        let with = |read_ios: u64, io_ticks_ms: u64| {
            let counted = DiskStat { read_ios, io_ticks_ms, ..DiskStat::default() };
            let device = DeviceEvidence { diskstat: Some(counted), ..cell.evidence.device[0].clone() };
            busy_share(&cell, &device)
        };
        assert_eq!(with(5000, 0), None, "an array of md before 5.10");
        assert_eq!(with(10, 0), Some(0.0), "it was idle");
        assert_eq!(with(5000, 1000), Some(0.5));
    }

    #[test]
    fn busy_time_is_believed_where_the_kernels_steps_are_small_against_it() {
        let mut cell = fixtures::cell("x", Op::Read, IoPath::Direct, 1 << 20, 64, 500_000_000);
        let share = |cell: &CellRecord| busy_share(cell, &cell.evidence.device[0]);
        assert!((share(&cell).unwrap() - 0.96).abs() < 1e-9);
        fixtures::set_busy(&mut cell.evidence.device[0], 1.26);
        assert_eq!(share(&cell), Some(1.0));
        cell.evidence.device[0].interval_ns = Some(15_000_000);
        assert_eq!(share(&cell), None);
        cell.evidence.source = EvidenceSource::Sim;
        assert_eq!(share(&cell), Some(1.0), "a model counts to the ns");
    }

    #[test]
    fn the_depth_had_is_that_of_the_target() {
        let mut cell = fixtures::cell("x", Op::Read, IoPath::Direct, 4096, 1000, 500_000_000);
        fixtures::deepen(&mut cell, 32, 31.9);
        for (within, streams, had, reached) in [
            (None, 1, 31.9, true),
            (Some(100), 1, 31.9, true),
            (Some(950), 1, 1.0, false),
            (Some(1000), 4, 4.0, false),
        ] {
            let issuing = rdsk_model::Issuing { within_submit: within, ..rdsk_model::Issuing::default() };
            cell.result.issuing = Some(issuing);
            cell.workload.streams = streams;
            cell.workload.queue_depth = 32 / streams;
            assert_eq!(depth_had(&cell), Some(had), "{within:?}");
            assert_eq!(has_reached_depth(&cell), reached, "{within:?}");
        }
        cell.result.ops = Some(0);
        cell.result.in_flight_mean = Some(0.0);
        assert!(depth_had(&cell).is_none() && has_reached_depth(&cell), "all in flight failed");
        cell.result.ops = Some(1000);
        cell.result.in_flight_mean = None;
        assert!(depth_had(&cell).is_none() && has_reached_depth(&cell));
    }

    #[test]
    fn a_missing_counter_makes_the_sum_unknown() {
        let mut cell = fixtures::cell("x", Op::Read, IoPath::Direct, 1 << 20, 64, 500_000_000);
        cell.evidence.device[0].read_bytes = None;
        assert_eq!(device_bytes(&cell, Op::Read), None);
        cell.evidence.device.clear();
        assert_eq!(device_bytes(&cell, Op::Read), None);
        assert_eq!(row(&cell), None);
    }

    #[test]
    fn the_page_is_the_hosts_own() {
        let mut record = fixtures::record(Vec::new(), Vec::new());
        for (told, expected) in [(Some(8192), 8192), (Some(0), 4096), (None, 4096)] {
            if let Some(host) = &mut record.host {
                host.page_bytes = told;
            }
            assert_eq!(page_bytes(&record), expected);
        }
        record.host = None;
        assert_eq!(page_bytes(&record), 4096);
    }

    #[test]
    fn partial_pages() {
        let mut workload = Workload::sequential_read(1 << 20);
        for (block, align, shift, page, expected) in [
            (4096, 4096, 0, 4096, false),
            (8192, 4096, 0, 4096, false),
            (8192, 8192, 0, 8192, false),
            (4096, 4096, 0, 8192, true),
            (512, 512, 0, 4096, true),
            (4096, 4096, 512, 4096, true),
            (4096, 512, 0, 4096, true),
            (6144, 4096, 0, 4096, true),
        ] {
            workload.block_bytes = block;
            workload.align_bytes = align;
            workload.shift_bytes = shift;
            assert_eq!(writes_partial_pages(&workload, page), expected, "{block} {align} {shift} {page}");
        }
    }

    const COUNTED: [Option<u64>; 2] = [Some(9_000), Some(1_000)];

    /// 10 000 sync writes to an NVMe device with two paths and the given number of flushes, beside others' reads of a sector.
    fn durable(foreign: u64, flushes: [Option<u64>; 2]) -> CellRecord {
        with(cell("w", Op::Write, IoPath::Direct, 4096, 10_000, 1_000_000_000), |cell| {
            let device = &mut cell.evidence.device[0];
            device.name = "nvme0n1".into();
            (device.reads, device.read_bytes) = (Some(10_000 + foreign), Some(foreign * SECTOR_BYTES));
            device.flushes = None;
            for (name, flushes) in ["nvme0c0n1", "nvme0c1n1"].into_iter().zip(flushes) {
                let path = DeviceEvidence { name: name.into(), flushes, ..DeviceEvidence::default() };
                cell.evidence.device.push(path);
            }
        })
    }

    #[test]
    fn flushes_of_the_paths_are_no_reads() {
        let reads = |cell: &CellRecord| device_requests(cell, Op::Read);
        let counted = [0, 1, 5_000].map(|foreign| reads(&durable(foreign, COUNTED)));
        assert_eq!(counted, [Some(0), Some(1), Some(5_000)]);
        assert_eq!(reads(&durable(7, [Some(9_000), None])), Some(7), "each has a sector");
        let pages = with(durable(80, COUNTED), |cell| cell.evidence.device[0].reads = Some(10_010));
        assert_eq!(reads(&pages), Some(10), "of eight sectors each");
        let plain = with(durable(1, COUNTED), |cell| cell.evidence.device.truncate(1));
        assert_eq!(reads(&plain), Some(10_001), "a device without paths counts its flushes apart");
        let unknown = with(durable(1, COUNTED), |cell| cell.evidence.device[0].reads = None);
        assert_eq!(reads(&unknown), None);
    }

    #[test]
    fn flushes_of_the_paths_are_not_what_others_read() {
        let judged = |foreign: u64, flushes: [Option<u64>; 2]| -> Verdict {
            let mut target = fixtures::disk();
            target.device.as_mut().unwrap().name = "nvme0n1".into();
            verdict(&durable(foreign, flushes), &[target], Some(8))
        };
        for flushes in [COUNTED, [Some(9_000), None], [None; 2]] {
            let flushed = judged(1, flushes);
            assert_eq!(flushed.code, VerdictCode::Device, "{}", flushed.text);
        }
        let counted = judged(3_000, COUNTED);
        assert_eq!(counted.code, VerdictCode::Disturbed, "{}", counted.text);
        assert!(
            counted.text.starts_with("nvme0n1 did about 3,000 read requests for others"),
            "{}",
            counted.text
        );
    }
}
