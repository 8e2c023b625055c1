//! `evidence-differs`: BPF and sysfs counted the same requests differently, so neither is sure.

use super::prelude::*;
use rdsk_model::CrossCheck;

pub(super) const RULE: Rule = Rule::new(
    "evidence-differs",
    Severity::Uncertain,
    Needs::Counters,
    |analysis| {
        let cells = cells(analysis, |cell| worst(cell).is_some());
        let text = "BPF and /sys disagree on how many requests the device completed, so one of them is incomplete. Rates and latencies \
                    depend on neither.";
        let advice = "do not build on exact counts of requests here; --evidence sysfs measures without BPF";
        RULE.about_any(&cells, "BPF and /sys counted differently", text, cited, advice)
    },
);

/// The largest share by which the sources may differ, and how many requests are enough to judge it.
const MOST: f64 = 0.01;
const ENOUGH: u64 = 1000;

/// The device on which they differ most, if that is too much.
fn worst(cell: &CellRecord) -> Option<&CrossCheck> {
    // A device whose counters stand still (queue/iostats, RAM disks) has no second source.
    let is_counted = |check: &&CrossCheck| {
        let mut devices = cell.evidence.device.iter();
        devices.any(|device| device.name == check.device && device.reads.is_some())
    };
    let checks = cell.evidence.bpf.iter().flat_map(|bpf| &bpf.checks).filter(is_counted);
    let differ = checks.filter(|check| check.bpf.max(check.sysfs) >= ENOUGH && check.difference() > MOST);
    differ.max_by(|left, right| left.difference().total_cmp(&right.difference()))
}

fn cited(cell: &CellRecord) -> String {
    let Some(check) = worst(cell) else { return cite(cell, "requests", "alike") };
    let words =
        format!("{} by BPF, {} by sysfs ({} apart)", check.bpf, check.sysfs, percent(check.difference()));
    cite(cell, &format!("requests of {}", check.device), words)
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{self, disk, record, with};
    use rdsk_model::{BpfEvidence, IoPath, Op, Record};

    fn counted(bpf: u64, sysfs: u64) -> Record {
        let check = CrossCheck { target: 0, device: "sda".into(), bpf, sysfs };
        let cell = with(fixtures::cell("c", Op::Read, IoPath::Direct, 4096, 10_000, 1_000_000_000), |cell| {
            cell.evidence.bpf = Some(BpfEvidence { checks: vec![check], ..BpfEvidence::default() });
        });
        record(vec![disk()], vec![cell])
    }

    #[test]
    fn fires_above_one_per_cent_of_many_requests_only() {
        let finding = fires(RULE, &counted(9_800, 10_000));
        assert_eq!(
            finding.evidence,
            ["sequential direct 4K reads: requests of sda = 9800 by BPF, 10000 by sysfs (2.0% apart)"]
        );
        fires(RULE, &counted(10_000, 0));
        silent(RULE, &counted(9_901, 10_000));
        silent(RULE, &counted(400, 500));
        silent(RULE, &counted(0, 0));
        let mut still = counted(10_000, 0);
        still.cells[0].evidence.device[0].reads = None;
        silent(RULE, &still);
    }
}
