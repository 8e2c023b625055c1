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
        [] => vec!["memory or holes answered, which says nothing of the device".into()],
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
    let bands = if zones.latency_bands.is_some() { ", and bands of I/Os beside the others" } else { "" };
    let of = Bytes(zones.block_bytes);
    if zones.differ() {
        let (fast, slow) = (zones.fastest(), zones.slowest());
        return format!(
            "{} zones by {of}: {} at {} to {} at {}, {}{bands}",
            zones.zones.len(),
            rate(fast.bytes_per_s),
            bytes(fast.begin_bytes),
            rate(slow.bytes_per_s),
            bytes(slow.begin_bytes),
            times(zones.factor())
        );
    }
    let end = |value: Option<f64>| Unit::MIB_PER_S.figure_or_missing(value);
    let shown = match zones.steps {
        Steps::Untold => "steps not told from time",
        Steps::Shared => "steps not told from other programs' work",
        Steps::Shown | Steps::OfOnePass => "no step of 5 % is sure",
        Steps::None => "no step shown",
    };
    format!(
        "{shown} at {} of {of} in {}: outer {}, inner {} MiB/s, scatter {}{bands}",
        plural(zones.positions.len() as u64, "position"),
        match zones.passes {
            0 => "no whole pass".to_owned(),
            1 => "1 pass".to_owned(),
            many => format!("{many} passes"),
        },
        end(zones.outer_bytes_per_s),
        end(zones.inner_bytes_per_s),
        zones.scatter.map_or_else(|| MISSING.into(), percent)
    )
}
