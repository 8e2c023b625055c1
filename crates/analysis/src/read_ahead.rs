//! What the kernel read ahead of sequential readers and the program had not used when a visit ended: how far it leaves a rate unsure. In short
//! visits to a slow device that is much of what the device did, and no I/O returned it. It names no cause.

use crate::metrics;
use crate::stalls::widen;
use rdsk_model::{CellRecord, Estimate, EvidenceSource, Op, Pattern};

/// A smaller share of what was returned is less than the precision of a rate.
const LEAST_SHARE: f64 = 0.01;

/// Makes the intervals of buffered sequential reads reach up to the rate at which the device read for them. Doing it again changes
/// nothing.
pub fn carry(cells: &mut [CellRecord]) {
    for cell in cells {
        let Some(share) = unused_share(cell) else { continue };
        widen(&mut cell.result, |rate| reaching(rate, share), "what was read ahead and not used");
    }
}

/// Bytes that the device had read for this process beyond what its reads returned, as a share of these; `None` where that is little,
/// or not known.
pub(crate) fn unused_share(cell: &CellRecord) -> Option<f64> {
    let workload = &cell.workload;
    let is_read_ahead = workload.op == Op::Read
        && workload.pattern == Pattern::Sequential
        && workload.path.uses_page_cache()
        && cell.evidence.source != EvidenceSource::Sim;
    let bytes = cell.result.bytes.filter(|&bytes| bytes > 0 && is_read_ahead)?;
    let charged = metrics::process_bytes(cell, Op::Read)?;
    // What others read is not charged to us, and what is still on its way was not read.
    let read = charged.min(metrics::returned_bytes(cell, Op::Read)?);
    let share = metrics::ratio(read.saturating_sub(bytes), bytes);
    (share >= LEAST_SHARE).then_some(share)
}

fn reaching(rate: Estimate, share: f64) -> Estimate {
    // Without an interval nothing is claimed.
    let Some((_, high)) = rate.low.zip(rate.high) else { return rate };
    Estimate { high: Some(high.max(rate.mean * (1.0 + share))), ..rate }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, with};
    use rdsk_model::IoPath;

    const MIB: u64 = 1 << 20;

    /// 4 MiB in 1 s, ±10 %, of which the device read so much for this process, and so much in all.
    fn read(path: IoPath, charged: u64, moved: u64) -> CellRecord {
        with(fixtures::cell("r", Op::Read, path, 64 << 10, 64, 1_000_000_000), |cell| {
            cell.evidence.process.read_bytes = Some(charged);
            let device = &mut cell.evidence.device[0];
            device.read_bytes = Some(moved);
            device.diskstat.as_mut().unwrap().read_sectors = moved / 512;
            let mean = (4 * MIB) as f64;
            cell.result.bytes_per_s = Some(Estimate { mean, low: Some(0.9 * mean), high: Some(1.1 * mean) });
            cell.result.why = "asked".into();
        })
    }

    fn carried(cell: CellRecord) -> (f64, String) {
        let mut cells = [cell];
        carry(&mut cells);
        let once = cells[0].clone();
        carry(&mut cells);
        assert_eq!(once, cells[0], "twice is as once");
        let rate = cells[0].result.bytes_per_s.unwrap();
        assert!(
            (rate.mean - (4 * MIB) as f64).abs() < 1.0 && (rate.low.unwrap() - 0.9 * rate.mean).abs() < 1.0
        );
        (rate.high.unwrap() / rate.mean, cells[0].result.why.clone())
    }

    #[test]
    fn what_was_read_and_not_returned_may_be_the_rate() {
        let (high, why) = carried(read(IoPath::Buffered, 10 * MIB, 10 * MIB));
        assert!((high - 2.5).abs() < 1e-9, "{high}");
        assert_eq!(why, "asked; with what was read ahead and not used it is ±>100%");
        let (high, _) = carried(read(IoPath::Buffered, 10 * MIB, 6 * MIB));
        assert!((high - 1.5).abs() < 1e-9, "some of it had not arrived: {high}");
    }

    #[test]
    fn nothing_else_changes() {
        for cell in [
            read(IoPath::Buffered, 4 * MIB, 100 * MIB),
            read(IoPath::Buffered, 4 * MIB + 4096, 4 * MIB + 4096),
            read(IoPath::Direct, 10 * MIB, 10 * MIB),
            with(read(IoPath::Buffered, 10 * MIB, 10 * MIB), |cell| cell.workload.pattern = Pattern::Random),
            with(read(IoPath::Buffered, 10 * MIB, 10 * MIB), |cell| {
                cell.evidence.source = EvidenceSource::Sim;
            }),
        ] {
            let (high, why) = carried(cell);
            assert!((high - 1.1).abs() < 1e-9 && why == "asked", "{high} {why}");
        }
    }
}
