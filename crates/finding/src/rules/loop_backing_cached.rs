//! `loop-backing-cached`: memory answers behind a loop device, because its backing file lies in memory or its page cache is
//! used; the loop device's own counters move although those of a disk do not.

use super::prelude::*;
use rdsk_analysis::medium;
use rdsk_model::LoopFile;

pub(super) const RULE: Rule = Rule::new("loop-backing-cached", Severity::Invalid, Needs::Counters, check);

/// From this share of the loop device's bytes on, the disk below counts as having moved the same.
const SAME_SHARE: f64 = 0.9;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let judged = cells(analysis, |cell| {
        is_of_loop_file(cell, &analysis.targets) && !has_verdict(cell, VerdictCode::Hole)
    });
    if !judged.is_empty() {
        let (unknown, memory): (Vec<&CellRecord>, Vec<&CellRecord>) =
            judged.into_iter().partition(|cell| has_verdict(cell, VerdictCode::Unverified));
        let memory = (!memory.is_empty()).then(|| of_files(&memory));
        return memory.into_iter().chain((!unknown.is_empty()).then(|| of_less(&unknown))).collect();
    }
    let cells = cells(analysis, |cell| {
        cell.evidence.loops.is_empty()
            && reached_device(cell)
            && is_cached_loop(analysis, cell)
            && below_share(cell).is_none_or(|share| share < SAME_SHARE)
    });
    if cells.is_empty() {
        return Vec::new();
    }
    vec![of_counters(&cells)]
}

/// The verdicts say it, from what is known of the backing files.
fn of_files(cells: &[&CellRecord]) -> Finding {
    let files = || cells.iter().flat_map(|cell| &cell.evidence.loops);
    let is_memory = |file: &LoopFile| {
        matches!(file.filesystem.as_deref(), Some("tmpfs" | "ramfs"))
            || file.below.as_deref().is_some_and(medium::is_memory_disk)
    };
    let text = "A loop device counts every request, whether a disk or RAM is behind its file. Here the requests did not reach a disk, so the \
                figure is that of RAM and CPU.";
    let advice = if files().any(is_memory) {
        "put the backing file on a disk, and set the loop device up with losetup --direct-io=on"
    } else if files().any(|file| file.direct_io != Some(true)) {
        "set it up again with losetup --direct-io=on, or measure the backing file"
    } else {
        "measure the backing file itself"
    };
    RULE.about(cells, "RAM answered behind the loop device", text, cite_verdict)
        .advice(advice)
        .covering_verdicts()
}

/// The disk below moved less although direct I/O is on, so that it is not known what did the rest.
fn of_less(cells: &[&CellRecord]) -> Finding {
    let text = "A loop device counts every request, whether a disk or RAM is behind its file. The disk below moved less: the filesystem \
                answered the rest, from RAM or for unallocated blocks, so the figure is not the disk's alone.";
    RULE.about(cells, "the disk below the loop device moved less", text, cite_verdict)
        .advice("write all of the backing file, or measure it itself")
        .covering_verdicts()
}

/// Records without backing files hold only how the first loop device works, and what the disk below counted.
fn of_counters(cells: &[&CellRecord]) -> Finding {
    let is_counted = cells.iter().all(|cell| below_share(cell).is_some());
    let cited = |cell: &CellRecord| {
        let device = cell.evidence.device.first().map_or("", |device| device.name.as_str());
        let below = match below(cell) {
            Some((name, bytes)) => {
                format!(", {} below moved = {}", rdsk_units::printable(name), words::bytes(bytes))
            }
            None => ", no counters below".into(),
        };
        let moved = metrics::device_bytes(cell, cell.workload.op).unwrap_or(0);
        let dio = format!("0, {} moved = {}{below}", rdsk_units::printable(device), words::bytes(moved));
        cite(cell, "loop/dio", dio)
    };
    let text = "Without direct I/O of its own, the loop device goes through the page cache of its backing file. O_DIRECT on the loop device \
                does not change that.";
    RULE.about(cells, "RAM answered behind the loop device", text, cited)
        .confidence(if is_counted { Confidence::Measured } else { Confidence::Inferred })
        .advice("set it up again with losetup --direct-io=on, or measure the backing file")
}

fn is_cached_loop(record: &Record, cell: &CellRecord) -> bool {
    metrics::first_device(record, cell).is_some_and(|device| device.loop_direct_io == Some(false))
}

/// Name and bytes of the first counted device under the cell's first target's own.
fn below(cell: &CellRecord) -> Option<(&str, u64)> {
    let target = *cell.workload.targets.first()?;
    cell.evidence
        .device
        .iter()
        .filter(|device| device.target == target)
        .skip(1)
        .find_map(|device| Some((device.name.as_str(), metrics::bytes_of(device, cell.workload.op)?)))
}

fn below_share(cell: &CellRecord) -> Option<f64> {
    let moved = metrics::device_bytes(cell, cell.workload.op).filter(|&moved| moved > 0)?;
    Some(metrics::ratio(below(cell)?.1, moved))
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{self, disk, record, with};
    use rdsk_model::{DeviceEvidence, IoPath, Op, PageCache, PageCacheState, Target};

    fn loop_target(direct_io: bool) -> Target {
        let mut target = disk();
        target.device.as_mut().unwrap().loop_direct_io = Some(direct_io);
        target
    }

    fn read(below_bytes: Option<u64>) -> CellRecord {
        with(fixtures::cell("l", Op::Read, IoPath::Direct, 1 << 20, 64, 20_000_000), |cell| {
            cell.evidence.device[0].name = "loop8".into();
            if below_bytes.is_some() {
                cell.evidence.device.push(DeviceEvidence {
                    name: "vda".into(),
                    read_bytes: below_bytes,
                    ..DeviceEvidence::default()
                });
            }
        })
    }

    #[test]
    fn fires_where_the_disk_below_stood_still() {
        let measured = fires(RULE, &record(vec![loop_target(false)], vec![read(Some(0))]));
        assert_eq!(measured.confidence, Confidence::Measured);
        assert_eq!(
            measured.evidence,
            ["sequential direct 1M reads: loop/dio = 0, loop8 moved = 64 MiB, vda below moved = 0 B"]
        );
        let inferred = fires(RULE, &record(vec![loop_target(false)], vec![read(None)]));
        assert_eq!(inferred.confidence, Confidence::Inferred);
    }

    fn with_file(cell: CellRecord, filesystem: &str, direct_io: bool, cached: u64) -> CellRecord {
        let state = |bytes| PageCacheState { cached_bytes: Some(bytes), dirty_bytes: Some(0) };
        with(cell, |cell| {
            cell.evidence.loops = vec![LoopFile {
                device: "loop8".into(),
                file: "/srv/b.img".into(),
                filesystem: Some(filesystem.into()),
                direct_io: Some(direct_io),
                below: (filesystem != "tmpfs").then(|| "vda".into()),
                partitions: Vec::new(),
                size_bytes: 64 << 20,
                extents: None,
                page_cache: Some(PageCache { before: state(cached), after: state(cached), stable: None }),
                target: 0,
            }];
        })
    }

    #[test]
    fn fires_on_files_in_memory_and_cached_ones_and_is_silent_where_the_disk_read() {
        let memory =
            fires(RULE, &record(vec![loop_target(true)], vec![with_file(read(None), "tmpfs", true, 0)]));
        assert!(memory.evidence[0].contains("/srv/b.img is on tmpfs"), "{:?}", memory.evidence);
        assert!(memory.advice.unwrap().contains("on a disk") && memory.covers_verdicts);
        let cached = with_file(read(Some(0)), "ext4", false, 64 << 20);
        let cached = fires(RULE, &record(vec![loop_target(false)], vec![cached]));
        assert!(cached.evidence[0].contains("which held all of it"), "{:?}", cached.evidence);
        assert!(cached.advice.unwrap().contains("--direct-io=on"));
        silent(
            RULE,
            &record(vec![loop_target(true)], vec![with_file(read(Some(64 << 20)), "ext4", true, 0)]),
        );
        silent(
            RULE,
            &record(vec![loop_target(false)], vec![with_file(read(Some(64 << 20)), "ext4", false, 0)]),
        );
    }

    /// 54 of 64 MiB came from the disk, the others from a hole at the start of the file.
    #[test]
    fn what_mostly_reached_a_disk_is_not_said_to_be_of_memory() {
        let less = with_file(read(Some(54 << 20)), "ext4", true, 0);
        let finding = fires(RULE, &record(vec![loop_target(true)], vec![less]));
        assert!(finding.title.starts_with("the disk below the loop device moved less"), "{}", finding.title);
        assert!(finding.evidence[0].contains("vda read 54 MiB"), "{:?}", finding.evidence);
        assert!(!finding.text.contains("did not reach a disk"), "{}", finding.text);
    }

    #[test]
    fn is_silent_where_the_disk_below_worked_or_the_cache_is_passed() {
        silent(RULE, &record(vec![loop_target(false)], vec![read(Some(64 << 20))]));
        silent(RULE, &record(vec![loop_target(true)], vec![read(Some(0))]));
        silent(RULE, &record(vec![disk()], vec![read(Some(0))]));
    }
}
