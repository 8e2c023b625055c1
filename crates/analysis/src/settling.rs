//! What writes left to be done when they returned: the time of a visit until its writes returned beside the time until a flush had
//! made everything stable. Where the second is clearly longer, and a cache was flushed meanwhile, the rate over the first is that into a
//! cache. It names no cause.

use crate::metrics::{flushes, ratio, stable_rate, typical_ns, visits};
use rdsk_model::{CellRecord, Op, Record, Sync};

/// Minimum ratio of the time until stable to the time until return.
const LATER: f64 = 1.1;
/// A flush with nothing to write takes about as long as one durable write, so that it may take so many of them.
const DURABLE_WRITES: u64 = 2;

/// The visits of a cell whose writes returned clearly before they were stable; all but the factor are means of one visit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settling {
    /// Bytes written.
    pub visit_bytes: u64,
    /// Time until the last write returned, in ns.
    pub return_ns: u64,
    /// Time until everything was on stable storage, in ns.
    pub stable_ns: u64,
    /// The second time over the first.
    pub factor: f64,
    /// Bytes per second until stable.
    pub bytes_per_s: f64,
}

/// What the writes of a cell left to a flush; `None` for reads and durable writes, where a time is missing, where no device was flushed
/// (its kernel sends none to a device without a volatile cache, and the time went into closing, metadata and the call itself), and where
/// the flush took little: less than a tenth of the time, or no more than two durable writes to the same targets.
pub fn settling(record: &Record, cell: &CellRecord) -> Option<Settling> {
    if (cell.workload.op, cell.workload.sync) != (Op::Write, Sync::None) || !was_flushed(record, cell) {
        return None;
    }
    let return_ns = cell.result.to_return_ns.filter(|&ns| ns > 0)?;
    let stable_ns = cell.result.to_stable_ns?;
    let visits = visits(cell);
    let factor = ratio(stable_ns, return_ns);
    let flush_ns = stable_ns.saturating_sub(return_ns) / visits;
    let is_long =
        durable_write_ns(record, cell).is_none_or(|ns| flush_ns > ns.saturating_mul(DURABLE_WRITES));
    (factor >= LATER && is_long).then_some(())?;
    Some(Settling {
        visit_bytes: cell.result.bytes? / visits,
        return_ns: return_ns / visits,
        stable_ns: stable_ns / visits,
        factor,
        bytes_per_s: stable_rate(cell)?,
    })
}

/// Whether a cache can have been flushed: a flush was counted, or where none is counted, a device claims a cache that could be.
fn was_flushed(record: &Record, cell: &CellRecord) -> bool {
    let targets = record.targets.iter().filter(|target| cell.workload.targets.contains(&target.index));
    let mut caches = targets.map(|target| target.device.as_ref()?.write_cache.as_deref());
    flushes(cell).map_or_else(|| caches.any(|cache| cache != Some("write through")), |flushes| flushes > 0)
}

/// The time of an ordinary write to the same targets that was durable when it returned; of several cells the shortest.
fn durable_write_ns(record: &Record, cell: &CellRecord) -> Option<u64> {
    let is_durable = |other: &&CellRecord| {
        (other.workload.op, other.workload.sync) == (Op::Write, Sync::Dsync)
            && other.workload.targets == cell.workload.targets
    };
    let durable = record.cells.iter().filter(is_durable);
    durable.filter_map(|other| typical_ns(other.result.latency_ns.as_ref()?)).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, disk, in_visits, make_durable, record, with};
    use rdsk_model::IoPath;

    const MS: u64 = 1_000_000;

    /// Ten visits that write 16 MiB in 100 ms each, stable after so long in all.
    fn written(stable_ns: u64) -> CellRecord {
        let settled = with(cell("w", Op::Write, IoPath::Direct, 1 << 20, 160, 1000 * MS), |cell| {
            cell.result.to_stable_ns = Some(stable_ns);
            cell.result.visits[0].to_stable_ns = Some(stable_ns);
            cell.evidence.device[0].flushes = Some(10);
        });
        in_visits(settled, 10)
    }

    fn of_first(cells: Vec<CellRecord>) -> Option<Settling> {
        let record = record(vec![disk()], cells);
        settling(&record, &record.cells[0])
    }

    #[test]
    fn what_a_flush_had_left_to_do_is_known_by_its_time() {
        let settled = of_first(vec![written(1500 * MS)]).unwrap();
        assert_eq!(
            (settled.visit_bytes, settled.return_ns, settled.stable_ns),
            (16 << 20, 100 * MS, 150 * MS)
        );
        assert!((settled.factor - 1.5).abs() < 1e-9, "{settled:?}");
        assert!((settled.bytes_per_s * 1.5 / (160.0 * 1_048_576.0) - 1.0).abs() < 1e-9, "{settled:?}");
        assert_eq!(of_first(vec![written(1090 * MS)]), None);
        let read = with(written(1500 * MS), |cell| cell.workload.op = Op::Read);
        let unknown = with(written(1500 * MS), |cell| cell.result.to_stable_ns = None);
        for cell in [read, unknown, with(written(1500 * MS), make_durable)] {
            assert_eq!(of_first(vec![cell]), None);
        }
    }

    /// An NVMe drive with its cache off and an SD card, both `write through` (2026-11): closing and the call took a tenth of the time.
    #[test]
    fn time_alone_proves_no_cache() {
        let counted =
            |flushes: Option<u64>| with(written(1500 * MS), |cell| cell.evidence.device[0].flushes = flushes);
        assert_eq!(of_first(vec![counted(Some(0))]), None);
        // A kernel before 5.5 counts none, and what the device says of itself decides.
        let cached = |cache: &str| {
            let mut target = disk();
            target.device.as_mut().unwrap().write_cache = Some(cache.into());
            let record = record(vec![target], vec![counted(None)]);
            settling(&record, &record.cells[0])
        };
        assert!(cached("write back").is_some());
        assert_eq!(cached("write through"), None);
    }

    /// Each flush took 30 ms.
    #[test]
    fn a_flush_that_takes_no_longer_than_durable_writes_had_nothing_to_do() {
        let durable = |ns: u64| with(cell("d", Op::Write, IoPath::Direct, 4096, 100, 100 * ns), make_durable);
        assert!(of_first(vec![written(1300 * MS), durable(14 * MS)]).is_some());
        assert_eq!(of_first(vec![written(1300 * MS), durable(15 * MS)]), None);
    }
}
