//! Trials of `rdsk compare`: two runs of the same noisy device, which differ only by chance, two of which the second is of a slower
//! device, and with `--repeat` pairs of runs of one device as both command lines.

use super::systems::{
    AR_90, AR_99, FLICKER, INDEPENDENT, LEVELS, LONG_STALLS, Luns, Noise, SHORT_STALLS, SINE, STEADY,
};
use super::table::{Table, percent, share};
use super::trials::{Campaign, Trial, median};
use anyhow::{Context as _, Result};
use rdsk_compare::{Answer, Change, Compared, Metric, compare, repeated};
use rdsk_experiment::PlanOptions;
use rdsk_model::{Experiment, Op, Record};
use std::ops::Range;

/// The most trials in which equal runs may be called different, and the fewest in which a slower one must be found.
const FALSE: f64 = 0.05;
const POWER: f64 = 0.95;
/// How much slower the device of the second run is.
pub(crate) const SLOWER: f64 = 1.0 / 0.95;
/// What each further run of a trial adds to the seed; no campaign has so many runs.
const OTHER_SEED: u64 = 1_000_000;
/// Time of each run of `compare --repeat`: `--budget 20s`; and its pairs of runs.
const REPEATED_BUDGET_NS: u64 = 20_000_000_000;
const REPEATED_PAIRS: [u64; 2] = [3, 6];

/// What one comparison says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) ratios: usize,
    /// Ratios whose 95 % interval does not hold 1.
    apart: usize,
    faster: usize,
    slower: usize,
    /// Cells whose rate is said to be slower, of all cells.
    slower_rates: (usize, usize),
    /// Half of the 95 % intervals of the rates, relative to the ratio.
    half_widths: Vec<f64>,
}

impl Outcome {
    fn of(compared: &Compared<'_>) -> Self {
        let changes = || compared.pairs.iter().flat_map(|pair| &pair.cells).flat_map(|cell| &cell.changes);
        let count = |is_it: &dyn Fn(&&Change) -> bool| changes().filter(is_it).count();
        let interval = |change: &Change| change.certainty.ok().map(|certainty| certainty.interval);
        let rates = || changes().filter(|change| change.metric == Metric::Rate);
        Self {
            ratios: compared.ratios,
            apart: count(&|change| interval(change).is_some_and(|(low, high)| low > 1.0 || high < 1.0)),
            faster: count(&|change| change.answer() == Answer::Faster),
            slower: count(&|change| change.answer() == Answer::Slower),
            slower_rates: (
                rates().filter(|change| change.answer() == Answer::Slower).count(),
                rates().count(),
            ),
            half_widths: rates().filter_map(interval).map(|(low, high)| (high / low).sqrt() - 1.0).collect(),
        }
    }

    /// Of two runs, compared as the program does.
    pub(crate) fn of_runs(base: &Record, other: &Record) -> Self {
        Self::of(&compare(base, &[other]))
    }
}

/// What the columns of [`row`] are, behind those that name the trial.
pub(crate) const HEAD: [&str; 6] = [
    "trials", "anything called different, %", "ratios", "interval without 1, %", "median ± of the rates, %",
    "wanted",
];

/// The trials in which anything is said to be faster or slower.
pub(crate) fn wrong(trials: &[Outcome]) -> usize {
    trials.iter().filter(|outcome| outcome.faster + outcome.slower > 0).count()
}

/// The trials in which something is said to be slower and nothing to be faster.
pub(crate) fn slower(trials: &[Outcome]) -> usize {
    trials.iter().filter(|outcome| outcome.slower > 0 && outcome.faster == 0).count()
}

fn width(trials: &[Outcome]) -> String {
    percent(median(&trials.iter().flat_map(|outcome| outcome.half_widths.clone()).collect::<Vec<f64>>()))
}

/// Adds the row of equal runs to a table.
pub(crate) fn row(table: &mut Table, names: &[&str], trials: &[Outcome]) {
    let sum = |count: fn(&Outcome) -> usize| trials.iter().map(count).sum::<usize>();
    let different = share(wrong(trials), trials.len());
    let figures = [
        trials.len().to_string(),
        format!("{} ({})", percent(different), wrong(trials)),
        sum(|outcome| outcome.ratios).to_string(),
        percent(share(sum(|outcome| outcome.apart), sum(|outcome| outcome.ratios))),
        width(trials),
        "≤ 5".to_owned(),
    ];
    let names = names.iter().map(|name| (*name).to_owned());
    table.row(names.chain(figures).collect(), Some(different <= FALSE));
}

/// Pairs of default runs of devices with this noise, the second one slower by each of these factors.
pub(crate) fn trials(
    campaign: &Campaign,
    noise: &Noise,
    factors: &[f64],
    seeds: &Range<u64>,
) -> Result<Vec<Vec<Outcome>>> {
    let system = |factor: f64| {
        let name = if factor > 1.0 { "slow" } else { "same" };
        campaign.system(name, &Luns::slower_memory(noise, factor)).map(|target| Trial::run(&target))
    };
    let base = system(1.0)?;
    let others = factors.iter().map(|&factor| system(factor)).collect::<Result<Vec<_>>>()?;
    let of_seeds: Vec<Vec<Outcome>> = campaign.each(seeds, |seed| {
        let record = base.record(seed)?;
        let second = seed.saturating_add(OTHER_SEED);
        others.iter().map(|other| Ok(Outcome::of_runs(&record, &other.record(second)?))).collect()
    })?;
    let of_factor = |factor: usize| of_seeds.iter().map(|outcomes| outcomes[factor].clone()).collect();
    Ok((0..factors.len()).map(of_factor).collect())
}

/// So many pairs of runs of equal devices with this noise in each trial, all with seeds of their own, each run a minute after the one
/// before it.
pub(crate) fn repeated_trials(
    campaign: &Campaign,
    noise: &Noise,
    pairs: u64,
    seeds: &Range<u64>,
) -> Result<Vec<Outcome>> {
    let trial = Trial {
        targets: vec![campaign.system("turn", &Luns::memory(noise))?],
        experiments: &[Experiment::Headline],
        options: PlanOptions {
            budget_ns: REPEATED_BUDGET_NS,
            ops: Some(vec![Op::Read]),
            ..PlanOptions::default()
        },
    };
    campaign.each(seeds, |seed| {
        let run = |place: u64| -> Result<Record> {
            let mut record = trial.record(seed.saturating_add(OTHER_SEED.saturating_mul(place)))?;
            record.started_at = format!("2026-01-01T10:{place:02}:00Z");
            Ok(record)
        };
        // The sides take turns: the first one has the even places.
        let side = |side| (0..pairs).map(|pair| run(2 * pair + side)).collect::<Result<Vec<_>>>();
        let (base, other) = (side(0)?, side(1)?);
        Ok(Outcome::of(&repeated(&base, &other).context("there are runs")?))
    })
}

/// Noises whose pairs are not compared with a slower device have a run for so many of the others.
const FEWER: u64 = 10;

/// The noises of which two runs are compared; whether with a slower device, too, and how often that must be found.
const KINDS: [(Noise, Option<Option<f64>>); 9] = [
    (STEADY, Some(Some(POWER))),
    (INDEPENDENT, Some(None)),
    (AR_90, Some(None)),
    (AR_99, None),
    (LEVELS, None),
    (SINE, None),
    (SHORT_STALLS, None),
    (LONG_STALLS, None),
    (FLICKER, None),
];

/// The tables of two runs.
pub(crate) fn tables(campaign: &Campaign, seeds: &Range<u64>) -> Result<Vec<Table>> {
    let mut equal = Table::new("Two runs of the same device", ["noise"].into_iter().chain(HEAD));
    let head =
        ["noise", "trials", "found slower, %", "tests found slower, %", "median ± of the rates, %", "wanted"];
    let mut unequal = Table::new("The second run of a device that is 5% slower", head);
    for (noise, looked_for) in KINDS {
        let factors: &[f64] = if looked_for.is_some() { &[1.0, SLOWER] } else { &[1.0] };
        let runs = seeds.end - seeds.start;
        let runs = if looked_for.is_some() { runs } else { runs.div_ceil(FEWER) };
        let trials = trials(campaign, &noise, factors, &(seeds.start..seeds.start + runs))?;
        row(&mut equal, &[noise.name], &trials[0]);
        if let (Some(trials), Some(wanted)) = (trials.get(1), looked_for) {
            let power = share(slower(trials), trials.len());
            let rates = |side: fn(&(usize, usize)) -> usize| {
                trials.iter().map(|outcome| side(&outcome.slower_rates)).sum::<usize>()
            };
            let figures = vec![
                noise.name.to_owned(),
                trials.len().to_string(),
                format!("{} ({})", percent(power), slower(trials)),
                percent(share(rates(|rates| rates.0), rates(|rates| rates.1))),
                width(trials),
                wanted.map_or_else(|| "–".into(), |wanted| format!("≥ {}", percent(wanted))),
            ];
            unequal.row(figures, wanted.map(|wanted| power >= wanted));
        }
    }
    Ok(vec![equal, unequal])
}

/// The table of command lines in turn.
pub(crate) fn repeated_tables(campaign: &Campaign, seeds: &Range<u64>) -> Result<Vec<Table>> {
    let head = ["noise", "pairs"].into_iter().chain(HEAD);
    let mut table = Table::new("The same device as both command lines", head);
    for noise in [STEADY, INDEPENDENT, AR_90, FLICKER] {
        for pairs in REPEATED_PAIRS {
            let trials = repeated_trials(campaign, &noise, pairs, seeds)?;
            row(&mut table, &[noise.name, &pairs.to_string()], &trials);
        }
    }
    Ok(vec![table])
}
