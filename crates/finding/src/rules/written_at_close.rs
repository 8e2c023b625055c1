//! `written-at-close`: the last close of a block device wrote the pages that write(2) had left in memory.

use super::prelude::*;
use rdsk_analysis::block_io::Sum;

pub(super) const RULE: Rule = Rule::new("written-at-close", Severity::Cause, Needs::Counters, check);

/// Share of the bytes that must have been written inside close(2).
const MIN_SHARE: f64 = 0.1;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| at_close(analysis, cell).is_some());
    let text = "write(2) left the data in RAM, and the last close of a block device writes what is left before it returns. It asks the device \
                for no flush, so with a volatile write cache the data is not yet safe.";
    let advice = "add the time of close(2) to that of the writes, and use fsync (dd: conv=fsync) where the data has to be safe";
    let findings =
        RULE.about_any(&cells, "written by the last close", text, |cell| cited(analysis, cell), advice);
    let shares = cells.iter().filter_map(|cell| Some((cell, at_close(analysis, cell)?)));
    let most = shares.max_by(|left, right| left.1.1.total_cmp(&right.1.1));
    let Some((cell, (sum, share))) = most else { return findings };
    let what = format!(
        "the last close wrote {} ({}) that write(2) had left in RAM{}: {}",
        words::bytes(sum.bytes),
        percent(share),
        part_in_words(cell),
        how_many(&cells)
    );
    findings.into_iter().map(|finding| finding.effect(Stake::Cost, None, what.clone())).collect()
}

/// What a cell's close wrote, and its share of the cell's bytes.
fn at_close(analysis: &Analysis<'_>, cell: &CellRecord) -> Option<(Sum, f64)> {
    let block_io =
        analysis.block_io(cell).filter(|block_io| block_io.bytes() > 0 && cell.workload.op == Op::Write)?;
    let sum = block_io.by(Op::Write, |origin| origin == Origin::Call("close"));
    let share = metrics::ratio(sum.bytes, block_io.bytes()).min(1.0);
    (share >= MIN_SHARE).then_some((sum, share))
}

fn cited(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let sum = at_close(analysis, cell).map_or_else(Sum::default, |(sum, _)| sum);
    let requests =
        analysis.block_io(cell).map_or(String::new(), |block_io| block_io.sizes_in_words(Op::Write));
    let closing_ns = analysis.block_io(cell).and_then(BlockIo::closing_ns);
    let time = closing_ns.map(|ns| format!(", time of it = {}", words::nanos(ns)));
    cite(
        cell,
        "written inside close(2)",
        format_args!(
            "{} in {}, requests = {requests}{}{}",
            words::bytes(sum.bytes),
            words::plural(sum.count, "bio"),
            time.unwrap_or_default(),
            part_in_words(cell)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::bios::{bio, counted, request};
    use crate::fixtures::{self, disk, record, with};
    use rdsk_model::{IoPath, Record};

    fn copy(call: &str, at_close: u64) -> Record {
        let cell = fixtures::cell("dd/write", Op::Write, IoPath::Buffered, 512, 2048, 20_000_000);
        let cell = with(cell, |cell| {
            (cell.result.to_return_ns, cell.result.to_close_ns) = (Some(16_000_000), Some(20_000_000));
        });
        let bios = vec![
            bio(Op::Write, "this", Some(call), at_close, 4096),
            bio(Op::Write, "kernel", None, 256 - at_close, 4096),
        ];
        record(vec![disk()], vec![counted(cell, bios, vec![request(Op::Write, 524_288, 2)])])
    }

    #[test]
    fn fires_where_the_close_wrote_and_is_silent_where_a_sync_did() {
        let finding = fires(RULE, &copy("close", 256));
        assert_eq!(
            finding.evidence,
            [
                "sequential buffered 512 B writes: written inside close(2) = 1 MiB in 256 bios, requests = 2 of 512 KiB, time of it = 4.00 ms"
            ]
        );
        let effect = finding.effect.unwrap();
        assert!(effect.text.contains("1 MiB (100%)"), "{}", effect.text);
        fires(RULE, &copy("close", 26));
        silent(RULE, &copy("close", 25));
        silent(RULE, &copy("fsync", 256));
        let mut blind = copy("close", 256);
        blind.cells[0].evidence.bpf = None;
        silent(RULE, &blind);
    }

    /// Bytes and time are of the same visits: those that were followed.
    #[test]
    fn visits_that_were_not_followed_have_no_part_in_it() {
        let mut record = copy("close", 256);
        let cell = record.cells.remove(0);
        let mut cell = crate::fixtures::bios::followed(cell, &[(2048, 20_000_000), (6144, 99_000_000)], &[0]);
        for (visit, closed_ns) in cell.result.visits.iter_mut().zip([20_000_000, 99_000_000]) {
            (visit.to_return_ns, visit.to_close_ns) = (Some(16_000_000), Some(closed_ns));
        }
        let finding = fires(RULE, &fixtures::record(vec![disk()], vec![cell]));
        assert_eq!(
            finding.evidence,
            [
                "sequential buffered 512 B writes: written inside close(2) = 1 MiB in 256 bios, requests = 2 of 512 KiB, time of it = 4.00 ms in 1 of 2 repeats"
            ]
        );
        let effect = finding.effect.unwrap();
        assert!(
            effect.text.contains("1 MiB (100%)") && effect.text.contains(" in 1 of 2 repeats: "),
            "{}",
            effect.text
        );
    }
}
