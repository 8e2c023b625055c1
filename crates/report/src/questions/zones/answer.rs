//! `zones`: whether the speed depends on the position, and between which rates.

use crate::cells::{self, target_name};
use rdsk_analysis::groups::by_key;
use rdsk_analysis::metrics::is_of_memory;
use rdsk_analysis::words::plural;
use rdsk_analysis::zones::Zones;
use rdsk_analysis::{Analysis, groups};
use rdsk_model::{CellRecord, Experiment, Op};

pub(crate) fn answer(analysis: &Analysis<'_>) -> Vec<String> {
    let measured: Vec<(&CellRecord, &Zones)> = cells::of_experiment(analysis, Experiment::Zones)
        .filter(|cell| !is_of_memory(cell))
        .filter_map(|cell| Some((cell, analysis.zones(cell)?)))
        .collect();
    let ops = groups::distinct(measured.iter().map(|(cell, _)| cell.workload.op));
    let key = |cell: &CellRecord| (cell.workload.targets.clone(), cell.workload.op);
    let best = by_key(measured.iter().map(|entry| (key(entry.0), *entry)))
        .into_iter()
        .filter_map(|(_, of_one)| super::bars::clearest(of_one.into_iter()));
    let texts: Vec<String> = best
        .map(|(cell, zones)| {
            let target = target_name(analysis, cell).map_or_else(String::new, |name| format!("{name}: "));
            let op = if ops.len() > 1 { format!("{}s: ", op_of(cell)) } else { String::new() };
            format!("{target}{op}{}", words(cell, zones))
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

fn words(cell: &CellRecord, zones: &Zones) -> String {
    let is_limited = super::bars::is_limited(cell);
    let bands = if zones.latency_bands.is_some() && !is_limited { "; some I/Os in slower bands" } else { "" };
    format!("{}{bands}", super::bars::sentence(cell, zones))
}
