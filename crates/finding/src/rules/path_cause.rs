//! Why one of two paths is faster: the first difference between their counters that explains it, with the figures. It
//! compares no rates and names no cause without a counter that shows it.

use super::prelude::*;
use super::requests_merged::mean_request;
use rdsk_analysis::passes;

/// Minimum ratio of request counts, sizes or depths to be named as a cause.
const MARKED: f64 = 1.5;
/// Sizes and depths within this factor count as alike.
const ALIKE: f64 = 1.25;
/// Share of the difference in time per byte that processor time must explain.
const CPU_SHARE: f64 = 0.5;
/// Below this `%util` the device is idle between requests.
const BUSY_PERCENT: f64 = 90.0;
/// Minimum difference in `%util` between the faster and the slower path, in percentage points.
const IDLER_PERCENT: f64 = 10.0;

/// The cause in one or two sentences, and whether it was measured or is inferred.
pub(super) fn explain(faster: &CellRecord, slower: &CellRecord) -> (String, Confidence) {
    caused_reads(slower)
        .or_else(|| flushes(faster, slower))
        .or_else(|| requests(faster, slower))
        .or_else(|| processor(faster, slower))
        .or_else(|| idle(faster, slower))
        .unwrap_or_else(|| (hidden(faster, slower), Confidence::Inferred))
}

/// The counters of this page's causes, as the end of a citation.
pub(super) fn counted(cell: &CellRecord) -> String {
    let cpu = cpu_per_mib(cell).map(|ns| format!(", cpu per MiB = {} µs", words::figure(ns / 1e3)));
    let util = util(cell).map(|percent| format!(", %util = {}", words::figure(percent)));
    [cpu, util].into_iter().flatten().collect()
}

/// Mean number of requests in flight; `None` where it was not counted or nothing was in flight.
pub(super) fn depth(cell: &CellRecord) -> Option<f64> {
    Some(metrics::row(cell)?.aqu_sz).filter(|&depth| depth > 0.0)
}

/// Mean size of the cell's requests; `None` when a tenth of them or more may be flushes, which have no size.
pub(super) fn request_bytes(cell: &CellRecord) -> Option<f64> {
    let requests = metrics::device_requests(cell, cell.workload.op)?;
    let is_known = metrics::flushes(cell).is_none_or(|flushes| flushes * 10 < requests);
    mean_request(cell).filter(|_| is_known)
}

/// Reads that the writes of the slower path caused, when they are more than a tenth of what was written.
fn caused_reads(slower: &CellRecord) -> Option<(String, Confidence)> {
    let read = slower.evidence.process.read_bytes.filter(|_| slower.workload.op == Op::Write)?;
    let share = metrics::ratio(read, slower.result.bytes.filter(|&bytes| bytes > 0)?);
    // The page has the figures of one pass.
    let in_pass = passes::per_pass(slower, read).filter(|_| slower.experiment == Experiment::Paths);
    let each = if in_pass.is_some() && metrics::visits(slower) > 1 { " in each repeat" } else { "" };
    let bytes = in_pass.map_or(read, metrics::whole);
    let text = format!("The slower path made the device read {} first{each}.", words::bytes(bytes));
    (share > 0.1).then_some((text, Confidence::Measured))
}

/// Flushes per write, when the slower path waits for more of them.
fn flushes(faster: &CellRecord, slower: &CellRecord) -> Option<(String, Confidence)> {
    let (few, many) = (metrics::flushes_per_io(faster)?, metrics::flushes_per_io(slower)?);
    let text = format!(
        "The slower path waits for {} flushes per write, the faster one for {}.",
        words::figure(many),
        words::figure(few)
    );
    (many >= 0.1 && many >= MARKED * few).then_some((text, Confidence::Measured))
}

/// More in flight, or larger.
fn requests(faster: &CellRecord, slower: &CellRecord) -> Option<(String, Confidence)> {
    let more = |figure: fn(&CellRecord) -> Option<f64>| {
        Some(figure(faster)? / figure(slower)?).filter(|factor| *factor >= MARKED)
    };
    let ahead = match (faster.workload.path, faster.workload.op) {
        (IoPath::Buffered | IoPath::DontCache, Op::Read) => {
            "readahead fetches the next blocks before the program requests them"
        }
        (IoPath::Buffered | IoPath::DontCache, Op::Write) if faster.workload.sync == Sync::None => {
            "writeback submits many blocks at once while the program continues"
        }
        (IoPath::Buffered | IoPath::DontCache, Op::Write) => "the page cache splits a write into parts",
        (IoPath::Direct, _) => {
            "the block layer keeps its large blocks whole, or splits them into requests that are in flight together"
        }
    };
    let text = match (more(depth), more(request_bytes)) {
        (Some(depth), size) => {
            let larger =
                size.map_or(String::new(), |size| format!(", in requests {} as large", words::times(size)));
            format!("It keeps {} as many requests in flight{larger}: {ahead}.", words::times(depth))
        }
        (None, Some(size)) => format!("Its requests are {} as large: {ahead}.", words::times(size)),
        (None, None) => return None,
    };
    Some((text, Confidence::Measured))
}

/// Processor time per byte, when the slower path's surplus is half of its surplus of time or more.
fn processor(faster: &CellRecord, slower: &CellRecord) -> Option<(String, Confidence)> {
    let surplus = cpu_per_byte(slower)? - cpu_per_byte(faster)?;
    let later = time_per_byte(slower)? - time_per_byte(faster)?;
    if later <= 0.0 || surplus < CPU_SHARE * later {
        return None;
    }
    let why = match slower.workload.path {
        IoPath::Buffered | IoPath::DontCache => "the page cache has to be filled and every byte copied",
        IoPath::Direct => "each of its I/Os is a request of its own",
    };
    let micros = |cell| words::figure(cpu_per_mib(cell).unwrap_or(0.0) / 1e3);
    let text = format!(
        "The slower path takes more CPU time, {} against {} µs per MiB: {why}.",
        micros(slower),
        micros(faster)
    );
    Some((text, Confidence::Inferred))
}

/// A device that is idle between the requests of the slower path, more than on the faster one.
fn idle(faster: &CellRecord, slower: &CellRecord) -> Option<(String, Confidence)> {
    let (busy, idle) = (util(faster)?, util(slower)?);
    let text = format!(
        "On the slower path the device is idle between requests: it is busy {} of the time (%util), on the faster path \
         {}.",
        percent(idle / 100.0),
        percent(busy / 100.0)
    );
    (idle < BUSY_PERCENT && idle + IDLER_PERCENT <= busy).then_some((text, Confidence::Inferred))
}

/// What the counters show when none of them explains the rate.
fn hidden(faster: &CellRecord, slower: &CellRecord) -> String {
    let apart = |figure: fn(&CellRecord) -> Option<f64>| {
        let (fast, slow) = (figure(faster)?, figure(slower)?);
        Some((fast, slow, (fast / slow).max(slow / fast) >= ALIKE))
    };
    match (apart(request_bytes), apart(depth)) {
        (Some((fast, slow, true)), _) => format!(
            "Its requests average {} against {} KiB, which does not explain the difference; these counters do not show the cause.",
            words::figure(fast / 1024.0),
            words::figure(slow / 1024.0)
        ),
        (Some((_, _, false)), Some((_, _, false))) => {
            "Request size and queue depth are similar; these counters do not show the cause.".into()
        }
        _ => "These counters do not show the cause.".into(),
    }
}

/// Processor time in ns for each MiB.
pub(super) fn cpu_per_mib(cell: &CellRecord) -> Option<f64> {
    Some(cpu_per_byte(cell)? * f64::from(1 << 20))
}

fn cpu_per_byte(cell: &CellRecord) -> Option<f64> {
    Some(metrics::ratio(metrics::cpu_ns(cell)?, cell.result.bytes.filter(|&bytes| bytes > 0)?))
}

/// Nanoseconds per byte, writes until stable.
fn time_per_byte(cell: &CellRecord) -> Option<f64> {
    let ns = match cell.workload.op {
        Op::Read => cell.result.elapsed_ns,
        Op::Write => cell.result.to_stable_ns,
    };
    Some(metrics::ratio(ns?, cell.result.bytes.filter(|&bytes| bytes > 0)?))
}

/// `%util` while the cell's I/O ran; `None` for buffered writes, whose I/O is done after the row's interval.
fn util(cell: &CellRecord) -> Option<f64> {
    metrics::row(cell).map(|row| row.util_percent).filter(|_| !cell.workload.is_written_behind())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, with};
    use rdsk_model::CpuTime;

    fn pair(change: impl FnOnce(&mut CellRecord, &mut CellRecord)) -> (String, Confidence) {
        let mut faster = cell("f", Op::Read, IoPath::Direct, 1 << 20, 64, 500_000_000);
        let mut slower = cell("s", Op::Read, IoPath::Buffered, 1 << 20, 64, 700_000_000);
        slower.result.cpu_ns = faster.result.cpu_ns;
        change(&mut faster, &mut slower);
        explain(&faster, &slower)
    }

    fn util(cell: &mut CellRecord, percent: f64) {
        crate::fixtures::set_busy(&mut cell.evidence.device[0], percent / 100.0);
    }

    #[test]
    fn the_processor_must_explain_half_of_the_difference() {
        let busy = |ns| pair(move |_, slower| slower.result.cpu_ns = Some(CpuTime { user: 0, system: ns }));
        let (text, confidence) = busy(131_000_000);
        assert!(text.contains("2047 against 469 µs per MiB: the page cache"), "{text}");
        assert_eq!(confidence, Confidence::Inferred);
        assert!(busy(129_000_000).0.contains("do not show"));
    }

    #[test]
    fn a_device_may_be_idle_between_requests() {
        let (text, _) = pair(|_, slower| util(slower, 60.0));
        assert!(text.contains("is idle between requests") && text.contains("60.0%"), "{text}");
        assert!(pair(|faster, slower| (util(faster, 65.0), util(slower, 60.0)).0).0.contains("do not show"));
        assert!(pair(|_, slower| util(slower, 91.0)).0.contains("do not show"));
    }

    #[test]
    fn what_is_not_alike_is_not_called_alike() {
        assert!(pair(|_, _| ()).0.starts_with("Request size and queue depth are similar"));
        let (text, _) = pair(|_, slower| slower.evidence.device[0].reads = Some(30));
        assert!(text.starts_with("Its requests average 1024 against 2185 KiB"), "{text}");
        let (blind, _) = pair(|faster, slower| {
            (faster.evidence.device, slower.evidence.device) = (Vec::new(), Vec::new());
        });
        assert_eq!(blind, "These counters do not show the cause.");
    }

    #[test]
    fn flushes_are_counted_per_write() {
        let write = |path, flushes| {
            with(cell("w", Op::Write, path, 16384, 1000, 500_000_000), |cell| {
                cell.workload.sync = Sync::Dsync;
                cell.evidence.device[0].flushes = Some(flushes);
            })
        };
        let (text, _) = explain(&write(IoPath::Buffered, 1000), &write(IoPath::Direct, 2000));
        assert!(text.contains("waits for 2.00 flushes per write, the faster one for 1.00"), "{text}");
        let (text, _) = explain(&write(IoPath::Buffered, 1000), &write(IoPath::Direct, 1400));
        assert!(!text.contains("waits for"), "{text}");
    }
}
