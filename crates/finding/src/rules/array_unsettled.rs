//! `array-unsettled`: the array below the target rebuilt or checked itself when the run began or ended, or lacked members.

use super::prelude::*;
use rdsk_analysis::stripe::unrest;

pub(super) const RULE: Rule = Rule::new("array-unsettled", Severity::Uncertain, Needs::Facts, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| is_about_device(cell) && !state(analysis, cell).is_empty());
    let Some(why) = cells.first().map(|cell| state(analysis, cell).join(", ")) else { return Vec::new() };
    let cited = |cell: &CellRecord| cite(cell, "state of the array", state(analysis, cell).join(", "));
    let text = "A resync or check competes with the run for the members, and an array without one of them computes its data from the \
                others or has a copy less. The figures are those of this state, not of the healthy array.";
    let advice = "wait for the resync, or replace the member or path, and measure again (/proc/mdstat, lvs -a -o+sync_percent, \
                  dmsetup status)";
    let findings = RULE.about_any(&cells, "the array is degraded or busy with itself", text, cited, advice);
    let what = format!("{why}: {}", how_many(&cells));
    findings.into_iter().map(|finding| finding.effect(Stake::Figure, None, what.clone())).collect()
}

/// What an array does beside a cell is work of others to it, or work that its members do not seem to do.
fn is_about_device(cell: &CellRecord) -> bool {
    let code = cell.verdict.as_ref().map(|verdict| verdict.code);
    reached_device(cell) || matches!(code, Some(VerdictCode::Disturbed | VerdictCode::Unverified))
}

/// What is wrong with the arrays of a cell's targets, in words.
fn state(record: &Record, cell: &CellRecord) -> Vec<String> {
    let targets = cell.workload.targets.iter().filter_map(|&target| metrics::target(record, target));
    targets.filter_map(|target| target.device.as_ref()).flat_map(of_device).collect()
}

fn of_device(device: &Device) -> Vec<String> {
    let before: Vec<String> = device.arrays().flat_map(unrest).collect();
    let after = device.arrays_at_end.iter().flat_map(unrest).filter(|words| !before.contains(words));
    let at_end: Vec<String> = after.map(|words| format!("{words} at the end of the run")).collect();
    [before, at_end].concat()
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures;
    use rdsk_model::{ArrayFacts, IoPath, Op};

    fn on_array(activity: Option<&str>, degraded: u64) -> Record {
        let mut target = fixtures::disk();
        target.device.as_mut().unwrap().array = Some(ArrayFacts {
            device: "md0".into(),
            source: "md".into(),
            level: Some("raid1".into()),
            activity: activity.map(Into::into),
            degraded: Some(degraded),
            ..ArrayFacts::default()
        });
        let cell = fixtures::cell("c", Op::Read, IoPath::Direct, 4096, 10_000, 1_000_000_000);
        fixtures::record(vec![target], vec![cell])
    }

    #[test]
    fn fires_on_an_array_that_is_busy_or_lacks_a_member() {
        let busy = fires(RULE, &on_array(Some("resync"), 0));
        assert_eq!(
            busy.evidence,
            ["sequential direct 4K reads: state of the array = md0 is busy with a resync"]
        );
        assert_eq!(busy.effect.unwrap().text, "md0 is busy with a resync: sequential direct 4K reads");
        let lacks = fires(RULE, &on_array(Some("idle"), 1));
        assert_eq!(
            lacks.evidence,
            ["sequential direct 4K reads: state of the array = md0 is missing 1 of its members"]
        );
        fires(RULE, &on_array(None, 2));
        let mut paths = on_array(None, 1);
        let array = paths.targets[0].device.as_mut().unwrap().array.as_mut().unwrap();
        (array.device, array.level) = ("dm-0".into(), Some("multipath".into()));
        let failed = fires(RULE, &paths);
        assert_eq!(
            failed.evidence,
            ["sequential direct 4K reads: state of the array = a path of dm-0 has failed"]
        );
        let mut nested = on_array(Some("idle"), 0);
        let device = nested.targets[0].device.as_mut().unwrap();
        device.arrays_below =
            vec![ArrayFacts { device: "md1".into(), degraded: Some(1), ..ArrayFacts::default() }];
        let below = fires(RULE, &nested);
        assert_eq!(
            below.evidence,
            ["sequential direct 4K reads: state of the array = md1 is missing 1 of its members"]
        );
    }

    #[test]
    fn fires_on_an_array_that_is_otherwise_at_the_end() {
        let mut record = on_array(Some("idle"), 0);
        let device = record.targets[0].device.as_mut().unwrap();
        let at_end =
            ArrayFacts { activity: Some("check".into()), degraded: Some(1), ..device.array.clone().unwrap() };
        device.arrays_at_end = vec![at_end];
        let expected = "sequential direct 4K reads: state of the array = md0 is busy with a check at the end of the run, md0 is missing 1 of its members at the end of the run";
        assert_eq!(fires(RULE, &record).evidence, [expected]);
        // What the check reads is not the cell's.
        record.cells[0].verdict.as_mut().unwrap().code = VerdictCode::Disturbed;
        assert_eq!(fires(RULE, &record).evidence, [expected]);
        record.cells[0].verdict.as_mut().unwrap().code = VerdictCode::PageCache;
        silent(RULE, &record);
        // It was so before, and has ended.
        let mut ended = on_array(Some("resync"), 0);
        let device = ended.targets[0].device.as_mut().unwrap();
        device.arrays_at_end =
            vec![ArrayFacts { activity: Some("idle".into()), ..device.array.clone().unwrap() }];
        assert_eq!(
            fires(RULE, &ended).evidence,
            ["sequential direct 4K reads: state of the array = md0 is busy with a resync"]
        );
    }

    #[test]
    fn is_silent_on_a_whole_array_at_rest_and_on_a_disk() {
        silent(RULE, &on_array(Some("idle"), 0));
        silent(RULE, &on_array(None, 0));
        let cell = fixtures::cell("c", Op::Read, IoPath::Direct, 4096, 10_000, 1_000_000_000);
        silent(RULE, &fixtures::record(vec![fixtures::disk()], vec![cell]));
    }
}
