//! `loop-backing-cached`: a loop device without direct I/O works on the page cache of its backing file, so its own
//! counters move although those of the disk do not.

use super::common::{cells, cite, reached_device};
use super::{Needs, Rule};
use rdsk_analysis::{Analysis, metrics, words};
use rdsk_model::{CellRecord, Confidence, Finding, Record, Severity};

pub(super) const RULE: Rule = Rule::new("loop-backing-cached", Severity::Invalid, Needs::Counters, check);

/// From this share of the loop device's bytes on, the disk below counts as having moved the same.
const SAME_SHARE: f64 = 0.9;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| {
        reached_device(cell)
            && is_cached_loop(analysis, cell)
            && below_share(cell).is_none_or(|share| share < SAME_SHARE)
    });
    if cells.is_empty() {
        return Vec::new();
    }
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
    let text = "Without direct I/O of its own, the loop device goes through the page cache of its backing file, even when \
                the program uses O_DIRECT on the loop device.";
    vec![
        RULE.about(&cells, "the loop device works in memory", text, cited)
            .confidence(if is_counted { Confidence::Measured } else { Confidence::Inferred })
            .advice("set it up again with losetup --direct-io=on, or measure the backing file"),
    ]
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
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{self, disk, record, with};
    use rdsk_model::{DeviceEvidence, IoPath, Op, Target};

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
        assert_eq!(measured.evidence, ["l: loop/dio = 0, loop8 moved = 64 MiB, vda below moved = 0 B"]);
        let inferred = fires(RULE, &record(vec![loop_target(false)], vec![read(None)]));
        assert_eq!(inferred.confidence, Confidence::Inferred);
    }

    #[test]
    fn is_silent_where_the_disk_below_worked_or_the_cache_is_passed() {
        silent(RULE, &record(vec![loop_target(false)], vec![read(Some(64 << 20))]));
        silent(RULE, &record(vec![loop_target(true)], vec![read(Some(0))]));
        silent(RULE, &record(vec![disk()], vec![read(Some(0))]));
    }
}
