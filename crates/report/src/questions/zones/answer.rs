//! `zones`: whether the speed depends on the position, and between which rates.

use crate::cells::{self, target_name};
use crate::figures::{MISSING, Unit};
use rdsk_analysis::groups::by_key;
use rdsk_analysis::metrics::is_of_memory;
use rdsk_analysis::words::{bytes, plural, rate, times};
use rdsk_analysis::zones::{Steps, Zones};
use rdsk_analysis::{Analysis, groups};
use rdsk_model::{CellRecord, Experiment, Op};
use rdsk_units::{Bytes, percent};

pub(crate) fn answer(analysis: &Analysis<'_>) -> Vec<String> {
    let seen: Vec<(&CellRecord, &Zones)> = cells::of(analysis, Experiment::Zones)
        .filter(|cell| !is_of_memory(cell))
        .filter_map(|cell| Some((cell, analysis.zones(cell)?)))
        .collect();
    let ops = groups::distinct(seen.iter().map(|(cell, _)| cell.workload.op));
    let key = |cell: &CellRecord| (cell.workload.targets.clone(), cell.workload.op);
    let best = by_key(seen.iter().map(|one| (key(one.0), *one)))
        .into_iter()
        .filter_map(|(_, of_one)| of_one.into_iter().min_by(|one, other| one.1.by_clearness(other.1)));
    let texts: Vec<String> = best
        .map(|(cell, zones)| {
            let target = target_name(analysis, cell).map_or_else(String::new, |name| format!("{name}: "));
            let op = if ops.len() > 1 { format!("{}s: ", op_of(cell)) } else { String::new() };
            format!("{target}{op}{}", words(zones))
        })
        .collect();
    match &texts[..] {
        [] => vec!["RAM or unallocated blocks answered, not the device".into()],
        [_] => texts,
        [first, others @ ..] => vec![
            texts.join("; "),
            format!("{first}; {} more: --details", plural(others.len() as u64, "target")),
        ],
    }
}

fn op_of(cell: &CellRecord) -> Op {
    cell.workload.op
}

fn words(zones: &Zones) -> String {
    let bands = if zones.latency_bands.is_some() { "; some I/Os in slower bands" } else { "" };
    let of = Bytes(zones.block_bytes);
    if zones.differ() {
        let (fast, slow) = (zones.fastest(), zones.slowest());
        return format!(
            "{} from {} at {} to {} at {} ({} zones, {of} blocks){bands}",
            times(zones.factor()),
            rate(fast.bytes_per_s),
            bytes(fast.begin_bytes),
            rate(slow.bytes_per_s),
            bytes(slow.begin_bytes),
            zones.zones.len(),
        );
    }
    if zones.passes == 0 || zones.positions.len() < 2 {
        let positions = plural(zones.positions.len() as u64, "position");
        return format!("ran out of budget: no whole sweep, {positions} measured");
    }
    let end = |value: Option<f64>| Unit::MIB_PER_S.figure_or_missing(value);
    let shown = match zones.steps {
        Steps::Untold => "zones not separable from changes over time",
        Steps::Shared => "zones not separable from other I/O",
        Steps::Shown | Steps::OfOnePass => "no zones: steps below 5%",
        Steps::None => "no zones seen",
    };
    format!(
        "{shown} at {} ({of} blocks, {}): first {} MiB/s, last {} MiB/s, scatter between sweeps {}{bands}",
        plural(zones.positions.len() as u64, "position"),
        match zones.passes {
            1 => "1 sweep".to_owned(),
            many => format!("{many} sweeps"),
        },
        end(zones.outer_bytes_per_s),
        end(zones.inner_bytes_per_s),
        zones.scatter.map_or_else(|| MISSING.into(), percent)
    )
}
