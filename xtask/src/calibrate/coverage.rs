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

/// How often a cell's interval held the truth.
#[derive(Clone, Debug, Default)]
pub(crate) struct Covered {
    runs: usize,
    held: usize,
    /// Runs in which it did not hold it, or had none, and a finding told of stalls.
    told: usize,
    half_widths: Vec<f64>,
    /// Distances of the means from the truth, as a share of it.
    errors: Vec<f64>,
}

impl Covered {
    /// Adds an interval (low, high and mean, as shares of the truth), and whether a finding told of stalls.
    fn add(&mut self, interval: Option<(f64, f64, f64)>, is_told: bool) {
        let held = interval.is_some_and(|(low, high, _)| low <= 1.0 && 1.0 <= high);
        self.runs += 1;
        self.held += usize::from(held);
        self.told += usize::from(!held && is_told);
        if let Some((low, high, mean)) = interval {
            self.half_widths.push((high - low) / 2.0 / mean);
            self.errors.push((mean - 1.0).abs());
        }
    }

    /// Several cells together.
    pub(crate) fn pooled<'a>(cells: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        for cell in cells {
            sum.runs += cell.runs;
            sum.held += cell.held;
            sum.told += cell.told;
            sum.half_widths.extend(&cell.half_widths);
            sum.errors.extend(&cell.errors);
        }
        sum
    }

    /// The share that held the truth.
    pub(crate) fn share(&self) -> f64 {
        share(self.held, self.runs)
    }

    /// The share that held it, or whose page told of stalls.
    pub(crate) fn held_or_told(&self) -> f64 {
        share(self.held + self.told, self.runs)
    }
}

/// Runs the trials of one kind and counts, by the cell's id.
pub(crate) fn trial(
    campaign: &Campaign,
    noise: &Noise,
    seeds: &Range<u64>,
) -> Result<BTreeMap<&'static str, Covered>> {
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
        (truths.iter().map(interval).collect::<Vec<_>>(), is_told)
    })?;
    let mut cells: BTreeMap<&'static str, Covered> = BTreeMap::new();
    for (intervals, is_told) in runs {
        for ((id, _), interval) in truths.iter().zip(intervals) {
            cells.entry(*id).or_default().add(interval, is_told);
        }
    }
    Ok(cells)
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
            let cells: Vec<&Covered> = cells.iter().filter_map(|(id, _)| covered.get(id)).collect();
            let sum = Covered::pooled(cells.iter().copied());
            let mut row = vec![noise.name.to_owned()];
            row.extend(cells.iter().map(|cell| percent(cell.share())));
            row.push(format!("{} ({} of {})", percent(sum.share()), sum.held, sum.runs));
            row.push(wanted.map_or_else(|| "–".to_owned(), |wanted| format!("≥ {}", percent(wanted))));
            row.push(percent(sum.held_or_told()));
            row.push(percent(median(&sum.half_widths)));
            row.push(percent(median(&sum.errors)));
            // Stalls that are rarer than the visits of a cell cannot be in its interval: then the page must tell of them.
            let share = if noise.mean < 1.0 { sum.held_or_told() } else { sum.share() };
            table.row(row, wanted.map(|wanted| share >= wanted));
        }
    }
    Ok(tables.into())
}
