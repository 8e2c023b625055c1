//! `disturbed`: others used the device.

use super::Rule;
use super::common::{cite_all, cite_verdict, how_many, ids, with_verdict};
use rdsk_model::{Confidence, Finding, Record, VerdictCode};

pub(super) const RULE: Rule = Rule { code: "disturbed", check };

fn check(record: &Record) -> Vec<Finding> {
    let cells = with_verdict(record, VerdictCode::Disturbed);
    if cells.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        code: RULE.code.into(),
        title: format!("others used the device: {}", how_many(&cells)),
        text: "The device moved more than the cell asked for; what others do takes time from the measurement and makes it less \
               steady."
            .into(),
        evidence: cite_all(&cells, cite_verdict),
        confidence: Confidence::Measured,
        advice: Some("end what else uses the device, or repeat the run when it is quiet".into()),
        cells: ids(&cells),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, disk, record, with};
    use rdsk_model::{IoPath, Op};

    #[test]
    fn fires_on_foreign_reads_and_is_silent_on_our_own() {
        let own = cell("own", Op::Read, IoPath::Direct, 1 << 20, 64, 500_000_000);
        let shared = with(own.clone(), |cell| {
            cell.id = "shared".into();
            cell.evidence.device[0].read_bytes = Some(90 << 20);
        });
        let finding = fires(RULE, &record(vec![disk()], vec![own.clone(), shared]));
        assert_eq!(finding.cells, ["shared"]);
        assert!(finding.evidence[0].contains("26 MiB for others"), "{:?}", finding.evidence);
        silent(RULE, &record(vec![disk()], vec![own]));
    }
}
