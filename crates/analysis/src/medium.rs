//! What is behind a device, as far as a Record says: platters, or memory that answers. It judges nothing else.

use crate::metrics;
use rdsk_model::{CellRecord, EvidenceSource, IoPath, Op, Pattern, Record, Target, VerdictCode};
use rdsk_units::printable;

/// The mean wait for the sector alone is 2 ms at 15,000 turns per minute, without moving the heads: half of all random I/Os
/// take longer. A quarter of that leaves room for short spans and clever scheduling.
pub const SOONER_THAN_PLATTERS_NS: u64 = 500_000;
/// Half a turn at 15,000 per minute, which a write waits for on average before it is on the platter.
pub const QUICKEST_HALF_TURN_NS: u64 = 2_000_000;
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

/// Whether a target has platters, as far as the Record says: the disks of virtual machines, RAID controllers and USB bridges say that
/// they rotate when it is unknown, and no random read of a disk is answered before it turns.
pub fn has_platters(record: &Record, target: u32) -> bool {
    let is_sooner = |cell: &CellRecord| {
        cell.workload.op == Op::Read
            && cell.workload.targets == [target]
            && sooner_than_platters_ns(cell).is_some()
    };
    let device = metrics::target(record, target).and_then(|target| target.device.as_ref());
    device.and_then(|device| device.rotational) == Some(true)
        && !record.is_of_guest()
        && !record.cells.iter().any(is_sooner)
}

/// Devices that are memory behind a driver: their speed is that of the processor.
pub fn is_memory_disk(name: &str) -> bool {
    ["zram", "ram", "pmem"].iter().any(|driver| is_of(name, driver))
}

/// Whether a name is a driver's, with a number.
fn is_of(name: &str, driver: &str) -> bool {
    let number = name.strip_prefix(driver);
    number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
}

/// The first name of a target's device, and of those below it, that satisfies a condition.
fn first_name(target: &Target, condition: impl Fn(&str) -> bool) -> Option<String> {
    let mut names = target.device.iter().map(|device| &device.name).chain(&target.stack);
    names.find(|name| condition(name)).map(|name| printable(name))
}

/// What keeps data in its memory behind a device, and answers reads from there without the kernel's knowledge: ZFS for its volumes, and
/// the server of a network block device, which may be this machine.
pub fn remembers(target: &Target) -> Option<String> {
    [("zd", "ZFS's ARC in memory"), ("nbd", "its server's memory")].into_iter().find_map(|(driver, who)| {
        let name = first_name(target, |name| is_of(name, driver))?;
        Some(format!("{name}: {who} may have answered reads"))
    })
}

/// Name of a disk at the bottom of a target that is memory behind a driver.
pub fn memory_disk(target: &Target) -> Option<String> {
    first_name(target, is_memory_disk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, disk, latency, record, with};

    #[test]
    fn platters_are_believed_where_nothing_speaks_against_them() {
        let random = |median_ns: u64| {
            with(cell("r", Op::Read, IoPath::Direct, 4096, 10_000, 1_000_000_000), |cell| {
                cell.workload.pattern = Pattern::Random;
                cell.result.latency_ns = Some(latency(10_000, median_ns));
            })
        };
        let on = |median_ns: u64, host: Option<&str>, rotational: Option<bool>| {
            let mut target = disk();
            target.device.as_mut().unwrap().rotational = rotational;
            let mut record = record(vec![target], vec![random(median_ns)]);
            record.host.as_mut().unwrap().virtualization = host.map(Into::into);
            has_platters(&record, 0)
        };
        assert!(on(8_000_000, None, Some(true)));
        for container in ["docker", "podman", "container"] {
            assert!(on(8_000_000, Some(container), Some(true)), "{container}: the disks of the machine");
        }
        for guest in ["kvm", "vm", "docker on kvm", "container on vmware"] {
            assert!(!on(8_000_000, Some(guest), Some(true)), "{guest}");
        }
        assert!(!on(60_000, None, Some(true)), "read before a platter turns");
        assert!(!on(8_000_000, None, Some(false)) && !on(8_000_000, None, None));
    }
}
