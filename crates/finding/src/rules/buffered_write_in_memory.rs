//! `buffered-write-in-memory`: write(2) returned when memory had the data, long before the device did.

use super::prelude::*;

pub(super) const RULE: Rule =
    Rule::new("buffered-write-in-memory", Severity::Invalid, Needs::Counters, check);

/// Minimum ratio of the time until stable to the time until return.
const LATER: f64 = 1.1;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    // That buffered writes return early is no news where a column shows both times.
    const WITH_BOTH_TIMES: [Experiment; 3] = [Experiment::Align, Experiment::Paths, Experiment::Stream];
    let cells = cells(analysis, |cell| {
        cell.workload.op == Op::Write
            && !WITH_BOTH_TIMES.contains(&cell.experiment)
            && has_verdict(cell, VerdictCode::PageCache)
            && !is_of_loop_file(cell, &analysis.targets)
            && later(cell).is_some_and(|later| later >= LATER)
    });
    let Some(worst) = cells.iter().filter_map(|cell| later(cell)).reduce(f64::max) else { return Vec::new() };
    let cited = |cell: &CellRecord| {
        let ns = |ns: Option<u64>| ns.map_or_else(|| "unknown".into(), words::nanos);
        let (returned, stable) = (ns(cell.result.to_return_ns), ns(cell.result.to_stable_ns));
        let dirty = cell.evidence.page_cache.and_then(|cache| cache.after.dirty_bytes);
        let dirty =
            dirty.map_or(String::new(), |dirty| format!(", dirty at the return = {}", words::bytes(dirty)));
        let written = written_by(analysis, cell);
        cite(cell, "to_return", format_args!("{returned}, to_stable = {stable}{dirty}{written}"))
    };
    let text = format!(
        "write(2) returned once the data was in RAM (page cache); writing it to disk took up to {} as long. Only the rate on disk is the \
         device's.",
        words::times(worst)
    );
    vec![
        RULE.about(&cells, "the writes measured RAM", text, cited)
            .advice("quote the rate on disk, or write with direct I/O, sync or a final fsync")
            .effect(
                Stake::Figure,
                Some(worst),
                format!(
                    "buffered writes return from RAM (page cache); on disk they take up to {} as long",
                    words::times(worst)
                ),
            )
            .covering_verdicts(),
    ]
}

/// `, written by fsync(2) = 64 MiB`: who submitted most of the bytes; nothing without BPF.
fn written_by(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let most = analysis.block_io(cell).and_then(|block_io| block_io.origins(Op::Write).first().copied());
    most.map_or(String::new(), |(origin, sum)| {
        format!(", written by {origin} = {}{}", words::bytes(sum.bytes), part_in_words(cell))
    })
}

/// Time until stable over time until return.
fn later(cell: &CellRecord) -> Option<f64> {
    let returned = cell.result.to_return_ns.filter(|&ns| ns > 0)?;
    Some(metrics::ratio(cell.result.to_stable_ns?, returned))
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::bios::{bio, counted, request};
    use crate::fixtures::{cell, file, kept_in_memory, record, with};
    use rdsk_model::IoPath;

    #[test]
    fn fires_on_a_write_into_memory_and_is_silent_on_a_durable_one() {
        let direct = cell("d", Op::Write, IoPath::Direct, 1 << 20, 64, 500_000_000);
        let direct = with(direct, |cell| cell.experiment = Experiment::Headline);
        let memory = kept_in_memory(direct.clone(), 25_000_000, 500_000_000);
        let finding = fires(RULE, &record(vec![file()], vec![direct.clone(), memory.clone()]));
        assert_eq!(finding.cells, ["d"]);
        assert!(finding.text.contains("20.0x"), "{}", finding.text);
        assert_eq!(
            finding.evidence,
            [
                "sequential buffered 1M writes at QD1: to_return = 25.0 ms, to_stable = 500 ms, dirty at the return = 64 MiB"
            ]
        );
        let bios = vec![bio(Op::Write, "this", Some("fsync"), 64, 1 << 20)];
        let seen = counted(memory.clone(), bios, vec![request(Op::Write, 1 << 20, 64)]);
        let finding = fires(RULE, &record(vec![file()], vec![seen]));
        assert!(finding.evidence[0].ends_with(", written by fsync(2) = 64 MiB"), "{:?}", finding.evidence);
        silent(RULE, &record(vec![file()], vec![direct]));
        for topic in [Experiment::Align, Experiment::Paths, Experiment::Stream] {
            let with_both_times = with(memory.clone(), |cell| cell.experiment = topic);
            silent(RULE, &record(vec![file()], vec![with_both_times]));
        }
        let unknown = with(memory, |cell| cell.result.to_stable_ns = None);
        silent(RULE, &record(vec![file()], vec![unknown]));
    }
}
