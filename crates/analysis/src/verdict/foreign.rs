//! Requests of others beside a cell: small ones that hardly show in bytes, those on another part of the same disk, and those on
//! one member of an array. The counters of bytes are exact, so that requests of others are only seen where their bytes are.

mod below;

use super::Judgement;
use super::facts::Facts;
use crate::metrics::{self, read_requests};
use crate::words;
use rdsk_model::{DeviceEvidence, Op, VerdictCode};
use rdsk_units::grouped;

/// Others disturb from this many requests on, if they are this many per second, and this many for each I/O of the cell.
const MIN_REQUESTS: f64 = 64.0;
const MIN_PER_S: f64 = 10.0;
const MIN_PER_IO: f64 = 0.25;
/// Pages that do not lie together in memory and still make one request, for devices that do not say (`max_segments`): drivers
/// take more (virtio 126 or 254, AHCI 168, NVMe 127).
const PAGES_PER_REQUEST: u64 = 64;
/// Size of a request that no device limits, for devices that do not say.
const REQUEST_BYTES: u64 = 128 << 10;
/// Requests of others are hardly smaller.
const SMALL_BYTES: u64 = metrics::PAGE_BYTES;

/// Step 8, requests: the device, or a disk below it, did requests that this cell did not issue.
pub(super) fn judge(facts: &Facts<'_>) -> Judgement {
    beside(facts).or_else(|| below::judge(facts)).map(|text| (VerdictCode::Disturbed, text))
}

/// What the counters of devices show of one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    requests: u64,
    /// I/Os that were merged into these requests.
    merges: u64,
    bytes: u64,
}

impl Moved {
    fn on_device(facts: &Facts<'_>, device: &DeviceEvidence, op: Op) -> Option<Self> {
        let (requests, merges) = match op {
            Op::Read => (read_requests(facts.cell, device)?, device.read_merges),
            // The kernel counts an empty flush among the writes too.
            Op::Write => (device.writes?.saturating_sub(device.flushes.unwrap_or(0)), device.write_merges),
        };
        Some(Self { requests, merges: merges.unwrap_or(0), bytes: metrics::bytes_of(device, op)? })
    }

    /// The same of several devices together.
    fn of_all(facts: &Facts<'_>, devices: &[&DeviceEvidence], op: Op) -> Option<Self> {
        devices
            .iter()
            .try_fold(Self::default(), |sum, device| Some(sum.sum(Self::on_device(facts, device, op)?)))
    }

    fn sum(self, more: Self) -> Self {
        Self {
            requests: self.requests + more.requests,
            merges: self.merges + more.merges,
            bytes: self.bytes + more.bytes,
        }
    }

    /// Requests of others among these, if `ours` of the bytes are ours. The share that their bytes have in all is the least:
    /// others with smaller requests than ours have more of them.
    fn of_others(self, ours: u64) -> f64 {
        let foreign = self.bytes.saturating_sub(ours);
        self.requests as f64 * metrics::ratio(foreign, self.bytes.max(1))
    }
}

/// Whether so many requests of others disturb.
fn is_much(facts: &Facts<'_>, requests: f64) -> bool {
    requests >= MIN_REQUESTS
        && requests >= MIN_PER_S * metrics::seconds(facts.elapsed_ns)
        && requests >= MIN_PER_IO * facts.ops as f64
}

/// Others on the device itself.
fn beside(facts: &Facts<'_>) -> Option<String> {
    if facts.is_served() {
        return None;
    }
    // Of a device that several targets share, each of them has the counters.
    let counters = metrics::devices(facts.cell)?;
    let (op, device) = (facts.cell.workload.op, &facts.device_names);
    let [reads, writes] = [Op::Read, Op::Write].map(|op| Moved::of_all(facts, &counters, op));
    let (reads, writes) = (reads?, writes?);
    let others = match op {
        Op::Read => [(op, in_our_direction(facts, reads)), (Op::Write, writes.requests as f64)],
        // Parity is computed from what is read, and the missing member of an array from all the others.
        Op::Write if facts.written.most.is_none() => return None,
        // A filesystem adds a journal and metadata, and the kernel decides when and in what pieces it writes pages back.
        Op::Write if facts.is_file() || !facts.is_direct() => {
            [(Op::Read, reads_beside(facts, reads)), (op, 0.0)]
        }
        Op::Write => [(Op::Read, reads_beside(facts, reads)), (op, in_our_direction(facts, writes))],
    };
    let (what, requests) =
        others.into_iter().max_by(|(_, requests), (_, other)| requests.total_cmp(other))?;
    is_much(facts, requests).then(|| {
        let per_s = requests / metrics::seconds(facts.elapsed_ns);
        format!(
            "{device} did about {} {what} requests for others ({} per second) besides the {} I/Os of this test{}",
            grouped(metrics::whole(requests)),
            grouped(metrics::whole(per_s)),
            grouped(facts.ops),
            queue(facts, &counters)
        )
    })
}

/// Requests of others in the direction of the cell.
fn in_our_direction(facts: &Facts<'_>, moved: Moved) -> f64 {
    let workload = &facts.cell.workload;
    let charged = facts.charged(workload.op);
    // What the kernel read ahead for us is unknown, and so is what an array read to compute what it lacks.
    if (charged.is_none() && !facts.is_direct()) || facts.reconstructs() {
        return 0.0;
    }
    let charged = charged.unwrap_or(0);
    let copies = facts.written.most.unwrap_or(1.0).max(1.0);
    let ours = metrics::whole(charged.max(facts.bytes) as f64 * copies);
    let by_share = moved.of_others(ours);
    if !facts.is_direct() {
        return by_share;
    }
    // Direct I/Os are cut into a known number of parts at most. What was merged or requested beyond that is others', as far as
    // there are bytes for it.
    let limit = facts.devices().filter_map(|device| device.max_request_bytes).min();
    let limit = limit.filter(|&bytes| bytes > 0).unwrap_or(REQUEST_BYTES);
    let segments =
        facts.devices().filter_map(|device| device.max_segments).min().unwrap_or(PAGES_PER_REQUEST);
    let pages = workload.block_bytes.div_ceil(metrics::PAGE_BYTES);
    // Cut at the one limit or at the other: the first part of each may be the same.
    let parts = workload.block_bytes.div_ceil(limit) + pages.div_ceil(segments.max(1)) - 1;
    let rest = (moved.requests + moved.merges) as f64 - (facts.ops * parts) as f64 * copies;
    let at_most = (moved.bytes.saturating_sub(ours) / SMALL_BYTES) as f64;
    by_share.max(rest.min(at_most))
}

/// Reads of others beside writes.
fn reads_beside(facts: &Facts<'_>, reads: Moved) -> f64 {
    let ours = facts.charged(Op::Read).unwrap_or(facts.ops * 2 * metrics::PAGE_BYTES);
    reads.of_others(ours)
}

/// `; 1.95 requests were in flight on average, 0.98 of them ours`, where each of ours is one request.
fn queue(facts: &Facts<'_>, counters: &[&DeviceEvidence]) -> String {
    let in_flight = |device: &&DeviceEvidence| {
        let (io, interval_ns) = (device.diskstat?, device.interval_ns.filter(|&ns| ns > 0)?);
        Some((io.read_ticks_ms + io.write_ticks_ms) as f64 * 1e6 / interval_ns as f64)
    };
    let of_all: Option<f64> = counters.iter().map(in_flight).sum();
    match of_all.zip(facts.cell.result.in_flight_mean).filter(|_| facts.is_direct()) {
        Some((of_all, ours)) if of_all > ours => {
            format!(
                "; {} requests were in flight on average, {} of them ours",
                words::figure(of_all),
                words::figure(ours)
            )
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, cell, with};
    use crate::verdict::verdict;
    use rdsk_model::{CellRecord, DiskStat, IoPath, Target};

    const MIB: u64 = 1 << 20;
    const SECOND: u64 = 1_000_000_000;

    /// A sequential read of 2000 MiB in a second, and what its disk did besides.
    fn sequential(path: IoPath, requests: u64, request_bytes: u64) -> CellRecord {
        with(cell("s", Op::Read, path, MIB, 2000, SECOND), |cell| {
            let device = &mut cell.evidence.device[0];
            device.reads = device.reads.map(|reads| reads + requests);
            device.read_bytes = device.read_bytes.map(|bytes| bytes + requests * request_bytes);
        })
    }

    #[track_caller]
    pub(super) fn is_disturbed(cell: &CellRecord, target: Target) -> Option<String> {
        let verdict = verdict(cell, &[target], Some(8));
        assert!(matches!(verdict.code, VerdictCode::Device | VerdictCode::Disturbed), "{}", verdict.text);
        (verdict.code == VerdictCode::Disturbed).then_some(verdict.text)
    }

    #[test]
    fn small_reads_of_others_are_seen_although_they_are_few_bytes() {
        let beside = with(sequential(IoPath::Direct, 30_000, 4096), |cell| {
            let io = DiskStat { read_ticks_ms: 1950, ..cell.evidence.device[0].diskstat.unwrap() };
            cell.evidence.device[0].diskstat = Some(io);
        });
        let text = is_disturbed(&beside, fixtures::disk()).unwrap();
        assert_eq!(
            text,
            "sda did about 24,000 read requests for others (24,000 per second) besides the 2,000 I/Os of this test; 1.95 \
             requests were in flight on average, 0.99 of them ours"
        );
        // Through the page cache it is not known how many requests are ours, and their bytes decide alone.
        let text = is_disturbed(&sequential(IoPath::Buffered, 30_000, 4096), fixtures::disk()).unwrap();
        assert!(text.contains("about 1,7"), "{text}");
        assert!(is_disturbed(&sequential(IoPath::Direct, 30_000, 4096), fixtures::file()).is_some());
    }

    /// What a virtual disk counted on 2026-11-22 beside four fio jobs: 1 MiB at depth 8 in 1.18 s, requests merged and cut.
    #[test]
    fn a_rival_beside_fast_sequential_reads_is_seen() {
        let others_of = |reads: u64, merges: u64, read_bytes: u64, max_segments: Option<u64>| {
            let cell = with(cell("s", Op::Read, IoPath::Direct, MIB, 3738, 1_182_406_358), |cell| {
                cell.workload.queue_depth = 8;
                let device = &mut cell.evidence.device[0];
                (device.reads, device.read_merges, device.read_bytes) =
                    (Some(reads), Some(merges), Some(read_bytes));
            });
            let mut target = fixtures::file();
            let device = target.device.as_mut().unwrap();
            (device.max_request_bytes, device.max_segments) = (Some(4 * MIB), max_segments);
            is_disturbed(&cell, target)
        };
        let text = others_of(13_886, 2_345, 3_970_748_416, Some(254)).unwrap();
        assert!(text.contains("about 8,755 read requests for others"), "{text}");
        assert!(others_of(8_553, 2_422, 3_948_675_072, Some(254)).is_some(), "most of ours were merged");
        assert_eq!(others_of(13_886, 0, 3_970_748_416, None), None, "they might all be ours");
        assert_eq!(others_of(2 * 3738, 0, 3738 * MIB, Some(254)), None);
        assert_eq!(others_of(1_400, 2_338, 3738 * MIB, Some(254)), None);
    }

    #[test]
    fn a_quiet_disk_is_not_disturbed_however_its_requests_were_cut() {
        assert_eq!(is_disturbed(&sequential(IoPath::Direct, 0, 0), fixtures::disk()), None);
        // Each I/O in 256 requests of a page: the bytes are ours, all of them.
        let cut =
            with(sequential(IoPath::Direct, 0, 0), |cell| cell.evidence.device[0].reads = Some(512_000));
        assert_eq!(is_disturbed(&cut, fixtures::disk()), None);
        // Some metadata, and a journal that is written out.
        assert_eq!(is_disturbed(&sequential(IoPath::Direct, 63, 4096), fixtures::file()), None);
        let journal = with(sequential(IoPath::Direct, 0, 0), |cell| {
            cell.evidence.device[0].writes = Some(40);
            cell.evidence.device[0].write_bytes = Some(40 * 4096);
        });
        assert_eq!(is_disturbed(&journal, fixtures::file()), None);
        // Empty flushes are counted among the writes.
        let flushes = with(sequential(IoPath::Direct, 0, 0), |cell| {
            cell.evidence.device[0].writes = Some(900);
            cell.evidence.device[0].flushes = Some(900);
        });
        assert_eq!(is_disturbed(&flushes, fixtures::disk()), None);
    }

    #[test]
    fn others_are_judged_by_their_rate_on_slow_disks_too() {
        // 40 foreign reads of 4 KiB beside 150 of our own, each second for ten seconds.
        let slow = |foreign: u64| {
            with(cell("r", Op::Read, IoPath::Direct, MIB, 1500, 10 * SECOND), |cell| {
                let device = &mut cell.evidence.device[0];
                device.reads = Some(1500 * 2 + foreign);
                device.read_bytes = Some(1500 * MIB + foreign * 4096);
            })
        };
        assert_eq!(is_disturbed(&slow(0), fixtures::disk()), None);
        let writes = with(slow(0), |cell| {
            cell.evidence.device[0].writes = Some(400);
            cell.evidence.device[0].write_bytes = Some(400 * 512);
        });
        let text = is_disturbed(&writes, fixtures::disk()).unwrap();
        assert!(text.contains("about 400 write requests for others (40 per second)"), "{text}");
    }

    /// RAID 6 without a member, whose own counters stand still (2026-11): it reads the others to compute parity, and what is missing.
    #[test]
    fn what_an_array_reads_to_compute_is_its_own() {
        let counted = |degraded: Option<u64>, op: Op| {
            let mut target = fixtures::disk();
            target.device.as_mut().unwrap().array = Some(rdsk_model::ArrayFacts {
                device: "md0".into(),
                level: Some("raid6".into()),
                degraded,
                ..rdsk_model::ArrayFacts::default()
            });
            let cell = with(cell("w", op, IoPath::Direct, MIB, 500, SECOND), |cell| {
                let device = &mut cell.evidence.device[0];
                device.reads = Some(device.reads.unwrap_or(0) + 5000);
                device.read_bytes = Some(device.read_bytes.unwrap_or(0) + 5000 * 64 * 1024);
                device.write_bytes = device.write_bytes.map(|bytes| bytes * 2);
                device.diskstat.as_mut().unwrap().write_sectors *= 2;
                cell.evidence.counted = vec![rdsk_model::Counted {
                    target: 0,
                    devices: vec![device.name.clone()],
                    written_least: 2.0,
                    written_most: None,
                    why: Some("md raid6 over sda".into()),
                }];
            });
            is_disturbed(&cell, target)
        };
        assert_eq!(counted(Some(1), Op::Write), None);
        assert_eq!(counted(Some(0), Op::Write), None, "parity is read and written again");
        assert_eq!(counted(Some(1), Op::Read), None);
        assert!(counted(Some(0), Op::Read).is_some(), "a whole array reads what it is asked for");
    }

    #[test]
    fn reads_beside_writes_are_others() {
        let write = |reads: u64| {
            with(cell("w", Op::Write, IoPath::Direct, MIB, 500, SECOND), |cell| {
                let device = &mut cell.evidence.device[0];
                (device.reads, device.read_bytes) = (Some(reads), Some(reads * 4096));
            })
        };
        assert!(is_disturbed(&write(5000), fixtures::file()).is_some());
        assert!(is_disturbed(&write(200), fixtures::disk()).is_some());
        assert_eq!(is_disturbed(&write(50), fixtures::disk()), None);
        let update = with(write(200), |cell| cell.evidence.process.read_bytes = Some(200 * 4096));
        assert_eq!(is_disturbed(&update, fixtures::disk()), None, "partial pages are read first, for us");
    }
}
