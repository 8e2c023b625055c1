//! `memory-device`: the device is memory behind a driver (zram, a RAM disk, persistent memory), so no disk is measured.

use super::prelude::*;
use rdsk_analysis::medium;

pub(super) const RULE: Rule = Rule::new("memory-device", Severity::Cause, Needs::Facts, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| {
        reached_device(cell) && !is_simulated(analysis, cell) && disk(analysis, cell).is_some()
    });
    let cited = |cell: &CellRecord| cite(cell, "device", disk(analysis, cell).unwrap_or_default());
    let text = "The driver of this device keeps its data in RAM (zram also compresses it). The figure is that of RAM and CPU.";
    let findings =
        RULE.about_any(&cells, "the device is RAM, not a disk", text, cited, "measure a disk instead");
    let what = format!("the device is RAM, not a disk: {}", how_many(&cells));
    findings.into_iter().map(|finding| finding.effect(Stake::Figure, None, what.clone())).collect()
}

fn disk(record: &Record, cell: &CellRecord) -> Option<String> {
    cell.workload.targets.iter().find_map(|&target| medium::memory_disk(metrics::target(record, target)?))
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures;
    use rdsk_model::{IoPath, Op, Target};

    fn on(name: &str, stack: &[&str]) -> Target {
        let mut target = fixtures::disk();
        target.device.as_mut().unwrap().name = name.into();
        target.stack = stack.iter().map(|&name| name.into()).collect();
        target
    }

    #[test]
    fn fires_on_zram_and_what_lies_on_it_and_is_silent_on_a_disk() {
        let cell = || fixtures::cell("c", Op::Read, IoPath::Direct, 4096, 10_000, 1_000_000_000);
        let finding = fires(RULE, &fixtures::record(vec![on("zram0", &["zram0"])], vec![cell()]));
        assert_eq!(finding.evidence, ["sequential direct 4K reads: device = zram0"]);
        let mapped = fires(RULE, &fixtures::record(vec![on("dm-0", &["dm-0", "pmem1"])], vec![cell()]));
        assert_eq!(mapped.evidence, ["sequential direct 4K reads: device = pmem1"]);
        for name in ["sda", "ramses", "rama"] {
            silent(RULE, &fixtures::record(vec![on(name, &[name])], vec![cell()]));
        }
    }
}
