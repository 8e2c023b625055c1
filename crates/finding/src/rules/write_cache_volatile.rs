//! `write-cache-volatile`: plain direct writes stay in a device cache that loses its data when the power fails.

use super::common::{cells, cite, how_many, is_simulated};
use super::{Needs, Rule};
use rdsk_analysis::{Analysis, metrics};
use rdsk_model::{CellRecord, Experiment, Finding, IoPath, Op, Severity, Stake, Sync};
use rdsk_units::printable;

pub(super) const RULE: Rule = Rule::new("write-cache-volatile", Severity::Remark, Needs::Facts, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let is_volatile = |cell: &CellRecord| {
        metrics::first_device(analysis, cell).is_some_and(|device| {
            device.write_cache.as_deref() == Some("write back") && !device.only_array_claims_cache()
        })
    };
    let all = cells(analysis, |cell| {
        cell.workload.op == Op::Write
            && cell.workload.path == IoPath::Direct
            && cell.workload.sync == Sync::None
            && is_volatile(cell)
    });
    // The many cells of the align table add nothing when other cells show it.
    let others: Vec<&CellRecord> =
        all.iter().copied().filter(|cell| cell.experiment != Experiment::Align).collect();
    let cells = if others.is_empty() { all } else { others };
    let Some(first) = cells.first() else { return Vec::new() };
    let name =
        metrics::first_device(analysis, first).map_or_else(String::new, |device| printable(&device.name));
    let source = if is_simulated(analysis, first) { "" } else { "queue/" };
    let cited = |cell: &CellRecord| {
        let flushes =
            metrics::flushes(cell).map_or_else(|| "not counted".into(), |flushes| flushes.to_string());
        cite(cell, "flushes", format_args!("{flushes} for {} writes", cell.result.ops.unwrap_or(0)))
    };
    let text = format!(
        "{name} reports a volatile write cache. A direct write returns when that cache has the data; only a flush (fsync, \
         dsync) brings it to the medium. A power failure may lose what was written last."
    );
    let mut finding = RULE
        .about(&cells, "written, but not yet safe", text, cited)
        .inferred()
        .effect(
            Stake::Data,
            None,
            format!(
                "direct writes rest in the volatile cache of {name} until a flush: {}; a power failure may lose them",
                how_many(&cells)
            ),
        )
        .advice("compare with the dsync cells; a battery-backed cache should report write through");
    finding.evidence.insert(0, format!("{name}: {source}write_cache = write back"));
    vec![finding]
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{self, disk, make_durable, record, with};
    use rdsk_model::Layer;

    #[test]
    fn fires_on_plain_direct_writes_to_a_volatile_cache_only() {
        let plain = || fixtures::cell("p", Op::Write, IoPath::Direct, 4096, 5000, 500_000_000);
        let finding = fires(RULE, &record(vec![disk()], vec![plain()]));
        assert_eq!(
            finding.evidence,
            ["sda: queue/write_cache = write back", "p: flushes = 0 for 5000 writes"]
        );
        for cache in [Some("write through".to_owned()), None] {
            let mut target = disk();
            target.device.as_mut().unwrap().write_cache = cache;
            silent(RULE, &record(vec![target], vec![plain()]));
        }
        let array = |member: &str| {
            let mut target = disk();
            let device = target.device.as_mut().unwrap();
            let layer = |name: &str| Layer {
                name: name.into(),
                kind: "disk".into(),
                write_cache: Some(member.into()),
                ..Layer::default()
            };
            (device.kind, device.below) = (Some("md raid1".into()), vec![layer("sdb"), layer("sdc")]);
            record(vec![target], vec![plain()])
        };
        silent(RULE, &array("write through"));
        fires(RULE, &array("write back"));
        silent(RULE, &record(vec![disk()], vec![with(plain(), make_durable)]));
        let buffered = with(plain(), |cell| cell.workload.path = IoPath::Buffered);
        silent(RULE, &record(vec![disk()], vec![buffered]));
    }
}
