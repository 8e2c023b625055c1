//! The read requests of a device, without the flushes that the kernel counts among them. It judges nothing.

use rdsk_model::{CellRecord, DeviceEvidence, SECTOR_BYTES, is_nvme_path};

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
    use rdsk_model::{IoPath, Op, Verdict, VerdictCode};

    const COUNTED: [Option<u64>; 2] = [Some(9_000), Some(1_000)];

    /// 10 000 durable writes to an NVMe device with two paths, which did so many flushes for them, beside others' reads of a sector.
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
            let found = judged(1, flushes);
            assert_eq!(found.code, VerdictCode::Device, "{}", found.text);
        }
        let found = judged(3_000, COUNTED);
        assert_eq!(found.code, VerdictCode::Disturbed, "{}", found.text);
        assert!(found.text.starts_with("nvme0n1 did about 3,000 read requests for others"), "{}", found.text);
    }
}
