//! How evenly the streams of a cell are served, round by round: a stream that is ahead in one round and behind in another
//! is served unevenly in both, which the sums over all rounds do not show.

use crate::groups::by_key;
use rdsk_model::{CellRecord, Visit};
use rdsk_stats::{MIN_PAIRS, jain, mean, mean_interval, mean_p_value};
use std::collections::BTreeMap;

/// Jain's index below this is unfair: of two streams one has at least twice as much as the other.
pub const UNFAIR: f64 = 0.9;

/// Jain's index over the rates of the streams within each round, and what belongs to it: all of it means over the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evenness {
    /// The mean over the rounds.
    pub mean: f64,
    /// Lower end of the 95 % interval, at least 0.
    pub low: f64,
    /// Upper end, at most 1.
    pub high: f64,
    /// The rate of the slowest stream of a round, whichever that is, in bytes per second.
    pub slowest: f64,
    /// The same of the fastest.
    pub fastest: f64,
    /// Jain's index over the streams of one target, of the target with the lowest; `None` where no target has two streams.
    pub on_one_target: Option<f64>,
    /// Chance of such a mean if the true one is [`UNFAIR`], corrected for all comparisons of the experiment.
    pub p_adjusted: f64,
}

impl Evenness {
    /// Whether the streams get unequal shares.
    pub fn is_unfair(&self) -> bool {
        self.mean < UNFAIR && self.p_adjusted < super::ALPHA
    }

    /// Whether no target serves its own streams unevenly within a round, so that the targets make the difference.
    pub fn is_fair_on_each_target(&self) -> bool {
        self.on_one_target.is_none_or(|index| index >= UNFAIR)
    }
}

/// Of a cell; `None` for a single stream and with too few rounds. Streams that failed are left out. `p_adjusted` is not
/// corrected yet.
pub(super) fn evenness(cell: &CellRecord) -> Option<Evenness> {
    let rounds: Vec<Vec<StreamRate>> =
        super::visits_by_round(cell).values().filter_map(|visits| rates(cell, visits)).collect();
    let indices: Vec<f64> = rounds.iter().map(|round| index(round)).collect();
    if indices.len() < MIN_PAIRS {
        return None;
    }
    let interval = mean_interval(&indices)?;
    let of_each = |end: fn(f64, f64) -> f64| {
        let ends =
            rounds.iter().filter_map(|round| round.iter().map(|stream| stream.bytes_per_s).reduce(end));
        mean(&ends.collect::<Vec<f64>>())
    };
    Some(Evenness {
        mean: interval.mean,
        low: interval.low.max(0.0),
        high: interval.high.min(1.0),
        slowest: of_each(f64::min)?,
        fastest: of_each(f64::max)?,
        on_one_target: on_one_target(&rounds),
        p_adjusted: mean_p_value(&indices, UNFAIR)?,
    })
}

/// The rate of one stream in one round.
#[derive(Clone, Copy)]
struct StreamRate {
    target: u32,
    bytes_per_s: f64,
}

/// The rates of the streams of one round; `None` for a single one.
fn rates(cell: &CellRecord, visits: &[&Visit]) -> Option<Vec<StreamRate>> {
    let has_failed = |index: u32| cell.result.errors.iter().any(|error| error.stream == Some(index));
    let mut sums: BTreeMap<u32, (u32, u64, u64)> = BTreeMap::new();
    for stream in visits.iter().flat_map(|visit| &visit.streams).filter(|stream| !has_failed(stream.index)) {
        let (_, bytes, ns) = sums.entry(stream.index).or_insert((stream.target, 0, 0));
        *bytes += stream.bytes;
        *ns += stream.end_ns.saturating_sub(stream.start_ns);
    }
    let rate = |&(target, bytes, ns): &(u32, u64, u64)| StreamRate {
        target,
        bytes_per_s: bytes as f64 * 1e9 / ns.max(1) as f64,
    };
    (sums.len() > 1).then(|| sums.values().map(rate).collect())
}

fn index(rates: &[StreamRate]) -> f64 {
    jain(&rates.iter().map(|rate| rate.bytes_per_s).collect::<Vec<f64>>())
}

/// Jain's index over the streams of each target within each round; the lowest of the targets' means.
fn on_one_target(rounds: &[Vec<StreamRate>]) -> Option<f64> {
    let mut by_target: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for round in rounds {
        for (target, streams) in by_key(round.iter().map(|rate| (rate.target, *rate))) {
            if streams.len() > 1 {
                by_target.entry(target).or_default().push(index(&streams));
            }
        }
    }
    by_target.values().filter_map(|indices| mean(indices)).min_by(f64::total_cmp)
}
