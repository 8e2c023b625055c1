//! `requests-split`: the device saw smaller requests than the program issued.

use super::common::{cells, is_simulated};
use super::requests_merged::{mean_request, sizes, sizes_are_known};
use super::{Needs, Rule};
use rdsk_analysis::{Analysis, metrics};
use rdsk_model::{Finding, IoPath, Severity};
use rdsk_units::{Bytes, printable};

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
    let mut finding = RULE.about(&cells, "the device saw smaller requests", text, sizes);
    if let Some((device, largest)) = device.and_then(|device| Some((device, device.max_request_bytes?))) {
        let name = if is_simulated { "largest request" } else { "queue/max_sectors_kb" };
        finding.evidence.push(format!("{}: {name} = {}", printable(&device.name), Bytes(largest)));
    }
    vec![finding]
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{self, disk, record, with, without_counters};
    use rdsk_model::{CellRecord, Op};

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
                "s: areq-sz = 512 KiB in 128 requests for 64 I/Os of 1 MiB, merges = 0",
                "sda: queue/max_sectors_kb = 1.25 MiB"
            ]
        );
        assert!(!finding.text.contains("readahead"));
        let buffered = fires(RULE, &record(vec![disk()], vec![read(IoPath::Buffered, 512)]));
        assert!(buffered.text.contains("readahead"));
        fires(RULE, &record(vec![disk()], vec![read(IoPath::Direct, 80)]));
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
