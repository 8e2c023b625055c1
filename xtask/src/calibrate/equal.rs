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

/// What was seen of pairs of cells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    pub(crate) all: usize,
    /// The 95 % interval of the ratio does not hold 1.
    pub(crate) apart: usize,
    /// The same, corrected for the number of cells compared in the run.
    pub(crate) sure: usize,
    /// Called different on the page.
    pub(crate) different: usize,
    pub(crate) half_widths: Vec<f64>,
}

impl Pairs {
    pub(crate) fn add(&mut self, ratio: &Ratio) {
        self.all += 1;
        self.apart += usize::from(ratio.low > 1.0 || ratio.high < 1.0);
        self.sure += usize::from(ratio.is_sure());
        self.different += usize::from(ratio.is_different());
        self.half_widths.push((ratio.high - ratio.low) / 2.0 / ratio.mean);
    }

    /// Counts and shares, for a table.
    pub(crate) fn figures(&self) -> [String; 4] {
        let of = |count: usize| format!("{} ({})", percent(share(count, self.all)), count);
        [self.all.to_string(), of(self.apart), of(self.sure), of(self.different)]
    }
}

/// What the columns of [`Pairs::figures`] are.
pub(crate) const FIGURES: [&str; 4] =
    ["pairs of cells", "interval without 1, %", "after correction, %", "called different, %"];

/// The ratios of the cells that two targets of a run have in common, as its page compares them.
pub(crate) fn ratios(record: &Record) -> Vec<Ratio> {
    let analysis = Analysis::of(record);
    analysis.comparisons(Kind::Targets).filter_map(|one| one.ratio.ok()).collect()
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
pub(crate) fn trial(campaign: &Campaign, luns: &Luns, seeds: &Range<u64>) -> Result<Pairs> {
    let seen = two_luns(campaign, luns)?.each(seeds.clone(), &campaign.interrupted, ratios)?;
    let mut pairs = Pairs::default();
    seen.iter().flatten().for_each(|ratio| pairs.add(ratio));
    Ok(pairs)
}

/// The table of simulated LUNs.
pub(crate) fn tables(campaign: &Campaign, seeds: &Range<u64>) -> Result<Vec<Table>> {
    let head = ["LUNs", "noise"].into_iter().chain(FIGURES).chain(["wanted", "median ±, %"]);
    let mut table = Table::new(
        "Two simulated LUNs in one run of the headline's reads. After correction: the ratio of the rounds is not 1, with a chance of \
         5 % for all comparisons of the run (Holm). Called different: the same with a chance of 3 %"
            .into(),
        head.map(str::to_owned).collect(),
    );
    for (factor, common) in [(1.0, true), (1.0, false), (SLOWER, true), (SLOWER, false)] {
        for noise in [INDEPENDENT, AR_90, AR_99, LEVELS] {
            if campaign.is_interrupted() {
                return Ok(vec![table]);
            }
            let pairs = trial(campaign, &Luns::pair(&noise, common, factor), seeds)?;
            let found = share(pairs.different, pairs.all);
            let is_equal = factor <= 1.0;
            // A difference that is smaller than what the noise leaves open cannot be found.
            let (wanted, holds) = match (is_equal, noise == INDEPENDENT) {
                (true, _) => ("≤ 1", Some(found <= FALSE)),
                (false, true) => ("≥ 90", Some(found >= POWER)),
                (false, false) => ("–", None),
            };
            let what = if is_equal { "equal" } else { "one 10 % slower" };
            let how = if common { "common" } else { "separate" };
            let mut row = vec![format!("{what}, {how} noise"), noise.name.to_owned()];
            row.extend(pairs.figures());
            row.extend([wanted.to_owned(), percent(median(&pairs.half_widths))]);
            table.row(row, holds);
            println!("{}", table.last_line());
        }
    }
    Ok(vec![table])
}
