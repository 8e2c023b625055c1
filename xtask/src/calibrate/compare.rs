//! Trials of `rdsk compare`: two runs of the same noisy device, which differ only by chance, and two of which the second is of a
//! slower device.

use super::systems::{
    AR_90, AR_99, FLICKER, INDEPENDENT, LEVELS, LONG_STALLS, Luns, Noise, SHORT_STALLS, SINE, STEADY,
};
use super::table::{Table, percent, share};
use super::trials::{Campaign, Trial, median};
use anyhow::Result;
use rdsk_compare::{Answer, Change, Metric, compare};
use rdsk_model::Record;
use std::fmt;
use std::ops::Range;

/// The most trials in which equal runs may be called different, and the fewest in which a slower one must be found.
pub(crate) const FALSE: f64 = 0.05;
const POWER: f64 = 0.95;
/// How much slower the device of the second run is.
pub(crate) const SLOWER: f64 = 1.0 / 0.95;

/// What one comparison says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    ratios: usize,
    /// Ratios whose 95 % interval does not hold 1.
    apart: usize,
    faster: usize,
    slower: usize,
    /// Cells whose rate is said to be slower, of all cells.
    slower_rates: (usize, usize),
    /// Half of the 95 % intervals of the rates, relative to the ratio.
    half_widths: Vec<f64>,
}

/// Compares two runs as the program does.
pub(crate) fn seen(one: &Record, two: &Record) -> Seen {
    let compared = compare(one, &[two]);
    let changes = || compared.pairs.iter().flat_map(|pair| &pair.cells).flat_map(|cell| &cell.changes);
    let count = |is_it: &dyn Fn(&&Change) -> bool| changes().filter(is_it).count();
    let interval = |change: &Change| change.certainty.ok().map(|certainty| certainty.interval);
    let rates = || changes().filter(|change| change.metric == Metric::Rate);
    Seen {
        ratios: compared.ratios,
        apart: count(&|change| interval(change).is_some_and(|(low, high)| low > 1.0 || high < 1.0)),
        faster: count(&|change| change.answer() == Answer::Faster),
        slower: count(&|change| change.answer() == Answer::Slower),
        slower_rates: (rates().filter(|change| change.answer() == Answer::Slower).count(), rates().count()),
        half_widths: rates().filter_map(interval).map(|(low, high)| (high / low).sqrt() - 1.0).collect(),
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ratios, apart, faster, slower, .. } = self;
        write!(formatter, "{ratios} ratios: {apart} intervals without 1, {faster} faster, {slower} slower")
    }
}

/// Counts over trials.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trials {
    pub(crate) all: usize,
    /// Trials in which anything is said to be faster or slower.
    wrong: usize,
    /// Trials in which something is said to be slower and nothing to be faster.
    found: usize,
    ratios: usize,
    apart: usize,
    slower_rates: (usize, usize),
    half_widths: Vec<f64>,
}

/// What the columns of [`Trials::figures`] are.
pub(crate) const HEAD: [&str; 5] =
    ["trials", "anything called different, %", "ratios", "interval without 1, %", "median ± of the rates, %"];

impl Trials {
    pub(crate) fn add(&mut self, seen: &Seen) {
        self.all += 1;
        self.wrong += usize::from(seen.faster + seen.slower > 0);
        self.found += usize::from(seen.slower > 0 && seen.faster == 0);
        self.ratios += seen.ratios;
        self.apart += seen.apart;
        self.slower_rates.0 += seen.slower_rates.0;
        self.slower_rates.1 += seen.slower_rates.1;
        self.half_widths.extend(&seen.half_widths);
    }

    /// The share of trials in which anything is called different.
    pub(crate) fn different(&self) -> f64 {
        share(self.wrong, self.all)
    }

    /// The share in which the slower device is found.
    pub(crate) fn power(&self) -> f64 {
        share(self.found, self.all)
    }

    /// Counts and shares, for a table.
    pub(crate) fn figures(&self) -> [String; 5] {
        [
            self.all.to_string(),
            format!("{} ({})", percent(self.different()), self.wrong),
            self.ratios.to_string(),
            percent(share(self.apart, self.ratios)),
            percent(median(&self.half_widths)),
        ]
    }
}

/// Pairs of default runs of devices with this noise, the second one slower by each of these factors.
pub(crate) fn trials(
    campaign: &Campaign,
    noise: &Noise,
    factors: &[f64],
    seeds: &Range<u64>,
) -> Result<Vec<Trials>> {
    let system = |factor: f64| {
        let name = if factor > 1.0 { "slow" } else { "same" };
        campaign.system(name, &Luns::slower_memory(noise, factor)).map(|target| Trial::run(&target))
    };
    let others = factors.iter().map(|&factor| system(factor)).collect::<Result<Vec<_>>>()?;
    let all = system(1.0)?.each_pair(&others, seeds.clone(), &campaign.interrupted, seen)?;
    let mut trials = vec![Trials::default(); factors.len()];
    for pairs in &all {
        trials.iter_mut().zip(pairs).for_each(|(trials, seen)| trials.add(seen));
    }
    Ok(trials)
}

/// Noises whose pairs are not compared with a slower device have a run for so many of the others.
const FEWER: u64 = 10;

/// The noises of which two runs are compared, and how often the slower device is to be found, where it is looked for.
const KINDS: [(Noise, Option<Wanted>); 9] = [
    (STEADY, Some(Wanted(Some(POWER)))),
    (INDEPENDENT, Some(Wanted(None))),
    (AR_90, Some(Wanted(None))),
    (AR_99, None),
    (LEVELS, None),
    (SINE, None),
    (SHORT_STALLS, None),
    (LONG_STALLS, None),
    (FLICKER, None),
];

/// The share of trials in which a slower device must be found; none where it is only reported.
#[derive(Clone, Copy)]
struct Wanted(Option<f64>);

/// The tables of simulated devices.
pub(crate) fn tables(campaign: &Campaign, seeds: &Range<u64>) -> Result<Vec<Table>> {
    let head = ["noise"].into_iter().chain(HEAD).chain(["wanted"]).map(str::to_owned).collect();
    let mut equal = Table::new("Two runs of the same device".into(), head);
    let head =
        ["noise", "trials", "found slower, %", "cells found slower, %", "median ± of the rates, %", "wanted"];
    let mut unequal =
        Table::new("The second run of a device that is 5 % slower".into(), head.map(str::to_owned).into());
    for (noise, slower) in KINDS {
        if campaign.is_interrupted() {
            break;
        }
        let factors: &[f64] = if slower.is_some() { &[1.0, SLOWER] } else { &[1.0] };
        let runs = seeds.end - seeds.start;
        let runs = if slower.is_some() { runs } else { runs.div_ceil(FEWER) };
        let found = trials(campaign, &noise, factors, &(seeds.start..seeds.start + runs))?;
        let mut row = vec![noise.name.to_owned()];
        row.extend(found[0].figures());
        row.push("≤ 5".into());
        equal.row(row, Some(found[0].different() <= FALSE));
        println!("{}", equal.last_line());
        if let (Some(trials), Some(Wanted(wanted))) = (found.get(1), slower) {
            unequal.row(slower_row(&noise, trials, wanted), wanted.map(|wanted| trials.power() >= wanted));
            println!("{}", unequal.last_line());
        }
    }
    Ok(vec![equal, unequal])
}

fn slower_row(noise: &Noise, trials: &Trials, wanted: Option<f64>) -> Vec<String> {
    vec![
        noise.name.to_owned(),
        trials.all.to_string(),
        format!("{} ({})", percent(trials.power()), trials.found),
        percent(share(trials.slower_rates.0, trials.slower_rates.1)),
        percent(median(&trials.half_widths)),
        wanted.map_or_else(|| "–".into(), |wanted| format!("≥ {}", percent(wanted))),
    ]
}
