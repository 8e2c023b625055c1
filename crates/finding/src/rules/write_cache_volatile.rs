//! `write-cache-volatile`: plain direct writes stay in a device cache that loses its data when the power fails.

use super::prelude::*;

pub(super) const RULE: Rule = Rule::new("write-cache-volatile", Severity::Cause, Needs::Facts, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let is_volatile = |cell: &CellRecord| !volatile(analysis, cell).is_empty();
    let volatile_cells = cells(analysis, |cell| {
        cell.workload.op == Op::Write
            && cell.workload.path == IoPath::Direct
            && cell.workload.sync == Sync::None
            && is_volatile(cell)
    });
    // The many cells of the align table add nothing when other cells show it.
    let others: Vec<&CellRecord> =
        volatile_cells.iter().copied().filter(|cell| cell.experiment != Experiment::Align).collect();
    let cells = if others.is_empty() { volatile_cells } else { others };
    let Some(first) = cells.first() else { return Vec::new() };
    let names = volatile(analysis, first);
    let name = words::list(&names);
    let (reports, cache) = match names.len() {
        1 => (format!("{name} reports a volatile write cache."), "cache"),
        _ => (format!("{name} report volatile write caches."), "caches"),
    };
    let source = if is_simulated(analysis, first) { "" } else { "queue/" };
    let cited = |cell: &CellRecord| {
        let flushes =
            metrics::flushes(cell).map_or_else(|| "not counted".into(), |flushes| flushes.to_string());
        cite(cell, "flushes", format_args!("{flushes} for {} writes", writes_of(cell)))
    };
    let text = format!(
        "{reports} A direct write returns when the cache has the data, and a power failure loses what no flush (fsync, O_DSYNC) has sent to \
         the medium."
    );
    let mut finding = RULE
        .about(&cells, "acknowledged writes can be lost", text, cited)
        .inferred()
        .effect(
            Stake::Data,
            None,
            format!(
                "a power cut can lose acknowledged writes of {}: volatile {cache} in {name}, only sync writes are safe",
                how_many(&cells)
            ),
        )
        .advice("use fsync or O_DSYNC for what must survive; a battery-backed cache should report write through");
    finding.evidence.insert(0, format!("{name}: {source}write_cache = write back"));
    vec![finding]
}

/// The writes of a cell; of a load, those of its jobs.
fn writes_of(cell: &CellRecord) -> u64 {
    let jobs = &cell.result.jobs;
    if jobs.is_empty() {
        return cell.result.ops.unwrap_or(0);
    }
    jobs.iter().filter_map(|job| job.writes.as_ref()).map(|kind| kind.ops).sum()
}

/// The devices below a cell whose caches are volatile: of a filesystem that lies on several, all of these.
fn volatile(record: &Record, cell: &CellRecord) -> Vec<String> {
    let Some(target) = metrics::first_target(record, cell) else { return Vec::new() };
    let first = target.device.iter().filter(|device| device.has_volatile_cache()).map(|device| &device.name);
    let others = target.other_devices.iter().filter(|layer| layer.has_volatile_cache());
    first.chain(others.map(|layer| &layer.name)).map(|name| printable(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{self, disk, make_durable, record, with};
    use rdsk_model::Layer;

    #[test]
    fn fires_on_plain_direct_writes_to_a_volatile_cache_only() {
        let plain = || fixtures::cell("p", Op::Write, IoPath::Direct, 4096, 5000, 500_000_000);
        let finding = fires(RULE, &record(vec![disk()], vec![plain()]));
        assert_eq!(
            finding.evidence,
            [
                "sda: queue/write_cache = write back",
                "sequential direct 4K writes: flushes = 0 for 5000 writes"
            ]
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
        // btrfs over three disks: each of them holds a part of what was written.
        let mut spread = fixtures::file();
        let layer = |name: &str, cache: &str| Layer {
            name: name.into(),
            kind: "disk".into(),
            write_cache: Some(cache.into()),
            ..Layer::default()
        };
        spread.other_devices =
            vec![layer("sdb", "write back"), layer("sdc", "write through"), layer("sdd", "write back")];
        let finding = fires(RULE, &record(vec![spread], vec![plain()]));
        assert!(
            finding.text.starts_with("sda, sdb and sdd report volatile write caches."),
            "{}",
            finding.text
        );
        assert!(finding.effect.unwrap().text.contains(": volatile caches in sda, sdb and sdd, only"));
        silent(RULE, &array("write through"));
        fires(RULE, &array("write back"));
        silent(RULE, &record(vec![disk()], vec![with(plain(), make_durable)]));
        let buffered = with(plain(), |cell| cell.workload.path = IoPath::Buffered);
        silent(RULE, &record(vec![disk()], vec![buffered]));
    }
}
