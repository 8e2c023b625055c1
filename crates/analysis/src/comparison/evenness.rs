//! How evenly the streams of a cell are served, round by round: a stream that is ahead in one round and behind in another
//! is served unevenly in both, which the sums over all rounds do not show.

use rdsk_model::{CellRecord, Visit};
use rdsk_stats::{MIN_PAIRS, jain, mean_interval, mean_p_value};
use std::collections::BTreeMap;

/// Jain's index below this is unfair: of two streams one has at least twice as much as the other.
pub const UNFAIR: f64 = 0.9;

/// Jain's index over the rates of the streams within each round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evenness {
    /// The mean over the rounds.
    pub mean: f64,
    /// Lower end of the 95 % interval, at least 0.
    pub low: f64,
    /// Upper end, at most 1.
    pub high: f64,
    /// Chance of such a mean if the true one is [`UNFAIR`], corrected for all comparisons of the experiment.
    pub p_adjusted: f64,
}

impl Evenness {
    /// Whether the streams get unequal shares.
    pub fn is_unfair(&self) -> bool {
        self.mean < UNFAIR && self.p_adjusted < super::ALPHA
    }
}

/// Of a cell; `None` for a single stream and with too few rounds. Streams that failed are left out. `p_adjusted` is not
/// corrected yet.
pub(super) fn of(cell: &CellRecord) -> Option<Evenness> {
    let mut rounds: BTreeMap<u32, Vec<&Visit>> = BTreeMap::new();
    for visit in &cell.result.visits {
        rounds.entry(visit.round).or_default().push(visit);
    }
    let indices: Vec<f64> = rounds.values().filter_map(|visits| index(cell, visits)).collect();
    if indices.len() < MIN_PAIRS {
        return None;
    }
    let interval = mean_interval(&indices)?;
    Some(Evenness {
        mean: interval.mean,
        low: interval.low.max(0.0),
        high: interval.high.min(1.0),
        p_adjusted: mean_p_value(&indices, UNFAIR)?,
    })
}

/// Jain's index over the streams of one round.
fn index(cell: &CellRecord, visits: &[&Visit]) -> Option<f64> {
    let has_failed = |index: u32| cell.result.errors.iter().any(|error| error.stream == Some(index));
    let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for stream in visits.iter().flat_map(|visit| &visit.streams).filter(|stream| !has_failed(stream.index)) {
        let (bytes, ns) = sums.entry(stream.index).or_default();
        *bytes += stream.bytes;
        *ns += stream.end_ns.saturating_sub(stream.start_ns);
    }
    let rates: Vec<f64> = sums.values().map(|&(bytes, ns)| bytes as f64 / ns.max(1) as f64).collect();
    (rates.len() > 1).then(|| jain(&rates))
}
