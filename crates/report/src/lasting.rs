//! Over how many bytes the writes of the headline were measured, and whether their rates last, in words. It judges nothing.

use crate::figures::rate_of;
use rdsk_analysis::Analysis;
use rdsk_analysis::lasting::{Lasting, written_bytes};
use rdsk_analysis::words::{bytes, list, nanos};
use rdsk_model::{CellRecord, Op, TargetKind};

/// What stands before the line on writes.
pub(crate) const LEAD: &str = "Writes: ";
/// What shows whether rates last.
const HOW: &str = "rdsk run --sustained";

/// Whether the figure of a cell is that of a burst.
pub(crate) fn is_burst(analysis: &Analysis<'_>, cell: &CellRecord) -> bool {
    analysis.lasting(cell).is_some_and(|lasting| lasting.is_burst)
}

/// A burst, its size and what comes after it, in a sentence.
pub(crate) fn sentence(cell: &CellRecord, lasting: &Lasting) -> String {
    let (first, then) = (rate_of(cell, lasting.burst_bytes_per_s), rate_of(cell, lasting.bytes_per_s));
    let until = match lasting.fall_bytes {
        Some(fall) => format!("{first} for {}, then {then}", bytes(fall)),
        None => format!("{first} in the repeats, {then} from the start of the test that went on"),
    };
    let level = if lasting.is_settled { "settled" } else { "not settled" };
    format!(
        "a burst: {until}, {level} when {} had been written in {}.",
        bytes(lasting.bytes),
        nanos(lasting.elapsed_ns)
    )
}

/// Over how many bytes writes were measured and whether their rates had settled, the longest wording first; empty without any.
pub(crate) fn measured(
    analysis: &Analysis<'_>,
    cells: &[&CellRecord],
    name: impl Fn(&CellRecord) -> String,
) -> Vec<String> {
    let writes: Vec<&CellRecord> = cells
        .iter()
        .copied()
        .filter(|cell| cell.workload.op == Op::Write && cell.result.bytes.is_some_and(|bytes| bytes > 0))
        .collect();
    if writes.is_empty() {
        return Vec::new();
    }
    let long_tests: Vec<(&CellRecord, Lasting)> =
        writes.iter().filter_map(|cell| Some((*cell, analysis.lasting(cell)?))).collect();
    let first = bytes(written_bytes(writes.iter().copied()));
    if long_tests.is_empty() {
        let is_simulated = analysis.targets.iter().any(|target| target.kind == TargetKind::Sim);
        let how = if is_simulated { " is not known".to_owned() } else { format!(": {HOW}") };
        let written = in_words(analysis, &writes);
        return vec![format!("{written}; whether rates last{how}")];
    }
    let more = bytes(long_tests.iter().map(|(_, lasting)| lasting.bytes).sum());
    let unsettled: Vec<String> = long_tests
        .iter()
        .filter(|(_, lasting)| !lasting.is_settled)
        .map(|(cell, lasting)| format!("{} at {}", name(cell), rate_of(cell, lasting.bytes_per_s)))
        .collect();
    let scope = if long_tests.len() < writes.len() {
        format!(" in {} of {} tests", long_tests.len(), writes.len())
    } else {
        String::new()
    };
    let how_far = format!("{first}, then {more} more{scope}");
    if !unsettled.is_empty() {
        let names = list(&unsettled);
        let brief = format!("{how_far}: {} of {} not settled", unsettled.len(), long_tests.len());
        return vec![format!("{how_far}: not settled, in the later half {names}"), brief];
    }
    let is_any_burst = long_tests.iter().any(|(_, lasting)| lasting.is_burst);
    let last = if is_any_burst { "rates settled" } else { "rates settled, no fall" };
    vec![format!("{how_far}: {last}")]
}

/// `573 MiB of 1.21 GiB`: what these tests wrote, and all that were on the same targets.
fn in_words(analysis: &Analysis<'_>, writes: &[&CellRecord]) -> String {
    let is_there = |cell: &&CellRecord| {
        let targets = &cell.workload.targets;
        writes.iter().any(|write| write.workload.targets.iter().any(|target| targets.contains(target)))
    };
    let of_all = analysis.cells.iter().filter(|cell| cell.workload.op == Op::Write).filter(is_there);
    let (own, all) = (written_bytes(writes.iter().copied()), written_bytes(of_all));
    let (own, all) = (bytes(own), bytes(all));
    if own == all { format!("{own} written") } else { format!("{own} of {all}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_analysis::fixtures::{cell, disk, record, with};
    use rdsk_model::{Experiment, IoPath};

    /// Found by a user, whose disk had taken twice as much as the line said.
    #[test]
    fn what_all_topics_wrote_stands_beside_what_these_tests_wrote() {
        let wrote = |id, experiment| {
            with(cell(id, Op::Write, IoPath::Direct, 1 << 20, 100, 1_000_000_000), |cell| {
                cell.experiment = experiment;
            })
        };
        let (own, other) = (
            wrote("headline/write/sequential", Experiment::Headline),
            wrote("paths/write", Experiment::Paths),
        );
        let record = record(vec![disk()], vec![own, other]);
        let said = measured(&Analysis::of(&record), &[&record.cells[0]], |_| String::new());
        assert_eq!(said, ["100 MiB of 200 MiB; whether rates last: rdsk run --sustained"]);
        let said =
            measured(&Analysis::of(&record), &record.cells.iter().collect::<Vec<_>>(), |_| String::new());
        assert!(said[0].starts_with("200 MiB written; "), "{said:?}");
    }
}
