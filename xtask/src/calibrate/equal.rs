//! A/A trials: two equal LUNs measured in one run, and two of which one is slower, compared as a page compares them: by the ratio of
//! their rates over the rounds that both had.

use super::systems::{AR_90, AR_99, INDEPENDENT, LEVELS, Luns};
use super::table::{Table, percent, share};
use super::trials::{Campaign, Trial, median};
use anyhow::Result;
use rdsk_analysis::Analysis;
use rdsk_analysis::comparison::{Kind, Ratio};
use rdsk_experiment::PlanOptions;
use rdsk_model::{Experiment, Op, Record};
use std::ops::Range;

/// The most pairs of equal LUNs that may be called different, and the fewest of unequal ones.
const FALSE: f64 = 0.01;
const POWER: f64 = 0.9;
/// How much slower the second of two unequal LUNs is.
const SLOWER: f64 = 1.1;

/// What the columns of [`row`] are, behind those that name the trial.
pub(crate) const HEAD: [&str; 6] = [
    "pairs of tests", "interval without 1, %", "after correction, %", "called different, %", "wanted",
    "median ±, %",
];

/// Adds the row of these ratios to a table: those whose 95 % interval does not hold 1, the same corrected for the number of cells
/// compared in the run, and those that the page calls different; `judge` says whether their share holds what is wanted.
pub(crate) fn row(
    table: &mut Table,
    names: &[&str],
    ratios: &[Ratio],
    wanted: &str,
    judge: impl Fn(f64) -> Option<bool>,
) {
    let count = |is_it: fn(&Ratio) -> bool| ratios.iter().filter(|ratio| is_it(ratio)).count();
    let counts = [
        count(|ratio| ratio.low > 1.0 || ratio.high < 1.0),
        count(Ratio::is_sure),
        count(Ratio::is_different),
    ];
    let half_widths: Vec<f64> =
        ratios.iter().map(|ratio| (ratio.high - ratio.low) / 2.0 / ratio.mean).collect();
    let mut row: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    row.push(ratios.len().to_string());
    row.extend(counts.map(|count| format!("{} ({count})", percent(share(count, ratios.len())))));
    row.extend([wanted.to_owned(), percent(median(&half_widths))]);
    table.row(row, judge(share(counts[2], ratios.len())));
}

/// The ratios of the cells that two targets of a run have in common, as its page compares them.
pub(crate) fn ratios(record: &Record) -> Vec<Ratio> {
    let analysis = Analysis::of(record);
    analysis.comparisons(Kind::Targets).filter_map(|comparison| comparison.ratio.ok()).collect()
}

/// The ratios of runs of the headline's reads on two LUNs.
pub(crate) fn trial(campaign: &Campaign, luns: &Luns, seeds: &Range<u64>) -> Result<Vec<Ratio>> {
    let system = campaign.system("pair", luns)?;
    let trial = Trial {
        targets: vec![format!("{system}/0"), format!("{system}/1")],
        experiments: &[Experiment::Headline],
        options: PlanOptions { ops: Some(vec![Op::Read]), ..PlanOptions::default() },
    };
    Ok(trial.each(campaign, seeds, ratios)?.concat())
}

/// The table of simulated LUNs.
pub(crate) fn tables(campaign: &Campaign, seeds: &Range<u64>) -> Result<Vec<Table>> {
    let title = "Two simulated LUNs in one run of the headline's reads. After correction: the ratio of the rounds is not 1, with a \
                 chance of 5% for all comparisons of the run (Holm). Called different: the same with a chance of 3%";
    let mut table = Table::new(title, ["LUNs", "noise"].into_iter().chain(HEAD));
    for (factor, common) in [(1.0, true), (1.0, false), (SLOWER, true), (SLOWER, false)] {
        for noise in [INDEPENDENT, AR_90, AR_99, LEVELS] {
            let ratios = trial(campaign, &Luns::pair(&noise, common, factor), seeds)?;
            let is_equal = factor <= 1.0;
            // A difference that is smaller than what the noise leaves open cannot be found.
            let is_findable = !is_equal && noise == INDEPENDENT;
            let wanted = if is_equal {
                "≤ 1"
            } else if is_findable {
                "≥ 90"
            } else {
                "–"
            };
            let what = if is_equal { "equal" } else { "one 10% slower" };
            let how = if common { "common" } else { "separate" };
            row(&mut table, &[&format!("{what}, {how} noise"), noise.name], &ratios, wanted, |share| {
                if is_equal { Some(share <= FALSE) } else { is_findable.then_some(share >= POWER) }
            });
        }
    }
    Ok(vec![table])
}
