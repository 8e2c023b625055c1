//! `requests-merged`: the device saw larger requests than the program issued.

use super::prelude::*;

pub(super) const RULE: Rule = Rule::new("requests-merged", Severity::Remark, Needs::Counters, check);

/// Minimum ratio of the mean request to the block size.
const LARGER: f64 = 1.25;
/// Minimum number of requests for a meaningful mean size.
const MIN_REQUESTS: u64 = 10;
/// Bytes that the device moved over those completed, or read ahead: outside this range the mean is not ours.
const OURS: std::ops::RangeInclusive<f64> = 0.9..=1.1;

/// Maximum number of flushes per request for the rules about sizes.
const MAX_FLUSH_SHARE: f64 = 0.01;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let page_bytes = metrics::page_bytes(analysis);
    let cells = cells(analysis, |cell| {
        // A partial page that becomes a whole one is no merge.
        sizes_are_known(cell)
            && mean_request(cell).is_some_and(|bytes| {
                bytes >= LARGER * cell.workload.block_bytes as f64 && bytes > page_bytes as f64
            })
    });
    let Some(first) = cells.first() else { return Vec::new() };
    let merger = if is_simulated(analysis, first) { "the host" } else { "the block layer" };
    let text = format!(
        "Read-ahead fetches more than the program requested, writeback gathers dirty pages, and {merger} merges neighbours in the queue. \
         Larger requests cost less per byte.{}",
        where_it_grew(analysis, first)
    );
    vec![RULE.about(&cells, "the device saw larger requests", text, |cell| sizes(analysis, cell))]
}

/// Bios that are this part of the requests' size were not merged but large from the start.
const LARGE_BIOS: f64 = 0.5;

/// Whether the page cache submitted large bios or the queue merged small ones; nothing without BPF.
fn where_it_grew(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let op = cell.workload.op;
    let sizes = analysis.block_io(cell).and_then(|block_io| {
        Some((block_io.by(op, |_| true).mean_bytes()?, block_io.requests(op).mean_bytes()?))
    });
    let Some((bio, request)) = sizes else { return String::new() };
    let mean = words::bytes(metrics::whole(bio));
    if bio >= LARGE_BIOS * request {
        format!(
            " For {} the page cache submitted bios of {mean} on average{}, so little was left to merge.",
            words::test(cell),
            part_in_words(cell)
        )
    } else {
        let part = part_in_words(cell);
        format!(
            " For {} the page cache submitted bios of {mean}{part}, which the queue merged.",
            words::test(cell)
        )
    }
}

/// Whether the counters separate data requests from flushes: a device without FUA counts each flush among its writes, as a
/// request of no bytes, so a mean over many of them is not a meaningful request size.
pub(super) fn sizes_are_known(cell: &CellRecord) -> bool {
    let requests = metrics::device_requests(cell, cell.workload.op).unwrap_or(0);
    metrics::flushes(cell).is_none_or(|flushes| flushes as f64 <= MAX_FLUSH_SHARE * requests as f64)
}

/// Mean size of the requests that moved a cell's bytes until they were stable; `None` when others' I/O is among them.
pub(super) fn mean_request(cell: &CellRecord) -> Option<f64> {
    // Requests of several sizes have no single block size to compare with.
    let is_mixed = cell.workload.points.as_ref().is_some_and(|points| !points.block_bytes.is_empty());
    if is_mixed || cell.experiment == Experiment::Align || has_verdict(cell, VerdictCode::Disturbed) {
        return None;
    }
    let moved = metrics::device_bytes(cell, cell.workload.op)?;
    let requests = metrics::device_requests(cell, cell.workload.op).filter(|&count| count >= MIN_REQUESTS)?;
    // What the kernel read ahead for this process is its own, too.
    let charged = if cell.workload.op == Op::Read { cell.evidence.process.read_bytes } else { None };
    let ours = cell.result.bytes.filter(|&bytes| bytes > 0)?.max(charged.unwrap_or(0));
    let share = metrics::ratio(moved, ours);
    OURS.contains(&share).then(|| metrics::ratio(moved, requests))
}

/// The citation of both rules about sizes: what was requested, what the device saw.
pub(super) fn sizes(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let (op, block) = (cell.workload.op, Bytes(cell.workload.block_bytes));
    let issued = words::plural(cell.result.ops.unwrap_or(0), "I/O");
    let requests = words::plural(metrics::device_requests(cell, op).unwrap_or(0), "request");
    let mean = mean_request(cell).map_or_else(|| "unknown".into(), |bytes| words::figure(bytes / 1024.0));
    let merges = metrics::merges(cell, op).map_or(String::new(), |merges| format!(", merges = {merges}"));
    let exact =
        analysis.block_io(cell).map(|block_io| block_io.sizes_in_words(op)).filter(|sizes| !sizes.is_empty());
    let exact = exact.map_or(String::new(), |sizes| format!(", exactly {sizes}{}", part_in_words(cell)));
    let cut = analysis.block_io(cell).and_then(BlockIo::splits).filter(|&cut| cut > 0);
    let cut = cut.map_or(String::new(), |cut| format!(", cut = {cut}{}", part_in_words(cell)));
    cite(
        cell,
        "areq-sz",
        format_args!("{mean} KiB in {requests} for {issued} of {block}{merges}{exact}{cut}"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::bios::{bio, counted, request};
    use crate::fixtures::{self, disk, record, with, without_counters};
    use rdsk_model::IoPath;

    fn write(requests: u64) -> CellRecord {
        with(fixtures::cell("m", Op::Write, IoPath::Buffered, 16384, 4096, 500_000_000), |cell| {
            cell.evidence.device[0].writes = Some(requests);
            cell.evidence.device[0].write_merges = Some(16_256);
        })
    }

    #[test]
    fn fires_when_requests_grew() {
        let finding = fires(RULE, &record(vec![disk()], vec![write(128)]));
        assert_eq!(
            finding.evidence,
            [
                "sequential buffered 16K writes: areq-sz = 512 KiB in 128 requests for 4,096 I/Os of 16 KiB, merges = 16256"
            ]
        );
        fires(RULE, &record(vec![disk()], vec![write(3276)]));
    }

    /// As of a btrfs over two disks: what is cited is of both.
    #[test]
    fn merges_are_those_of_all_devices_that_count() {
        let both = with(write(64), |cell| {
            let device = &mut cell.evidence.device[0];
            device.write_bytes = device.write_bytes.map(|bytes| bytes / 2);
            let mut other = device.clone();
            let names = vec![device.name.clone(), "sdb".to_owned()];
            other.name = "sdb".into();
            cell.evidence.device.push(other);
            cell.evidence.counted = vec![rdsk_model::Counted {
                target: 0,
                devices: names,
                written_least: 1.0,
                written_most: Some(1.0),
                why: None,
            }];
        });
        let finding = fires(RULE, &record(vec![disk()], vec![both]));
        assert_eq!(
            finding.evidence,
            [
                "sequential buffered 16K writes: areq-sz = 512 KiB in 128 requests for 4,096 I/Os of 16 KiB, merges = 32512"
            ]
        );
    }

    #[test]
    fn what_was_read_ahead_is_of_the_same_reader() {
        let ahead = |charged: u64| {
            with(fixtures::cell("r", Op::Read, IoPath::Buffered, 16384, 256, 500_000_000), |cell| {
                let device = &mut cell.evidence.device[0];
                (device.reads, device.read_bytes) = (Some(32), Some(8 << 20));
                cell.evidence.process.read_bytes = Some(charged);
            })
        };
        assert_eq!(mean_request(&ahead(8 << 20)), Some(262_144.0));
        assert_eq!(mean_request(&ahead(4 << 20)), None, "others read as much");
    }

    #[test]
    fn bios_show_whether_the_queue_merged_or_the_page_cache_gathered() {
        let of = |count: u64, each: u64| {
            let bios = vec![bio(Op::Write, "kernel", None, count, each)];
            fires(
                RULE,
                &record(
                    vec![disk()],
                    vec![counted(write(128), bios, vec![request(Op::Write, 524_288, 128)])],
                ),
            )
        };
        let merged = of(16_384, 4096);
        assert!(merged.text.ends_with("bios of 4 KiB, which the queue merged."), "{}", merged.text);
        assert!(
            merged.evidence[0].ends_with("merges = 16256, exactly 128 of 512 KiB"),
            "{:?}",
            merged.evidence
        );
        let large = of(16, 4 << 20);
        assert!(large.text.contains("bios of 4 MiB on average, so little was left"), "{}", large.text);
    }

    #[test]
    fn is_silent_when_they_did_not_or_are_not_ours() {
        silent(RULE, &record(vec![disk()], vec![write(3300)]));
        silent(RULE, &record(vec![disk()], vec![write(9)]));
        silent(RULE, &record(vec![disk()], vec![without_counters(write(128))]));
        let others = with(write(128), |cell| cell.evidence.device[0].write_bytes = Some(80 << 20));
        silent(RULE, &record(vec![disk()], vec![others]));
        let flushed = |flushes| with(write(1000), |cell| cell.evidence.device[0].flushes = Some(flushes));
        fires(RULE, &record(vec![disk()], vec![flushed(9)]));
        silent(RULE, &record(vec![disk()], vec![flushed(11)]));
        let small = with(fixtures::cell("p", Op::Write, IoPath::Buffered, 512, 4096, 500_000_000), |cell| {
            cell.evidence.device[0].writes = Some(512);
        });
        silent(RULE, &record(vec![disk()], vec![small]));
    }
}
