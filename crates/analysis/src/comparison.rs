//! Comparisons of two cells by the rounds that both had. The visits of one round follow each other closely and share the
//! state that the disk is in, so the ratio of two rates is taken within each round, and its interval over the rounds. All
//! comparisons of one experiment are corrected together for their number. It names no cause and advises nothing.

mod evenness;
mod pairs;

pub use evenness::{Evenness, UNFAIR};

use crate::groups::distinct;
use crate::metrics::ratio as per;
use crate::read_ahead::unused_share;
use crate::verdict;
use pairs::Pair;
use rdsk_model::{CellRecord, Experiment, Op, Record, Visit};
use rdsk_stats::{MIN_PAIRS, PairedRatio, TimedPair, holm, paired_ratio};
use std::collections::BTreeMap;

/// Fewer I/Os than this on one side compare nothing.
pub const MIN_IOS: u64 = 4;
/// Whether a cell only says how much the memory of buffers matters: beside it stands one that it is like but for that.
pub fn is_of_memory_alone(record: &Record, cell: &CellRecord) -> bool {
    let cells: Vec<&CellRecord> = record.cells.iter().collect();
    pairs::twin_on_pages(&cells, cell).is_some()
}

/// The chance of an error among all comparisons of an experiment.
pub const ALPHA: f64 = 0.05;
/// The same for calling two targets different. Their cells share the moments of their rounds, so that chance deceives in all of
/// them or in none: of many pairs of equal cells fewer than half of this share are called different.
pub const ALPHA_OF_TARGETS: f64 = 0.03;

/// An interval of a ratio within this factor shows that two paths are equally fast.
const EQUAL: f64 = 1.1;
/// A ratio within this factor counts as equal even when it is certain: 5 % decides nothing.
const SAME: f64 = 1.05;

/// How the rate above the line of a ratio compares with the one below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Surely faster, by at least 5 %.
    Faster,
    /// Surely slower, by at least 5 %.
    Slower,
    /// The same to within a tenth.
    Equal,
    /// The interval is too wide to call them equal, or to say which is faster.
    Unclear,
}

/// What two cells are compared for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The direct cell over the buffered one.
    Paths,
    /// The cell with `RWF_DONTCACHE` over the buffered one, and over the direct one.
    DontCache,
    /// The write that need not be durable over the durable one: how many times as long a durable write takes.
    Durable,
    /// The aligned write over the shifted one: how many times as long a shifted write takes.
    Shift,
    /// A number of streams over the next smaller one.
    Streams,
    /// A cell of a target over the same cell of the first target.
    Targets,
    /// Buffers that lie in one piece over those on ordinary pages.
    Memory,
}

/// How the rate of a round is computed from its visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Bytes over the time of I/O.
    Elapsed,
    /// Reads as [`Measure::Elapsed`], writes over the time until everything was on stable storage.
    UntilStable,
    /// Bytes and time of the part in which all streams ran.
    Together,
}

/// A ratio of two rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The geometric mean over the rounds.
    pub mean: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Rounds that both sides had.
    pub rounds: usize,
    /// Chance of such a ratio if the true one is what the comparison tests against, corrected for all comparisons of the
    /// experiment; 1 where it decides nothing.
    pub p_adjusted: f64,
}

impl Ratio {
    /// Whether the true ratio is not the one that is tested against.
    pub fn is_sure(&self) -> bool {
        self.p_adjusted < ALPHA
    }

    /// Whether two targets are called different.
    pub fn is_different(&self) -> bool {
        self.p_adjusted < ALPHA_OF_TARGETS
    }

    /// Which side is faster, if one is.
    pub fn outcome(&self) -> Outcome {
        let factor = self.mean.max(1.0 / self.mean);
        if self.is_sure() && factor >= SAME {
            return if self.mean > 1.0 { Outcome::Faster } else { Outcome::Slower };
        }
        if self.low >= 1.0 / EQUAL && self.high <= EQUAL { Outcome::Equal } else { Outcome::Unclear }
    }

    /// The ratio of the other side to this one.
    pub fn turned(self) -> Self {
        Self { mean: 1.0 / self.mean, low: 1.0 / self.high, high: 1.0 / self.low, ..self }
    }
}

/// Why two cells cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRatio {
    /// Rounds that both sides had.
    Rounds(usize),
    /// I/Os of the side that had fewer.
    Ios(u64),
    /// A side is a burst above a limit: the ratio would be that of what two limits let pass.
    Burst,
    /// One side was taken over from an earlier run: the ratio would be that of two times.
    Sittings,
}

impl NoRatio {
    /// `2 repeats on both sides, and a comparison needs 3`.
    pub fn words(self) -> String {
        match self {
            Self::Rounds(0) => format!("no repeat on both sides, and a comparison needs {MIN_PAIRS}"),
            Self::Rounds(count) => {
                let repeats = crate::words::plural(count as u64, "repeat");
                format!("{repeats} on both sides, and a comparison needs {MIN_PAIRS}")
            }
            Self::Ios(count) => {
                let ios = crate::words::plural(count, "I/O");
                format!("{ios} on one side, and a comparison needs {MIN_IOS}")
            }
            Self::Burst => "a side is above the limit of its control group, which is a burst".into(),
            Self::Sittings => "measured in two runs".into(),
        }
    }

    /// The same of several pairs, before what they are: `too few repeats or I/Os to compare`.
    pub fn of_these(self) -> &'static str {
        match self {
            Self::Rounds(_) | Self::Ios(_) => "too few repeats or I/Os to compare",
            Self::Burst => "bursts above a limit cannot be compared:",
            Self::Sittings => "not compared, since measured in two runs:",
        }
    }

    /// The same before [`Self::words`]: `too few to compare`.
    pub fn of_this(self) -> &'static str {
        match self {
            Self::Rounds(_) | Self::Ios(_) => "too few to compare",
            Self::Burst | Self::Sittings => "not compared",
        }
    }
}

/// Two cells compared.
#[derive(Clone, Debug)]
pub struct Comparison<'a> {
    /// What for.
    pub kind: Kind,
    /// The cell whose rate is above the line.
    pub cell: &'a CellRecord,
    /// The cell whose rate is below it.
    pub base: &'a CellRecord,
    /// Their ratio, or why there is none.
    pub ratio: Result<Ratio, NoRatio>,
}

/// Everything that the page of one experiment compares.
#[derive(Clone, Debug)]
pub struct Family<'a> {
    /// The experiment.
    pub experiment: Experiment,
    /// Pairs of cells, in the order of the Record.
    pub comparisons: Vec<Comparison<'a>>,
    /// How evenly the streams of a cell were served, by the cell's id; cells with too few rounds are missing.
    pub evenness: BTreeMap<&'a str, Evenness>,
}

impl<'a> Family<'a> {
    /// The comparison of two cells for this purpose.
    pub fn find(&self, kind: Kind, cell: &CellRecord, base: &CellRecord) -> Option<&Comparison<'a>> {
        let is_it = |comparison: &&Comparison<'a>| {
            comparison.kind == kind
                && std::ptr::eq(comparison.cell, cell)
                && std::ptr::eq(comparison.base, base)
        };
        self.comparisons.iter().find(is_it)
    }
}

/// The families of a Record whose cells have their verdicts, in the order of its experiments.
pub(crate) fn families(record: &Record) -> Vec<Family<'_>> {
    let experiments = distinct(record.cells.iter().map(|cell| cell.experiment));
    experiments.into_iter().map(|experiment| family(record, experiment)).collect()
}

fn family(record: &Record, experiment: Experiment) -> Family<'_> {
    let mut p_values = Vec::new();
    let mut comparisons = Vec::new();
    for pair in pairs::pairs(record, experiment) {
        let is_burst = |cell| verdict::is_burst(cell, &record.targets);
        let paired = if is_burst(pair.cell) || is_burst(pair.base) {
            Err(NoRatio::Burst)
        } else {
            paired(pair.cell, &[pair.base], pair.measure, pair.against)
        };
        let ratio = paired.map(|(ratio, p_value)| {
            p_values.push(p_value);
            ratio
        });
        let Pair { kind, cell, base, .. } = pair;
        comparisons.push(Comparison { kind, cell, base, ratio });
    }
    let mut evenness: BTreeMap<&str, Evenness> = BTreeMap::new();
    for cell in record.cells.iter().filter(|cell| cell.experiment == experiment) {
        if let Some(of_cell) = evenness::evenness(cell) {
            evenness.insert(&cell.id, of_cell);
        }
    }
    p_values.extend(evenness.values().map(|evenness| evenness.p_adjusted));
    let mut adjusted = holm(&p_values).into_iter();
    for ratio in comparisons.iter_mut().filter_map(|comparison| comparison.ratio.as_mut().ok()) {
        ratio.p_adjusted = adjusted.next().unwrap_or(1.0);
    }
    for of_cell in evenness.values_mut() {
        of_cell.p_adjusted = adjusted.next().unwrap_or(1.0);
    }
    Family { experiment, comparisons, evenness }
}

/// The ratio of two cells that needs no correction: it is only shown, or its whole interval has to be beyond a bound that leaves
/// a margin.
///
/// # Errors
/// If one side has too few I/Os, or both together too few rounds.
pub fn ratio_of(cell: &CellRecord, base: &CellRecord, measure: Measure) -> Result<Ratio, NoRatio> {
    paired(cell, &[base], measure, 1.0).map(|(ratio, _)| ratio)
}

/// The same of a cell to the sum of others, in each round: what targets give together over what each gives by itself.
///
/// # Errors
/// As [`ratio_of`], where any of the cells has too little.
pub fn ratio_to_sum(cell: &CellRecord, bases: &[&CellRecord], measure: Measure) -> Result<Ratio, NoRatio> {
    paired(cell, bases, measure, 1.0).map(|(ratio, _)| ratio)
}

/// The ratio of a cell to the sum of others, and the chance of one as far from `against` if the true one is that.
fn paired(
    cell: &CellRecord,
    bases: &[&CellRecord],
    measure: Measure,
    against: f64,
) -> Result<(Ratio, f64), NoRatio> {
    let ios = |cell: &CellRecord| cell.result.ops.unwrap_or(0);
    let fewest = bases.iter().map(|base| ios(base)).fold(ios(cell), u64::min);
    if fewest < MIN_IOS {
        return Err(NoRatio::Ios(fewest));
    }
    let (pairs, apart) = common_rounds(cell, bases, measure);
    let few = if apart > 0 { NoRatio::Sittings } else { NoRatio::Rounds(pairs.len()) };
    let paired = paired_ratio(&pairs).ok_or(few)?;
    let (low, high) = paired.interval.ok_or(few)?;
    let unsure = Unused::read_ahead(cell, bases);
    let (low, high) = (low / unsure.below, high * unsure.above);
    let ratio = Ratio { mean: paired.ratio, low, high, rounds: paired.pairs, p_adjusted: 1.0 };
    Ok((ratio, unsure.p_value(&paired, against)))
}

/// When each round that all had in one sitting began, and both rates, that of the bases being their sum: of the sitting that has most of
/// them. And how many rounds have one number and were of two sittings.
fn common_rounds(cell: &CellRecord, bases: &[&CellRecord], measure: Measure) -> (Vec<TimedPair>, usize) {
    let sitting = |cell: &CellRecord, round: u32| {
        cell.result.visits.iter().find(|visit| visit.round == round).map(|visit| visit.sitting)
    };
    let below: Vec<BTreeMap<u32, f64>> = bases.iter().map(|base| round_rates(base, measure)).collect();
    let (mut sittings, mut apart) = (BTreeMap::<_, Vec<TimedPair>>::new(), 0);
    for (round, rate) in round_rates(cell, measure) {
        let others = below.iter().map(|rates| rates.get(&round).copied());
        let Some(others) = others.collect::<Option<Vec<f64>>>() else { continue };
        let own_sitting = sitting(cell, round);
        if bases.iter().all(|base| own_sitting == sitting(base, round)) {
            let sum = others.iter().sum();
            sittings.entry(own_sitting).or_default().push((began(cell, round), rate, sum));
        } else {
            apart += 1;
        }
    }
    (sittings.into_values().max_by_key(Vec::len).unwrap_or_default(), apart)
}

/// What the kernel read ahead and the program had not used when the visits ended leaves unsure in a ratio, in each round alike: the rates may be
/// those at which the device read.
#[derive(Clone, Copy)]
struct Unused {
    /// By which factor the true ratio may be lower, at most.
    below: f64,
    /// By which it may be higher.
    above: f64,
}

impl Unused {
    fn read_ahead(cell: &CellRecord, bases: &[&CellRecord]) -> Self {
        let factor = |cell: &CellRecord| 1.0 + unused_share(cell).unwrap_or(0.0);
        let below = bases.iter().map(|base| factor(base)).fold(1.0, f64::max);
        Self { below, above: factor(cell) }
    }

    /// Chance of a ratio as far from `expected` as this one or farther if the true one is `expected`: where the ratio may be that for this
    /// reason alone it is 1, and it is never less than what is nearest to it leaves.
    fn p_value(self, paired: &PairedRatio, expected: f64) -> f64 {
        let nearest = paired.ratio.clamp(expected / self.above, expected * self.below);
        paired.p_value(nearest).unwrap_or(1.0)
    }
}

/// When the first visit of a round began, in ns from the start of the run; 0 in Records that do not say.
pub fn began(cell: &CellRecord, round: u32) -> f64 {
    let of_round = cell.result.visits.iter().filter(|visit| visit.round == round);
    of_round.map(|visit| visit.start_ns).min().unwrap_or(0) as f64
}

/// The visits of every round, by its number.
pub fn visits_by_round(cell: &CellRecord) -> BTreeMap<u32, Vec<&Visit>> {
    let mut rounds: BTreeMap<u32, Vec<&Visit>> = BTreeMap::new();
    for visit in &cell.result.visits {
        rounds.entry(visit.round).or_default().push(visit);
    }
    rounds
}

/// Bytes and time of the warm-up, which is the start of the first visit; 0 where there is none, and in Records that show no bytes.
pub fn warm_up(cell: &CellRecord) -> (u64, u64) {
    cell.result.warmup_bytes.zip(cell.result.warmup_ns).unwrap_or((0, 0))
}

/// Bytes per second of every round in which the cell moved something, by the number of the round. The warm-up is left out, as it is of
/// the cell's rate, where whole visits are not what is measured.
pub fn round_rates(cell: &CellRecord, measure: Measure) -> BTreeMap<u32, f64> {
    let mut sums: BTreeMap<u32, Option<(u64, u64)>> = BTreeMap::new();
    for (place, visit) in cell.result.visits.iter().enumerate() {
        let (early_bytes, early_ns) = if place == 0 { warm_up(cell) } else { (0, 0) };
        let moved = match (measure, visit.overlap, cell.workload.op) {
            (Measure::Together, Some(overlap), _) => Some((overlap.bytes, overlap.covered_ns)),
            (Measure::Together, None, _) if cell.workload.streams > 1 => None,
            (Measure::UntilStable, _, Op::Write) => visit.to_stable_ns.map(|ns| (visit.bytes, ns)),
            _ => Some((visit.bytes.saturating_sub(early_bytes), visit.elapsed_ns.saturating_sub(early_ns))),
        };
        let sum = sums.entry(visit.round).or_insert(Some((0, 0)));
        // A visit that does not know its time makes the round unknown.
        *sum = sum.zip(moved).map(|((bytes, ns), (more, longer))| (bytes + more, ns + longer));
    }
    let known_sums = sums.into_iter().filter_map(|(round, sum)| Some((round, sum?)));
    known_sums
        .filter(|(_, (bytes, ns))| *bytes > 0 && *ns > 0)
        .map(|(round, (bytes, ns))| (round, per(bytes, ns) * 1e9))
        .collect()
}

#[cfg(test)]
mod tests;
