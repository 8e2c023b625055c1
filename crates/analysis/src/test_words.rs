//! What a test did, in the words of a page: `random write 4K QD32`. It names no figure.

use crate::metrics::wanted_depth;
use rdsk_model::{CellRecord, Experiment, Sync};

/// A block size as fio writes it: `4K`, `1M`, `512`.
pub fn fio_size(bytes: u64) -> String {
    for (suffix, size) in [("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)] {
        if bytes >= size && bytes.is_multiple_of(size) {
            return format!("{}{suffix}", bytes / size);
        }
    }
    bytes.to_string()
}

/// What a test did: `random write 4K QD32`, `sync write 4K QD1`, `write 64K, 4 streams`, `paths: read 1M direct`. What another
/// program measured keeps its own name.
pub fn test(cell: &CellRecord) -> String {
    let workload = &cell.workload;
    let (op, size) = (workload.op, fio_size(workload.block_bytes));
    match (cell.experiment, workload.sync) {
        (Experiment::Headline, Sync::None) => {
            let memory = if cell.name().ends_with("-huge") { ", huge pages" } else { "" };
            format!("{} {op} {size} QD{}{memory}", workload.pattern, wanted_depth(workload))
        }
        (Experiment::Headline, _) => format!("sync {op} {size} QD{}", wanted_depth(workload)),
        (Experiment::Scale, _) => {
            format!("{op} {size}, {}", crate::words::plural(u64::from(workload.streams), "stream"))
        }
        (Experiment::Paths | Experiment::Stream | Experiment::Align, _) => {
            let name = cell.name();
            let column = name.split('/').nth(2).unwrap_or_default();
            let shift =
                name.rsplit_once('+').map_or_else(String::new, |(_, bytes)| format!(" at +{bytes} B"));
            format!("{}: {op} {size} {column}{shift}", cell.experiment)
        }
        (Experiment::Zones | Experiment::Stripe, _) => format!("{}: {op} {size}", cell.experiment),
        _ => cell.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, with};
    use rdsk_model::{IoPath, Op, Pattern};

    #[test]
    fn tests_are_named_by_what_they_did() {
        let test_of = |id: &str, experiment, change: fn(&mut CellRecord)| {
            let cell = with(cell(id, Op::Write, IoPath::Direct, 4096, 1, 1), |cell| {
                cell.experiment = experiment;
                change(cell);
            });
            test(&cell)
        };
        let random = |cell: &mut CellRecord| {
            (cell.workload.pattern, cell.workload.queue_depth) = (Pattern::Random, 32);
        };
        assert_eq!(
            test_of("headline/write/random-qd32", Experiment::Headline, random),
            "random write 4K QD32"
        );
        let durable = |cell: &mut CellRecord| cell.workload.sync = Sync::Dsync;
        assert_eq!(test_of("headline/write/durable@1", Experiment::Headline, durable), "sync write 4K QD1");
        let streams = |cell: &mut CellRecord| {
            (cell.workload.block_bytes, cell.workload.streams) = (65_536, 4);
        };
        assert_eq!(test_of("scale/write/64k/4", Experiment::Scale, streams), "write 64K, 4 streams");
        let none = |_: &mut CellRecord| ();
        assert_eq!(test_of("paths/write/direct@1", Experiment::Paths, none), "paths: write 4K direct");
        assert_eq!(
            test_of("align/write/uncached-buffered/4096+27", Experiment::Align, none),
            "align: write 4K uncached-buffered at +27 B"
        );
        assert_eq!(test_of("zones/write/4k", Experiment::Zones, none), "zones: write 4K");
        assert_eq!(test_of("job1/write", Experiment::Fio, none), "job1/write");
    }

    #[test]
    fn sizes_are_fios() {
        for (bytes, text) in
            [(512, "512"), (4096, "4K"), (1 << 20, "1M"), (3 << 19, "1536K"), (2 << 30, "2G")]
        {
            assert_eq!(fio_size(bytes), text);
        }
    }
}
