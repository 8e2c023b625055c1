//! Trials of `rdsk compare --repeat`: runs of one noisy device as both command lines, in pairs, which differ only by chance. Each figure is
//! counted for itself, since a percentile is read from buckets and a rate is not.

use super::compare::FALSE;
use super::systems::{AR_90, FLICKER, INDEPENDENT, Luns, Noise, STEADY};
use super::table::{Table, percent, share};
use super::trials::{Campaign, Trial};
use anyhow::Result;
use rdsk_compare::{Answer, Metric, repeated};
use rdsk_experiment::PlanOptions;
use rdsk_model::{Experiment, Op, Record};
use std::ops::Range;

/// Time of each run: `--budget 20s`.
const BUDGET_NS: u64 = 20_000_000_000;
/// Pairs of a trial.
const PAIRS: [usize; 2] = [3, 6];

/// What one comparison says of one figure, over all cells: ratios, those whose interval does not hold 1, and those called different.
type Counts = [usize; 3];

/// What the comparison of two lists of runs says of each figure.
pub(crate) fn seen(base: &[Record], other: &[Record]) -> [Counts; 3] {
    let Some(compared) = repeated(base, other) else { return Default::default() };
    Metric::ALL.map(|metric| {
        let mut counts = Counts::default();
        let cells = compared.pairs.iter().flat_map(|pair| &pair.cells);
        for change in cells.filter_map(|cell| cell.of(metric)) {
            let Ok(certainty) = change.certainty else { continue };
            let (low, high) = certainty.interval;
            counts[0] += 1;
            counts[1] += usize::from(low > 1.0 || high < 1.0);
            counts[2] += usize::from(change.answer() != Answer::NoDifferenceSeen);
        }
        counts
    })
}

/// Counts over trials.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trials {
    all: usize,
    /// Trials in which anything is called different.
    pub(crate) wrong: usize,
    by_metric: [Counts; 3],
}

impl Trials {
    fn add(&mut self, seen: &[Counts; 3]) {
        self.all += 1;
        self.wrong += usize::from(seen.iter().any(|counts| counts[2] > 0));
        for (sums, counts) in self.by_metric.iter_mut().zip(seen) {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }

    /// The ratios that were judged.
    pub(crate) fn ratios(&self) -> usize {
        self.by_metric.iter().map(|counts| counts[0]).sum()
    }
}

/// Equal devices with this noise, so many pairs of runs in each trial.
pub(crate) fn trials(campaign: &Campaign, noise: &Noise, pairs: usize, seeds: &Range<u64>) -> Result<Trials> {
    let trial = Trial {
        targets: vec![campaign.system("turn", &Luns::memory(noise))?],
        experiments: &[Experiment::Headline],
        options: PlanOptions { budget_ns: BUDGET_NS, ops: Some(vec![Op::Read]), ..PlanOptions::default() },
    };
    let mut sums = Trials::default();
    for seen in trial.each_in_turn(pairs, seeds.clone(), &campaign.interrupted, seen)? {
        sums.add(&seen);
    }
    Ok(sums)
}

/// The table of simulated devices.
pub(crate) fn tables(campaign: &Campaign, seeds: &Range<u64>) -> Result<Vec<Table>> {
    let head = ["noise", "pairs", "trials", "anything called different, %", "ratios"].map(str::to_owned);
    let mut head = head.to_vec();
    for metric in Metric::ALL {
        head.push(format!("{metric}: interval without 1, %", metric = metric.as_str()));
        head.push(format!("{metric}: called different, %", metric = metric.as_str()));
    }
    head.push("wanted".into());
    let mut table = Table::new("The same device as both command lines".into(), head);
    for noise in [STEADY, INDEPENDENT, AR_90, FLICKER] {
        for pairs in PAIRS {
            if campaign.is_interrupted() {
                return Ok(vec![table]);
            }
            let found = trials(campaign, &noise, pairs, seeds)?;
            let different = share(found.wrong, found.all);
            let mut row = vec![noise.name.to_owned(), pairs.to_string(), found.all.to_string()];
            row.extend([format!("{} ({})", percent(different), found.wrong), found.ratios().to_string()]);
            for [ratios, apart, called] in found.by_metric {
                row.extend([percent(share(apart, ratios)), percent(share(called, ratios))]);
            }
            row.push("≤ 5".into());
            table.row(row, Some(different <= FALSE));
            println!("{}", table.last_line());
        }
    }
    Ok(vec![table])
}
