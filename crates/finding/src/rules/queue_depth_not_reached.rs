//! `queue-depth-not-reached`: fewer I/Os were in flight than the workload asks for.

use super::Rule;
use super::common::{cells, cite, cite_all, how_many, ids};
use crate::{reading, words};
use rdsk_model::{CellRecord, Confidence, Finding, Record};

pub(super) const RULE: Rule = Rule { code: "queue-depth-not-reached", check };

const REACHED_SHARE: f64 = 0.9;
/// I/Os per visit and place in the queue below which filling and draining it is all there is.
const LEAST_ROUNDS: u64 = 10;

fn check(record: &Record) -> Vec<Finding> {
    // Streams that start one after the other are not meant to be full from the beginning.
    let cells = cells(record, |cell| {
        let wanted = reading::wanted_depth(&cell.workload);
        wanted > 1
            && cell.workload.stagger_ns == 0
            && cell.result.ops.is_some_and(|ops| ops / reading::passes(cell) >= LEAST_ROUNDS * wanted)
            && cell.result.in_flight_mean.is_some_and(|mean| mean < REACHED_SHARE * wanted as f64)
    });
    if cells.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        code: RULE.code.into(),
        title: format!("the queue never filled: {}", how_many(&cells)),
        text: "The mean number of I/Os in flight stayed below what was asked for; the figure belongs to the depth that was \
               reached."
            .into(),
        evidence: cite_all(&cells, depth),
        confidence: Confidence::Measured,
        advice: Some("look for a processor that is busy, or for an engine that fell back to depth 1".into()),
        cells: ids(&cells),
    }]
}

fn depth(cell: &CellRecord) -> String {
    let reached = cell.result.in_flight_mean.map_or_else(|| "unknown".into(), words::figure);
    let device =
        reading::row(cell).map_or(String::new(), |row| format!(", aqu-sz = {}", words::figure(row.aqu_sz)));
    let wanted = reading::wanted_depth(&cell.workload);
    cite(cell, "mean in flight", format_args!("{reached} of {wanted}{device}"))
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, deepen, disk, record, with};
    use rdsk_model::{IoPath, Op};

    fn at(in_flight_mean: Option<f64>) -> Record {
        let cell = with(cell("q", Op::Read, IoPath::Direct, 4096, 10_000, 500_000_000), |cell| {
            deepen(cell, 32, in_flight_mean.unwrap_or(0.0));
            cell.result.in_flight_mean = in_flight_mean;
        });
        record(vec![disk()], vec![cell])
    }

    #[test]
    fn fires_below_nine_tenths() {
        let finding = fires(RULE, &at(Some(28.7)));
        assert_eq!(finding.evidence, ["q: mean in flight = 28.7 of 32, aqu-sz = 28.7"]);
        silent(RULE, &at(Some(28.9)));
        silent(RULE, &at(None));
    }
}
