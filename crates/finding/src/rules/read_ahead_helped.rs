//! `read-ahead-helped`: the kernel fetched data before a sequential reader asked for it, so that most reads found it in memory.

use super::prelude::*;
use super::requests_merged::mean_request;

pub(super) const RULE: Rule = Rule::new("read-ahead-helped", Severity::Remark, Needs::Counters, check);

/// Reads of the program per request from which most of them needed none of their own.
const READS_PER_REQUEST: f64 = 2.0;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| {
        cell.workload.op == Op::Read
            && cell.workload.path == IoPath::Buffered
            && cell.workload.pattern == Pattern::Sequential
            && metrics::wanted_depth(&cell.workload) == 1
            && reached_device(cell)
            && reads_per_request(analysis, cell).is_some_and(|count| count >= READS_PER_REQUEST)
    });
    let Some(first) = cells.first() else { return Vec::new() };
    let gains: Vec<String> = analysis
        .comparisons(Kind::Paths)
        .filter(|pair| cells.iter().any(|cell| std::ptr::eq(*cell, pair.base)))
        .filter_map(gain)
        .collect();
    let text = format!(
        "The {} noticed the sequential reads and fetched the next blocks in large requests. Most reads found their data in RAM.{}",
        system(analysis, first),
        gains.concat()
    );
    vec![RULE.about(&cells, "read-ahead served most reads", text, |cell| cited(analysis, cell))]
}

/// How many reads of the program each fetch of the kernel served: by its own bios where BPF counted them, else by requests.
fn reads_per_request(analysis: &Analysis<'_>, cell: &CellRecord) -> Option<f64> {
    if let Some(block_io) = analysis.block_io(cell) {
        let own = block_io.own(Op::Read);
        return (own.count > 0).then(|| metrics::ratio(block_io.calls(), own.count));
    }
    Some(mean_request(cell)? / cell.workload.block_bytes as f64)
}

/// How much faster that was than reading past the cache, where it surely was.
fn gain(pair: &Comparison<'_>) -> Option<String> {
    let ratio = pair.ratio.ok().filter(|ratio| ratio.outcome() == Outcome::Slower)?.turned();
    Some(format!(
        " {} were {} as fast as direct ones ({} to {}).",
        capitalised(&words::test(pair.base)),
        words::times(ratio.mean),
        words::figure(ratio.low),
        words::figure(ratio.high)
    ))
}

/// With a capital letter, at the start of a sentence.
fn capitalised(text: &str) -> String {
    words::sentence(text).trim_end_matches('.').to_owned()
}

fn cited(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let block = Bytes(cell.workload.block_bytes);
    let Some(block_io) = analysis.block_io(cell) else {
        let mean =
            mean_request(cell).map_or_else(|| "unknown".into(), |bytes| words::bytes(metrics::whole(bytes)));
        return cite(cell, "mean request", format_args!("{mean} for reads of {block}"));
    };
    let own = block_io.own(Op::Read);
    let mean = own.mean_bytes().map_or_else(|| "none".into(), |bytes| words::bytes(metrics::whole(bytes)));
    let deepest = block_io.deepest().map_or(String::new(), |depth| format!(", deepest queue = {depth}"));
    cite(
        cell,
        "bios",
        format_args!(
            "{} of {mean} on average for {} of {block}{}{deepest}",
            rdsk_units::grouped(own.count),
            words::plural(block_io.calls(), "read"),
            block_io.part_in_words()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::bios::{bio, counted, request};
    use crate::fixtures::{self, disk, in_rounds, record, with};
    use rdsk_model::Record;

    fn read(path: IoPath, elapsed_ns: u64) -> CellRecord {
        in_rounds(fixtures::cell(path.as_str(), Op::Read, path, 16384, 4096, elapsed_ns))
    }

    fn ahead(bios: u64) -> CellRecord {
        let bytes = (64 << 20) / bios;
        counted(
            with(read(IoPath::Buffered, 500_000_000), |cell| cell.evidence.device[0].reads = Some(bios)),
            vec![bio(Op::Read, "this", Some("pread64"), bios, bytes)],
            vec![request(Op::Read, bytes, bios)],
        )
    }

    fn alone(cell: CellRecord) -> Record {
        record(vec![disk()], vec![cell])
    }

    #[test]
    fn fires_where_a_request_serves_several_reads() {
        let finding = fires(RULE, &alone(ahead(512)));
        assert_eq!(
            finding.evidence,
            [
                "sequential buffered 16K reads: bios = 512 of 128 KiB on average for 4,096 reads of 16 KiB, deepest queue = 1"
            ]
        );
        fires(RULE, &alone(ahead(2048)));
        let slow = record(vec![disk()], vec![ahead(512), read(IoPath::Direct, 1_000_000_000)]);
        let helped = fires(RULE, &slow);
        assert!(helped.text.contains("2.00x as fast as direct ones"), "{}", helped.text);
        let blind = with(ahead(512), |cell| cell.evidence.bpf = None);
        assert_eq!(
            fires(RULE, &alone(blind)).evidence,
            ["sequential buffered 16K reads: mean request = 128 KiB for reads of 16 KiB"]
        );
    }

    #[test]
    fn is_silent_where_each_read_has_its_own_request_or_is_random() {
        silent(RULE, &alone(ahead(4096)));
        silent(RULE, &alone(with(ahead(512), |cell| cell.workload.pattern = Pattern::Random)));
        silent(RULE, &alone(with(ahead(512), |cell| cell.workload.streams = 2)));
        let blind = with(ahead(4096), |cell| cell.evidence.bpf = None);
        silent(RULE, &alone(blind));
    }
}
