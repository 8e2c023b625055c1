//! `burst-writes`: the rate of writes in the headline is that of a burst; writes that went on are slower. It names no cause.

use super::prelude::*;
use rdsk_analysis::lasting::Lasting;

pub(super) const RULE: Rule = Rule::new("burst-writes", Severity::Uncertain, Needs::OwnTimes, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let bursts: Vec<(&CellRecord, Lasting)> = cells(analysis, |_| true)
        .into_iter()
        .filter_map(|cell| Some((cell, analysis.lasting(cell).filter(|lasting| lasting.is_burst)?)))
        .collect();
    let factor_of = |lasting: &Lasting| lasting.burst_bytes_per_s / lasting.bytes_per_s;
    // The sequential one shows a cache's size best.
    let Some((first, lasting)) = bursts.iter().max_by(|(left, fell), (right, other)| {
        let key =
            |cell: &CellRecord, lasting: &Lasting| (cell.workload.block_bytes, lasting.fall_bytes.is_some());
        key(left, fell).cmp(&key(right, other)).then(factor_of(fell).total_cmp(&factor_of(other)))
    }) else {
        return Vec::new();
    };
    let factor = factor_of(lasting);
    let (fast, slow) =
        (words::rate_of(first, lasting.burst_bytes_per_s), words::rate_of(first, lasting.bytes_per_s));
    let until = match lasting.fall_bytes {
        Some(bytes) => format!("after {}", words::bytes(bytes)),
        None => "before the long test began".into(),
    };
    let level = if lasting.is_settled { "and stayed there" } else { "and had not settled at its end" };
    let burst_cells: Vec<&CellRecord> = bursts.iter().map(|(cell, _)| *cell).collect();
    let text = format!(
        "In a test of {} over {}, {} fell from {fast} to {slow} {until}, {level}. A write cache that is full does this, and so does a \
         rate limit whose burst credit is spent.",
        words::bytes(lasting.bytes),
        words::nanos(lasting.elapsed_ns),
        words::test(first),
    );
    let cited = bursts.iter().take(MAX_CITED).map(|(cell, lasting)| {
        let rates = format!(
            "{}, then {}",
            words::rate_of(cell, lasting.burst_bytes_per_s),
            words::rate_of(cell, lasting.bytes_per_s)
        );
        cite(cell, "windows", rates)
    });
    vec![
        RULE.finding(format!("the write rate does not last: {}", how_many(&burst_cells)), text)
            .evidence(cited)
            .effect(
                Stake::Figure,
                Some(factor),
                format!("{} fall from {fast} to {slow} {until}", words::test(first)),
            )
            .advice("quote the lasting rate for sustained work, and the burst with its size")
            .cells(burst_cells),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{disk, record, with};
    use rdsk_analysis::fixtures::rates::{falling, laid_out, steady};
    use rdsk_model::{Op, Record};

    fn of(went_on: CellRecord) -> Record {
        let write = |cell| with(cell, |cell: &mut CellRecord| cell.id = "headline/write/sequential".into());
        let mut record = record(vec![disk()], vec![write(laid_out("w", Op::Write, &[steady(60, 800.0)]))]);
        record.sustained = vec![write(went_on)];
        record
    }

    #[test]
    fn fires_where_writes_that_go_on_fall() {
        let finding = fires(RULE, &of(laid_out("w", Op::Write, &[falling(200, 400, 800.0, 100.0)])));
        assert!(finding.text.contains("MiB/s to 100 MiB/s after 7.8"), "{}", finding.text);
        assert!(finding.text.contains("and stayed there"), "{}", finding.text);
    }

    #[test]
    fn is_silent_where_they_last_and_where_none_went_on() {
        silent(RULE, &of(laid_out("w", Op::Write, &[steady(600, 790.0)])));
        silent(RULE, &Record { sustained: Vec::new(), ..of(laid_out("w", Op::Write, &[steady(600, 9.0)])) });
    }
}
