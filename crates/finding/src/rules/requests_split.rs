//! `requests-split`: the device saw smaller requests than the program issued.

use super::prelude::*;
use super::requests_merged::{mean_request, sizes, sizes_are_known};

pub(super) const RULE: Rule = Rule::new("requests-split", Severity::Remark, Needs::Counters, check);

/// Maximum ratio of the mean request to the block size: a few small requests of the journal do not reach it.
const SMALLER: f64 = 0.8;

/// How a kernel splits direct and buffered I/O, ...
const REAL: (&str, &str) = (
    "A direct I/O larger than the device accepts in one request is split: queue/max_sectors_kb is the limit, and when the \
     pages of the buffer are not contiguous, queue/max_segments is reached first. The parts are in flight together.",
    "Buffered reads are fetched in pieces of the readahead window (queue/read_ahead_kb), and writeback submits the pages \
     that it finds dirty.",
);
/// ... and how a simulated host does.
const SIMULATED: (&str, &str) = (
    "A direct I/O larger than the host's largest physical request is split; how many parts are in flight together is a \
     parameter of the host.",
    "The host reads and writes through buffers of a fixed size, and merges few or none of them.",
);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| {
        sizes_are_known(cell)
            && mean_request(cell).is_some_and(|bytes| bytes <= SMALLER * cell.workload.block_bytes as f64)
    });
    let Some(first) = cells.first() else { return Vec::new() };
    let is_simulated = is_simulated(analysis, first);
    let device = metrics::first_device(analysis, first);
    let is_direct = cells.iter().any(|cell| cell.workload.path == IoPath::Direct);
    let is_buffered = cells.iter().any(|cell| cell.workload.path.uses_page_cache());
    let (direct, buffered) = if is_simulated { SIMULATED } else { REAL };
    let text = match (is_direct, is_buffered) {
        (true, true) => format!("{direct} {buffered}"),
        (true, false) => direct.into(),
        _ => buffered.into(),
    };
    let by = cells.iter().find_map(|cell| limit(analysis, cell, device)).unwrap_or_default();
    let text = format!("{text}{by}");
    let mut finding =
        RULE.about(&cells, "the device saw smaller requests", text, |cell| sizes(analysis, cell));
    if let Some((device, largest)) = device.and_then(|device| Some((device, device.max_request_bytes?))) {
        let name = if is_simulated { "largest request" } else { "queue/max_sectors_kb" };
        finding.evidence.push(format!("{}: {name} = {}", printable(&device.name), Bytes(largest)));
    }
    vec![finding]
}

/// Which limit cut the direct I/Os of a cell, by the exact sizes of its requests; `None` without BPF.
fn limit(analysis: &Analysis<'_>, cell: &CellRecord, device: Option<&Device>) -> Option<String> {
    let block_io = analysis.block_io(cell).filter(|_| cell.workload.path == IoPath::Direct)?;
    let op = cell.workload.op;
    let (largest, most) = (block_io.largest(op)?, device?.max_request_bytes?);
    let (calls, bios, cut) = (block_io.calls(), block_io.own(op).count, block_io.splits()?);
    let (test, part) = (words::test(cell), block_io.part_in_words());
    Some(match (largest >= most, cut > 0) {
        (true, _) => {
            format!(" Of {test}, the largest requests have that limit's size: queue/max_sectors_kb cut them.")
        }
        (false, true) => {
            let segments = device.and_then(|device| device.max_segments);
            let segments = segments.map_or(String::new(), |count| format!(", {count}"));
            format!(
                " Of {test}, no request is as large as that, and {cut} bios were cut{part}: the number of segments (queue/max_segments{segments}) \
                 was reached first, since the pages of the buffer are not contiguous."
            )
        }
        (false, false) if bios > calls => {
            format!(
                " Of {test}, nothing was cut: each I/O was {:.1} bios from the start.",
                bios as f64 / calls.max(1) as f64
            )
        }
        (false, false) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::bios::{bio, counted, request};
    use crate::fixtures::{self, disk, record, with, without_counters};
    use rdsk_model::Op;

    fn read(path: IoPath, requests: u64) -> CellRecord {
        with(fixtures::cell("s", Op::Read, path, 1 << 20, 64, 500_000_000), |cell| {
            cell.evidence.device[0].reads = Some(requests);
        })
    }

    #[test]
    fn fires_when_requests_shrank() {
        let finding = fires(RULE, &record(vec![disk()], vec![read(IoPath::Direct, 128)]));
        assert_eq!(
            finding.evidence,
            [
                "sequential direct 1M reads: areq-sz = 512 KiB in 128 requests for 64 I/Os of 1 MiB, merges = 0",
                "sda: queue/max_sectors_kb = 1.25 MiB"
            ]
        );
        assert!(!finding.text.contains("readahead"));
        let buffered = fires(RULE, &record(vec![disk()], vec![read(IoPath::Buffered, 512)]));
        assert!(buffered.text.contains("readahead"));
        fires(RULE, &record(vec![disk()], vec![read(IoPath::Direct, 80)]));
    }

    #[test]
    fn exact_sizes_show_which_limit_it_was() {
        let of = |sizes: &[(u64, u64)], bios: u64, cut: u64| {
            let requests = sizes.iter().map(|&(bytes, count)| request(Op::Read, bytes, count)).collect();
            let count = sizes.iter().map(|(_, count)| count).sum();
            let bios = vec![bio(Op::Read, "this", Some("pread64"), bios, (64 << 20) / bios)];
            let cell = with(counted(read(IoPath::Direct, count), bios, requests), |cell| {
                cell.evidence.device[0].splits = Some(cut);
            });
            let mut target = disk();
            let device = target.device.as_mut().unwrap();
            (device.max_request_bytes, device.max_segments) = (Some(660 << 10), Some(128));
            fires(RULE, &record(vec![target], vec![cell]))
        };
        let sectors = of(&[(675_840, 64), (372_736, 64)], 64, 64);
        assert!(sectors.text.ends_with("queue/max_sectors_kb cut them."), "{}", sectors.text);
        assert!(
            sectors.evidence[0].ends_with("exactly 64 of 660 KiB and 64 of 364 KiB, cut = 64"),
            "{:?}",
            sectors.evidence
        );
        let segments = of(&[(524_288, 128)], 64, 64);
        assert!(segments.text.contains("(queue/max_segments, 128) was reached first"), "{}", segments.text);
        let bios = of(&[(524_288, 128)], 128, 0);
        assert!(bios.text.ends_with("each I/O was 2.0 bios from the start."), "{}", bios.text);
    }

    #[test]
    fn is_silent_where_flushes_are_counted_among_the_writes() {
        // Measured on a device without FUA: direct dsync writes of 16 KiB gave w/s of twice f/s and a wareq-sz of 7.94.
        let durable =
            with(fixtures::cell("y", Op::Write, IoPath::Direct, 16384, 2665, 500_000_000), |cell| {
                cell.evidence.device[0].writes = Some(5330);
                cell.evidence.device[0].flushes = Some(2665);
            });
        silent(RULE, &record(vec![disk()], vec![durable.clone()]));
        fires(
            RULE,
            &record(vec![disk()], vec![with(durable, |cell| cell.evidence.device[0].flushes = Some(52))]),
        );
    }

    #[test]
    fn is_silent_when_they_did_not() {
        silent(RULE, &record(vec![disk()], vec![read(IoPath::Direct, 79)]));
        silent(RULE, &record(vec![disk()], vec![without_counters(read(IoPath::Direct, 128))]));
    }
}
