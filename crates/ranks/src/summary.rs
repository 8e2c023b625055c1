//! What the ranks of a Record show together: starts and ends on the clock of rank 0, the time in which all ran, the clocks, and whether
//! one rank is slower than the others. Derived from a Record alone.

use rdsk_model::{ClockOffset, Overlap, RankRun, RankVisit, Record};
use rdsk_stats::{holm, median, paired_ratio};

/// A rank is called slow where it is surely slower than the others' median, and has at most this part of it.
const SLOW: f64 = 0.95;
/// The chance to name one where none is slow, over all ranks.
const ALPHA: f64 = 0.05;

/// One turn of a test on all ranks; times on the clock of rank 0.
#[derive(Clone, Debug, PartialEq)]
pub struct VisitShare {
    /// When the first rank began, and the last one.
    pub starts_ns: (u64, u64),
    /// When the first rank was done, and the last one.
    pub ends_ns: (u64, u64),
    /// How far the compared clocks may leave these off, at most.
    pub uncertainty_ns: u64,
    /// The rates of all ranks, added, each over its whole parts in the time in which all ran; `None` where one has none.
    pub bytes_per_s: Option<f64>,
}

impl VisitShare {
    /// The time in which all ran.
    pub const fn common_ns(&self) -> u64 {
        self.ends_ns.0.saturating_sub(self.starts_ns.1)
    }

    /// What all moved in the time in which all ran, as of streams; `None` where one has no whole part in it.
    #[allow(clippy::cast_possible_truncation, reason = "bytes stay far below 2^53")]
    #[allow(clippy::cast_sign_loss, reason = "no rate is below 0")]
    pub fn overlap(&self) -> Option<Overlap> {
        let covered_ns = self.common_ns();
        let bytes = (self.bytes_per_s? * covered_ns as f64 / 1e9).round() as u64;
        let since_first = |ns: u64| ns.saturating_sub(self.starts_ns.0);
        let (start_ns, end_ns) = (since_first(self.starts_ns.1), since_first(self.ends_ns.0));
        Some(Overlap { start_ns, end_ns, bytes, covered_ns })
    }

    /// Its part of the time from the first start to the last end.
    pub fn share(&self) -> f64 {
        let whole_ns = self.ends_ns.1.saturating_sub(self.starts_ns.0);
        self.common_ns() as f64 / whole_ns.max(1) as f64
    }
}

/// A reading of a rank's clock on that of rank 0.
pub(crate) const fn on_first(ns: u64, clock: &ClockOffset) -> u64 {
    ns.saturating_add_signed(-clock.offset_ns)
}

/// The turns of a test that every rank had.
pub fn shares(ranks: &[RankRun], cell: &str) -> Vec<VisitShare> {
    turns(ranks, cell).iter().map(|turn| share(turn)).collect()
}

/// The ranks that had turns of a test.
pub(crate) fn with_turns(ranks: &[RankRun], cell: &str) -> Vec<u32> {
    let has_turns = |rank: &&RankRun| rank.visits.iter().any(|visit| visit.cell == cell);
    ranks.iter().filter(has_turns).map(|rank| rank.rank).collect()
}

/// The turns of a test that each of the ranks had that had any: those of all of them, in their order.
pub(crate) fn turns<'a>(ranks: &'a [RankRun], cell: &str) -> Vec<Vec<&'a RankVisit>> {
    let of_rank =
        |rank: &'a RankRun| rank.visits.iter().filter(|visit| visit.cell == cell).collect::<Vec<_>>();
    // A rank that ended without a word counts no less: what it had stored is a part of the sums.
    let each: Vec<Vec<&RankVisit>> = ranks.iter().map(of_rank).filter(|visits| !visits.is_empty()).collect();
    let common = each.iter().map(Vec::len).min().unwrap_or(0);
    (0..common).map(|turn| each.iter().map(|visits| visits[turn]).collect()).collect()
}

fn share(visits: &[&RankVisit]) -> VisitShare {
    let ends = |time: fn(&RankVisit) -> u64| {
        let times = || visits.iter().map(|visit| on_first(time(visit), &visit.clock));
        (times().min().unwrap_or(0), times().max().unwrap_or(0))
    };
    let (starts_ns, ends_ns) = (ends(|visit| visit.start_ns), ends(|visit| visit.end_ns));
    let rates = visits.iter().map(|visit| rate_within(visit, starts_ns.1, ends_ns.0));
    VisitShare {
        starts_ns,
        ends_ns,
        uncertainty_ns: visits.iter().map(|visit| visit.clock.uncertainty_ns).max().unwrap_or(0),
        bytes_per_s: rates.sum(),
    }
}

/// The rate of a rank over its whole parts between two times of rank 0; `None` without any.
fn rate_within(visit: &RankVisit, begin_ns: u64, end_ns: u64) -> Option<f64> {
    let start_ns = on_first(visit.start_ns, &visit.clock);
    let (mut bytes, mut covered_ns) = (0, 0);
    for (part, &of_part) in whole_parts(visit) {
        let from_ns = start_ns + part * visit.part_ns;
        if from_ns >= begin_ns && from_ns + visit.part_ns <= end_ns {
            bytes += of_part;
            covered_ns += visit.part_ns;
        }
    }
    (covered_ns > 0).then(|| bytes as f64 / (covered_ns as f64 / 1e9))
}

/// The parts that the turn lasted for.
fn whole_parts(visit: &RankVisit) -> impl Iterator<Item = (u64, &u64)> {
    let whole = visit.end_ns.saturating_sub(visit.start_ns).checked_div(visit.part_ns).unwrap_or(0);
    (0..whole).zip(&visit.parts)
}

/// A rank that is slower than the others.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowRank {
    /// Its number.
    pub rank: u32,
    /// Its rate over the median of the others, as the geometric mean over pairs.
    pub ratio: f64,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// Moments at which both were compared.
    pub pairs: usize,
    /// Chance of such a ratio if it were as fast as the others, corrected for the number of ranks.
    pub p_value: f64,
}

/// The slowest rank of a test, if it is surely slower than the others: in each part of the time its bytes are paired with the median of
/// the others', so that what all ranks share cancels; corrected for the number of ranks by Holm's method.
pub fn slow_rank(ranks: &[RankRun], cell: &str) -> Option<SlowRank> {
    let present = with_turns(ranks, cell);
    let turns = turns(ranks, cell);
    // Of two ranks each is the other's median, and the slower one is slow beside the faster one.
    if present.len() < 2 {
        return None;
    }
    let compared: Vec<_> =
        (0..present.len()).map(|rank| paired_ratio(&pairs(&turns, rank))).collect::<Option<_>>()?;
    let chance = |ratio: &rdsk_stats::PairedRatio| match ratio.ratio < SLOW {
        true => ratio.p_value(1.0).unwrap_or(1.0),
        false => 1.0,
    };
    let corrected = holm(&compared.iter().map(chance).collect::<Vec<_>>());
    let slow = (0..present.len()).filter(|&rank| corrected[rank] < ALPHA);
    let rank = slow.min_by(|&left, &right| compared[left].ratio.total_cmp(&compared[right].ratio))?;
    let slowest = &compared[rank];
    Some(SlowRank {
        rank: present[rank],
        ratio: slowest.ratio,
        interval: slowest.interval,
        pairs: slowest.pairs,
        p_value: corrected[rank],
    })
}

/// The bytes of a rank and the median of the others', at each moment at which all completed some.
fn pairs(turns: &[Vec<&RankVisit>], rank: usize) -> Vec<(f64, f64, f64)> {
    let mut pairs = Vec::new();
    let mut at = 0.0;
    for turn in turns {
        let whole = turn.iter().map(|visit| whole_parts(visit).count()).min().unwrap_or(0);
        let is_alike = turn.iter().all(|visit| visit.part_ns == turn[rank].part_ns);
        for part in 0..if is_alike { whole } else { 0 } {
            at += 1.0;
            let others = turn.iter().enumerate().filter(|&(other, _)| other != rank);
            let others: Vec<f64> = others.map(|(_, visit)| visit.parts[part] as f64).collect();
            let own = turn[rank].parts[part] as f64;
            if let Some(middle) = median(&others).filter(|&middle| middle > 0.0 && own > 0.0) {
                pairs.push((at, own, middle));
            }
        }
    }
    pairs
}

/// How exactly the ranks began and ended, over all turns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Starts {
    /// Turns that all ranks had.
    pub turns: usize,
    /// From the first start to the last one: the median over turns, and the most.
    pub median_ns: u64,
    /// The most.
    pub most_ns: u64,
    /// How far the compared clocks may leave this off, at most.
    pub uncertainty_ns: u64,
    /// From the first end to the last one, the most.
    pub ends_most_ns: u64,
    /// The least part of a turn in which all ran.
    pub least_share: f64,
}

/// The clock of a rank against that of rank 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockShown {
    /// The rank.
    pub rank: u32,
    /// Before the first turn.
    pub before: ClockOffset,
    /// How much farther ahead it was after the last one; `None` where that was not measured.
    pub drift_ns: Option<i64>,
    /// How far the drift may be off.
    pub drift_uncertainty_ns: u64,
}

/// What the ranks of a Record show together.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// How many there are.
    pub ranks: usize,
    /// How many hosts, by the names and boots of their kernels.
    pub hosts: usize,
    /// Starts and ends; `None` where no turn was had by all.
    pub starts: Option<Starts>,
    /// The clocks of the ranks that said something, but rank 0.
    pub clocks: Vec<ClockShown>,
    /// The tests with a slow rank.
    pub slow: Vec<(String, SlowRank)>,
    /// How many tests were compared.
    pub compared: usize,
}

/// What the ranks of a Record show together; `None` for a run of a single process, and for the part of one rank.
pub fn summary(record: &Record) -> Option<Summary> {
    let ranks = &record.ranks;
    if ranks.len() < 2 {
        return None;
    }
    let mut hosts: Vec<(&str, &str)> = ranks
        .iter()
        .filter(|rank| !rank.host.is_empty())
        .map(|rank| (rank.host.as_str(), rank.boot.as_str()))
        .collect();
    hosts.sort_unstable();
    hosts.dedup();
    let ids: Vec<&str> = record.cells.iter().map(|cell| cell.id.as_str()).collect();
    let visit_shares: Vec<VisitShare> = ids.iter().flat_map(|id| shares(ranks, id)).collect();
    let compared = ids.iter().filter(|id| !turns(ranks, id).is_empty()).count();
    let slow = ids.iter().filter_map(|id| Some(((*id).to_owned(), slow_rank(ranks, id)?))).collect();
    let clocks = ranks.iter().filter(|rank| rank.rank > 0).filter_map(clock).collect();
    Some(Summary {
        ranks: ranks.len(),
        hosts: hosts.len(),
        starts: starts(&visit_shares),
        clocks,
        slow,
        compared,
    })
}

fn starts(visit_shares: &[VisitShare]) -> Option<Starts> {
    let mut spreads: Vec<u64> =
        visit_shares.iter().map(|share| share.starts_ns.1 - share.starts_ns.0).collect();
    spreads.sort_unstable();
    Some(Starts {
        turns: visit_shares.len(),
        median_ns: *spreads.get(spreads.len() / 2)?,
        most_ns: *spreads.last()?,
        uncertainty_ns: visit_shares.iter().map(|share| share.uncertainty_ns).max()?,
        ends_most_ns: visit_shares.iter().map(|share| share.ends_ns.1 - share.ends_ns.0).max()?,
        least_share: visit_shares.iter().map(VisitShare::share).fold(1.0, f64::min),
    })
}

fn clock(rank: &RankRun) -> Option<ClockShown> {
    let before = rank.clock_before?;
    let after = rank.clock_after;
    Some(ClockShown {
        rank: rank.rank,
        before,
        drift_ns: after.map(|after| after.offset_ns - before.offset_ns),
        drift_uncertainty_ns: before.uncertainty_ns + after.map_or(0, |after| after.uncertainty_ns),
    })
}
