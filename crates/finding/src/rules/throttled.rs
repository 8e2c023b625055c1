//! `throttled`: a control group sets the rate.

use super::Rule;
use super::common::{cite_all, cite_verdict, how_many, ids, with_verdict};
use rdsk_model::{Confidence, Finding, Record, VerdictCode};

pub(super) const RULE: Rule = Rule { code: "throttled", check };

fn check(record: &Record) -> Vec<Finding> {
    let cells = with_verdict(record, VerdictCode::Throttled);
    if cells.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        code: RULE.code.into(),
        title: format!("a control group sets the rate: {}", how_many(&cells)),
        text: "The control group that rdsk runs in limits the I/O of this device, and the measured rate is that limit. It says nothing about the device beyond that it is at least as fast."
            .into(),
        evidence: cite_all(&cells, cite_verdict),
        confidence: Confidence::Measured,
        advice: Some("run outside the limited group (container, slice), or raise the limit in the file named above".into()),
        cells: ids(&cells),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, disk, record, with};
    use rdsk_model::{IoPath, Limit, Op};

    #[test]
    fn fires_at_the_limit_and_is_silent_below_it() {
        let limited = |ops_per_s| {
            with(cell("t", Op::Read, IoPath::Direct, 4096, 512, 2_000_000_000), |cell| {
                cell.evidence.limits = vec![Limit {
                    target: 0,
                    device: "sda".into(),
                    source: "/sys/fs/cgroup/x/io.max".into(),
                    op: Op::Read,
                    bytes_per_s: None,
                    ops_per_s: Some(ops_per_s),
                }];
            })
        };
        let finding = fires(RULE, &record(vec![disk()], vec![limited(256)]));
        assert!(finding.evidence[0].contains("io.max"), "{:?}", finding.evidence);
        silent(RULE, &record(vec![disk()], vec![limited(10_000)]));
    }
}
