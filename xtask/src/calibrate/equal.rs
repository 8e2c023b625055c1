//! A/A trials: two equal LUNs measured in one run, and two of which one is slower, compared as a page compares them: by the ratio of
//! their rates over the rounds that both had.

use super::systems::{AR_90, AR_99, INDEPENDENT, LEVELS, Luns, Noise, SHORT_STALLS};
use super::table::{Table, percent, share};
use super::trials::{Campaign, Trial, median};
use anyhow::Result;
use rdsk_analysis::comparison::{Measure, Ratio, ratio_of};
use rdsk_experiment::PlanOptions;
use rdsk_model::{CellRecord, Experiment, Op, Record};

/// A difference that is worth a word on a page.
pub(crate) const WORTH: f64 = 0.05;
/// The most pairs of equal LUNs that may be called different, and the fewest of unequal ones.
const FALSE: f64 = 0.01;
const POWER: f64 = 0.9;
/// How much slower the second of two unequal LUNs is.
const SLOWER: f64 = 1.1;

/// What was seen of pairs of cells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    pub(crate) all: usize,
    /// The 95 % interval of the ratio does not hold 1.
    pub(crate) apart: usize,
    /// And the ratio differs from 1 by what is worth a word.
    pub(crate) different: usize,
    pub(crate) half_widths: Vec<f64>,
}

impl Pairs {
    pub(crate) fn add(&mut self, ratio: &Ratio) {
        let is_apart = ratio.low > 1.0 || ratio.high < 1.0;
        let is_worth = ratio.mean > 1.0 + WORTH || ratio.mean < 1.0 / (1.0 + WORTH);
        self.all += 1;
        self.apart += usize::from(is_apart);
        self.different += usize::from(is_apart && is_worth);
        self.half_widths.push((ratio.high - ratio.low) / 2.0 / ratio.mean);
    }
}

/// The ratios of the cells that two targets of a run have in common.
pub(crate) fn ratios(record: &Record) -> Vec<Ratio> {
    let of = |cell: &CellRecord| {
        let name = cell.id.strip_suffix("@0")?;
        let other = record.cells.iter().find(|other| other.id.strip_suffix("@1") == Some(name))?;
        ratio_of(cell, other, Measure::Elapsed).ok()
    };
    record.cells.iter().filter_map(of).collect()
}

/// The trial of two LUNs: the reads of the headline.
pub(crate) fn two_luns(campaign: &Campaign, luns: &Luns) -> Result<Trial> {
    let system = campaign.system("pair", luns)?;
    Ok(Trial {
        targets: vec![format!("{system}/0"), format!("{system}/1")],
        experiments: &[Experiment::Headline],
        options: PlanOptions { ops: Some(vec![Op::Read]), ..PlanOptions::default() },
    })
}

/// Counts over runs.
pub(crate) fn trial(campaign: &Campaign, luns: &Luns, runs: u64) -> Result<Pairs> {
    let seen = two_luns(campaign, luns)?.each(0..runs, &campaign.interrupted, ratios)?;
    let mut pairs = Pairs::default();
    seen.iter().flatten().for_each(|ratio| pairs.add(ratio));
    Ok(pairs)
}

/// The table of simulated LUNs.
pub(crate) fn tables(campaign: &Campaign, runs: u64) -> Result<Vec<Table>> {
    let head = [
        "LUNs",
        "noise",
        "pairs of cells",
        "interval without 1, %",
        "called different, %",
        "wanted",
        "median ±, %",
    ];
    let mut table = Table::new(
        "Two simulated LUNs in one run of the headline's reads; different: the 95 % interval of the ratio does not hold 1, and \
         the ratio is 5 % or more"
            .into(),
        head.map(str::to_owned).to_vec(),
    );
    let kinds: [Noise; 5] = [INDEPENDENT, AR_90, AR_99, LEVELS, SHORT_STALLS];
    for (factor, common) in [(1.0, true), (1.0, false), (SLOWER, true), (SLOWER, false)] {
        for noise in kinds {
            if campaign.is_interrupted() {
                return Ok(vec![table]);
            }
            let pairs = trial(campaign, &Luns::pair(&noise, common, factor), runs)?;
            let found = share(pairs.different, pairs.all);
            let is_equal = factor <= 1.0;
            let what = if is_equal { "equal" } else { "one 10 % slower" };
            let how = if common { "common" } else { "separate" };
            // Separate noise hides a difference that is smaller than what it leaves open.
            let holds = if is_equal { Some(found <= FALSE) } else { common.then_some(found >= POWER) };
            table.row(
                vec![
                    format!("{what}, {how} noise"),
                    noise.name.to_owned(),
                    pairs.all.to_string(),
                    percent(share(pairs.apart, pairs.all)),
                    format!("{} ({})", percent(found), pairs.different),
                    if is_equal {
                        "≤ 1".into()
                    } else if common {
                        "≥ 90".into()
                    } else {
                        "–".into()
                    },
                    percent(median(&pairs.half_widths)),
                ],
                holds,
            );
            println!("  {:?}", table.last());
        }
    }
    Ok(vec![table])
}
