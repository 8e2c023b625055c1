//! Latency bands: latencies that lie in a band of their own, beside the main mode, and what makes them, as far as it can be
//! tested. Derived from a cell of `zones`; if no test shows the cause it says so.

mod members;

use super::positions::{Places, Zone, rotates};
use crate::contention::is_shared;
use crate::metrics::has_verdict;
use members::{beside_main, beside_position, is_of_passes, is_of_positions, jumps};
use rdsk_model::{CellRecord, Pattern, Record, VerdictCode};
use rdsk_stats::{Band, BandOptions, Bands, bands, dithered, lag1, median};

/// Probability of reporting bands if the samples have one mode.
pub const FALSE_ALARM: f64 = 0.001;
/// Smallest share of the samples that is called a band.
pub const MIN_SHARE: f64 = 0.02;
/// Bands nearer to each other than this part of the median latency are one.
const MIN_DISTANCE: f64 = 0.1;
/// The samples of a zone are compared by what they take more than its fast part does.
const MAIN_LINE: f64 = 0.1;
/// Revolutions per minute of nearly all disks that are or were made.
const SPEEDS: [f64; 5] = [4200.0, 5400.0, 7200.0, 10_000.0, 15_000.0];
/// How near the distance of a band must be to a revolution.
const NEAR: f64 = 0.04;
/// The part of a pass that is called its start, and the share of late samples that must lie there.
const START: f64 = 0.05;
const START_SHARE: f64 = 0.8;
/// Late I/Os are periodic if this share of them has another one period later, and few enough are late at all.
const PERIODIC: f64 = 0.7;
const RARE: f64 = 0.35;

/// Correlation of neighbours within a band that is allowed for, at most, and what a median absolute deviation is multiplied
/// with, at most, to be a sample that is no stray one.
const MAX_RHO: f64 = 0.99;
const STRAY: f64 = 4.5;
/// I/Os of the same band with at most this many others among them are one stretch of time.
const STRETCH: usize = 2;

/// A band beside the main mode, which is the largest one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyBand {
    /// How much slower than the main mode, in ns; negative if it is faster.
    pub offset_ns: f64,
    /// I/Os in it.
    pub count: usize,
    /// Its part of all I/Os, 0 to 1.
    pub share: f64,
}

/// What was found to make the bands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cause {
    /// They are the steps of the clock: blurred by one step they are gone.
    Clock {
        /// One step, in ns.
        resolution_ns: u64,
    },
    /// The limit of a control group, which is the rate of the cell, let some pass at once and held others back.
    Limit,
    /// Neighbours in the order of issue are in the same band more often than chance has it: two speeds in time.
    TwoSpeeds,
    /// The device moved bytes for others meanwhile, for which the late ones waited.
    OtherIo,
    /// The late ones are the first of a pass.
    StartOfPass {
        /// Late ones among the first of a pass, 0 to 1.
        share: f64,
    },
    /// They are one revolution of the disk late.
    MissedRevolution {
        /// Time of one revolution at the usual speed nearest to it, in ns.
        revolution_ns: f64,
    },
    /// Every n-th I/O is beside the main mode, late or faster, wherever it goes.
    Periodic {
        /// I/Os from one of them to the next.
        every: usize,
    },
    /// None of these.
    Unknown,
}

impl Cause {
    /// The cause in two or three words, for a table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Clock { .. } => "steps of the clock",
            Self::Limit => "a cgroup's limit",
            Self::TwoSpeeds => "two speeds in time",
            Self::OtherIo => "other I/O",
            Self::StartOfPass { .. } => "start of a sweep",
            Self::MissedRevolution { .. } => "a missed revolution",
            Self::Periodic { .. } => "periodic",
            Self::Unknown => "cause unknown",
        }
    }
}

/// The bands of a cell and their cause.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyBands {
    /// By rising offset; never empty.
    pub bands: Vec<LatencyBand>,
    /// Probability of samples this divided from a distribution with one mode.
    pub p_value: f64,
    /// What makes them.
    pub cause: Cause,
    /// When the I/Os beside the main mode were issued, if they are [`Cause::TwoSpeeds`].
    pub when: Option<Stretches>,
}

/// Stretches of time with the speed that is not that of the main mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretches {
    /// How many.
    pub count: usize,
    /// Begin and end of the longest one, in ns of I/O time of the cell.
    pub longest_ns: (u64, u64),
}

/// Every I/O in the order in which it was made; a list per figure, since there may be a million of them.
#[derive(Default)]
struct Lates {
    /// Its latency less that of the main mode at its position.
    late_ns: Vec<f64>,
    /// Index of its position.
    position: Vec<u32>,
    /// The latency of the main mode there.
    line_ns: Vec<f64>,
    /// I/Os of each pass.
    passes: Vec<usize>,
}

/// Looks for bands; `None` if there are none.
pub(super) fn latency_bands(
    record: &Record,
    cell: &CellRecord,
    places: &Places,
    zones: &[Zone],
) -> Option<LatencyBands> {
    let line = main_line(places, zones);
    let lates = lates(cell, places, &line);
    let late_ns = &lates.late_ns;
    let typical_ns =
        median(&places.positions.iter().map(|position| position.median_ns).collect::<Vec<f64>>())?;
    let options = BandOptions {
        false_alarm: FALSE_ALARM,
        min_share: MIN_SHARE,
        min_distance: typical_ns * MIN_DISTANCE,
        repeats: repeats(&lates),
    };
    let modes = bands(late_ns, &options);
    // What resembles its neighbours within a band too is a slow change and no band: so many samples say as much as one.
    let rho = lag1(&within(late_ns, &modes)).clamp(0.0, MAX_RHO);
    let options = BandOptions { repeats: options.repeats * (1.0 + rho) / (1.0 - rho), ..options };
    let modes = if rho > 0.0 { bands(late_ns, &options) } else { modes };
    let main = *modes.bands.iter().max_by_key(|band| band.count)?;
    let beside: Vec<LatencyBand> = modes
        .bands
        .iter()
        .filter(|band| **band != main)
        .map(|band| LatencyBand {
            offset_ns: band.centre - main.centre,
            count: band.count,
            share: band.share,
        })
        .collect();
    if beside.is_empty() {
        return None;
    }
    let resolution_ns = record.host.as_ref().map_or(0, |host| host.clock.resolution_ns);
    let is_clock = bands(&dithered(late_ns, resolution_ns as f64), &options).bands.len() < 2;
    let cause =
        if is_clock { Cause::Clock { resolution_ns } } else { cause(record, cell, &lates, &beside, &main) };
    // What goes from one band to the other in small steps, or between passes only, is a slow change, with as many modes as chance
    // gives it. It may be a revolution wide by chance, too.
    let may_be_slow = matches!(cause, Cause::TwoSpeeds | Cause::MissedRevolution { .. });
    if may_be_slow && !jumps(&lates, &beside, &main) {
        return None;
    }
    // Two speeds beside other programs are those with and without them.
    if cause == Cause::TwoSpeeds && (is_shared(cell) || is_of_passes(&lates, &main)) {
        return None;
    }
    // The curve over the positions shows them.
    if matches!(cause, Cause::Limit | Cause::TwoSpeeds | Cause::Unknown) && is_of_positions(&lates, &main) {
        return None;
    }
    let when = (cause == Cause::TwoSpeeds).then(|| stretches(cell, &lates, &main));
    Some(LatencyBands { bands: beside, p_value: modes.p_value, cause, when })
}

/// What each sample is off the centre of its band.
fn within(late_ns: &[f64], modes: &Bands) -> Vec<f64> {
    let off = |&late_ns: &f64| {
        let band = modes.bands.partition_point(|band| band.high < late_ns).min(modes.bands.len() - 1);
        late_ns - modes.bands[band].centre
    };
    let off: Vec<f64> = if modes.bands.is_empty() { Vec::new() } else { late_ns.iter().map(off).collect() };
    let most = STRAY * rdsk_stats::mad(&off).unwrap_or(0.0);
    off.into_iter().map(|off| off.clamp(-most, most)).collect()
}

/// When the samples beside the main mode were issued.
fn stretches(cell: &CellRecord, lates: &Lates, main: &Band) -> Stretches {
    let mut ends_ns = Vec::with_capacity(lates.late_ns.len());
    let mut now_ns = 0;
    for &latency_ns in cell.result.points.iter().flat_map(|run| &run.latency_ns) {
        now_ns += latency_ns;
        ends_ns.push(now_ns);
    }
    let begin_ns =
        |index: usize| if index == 0 { 0 } else { ends_ns.get(index - 1).copied().unwrap_or(now_ns) };
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (index, _) in beside_main(lates, main).into_iter().enumerate().filter(|(_, is_beside)| *is_beside) {
        match runs.last_mut() {
            Some((_, last)) if index - *last <= STRETCH + 1 => *last = index,
            _ => runs.push((index, index)),
        }
    }
    let times = runs.iter().map(|&(first, last)| (begin_ns(first), begin_ns(last + 1)));
    let longest_ns = times.max_by_key(|(begin, end)| end - begin).unwrap_or((0, 0));
    Stretches { count: runs.len(), longest_ns }
}

/// The latency of the main mode at each position: a low quantile of all samples of its zone, which has one rate. It is a
/// sample itself and nothing in between, so that a coarse clock stays visible.
fn main_line(places: &Places, zones: &[Zone]) -> Vec<f64> {
    let mut line = Vec::with_capacity(places.samples.len());
    for zone in zones {
        let of_zone = &places.samples[zone.first..zone.first + zone.positions];
        let mut sorted_ns: Vec<u64> = of_zone.iter().flatten().copied().collect();
        sorted_ns.sort_unstable();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of the length")]
        let place = (sorted_ns.len() as f64 * MAIN_LINE) as usize;
        let level = sorted_ns.get(place).map_or(0.0, |&ns| ns as f64);
        line.extend(std::iter::repeat_n(level, zone.positions));
    }
    line
}

fn lates(cell: &CellRecord, places: &Places, line: &[f64]) -> Lates {
    let count = cell.result.points.iter().map(|run| run.order.len()).sum();
    let mut lates = Lates {
        late_ns: Vec::with_capacity(count),
        position: Vec::with_capacity(count),
        line_ns: Vec::with_capacity(count),
        passes: Vec::new(),
    };
    for run in &cell.result.points {
        let before = lates.late_ns.len();
        for (position, latency_ns) in places.of_pass(run) {
            lates.late_ns.push(latency_ns.max(1) as f64 - line[position]);
            lates.line_ns.push(line[position]);
            lates.position.push(u32::try_from(position).unwrap_or(u32::MAX));
        }
        lates.passes.push(lates.late_ns.len() - before);
    }
    lates
}

/// How many I/Os say as much as one, since those at the same position may only repeat each other: the design effect
/// 1 + (k - 1) ρ of clusters of k (Kish 1965), with the correlation ρ of the ranks within a position.
fn repeats(lates: &Lates) -> f64 {
    let count = lates.late_ns.len();
    let mut by_value: Vec<u32> = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
    by_value.sort_unstable_by(|&left, &right| {
        lates.late_ns[left as usize].total_cmp(&lates.late_ns[right as usize]).then(left.cmp(&right))
    });
    let positions = lates.position.iter().map(|&position| position as usize + 1).max().unwrap_or(0);
    let mut sums = vec![(0.0, 0.0); positions];
    let middle = (count as f64 - 1.0) / 2.0;
    let mut total = 0.0;
    for (rank, &index) in by_value.iter().enumerate() {
        let off = rank as f64 - middle;
        let sum = &mut sums[lates.position[index as usize] as usize];
        *sum = (sum.0 + off, sum.1 + 1.0);
        total += off * off;
    }
    let visited = sums.iter().filter(|sum| sum.1 > 0.0).count() as f64;
    let each = count as f64 / visited.max(1.0);
    if each <= 1.0 || total <= 0.0 {
        return 1.0;
    }
    let between: f64 = sums.iter().filter(|sum| sum.1 > 0.0).map(|sum| sum.0 * sum.0 / sum.1).sum();
    // Of independent samples the positions' means have 1/k of the variance, of repeated ones all of it.
    let correlation = ((between / total - 1.0 / each) / (1.0 - 1.0 / each)).clamp(0.0, 1.0);
    1.0 + (each - 1.0) * correlation
}

/// The first of the causes whose test holds.
fn cause(record: &Record, cell: &CellRecord, lates: &Lates, bands: &[LatencyBand], main: &Band) -> Cause {
    if has_verdict(cell, VerdictCode::Throttled) {
        return Cause::Limit;
    }
    let count = lates.late_ns.len();
    let is_beside = beside_main(lates, main);
    let beside: Vec<usize> = (0..count).filter(|&index| is_beside[index]).collect();
    let late = bands.iter().all(|band| band.offset_ns > 0.0);
    let share = share_at_start(lates, &beside);
    if late && share >= START_SHARE && !is_disturbed(cell) {
        return Cause::StartOfPass { share };
    }
    // Ascending positions are neighbours in time and on the disk, where one angle follows the other.
    if cell.workload.pattern == Pattern::Sequential
        && !is_disturbed(cell)
        && let Some(revolution) = missed_revolution(record, cell, bands)
    {
        return revolution;
    }
    let mut member: Vec<f64> = is_beside.iter().map(|&is_beside| f64::from(u8::from(is_beside))).collect();
    // Then neighbours are alike for their place already; only what differs from pass to pass is of time.
    if cell.workload.pattern == Pattern::Sequential && lates.passes.len() > 1 {
        member = beside_position(lates, &member);
    }
    if lag1(&member) > 2.0 / (count as f64).sqrt() {
        return Cause::TwoSpeeds;
    }
    // Who waits for others is late: they make no I/O faster.
    let largest = bands.iter().max_by_key(|band| band.count);
    if is_disturbed(cell) && largest.is_some_and(|band| band.offset_ns > 0.0) {
        return Cause::OtherIo;
    }
    if let Some(every) = period(&beside, count) {
        return Cause::Periodic { every };
    }
    missed_revolution(record, cell, bands).unwrap_or(Cause::Unknown)
}

/// One revolution of a rotational disk, if the largest band is one off the main mode.
fn missed_revolution(record: &Record, cell: &CellRecord, bands: &[LatencyBand]) -> Option<Cause> {
    let band = bands.iter().max_by_key(|band| band.count).filter(|_| rotates(record, cell))?;
    let off = |rpm: &f64| (band.offset_ns.abs() / (60e9 / rpm) - 1.0).abs();
    let nearest = SPEEDS.iter().min_by(|left, right| off(left).total_cmp(&off(right)))?;
    (off(nearest) <= NEAR).then_some(Cause::MissedRevolution { revolution_ns: 60e9 / nearest })
}

fn is_disturbed(cell: &CellRecord) -> bool {
    has_verdict(cell, VerdictCode::Disturbed)
}

/// The share of these I/Os that are among the first of their pass.
fn share_at_start(lates: &Lates, indices: &[usize]) -> f64 {
    let mut begin = 0;
    let mut first = 0;
    for &length in &lates.passes {
        let starts = (length as f64 * START).max(1.0);
        let place = |&&index: &&usize| index >= begin && ((index - begin) as f64) < starts;
        let of_pass = indices.partition_point(|&index| index < begin)..;
        first += indices[of_pass].iter().take_while(|&&index| index < begin + length).filter(place).count();
        begin += length;
    }
    first as f64 / indices.len().max(1) as f64
}

/// The number of I/Os, at least two, from one late one to the next: the most frequent gap, if as many late ones as [`PERIODIC`] have
/// another exactly that far on. One that is late for a reason of its own does not hide it, as it would among gaps.
fn period(slow: &[usize], total: usize) -> Option<usize> {
    let mut gaps: Vec<usize> =
        slow.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap >= 2).collect();
    gaps.sort_unstable();
    let most = gaps.chunk_by(|left, right| left == right).max_by_key(|same| same.len())?;
    let every = most[0];
    let with_place: Vec<usize> = slow.iter().copied().filter(|index| index + every < total).collect();
    let hits = with_place.iter().filter(|&&index| slow.binary_search(&(index + every)).is_ok()).count();
    // Of late ones that come by chance, as many would be hits as there are late ones among all.
    let is_rare = slow.len() as f64 <= total as f64 * RARE;
    (hits >= 5 && is_rare && hits as f64 >= with_place.len() as f64 * PERIODIC).then_some(every)
}

#[cfg(test)]
mod tests {
    use super::period;

    #[test]
    fn every_tenth_is_seen_among_others_and_chance_is_none() {
        let tenth = |index: &usize| index % 10 == 4;
        let mut slow: Vec<usize> = (0..400).filter(tenth).collect();
        assert_eq!(period(&slow, 400), Some(10));
        slow.extend([17, 101, 102, 250, 333, 391]);
        slow.sort_unstable();
        assert_eq!(period(&slow, 400), Some(10));
        // A request of another program moves the count on.
        let moved: Vec<usize> =
            (0..400).filter(|&index| tenth(&(index + usize::from(index > 200)))).collect();
        assert_eq!(period(&moved, 400), Some(10));
        let chance: Vec<usize> = (0..400).filter(|index| index * index % 97 < 10).collect();
        assert_eq!(period(&chance, 400), None);
        // One late I/O right after another is a stretch of time and no period.
        assert_eq!(period(&(40..90).collect::<Vec<usize>>(), 400), None);
        assert_eq!(period(&[3], 400), None);
        assert_eq!(period(&[], 0), None);
    }
}
