//! Coverage: how often the 95 % interval of a cell of `rdsk run` holds the true rate, for each kind of noise. The true rate is
//! that of the same device without noise, times the mean pace.

use super::systems::{
    AR_90, AR_99, FLICKER, INDEPENDENT, LEVELS, LONG_STALLS, Luns, Noise, SHORT_STALLS, SINE, STEADY,
};
use super::table::{Table, percent, share};
use super::trials::{Campaign, Trial, median};
use anyhow::{Context as _, Result};
use rdsk_model::Record;
use std::collections::BTreeMap;
use std::ops::Range;

/// The cells that are judged, and what their columns are called. Others measure memory, or the page says that of them.
pub(crate) const HEADLINE: &[(&str, &str)] = &[
    ("headline/read/sequential", "read seq."),
    ("headline/read/random-qd1", "qd1"),
    ("headline/read/random-qd32", "qd32"),
    ("headline/write/sequential", "write seq."),
    ("headline/write/random-qd1", "qd1"),
    ("headline/write/random-qd32", "qd32"),
    ("headline/write/durable", "durable"),
];
pub(crate) const PASSES: &[(&str, &str)] = &[
    ("paths/read/direct", "read direct"),
    ("paths/read/buffered", "read buffered"),
    ("paths/write/direct", "write direct"),
];

/// The kinds of noise, and the wanted share of intervals that hold the truth.
pub(crate) const KINDS: &[(Noise, Option<f64>)] = &[
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

/// One interval: low, high and mean, as a share of the truth.
type Seen = Option<(f64, f64, f64)>;

/// Runs the trials of one kind and counts, by the cell's id.
pub(crate) fn trial(
    campaign: &Campaign,
    noise: &Noise,
    seeds: &Range<u64>,
) -> Result<BTreeMap<&'static str, Covered>> {
    let truth = rates(&Trial::run(&campaign.system("steady", &Luns::memory(&STEADY))?).record(1)?);
    let cells: Vec<&'static str> = HEADLINE.iter().chain(PASSES).map(|(id, _)| *id).collect();
    for id in &cells {
        truth.get(*id).with_context(|| format!("a steady device has no rate for {id}"))?;
    }
    let trial = Trial::run(&campaign.system("noisy", &Luns::memory(noise))?);
    let seen = trial.each(seeds.clone(), &campaign.interrupted, |record| {
        let of = |id: &&'static str| -> (&'static str, Seen) {
            let cell = record.cells.iter().find(|cell| cell.id == *id);
            let rate = cell.and_then(|cell| cell.result.bytes_per_s);
            let truth = truth[*id] * noise.mean;
            let interval =
                rate.and_then(|rate| Some((rate.low? / truth, rate.high? / truth, rate.mean / truth)));
            (*id, interval)
        };
        let told = record.findings.iter().any(|finding| finding.code == "stalls");
        (cells.iter().map(of).collect::<Vec<_>>(), told)
    })?;
    let mut all: BTreeMap<&'static str, Covered> = BTreeMap::new();
    for (cells, told) in seen {
        for (id, seen) in cells {
            let one = all.entry(id).or_default();
            one.runs += 1;
            let held = seen.is_some_and(|(low, high, _)| low <= 1.0 && 1.0 <= high);
            one.held += usize::from(held);
            one.told += usize::from(!held && told);
            if let Some((low, high, mean)) = seen {
                one.half_widths.push((high - low) / 2.0 / mean);
                one.errors.push((mean - 1.0).abs());
            }
        }
    }
    Ok(all)
}

/// The mean rate of every cell that has one.
fn rates(record: &Record) -> BTreeMap<String, f64> {
    let rate = |cell: &rdsk_model::CellRecord| Some((cell.id.clone(), cell.result.bytes_per_s?.mean));
    record.cells.iter().filter_map(rate).collect()
}

/// All cells of one kind together.
pub(crate) fn pooled<'a>(all: impl Iterator<Item = &'a Covered>) -> Covered {
    let mut sum = Covered::default();
    for one in all {
        sum.runs += one.runs;
        sum.held += one.held;
        sum.told += one.told;
        sum.half_widths.extend(&one.half_widths);
        sum.errors.extend(&one.errors);
    }
    sum
}

impl Covered {
    /// The share that held the truth.
    pub(crate) fn share(&self) -> f64 {
        share(self.held, self.runs)
    }

    /// The share that held it, or whose page told of stalls.
    pub(crate) fn held_or_told(&self) -> f64 {
        share(self.held + self.told, self.runs)
    }
}

/// The tables of the cells of the headline and of those of passes.
pub(crate) fn tables(campaign: &Campaign, seeds: &Range<u64>) -> Result<Vec<Table>> {
    let mut tables = [(HEADLINE, "the headline"), (PASSES, "`paths`, whose interval is over passes")].map(
        |(cells, what)| {
            let names = cells.iter().map(|(_, name)| (*name).to_owned());
            let head = ["noise".to_owned()].into_iter().chain(names);
            let tail = ["all", "wanted", "or said", "median ±", "median error"].map(str::to_owned);
            Table::new(format!("Intervals of {what} that hold the truth, %"), head.chain(tail).collect())
        },
    );
    for (noise, wanted) in KINDS {
        if campaign.is_interrupted() {
            break;
        }
        let all = trial(campaign, noise, seeds)?;
        for (table, cells) in tables.iter_mut().zip([HEADLINE, PASSES]) {
            let of = cells.iter().filter_map(|(id, _)| all.get(id));
            let sum = pooled(of.clone());
            let mut row = vec![noise.name.to_owned()];
            row.extend(of.map(|one| percent(one.share())));
            row.push(format!("{} ({} of {})", percent(sum.share()), sum.held, sum.runs));
            row.push(wanted.map_or_else(|| "–".to_owned(), |wanted| format!("≥ {}", percent(wanted))));
            row.push(percent(sum.held_or_told()));
            row.push(percent(median(&sum.half_widths)));
            row.push(percent(median(&sum.errors)));
            // Stalls that are rarer than the visits of a cell cannot be in its interval: then the page must tell of them.
            let found = if noise.mean < 1.0 { sum.held_or_told() } else { sum.share() };
            table.row(row, wanted.map(|wanted| found >= wanted));
        }
        tables.iter().for_each(|table| println!("{}", table.last_line()));
    }
    Ok(tables.into())
}
