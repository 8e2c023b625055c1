//! Cells and Records of invented runs, for tests: every counter agrees with every other until a test changes one. The
//! machine, the disk and the figures are made up; nothing here was measured.

pub mod bios;
pub mod copies;
mod places;
pub mod rates;
mod rounds;
mod run;
pub mod stripe;
pub mod zones;

pub use rounds::{ROUNDS, all_in_rounds, in_rounds};
pub use run::{run, run_on_three_paths};

use rdsk_model::{
    CacheState, CellRecord, CellResult, ClockFacts, ColdCheck, CpuTime, Device, DeviceEvidence, DiskStat,
    EngineKind, Estimate, Evidence, EvidenceSource, Experiment, Filesystem, Host, IoPath, Latency,
    ObserverFacts, Op, PageCache, PageCacheState, Pattern, ProcessIo, Record, SCHEMA, SECTOR_BYTES,
    StopReason, Sync, Target, TargetKind, Visit, Windows, Workload,
};

const NS_PER_MS: u64 = 1_000_000;

/// A whole SATA disk `sda` with a volatile write cache and no FUA.
pub fn disk() -> Target {
    Target {
        index: 0,
        name: "/dev/sda".into(),
        kind: TargetKind::Block,
        path: Some("/dev/sda".into()),
        size_bytes: 500_107_862_016,
        filesystem: None,
        device: Some(device()),
        stack: vec!["sda".into()],
        made_by_rdsk: false,
        other_devices: Vec::new(),
        laid_out: None,
        direct_io: Some(true),
        direct_align_bytes: Some(512),
        nowait: Some(true),
        dontcache: Some(true),
    }
}

/// A test file of 1 GiB on ext4 on the disk of [`disk`].
pub fn file() -> Target {
    Target {
        name: ".".into(),
        kind: TargetKind::File,
        path: Some("/home/ann/.rdsk-test-01JD.tmp".into()),
        size_bytes: 1 << 30,
        filesystem: Some(Filesystem { kind: "ext4".into(), options: "rw,relatime".into() }),
        stack: vec!["sda2".into(), "sda".into()],
        made_by_rdsk: true,
        ..disk()
    }
}

/// A cell whose every byte was moved by the device, one request per I/O: one synchronous stream at depth 1.
pub fn cell(id: &str, op: Op, path: IoPath, block_bytes: u64, ops: u64, elapsed_ns: u64) -> CellRecord {
    let bytes = block_bytes * ops;
    CellRecord {
        id: id.into(),
        experiment: Experiment::Paths,
        workload: Workload {
            op,
            path,
            block_bytes,
            align_bytes: block_bytes,
            cache: if path.uses_page_cache() && op == Op::Read { CacheState::Cold } else { CacheState::Any },
            ..Workload::sequential_read(1 << 30)
        },
        result: result(op, block_bytes, ops, elapsed_ns),
        evidence: Evidence {
            source: EvidenceSource::Sysfs,
            device: vec![device_evidence(op, block_bytes, ops, elapsed_ns)],
            page_cache: Some(PageCache {
                before: PageCacheState { cached_bytes: Some(0), dirty_bytes: Some(0) },
                after: PageCacheState { cached_bytes: Some(0), dirty_bytes: Some(0) },
                stable: (op == Op::Write)
                    .then_some(PageCacheState { cached_bytes: Some(0), dirty_bytes: Some(0) }),
            }),
            process: ProcessIo {
                read_bytes: Some(if op == Op::Read { bytes } else { 0 }),
                write_bytes: Some(if op == Op::Write { bytes } else { 0 }),
            },
            ..Evidence::default()
        },
        verdict: None,
    }
}

/// The same cell, changed by a closure.
pub fn with(mut cell: CellRecord, change: impl FnOnce(&mut CellRecord)) -> CellRecord {
    change(&mut cell);
    cell
}

/// Turns a write cell into one that memory took: written back after the return, `return_ns` for write(2) and
/// `stable_ns` until everything was on the device.
pub fn kept_in_memory(cell: CellRecord, return_ns: u64, stable_ns: u64) -> CellRecord {
    with(cell, |cell| {
        let bytes = cell.result.bytes.unwrap_or(0);
        cell.workload.path = IoPath::Buffered;
        retimed(cell, return_ns);
        cell.result.to_return_ns = Some(return_ns);
        cell.result.to_close_ns = Some(return_ns);
        cell.result.to_stable_ns = Some(stable_ns);
        for visit in &mut cell.result.visits {
            visit.to_return_ns = Some(return_ns);
            visit.to_close_ns = Some(return_ns);
            visit.to_stable_ns = Some(stable_ns);
        }
        let device = &mut cell.evidence.device[0];
        device.diskstat = Some(DiskStat::default());
        device.interval_ns = Some(return_ns);
        if let Some(page_cache) = &mut cell.evidence.page_cache {
            page_cache.after = PageCacheState { cached_bytes: Some(bytes), dirty_bytes: Some(bytes) };
            page_cache.stable = Some(PageCacheState { cached_bytes: Some(bytes), dirty_bytes: Some(0) });
        }
    })
}

/// Turns a read cell into one that memory answered: no request reached the device.
pub fn read_from_memory(cell: CellRecord) -> CellRecord {
    with(cell, |cell| {
        cell.workload.path = IoPath::Buffered;
        cell.evidence.process.read_bytes = Some(0);
        let device = &mut cell.evidence.device[0];
        device.reads = Some(0);
        device.read_bytes = Some(0);
        device.diskstat = Some(DiskStat::default());
    })
}

/// Gives a cell another elapsed time and all rates that follow from it.
pub fn retimed(cell: &mut CellRecord, elapsed_ns: u64) {
    let (ops, block_bytes) = (cell.result.ops.unwrap_or(0), cell.workload.block_bytes);
    let fresh = result(cell.workload.op, block_bytes, ops, elapsed_ns);
    cell.result = fresh;
}

/// Divides a cell's one visit into equal ones; every total stays the sum over them.
pub fn in_visits(cell: CellRecord, visits: u64) -> CellRecord {
    with(cell, |cell| {
        let Some(whole) = cell.result.visits.first().cloned() else { return };
        let share = |ns: Option<u64>| ns.map(|ns| ns / visits);
        let part = Visit {
            elapsed_ns: whole.elapsed_ns / visits,
            bytes: whole.bytes / visits,
            ops: whole.ops / visits,
            to_return_ns: share(whole.to_return_ns),
            to_close_ns: share(whole.to_close_ns),
            to_stable_ns: share(whole.to_stable_ns),
            cache: whole.cache,
            ..Visit::default()
        };
        cell.result.visits = (0..visits).map(|_| part.clone()).collect();
    })
}

/// Takes every device counter away, as where `queue/iostats` is 0 or no block device is reached.
pub fn without_counters(cell: CellRecord) -> CellRecord {
    with(cell, |cell| {
        for device in &mut cell.evidence.device {
            *device = DeviceEvidence {
                target: device.target,
                name: device.name.clone(),
                ..DeviceEvidence::default()
            };
        }
        cell.evidence.source = EvidenceSource::Process;
    })
}

/// A cell that never ran, with the reason.
pub fn not_applicable(cell: CellRecord, why: &str) -> CellRecord {
    with(cell, |cell| {
        cell.result =
            CellResult { stop: StopReason::NotApplicable, why: why.into(), ..CellResult::default() };
        cell.evidence = Evidence::default();
    })
}

/// A complete Record over these cells, verdicts given, without findings.
pub fn record(targets: Vec<Target>, mut cells: Vec<CellRecord>) -> Record {
    for cell in &mut cells {
        if cell.result.stop != StopReason::NotApplicable {
            cell.verdict = Some(crate::verdict(cell, &targets, Some(8)));
        }
    }
    Record {
        schema: SCHEMA.into(),
        id: "01JD8W3Q5Z0000000000000000".into(),
        command: vec!["rdsk".into(), "run".into()],
        rdsk_version: "0.1.0".into(),
        started_at: "2026-01-02T03:04:05Z".into(),
        elapsed_ns: 61_000_000_000,
        host: Some(host()),
        targets,
        observer: ObserverFacts {
            source: EvidenceSource::Sysfs,
            why_not_higher: Some("rdsk reads no BPF evidence yet".into()),
            ..ObserverFacts::default()
        },
        cells,
        ..Record::default()
    }
}

/// A result without any figure.
pub fn empty_result() -> CellResult {
    CellResult { stop: StopReason::Error, ..CellResult::default() }
}

/// An estimate of ±1 %.
pub fn estimate(mean: f64) -> Estimate {
    Estimate { mean, low: Some(mean * 0.99), high: Some(mean * 1.01) }
}

fn result(op: Op, block_bytes: u64, ops: u64, elapsed_ns: u64) -> CellResult {
    let (bytes, seconds) = (block_bytes * ops, elapsed_ns as f64 / 1e9);
    let stable_ns = (op == Op::Write).then_some(elapsed_ns);
    let windows = 10;
    CellResult {
        stop: StopReason::Precision,
        why: "the interval is ±1.0% wide, as asked for".into(),
        engine: Some(EngineKind::Sync),
        elapsed_ns: Some(elapsed_ns),
        asked_bytes: Some(bytes),
        bytes: Some(bytes),
        ops: Some(ops),
        bytes_per_s: Some(estimate(bytes as f64 / seconds)),
        ops_per_s: Some(estimate(ops as f64 / seconds)),
        latency_ns: Some(latency(ops, elapsed_ns / ops.max(1))),
        to_return_ns: Some(elapsed_ns),
        to_close_ns: Some(elapsed_ns),
        to_stable_ns: stable_ns,
        windows: Some(Windows { width_ns: elapsed_ns / windows, bytes: vec![bytes / windows; 10] }),
        cpu_ns: Some(CpuTime { user: elapsed_ns / 100, system: elapsed_ns / 20 }),
        in_flight_mean: Some(0.99),
        warmup_ns: Some(0),
        warmup_bytes: Some(0),
        warmup_ops: Some(0),
        interrupted_calls: Some(0),
        visits: vec![Visit {
            elapsed_ns,
            bytes,
            ops,
            to_return_ns: Some(elapsed_ns),
            to_close_ns: Some(elapsed_ns),
            to_stable_ns: stable_ns,
            cache: Some(ColdCheck { cached_bytes: Some(0), ranges_checked: 0, ranges_wrong: 0 }),
            ..Visit::default()
        }],
        ..CellResult::default()
    }
}

/// Latencies around a median, with the percentiles that the count allows.
pub fn latency(count: u64, p50: u64) -> Latency {
    Latency {
        count,
        min: Some(p50 / 2),
        mean: Some(p50 as f64),
        p50: Some(p50),
        p90: (count >= 100).then_some(p50 * 3 / 2),
        p99: (count >= 1000).then_some(p50 * 2),
        p999: (count >= 10_000).then_some(p50 * 3),
        p9999: (count >= 100_000).then_some(p50 * 5),
        max: Some(p50 * 6),
        histogram: None,
        ranges: None,
        rounds: Vec::new(),
    }
}

fn device_evidence(op: Op, block_bytes: u64, ops: u64, elapsed_ns: u64) -> DeviceEvidence {
    let bytes = block_bytes * ops;
    let (ticks_ms, sectors) = (elapsed_ns / 100 * 95 / NS_PER_MS, bytes.div_ceil(SECTOR_BYTES));
    let any = DiskStat {
        io_ticks_ms: elapsed_ns / 100 * 96 / NS_PER_MS,
        time_in_queue_ms: ticks_ms,
        ..DiskStat::default()
    };
    let counters = match op {
        Op::Read => DiskStat { read_ios: ops, read_sectors: sectors, read_ticks_ms: ticks_ms, ..any },
        Op::Write => DiskStat { write_ios: ops, write_sectors: sectors, write_ticks_ms: ticks_ms, ..any },
    };
    let if_op = |wanted: Op, value: u64| Some(if op == wanted { value } else { 0 });
    DeviceEvidence {
        target: 0,
        name: "sda".into(),
        reads: if_op(Op::Read, ops),
        read_bytes: if_op(Op::Read, bytes),
        writes: if_op(Op::Write, ops),
        write_bytes: if_op(Op::Write, bytes),
        read_merges: Some(0),
        write_merges: Some(0),
        splits: None,
        flushes: Some(0),
        discards: Some(0),
        in_flight_max: Some(1),
        busy_ns: Some(elapsed_ns / 100 * 96),
        interval_ns: Some(elapsed_ns),
        diskstat: Some(counters),
        in_flight_series: vec![1; 10],
        bytes_series: vec![bytes / 10; 10],
        series_width_ns: Some(elapsed_ns / 10),
        ..DeviceEvidence::default()
    }
}

fn device() -> Device {
    Device {
        name: "sda".into(),
        major_minor: "8:0".into(),
        model: Some("EXAMPLE DISK 500".into()),
        serial: Some("EX-0001".into()),
        size_bytes: Some(500_107_862_016),
        logical_block_bytes: Some(512),
        physical_block_bytes: Some(4096),
        alignment_offset_bytes: Some(0),
        minimum_io_bytes: Some(4096),
        max_request_bytes: Some(1280 << 10),
        zoned: Some("none".into()),
        rotational: Some(true),
        write_cache: Some("write back".into()),
        fua: Some(false),
        scheduler: Some("mq-deadline".into()),
        iostats: Some(true),
        kind: Some("disk".into()),
        ..Device::default()
    }
}

fn host() -> Host {
    Host {
        kernel: "6.18.0".into(),
        cpu_model: Some("Example CPU 2.6 GHz".into()),
        cpu_count: 8,
        memory_bytes: Some(16 << 30),
        virtualization: None,
        page_bytes: Some(4096),
        clock: ClockFacts { source: "tsc".into(), resolution_ns: 20, read_cost_ns: 22 },
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "milliseconds of an invented run")]
fn whole(ms: f64) -> u64 {
    ms.round() as u64
}

/// Gives a device another mean depth (`aqu-sz`) over its interval, to the millisecond.
pub fn set_depth(device: &mut DeviceEvidence, mean: f64) {
    let in_queue = mean * device.interval_ns.unwrap_or(0) as f64 / NS_PER_MS as f64;
    if let Some(counters) = &mut device.diskstat {
        counters.time_in_queue_ms = whole(in_queue);
    }
}

/// Gives a device another share of its interval in which it was busy (`%util`), to the millisecond.
pub fn set_busy(device: &mut DeviceEvidence, share: f64) {
    let busy = share * device.interval_ns.unwrap_or(0) as f64 / NS_PER_MS as f64;
    if let Some(counters) = &mut device.diskstat {
        counters.io_ticks_ms = whole(busy);
    }
}

/// Makes a workload random at a depth on `io_uring`, with the figures that a full queue has.
pub fn deepen(cell: &mut CellRecord, queue_depth: u32, in_flight_mean: f64) {
    cell.workload.pattern = Pattern::Random;
    cell.workload.queue_depth = queue_depth;
    cell.workload.engine = if queue_depth > 1 { EngineKind::Uring } else { EngineKind::Sync };
    cell.result.engine = Some(cell.workload.engine);
    cell.result.in_flight_mean = Some(in_flight_mean);
    let device = &mut cell.evidence.device[0];
    set_depth(device, in_flight_mean);
    if let (Some(latency), Some(ops), Some(elapsed_ns)) =
        (&mut cell.result.latency_ns, cell.result.ops, cell.result.elapsed_ns)
    {
        *latency = self::latency(ops, elapsed_ns / ops.max(1) * u64::from(queue_depth));
    }
}

/// Makes every write of a cell durable by itself, with one flush each.
pub fn make_durable(cell: &mut CellRecord) {
    cell.workload.sync = Sync::Dsync;
    cell.evidence.device[0].flushes = cell.result.ops;
}
