//! `single-writer-depth`: one synchronous direct stream has one request in flight, so it measures latency.

use super::prelude::*;

pub(super) const RULE: Rule = Rule::new("single-writer-depth", Severity::Remark, Needs::Counters, check);

/// Above this mean depth requests were split and overlapped, so the rate is not latency alone.
const MAX_DEPTH: f64 = 1.05;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| {
        cell.experiment == Experiment::Stream
            && cell.workload.path == IoPath::Direct
            && metrics::wanted_depth(&cell.workload) == 1
            && reached_device(cell)
            && metrics::row(cell).is_some_and(|row| row.aqu_sz <= MAX_DEPTH)
    });
    let cited = |cell: &CellRecord| {
        let aqu_sz = metrics::row(cell).map_or(0.0, |row| row.aqu_sz);
        let mean_ns = cell.result.latency_ns.as_ref().and_then(|latency| latency.mean).filter(|&ns| ns > 0.0);
        let from_latency = mean_ns.map_or(String::new(), |ns| {
            let rate = cell.workload.block_bytes as f64 / (ns / 1e9);
            format!(", block / mean latency = {}", words::rate(rate))
        });
        cite(
            cell,
            "aqu-sz",
            format_args!("{}{from_latency}{}", words::figure(aqu_sz), in_kernel(analysis, cell)),
        )
    };
    let text = "A program that waits for each direct read or write before it issues the next never has more than one \
                request outstanding. The rate is the block size divided by the latency of one request; the rate with a \
                full queue is a different figure.";
    let advice = "raise --bs, --iodepth or --streams to measure bandwidth instead of latency";
    RULE.about_any(&cells, "one stream, one request in flight", text, cited, advice)
}

/// What BPF saw of it: the deepest queue of all, and how much of an I/O's time its request was in the device.
fn in_kernel(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let deepest = analysis.block_io(cell).and_then(BlockIo::deepest);
    let deepest = deepest.map(|depth| format!(", deepest queue = {depth}"));
    let device = analysis.in_device(cell).map(|times| {
        format!(
            ", {} of {} in the device{}",
            words::mean_nanos(times.device_ns),
            words::mean_nanos(times.call_ns),
            part_in_words(cell)
        )
    });
    [deepest, device].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::bios::{bio, counted, request};
    use crate::fixtures::{self, disk, record, with};
    use rdsk_model::{Op, Record};

    fn stream(aqu_sz: f64, path: IoPath, streams: u32) -> Record {
        let cell = with(fixtures::cell("s", Op::Write, path, 16384, 2000, 500_000_000), |cell| {
            cell.experiment = Experiment::Stream;
            cell.workload.streams = streams;
            fixtures::set_depth(&mut cell.evidence.device[0], aqu_sz);
        });
        record(vec![disk()], vec![cell])
    }

    #[test]
    fn fires_up_to_depth_one_of_one_direct_stream() {
        let finding = fires(RULE, &stream(0.98, IoPath::Direct, 1));
        assert_eq!(finding.evidence, ["s: aqu-sz = 0.98, block / mean latency = 62.5 MiB/s"]);
        fires(RULE, &stream(1.05, IoPath::Direct, 1));
        silent(RULE, &stream(1.06, IoPath::Direct, 1));
        silent(RULE, &stream(0.98, IoPath::Buffered, 1));
        silent(RULE, &stream(0.98, IoPath::Direct, 4));
    }

    #[test]
    fn bios_show_the_deepest_queue_and_the_time_in_the_device() {
        let mut record = stream(0.98, IoPath::Direct, 1);
        let bios = vec![bio(Op::Write, "this", Some("pwrite64"), 2000, 16384)];
        let cell = counted(record.cells.remove(0), bios, vec![request(Op::Write, 16384, 2000)]);
        record.cells.push(with(cell, |cell| {
            cell.evidence.device_latency_ns = Some(fixtures::latency(2000, 240_000));
        }));
        let finding = fires(RULE, &record);
        assert!(
            finding.evidence[0].ends_with("62.5 MiB/s, deepest queue = 1, 240 µs of 250 µs in the device"),
            "{:?}",
            finding.evidence
        );
    }

    #[test]
    fn is_silent_without_counters() {
        let record = stream(0.98, IoPath::Direct, 1);
        let blind = fixtures::without_counters(record.cells[0].clone());
        silent(RULE, &fixtures::record(vec![disk()], vec![blind]));
    }
}
