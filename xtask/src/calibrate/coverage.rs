//! Coverage: how often the 95 % interval of a cell of `rdsk run` holds the true rate, for each kind of noise. The true rate is
//! that of the same device without noise, times the mean pace.

use super::systems::{
    AR_90, AR_99, FLICKER, INDEPENDENT, LEVELS, LONG_STALLS, Luns, Noise, SHORT_STALLS, SINE, STEADY,
};
use super::table::{Table, percent, share};
use super::trials::{Campaign, Trial, median};
use anyhow::{Context as _, Result};
use rdsk_model::{Estimate, Record};
use std::collections::BTreeMap;
use std::ops::Range;

/// The cells that are judged, and what their columns are called. Others measure memory, or the page says that of them.
const HEADLINE: &[(&str, &str)] = &[
    ("headline/read/sequential", "read seq."),
    ("headline/read/random-qd1", "qd1"),
    ("headline/read/random-qd32", "qd32"),
    ("headline/write/sequential", "write seq."),
    ("headline/write/random-qd1", "qd1"),
    ("headline/write/random-qd32", "qd32"),
    ("headline/write/durable", "durable"),
];
const PASSES: &[(&str, &str)] = &[
    ("paths/read/direct", "read direct"),
    ("paths/read/buffered", "read buffered"),
    ("paths/write/direct", "write direct"),
];

/// The kinds of noise, and the wanted share of intervals that hold the truth.
const KINDS: &[(Noise, Option<f64>)] = &[
    (INDEPENDENT, Some(0.93)),
    (AR_90, Some(0.93)),
    (AR_99, Some(0.88)),
    (LEVELS, Some(0.9)),
    (SINE, Some(0.93)),
    (SHORT_STALLS, Some(0.85)),
    (LONG_STALLS, None),
    (FLICKER, None),
];

/// One run of a cell: its interval (low, high and mean, as shares of the truth), and whether a finding shows stalls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellRun {
    interval: Option<(f64, f64, f64)>,
    is_told: bool,
}

impl CellRun {
    fn holds(&self) -> bool {
        self.interval.is_some_and(|(low, high, _)| low <= 1.0 && 1.0 <= high)
    }
}

/// How many of the runs held the truth.
fn held(runs: &[CellRun]) -> usize {
    runs.iter().filter(|run| run.holds()).count()
}

/// The share that held the truth.
pub(crate) fn share_held(runs: &[CellRun]) -> f64 {
    share(held(runs), runs.len())
}

/// The share that held it, or whose page names stalls.
pub(crate) fn share_held_or_told(runs: &[CellRun]) -> f64 {
    share(runs.iter().filter(|run| run.holds() || run.is_told).count(), runs.len())
}

/// Runs the trials of one kind: the runs of each cell, by its id.
pub(crate) fn trial(
    campaign: &Campaign,
    noise: &Noise,
    seeds: &Range<u64>,
) -> Result<BTreeMap<&'static str, Vec<CellRun>>> {
    let rate = |record: &Record, id: &str| -> Option<Estimate> {
        record.cells.iter().find(|cell| cell.id == id)?.result.bytes_per_s
    };
    let steady = Trial::run(&campaign.system("steady", &Luns::memory(&STEADY))?).record(1)?;
    let truths = HEADLINE.iter().chain(PASSES).map(|&(id, _)| {
        let truth = rate(&steady, id).with_context(|| format!("a steady device has no rate for {id}"))?;
        Ok((id, truth.mean * noise.mean))
    });
    let truths: Vec<(&'static str, f64)> = truths.collect::<Result<_>>()?;
    let trial = Trial::run(&campaign.system("noisy", &Luns::memory(noise))?);
    let runs = trial.each(campaign, seeds, |record| {
        let interval = |&(id, truth): &(&'static str, f64)| {
            let rate = rate(record, id)?;
            Some((rate.low? / truth, rate.high? / truth, rate.mean / truth))
        };
        let is_told = record.findings.iter().any(|finding| finding.code == "stalls");
        truths.iter().map(|cell| CellRun { interval: interval(cell), is_told }).collect::<Vec<_>>()
    })?;
    let of_cell =
        |(at, &(id, _)): (usize, &(&'static str, f64))| (id, runs.iter().map(|cells| cells[at]).collect());
    Ok(truths.iter().enumerate().map(of_cell).collect())
}

/// The tables of the cells of the headline and of those of passes.
pub(crate) fn tables(campaign: &Campaign, seeds: &Range<u64>) -> Result<Vec<Table>> {
    let mut tables = [(HEADLINE, "the headline"), (PASSES, "`paths`, whose interval is over passes")].map(
        |(cells, what)| {
            let names = cells.iter().map(|(_, name)| *name);
            let tail = ["all", "wanted", "or said", "median ±", "median error"];
            let head = ["noise"].into_iter().chain(names).chain(tail);
            Table::new(&format!("Intervals of {what} that hold the truth, %"), head)
        },
    );
    for (noise, wanted) in KINDS {
        let covered = trial(campaign, noise, seeds)?;
        for (table, cells) in tables.iter_mut().zip([HEADLINE, PASSES]) {
            let cells: Vec<&Vec<CellRun>> = cells.iter().filter_map(|(id, _)| covered.get(id)).collect();
            let runs: Vec<CellRun> = cells.iter().flat_map(|runs| runs.iter().copied()).collect();
            let of_intervals = |figure: fn((f64, f64, f64)) -> f64| {
                percent(median(&runs.iter().filter_map(|run| run.interval.map(figure)).collect::<Vec<_>>()))
            };
            let mut row = vec![noise.name.to_owned()];
            row.extend(cells.iter().map(|runs| percent(share_held(runs))));
            row.push(format!("{} ({} of {})", percent(share_held(&runs)), held(&runs), runs.len()));
            row.push(wanted.map_or_else(|| "–".to_owned(), |wanted| format!("≥ {}", percent(wanted))));
            row.push(percent(share_held_or_told(&runs)));
            row.push(of_intervals(|(low, high, mean)| (high - low) / 2.0 / mean));
            row.push(of_intervals(|(_, _, mean)| (mean - 1.0).abs()));
            // Stalls that are rarer than the visits of a cell cannot be in its interval: then the page must name them.
            let share = if noise.mean < 1.0 { share_held_or_told(&runs) } else { share_held(&runs) };
            table.row(row, wanted.map(|wanted| share >= wanted));
        }
    }
    Ok(tables.into())
}
