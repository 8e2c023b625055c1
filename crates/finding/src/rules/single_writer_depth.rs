//! `single-writer-depth`: one synchronous direct stream has one request in flight, so it measures latency.

use super::Rule;
use super::common::{cells, cite, cite_all, how_many, ids, reached_device};
use rdsk_analysis::{metrics, words};
use rdsk_model::{Confidence, Experiment, Finding, IoPath, Record};

pub(super) const RULE: Rule = Rule { code: "single-writer-depth", check };

/// Above this mean depth the requests were split and overlapped: then it is not latency alone.
const MAX_DEPTH: f64 = 1.05;

fn check(record: &Record) -> Vec<Finding> {
    let cells = cells(record, |cell| {
        cell.experiment == Experiment::Stream
            && cell.workload.path == IoPath::Direct
            && metrics::wanted_depth(&cell.workload) == 1
            && reached_device(cell)
            && metrics::row(cell).is_some_and(|row| row.aqu_sz <= MAX_DEPTH)
    });
    if cells.is_empty() {
        return Vec::new();
    }
    let evidence = cite_all(&cells, |cell| {
        let aqu_sz = metrics::row(cell).map_or(0.0, |row| row.aqu_sz);
        let mean_ns = cell.result.latency_ns.as_ref().and_then(|latency| latency.mean).filter(|&ns| ns > 0.0);
        let from_latency = mean_ns.map_or(String::new(), |ns| {
            let rate = cell.workload.block_bytes as f64 / (ns / 1e9);
            format!(", block / mean latency = {}", words::rate(rate))
        });
        cite(cell, "aqu-sz", format_args!("{}{from_latency}", words::figure(aqu_sz)))
    });
    vec![Finding {
        code: RULE.code.into(),
        title: format!("one stream, one request in flight: {}", how_many(&cells)),
        text: "A program that waits for each direct read or write before the next never has more than one request \
               outstanding. The rate is the block size over the latency of one request; what the device can do with a \
               full queue is another figure."
            .into(),
        evidence,
        confidence: Confidence::Measured,
        advice: Some("raise --bs, --iodepth or --streams to measure bandwidth instead of latency".into()),
        cells: ids(&cells),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{self, disk, record, with};
    use rdsk_model::Op;

    fn stream(aqu_sz: f64, path: IoPath, streams: u32) -> Record {
        let cell = with(fixtures::cell("s", Op::Write, path, 16384, 2000, 500_000_000), |cell| {
            cell.experiment = Experiment::Stream;
            cell.workload.streams = streams;
            cell.evidence.device[0].iostat.as_mut().unwrap().aqu_sz = aqu_sz;
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
    fn is_silent_without_counters() {
        let record = stream(0.98, IoPath::Direct, 1);
        let blind = fixtures::without_counters(record.cells[0].clone());
        silent(RULE, &fixtures::record(vec![disk()], vec![blind]));
    }
}
