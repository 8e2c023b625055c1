//! What is behind a device, as far as a Record tells: platters, or memory that answers. It judges nothing else.

use crate::metrics;
use rdsk_model::{CellRecord, EvidenceSource, Host, IoPath, Op, Pattern, Record, Target, VerdictCode};

/// The mean wait for the sector alone is 2 ms at 15,000 turns per minute, without moving the heads: half of all random I/Os
/// take longer. A quarter of that leaves room for short spans and clever scheduling.
pub const SOONER_THAN_PLATTERS_NS: u64 = 500_000;
/// I/Os from which the median counts.
const MIN_FOR_MEDIAN: u64 = 100;

/// The median of the random direct I/Os of a cell that a disk with turning platters cannot have answered so soon.
pub fn sooner_than_platters_ns(cell: &CellRecord) -> Option<u64> {
    let workload = &cell.workload;
    let code = cell.verdict.as_ref().map(|verdict| verdict.code);
    let tells = (workload.pattern, workload.path, code)
        == (Pattern::Random, IoPath::Direct, Some(VerdictCode::Device))
        && cell.evidence.source != EvidenceSource::Sim;
    let latency =
        cell.result.latency_ns.as_ref().filter(|latency| tells && latency.count >= MIN_FOR_MEDIAN)?;
    latency.p50.filter(|&median_ns| median_ns < SOONER_THAN_PLATTERS_NS)
}

/// Whether a target has platters, as far as the Record tells: the disks of virtual machines, RAID controllers and USB bridges say that
/// they rotate when nobody knows, and no random read of a disk is answered before it turns.
pub fn has_platters(record: &Record, target: u32) -> bool {
    let is_sooner = |cell: &CellRecord| {
        cell.workload.op == Op::Read
            && cell.workload.targets == [target]
            && sooner_than_platters_ns(cell).is_some()
    };
    let device = metrics::target(record, target).and_then(|target| target.device.as_ref());
    device.and_then(|device| device.rotational) == Some(true)
        && !record.host.as_ref().is_some_and(Host::is_guest)
        && !record.cells.iter().any(is_sooner)
}

/// Devices that are memory behind a driver: their speed is that of the processor.
pub fn is_memory_disk(name: &str) -> bool {
    ["zram", "ram", "pmem"].iter().any(|prefix| {
        let number = name.strip_prefix(prefix);
        number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
    })
}

/// What keeps data in its memory behind a device, and answers reads from there without the kernel's knowledge: ZFS for its volumes, and
/// the server of a network block device, which may be this machine.
pub fn remembers(target: &Target) -> Option<String> {
    let is_numbered = |name: &str, prefix: &str| {
        let number = name.strip_prefix(prefix);
        number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
    };
    let names = || target.device.iter().map(|device| &device.name).chain(&target.stack);
    let of = |prefix: &'static str| names().find(|name| is_numbered(name, prefix));
    let volume = of("zd")
        .map(|name| format!("{}: ZFS's ARC in memory may have answered reads", rdsk_units::printable(name)));
    volume.or_else(|| {
        of("nbd").map(|name| {
            format!("{}: its server's memory may have answered reads", rdsk_units::printable(name))
        })
    })
}

/// Name of a disk at the bottom of a target that is memory behind a driver.
pub fn memory_disk(target: &Target) -> Option<String> {
    let names = target.device.iter().map(|device| &device.name).chain(&target.stack);
    names.into_iter().find(|name| is_memory_disk(name)).map(|name| rdsk_units::printable(name))
}
